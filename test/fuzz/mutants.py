"""Mutants of IR: the modules of the lit tests, changed in a few places, through passes and whole lowerings.

A mutant is parsed in this process; what does not parse is no case for a pass. Then it goes through the passes that its
test names, through one of the others, and from its stage to code. Each must refuse it with a diagnostic or make of it
what the verifier accepts.
"""

from __future__ import annotations

import contextlib
import functools
import random
import re
from pathlib import Path

from mesh import FINE, Base, Kind, Outcome

from tilewright import _core
from tilewright.compile import EMIT_ASSEMBLY
from tilewright.errors import TileError

ROOT = Path(__file__).resolve().parents[2]
NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    4,
    7,
    8,
    16,
    17,
    31,
    32,
    33,
    64,
    128,
    255,
    256,
    1024,
    4096,
    65536,
    2**20,
    2**31 - 1,
    2**31,
    2**32,
    2**63 - 1,
    -(2**63),
)
ELEMENTS = (
    "f32",
    "f16",
    "bf16",
    "f64",
    "tf32",
    "i1",
    "i8",
    "i16",
    "i32",
    "i64",
    "ui8",
    "ui32",
    "f8E4M3FN",
    "f8E5M2",
    "f8E8M0FNU",
    "f4E2M1FN",
    "index",
    "i7",
)
TARGETS = ("sm_90a", "sm_80", "sm_89", "sm_100a", "cpu", "bogus")

_NUMBER = re.compile(r"(?<![\w%#.])-?\d+(?![\w.])")
_ELEMENT = re.compile(r"(?<=x)(?:f32|f16|bf16|i32|i8|i1|f64)\b|\b(?:f32|f16|bf16|i32|i64|i1)\b")
_VALUE = re.compile(r"%[A-Za-z_0-9]+")
_EXTENT = re.compile(r"(?<=[<x])\d+(?=x)")
_OP = re.compile(r"\b(?:tile|arith|math|scf)\.[a-z_0-9]+")
_WORD = re.compile(r"(?<= )(?:zero|nan|undetermined|add|mul|min|max|argmax|argmin|eq|ne|slt|lt|gt)\b")
_ATTRIBUTE = re.compile(r"tile\.[a-z_]+ = [^,}]+|tile\.[a-z_]+(?=[,}])")


@functools.cache
def seeds() -> list[tuple[str, list[str]]]:
    """The modules of the lit tests, each with the passes of its RUN lines."""
    found = []
    for path in (
        sorted(ROOT.glob("test/lowering/**/*.mlir"))
        + sorted(ROOT.glob("test/dialect/*.mlir"))
        + sorted(ROOT.glob("test/simt/**/*.mlir"))
    ):
        text = path.read_text()
        passes = re.findall(r"\btile-[a-z0-9-]+", "\n".join(re.findall(r"RUN:.*", text)))
        plain = re.sub(r"^\s*//(?! -----).*$\n?", "", text, flags=re.MULTILINE)
        found += [
            (piece.strip(), list(dict.fromkeys(passes)))
            for piece in re.split(r"^// -----.*$", plain, flags=re.MULTILINE)
        ]
    return [(piece, passes) for piece, passes in found if "func.func" in piece]


@functools.cache
def lines_of_all() -> list[str]:
    return [line for piece, _ in seeds() for line in piece.splitlines() if "=" in line or "tile." in line]


@functools.cache
def ops_of_all() -> list[str]:
    return sorted({op for piece, _ in seeds() for op in _OP.findall(piece)})


@functools.cache
def attributes_of_all() -> list[str]:
    return sorted({a for piece, _ in seeds() for a in _ATTRIBUTE.findall(piece)})


@functools.cache
def anchors() -> dict[str, str]:
    """Of each pass of ours, what it runs on."""
    rows = re.findall(
        r'TW_PASS\([A-Z]+, [A-Z]+, ([A-Z]+),\s*"([a-z0-9-]+)"', (ROOT / "lowering/passes.def").read_text()
    )
    return {name: "func.func" if anchor == "FUNCTION" else "builtin.module" for anchor, name in rows}


def replace_one(text: str, pattern: re.Pattern[str], new: list[str], pick: random.Random) -> str:
    places = list(pattern.finditer(text))
    if not places:
        return text
    place = pick.choice(places)
    return text[: place.start()] + pick.choice(new) + text[place.end() :]


def extents(pick: random.Random) -> list[str]:
    return [str(pick.choice((1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 2048, 2**15, 2**20, 2**30, 3, 0, 2**40)))]


def change_number(text: str, pick: random.Random) -> str:
    return replace_one(text, _NUMBER, [str(pick.choice(NUMBERS))], pick)


def change_element(text: str, pick: random.Random) -> str:
    return replace_one(text, _ELEMENT, list(ELEMENTS), pick)


def change_element_everywhere(text: str, pick: random.Random) -> str:
    found = _ELEMENT.findall(text)
    return re.sub(rf"(?<=x){pick.choice(found)}\b", pick.choice(ELEMENTS), text) if found else text


def change_extent(text: str, pick: random.Random) -> str:
    return replace_one(text, _EXTENT, extents(pick), pick)


def change_extent_everywhere(text: str, pick: random.Random) -> str:
    """So that types still agree."""
    found = _EXTENT.findall(text)
    return re.sub(rf"(?<=[<x]){pick.choice(found)}(?=x)", extents(pick)[0], text) if found else text


def change_operand(text: str, pick: random.Random) -> str:
    return replace_one(text, _VALUE, _VALUE.findall(text) or [""], pick)


def change_op(text: str, pick: random.Random) -> str:
    return replace_one(text, _OP, ops_of_all(), pick)


def change_word(text: str, pick: random.Random) -> str:
    return replace_one(
        text, _WORD, ["zero", "nan", "undetermined", "add", "mul", "min", "max", "argmax", "eq", "lt"], pick
    )


def change_attribute(text: str, pick: random.Random) -> str:
    return replace_one(text, _ATTRIBUTE, attributes_of_all(), pick)


def change_target(text: str, pick: random.Random) -> str:
    return re.sub(r'tile\.target = "[^"]*"', f'tile.target = "{pick.choice(TARGETS)}"', text)


def drop_line(text: str, pick: random.Random) -> str:
    lines = text.splitlines() or [""]
    del lines[pick.randrange(len(lines))]
    return "\n".join(lines)


def repeat_line(text: str, pick: random.Random) -> str:
    """Its results get names of their own."""
    lines = text.splitlines() or [""]
    at = pick.randrange(len(lines))
    lines.insert(at + 1, re.sub(r"^(\s*%\w+)", r"\1_again", lines[at]))
    return "\n".join(lines)


def foreign_line(text: str, pick: random.Random) -> str:
    lines = text.splitlines() or [""]
    lines.insert(pick.randrange(len(lines)), pick.choice(lines_of_all()))
    return "\n".join(lines)


CHANGES = (
    *(change_number, change_element_everywhere, change_extent_everywhere, change_attribute, change_target) * 3,
    *(change_operand, change_op, change_word) * 2,
    change_element, change_extent, drop_line, repeat_line, foreign_line,
)  # fmt: skip


def mutant(number: int) -> tuple[str, list[str], random.Random]:
    """Its text, the passes of its test, and what else is to be chosen."""
    pick = random.Random(number)
    text, passes = pick.choice(seeds())
    for _ in range(pick.choice((0, 1, 1, 1, 2, 2, 3, 5))):
        text = pick.choice(CHANGES)(text, pick)
    if pick.random() < 0.5:
        hints = f"tile.hints = {{num_warps = {pick.choice((1, 4, 8))} : i32}}"
        head = r"^(\s*func\.func [^{]*\))( attributes \{[^}]*\})? \{$"
        text = re.sub(head, rf"\1 attributes {{tile.kernel, {hints}}} {{", text, flags=re.MULTILINE)
    if "module attributes" not in text and pick.random() < 0.8:
        text = f'module attributes {{tile.target = "{pick.choice(TARGETS)}"}} {{\n{text}\n}}'
    return text, passes, pick


def pipeline(name: str) -> str:
    return f"builtin.module({f'func.func({name})' if anchors().get(name) == 'func.func' else name})"


def plans(passes: list[str], pick: random.Random) -> list[list[str]]:
    """Series of pipelines; "code" stands for all that is left to do."""
    own = [pipeline(name) for name in passes]
    other = [pipeline(pick.choice(list(anchors())))]
    return [own, other, ["code"]]


def through(text: str, plan: list[str]) -> Outcome:
    module = _core.parse(text)
    for step in plan:
        try:
            module.lower("llvm") if step == "code" else module.run(step)
        except TileError:
            return Outcome(Kind.REFUSED)
        try:
            module.verify()
        except TileError as error:
            return Outcome(Kind.INVALID, f"{step} makes what the verifier refuses: {str(error)[:400]}")
        if step == "code":
            with contextlib.suppress(TileError):
                module.emit(EMIT_ASSEMBLY)
    return FINE


class Mesh(Base):
    limit = 60.0

    def source(self, number: int) -> str:
        text, passes, pick = mutant(number)
        return f"{text}\n\n// {plans(passes, pick)}\n"

    def case(self, number: int) -> Outcome:
        text, passes, pick = mutant(number)
        try:
            _core.parse(text)
        except TileError:
            return Outcome(Kind.UNREAD)
        outcomes = [through(text, plan) for plan in plans(passes, pick)]
        return next((o for o in outcomes if o.kind is Kind.INVALID), outcomes[0])
