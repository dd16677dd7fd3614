"""What a kernel of Numba means: its Python code run on numbers that carry types, by the rules of Numba.

Integers compute in 64 bits, without a sign where both have none; `/` of them is a float64; a float with an integer is
as NumPy has it, a literal is an int64 or float64. What the rules leave open (a quotient by zero, a float that fits no
integer, a shift by 64 or more) raises Undefined.
"""

from __future__ import annotations

import math
import operator
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
_EXACT = {"float16": 8, "float32": 16, "float64": 64}  # bits of signed integers that a float holds


class Undefined(Exception):  # noqa: N818  # no error: the program has no meaning
    """The program comes to what has no one result."""


def _bits(t: str) -> int:
    return int(t.lstrip("uintfloa"))


def _wrapped(value: int, t: str) -> int:
    value &= (1 << _bits(t)) - 1
    return value - (1 << _bits(t)) if t[0] == "i" and value >> (_bits(t) - 1) else value


def convert(value: Any, t: str) -> Any:
    """A number of Python or NumPy as one of a type."""
    if t == "bool":
        return bool(value)
    if t in FLOATS:
        return getattr(np, t)(value)
    is_real = isinstance(value, float | np.floating)
    if is_real and (not math.isfinite(value) or _wrapped(int(value), t) != int(value)):
        raise Undefined(f"{value} as {t}")
    return _wrapped(int(value), t)


def with_float(a: str, b: str) -> str:
    """The type in which a float meets another number."""
    if a in FLOATS and b in FLOATS:
        return a if _bits(a) >= _bits(b) else b
    real, other = (a, b) if a in FLOATS else (b, a)
    if other == "bool" or _bits(other) + (other[0] == "u") <= _EXACT[real]:
        return real
    return "float32" if _bits(other) + (other[0] == "u") <= 16 else "float64"


def whole(*names: str) -> str:
    return "uint64" if all(t[0] == "u" for t in names) else "int64"


def _floor_division(a: int, b: int) -> int:
    if b == 0:
        raise Undefined("a quotient by zero")
    return a // b


def _modulo(a: int, b: int) -> int:
    if b == 0:
        raise Undefined("a quotient by zero")
    return a % b


def _shift(function: Callable[[int, int], int]) -> Callable[[int, int], int]:
    def shifted(a: int, b: int) -> int:
        if not 0 <= b < 64:
            raise Undefined("a shift by 64 or more")
        return function(a, b)

    return shifted


ARITHMETIC: dict[str, Any] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": _floor_division, "mod": _modulo,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    "lshift": _shift(operator.lshift), "rshift": _shift(operator.rshift),
}  # fmt: skip
OF_FLOATS: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "floordiv": np.floor_divide,
    "mod": np.remainder,
}  # fmt: skip


class Number:
    """A value with its type."""

    __slots__ = ("t", "v")

    def __init__(self, v: Any, t: str) -> None:
        self.v, self.t = v, t

    @staticmethod
    def of(value: Any) -> Number:
        if isinstance(value, Number):
            return value
        if isinstance(value, bool):
            return Number(value, "bool")
        return Number(np.float64(value), "float64") if isinstance(value, float) else Number(value, "int64")

    def __bool__(self) -> bool:
        return bool(self.v)

    def __index__(self) -> int:
        return int(self.v)

    def __neg__(self) -> Number:
        if self.t in FLOATS:
            return Number(-self.v, self.t)
        return Number(_wrapped(-self.v, whole(self.t)), whole(self.t))

    def __invert__(self) -> Number:
        return Number(_wrapped(~int(self.v), whole(self.t)), whole(self.t))

    def __abs__(self) -> Number:
        return Number(abs(self.v) if self.t in FLOATS else _wrapped(abs(self.v), self.t), self.t)

    def __pow__(self, power: int) -> Number:
        return Number(_wrapped(int(self.v) ** power, whole(self.t)), whole(self.t))

    def __hash__(self) -> int:
        return hash(self.v)


def _binary(name: str, a: Number, b: Number) -> Number:
    if a.t in FLOATS or b.t in FLOATS:
        t = with_float(a.t, b.t)
        x, y = convert(a.v, t), convert(b.v, t)
        if name in ("floordiv", "mod") and y == 0:
            raise Undefined("a quotient by zero")
        with np.errstate(all="ignore"):
            return Number(OF_FLOATS[name](x, y), t)
    if name == "truediv":
        with np.errstate(all="ignore"):
            return Number(np.divide(np.float64(a.v), np.float64(b.v)), "float64")
    if a.t == b.t == "bool" and name in ("and", "or", "xor"):
        return Number(ARITHMETIC[name](a.v, b.v), "bool")
    t = whole(a.t) if name in ("lshift", "rshift") else whole(a.t, b.t)
    x, y = _wrapped(int(a.v), t), int(b.v) if name in ("lshift", "rshift") else _wrapped(int(b.v), t)
    return Number(_wrapped(ARITHMETIC[name](x, y), t), t)


def _compared(name: str, a: Number, b: Number) -> Number:
    x, y = a.v, b.v
    if a.t in FLOATS or b.t in FLOATS:
        t = with_float(a.t, b.t)
        x, y = convert(x, t), convert(y, t)
    return Number(bool(getattr(operator, name)(x, y)), "bool")


def _add_operators() -> None:
    for name in {**ARITHMETIC, **OF_FLOATS}:
        setattr(Number, f"__{name}__", lambda a, b, n=name: _binary(n, a, Number.of(b)))
        setattr(Number, f"__r{name}__", lambda a, b, n=name: _binary(n, Number.of(b), a))
    for name in ("lt", "le", "eq", "ne", "gt", "ge"):
        setattr(Number, f"__{name}__", lambda a, b, n=name: _compared(n, a, Number.of(b)))


_add_operators()


class Array:
    """An array of one axis: elements are read with their type, and stored as it has them."""

    def __init__(self, data: np.ndarray) -> None:
        self.data, self.t = data, data.dtype.name

    @property
    def size(self) -> Number:
        return Number(self.data.size, "int64")

    def __getitem__(self, index: Any) -> Number:
        found = self.data[self._place(index)]
        return Number(found if self.t in FLOATS else found.item(), self.t)

    def __setitem__(self, index: Any, value: Any) -> None:
        with np.errstate(all="ignore"):
            self.data[self._place(index)] = convert(Number.of(value).v, self.t)

    def _place(self, index: Any) -> int:
        place = operator.index(index)
        assert -self.data.size <= place < self.data.size, "a program stays inside of its arrays"
        return place


def _cast(t: str) -> Callable[[Any], Number]:
    def cast(value: Any) -> Number:
        with np.errstate(all="ignore"):
            return Number(convert(Number.of(value).v, t), t)

    return cast


def _rounded(function: Callable[[Any], Any]) -> Callable[[Any], Number]:
    """A float to an integer."""

    def to_integer(value: Any) -> Number:
        number = Number.of(value)
        if number.t not in FLOATS:
            return Number(int(number.v), "int64" if number.t == "bool" else number.t)
        if not math.isfinite(number.v):
            raise Undefined("no number as an integer")
        return Number(convert(float(function(float(number.v))), "int64"), "int64")

    return to_integer


def _real(function: Any) -> Callable[..., Number]:
    """A function of floats: of float16 and float32 in these, of others in float64."""

    def of(*values: Any) -> Number:
        numbers = list(map(Number.of, values))
        t = numbers[0].t if numbers[0].t in FLOATS else "float64"
        with np.errstate(all="ignore"):
            return Number(function(*(convert(n.v, t) for n in numbers)), t)

    return of


def _float(value: Any) -> Number:
    number = Number.of(value)
    return number if number.t in FLOATS else Number(np.float64(number.v), "float64")


def _chosen(pick: Callable[[Any, Any], bool]) -> Callable[..., Number]:
    """min and max of numbers of one type."""

    def of(first: Any, *rest: Any) -> Number:
        found = Number.of(first)
        for value in map(Number.of, rest):
            assert value.t == found.t, "a program compares what is alike"
            if found.t in FLOATS and (math.isnan(value.v) or math.isnan(found.v) or value.v == found.v == 0):
                raise Undefined("the least of what has no order")
            found = value if pick(value.v, found.v) else found
        return found

    return of


ATOMICS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "max": max, "min": min, "and_": operator.and_, "or_": operator.or_,
    "xor": operator.xor,
}  # fmt: skip


def _atomic(name: str) -> Callable[[Array, Any, Any], None]:
    def update(array: Array, index: Any, value: Any) -> None:
        held = array[index].v
        array[index] = Number(ATOMICS[name](held, convert(Number.of(value).v, array.t)), array.t)

    return update


class Thread:
    """What `cuda` is in a thread."""

    def __init__(self) -> None:
        self.shared_arrays: list[Array] = []  # of the block, in the order in which a thread makes them
        self.atomic = types.SimpleNamespace(**{name: _atomic(name) for name in ATOMICS})
        self.local = types.SimpleNamespace(array=self._local)
        self.shared = types.SimpleNamespace(array=self._shared)

    def begin(self, thread: int, block: int, threads: int, blocks: int) -> None:
        self.made = 0
        self.place = Number(block * threads + thread, "int64")
        for name, value in (("threadIdx", thread), ("blockIdx", block), ("blockDim", threads), ("gridDim", blocks)):
            setattr(self, name, types.SimpleNamespace(x=Number(value, "int32")))

    def grid(self, axes: int) -> Number:
        return self.place

    def _local(self, count: int, kind: Any) -> Array:
        return Array(np.full(count, 99, kind.__name__))

    def _shared(self, count: int, kind: Any) -> Array:
        if self.made == len(self.shared_arrays):
            self.shared_arrays.append(Array(np.full(count, 99, kind.__name__)))
        self.made += 1
        return self.shared_arrays[self.made - 1]


def names(cuda: Thread) -> dict[str, Any]:
    """What the code of a kernel sees, its own functions aside."""
    casts = {t: _cast(t) for t in (*INTEGERS, *FLOATS)}
    for t, cast in casts.items():
        cast.__name__ = t
    real = {n: _real(getattr(np, n)) for n in ("sqrt", "fabs", "copysign", "floor", "ceil", "trunc")}
    return {
        **casts,
        "bool_": _cast("bool"),
        "cuda": cuda,
        "math": types.SimpleNamespace(**real),
        "range": lambda *bounds: (Number(i, "int64") for i in range(*map(operator.index, bounds))),
        "round": _rounded(round),
        "int": _rounded(math.trunc),
        "float": _float,
        "min": _chosen(operator.lt),
        "max": _chosen(operator.gt),
    }


def run(kernel: Callable[..., Iterator[None]], cuda: Thread, arguments: list[Any], blocks: int, threads: int) -> None:
    """Threads of a block go on from barrier to barrier; `kernel` yields at each."""
    for block in range(blocks):
        cuda.shared_arrays.clear()
        steps: list[Iterator[None]] = []
        for thread in range(threads):
            cuda.begin(thread, block, threads, blocks)
            steps.append(_started(kernel(*arguments), cuda, (thread, block, threads, blocks)))
        while steps:
            steps = [s for s in steps if next(s, "done") != "done"]


def _started(steps: Iterator[None], cuda: Thread, place: tuple[int, int, int, int]) -> Iterator[None]:
    """Each part of a thread with its own position."""
    made = 0
    while True:
        cuda.begin(*place)
        cuda.made = made
        try:
            next(steps)
        except StopIteration:
            return
        made = cuda.made
        yield None
