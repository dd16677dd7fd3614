"""Arrays in GPU memory with nothing but the driver, for the demo on a machine without torch and CuPy.

A `DeviceArray` shows itself through the CUDA Array Interface, as any GPU library's array does.
"""

import ctypes

import numpy as np


class Driver:
    """The few calls of libcuda that are needed, on the primary context of device 0."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self("cuDeviceGet", ctypes.byref(device), 0)
        name = ctypes.create_string_buffer(128)
        self("cuDeviceGetName", name, 128, device)
        self.name = name.value.decode()
        self("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self("cuCtxSetCurrent", self.context)

    def __call__(self, function, *arguments):
        status = getattr(self.library, function)(*arguments)
        if status != 0:
            raise RuntimeError(f"{function} failed with status {status}")


_driver = None


def driver():
    """The driver, opened when first asked for; OSError or RuntimeError where there is none or no GPU."""
    global _driver
    if _driver is None:
        _driver = Driver()
    return _driver


class DeviceArray:
    def __init__(self, shape, dtype):
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self.nbytes = int(np.prod(self.shape)) * self.dtype.itemsize
        self.pointer = ctypes.c_uint64()
        driver()("cuMemAlloc_v2", ctypes.byref(self.pointer), ctypes.c_size_t(self.nbytes))

    def __del__(self):
        if self.pointer.value:
            driver()("cuMemFree_v2", self.pointer)

    @property
    def __cuda_array_interface__(self):
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer.value, False),
            "strides": None,
            "stream": None,
            "version": 3,
        }

    @classmethod
    def from_numpy(cls, array):
        array = np.ascontiguousarray(array)
        result = cls(array.shape, array.dtype)
        source = ctypes.c_void_p(array.ctypes.data)
        driver()("cuMemcpyHtoD_v2", result.pointer, source, ctypes.c_size_t(array.nbytes))
        return result

    def numpy(self):
        array = np.empty(self.shape, self.dtype)
        target = ctypes.c_void_p(array.ctypes.data)
        driver()("cuMemcpyDtoH_v2", target, self.pointer, ctypes.c_size_t(self.nbytes))
        return array


def synchronize():
    driver()("cuCtxSynchronize")
