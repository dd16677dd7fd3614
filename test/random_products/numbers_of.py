"""Arrays for programs and their expected results: by NumPy, or by torch on a GPU, which is as exact and quick.

`wide` numbers are float64. Formulas use what both libraries call alike: `numbers.lib.where`, `.exp`, `@`, …
"""

from __future__ import annotations

import dataclasses
from typing import Any

import ml_dtypes
import numpy as np

MARGIN = 512  # elements behind each output, which must stay as they are
EPS = {
    "float32": 2.0**-23, "tfloat32": 2.0**-10, "float16": 2.0**-10, "bfloat16": 2.0**-7, "float8_e4m3fn": 2.0**-3,
    "float8_e5m2": 2.0**-2,
}  # fmt: skip


@dataclasses.dataclass
class Output:
    """What an array of this dtype must hold, and how far off each element may be (wide)."""

    want: Any
    allowed: Any
    dtype: str


def stored(dtype: str) -> str:
    """The dtype of an array whose tiles have this one."""
    return "float32" if dtype == "tfloat32" else dtype


def is_integer(dtype: str) -> bool:
    return dtype in ("int8", "uint8", "int32")


class NumPy:
    lib: Any = np

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def integers(self, low: int, high: int, shape: tuple[int, ...]) -> Any:
        return self.generator.integers(low, high, shape).astype(np.float64)

    def normal(self, shape: tuple[int, ...]) -> Any:
        return self.generator.standard_normal(shape)

    def arange(self, count: int) -> Any:
        return np.arange(count, dtype=np.float64)

    def of_dtype(self, x: Any, dtype: str) -> Any:
        numpy = getattr(ml_dtypes, dtype) if hasattr(ml_dtypes, dtype) else np.dtype(dtype)
        narrow = x if is_integer(dtype) else x.astype(np.float32)
        return np.ascontiguousarray(narrow.astype(numpy))

    def wide(self, x: Any) -> Any:
        return x.astype(np.float64)

    def whole(self, x: Any) -> Any:
        """As indices."""
        return x.astype(np.int64)

    def first_and_count(self, marked: Any) -> tuple[tuple[int, ...], int]:
        places = np.argwhere(marked)
        return tuple(map(int, places[0])), len(places)

    def poisoned(self, shape: tuple[int, ...], dtype: str) -> Any:
        """An output in which every element is wrong, and so are those behind it."""
        count = int(np.prod(shape))
        value = 77 if is_integer(dtype) else np.nan
        return self.of_dtype(np.full(count + MARGIN, value), dtype)[:count].reshape(shape)

    def margin_is_whole(self, output: Any, dtype: str) -> bool:
        behind = output.base if output.base.ndim == 1 else output.base.base
        behind = self.wide(behind[output.size :])
        return bool((behind == 77).all() if is_integer(dtype) else np.isnan(behind).all())


class Torch:
    """On the GPU."""

    device = "cuda"

    def __init__(self, seed: int) -> None:
        import torch

        self.lib = torch
        self.generator = torch.Generator(self.device).manual_seed(seed)

    def integers(self, low: int, high: int, shape: tuple[int, ...]) -> Any:
        return self.lib.randint(low, high, shape, generator=self.generator, device=self.device).double()

    def normal(self, shape: tuple[int, ...]) -> Any:
        return self.lib.randn(shape, generator=self.generator, device=self.device).double()

    def arange(self, count: int) -> Any:
        return self.lib.arange(count, dtype=self.lib.float64, device=self.device)

    def of_dtype(self, x: Any, dtype: str) -> Any:
        narrow = x if is_integer(dtype) else x.float()
        return narrow.to(getattr(self.lib, dtype)).contiguous()

    def wide(self, x: Any) -> Any:
        return x.double()

    def whole(self, x: Any) -> Any:
        return x.long()

    def first_and_count(self, marked: Any) -> tuple[tuple[int, ...], int]:
        places = marked.nonzero()
        return tuple(places[0].tolist()), len(places)

    def poisoned(self, shape: tuple[int, ...], dtype: str) -> Any:
        count = int(np.prod(shape))
        value = 77 if is_integer(dtype) else float("nan")
        return self.of_dtype(self.lib.full((count + MARGIN,), value, device=self.device), dtype)[:count].view(shape)

    def margin_is_whole(self, output: Any, dtype: str) -> bool:
        behind = self.lib.as_strided(output, (MARGIN,), (1,), output.numel()).double()
        return bool((behind == 77).all() if is_integer(dtype) else self.lib.isnan(behind).all())


def rounded(numbers: Any, x: Any, dtype: str) -> Any:
    """The wide numbers nearest to those of x that a dtype has, by way of float32."""
    return numbers.wide(numbers.of_dtype(x, stored(dtype)))
