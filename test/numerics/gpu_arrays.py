"""NumPy arrays of any strides in GPU memory: torch tensors, or DLPack where torch cannot."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from dlpack_structs import CUDA, Managed, Tensor, capsule

from tilewright import dtype as dt
from tilewright import tile as ct


class GpuArray:
    """The bytes around a NumPy view in GPU memory, and `value`, the view of them to launch with."""

    def __init__(self, array: np.ndarray, others: Iterable[GpuArray] = ()) -> None:
        """In the memory of one of `others` where that holds the same bytes."""
        self.host, offset = storage(array)
        same = (other.flat for other in others if np.may_share_memory(other.host, self.host))
        self.flat = next(same, None)
        if self.flat is None:
            self.flat = torch.from_numpy(self.host.view(np.uint8).copy()).cuda()
        dtype = dt.as_dtype(array.dtype)
        strides = [s // array.itemsize for s in array.strides]
        if array.size == 0:  # torch cannot view the bytes of nothing
            self.value: Any = torch.empty(array.shape, dtype=getattr(torch, dtype.name.rstrip("_")), device="cuda")
        elif all(s >= 0 for s in strides):
            typed = self.flat.view(getattr(torch, dtype.name.rstrip("_")))
            self.value = torch.as_strided(typed, array.shape, strides, offset)
        else:
            pointer = self.flat.data_ptr() + offset * array.itemsize
            self.value = Exporter(self.flat, pointer, dtype, array.shape, strides)

    def copy_back(self) -> None:
        self.host[...] = self.flat.cpu().numpy().view(self.host.dtype)


def storage(array: np.ndarray) -> tuple[np.ndarray, int]:
    """The contiguous elements around a view, 1-D, and where its first element is among them."""
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert base.flags.c_contiguous or base.flags.f_contiguous
    flat = base.ravel(order="K").view(array.dtype)
    assert flat.size == 0 or np.shares_memory(flat, base)
    addresses = [a.__array_interface__["data"][0] for a in (array, flat)]
    return flat, (addresses[0] - addresses[1]) // array.itemsize


# ---------------------------------------------------------------------------------------------
# DLPack, for the negative strides that torch has not

CODES = {ct.bfloat16: 4, ct.bool_: 6, ct.float8_e4m3fn: 10, ct.float8_e5m2: 12}
CODES |= {ct.float8_e8m0fnu: 14}


class Exporter:
    """An object with __dlpack__ over GPU memory that `owner` holds."""

    def __init__(self, owner: Any, pointer: int, dtype: dt.DType, shape: Any, strides: Any) -> None:
        self.owner = owner
        self.shape = tuple(shape)
        self.sizes = (ctypes.c_int64 * len(shape))(*shape)
        self.steps = (ctypes.c_int64 * len(shape))(*strides)
        code = CODES.get(dtype, 2 if dtype.is_float else int(not dtype.signed))
        tensor = Tensor(
            pointer,
            CUDA,
            owner.device.index,
            len(shape),
            code,
            dtype.bits,
            1,
            self.sizes,
            self.steps,
        )
        self.managed = Managed(tensor, None, None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.owner.device.index

    def __dlpack__(self, **_: Any) -> Any:
        return capsule(ctypes.addressof(self.managed), "dltensor")
