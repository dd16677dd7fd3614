"""What ct.print writes on the CPU (on a GPU the driver writes it, in its own time)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import tile as ct


@ct.kernel
def show(X, n):
    ct.print("x =", ct.load(X, (0,), (4,)), "n =", n)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int64])
def test_integers_keep_their_sign(dtype: type, capfd: pytest.CaptureFixture[str]) -> None:
    info = np.iinfo(dtype)
    x = np.array([info.min, 1, info.max, info.max // 2 + 1], dtype)
    ct.launch(None, (1,), show, (x, dtype(info.max)))
    assert capfd.readouterr().out == f"x = [{' '.join(str(v) for v in x)}] n = {info.max}\n"
