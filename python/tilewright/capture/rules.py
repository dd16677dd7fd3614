"""Rules: how one surface of the language types what all of them share, in `frame.capture.rules`.

TILE is tilewright.tile, DEVICE is tilewright.device. The front end asks the rules what a literal is, how two operands
meet and what an assignment converts; the ops that it emits know nothing of it.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _core
from .._optable import BY_PUBLIC
from ..dtype import (
    PROMOTION,
    SIGNED,
    UNSIGNED,
    DType,
    bfloat16,
    bool_,
    constant_dtype,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    int32,
    number_text,
    promote_constant,
)
from ..errors import TileTypeError, TileValueError
from .values import Array, Method, Tile, describe, is_number, require_tile_or_number

if TYPE_CHECKING:
    from .emit import Emitter
    from .frame import Frame


STORED = "an element that is stored"


class Rules:
    """Those of tile code: constants are loosely typed, and the dialect promotes what is typed."""

    name = "tile"
    simt = False  # a value is one element a thread; arrays are indexed
    code = "tile code"  # what errors call a program of this language
    callables = "expected an operation of tilewright.tile, a Python function, or a @ct.function"
    walks_arrays = False  # `for x in array` goes over its first axis
    fills = False  # whether a variable that some way does not assign has a value there: 0
    raises = False  # `raise` ends the thread, and check mode tells of it
    wraps_indices = False  # an index below zero that is known at run time only counts from the end, too
    assigns_parts = False  # `array[1:3] = x` assigns the elements of the part
    holds_arrays = False  # a NumPy array from outside is an array of constants
    asks_for_rows = False  # `reshape` asks the launch whether an array lies in row-major order
    holds_device_arrays = False  # one of the device from outside is an argument that the launch adds
    refers_to_records = False  # a name for an element of an array of structs is one for its place
    wide = False  # whether numbers of Python are int64 and float64 as arguments
    repeats = False  # whether calls like one before get copies of its ops: those say where the first one was
    builtins: dict[Any, Any] = {}  # noqa: RUF012  # functions of Python that mean something of their own
    names: dict[str, Any] = {}  # noqa: RUF012  # and names that Python does not have
    methods: dict[str, Any] = {}  # noqa: RUF012  # of numbers of device code, beside those of all
    array_methods: dict[str, Any] = {}  # noqa: RUF012  # and of arrays

    def entry(self, emit: Emitter, values: tuple[Any, ...], index: Tile) -> Tile | None:
        """The number of a tuple that the running kernel chooses; None where this language has no such index."""
        return None

    def counted(self, emit: Emitter, variable: Tile) -> Tile:
        """The variable of a loop over a range."""
        return variable

    def extent(self, emit: Emitter, extent: Tile) -> Tile:
        """An extent of an array."""
        return extent

    def elsewhere(self, name: str) -> str:
        """What has a name that is not defined, as the end of a sentence: CUDA C++ has no module in front of it."""
        return ""

    # What a program writes, where a language has rules of its own; None: as tile code has it.

    def binary(self, frame: Frame, name: str, x: Any, y: Any) -> Any:
        return None

    def unary(self, frame: Frame, name: str, value: Any) -> Any:
        return None

    def compare(self, frame: Frame, name: str, x: Any, y: Any) -> Any:
        return None

    def common(self, a: Any, b: Any) -> tuple[DType, tuple[()]] | None:
        """The type of a variable behind a branch that gives it one value or the other."""
        return None

    def assigned(self, frame: Frame, name: str, value: Any) -> Any:
        """What a variable becomes that is given a value."""
        return value

    def prepared(self, template: Any) -> Any:
        """The template (templates.py) of a variable at the entry of a loop."""
        return template

    def number_as(self, value: Any, dtype: DType) -> Any:
        """A constant that a variable of a dtype is given."""
        return value

    def operands(self, emit: Emitter, name: str, values: Sequence[Any]) -> list[Tile]:
        """Operands as tiles; a constant takes its dtype from the typed ones."""
        values = [require_tile_or_number(v, f"ct.{name}") for v in values]
        typed = [v.dtype for v in values if isinstance(v, Tile)]
        result = []
        for value in values:
            if isinstance(value, Tile):
                result.append(value)
            elif typed:
                result.append(emit.constant(value, promote_constant(value, typed[0])))
            else:
                result.append(emit.constant(value, constant_dtype(value)))
        return result

    def result(self, emit: Emitter, name: str, values: Sequence[Any], found: Tile) -> Tile:
        """What the operation `name` of `values` gives, of which the op gave `found`."""
        return found

    def operand(self, emit: Emitter, name: str, value: Any) -> Tile:
        """The only operand of an operation."""
        return emit.tile(value, f"ct.{name}")

    def result_of(self, emit: Emitter, name: str, value: Any, found: Tile) -> Tile:
        """The same as `result` of an operation with one operand."""
        return found

    def converted(self, emit: Emitter, value: Any, dtype: DType, what: str) -> Tile:
        """`value` as the `dtype` of what it is stored to, if it promotes to it."""
        value = require_tile_or_number(value, what)
        if isinstance(value, Tile):
            common = PROMOTION[value.dtype, dtype]
            found = value.dtype
        else:
            common = promote_constant(value, dtype)
            found = constant_dtype(value)
        if common is not dtype:
            raise TileTypeError(
                f"{what}: {found} does not convert to {dtype} by itself; "
                f"write the conversion, as in x.astype(ct.{dtype})"
            )
        return emit.cast(value, dtype)


@dataclasses.dataclass(frozen=True)
class Meeting:
    """How operands meet: the dtype that the op computes in, that of its result, and whether that is loosely typed."""

    compute: DType
    result: DType
    loose: bool


# The types of cuda.device by the names of dialect/promotion.def. Those of Python are loosely typed, in 32 bits.
LOOSE = {"bool": bool_, "int": int32, "float": float32}
DEVICE_TYPES: dict[str, DType] = {
    **LOOSE,
    **{d.name: d for d in (*SIGNED, *UNSIGNED, float16, float32, float64, bfloat16)},
    "float8e4m3": float8_e4m3fn,
    "float8e5m2": float8_e5m2,
}
_NAMES = {dtype: name for name, dtype in DEVICE_TYPES.items()}  # a dtype without the name of a number of Python
_LOOSE_NAMES = {dtype: name for name, dtype in LOOSE.items()}
_COMPARISONS = frozenset(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"))
_STAY_BOOL = frozenset(("bitwise_and", "bitwise_or", "bitwise_xor", "equal", "not_equal", "where"))


@functools.cache
def _device_promotions() -> dict[tuple[str, str], str | None]:
    return _core.device_promotions()


def device_name(value: Any) -> str:
    """The name of an operand's type in the table; a bool is Python's wherever it comes from."""
    if isinstance(value, Tile):
        loose = value.loose or value.dtype is bool_
        name = (_LOOSE_NAMES if loose else _NAMES).get(value.dtype)
        if name is None:
            raise TileTypeError(f"{value.dtype} is no dtype of cuda.device; convert, as in device.float32(x)")
        return name
    return type(value).__name__


def device_promotion(a: str, b: str) -> str:
    """The common type of two types by name."""
    found = _device_promotions()[a, b]
    if found is None:
        told = f"no implicit promotion between {a} and {b}; convert one operand, as in {_device_remedy((a, b))}"
        raise TileTypeError(told)
    return found


def _device_remedy(names: Sequence[str]) -> str:
    if all("int" in name for name in names):
        return "device.int64(x)"
    return "device.float32(x)"


class DeviceRules(Rules):
    """Those of `cuda.device`: numbers of Python take the dtype of what they meet, at run time, too."""

    name = "device"
    simt = walks_arrays = True
    code = "device code"
    callables = "expected a function of device code, or a Python function"
    builtins: dict[Any, Any] = {}  # noqa: RUF012  # filled by simt/functions.py

    def elsewhere(self, name: str) -> str:
        from .. import device

        own = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip("_")).lower()
        if own.startswith("atomic_"):
            return f"; write device.atomic_ref(array, index).{own.removeprefix('atomic_')}(value)"
        return f"; write device.{own}" if own in dir(device) else ""

    def counted(self, emit: Emitter, variable: Tile) -> Tile:
        return dataclasses.replace(variable, loose=variable.dtype is int32)

    def extent(self, emit: Emitter, extent: Tile) -> Tile:
        return dataclasses.replace(extent, loose=True)

    def meet(self, op: str, values: Sequence[Any]) -> Meeting:
        names = [device_name(v) for v in values]
        common = names[0]
        for name in names[1:]:
            common = device_promotion(common, name)
        if set(names) == {"bool"} and op in _STAY_BOOL:
            return Meeting(bool_, bool_, True)
        dtype, loose = DEVICE_TYPES[common], common in LOOSE
        if op == "pow" and dtype.is_integral and isinstance(values[1], Tile):
            raise TileTypeError("an integer to a power that is known at run time only is not defined; convert to float")
        dtype = int32 if dtype is bool_ else dtype
        if op == "truediv" and dtype.is_integral:
            dtype = float64 if dtype.bits == 64 else float32
        compute = float32 if dtype.bits == 8 and dtype.is_float else dtype
        return Meeting(compute, bool_ if op in _COMPARISONS else dtype, loose)

    def operands(self, emit: Emitter, name: str, values: Sequence[Any]) -> list[Tile]:
        values = [require_number(v, name) for v in values]
        compute = self.meet(name, values).compute
        return [self._as(emit, v, compute) for v in values]

    def _as(self, emit: Emitter, value: Any, dtype: DType) -> Tile:
        if isinstance(value, Tile) or not dtype.is_integral or dtype.min <= value <= dtype.max:
            return emit.cast(value, dtype)
        raise TileValueError(
            f"the constant {number_text(value)} is outside {dtype} ({dtype.min} to {dtype.max}); "
            "convert the other operand, as in device.int64(x)"
        )

    def result(self, emit: Emitter, name: str, values: Sequence[Any], found: Tile) -> Tile:
        meeting = self.meet(name, values)
        found = emit.cast(found, meeting.result)
        return dataclasses.replace(found, loose=meeting.loose)

    def operand(self, emit: Emitter, name: str, value: Any) -> Tile:
        value = emit.tile(require_number(value, name), name)
        dtype = value.dtype
        if dtype is bool_:
            dtype = int32
        if dtype.is_integral and BY_PUBLIC[name].result == "float":
            dtype = float64 if dtype.bits == 64 else float32
        return emit.cast(value, float32 if dtype.is_float and dtype.bits == 8 else dtype)

    def result_of(self, emit: Emitter, name: str, value: Any, found: Tile) -> Tile:
        if isinstance(value, Tile) and value.dtype.is_float and found.dtype.is_float:
            found = emit.cast(found, value.dtype)
        loose = isinstance(value, Tile) and (value.loose or value.dtype is bool_)
        return dataclasses.replace(found, loose=loose and found.dtype in _LOOSE_NAMES)

    def converted(self, emit: Emitter, value: Any, dtype: DType, what: str) -> Tile:
        what = {"ct.scatter": STORED}.get(what, what)
        value = require_number(value, what)
        found = value.dtype if isinstance(value, Tile) else LOOSE[type(value).__name__]
        if found.category > dtype.category:
            raise TileTypeError(
                f"{what}: {device_name(value)} does not convert to {dtype} by itself; write the conversion, as in "
                f"device.{_NAMES[dtype] if dtype is not bool_ else 'bool_'}(x)"
            )
        return self._as(emit, value, dtype)


def require_number(value: Any, what: str) -> Any:
    if isinstance(value, Tile) or is_number(value):
        return value
    if hasattr(value, "part"):
        raise TileTypeError(f"{what} needs a real number, found {describe(value)}; take its part, as in z.real")
    advice = "; index it" if isinstance(value, Array) else "; call it" if isinstance(value, Method) else ""
    raise TileTypeError(f"{what} needs a number, found {describe(value)}{advice}")


TILE = Rules()
DEVICE = DeviceRules()
