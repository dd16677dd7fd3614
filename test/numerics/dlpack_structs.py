"""The C structures and capsules of DLPack, for tests that export memory by themselves."""

from __future__ import annotations

import ctypes
from typing import Any

PyCapsule_New = ctypes.pythonapi.PyCapsule_New
PyCapsule_New.restype = ctypes.py_object
PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]

# A capsule keeps the pointer of its name.
NAMES = {
    name: ctypes.create_string_buffer(name.encode())
    for name in ("dltensor", "dltensor_versioned", "used_dltensor", "dlpack_exchange_api")
}


def capsule(pointer: int, name: str) -> Any:
    return PyCapsule_New(pointer, ctypes.addressof(NAMES[name]), None)


CPU, CUDA, CUDA_HOST, METAL = 1, 2, 3, 8


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    """A null deleter: the exporter outlives the launch."""

    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]
