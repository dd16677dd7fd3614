"""Array import: what a kernel sees of an array of any library, and what is refused."""

from __future__ import annotations

import array
import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import producers as p
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import _core
from tilewright.errors import TileTypeError, TileValueError

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e8m0fnu",
    "complex64",
    "complex128",
]


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


@pytest.mark.parametrize("name", DTYPES)
def test_numpy_dtypes(name: str) -> None:
    a = np.zeros((3, 5), numpy_dtype(name))
    seen = _core.describe_array(a)
    assert seen == {
        "data": a.ctypes.data,
        "dtype": "bool_" if name == "bool" else name,
        "shape": (3, 5),
        "strides": (5, 1),
        "device": "cpu",
        "device_id": 0,
        "read_only": False,
        "overlaps": False,
    }


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_numpy_views(name: str) -> None:
    a = np.zeros((8, 6, 4), numpy_dtype(name))
    view = a[::2, ::-1, 1:3].transpose(2, 0, 1)
    seen = _core.describe_array(view)
    assert seen["shape"] == (2, 4, 6)
    assert seen["strides"] == (1, 48, -4)
    assert seen["data"] == view.__array_interface__["data"][0]
    a.flags.writeable = False
    assert _core.describe_array(a)["read_only"]


def test_strides_that_mean_nothing_are_normalized() -> None:
    base = np.zeros(8, np.float32)
    odd = np.lib.stride_tricks.as_strided(base, (1, 4, 1), (12345 * 4, 8, 77 * 4))
    assert _core.describe_array(odd)["strides"] == (0, 2, 1)


def test_scalars_and_empty_arrays() -> None:
    assert _core.describe_array(np.zeros((), np.int8))["shape"] == ()
    seen = _core.describe_array(np.zeros((0, 3), np.float64))
    assert seen["shape"] == (0, 3) and seen["data"] == 0


def test_overlap_is_seen() -> None:
    a = np.zeros(10, np.float32)
    assert _core.describe_array(np.broadcast_to(a, (4, 10)))["overlaps"]
    assert _core.describe_array(np.lib.stride_tricks.sliding_window_view(a, 3))["overlaps"]
    assert not _core.describe_array(a[::-1])["overlaps"]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-5, 8)), max_size=4))
def test_any_strides(dimensions: list[tuple[int, int]]) -> None:
    """Strides come through as they are where they mean something, and no overlap is missed."""
    base = np.zeros(200, np.int16)
    shape, strides = tuple(n for n, _ in dimensions), tuple(s for _, s in dimensions)
    view = np.lib.stride_tricks.as_strided(base[100:], shape, tuple(2 * s for s in strides))
    seen = _core.describe_array(view)
    assert seen["shape"] == shape
    if view.size:
        assert all(n <= 1 or a == b for n, a, b in zip(shape, strides, seen["strides"], strict=True))
        offsets = {sum(i * s for i, s in zip(index, strides, strict=True)) for index in np.ndindex(*shape)}
        assert seen["overlaps"] or len(offsets) == view.size


def test_buffer_protocol() -> None:
    assert _core.describe_array(array.array("d", [1, 2]))["dtype"] == "float64"
    assert _core.describe_array(memoryview(b"abc"))["read_only"]
    shaped = memoryview(bytearray(24)).cast("f", (2, 3))
    assert _core.describe_array(shaped)["strides"] == (3, 1)


def test_buffers_are_let_go() -> None:
    data = bytearray(16)
    _core.describe_array(memoryview(data))
    data.extend(b"x")  # refused while a view exists


@pytest.mark.spec("T-027")
@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (np.zeros(3, ">f4"), TileTypeError, "its byte order (dtype '>f') is not this machine's"),
        (np.zeros(3, "M8[s]"), TileTypeError, "its dtype datetime64[s] is not supported"),
        (np.zeros(3, object), TileTypeError, "its dtype object is not supported"),
        (np.zeros(3, "S4"), TileTypeError, "is not supported"),
        (np.zeros(3, ml_dtypes.int4), TileTypeError, "its dtype int4 is not supported"),
        (
            np.zeros(3, [("a", "i2"), ("b", "f4")])["b"],
            TileValueError,
            "its stride in dimension 0 (6 bytes) is not a multiple of its item size (4 bytes)",
        ),
        (
            np.frombuffer(bytearray(9), np.int8)[1:].view(np.float64),
            TileValueError,
            "is not a multiple of its item size (8 bytes); copy it",
        ),
        (np.zeros((1,) * 9), TileValueError, "it has 9 dimensions, the most is 8; reshape it"),
        (
            np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), (2**31,), (0,)),
            TileValueError,
            "its extent in dimension 0 is 2147483648, the most is 2147483647",
        ),
    ],
)
def test_refused_numpy_arrays(value: np.ndarray, error: type, message: str) -> None:
    with pytest.raises(error) as caught:
        _core.describe_array(value)
    assert message in str(caught.value)


# --- DLPack ------------------------------------------------------------------------------------------

BOTH = pytest.mark.parametrize("producer", [p.Versioned, p.Unversioned])
MEMORY = np.zeros(64, np.float64)
ADDRESS = MEMORY.ctypes.data


@BOTH
def test_dlpack_capsules(producer: type[p.Base]) -> None:
    a = producer(ADDRESS, (2, 3), device=(p.CPU, 0), strides=(8, 2), byte_offset=16)
    seen = _core.describe_array(a)
    assert seen["data"] == ADDRESS + 16
    assert (seen["shape"], seen["strides"], seen["dtype"]) == ((2, 3), (8, 2), "float32")
    assert all(call["stream"] is None for call in a.asked)
    compact = producer(ADDRESS, (2, 3, 4), device=(p.CPU, 0))
    assert _core.describe_array(compact)["strides"] == (12, 4, 1)


@pytest.mark.parametrize(
    ("code", "bits", "name"),
    [
        (0, 8, "int8"),
        (1, 64, "uint64"),
        (2, 16, "float16"),
        (4, 16, "bfloat16"),
        (6, 8, "bool_"),
        (10, 8, "float8_e4m3fn"),
        (12, 8, "float8_e5m2"),
        (14, 8, "float8_e8m0fnu"),
        (5, 64, "complex64"),
        (5, 128, "complex128"),
    ],
)
def test_dlpack_dtypes(code: int, bits: int, name: str) -> None:
    a = p.Versioned(ADDRESS, (4,), device=(p.CPU, 0), dtype=(code, bits, 1))
    assert _core.describe_array(a)["dtype"] == name


def test_float4_pairs() -> None:
    a = p.Versioned(ADDRESS, (4, 8), device=(p.CPU, 0), dtype=(17, 4, 2), strides=(8, 1))
    seen = _core.describe_array(a)
    assert (seen["dtype"], seen["shape"], seen["strides"]) == ("float4_e2m1fn", (4, 16), (16, 1))
    view = _core.ArrayView(np.zeros((4, 8), np.uint8), "float4_e2m1fn")
    assert _core.describe_array(view)["shape"] == (4, 16)
    with pytest.raises(TileValueError, match="its last dimension must be contiguous"):
        _core.describe_array(_core.ArrayView(np.zeros((8, 8), np.uint8).T, "float4_e2m1fn"))


def test_float4_of_numpy_is_packed_and_given_back() -> None:
    entry_type = ctypes.CFUNCTYPE(
        None, ctypes.POINTER(ctypes.c_int64), ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
    )
    seen = []

    def run(words: Any, *_: object) -> None:
        seen.append(words[:10])
        for at in words[0], words[5]:
            pairs = (ctypes.c_uint8 * 6).from_address(at)
            seen.append(list(pairs))
            pairs[1] = 0x67  # the high half is padding

    entry = entry_type(run)
    address = ctypes.cast(entry, ctypes.c_void_p).value
    k = _core.Dispatcher("k", ["A", "B"], [], lambda *_: _core.CpuKernel(address, "k", _core.launch_record(), 1, entry))
    a = np.array([[1, 2, 3], [4, 6, -1]], ml_dtypes.float4_e2m1fn)  # rows of 1.5 bytes are padded to 2
    b = np.array(a.T, order="F").T[::-1]
    b.flags.writeable = False
    _core.launch(None, 1, k, (a, b))
    assert seen[0][1:5] == [2, 3, 4, 1] == seen[0][6:]
    assert seen[1][:4] == [0x42, 0x05, 0x76, 0x0A] and seen[2][:4] == [0x76, 0x0A, 0x42, 0x05]
    assert a.astype(int).tolist() == [[1, 2, 6], [4, 6, -1]]
    assert b.astype(int).tolist() == [[4, 6, -1], [1, 2, 3]]


def test_read_only_and_copies() -> None:
    for flags in (1, 2):
        a = p.Versioned(ADDRESS, (4,), device=(p.CPU, 0), flags=flags)
        assert _core.describe_array(a)["read_only"]
    frozen = np.zeros(4, np.float32)
    frozen.flags.writeable = False
    assert _core.describe_array(frozen)["read_only"]


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ({"device": (p.METAL, 0)}, TileTypeError, "neither a CPU nor a CUDA GPU (DLPack device type 8)"),
        ({"dtype": (5, 32, 1)}, TileTypeError, "its dtype is not supported (DLPack code 5, complex"),
        ({"dtype": (2, 32, 4)}, TileTypeError, "4 lane(s)"),
        ({"version": (2, 0)}, TileTypeError, "it speaks DLPack 2.0; version 1 is known"),
        ({"flags": 4}, TileTypeError, "its elements are smaller than a byte and padded"),
        ({"address": 0}, TileValueError, "it has no memory behind it"),
        ({"address": ADDRESS + 1}, TileValueError, "is not a multiple of its item size (4 bytes)"),
        ({"shape": (-1,)}, TileValueError, "its extent in dimension 0 is negative"),
    ],
)
def test_refused_capsules(more: dict, error: type, message: str) -> None:
    values = {"address": ADDRESS, "shape": (4,), "device": (p.CPU, 0)} | more
    with pytest.raises(error) as caught:
        _core.describe_array(p.Versioned(**values))
    assert message in str(caught.value)


def test_a_tensor_without_a_shape() -> None:
    class Lying(p.Versioned):
        def fill(self, tensor: Any) -> None:
            super().fill(tensor)
            tensor.shape = None

    with pytest.raises(TileValueError, match="its DLPack tensor has 1 dimension, but no shape"):
        _core.describe_array(Lying(address=ADDRESS, shape=(4,), device=(p.CPU, 0)))


def test_a_producer_that_refuses() -> None:
    class Stubborn:
        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

        def __dlpack__(self, **_: object) -> None:
            raise BufferError("requires grad")

    with pytest.raises(TileTypeError, match="its __dlpack__ refused: requires grad") as caught:
        _core.describe_array(Stubborn())
    assert isinstance(caught.value.__cause__, BufferError)


def test_a_used_capsule() -> None:
    class Used(p.Versioned):
        def __dlpack__(self, **more: object) -> object:
            return p.capsule(ADDRESS, "used_dltensor")

    with pytest.raises(TileTypeError, match="did not return a fresh DLPack capsule"):
        _core.describe_array(Used(ADDRESS, (1,), device=(p.CPU, 0)))


# --- exchange API ------------------------------------------------------------------------------------


def test_exchange_api_is_preferred() -> None:
    a = p.Exchange(ADDRESS, (2, 3), device=(p.CPU, 0), strides=(3, 1))
    before = p.Exchange.reads
    assert _core.describe_array(a)["shape"] == (2, 3)
    assert p.Exchange.reads == before + 1 and not a.asked


def test_subclasses_are_read_by_their_own_method() -> None:
    a = p.Wrapper(ADDRESS, (2, 3), device=(p.CPU, 0))
    before = p.Exchange.reads
    _core.describe_array(a)
    assert a.asked and p.Exchange.reads == before


def test_fake_tensors_are_refused() -> None:
    a = p.Exchange(0, (2, 3), device=(p.CUDA, 0))
    with pytest.raises(TileValueError, match="fake, meta and lazy tensors cannot be passed"):
        _core.describe_array(a)


# --- views -------------------------------------------------------------------------------------------


def test_views_change_the_dtype() -> None:
    a = np.zeros((2, 4), np.float32)
    view = _core.ArrayView(a, "tfloat32")
    assert _core.describe_array(view)["dtype"] == "tfloat32"
    assert view.array is a and view.dtype == "tfloat32"
    with pytest.raises(TileTypeError, match=r"float32 \(32 bits\) cannot be viewed as int64"):
        _core.describe_array(_core.ArrayView(a, "int64"))
    with pytest.raises(TileTypeError, match="no tile dtype for 'complex64'"):
        _core.ArrayView(a, "complex64")


def test_dtype_objects_name_views() -> None:
    from tilewright import dtype

    assert _core.ArrayView(np.zeros(4, np.float32), dtype.tfloat32).dtype == "tfloat32"


@pytest.mark.spec("T-022")
def test_torch_on_the_cpu() -> None:
    torch = pytest.importorskip("torch")
    a = torch.zeros((4, 6), dtype=torch.bfloat16)[:, ::2]
    seen = _core.describe_array(a)
    assert seen["data"] == a.data_ptr() and seen["dtype"] == "bfloat16"
    assert (seen["shape"], seen["strides"]) == ((4, 3), (6, 2))
    parameter = torch.nn.Parameter(torch.zeros(3))
    assert _core.describe_array(parameter)["data"] == parameter.data_ptr()
