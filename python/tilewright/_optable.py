"""The operations of tile code as the dialect defines them. Made by tools/twgen.py; do not edit."""

from __future__ import annotations

from typing import NamedTuple


class Op(NamedTuple):
    """An operation.

    Attributes:
        name: the op of the dialect.
        public: its name in `tilewright.tile`.
        operator: the Python operator that means the same, or "".
        numpy: its meaning, an expression over x, y and z, or "".
        accepts: letters of the kinds of dtype it takes: b(ool), i(nteger), f(loat), n(arrow float).
        result: the rule of its result's dtype: promote, float, bool, same, or own.
        operands: how many tiles it takes, where it is elementwise; else 0.
        summary: what it does.
    """

    name: str
    public: str
    operator: str
    numpy: str
    accepts: str
    result: str
    operands: int
    summary: str


OPS: tuple[Op, ...] = (
    Op(
        "tile.abs",
        "abs",
        "",
        "np.abs(x)",
        "if",
        "same",
        1,
        "absolute value",
    ),
    Op(
        "tile.add",
        "add",
        "+",
        "np.add(x, y)",
        "if",
        "promote",
        2,
        "x + y",
    ),
    Op(
        "tile.and",
        "bitwise_and",
        "&",
        "np.bitwise_and(x, y)",
        "bi",
        "same",
        2,
        "bitwise and",
    ),
    Op(
        "tile.assert",
        "assert_",
        "",
        "",
        "",
        "own",
        0,
        "stop the kernel with a message where a condition does not hold for every element",
    ),
    Op(
        "tile.assume_divisible",
        "assume_divisible_by",
        "",
        "",
        "",
        "own",
        0,
        "an integer of which the program says that a number divides it",
    ),
    Op(
        "tile.bitcast",
        "bitcast",
        "",
        "x.view(dtype)",
        "",
        "own",
        0,
        "the bits of each element as another dtype of as many bits",
    ),
    Op(
        "tile.block_id",
        "bid",
        "",
        "",
        "",
        "own",
        0,
        "index of this block along an axis of the grid",
    ),
    Op(
        "tile.broadcast",
        "broadcast_to",
        "",
        "np.broadcast_to(x, shape)",
        "",
        "own",
        0,
        "repeat a tile along axes of extent one, and along new leading axes",
    ),
    Op(
        "tile.cast",
        "astype",
        "",
        "x.astype(dtype)",
        "bifn",
        "own",
        0,
        "convert each element to another dtype",
    ),
    Op(
        "tile.cat",
        "cat",
        "",
        "np.concatenate((x, y), axis)",
        "",
        "own",
        0,
        "two tiles of one type, one behind the other along an axis",
    ),
    Op(
        "tile.ceil",
        "ceil",
        "",
        "np.ceil(x)",
        "f",
        "same",
        1,
        "round up",
    ),
    Op(
        "tile.ceildiv",
        "cdiv",
        "",
        "-(-x // y)",
        "i",
        "promote",
        2,
        "x / y rounded up, of integers; unspecified where y is zero",
    ),
    Op(
        "tile.cos",
        "cos",
        "",
        "np.cos(x)",
        "if",
        "float",
        1,
        "cosine of x radians",
    ),
    Op(
        "tile.cosh",
        "cosh",
        "",
        "np.cosh(x)",
        "if",
        "float",
        1,
        "hyperbolic cosine",
    ),
    Op(
        "tile.exp",
        "exp",
        "",
        "np.exp(x)",
        "if",
        "float",
        1,
        "e to the power of x",
    ),
    Op(
        "tile.exp2",
        "exp2",
        "",
        "np.exp2(x)",
        "if",
        "float",
        1,
        "2 to the power of x",
    ),
    Op(
        "tile.extract",
        "extract",
        "",
        "",
        "",
        "own",
        0,
        "one of the parts of equal shape that a tile consists of",
    ),
    Op(
        "tile.floor",
        "floor",
        "",
        "np.floor(x)",
        "f",
        "same",
        1,
        "round down",
    ),
    Op(
        "tile.floordiv",
        "floordiv",
        "//",
        "np.floor_divide(x, y)",
        "if",
        "promote",
        2,
        "x / y rounded down; unspecified where an integer y is zero",
    ),
    Op(
        "tile.gather",
        "gather",
        "",
        "",
        "",
        "own",
        0,
        "read elements of an array at tiles of indices",
    ),
    Op(
        "tile.insert",
        "insert",
        "",
        "",
        "",
        "own",
        0,
        "a tile with one of its parts, as `tile.extract` has them, in the place of what was there",
    ),
    Op(
        "tile.iota",
        "arange",
        "",
        "np.arange(n)",
        "",
        "own",
        0,
        "the numbers 0, 1, 2, … in one dimension",
    ),
    Op(
        "tile.load",
        "load",
        "",
        "",
        "",
        "own",
        0,
        "read the tile at a tile index of an array",
    ),
    Op(
        "tile.log",
        "log",
        "",
        "np.log(x)",
        "if",
        "float",
        1,
        "natural logarithm",
    ),
    Op(
        "tile.log2",
        "log2",
        "",
        "np.log2(x)",
        "if",
        "float",
        1,
        "logarithm of base 2",
    ),
    Op(
        "tile.maximum",
        "maximum",
        "",
        "np.maximum(x, y)",
        "if",
        "promote",
        2,
        "the larger of x and y; NaN if either is NaN, or with `ignore_nan` if both are",
    ),
    Op(
        "tile.minimum",
        "minimum",
        "",
        "np.minimum(x, y)",
        "if",
        "promote",
        2,
        "the smaller of x and y; NaN if either is NaN, or with `ignore_nan` if both are",
    ),
    Op(
        "tile.mma",
        "mma",
        "",
        "np.matmul(x, y) + z",
        "",
        "own",
        0,
        "a @ b + acc in the accumulator's dtype",
    ),
    Op(
        "tile.mod",
        "mod",
        "%",
        "np.mod(x, y)",
        "if",
        "promote",
        2,
        "the remainder with the sign of y, as in Python; unspecified where an integer y is zero",
    ),
    Op(
        "tile.mul",
        "mul",
        "*",
        "np.multiply(x, y)",
        "if",
        "promote",
        2,
        "x * y",
    ),
    Op(
        "tile.neg",
        "negative",
        "-",
        "np.negative(x)",
        "if",
        "same",
        1,
        "-x",
    ),
    Op(
        "tile.not",
        "bitwise_not",
        "~",
        "np.invert(x)",
        "bi",
        "same",
        1,
        "bitwise complement",
    ),
    Op(
        "tile.num_blocks",
        "num_blocks",
        "",
        "",
        "",
        "own",
        0,
        "number of blocks along an axis of the grid",
    ),
    Op(
        "tile.or",
        "bitwise_or",
        "|",
        "np.bitwise_or(x, y)",
        "bi",
        "same",
        2,
        "bitwise or",
    ),
    Op(
        "tile.pack_to_bytes",
        "pack_to_bytes",
        "",
        "x.reshape(-1).view(np.uint8)",
        "",
        "own",
        0,
        "the bytes of a tile in row-major order, the lowest of an element first",
    ),
    Op(
        "tile.permute",
        "permute",
        "",
        "np.transpose(x, axes)",
        "",
        "own",
        0,
        "axes in another order: axis d of the result is axis order[d] of the input",
    ),
    Op(
        "tile.pow",
        "pow",
        "**",
        "np.power(x, y)",
        "if",
        "float",
        2,
        "x to the power of y; integers compute as f32, unless `integral` says that y is a constant of at least 0",
    ),
    Op(
        "tile.print",
        "print",
        "",
        "",
        "",
        "own",
        0,
        "print values while the kernel runs",
    ),
    Op(
        "tile.reduce_by",
        "reduce",
        "",
        "",
        "",
        "own",
        0,
        "combine the elements along one axis, which disappears, by a function of the user's",
    ),
    Op(
        "tile.reshape",
        "reshape",
        "",
        "np.reshape(x, shape)",
        "",
        "own",
        0,
        "the same elements in row-major order under another shape",
    ),
    Op(
        "tile.rsqrt",
        "rsqrt",
        "",
        "1 / np.sqrt(x)",
        "if",
        "float",
        1,
        "one over the square root",
    ),
    Op(
        "tile.scan_by",
        "scan",
        "",
        "",
        "",
        "own",
        0,
        "what a function of the user's makes of the elements so far, along one axis",
    ),
    Op(
        "tile.scatter",
        "scatter",
        "",
        "",
        "",
        "own",
        0,
        "write elements of an array at tiles of indices",
    ),
    Op(
        "tile.select",
        "where",
        "",
        "np.where(c, x, y)",
        "bifn",
        "promote",
        3,
        "x where the condition holds, y elsewhere; all three broadcast, x and y promote",
    ),
    Op(
        "tile.shl",
        "bitwise_lshift",
        "<<",
        "np.left_shift(x, y)",
        "i",
        "promote",
        2,
        "x shifted left by y bits; unspecified for y outside of the width",
    ),
    Op(
        "tile.shr",
        "bitwise_rshift",
        ">>",
        "np.right_shift(x, y)",
        "i",
        "promote",
        2,
        "x shifted right by y bits, keeping the sign; unspecified for y outside of the width",
    ),
    Op(
        "tile.sin",
        "sin",
        "",
        "np.sin(x)",
        "if",
        "float",
        1,
        "sine of x radians",
    ),
    Op(
        "tile.sinh",
        "sinh",
        "",
        "np.sinh(x)",
        "if",
        "float",
        1,
        "hyperbolic sine",
    ),
    Op(
        "tile.sqrt",
        "sqrt",
        "",
        "np.sqrt(x)",
        "if",
        "float",
        1,
        "square root",
    ),
    Op(
        "tile.store",
        "store",
        "",
        "",
        "",
        "own",
        0,
        "write a tile at a tile index of an array",
    ),
    Op(
        "tile.sub",
        "sub",
        "-",
        "np.subtract(x, y)",
        "if",
        "promote",
        2,
        "x - y",
    ),
    Op(
        "tile.tan",
        "tan",
        "",
        "np.tan(x)",
        "if",
        "float",
        1,
        "tangent of x radians",
    ),
    Op(
        "tile.tanh",
        "tanh",
        "",
        "np.tanh(x)",
        "if",
        "float",
        1,
        "hyperbolic tangent",
    ),
    Op(
        "tile.threads",
        "threads",
        "",
        "",
        "",
        "own",
        0,
        "run a body in each thread of the block, on tiles in shared memory",
    ),
    Op(
        "tile.truediv",
        "truediv",
        "/",
        "np.true_divide(x, y)",
        "if",
        "float",
        2,
        "x / y as real numbers; two integers divide as f32",
    ),
    Op(
        "tile.unpack_from_bytes",
        "unpack_from_bytes",
        "",
        "x.view(dtype)",
        "",
        "own",
        0,
        "bytes as the elements that `tile.pack_to_bytes` makes them of",
    ),
    Op(
        "tile.xor",
        "bitwise_xor",
        "^",
        "np.bitwise_xor(x, y)",
        "bi",
        "same",
        2,
        "bitwise exclusive or",
    ),
)

BY_PUBLIC: dict[str, Op] = {op.public: op for op in OPS}

# What remarks call an op where its name is not the user's.
NOUNS: dict[str, str] = {
    "tile.async_copy": "load",
    "tile.async_gather": "gather",
    "tile.async_mma": "product",
    "tile.mma": "product",
    "tile.tma_load": "load",
    "tile.tma_store": "store",
}

# Word -> number: what an atomic access makes of the old value.
ATOMIC_KIND: dict[str, int] = {
    "load": 0,
    "store": 1,
    "xchg": 2,
    "cas": 3,
    "add": 4,
    "min": 5,
    "max": 6,
    "and": 7,
    "or": 8,
    "xor": 9,
    "nanmin": 10,
    "nanmax": 11,
}

# Word -> number: what a barrier tells of its threads' predicates.
BLOCK_VOTE: dict[str, int] = {"count": 0, "and": 1, "or": 2}

# Word -> number: which lines the L2 cache gives up.
CACHE: dict[str, int] = {"evict_normal": 0, "evict_first": 1, "evict_last": 2}

# Word -> number: comparison predicate.
CMP_KIND: dict[str, int] = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5}

# Word -> number: what an atomic access orders beside itself.
MEMORY_ORDER: dict[str, int] = {"relaxed": 0, "acquire": 1, "release": 2, "acq_rel": 3, "seq_cst": 4}

# Word -> number: who sees an atomic access as one.
MEMORY_SCOPE: dict[str, int] = {"block": 0, "device": 1, "sys": 2, "thread": 3}

# Word -> number: what a load reads outside of the array.
PADDING: dict[str, int] = {"undetermined": 0, "zero": 1, "neg_zero": 2, "nan": 3, "pos_inf": 4, "neg_inf": 5}

# Word -> number: how a reduction combines.
REDUCE_KIND: dict[str, int] = {"add": 0, "mul": 1, "min": 2, "max": 3, "argmin": 4, "argmax": 5}

# Word -> number: what is computed and rounded once.
ROUNDED_KIND: dict[str, int] = {"add": 0, "sub": 1, "mul": 2, "div": 3, "sqrt": 4}

# Word -> number: to the nearest, toward zero, down or up.
ROUNDING: dict[str, int] = {"rn": 0, "rz": 1, "rm": 2, "rp": 3}

# Word -> number: which lane a shuffle reads.
SHUFFLE_KIND: dict[str, int] = {"idx": 0, "up": 1, "down": 2, "xor": 3}

# Word -> number: which lanes a match looks for.
WARP_MATCH: dict[str, int] = {"any": 0, "all": 1}

# Word -> number: what lanes are told of their predicates.
WARP_VOTE: dict[str, int] = {"all": 0, "any": 1, "uni": 2, "ballot": 3}
