"""Accesses to arrays: what a program reads, what it writes and reads again, atomics, and its results."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from tilewright import dtype as dt
from tilewright import tile as ct

from .arrays import LAYOUTS, Plan
from .expressions import place, small_shape
from .values import Type

DTYPES = (ct.int32, ct.float32, *dt.ARITHMETIC)
PADDINGS = ("ZERO", "ZERO", "NEG_ZERO", "NAN", "POS_INF", "NEG_INF")
ATOMICS = ("add", "max", "min", "and", "or", "xor")


def assign(p: Any, text: str, type_: Type) -> str:
    name = p.name("v")
    p.emit(f"{name} = {text}")
    p.tiles[name] = type_
    return name


# ---- what is only read --------------------------------------------------------------------------------


def inputs(p: Any) -> None:
    for _ in range(1 + p.draws.below(3)):
        load(p)


def load(p: Any) -> None:
    """A tile of a new array, by one of the accesses."""
    rank = p.pick([2, 1, 3])
    dtype, tile = p.pick(DTYPES), small_shape(p, rank)
    extents = tuple(max(1, n * p.pick([1, 2, 3]) + p.pick([0, 0, -1, 1, 3])) for n in tile)
    bound = p.pick([None, 3, 100]) if not dtype.is_bool else 1
    plan = Plan(p.name("X"), dtype, extents, bound, p.pick(LAYOUTS), p.draws.below(1 << 16))
    p.array(plan)
    form = p.pick([plain, plain, order, view, part, gather, rows, element, foreign, offsets, flat, flat])
    text, type_ = form(p, plan, tile)
    assign(p, text, type_)


def padding(p: Any, plan: Plan) -> tuple[str, float | None]:
    """What is outside of the array, and what this makes of the elements' bound."""
    mode = p.pick(PADDINGS) if plan.dtype.is_float else "ZERO"
    return f"padding_mode=ct.PaddingMode.{mode}", plan.bound if "ZERO" in mode else None


def index(p: Any, plan: Plan, tile: Any) -> str:
    """Of a tile of that shape, sometimes outside of the array."""
    return f"({', '.join(place(p, -(-n // m) + 1) for n, m in zip(plan.shape, tile, strict=True))},)"


def plain(p: Any, plan: Plan, tile: Any) -> tuple[str, Type]:
    mode, bound = padding(p, plan)
    return f"ct.load({plan.name}, {index(p, plan, tile)}, {tile}, {mode})", Type(plan.dtype, tile, bound)


def order(p: Any, plan: Plan, tile: Any) -> tuple[str, Type]:
    mode, bound = padding(p, plan)
    axes = p.pick(["'F'", str(tuple(range(len(tile)))[::-1]), "'C'"])
    text = f"ct.load({plan.name}, {index(p, plan, tile)}, {tile}, order={axes}, {mode})"
    return text, Type(plan.dtype, tile, bound)


def view(p: Any, plan: Plan, tile: Any) -> tuple[str, Type]:
    mode, bound = padding(p, plan)
    steps = tuple(p.pick([n, max(1, n // 2), n + 1]) for n in tile)
    more = "" if p.rarely(2) else f", traversal_steps={steps}"
    text = f"{plan.name}.tiled_view({tile}, {mode}{more}).load({index(p, plan, tile)})"
    return text, Type(plan.dtype, tile, bound)


def part(p: Any, plan: Plan, tile: Any) -> tuple[str, Type]:
    mode, bound = padding(p, plan)
    axis = p.draws.below(len(tile))
    start = p.draws.below(plan.shape[axis])
    stop = start + p.draws.below(plan.shape[axis] - start + 1)
    begin = p.pick([str(start), f"{start} + n0 * 0"])
    text = f"ct.load({plan.name}.slice({axis}, {begin}, {stop}), {index(p, plan, tile)}, {tile}, {mode})"
    return text, Type(plan.dtype, tile, bound)


def gather(p: Any, plan: Plan, tile: Any) -> tuple[str, Type]:
    places = [indices(p, extent, count) for extent, count in zip(plan.shape, tile, strict=True)]
    text = f"({', '.join(along(x, axis, len(tile)) for axis, x in enumerate(places))},)"
    value = p.pick([0, 1, 7])
    more = f", padding_value={value}" if value and not plan.dtype.is_bool else ""
    mask = p.find(lambda t: t.dtype.is_bool and t.shape == tile)
    more += f", mask={mask}" if mask and p.rarely(2) else ""
    bound = plan.bound if plan.bound is None or plan.bound >= value else value
    return f"ct.gather({plan.name}, {text}{more})", Type(plan.dtype, tile, bound)


def indices(p: Any, extent: int, count: int) -> str:
    """A tile of indices, some of them outside of the array."""
    own = p.find(lambda t: t.dtype is ct.int32 and t.shape == (count,))
    if own is not None and p.rarely(2):
        return f"({own} % {extent + 2} - 1)"
    step, start = p.pick([1, 1, 2, -1, 3]), p.pick([0, 1, -1, extent - 1])
    return f"(ct.arange({count}, dtype=ct.int32) * {step} + {start})"


def along(tile: str, axis: int, rank: int) -> str:
    if rank == 1:
        return tile
    return f"{tile}[{', '.join(':' if i == axis else 'None' for i in range(rank))}]"


def rows(p: Any, plan: Plan, tile: Any) -> tuple[str, Type]:
    mode, bound = padding(p, plan)
    axis = p.draws.below(len(tile))
    entries = [f"ct.Slice({p.draws.below(n)}, {m})" for n, m in zip(plan.shape, tile, strict=True)]
    entries[axis] = indices(p, plan.shape[axis], tile[axis])
    return f"ct.load_advanced_indexing({plan.name}, ({', '.join(entries)},), {mode})", Type(plan.dtype, tile, bound)


def foreign(p: Any, plan: Plan, tile: Any) -> tuple[str, Type]:
    """As an array of its own over the same memory; where no axis is contiguous, or strides are negative, as it is."""
    if plan.layout in ("steps", "backwards"):
        return plain(p, plan, tile)
    mode, bound = padding(p, plan)
    name, turned = plan.name, p.rarely(2)
    lengths = p.pick([f"{name}.shape", str(plan.shape), f"tuple(n * 1 for n in {name}.shape)"])
    axes, last = ("[::-1]", tile[::-1]) if turned else ("", tile)
    text = f"ct.Array.from_foreign({name}.foreign_pointer, {lengths}{axes}, {name}.strides{axes})"
    return f"ct.load({text}, {index(p, turned_plan(plan) if turned else plan, last)}, {last}, {mode})", Type(
        plan.dtype, last, bound
    )


def turned_plan(plan: Plan) -> Plan:
    return dataclasses.replace(plan, shape=plan.shape[::-1])


def offsets(p: Any, plan: Plan, tile: Any) -> tuple[str, Type]:
    """Elements by their distance from the first one, along the axis that is contiguous."""
    if plan.layout == "steps" or (plan.layout == "backwards" and len(tile) == 1):
        return plain(p, plan, tile)
    extent, count = plan.shape[0 if plan.layout == "columns" else -1], tile[-1]
    at = f"ct.arange({count}, dtype=ct.int32)"
    text = f"{plan.name}.get_raw_memory().load_offset({at}, mask={at} < {min(extent, p.pick([extent, 3]))})"
    return text, Type(plan.dtype, (count,), plan.bound)


def flat(p: Any, plan: Plan, tile: Any) -> tuple[str, Type]:
    """Rows of an array of one dimension, by offsets; wrapped around, cut off by a mask, or neither."""
    if len(tile) != 2:
        return gather(p, plan, tile)
    rows, pitch = plan.shape[0], p.pick([tile[1], tile[1] + 3, 2 * tile[1], max(1, tile[1] // 2)])
    p.arrays[-1] = plan = dataclasses.replace(plan, shape=(rows * pitch,), layout="plain")
    text, mask = flat_places(p, tile, rows, pitch)
    return f"ct.gather({plan.name}, {text}{mask})", Type(plan.dtype, tile, plan.bound)


def flat_places(p: Any, tile: Any, rows: int, pitch: int) -> tuple[str, str]:
    """Offsets of rows of this length, and a mask of those within some bounds."""
    first = p.pick(["0", f"b * {tile[0]}", f"(b % 2) * {tile[0]}", p.pick(p.numbers)])
    row = f"({first} + ct.arange({tile[0]}, dtype=ct.int32))"
    column = f"(ct.arange({tile[1]}, dtype=ct.int32) + {p.pick(['0', str(tile[1]), '1'])})"
    wrapped = f"({row} % {p.pick([rows, 3])})" if p.rarely(2) else row
    mask = p.pick(["", f"({row} < {rows})[:, None]", f"({column} < {pitch})[None, :]"])
    mask = p.pick([mask, f"({row} < {rows})[:, None] & ({column} < {pitch})[None, :]"])
    shaped = f", mask=ct.broadcast_to({mask}, {tuple(tile)})" if mask else ""
    return f"{wrapped}[:, None] * {pitch} + {column}[None, :]", shaped


def element(p: Any, plan: Plan, tile: Any) -> tuple[str, Type]:
    """One element: a scalar."""
    at = ", ".join(place(p, n) for n in plan.shape)
    return f"ct.load({plan.name}, ({at},), shape=())", Type(plan.dtype, (), plan.bound)


# ---- what is written and read again -------------------------------------------------------------------


@dataclasses.dataclass
class Scratch:
    """An array with rows for each block, which writes and reads them as it likes."""

    plan: Plan
    rows: int
    columns: int


def scratch(p: Any) -> Scratch:
    rows, columns = p.pick([4, 8, 2]), p.pick([8, 16, 4, 32])
    dtype = p.pick([ct.int32, ct.float32, ct.int16, ct.float16, ct.int64, ct.uint8])
    plan = Plan("S", dtype, (p.blocks, 2 * rows, columns), 3 if dtype.is_float else None, "plain", 1)
    return Scratch(plan, rows, columns)


def use_scratch(p: Any) -> None:
    s = p.scratch
    if s.plan not in p.arrays:
        p.array(s.plan)
    p.pick([write, read])(p, s)


def storable(p: Any, s: Scratch, shape: Any) -> str:
    """A value for the scratch array of that shape."""
    kind = Type(s.plan.dtype, shape, s.plan.bound)
    name = p.find(kind.holds)
    return name or f"ct.full({shape}, {p.pick([1, 0, 2, 3])}, ct.{s.plan.dtype})"


def write(p: Any, s: Scratch) -> None:
    shape = (p.pick([s.rows, 1, 2]), s.columns)
    value = storable(p, s, shape)
    at = place(p, 2 * s.rows // shape[0])
    form = p.pick(["store", "slice", "view", "steps", "scatter"])
    if form == "scatter":
        p.emit(f"ct.scatter(S, (b, {scrambled(p, s, shape[0])}[:, None], {columns(s)}[None, :]), {value})")
    elif form == "slice":
        p.emit(f"ct.store(S.slice(0, b, b + 1), (0, {at}, 0), ({value}).reshape({(1, *shape)}))")
    elif form == "steps":
        view, index = stepped_rows(p, s, shape)
        p.emit(f"{view}.store({index}, ({value}).reshape({(1, *shape)}))")
    elif form == "view":
        p.emit(f"S.tiled_view({(1, *shape)}).store((b, {at}, 0), ({value}).reshape({(1, *shape)}))")
    else:
        p.emit(f"ct.store(S, (b, {at}, 0), ({value}).reshape({(1, *shape)}))")


def stepped_rows(p: Any, s: Scratch, shape: Any) -> tuple[str, str]:
    """A view of tiles of rows that overlap, or have gaps between them, and the index of one within the array."""
    step = p.pick([shape[0] + 1, max(1, shape[0] // 2)])
    at = place(p, (2 * s.rows - shape[0]) // step + 1)
    return f"S.tiled_view({(1, *shape)}, traversal_steps={(1, step, s.columns)})", f"(b, {at}, 0)"


def columns(s: Scratch) -> str:
    return f"ct.arange({s.columns}, dtype=ct.int32)"


def scrambled(p: Any, s: Scratch, count: int) -> str:
    """Rows, each once, in some order."""
    return f"((ct.arange({count}, dtype=ct.int32) * {p.pick([1, 3, 5])} + {p.draws.below(2 * s.rows)}) % {2 * s.rows})"


def read(p: Any, s: Scratch) -> None:
    shape = (p.pick([s.rows, 1, 2]), s.columns)
    type_ = Type(s.plan.dtype, shape, s.plan.bound)
    if p.rarely(3):
        text = f"ct.gather(S, (b, {scrambled(p, s, shape[0])}[:, None], {columns(s)}[None, :]))"
    elif p.rarely(3):
        view, index = stepped_rows(p, s, shape)
        text = f"{view}.load({index}).reshape({shape})"
    else:
        at = place(p, 2 * s.rows // shape[0])
        text = f"ct.load(S, (b, {at}, 0), {(1, *shape)}).reshape({shape})"
    assign(p, text, type_)


# ---- atomics ------------------------------------------------------------------------------------------


def atomic(p: Any) -> None:
    """All blocks at the same elements, in an order that does not matter; what was there is not asked."""
    x = p.find(lambda t: t.dtype in (ct.int32, ct.int64, ct.uint32, ct.uint64) and 0 < len(t.shape) < 4)
    if x is None:
        return use_scratch(p)
    t = p.tiles[x]
    if p.rarely(3):
        return exchange(p, x)
    plan = Plan(p.name("A"), t.dtype, tuple(max(1, n + p.pick([0, -1, 2])) for n in t.shape), None, "plain", 3)
    p.array(plan)
    kind = p.pick(ATOMICS)
    if p.rarely(3):
        p.emit(f"{plan.name}.tiled_view({t.shape}).atomic_store_{kind}({(0,) * len(t.shape)}, {x})")
        return None
    places = [indices(p, extent, count) for extent, count in zip(plan.shape, t.shape, strict=True)]
    at = f"({', '.join(along(place, axis, len(places)) for axis, place in enumerate(places))},)"
    p.emit(f"ct.atomic_{kind}({plan.name}, {at}, {x})")
    return None


def exchange(p: Any, x: str) -> None:
    """Each block at elements of its own, each once: what was there is a value."""
    t = p.tiles[x]
    plan = Plan(p.name("A"), t.dtype, (p.blocks, t.size + 3), None, "plain", 4)
    p.array(plan)
    at = f"(b, (ct.arange({t.size}, dtype=ct.int32) * {p.pick([1, -1])} + {p.pick([0, t.size - 1, 2])}))"
    kind = p.pick([*ATOMICS, "xchg", "cas"])
    operands = f"{x}.reshape(({t.size},))"
    operands = f"1, {operands}" if kind == "cas" else operands
    assign(p, f"ct.atomic_{kind}({plan.name}, {at}, {operands})", Type(t.dtype, (t.size,)))


# ---- results ------------------------------------------------------------------------------------------


def outputs(p: Any) -> None:
    """Each variable that is left, in an array of its own with a place for each block."""
    for name, t in p.tiles.items():
        p.emit(f"ct.static_assert({name}.dtype == ct.{t.dtype} and {name}.shape == {t.shape})")
        if t.shape:
            output(p, name, t)
        else:
            plan = Plan(p.name("Z"), t.dtype, (p.blocks,), error=t.error)
            p.emit(f"ct.scatter({p.array(plan)}, b, {name})")


def flat_output(p: Any, name: str, t: Type, plan: Plan) -> None:
    """In an array of one dimension, whose rows may be shorter than the tile's."""
    rows, columns = t.shape
    length = plan.shape[-1]
    p.arrays[-1] = dataclasses.replace(plan, shape=(p.blocks * rows * length,), layout="plain")
    row = f"(b * {rows} + ct.arange({rows}, dtype=ct.int32))"
    column = f"ct.arange({columns}, dtype=ct.int32)"
    mask = f", mask=ct.broadcast_to(({column} < {length})[None, :], {t.shape})" if length < columns else ""
    p.emit(f"ct.scatter({plan.name}, {row}[:, None] * {length} + {column}[None, :], {name}{mask})")


def output(p: Any, name: str, t: Type) -> None:
    short = p.pick([0, 0, 1])  # the array may be shorter than the tile
    shape = (p.blocks, *t.shape[:-1], max(1, t.shape[-1] - short))
    plan = Plan(p.name("Z"), t.dtype, shape, None, p.pick(LAYOUTS), None, t.error)
    z, at = p.array(plan), "(b, " + "0, " * len(t.shape) + ")"
    tile = f"{name}.reshape({(1, *t.shape)})"
    form = p.pick(["store", "store", "order", "view", "mask", "flat"])
    if form == "flat" and len(t.shape) == 2:
        return flat_output(p, name, t, plan)
    if form == "order":
        axes = tuple(range(len(t.shape) + 1))[::-1]
        turned = f"ct.permute({tile}, {axes})"
        first = "0, " * len(t.shape)
        p.emit(f"ct.store({z}, ({first}b), {turned}, order={p.pick([repr('F'), str(axes)])})")
    elif form == "view":
        p.emit(f"{z}.tiled_view({(1, *t.shape)}).store({at}, {tile})")
    elif form == "mask":
        count = functools.reduce(lambda x, y: x * y, t.shape)
        where = [f"ct.arange({n}, dtype=ct.int32)" for n in t.shape]
        places = ", ".join(along(x, axis, len(where)) for axis, x in enumerate(where))
        mask = p.find(lambda u: u.dtype.is_bool and u.shape == t.shape) if count > 1 else None
        p.emit(f"ct.scatter({z}, (b, {places}), {name}{f', mask={mask}' if mask else ''})")
    else:
        p.emit(f"ct.store({z}, {at}, {tile})")
