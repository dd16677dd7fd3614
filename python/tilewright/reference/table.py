"""The operations of the reference execution by their public names; arguments come as tile.py declares them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..registry import into

OPS: dict[str, Callable[..., Any]] = {}
op = into(OPS)  # @op(name): the function below is what the operation computes
