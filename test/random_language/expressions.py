"""What a tile can be made of: each function gives an expression and its type, or None where no variable suits it."""

from __future__ import annotations

import dataclasses
from typing import Any

from tilewright import dtype as dt
from tilewright import tile as ct
from tilewright._optable import OPS

from .values import (
    FLOATS,
    INTEGERS,
    MOST,
    Error,
    Type,
    bounded,
    broadcast,
    converted,
    converts,
    either,
    eps,
    limit,
)

Found = tuple[str, Type] | None
ROUNDING = ("RN", "RZ", "RM", "RP")
FUNCTIONS = tuple(op.public for op in OPS if op.operands == 1 and op.result == "float")
PERIODIC = ("sin", "cos", "tan")
LIBRARY = ("sigmoid", "silu", "softplus", "log1p", "expm1", "asinh", "cbrt", "erf")
REDUCING = ("lambda p, q: p + q", "lambda p, q: ct.maximum(p, q)", "lambda p, q: p ^ q", "lambda p, q: p * q")


def expression(p: Any) -> tuple[str, Type]:
    """One that some variable suits."""
    for _ in range(20):
        found = p.pick(KINDS)(p)
        if found is not None and found[1].size <= MOST:
            return found
    return filled(p)


# ---- of nothing ---------------------------------------------------------------------------------------


def constant(p: Any, dtype: dt.DType) -> Any:
    if dtype.is_float:
        return p.pick([1, 2, 0, -1, 3, 7, 0.5, -2.5, 10, 0.1])
    return p.pick([1, 2, 0, 3, 7, 100] + ([-1, -2, -7, -128] if dtype.signed else []))


def small_shape(p: Any, rank: int | None = None) -> tuple[int, ...]:
    rank = p.pick([1, 2, 2, 3]) if rank is None else rank
    return tuple(p.pick([(8, 16, 64, 256), (4, 8, 1, 16, 32), (2, 4, 1, 8)][rank - 1]) for _ in range(rank))


def filled(p: Any) -> tuple[str, Type]:
    dtype, shape = p.pick([ct.int32, ct.float32, *dt.ARITHMETIC[1:]]), small_shape(p)
    form = p.pick(["zeros", "ones", "full", "arange", "number"])
    if form == "arange":
        shape, start, step = shape[:1], p.pick([0, 1, 5]), p.pick([1, 2, 3])
        text = f"ct.arange({shape[0]}, dtype=ct.{dtype}, start={start}, step={step})"
        most = start + step * shape[0]
        if most > limit(dtype):
            return f"ct.zeros({shape}, ct.{dtype})", bounded(dtype, shape, 0)
        return text, bounded(dtype, shape, most)
    if form == "number" and p.numbers:
        return f"ct.full({shape}, ct.int32({p.pick(p.numbers)}), ct.int32)", bounded(ct.int32, shape, None)
    if form == "full":
        value = constant(p, dtype)
        return f"ct.full({shape}, {value}, ct.{dtype})", bounded(dtype, shape, abs(value) if value % 1 == 0 else None)
    return f"ct.{'ones' if form == 'ones' else 'zeros'}({shape}, ct.{dtype})", bounded(dtype, shape, form == "ones")


# ---- elementwise --------------------------------------------------------------------------------------


@dataclasses.dataclass
class Pair:
    """Two variables of types that go together, and what the types become of it."""

    x: str
    y: str
    tx: Type
    ty: Type
    dtype: dt.DType
    shape: tuple[int, ...]


def two(p: Any, accept: Any, result: Any = lambda dtype: True) -> Pair | None:
    x = p.find(accept)
    if x is None:
        return None
    tx = p.tiles[x]

    def fits(ty: Type) -> bool:
        common = dt.PROMOTION[tx.dtype, ty.dtype]
        if not accept(ty) or common is None or not result(common) or broadcast(tx.shape, ty.shape) is None:
            return False
        return converts(tx.dtype, common) and converts(ty.dtype, common)

    y = p.find(fits)
    if y is None:
        return None
    ty = p.tiles[y]
    common, shape = dt.promote(tx.dtype, ty.dtype), broadcast(tx.shape, ty.shape)
    assert shape is not None
    return Pair(x, y, converted(tx, common), converted(ty, common), common, shape)


def number(dtype: dt.DType) -> bool:
    return not dtype.is_bool


def arithmetic(p: Any) -> Found:
    found = two(p, lambda t: t.exact, number)
    if found is None:
        return None
    op = p.pick("+-*")
    bounds = found.tx.bound, found.ty.bound
    bound = None if None in bounds else bounds[0] * bounds[1] if op == "*" else sum(bounds)
    if op != "*" and (found.tx.fused or found.ty.fused):
        return None
    result = bounded(found.dtype, found.shape, bound)
    if found.dtype.is_integral and not found.dtype.signed and op == "-":
        result = bounded(found.dtype, found.shape, None)
    modes = keywords(p, found.dtype)
    if op == "*" and found.dtype.is_float and result.bound is None and "rounding" not in modes:
        result = dataclasses.replace(result, fused=True)
    if modes:
        return f"ct.{ {'+': 'add', '-': 'sub', '*': 'mul'}[op] }({found.x}, {found.y}{modes})", dataclasses.replace(
            result, bound=None
        )
    return f"{found.x} {op} {found.y}", result


def keywords(p: Any, dtype: dt.DType) -> str:
    if not dtype.is_float or not p.rarely(4):
        return ""
    if dtype is ct.float32 and p.rarely(3):
        return ", flush_to_zero=True"
    return f", rounding_mode=ct.RoundingMode.{p.pick(ROUNDING)}"


def with_constant(p: Any) -> Found:
    x = p.find(lambda t: t.plain and number(t.dtype))
    if x is None:
        return None
    t, value = p.tiles[x], constant(p, p.tiles[x].dtype)
    dtype = dt.promote_constant(value, t.dtype)
    if not converts(t.dtype, dtype):
        return None
    whole = t.bound is not None and value % 1 == 0
    op, turned = p.pick("+-*"), p.rarely(3)
    bound = None if not whole else t.bound * abs(value) if op == "*" else t.bound + abs(value)
    if t.dtype.is_integral and not t.dtype.signed and op == "-":
        bound = None
    result = bounded(dtype, t.shape, bound)
    if op == "*" and dtype.is_float and result.bound is None:
        result = dataclasses.replace(result, fused=True)
    return f"{value} {op} {x}" if turned else f"{x} {op} {value}", result


def divisor(p: Any, t: Type, x: str) -> str:
    """That is neither 0 nor -1, of a variable."""
    if t.dtype.is_float:
        return f"ct.where(abs({x}) >= 1, {x}, 3)"
    return f"(({x} & 7) + 1)"


def divided(p: Any) -> Found:
    """Of integers, floats that are whole numbers, and anything by a constant."""
    if p.rarely(2):
        x = p.find(lambda t: t.plain and number(t.dtype))
        if x is None:
            return None
        t = p.tiles[x]
        value = p.pick([2, 3, 7, 10, 16] + ([-3, -8] if t.dtype.is_float or t.dtype.signed else []))
        dtype, shape, text = t.dtype, t.shape, str(value)
    else:
        found = two(p, lambda t: t.plain and t.dtype is not ct.bool_, number)
        if found is None or (found.dtype.is_float and found.ty.bound is None):
            return None
        x, dtype, shape = found.x, found.dtype, found.shape
        text = divisor(p, p.tiles[found.y], found.y)
    op = p.pick(["//", "%", "/", "cdiv", "divmod"])
    if op == "cdiv" and not dtype.is_integral:
        op = "//"
    if op == "divmod" and not dtype.is_integral:
        op = "%"
    if op == "/":
        return f"{x} / {text}", quotient(dtype, shape)
    forms = {"cdiv": f"ct.cdiv({x}, {text})", "divmod": f"ct.divmod({x}, {text})[1]"}
    return forms.get(op, f"{x} {op} {text}"), Type(dtype, tuple(shape))


def quotient(dtype: dt.DType, shape: Any) -> Type:
    """Of float32, and of what becomes it, a GPU may round twice below the normal numbers."""
    real = dtype if dtype.is_float else ct.float32
    error = Error(2.0**-23, 2.0**-149) if real is ct.float32 else Error()
    return Type(real, tuple(shape), None, False, error)


def bits(p: Any) -> Found:
    found = two(p, lambda t: not t.dtype.is_float)
    if found is None or p.tiles[found.x].dtype is not p.tiles[found.y].dtype:  # bits are not converted
        return None
    op = p.pick("&|^")
    bound = 1 if found.dtype.is_bool else None
    return f"{found.x} {op} {found.y}", Type(found.dtype, found.shape, bound)


def shifted(p: Any) -> Found:
    found = two(p, lambda t: t.dtype.is_integral)
    if found is None:
        return None
    most = found.dtype.bits - 1
    count = p.pick([f"({found.y} & {min(most, 63)})", str(p.draws.below(most + 1))])
    shape = found.shape if found.y in count else p.tiles[found.x].shape
    dtype = found.dtype if found.y in count else p.tiles[found.x].dtype
    if found.y not in count:
        count = str(int(count) % dtype.bits)
    return f"{found.x} {p.pick(['<<', '>>'])} {count}", Type(dtype, shape)


def compared(p: Any) -> Found:
    found = two(p, lambda t: t.exact)
    if found is None:
        return None
    return f"{found.x} {p.pick(['<', '<=', '==', '!=', '>', '>='])} {found.y}", bounded(ct.bool_, found.shape, 1)


def chosen(p: Any) -> Found:
    condition = p.find(lambda t: t.dtype.is_bool)
    found = two(p, lambda t: True)
    if condition is None or found is None:
        return None
    shape = broadcast(found.shape, p.tiles[condition].shape)
    if shape is None:
        return None
    return f"ct.where({condition}, {found.x}, {found.y})", either(found.tx, found.ty, found.dtype, shape)


def extreme(p: Any) -> Found:
    found = two(p, lambda t: True, number)
    if found is None:
        return None
    more = ", propagate_nan=True" if found.dtype.is_float and p.rarely(3) else ""
    text = f"ct.{p.pick(['minimum', 'maximum'])}({found.x}, {found.y}{more})"
    return text, either(found.tx, found.ty, found.dtype, found.shape)


def unary(p: Any) -> Found:
    x = p.find(lambda t: True)
    if x is None:
        return None
    t = p.tiles[x]
    if t.dtype.is_bool:
        return f"~{x}", t
    forms = ["-{}", "abs({})", "ct.negative({})"] + (["~{}"] if t.dtype.is_integral else [])
    if t.dtype.is_float and t.plain:
        forms += ["ct.floor({})", "ct.ceil({})", "ct.relu({})", "ct.clip({}, -2, 3)"]
    form = p.pick(forms)
    bound = t.bound
    if t.dtype.is_integral and (form[0] == "~" or not t.dtype.signed):
        bound = None
    if "clip" in form:
        bound = None if bound is None else 3
    return form.format(x), bounded(t.dtype, t.shape, bound, fused=t.fused, error=t.error)


def tested(p: Any) -> Found:
    x = p.find(lambda t: t.dtype.is_float and t.exact)
    return (f"ct.isnan({x})", bounded(ct.bool_, p.tiles[x].shape, 1)) if x else None


def function(p: Any) -> Found:
    """A function of real numbers, whose result is only near the reference's."""
    x = p.find(lambda t: t.dtype.is_float and t.plain)
    if x is None:
        return None
    t, name = p.tiles[x], p.pick([*FUNCTIONS, *LIBRARY])
    unit = eps(t.dtype)
    relative = 2 * unit if t.dtype.bits == 16 else 64 * unit if name in LIBRARY else 16 * unit
    absolute = max(1e-6 if t.dtype.bits == 16 else 4 * unit if name in PERIODIC else 0, 2.0**-126)
    if name in LIBRARY:
        absolute = max(absolute, 2.0**-100)
    return f"ct.{name}({x})", Type(t.dtype, t.shape, None, False, Error(relative, absolute))


def angle(p: Any) -> Found:
    found = two(p, lambda t: t.dtype.is_float and t.plain)
    if found is None:
        return None
    unit = eps(found.dtype)
    error = Error(2 * unit if found.dtype.bits == 16 else 64 * unit, 2.0**-100)
    # which zero a sum or a maximum of zeros has is open, and -0.0 is half a turn from 0.0
    return f"ct.atan2({found.x} + 0.0, {found.y} + 0.0)", Type(found.dtype, found.shape, None, False, error)


def random_bits(p: Any) -> Found:
    """Of counters, which a tile of integers is."""
    x = p.find(lambda t: t.dtype.is_integral and t.dtype.bits <= 32)
    if x is None:
        return None
    text = f"ct.philox({p.pick([0, 7, 2**40])}, {x}.astype(ct.uint32), {p.pick([0, 3])})[{p.draws.below(4)}]"
    return text, Type(ct.uint32, p.tiles[x].shape)


def power(p: Any) -> Found:
    x = p.find(lambda t: t.dtype.is_integral)
    return (f"{x} ** {p.pick([2, 0, 1, 3, 5])}", Type(p.tiles[x].dtype, p.tiles[x].shape)) if x else None


# ---- other dtypes -------------------------------------------------------------------------------------


def cast(p: Any) -> Found:
    x = p.find(lambda t: True)
    if x is None:
        return None
    t = p.tiles[x]
    targets = [d for d in dt.ARITHMETIC if converts(t.dtype, d) and (t.plain or d.is_float)]
    target = p.pick(targets)
    if t.dtype.is_float and target.is_integral:
        low = -100 if target.signed else 0
        text = f"ct.clip(ct.where(ct.isnan({x}), 0, {x}), {low}, 100)"
        return f"({text}).astype(ct.{target})", bounded(target, t.shape, 100)
    if t.dtype.is_integral and target.is_integral:
        kept = t.bound is not None and t.bound <= limit(target) and (target.signed or not t.dtype.signed)
        return f"{x}.astype(ct.{target})", Type(target, t.shape, t.bound if kept else None)
    if target.is_bool:
        return f"{x}.astype(ct.bool_)", bounded(target, t.shape, 1)
    return f"{x}.astype(ct.{target})", converted(t, target)


def narrow(p: Any) -> Found:
    """There and back through a dtype that nothing is computed in."""
    x = p.find(lambda t: t.dtype.is_float and t.plain and t.dtype is not ct.float64)
    if x is None:
        return None
    target = p.pick(["float8_e4m3fn", "float8_e5m2", "tfloat32", "float4_e2m1fn"])
    back = p.pick(FLOATS)
    t = p.tiles[x]
    text = x if target != "float4_e2m1fn" else f"ct.where(ct.isnan({x}), 1, {x})"
    return f"({text}).astype(ct.{target}).astype(ct.{back})", Type(back, t.shape)


def reinterpreted(p: Any) -> Found:
    """Integers' bits as those of another dtype."""
    x = p.find(lambda t: t.dtype.is_integral)
    if x is None:
        return None
    t = p.tiles[x]
    if p.rarely(3) and t.size * t.dtype.itemsize <= MOST:
        target = p.pick([d for d in INTEGERS if t.size * t.dtype.itemsize >= d.itemsize])
        text = f"ct.unpack_from_bytes(ct.pack_to_bytes({x}), ct.{target})"
        return text, Type(target, (t.size * t.dtype.itemsize // target.itemsize,))
    target = p.pick([d for d in (*INTEGERS, *FLOATS) if d.bits == t.dtype.bits])
    return f"ct.bitcast({x}, ct.{target})", Type(target, t.shape)


# ---- shapes -------------------------------------------------------------------------------------------


def reshaped(p: Any) -> Found:
    x = p.find(lambda t: True)
    if x is None:
        return None
    t = p.tiles[x]
    shapes = [(t.size,), (1, *t.shape), (t.size, 1)]
    shapes += [(n, t.size // n) for n in (2, 4, 8) if n <= t.size]
    shapes += [(2, 2, t.size // 4)] if t.size >= 4 else []
    shape = p.pick(shapes)
    text = p.pick([f"{x}.reshape({shape})", f"ct.reshape({x}, {(*shape[:-1], -1)})"])
    return text, t.of_shape(shape)


def turned(p: Any) -> Found:
    x = p.find(lambda t: len(t.shape) >= 2)
    if x is None:
        return None
    t = p.tiles[x]
    axes = list(range(len(t.shape)))
    for i in range(len(axes) - 1, 0, -1):
        j = i - p.draws.below(i + 1)
        axes[i], axes[j] = axes[j], axes[i]
    shape = tuple(t.shape[a] for a in axes)
    if len(axes) == 2 and p.rarely(2):
        return p.pick([f"{x}.T", f"ct.transpose({x})"]), t.of_shape(t.shape[::-1])
    return f"ct.permute({x}, {tuple(axes)})", t.of_shape(shape)


def spread(p: Any) -> Found:
    x = p.find(lambda t: len(t.shape) < 4)
    if x is None:
        return None
    t = p.tiles[x]
    axis = p.draws.below(len(t.shape) + 1)
    shape = (*t.shape[:axis], 1, *t.shape[axis:])
    if p.rarely(2):
        return f"ct.expand_dims({x}, {axis})", t.of_shape(shape)
    wide = tuple(p.pick([2, 4, 8]) if n == 1 else n for n in shape)
    return f"ct.broadcast_to(ct.expand_dims({x}, {axis}), {wide})", t.of_shape(wide)


def joined(p: Any) -> Found:
    x = p.find(lambda t: len(t.shape) > 0)
    if x is None:
        return None
    t = p.tiles[x]
    y = p.find(lambda u: u.dtype is t.dtype and u.shape == t.shape)
    axis = p.draws.below(len(t.shape))
    shape = (*t.shape[:axis], 2 * t.shape[axis], *t.shape[axis + 1 :])
    return f"ct.cat(({x}, {y}), axis={axis - p.pick([0, len(shape)])})", either(t, p.tiles[y], t.dtype, shape)


def part(p: Any) -> Found:
    """A part of a tile, at an index that is known or not; or the tile with another part there."""
    x = p.find(lambda t: t.size > 1)
    if x is None:
        return None
    t = p.tiles[x]
    shape = tuple(max(1, n // p.pick([1, 2, 4])) for n in t.shape)
    index = [place(p, n // m) for n, m in zip(t.shape, shape, strict=True)]
    at = f"({', '.join(index)},)"
    if p.rarely(2):
        return f"ct.extract({x}, {at}, {shape})", t.of_shape(shape)
    value = p.find(lambda u: u.dtype is t.dtype and u.shape == shape and u.exact)
    if value is None or not t.exact:
        return None
    return f"ct.insert({x}, {at}, {value})", either(t, p.tiles[value], t.dtype, t.shape)


def place(p: Any, count: int) -> str:
    """An index below that."""
    if count == 1:
        return "0"
    return p.pick([str(p.draws.below(count)), f"ct.int32({p.pick(p.numbers)}) % {count}"])


def flipped(p: Any) -> Found:
    x = p.find(lambda t: len(t.shape) > 0 and t.size <= 256)
    if x is None:
        return None
    return f"ct.flip({x}, {p.draws.below(len(p.tiles[x].shape))})", p.tiles[x]


# ---- reductions, scans, orders, products --------------------------------------------------------------


def axis_of(p: Any, t: Type) -> tuple[str, tuple[int, ...]]:
    """As an argument, and which axes these are."""
    rank = len(t.shape)
    axes = [(str(a), (a,)) for a in range(rank)] + [("None", tuple(range(rank))), ("-1", (rank - 1,))]
    if rank > 2:
        axes += [("(0, 2)", (0, 2))]
    return p.pick(axes)


def without(shape: tuple[int, ...], axes: tuple[int, ...], keep: bool) -> tuple[int, ...]:
    if keep:
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def reduced(p: Any) -> Found:
    x = p.find(lambda t: len(t.shape) > 0 and t.exact)
    if x is None:
        return None
    t = p.tiles[x]
    text, axes = axis_of(p, t)
    keep = p.rarely(2)
    shape = without(t.shape, axes, keep)
    ops = ["max", "min"] if number(t.dtype) else []
    if not t.dtype.is_float:
        ops += ["sum", "prod"]
    elif t.bound is not None and t.bound * t.size <= limit(t.dtype):
        ops += ["sum"]
    op = p.pick(ops) if ops else "max"
    if not ops:
        return None
    more = ", propagate_nan=True" if t.dtype.is_float and op != "sum" and p.rarely(3) else ""
    more = keywords(p, t.dtype) if t.dtype.is_float and op == "sum" else more  # the sum is exact, however it is rounded
    bound = t.bound if op in ("max", "min") else None
    if op == "sum" and (t.bound is not None or t.dtype.is_bool):
        bound = (t.bound or 1) * t.size
    dtype = ct.int32 if t.dtype.is_bool else t.dtype
    result = bounded(dtype, shape, bound, fused=t.fused and op in ("max", "min"))
    return f"ct.{op}({x}, axis={text}, keepdims={keep}{more})", result


def first_of(p: Any) -> Found:
    x = p.find(lambda t: len(t.shape) > 0 and t.exact and number(t.dtype))
    if x is None:
        return None
    t = p.tiles[x]
    axis = p.pick([*range(len(t.shape)), None])
    keep = p.rarely(3)
    shape = without(t.shape, tuple(range(len(t.shape))) if axis is None else (axis,), keep)
    more = ", propagate_nan=True" if t.dtype.is_float and p.rarely(3) else ""
    text = f"ct.{p.pick(['argmax', 'argmin'])}({x}, axis={axis}, keepdims={keep}{more})"
    return text, bounded(ct.int32, shape, t.size)


def scanned(p: Any) -> Found:
    x = p.find(lambda t: len(t.shape) > 0 and t.exact)
    if x is None:
        return None
    t = p.tiles[x]
    if t.dtype.is_float and (t.bound is None or t.bound * t.size > limit(t.dtype)):
        return None
    op = "cumsum" if t.dtype.is_float else p.pick(["cumsum", "cumprod"])
    bound = t.bound * t.size if op == "cumsum" and t.bound is not None else None
    dtype = ct.int32 if t.dtype.is_bool else t.dtype
    more = ", reverse=True" if p.rarely(2) else ""
    more += keywords(p, t.dtype) if op == "cumsum" else ""
    return f"ct.{op}({x}, axis={p.draws.below(len(t.shape))}{more})", bounded(dtype, t.shape, bound)


def combined(p: Any) -> Found:
    """A reduction or scan by a function of the program."""
    x = p.find(lambda t: len(t.shape) > 0 and t.dtype.is_integral)
    if x is None:
        return None
    t = p.tiles[x]
    number = p.draws.below(len(REDUCING))
    neutral = [0, t.dtype.min, 0, 1][number]
    axis = p.draws.below(len(t.shape))
    return scanned_or_reduced(p, f"{x}, {axis}, {REDUCING[number]}, {neutral}", t, axis)


def scanned_or_reduced(p: Any, arguments: str, t: Type, axis: int) -> tuple[str, Type]:
    if p.rarely(2):
        reverse = ", reverse=True" if p.rarely(2) else ""
        return f"ct.scan({arguments}{reverse})", Type(t.dtype, t.shape)
    keep = p.rarely(2)
    return f"ct.reduce({arguments}, keepdims={keep})", Type(t.dtype, without(t.shape, (axis,), keep))


def combined_pairs(p: Any) -> Found:
    """A reduction or scan of two tiles: of functions a t + b in their order, or of the largest and a sum."""
    x = p.find(lambda t: len(t.shape) > 0 and t.dtype.is_integral)
    if x is None:
        return None
    t = p.tiles[x]
    y = p.find(lambda u: u.dtype is t.dtype and broadcast(u.shape, t.shape) == t.shape)
    function, neutral = p.pick(
        [("lambda a, b, c, d: (a * c, b * c + d)", (1, 0)), ("lambda a, b, c, d: (max(a, c), b + d)", (t.dtype.min, 0))]
    )
    axis, part = p.draws.below(len(t.shape)), p.draws.below(2)
    text, kind = scanned_or_reduced(p, f"({x}, {y}), {axis}, {function}, {neutral}", t, axis)
    return f"{text}[{part}]", kind


def ordered(p: Any) -> Found:
    x = p.find(lambda t: len(t.shape) > 0 and t.size <= 128 and t.exact and number(t.dtype) and t.dtype.bits <= 32)
    if x is None:
        return None
    t = p.tiles[x]
    down = p.pick([False, True])
    if p.rarely(2):
        return f"ct.argsort({x}, -1, {down})", bounded(ct.int32, t.shape, t.size)
    return f"ct.sort({x}, -1, {down})", dataclasses.replace(t, fused=False)


def product(p: Any) -> Found:
    """Of small numbers, so that every sum is exact."""
    x = p.find(lambda t: len(t.shape) == 2 and t.exact and number(t.dtype) and min(t.shape) >= 4)
    if x is None:
        return None
    t = p.tiles[x]
    factor = p.pick(["float16", "bfloat16", "int8", "float32"])
    result = "int32" if factor == "int8" else "float32"
    left = f"ct.where({x} > 3, 2, -1).astype(ct.{factor})"
    right = f"ct.where({x} == 0, 1, 2).astype(ct.{factor}).T"
    shape = (t.shape[0], t.shape[0])
    text = p.pick([f"ct.mma({left}, {right}, ct.ones({shape}, ct.{result}))", f"ct.matmul({left}, {right})"])
    dtype = getattr(ct, result if text.startswith("ct.mma") else factor)
    return text, bounded(dtype, shape, 4 * t.shape[1] + 1)


def scaled_product(p: Any) -> Found:
    """Of small 8-bit floats with a scale for each 32."""
    x = p.find(lambda t: len(t.shape) == 2 and t.exact and number(t.dtype) and t.shape[0] >= 4 and t.shape[1] >= 32)
    if x is None:
        return None
    rows, k = p.tiles[x].shape
    kinds = p.pick([("float8_e4m3fn", "float8_e4m3fn"), ("float8_e5m2", "float8_e4m3fn")])
    left = f"ct.where({x} > 3, 2, -1).astype(ct.{kinds[0]})"
    right = f"ct.where({x} == 0, 1, 2).astype(ct.{kinds[1]}).T"
    scale = f"ct.full({{}}, {p.pick([1, 2, 4])}, ct.float32).astype(ct.float8_e8m0fnu)"
    scales = scale.format((rows, k // 32)), scale.format((k // 32, rows))
    acc = f"ct.ones({(rows, rows)}, ct.float32)"
    text = f"ct.mma_scaled({left}, {scales[0]}, {right}, {scales[1]}, {acc})"
    return text, bounded(ct.float32, (rows, rows), 16 * 4 * k + 1)


# ---- functions of threads, for each element --------------------------------------------------------------


def mapped(p: Any) -> Found:
    x = p.find(lambda t: t.dtype is ct.int32 and t.shape != ())  # of one element it is tile code, put in its place
    if x is None:
        return None
    t = p.tiles[x]
    form = p.pick(["stepped", "either_of", "followed"])
    if form == "stepped":
        return f"stepped({x}, {p.pick([*p.numbers, '1', '-2'])})", Type(ct.int32, t.shape)
    if form == "followed":
        places = next((a for a in p.arrays if a.dtype is ct.int32 and len(a.shape) == 2 and a.shape[0] >= 4), None)
        if places is None or places.seed is None or places.name[0] != "X":
            return None
        return f"followed({places.name}, {x})", bounded(ct.int32, t.shape, 3)
    y = p.find(lambda u: u.dtype is ct.int32 and broadcast(u.shape, t.shape) is not None)
    shape = broadcast(t.shape, p.tiles[y].shape)
    assert shape is not None
    return f"either_of({x}, {y})", Type(ct.int32, shape)


# ---- Python around them -------------------------------------------------------------------------------


def same(p: Any) -> tuple[str, str, Type] | None:
    """Two variables of one dtype and shape, and the type of what may be either."""
    x = p.find(lambda t: True)
    if x is None:
        return None
    t = p.tiles[x]
    y = p.find(lambda u: u.dtype is t.dtype and u.shape == t.shape)
    return x, y, either(t, p.tiles[y], t.dtype, t.shape)


def selected(p: Any) -> Found:
    """By Python: a conditional expression, an element of a tuple, list or dict, a lambda's result."""
    from .control import condition

    found = same(p)
    if found is None:
        return None
    x, y, result = found
    forms = [f"{x} if {condition(p)} else {y}", f"({x}, {y})[{p.draws.below(2)}]", f'{{"a": {x}, "b": {y}}}["b"]']
    forms += [f"(lambda s, t: {p.pick(['s', 't'])})({x}, t={y})", f"[t for t in ({x}, {y})][-1]"]
    forms += [f"tuple(t for t in ({x}, {y}) if True)[1]", f"dict(a={x}, b={y})['a']", f"[*({x},), {y}][1]"]
    forms += [f"({x}, {y})[ct.static_eval(3 - 2)]", f"{{k: t for k, t in zip((2, 5), ({x}, {y}))}}[5]"]
    forms += [f"Both({x}, {y}).{p.pick(['first', 'second'])}", f"dataclasses.replace(Both({x}), second={y}).second"]
    forms += [f"{{Kind.LOW: {x}, Kind.HIGH: {y}}}[Kind('high')]", f"{x} if Kind.LOW is Kind(1) else {y}"]
    return p.pick(forms), result


def called(p: Any) -> Found:
    """By functions beside the kernel: one that calls itself, one with a loop, defaults and keyword-only parameters."""
    x = p.find(lambda t: t.plain and t.dtype.is_integral)
    if x is None:
        return None
    t = p.tiles[x]
    factor = f"{p.pick(p.numbers)} % 3" if t.dtype is ct.int32 else p.pick(["1", "3"])
    text = p.pick([f"raised({x}, {p.draws.below(4)})", f"folded({x}, {x}, times=1)", f"folded({x}, by={factor})"])
    return text, Type(t.dtype, t.shape)


KINDS = (
    [arithmetic] * 4
    + [with_constant] * 4
    + [compared, chosen, extreme, bits, shifted, unary, cast] * 2
    + [divided, tested, function, power, narrow, reinterpreted]
    + [reshaped, turned, spread, joined, part] * 2
    + [flipped, reduced, reduced, first_of, scanned, combined, combined_pairs, ordered, product, selected, filled]
    + [function, function, angle, random_bits, scaled_product, selected, called, mapped, mapped]
)
