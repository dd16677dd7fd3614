"""Data for bench/compute.py, made and checked where it lies: by torch on a GPU, by NumPy on the CPU.

Arrays are what their library computes with: unsigned integers of 32 and 64 bits lie in signed ones, which torch has
all operations for, and a struct lies in four words. `shown` makes of them what an algorithm is called with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright import arrays

NAMES = {"u8": "uint8", "i16": "int16", "i32": "int32", "u32": "uint32", "i64": "int64", "u64": "uint64"}
NAMES |= {"f32": "float32", "f64": "float64"}
_HELD = {"u32": "int32", "u64": "int64"}
_CHUNK = 1 << 25  # items that are checked at a time, so that a check needs little memory


class OnCpu:
    lib: Any = np

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def held(self, dtype: str) -> Any:
        return np.dtype(_HELD.get(dtype, NAMES[dtype]))

    def random(self, n: int, dtype: str) -> Any:
        """Integers of all bit patterns, floats from 0 to 1."""
        held = self.held(dtype)
        if held.kind == "f":
            return self.rng.random(n, dtype=held)
        return np.frombuffer(self.rng.bytes(n * held.itemsize), held).copy()

    def below(self, bound: int, n: int, dtype: str) -> Any:
        return self.rng.integers(0, bound, n).astype(self.held(dtype))

    def arange(self, n: int, dtype: str) -> Any:
        return np.arange(n, dtype=self.held(dtype))

    def zeros(self, n: int, dtype: str) -> Any:
        return np.zeros(n, self.held(dtype))

    def shown(self, array: Any, dtype: Any) -> Any:
        return array.view(dtype)

    def cast(self, array: Any, dtype: str) -> Any:
        return array.astype(self.held(dtype))

    def view(self, array: Any, dtype: str) -> Any:
        return array.view(self.held(dtype))


class OnGpu(OnCpu):
    def __init__(self, device: str = "cuda") -> None:
        import torch

        self.lib, self.device = torch, device
        self.rng = torch.Generator(device).manual_seed(0)

    def held(self, dtype: str) -> Any:
        return getattr(self.lib, _HELD.get(dtype, NAMES[dtype]))

    def random(self, n: int, dtype: str) -> Any:
        made = self.zeros(n, dtype)
        if made.is_floating_point():
            return made.uniform_(generator=self.rng)
        words = made.view(self.lib.int32) if made.element_size() == 8 else made
        ends = self.lib.iinfo(words.dtype)
        words.random_(ends.min, ends.max + 1, generator=self.rng)
        return made

    def below(self, bound: int, n: int, dtype: str) -> Any:
        return self.zeros(n, dtype).random_(0, bound, generator=self.rng)

    def arange(self, n: int, dtype: str) -> Any:
        return self.lib.arange(n, dtype=self.held(dtype), device=self.device)

    def zeros(self, n: int, dtype: str) -> Any:
        return self.lib.zeros(n, dtype=self.held(dtype), device=self.device)

    def shown(self, array: Any, dtype: Any) -> Any:
        return arrays.as_array(array).view(dtype)

    def cast(self, array: Any, dtype: str) -> Any:
        return array.to(self.held(dtype))

    def view(self, array: Any, dtype: str) -> Any:
        return array.view(self.held(dtype))


# --- checks -----------------------------------------------------------------------------------------------------


def holds(n: int, test: Callable[[int, int], Any]) -> bool:
    """Whether `test(first, last)`, an array of truths, is true of all items."""
    return all(bool(test(at, min(at + _CHUNK, n)).all()) for at in range(0, n, _CHUNK))


def total(data: Any, n: int, value: Callable[[int, int], Any], dtype: str = "i64") -> Any:
    """The sum of `value(first, last)`; integers wrap."""
    sums = [data.cast(value(at, min(at + _CHUNK, n)), dtype).sum().reshape(1) for at in range(0, n, _CHUNK)]
    joined = data.lib.concatenate(sums).sum()
    return float(joined) if dtype == "f64" else int(joined)


def near(found: Any, expected: Any, tolerance: float) -> Any:
    return abs(found - expected) <= tolerance * abs(expected) + 1e-6


def prints(data: Any, array: Any, dtype: str, weights: Any = None) -> int:
    """A sum of hashes: it tells two arrays apart, but not by the order of their items."""
    bits = data.view(array, {"f32": "i32", "f64": "i64"}.get(dtype, dtype))

    def mixed(first: int, last: int) -> Any:
        found = mix(data.cast(bits[first:last], "i64"))
        return found if weights is None else found * (weights[first:last] + 1)

    return total(data, len(array), mixed)


def mix(words: Any) -> Any:
    """Hashes of int64."""
    words = (words ^ (words >> 31)) * 0x51B54A32D192ED03
    return words ^ (words >> 29)


def ordered(array: Any, dtype: str) -> Any:
    """An array whose signed items are in the order of those that it holds."""
    return array ^ {"u32": -(1 << 31), "u64": -(1 << 63)}[dtype] if dtype in _HELD else array
