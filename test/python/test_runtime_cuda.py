"""Launching on GPUs, against the stand-in driver: parameters, streams, devices, mixtures, faults, error texts."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import producers as p
import pytest
import records as r
from fake_launches import MAP, PTX, SPLIT, Cases, cuda, fake, make, misses, on, own, refused, shares

from tilewright import _core
from tilewright.errors import DriverError, LaunchError, TileCompilationError, TileTypeError, TileValueError

case = Cases()


# --- what the driver gets ----------------------------------------------------------------------------


@case()
def parameters_and_launch() -> None:
    k = make("A", "n", "T", "x", constants=(2,), shared_bytes=100_000)
    a = on(0, 3, 8, offset=256)
    _core.launch(0x5007, (4, 3, 2), k, (a, 5, 128, 1.0))
    last = fake.last
    assert (last.name, tuple(last.grid), tuple(last.block)) == (b"kernel", (4, 3, 2), (128, 1, 1))
    assert (last.shared_bytes, last.stream, last.attributes) == (100_000, 0x5007, 0)
    assert fake.words == [p.device_address(0, 256), 3, 8, 8, 1, 5, 0x3F800000]
    assert misses[0][0] == "sm_90a"
    assert fake.log == ["load 0", "launch kernel 5007"]
    for _ in range(3):
        _core.launch(0x5007, (4, 3, 2), k, (a, 5, 128, 1.0))
    assert len(misses) == 1 and fake.calls("cuLibraryLoadData") == 1
    assert fake.calls("cuCtxPushCurrent_v2") == fake.calls("cuCtxPopCurrent_v2") > 0


@case()
def arrays_unlike_those_of_the_launch_before() -> None:
    """Each launch with one thing changed, then with the first array again: what is kept of it must not show."""
    k = make("A", "B")

    def array(*, device: int = 0, offset: int = 0, **more: Any) -> Any:
        given = {"shape": (16, 8), "strides": (8, 1), "dtype": (2, 32, 1)} | more
        return p.Exchange(p.device_address(device, offset), given.pop("shape"), device=(p.CUDA, device), **given)

    def words(array: Any) -> list[int]:
        return [array.address + array.byte_offset, *array.dl_shape, *array.dl_strides]

    first, b = array(), array(offset=4096)
    _core.launch(None, 1, k, (first, b))
    specializations = 1
    for other, fresh in [
        (array(offset=256), False),
        (array(offset=4), True),
        (array(byte_offset=8), False),
        (array(byte_offset=32), False),
        (array(shape=(16, 7)), False),
        (array(shape=(24, 8)), True),
        (array(shape=(32, 8)), False),
        (array(strides=(16, 1)), False),
        (array(strides=(9, 1)), True),
        (array(strides=(1, 16)), True),
        (array(dtype=(0, 32, 1)), True),
        (array(dtype=(2, 16, 1)), True),
        (array(shape=(16,), strides=(1,)), True),
        (array(shape=(16, 8, 1), strides=(8, 1, 1)), True),
    ]:
        specializations += fresh
        for a in (other, other, first):
            _core.launch(None, 1, k, (a, b))
            assert fake.words == words(a) + words(b)
        assert len(misses) == specializations, other.__dict__
    again = array()
    again.dl_shape = again._shape = (p.ctypes.c_int64 * 2)(16, 8)
    _core.launch(None, 1, k, (again, b))
    again._shape[0] = 32  # resized in place
    _core.launch(None, 1, k, (again, b))
    assert fake.words[:5] == [again.address, 32, 8, 8, 1]
    refused(LaunchError, "its arrays are in different places", _core.launch, None, 1, k, (array(device=1), b))
    nothing = p.Exchange(0, (16, 8), strides=(8, 1))
    refused(TileValueError, "no memory behind it", _core.launch, None, 1, k, (nothing, b))
    _core.launch(None, 1, k, (array(device=1), array(device=1)))
    assert fake.last.context == 0xC001 and misses[-1][0] == "sm_91a"


@case()
def programmatic_launch_and_given_blocks() -> None:
    _core.launch(None, 1, make("A", dependent_launch=True), (on(0, 4),))
    assert fake.last.attributes == 1
    _core.launch_threads(None, 2, (32, 4), make("A", threads=0, simt=True), (on(0, 4),))
    assert tuple(fake.last.block) == (32, 4, 1)


@case()
def persistent_kernels() -> None:
    """132 multiprocessors, of which each has room for one block of 384 threads or two of 128."""
    a, words = on(0, 4), [p.device_address(0), 4, 1]
    k = make("A", threads=384, persistent=True)
    for grid, started in [((1,), 1), ((132, 1), 132), ((133,), 67), ((20, 10), 100), ((16, 16, 2), 128)]:
        _core.launch(None, grid, k, (a,))
        assert tuple(fake.last.grid) == (started, 1, 1)
        assert fake.words == [*words, *grid, *([1] * (3 - len(grid)))]
    _core.launch(None, (20, 20), make("A", persistent=True), (a,))
    assert tuple(fake.last.grid) == (200, 1, 1)
    assert fake.calls("cuOccupancyMaxActiveBlocksPerMultiprocessor") == 2  # once a kernel
    many = "kernel kernel, grid (65536, 16385, 1): more than 1073741824 blocks; use larger tiles"
    refused(LaunchError, many, _core.launch, None, (1 << 16, (1 << 14) + 1), k, (a,))
    refused(LaunchError, "(2147483647, 65535, 65535)", _core.launch, None, (2147483647, 65535, 65535), k, (a,))
    pairs = make("A", threads=384, persistent=True, multicast=r.multicast(0, 1024, 0, 0, 1365))
    for blocks, started in [(1, 2), (132, 132), (133, 68), (264, 132), (265, 90)]:
        _core.launch(None, blocks, pairs, (a,))
        assert tuple(fake.last.grid) == (started, 1, 1)
    for wrong in [(3, 1, 1, 1, 1), (0, 0, 1, 1, 1), (0, 1, -1, 0, 1), (0, 1, 0, 0, 0)]:
        none = make("A", persistent=True, multicast=r.multicast(*wrong))
        refused(Exception, "", _core.launch, None, 1, none, (a,))
    assert _core.launch_facts(cuda(64, persistent=True).record)["persistent"]
    assert not _core.launch_facts(cuda(64).record)["persistent"]


ASKED = ("cuStreamGetCaptureInfo_v2", "cuStreamGetId", "cuStreamGetCtx", "cuThreadExchangeStreamCaptureMode")


@case()
def launches_that_ask_the_driver_nothing() -> None:
    """The default stream cannot be captured and does not end: its workspace is known from the first launch on."""
    dynamic = make("A", threads=384, persistent=True, dynamic=True)
    shared = make("A", threads=384, persistent=True, split=SPLIT, split_applied=True)
    first = shares(dynamic, (17, 32), 0, None)[1]
    assert shares(shared, (8, 4), 1 << 16, None)[3] == first > 0
    before = [fake.calls(name) for name in ASKED]
    for stream in (None, 0, 1):
        assert shares(dynamic, (17, 32), 0, stream)[1] == first == shares(shared, (8, 4), 1 << 16, stream)[3]
    assert [fake.calls(name) for name in ASKED] == before and fake.calls("cuMemAlloc_v2") == 1
    others = {own(shared, 0x5010 + n) for n in range(12)}  # more than there are workspaces of streams
    assert first not in others and len(others) == 8
    assert shares(dynamic, (9,), 0, None)[1] == first


@case()
def launches_that_ask_the_driver_once() -> None:
    """Of any other stream each thing is asked once a launch: what it captures, and its number for a workspace."""
    plain = make("A")
    dynamic = make("A", threads=384, persistent=True, dynamic=True)
    shared = make("A", threads=384, persistent=True, split=SPLIT, split_applied=True)
    for k, numbers in ((plain, 0), (dynamic, 1), (shared, 1)):
        for _ in range(2):  # the first one allocates
            before = [fake.calls(name) for name in ASKED[:2]]
            _core.launch(0x5001, (8, 4), k, (on(0, 4, 1 << 16),))
            asked = [fake.calls(name) - was for name, was in zip(ASKED, before, strict=False)]
            assert asked == [1, numbers]
    before = [fake.calls(name) for name in ASKED[:2]]
    _core.launch(0x500F, (8, 4), shared, (on(0, 4, 1 << 16),))
    assert [fake.calls(name) for name in ASKED[:2]] == [before[0] + 1, before[1]]  # one that captures has no number


@case()
def a_default_stream_without_memory() -> None:
    dynamic = make("A", threads=384, persistent=True, dynamic=True)
    fake.fail("cuMemAlloc_v2", 1, 2)
    assert shares(dynamic, (9,), 0, None) == (9, 0)
    assert shares(dynamic, (9,), 0, None)[1] > 0


@case()
def what_is_better_is_found_without_the_driver() -> None:
    """A question takes no workspace, not for a stream and not for the graph that it captures."""
    taken: list[int] = []

    def sharing(*what: Any) -> Any:
        taken.append(fake.calls("cuMemAlloc_v2"))
        return cuda(384, 512, persistent=True, split=SPLIT, split_applied=True)

    for number, stream in enumerate((0x5001, 0x500F, None)):
        k = make("A", threads=384, persistent=True, split=SPLIT, better=sharing)
        assert shares(k, (8, 4), 1 << 16, stream)[:3] == (128, 4, 0)
        assert taken == list(range(number + 1)) and fake.calls("cuMemAlloc_v2") == number + 1


@case()
def cubins_and_usage() -> None:
    cubin, log = _core.ptx_to_cubin(PTX)
    assert cubin.startswith(b"CUBIN") and log == ""
    assert _core.ptx_to_cubin(PTX, "sm_91a")[0] == cubin
    refused(DriverError, "none of the 2 CUDA device(s) runs code for sm_80", _core.ptx_to_cubin, PTX, "sm_80")
    kernel = cuda(64, 1000, image=cubin)
    kernel.load(0)
    assert kernel.usage(0) == {
        "registers": 32,
        "local_bytes": 0,
        "shared_bytes": 0,
        "max_threads": 1024,
    }
    facts = _core.launch_facts(kernel.record)
    assert (facts["num_threads"], facts["shared_bytes"], kernel.name) == (64, 1000, "kernel")
    assert fake.calls("cuLibraryLoadData") == 1
    assert _core._bench_driver_launch(kernel, 0, 0, bytes(24), 10) > 0
    assert fake.calls("cuLaunchKernelEx") == 10
    assert not any(line.startswith("level") for line in fake.log)
    _core.ptx_to_cubin("// opt_level 1\n" + PTX)
    cuda(64, image="// opt_level 0\n" + PTX).load(0)
    assert [line for line in fake.log if line.startswith("level")] == ["level 1", "level 0"]


@case()
def others_go_on_while_one_waits_for_the_driver() -> None:
    """No call that loads code, links or waits keeps the interpreter from other threads: code takes long to load."""
    event = _core.event_create(0)
    _core.event_record(0, event)
    calls = (
        ("cuLibraryLoadData", lambda: cuda(64, image=f"// a\n{PTX}").load(0)),
        ("cuLibraryLoadData", lambda: cuda(64, image=f"// b\n{PTX}").usage(0)),
        ("cuLibraryLoadData", lambda: cuda(64, image=f"// c\n{PTX}").resident(0, 64, 0)),
        ("cuLibraryLoadData", lambda: _core.launch(None, 1, make("A"), (on(0, 4),))),
        ("cuLinkComplete", lambda: _core.ptx_to_cubin(PTX)),
        ("cuCtxSynchronize", lambda: _core.synchronize(0)),
        ("cuEventSynchronize", lambda: _core.event_elapsed(0, event, event)),
    )
    for number, (entry, call) in enumerate(calls):
        called = fake.calls(entry)
        fake.hold(entry)
        with ThreadPoolExecutor(1) as threads:
            waits = threads.submit(call)
            while fake.calls(entry) == called and not waits.done():
                time.sleep(0.001)
            is_waiting = not waits.done()
            fake.hold(None)
            waits.result()
        assert is_waiting, (number, entry)


@case()
def code_of_several_kernels_is_loaded_at_a_time() -> None:
    """The driver compiles PTX for each. What threads load of one kernel, it compiles once."""
    kernels = [cuda(64, image=f"// {number}\n{PTX}") for number in range(4)]
    fake.hold("cuLibraryLoadData")
    with ThreadPoolExecutor(8) as threads:
        loads = [threads.submit(kernel.load, 0) for kernel in (*kernels, *kernels)]
        while fake.calls("cuLibraryLoadData") < len(kernels) and not any(load.done() for load in loads):
            time.sleep(0.001)
        assert fake.calls("cuLibraryLoadData") == len(kernels) and not any(load.done() for load in loads)
        fake.hold(None)
        for load in loads:
            load.result()
    assert fake.calls("cuLibraryLoadData") == len(kernels) and fake.calls("cuModuleLoadDataEx") == 0


@case()
def a_driver_without_libraries() -> None:
    os.environ["FAKECUDA_VERSION"] = "11080"
    kernel = cuda(64)
    kernel.load(0)
    assert kernel.usage(0)["registers"] == 32
    refused(TileCompilationError, "syntax error", cuda(64, image=f"{PTX}\nsyntax error").load, 0)
    assert fake.calls("cuLibraryLoadData") == 0 and fake.calls("cuModuleLoadDataEx") == 2
    for number in range(16):
        cuda(64, image=f"// {number}\n{PTX}").load(0)
    assert fake.calls("cuModuleUnload") > 0 and fake.calls("cuLibraryUnload") == 0


# --- tensor maps -------------------------------------------------------------------------------------


def described(words: list[int]) -> tuple[Any, ...]:
    """What the stand-in driver was told of a map: address, rank, type, swizzle, extents, strides, box."""
    rank = words[1] & 255
    box = [words[12 + d // 2] >> (32 * (d % 2)) & 0xFFFFFFFF for d in range(rank)]
    return words[0], rank, words[1] >> 8 & 255, words[1] >> 16, words[2 : 2 + rank], words[8 : 7 + rank], box


@case()
def tensor_maps_come_before_the_words() -> None:
    k = make("n", "A", "B", tensor_maps=[r.tensor_map(1, *MAP[1:]), r.tensor_map(6, 2, 0, (0,), (256,))])
    a, b = on(0, 100, 48), on(0, 1000, offset=4096)
    _core.launch(None, 1, k, (7, a, b))
    words = fake.words[6:]  # the driver's parameters begin 48 bytes before
    assert len(words) == 2 * 16 + 1 + 5 + 3
    assert described(words) == (p.device_address(0), 2, 2, 3, [48, 100], [192], [32, 64])
    assert described(words[16:]) == (p.device_address(0, 4096), 1, 1, 0, [1000], [], [256])
    assert words[32:] == [7, p.device_address(0), 100, 48, 48, 1, p.device_address(0, 4096), 1000, 1]
    assert misses[0][1][1][-1] is True  # what the launch says of A


@case()
def tensor_maps_are_made_when_an_array_changes() -> None:
    k = make("A", tensor_maps=[r.tensor_map(*MAP)])
    for n, array in enumerate((on(0, 100, 48), on(0, 100, 48, offset=64), on(0, 99, 48), on(0, 99, 44)), 1):
        for _ in range(3):
            _core.launch(None, 1, k, (array,))
            assert described(fake.words[6:])[0] == fake.words[22]
        assert fake.calls("cuTensorMapEncodeTiled") == n


@case()
def tensor_maps_are_found_when_the_kernel_is_loaded() -> None:
    fake.fail("cuFuncGetParamInfo", 1, 1)
    message = "kernel kernel: finding the tensor maps failed: CUDA_ERROR_INVALID_VALUE (1)"
    refused(Exception, message, _core.launch, None, 1, make("A", tensor_maps=[r.tensor_map(*MAP)]), (on(0, 100, 48),))


@case()
def extents_of_one_may_have_any_stride() -> None:
    _core.launch(None, 1, make("A", tensor_maps=[r.tensor_map(*MAP)]), (on(0, 1, 44),))
    assert described(fake.words[6:])[5] == [16]


@case()
def tensor_maps_that_are_refused() -> None:
    k = make("A", tensor_maps=[r.tensor_map(*MAP)])
    fake.fail("cuTensorMapEncodeTiled", 1, 1)
    message = "kernel kernel, tensor map 0: describing an array to the GPU failed: CUDA_ERROR_INVALID_VALUE (1)"
    refused(LaunchError, message, _core.launch, None, 1, k, (on(0, 100, 48),))
    _core.launch(None, 1, k, (on(0, 100, 48),))
    k = make("n", tensor_maps=[r.tensor_map(*MAP)])
    refused(Exception, "tensor map 0 is of an array that the launch has not", _core.launch, 0x5007, 1, k, (3,))
    for wrong in [
        (0, 3, 128, (1, 0), (32, 64)),
        (0, 4, 100, (1, 0), (32, 64)),
        (0, 4, 128, (1, 1), (32, 64)),
        (0, 4, 128, (2, 0), (32, 64)),
        (0, 4, 128, (1, 0), (0, 64)),
        (0, 4, 128, (), ()),
        (508, 4, 128, (1, 0), (32, 64)),
    ]:
        row = r.tensor_map(*wrong)
        refused(TileValueError, "launch record: ", lambda row=row: cuda(64, tensor_maps=[row]))


# --- streams -----------------------------------------------------------------------------------------


@case()
def forms_of_streams() -> None:
    class Protocol:
        def __cuda_stream__(self) -> tuple[int, int]:
            return (0, 0x5001)

    class Property:
        __cuda_stream__ = (0, 0x5002)

    class Torch:
        cuda_stream = 0x5003

    class Cupy:
        ptr = 0x5004

    class Newer:
        def __cuda_stream__(self) -> tuple[int, int]:
            return (1, 0x5001)

    k = make("A")
    a = on(0, 4)
    for stream in (0, 1, 2, 0x5009):
        _core.launch(stream, 1, k, (a,))
        assert fake.last.stream == stream
    for handle, kind in enumerate((Protocol, Property, Torch, Cupy), 0x5001):
        _core.launch(kind(), 1, k, (a,))
        assert fake.last.stream == handle
    refused(TileTypeError, "version 1 of __cuda_stream__", _core.launch, Newer(), 1, k, (a,))
    refused(LaunchError, "kernel kernel, grid (1, 1, 1)", _core.launch, 0x5100, 1, k, (a,))

    class Both(Protocol):
        """Has the handle as an attribute, too: that is quicker, where the two agree."""

        asked = 0
        ptr = "no handle"

        def __init__(self, handle: int, told: int) -> None:
            self.cuda_stream, self.told = handle, told

        def __cuda_stream__(self) -> tuple[int, int]:
            Both.asked += 1
            return (0, self.told)

    for handle, told, asked in [(0x5002, 0x5003, 1), (0x5002, 0x5003, 2), (0x5004, 0x5004, 3), (0x5005, 0x5005, 4)]:
        _core.launch(Both(handle, told), 1, k, (a,))
        assert (fake.last.stream, Both.asked) == (told, asked)
    _core.launch(Torch(), 1, k, (a,))  # so that it is looked at afresh
    for asked, handle in [(5, 0x5004), (5, 0x5005), (5, 0x5006)]:
        _core.launch(Both(handle, handle), 1, k, (a,))
        assert (fake.last.stream, Both.asked) == (handle, asked)


@case()
def none_is_the_stream_of_the_arrays() -> None:
    k = make("A", "B")
    a = on(0, 4)
    p.Exchange.current_stream = 0x5005
    _core.launch(None, 1, k, (a, a))
    assert fake.last.stream == 0x5005
    # A producer that must be told the stream is told the one of the other array, whatever the order.
    for producer, stream in ((p.Versioned, 0x5005), (p.Unversioned, 0x5005)):
        b = on(0, 4, kind=producer)
        _core.launch(None, 1, k, (b, a))
        assert fake.last.stream == stream and b.asked[-1]["stream"] == stream
    b = on(0, 4, kind=p.Versioned)
    _core.launch(None, 1, k, (b, b))
    assert fake.last.stream == 0 and b.asked[-1] == {"stream": 1, "max_version": (1, 1)}
    _core.launch(0x5006, 1, k, (b, b))
    assert fake.last.stream == 0x5006 and b.asked[-1]["stream"] == 0x5006


@case()
def cuda_array_interface_streams() -> None:
    k = make("A")
    a = p.CudaArray(p.device_address(0), (4,), stream=0x5002)
    _core.launch(None, 1, k, (a,))
    assert fake.last.stream == 0x5002
    assert not any(line.startswith("wait") for line in fake.log)
    _core.launch(0x5003, 1, k, (a,))
    assert fake.log[-4:] == ["record 5002", "wait 5003", "launch kernel 5003", "record 5003"]  # the last keeps `a`
    ambiguous = p.CudaArray(p.device_address(0), (4,), stream=0)
    refused(Exception, "names stream 0, which the interface forbids", _core.launch, None, 1, k, (ambiguous,))


# --- the CUDA Array Interface -------------------------------------------------------------------------


@case()
def cuda_array_interface() -> None:
    a = p.CudaArray(p.device_address(1, 64), (2, 3), "<i2", strides=(12, 4), read_only=True, version=2)
    assert _core.describe_array(a) == {
        "data": p.device_address(1, 64),
        "dtype": "int16",
        "shape": (2, 3),
        "strides": (6, 2),
        "device": "cuda",
        "device_id": 1,
        "read_only": True,
        "overlaps": False,
    }
    for version in range(4):
        a = p.CudaArray(p.device_address(0), (2, 3), "<f8", strides=None, version=version)
        assert _core.describe_array(a)["strides"] == (3, 1)
    with_dtype = p.CudaArray(p.device_address(0), (4,), "<V2")
    with_dtype.dtype = "torch.bfloat16"  # type: ignore[attr-defined]
    assert _core.describe_array(with_dtype)["dtype"] == "bfloat16"
    assert _core.describe_array(p.CudaArray(0, (0, 3)))["device_id"] == -1


@case()
def what_dlpack_cannot_say() -> None:
    class Both(p.CudaArray):
        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 0)

        def __dlpack__(self, **_: Any) -> None:
            raise BufferError("no such dtype in DLPack")

    a = Both(p.device_address(0), (4,), read_only=True)
    assert _core.describe_array(a)["read_only"]


@case()
def refused_cuda_arrays() -> None:
    address = p.device_address(0)
    for array, error, message in [
        (p.CudaArray(address, (4,), mask=p.CudaArray(address, (4,))), NotImplementedError, "has a mask"),
        (p.CudaArray(address, (4,), version=4), TileTypeError, "version 4; versions 0 to 3 are known"),
        (p.CudaArray(address, (4,), ">f4"), TileTypeError, "byte order (dtype '>f4')"),
        (p.CudaArray(address, (4,), "<c32"), TileTypeError, "its dtype <c32 is not supported"),
        (p.CudaArray(address, (4,), "<M8"), TileTypeError, "its dtype <M8 is not supported"),
        (p.CudaArray(address, (4,), strides=(6,)), Exception, "its stride in dimension 0 (6 bytes)"),
        (p.CudaArray(address, (4,), strides=(4, 4)), Exception, "strides of another length"),
        (p.CudaArray(0, (4,)), Exception, "it has no memory behind it"),
        (p.CudaArray(12345 * 4, (4,)), Exception, "not memory that the CUDA driver knows"),
        (p.CudaArray(address, (2**31,)), Exception, "the most is 2147483647"),
        (p.CudaArray(address, (4,), data=7), TileTypeError, "no (pointer, read-only) tuple as data"),
        (p.CudaArray(address, (4,), typestr=None), TileTypeError, "lacks the entry 'typestr'"),
    ]:
        refused(error, message, _core.describe_array, array)
        refused(error, "kernel kernel, argument 'A': it", _core.launch, None, 1, make("A"), (array,)) if (
            message.startswith("it ")
        ) else None


# --- devices -----------------------------------------------------------------------------------------


@case()
def several_devices() -> None:
    assert _core.device_count() == 2 and _core.driver_version() == 12040
    assert _core.device_info(1)["name"] == "Fake GPU 1"
    assert _core.device_info(1)["uuid"] == "f1f2f3f4f5f6f7f8f9fafbfcfdfeff00"
    assert _core.device_info(1)["capability"] == (9, 1)
    k = make("A")
    for _ in range(2):
        for device in (0, 1):
            _core.launch(None, 1, k, (on(device, 4),))
            assert fake.last.context == 0xC000 + device
    assert [target for target, _ in misses] == ["sm_90a", "sm_91a"]
    assert fake.calls("cuLibraryLoadData") == 2
    refused(DriverError, "there is no CUDA device 2: the driver shows 2", _core.device_info, 2)


@case()
def what_a_device_is_takes_no_context() -> None:
    assert _core.device_info(1)["name"] == "Fake GPU 1" and fake.calls("cuDevicePrimaryCtxRetain") == 0
    _core.synchronize(1)
    assert fake.calls("cuDevicePrimaryCtxRetain") == 1


@case()
def the_current_context_is_left_alone() -> None:
    fake.lib.cuInit(0)
    fake.lib.cuCtxSetCurrent(ctypes.c_size_t(0xC001))
    _core.launch(0, 1, make("A"), (on(0, 4),))
    assert fake.last.context == 0xC000
    current = ctypes.c_size_t()
    fake.lib.cuCtxGetCurrent(ctypes.byref(current))
    assert current.value == 0xC001


@case()
def mixtures_are_refused_by_name() -> None:
    k = make("A", "B", "C", "n")
    host = np.zeros(4, np.float32)
    refused(
        LaunchError,
        "kernel kernel: its arrays are in different places: A, C on the CPU; B on CUDA device 1; "
        "move them to one device",
        _core.launch, None, 1, k, (host, on(1, 4), host, 3),
    )  # fmt: skip
    refused(
        LaunchError,
        "A, B on CUDA device 0; C on CUDA device 1",
        _core.launch, None, 1, k, (on(0, 4), on(0, 4), on(1, 4), 3),
    )  # fmt: skip
    assert not misses
    empty = p.CudaArray(0, (0,))  # belongs to no device
    _core.launch(None, 1, k, (on(1, 4), empty, on(1, 4), 3))


@case()
def pinned_and_managed_memory() -> None:
    pinned = np.zeros(4, np.float32)
    a = p.Versioned(pinned.ctypes.data, (4,), device=(p.CUDA_HOST, 0))
    assert _core.describe_array(a)["device"] == "cpu"
    b = p.Versioned(p.device_address(0), (4,), device=(13, 0))
    assert _core.describe_array(b)["device"] == "cuda"


@case()
def kernels_without_arrays() -> None:
    k = make("n")
    _core.launch(0x5105, 1, k, (3,))
    assert fake.last.context == 0xC001 and fake.words == [3]
    _core.launch(0, 1, make("n"), (3,))
    assert fake.last.context == 0xC000


@case(FAKECUDA_NAME="Fake GPU")
def code_is_assembled_on_a_device_that_is_used_anyway() -> None:
    """The first GPU may be another process's, which would pay for a context on it with its memory."""
    from tilewright import compile

    assert compile._device_of("sm_90a") == 0 and compile._device_of("sm_80") is None
    _core.launch(None, 1, make("A"), (on(1, 4),))
    assert [_core.device_info(n)["is_open"] for n in range(2)] == [False, True]
    assert compile._device_of("sm_90a") == 1
    compile.assemble(b".version 8.0\n.target sm_90a\n.entry kernel()", "sm_90a")
    assert fake.calls("cuLinkCreate_v2") == 1 and fake.calls("cuDevicePrimaryCtxRetain") == 1


# --- failures ----------------------------------------------------------------------------------------


@case(TILEWRIGHT_CUDA_DRIVER="/no/such/libcuda.so.1")
def no_driver() -> None:
    for _ in range(2):
        refused(DriverError, "no CUDA driver: /no/such/libcuda.so.1 could not be", _core.device_count)
    a = p.Exchange(p.device_address(0), (4,), device=(p.CUDA, 0))
    refused(DriverError, "kernel kernel: no CUDA driver", _core.launch, None, 1, make("A"), (a,))


@case(FAKECUDA_DEVICES="0")
def no_device() -> None:
    refused(DriverError, "no GPU is visible; check CUDA_VISIBLE_DEVICES", _core.device_count)


@case(FAKECUDA_VERSION="11080")
def driver_too_old() -> None:
    k = make("A", image=".version 8.0\n.entry kernel()")
    refused(
        DriverError,
        "kernel kernel: the CUDA driver is too old for this kernel: it supports CUDA 11.8, and PTX 8.0 "
        "needs CUDA 12.0; install a newer NVIDIA driver",
        _core.launch, None, 1, k, (on(0, 4),),
    )  # fmt: skip


@case()
def the_driver_refuses_the_code() -> None:
    bad = make("A", image="syntax error .entry kernel()")
    refused(TileCompilationError, "line 3; fatal : syntax error", _core.launch, None, 1, bad, (on(0, 4),))
    refused(TileCompilationError, "line 3; fatal : syntax error", _core.ptx_to_cubin, ".version 7.8 syntax error")


@case()
def out_of_memory_and_resources() -> None:
    k = make("A", shared_bytes=1000)
    fake.fail("cuLaunchKernelEx", 1, 2)
    refused(
        LaunchError,
        "kernel kernel, grid (7, 1, 1), 128 threads, 1000 bytes of shared memory: the launch failed: "
        "CUDA_ERROR_OUT_OF_MEMORY (2), out of memory: free arrays",
        _core.launch, None, 7, k, (on(0, 4),),
    )  # fmt: skip
    _core.launch(None, 7, k, (on(0, 4),))
    large = make("A", shared_bytes=300_000)
    refused(LaunchError, "use smaller tiles or fewer stages", _core.launch, None, 1, large, (on(0, 4),))


@case()
def a_stream_of_another_device() -> None:
    k = make("A")
    refused(
        LaunchError,
        "kernel kernel, grid (1, 1, 1), 128 threads, 0 bytes of shared memory: the stream is one of CUDA device 0, but "
        "the arrays are on CUDA device 1: pass a stream of that device, in torch torch.cuda.current_stream(1), or None",
        _core.launch, 0x5001, 1, k, (on(1, 4),),
    )  # fmt: skip
    _core.launch(0x5101, 1, k, (on(1, 4),))
    fake.fail("cuLaunchKernelEx", 1, 400)  # for another reason
    refused(LaunchError, "the launch failed: CUDA_ERROR_INVALID_HANDLE", _core.launch, 0x5101, 1, k, (on(1, 4),))


@case()
def a_fault_names_the_kernels() -> None:
    _core.launch(None, 1, make("A"), (on(0, 4),))
    _core.synchronize(0)
    _core.launch(None, 1, make("A", name="fault_kernel"), (on(0, 4),))
    message = "failed while it ran: CUDA_ERROR_ILLEGAL_ADDRESS (700)"
    refused(LaunchError, message, _core.synchronize, 0)
    refused(LaunchError, "newest first: fault_kernel, kernel.", _core.synchronize, 0)
    refused(LaunchError, "newest first: fault_kernel", _core.launch, None, 1, make("A"), (on(0, 4),))
    _core.synchronize(1)


@case()
def read_only_outputs() -> None:
    k = make("A", "B", written=2)
    b = p.CudaArray(p.device_address(0), (4,), read_only=True)
    refused(LaunchError, "kernel kernel writes to B, which is read-only", _core.launch, None, 1, k, (b, b))


@case()
def forked_children_are_told() -> None:
    _core.launch(None, 1, make("A"), (on(0, 4),))
    child = os.fork()
    if not child:
        try:
            refused(DriverError, 'start worker processes with the "spawn" method', _core.device_count)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.spec("T-020")
@pytest.mark.parametrize("name", case)
def test_cuda(name: str) -> None:
    case.run(__file__, name)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
