"""Hints of a kernel: the names, the legal values, and what is wrong with others. include/tilewright/hints.def has them.

    num_warps=8   stages=4   family="mma.sync"        of a kernel: an integer, or one of a few words
    **{"layout(p)": "narrow", "warps(acc)": "4x2"}    of a tile that has the name in Python: a text that a pass reads

The decorators, `replace_hints`, `ct.launch(hints=)`, the spaces of tune and the axes of a sweep take the same words.
`warps`, `stages`, `cluster` and `split` are short for `num_warps`, `num_stages`, `num_ctas` and `split_k`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from . import _core
from .errors import TileTypeError, TileValueError
from .names import hint_advice
from .quiet import quiet

Value: TypeAlias = int | str

RANGES: dict[str, tuple[int, int]] = _core.hint_ranges()
WORDS = {name: tuple(words.split()) for name, words in _core.hint_words().items() if words}
OF_TILES = tuple(name for name, words in _core.hint_words().items() if not words)
SHORT = {"warps": "num_warps", "stages": "num_stages", "cluster": "num_ctas", "split": "split_k"}
NAMES = (*RANGES, *WORDS)
_POWERS_OF_TWO = {"num_warps", "vector", "group"}
_OF_TILE = re.compile(rf"({'|'.join(OF_TILES)})\(([^\W\d]\w*)\)")
_TEXT = re.compile(r"[ -!#-\[\]-~]{1,1000}")  # what stands in the quotes of an attribute as it is


class ByTarget:
    """A hint that differs by target: `ByTarget(sm_90=4, default=8)`."""

    @quiet
    def __init__(self, *, default: Any = None, **values: Any) -> None:
        for name in values:
            if re.fullmatch(r"sm_\d+[af]?|cpu", name) is None:
                raise TileValueError(f"Invalid GPU architecture name: {name}, expected sm_<major><minor>, or cpu")
        self.default = default
        self.values = values

    def of(self, target: str) -> Any:
        return self.values.get(target, self.values.get(target.rstrip("af"), self.default))

    def __repr__(self) -> str:
        values = ", ".join(f"{k}={v!r}" for k, v in self.values.items())
        return f"ByTarget({values}, default={self.default!r})"


def tile_of(name: str) -> tuple[str, str] | None:
    """`layout(p)` as ("layout", "p"); None for a hint of the whole kernel."""
    match = _OF_TILE.fullmatch(name)
    return (match[1], match[2]) if match else None


def full_name(name: str) -> str:
    return SHORT.get(name, name)


def full_names(hints: Mapping[str, Any]) -> dict[str, Any]:
    """The same hints by their full names."""
    found: dict[str, Any] = {}
    for name, value in hints.items():
        if full_name(name) in found:
            raise TileTypeError(f"the hint {full_name(name)} is given twice, once as {name!r}; expected once")
        found[full_name(name)] = value
    return found


def is_hint(name: str, known: Iterable[str] = NAMES) -> bool:
    known = set(known)
    return full_name(name) in known or (bool(known) and tile_of(name) is not None)


def legal_values(name: str) -> tuple[Any, ...] | None:
    """Every value of a hint of a kernel; None of a hint of a tile, which depends on the kernel."""
    name = full_name(name)
    if name in WORDS:
        return WORDS[name]
    if name not in RANGES:
        return None
    low, high = RANGES[name]
    return tuple(v for v in range(low, high + 1) if name not in _POWERS_OF_TWO or v & (v - 1) == 0)


def is_auto(name: str, text: str) -> bool:
    """Whether a person leaves a hint to the compiler: by `auto`, or by `none` where that is no value of its."""
    return text == "auto" or (text == "none" and text not in WORDS.get(name, ()))


def read_word(name: str, text: str) -> str | None:
    """The value of a hint that is a word or a text, in quotes or without; None: the compiler chooses."""
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if quoted else None if is_auto(name, text) else text


def told(name: str, value: Any) -> str:
    """A hint and its value as `read_word` takes them."""
    return f"{name}={'auto' if value is None else value}"


def check(decorator: str, known: Iterable[str], name: str, value: Any) -> None:
    """`known`: the hints that the decorator's kernels have."""
    known = tuple(known)
    if name == "num_worker_warps" and known:
        return _check_wish(name, value)
    if not is_hint(name, known):
        advice = hint_advice(name, (*known, *SHORT)) if known else ""
        of_tiles = f", and of a tile t {', '.join(f'{kind}(t)' for kind in OF_TILES)}" if known else ""
        raise TileTypeError(f"{decorator} has no hint {name!r}{advice}; it has {', '.join(known) or 'none'}{of_tiles}")
    for one in _each_value(value):
        if one is not None:
            _check_value(full_name(name), one)


def _check_value(name: str, value: Any) -> None:
    if name in WORDS:
        if value not in WORDS[name]:
            raise TileValueError(f"@ct.kernel: the hint {name} is one of {', '.join(WORDS[name])}, found {value!r}")
        return
    if tile := tile_of(name):
        if not isinstance(value, str) or _TEXT.fullmatch(value) is None:
            example = {"swizzle": "64", "warps": "4x2"}.get(tile[0], "access")
            raise TileValueError(f"@ct.kernel: the hint {name} is a text such as {example!r}, found {value!r}")
        return
    low, high = RANGES[name]
    integer = type(value) is int or ((low, high) == (0, 1) and type(value) is bool)
    if not (integer and low <= value <= high):
        raise TileValueError(f"@ct.kernel: the hint {name} is an integer from {low} to {high}, found {value!r}")
    if name in _POWERS_OF_TWO and value & (value - 1):
        raise TileValueError(f"@ct.kernel: the hint {name} is a power of two from {low} to {high}, found {value!r}")


def _check_wish(name: str, value: Any) -> None:
    """A hint of cuTile that this compiler decides by itself, and so does not take: it changes no result."""
    for one in _each_value(value):
        if one not in (None, 4, 8):
            raise TileValueError(f"@ct.kernel: the hint {name} is 4 or 8, found {one!r}")


def _each_value(value: Any) -> list[Any]:
    return [*value.values.values(), value.default] if isinstance(value, ByTarget) else [value]


def for_target(hints: Mapping[str, Any], target: str) -> dict[str, Value]:
    """What the compiler gets: values for a target, without those that leave the choice to it."""
    values = {name: value.of(target) if isinstance(value, ByTarget) else value for name, value in hints.items()}
    return {n: v if isinstance(v, str) else int(v) for n, v in values.items() if v is not None}


def attribute(hints: Mapping[str, Value]) -> str:
    """The dictionary `tile.hints`, as text of the IR."""
    entries = (f'"{n}" = "{v}"' if isinstance(v, str) else f"{n} = {v} : i32" for n, v in hints.items())
    return f"{{{', '.join(entries)}}}"


def check_tiles(kernel: str, hints: Mapping[str, Value], tiles: Iterable[str]) -> None:
    """Whether the tiles that hints name are there; `tiles` are the names that a program gives."""
    known = sorted(set(tiles))
    for name in hints:
        found = tile_of(name)
        if found is not None and found[1] not in known:
            raise TileValueError(
                f"kernel {kernel} has no tile {found[1]!r}, of which the hint {name} speaks; "
                f"it has {', '.join(known) or 'none'}"
            )
