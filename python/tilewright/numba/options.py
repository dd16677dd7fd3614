"""Options of `@cuda.jit`: what they ask of the compiler. Those without a row in `hints_of` change no result here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import TileTypeError, TileValueError

MOST_THREADS, MOST_REGISTERS, MOST_BLOCKS = 1024, 255, 32
NAMES = frozenset(("debug", "opt", "lineinfo", "inline", "fastmath", "max_registers", "cache", "func_or_sig"))
NAMES |= {"forceinline", "launch_bounds", "abi", "abi_info", "boundscheck", "nopython", "lto", "fma", "extensions"}


def check_names(options: Mapping[str, Any]) -> None:
    if unknown := options.keys() - NAMES:
        raise TileTypeError(f"@cuda.jit has no option '{min(unknown)}'; it has device, {', '.join(sorted(NAMES))}")


def hints_of(options: Mapping[str, Any]) -> dict[str, int]:
    """What the compiler is told of a kernel with these options (include/tilewright/hints.def)."""
    hints = _bounds(options.get("launch_bounds"))
    if options.get("fastmath"):
        hints["fast_math"] = 1
    if options.get("max_registers") is not None:
        hints["max_registers"] = _number("max_registers", options["max_registers"], MOST_REGISTERS)
    if options.get("lineinfo"):
        hints["line_info"] = 1
    return hints


def _bounds(bounds: Any) -> dict[str, int]:
    """`launch_bounds=256`, or `(256, 2)`: threads of a block at most, blocks of a multiprocessor at least. Blocks of a
    cluster, of which no launch makes any, are not bounded."""
    if bounds is None:
        return {}
    parts = bounds if isinstance(bounds, tuple | list) else (bounds,)
    if not 1 <= len(parts) <= 3:
        raise TileValueError(
            "@cuda.jit: launch_bounds is a number of threads, or that, a number of blocks and the most blocks of a "
            f"cluster, found {bounds!r}"
        )
    hints = {"most_threads": _number("launch_bounds", parts[0], MOST_THREADS)}
    return hints | ({"occupancy": _number("launch_bounds", parts[1], MOST_BLOCKS)} if len(parts) > 1 else {})


def _number(name: str, value: Any, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise TileValueError(f"@cuda.jit: {name} is an integer from 1 to {most}, found {value!r}")
    return value
