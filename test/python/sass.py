"""The machine code of a kernel, to look at without a GPU: what ptxas said of it, and its loops as instructions.

code = assemble(kernel, key, "sm_90a")
code.count("HGMMA"), code.loops("HGMMA"), code.spills, code.serialized
"""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tilewright import compile

PTXAS, NVDISASM = (shutil.which(name) or "" for name in ("ptxas", "nvdisasm"))
MISSING = None if PTXAS and NVDISASM else "needs ptxas and nvdisasm"


Flight = tuple[frozenset[int], ...]


@dataclasses.dataclass(frozen=True)
class Instruction:
    opcode: str  # with its suffixes: HGMMA.64x128x16.F32.BF16
    operands: str
    guard: str = ""

    def __str__(self) -> str:
        return f"{self.guard} {self.opcode} {self.operands}".strip()


@dataclasses.dataclass(frozen=True)
class Code:
    instructions: list[Instruction]
    labels: dict[str, int]  # position of the instruction behind
    log: str  # ptxas -v
    remarks: list[str]  # the compiler's own
    shared_bytes: int
    warpgroups: int  # that multiply

    def count(self, opcode: str) -> int:
        return count(self.instructions, opcode)

    def loops(self, opcode: str = "") -> list[list[Instruction]]:
        """The bodies of the innermost loops that hold such an instruction, in the order of addresses."""
        found = [body for body in self._natural_loops() if count(self._of(body), opcode)]
        inner = [body for body in found if not any(other < body for other in found)]
        return [self._of(body) for body in inner]

    def _of(self, blocks: frozenset[int]) -> list[Instruction]:
        bounds = [*self._leaders(), len(self.instructions)]
        return [i for b in sorted(blocks) for i in self.instructions[bounds[b] : bounds[b + 1]]]

    def _leaders(self) -> list[int]:
        """Where basic blocks start."""
        ends = (i + 1 for i, x in enumerate(self.instructions) if x.opcode.split(".")[0] in ("BRA", "EXIT"))
        return sorted({0, *self.labels.values(), *ends} - {len(self.instructions)})

    def _successors(self) -> list[list[int]]:
        leaders = self._leaders()
        index = {at: b for b, at in enumerate(leaders)}
        out = []
        for b in range(len(leaders)):
            end = leaders[b + 1] if b + 1 < len(leaders) else len(self.instructions)
            last = self.instructions[end - 1]
            target = re.search(r"`\((\.L_x_\d+)\)", last.operands) if last.opcode.startswith("BRA") else None
            always = last.opcode.split(".")[0] in ("BRA", "EXIT") and not re.search(
                r"U?P\d", f"{last.guard} {last.operands}"
            )
            out.append([index[self.labels[target[1]]]] if target else [])
            if not (always and "DIV" not in last.opcode) and end in index:
                out[b].append(index[end])
        return out

    def _natural_loops(self) -> list[frozenset[int]]:
        """Blocks between an edge that goes back to a block on every path to it, and that block."""
        successors = self._successors()
        everything = set(range(len(successors)))
        predecessors: list[list[int]] = [[p for p in everything if b in successors[p]] for b in sorted(everything)]
        dominators = [everything if b else {0} for b in range(len(successors))]
        changed = True
        while changed:
            changed = False
            for b in range(1, len(successors)):
                known = [dominators[p] for p in predecessors[b]]
                new = {b} | (set.intersection(*known) if known else set())
                changed, dominators[b] = changed or new != dominators[b], new
        loops: dict[int, set[int]] = {}
        for end, heads in enumerate(successors):
            for head in heads:
                if head in dominators[end]:
                    body, todo = loops.setdefault(head, {head}), [end]
                    while todo:
                        if (b := todo.pop()) not in body:
                            body.add(b)
                            todo += predecessors[b]
        return [frozenset(loops[head]) for head in sorted(loops)]

    def overwritten(self) -> list[str]:
        """Instructions that write what a product under way reads from registers, on some path."""
        bounds, successors = [*self._leaders(), len(self.instructions)], self._successors()
        todo: list[tuple[int, Flight]] = [(0, ())]
        seen = set(todo)
        bad: dict[int, None] = {}
        while todo:
            block, flight = todo.pop()
            for at in range(bounds[block], bounds[block + 1]):
                instruction = self.instructions[at]
                if written(instruction) & {r for group in flight for r in group}:
                    bad[at] = None
                flight = after(instruction, flight)
            new = {(b, flight) for b in successors[block]} - seen
            seen |= new
            todo += new
        return [str(self.instructions[at]) for at in sorted(bad)]

    def mixed(self) -> list[str]:
        """Products that find in a register what was loaded for them on one path, and something else on another: ptxas
        13.0 gives registers to others that a loop's next iteration reads, if the product runs across a branch."""
        operands = frozenset(r for i in self.instructions for r in left_operand(i))
        bounds, successors = [*self._leaders(), len(self.instructions)], self._successors()
        found: dict[bool, set[tuple[int, int]]] = {False: set(), True: set()}
        for block in range(len(successors)):
            for at in range(bounds[block], bounds[block + 1]):
                for register in written(self.instructions[at]) & operands:
                    readers = self._readers(bounds, successors, block, at, register)
                    found[matches(self.instructions[at], "LDSM")] |= {(reader, register) for reader in readers}
        return [str(self.instructions[at]) for at, _ in sorted(found[False] & found[True])]

    def _readers(
        self, bounds: list[int], successors: list[list[int]], block: int, at: int, register: int
    ) -> Iterator[int]:
        """Products that may find in a register, as their left operand, what the instruction has written to it."""
        todo, seen = [(block, at + 1)], set[int]()
        while todo:
            block, begin = todo.pop()
            for i in range(begin, bounds[block + 1]):
                if register in left_operand(self.instructions[i]):
                    yield i
                if register in written(self.instructions[i]) and not self.instructions[i].guard:
                    break
            else:
                todo += [(b, bounds[b]) for b in successors[block] if b not in seen]
                seen.update(successors[block])

    @property
    def registers(self) -> int:
        return max(int(n) for n in re.findall(r"Used (\d+) registers", self.log))

    @property
    def spills(self) -> int:
        """Bytes that went to local memory and back."""
        return sum(int(n) for n in re.findall(r"(\d+) bytes spill", self.log))

    @property
    def serialized(self) -> list[str]:
        """What ptxas says when it gives up on products that run by themselves: C7510 to C7519."""
        return re.findall(r"C751\d.*", self.log)


def count(instructions: list[Instruction], opcode: str) -> int:
    return sum(matches(i, opcode) for i in instructions)


def matches(instruction: Instruction, opcode: str) -> bool:
    return instruction.opcode == opcode or instruction.opcode.startswith(opcode + ".") or not opcode


def written(instruction: Instruction) -> set[int]:
    """Registers that it writes, accumulators apart."""
    first = re.match(r"(?:U?PT?\d*, )*R(\d+)", instruction.operands)
    if first is None or re.match(r"[HIQ]GMMA|ST|RED|BAR|SYNCS|BRA|BRX|CALL|RET", instruction.opcode):
        return set()
    sizes = {".64": 2, ".128": 4, ".WIDE": 2}
    size = next((n for text, n in sizes.items() if text in instruction.opcode), 1)
    if matrices := re.match(r"LDSM.*\.(\d)$", instruction.opcode):
        size = int(matrices[1])
    return set(range(int(first[1]), int(first[1]) + size))


def left_operand(instruction: Instruction) -> range:
    """The registers that a product has its left operand in."""
    product = re.match(r"R\d+, R(\d+), gdesc", instruction.operands)
    return range(int(product[1]), int(product[1]) + 4) if product else range(0)


def after(instruction: Instruction, flight: Flight) -> Flight:
    """The groups of products under way behind an instruction, each as the registers that it reads; the last is open."""
    *closed, last = flight or (frozenset(),)
    if re.match(r"[HIQ]GMMA", instruction.opcode):
        last = last.union(left_operand(instruction))
        return (*closed, last, frozenset()) if "gsb0" in instruction.operands else (*closed, last)
    if matches(instruction, "WARPGROUP.DEPBAR.LE"):
        pending = int(instruction.operands.split(", ")[-1], 0)
        closed = closed[len(closed) - pending :] if pending else []
    return (*closed, last)


def zeroed_accumulators(instructions: list[Instruction]) -> set[int]:
    """Registers of a loop's body that moves set to zero for matrix instructions to add to."""
    zero: set[int] = set()
    found: set[int] = set()
    for i in 2 * instructions:  # the second time round begins with what the first one left
        if shape := re.match(r"[HQI]GMMA\.(\d+)x(\d+)x", i.opcode):
            first = int(re.match(r"R(\d+)", i.operands)[1])  # type: ignore[index]
            accumulators = set(range(first, first + int(shape[2]) // 2))
            found |= set() if ", RZ, " in i.operands else accumulators & zero
            zero -= accumulators
        elif re.fullmatch(r"MOV|IMAD\.MOV\.U32|CS2R(\.32)?", i.opcode) and re.fullmatch(r"R\d+(, S?RZ)+", i.operands):
            register = int(re.match(r"R(\d+)", i.operands)[1])  # type: ignore[index]
            zero |= {register, register + 1} if i.opcode == "CS2R" else {register}
        else:
            zero -= written(i)
    return found


def assemble(kernel: Any, key: Any, target: str = "sm_90a") -> Code:
    module = kernel.capture(target, key)
    diagnostics = module.lower("llvm")
    shared, warps = (int(module.attribute(f"tile.{name}").split(":")[0]) for name in ("shared_bytes", "num_warps"))
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_bytes(module.emit(compile.EMIT_ASSEMBLY).rstrip(b"\0"))
        command = [PTXAS, "-v", f"-arch={target}", str(source), "-o", str(cubin)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        text = subprocess.run([NVDISASM, "-c", str(cubin)], capture_output=True, text=True, check=True).stdout
    remarks = [message for _, _, message in diagnostics]
    return Code(*parse(text), done.stdout + done.stderr, remarks, shared, warps // 4)


def parse(text: str) -> tuple[list[Instruction], dict[str, int]]:
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    for line in text.splitlines():
        if label := re.match(r"\s*(\.L_x_\d+):", line):
            labels[label[1]] = len(instructions)
        if found := re.match(r"\s+/\*[0-9a-f]+\*/\s+(@!?U?P\w+ )?\s*([A-Z][A-Z0-9_.x]*)(.*?);", line):
            instructions.append(Instruction(found[2], found[3].strip(), (found[1] or "").strip()))
    return instructions, labels
