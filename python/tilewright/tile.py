"""The names of tile code: `from tilewright import tile as ct`.

Each operation is one function object here, declared by `@op` with its signature and its meaning.
The front end recognises the object while it captures a kernel (`OPS`, and `__tw_op__` on the
object); when the object is really called, inside `kernel.interpret(...)`, it runs on NumPy tiles
(interpret.py). On the host, outside of a kernel, it raises TileError.

Shapes in the text: a tile has a static shape of powers of two; a scalar is a tile of shape ().
"Promoted" means: the common dtype by `dtype.promote`, shapes broadcast as in NumPy.
"""

# The bodies are the documentation: what runs is looked up by name. Imports are for users.
# mypy: disable-error-code="empty-body"

from __future__ import annotations

import contextvars
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, get_origin, overload

from ._optable import OPS as _TABLE
from .annotations import (
    ArrayAnnotation as ArrayAnnotation,
    Constant as Constant,
    ConstantAnnotation as ConstantAnnotation,
    IndexedWithInt64 as IndexedWithInt64,
    ListAnnotation as ListAnnotation,
    MemoryOrder as MemoryOrder,
    MemoryScope as MemoryScope,
    PaddingMode as PaddingMode,
    RoundingMode as RoundingMode,
    ScalarAnnotation as ScalarAnnotation,
    ScalarInt64 as ScalarInt64,
)
from .dtype import (
    DType as DType,
    bfloat16 as bfloat16,
    bool_ as bool_,
    check_scalar,
    constant_of,
    float4_e2m1fn as float4_e2m1fn,
    float4e2m1 as float4e2m1,
    float8_e4m3fn as float8_e4m3fn,
    float8_e5m2 as float8_e5m2,
    float8_e5m3fnu as float8_e5m3fnu,
    float8_e8m0fnu as float8_e8m0fnu,
    float8e4m3 as float8e4m3,
    float8e5m2 as float8e5m2,
    float8e8m0 as float8e8m0,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    tfloat32 as tfloat32,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
)
from .errors import (
    HostCallError,
    StaticException as StaticException,
    TileCheckError as TileCheckError,
    TileCompilationError as TileCompilationError,
    TileCompilerExecutionError as TileCompilerExecutionError,
    TileCompilerTimeoutError as TileCompilerTimeoutError,
    TileError as TileError,
    TileInternalError as TileInternalError,
    TileRecursionError as TileRecursionError,
    TileStaticAssertionError as TileStaticAssertionError,
    TileStaticEvalError as TileStaticEvalError,
    TileSyntaxError as TileSyntaxError,
    TileTypeError as TileTypeError,
    TileUnsupportedFeatureError as TileUnsupportedFeatureError,
    TileValueError as TileValueError,
    TileZeroDivisionError,
)
from .quiet import quiet

if TYPE_CHECKING:
    from . import compilation as compilation, tune as tune
    from .deadline import compiler_timeout as compiler_timeout
    from .dtype import foreign_pointer_dtype as foreign_pointer_dtype
    from .hints import ByTarget as ByTarget
    from .interpret import Array as Array, Tile as Tile
    from .kernel import function as function, kernel as _kernel, launch as launch
    from .library import (
        argsort as argsort,
        asinh as asinh,
        atan2 as atan2,
        cbrt as cbrt,
        clip as clip,
        dot as dot,
        erf as erf,
        expm1 as expm1,
        flip as flip,
        gelu as gelu,
        grid_dependency_control_launch_dependents as grid_dependency_control_launch_dependents,
        grid_dependency_control_wait as grid_dependency_control_wait,
        log1p as log1p,
        philox as philox,
        rand as rand,
        randn as randn,
        relu as relu,
        sigmoid as sigmoid,
        silu as silu,
        softplus as softplus,
        sort as sort,
        topk as topk,
    )

    # A type checker sees a decorator, with and without hints; it is the class.
    @overload
    def kernel(function: Callable[..., Any], /) -> _kernel: ...
    @overload
    def kernel(**hints: Any) -> Callable[[Callable[..., Any]], _kernel]: ...
    def kernel(function: Any = None, /, **hints: Any) -> Any: ...


Shape: TypeAlias = int | Sequence[int]
Index: TypeAlias = "Tile | int | Sequence[Tile | int]"
Order: TypeAlias = str | Sequence[int]
Scalar: TypeAlias = "Tile | bool | int | float"

F = TypeVar("F", bound=Callable[..., Any])

# Names that live in modules which import this one, or which need NumPy; and such modules.
_LAZY = {
    "kernel": "kernel",
    "function": "kernel",
    "launch": "kernel",
    "ByTarget": "hints",
    "compiler_timeout": "deadline",
    "Array": "interpret",
    "Tile": "interpret",
    **dict.fromkeys(("TiledView", "RawArrayMemory", "Slice", "foreign_pointer_dtype"), "views"),
    **dict.fromkeys(
        ("asinh", "atan2", "cbrt", "clip", "erf", "expm1", "gelu", "log1p", "relu", "sigmoid", "silu", "softplus"),
        "library",
    ),
    **dict.fromkeys(
        ("argsort", "dot", "flip", "philox", "rand", "randn", "sort", "topk"),
        "library",
    ),
    **dict.fromkeys(
        ("grid_dependency_control_launch_dependents", "grid_dependency_control_wait"),
        "library",
    ),
}


_MODULES = {"compilation", "tune"}

# What other modules of this package import from here, and no program needs.
_HELPERS = {
    *("TYPE_CHECKING", "annotations", "F", "OPS", "op", "Index", "Order", "Shape"),
    *("ARRAY_ATTRIBUTES", "BINARY_OPERATORS", "COMPARISONS", "TILE_METHODS"),
    *("make_scalar", "HostCallError", "TileZeroDivisionError", "check_scalar", "constant_of", "quiet"),
}


if not TYPE_CHECKING:  # else any name would be one, to a type checker

    def __getattr__(name: str) -> Any:
        if name == "__all__":  # what `import *` asks for: names that come on demand, too
            return __dir__()
        if name not in _LAZY and name not in _MODULES:
            from .names import advice

            hint = "" if name.startswith("_") else advice(name, __dir__())
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
        import importlib

        module = importlib.import_module(f".{_LAZY.get(name, name)}", __package__)
        value = getattr(module, name) if name in _LAZY else module
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """What tile code and its host use: no imports of this file, but what comes on demand."""
    inner = (
        contextvars,
        functools,
        inspect,
        Callable,
        Sequence,
        Any,
        TypeAlias,
        TypeVar,
        get_origin,
        overload,
    )
    names = [n for n, v in globals().items() if not n.startswith("_") and not any(v is other for other in inner)]
    return sorted({*names, *_LAZY, *_MODULES} - _HELPERS)


# ---------------------------------------------------------------------------------------------
# The registry

OPS: dict[str, Callable[..., Any]] = {}

# What a call of an operation does while Python computes a part of a kernel at compile time (capture/static.py).
_static: contextvars.ContextVar[Callable[..., Any] | None] = contextvars.ContextVar("static", default=None)


def op(name: str, *, host: Callable[..., Any] | None = None) -> Callable[[F], F]:
    """Declare the function below as the operation `name`.

    `host`, where given, runs when the function is called outside of a kernel.
    """

    def declare(declaration: F) -> F:
        signature = inspect.signature(declaration)

        @quiet
        @functools.wraps(declaration)
        def call(*args: Any, **kwargs: Any) -> Any:
            from . import interpret

            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            if interpret.active():
                return interpret.OPS[name](*bound.args, **bound.kwargs)
            static = _static.get()
            if static is not None:
                return static(name, *bound.args, **bound.kwargs)
            if host is not None:
                return host(*bound.args, **bound.kwargs)
            raise HostCallError(
                f"ct.{name} can be used in tile code only; call it from a function with "
                "@ct.kernel, and start that with ct.launch or kernel.interpret"
            )

        call.__tw_op__ = name  # type: ignore[attr-defined]
        OPS[name] = call
        return call  # type: ignore[return-value]

    return declare


# ---------------------------------------------------------------------------------------------
# Position


@op("bid")
def bid(axis: int) -> Tile:
    """Index of this block along grid axis 0, 1 or 2 (a constant): an int32 scalar."""


@op("num_blocks")
def num_blocks(axis: int) -> Tile:
    """Number of blocks of the grid along axis 0, 1 or 2 (a constant): an int32 scalar."""


@op("num_tiles")
def num_tiles(array: Array, /, axis: int, shape: Shape, order: Order = "C") -> Tile:
    """Number of tiles of `shape` that cover `array` along tile axis `axis`: an int32 scalar.

    A partial tile at the edge counts. `order` as in `load`.
    """


def _host_cdiv(x: Any, y: Any) -> Any:
    for value in (x, y):
        if not hasattr(value, "__floordiv__"):
            raise TileTypeError(f"ct.cdiv divides integers, found {value!r}")
    if isinstance(y, int) and y == 0:
        raise TileZeroDivisionError(f"ct.cdiv divides {x!r} by zero")
    return -(-x // y)


@op("cdiv", host=_host_cdiv)
def cdiv(x: Any, y: Any, /) -> Any:
    """x divided by y, rounded up, of integers (tiles, scalars, constants): promoted.

    Also callable on the host, with Python integers.
    """


# ---------------------------------------------------------------------------------------------
# Memory


@op("load")
def load(
    array: Array,
    /,
    index: Index,
    shape: Shape,
    *,
    order: Order = "C",
    padding_mode: PaddingMode = PaddingMode.UNDETERMINED,
    check_bounds: bool = True,
    latency: int | None = None,
    allow_tma: bool | None = None,
    memory_order: MemoryOrder = MemoryOrder.WEAK,
    memory_scope: MemoryScope = MemoryScope.NONE,
) -> Tile:
    """The tile of `shape` (constant powers of two) at tile `index` of the array's tile space.

    `index` and `shape` have one entry for each dimension of the array; for a 1-D array a plain
    number will do. Tile axis k runs along array axis `order[k]`: "C" is (0, 1, ...), "F" the
    reverse, or a permutation. Element (x, y) of the tile is array[i * tm + x, j * tn + y]
    in order "C". Elements outside the array become the value of `padding_mode` and are never
    read. `check_bounds=False` promises that there are none.

    With shape () the element at `index`, as a scalar. A 0-d array has index ().

    `latency` (1 to 10) and `allow_tma` are hints.
    """


@op("store")
def store(
    array: Array,
    /,
    index: Index,
    tile: Tile | Scalar,
    *,
    order: Order = "C",
    check_bounds: bool = True,
    latency: int | None = None,
    allow_tma: bool | None = None,
    memory_order: MemoryOrder = MemoryOrder.WEAK,
    memory_scope: MemoryScope = MemoryScope.NONE,
) -> None:
    """Write `tile` at tile `index` of the array; elements outside the array are not written.

    The tile has as many dimensions as the array (a scalar is stored as one element). Its dtype
    must be the array's, or promote to it; another one needs `tile.astype(array.dtype)`.
    """


@op("gather")
def gather(
    array: Array,
    indices: Any,
    /,
    *,
    mask: Tile | bool | None = None,
    padding_value: Scalar = 0,
    check_bounds: bool = True,
    latency: int | None = None,
) -> Tile:
    """The elements of `array` at `indices`: a tuple of one integer tile for each dimension.

    The index tiles broadcast to the shape of the result: t[i, j] = array[r[i, 0], c[0, j]].
    For a 1-D array a plain tile will do. Indices below 0 or past the end give `padding_value`,
    as do elements where the bool tile `mask` is False; nothing is read there.
    """


@op("scatter")
def scatter(
    array: Array,
    indices: Any,
    value: Tile | Scalar,
    /,
    *,
    mask: Tile | bool | None = None,
    check_bounds: bool = True,
    latency: int | None = None,
) -> None:
    """Write `value`, broadcast to the shape of the indices, to the elements at `indices`.

    Indices and mask as in `gather`: elements outside the array are not written. Of several
    values for one element, which one remains is not specified.
    """


@op("atomic_cas")
def atomic_cas(
    array: Array,
    indices: Any,
    expected: Tile | Scalar,
    desired: Tile | Scalar,
    /,
    *,
    check_bounds: bool = True,
    memory_order: MemoryOrder = MemoryOrder.ACQ_REL,
    memory_scope: MemoryScope = MemoryScope.DEVICE,
) -> Tile:
    """Write `desired` to the elements at `indices` that equal `expected`, bit for bit; the result is what they were.

    Indices as in `gather`. Each element is read and written at once, the elements of a tile in no order. Outside of the
    array nothing is done, and the result is `expected`. Arrays of int32, int64, uint32, uint64, float32 and float64.
    """


def _read_modify_write(name: str, dtypes: str, text: str) -> Callable[..., Tile]:
    """One of the atomic operations with a value, which differ in what they make of it."""

    def declaration(
        array: Array,
        indices: Any,
        update: Tile | Scalar,
        /,
        *,
        check_bounds: bool = True,
        memory_order: MemoryOrder = MemoryOrder.ACQ_REL,
        memory_scope: MemoryScope = MemoryScope.DEVICE,
    ) -> Tile: ...

    declaration.__name__ = declaration.__qualname__ = name
    declaration.__doc__ = f"""{text}; the result is what they were.

    Indices as in `gather`, and `update` broadcasts to their shape. Each element is read and written at once, the
    elements of a tile in no order. Outside of the array nothing is done, and the result is `update`.
    Arrays of {dtypes}.
    """
    return op(name)(declaration)


_INTEGERS = "int32, int64, uint32, uint64"
atomic_xchg = _read_modify_write(
    "atomic_xchg", f"{_INTEGERS}, float32 and float64", "Write `update` to the elements at `indices`"
)
atomic_add = _read_modify_write(
    "atomic_add",
    f"{_INTEGERS}, float16, bfloat16, float32 and float64",
    "Add `update` to the elements at `indices`",
)
atomic_max = _read_modify_write("atomic_max", _INTEGERS, "Write the larger of element and `update` to `indices`")
atomic_min = _read_modify_write("atomic_min", _INTEGERS, "Write the smaller of element and `update` to `indices`")
atomic_and = _read_modify_write("atomic_and", _INTEGERS, "Write element & `update` to `indices`")
atomic_or = _read_modify_write("atomic_or", _INTEGERS, "Write element | `update` to `indices`")
atomic_xor = _read_modify_write("atomic_xor", _INTEGERS, "Write element ^ `update` to `indices`")


@op("load_advanced_indexing")
def load_advanced_indexing(
    array: Array,
    indices: Any,
    /,
    *,
    padding_mode: PaddingMode = PaddingMode.UNDETERMINED,
    latency: int | None = None,
    allow_tma: bool | None = None,
) -> Tile:
    """Rows of an array by a tile of indices: one entry of `indices` is an integer tile of one dimension, the others
    are `ct.Slice(start, length)`. Elements outside of the array are what the padding mode says."""


@op("store_advanced_indexing")
def store_advanced_indexing(
    array: Array,
    indices: Any,
    tile: Tile | Scalar,
    /,
    *,
    latency: int | None = None,
    allow_tma: bool | None = None,
) -> None:
    """The counterpart of `load_advanced_indexing`: elements outside of the array are not written."""


# ---------------------------------------------------------------------------------------------
# Creation


@op("full")
def full(shape: Shape, fill_value: Scalar, dtype: DType) -> Tile:
    """A tile of `shape` (constant powers of two), each element `fill_value` (a scalar)."""


@op("zeros")
def zeros(shape: Shape, dtype: DType) -> Tile:
    """A tile of zeros."""


@op("ones")
def ones(shape: Shape, dtype: DType) -> Tile:
    """A tile of ones."""


@op("arange")
def arange(size: int, /, *, dtype: DType, start: Scalar = 0, step: Scalar = 1) -> Tile:
    """The 1-D tile start, start + step, ... of `size` (a constant power of two) elements."""


@op("astile")
def astile(value: Any, /, *, dtype: DType) -> Tile:
    """A tile of a number, or of nested tuples or lists of numbers: astile(((1, 2), (3, 4)), dtype=int32) is 2 by 2.

    The numbers may be constants or scalars; each level has a power of two of entries of one shape.
    """


# ---------------------------------------------------------------------------------------------
# Arithmetic. The operator of Python does the same: x + y is add(x, y).


@op("add")
def add(x: Any, y: Any, /, *, rounding_mode: RoundingMode | None = None, flush_to_zero: bool = False) -> Any:
    """x + y, promoted. Integers wrap. bool with bool and restricted dtypes are refused.

    A result is rounded to nearest even. `rounding_mode`, of floats: RN, RZ, RM or RP round the exact result once, and
    it is part of no fused multiply-add. `flush_to_zero`, of float32: a subnormal operand or result becomes a zero of
    its sign. So do these keywords wherever they stand.
    """


@op("sub")
def sub(x: Any, y: Any, /, *, rounding_mode: RoundingMode | None = None, flush_to_zero: bool = False) -> Any:
    """x - y, promoted. Integers wrap."""


@op("mul")
def mul(x: Any, y: Any, /, *, rounding_mode: RoundingMode | None = None, flush_to_zero: bool = False) -> Any:
    """x * y, promoted. Integers wrap."""


@op("truediv")
def truediv(x: Any, y: Any, /, *, rounding_mode: RoundingMode | None = None, flush_to_zero: bool = False) -> Any:
    """x / y, promoted; two integers give float32.

    On a GPU a quotient of float32 below the normal numbers may be 2^-149 off; with `rounding_mode` RN it is exact. With
    FULL or APPROX, of float32, it is within 4 units in the last place: x is multiplied by the inverse of a constant, or
    of a y that several x share. With APPROX and `flush_to_zero` it is that by the hardware's inverse of y, which is 0
    where y is above 2^126.
    """


@op("floordiv")
def floordiv(x: Any, y: Any, /) -> Any:
    """x / y rounded towards negative infinity, promoted: the result of floats is a float.

    Of floats it is ct.floor(x / y), as cuTile has it: the quotient is rounded to their dtype first. Of constants
    alone it is what Python makes of it: 3.0 // 0.1 is 29, as the float 0.1 is more than a tenth. Integer division by
    zero gives an unspecified value.
    """


@op("mod")
def mod(x: Any, y: Any, /) -> Any:
    """What x // y leaves over, promoted: the result has the sign of y, as in Python."""


@op("pow")
def pow(x: Any, y: Any, /) -> Any:
    """x to the power y, promoted.

    An integer x to a constant integer power of 0 or more is exact, and wraps; other integers
    are converted to float32 first.
    """


@op("negative")
def negative(x: Any, /) -> Any:
    """-x. Integers wrap, so that the unsigned result is 2**bits - x. A bool counts as int32."""


@op("abs")
def abs(x: Any, /) -> Any:
    """|x|; of the smallest signed integer, that integer."""


@op("minimum")
def minimum(x: Any, y: Any, /, *, flush_to_zero: bool = False, propagate_nan: bool = False) -> Any:
    """The smaller of x and y, promoted; where one of them is NaN, the other one.

    With `propagate_nan=True` NaN, where one of them is.
    """


@op("maximum")
def maximum(x: Any, y: Any, /, *, flush_to_zero: bool = False, propagate_nan: bool = False) -> Any:
    """The larger of x and y, promoted; where one of them is NaN, the other one.

    With `propagate_nan=True` NaN, where one of them is.
    """


@op("where")
def where(cond: Any, x: Any, y: Any, /) -> Tile:
    """x where the bool tile `cond` is True, else y. x and y promoted, all three broadcast."""


@op("divmod")
def divmod(x: Any, y: Any, /) -> tuple[Any, Any]:
    """x // y and x % y of integers, both promoted."""


# ---------------------------------------------------------------------------------------------
# Comparison: bool_ tiles. A comparison with NaN is False, except not_equal.


@op("equal")
def equal(x: Any, y: Any, /) -> Any:
    """x == y, operands promoted."""


@op("not_equal")
def not_equal(x: Any, y: Any, /) -> Any:
    """x != y, operands promoted."""


@op("less")
def less(x: Any, y: Any, /) -> Any:
    """x < y, operands promoted."""


@op("less_equal")
def less_equal(x: Any, y: Any, /) -> Any:
    """x <= y, operands promoted."""


@op("greater")
def greater(x: Any, y: Any, /) -> Any:
    """x > y, operands promoted."""


@op("greater_equal")
def greater_equal(x: Any, y: Any, /) -> Any:
    """x >= y, operands promoted."""


@op("isnan")
def isnan(x: Any, /) -> Any:
    """Whether x, of floats, is NaN: a bool_ tile."""


# ---------------------------------------------------------------------------------------------
# Bits


@op("bitwise_and")
def bitwise_and(x: Any, y: Any, /) -> Any:
    """x & y of integers or bools, promoted."""


@op("bitwise_or")
def bitwise_or(x: Any, y: Any, /) -> Any:
    """x | y of integers or bools, promoted."""


@op("bitwise_xor")
def bitwise_xor(x: Any, y: Any, /) -> Any:
    """x ^ y of integers or bools, promoted."""


@op("bitwise_not")
def bitwise_not(x: Any, /) -> Any:
    """~x of integers; of bools the logical not."""


@op("bitwise_lshift")
def bitwise_lshift(x: Any, y: Any, /) -> Any:
    """x << y of integers, promoted. A count below 0 or past the width: unspecified value."""


@op("bitwise_rshift")
def bitwise_rshift(x: Any, y: Any, /) -> Any:
    """x >> y of integers, promoted: arithmetic for signed, logical for unsigned dtypes."""


# ---------------------------------------------------------------------------------------------
# Functions of floats. Integers and bools are converted to float32 first.


@op("exp")
def exp(x: Any, /, *, rounding_mode: RoundingMode | None = None) -> Any:
    """e to the power x.

    With `rounding_mode` APPROX, of float32, it is to 2 + 1.3 abs(x) units in the last place on a GPU, and may be 0
    below the normal numbers.
    """


@op("exp2")
def exp2(x: Any, /, *, flush_to_zero: bool = False) -> Any:
    """2 to the power x."""


@op("log")
def log(x: Any, /) -> Any:
    """Natural logarithm: -inf at 0, NaN below."""


@op("log2")
def log2(x: Any, /) -> Any:
    """Logarithm to base 2."""


@op("sqrt")
def sqrt(x: Any, /, *, rounding_mode: RoundingMode | None = None, flush_to_zero: bool = False) -> Any:
    """Square root: NaN below 0."""


@op("rsqrt")
def rsqrt(x: Any, /, *, flush_to_zero: bool = False) -> Any:
    """1 / sqrt(x)."""


@op("sin")
def sin(x: Any, /) -> Any:
    """Sine of radians."""


@op("cos")
def cos(x: Any, /) -> Any:
    """Cosine of radians."""


@op("tan")
def tan(x: Any, /) -> Any:
    """Tangent of radians."""


@op("sinh")
def sinh(x: Any, /) -> Any:
    """Hyperbolic sine."""


@op("cosh")
def cosh(x: Any, /) -> Any:
    """Hyperbolic cosine."""


@op("tanh")
def tanh(x: Any, /, *, rounding_mode: RoundingMode | None = None) -> Any:
    """Hyperbolic tangent."""


@op("floor")
def floor(x: Any, /) -> Any:
    """The next integral value at or below x, of floats."""


@op("ceil")
def ceil(x: Any, /) -> Any:
    """The next integral value at or above x, of floats."""


# ---------------------------------------------------------------------------------------------
# Shape and dtype


@op("astype")
def astype(x: Any, /, dtype: DType, *, rounding_mode: RoundingMode | None = None) -> Any:
    """x converted to `dtype`.

    Float to a narrower float rounds to nearest even; what is too large becomes infinity, or, in a
    format without (float8_e4m3fn, float4_e2m1fn), the largest value of its sign. In float8_e8m0fnu,
    ties and what is no number between 2**-126 and 2**127 are unspecified. Float to integer truncates
    towards zero, and gives an unspecified value where the integer does not exist; integers wrap;
    anything to bool_ is x != 0.
    """


@op("reshape")
def reshape(x: Tile, /, shape: Shape) -> Tile:
    """The same elements in row-major order in another shape; one entry may be -1."""


@op("permute")
def permute(x: Tile, /, axes: Sequence[int]) -> Tile:
    """Axes in another order: axis k of the result is axis axes[k] of x."""


@op("transpose")
def transpose(x: Tile, /, axis0: int | None = None, axis1: int | None = None) -> Tile:
    """Two axes swapped; without arguments, the two axes of a 2-D tile."""


@op("expand_dims")
def expand_dims(x: Tile, /, axis: int) -> Tile:
    """A new axis of length 1 at `axis`; x[:, None] does the same."""


@op("cat")
def cat(tiles: Sequence[Tile], /, axis: int) -> Tile:
    """Two tiles of one dtype and shape, one behind the other along `axis`; of one tile, that tile."""


@op("extract")
def extract(x: Tile, /, index: Index, shape: Shape) -> Tile:
    """The part of `shape` at `index` of a tile, as `load` gives it of an array.

    `index` counts parts, along each axis from 0; it may be known at run time only. Outside of the tile a constant index
    is refused, and another one gives unspecified values. With shape () the element at `index`, as a scalar.
    """


@op("insert")
def insert(x: Tile, /, index: Index, value: Tile | Scalar) -> Tile:
    """A tile like x, but for the part at `index`, as `extract` has it, which is `value`: a scalar is one element."""


@op("bitcast")
def bitcast(x: Any, /, dtype: DType) -> Tile:
    """The bits of each element as another dtype of as many bits. bool_ has none to speak of.

    As tfloat32, the lowest 13 bits are dropped. Of a NaN of 16 bits or less, it is unspecified which one it is.
    """


@op("pack_to_bytes")
def pack_to_bytes(x: Tile, /) -> Tile:
    """The bytes of a tile in row-major order, as in memory: a 1-D tile of uint8."""


@op("unpack_from_bytes")
def unpack_from_bytes(x: Tile, /, dtype: DType) -> Tile:
    """The 1-D tile of `dtype` that `pack_to_bytes` makes these bytes of, a 1-D tile of uint8."""


@op("broadcast_to")
def broadcast_to(x: Any, /, shape: Shape) -> Tile:
    """x repeated along its axes of length 1, and along new ones in front."""


# ---------------------------------------------------------------------------------------------
# Reductions. `axis`: one axis (negative from the end), a tuple of them, or None for all.


@op("sum")
def sum(
    x: Tile,
    /,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    rounding_mode: RoundingMode | None = None,
    flush_to_zero: bool = False,
) -> Tile:
    """Sum along `axis`, of x's dtype (bool: int32). 16-bit floats add up in float32.

    With a `rounding_mode` (RN, RZ, RM, RP) each sum of two is rounded so; which two is open, as without one.
    """


@op("prod")
def prod(
    x: Tile,
    /,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    rounding_mode: RoundingMode | None = None,
    flush_to_zero: bool = False,
) -> Tile:
    """Product along `axis`, of x's dtype (bool: int32). `rounding_mode` as in `sum`."""


@op("max")
def max(
    x: Tile,
    /,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    flush_to_zero: bool = False,
    propagate_nan: bool = False,
) -> Tile:
    """Largest element along `axis`; NaN if there is nothing else, or with `propagate_nan=True` if there is one."""


@op("min")
def min(
    x: Tile,
    /,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    flush_to_zero: bool = False,
    propagate_nan: bool = False,
) -> Tile:
    """Smallest element along `axis`; NaN if there is nothing else, or with `propagate_nan=True` if there is one."""


@op("argmax")
def argmax(x: Tile, /, axis: int | None = None, *, keepdims: bool = False, propagate_nan: bool = False) -> Tile:
    """Index (int32) of the first largest element along `axis`; 0 if all are NaN.

    With `propagate_nan=True` of the first NaN, if there is one. With axis None, the index into the
    elements in row-major order.
    """


@op("argmin")
def argmin(x: Tile, /, axis: int | None = None, *, keepdims: bool = False, propagate_nan: bool = False) -> Tile:
    """Index (int32) of the first smallest element along `axis`; see `argmax`."""


# ---------------------------------------------------------------------------------------------
# Scans: what has come together so far along one axis. `reverse` starts at the end of the axis.


@op("cumsum")
def cumsum(
    x: Tile,
    /,
    axis: int = 0,
    *,
    reverse: bool = False,
    rounding_mode: RoundingMode | None = None,
    flush_to_zero: bool = False,
) -> Tile:
    """Sums of the elements up to each, itself included, of x's dtype (bool: int32). 16-bit floats add up in float32;
    `rounding_mode` as in `sum`.
    """


@op("cumprod")
def cumprod(
    x: Tile,
    /,
    axis: int = 0,
    *,
    reverse: bool = False,
    rounding_mode: RoundingMode | None = None,
    flush_to_zero: bool = False,
) -> Tile:
    """Products of the elements up to each, itself included, of x's dtype (bool: int32). `rounding_mode` as in `sum`."""


@op("reduce")
def reduce(x: Any, /, axis: int, func: Callable[..., Any], identity: Any, *, keepdims: bool = False) -> Any:
    """What `func` makes of the elements along `axis`: of a tile, or of a tuple of tiles that broadcast to one shape.

    `func` takes two scalars, or two of each tile: first those that come before, then those behind them. It returns what
    they are together, a scalar or a tuple of them, of the dtypes of the tiles: `lambda a, b: a + b`, `operator.add`.
    It is associative: the elements keep their order, but may be taken together in any way. It has no branches, loops
    or accesses to memory. `identity`, a constant or a tuple of them, changes nothing that it is combined with.
    """


@op("scan")
def scan(x: Any, /, axis: int, func: Callable[..., Any], identity: Any, *, reverse: bool = False) -> Any:
    """What `func` makes of the elements up to each, itself included: see `reduce`.

    With `reverse` from the end of the axis on: what comes before an element is then what lies behind it.
    """


# ---------------------------------------------------------------------------------------------
# Matrices


@op("mma")
def mma(x: Tile, y: Tile, /, acc: Tile, *, use_fast_acc: bool = False) -> Tile:
    """x @ y + acc: (m, k) with (k, n) and (m, n), or a batch of them: (b, m, k) and so on.

    x and y have one dtype (int8 and uint8 may be mixed, and so may the two 8-bit floats); the
    accumulator's dtype is the result's:
    float16: float16 or float32; bfloat16, tfloat32, float32: float32; float64: float64;
    float8_e4m3fn, float8_e5m2: float16 or float32; int8, uint8: int32.
    Sums are made in at least the accumulator's precision, but for 8-bit floats on Hopper: its Tensor Cores keep some 14
    bits of a sum. There each 128 of k are summed so, and these sums in the accumulator's precision; with the hint
    `fp8_fast_accum` all of k is summed so. `use_fast_acc` permits it for this product.
    """


@op("mma_scaled")
def mma_scaled(x: Tile, x_scale: Tile, y: Tile, y_scale: Tile, /, acc: Tile) -> Tile:
    """The product of x and y, each block of their elements along k times its scale, and acc, which is float32.

    result[i, j] = sum of x[i, k] * x_scale[i, k // B] * y[k, j] * y_scale[k // B, j] over k, and acc[i, j]; B is the
    length of a block: 32 for float8_e4m3fn and float8_e5m2 with scales of float8_e8m0fnu, 16 or 32 for float4_e2m1fn
    with these, and 16 with scales of float8_e4m3fn. With a batch axis in front of all, or of some, as in `mma`.

    No hardware does this yet here: elements are multiplied by their scales, exactly as long as that is in the range of
    bfloat16, and multiplied as bfloat16.
    """


@op("matmul")
def matmul(x: Tile, y: Tile, /) -> Tile:
    """x @ y, promoted; of 1-D, 2-D and batched tiles. The sums are made as in `mma`."""


# ---------------------------------------------------------------------------------------------
# Checks and output


@op("static_assert")
def static_assert(condition: bool, message: str | None = None, /) -> None:
    """TileStaticAssertionError with `message` at compile time if the constant `condition` is False.

    Python computes it, as in `static_eval`.
    """


@op("assert_")
def assert_(condition: Any, /, message: str | None = None) -> None:
    """Stop the kernel where `condition`, a bool_ scalar or tile, is not True everywhere; so does Python's `assert`."""


@op("static_eval")
def static_eval(expression: Any, /) -> Any:
    """What Python makes of the expression at compile time, from constants, shapes and dtypes, with all of Python.

    What is known at run time only has no value there, but a dtype and a shape, and takes part in arithmetic. Raises
    StaticException where the expression raises.
    """


@op("static_exception")
def static_exception(exception: Any, /) -> Any:
    """`raise ct.static_exception(ValueError("..."))`: StaticException at compile time, where the capture gets there."""


@op("static_iter")
def static_iter(iterable: Any) -> Any:
    """The elements of an iterable of constant length: a loop over them is unrolled, its variable a constant.

    It stands at the head of a `for`; Python computes the iterable, as in `static_eval`.
    """


@op("assume_divisible_by")
def assume_divisible_by(x: Scalar, divisor: int) -> Scalar:
    """The integer scalar `x`, of which the program says that the constant `divisor` divides it.

    Accesses then know more of where they begin. The result is open where it is not so; check mode tells.
    """


@op("ensure_constant")
def ensure_constant(value: Any, /) -> Any:
    """`value` itself if it is a constant; TileTypeError if it is known at run time only."""


@op("print")
def print(*args: Any, sep: str = " ", end: str = "\n") -> None:
    """Print tiles, scalars, strings, and structures of them, once for each block.

    A float has the fewest digits that tell it, on a GPU up to nine; a tile of more than 64 elements has lines of 16. A
    bool is True or False; those of a tile are 1 and 0, as cuTile prints them. What stands in a structure is written as
    Python's repr() writes it. f-strings take the formats that C has, too: f"{x:8.3f}", f"{i:5}", f"{x:.1%}" of a
    number, and f"{n:08x}" and f"{n:#x}" of integers without a sign.
    """


@op("threads")
def threads(function: Callable[..., Any], /, *args: Any) -> Any:
    """Call a `@device.func` in each thread of the block: code of threads in a kernel of tiles.

    A tile among the arguments is an array in shared memory there, and what the threads leave in it is a result: a tile,
    a tuple of them, or None where no tile is given. Arrays and numbers are what they are in `cuda.device`. All threads
    begin together, and the kernel goes on when all are done; in between they meet at `device.syncthreads()`. How many
    there are is the compiler's choice: `device.block_dim.x`, a multiple of 32, in a row.
    """


@op("printf")
def printf(format: str, *args: Any) -> None:
    """Print by a constant format of C: %d %i, %u %o %x %X (the bits of an integer), %e %f %g %a and their capitals,
    %s of text.

    With flags, a width and a precision, as in "%-8.3f"; of a tile, each element. Integers are shown as integers and
    floats as floats, of any size: nothing is converted. ct.print and f-strings choose by the value.
    """


def _declare_functions() -> None:
    """Declare the functions of real numbers that the dialect's table has and the text above lacks."""
    for entry in _TABLE:
        if entry.operands != 1 or entry.result != "float" or entry.public in OPS:
            continue

        def declaration(x: Any, /) -> Any: ...

        declaration.__name__ = declaration.__qualname__ = entry.public
        declaration.__doc__ = f"{entry.summary}. Integers compute as float32."
        globals()[entry.public] = op(entry.public)(declaration)


_declare_functions()

# ---------------------------------------------------------------------------------------------
# The surface of values in tile code, shared by the front end and the reference execution

# Python's operators, by the name of the node in `ast`.
BINARY_OPERATORS: dict[str, Callable[..., Any]] = {
    "Add": add,
    "Sub": sub,
    "Mult": mul,
    "Div": truediv,
    "FloorDiv": floordiv,
    "Mod": mod,
    "Pow": pow,
    "MatMult": matmul,
    "BitAnd": bitwise_and,
    "BitOr": bitwise_or,
    "BitXor": bitwise_xor,
    "LShift": bitwise_lshift,
    "RShift": bitwise_rshift,
}
COMPARISONS: dict[str, Callable[..., Any]] = {
    "Eq": equal,
    "NotEq": not_equal,
    "Lt": less,
    "LtE": less_equal,
    "Gt": greater,
    "GtE": greater_equal,
}

# Methods of tiles: x.name(...) is the operation with x as its first argument.
TILE_METHODS: dict[str, Callable[..., Any]] = {
    "astype": astype,
    "reshape": reshape,
    "permute": permute,
    "transpose": transpose,
    "extract": extract,
    "insert": insert,
}
ARRAY_ATTRIBUTES: tuple[str, ...] = (
    *("dtype", "shape", "strides", "ndim", "slice", "tiled_view", "get_raw_memory", "foreign_pointer"),
)


def make_scalar(value: Any, dtype: DType) -> Any:
    """What `dtype(value)` gives: a scalar tile in tile code, a NumPy scalar on the host."""
    from . import interpret
    from .reference import threads

    if threads.current() is not None:
        return threads.Number(value, dtype)
    if interpret.active():
        check_scalar(dtype)
        if isinstance(value, str):
            value = float(value) if dtype.is_float else int(value)
        return interpret.OPS["astype"](constant_of(value, dtype) if type(value) in (int, float) else value, dtype)
    return dtype.numpy.type(value)
