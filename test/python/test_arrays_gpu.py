"""tilewright.Array and the CUDA Array Interface on a GPU, beside torch and CuPy where they are."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import _core, arrays
from tilewright import tile as ct
from tilewright.numba import cuda

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not arrays._has_gpu(), reason="there is no GPU"),
]


@ct.kernel
def doubled(X, Y):
    i = ct.bid(0)
    ct.store(Y, (i,), 2 * ct.load(X, (i,), (128,)))


@cuda.jit
def added(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += x[i]


def test_copies_of_strided_arrays() -> None:
    host = np.arange(2 * 3 * 4 * 5, dtype=np.int16).reshape(2, 3, 4, 5)
    a = tilewright.to_device(host)
    for index in (np.s_[:, ::2], np.s_[::-1, 1:, ::3, 1:3], np.s_[..., 0], np.s_[1, :, None, ::2]):
        np.testing.assert_array_equal(a[index].to_numpy(), host[index])
        changed, expected = a.copy(), host.copy()
        changed[index] = 7
        expected[index] = 7
        np.testing.assert_array_equal(changed.to_numpy(), expected)


def test_kernels_of_both_kinds() -> None:
    x = tilewright.to_device(np.arange(1000, dtype=np.float32))
    y = tilewright.zeros(1000, np.float32)
    ct.launch(None, 8, doubled, (x, y))
    added[8, 128](x, y)
    np.testing.assert_array_equal(y.to_numpy(), 3 * np.arange(1000))


def test_streams_are_ordered() -> None:
    """Many launches on many streams, without a word about their order."""
    x, y = tilewright.to_device(np.ones(1 << 20, np.float32)), tilewright.zeros(1 << 20, np.float32)
    streams = [cuda.stream() for _ in range(4)]
    for i in range(64):
        added[8192, 128, streams[i % 4]](x, y)
    assert (y.to_numpy() == 64).all()


def test_memory_is_used_again() -> None:
    before = None
    for _ in range(200):
        a = tilewright.empty(1 << 26, np.float32)
        before = before or a.address
        del a
        gc.collect()
    assert tilewright.empty(1 << 26, np.float32).address == before


@pytest.mark.spec("I-057", "I-058", "I-059")
def test_pointer_attributes() -> None:
    a = tilewright.empty(10)
    found = _core.pointer_attributes(a.address)
    assert found["device"] == 0 and found["memory_type"] == 2 and not found["managed"] and not found["host_accessible"]


@pytest.mark.spec("I-001", "I-046", "I-049", "I-062")
def test_torch() -> None:
    torch: Any = pytest.importorskip("torch")
    theirs = torch.arange(12, dtype=torch.float32, device="cuda").reshape(3, 4)
    ours = cuda.as_cuda_array(theirs[:, ::2])
    np.testing.assert_array_equal(ours.to_numpy(), theirs[:, ::2].cpu().numpy())
    ours[0] = 9.0
    assert theirs[0].tolist() == [9, 1, 9, 3]
    for back in (torch.as_tensor(ours, device="cuda"), torch.from_dlpack(ours)):
        assert back.data_ptr() == ours.address
    del theirs
    gc.collect()
    assert ours[0, 0] == 9
    y = torch.zeros(5, device="cuda")
    added[1, 32](torch.ones(5, device="cuda"), y)  # a temporary array
    assert y.tolist() == [1] * 5


@pytest.mark.spec("T-021")
@pytest.mark.spec("I-001", "I-003", "I-062")
def test_cupy() -> None:
    cupy: Any = pytest.importorskip("cupy")
    ours = tilewright.to_device(np.arange(6.0).reshape(2, 3))
    theirs = cupy.asarray(ours[:, ::-1])
    assert (cupy.asnumpy(theirs) == ours.to_numpy()[:, ::-1]).all()
    y = cupy.zeros(4)
    added[1, 32](cupy.ones(4), y)
    assert (y.get() == 1).all()
