"""What the compiler made of a kernel, in counts: the instructions that move tiles and compute products, how they wait,
how many stages a ring has, and what the assembler says of it."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
import tempfile
from typing import Any

from tilewright import compile as compiler
from tilewright import plans

INSTRUCTIONS = {
    "wgmma": r"\bwgmma\.mma_async",
    "mma": r"\bmma\.sync",
    "tma loads": r"cp\.async\.bulk\.tensor\.\dd\.shared::cluster\.global",
    "tma stores": r"cp\.async\.bulk\.tensor\.\dd\.global\.shared::cta",
    "copies": r"\bcp\.async\.c[ag]",
    "stores": r"\bst\.global",
}


@dataclasses.dataclass(frozen=True)
class Plan:
    counts: dict[str, int]
    waits: tuple[int, ...]  # of wgmma.wait_group, each number once
    votes: bool  # the softmax rescales only where it must
    rings: tuple[str, ...]  # stages and tile of each buffer
    roles: str
    registers: int = 0
    spills: int = 0
    remarks: tuple[str, ...] = ()  # of the assembler: C75xx

    def is_as_good_as(self, plain: Plan) -> bool:
        """Whether tiles move, products run and wait, and results go as there, with no more stores and spills."""
        names = ("moves", "waits", "votes", "stages", "roles", "remarks")
        same = all(getattr(self, name) == getattr(plain, name) for name in names)
        return same and self.spills <= plain.spills and self.counts["stores"] <= plain.counts["stores"]

    @property
    def moves(self) -> dict[str, int]:
        """What brings tiles, multiplies, and stores them by TMA."""
        return {name: count for name, count in self.counts.items() if name != "stores"}

    @property
    def stages(self) -> list[str]:
        """How many each ring has."""
        return sorted(ring.split("x")[0] for ring in self.rings)

    def __str__(self) -> str:
        counts = ", ".join(f"{name} {count}" for name, count in self.counts.items() if count)
        rings = " ".join(self.rings)
        said = " ".join(sorted({f"C{x}" for x in self.remarks}))
        waits = "/".join(map(str, self.waits))
        loops = f"W{waits}{' votes' if self.votes else ''}"
        return f"{counts}; {loops}; {rings}; {self.roles}; {self.registers} registers, {self.spills} B {said}"


def of(kernel: Any, key: Any, target: str = "sm_90a", told: list[Any] | None = None) -> Plan:
    """`told` gets what the compiler says of each stage."""
    module = kernel.capture(target, key)
    seen: dict[str, str] = {}

    def run(stage: str) -> plans.Diagnostics:
        said = module.lower(stage)
        seen[stage] = module.text(False)
        if told is not None:
            told.extend(said)
        return said

    plans.lower(module, compiler.GPU_STAGES, run)
    return read(module.emit(compiler.EMIT_ASSEMBLY).rstrip(b"\0").decode(), seen["pipelined"], target)


def read(ptx: str, pipelined: str, target: str) -> Plan:
    counts = {name: len(re.findall(pattern, ptx)) for name, pattern in INSTRUCTIONS.items()}
    waits = tuple(sorted({int(x) for x in re.findall(r"wgmma\.wait_group\.sync\.aligned\s+(\d+)", ptx)}))
    roles = re.search(r"tile\.roles (.*?) producer \{", pipelined)
    rings = re.findall(r"tile\.alloc_shared : <(\d+x[^,>]*)", pipelined)
    who = roles.group(1) if roles else ""
    votes = re.search(r"\bvote\.sync\.any|\bbar\.red\.or", ptx) is not None
    return Plan(counts, waits, votes, tuple(rings), who, *assembled(ptx, target))


def assembled(ptx: str, target: str) -> tuple[int, int, tuple[str, ...]]:
    ptxas = shutil.which("ptxas")
    if ptxas is None:
        return 0, 0, ()
    with tempfile.NamedTemporaryFile(suffix=".ptx", mode="w") as file:
        file.write(ptx)
        file.flush()
        command = [ptxas, "-v", f"-arch={target}", "-o", "/dev/null", file.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    if done.returncode:
        raise RuntimeError(said)
    spills = sum(int(x) for x in re.findall(r"(\d+) bytes spill", said))
    registers = max([int(x) for x in re.findall(r"Used (\d+) registers", said)] or [0])
    return registers, spills, tuple(re.findall(r"\(C(75\d\d)\)", said))
