"""The rules of Numba: NUMBA as numba-cuda types programs today, NPM as NumbaPro did
(CUDA Python specification 0.2, "No-Python mode").

Both type what a program writes: each operator, comparison, assignment and join. What the front end emits beside that
(indices, counts) stays in the dtypes of tile code, and so do the functions of the library.

    NUMBA   integers compute in 64 bits, `/` of them is float64; literals are int64 and float64; variables unify
    NPM     the wider type wins, float over integer; `/` is a float of the larger width, `//` an integer of 32 bits and
            more; in a loop a variable keeps the type that it had before
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..dtype import BY_NAME, SIGNED, UNSIGNED, DType, bfloat16, bool_, float16, float32, float64, int32, int64, uint64
from ..errors import TileTypeError, TileValueError
from ..findings import RAISED
from . import numba_complex
from .rules import STORED, Rules, require_number
from .templates import Merging, Slot, Tree
from .values import Tile, is_number

if TYPE_CHECKING:
    from .emit import Emitter
    from .frame import Frame

_BITWISE = frozenset(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_lshift", "bitwise_rshift"))
_MIRRORED = {"less": "greater", "greater": "less", "less_equal": "greater_equal", "greater_equal": "less_equal"}
SYMBOLS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "bitwise_lshift": "<<",
    "bitwise_rshift": ">>",
}
_COMPARED = {"equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
_QUOTIENTS = frozenset(("truediv", "floordiv", "mod"))
Typing = tuple[str, str]  # the types that an operator computes in, and gives


def _integer(bits: int, signed: bool) -> DType:
    return next(d for d in (SIGNED if signed else UNSIGNED) if d.bits == bits)


def is_scalar(value: Any) -> bool:
    return is_number(value) or (isinstance(value, Tile) and not value.shape)


def _tell_zero(frame: Frame, divisor: Tile) -> None:
    """In check mode a quotient of integers by 0 is told of; of floats it is infinite, or no number."""
    from .assertions import emit_assert

    told = "ZeroDivisionError: division by zero"
    RAISED[frame.told(frame.node, told)] = ZeroDivisionError
    emit_assert(frame, frame.emit.compare("not_equal", divisor, 0), told)


def is_complex(name: str) -> bool:
    return name.startswith("complex")


class ThreadRules(Rules, ABC):
    """What both have in common."""

    simt = True
    code = "device code"
    callables = "expected a function of device code, or a Python function"
    symbols = SYMBOLS
    wide = True  # numbers of Python are int64 and float64, at a launch, too
    walks_arrays = True

    def elsewhere(self, name: str) -> str:
        from ..numba import cuda

        own = name.strip("_")
        if own.startswith("atomic") and own.removeprefix("atomic").lower() in dir(cuda.atomic):
            return f"; write cuda.atomic.{own.removeprefix('atomic').lower()}(array, index, value)"
        return f"; write cuda.{own}" if own in dir(cuda) else ""

    # -- types

    is_scalar = staticmethod(is_scalar)

    def literal(self, value: Any) -> DType:
        if isinstance(value, bool):
            return bool_
        if isinstance(value, float):
            return float64
        if int64.min <= value <= int64.max:
            return int64
        if value <= uint64.max and value > 0:
            return uint64
        raise TileValueError(f"the integer {value} fits no type; the widest are int64 and uint64")

    def dtype_of(self, value: Any) -> DType:
        return value.dtype if isinstance(value, Tile) else self.literal(value)

    @abstractmethod
    def generic(self, x: str, y: str) -> str:
        """The type that holds what either of two holds, as this dialect sees it."""

    @abstractmethod
    def meet(self, op: str, x: str, y: str) -> Typing | None:
        """The types that `op` of two types computes in and gives, by their names; None where it is not defined."""

    @abstractmethod
    def unary_type(self, op: str, x: DType) -> DType:
        """The type that `op` of one type computes in and gives."""

    @abstractmethod
    def merged(self, slot: DType, other: DType) -> DType:
        """The type of a variable that has `slot` on one way and `other` on another one."""

    # -- values

    def number_as(self, value: Any, dtype: DType) -> Any:
        """A constant as C converts it."""
        if dtype.is_bool:
            return bool(value)
        if dtype.is_float:
            return float(value)
        try:
            whole = int(value)
        except (ValueError, OverflowError):
            return 0  # of NaN and infinities: any value
        return whole if dtype.min <= whole <= dtype.max else (whole - dtype.min) % (1 << dtype.bits) + dtype.min

    def as_type(self, emit: Emitter, value: Any, dtype: DType) -> Tile:
        if isinstance(value, Tile):
            return emit.truth(value, "a bool") if dtype is bool_ else emit.cast(value, dtype)
        return emit.constant(self.number_as(value, dtype), dtype)

    def converted(self, emit: Emitter, value: Any, dtype: DType, what: str) -> Tile:
        """What is stored: any number converts to any other."""
        if not is_scalar(value):
            what = {"ct.scatter": STORED}.get(what, what)
            if numba_complex.has_parts(value):
                raise TileTypeError(f"{what} needs a real number, found a {value.name}; take its part, as in z.real")
        return self.as_type(emit, require_number(value, what), dtype)

    # -- operators

    def operands(self, emit: Emitter, name: str, values: Sequence[Any]) -> list[Tile]:
        return super().operands(emit, name, [self._computed(name, value) for value in values])

    def operand(self, emit: Emitter, name: str, value: Any) -> Tile:
        return super().operand(emit, name, self._computed(name, value))

    @staticmethod
    def _computed(name: str, value: Any) -> Any:
        """A number of a type that something is computed in."""
        told = SYMBOLS.get(name) or _COMPARED.get(name) or {"maximum": "max", "minimum": "min"}.get(name, name)
        require_number(value, told)
        if isinstance(value, Tile) and value.dtype.is_float and value.dtype.bits < 16:
            raise TileTypeError(f"{told} of {value.dtype} is not defined; convert it, as in float32(x)")
        return value

    def binary(self, frame: Frame, name: str, x: Any, y: Any) -> Any:
        if numba_complex.has_parts(x) or numba_complex.has_parts(y):
            return numba_complex.binary(self, frame, name, x, y)
        if not is_scalar(x) or not is_scalar(y) or name == "matmul":
            return None
        if is_number(x) and is_number(y):
            return self.folded(name, x, y)
        a, b = self.dtype_of(x), self.dtype_of(y)
        if name == "pow":
            return self._power(frame, x, y)
        typing = self.meet(SYMBOLS.get(name, "+"), a.name, b.name)
        if typing is None:
            raise TileTypeError(self.undefined(name, a, b))
        compute, result = (BY_NAME[n] for n in typing)
        if compute.is_float and compute.bits < 16:
            raise TileTypeError(self.undefined(name, a, b))
        left, right = (self.as_type(frame.emit, v, compute) for v in (x, y))
        if frame.capture.checked and name in _QUOTIENTS and not (a.is_float or b.is_float):
            _tell_zero(frame, right)
        return frame.emit.cast(frame.emit.binary(name, left, right), result)

    def folded(self, name: str, x: Any, y: Any) -> Any:
        """An operator of two constants; None: as Python has it."""
        return None

    def undefined(self, name: str, a: Any, b: Any) -> str:
        remedy = "convert to an integer, as in int64(x)" if name in _BITWISE else "convert one of them"
        if a is b and not isinstance(a, str) and a.bits < 16:
            remedy = "convert them, as in float32(x)"
        return f"{SYMBOLS.get(name, name)} of {a} and {b} is not defined; {remedy}"

    def _power(self, frame: Frame, x: Any, y: Any) -> Any:
        from ..numba import lowering  # tile code

        a, b = self.dtype_of(x), self.dtype_of(y)
        typing = self.meet("+", a.name, b.name)
        assert typing is not None  # numbers add
        common = BY_NAME[typing[1]]
        if a.is_float and not b.is_float:
            common = a if a.bits >= 32 else float32
        if common.is_float:
            left, right = (self.as_type(frame.emit, v, common) for v in (x, y))
            return frame.emit.binary("pow", left, right)
        base = self.as_type(frame.emit, x, common)
        if type(y) is int and 0 <= y <= 64:
            return frame.emit.binary("pow", base, y)
        return self.call(frame, lowering.integer_power, base, self.as_type(frame.emit, y, common))

    def unary(self, frame: Frame, name: str, value: Any) -> Any:
        """-x, ~x or +x, by the name of its node."""
        if is_number(value) or not is_scalar(value):
            return None
        if name == "Invert" and value.dtype.is_float:
            raise TileTypeError(f"~ of {value.dtype} is not defined; convert to an integer, as in int64(x)")
        if value.dtype.is_float and value.dtype.bits < 16:
            raise TileTypeError(f"a sign of {value.dtype} is not defined; convert it, as in float32(x)")
        operand = self.as_type(frame.emit, value, self.unary_type(name, value.dtype))
        of_node = {"USub": "negative", "Invert": "bitwise_not"}
        return frame.emit.unary(of_node[name], operand) if name in of_node else operand

    def compare(self, frame: Frame, name: str, x: Any, y: Any) -> Any:
        if numba_complex.has_parts(x) or numba_complex.has_parts(y):
            return numba_complex.compare(self, frame, name, x, y)
        if not is_scalar(x) or not is_scalar(y) or (is_number(x) and is_number(y)):
            return None
        a, b = self.dtype_of(x), self.dtype_of(y)
        if {a, b} == {bool_}:
            return frame.emit.compare(name, self.as_type(frame.emit, x, int32), self.as_type(frame.emit, y, int32))
        if a.is_integral and b.is_integral and a.signed != b.signed and uint64 in (a, b):
            return self._compare_signs(frame, name, x, y, a)
        typing = self.meet("+", a.name, b.name)
        assert typing is not None  # numbers add
        compute = BY_NAME[typing[0]]
        return frame.emit.compare(name, *(self.as_type(frame.emit, v, compute) for v in (x, y)))

    def _compare_signs(self, frame: Frame, name: str, x: Any, y: Any, a: DType) -> Any:
        """A signed with an unsigned integer of 64 bits: what is below zero is less."""
        if not a.signed:
            return self._compare_signs(frame, _MIRRORED.get(name, name), y, x, self.dtype_of(y))
        emit = frame.emit
        below = emit.compare("less", self.as_type(emit, x, int64), 0)
        same = emit.compare(name, self.as_type(emit, x, uint64), self.as_type(emit, y, uint64))
        if name in ("less", "less_equal", "not_equal"):
            return emit.binary("bitwise_or", below, same)
        return emit.binary("bitwise_and", emit.logical_not(below), same)

    # -- variables

    def counted(self, emit: Emitter, variable: Tile) -> Tile:
        return emit.cast(variable, int64)

    def extent(self, emit: Emitter, extent: Tile) -> Tile:
        return emit.cast(extent, int64)

    def prepared(self, template: Any) -> Any:
        if isinstance(template, Slot):
            dtype = template.dtype if template.loose is None else self.literal(template.loose)
            return Merging(dtype, template.shape, rules=self)
        if isinstance(template, Tree):
            return Tree(template.like, tuple(map(self.prepared, template.parts)))
        return template

    def common(self, a: Any, b: Any) -> tuple[DType, tuple[()]] | None:
        """The type of a variable behind a branch that gives it one value or the other."""
        if not is_scalar(a) or not is_scalar(b):
            return None
        return (self.joined(self.dtype_of(a), self.dtype_of(b)), ())

    def joined(self, a: DType, b: DType) -> DType:
        if a is b:
            return a
        if bool_ in (a, b):
            return b if a is bool_ else a
        return BY_NAME[self.generic(a.name, b.name)]

    def entry(self, emit: Emitter, values: tuple[Any, ...], index: Tile) -> Tile | None:
        if not values or not all(map(is_scalar, values)):
            return None
        dtype = functools.reduce(self.joined, map(self.dtype_of, values))
        *others, found = (self.as_type(emit, value, dtype) for value in values)
        for place, value in reversed(list(enumerate(others))):
            found = emit.select(emit.compare("equal", index, place), value, found)
        return found

    # -- calls

    def call(self, frame: Frame, function: Any, *values: Any) -> Any:
        """A function in tile code, under the rules of tile code."""
        from .inlining import inline

        return inline(frame, function, list(values), {}, frame.node)


class _Numba(ThreadRules):
    name = "numba"
    raises = wraps_indices = fills = assigns_parts = refers_to_records = True
    holds_arrays = holds_device_arrays = asks_for_rows = True

    def generic(self, x: str, y: str) -> str:
        """As NumPy promotes, but for an integer with float32: 32 bits and more make float64."""
        a, b = BY_NAME[x], BY_NAME[y]
        if a is b:
            return x
        if a.is_float and b.is_float:
            return float32.name if a.bits == b.bits else (a if a.bits > b.bits else b).name  # of 16 bits, of two kinds
        if a.is_float or b.is_float:
            return self._float_with(a, b).name if a.is_float else self._float_with(b, a).name
        if a.signed == b.signed:
            return (a if a.bits >= b.bits else b).name
        signed, unsigned = (a, b) if a.signed else (b, a)
        bits = max(signed.bits, 2 * unsigned.bits)
        return _integer(bits, True).name if bits <= 64 else float64.name

    @staticmethod
    def _float_with(a: DType, b: DType) -> DType:
        """A float with an integer or bool: exact where the integer is."""
        exact = {float16: 8, bfloat16: 8, float32: 16, float64: 64}.get(a, 0)
        if b.is_bool or (b.signed and b.bits <= exact) or (not b.signed and b.bits < exact):
            return a
        return float32 if b.bits <= 8 or (b.bits <= 16 and b.signed) else float64

    def meet(self, op: str, x: str, y: str) -> Typing | None:
        if is_complex(x) or is_complex(y):
            return None if op in ("//", "%") or op in _BIT_OPERATORS else (self._complex(x, y),) * 2
        a, b = BY_NAME[x], BY_NAME[y]
        if op in _BIT_OPERATORS:
            return self._bitwise(op, a, b)
        if a.is_float or b.is_float:
            return (self.generic(x, y),) * 2
        if op == "/":
            return (float64.name,) * 2
        return (self._whole(a, b).name,) * 2

    def _complex(self, x: str, y: str) -> str:
        """Of the parts as they meet."""
        parts = {"complex64": "float32", "complex128": "float64"}
        wide = self.generic(parts.get(x, x), parts.get(y, y)) == "float64"
        return "complex128" if wide else "complex64"

    @staticmethod
    def _whole(a: DType, b: DType) -> DType:
        return uint64 if not (a.signed or b.signed or a.is_bool or b.is_bool) else int64

    def _bitwise(self, op: str, a: DType, b: DType) -> Typing | None:
        if a.is_float or b.is_float:
            return None
        if op in ("<<", ">>"):
            return (self._whole(a, a).name,) * 2
        both = bool_ if a.is_bool and b.is_bool else self._whole(a, b)
        return (both.name,) * 2

    def unary_type(self, op: str, x: DType) -> DType:
        return x if x.is_float else self._whole(x, x)

    def merged(self, slot: DType, other: DType) -> DType:
        return self.joined(slot, other)


class _Npm(ThreadRules):
    name = "npm"

    def generic(self, x: str, y: str) -> str:
        """A float over an integer, then the wider one; of two that are as wide the unsigned one."""
        a, b = BY_NAME[x], BY_NAME[y]
        if a.category != b.category:
            return (a if a.category > b.category else b).name
        if a.bits != b.bits:
            return (a if a.bits > b.bits else b).name
        return (b if a.signed and not b.signed else a).name

    def meet(self, op: str, x: str, y: str) -> Typing | None:
        if is_complex(x) or is_complex(y):
            return (wide_complex(x, y),) * 2 if op in ("+", "-", "*") else None
        a, b = BY_NAME[x], BY_NAME[y]
        common = int64.name if a.is_bool and b.is_bool else self.generic(x, y)
        if op in _BIT_OPERATORS:
            return self._bitwise(op, a, b, common)
        if op == "/":
            wide = float64 if max(a.bits, b.bits) == 64 else float32
            return (wide.name,) * 2
        if op != "//":
            return (common,) * 2
        of = BY_NAME[common]
        return common, _integer(max(of.bits, 32), of.signed or of.is_float).name

    @staticmethod
    def _bitwise(op: str, a: DType, b: DType, common: str) -> Typing | None:
        if a.is_float or b.is_float:
            return None
        both = a.is_bool and b.is_bool and op not in ("<<", ">>")
        return (bool_.name if both else common,) * 2

    def folded(self, name: str, x: Any, y: Any) -> Any:
        """`//` gives an integer of floats, too."""
        if name != "floordiv" or not (isinstance(x, float) or isinstance(y, float)) or not y:
            return None
        return int(x // y)

    def unary_type(self, op: str, x: DType) -> DType:
        return int64 if x.is_bool else x

    def merged(self, slot: DType, other: DType) -> DType:
        return slot

    def assigned(self, frame: Frame, name: str, value: Any) -> Any:
        """In a loop a variable keeps the type that it had before, or that its first assignment there gave it."""
        if not frame.loop_types or not is_scalar(value):
            return value
        for types in reversed(frame.loop_types):
            if name in types:
                return self.as_type(frame.emit, value, types[name])
        frame.loop_types[-1][name] = self.dtype_of(value)
        return value


_BIT_OPERATORS = frozenset(SYMBOLS[name] for name in _BITWISE)


def wide_complex(x: str, y: str) -> str:
    """complex64 holds float32 and every integer, as NPM has it; float64 and complex128 need more."""
    return "complex128" if {x, y} & {"complex128", "float64"} else "complex64"


NUMBA, NPM = _Numba(), _Npm()

__all__ = ["NPM", "NUMBA", "ThreadRules"]
