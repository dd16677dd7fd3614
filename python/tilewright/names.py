"""Names that tile code does not have: what to write instead, for users of cuTile, Triton, Numba, CuPy and NumPy; and
hints under the names that they had before the first release."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# Names of cuTile that do not exist here yet, and what serves in the meantime.
NOT_YET: dict[str, str] = {
    "assume_divisible_by": "a multiple of 16 is seen at the launch",
    "float8_e5m3fnu": "ct.float8_e4m3fn or ct.float8_e5m2",
    "grid_dependency_control_wait": "nothing: the compiler places it",
    "grid_dependency_control_launch_dependents": "nothing: the compiler places it",
}

# Names of other systems.
ELSEWHERE: dict[str, str] = {
    # Triton
    "dot": "ct.mma(x, y, acc), or x @ y",
    "program_id": "ct.bid(axis)",
    "num_programs": "ct.num_blocks(axis)",
    "constexpr": "ct.Constant",
    "jit": "@ct.kernel",
    "trans": "ct.transpose(x), or x.T",
    "device_print": "ct.print or ct.printf",
    "device_assert": "assert, or ct.assert_",
    "to": "x.astype(dtype)",
    "cast": "ct.astype(x, dtype)",
    "view": "ct.reshape(x, shape)",
    "make_block_ptr": "ct.load with an index and a shape",
    "make_tensor_descriptor": "ct.load with an index and a shape",
    "fdiv": "ct.truediv(x, y)",
    "umulhi": "a product in ct.int64, shifted to the right by 32",
    "fma": "x * y + z",
    "sqrt_rn": "ct.sqrt(x)",
    "static_range": "ct.static_iter(range(n)), or range(n) with a constant n",
    "autotune": "@tilewright.tune.autotune(space) over @ct.kernel",
    "heuristics": "tilewright.tune.search",
    "associative_scan": "ct.scan",
    # CUDA and Numba
    "grid": "ct.bid(axis), which counts blocks: a program is one block, not one thread",
    "threadIdx": "ct.arange: a program is one block, and works on tiles",
    "blockIdx": "ct.bid(axis)",
    "blockDim": "the shape of the tile",
    "gridDim": "ct.num_blocks(axis)",
    "syncthreads": "nothing: operations on tiles are in order",
    "shared": "tiles: the compiler places them in shared memory",
    "local": "tiles: the compiler places them in registers",
    # NumPy and CuPy
    "array": "ct.astile(values, dtype=…)",
    "asarray": "ct.astile(values, dtype=…)",
    "empty": "ct.zeros(shape, dtype)",
    "empty_like": "ct.zeros(x.shape, x.dtype)",
    "zeros_like": "ct.zeros(x.shape, x.dtype)",
    "ones_like": "ct.ones(x.shape, x.dtype)",
    "full_like": "ct.full(x.shape, value, x.dtype)",
    "amax": "ct.max(x, axis)",
    "amin": "ct.min(x, axis)",
    "absolute": "ct.abs(x)",
    "fabs": "ct.abs(x)",
    "divide": "ct.truediv(x, y)",
    "subtract": "ct.sub(x, y)",
    "multiply": "ct.mul(x, y)",
    "power": "ct.pow(x, y)",
    "remainder": "ct.mod(x, y)",
    "floor_divide": "ct.floordiv(x, y)",
    "left_shift": "ct.bitwise_lshift(x, y)",
    "right_shift": "ct.bitwise_rshift(x, y)",
    "logical_and": "x & y",
    "logical_or": "x | y",
    "logical_xor": "x ^ y",
    "logical_not": "~x",
    "invert": "ct.bitwise_not(x), or ~x",
    "fmax": "ct.maximum(x, y)",
    "fmin": "ct.minimum(x, y)",
    "nanmax": "ct.max(x, axis)",
    "nanmin": "ct.min(x, axis)",
    "isinf": "ct.abs(x) == math.inf",
    "isfinite": "ct.abs(x) < math.inf",
    "mean": "ct.sum(x, axis) / n",
    "any": "ct.max(x)",
    "all": "ct.min(x)",
    "square": "x * x",
    "reciprocal": "1 / x",
    "softmax": "e = ct.exp(x - ct.max(x, axis, keepdims=True)); e / ct.sum(e, axis, keepdims=True)",
    "flatten": "x.reshape((-1,))",
    "ravel": "x.reshape((-1,))",
    "swapaxes": "ct.transpose(x, axis0, axis1)",
    "concatenate": "ct.cat((x, y), axis)",
    "stack": "ct.cat((ct.expand_dims(x, axis), ct.expand_dims(y, axis)), axis)",
    "tile": "ct.broadcast_to(x, shape)",
    "repeat": "ct.broadcast_to(x, shape)",
    "squeeze": "ct.reshape(x, shape)",
    "einsum": "ct.mma(x, y, acc), or x @ y",
    "size": "math.prod(x.shape)",
    "int": "ct.int32",
    "float": "ct.float32",
    "bool": "ct.bool_",
    "long": "ct.int64",
}


# Hints, by the names that they had before 0.1.0.
RENAMED_HINTS: dict[str, str] = {
    "cut_tiles": "slice_tiles",
    "fuse_tiles": "coarsen_tiles",
    "layout_choice": "layout_rank",
    "programmatic": "dependent_launch",
    "stale_softmax": "lazy_rescale",
    "tickets": "dynamic_schedule",
}


def hint_advice(name: str, known: Iterable[str]) -> str:
    """What to write in the place of an unknown hint, as the end of a sentence; empty where nothing is near."""
    if name in RENAMED_HINTS:
        return f"; it is called {RENAMED_HINTS[name]} now"
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.65)
    return f"; did you mean {near[0]}?" if near else ""


def advice(name: str, known: Iterable[str], prefix: str = "ct.") -> str:
    """What to write in the place of an unknown name, as the end of a sentence; empty where nothing is near."""
    known = tuple(known)
    if name in NOT_YET and prefix:
        return f", which is part of cuTile, but not of Tilewright yet; instead: {NOT_YET[name]}"
    lower = {n.lower().strip("_"): n for n in known}
    same = lower.get(name.lower().strip("_"))
    if same is None and name in ELSEWHERE:
        return f"; write {ELSEWHERE[name]}"
    near = [same] if same else difflib.get_close_matches(name, known, n=1, cutoff=0.65)
    return f"; did you mean {prefix}{near[0]}?" if near else ""
