"""NumPy arrays in the memory of the first GPU, by the driver alone."""

from __future__ import annotations

import ctypes
import functools
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tilewright import dtype as dt
from tilewright import tile as ct

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "numerics"))
from dlpack_structs import CUDA, Managed, Tensor, capsule

from .arrays import whole

CODES = {ct.bfloat16: 4, ct.bool_: 6}  # of DLPack, beside integers and floats


@functools.cache
def driver() -> Any:
    """libcuda, with the context that other libraries share current in this thread."""
    lib, device, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()
    for call in (
        lambda: lib.cuInit(0),
        lambda: lib.cuDeviceGet(ctypes.byref(device), 0),
        lambda: lib.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
        lambda: lib.cuCtxSetCurrent(context),
    ):
        checked(call())
    return lib


def checked(status: int) -> None:
    if status:
        raise RuntimeError(f"CUDA error {status}")


class Exporter:
    """An array in GPU memory, as DLPack has it: of any strides."""

    def __init__(self, pointer: int, array: np.ndarray) -> None:
        dtype, rank = dt.as_dtype(array.dtype), array.ndim
        self.sizes = (ctypes.c_int64 * rank)(*array.shape)
        self.steps = (ctypes.c_int64 * rank)(*(s // array.itemsize for s in array.strides))
        code = CODES.get(dtype, 2 if dtype.is_float else int(not dtype.signed))
        tensor = Tensor(pointer, CUDA, 0, rank, code, dtype.bits, 1, self.sizes, self.steps)
        self.managed = Managed(tensor, None, None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, 0

    def __dlpack__(self, **_: Any) -> Any:
        return capsule(ctypes.addressof(self.managed), "dltensor")


class Device:
    """What is moved is copied there, and back by `copy_back`; the memory is freed at the end."""

    def __init__(self) -> None:
        self.lib = driver()
        self.copies: list[tuple[ctypes.c_uint64, np.ndarray]] = []

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: Any) -> None:
        for pointer, _ in self.copies:
            self.lib.cuMemFree_v2(pointer)

    def moved(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        memory, pointer = whole(value), ctypes.c_uint64()
        checked(self.lib.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(max(1, memory.nbytes))))
        self.copies.append((pointer, memory))
        size = ctypes.c_size_t(memory.nbytes)
        checked(self.lib.cuMemcpyHtoD_v2(pointer, ctypes.c_void_p(memory.ctypes.data), size))
        offset = value.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
        return Exporter(pointer.value + offset, value)

    def copy_back(self) -> None:
        """Behind all that runs."""
        checked(self.lib.cuCtxSynchronize())
        for pointer, memory in self.copies:
            size = ctypes.c_size_t(memory.nbytes)
            checked(self.lib.cuMemcpyDtoH_v2(ctypes.c_void_p(memory.ctypes.data), pointer, size))
