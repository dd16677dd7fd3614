"""What is wrong, where, and why."""

from __future__ import annotations

import dataclasses

from .listing import Instruction, Kernel


@dataclasses.dataclass(frozen=True)
class Finding:
    kernel: str
    kind: str
    reason: str
    address: int | None = None
    instruction: str = ""

    @staticmethod
    def at(kernel: Kernel, i: Instruction, kind: str, reason: str) -> Finding:
        return Finding(kernel.name, kind, reason, i.address, str(i))

    def __str__(self) -> str:
        place = f" {self.address:#06x} {self.instruction}\n   " if self.address is not None else ""
        return f"{self.kernel}: {self.kind}:{place} {self.reason}"
