"""Random kernels with products: loops around them, what happens to operands and sums, shapes, and hints.

Numbers are small integers, so that all sums are exact, in whatever order, and results are compared bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from harness import Backends
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tilewright import tile as ct

HINTS: dict[str, list[Any]] = {
    "num_warps": [None, None, 4, 8],
    "num_stages": [None, None, 2, 3],
    "num_ctas": [None, None, 2],
    "split_k": [None, 1, 2, 3],
    "occupancy": [None, None, 2],
    "dynamic_schedule": [None, None, 0, 1],
}
HEAD = """from tilewright import tile as ct

ZERO = ct.PaddingMode.ZERO


@ct.kernel
def kernel(A, B, W, BIAS, SCALE, LENGTHS, C, D, SUMS, steps):
    i, j = ct.bid(0), ct.bid(1)
"""


class Source:
    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.dtype = self.pick([ct.float16, ct.float16, ct.bfloat16, ct.int8])
        self.sum_dtype = ct.int32 if self.dtype is ct.int8 else ct.float32
        self.tiles = tuple(self.pick(v) for v in ([16, 64, 64, 128], [16, 32, 64, 128], [16, 32, 64, 64]))
        self.transposed = self.pick([False, True])
        self.two = self.pick([False, False, True])
        self.row_sums = self.pick([False, False, True])
        self.lines: list[str] = []

    def pick(self, values: Any) -> Any:
        return self.data.draw(st.sampled_from(values))

    def emit(self, depth: int, *lines: str) -> None:
        self.lines += ["    " * depth + line for line in lines]

    def step(self, depth: int, k: str) -> None:
        tm, tn, tk = self.tiles
        unchecked = self.pick(["", "", ", latency=3"])
        self.emit(depth, f"a = ct.load(A, (i, {k}), ({tm}, {tk}), padding_mode=ZERO{unchecked})")
        before = [None, None, "a + a", "ct.where(a > 0, a, -a)"]
        before += [
            f"a * ct.load(SCALE, (i, 0), ({tm}, 1))",
            f"a * ct.load(SCALE, (i, {k}), ({tm}, 1), padding_mode=ZERO)",
        ]
        change = self.pick(before)
        if change:
            self.emit(depth, f"a = ({change}).astype(ct.{self.dtype})")
        for name, array in [("acc", "B")] + [("acc2", "W")] * self.two:
            index, shape = f"({k}, j)", (tk, tn)
            if self.transposed:
                index, shape = f"(j, {k})", (tn, tk)
            b = f"ct.load({array}, {index}, {shape}, padding_mode=ZERO){'.transpose()' if self.transposed else ''}"
            change = self.pick([None, None, None, "{} + {}", "ct.where({0} > 0, {0}, 1)"])
            if change:
                self.emit(depth, f"b = {b}")
                b = f"({change.format('b', 'b')}).astype(ct.{self.dtype})"
            self.emit(depth, f"{name} = ct.mma(a, {b}, {name})")
        if self.row_sums:
            self.emit(depth, f"rows = rows + ct.sum(a.astype(ct.{self.sum_dtype}), axis=1, keepdims=True)")

    def loop(self) -> None:
        form = self.pick(["plain", "plain", "plain", "nested", "branch", "while", "twice", "strided", "stores"])
        if form in ("plain", "twice", "stores"):
            self.emit(1, "for k in range(steps):")
            self.step(2, "k")
            if form == "stores":
                self.emit(2, f"ct.store(D, (i, k), a.astype(ct.{self.sum_dtype}))")
            if form == "twice":
                self.emit(1, "for k in range(1, steps):")
                self.step(2, "k")
        elif form == "nested":
            self.emit(1, "for outer in range(2):", "    for k in range(outer, steps):")
            self.step(3, "k")
        elif form == "branch":
            self.emit(1, "for k in range(steps):", "    if (k + i) % 2 == 0:")
            self.step(3, "k")
        elif form == "while":
            self.emit(1, "k = 0", "while k < steps:")
            self.step(2, "k")
            self.emit(2, "k += 1")
        else:
            self.emit(1, "for k in range(0, steps, 2):")
            self.step(2, "k")

    def source(self) -> str:
        tm, tn, _ = self.tiles
        self.emit(1, f"acc = ct.zeros({(tm, tn)}, ct.{self.sum_dtype})")
        if self.two:
            self.emit(1, f"acc2 = ct.ones({(tm, tn)}, ct.{self.sum_dtype})")
        if self.row_sums:
            self.emit(1, f"rows = ct.zeros({(tm, 1)}, ct.{self.sum_dtype})")
        lengths = [None, None, "i + 1", "ct.gather(LENGTHS, i)"]
        length = self.pick(lengths if self.row_sums else [*lengths, "(i + 2 * j) % 3"])  # all of a row store their sums
        if length:  # blocks have unequal work, perhaps none
            self.emit(1, f"steps = ct.minimum(steps, {length})")
        self.loop()
        after = [None, None, "ct.maximum(acc, 0)", f"acc + ct.load(BIAS, (0, j), (1, {tn}))"]
        after += [f"acc + ct.load(C, (i, j), {(tm, tn)})", f"acc * ct.load(SCALE, (i, 0), ({tm}, 1)).astype(acc.dtype)"]
        for change in (self.pick(after), self.pick(after)):
            if change:
                self.emit(1, f"acc = {change}")
        if self.two:
            self.emit(1, self.pick(["acc = acc + acc2", "acc = ct.where(acc2 > 0, acc, acc2)"]))
        if self.row_sums:
            self.emit(1, "ct.store(SUMS, (i, 0), rows)")
        self.emit(1, "ct.store(C, (i, j), acc)")
        return HEAD + "\n".join(self.lines) + "\n"


@settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_random_products(backends: Backends, kernel_of: Callable[[str], Any], data: st.DataObject) -> None:
    program = Source(data)
    source = program.source()
    hints = {name: value for name, values in HINTS.items() if (value := program.pick(values)) is not None}
    tm, tn, tk = program.tiles
    unit = program.pick([16, 16, 8, 1])
    m, n, k = (data.draw(st.integers(1, 3 * t // unit)) * unit for t in (tm, tn, 2 * tk))
    note(f"{source}\n{hints} {m} x {n} x {k}")
    kernel = kernel_of(source).replace_hints(**hints)
    rng = np.random.default_rng(0)

    def integers(*shape: int, dtype: Any = program.dtype.numpy) -> np.ndarray:
        return rng.integers(-2, 3, shape).astype(dtype)

    b, w = (integers(*((n, k) if program.transposed else (k, n))) for _ in range(2))
    wide = program.sum_dtype.numpy
    lengths = rng.integers(0, 4, -(-m // tm)).astype(np.int32)
    inputs = [integers(m, k), b, w, integers(1, n, dtype=wide), integers(m, -(-k // tk)), lengths]
    c = integers(m, n, dtype=wide)
    backends.run_all(
        kernel,
        (-(-m // tm), -(-n // tn)),
        lambda: [
            *(x.copy() for x in inputs),
            c.copy(),
            np.zeros((m, k), wide),
            np.zeros((m, 1), wide),
            -(-k // tk),
        ],
    )
