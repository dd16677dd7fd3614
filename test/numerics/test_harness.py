"""What the numerical tests stand on, where no other test would notice that it is broken."""

from __future__ import annotations

import harness
import numpy as np

from tilewright import tile as ct


@ct.kernel
def scale(A, B):
    ct.store(B, index=(0,), tile=ct.load(A, index=(0,), shape=(16,)) * 2)


def test_compiling_alone() -> None:
    a = np.zeros(16, np.float32)
    harness.run("sm_90a", scale, 1, [a, a.copy()])
    harness.run("sm_80", scale, 1, [a, a.copy()])


def test_a_difference_is_told() -> None:
    a = np.arange(4, dtype=np.float32)
    assert harness.mismatch(a, a.copy(), harness.EXACT, None) is None
    b = a.copy()
    b[2] = np.nextafter(b[2], np.float32(9))
    assert "1 of 4 elements differ; first at (2,)" in (harness.mismatch(b, a, harness.EXACT, None) or "")
    assert harness.mismatch(b, a, harness.Tolerance(1, 0), None) is None
    assert harness.mismatch(b, a, harness.EXACT, np.array([False, False, True, False])) is None
    b[1] = np.nan
    assert harness.mismatch(b, b.copy(), harness.EXACT, None) is None
    assert harness.mismatch(b, a, harness.Tolerance(9, 0), None) is not None
