"""The kernels of bench/ops.py: each does one operation of the language, and what it takes to load and to store.

A kernel of `elementwise`, `rows` or `squares` is made for an operation, which is a function of tile code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import tile as ct

Function = Callable[..., Any]

# --- families, by where an operation finds its operands ----------------------------------------------------


def elementwise(op: Function, inputs: int) -> Any:
    """T elements a block, of one array or of two."""

    @ct.kernel
    def unary(X, Z, T: ct.Constant[int]):
        i = ct.bid(0)
        ct.store(Z, index=(i,), tile=op(ct.load(X, index=(i,), shape=(T,))).astype(Z.dtype))

    @ct.kernel
    def binary(X, Y, Z, T: ct.Constant[int]):
        i = ct.bid(0)
        x, y = ct.load(X, index=(i,), shape=(T,)), ct.load(Y, index=(i,), shape=(T,))
        ct.store(Z, index=(i,), tile=op(x, y).astype(Z.dtype))

    return unary if inputs == 1 else binary


def rows(op: Function, keeps: bool) -> Any:
    """A row of T elements a block; a number of each row, or with `keeps` a row."""

    @ct.kernel
    def row(X, Z, T: ct.Constant[int]):
        i = ct.bid(0)
        ct.store(Z, index=(i, 0), tile=op(ct.load(X, index=(i, 0), shape=(1, T))).astype(Z.dtype))

    @ct.kernel
    def reduced(X, Z, T: ct.Constant[int]):
        i = ct.bid(0)
        ct.store(Z, index=(i,), tile=op(ct.load(X, index=(i, 0), shape=(1, T))).astype(Z.dtype))

    return row if keeps else reduced


@ct.kernel
def transpose(X, Z, T: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    ct.store(Z, index=(j, i), tile=ct.transpose(ct.load(X, index=(i, j), shape=(T, T))))


@ct.kernel
def outer(X, Y, Z, T: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    x, y = ct.load(X, index=(i,), shape=(T,)), ct.load(Y, index=(j,), shape=(T,))
    ct.store(Z, index=(i, j), tile=ct.expand_dims(x, 1) + ct.expand_dims(y, 0))


@ct.kernel
def gather(X, Places, Z, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(Z, index=(i,), tile=ct.gather(X, ct.load(Places, index=(i,), shape=(T,))))


@ct.kernel
def scatter(X, Places, Z, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.scatter(Z, ct.load(Places, index=(i,), shape=(T,)), ct.load(X, index=(i,), shape=(T,)))


@ct.kernel
def atomic_add(X, Places, Z, T: ct.Constant[int]):
    i = ct.bid(0)
    places = ct.load(Places, index=(i,), shape=(T,))
    ct.atomic_add(Z, places, ct.load(X, index=(i,), shape=(T,)), memory_order=ct.MemoryOrder.RELAXED)


@ct.kernel
def rand(Z, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(Z, index=(i,), tile=ct.rand(7, i * T + ct.arange(T, dtype=ct.int32)))


@ct.kernel
def mma(A, B, C, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=ct.int32 if A.dtype == ct.int8 else ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        a, b = ct.load(A, index=(i, k), shape=(TM, TK)), ct.load(B, index=(j, k), shape=(TN, TK))
        if A.dtype == ct.float32:  # by Tensor Cores, as Triton's products of float32 are
            a, b = a.astype(ct.tfloat32), b.astype(ct.tfloat32)
        acc = ct.mma(a, b.T, acc)
    ct.store(C, index=(i, j), tile=acc.astype(C.dtype))


# --- operations --------------------------------------------------------------------------------------------

# Functions of one tile of float32.
UNARY: dict[str, Function] = {
    "copy": lambda x: x,
    "neg": lambda x: -x,
    "abs": lambda x: abs(x),
    "floor": lambda x: ct.floor(x),
    "exp": lambda x: ct.exp(x),
    "exp2": lambda x: ct.exp2(x),
    "log": lambda x: ct.log(x),
    "sqrt": lambda x: ct.sqrt(x),
    "rsqrt": lambda x: ct.rsqrt(x),
    "sin": lambda x: ct.sin(x),
    "cos": lambda x: ct.cos(x),
    "tanh": lambda x: ct.tanh(x),
    "erf": lambda x: ct.erf(x),
    "sigmoid": lambda x: ct.sigmoid(x),
    "log1p": lambda x: ct.log1p(x),
    "expm1": lambda x: ct.expm1(x),
}

# Of two.
BINARY: dict[str, Function] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "truediv": lambda x, y: x / y,
    "maximum": lambda x, y: ct.maximum(x, y),
    "pow": lambda x, y: ct.pow(x, y),
    "atan2": lambda x, y: ct.atan2(x, y),
    "where": lambda x, y: ct.where(x > y, x, y * 0.5),
}

# Of a row of float32: a number of each row, or a row.
REDUCTIONS: dict[str, Function] = {
    "sum": lambda x: ct.sum(x, axis=1),
    "max": lambda x: ct.max(x, axis=1),
    "prod": lambda x: ct.prod(x, axis=1),
    "argmax": lambda x: ct.argmax(x, axis=1),
}
SCANS: dict[str, Function] = {
    "cumsum": lambda x: ct.cumsum(x, axis=1),
    "cumprod": lambda x: ct.cumprod(x, axis=1),
    "sort": lambda x: ct.sort(x, axis=1),
    "flip": lambda x: ct.flip(x, axis=1),
}
