"""The kernels of python/examples/kernels on inputs small enough for an emulator, each with what it must give.

    for case in CASES: case.arguments() -> inputs and outputs; case.launches(*inputs, *outputs); case.expected(*inputs)

No extent is a multiple of a tile's, so that every edge is reached.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "python" / "examples"))
from kernels import (
    attention_backward,
    convolution,
    cross_entropy,
    decode_attention,
    grouped_attention,
    grouped_gemm,
    layer_norm_linear,
    linear,
    linear_attention,
    paged_attention,
    rope,
    scaled_gemm,
    swiglu,
)

BF16, FP8, F16, F32 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.float16, np.float32
Launch = tuple[Any, Any, tuple[Any, ...]]


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    module: Any
    inputs: Callable[[Random], list[np.ndarray]]
    outputs: list[tuple[tuple[int, ...], Any]]  # shape, dtype
    options: dict[str, Any]
    tolerance: float
    scratch: int = 0  # so many of the outputs come first and are not compared
    launch_only: tuple[str, ...] = ("tiles", "tile")  # options that the reference does not take

    def arguments(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        return self.inputs(Random()), [np.zeros(shape, dtype) for shape, dtype in self.outputs]

    def launches(self, *arrays: Any) -> Iterator[Launch]:
        return self.module.launches(*arrays, **self.options)

    def expected(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        wide = [x if x.dtype.kind in "iu" else x.astype(np.float32) for x in inputs]
        options = {key: value for key, value in self.options.items() if key not in self.launch_only}
        with np.errstate(all="ignore"):
            found = self.module.reference(*wide, **options)
        return list(found) if isinstance(found, tuple) else [found]

    def error(self, found: list[np.ndarray], expected: list[np.ndarray]) -> float:
        """The largest error, relative to the largest result."""
        pairs = zip(found[self.scratch :], expected, strict=True)
        return max(float(np.abs(x.astype(F32) - y).max() / np.abs(y).max()) for x, y in pairs)


class Random:
    def __init__(self) -> None:
        self.generator = np.random.default_rng(0)

    def __call__(self, *shape: int, dtype: Any = F16, scale: float = 1.0) -> np.ndarray:
        return (self.generator.standard_normal(shape, dtype=F32) * scale).astype(dtype)

    def positive(self, *shape: int) -> np.ndarray:
        return self.generator.uniform(0.5, 2, shape).astype(F32)


def gradients(random: Random) -> list[np.ndarray]:
    q, k, v, dy = (random(1, 2, 152, 64) for _ in range(4))
    y, lse = attention_backward.forward(*(x.astype(F32) for x in (q, k, v)))
    return [q, k, v, y.astype(F16), dy, lse.astype(F32)]


def pages(random: Random) -> list[np.ndarray]:
    """Two sequences; page numbers are shuffled, and -1 stands behind the last one."""
    table = np.array([[5, 2, 7, 0, 4], [1, 6, 3, -1, -1]], np.int32)
    return [random(2, 4, 24, 64), *(random(8, 32, 2, 64) for _ in range(2)), table, np.array([152, 72], np.int32)]


def angles(random: Random) -> list[np.ndarray]:
    angle = random(56, 32, dtype=F32)
    return [random(2, 2, 56, 64), np.cos(angle), np.sin(angle)]


def table() -> Iterator[Case]:
    def case(name: str, module: Any, inputs: Any, outputs: Any, tolerance: float = 2e-3, **rest: Any) -> Case:
        fields = {key: rest.pop(key) for key in ("scratch",) if key in rest}
        return Case(name, module, inputs, outputs, rest, tolerance, **fields)

    for name in ("none", "silu", "gelu"):
        inputs = lambda r: [r(136, 200), r(152, 200, scale=0.1), r(152), r(136, 152)]  # noqa: E731
        yield case(f"linear {name}", linear, inputs, [((136, 152), F16)], activation=name, tiles=(64, 64, 64))
    inputs = lambda r: [r(136, 200), r(200, 152, scale=0.1), r(200, 152, scale=0.1)]  # noqa: E731
    yield case("swiglu", swiglu, inputs, [((136, 152), F16)], tiles=(64, 64, 64))
    offsets = np.array([0, 72, 72, 208, 216], np.int32)
    inputs = lambda r: [r(216, 136), r(4, 136, 152), offsets]  # noqa: E731
    yield case("grouped gemm", grouped_gemm, inputs, [((216, 152), F16)], tiles=(64, 64, 64))
    inputs = lambda r: [r(136, 304, dtype=FP8), r(208, 304, dtype=FP8), r.positive(136, 3), r.positive(2, 3)]  # noqa: E731
    yield case("scaled gemm", scaled_gemm, inputs, [((136, 208), BF16)], 5e-3, tiles=(64, 64))
    inputs = lambda r: [r(136, 200), r(200), r(200), r(152, 200)]  # noqa: E731
    yield case("layer norm linear", layer_norm_linear, inputs, [((136, 152), F16)], 4e-3, tiles=(64, 64, 64))
    for stride in (1, 2):
        inputs = lambda r: [r(2, 9, 11, 72), r(80, 3, 3, 72)]  # noqa: E731
        out = [((2, 9, 11, 80) if stride == 1 else (2, 5, 6, 80), F16)]
        yield case(f"convolution {stride}", convolution, inputs, out, stride=stride, tiles=(64, 64, 64))
    for name, options in {"gqa": {}, "window": {"window": 40}, "cap": {"cap": 2.0}}.items():
        inputs = lambda r: [r(1, 4, 152, 64), r(1, 2, 152, 64), r(1, 2, 152, 64)]  # noqa: E731
        yield case(f"attention {name}", grouped_attention, inputs, [((1, 4, 152, 64), F16)], tiles=(64, 64), **options)
    yield case("attention paged", paged_attention, pages, [((2, 4, 24, 64), F16)], tiles=(64, 64))
    inputs = lambda r: [r(2, 2, 8, 64), *(r(2, 2, 300, 64) for _ in range(2)), np.array([300, 77], np.int32)]  # noqa: E731
    outputs = [((2, 2, 4, 8, 64), F32), ((2, 2, 4, 8), F32), ((2, 2, 4, 8), F32), ((2, 2, 8, 64), F16)]
    yield case("attention decode", decode_attention, inputs, outputs, scratch=3, tiles=(16, 64))
    inputs = lambda r: [r(1, 2, 152, 64, scale=0.2), r(1, 2, 152, 64, scale=0.2), r(1, 2, 152, 64)]  # noqa: E731
    yield case("attention linear", linear_attention, inputs, [((1, 2, 152, 64), F16)], 4e-3, tile=64)
    out = [((1, 2, 152), F32)] + 3 * [((1, 2, 152, 64), F16)]
    yield case("attention backward", attention_backward, gradients, out, 4e-3, scratch=1, tiles=(64, 64))
    yield case("rope", rope, angles, [((2, 2, 56, 64), F16)], tile=32)
    inputs = lambda r: [r(9, 3000, scale=2), np.arange(9, dtype=np.int32) * 301]  # noqa: E731
    yield case("cross entropy", cross_entropy, inputs, [((9,), F32), ((9, 3000), F16)], tile=1024)


CASES = {case.name: case for case in table()}
