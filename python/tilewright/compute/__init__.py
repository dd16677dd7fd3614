"""Parallel algorithms with operators written in Python: `from tilewright import compute`.

    compute.reduce_into(d_in, d_out, lambda a, b: a if a > b else b, num_items, h_init)

Each algorithm has a function, which does all at once, and an object of three stages: `make_reduce_into(...)` compiles,
the object called with None for the temporary storage says how many bytes it needs, and called with storage it runs.
NumPy arrays are worked on by the CPU, arrays on a GPU there.
"""

from .iterators import *  # noqa: F403
from .iterators import __all__ as _iterators
from .objects import clear_all_caches
from .operators import OpKind
from .reduce import Determinism, make_reduce_into, reduce_into
from .scan import exclusive_scan, inclusive_scan, make_exclusive_scan, make_inclusive_scan
from .select import (
    make_select,
    make_three_way_partition,
    make_unique_by_key,
    select,
    three_way_partition,
    unique_by_key,
)
from .transform import binary_transform, make_binary_transform, make_unary_transform, unary_transform
from .types import alignof, gpu_struct, sizeof

__all__ = [
    "Determinism",
    "OpKind",
    "alignof",
    "binary_transform",
    "clear_all_caches",
    "exclusive_scan",
    "gpu_struct",
    "inclusive_scan",
    "make_binary_transform",
    "make_exclusive_scan",
    "make_inclusive_scan",
    "make_reduce_into",
    "make_select",
    "make_three_way_partition",
    "make_unary_transform",
    "make_unique_by_key",
    "reduce_into",
    "select",
    "sizeof",
    "three_way_partition",
    "unary_transform",
    "unique_by_key",
    *_iterators,
]
