"""What PTX does with registers that goes wrong on a GPU, and which `emulate.py` cannot see.

Upper halves are shifted out of numbers of 64 bits (`lowering/ptx.c` says why). From its first `wgmma` to the wait that
covers the last one, an accumulator is neither read nor written by anything but products that add to all of it, and
registers of a left operand are not written:

    for finding in misused(ptx): print(finding)
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

REGISTER = re.compile(r"%(?!tid|ntid|ctaid|nctaid|laneid|warpid|clock|cluster|dynamic)\w+")
NO_RESULT = re.compile(
    r"(st|bar|barrier|bra|ret|exit|trap|mbarrier\.(?!test_wait|try_wait)|cp|fence|red|wgmma|membar|setmaxnreg|griddep|"
    r"prefetch|stmatrix|discard|nanosleep|brx|call)\b"
)
MOST_GROUPS = 9


@dataclasses.dataclass(frozen=True)
class Group:
    """Registers of products that are waited for together."""

    sums: frozenset[str] = frozenset()
    operands: frozenset[str] = frozenset()

    def __or__(self, other: Group) -> Group:
        return Group(self.sums | other.sums, self.operands | other.operands)


Flight = tuple[Group, ...]  # the open group, then the last one that was closed, …


@dataclasses.dataclass
class Statement:
    line: int
    text: str
    label: str = ""

    @property
    def opcode(self) -> str:
        return re.sub(r"^@!?%?\w+\s+", "", self.text).split(None, 1)[0]

    def lists(self) -> list[list[str]]:
        return [REGISTER.findall(part) for part in re.findall(r"\{([^}]*)\}", self.text)]


def statements(ptx: str) -> Iterator[Statement]:
    """Of a module with one kernel. Labels of a block of inline assembly get names of their own."""
    body = ptx[ptx.index("{", ptx.index(".entry")) + 1 :]
    first = ptx[: len(ptx) - len(body)].count("\n") + 1
    scope = 0
    for number, line in enumerate(body.splitlines(), first):
        scope += "begin inline asm" in line
        line = line.split("//")[0]
        for piece in re.findall(r"[$\w]+:|(?:\{[^{};]*\}|[^{};])+(?=;)", line):
            name = piece.strip()
            if name.endswith(":"):
                yield Statement(number, "", name[:-1] if name.startswith("$") else f"{name[:-1]} {scope}")
            elif name and not name.startswith("."):
                target = re.search(r"\bbra(?:\.uni)?\s+([$\w]+)$", name)
                local = target and not target[1].startswith("$")
                yield Statement(number, f"{name} {scope}" if local else name)


def product(flight: Flight, s: Statement) -> tuple[Flight, str]:
    sums, *rest = s.lists()
    d, a = frozenset(sums), frozenset(rest[0]) if rest else frozenset()
    under_way = frozenset().union(*(group.sums for group in flight))
    problem = "a product adds to a part of a sum" if d & under_way and not d <= under_way else ""
    problem = "a product reads a sum under way" if a & under_way else problem
    return (flight[0] | Group(d, a), *flight[1:]), problem


def other(flight: Flight, s: Statement) -> str:
    """What a statement that is no product does with registers of products."""
    registers = REGISTER.findall(re.sub(r"^@!?%\w+", "", s.text))
    guard = set(REGISTER.findall(s.text)) - set(registers)
    written: set[str] = set()
    if not NO_RESULT.match(s.opcode):
        lists = s.lists()
        rest = s.text.split(None, 1)[1] if s.text.startswith("@") else s.text
        vector = lists and rest.split(None, 1)[1].startswith("{")
        written = set(lists[0]) if vector else set(registers[:1])
    read = guard | set(registers) - written
    for group in flight:
        if written & (group.sums | group.operands):
            return f"writes {sorted(written & (group.sums | group.operands))[0]} of a product under way"
        if read & group.sums:
            return f"reads {sorted(read & group.sums)[0]}, the sum of a product under way"
    return ""


def step(flight: Flight, s: Statement) -> tuple[Flight, str]:
    opcode = s.opcode
    if opcode.startswith("wgmma.mma_async"):
        return product(flight, s)
    if opcode.startswith("wgmma.commit_group"):
        return (Group(), *flight)[:MOST_GROUPS], ""
    if opcode.startswith("wgmma.wait_group"):
        return flight[: 1 + int(s.text.split()[-1])], ""
    return flight, other(flight, s)


def merged(x: Flight | None, y: Flight) -> Flight:
    if x is None:
        return y
    longer, shorter = (x, y) if len(x) >= len(y) else (y, x)
    return (*(a | b for a, b in zip(longer, shorter, strict=False)), *longer[len(shorter) :])


def misused(ptx: str) -> list[str]:
    return [*unpacked(ptx), *(products_misused(ptx) if "wgmma" in ptx else [])]


def unpacked(ptx: str) -> list[str]:
    """Upper halves of numbers of 64 bits that are not shifted out: ptxas multiplies those of products wrongly."""
    return [f"`{line.strip()}` has to be a shift" for line in ptx.splitlines() if re.search(r"mov\.b64\s+\{_,", line)]


def products_misused(ptx: str) -> list[str]:
    code = list(statements(ptx))
    places = {s.label: i for i, s in enumerate(code) if s.label}
    before: list[Flight | None] = [None] * (len(code) + 1)
    before[0], queue, findings = (Group(),), [0], {}
    while queue:
        at = queue.pop()
        flight = before[at]
        while at < len(code) and flight is not None:
            s = code[at]
            targets = [at + 1]
            if s.text:
                flight, problem = step(flight, s)
                if problem:
                    findings[s.line] = f"line {s.line}: {s.text[:60]}: {problem}"
                branch = re.search(r"\bbra(?:\.uni)?\s+(\S.*)$", s.text)
                if branch:
                    targets = [places[branch[1]], *([at + 1] if s.text.startswith("@") else [])]
                elif s.opcode in ("ret", "exit"):
                    targets = [] if not s.text.startswith("@") else targets
            new = []
            for target in targets:
                joined = merged(before[target], flight)
                if joined != before[target]:
                    before[target] = joined
                    new.append(target)
            queue += new[1:]
            at = new[0] if new else len(code)
            flight = before[at] if new else None
    return [findings[line] for line in sorted(findings)]
