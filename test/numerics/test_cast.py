"""astype between all pairs of dtypes, and the formats that live in tiles only."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness import ARRAY_DTYPES, Backends, random_values, special

from tilewright import dtype as dt
from tilewright import tile as ct

TILE = 128


def by_name(value: Any) -> str:
    return getattr(value, "name", str(value))


def cast_kernel(target: dt.DType) -> Any:
    @ct.kernel
    def kernel(X, Z):
        i = (ct.bid(0),)
        ct.store(Z, i, ct.load(X, i, (TILE,)).astype(target))

    return kernel


def values_of(dtype: dt.DType) -> np.ndarray:
    parts = [random_values(dtype, 150)]
    if dtype is not ct.float8_e8m0fnu:  # zero, negative numbers and infinity do not exist there
        parts.append(special(dtype))
    if dtype.is_float and dtype.bits > 8:
        parts.append((random_values(dtype, 60) * dtype.numpy.type(100)).astype(dtype.numpy))
    if dtype.bits == 8 and dtype.is_float:
        parts.append(np.arange(256, dtype=np.uint8).view(dtype.numpy))
    return np.concatenate(parts)


def undefined(x: np.ndarray, source: dt.DType, target: dt.DType) -> np.ndarray:
    """Where the conversion has no specified value."""
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        if target.is_integral and source.is_float:
            whole = np.trunc(wide)
            return ~((whole >= target.min) & (whole < float(target.max) + 1))
        if target is ct.float8_e8m0fnu:
            tie = np.frexp(wide)[0] == 0.75
            return tie | ~((wide >= 2.0**-126) & (wide <= 2.0**127))
    return np.zeros(x.shape, bool)


@pytest.mark.parametrize("target", ARRAY_DTYPES, ids=by_name)
@pytest.mark.parametrize("source", ARRAY_DTYPES, ids=by_name)
def test_cast(backends: Backends, source: dt.DType, target: dt.DType) -> None:
    x = values_of(source)
    open_ = undefined(x, source, target)
    _, z = backends.run_all(
        cast_kernel(target),
        ct.cdiv(len(x), TILE),
        lambda: [x.copy(), np.zeros(len(x), target.numpy)],
        ignore={1: open_},
    )
    if target.arithmetic and not (source.is_integral and target is ct.bfloat16):
        with np.errstate(all="ignore"):
            expected = x.astype(np.float32) if source.bits < 16 and source.is_float else x
            expected = expected.astype(target.numpy)
        same = (z == expected) | ((z != z) & (expected != expected)) | open_
        assert same.all()


def test_e4m3_saturates(backends: Backends) -> None:
    x = np.array([448, 449, 464, 480, 1e6, np.inf, -465, -np.inf], np.float32)
    _, z = backends.run_all(cast_kernel(ct.float8_e4m3fn), 1, lambda: [x.copy(), np.zeros(8, ml_dtypes.float8_e4m3fn)])
    assert z.astype(np.float32).tolist() == [448.0] * 6 + [-448.0] * 2


def test_rounding_happens_once(backends: Backends) -> None:
    """float64 to 16 bits must not round to float32 in between."""
    x = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8, 1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11])
    for dtype in (ct.bfloat16, ct.float16):
        backends.run_all(cast_kernel(dtype), 1, lambda d=dtype: [x.copy(), np.zeros(len(x), d.numpy)])


@pytest.mark.spec("T-101")
def test_tf32_rounds_to_ten_bits(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z):
        i = (ct.bid(0),)
        ct.store(Z, i, ct.load(X, i, (TILE,)).astype(ct.tfloat32).astype(ct.float32))

    kept = (
        np.array([0, 1, 2, 511, 512, 1021, 1022, 1023], np.uint32) << 13
    )  # even and odd, and what rounds up an exponent
    exponents = np.arange(512, dtype=np.uint32)[:, None, None] << 23  # with the sign
    dropped = np.array([0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF], np.uint32)[:, None]
    near_ties = (exponents | dropped | kept).reshape(-1).view(np.float32)
    x = np.concatenate([special(ct.float32), random_values(ct.float32, 300), near_ties])
    _, z = backends.run_all(kernel, ct.cdiv(len(x), TILE), lambda: [x.copy(), np.zeros_like(x)])
    bits = x.view(np.uint32).astype(np.uint64)
    even = ((bits + 0xFFF + (bits >> 13 & 1)) & 0xFFFFE000).astype(np.uint32)
    assert (z.view(np.uint32) == even)[~np.isnan(x)].all() and np.isnan(z[np.isnan(x)]).all()
    finite = np.isfinite(z)
    assert not (z.view(np.uint32)[finite] & 0x1FFF).any()
    np.testing.assert_allclose(z[finite], x[finite], rtol=2.0**-11, atol=1e-40)


@pytest.mark.spec("T-105")
def test_float4_in_tiles(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z):
        i = (ct.bid(0),)
        ct.store(Z, i, ct.load(X, i, (TILE,)).astype(ct.float4_e2m1fn).astype(ct.float32))

    x = np.array([0, 0.2, 0.25, 0.3, 0.75, 1, 1.25, 1.75, 2.5, 3.5, 5, 5.1, 6, 7, 100], np.float32)
    x = np.concatenate([x, -x])
    _, z = backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros_like(x)])
    assert np.array_equal(z, x.clip(-6, 6).astype(ml_dtypes.float4_e2m1fn).astype(np.float32))


@pytest.mark.spec("T-087")
def test_dtype_as_argument(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z, dtype):
        ct.store(Z, (0,), ct.load(X, (0,), (16,)).astype(dtype).astype(ct.float32))

    x = random_values(ct.float32, 16) * 10
    for dtype in (ct.int8, ct.float16):
        _, z, _ = backends.run_all(kernel, 1, lambda d=dtype: [x.copy(), np.zeros_like(x), d])
        assert np.array_equal(z, x.astype(dtype.numpy).astype(np.float32))


FIELDS = [
    "x",
    "x >> 4",
    "(x << 4) >> 4",
    "(x << 2) >> 5",
    "(x << 5) >> 2",
    "x << 3",
    "x & 15",
    "x >> 4 & 15",
    "x >> 2 & 127",
    "(x & 15) - 8",
    "(x >> 4) + 3",
    "x - 100",
    "(x & 127) + 1",
    "x & 10",
    "x >> 7",
]


OF_FIELDS = """
from tilewright import tile as ct

@ct.kernel
def kernel(X, Z):
    x = ct.load(X, (0, 0), (4, 256))
    ct.store(Z, (0, 0), ({field}).astype(ct.{target}).astype(ct.float32))
"""


@pytest.mark.parametrize("target", ["float16", "bfloat16", "float32", "float8_e4m3fn"])
@pytest.mark.parametrize("source", ["int8", "uint8"])
@pytest.mark.parametrize("field", FIELDS)
def test_fields_of_bytes(backends: Backends, kernel_of: Any, field: str, source: str, target: str) -> None:
    """Weights of a few bits, several in a byte: all bytes there are, whatever wraps."""
    kernel = kernel_of(OF_FIELDS.format(field=field, target=target))
    x = np.arange(1024, dtype=np.int64).astype(getattr(np, source)).reshape(4, 256)
    backends.run_all(kernel, (1,), lambda: [x.copy(), np.zeros((4, 256), np.float32)])


@pytest.mark.parametrize("target", ["float16", "bfloat16"])
@pytest.mark.parametrize("source", ["int16", "uint16"])
def test_integers_of_16_bits(backends: Backends, source: str, target: str) -> None:
    x = np.arange(65536).astype(getattr(np, source))
    kernel = cast_kernel(getattr(ct, target))
    backends.run_all(kernel, (65536 // TILE,), lambda: [x.copy(), np.zeros(65536, getattr(ct, target).numpy)])


SMALL = [
    "(x >> 9) & 127",
    "x & 128",
    "x & 1023",
    "(x & 85) - 64",
    "(x & 15) + 128",
    "(x & 127) - 129",
    "(x ^ 8) % 64",
]


@pytest.mark.parametrize("target", ["float16", "bfloat16"])
@pytest.mark.parametrize("source", ["int16", "int32", "uint32"])
@pytest.mark.parametrize("field", SMALL)
def test_small_fields_of_words(backends: Backends, kernel_of: Any, field: str, source: str, target: str) -> None:
    """Weights of a few bits, several in a word, of which some fit behind the exponent of the result and some do not."""
    kernel = kernel_of(OF_FIELDS.format(field=field, target=target))
    dtype = getattr(np, source)
    x = np.random.default_rng(5).integers(0, 1 << np.dtype(dtype).itemsize * 8, (4, 256), np.uint64).astype(dtype)
    backends.run_all(kernel, (1,), lambda: [x.copy(), np.zeros((4, 256), np.float32)])


ROUNDED_TO_SHORT = """
from tilewright import tile as ct


@ct.kernel
def kernel(X, FLOOR, CEIL, BOTH):
    i = (ct.bid(0),)
    x = ct.load(X, i, (128,))
    low = ct.floor(x)
    ct.store(FLOOR, i, low.astype(ct.{target}))
    ct.store(CEIL, i, ct.ceil(x).astype(ct.{target}))
    ct.store(BOTH, i, low)
"""


@pytest.mark.parametrize("source", ["float32", "float16", "float64"])
@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "uint16", "int32"])
def test_whole_numbers_become_short(backends: Backends, kernel_of: Any, target: str, source: str) -> None:
    """Each integer that there is, what lies around it, and zeros of both signs."""
    limits = np.iinfo(target)
    whole = np.unique(np.linspace(max(limits.min, -40000), min(limits.max, 66000), 700).round())
    near = np.concatenate([whole, whole - 0.5, whole + 0.5, whole - 2**-7, whole + 2**-7, [-0.0, 0.0, -(2.0**-40)]])
    with np.errstate(over="ignore"):
        x = near.astype(source)
    wide = x.astype(np.float64)
    x = x[(np.floor(wide) >= limits.min) & (np.ceil(wide) <= limits.max)]
    kernel = kernel_of(ROUNDED_TO_SHORT.format(target=target))
    backends.run_all(
        kernel,
        (-(-len(x) // 128),),
        lambda: [x.copy(), np.zeros(x.shape, target), np.zeros(x.shape, target), np.zeros_like(x)],
    )


def halfway(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Dividends and divisors whose quotients lie halfway between two numbers of 8 bits, but for the rounding of one."""
    numbers = np.unique(np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32))
    numbers = numbers[np.isfinite(numbers) & (numbers >= 2**-6) & (numbers <= 2**7)]
    middle = (numbers[1:] + numbers[:-1]) / 2
    divisor = np.random.default_rng(3).integers(1, 2**12, (64, 1)).astype(np.float32)
    x, y = np.broadcast_arrays(middle * divisor, divisor)
    count = x.size // TILE * TILE
    return x.ravel()[:count].copy(), y.ravel()[:count].copy()


@ct.kernel
def narrow_quotient(X, Y, Z):
    i = ct.bid(0)
    ct.store(Z, i, ct.truediv(ct.load(X, i, TILE), ct.load(Y, i, TILE)).astype(Z.dtype))


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_quotients_halfway_between_numbers_of_8_bits(backends: Backends, dtype: Any) -> None:
    x, y = halfway(dtype)
    _, _, z = backends.run_all(narrow_quotient, x.size // TILE, lambda: [x, y, np.zeros(x.size, dtype)])
    assert np.array_equal(z.view("u1"), (x / y).astype(dtype).view("u1"))


@pytest.mark.parametrize("source", ["int8", "int16", "int32"])
@pytest.mark.parametrize("op", ["-x", "abs(x)", "0 - x", "x * -1"])
def test_the_least_integer_has_no_positive(backends: Backends, kernel_of: Any, op: str, source: str) -> None:
    """It stays what it is, also for what reads more bits, compares or shifts."""
    kernel = kernel_of(f"""
from tilewright import tile as ct

@ct.kernel
def kernel(X, WIDE, FLOATS, LESS, HALVES):
    x = ct.load(X, 0, {TILE})
    y = {op}
    ct.store(WIDE, 0, y.astype(ct.int64) + 1)
    ct.store(FLOATS, 0, y.astype(ct.float32))
    ct.store(LESS, 0, ct.where(y < x, 1, 0))
    ct.store(HALVES, 0, (y >> 1).astype(ct.int32) * 3)
""")
    least = np.iinfo(source).min
    x = np.concatenate([[least, least + 1, -1, 0, 1, -(least + 1)], np.arange(TILE - 6) - 60]).astype(source)

    def arguments() -> list[np.ndarray]:
        return [x.copy(), *(np.zeros(TILE, dtype) for dtype in (np.int64, np.float32, np.int32, np.int32))]

    wide = backends.run_all(kernel, 1, arguments)[1]
    assert wide[0] == int(least) + 1


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
def test_low_bits_of_floats(backends: Backends, kernel_of: Any, source: str, bits: int) -> None:
    """What is stored are the bits of a result, not the number as an integer."""
    whole = {"float16": 16, "float32": 32, "float64": 64}[source]
    bits = min(bits, whole)
    kernel = kernel_of(f"""
from tilewright import tile as ct

@ct.kernel
def kernel(X, Z):
    x = ct.load(X, 0, {TILE})
    ct.store(Z, 0, ct.bitcast(x * x, ct.int{whole}).astype(ct.int{bits}))
""")
    x = (np.arange(TILE) * 1.1).astype(source)
    z = backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros(TILE, f"int{bits}")])[1]
    assert np.array_equal(z, (x * x).view(f"int{whole}").astype(f"int{bits}"))
