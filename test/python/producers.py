"""Arrays of imaginary libraries, for the tests of array import: one class for each protocol.

They describe memory by address, so that "GPU" memory needs no GPU: the stand-in driver knows the
addresses 0x100000000000 * (device + 1).
"""

from __future__ import annotations

import ctypes
from typing import Any

from dlpack_structs import CPU, CUDA, CUDA_HOST, METAL, Managed, ManagedVersioned, Tensor, capsule  # noqa: F401


def device_address(device: int, offset: int = 0) -> int:
    return 0x100000000000 * (device + 1) + offset


class Base:
    """Memory at an address, with what DLPack says of it."""

    def __init__(
        self,
        address: int,
        shape: tuple[int, ...],
        *,
        device: tuple[int, int] = (CUDA, 0),
        dtype: tuple[int, int, int] = (2, 32, 1),
        strides: tuple[int, ...] | None = None,
        flags: int = 0,
        version: tuple[int, int] = (1, 1),
        byte_offset: int = 0,
    ) -> None:
        self.address, self.dl_shape, self.dl_strides = address, shape, strides
        self.device, self.dl_dtype, self.flags = device, dtype, flags
        self.dl_version, self.byte_offset = version, byte_offset
        self.asked: list[dict[str, Any]] = []
        n = len(shape)
        self._shape = (ctypes.c_int64 * max(n, 1))(*shape)
        self._strides = (ctypes.c_int64 * max(n, 1))(*strides) if strides is not None else None

    def fill(self, tensor: Tensor) -> None:
        tensor.data = self.address
        tensor.device_type, tensor.device_id = self.device
        tensor.ndim = len(self.dl_shape)
        tensor.code, tensor.bits, tensor.lanes = self.dl_dtype
        tensor.shape = self._shape
        tensor.strides = self._strides
        tensor.byte_offset = self.byte_offset


class Versioned(Base):
    """`__dlpack__` as since version 1.0."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        self.asked.append({"stream": stream, "max_version": max_version})
        self._managed = ManagedVersioned(*self.dl_version, None, None, self.flags)
        self.fill(self._managed.tensor)
        return capsule(ctypes.addressof(self._managed), "dltensor_versioned")


class Unversioned(Base):
    """`__dlpack__` as before version 1.0: it does not know max_version."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, stream: Any = None) -> Any:
        self.asked.append({"stream": stream})
        self._managed = Managed()
        self.fill(self._managed.tensor)
        return capsule(ctypes.addressof(self._managed), "dltensor")


class CudaArray:
    """`__cuda_array_interface__`, as given."""

    def __init__(self, address: int, shape: tuple[int, ...], typestr: str = "<f4", **more: Any) -> None:
        read_only = more.pop("read_only", False)
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": typestr,
            "data": (address, read_only),
            "version": 3,
        } | more


# --- the C exchange API ----------------------------------------------------------------------------

_TensorFrom = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))
_CurrentStream = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class ExchangeTable(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("managed_from_object", ctypes.c_void_p),
        ("managed_to_object", ctypes.c_void_p),
        ("tensor_from_object", _TensorFrom),
        ("current_work_stream", _CurrentStream),
    ]


class Exchange(Versioned):
    """Has the C exchange API; its library works on `current_stream`."""

    current_stream = 0
    reads = 0


@_TensorFrom
def _tensor_from(array: Exchange, out: Any) -> int:
    type(array).reads += 1
    array.fill(out[0])
    return 0


@_CurrentStream
def _current_stream(kind: int, device: int, out: Any) -> int:
    out[0] = Exchange.current_stream
    return 0


_table = ExchangeTable(1, 3, None, None, None, None, _tensor_from, _current_stream)
# A newer table in front, of a major version that nobody knows yet.
_newer = ExchangeTable(2, 0, ctypes.addressof(_table), None, None, None, _tensor_from, _current_stream)
Exchange.__dlpack_c_exchange_api__ = capsule(  # type: ignore[attr-defined]
    ctypes.addressof(_newer), "dlpack_exchange_api"
)


class Wrapper(Exchange):
    """Inherits the API but may stand for other memory: must be read by `__dlpack__`."""
