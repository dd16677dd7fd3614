"""What cuda.device says as a whole: its names, functions on tiles, arrays and types on the host, and interchange."""

from __future__ import annotations

import importlib.util
import weakref
from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.tile as ct
from cuda import device
from tilewright.errors import TileTypeError


@device.func
def scaled(a, b):
    product = a * b
    return product + 1


@ct.kernel
def on_tiles(x, y):
    tile = ct.load(x, (0,), (8,))
    ct.store(y, (0,), scaled(tile, tile))


@device.kernel
def on_numbers(x, y):
    i = device.tid(1)
    y[i] = scaled(x[i], x[i])


@pytest.mark.spec("D-009")
@pytest.mark.parametrize("interpreted", [False, True])
def test_a_function_of_threads_applies_to_each_element(interpreted: bool) -> None:
    x, y, z = np.arange(8, dtype=np.float32), np.zeros(8, np.float32), np.zeros(8, np.float32)
    if interpreted:
        on_tiles.interpret(1, (x, y))
    else:
        ct.launch(None, 1, on_tiles, (x, y))
    device.launch(on_numbers, x, z, grid=1, block=8)
    assert np.array_equal(y, x * x + 1) and np.array_equal(y, z)


@pytest.mark.spec("D-036", "D-054")
def test_arrays_of_the_host_keep_their_library() -> None:
    """A kernel takes arrays of libraries that have the whole Array API, and leaves them what they are."""
    x = np.arange(8, dtype=np.float32)
    device.launch(on_numbers, x, x, grid=1, block=8)
    assert type(x) is np.ndarray and float(np.sum(x)) == 148


@pytest.mark.spec("D-568")
def test_arrays_are_interchanged_by_dlpack() -> None:
    """With its device and a stream; what only has DLPack is an array."""

    class OnlyDlpack:
        def __init__(self, array: Any) -> None:
            self.array = array

        def __dlpack__(self, **how: Any) -> Any:
            return self.array.__dlpack__(**how)

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    x, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    device.launch(on_numbers, OnlyDlpack(x), OnlyDlpack(y), grid=1, block=4)
    assert list(y) == [1, 2, 5, 10]


def libraries() -> list[Any]:
    """An array of each library that is there: NumPy's, our own, torch's."""
    x = np.arange(4, dtype=np.float32)
    found = [x, tilewright.to_device(x, device="cpu")]
    if importlib.util.find_spec("torch"):
        import torch

        found.append(torch.from_numpy(x.copy()))
    return found


@pytest.mark.spec("D-006")
def test_one_kernel_takes_arrays_of_all_libraries() -> None:
    for x in libraries():
        y = np.zeros(4, np.float32)
        device.launch(on_numbers, x, y, grid=1, block=4)
        assert list(y) == [1, 2, 5, 10], type(x)


@pytest.mark.spec("D-213")
def test_arrays_of_kernels_have_the_array_api() -> None:
    """Those of NumPy, which a kernel has written, go on through the functions of the namespace that they name."""
    x = np.arange(8, dtype=np.float32)
    xp = x.__array_namespace__(api_version="2023.12")
    y = xp.zeros_like(x)
    device.launch(on_numbers, x, y, grid=1, block=8)
    assert xp.all(xp.equal(y, xp.add(xp.multiply(x, x), xp.asarray(1, dtype=xp.float32))))
    top = xp.flip(xp.sort(xp.permute_dims(xp.reshape(y, (2, 4)), (1, 0)), axis=0), axis=0)
    device.launch(on_numbers, xp.reshape(xp.concat([top, top]), (-1,))[:8], y, grid=1, block=8)
    assert float(xp.max(y)) == 50.0**2 + 1


@device.kernel
def counts(x, total):
    device.atomic_ref(x, 0).add(1)
    total[0] = device.atomic_ref(x, 0).load()


@pytest.mark.spec("D-401")
def test_a_launch_keeps_its_arrays() -> None:
    """An array that nobody else holds is there for as long as the kernel refers to its elements."""
    total, gone = np.zeros(1, np.int32), []
    x = np.full(1, 41, np.int32)
    weakref.finalize(x, gone.append, True)
    held = [x]
    del x
    device.launch(counts, held.pop(), total, grid=1, block=1)
    assert total[0] == 42 and gone == [True]


@device.struct
class Narrow:
    a: device.float8e4m3
    b: device.float8e5m2
    c: device.bfloat16


@device.kernel
def narrow_fields(given, out):
    out[0], out[1], out[2] = given.a, given.b, given.c


@pytest.mark.spec("D-087")
def test_narrow_formats_are_there_on_the_host(run: Any) -> None:
    """So they are heterogeneous: arguments of kernels, and fields of structs."""
    given = Narrow(device.float8e4m3(1.5), device.float8e5m2(-2), device.bfloat16(0.25))
    out = np.zeros(3, np.float32)
    run(narrow_fields, given, out)
    assert list(out) == [1.5, -2, 0.25]


class Stream:
    """What cuda.core's Stream is to a launch: an object with the method `__cuda_stream__`."""

    def __init__(self) -> None:
        self.asked = 0

    def __cuda_stream__(self) -> tuple[int, int]:
        self.asked += 1
        return 0, 0


@pytest.mark.spec("D-011")
def test_objects_of_cuda_core() -> None:
    x, y, stream = np.arange(4, dtype=np.float32), np.zeros(4, np.float32), Stream()
    device.launch(on_numbers, x, y, grid=1, block=4, stream=stream)
    assert list(y) == [1, 2, 5, 10]
    with pytest.raises(TileTypeError, match="stream"):
        device.launch(on_numbers, x, y, grid=1, block=4, stream="first")


ENTITIES = """
    ConstExpr func kernel launch struct align array machine_representation target any_target no_target is_host is_device
    is_exactly provides tid grid_size thread_idx block_idx block_dim grid_dim lane_id warp_size shared_array local_array
    dynamic_shared_array const_array Atomic AtomicInterface atomic_ref threadfence syncthreads syncthreads_count
    syncthreads_and syncthreads_or syncwarp WarpMask activemask lanemask_lt all_sync any_sync eq_sync ballot_sync
    shfl_sync shfl_up_sync shfl_down_sync shfl_xor_sync match_any_sync match_all_sync brev clz ffs popc fma cbrt rsqrt
    bfloat16 float8e4m3 float8e5m2 float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64
    float32x1 float32x2 float32x3 float32x4 sm70 sm80 sm90 SMSelector TargetDescription
"""


@pytest.mark.spec("D-008")
def test_every_entity_is_there() -> None:
    assert [name for name in ENTITIES.split() if not hasattr(device, name)] == []
