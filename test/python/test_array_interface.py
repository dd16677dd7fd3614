"""The CUDA Array Interface, both ways, and tilewright.Array, which speaks it.

The stand-in driver is a GPU whose memory the host can read. It is opened once a process, so the cases run in a process
of its own, which this file starts by running itself; what each of them is told comes back as a line of JSON.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import traceback
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import producers as p
import pytest
from fake_driver import find_driver

import tilewright
from cuda import device
from tilewright import _core, dtype
from tilewright.arrays import Array, as_array, empty, from_interface, to_device, zeros
from tilewright.errors import TileError, TileTypeError, TileValueError

HERE = Path(__file__).resolve().parent
CASES: dict[str, Any] = {}
IDS: dict[str, tuple[str, ...]] = {}
ADDRESS = p.device_address(0)


def case(*ids: str) -> Any:
    def add(function: Any) -> Any:
        CASES[function.__name__] = function
        IDS[function.__name__] = ids
        return function

    return add


def described(**more: Any) -> dict[str, Any]:
    """An interface of 2 x 3 float32, with other entries; None leaves one out."""
    entries = {"shape": (2, 3), "typestr": "<f4", "data": (ADDRESS, False), "version": 2} | more
    return {name: value for name, value in entries.items() if value is not ...}


class Producer:
    """An array of another library: memory of the stand-in GPU."""

    def __init__(self, values: Any, **more: Any) -> None:
        self.array = to_device(values, device="cuda")
        self.more = more

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.array.__cuda_array_interface__ | self.more


def refused(error: type, words: str, call: Any, *args: Any, **names: Any) -> None:
    with pytest.raises(error) as caught:
        call(*args, **names)
    assert words in str(caught.value), str(caught.value)


def dispatcher(written: int = 0) -> Any:
    """A kernel that is launched on the stand-in GPU, and runs nothing."""
    record = _core.launch_record(num_threads=32, shared_bytes=0)
    image = ".version 7.8\n.target sm_90a\n.visible .entry kernel()"
    return _core.Dispatcher("k", ["A"], [], lambda *_: _core.CudaKernel(image, "kernel", record, written))


def launch(array: Any, stream: Any = None, written: int = 0) -> None:
    _core.launch(stream, 1, dispatcher(written), (array,))


def log() -> list[str]:
    import ctypes

    library = ctypes.CDLL(os.environ["TILEWRIGHT_CUDA_DRIVER"])
    library.fake_log.restype = ctypes.c_char_p
    return library.fake_log().decode().splitlines()  # type: ignore[no-any-return]


def launched(array: Any, stream: Any) -> list[str]:
    """What the driver is asked before a launch on a stream."""
    before = len(log())
    launch(array, stream)
    lines = log()[before:]
    return [line for line in lines[: lines.index(f"launch kernel {stream:x}")] if line.startswith(("record", "wait"))]


# === the dictionary ===================================================================================================


@case("I-001", "I-002", "I-003", "I-062")
def both_ways() -> None:
    a = to_device(np.arange(6, dtype=np.float32).reshape(2, 3), device="cuda")
    interface = a.__cuda_array_interface__
    assert type(interface) is dict and interface == described(data=(a.address, False), strides=None)
    b = as_array(Producer([1, 2, 3]))
    assert b.to_numpy().tolist() == [1, 2, 3]
    launch(a), launch(b), launch(Producer([1.5]))
    assert not [line for line in log() if line.startswith("sync ")]


@case("I-004", "I-005", "I-006", "I-007")
def missing_entries() -> None:
    for name in ("shape", "typestr", "data", "version"):
        refused(TileTypeError, f"lacks the entry '{name}'", _core.describe_interface, described(**{name: ...}))
        lying = p.CudaArray(ADDRESS, (3,))
        del lying.__cuda_array_interface__[name]
        refused(TileTypeError, f"kernel k, argument 'A': its array interface lacks the entry '{name}'", launch, lying)


@case("I-008")
def shapes() -> None:
    assert _core.describe_interface(described(shape=()))["shape"] == ()
    for lie in ("23", 6, (2.0, 3), ("2", "3"), {2: 3}, (2**70,)):
        refused(
            TileTypeError,
            "has a shape that is no tuple of 64-bit integers",
            _core.describe_interface,
            described(shape=lie),
        )
    refused(
        TileValueError, "its extent in dimension 1 is negative (-3)", _core.describe_interface, described(shape=(2, -3))
    )
    assert to_device(np.zeros((2, 3)), device="cuda").__cuda_array_interface__["shape"] == (2, 3)


@case("I-009", "I-010", "I-011", "I-012", "I-013", "I-014")
def typestrs() -> None:
    for typestr, name in {
        "|b1": "bool_", "|i1": "int8", "<i2": "int16", "<i4": "int32", "<i8": "int64",
        "|u1": "uint8", "<u2": "uint16", "<u4": "uint32", "<u8": "uint64",
        "<f2": "float16", "<f4": "float32", "<f8": "float64", "<c8": "complex64", "<c16": "complex128",
    }.items():  # a table of several in a line  # fmt: skip
        assert _core.describe_interface(described(typestr=typestr))["dtype"] == name
        assert to_device(np.zeros(3, typestr), device="cuda").__cuda_array_interface__["typestr"] == typestr
        assert from_interface(described(typestr=typestr)).dtype == np.dtype(typestr)
    for lie in (4, b"<f4", "", "f", "\ud800"):
        refused(TileTypeError, "has a typestr that is no type string", _core.describe_interface, described(typestr=lie))


@case("I-015", "I-037", "I-038")
def structures() -> None:
    fields = [("x", "<f4"), ("n", "<i8"), ("v", "<f2", (2,))]
    a = to_device(np.array([(1.5, 2, (3, 4))], fields), device="cuda")
    interface = a.__cuda_array_interface__
    assert interface["typestr"] == "|V16" and np.dtype(interface["descr"]) == a.dtype
    b = as_array(Producer(np.array([(1.5, 2, (3, 4))], fields)))
    assert b.dtype.names == ("x", "n", "v") and b["v"].to_numpy().tolist() == [[3, 4]] and b["x"][0] == 1.5
    assert from_interface(described(typestr="|V5", descr=...)).dtype == np.dtype("V5")
    refused(TileTypeError, "has a descr that NumPy refuses", from_interface, described(typestr="|V4", descr=[("a", 7)]))
    refused(
        TileValueError,
        "has a descr of 8 bytes, but the typestr '|V4'",
        from_interface,
        described(typestr="|V4", descr=[("a", "<f8")]),
    )
    refused(TileTypeError, "argument 'A': its elements are structures; pass their fields as arrays", launch, a)


@device.kernel
def take(x):
    x[1].a = 3


@case("I-038", "D-247")
def structures_with_gaps() -> None:
    """The gaps between fields are no fields, and a kernel of threads takes the array, also a part of it."""
    inner = np.dtype([("b", "f4"), ("c", "u1")], align=True)
    dtype = np.dtype([("a", "i2"), ("inner", inner), ("m", "f8", (2, 2))], align=True)
    host = np.zeros(6, dtype)
    host["m"] = np.arange(4).reshape(2, 2)
    theirs = Producer(host, shape=(3,), strides=(2 * dtype.itemsize,))
    found = as_array(theirs)
    assert found.dtype == dtype and found.dtype.names == ("a", "inner", "m")
    np.testing.assert_array_equal(found.to_numpy(), host[::2])
    device.launch(take, found, grid=1, block=1)
    refused(
        TileTypeError,
        "argument 'x': its elements are structures; pass tilewright.as_array of it",
        lambda: device.launch(take, theirs, grid=1, block=1),
    )


@case("I-016", "I-017")
def dtypes_that_are_refused() -> None:
    refused(
        TileTypeError,
        "its byte order (dtype '>f4') is not this machine's",
        _core.describe_interface,
        described(typestr=">f4"),
    )
    for kind in ("|O8", "|S4", "<U4", "<M8[s]", "<m8[s]", "|t8", "<f16", "|V0", "<i3"):
        refused(TileTypeError, f"its dtype {kind} is not supported", _core.describe_interface, described(typestr=kind))


@case("I-018")
def formats_without_a_typestr() -> None:
    for kind in (dtype.bfloat16, dtype.float8_e4m3fn, dtype.float8_e5m2):
        a = zeros(4, kind, device="cuda")
        assert not hasattr(a, "__cuda_array_interface__")
        assert _core.describe_array(a)["dtype"] == kind.name
        assert a.__dlpack__(stream=-1, max_version=(1, 0)) is not None


# === the data =========================================================================================================


@case("I-019", "I-020", "I-024")
def pointers() -> None:
    pointer, read_only = to_device([1], device="cuda").__cuda_array_interface__["data"]
    assert type(pointer) is int and read_only is False
    for lie in (ADDRESS, (ADDRESS,), [ADDRESS, False], ("x", False), (1.5, False), (None, False)):
        refused(
            TileTypeError, "has no (pointer, read-only) tuple as data", _core.describe_interface, described(data=lie)
        )
    refused(TileValueError, "a pointer of more than 64 bits", _core.describe_interface, described(data=(2**70, False)))
    frozen = from_interface(described(data=(ADDRESS, True)))
    assert frozen.read_only and frozen[0].__cuda_array_interface__["data"][1] is True


@case("I-021", "I-027")
def memory_that_no_gpu_reaches() -> None:
    host = np.zeros(6, np.float32)
    refused(TileValueError, "kernel k, argument 'A': its address", launch, p.CudaArray(host.ctypes.data, (6,)))
    refused(
        TileValueError,
        "is not memory that the CUDA driver knows",
        from_interface,
        described(data=(host.ctypes.data, False)),
    )


@case("I-022", "I-023")
def arrays_without_elements() -> None:
    for a in (empty((0, 3), device="cuda"), to_device(np.zeros((4, 4)), device="cuda")[2:2]):
        assert a.__cuda_array_interface__["data"] == (0, False)
        launch(a)
    for pointer in (0, ADDRESS):
        found = from_interface(described(shape=(0, 3), data=(pointer, False)))
        assert found.shape == (0, 3) and found.address == 0 and found.to_numpy().shape == (0, 3)
    refused(TileValueError, "it has no memory behind it", _core.describe_interface, described(data=(0, False)))


@case("I-025")
def kernels_do_not_write_to_read_only_arrays() -> None:
    frozen = p.CudaArray(ADDRESS, (3,), read_only=True)
    launch(frozen)
    refused(TileError, "kernel k writes to A, which is read-only", launch, frozen, written=1)
    ours = from_interface(frozen.__cuda_array_interface__)
    refused(TileError, "kernel k writes to A, which is read-only", launch, ours, written=1)
    refused(TileValueError, "the array is read-only", ours.copy_to_device, [1, 2, 3])


@case("I-026")
def pointers_of_other_contexts() -> None:
    before = _core.describe_interface(described(data=(ADDRESS + (1 << 42), False)))
    assert before["data"] == ADDRESS + (1 << 41)  # where the stand-in driver maps memory of that context


@case("I-028", "I-029", "I-060", "I-061")
def versions() -> None:
    for version in (0, 1, 2, 3):
        assert _core.describe_interface(described(version=version))["shape"] == (2, 3)
    for version in (4, -1, "3", 2.0, 2**80):
        refused(TileTypeError, "versions 0 to 3 are known", _core.describe_interface, described(version=version))
    assert _core.describe_interface(described(version=1, strides=(12, 4)))["strides"] == (3, 1)
    assert to_device([1], device="cuda").__cuda_array_interface__["version"] == 2


@case("I-028")
def streams_of_producers() -> None:
    assert launched(p.CudaArray(ADDRESS, (3,), stream=0x5003), 0x5004) == ["record 5003", "wait 5004"]
    launch(p.CudaArray(ADDRESS, (3,), stream=0x5003))
    assert "launch kernel 5003" in log()
    refused(TileValueError, "names stream 0", launch, p.CudaArray(ADDRESS, (3,), stream=0))
    refused(TileTypeError, "has a stream that is no integer, found 'x'", launch, p.CudaArray(ADDRESS, (3,), stream="x"))


@case("I-028")
def streams_of_exports() -> None:
    a = to_device([1.0], device="cuda", stream=0x5003)
    assert launched(a, 0x5004) == ["record 5003", "wait 5004"]
    os.environ["FAKECUDA_BUSY"] = "1"
    try:
        interface = a.__cuda_array_interface__
        default = to_device([1.0], device="cuda").__cuda_array_interface__
    finally:
        del os.environ["FAKECUDA_BUSY"]
    assert (interface["version"], interface["stream"]) == (3, 0x5003)
    assert (default["version"], default["stream"]) == (3, 1)
    assert "record 5004" in log() and "wait 5003" in log()
    assert "stream" not in a.__cuda_array_interface__


# === strides ==========================================================================================================


@case("I-030", "I-031", "I-032")
def strides_that_are_left_out() -> None:
    assert _core.describe_interface(described(strides=...))["strides"] == (3, 1)
    assert _core.describe_interface(described(strides=None))["strides"] == (3, 1)


@case("I-033", "I-034")
def strides_in_bytes() -> None:
    assert _core.describe_interface(described(strides=(4, 8)))["strides"] == (1, 2)
    assert _core.describe_interface(described(strides=(-12, 4)))["strides"] == (-3, 1)
    assert _core.describe_interface(described(strides=(0, 4)))["overlaps"]
    refused(
        TileValueError, "strides of another length than its shape", _core.describe_interface, described(strides=(4,))
    )
    refused(TileTypeError, "has a strides that is no tuple", _core.describe_interface, described(strides="ab"))
    refused(TileValueError, "is not a multiple of its item size", _core.describe_interface, described(strides=(12, 3)))
    for strides in ((2**62, 4), (-(2**62), 4)):
        refused(
            TileValueError,
            "span more than 2**63 bytes",
            _core.describe_interface,
            described(shape=(4, 3), strides=strides),
        )
    refused(TileValueError, "span more than 2**63 bytes", _core.describe_interface, described(shape=(2**31 - 1,) * 4))


@case("I-035", "I-036")
def strides_of_exports() -> None:
    a = to_device(np.arange(24, dtype=np.float32).reshape(4, 6), device="cuda")
    assert a.__cuda_array_interface__["strides"] is None
    assert a.T.__cuda_array_interface__["strides"] == (4, 24)
    part = a[::-2, 1:4]
    assert part.__cuda_array_interface__ == described(
        shape=(2, 3), data=(a.address + 3 * 24 + 4, False), strides=(-48, 4)
    )
    again = as_array(type("Other", (), {"__cuda_array_interface__": part.__cuda_array_interface__})())
    assert again.to_numpy().tolist() == np.arange(24).reshape(4, 6)[::-2, 1:4].tolist()


# === masks ============================================================================================================


@case("I-039", "I-040")
def no_mask() -> None:
    assert _core.describe_interface(described(mask=None))["shape"] == (2, 3)
    assert "mask" not in to_device([1], device="cuda").__cuda_array_interface__
    launch(p.CudaArray(ADDRESS, (3,), mask=None))


@case("I-041", "I-042", "I-043")
def masks_are_refused() -> None:
    mask = p.CudaArray(ADDRESS, (3,), "|b1")
    for shape in ((3,), (2, 3)):  # broadcastable or not: no element of a masked array is read
        masked = p.CudaArray(ADDRESS, shape, mask=mask)
        refused(NotImplementedError, "kernel k, argument 'A': its __cuda_array_interface__ has a mask", launch, masked)
        refused(NotImplementedError, "pass data and mask as two arrays", as_array, masked)


# === lifetime =========================================================================================================


@case("I-044", "I-045")
def an_interface_keeps_nothing_alive() -> None:
    gc.collect()
    a = to_device([1, 2], device="cuda")
    interface = a.__cuda_array_interface__
    assert set(interface) == {"shape", "typestr", "data", "version", "strides"}
    before = len(log())
    del a
    gc.collect()
    assert log()[before:] == ["free in 0"]


@case("I-046")
def launches_keep_owners_until_the_kernel_is_done() -> None:
    producer = Producer([1.0])
    gone = weakref.ref(producer)
    os.environ["FAKECUDA_BUSY"] = "1"
    try:
        launch(producer, stream=0x5004)
        del producer
        launch(p.CudaArray(ADDRESS, (3,)))
        gc.collect()
        assert gone() is not None
    finally:
        del os.environ["FAKECUDA_BUSY"]
    _core.synchronize()
    assert gone() is None


@case("I-047", "I-048", "I-049")
def views_of_other_libraries() -> None:
    producer = Producer([1.0, 2.0])
    before = len(log())
    view = as_array(producer)
    assert log()[before:] == []  # nothing was copied
    view[0] = 5.0
    assert producer.array.to_numpy().tolist() == [5, 2]
    gone = weakref.ref(producer)
    del producer
    gc.collect()
    assert gone() is not None and view.to_numpy().tolist() == [5, 2]
    part = view[1:]
    del view
    gc.collect()
    assert gone() is not None and part.to_numpy().tolist() == [2]
    del part
    gc.collect()
    assert gone() is None


@case("I-050")
def objects_without_the_interface() -> None:
    refused(TypeError, "'list' has no __cuda_array_interface__", as_array, [1, 2])

    class Raising:
        @property
        def __cuda_array_interface__(self) -> None:
            raise OSError("no GPU today")

    refused(TileTypeError, "its __cuda_array_interface__ cannot be read: no GPU today", as_array, Raising())
    refused(TileTypeError, "kernel k, argument 'A': it cannot be read: no GPU today", launch, Raising())


@case("I-051", "I-052", "I-053", "I-054", "I-056")
def arrays_from_descriptions() -> None:
    producer = Producer([1.0, 2.0])
    before = len(log())
    without = from_interface(producer.__cuda_array_interface__)
    by_place = from_interface(producer.__cuda_array_interface__, producer)
    by_name = from_interface(producer.__cuda_array_interface__, owner=producer)
    assert log()[before:] == [] and without.memory.owner is None
    assert by_place.memory.owner is producer and by_name.memory.owner is producer
    gone = weakref.ref(producer)
    del by_place, by_name, producer
    gc.collect()
    assert gone() is None and without.shape == (2,)


@case("I-055")
def one_class() -> None:
    assert type(as_array(Producer([1]))) is Array is type(from_interface(described()))
    assert tilewright.Array is Array


@case("I-057", "I-058", "I-059")
def pointer_attributes() -> None:
    plain = _core.pointer_attributes(ADDRESS)
    assert plain["context"] == 0xC000 and plain["device"] == 0 and plain["memory_type"] == 2
    assert not plain["host_accessible"] and not plain["managed"]
    managed = _core.pointer_attributes(ADDRESS + (1 << 43))
    assert managed["host_accessible"] and managed["managed"]
    refused(TileValueError, "is not memory that the CUDA driver knows", _core.pointer_attributes, 4096)


# === our arrays on a GPU ==============================================================================================


@case()
def memory_goes_back_behind_all_work() -> None:
    a = empty(100, np.float32, device="cuda:1", stream=0x5103)
    assert log()[-1] == "allocate 400 in 5103" and a.device == "cuda:1" and a.address >> 44 == 2
    part = a[10:]
    launch(part, stream=0x5104)
    before = len(log())
    del a
    gc.collect()
    assert log()[before:] == []
    del part
    gc.collect()
    assert log()[before:] == ["record 5104", "wait 5103", "free in 5103"]


class Owned:
    """A stream that ends with its object."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


@case()
def memory_keeps_the_stream_of_its_last_launch() -> None:
    """What goes back waits for it, so it may not end before."""
    a, stream = empty(100, np.float32, device="cuda", stream=0x5003), Owned(0x5004)
    ended = weakref.ref(stream)
    launch(a, stream=stream)
    del stream
    gc.collect()
    assert ended() is not None
    before = len(log())
    del a
    gc.collect()
    assert log()[before:] == ["record 5004", "wait 5003", "free in 5003"] and ended() is None


@case()
def copies_of_strided_arrays() -> None:
    host = np.arange(2 * 3 * 4 * 5, dtype=np.int16).reshape(2, 3, 4, 5)
    a = to_device(host, device="cuda")
    for index in (np.s_[:, ::2], np.s_[::-1, 1:, ::3, 1:3], np.s_[..., 0], np.s_[1, :, None, ::2], np.s_[:, :, 2:2]):
        np.testing.assert_array_equal(a[index].to_numpy(), host[index])
        changed, expected = a.copy(), host.copy()
        changed[index] = 7
        expected[index] = 7
        np.testing.assert_array_equal(changed.to_numpy(), expected)
    np.testing.assert_array_equal(a.T.copy().to_numpy(), host.T)
    fortran = to_device(np.asfortranarray(host[0]), device="cuda")
    assert fortran.is_f_contiguous() and not fortran.is_c_contiguous()
    np.testing.assert_array_equal(fortran.to_numpy(), host[0])


@case()
def capsules_of_a_gpu() -> None:
    a = to_device(np.ones(4, np.float32), device="cuda")
    assert a.__dlpack_device__() == (2, 0)
    for stream, lines in ((None, []), (1, []), (-1, []), (0x5005, ["record 0", "wait 5005"])):
        before = len(log())
        assert "dltensor" in repr(a.__dlpack__(stream=stream))
        assert log()[before:] == lines
    refused(TileValueError, "stream 0 is ambiguous", a.__dlpack__, stream=0)
    refused(BufferError, "on another device", a.__dlpack__, dl_device=(1, 0))
    refused(BufferError, "needs DLPack 1", from_interface(described(data=(ADDRESS, True))).__dlpack__)


@case()
def no_memory_left() -> None:
    import ctypes

    ctypes.CDLL(os.environ["TILEWRIGHT_CUDA_DRIVER"]).fake_fail(b"cuMemAllocFromPoolAsync", 1, 2)
    refused(MemoryError, "CUDA device 0 has no 400 bytes left for an array", empty, 100, np.float32)
    assert empty(100, np.float32).shape == (100,)


@pytest.fixture(scope="module")
def results() -> dict[str, str]:
    environment = os.environ | {"TILEWRIGHT_CUDA_DRIVER": str(find_driver())}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, timeout=600)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    return dict(lines) | {"": done.stderr}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.spec(*IDS[name])) for name in CASES])
def test_on_the_stand_in_gpu(name: str, results: dict[str, str]) -> None:
    assert results.get(name, results[""]) == ""


# === our arrays on the CPU ============================================================================================

HOST = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def on_cpu(values: Any = HOST) -> Array:
    return to_device(values, device="cpu")


def test_numpy_reads_without_a_copy() -> None:
    a = on_cpu()
    view = np.asarray(a)
    view[0, 0, 0] = 99
    assert a[0, 0, 0] == 99 and a.address % 64 == 0
    fresh = a.to_numpy()
    fresh[...] = 0
    assert a[0, 0, 0] == 99
    kept = np.asarray(on_cpu())
    gc.collect()
    on_cpu(np.zeros_like(HOST))  # which takes the memory if it was given back
    np.testing.assert_array_equal(kept, HOST)


def test_memory_is_taken_again() -> None:
    a = empty(1000, np.float64, device="cpu")
    address = a.address
    del a
    gc.collect()
    assert empty(1000, np.float64, device="cpu").address == address


@pytest.mark.parametrize(
    "index",
    [np.s_[0], np.s_[-1], np.s_[:, 1], np.s_[::-1], np.s_[..., ::2], np.s_[1:, None, ..., -1], np.s_[:, 5:], np.s_[()]],
)
def test_views(index: Any) -> None:
    view = on_cpu()[index]
    np.testing.assert_array_equal(view.to_numpy(), HOST[index])
    assert view.shape == HOST[index].shape and (not view.size or view.strides == HOST[index].strides)


def test_views_of_shapes_and_dtypes() -> None:
    a = on_cpu()
    np.testing.assert_array_equal(a.reshape(6, -1).to_numpy(), HOST.reshape(6, 4))
    np.testing.assert_array_equal(a.transpose(2, 0, 1).to_numpy(), HOST.transpose(2, 0, 1))
    np.testing.assert_array_equal(a.view(np.int32).to_numpy(), HOST.view(np.int32))
    np.testing.assert_array_equal(a.view(np.uint8).to_numpy(), HOST.view(np.uint8))
    np.testing.assert_array_equal(a.ravel().to_numpy(), HOST.ravel())
    np.testing.assert_array_equal(a.transpose(None).to_numpy(), HOST.T)
    np.testing.assert_array_equal(a.ravel("A").to_numpy(), HOST.ravel("A"))
    np.testing.assert_array_equal(a.T.ravel("A").to_numpy(), HOST.T.ravel("A"))
    assert (a.ndim, a.size, a.nbytes, len(a), a.dtype) == (3, 24, 96, 2, np.float32)
    assert a[1, 2, 3] == 23 and a[1:, 2:, 3:].item() == 23
    assert [row.shape for row in a] == [(3, 4)] * 2


def test_arrays_like_others_have_their_order() -> None:
    host = np.zeros((10, 12), order="F")
    for part in (host, host[::2, ::2], host.T, host[::2, ::2].T, host[:, 1], HOST, HOST[::2, 1:]):
        made = tilewright.empty_like(part, device="cpu")
        assert made.strides == np.empty_like(part).strides
    assert tilewright.empty(np.array([3, 4]), np.int32, device="cpu").shape == (3, 4)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda a: a[2], IndexError, "the index 2 is outside of axis 0 with 2 elements"),
        (lambda a: a[0, 0, 0, 0], IndexError, "3 axes was given 4 indices"),
        (lambda a: a["x"], TileValueError, "has no field 'x'"),
        (lambda a: a[[0, 1]], TileTypeError, "indexed by integers, slices"),
        (lambda a: a.reshape(5, 5), TileValueError, "cannot have the shape (5, 5)"),
        (lambda a: a.T.reshape(24), TileValueError, "contiguous in order C; copy it first"),
        (lambda a: a.transpose(0, 0, 1), TileValueError, "cannot be transposed by (0, 0, 1)"),
        (lambda a: a.T.view(np.int8), TileValueError, "needs a contiguous last axis"),
        (lambda a: a.copy_to_host(np.zeros(3)), TileValueError, "expected an array of shape (2, 3, 4)"),
        (lambda a: bool(a), TileValueError, "bool() needs an array of one element"),
        (lambda a: empty(-1), TileValueError, "no negative extents"),
        (lambda a: empty("ab"), TileTypeError, "a tuple of integers, found 'ab'"),
        (lambda a: empty(3, "O"), TileTypeError, "no array has the dtype object"),
        (lambda a: empty(3, ">f4"), TileTypeError, "no array has the dtype >f4"),
        (lambda a: empty(3, device="tpu"), TileValueError, "a device is None, 'cpu', 'cuda'"),
        (lambda a: empty((1,) * 9, device="cpu"), TileValueError, "at most 8 dimensions"),
        (lambda a: a.__dlpack__(stream=1), TileValueError, "an array on the CPU has no stream"),
        (lambda a: _core.DeviceArray(3, 0, (), (), a.format), TileTypeError, "an array is made by"),
        (lambda a: _core.DeviceArray(a.memory, 0, (2**40,), (8,), a.format), TileValueError, "beyond the memory"),
    ],
)
def test_what_arrays_refuse(call: Any, error: type, words: str) -> None:
    refused(error, words, call, on_cpu())


def test_dlpack_of_the_cpu() -> None:
    a = on_cpu()[:, ::2]
    b = np.from_dlpack(a)
    np.testing.assert_array_equal(b, HOST[:, ::2])
    b[0, 0, 0] = -1
    assert a[0, 0, 0] == -1
    copied = np.from_dlpack(a, copy=True)
    copied[0, 0, 0] = 5
    assert a[0, 0, 0] == -1
    del a
    gc.collect()
    assert b[0, 0, 0] == -1
    assert _core.describe_array(on_cpu()[::-1])["strides"] == (-12, 4, 1)
    assert not hasattr(on_cpu(), "__cuda_array_interface__")


def test_capsules_that_nobody_takes() -> None:
    a = on_cpu()
    before = sys.getrefcount(a)
    capsules = [a.__dlpack__(), a.__dlpack__(max_version=(1, 0)), a.__dlpack__(max_version=(1, 0), copy=True)]
    assert sys.getrefcount(a) == before + 2
    del capsules
    assert sys.getrefcount(a) == before


def test_text_of_arrays() -> None:
    a = on_cpu([[1, 2], [3, 4]])
    assert repr(a) == "tilewright.Array([[1, 2],\n                  [3, 4]], device='cpu')"
    html = a._repr_html_()
    assert "<td>2 × 2</td>" in html and "int64" in html


@pytest.mark.parametrize("kind", [np.complex64, np.complex128, [("a", "<i4"), ("b", "<f8")], "bool", np.float16])
def test_dtypes_of_arrays(kind: Any) -> None:
    host = np.zeros(3, kind)
    assert on_cpu(host).dtype == host.dtype
    np.testing.assert_array_equal(on_cpu(host).to_numpy(), host)


if __name__ == "__main__":
    for name, function in CASES.items():
        try:
            function()
            text = ""
        except BaseException:
            text = traceback.format_exc()
        print(json.dumps([name, text]), flush=True)
