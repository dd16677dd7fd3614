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
    few_rows,
    gates,
    grouped_attention,
    grouped_gemm,
    layer_norm_linear,
    linear,
    linear_attention,
    moe,
    paged_attention,
    quantized_linear,
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


def table(grow: int = 1) -> Iterator[Case]:
    """The cases; `grow` makes extents so many times larger."""

    def case(name: str, module: Any, inputs: Any, outputs: Any, tolerance: float = 2e-3, **rest: Any) -> Case:
        scratch = rest.pop("scratch", 0)
        return Case(name, module, inputs, outputs, rest, tolerance, scratch)

    m, n, k, length = 136 * grow, 152 * grow, 200 * grow, 152 * grow
    small, tiles = (grow * k) ** -0.5, (64, 64, 64)
    for rows, splits in ((1, 1), (13, 3)):
        yield case(
            f"few rows, {splits} parts",
            few_rows,
            lambda r, rows=rows: [r(rows, k), r(n, k, scale=small)],
            [((splits, 16, n), F32), ((rows, n), F16)],
            scratch=1,
            tiles=(16, 64, 64),
        )
    for name in ("none", "silu", "gelu"):
        yield case(
            f"linear {name}",
            linear,
            lambda r: [r(m, k), r(n, k, scale=small), r(n), r(m, n)],
            [((m, n), F16)],
            activation=name,
            tiles=tiles,
        )
    yield case(
        "swiglu", swiglu, lambda r: [r(m, k), r(k, n, scale=small), r(k, n, scale=small)], [((m, n), F16)], tiles=tiles
    )
    for name in ("silu", "gelu"):
        yield case(f"gate {name}", gates, lambda r: [r(8 * k), r(8 * k)], [((8 * k,), F16)], activation=name, tile=512)
    offsets = np.array([0, 72, 72, 208, 216], np.int32) * grow
    for about, its in {"": tiles, ", two warpgroups": (128, 256, 64)}.items():
        yield case(
            f"grouped gemm{about}",
            grouped_gemm,
            lambda r: [r(216 * grow, k), r(4, k, n), offsets],
            [((216 * grow, n), F16)],
            tiles=its,
        )

    def routed(r: Random) -> list[np.ndarray]:
        chosen = r.generator.integers(0, 3, 108 * grow * 2)  # of four experts: one has no tokens
        starts = np.searchsorted(np.sort(chosen), np.arange(5)).astype(np.int32)
        order = np.argsort(chosen, kind="stable").astype(np.int32)
        return [r(108 * grow, k), r(4, k, n, scale=small), order, starts]

    for about, its in {"": tiles, ", two warpgroups": (128, 256, 64)}.items():
        yield case(f"mixture of experts{about}", moe, routed, [((216 * grow, n), F16)], tiles=its)
    for bits, rows in ((8, m), (4, m), (8, 13)):
        yield case(
            f"quantized linear, {bits} bits, {rows} rows",
            quantized_linear,
            lambda r, bits=bits, rows=rows: [
                r(rows, 256 * grow),
                r.generator.integers(-128, 128, (n, 32 * grow * bits)).astype(np.int8),
                r.positive(n) / 1000,
            ],
            [((rows, n), F16)],
            bits=bits,
            tiles=(128, 128, 64) if rows > 16 else (16, 64, 64),
        )
    yield case(
        "scaled gemm",
        scaled_gemm,
        lambda r: scaled(r, m, 208 * grow, 304 * grow),
        [((m, 208 * grow), BF16)],
        5e-3,
        tiles=(64, 64),
    )
    yield case(
        "layer norm linear",
        layer_norm_linear,
        lambda r: [r(m, k), r(k), r(k), r(n, k)],
        [((m, n), F16)],
        4e-3,
        tiles=tiles,
    )
    for about, (p, q), its in (
        ("1", (9, 11), tiles),
        ("2", (5, 6), tiles),
        ("1, two warpgroups", (9, 11), (128, 256, 64)),
    ):
        yield case(
            f"convolution {about}",
            convolution,
            lambda r: [r(2, 9, 11, 72 * grow), r(80, 3, 3, 72 * grow)],
            [((2, p, q, 80), F16)],
            stride=int(about[0]),
            tiles=its,
        )

    y = [((1, 4, length, 64), F16)]
    for name, options in {"gqa": {}, "window": {"window": 40 * grow}, "cap": {"cap": 2.0}}.items():
        yield case(
            f"attention {name}",
            grouped_attention,
            lambda r: [r(1, 4, length, 64), r(1, 2, length, 64), r(1, 2, length, 64)],
            y,
            tiles=(64, 64),
            **options,
        )
    y = [((2, 4, 24, 64), F16)]
    for about, its in {"": (64, 64), ", two warpgroups": (128, 64)}.items():
        yield case(f"attention paged{about}", paged_attention, lambda r: pages(r, grow), y, tiles=its)
    for page in (64, 128):  # a tile lies in one
        about = f"attention paged, of {page}"
        yield case(about, paged_attention, lambda r, page=page: pages(r, grow, page), y, tiles=(128, 64))
    outputs = [((2, 2, 4, 8, 64), F32), ((2, 2, 4, 8), F32), ((2, 2, 4, 8), F32), ((2, 2, 8, 64), F16)]
    yield case("attention decode", decode_attention, lambda r: cache(r, 300 * grow), outputs, scratch=3, tiles=(16, 64))
    yield case(
        "attention linear",
        linear_attention,
        lambda r: [r(1, 2, length, 64, scale=0.2), r(1, 2, length, 64, scale=0.2), r(1, 2, length, 64)],
        [((1, 2, length, 64), F16)],
        4e-3,
        tile=64,
    )
    outputs = [((1, 2, length), F32)] + 3 * [((1, 2, length, 64), F16)]
    for causal, name in ((True, "attention backward"), (False, "attention backward, all visible")):
        yield case(
            name,
            attention_backward,
            lambda r, causal=causal: gradients(r, length, causal),
            outputs,
            4e-3,
            scratch=1,
            tiles=(128, 64),
            causal=causal,
        )

    yield case("rope", rope, lambda r: angles(r, 56 * grow), [((2, 2, 56 * grow, 64), F16)], tile=32)
    yield case(
        "cross entropy",
        cross_entropy,
        lambda r: [r(9, 3000 * grow, scale=2), np.arange(9, dtype=np.int32) * 301],
        [((9,), F32), ((9, 3000 * grow), F16)],
        tile=1024,
    )


def cache(random: Random, length: int) -> list[np.ndarray]:
    return [random(2, 2, 8, 64), *(random(2, 2, length, 64) for _ in range(2)), np.array([length, 77], np.int32)]


def scaled(random: Random, m: int, n: int, k: int) -> list[np.ndarray]:
    steps = -(-k // scaled_gemm.BLOCK)
    scales = random.positive(m, steps), random.positive(-(-n // scaled_gemm.BLOCK), steps)
    return [random(m, k, dtype=FP8), random(n, k, dtype=FP8), *scales]


def gradients(random: Random, length: int, causal: bool) -> list[np.ndarray]:
    q, k, v, dy = (random(1, 2, length, 64) for _ in range(4))
    y, lse = attention_backward.forward(*(x.astype(F32) for x in (q, k, v)), causal)
    return [q, k, v, y.astype(F16), dy, lse.astype(F32)]


def pages(random: Random, grow: int, page: int = 32) -> list[np.ndarray]:
    """Two sequences; page numbers are shuffled, and -1 stands behind the last one."""
    table = np.full((2, 5 * grow), -1, np.int32)
    table[0], table[1, : 3 * grow] = np.split(random.generator.permutation(8 * grow), [5 * grow])
    lengths = np.array([152, 72], np.int32) * (grow * page // 32)
    return [random(2, 4, 24, 64), *(random(8 * grow, page, 2, 64) for _ in range(2)), table, lengths]


def angles(random: Random, length: int) -> list[np.ndarray]:
    angle = random(length, 32, dtype=F32)
    return [random(2, 2, length, 64), np.cos(angle), np.sin(angle)]


CASES = {case.name: case for case in table()}
