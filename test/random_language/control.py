"""Statements: assignments, and what Python puts around them."""

from __future__ import annotations

import dataclasses
from typing import Any

from .expressions import expression
from .memory import assign, atomic, load, use_scratch
from .values import Type, broadcast, limit

SMALL = 1009  # scalars stay below


def statement(p: Any) -> None:
    p.pick(NESTED if p.depth < 4 else FLAT)(p)


def block(p: Any) -> None:
    """The statements of a block, of which the last one changes something outside of it."""
    with p.inner():
        outer = list(p.tiles), list(p.numbers)
        for _ in range(p.draws.below(3)):
            statement(p)
        update(p, *outer)


# ---- scalars ------------------------------------------------------------------------------------------


def operand(p: Any) -> str:
    return p.pick([*p.numbers[::-1], "1", "0", "3", "-2", "8"])


def scalar(p: Any) -> str:
    """An expression of integers whose value is small."""
    x, y = operand(p), operand(p)
    form = p.pick(
        [
            f"({{}} + {{}}) % {SMALL}",
            f"({{}} * 3 - {{}}) % {SMALL}",
            f"({{}} - {{}}) % {SMALL}",
            "{} // 2 + {} % 7",
            "min({}, {}) % 100",
            "max({}, {}, 4) % 100",
            f"({{}} if {condition(p, 1)} else {{}}) % 100",
            f"abs({{}} - {{}}) % {SMALL}",
            "int({} > {})",
            f"(({p.name('q')} := {{}}) + {{}}) % {SMALL}",
            "({} and {}) % 100",
            "({} or {}) % 100",
        ]
    )
    return form.format(x, y)


def condition(p: Any, depth: int = 0) -> str:
    x, y, z = operand(p), operand(p), operand(p)
    comparison = p.pick(["<", "<=", "==", "!=", ">", ">="])
    forms = [f"{x} {comparison} {y}", f"({x} + {y}) % 3 == {p.draws.below(3)}", f"{x} < {y} <= {z}"]
    if p.flags:
        forms.append(p.pick(p.flags))
    text = p.pick(forms)
    if depth == 0 and p.rarely(3):
        text = p.pick(["not ({})", "({} and {})", "({} or {})"]).format(text, condition(p, 1))
    return text


def set_number(p: Any) -> None:
    text = scalar(p)
    if p.rarely(6):
        text = of_tile(p) or text
    old = [x for x in p.numbers if x not in p.kept]
    if old and p.rarely(2):
        return p.emit(f"{p.pick(old)} = {text}")
    name = p.name("s")
    p.emit(f"{name} = {text}")
    p.numbers.append(name)
    return None


def of_tile(p: Any) -> str | None:
    x = p.find(lambda t: t.dtype.is_bool and t.shape != ())
    return f"ct.sum({x}) % {SMALL}" if x else None


def set_flag(p: Any) -> None:
    name = p.name("f")
    p.emit(f"{name} = {condition(p)}")
    p.flags.append(name)


# ---- tiles --------------------------------------------------------------------------------------------


def define(p: Any) -> None:
    assign(p, *expression(p))


def update(p: Any, tiles: Any = None, numbers: Any = None) -> None:
    """A new value of the same type for a variable, or for a scalar."""
    names = [x for x in (p.tiles if tiles is None else tiles) if p.tiles[x].plain]
    scalars = [x for x in (p.numbers if numbers is None else numbers) if x not in p.kept]
    if names and not (scalars and p.rarely(4)):
        name = p.pick(names[::-1])
        return p.emit(f"{name} = {changed(p, name)}")
    if scalars:
        return p.emit(f"{p.pick(scalars)} = {scalar(p)}")
    return p.emit("pass")


def changed(p: Any, name: str) -> str:
    """An expression of the variable's type."""
    t = p.tiles[name]
    other = p.find(lambda u: u.plain and fits(t, u)) or name
    if t.dtype.is_bool:
        return p.pick([f"~{name}", f"{name} ^ {other}", f"{name} & {other}", f"{name} | ~{other}"])
    if t.bound is not None:
        top = int(min(t.bound, limit(t.dtype)))
        low = -top if t.dtype.is_float or t.dtype.signed else 0
        whole = p.tiles[other]
        if whole.bound is None or whole.bound + t.bound > limit(t.dtype):
            other = name
        inner = f"{name} + {other}" if 2 * t.bound <= limit(t.dtype) else name
        return f"ct.minimum(ct.maximum({inner}, {low}), {top})"
    forms = [f"{name} + {p.pick([3, 1, 7])}", f"{name} - {other}", f"ct.maximum({name}, {other})", f"{name} + {other}"]
    if t.dtype.is_integral:
        forms += [f"{name} * 2", f"{name} ^ {other}", f"{name} >> 1", f"{name} * {other} + 1", f"~{name}"]
    else:
        forms += [f"-{name}", f"ct.floor({name})", f"abs({name})"]
    if p.tiles[other].shape == t.shape and p.tiles[other].dtype is t.dtype:
        forms += [other, f"ct.where({name} > {other}, {other}, {name})"]
    return p.pick(forms)


def fits(t: Type, u: Type) -> bool:
    """Whether a sum of both has the type of the first."""
    return u.dtype is t.dtype and broadcast(t.shape, u.shape) == t.shape


def augmented(p: Any) -> None:
    x = p.find(lambda t: t.plain and t.bound is None and not t.dtype.is_bool)
    if x is None:
        return define(p)
    t = p.tiles[x]
    other = p.find(lambda u: u.plain and fits(t, u)) or x
    return p.emit(f"{x} {p.pick(['+=', '-='])} {p.pick([other, '1', '2'])}")


def exchange(p: Any) -> None:
    """Several targets at once."""
    x = p.find(lambda t: True)
    y = p.find(lambda u: x is not None and p.tiles[x].holds(u) and u.holds(p.tiles[x]))
    if x is None or y is None:
        return define(p)
    if p.rarely(2):
        return p.emit(f"{x}, {y} = {y}, {x}")
    v, w = p.name("v"), p.name("v")
    p.emit(f"{v}, ({w},) = {x}, ({y},)")
    p.tiles |= {v: p.tiles[x], w: p.tiles[y]}
    return None


# ---- blocks -------------------------------------------------------------------------------------------


def branch(p: Any) -> None:
    p.emit(f"if {condition(p)}:")
    block(p)
    for _ in range(p.pick([0, 0, 1])):
        p.emit(f"elif {condition(p)}:")
        block(p)
    if p.rarely(2):
        p.emit("else:")
        block(p)


def match(p: Any) -> None:
    p.emit(f"match ({operand(p)}) % 4:")
    p.depth += 1
    for case in ("0", "1 | 2", "_"):
        p.emit(f"case {case}:")
        block(p)
    p.depth -= 1


def sorted_out(p: Any) -> None:
    """A match on an enumeration, of which one case is there when the program runs."""
    name = p.name("e")
    p.emit(f"{name} = {p.pick(['Kind.LOW', 'Kind.HIGH', 'Kind(None)'])}", f"match {name}:")
    p.depth += 1
    for case in ("Kind.LOW", "Kind.HIGH | Kind.NONE"):
        p.emit(f"case {case}:")
        block(p)
    p.depth -= 1


def recorded(p: Any) -> None:
    """A loop that carries a dataclass, whose parts are variables of its body."""
    x = p.find(lambda t: t.plain)
    if x is None:
        return define(p)
    name, part, number = p.name("r"), p.name("v"), p.name("k")
    p.emit(f"{name} = Both({x}, {scalar(p)})")
    p.emit(f"for {number} in range(({operand(p)}) % 4):")
    with p.inner():
        p.tiles[part] = p.tiles[x]
        p.numbers.append(number)
        p.kept.add(number)
        p.emit(f"{part} = {name}.first")
        p.emit(f"{part} = {changed(p, part)}")
        p.emit(f"{name} = dataclasses.replace({name}, first={part}, second=({name}.second + {number}) % {SMALL})")
        if p.rarely(3):
            p.emit(f"if {condition(p)}:", "    break")
    p.emit(f"{x} = {name}.first")
    s = p.name("s")
    p.emit(f"{s} = {name}.second")
    p.numbers.append(s)
    return None


def counted(p: Any) -> None:
    name = p.name("i")
    x = operand(p)
    bounds = p.pick([f"({x}) % 5", "3", f"1, ({x}) % 6", f"({x}) % 5, -3, -2", f"0, 9, ({x}) % 3 + 2", "4, 0, -1", "0"])
    after = p.rarely(3)  # its variable has a value behind it, too
    if after:
        p.emit(f"{name} = -7")
    p.emit(f"for {name} in range({bounds}):")
    body(p, [name])
    if after:
        p.numbers.append(name)


def repeated(p: Any) -> None:
    name = p.name("w")
    p.kept.add(name)  # the loop ends
    p.emit(f"{name} = 0")
    test = f"{name} < 5 and ({condition(p, 1)})" if p.rarely(2) else f"{name} < {p.pick([3, 1, 4])}"
    p.emit(p.pick([f"while {test}:", f"while ({name} < 4) & ({condition(p, 1)}):"]), f"    {name} += 1")
    body(p, [name])


def listed(p: Any) -> None:
    """Over what is known when the program is compiled, and over tiles."""
    name, number = p.name("i"), p.name("k")
    x = p.find(lambda t: t.plain)
    if x is not None and p.rarely(2):
        y = p.find(lambda u: u.plain and p.tiles[x].holds(u))
        p.emit(f"for {number}, {name} in enumerate(({x}, {y})):")
        with p.inner():
            p.tiles[name] = p.tiles[x]
            p.numbers.append(number)
            p.emit(f"{x} = {changed(p, x)}")
        return
    p.emit(p.pick([f"for {name} in (1, 4, 2):", f"for {name}, {number} in zip((3, 1), (0, 2)):"]))
    static = [name, number] if "zip" in p.lines[-1] else [name]
    body(p, static, leaves=False)


def unrolled(p: Any) -> None:
    """A loop of static_iter, which may be left, too."""
    name = p.name("i")
    p.emit(p.pick([f"for {name} in ct.static_iter(range(3)):", f"for {name} in ct.static_iter([2, 0]):"]))
    body(p, [name])


def within(p: Any) -> None:
    """A `with`, whose manager is a generator of constants."""
    name = p.name("c")
    p.emit(f"with doubled({p.pick([3, 1])}) as {name}:")
    with p.inner():
        p.numbers.append(name)
        p.kept.add(name)
        outer = list(p.tiles), [x for x in p.numbers if x != name]
        statement(p)
        update(p, *outer)


def promised(p: Any) -> None:
    """What holds: an assertion, or a number that is a multiple."""
    if p.rarely(2):
        return p.emit(p.pick(["assert n0 >= 0, 'n0'", "ct.assert_(b > -1)", "ct.static_assert(True)"]))
    name = p.name("s")
    p.emit(f"{name} = ct.assume_divisible_by({operand(p)} * 8, 8) % {SMALL}")
    p.numbers.append(name)
    return None


def body(p: Any, numbers: list[str], leaves: bool = True) -> None:
    """Of a loop, with what may end it or one of its turns, and an `else`."""
    with p.inner():
        p.numbers += numbers
        outer = list(p.tiles), [x for x in p.numbers if x not in numbers]
        p.loops.append("loop")
        for _ in range(p.draws.below(3)):
            statement(p)
        if leaves and p.rarely(3):
            p.emit(f"if {condition(p)}:", f"    {p.pick(['break', 'continue'])}")
        update(p, *outer)
        p.loops.pop()
    if p.rarely(4):
        p.emit("else:")
        block(p)


def leave(p: Any) -> None:
    """A loop, a nested function, or the kernel."""
    if p.loops and p.loops[-1] == "loop" and p.rarely(2):
        p.emit(f"if {condition(p)}:", f"    {p.pick(['break', 'continue'])}")
    elif p.returns is not None:
        p.emit(f"if {condition(p)}:", f"    return {returned(p)}")
    elif p.rarely(8):
        p.emit(f"if {condition(p)}:", "    return")
    else:
        define(p)


def returned(p: Any) -> str:
    assert p.returns is not None
    return changed(p, "t")


def nested(p: Any) -> None:
    """A function with statements of its own, which is called at once."""
    x = p.find(lambda t: t.plain)
    if x is None or p.returns is not None:
        return define(p)
    t = dataclasses.replace(p.tiles[x])
    name, s = p.name("h"), p.pick([*p.numbers[::-1], "2"])
    p.emit(f"def {name}(t, n, more={p.pick([1, 0, 5])}):")
    loops, p.loops, p.returns = p.loops, [], t
    with p.inner():
        p.tiles, p.numbers, p.flags = {"t": t}, ["n", "more", "n0", "n1", "b"], []
        for _ in range(p.draws.below(3)):
            statement(p)
        p.emit(f"return {returned(p)}")
    p.loops, p.returns = loops, None
    assign(p, p.pick([f"{name}({x}, {s})", f"{name}({x}, n={s}, more=2)"]), t)
    return None


FLAT = [define] * 6 + [
    update,
    augmented,
    exchange,
    set_number,
    set_flag,
    load,
    use_scratch,
    use_scratch,
    atomic,
    leave,
    promised,
]
NESTED = [
    *FLAT,
    *[define] * 4,
    branch,
    branch,
    counted,
    counted,
    repeated,
    listed,
    nested,
    match,
    sorted_out,
    recorded,
    unrolled,
    within,
]
