"""The machine code of a kernel, to look at without a GPU: what ptxas said of it, and its loops as instructions.

code = assemble(kernel, key, "sm_90a")
code.count("HGMMA"), code.loops("HGMMA"), code.spills, code.serialized
"""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tilewright import compile

PLACES = ["/usr/local/cuda/bin", *(f"{path}/nvidia/cu13/bin" for path in sys.path)]
PTXAS, NVDISASM = (
    shutil.which(name) or shutil.which(name, path=":".join(PLACES)) or "" for name in ("ptxas", "nvdisasm")
)
MISSING = None if PTXAS and NVDISASM else "needs ptxas and nvdisasm"


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
        """The bodies of the innermost loops that hold such an instruction."""
        bodies = []
        for end, instruction in enumerate(self.instructions):
            target = re.search(r"`\((\.L_x_\d+)\)", instruction.operands)
            if instruction.opcode.startswith("BRA") and target and self.labels.get(target[1], end + 1) <= end:
                bodies.append((self.labels[target[1]], end + 1))
        with_it = [(a, b) for a, b in bodies if count(self.instructions[a:b], opcode)]
        inner = [x for x in with_it if not any(y != x and x[0] <= y[0] and y[1] <= x[1] for y in with_it)]
        return [self.instructions[a:b] for a, b in inner]

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


def zeroed_registers(instructions: list[Instruction]) -> int:
    """Registers that moves set to zero."""
    moves = [i for i in instructions if re.search(r"\bS?RZ\b", i.operands) and not i.guard]
    pairs = sum(i.opcode == "CS2R" for i in moves)
    singles = sum(
        bool(re.fullmatch(r"MOV|IMAD\.MOV\.U32|CS2R\.32", i.opcode) and re.fullmatch(r"R\d+, (S?RZ(, )?)+", i.operands))
        for i in moves
    )
    return 2 * pairs + singles


def between(body: list[Instruction], begin: str, end: str) -> Iterator[list[Instruction]]:
    """The stretches of a loop from an instruction to the next one of the other kind, once around."""
    start = None
    for i, instruction in enumerate(body + body):
        if start is not None and matches(instruction, end):
            yield (body + body)[start:i]
            start = None
        if i < len(body) and matches(instruction, begin):
            start = i + 1


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
