"""Arrays, streams and kernels of other libraries in launches on a GPU, against the stand-in driver.

Their arrays have here the protocols that CuPy and torch have, and no more.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import producers as p
import pytest
from fake_launches import Cases, fake, make, refused

from cuda import device
from tilewright import _core
from tilewright.errors import TileValueError

case = Cases()
STREAM, OTHER = 0x5007, 0x5009


@device.kernel
def increase(x):
    i = device.tid(1)
    if i < x.size:
        x[i] += 1


class Stream:
    """As cuda.core, CuPy and torch have it."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


class CupyArray:
    """`cupy.ndarray`: the CUDA Array Interface, strides where it is not contiguous, and DLPack by capsule."""

    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...] | None = None) -> None:
        data = {"shape": shape, "typestr": "<f4", "descr": [("", "<f4")], "stream": 1, "version": 3}
        self.__cuda_array_interface__ = data | {"strides": strides, "data": (address, False)}
        steps = None if strides is None else tuple(step // 4 for step in strides)
        self._exported = p.Unversioned(address, shape, strides=steps)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._exported.device

    def __dlpack__(self, stream: Any = None) -> Any:
        return self._exported.__dlpack__(stream)


class Tensor(p.Exchange):
    """`torch.Tensor`: DLPack by functions of C; what records gradients has no other protocol."""

    __dlpack_c_exchange_api__ = p.Exchange.__dlpack_c_exchange_api__  # type: ignore[attr-defined]

    def __dlpack__(self, **how: Any) -> Any:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")

    @property
    def __cuda_array_interface__(self) -> Any:
        raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad.")


@case()
def arrays_of_cupy() -> None:
    k = make("A", "B")
    for view, words in [
        (CupyArray(p.device_address(0, 64), (6,)), [p.device_address(0, 64), 6, 1]),
        (CupyArray(p.device_address(0, 256), (6,), (8,)), [p.device_address(0, 256), 6, 2]),
        (CupyArray(p.device_address(0, 256), (6,), (-4,)), [p.device_address(0, 256), 6, -1]),
        (CupyArray(0, (0,)), [0, 0, 1]),
    ]:
        _core.launch(STREAM, 1, k, (view, CupyArray(p.device_address(0), (4,))))
        assert fake.words == [*words, p.device_address(0), 4, 1]
        assert fake.last.stream == STREAM


@case()
def tensors_of_torch() -> None:
    k = make("A", "B")
    Tensor.current_stream = p.Exchange.current_stream = OTHER
    a = Tensor(p.device_address(0, 128), (4, 6), strides=(1, 4))
    b = Tensor(p.device_address(0), (3,), strides=(1,))
    _core.launch(None, 1, k, (a, b))
    assert fake.words == [p.device_address(0, 128), 4, 6, 1, 4, p.device_address(0), 3, 1]
    assert fake.last.stream == OTHER  # what torch works on now
    _core.launch(Stream(STREAM), 1, k, (b, a))
    assert fake.words == [p.device_address(0), 3, 1, p.device_address(0, 128), 4, 6, 1, 4]
    assert fake.last.stream == STREAM
    refused(TileValueError, "no memory behind it", _core.launch, None, 1, k, (Tensor(0, (3,)), b))


@case(FAKECUDA_BUSY="1")
def a_launch_does_not_wait() -> None:
    """The stream has work that never ends: whoever waits for it is seen."""
    x = p.Exchange(p.device_address(0), (64,), strides=(1,))
    for _ in range(3):
        device.launch(increase, x, grid=2, block=32, stream=Stream(STREAM))
    assert sum(line.startswith("launch increase") for line in fake.log) == 3
    waits = ("cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize", "cuStreamQuery")
    assert {name: fake.calls(name) for name in waits} == dict.fromkeys(waits, 0)


class Config(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_size_t),
        ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_uint),
    ]


def called(name: str, *arguments: Any) -> None:
    assert getattr(fake.lib, name)(*arguments) == 0, name


@case()
def kernels_of_two_frameworks() -> None:
    """On one array and one stream: launches come in their order, on the stream and in the context of the other one."""
    context, module, function = (ctypes.c_size_t() for _ in range(3))
    called("cuInit", 0)
    called("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    called("cuCtxSetCurrent", context)
    called("cuModuleLoadDataEx", ctypes.byref(module), b".version 7.8\n.entry theirs()", 0, None, None)
    called("cuModuleGetFunction", ctypes.byref(function), module, b"theirs")
    theirs = Config((1, 1, 1), (32, 1, 1), 0, STREAM)
    x = CupyArray(p.device_address(0), (64,))
    device.launch(increase, x, grid=2, block=32, stream=Stream(STREAM))
    ours = fake.words
    called("cuLaunchKernelEx", ctypes.byref(theirs), function, None, None)
    device.launch(increase, x, grid=2, block=32, stream=Stream(STREAM))
    assert fake.words == ours and ours[0] == p.device_address(0)
    device.launch(increase, x, grid=2, block=32, stream=Stream(OTHER))
    launches = [line for line in fake.log if line.startswith("launch")]
    names = [f"launch increase {STREAM:x}", f"launch theirs {STREAM:x}"]
    assert launches == [*names, names[0], f"launch increase {OTHER:x}"]
    now = ctypes.c_size_t()
    called("cuCtxGetCurrent", ctypes.byref(now))
    assert now.value == context.value == fake.last.context


IDS = {
    "arrays_of_cupy": ("T-021",),
    "tensors_of_torch": ("T-022",),
    "a_launch_does_not_wait": ("D-313",),
    "kernels_of_two_frameworks": ("D-004", "D-316"),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.spec(*IDS[name])) for name in case])
def test_frameworks(name: str) -> None:
    case.run(__file__, name)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
