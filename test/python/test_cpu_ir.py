"""The CPU back end on textual IR: each op and dtype against NumPy, without the front end."""

from __future__ import annotations

import ctypes
import mmap
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

core = pytest.importorskip("tilewright._core")

DTYPES = {
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "ui8": np.dtype(np.uint8),
    "ui16": np.dtype(np.uint16),
    "ui32": np.dtype(np.uint32),
    "ui64": np.dtype(np.uint64),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "f8E8M0FNU": np.dtype(ml_dtypes.float8_e8m0fnu),
}
FLOATS = ["f16", "bf16", "f32", "f64"]
INTS = ["i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"]
Entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


class Kernel:
    """Compiles the body of a function `k`, and calls its entry."""

    def __init__(self, params: str, body: str, target: str = "cpu") -> None:
        text = (
            f'module attributes {{tile.target = "{target}"}} {{\n'
            f"func.func @k({params}) attributes {{tile.kernel}} {{\n"
            "%c0 = arith.constant 0 : i32\n"
            f"{body}\nreturn\n}}\n}}\n"
        )
        module = core.parse(text)
        module.verify()
        module.lower("vector")
        module.verify()
        module.lower("llvm")
        self.code = core.load_object(module.emit(2), "k")
        ((_, record),) = module.kernels()
        self.scratch = core.launch_facts(record)["scratch_bytes"]

    def __call__(self, grid: tuple[int, ...], *args: Any) -> None:
        words: list[int] = []
        for arg in args:
            if isinstance(arg, np.ndarray):
                words += [arg.ctypes.data, *arg.shape]
                words += [stride // arg.itemsize for stride in arg.strides]
            else:
                words.append(int(arg))
        packed = np.array(words, np.int64)
        extents = np.array([*grid, 1, 1][:3], np.int32)
        memory = np.zeros(self.scratch + 64, np.uint8)
        scratch = (memory.ctypes.data + 63) & ~63
        entry = Entry(self.code.address)
        entry(packed.ctypes.data, extents.ctypes.data, 0, int(extents.prod()), scratch)


def array(element: str, rank: int = 1, unit: bool = True) -> str:
    shape = "?x" * rank
    strides = ", ".join(["?"] * (rank - 1) + ["1" if unit else "?"])
    return f"memref<{shape}{element}, strided<[{strides}]>>"


def tile(element: str, *shape: int) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"


def elementwise(op: str, operands: list[str], result: str, target: str = "cpu") -> Kernel:
    """result[i] = op(x0[i], x1[i], …) on tiles of 64."""
    params = ", ".join(f"%a{i}: {array(t)}" for i, t in enumerate([*operands, result]))
    body = "%i = tile.block_id 0\n"
    for i, t in enumerate(operands):
        body += f"%x{i} = tile.load %a{i}[%i] : {array(t)}, i32 -> {tile(t, 64)}\n"
    names = ", ".join(f"%x{i}" for i in range(len(operands)))
    types = ", ".join(tile(t, 64) for t in operands)
    body += f"%r = {op.format(names)} : {types}"
    if op.startswith("tile.cast"):
        body += f" -> {tile(result, 64)}"
    out = f"%a{len(operands)}"
    body += f"\ntile.store %r, {out}[%i] : {tile(result, 64)}, {array(result)}, i32"
    return Kernel(params, body, target)


def samples(element: str, n: int = 100, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    dtype = DTYPES[element]
    if dtype.kind == "b":
        return rng.integers(0, 2, n).astype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = rng.integers(info.min, info.max, n, dtype, endpoint=True)
        values[:4] = [0, 1, info.max, info.min]
        return values
    values = rng.normal(0, 3, n)
    if element == "f8E8M0FNU":
        values = np.exp2(rng.integers(-20, 20, n))
    return values.astype(dtype)


def check(got: np.ndarray, want: np.ndarray, rtol: float = 0.0) -> None:
    if rtol == 0.0:
        np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64))
    else:
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=rtol)


TARGETS = ["cpu", "cpu:x86-64-v3", "cpu:x86-64"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("op", "element"),
    [
        *product(["add", "sub", "mul", "minimum", "maximum"], FLOATS + INTS),
        *product(["truediv"], FLOATS),
        *product(["and", "or", "xor"], [*INTS, "i1"]),
    ],
)
def test_binary(op: str, element: str, target: str) -> None:
    numpy = {"sub": "subtract", "mul": "multiply", "truediv": "true_divide"}
    numpy |= {name: f"bitwise_{name}" for name in ("and", "or", "xor")}
    x, y = samples(element), samples(element, seed=1)
    out = np.zeros(103, x.dtype)
    elementwise(f"tile.{op} {{}}", [element] * 2, element, target)((2,), x, y, out[:100])
    with np.errstate(all="ignore"):
        check(out[:100], getattr(np, numpy.get(op, op))(x, y))
    assert not out[100:].any()


@pytest.mark.parametrize(("op", "element"), [*product(["floordiv", "mod"], INTS)])
def test_integer_division(op: str, element: str) -> None:
    """Exact where it is defined, and no trap where it isn't."""
    x, y = samples(element), samples(element, seed=1)
    y[5:50] = np.arange(1, 46).astype(y.dtype) - (20 if x.dtype.kind == "i" else 0)
    x[4], y[4] = np.iinfo(x.dtype).min, np.array(-1).astype(y.dtype)
    out = np.zeros_like(x)
    elementwise(f"tile.{op} {{}}", [element] * 2, element)((2,), x, y, out)
    with np.errstate(all="ignore"):
        want = {"floordiv": np.floor_divide, "mod": np.mod}[op](x, y)
    defined = (y != 0) & (np.arange(100) != 4)
    check(out[defined], want[defined])


@pytest.mark.parametrize("kind", ["eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize("element", ["f32", "bf16", "i32", "ui8"])
def test_compare(kind: str, element: str) -> None:
    x, y = samples(element), samples(element, seed=1)
    y[::3] = x[::3]
    if DTYPES[element].kind not in "iu":
        x[7], y[8] = np.nan, np.nan
    out = np.zeros(100, np.bool_)
    elementwise(f"tile.cmp {kind}, {{}}", [element] * 2, "i1")((2,), x, y, out)
    names = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
    names |= {"eq": "equal", "ne": "not_equal"}
    np.testing.assert_array_equal(out, getattr(np, names[kind])(x, y))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", list(DTYPES))
def test_cast(source: str, target: str) -> None:
    for result in DTYPES:
        x = samples(source, 64)
        if DTYPES[result].kind in "iu" and DTYPES[source].kind not in "iub":
            low = 0 if DTYPES[result].kind == "u" else -100
            scaled = x.astype(np.float64) * (1 if source == "f8E8M0FNU" else 10)
            x = np.clip(scaled, low, 64).astype(x.dtype)
        out = np.zeros(64, DTYPES[result])
        elementwise("tile.cast {}", [source], result, target)((1,), x, out)
        with np.errstate(all="ignore"):
            direct = source == result or "f" not in source + result
            want = x if direct or source in INTS else x.astype(np.float64)
            want = x != 0 if result == "i1" else want.astype(out.dtype)
        if "f8" in result:  # ours saturate, and ml_dtypes rounds e8m0 its own way
            limit = {"f8E4M3FN": 448, "f8E5M2": 57344, "f8E8M0FNU": 1e38}[result]
            wide = x.astype(np.float64)
            keep = (np.abs(wide) <= limit) & ((wide > 0) | (result != "f8E8M0FNU"))
            if result == "f8E8M0FNU":
                keep &= np.log2(np.maximum(wide, 1e-30)) % 1 == 0
            out, want = out[keep], want[keep]
        elif result == "f16" or result in INTS or source in ("i64", "ui64"):
            keep = np.isfinite(want.astype(np.float64))
            rtol = 2.0**-11 if result in ("f16", "bf16") and source in ("i64", "ui64") else 0.0
            check(out[keep], want[keep], rtol * 2)
            continue
        check(out, want)


@pytest.mark.parametrize("element", ["f8E4M3FN", "f8E5M2", "f8E8M0FNU", "f16", "bf16"])
def test_every_narrow_value(element: str) -> None:
    """All bit patterns widen as ml_dtypes does, and come back."""
    dtype = DTYPES[element]
    bits = np.arange(1 << (8 * dtype.itemsize)).astype(f"u{dtype.itemsize}")
    x = bits.view(dtype)
    wide, back = np.zeros(len(x), np.float32), np.zeros(len(x), dtype)
    grid = (len(x) // 64,)
    elementwise("tile.cast {}", [element], "f32")(grid, x, wide)
    np.testing.assert_array_equal(wide, x.astype(np.float32))
    elementwise("tile.cast {}", ["f32"], element)(grid, wide, back)
    np.testing.assert_array_equal(back.astype(np.float32), wide)


@pytest.mark.parametrize("source", ["f32", "f64"])
@pytest.mark.parametrize("element", ["f8E4M3FN", "f8E5M2", "f16", "bf16"])
def test_rounding(element: str, source: str) -> None:
    """Halfway cases and their neighbours round to nearest even, once."""
    dtype = DTYPES[element]
    bits = np.arange(1 << (8 * dtype.itemsize)).astype(f"u{dtype.itemsize}")
    values = np.unique(bits.view(dtype).astype(np.float64))
    values = values[np.isfinite(values)]
    half = (values[1:] + values[:-1]) / 2
    around = np.concatenate([half, half * (1 + 2.0**-40), half * (1 - 2.0**-40)])
    x = around.astype(DTYPES[source])
    x = np.concatenate([x, np.zeros(-len(x) % 64, x.dtype)])
    out = np.zeros(len(x), dtype)
    elementwise("tile.cast {}", [source], element)((len(x) // 64,), x, out)
    # the nearest value, and of two the one with an even last bit
    right = np.clip(np.searchsorted(values, x.astype(np.float64)), 1, len(values) - 1)
    low, high = values[right - 1], values[right]
    middle = (low + high) / 2
    even = bits.view(dtype)[(bits & 1) == 0].astype(np.float64)
    to_low = (x < middle) | ((x == middle) & np.isin(low, even))
    np.testing.assert_array_equal(out.astype(np.float64), np.where(to_low, low, high))


MATH = {
    "exp": (-80, 80),
    "exp2": (-120, 120),
    "log": (0, 1e6),
    "log2": (0, 1e6),
    "sqrt": (0, 1e6),
    "rsqrt": (1e-3, 1e6),
    "sin": (-100, 100),
    "cos": (-100, 100),
    "tan": (-1.5, 1.5),
    "sinh": (-10, 10),
    "cosh": (-10, 10),
    "tanh": (-10, 10),
    "floor": (-10, 10),
    "ceil": (-10, 10),
    "abs": (-10, 10),
    "neg": (-10, 10),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("op", "element"), [*product(MATH, FLOATS)])
def test_math(op: str, element: str, target: str) -> None:
    low, high = MATH[op]
    if element == "f16":
        low, high = max(low, -10), min(high, 10)
    x = np.linspace(low, high, 640).astype(DTYPES[element])
    out = np.zeros_like(x)
    elementwise(f"tile.{op} {{}}", [element], element, target)((10,), x, out)
    wide = x.astype(np.float64)
    names = {"neg": "negative"}
    with np.errstate(all="ignore"):
        want = 1 / np.sqrt(wide) if op == "rsqrt" else getattr(np, names.get(op, op))(wide)
    rtol = {"f64": 1e-14, "f32": 5e-7, "f16": 1e-3, "bf16": 8e-3}[element]
    np.testing.assert_allclose(out.astype(np.float64), want, rtol=rtol, atol=rtol)


def test_pow() -> None:
    x = np.abs(samples("f32", 64)) + np.float32(0.01)
    y = samples("f32", 64, seed=1)
    out = np.zeros_like(x)
    elementwise("tile.pow {}", ["f32", "f32"], "f32")((1,), x, y, out)
    np.testing.assert_allclose(out, np.power(x.astype(np.float64), y), rtol=2e-6)


@pytest.mark.parametrize("op", ["exp", "log", "sin", "tanh", "exp2", "log2", "cos", "sqrt"])
def test_math_special_values(op: str) -> None:
    x = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 1e-40, 3e38, -3e38, 1e-45, 200, -200])
    x = np.concatenate([x, np.zeros(64 - len(x))]).astype(np.float32)
    out = np.zeros_like(x)
    elementwise(f"tile.{op} {{}}", ["f32"], "f32")((1,), x, out)
    with np.errstate(all="ignore"):
        want = getattr(np, op)(x.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(out, want, rtol=3e-7, atol=2e-45)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("op", "element", "least"), [("exp", "f32", -104), ("exp", "f64", -746), ("exp2", "f32", -151)]
)
def test_powers_that_are_zero(op: str, element: str, least: float, target: str) -> None:
    """Numbers on both sides of the last one whose power is none; so is that of -inf."""
    x = np.concatenate([np.linspace(least - 3, least + 25, 63), [-np.inf]]).astype(DTYPES[element])
    out = np.ones_like(x)
    elementwise(f"tile.{op} {{}}", [element], element, target)((1,), x, out)
    tiny = np.finfo(x.dtype).smallest_subnormal
    with np.errstate(all="ignore"):
        want = getattr(np, op)(x.astype(np.longdouble)).astype(x.dtype)
    np.testing.assert_allclose(out, want, rtol=1e-6, atol=float(tiny))
    assert not out[x < least].any()


def test_select_and_float_min_max_with_nan() -> None:
    x, y = samples("f32", 64), samples("f32", 64, seed=1)
    x[3], y[4] = np.nan, np.nan
    for op in ("minimum", "maximum"):
        out = np.zeros_like(x)
        elementwise(f"tile.{op} {{}}", ["f32"] * 2, "f32")((1,), x, y, out)
        np.testing.assert_array_equal(out, getattr(np, op)(x, y))
    condition, out = x > 0, np.zeros_like(x)
    elementwise("tile.select {}", ["i1", "f32", "f32"], "f32")((1,), condition, x, y, out)
    np.testing.assert_array_equal(out, np.where(condition, x, y))


# --- reductions ---------------------------------------------------------------------------------


REDUCTIONS = {"add": np.sum, "mul": np.prod, "min": np.min, "max": np.max}
REDUCTIONS |= {"argmin": np.argmin, "argmax": np.argmax}


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(8, 64), (32, 2), (4, 1)])
@pytest.mark.parametrize(
    ("kind", "element"), [*product(REDUCTIONS, ["f32", "f64", "i32", "i8", "ui8", "ui32", "bf16"])]
)
def test_reduce(kind: str, element: str, shape: tuple[int, int], axis: int) -> None:
    x = samples(element, shape[0] * shape[1]).reshape(shape)
    if DTYPES[element].kind not in "iu":
        x = (x.astype(np.float64) / 2).astype(x.dtype)
    x[1] = x[0]
    result = "i32" if kind.startswith("arg") else element
    length = shape[1 - axis]
    kernel = Kernel(
        f"%a: {array(element, 2)}, %b: {array(result)}",
        f"%x = tile.load %a[%c0, %c0] : {array(element, 2)}, i32, i32 -> {tile(element, *shape)}\n"
        f"%r = tile.reduce {kind}, %x axis {axis} : {tile(element, *shape)}\n"
        f"tile.store %r, %b[%c0] : {tile(result, length)}, {array(result)}, i32",
    )
    out = np.zeros(length, DTYPES[result])
    kernel((1,), x, out)
    with np.errstate(all="ignore"):
        want = REDUCTIONS[kind](x.astype(np.float64) if element == "bf16" else x, axis=axis)
    want = want.astype(out.dtype)
    loose = kind in ("add", "mul") and DTYPES[element].kind not in "iu"
    if loose:
        eps = 8e-3 if element == "bf16" else 1e-5
        np.testing.assert_allclose(out.astype(np.float64), want.astype(np.float64), eps, 1e-5)
    else:
        check(out, want)


@pytest.mark.parametrize("kind", ["min", "max", "argmin", "argmax"])
def test_reduce_finds_nan(kind: str) -> None:
    x = samples("f32", 256)
    x[70] = x[200] = np.nan
    result = "i32" if kind.startswith("arg") else "f32"
    kernel = Kernel(
        f"%a: {array('f32')}, %b: memref<{result}>",
        f"%x = tile.load %a[%c0] : {array('f32')}, i32 -> {tile('f32', 256)}\n"
        f"%r = tile.reduce {kind}, %x axis 0 : {tile('f32', 256)}\n"
        f"tile.store %r, %b[] : {result}, memref<{result}>",
    )
    out = np.zeros((), DTYPES[result])
    kernel((1,), x, out)
    np.testing.assert_array_equal(out, REDUCTIONS[kind](x))


# --- memory -------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("element", list(DTYPES))
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_ragged_copy(element: str, order: tuple[int, int], target: str) -> None:
    """Tiles of 8x32 over arrays that they do not divide, read along both orders and views."""
    out_type, in_type = array(element, 2), array(element, 2, unit=False)
    kernel = Kernel(
        f"%a: {in_type}, %b: {out_type}",
        f"%i = tile.block_id 0\n%j = tile.block_id 1\n"
        f"%x = tile.load %a[%i, %j] order [{order[0]}, {order[1]}] "
        f": {in_type}, i32, i32 -> {tile(element, 8, 32)}\n"
        f"tile.store %x, %b[%i, %j] : {tile(element, 8, 32)}, {out_type}, i32, i32",
        target,
    )
    base = samples(element, 60 * 90).reshape(60, 90)
    for view in (base[:30, :45], base[::-2, ::-2], np.broadcast_to(base[3, :45], (30, 45))):
        source = view if order == (0, 1) else view.T
        memory = np.zeros((30, 50), base.dtype)
        kernel((4, 2), source, memory[:, :45])
        raw = memory.view(f"u{base.dtype.itemsize}")
        np.testing.assert_array_equal(raw[:, :45], view.copy().view(raw.dtype))
        assert not raw[:, 45:].any()


@pytest.mark.parametrize(
    ("padding", "value"),
    [("zero", 0.0), ("neg_zero", -0.0), ("nan", np.nan), ("pos_inf", np.inf), ("neg_inf", -np.inf)],
)
@pytest.mark.parametrize("element", ["f32", "bf16", "f64", "f16"])
def test_padding(padding: str, value: float, element: str) -> None:
    kernel = Kernel(
        f"%a: {array(element)}, %b: {array(element)}, %i: i32",
        f"%x = tile.load %a[%i] padding {padding} : {array(element)}, i32 -> {tile(element, 32)}\n"
        f"tile.store %x, %b[%c0] : {tile(element, 32)}, {array(element)}, i32",
    )
    x, out = samples(element, 45), np.zeros(32, DTYPES[element])
    kernel((1,), x, out, 1)
    np.testing.assert_array_equal(out[:13], x[32:])
    np.testing.assert_array_equal(out[13:].astype(np.float64), np.full(19, value))
    assert (np.signbit(out[13:].astype(np.float32)) == np.signbit(value)).all() or np.isnan(value)
    for outside in (-1, 7, 1 << 26):
        kernel((1,), x, out, outside)
        np.testing.assert_array_equal(out.astype(np.float64), np.full(32, value))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("element", ["f32", "i8", "bf16", "f64", "i1"])
def test_nothing_outside_is_touched(element: str, target: str) -> None:
    """Arrays that end where a page without access begins, and that begin where one ends."""
    dtype, a2 = DTYPES[element], array(element, 2)
    kernel = Kernel(
        f"%a: {a2}, %b: {a2}, %i: i32, %j: i32",
        f"""%x = tile.load %a[%i, %j] : {a2}, i32, i32 -> {tile(element, 4, 64)}
        tile.store %x, %b[%i, %j] : {tile(element, 4, 64)}, {a2}, i32, i32""",
        target,
    )
    page, libc = mmap.PAGESIZE, ctypes.CDLL(None, use_errno=True)
    arrays = []
    for _ in range(2):
        memory = mmap.mmap(-1, 3 * page)
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for guard in (start, start + 2 * page):
            assert libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(page), 0) == 0
        middle = np.frombuffer(memory, np.uint8)[page : 2 * page].view(dtype)
        arrays.append(middle)
    source, target_array = arrays
    source[:] = samples(element, len(source))
    for rows, columns in ((3, 71), (1, 64), (5, 1)):
        for end in (True, False):
            n = rows * columns
            x, y = (a[-n:] if end else a[:n] for a in (source, target_array))
            y[:] = dtype.type(0)
            for i, j in ((0, 0), (0, 1), (1, 0), (1, 1), (-1, 0), (0, -1), (2**30, 2**30)):
                kernel((1,), x.reshape(rows, columns), y.reshape(rows, columns), i, j)
            np.testing.assert_array_equal(y, x)


def test_float4() -> None:
    """Two elements share a byte, the first in the low half."""
    four, rank2 = "f4E2M1FN", array("f4E2M1FN", 2)
    kernel = Kernel(
        f"%a: {rank2}, %b: {array('f32', 2)}, %c: {rank2}",
        f"%i = tile.block_id 0\n"
        f"%x = tile.load %a[%i, %c0] : {rank2}, i32, i32 -> {tile(four, 4, 32)}\n"
        f"%y = tile.cast %x : {tile(four, 4, 32)} -> {tile('f32', 4, 32)}\n"
        f"tile.store %y, %b[%i, %c0] : {tile('f32', 4, 32)}, {array('f32', 2)}, i32, i32\n"
        f"%z = tile.cast %y : {tile('f32', 4, 32)} -> {tile(four, 4, 32)}\n"
        f"tile.store %z, %c[%i, %c0] : {tile(four, 4, 32)}, {rank2}, i32, i32",
    )
    packed = np.random.default_rng(0).integers(0, 256, (7, 12)).astype(np.uint8)
    packed[0, :4] = [0x10, 0x32, 0x54, 0x76]
    out, back = np.zeros((7, 24), np.float32), np.zeros_like(packed)
    words = lambda a: np.lib.stride_tricks.as_strided(a, (7, 24), (24, 1))  # noqa: E731
    kernel((2,), words(packed), out, words(back))
    nibbles = np.stack([packed & 15, packed >> 4], -1).reshape(7, 24)
    magnitude = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)[nibbles & 7]
    np.testing.assert_array_equal(out, np.where(nibbles & 8, -magnitude, magnitude))
    np.testing.assert_array_equal(back, packed)


@pytest.mark.parametrize("element", ["f32", "i8", "bf16", "f64", "i1"])
def test_gather_and_scatter(element: str) -> None:
    rank1, index = array(element), array("i32")
    kernel = Kernel(
        f"%a: {rank1}, %i: {index}, %b: {rank1}, %c: {rank1}",
        f"%n = tile.load %i[%c0] : {index}, i32 -> {tile('i32', 64)}\n"
        f"%x = tile.gather %a[%n] {{check_bounds}} : {rank1}, {tile('i32', 64)} -> "
        f"{tile(element, 64)}\n"
        f"tile.store %x, %b[%c0] : {tile(element, 64)}, {rank1}, i32\n"
        f"tile.scatter %x, %c[%n] {{check_bounds}} : {tile(element, 64)}, {rank1}, "
        f"{tile('i32', 64)}",
    )
    x = samples(element, 50)
    index = np.random.default_rng(0).permutation(64).astype(np.int32) - 7
    out, back = np.ones(64, x.dtype), np.zeros(50, x.dtype)
    kernel((1,), x, index, out, back)
    inside = (index >= 0) & (index < 50)
    np.testing.assert_array_equal(out, np.where(inside, x[np.where(inside, index, 0)], x.dtype.type(0)))
    want = np.zeros_like(back)
    want[index[inside]] = x[index[inside]]
    np.testing.assert_array_equal(back, want)


# --- shapes -------------------------------------------------------------------------------------


def test_broadcast_permute_reshape_iota() -> None:
    a2 = array("i32", 2)
    kernel = Kernel(
        f"%a: {a2}, %b: {a2}, %c: {a2}",
        f"""%x = tile.load %a[%c0, %c0] : {a2}, i32, i32 -> tensor<16x32xi32>
        %n = tile.iota : tensor<16xi32>
        %n2 = tile.reshape %n : tensor<16xi32> -> tensor<16x1xi32>
        %y = tile.add %x, %n2 : tensor<16x32xi32>, tensor<16x1xi32>
        %t = tile.permute %y [1, 0] : tensor<16x32xi32>
        tile.store %t, %b[%c0, %c0] : tensor<32x16xi32>, {a2}, i32, i32
        %r = tile.reshape %t : tensor<32x16xi32> -> tensor<8x64xi32>
        tile.store %r, %c[%c0, %c0] : tensor<8x64xi32>, {a2}, i32, i32""",
    )
    x = samples("i32", 512).reshape(16, 32)
    b, c = np.zeros((32, 16), np.int32), np.zeros((8, 64), np.int32)
    kernel((1,), x, b, c)
    want = (x + np.arange(16, dtype=np.int32)[:, None]).T
    np.testing.assert_array_equal(b, want)
    np.testing.assert_array_equal(c, want.reshape(8, 64))


def test_permute_of_rank_3() -> None:
    a3 = array("f32", 3)
    kernel = Kernel(
        f"%a: {a3}, %b: {a3}",
        f"""%x = tile.load %a[%c0, %c0, %c0] : {a3}, i32, i32, i32 -> tensor<4x8x16xf32>
        %t = tile.permute %x [2, 0, 1] : tensor<4x8x16xf32>
        tile.store %t, %b[%c0, %c0, %c0] : tensor<16x4x8xf32>, {a3}, i32, i32, i32""",
    )
    x, out = samples("f32", 512).reshape(4, 8, 16), np.zeros((16, 4, 8), np.float32)
    kernel((1,), x, out)
    np.testing.assert_array_equal(out, x.transpose(2, 0, 1))


# --- products -----------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(16, 16, 16), (64, 64, 32), (8, 2, 4), (1, 16, 8), (32, 128, 4)])
@pytest.mark.parametrize(
    ("element", "result"),
    [("f32", "f32"), ("f64", "f64"), ("bf16", "f32"), ("f16", "f16"), ("i8", "i32"), ("ui8", "i32")],
)
def test_mma(element: str, result: str, shape: tuple[int, int, int], target: str) -> None:
    m, n, k = shape
    ins, out = array(element, 2), array(result, 2)
    kernel = Kernel(
        f"%a: {ins}, %b: {ins}, %c: {out}",
        f"""%x = tile.load %a[%c0, %c0] : {ins}, i32, i32 -> {tile(element, m, k)}
        %y = tile.load %b[%c0, %c0] : {ins}, i32, i32 -> {tile(element, k, n)}
        %z = tile.load %c[%c0, %c0] : {out}, i32, i32 -> {tile(result, m, n)}
        %r = tile.mma %x, %y, %z : {tile(element, m, k)}, {tile(element, k, n)}, {tile(result, m, n)}
        tile.store %r, %c[%c0, %c0] : {tile(result, m, n)}, {out}, i32, i32""",
        target,
    )
    x, y = samples(element, m * k).reshape(m, k), samples(element, k * n, 1).reshape(k, n)
    z = samples(result, m * n, 2).reshape(m, n)
    if result == "i32":
        z //= 1000
    wide = np.int32 if result == "i32" else np.float64
    want = x.astype(wide) @ y.astype(wide) + z.astype(wide)
    kernel((1,), x, y, z)
    rtol = {"f32": 1e-4, "f64": 1e-12, "f16": 2e-2, "i32": 0}[result]
    np.testing.assert_allclose(z.astype(wide), want, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("element", ["f32", "bf16", "i8"])
def test_mma_of_arrays_that_are_contiguous_along_rows(element: str) -> None:
    """A by its strides, B by the order of the load."""
    swapped = f"memref<?x?x{element}, strided<[1, ?]>>"
    b_type, result = array(element, 2), "i32" if element == "i8" else "f32"
    out = array(result, 2)
    kernel = Kernel(
        f"%a: {swapped}, %b: {b_type}, %c: {out}",
        f"""%x = tile.load %a[%c0, %c0] : {swapped}, i32, i32 -> {tile(element, 32, 64)}
        %y = tile.load %b[%c0, %c0] order [1, 0] : {b_type}, i32, i32 -> {tile(element, 64, 16)}
        %z = arith.constant dense<0{".0" if result == "f32" else ""}> : {tile(result, 32, 16)}
        %r = tile.mma %x, %y, %z : {tile(element, 32, 64)}, {tile(element, 64, 16)}, {tile(result, 32, 16)}
        tile.store %r, %c[%c0, %c0] : {tile(result, 32, 16)}, {out}, i32, i32""",
    )
    x, y = samples(element, 30 * 50).reshape(50, 30).T, samples(element, 12 * 50, 1).reshape(12, 50)
    wide = np.int32 if element == "i8" else np.float32
    z = np.zeros((30, 12), wide)
    kernel((1,), x, y, z)
    np.testing.assert_allclose(z, x.astype(wide) @ y.T.astype(wide), rtol=1e-4, atol=1e-3)


def test_mma_of_a_batch_and_a_transposed_operand() -> None:
    a3 = array("f32", 3)
    kernel = Kernel(
        f"%a: {a3}, %b: {a3}, %c: {a3}",
        f"""%x = tile.load %a[%c0, %c0, %c0] : {a3}, i32, i32, i32 -> tensor<2x16x32xf32>
        %y = tile.load %b[%c0, %c0, %c0] : {a3}, i32, i32, i32 -> tensor<2x64x32xf32>
        %t = tile.permute %y [0, 2, 1] : tensor<2x64x32xf32>
        %z = arith.constant dense<0.0> : tensor<2x16x64xf32>
        %r = tile.mma %x, %t, %z : tensor<2x16x32xf32>, tensor<2x32x64xf32>, tensor<2x16x64xf32>
        tile.store %r, %c[%c0, %c0, %c0] : tensor<2x16x64xf32>, {a3}, i32, i32, i32""",
    )
    x, y = samples("f32", 1024).reshape(2, 16, 32), samples("f32", 4096).reshape(2, 64, 32)
    out = np.zeros((2, 16, 64), np.float32)
    kernel((1,), x, y, out)
    np.testing.assert_allclose(out, x @ y.transpose(0, 2, 1), rtol=1e-4, atol=1e-4)


# --- control flow ---------------------------------------------------------------------------------


def test_loop_swaps_tiles() -> None:
    a1, t = array("f32"), tile("f32", 32)
    kernel = Kernel(
        f"%a: {a1}, %b: {a1}, %n: i32",
        f"""%c1 = arith.constant 1 : i32
        %x = tile.load %a[%c0] : {a1}, i32 -> {t}
        %y = tile.load %b[%c0] : {a1}, i32 -> {t}
        %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%u = %x, %v = %y, %s = %c0)
            -> ({t}, {t}, i32) : i32 {{
          %w = tile.add %u, %v : {t}, {t}
          %q = arith.addi %s, %i : i32
          scf.yield %v, %w, %q : {t}, {t}, i32
        }}
        tile.store %r#0, %a[%c0] : {t}, {a1}, i32
        tile.store %r#1, %b[%c0] : {t}, {a1}, i32""",
    )
    x, y = samples("f32", 32), samples("f32", 32, seed=1)
    u, v = x.copy(), y.copy()
    kernel((1,), x, y, 5)
    for _ in range(5):
        u, v = v, u + v
    np.testing.assert_array_equal(x, u)
    np.testing.assert_array_equal(y, v)


def test_while_and_if_carry_tiles() -> None:
    a1, t = array("f32"), tile("f32", 32)
    kernel = Kernel(
        f"%a: {a1}, %n: i32",
        f"""%c1 = arith.constant 1 : i32
        %c2 = arith.constant 2 : i32
        %x = tile.load %a[%c0] : {a1}, i32 -> {t}
        %r:2 = scf.while (%i = %c0, %u = %x) : (i32, {t}) -> (i32, {t}) {{
          %more = arith.cmpi slt, %i, %n : i32
          scf.condition(%more) %i, %u : i32, {t}
        }} do {{
        ^bb0(%i: i32, %u: {t}):
          %rest = arith.remsi %i, %c2 : i32
          %odd = arith.cmpi eq, %rest, %c1 : i32
          %v = scf.if %odd -> ({t}) {{
            %p = tile.add %u, %u : {t}, {t}
            scf.yield %p : {t}
          }} else {{
            %q = tile.sub %u, %x : {t}, {t}
            scf.yield %q : {t}
          }}
          %k = arith.addi %i, %c1 : i32
          scf.yield %k, %v : i32, {t}
        }}
        tile.store %r#1, %a[%c0] : {t}, {a1}, i32""",
    )
    x = samples("f32", 32)
    want = x.copy()
    for i in range(5):
        want = want + want if i % 2 else want - x
    kernel((1,), x, 5)
    np.testing.assert_array_equal(x, want)


def test_a_store_does_not_change_what_was_loaded() -> None:
    """Loads see memory as it was at their place: same array shifted, in place, and used twice."""
    a1, t = array("f32"), tile("f32", 32)
    kernel = Kernel(
        f"%a: {a1}, %b: {a1}",
        f"""%c1 = arith.constant 1 : i32
        %x = tile.load %a[%c0] : {a1}, i32 -> {t}
        %y = tile.load %a[%c1] : {a1}, i32 -> {t}
        %p = tile.add %x, %y : {t}, {t}
        tile.store %p, %a[%c1] : {t}, {a1}, i32
        %q = tile.mul %x, %y : {t}, {t}
        tile.store %q, %a[%c0] : {t}, {a1}, i32
        %r = tile.sub %y, %x : {t}, {t}
        tile.store %r, %b[%c0] : {t}, {a1}, i32""",
    )
    a = samples("f32", 64)
    x, y, b = a[:32].copy(), a[32:].copy(), np.zeros(32, np.float32)
    kernel((1,), a, b)
    np.testing.assert_array_equal(a, np.concatenate([x * y, x + y]))
    np.testing.assert_array_equal(b, y - x)


def test_a_value_that_many_paths_lead_to() -> None:
    """Each sum uses the one before twice: the time to compile must not double with each."""
    a1, t = array("i32"), tile("i32", 32)
    sums = "\n".join(f"%x{i + 1} = arith.addi %x{i}, %x{i} : {t}" for i in range(40))
    kernel = Kernel(
        f"%a: {a1}",
        f"""%x0 = tile.load %a[%c0] : {a1}, i32 -> {t}
        {sums}
        %y = arith.xori %x40, %x0 : {t}
        tile.store %y, %a[%c0] : {t}, {a1}, i32
        %z = arith.addi %x39, %x0 : {t}
        tile.store %z, %a[%c0] : {t}, {a1}, i32""",
    )
    x = np.arange(32, dtype=np.int32)
    kernel((1,), x)
    np.testing.assert_array_equal(x, np.arange(32))


def test_transpose_in_place() -> None:
    a2 = array("f32", 2)
    kernel = Kernel(
        f"%a: {a2}",
        f"""%x = tile.load %a[%c0, %c0] : {a2}, i32, i32 -> tensor<32x32xf32>
        %t = tile.permute %x [1, 0] : tensor<32x32xf32>
        tile.store %t, %a[%c0, %c0] : tensor<32x32xf32>, {a2}, i32, i32""",
    )
    x = samples("f32", 1024).reshape(32, 32)
    want = x.T.copy()
    kernel((1,), x)
    np.testing.assert_array_equal(x, want)


def test_grid_order_and_scalars() -> None:
    a3 = array("i32", 3)
    kernel = Kernel(
        f"%a: {a3}, %f: f32, %h: bf16, %b: i1",
        f"""%x = tile.block_id 0
        %y = tile.block_id 1
        %z = tile.block_id 2
        %n = tile.num_blocks 0
        %c100 = arith.constant 100 : i32
        %p = arith.muli %y, %c100 : i32
        %q = arith.addi %p, %n : i32
        %i = arith.fptosi %f : f32 to i32
        %w = arith.extf %h : bf16 to f32
        %j = arith.fptosi %w : f32 to i32
        %k = arith.addi %i, %j : i32
        %s = arith.select %b, %k, %c0 : i32
        %v = arith.addi %q, %s : i32
        %t = tensor.splat %v : tensor<1x1x1xi32>
        tile.store %t, %a[%z, %y, %x] : tensor<1x1x1xi32>, {a3}, i32, i32, i32""",
    )
    out = np.zeros((2, 3, 4), np.int32)
    f = int(np.float32(1000).view(np.uint32))
    h = int(np.array(2000, ml_dtypes.bfloat16).view(np.uint16))
    kernel((4, 3, 2), out, f, h, 1)
    want = 100 * np.arange(3)[None, :, None] + 4 + 3000
    np.testing.assert_array_equal(out, np.broadcast_to(want, out.shape))


def test_print_and_assert(capfd: pytest.CaptureFixture[str]) -> None:
    a1 = array("i32")
    kernel = Kernel(
        f"%a: {a1}",
        f"""%x = tile.load %a[%c0] : {a1}, i32 -> tensor<4xi32>
        %f = arith.constant 0.1 : f32
        tile.print "x = {{}}, f = {{}}", %x, %f : tensor<4xi32>, f32
        %zero = arith.constant dense<0> : tensor<4xi32>
        %c = tile.cmp gt, %x, %zero : tensor<4xi32>, tensor<4xi32>
        tile.assert %c, "x must be positive" : tensor<4xi1>""",
    )
    core.take_assertion()
    kernel((1,), np.array([1, 2, 3, 4], np.int32))
    assert capfd.readouterr().out.strip() == "x = [1, 2, 3, 4], f = 0.1"
    assert core.take_assertion() is None
    kernel((1,), np.array([1, -2, 3, 4], np.int32))
    assert core.take_assertion() == "assertion failed: x must be positive"


def test_the_message_of_an_assertion_may_be_long() -> None:
    message = "a long story " * 40
    kernel = Kernel(
        f"%a: {array('i32')}",
        f"""%f = arith.constant false
        tile.assert %f, "{message}" : i1""",
    )
    core.take_assertion()
    kernel((1,), np.zeros(1, np.int32))
    assert core.take_assertion() == f"assertion failed: {message}"
