"""Parallel algorithms with operators written in Python: `from tilewright import compute`.

    compute.reduce_into(d_in, d_out, lambda a, b: a if a > b else b, num_items, h_init)

Each algorithm has a function, which does all at once, and an object of three stages: `make_reduce_into(...)` compiles,
the object called with None for the temporary storage says how many bytes it needs, and called with storage it runs.
NumPy arrays are worked on by the CPU, arrays on a GPU there.

    types.py, operators.py, iterators.py, inputs.py    what users bring: items, functions, iterators, arrays
    objects.py, launching.py, plans.py                 three stages, kernels and storage, how work is cut into blocks
    blocks.py, scanning.py, digits.py                  what several algorithms are made of
    reduce.py, scan.py, select.py …                    an algorithm each
    whole.py, along.py                                 reduce, scan, sort, argsort, topk, which return their results
    proxies.py, serialization.py                       objects for named GPUs, and as bytes
    raw.py, compiling.py                               operators of C++, functions for programs of C++
"""

import inspect as _inspect

from ..quiet import quiet as _quiet
from .compiling import compile
from .digits import DoubleBuffer, SortOrder
from .histogram import histogram_even, make_histogram_even
from .iterators import *  # noqa: F403
from .iterators import __all__ as _iterators
from .merge_sort import make_merge_sort, merge_sort
from .objects import clear_all_caches
from .operators import OpKind
from .proxies import ProxyArray, ProxyValue
from .radix_sort import make_radix_sort, radix_sort
from .raw import RawOp
from .reduce import Determinism, make_reduce_into, reduce_into
from .scan import exclusive_scan, inclusive_scan, make_exclusive_scan, make_inclusive_scan
from .search import lower_bound, make_lower_bound, make_upper_bound, upper_bound
from .segmented_reduce import make_segmented_reduce, segmented_reduce
from .segmented_scan import (
    make_segmented_exclusive_scan,
    make_segmented_inclusive_scan,
    segmented_exclusive_scan,
    segmented_inclusive_scan,
)
from .segmented_sort import make_segmented_sort, segmented_sort
from .select import (
    make_select,
    make_three_way_partition,
    make_unique_by_key,
    select,
    three_way_partition,
    unique_by_key,
)
from .serialization import deserialize, serialize
from .transform import binary_transform, make_binary_transform, make_unary_transform, unary_transform
from .types import alignof, gpu_struct, sizeof
from .whole import argsort, reduce, scan, sort, topk

__all__ = [
    "Determinism",
    "DoubleBuffer",
    "OpKind",
    "ProxyArray",
    "ProxyValue",
    "RawOp",
    "SortOrder",
    "alignof",
    "argsort",
    "binary_transform",
    "clear_all_caches",
    "compile",
    "deserialize",
    "exclusive_scan",
    "gpu_struct",
    "histogram_even",
    "inclusive_scan",
    "lower_bound",
    "make_binary_transform",
    "make_exclusive_scan",
    "make_histogram_even",
    "make_inclusive_scan",
    "make_lower_bound",
    "make_merge_sort",
    "make_radix_sort",
    "make_reduce_into",
    "make_segmented_exclusive_scan",
    "make_segmented_inclusive_scan",
    "make_segmented_reduce",
    "make_segmented_sort",
    "make_select",
    "make_three_way_partition",
    "make_unary_transform",
    "make_unique_by_key",
    "make_upper_bound",
    "merge_sort",
    "radix_sort",
    "reduce",
    "reduce_into",
    "scan",
    "segmented_exclusive_scan",
    "segmented_inclusive_scan",
    "segmented_reduce",
    "segmented_sort",
    "select",
    "serialize",
    "sizeof",
    "sort",
    "three_way_partition",
    "topk",
    "unary_transform",
    "unique_by_key",
    "upper_bound",
    *_iterators,
]

for _name in __all__:
    if _inspect.isfunction(globals()[_name]):
        globals()[_name] = _quiet(globals()[_name])
