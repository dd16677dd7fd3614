"""Wrong programs and what they are told: `*.txt`, one theme a file.

    == a name of the program
    lines of the program
    --
    the exception that it raises, as a user sees it

Lines of the program are the end of the kernel `PROLOGUE`, unless they begin with `import`: then they are all of it.
`python test/errors/corpus.py` writes down what the programs are told now, for review with `git diff`.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FOLDER = Path(__file__).parent
PROLOGUE = """import math
import numpy as np
import tilewright.tile as ct
@ct.kernel
def kernel(A, B, M, H, I, n, x, T: ct.Constant):
    i = ct.bid(0)
    a = ct.load(A, (i,), (16,))
    k = ct.load(I, (i,), (16,))
    m = ct.load(M, (i, 0), (16, 16))
    h = ct.load(H, (i, 0), (16, 16))
"""
LAUNCH = "\nct.launch(None, 1, kernel, arguments())\n"
INTERPRET = "\nkernel.interpret(1, arguments())\n"


class Program(NamedTuple):
    name: str
    lines: str
    expected: str
    theme: str

    @property
    def source(self) -> str:
        if self.lines.startswith(("import", "from")):
            return self.lines + "\n"
        return PROLOGUE + "".join(f"    {line}\n" for line in self.lines.splitlines()) + LAUNCH


def arguments() -> tuple[Any, ...]:
    """Of the kernel in PROLOGUE."""
    f32, i32 = np.zeros(64, np.float32), np.zeros(64, np.int32)
    return f32, f32.copy(), np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float16), i32, 3, 0.5, 16


def themes() -> list[Path]:
    return sorted(FOLDER.glob("*.txt"))


def programs(path: Path) -> list[Program]:
    found = []
    for part in re.split(r"^== ", path.read_text(), flags=re.MULTILINE)[1:]:
        name, rest = part.split("\n", 1)
        lines, _, expected = rest.partition("\n--\n")
        found.append(Program(name.strip(), lines.strip("\n"), expected.strip("\n"), path.stem))
    return found


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder to be in: messages name files in it without their paths."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as path:
        os.chdir(path)
        try:
            yield Path(path)
        finally:
            os.chdir(before)


def run(program: Program, interpreted: bool = False) -> tuple[str, list[str]]:
    """What it is told, within a `folder()`, and the files of the traceback behind the program's own."""
    path = Path(re.sub(r"\W", "_", f"{program.theme}_{program.name}") + ".py")
    source = program.source.replace(LAUNCH, INTERPRET) if interpreted else program.source
    path.write_text(source)
    try:
        with warnings.catch_warnings(action="ignore"):  # what Python says of them is not looked at
            code = compile(source, str(path), "exec", dont_inherit=True)  # without our `from __future__ import`
        exec(code, {"__name__": path.stem, "arguments": arguments})
    except Exception as error:
        frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        return f"{type(error).__name__}: {error}", frames[2:]
    return "nothing: the program runs", []


def main() -> None:
    with folder():
        for path in themes():
            text = path.read_text().split("== ", 1)[0]
            for program in programs(path):
                text += f"== {program.name}\n{program.lines}\n--\n{run(program)[0]}\n\n"
            path.write_text(text.rstrip("\n") + "\n")
    print(f"{sum(len(programs(path)) for path in themes())} programs", file=sys.stderr)


if __name__ == "__main__":
    main()
