"""A product that tests cut, fuse and share: with any hints it gives the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness import Backends, run

from tilewright import tile as ct

ZERO = ct.PaddingMode.ZERO


@ct.kernel
def product(A, B, BIAS, C, ACC: ct.Constant, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=ACC)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        a = ct.load(A, index=(i, k), shape=(TM, TK), padding_mode=ZERO)
        acc = ct.mma(a, ct.load(B, index=(k, j), shape=(TK, TN), padding_mode=ZERO), acc)
    bias = ct.load(BIAS, index=(j,), shape=(TN,), padding_mode=ZERO)
    ct.store(C, index=(i, j), tile=(acc + bias).astype(C.dtype))


def integers(seed: int, *shape: int, dtype: Any = np.float16) -> np.ndarray:
    """Of which every order of a sum gives the same."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(dtype)


def check(
    backends: Backends, hints: dict[str, Any], shape: Any, tiles: Any, dtype: Any = np.float16, acc: Any = ct.float32
) -> None:
    """On integers."""
    m, n, k = shape
    a, b, bias = integers(1, m, k, dtype=dtype), integers(2, k, n, dtype=dtype), integers(3, n)
    kernel, grid = product.replace_hints(**hints), (-(-m // tiles[0]), -(-n // tiles[1]))
    c = backends.run_all(kernel, grid, lambda: [a, b, bias, np.full((m, n), 7, np.float32), acc, *tiles])[3]
    assert np.array_equal(c, a.astype("f4") @ b.astype("f4") + bias)


def check_bits(backends: Backends, *candidates: tuple[dict[str, Any], Any]) -> None:
    """Hints and tiles of which each gives the same, bit for bit and not to a tolerance."""
    random = np.random.default_rng(5)
    m, n, k = 136, 200, 192
    a, b, bias = (random.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n), (n,)))
    for name in backends.names:
        results = []
        for hints, tiles in candidates:
            c, grid = np.zeros((m, n), "f4"), (-(-m // tiles[0]), -(-n // tiles[1]))
            run(name, product.replace_hints(**hints), grid, [a, b, bias, c, ct.float32, *tiles])
            results.append(c)
        assert all(np.array_equal(results[0], other) for other in results[1:])
