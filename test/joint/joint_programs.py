"""Programs that all executions take, with equal results: `programs.txt`.

    == a name of the program
    lines of the program

Lines are the end of the kernel in `PROLOGUE`, which stores `s`, `t` or `u` if the program assigns them. Lines behind
`--` stand in front of the kernel.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HEAD = """import collections, contextlib, dataclasses, enum, functools, math, operator
import numpy as np
from tilewright import tile as ct
"""
PROLOGUE = """@ct.kernel
def kernel(A, K, M, n, x, flag, S, T, U, c: ct.Constant, word: ct.Constant = "word", more=5):
    b = ct.bid(0)
    a = ct.load(A, (b,), (8,))
    k = ct.load(K, (b,), (8,))
    m = ct.load(M, (b, 0), (8, 4))
"""
STORES = {  # of a scalar, a vector, a matrix
    "s": "ct.scatter(S, b, s)",
    "t": "ct.store(T, (b,), t)",
    "u": "ct.store(U, (b, 0), u)",
}


class Program(NamedTuple):
    name: str
    lines: str
    front: str

    @property
    def source(self) -> str:
        found = {
            v: re.search(rf"^\s*(?:\w+, )*{v}(?:, \w+)* (\W*)?= |\b{v} :=", self.lines, re.MULTILINE) for v in STORES
        }
        stores = [STORES[v] for v, match in found.items() if match]
        body = [*self.lines.splitlines(), *stores]
        return HEAD + self.front + "\n" + PROLOGUE + "".join(f"    {line}\n" for line in body)


def programs() -> list[Program]:
    found = []
    text = (Path(__file__).parent / "programs.txt").read_text()
    for part in re.split(r"^== ", text, flags=re.MULTILINE)[1:]:
        name, rest = part.split("\n", 1)
        lines, _, front = rest.partition("\n--\n")
        found.append(Program(name.strip(), lines.strip("\n"), front.strip("\n")))
    return found


def arguments() -> list[Any]:
    a = np.arange(16, dtype=np.float32) - 5
    k = np.arange(16, dtype=np.int32) * 3 - 7
    m = np.arange(64, dtype=np.float32).reshape(16, 4)
    outputs = [np.zeros(2, np.float32), np.zeros(16, np.float32), np.zeros((16, 4), np.float32)]
    return [a, k, m, 3, 1.5, True, *outputs, 2]
