"""Names that tile code does not have: what to write instead, for users of cuTile, Triton, Numba, CuPy and NumPy; and
hints under the names that they had before the first release."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# Names of other systems.
ELSEWHERE: dict[str, str] = {
    # Triton
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
    "advance": "another index of ct.load",
    "multiple_of": "ct.assume_divisible_by(x, divisor)",
    "max_contiguous": "nothing: the compiler finds what lies side by side",
    "max_constancy": "nothing: the compiler finds what is the same",
    "debug_barrier": "nothing: operations on tiles are in order",
    "dot_scaled": "ct.mma_scaled(x, x_scale, y, y_scale, acc)",
    "interleave": "ct.reshape(ct.cat((ct.expand_dims(x, -1), ct.expand_dims(y, -1)), -1), shape)",
    "join": "ct.cat((ct.expand_dims(x, -1), ct.expand_dims(y, -1)), -1)",
    "split": "ct.extract(x, index, shape) for each part",
    "histogram": "ct.atomic_add on an array of counts",
    "broadcast": "ct.broadcast_to(x, shape)",
    "inline_asm_elementwise": "operations of ct: there is no inline assembly",
    "inline_asm": "operations of ct: there is no inline assembly",
    "float8e4nv": "ct.float8_e4m3fn",
    "float8e5": "ct.float8_e5m2",
    "int1": "ct.bool_",
    "tensor": "ct.astile(values, dtype=…)",
    "swizzle2d": "arithmetic of ct.bid",
    "view_as": "ct.bitcast(x, dtype)",
    "float8": "ct.float8_e4m3fn or ct.float8_e5m2",
    "load_tensor_descriptor": "ct.load with an index and a shape",
    "store_tensor_descriptor": "ct.store with an index and a tile",
    # CUDA and Numba
    "grid": "ct.bid(axis), which counts blocks: a program is one block, not one thread",
    "threadIdx": "ct.arange: a program is one block, and works on tiles",
    "blockIdx": "ct.bid(axis)",
    "blockDim": "the shape of the tile",
    "gridDim": "ct.num_blocks(axis)",
    "syncthreads": "nothing: operations on tiles are in order",
    "shared": "tiles: the compiler places them in shared memory",
    "local": "tiles: the compiler places them in registers",
    "gridsize": "ct.num_blocks(axis), which counts blocks",
    "laneid": "ct.arange: a program is one block, and works on tiles",
    "warpsize": "nothing: a program is one block, and works on tiles",
    "syncwarp": "nothing: operations on tiles are in order",
    "threadfence": "nothing, or an atomic with ct.MemoryOrder.RELEASE",
    "shfl_sync": "nothing: operations on tiles move values between threads",
    "shfl_down_sync": "ct.sum, ct.max and their like",
    "ballot_sync": "ct.sum of a bool_ tile",
    "popc": "shifts and sums of bits: there is no such operation",
    "clz": "31 - ct.floor(ct.log2(x)) for x up to 2**24: there is no such operation",
    "atomic": "ct.atomic_add(array, indices, update) and its like",
    "atomic_sub": "ct.atomic_add(array, indices, -update)",
    "atomicSub": "ct.atomic_add(array, indices, -update)",
    "atomicAnd": "ct.atomic_and(array, indices, update)",
    "atomicOr": "ct.atomic_or(array, indices, update)",
    "atomicXor": "ct.atomic_xor(array, indices, update)",
    "atomicAdd": "ct.atomic_add(array, indices, update)",
    "atomicMax": "ct.atomic_max(array, indices, update)",
    "atomicMin": "ct.atomic_min(array, indices, update)",
    "atomicCAS": "ct.atomic_cas(array, indices, expected, desired)",
    "atomicExch": "ct.atomic_xchg(array, indices, update)",
    # NumPy, CuPy and PyTorch
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
    "numel": "math.prod(x.shape)",
    "std": "ct.sqrt(ct.sum((x - mean) ** 2, axis) / n)",
    "var": "ct.sum((x - mean) ** 2, axis) / n",
    "linspace": "start + step * ct.arange(n, dtype=ct.float32)",
    "eye": "ct.where(rows == columns, 1, 0) of two ct.arange",
    "roll": "ct.gather at shifted indices",
    "tensordot": "ct.mma(x, y, acc), or x @ y",
    "outer": "x[:, None] * y[None, :]",
    "norm": "ct.sqrt(ct.sum(x * x))",
    "median": "the middle of ct.sort(x)",
    "round": "ct.floor(x + 0.5)",
    "rint": "ct.floor(x + 0.5)",
    "sign": "ct.where(x > 0, 1, ct.where(x < 0, -1, 0))",
    "log10": "ct.log(x) / math.log(10)",
    "clamp": "ct.clip(x, low, high)",
    "arctan2": "ct.atan2(y, x)",
    "diag": "ct.sum(ct.where(rows == columns, x, 0), axis)",
    "tril": "ct.where(rows >= columns, x, 0) of two ct.arange",
    "triu": "ct.where(rows <= columns, x, 0) of two ct.arange",
    "masked_fill": "ct.where(mask, value, x)",
    "moveaxis": "ct.permute(x, axes)",
    "rollaxis": "ct.permute(x, axes)",
    "unsqueeze": "ct.expand_dims(x, axis)",
    "hstack": "ct.cat((x, y), axis)",
    "vstack": "ct.cat((x, y), 0)",
    "dstack": "ct.cat((x, y), 2)",
    "column_stack": "ct.cat((ct.expand_dims(x, 1), ct.expand_dims(y, 1)), 1)",
    "chunk": "ct.extract(x, index, shape) for each part",
    "array_split": "ct.extract(x, index, shape) for each part",
    "unbind": "ct.extract(x, index, shape) for each part",
    "slice": "ct.extract(x, index, shape)",
    "take": "ct.gather(array, indices), of an array in memory",
    "take_along_axis": "ct.gather(array, indices), of an array in memory",
    "index_select": "ct.gather(array, indices), of an array in memory",
    "scatter_add": "ct.atomic_add(array, indices, update)",
    "bincount": "ct.atomic_add on an array of counts",
    "leaky_relu": "ct.where(x > 0, x, slope * x)",
    "elu": "ct.where(x > 0, x, ct.expm1(x))",
    "relu6": "ct.clip(x, 0, 6)",
    "hardswish": "x * ct.clip(x + 3, 0, 6) / 6",
    "hardtanh": "ct.clip(x, -1, 1)",
    "mish": "x * ct.tanh(ct.softplus(x))",
    "swish": "ct.silu(x)",
    "logsigmoid": "-ct.softplus(-x)",
    "log_softmax": "y = x - ct.max(x, axis, keepdims=True); y - ct.log(ct.sum(ct.exp(y), axis, keepdims=True))",
    "logsumexp": "m = ct.max(x, axis, keepdims=True); m + ct.log(ct.sum(ct.exp(x - m), axis, keepdims=True))",
    "logaddexp": "ct.maximum(x, y) + ct.log1p(ct.exp(-ct.abs(x - y)))",
    "layer_norm": "(x - mean) * ct.rsqrt(variance + eps), with both by ct.sum",
    "rms_norm": "x * ct.rsqrt(ct.sum(x * x, axis, keepdims=True) / n + eps)",
    "hypot": "ct.sqrt(x * x + y * y)",
    "fmod": "x - ct.astype(ct.astype(x / y, ct.int32), x.dtype) * y",
    "trunc": "ct.where(x < 0, ct.ceil(x), ct.floor(x))",
    "exp10": "ct.exp(x * math.log(10))",
    "acos": "ct.atan2(ct.sqrt(1 - x * x), x)",
    "arccos": "ct.atan2(ct.sqrt(1 - x * x), x)",
    "asin": "ct.atan2(x, ct.sqrt(1 - x * x))",
    "arcsin": "ct.atan2(x, ct.sqrt(1 - x * x))",
    "atan": "ct.atan2(x, 1)",
    "arctan": "ct.atan2(x, 1)",
    "deg2rad": "x * (math.pi / 180)",
    "rad2deg": "x * (180 / math.pi)",
    "lerp": "x + weight * (y - x)",
    "nan_to_num": "ct.where(ct.isnan(x), 0, x)",
    "isclose": "ct.abs(x - y) <= bound",
    "allclose": "ct.min(ct.abs(x - y) <= bound)",
    "array_equal": "ct.min(x == y)",
    "count_nonzero": "ct.sum(ct.astype(x != 0, ct.int32))",
    "trace": "ct.sum(ct.where(rows == columns, x, 0))",
    "average": "ct.sum(x, axis) / n",
    "nansum": "ct.sum(ct.where(ct.isnan(x), 0, x), axis)",
    "bmm": "ct.matmul(x, y), or x @ y",
    "vdot": "ct.dot(x, y)",
    "inner": "ct.dot(x, y)",
    "addmm": "ct.mma(x, y, acc)",
    "one_hot": "index[:, None] == ct.arange(n, dtype=ct.int32)[None, :]",
    "meshgrid": "ct.arange(…)[:, None] and ct.arange(…)[None, :]",
    "pad": "a larger shape in ct.load, with a padding_mode",
    "dropout": "ct.where(ct.rand(seed, offset) < p, 0, x / (1 - p))",
    "copy": "x itself: tiles never change",
    "clone": "x itself: tiles never change",
    "contiguous": "x itself: tiles have no strides",
    "strides": "nothing: tiles have no strides",
    "fill": "ct.full(x.shape, value, x.dtype)",
    "cpu": "ct.store(array, index, x), and read the array on the host",
    "cuda": "x itself: tiles are where the kernel runs",
    "numpy": "ct.store(array, index, x), and read the array on the host",
    "tolist": "ct.store(array, index, x), and read the array on the host",
    "append": "(*values, x): lists are tuples in tile code",
    "extend": "(*values, *others): lists are tuples in tile code",
    "float": "ct.float32",
    "double": "ct.float64",
    "half": "ct.float16",
    "int": "ct.int32",
    "bool": "ct.bool_",
    "long": "ct.int64",
    # JAX, Pallas, TensorFlow, Warp and CUTLASS
    "inf": "math.inf",
    "nan": "math.nan",
    "pi": "math.pi",
    "e": "math.e",
    "newaxis": "x[:, None]",
    "block_id": "ct.bid(axis)",
    "grid_dim": "ct.num_blocks(axis)",
    "block_dim": "the shape of the tile",
    "thread_id": "ct.arange: a program is one block, and works on tiles",
    "num_threads": "nothing: a program is one block, and works on tiles",
    "tid": "ct.bid(axis), which counts blocks: a program is one block, not one thread",
    "lane_id": "ct.arange: a program is one block, and works on tiles",
    "warp_id": "ct.arange: a program is one block, and works on tiles",
    "barrier": "nothing: operations on tiles are in order",
    "fence": "nothing, or an atomic with ct.MemoryOrder.RELEASE",
    "smem": "tiles: the compiler places them in shared memory",
    "alloc": "ct.zeros(shape, dtype): the compiler places tiles",
    "alloc_shared": "tiles: the compiler places them in shared memory",
    "async_copy": "ct.load, which the compiler starts early",
    "commit_group": "nothing: the compiler waits where a tile is used",
    "wait_group": "nothing: the compiler waits where a tile is used",
    "prefetch": "ct.load with latency=, from 1 to 10",
    "clock": "nothing: time a launch on the host",
    "sleep": "nothing: a program waits for values only",
    "unroll": "ct.static_iter(range(n)), which repeats the body",
    "parallel": "a grid: its blocks run side by side",
    "pipeline": "range(n), and the hint num_stages",
    "range": "range(n)",
    "assume": "ct.assume_divisible_by(x, divisor)",
    "hint": "@ct.kernel(num_warps=8) and its like",
    "iota": "ct.arange(n, dtype=ct.int32)",
    "broadcast_in_dim": "ct.broadcast_to(x, shape)",
    "dot_general": "ct.mma(x, y, acc), or x @ y",
    "convert": "ct.astype(x, dtype)",
    "convert_element_type": "ct.astype(x, dtype)",
    "fori_loop": "for i in range(start, stop)",
    "while_loop": "while condition",
    "cond": "if condition",
    "nn": "ct.relu and its like: they are functions of ct",
    "select": "ct.where(condition, x, y)",
    "switch": "if and elif",
    "vmap": "another axis of the grid, or of the tile",
    "grad": "the gradient by hand: there is none of tile code",
    "reduce_sum": "ct.sum(x, axis)",
    "reduce_max": "ct.max(x, axis)",
    "reduce_min": "ct.min(x, axis)",
    "reduce_mean": "ct.sum(x, axis) / n",
    "constant": "the number itself",
    "rcp": "1 / x",
    "heaviside": "ct.where(x < 0, 0, 1)",
    "frac": "x - ct.floor(x)",
    "modf": "ct.floor(x) and x - ct.floor(x)",
    "sinc": "ct.sin(y) / y of y = math.pi * x",
    "cumulative_sum": "ct.cumsum(x, axis)",
    "unique": "ct.sort(x), and a comparison of neighbours",
    "searchsorted": "ct.sum(ct.astype(edges[:, None] < x[None, :], ct.int32), 0)",
    "put": "ct.scatter(array, indices, value), of an array in memory",
    "nonzero": "ct.cumsum of the mask, and ct.scatter at it",
    "expand": "ct.broadcast_to(x, shape)",
    "detach": "x itself: tiles have no gradients",
    "dim": "x.ndim",
    "nbytes": "math.prod(x.shape) * x.dtype.bitwidth // 8",
    "mT": "x.T, or ct.permute(x, axes)",
    "real": "x itself: tiles have no complex numbers",
    "device": "nothing: tiles are where the kernel runs",
    "is_cuda": "nothing: tiles are where the kernel runs",
}

# Attributes of arrays that tile code does not have.
OF_ARRAYS: dict[str, str] = {
    "size": "its extent along an axis is x.shape[axis]",
    "T": "ct.load(x, index, shape, order='F') has its axes in the other order",
    "numel": "write math.prod(x.shape)",
    "data_ptr": "use get_raw_memory",
    "contiguous": "copy it on the host, or load a tile, which has no strides",
    "reshape": "reshape it on the host, or the tile that is loaded",
    "flatten": "reshape it on the host, or the tile that is loaded",
    "view": "reshape it on the host, or the tile that is loaded",
    "copy": "use ct.load and ct.store",
    "fill": "use ct.store of ct.full(shape, value, dtype)",
    "device": "a kernel runs where its arrays are",
}

_LOOP = "a loop over the elements"
_LOCAL = "a local array, whose extents are constants"

# Names of NumPy and of Python's containers that the code of one thread does not have.
THREADS: dict[str, str] = {
    **dict.fromkeys(("sum", "mean", "max", "min", "amax", "amin", "prod", "dot", "norm", "any", "all", "std"), _LOOP),
    **dict.fromkeys(("argmax", "argmin", "cumsum", "sort", "copy", "fill", "tolist", "matmul", "average"), _LOOP),
    **dict.fromkeys(("zeros", "ones", "empty", "full", "array", "zeros_like", "empty_like", "arange"), _LOCAL),
    **dict.fromkeys(("append", "extend", "insert", "pop", "remove", "list", "dict", "set"), _LOCAL),
    **dict.fromkeys(("rand", "randn", "random", "randint", "normal"), "numbers that the host makes, in an array"),
    "open": "an array for the results, and write the file on the host",
    "input": "a parameter of the kernel",
}

# What other systems call the module of their operations in a kernel.
MODULES = frozenset(
    ("tl", "triton", "cuda", "nb", "numba", "cp", "cupy", "np", "numpy", "torch", "jnp", "jax", "F", "wp", "pl")
)

# Keywords of other systems.
KEYWORDS: dict[str, str] = {
    "mask": "ct.gather and ct.scatter take a mask; ct.load pads; an atomic skips indices outside of its array",
    "other": "ct.gather takes padding_value, ct.load padding_mode",
    "boundary_check": "ct.load looks at the bounds unless check_bounds=False",
    "padding_option": "ct.load takes padding_mode",
    "padding": "ct.load takes padding_mode, ct.gather padding_value",
    "cache_modifier": "the compiler chooses it",
    "eviction_policy": "the compiler chooses it",
    "axes": "it is called axis",
    "return_indices": "ct.argmax(x, axis) has the places",
    "size": "it is called shape",
    "dtype": "x.astype(dtype) converts",
    "c": "it is called acc",
    "dim": "it is called axis",
    "keep_dims": "it is called keepdims",
    "keepdim": "it is called keepdims",
    "allow_tf32": "convert the operands to ct.tfloat32",
    "input_precision": "convert the operands to ct.tfloat32",
    "out_dtype": "the accumulator has the dtype",
    "transpose_a": "write x.T",
    "transpose_b": "write y.T",
    "base": "ct.log2 has the base 2; of another one write ct.log(x) / math.log(base)",
    "file": "a kernel prints to the standard output",
    "flush": "what a kernel prints appears when the host waits for it",
    "stride": "a view has steps: array.tiled_view(shape, traversal_steps=…)",
    "out": "the result is a value; ct.store writes it to an array",
    "where": "ct.where chooses between elements",
    "device": "tiles are where the kernel runs",
    "sem": "it is called memory_order",
    "scope": "it is called memory_scope",
    "num_warps": "it is a hint of the kernel, @ct.kernel(num_warps=4)",
    "num_stages": "it is a hint of the kernel, @ct.kernel(num_stages=3)",
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


def thread_advice(name: str, known: Iterable[str]) -> str:
    """`advice` for the code of one thread."""
    if name in THREADS and name not in known:
        return f"; use {THREADS[name]}"
    known = tuple(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.65)
    near = near or sorted((n for n in known if len(name) > 2 and n.startswith(f"{name}_")), key=len)
    return f"; did you mean {near[0]}?" if near else ""


def advice(name: str, known: Iterable[str], prefix: str = "ct.") -> str:
    """What to write in the place of an unknown name, as the end of a sentence; empty where nothing is near."""
    known = tuple(known)
    if name in ELSEWHERE and name not in known:
        return f"; write {ELSEWHERE[name]}"
    lower = {n.lower().strip("_"): n for n in known}
    same = lower.get(name.lower().strip("_"))
    near = [same] if same else difflib.get_close_matches(name, known, n=1, cutoff=0.65)
    if near:
        return f"; did you mean {prefix}{near[0]}?"
    foreign = difflib.get_close_matches(name, ELSEWHERE, n=1, cutoff=0.85)
    return f"; for {foreign[0]} write {ELSEWHERE[foreign[0]]}" if foreign else ""


def module_advice(module: str, name: str, known: Iterable[str]) -> str:
    """What to write for `module.name` where the module is another system's, as the end of a sentence."""
    if name in ELSEWHERE and name not in known:
        return f"; for {module}.{name} write {ELSEWHERE[name]}"
    same = name.rstrip("_") if name.rstrip("_") in known else name
    near = [same] if same in known else difflib.get_close_matches(name, known, n=1, cutoff=0.65)
    if near:
        return f"; for {module}.{name} there is ct.{near[0]}"
    return "; tile code has the operations of tilewright.tile"


def keyword_advice(name: str, known: Iterable[str]) -> str:
    """What to write in the place of an unknown keyword, as the end of a sentence; empty where nothing is near."""
    if name in KEYWORDS:
        return f"; {KEYWORDS[name]}"
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""
