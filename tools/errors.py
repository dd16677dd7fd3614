"""docs/errors.md: the index of errors, what wrong programs are told, made of test/errors.

python tools/errors.py            # writes the page
python tools/errors.py check      # says whether it is as it should be
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pages

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test/errors"))
import corpus

PAGE = Path(__file__).resolve().parent.parent / "docs/errors.md"

HEAD = """# Index of errors

What wrong programs are told: the line that is wrong, and the message. Below the message Tilewright prints the file, the
line and a caret. The reference execution says the same. In these programs `A` and `B` are arrays of float32 of one
dimension, `M` and `H` of two, `I` is one of int32; `a`, `m`, `h` and `k` are tiles of them, `n` and `x` are numbers,
and `T` is a constant. Made by tools/errors.py from test/errors, where each is tested.
"""


def cell(text: str) -> str:
    return (
        text.replace("\\", "\\\\")
        .replace("|", "\\|")
        .replace("<", "&lt;")
        .replace("*", "\\*")
        .replace("_", "\\_")
        .replace("](", "]\\(")
    )


def code(line: str) -> str:
    """A line as code within a cell, which ends at a bar and cannot show a backquote; no link of Markdown."""
    line = line.replace("](", "] (")
    return f"`{line.replace('|', chr(92) + '|').replace('`', chr(39))}`"


def wrong_line(program: corpus.Program) -> str:
    """The line under which the message has its caret, or else the last one of the program."""
    shown = re.search(r'\n  File "[^\n]*\n(?:    ([^\n]+)\n *\^)', program.expected)
    lines = [line for line in program.lines.splitlines() if line.strip()]
    return shown[1].strip() if shown else lines[-1].strip()


def row(program: corpus.Program) -> str:
    return f"| {code(wrong_line(program))} | {cell(program.expected.splitlines()[0])} |"


def title(path: Path) -> str:
    return path.read_text().split("\n", 1)[0].rstrip(".")


def page() -> str:
    parts = [HEAD]
    for path in corpus.themes():
        rows = dict.fromkeys(row(program) for program in corpus.programs(path))
        parts.append("\n".join([f"## {title(path)}", "", "| program | told |", "|---|---|", *rows, ""]))
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(pages.write_or_check(PAGE, page(), "what test/errors says: python tools/errors.py"))
