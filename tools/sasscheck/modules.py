"""Several PTX modules as one, so that one call of each tool takes them: ptxas compiles kernel by kernel all the same.

joined([first, second])     # the kernels of the second are called `prefix(1)` and their name
"""

from __future__ import annotations

import re
from collections.abc import Callable

DECLARED = re.compile(
    r"^\s*(?:\.\w+\s+)*\.(?:entry|func|global|shared|const)\b[^;({=]*?([A-Za-z_$][\w$]*)\s*(?:\[\d*\])?\s*[(;={]",
    re.MULTILINE,
)
HEADER = re.compile(r"^\.(?:version|target|address_size)\b.*$", re.MULTILINE)


def renamed(ptx: str, name_of: Callable[[int, str], str]) -> str:
    """With other names for the symbols that it declares: made of a symbol's number and its name."""
    names: dict[str, str] = {}
    for match in DECLARED.finditer(ptx):
        names.setdefault(match.group(1), name_of(len(names), match.group(1)))
    if not names:
        return ptx
    longest = sorted(map(re.escape, names), key=len, reverse=True)
    return re.sub(rf"(?<![\w$])({'|'.join(longest)})(?=$|[^\w$]|_param_)", lambda m: names[m.group(1)], ptx)


def header(ptx: str) -> tuple[str, ...]:
    """What a module says once: version, target, size of addresses."""
    return tuple(HEADER.findall(ptx))


def prefix(number: int) -> str:
    """Of the names of the n-th module."""
    return f"module{number}_"


def joined(modules: list[str]) -> str:
    """One module; all must have one header."""

    def body(number: int, ptx: str) -> str:
        return HEADER.sub("", renamed(ptx, lambda _, name: prefix(number) + name))

    return "\n".join([*header(modules[0]), *(body(number, ptx) for number, ptx in enumerate(modules))])
