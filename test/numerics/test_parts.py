"""Parts of tiles: cat, extract, insert; bits of elements: bitcast, pack_to_bytes, unpack_from_bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Backends

from tilewright import dtype as dt
from tilewright import tile as ct
from tilewright.errors import TileTypeError

WIDE = (dt.int8, dt.uint8, dt.int16, dt.uint32, dt.int64, dt.float16, dt.bfloat16, dt.float32, dt.float64)
NARROW = (dt.float8_e4m3fn, dt.float8_e5m2, dt.float8_e8m0fnu)


def random_bits(dtype: dt.DType, count: int) -> np.ndarray:
    """All kinds of numbers, but no NaN below 32 bits, of which not all bits are kept."""
    raw = np.random.default_rng(0).integers(0, 256, count * dtype.numpy.itemsize, np.uint8).view(dtype.numpy)
    with np.errstate(invalid="ignore"):
        return np.where(np.isnan(raw.astype("f8")), dtype.numpy.type(1), raw) if dtype.is_float else raw


def same_bits(x: np.ndarray, y: np.ndarray) -> bool:
    return bool(np.array_equal(np.ascontiguousarray(x).view("u1"), np.ascontiguousarray(y).view("u1")))


@pytest.mark.parametrize("dtype", [*WIDE, *NARROW, dt.bool_], ids=lambda d: d.name)
@pytest.mark.parametrize("shape", [(8, 64), (64, 4), (2, 2)], ids=str)
def test_halves_change_places(backends: Backends, dtype: dt.DType, shape: tuple[int, int]) -> None:
    @ct.kernel
    def kernel(X, Y, Z, M: ct.Constant[int], N: ct.Constant[int]):
        x = ct.load(X, (0, 0), (M, N))
        top, bottom = ct.extract(x, (0, 0), (M // 2, N)), x.extract((1, 0), (M // 2, N))
        ct.store(Y, (0, 0), ct.cat((bottom, top), 0))
        left, right = ct.extract(x, (0, 0), (M, N // 2)), ct.extract(x, (0, 1), (M, N // 2))
        ct.store(Z, (0, 0), ct.cat((right, left), axis=-1))

    m, n = shape
    x = random_bits(dtype, m * n).reshape(shape) if dtype is not dt.bool_ else np.arange(m * n).reshape(shape) % 3 > 0
    _, y, z, *_ = backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros_like(x), np.zeros_like(x), m, n])
    assert same_bits(y, np.roll(x, m // 2, 0)) and same_bits(z, np.roll(x, n // 2, 1))


def test_the_only_part_is_the_tile(backends: Backends) -> None:
    """It is no operation, whose tile no pass would slice."""

    @ct.kernel
    def kernel(X, Y):
        x = ct.load(X, (0, 0), (1, 64))
        ct.store(Y, (0, 0), ct.extract(x, (0, 0), (1, 64)) + ct.extract(x.reshape((64,)), 0, (64,)).reshape((1, 64)))

    x = np.arange(64, dtype="f4").reshape(1, 64)
    _, y = backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros_like(x)])
    assert same_bits(y, 2 * x)
    assert "extract" not in kernel.capture("sm_90a", kernel.specialization((x, x))[1]).text()


@pytest.mark.parametrize("part", [(1, 2, 4), (2, 8, 16), (4, 1, 1), (1, 8, 2)], ids=str)
def test_parts_at_run_time(backends: Backends, part: tuple[int, int, int]) -> None:
    """Each part comes out, is changed, and goes back; the index is one of the launch."""

    @ct.kernel
    def kernel(X, Y, Z, a: ct.Constant[int], b: ct.Constant[int], c: ct.Constant[int]):
        x = ct.load(X, (0, 0, 0), (4, 8, 16)) * 1
        at = (ct.bid(0), ct.bid(1), ct.bid(2))
        some = ct.extract(x, at, (a, b, c))
        ct.store(Z, at, some)
        place = (ct.bid(0) * ct.num_blocks(1) + ct.bid(1)) * ct.num_blocks(2) + ct.bid(2)
        ct.store(Y, (place, 0, 0, 0), ct.insert(x, at, -some).reshape((1, 4, 8, 16)))

    x = np.arange(512, dtype="i4").reshape(4, 8, 16)
    grid = tuple(n // p for n, p in zip(x.shape, part, strict=True))
    blocks = int(np.prod(grid))
    if blocks > 64:
        grid, blocks = (grid[0], 2, 2), grid[0] * 4
    backends.run_all(kernel, grid, lambda: [x, np.zeros((blocks, *x.shape), "i4"), np.zeros_like(x), *part])


def test_single_elements(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Y):
        x = ct.load(X, (0,), (64,))
        five = ct.extract(x, 5, ())
        ct.store(Y, (0,), ct.insert(x.insert(7, five * 2), index=ct.bid(0) + 9, value=1.5) + x.extract(63, 1).item())

    x = np.arange(64, dtype="f4")
    _, y = backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros_like(x)])
    wanted = x.copy()
    wanted[7], wanted[9] = 10, 1.5
    assert np.array_equal(y, wanted + 63)


@pytest.mark.parametrize("dtype", [*WIDE, *NARROW], ids=lambda d: d.name)
@pytest.mark.parametrize("count", [8, 512])
def test_bytes_and_back(backends: Backends, dtype: dt.DType, count: int) -> None:
    @ct.kernel
    def kernel(X, B, Y, N: ct.Constant[int], M: ct.Constant[int]):
        packed = ct.pack_to_bytes(ct.load(X, (0, 0), (2, N // 2)))
        ct.static_assert(packed.shape == (M,) and packed.dtype == ct.uint8)
        ct.store(B, (0,), packed)
        ct.store(Y, (0,), ct.unpack_from_bytes(ct.load(B, (0,), (M,)), Y.dtype))

    x = random_bits(dtype, count)
    size = x.nbytes
    _, b, y, *_ = backends.run_all(
        kernel, 1, lambda: [x.reshape(2, -1), np.zeros(size, "u1"), np.zeros_like(x), count, size]
    )
    assert same_bits(b, x) and same_bits(y, x)


def test_bytes_of_one_element(backends: Backends) -> None:
    """A tile of one element, made of a number, is a number again; of a position, too."""

    @ct.kernel
    def kernel(X, Z, P):
        x = ct.gather(X, ())
        ct.scatter(Z, (), ct.unpack_from_bytes(ct.pack_to_bytes(x), X.dtype).reshape(()))
        ct.scatter(P, (), ct.arange(1, dtype=ct.int32).reshape(()) + 7)

    for dtype in (np.int8, np.float32):
        x = np.array(-3, dtype)
        _, z, i = backends.run_all(kernel, 1, lambda x=x: [x.copy(), np.zeros_like(x), np.zeros((), np.int32)])
        assert z == x and i == 7


def test_all_codes_of_float4(backends: Backends) -> None:
    """Two in a byte, the first one its low half."""

    @ct.kernel
    def kernel(X, Y, Z):
        x = ct.unpack_from_bytes(ct.load(X, (0,), (256,)), ct.float4_e2m1fn)
        ct.store(Y, (0,), x.astype(ct.float32))
        ct.store(Z, (0,), ct.pack_to_bytes(x))

    x = np.arange(256, dtype="u1")
    _, y, z = backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros(512, "f4"), np.zeros(256, "u1")])
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], "f4")
    assert same_bits(y, np.stack((values[x & 15], values[x >> 4]), -1).ravel()) and same_bits(z, x)


PAIRS = [
    (dt.int32, dt.float32),
    (dt.float32, dt.uint32),
    (dt.uint64, dt.float64),
    (dt.float64, dt.int64),
    (dt.bfloat16, dt.int16),
    (dt.uint16, dt.float16),
    (dt.int8, dt.float8_e5m2),
    (dt.float8_e4m3fn, dt.uint8),
    (dt.float8_e8m0fnu, dt.int8),
    (dt.float16, dt.bfloat16),
    (dt.int32, dt.uint32),
]


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=lambda d: d.name)
def test_bitcasts(backends: Backends, source: dt.DType, target: dt.DType) -> None:
    @ct.kernel
    def kernel(X, Y):
        ct.store(Y, (0,), ct.bitcast(ct.load(X, (0,), (256,)), Y.dtype))

    wide = source if source.is_float else target
    x = random_bits(wide if wide.is_float else source, 256).view(source.numpy)
    if target.is_float:
        x = np.where(np.isnan(x.view(target.numpy).astype("f8")), source.numpy.type(1), x)
    _, y = backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros(256, target.numpy)])
    assert same_bits(y, x)


def test_bitcast_of_tfloat32_and_constants(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Y, Z):
        x = ct.bitcast(ct.load(X, (0,), (16,)), ct.tfloat32)
        ct.store(Y, (0,), ct.bitcast(x, ct.int32))
        ct.store(Z, (0,), ct.full((1,), ct.bitcast(1.0, ct.uint32), ct.uint32))

    x = np.random.default_rng(1).standard_normal(16).astype("f4").view("i4")
    _, y, z = backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros_like(x), np.zeros(1, "u4")])
    assert np.array_equal(y, x & ~0x1FFF) and z[0] == 0x3F800000


@pytest.mark.parametrize(
    ("what", "match"),
    [
        (lambda x, y: ct.cat((x, x, x), 0), "one or two tiles"),
        (lambda x, y: ct.cat((x, y), 0), "one dtype and shape"),
        (lambda x, y: ct.cat((x, x), 2), "axis 2 is outside"),
        (lambda x, y: ct.extract(x, (2, 0), (2, 8)), "index 2 is out of bounds"),
        (lambda x, y: ct.extract(x, (0,), (2, 8)), "1 entries"),
        (lambda x, y: ct.extract(x, (0, 0), (8, 8)), "do not make up"),
        (lambda x, y: ct.insert(x, (0, 0), ct.zeros((4, 4), ct.float32)), "float32 does not convert to int32"),
        (lambda x, y: ct.insert(x, (0, 2), ct.zeros((4, 4), ct.int32)), "index 2 is out of bounds"),
        (lambda x, y: ct.bitcast(x, ct.int64), "32 bits and int64 has 64"),
        (lambda x, y: ct.bitcast(x > 0, ct.int8), "bool_ has no bits"),
        (lambda x, y: ct.pack_to_bytes(x > 0), "bool_ has no bits"),
        (lambda x, y: ct.unpack_from_bytes(x, ct.int8), "1-D tile of uint8"),
        (lambda x, y: ct.unpack_from_bytes(ct.zeros((4,), ct.uint8), ct.float64), "no elements of float64"),
    ],
)
def test_refused_parts(backends: Backends, what: Any, match: str) -> None:
    @ct.kernel
    def kernel():
        what(ct.zeros((4, 8), ct.int32), ct.zeros((4, 8), ct.int16))

    backends.rejects(kernel, 1, list, TileTypeError, match)
