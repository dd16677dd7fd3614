"""The machine code of a kernel, to look at without a GPU: what ptxas said of it, and its loops as instructions.

code = assemble(kernel, key, "sm_90a")
code.count("HGMMA"), code.loops("HGMMA"), code.spills, code.serialized
"""

from __future__ import annotations

import dataclasses
import functools
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from tilewright import _core, compile

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from sasscheck import check, flow, listing, ptx
from sasscheck.listing import Instruction

PTXAS, NVDISASM = (shutil.which(name) or "" for name in ("ptxas", "nvdisasm"))
MISSING = None if PTXAS and NVDISASM else "needs ptxas and nvdisasm"


@dataclasses.dataclass(frozen=True)
class Code:
    kernel: listing.Kernel
    wrong: list[str]  # what tools/check_sass.py finds
    log: str  # ptxas -v
    remarks: list[str]  # the compiler's own
    shared_bytes: int
    warpgroups: int  # that multiply

    @property
    def instructions(self) -> list[Instruction]:
        return self.kernel.instructions

    @functools.cached_property
    def graph(self) -> flow.Graph:
        return flow.sass_graph(self.kernel)

    def count(self, opcode: str) -> int:
        return count(self.instructions, opcode)

    def loops(self, opcode: str = "") -> list[list[Instruction]]:
        """The bodies of the innermost loops that hold such an instruction, in the order of addresses."""
        found = [body for body in self._natural_loops() if count(self._of(body), opcode)]
        inner = [body for body in found if not any(other < body for other in found)]
        return [self._of(body) for body in inner]

    def _of(self, blocks: frozenset[int]) -> list[Instruction]:
        bounds = zip(self.graph.leaders, self.graph.ends, strict=True)
        return [i for b, (begin, end) in enumerate(bounds) if b in blocks for i in self.instructions[begin:end]]

    def _natural_loops(self) -> list[frozenset[int]]:
        """Blocks between an edge that goes back to a block on every path to it, and that block."""
        successors, predecessors = self.graph.successors, self.graph.predecessors
        everything = set(range(len(successors)))
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
    return not opcode or instruction.matches(opcode)


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
            zero -= {int(r[1:]) for r in i.writes if r.startswith("R")}
    return found


def assemble(kernel: Any, key: Any, target: str = "sm_90a") -> Code:
    module = kernel.capture(target, key)
    diagnostics = module.lower("llvm")
    facts = _core.launch_facts(compile.record_of(module))
    shared, warps = facts["shared_bytes"], facts["num_warps"]
    text = module.emit(compile.EMIT_ASSEMBLY).rstrip(b"\0").decode()
    with tempfile.TemporaryDirectory() as folder:
        cubin, log = check.assemble(text, PTXAS, Path(folder))
        (code,) = listing.disassemble(cubin, NVDISASM)
    wrong = [str(finding) for finding in check.check_kernel(code, ptx.read(text)[code.name])]
    remarks = [message for _, _, message in diagnostics]
    return Code(code, wrong, log, remarks, shared, warps // 4)
