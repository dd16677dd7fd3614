"""What samples of a time tell: the median, an interval for it, and when to stop asking."""

from __future__ import annotations

import dataclasses
import math
import statistics as stat
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Measurement:
    """Seconds: the median of the samples, and an interval that holds the true median 95 times in 100; and the same in
    microseconds under cuTile's names. `config`: what was measured, of an exhaustive search."""

    median: float
    low: float
    high: float
    samples: int
    config: Any = None

    @classmethod
    def of(cls, samples: Sequence[float]) -> Measurement:
        """The interval is made of order statistics, so it assumes nothing about how times are spread."""
        ordered = sorted(samples)
        n = len(ordered)
        reach = 0.98 * math.sqrt(n)  # 1.96 standard deviations of a binomial with p = 1/2
        low = max(0, math.floor(n / 2 - reach) - 1)
        high = min(n - 1, math.ceil(n / 2 + reach))
        return cls(stat.median(ordered), ordered[low], ordered[high], n)

    @property
    def mean_us(self) -> float:
        """The median: a few samples that were disturbed do not move it."""
        return 1e6 * self.median

    @property
    def error_margin_us(self) -> float:
        return 1e6 * (self.high - self.low) / 2

    @property
    def num_samples(self) -> int:
        return self.samples

    @property
    def width(self) -> float:
        """Of the interval, relative to the median."""
        return (self.high - self.low) / self.median if self.median > 0 else 0.0

    def __str__(self) -> str:
        return f"{1e6 * self.median:.1f} us [{1e6 * self.low:.1f}, {1e6 * self.high:.1f}]"


CLEAR = 0.01  # drop candidates slower than the best by more than this margin


def survivors(measured: dict[int, Measurement]) -> list[int]:
    """The candidates that may still be the best."""
    best = min(measured.values(), key=lambda m: m.median)
    return [n for n, m in measured.items() if m.low <= best.high or m.median <= (1 + CLEAR) * best.median]


def is_decided(measured: dict[int, Measurement]) -> bool:
    """One is left, or what is left is equal as far as anybody will notice."""
    if len(measured) <= 1:
        return True
    best = min(m.median for m in measured.values())
    return all(m.width < 0.01 and m.median < 1.01 * best for m in measured.values())


def winner(measured: dict[int, Measurement]) -> int:
    """The best; the earlier one (the kernel as given is the first) of those that cannot be told apart from it."""
    best = min(measured.values(), key=lambda m: m.median)
    return min(n for n, m in measured.items() if m.median <= (1 + CLEAR) * best.median and m.low <= best.high)
