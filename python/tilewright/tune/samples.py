"""Arguments for a kernel from their descriptions on a command line: arrays of random numbers, a grid by expression."""

from __future__ import annotations

import functools
import math
import re
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _core
from ..dtype import BY_NAME, Category
from ..errors import TileError, TileValueError
from . import memory

RANDOM = 1 << 20  # numbers; longer arrays repeat them


def device_of(text: str) -> int | None:
    """None for the CPU."""
    if text == "auto":
        try:
            return 0 if _core.device_count() else None
        except TileError:
            return None
    match = re.fullmatch(r"cpu|cuda(?::(\d+))?", text)
    if match is None:
        raise TileValueError(f"--device {text!r}: expected cpu, cuda or cuda:1")
    return None if text == "cpu" else int(match[1] or 0)


def extents(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The shapes of the arrays among `NAME=dtype[extents]`."""
    found = {}
    for text in texts:
        array = re.fullmatch(r"(\w+)=\w+\[([^\]]*)\](?:unaligned)?", text.replace(" ", ""))
        if array:
            if "?" in array[2]:
                raise TileValueError(f"--arg {text!r}: to be measured an array needs its extents as numbers")
            parts = [n for n in array[2].split(",") if n]
            wrong = next((n for n in parts if not (n.isascii() and n.isdigit())), None)
            if wrong is not None:
                raise TileValueError(f"--arg {text!r}: the extent {wrong!r} is no number")
            found[array[1]] = tuple(map(int, parts))
    return found


def make_arguments(kernel: Any, key: Any, texts: Sequence[str], device: str) -> tuple[tuple[Any, ...], memory.Memory]:
    """The arguments of a launch, and the memory that keeps their arrays."""
    room, shapes = memory.Memory(device_of(device)), extents(texts)
    unaligned = {text.partition("=")[0].strip() for text in texts if text.rstrip().endswith("]unaligned")}
    values = []
    for name, (kind, *facts) in zip(kernel.parameters, key, strict=True):
        if kind == "scalar":
            raise TileValueError(f"--arg {name}={facts[0]}: to be measured a scalar needs a value, as in {name}=1000")
        values.append(facts[0] if kind == "const" else _random_array(room, facts[0], shapes[name], name in unaligned))
    return tuple(values), room


def _random_array(room: memory.Memory, name: str, shape: tuple[int, ...], unaligned: bool) -> Any:
    """`unaligned`: it begins with the second element of what is aligned."""
    dtype = BY_NAME[name]
    count = math.prod(shape)
    size = (count * dtype.bits + 7) // 8
    source, base = _random_bytes(dtype, size), room.allocate(size, max(1, dtype.bits // 8) if unaligned else 0)
    for at in range(0, size, len(source)):
        room.copy(base + at, source.ctypes.data, min(len(source), size - at))
    strides = tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))
    return memory.array_at(room.device, base, memory.View(0, 0, name, shape, strides, False))


@functools.lru_cache(2)
def _random_bytes(dtype: Any, size: int) -> Any:
    """At most RANDOM numbers as the bytes of the dtype."""
    generator = np.random.default_rng(0)
    count = min(RANDOM, max(1, size * 8 // dtype.bits))
    if dtype.bits == 4:
        return generator.integers(0, 256, count, np.uint8)
    floating = dtype.category is Category.FLOATING
    numbers = generator.standard_normal(count, np.float32) if floating else generator.integers(0, 2, count)
    return numbers.astype(np.float32 if dtype.name == "tfloat32" else dtype.numpy).view(np.uint8)


def read_grid(kernel: Any, texts: Sequence[str], text: str) -> Callable[..., Any]:
    """A function of the constants that the expression names; arrays have a `shape`."""
    arrays = {name: types.SimpleNamespace(shape=shape) for name, shape in extents(texts).items()}
    known: dict[str, Any] = {"__builtins__": {}, "min": min, "max": max, "cdiv": lambda x, y: -(-x // y), **arrays}
    try:
        code = compile(f"({text},)", "<grid>", "eval")
    except SyntaxError as error:
        raise TileValueError(f"--grid {text!r} is no expression: {error.msg}") from None
    names = [name for name in code.co_names if name in kernel.parameters and name not in arrays]
    unknown = [name for name in code.co_names if name not in known and name not in names and name != "shape"]
    if unknown:
        raise TileValueError(
            f"--grid {text!r}: {unknown[0]!r} is unknown; there are {', '.join(kernel.parameters)} and cdiv, min, max"
        )
    return eval(f"lambda {', '.join(names)}: ({text},)", known)  # the user's own command line
