"""Ops: the table of operations, filled. A file for each theme says what its operations become."""

from __future__ import annotations

from . import (  # noqa: F401  (each registers its operations)
    assertions,
    atomics,
    combine,
    elementwise,
    grid,
    memory,
    printing,
    products,
    reductions,
    regions,
    shapes,
    views,
)
from .table import EFFECTS, OPS

__all__ = ["EFFECTS", "OPS"]
