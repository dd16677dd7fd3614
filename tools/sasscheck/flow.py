"""Control flow of a sequence of steps, and which of them a value comes from.

One graph serves both sides: machine code (`sass_graph`) and PTX (ptx.py).
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import re
import struct
from collections.abc import Iterator

from .listing import Instruction, Kernel

ENTRY = -1  # a value that nothing has written


@dataclasses.dataclass(frozen=True)
class Step:
    """What a step does to registers, whatever their names are."""

    writes: frozenset[str]
    guard: str = ""  # @P0, @!P0: it may not run
    copies: tuple[tuple[str, str], ...] = ()  # (to, from): the same value, elsewhere
    constant: int | None = None  # what it writes, whatever came before
    line: int = 0  # of the PTX


@dataclasses.dataclass(frozen=True)
class Graph:
    steps: list[Step]
    targets: list[tuple[int, ...]]  # where each step may go on, but for the one behind
    falls: list[bool]  # whether it may go on behind

    @functools.cached_property
    def leaders(self) -> list[int]:
        """Where basic blocks begin."""
        jumps = (i + 1 for i, t in enumerate(self.targets) if t or not self.falls[i])
        entered = (t for targets in self.targets for t in targets)
        return sorted({0, *jumps, *entered} - {len(self.steps)})

    @functools.cached_property
    def ends(self) -> list[int]:
        return [*self.leaders[1:], len(self.steps)]

    def block_of(self, at: int) -> int:
        return bisect.bisect_right(self.leaders, at) - 1

    @functools.cached_property
    def successors(self) -> list[list[int]]:
        found = []
        for end in self.ends:
            behind = [end] if self.falls[end - 1] and end < len(self.steps) else []
            found.append(sorted({self.block_of(at) for at in (*self.targets[end - 1], *behind)}))
        return found

    @functools.cached_property
    def predecessors(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.leaders]
        for block, targets in enumerate(self.successors):
            for target in targets:
                found[target].append(block)
        return found

    @functools.cached_property
    def _writers(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for at, step in enumerate(self.steps):
            for register in step.writes:
                found.setdefault(register, []).append(at)
        return found

    def _writers_in(self, block: int, end: int, register: str) -> Iterator[int]:
        """Steps of a block before a place that write a register, the last one first."""
        writers = self._writers.get(register, [])
        begin = bisect.bisect_left(writers, self.leaders[block])
        yield from reversed(writers[begin : bisect.bisect_left(writers, end)])

    def definitions(self, at: int, register: str) -> set[int]:
        """The steps whose value the register may hold before a step; ENTRY where there may be none."""
        found: set[int] = set()
        todo = [(self.block_of(at), at, frozenset[str]())]
        seen = set()
        while todo:
            block, end, guards = todo.pop()
            left = self._through(block, end, register, guards, found)
            if left is None:
                continue
            if block == 0:
                found.add(ENTRY)
            new = {(p, self.ends[p], left) for p in self.predecessors[block]} - seen
            seen |= new
            todo += new
        return found

    def _through(
        self, block: int, end: int, register: str, guards: frozenset[str], found: set[int]
    ) -> frozenset[str] | None:
        """Back through a block: adds the writers; returns the guards under which there was one, or None."""
        for writer in self._writers_in(block, end, register):
            guards = self._still_known(guards, writer + 1, end)
            guard, end = self.steps[writer].guard, writer
            if guard not in guards:  # else a later step has written it wherever this one does
                found.add(writer)
            if not guard or negated(guard) in guards:
                return None
            guards |= {guard}
        return self._still_known(guards, self.leaders[block], end)

    def _still_known(self, guards: frozenset[str], begin: int, end: int) -> frozenset[str]:
        """Those whose predicate has the same value before the steps as behind them."""
        return frozenset(g for g in guards if not any(begin <= w < end for w in self._writers.get(predicate(g), [])))

    def values(self, at: int, register: str) -> dict[str, int]:
        """What a register may hold before a step, as constants and lines of the PTX; the step that wrote each."""
        return {self.value(d): d for d in sorted(self.roots(at, register))}

    def value(self, definition: int) -> str:
        if definition == ENTRY:
            return "nothing"
        step = self.steps[definition]
        return f"line {step.line}" if step.constant is None else f"{step.constant:#x}"

    def roots(self, at: int, register: str) -> set[int]:
        """As `definitions`, of the value: where a step only copies, what it copies."""
        found: set[int] = set()
        todo, seen = [(at, register)], {(at, register)}
        while todo:
            at, register = todo.pop()
            for definition in self.definitions(at, register):
                source = dict(self.steps[definition].copies).get(register) if definition != ENTRY else None
                if source is None:
                    found.add(definition)
                elif (definition, source) not in seen:
                    seen.add((definition, source))
                    todo.append((definition, source))
        return found


def negated(guard: str) -> str:
    return "@" + guard[2:] if guard.startswith("@!") else "@!" + guard[1:]


def predicate(guard: str) -> str:
    return guard.lstrip("@!")


def sass_graph(kernel: Kernel) -> Graph:
    """Subroutines (division and the like) are a step each: what a call does is what any instruction of them does."""
    flow = [control(kernel, at) for at in range(len(kernel.instructions))]
    steps = [sass_step(kernel, i) for i in kernel.instructions]
    return Graph(steps, [targets for targets, _ in flow], [falls for _, falls in flow])


def control(kernel: Kernel, at: int) -> tuple[tuple[int, ...], bool]:
    """Where an instruction may go on, and whether behind."""
    i = kernel.instructions[at]
    name = i.opcode.split(".")[0]
    named = re.findall(r"`\(([.$\w]+)\)|(\.L_x_\d+)", i.operands)
    targets = tuple(kernel.labels[a or b] for a, b in named if (a or b) in kernel.labels)
    if name in ("BRA", "BRX", "JMP", "JMX", "BRXU"):
        sure = (
            not i.guard and not re.search(r"\bU?P\d", i.operands) and ".DIV" not in i.opcode and ".CONV" not in i.opcode
        )
        return targets, not sure
    return (), name not in ("EXIT", "RET", "KILL") or bool(i.guard)


def sass_step(kernel: Kernel, i: Instruction) -> Step:
    stored, loaded = local_slots(i, "STL"), local_slots(i, "LDL")
    if stored or loaded:
        copies = tuple((slot, r) for r, slot in stored) + tuple(loaded)
        return Step(i.writes | {slot for _, slot in stored}, i.guard, copies, line=i.line)
    if i.opcode.startswith("CALL"):
        return Step(i.writes | written_by_call(kernel, i), i.guard, line=i.line)
    return Step(i.writes, i.guard, moved(i), constant(i), i.line)


def constant(i: Instruction) -> int | None:
    """Of the ways in which ptxas puts one into registers."""
    if i.matches("CS2R") and i.operands.endswith("SRZ"):
        return 0
    if i.matches("HFMA2") and (halves := re.fullmatch(r"R\d+, -RZ, RZ, ([-\d.e]+), ([-\d.e]+)", i.operands)):
        return int.from_bytes(struct.pack("<ee", float(halves[2]), float(halves[1])), "little")
    found = re.fullmatch(r"U?R\d+, (?:U?RZ, U?RZ, )?(-?0x[0-9a-f]+|U?RZ|-?\d+)", i.operands)
    if not found or not re.fullmatch(r"U?MOV|IMAD\.MOV(\.U32)?|IMAD\.U32", i.opcode):
        return None
    return 0 if found[1].endswith("RZ") else int(found[1], 0) & 0xFFFFFFFF


def moved(i: Instruction) -> tuple[tuple[str, str], ...]:
    """Of a move from register to register, both."""
    found = re.fullmatch(r"(U?R\d+), (?:U?RZ, U?RZ, )?(U?R\d+)(?:\.reuse)?(?:, 0xf)?", i.operands)
    known = re.fullmatch(r"U?MOV|IMAD\.MOV(\.U32)?|R2UR(\.FILL)?", i.opcode)
    return ((found[1], found[2]),) if known and found else ()


def local_slots(i: Instruction, opcode: str) -> list[tuple[str, str]]:
    """(register, word of the stack) of each that a spill stores or loads."""
    if not i.matches(opcode):
        return []
    place = re.search(r"\[R1(?:\+(-?0x[0-9a-f]+))?\]", i.operands)
    register = re.search(r"\bR(\d+)(?!.*\])|^R(\d+)", i.operands)
    if not place or not register:
        return []
    words = {"64": 2, "128": 4}.get(i.opcode.split(".")[-1], 1)
    first, offset = int(register[1] or register[2]), int(place[1] or "0", 16)
    return [(f"R{first + n}", f"L{offset + 4 * n}") for n in range(words)]


def written_by_call(kernel: Kernel, i: Instruction) -> frozenset[str]:
    """By the instructions from the label of a subroutine to the next one's."""
    called = re.search(r"`\(([$\w]+)\)", i.operands)
    begin = kernel.labels.get(called[1], -1) if called else -1
    if begin < 0:
        return frozenset()
    ends = [at for name, at in kernel.labels.items() if name.startswith("$") and at > begin]
    return frozenset().union(*(x.writes for x in kernel.instructions[begin : min(ends, default=None)]))
