"""Random kernels whose threads only compute, load and store: a GPU gives several neighbouring elements to each."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from program_outcome import kernel_of
from tilewright.cli import lower

ROWS, COLUMNS = 5, 70


class Program:
    """Lines of a thread at row r and column c, which writes to its own elements, and reads those and inputs."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.values = ["v"]
        self.count = 0
        self.block = self.pick([(32, 1), (16, 4), (7, 3), (8, 2)])
        self.grid = tuple(-(-n // b) - self.pick([0, 0, 1]) for n, b in zip((COLUMNS, ROWS), self.block, strict=True))
        for _ in range(3 + self.below(4)):
            self.statement(1)

    def below(self, n: int) -> int:
        return int(self.rng.integers(n))

    def pick(self, choices: Any) -> Any:
        return choices[self.below(len(choices))]

    def number(self) -> str:
        v, w = self.pick(self.values), self.pick(self.values)
        forms = ["a[r, c]", "line[c]", "b[index[r, c], n % 3]", "device.float32(c)", "out[r, c]"]
        forms += [f"({v} if c > n else {w})"]
        forms += [f"line[c + {by}]" for by in (1, 2, 4, 7)]
        return f"{v} {self.pick('+-')} {self.pick(forms)} * 0.5"

    def condition(self) -> str:
        forms = ["c > n", "c == n", "c % 5 == n % 5", "r > 1", "n > 3", "index[r, c] > 2", "c > 2 and c < n + 30"]
        return self.pick([*forms, "v > 1.0", "c < 9 or r == 2", "not c % 2 == 0", "line[c] > 0.5"])

    def statement(self, depth: int) -> None:
        pad = "    " * (depth + 1)
        kind = self.below(6)
        if kind == 0 and depth < 4:
            self.lines.append(f"{pad}if {self.condition()}:")
            known = len(self.values)
            for _ in range(1 + self.below(2)):
                self.statement(depth + 1)
            del self.values[known:]
            if self.below(2):
                self.lines.append(f"{pad}else:")
                self.statement(depth + 1)
                del self.values[known:]
        elif kind == 1:
            self.lines.append(f"{pad}{self.pick(['out', 'more'])}[r, c] = {self.number()}")
        elif kind == 2:
            self.count += 1
            self.lines.append(f"{pad}w{self.count} = {self.number()}")
            self.values.append(f"w{self.count}")
        else:
            self.lines.append(f"{pad}v = device.float32({self.number()})")

    def source(self) -> str:
        head = ["from cuda import device", "", "", "@device.kernel", "def kernel(a, b, line, index, out, more, n):"]
        head += ["    c, r = device.tid(2)", "    if r < out.shape[0] and c < out.shape[1]:", "        v = a[r, c]"]
        return "\n".join([*head, *self.lines, "        out[r, c] = v", ""])

    def arguments(self) -> list[Any]:
        whole = lambda *shape: self.rng.integers(0, 8, shape).astype(np.float32)  # noqa: E731
        index = self.rng.integers(0, ROWS, (ROWS, 72)).astype(np.int32)[:, :COLUMNS]
        placed = [whole(ROWS, 72)[:, :COLUMNS], whole(ROWS, 4), whole(COLUMNS + 8), index]
        return [*placed, whole(ROWS, 72)[:, :COLUMNS], whole(ROWS, 72)[:, :COLUMNS], self.pick([2, 17, 64])]


@pytest.mark.parametrize("seed", range(24))
def test_program(run: Any, seed: int, tmp_path: Path) -> None:
    program = Program(seed)
    kernel = kernel_of(program.source(), tmp_path)
    state = program.rng.bit_generator.state
    wanted = program.arguments()
    program.rng.bit_generator.state = state
    found = program.arguments()
    kernel.interpret(wanted, program.grid, program.block)
    run(kernel, *found, grid=program.grid, block=program.block)
    for old, new in zip(wanted[4:6], found[4:6], strict=True):
        assert np.array_equal(old, new), program.source()


def test_programs_are_such_kernels(tmp_path: Path) -> None:
    joined = 0
    for seed in range(24):
        program = Program(seed)
        kernel = kernel_of(program.source(), tmp_path)
        _, key = kernel.specialization(tuple(program.arguments()))
        joined += "packed_blocks" in lower(kernel, key, "sm_90a", "tile-resize-tiles").decode()
    assert joined >= 20
