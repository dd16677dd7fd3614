"""Signatures of kernels with complex numbers and structures, their texts, and what is compiled by them."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.errors import LaunchError, TileTypeError, TileUnsupportedFeatureError, TileValueError
from tilewright.numba import cuda, types

POINT = np.dtype([("x", np.float32), ("y", np.int64)], align=True)


@cuda.jit
def parts(a, b, points, point):
    a[0] = b * 2
    points[1].x = point.y


@pytest.mark.parametrize("by_text", [False, True])
def test_a_signature_of_complex_numbers(by_text) -> None:
    signature = "void(complex64[:], complex128)" if by_text else types.void(types.complex64[:], types.complex128)

    @cuda.jit(signature)
    def kernel(a, b):
        a[0] = b * 2

    a = np.zeros(2, np.complex64)
    kernel[1, 1](a, 1j)
    assert a.tolist() == [2j, 0]
    assert ".entry kernel" in kernel.inspect_asm(kernel.signatures[0])
    assert list(kernel.overloads) == [(types.complex64[:], types.complex128)]


def test_a_signature_of_structures() -> None:
    record = types.from_dtype(POINT)
    ptx, result = cuda.compile_ptx(parts, types.void(types.complex64[:], types.complex64, record[:], record))
    assert ".entry parts" in ptx and isinstance(result, types.NoneType)


def test_signatures_name_them() -> None:
    kernel = type(parts)(parts.function)
    points = np.zeros(2, POINT)
    kernel[1, 1](np.zeros(2, np.complex64), 1j, points, points[0])
    assert list(map(str, kernel.signatures)) == [
        "(complex64[:], complex128, Record(x: float32, y: int64)[:], Record(x: float32, y: int64))"
    ]


def test_no_argument_is_void() -> None:
    with pytest.raises(TileTypeError, match="no arguments of CPointer"):
        cuda.compile_ptx(parts, types.void(*[types.CPointer(types.float32)] * 4))


def test_texts() -> None:
    assert str(types.parse("float32(CPointer(float32), int32)")) == "float32(CPointer(float32), int32)"
    assert str(types.parse("void(int64,)")) == "void(int64)"
    assert str(types.parse("void(float32[:, :], int8,)")) == "void(float32[:, :], int8)"


def test_options_of_code_without_a_launch() -> None:
    ptx, _ = cuda.compile_ptx(lambda: None, (), cc=(9, 0, "a"), launch_bounds=(128, 2, 4))
    assert ".target sm_90a" in ptx and ".maxntid 128" in ptx and ".minnctapersm 2" in ptx
    assert ".maxntid 64" in cuda.compile(lambda: None, (), device=False, abi="numba", launch_bounds=64)[0]
    with pytest.raises(TileValueError, match=r"found \(1, 2, 3, 4\)"):
        cuda.compile_ptx(lambda: None, (), launch_bounds=(1, 2, 3, 4))
    with pytest.raises(TileUnsupportedFeatureError, match="Unsupported ABI: fastcall"):
        cuda.compile_ptx(lambda: None, (), abi="fastcall")


def test_an_overload_shows_code_for_another_gpu() -> None:
    overload = cuda.jit(lambda x: None).compile("void(float32[:])")
    assert ".target sm_90a" in overload.inspect_asm((9, 0)) and ".target sm_90a" not in overload.inspect_asm((8, 0))


def test_a_device_function_is_no_kernel() -> None:
    @cuda.jit(device=True)
    def function(x):
        return x

    with pytest.raises(LaunchError, match="function is a device function, which kernels call"):
        function[1, 1](1)
    with pytest.raises(TileUnsupportedFeatureError, match="no machine code of its own"):
        function.inspect_sass((types.int32,))


def test_devices_by_a_slice() -> None:
    assert list(cuda.gpus[0:1]) == [cuda.gpus[0]] and len(cuda.gpus[1:]) == len(cuda.gpus) - 1


def test_elements_in_the_order_of_a_stream() -> None:
    array, stream = cuda.to_device(np.arange(5)), cuda.stream()
    array.setitem(slice(1, 3), 10, stream=stream)
    stream.synchronize()
    assert array.copy_to_host().tolist() == [0, 10, 10, 3, 4] and array.getitem(2) == 10
