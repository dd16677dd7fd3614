"""What the compiler decided, under the lines of the program that it is about:

matmul for sm_90a

matmul.py
  12  def matmul(A, B, C, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
       the kernel is persistent: one wave of blocks loops over the tiles of the grid
  16          a = ct.load(A, index=(i, k), shape=(TM, TK), padding_mode=ct.PaddingMode.ZERO)
                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
       the load moves 128x64xbf16 by TMA, in 1 box
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ._optable import NOUNS
from .errors import Place, places_of

_OP = re.compile(r"^'([\w.]+)' op ")

# What a user calls that of which an op was made; the others go by the name of the op.
_NOUNS = {**NOUNS, "func.func": "kernel", "scf.for": "loop", "scf.while": "loop"}


def sentence(message: str) -> str:
    """A remark with the name of its op in the user's words: \"'tile.mma' op runs …\" is \"the product runs …\"."""
    match = _OP.match(message)
    if match is None:
        return message
    op = match[1]
    return f"the {_NOUNS.get(op, op.rpartition('.')[2])} {message[match.end() :]}"


def _code(place: Place) -> list[str]:
    """The numbered line, and carets where the place is a part of it."""
    found = place.code()
    if found is None:
        return [f"{place.line:5}"]
    line, carets = found
    whole = not place.end_column or place.end_line not in (0, place.line)
    return [f"{place.line:5}  {line}"] + ([] if whole else [f"{'':7}{carets}"])


def text(title: str, diagnostics: Sequence[tuple[int, str, str]]) -> str:
    """A listing of remarks: (severity, location, message) each, as the compiler gives them. Those of one place stand
    together, places in the order of the file; what lies in functions that a kernel calls stands where it is written."""
    by_place: dict[Place | None, list[str]] = {}
    for _, location, message in diagnostics:
        places = places_of(location)
        told = by_place.setdefault(places[-1] if places else None, [])
        if (line := sentence(message)) not in told:
            told.append(line)
    lines, file = [title], None
    for place in sorted(by_place, key=lambda p: (p.file, p.line, p.column) if p else ("", 0, 0)):
        if place is not None and place.file != file:
            file = place.file
            lines += ["", file]
        lines += _code(place) if place is not None else []
        lines += [f"{'':9}{told}" for told in by_place[place]]
    return "\n".join(lines)
