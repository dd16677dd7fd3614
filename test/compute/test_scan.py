"""Scans, and what goes by running totals, held against NumPy and folds of Python."""

import importlib
import itertools
import re

import numpy as np
import pytest

from tilewright import compile as compiler
from tilewright import compute
from tilewright.compute import Determinism, OpKind, part_tiles, scan_tiles, scanning

SIZES = [0, 1, 2, 129, 2047, 2048, 2049, 7000, 20001]


def add(a, b):
    return a + b


def scanned(device, kind, x, op, init, dtype=None, **how):
    out = device.array(np.full(len(x), 99, dtype or x.dtype))
    getattr(compute, f"{kind}_scan")(device.array(x), out, op, init, len(x), **how)
    return device.host(out)


@pytest.mark.spec("C-061")
@pytest.mark.parametrize("n", SIZES)
def test_sums(device, n):
    x = np.random.default_rng(n).integers(-1000, 1000, n)
    np.testing.assert_array_equal(scanned(device, "inclusive", x, add, None), np.cumsum(x))
    np.testing.assert_array_equal(scanned(device, "inclusive", x, OpKind.PLUS, np.int64(5)), np.cumsum(x) + 5)
    np.testing.assert_array_equal(scanned(device, "exclusive", x, add, np.int64(5)), np.cumsum(x) - x + 5)


@pytest.mark.parametrize(
    "dtype", ["int8", "uint16", "int32", "uint64", "float32", "float64", "complex64", "complex128"]
)
def test_dtypes(device, dtype):
    x = np.random.default_rng(1).integers(0, 3, 5000).astype(dtype)
    with np.errstate(over="ignore"):
        expected = np.cumsum(x, dtype=dtype)
    np.testing.assert_array_equal(scanned(device, "inclusive", x, add, None), expected)
    np.testing.assert_array_equal(scanned(device, "exclusive", x, add, np.zeros(1, dtype)), expected - x)


def affine(p, q):
    return (p[0] * q[0]) % 65537, (p[1] * q[0] + q[1]) % 65537


@pytest.mark.parametrize("back", [0, 8])
def test_ranges_of_many_threads(back, monkeypatch):
    """On the CPU: ranges that are gone over at once, and those that are left for later, have the same totals."""
    monkeypatch.setattr(scanning, "_RANGE", 64)
    monkeypatch.setattr(scanning, "_BACK", back)
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "7")
    compute.clear_all_caches()
    n = 64 * 900 + 5
    pairs = np.zeros(n, [("f0", np.int64), ("f1", np.int64)])
    pairs["f0"], pairs["f1"] = np.random.default_rng(3).integers(1, 65537, (2, n))
    floats, kept, count = np.random.default_rng(4).random(n), np.zeros(n), np.zeros(1, np.int64)
    sums, out = np.zeros(n), np.zeros_like(pairs)
    expected = list(itertools.accumulate((tuple(map(int, row)) for row in pairs), affine))
    found = set()
    for _ in range(5):
        compute.inclusive_scan(pairs, out, affine, None, n)
        assert out.tolist() == expected
        compute.exclusive_scan(floats, sums, add, np.float64(0.1), n)
        found.add(sums.tobytes())
        compute.select(floats, kept, count, lambda v: v > 0.5, n)
        assert (kept[: count[0]] == floats[floats > 0.5]).all()
    assert len(found) == 1
    compute.clear_all_caches()


@pytest.mark.spec("C-045")
@pytest.mark.parametrize("how", [{}, {"determinism": Determinism.GPU_TO_GPU}])
def test_order_is_kept(device, how):
    pair = np.dtype([("f0", np.int64), ("f1", np.int64)])
    x = np.zeros(5000, pair)
    x["f0"], x["f1"] = np.random.default_rng(2).integers(1, 65537, (2, 5000))
    rows = [tuple(map(int, row)) for row in x]
    found = scanned(device, "inclusive", x, affine, None, **how)
    assert found.tolist() == list(itertools.accumulate(rows, affine))
    found = scanned(device, "exclusive", x, affine, np.array((3, 4), pair), **how)
    assert found.tolist() == list(itertools.accumulate(rows[:-1], affine, initial=(3, 4)))


def test_floats(device):
    x = np.random.default_rng(3).standard_normal(9000).astype(np.float32)
    found = [scanned(device, "inclusive", x, add, None, determinism=d) for d in Determinism]
    for one in found:
        np.testing.assert_allclose(one, np.cumsum(x, dtype=np.float64), atol=1e-3)
    again = scanned(device, "inclusive", x, add, None)
    np.testing.assert_array_equal(found[1], again)


def test_in_place_and_other_types(device):
    x = device.array(np.arange(5000))
    compute.inclusive_scan(x, x, add, None, 5000)
    np.testing.assert_array_equal(device.host(x), np.cumsum(np.arange(5000)))
    ones = compute.ConstantIterator(np.int8(1))
    out = device.array(np.zeros(3000, np.float64))
    compute.exclusive_scan(ones, compute.ReverseIterator(out), add, np.int32(0), 3000)
    np.testing.assert_array_equal(device.host(out), np.arange(3000)[::-1])
    with pytest.raises(TypeError, match="exclusive_scan needs an 'init_value'"):
        compute.exclusive_scan(x, x, add, None, 5000)


def test_stages(device):
    x, out = device.array(np.arange(3000)), device.array(np.zeros(3000, np.int64))
    scanner = compute.make_exclusive_scan(x, out, add, np.int64(0))
    needed = scanner(None, x, out, add, 3000, np.int64(0))
    storage = device.array(np.full(needed, 0xFF, np.uint8))
    for init in (0, 4):
        scanner(storage, x, out, add, 3000, np.int64(init))
        np.testing.assert_array_equal(device.host(out), np.cumsum(np.arange(3000)) - np.arange(3000) + init)
    with pytest.raises(TypeError, match="'init_value' is None, not what"):
        scanner(storage, x, out, add, 3000, None)


# === select, partition, unique ===


@pytest.mark.parametrize("n", SIZES)
def test_select(device, n):
    x = np.random.default_rng(n).integers(0, 100, n).astype(np.int32)
    out, count = device.array(np.zeros(n, np.int32)), device.array(np.zeros(1, np.uint64))
    rejects = device.array(np.zeros(1, np.int32))

    def cond(v):
        if v % 3 == 0:
            return True
        rejects[0] = 1  # whatever it does beside, it does once an item
        return False

    compute.select(device.array(x), out, count, cond, n)
    kept = x[x % 3 == 0]
    assert device.host(count)[0] == len(kept) and device.host(rejects)[0] == (len(kept) < n)
    np.testing.assert_array_equal(device.host(out)[: len(kept)], kept)


@pytest.mark.parametrize("n", SIZES)
def test_partition(device, n):
    x = np.random.default_rng(n).integers(-50, 50, n)
    outs = [device.array(np.zeros(n, np.int64)) for _ in range(3)]
    counts = device.array(np.full(2, 7, np.int64))
    compute.three_way_partition(device.array(x), *outs, counts, lambda v: v < -10, lambda v: v < 20, n)
    parts = [x[x < -10], x[(x >= -10) & (x < 20)], x[x >= 20]]
    assert device.host(counts).tolist() == [len(parts[0]), len(parts[1])]
    for part, out in zip(parts, outs, strict=True):
        np.testing.assert_array_equal(device.host(out)[: len(part)], part)


@pytest.mark.parametrize("n", SIZES)
def test_unique(device, n):
    keys = np.sort(np.random.default_rng(n).integers(0, n // 3 + 1, n)).astype(np.int16)
    values = np.arange(n).astype(np.float32)
    outs = [device.array(np.zeros(n, np.int16)), device.array(np.zeros(n, np.float32))]
    count = device.array(np.zeros(1, np.int32))
    compute.unique_by_key(device.array(keys), device.array(values), *outs, count, OpKind.EQUAL_TO, n)
    found, places = np.unique(keys, return_index=True)
    assert device.host(count)[0] == len(found)
    np.testing.assert_array_equal(device.host(outs[0])[: len(found)], found)
    np.testing.assert_array_equal(device.host(outs[1])[: len(found)], values[places])


@pytest.mark.spec("C-061")
def test_stages_of_select(device):
    x = device.array(np.arange(5000))
    out, count = device.array(np.zeros(5000, np.int64)), device.array(np.zeros(1, np.int64))
    even = OpKind.LOGICAL_NOT
    selector = compute.make_select(x, out, count, even)
    storage = device.array(np.zeros(selector(None, x, out, count, even, 5000), np.uint8))
    selector(storage, x, out, count, even, 5000)
    assert device.host(count)[0] == 1 and device.host(out)[0] == 0
    with pytest.raises(ValueError, match="'d_num_selected_out' has 0 items, 1 were asked for"):
        selector(storage, x, out, count[:0], even, 5000)


WIDE = compute.gpu_struct({f"f{i}": np.int64 for i in range(21)}, "Wide")  # of which shared memory holds no tile


@pytest.mark.parametrize("kind, room", [("numbers", 0), ("numbers", 300), ("structs", 300)])
def test_no_more_than_there_is_room_for(device, room, kind):
    """Of select, partition and unique: what is kept is counted, and stored as far as the arrays reach."""
    n = 1500
    x = np.arange(n, dtype=np.int64) if kind == "numbers" else np.array([(i,) * 21 for i in range(n)], WIDE.dtype)
    field = (lambda v: v) if kind == "numbers" else (lambda v: v.f3)
    first, second = (lambda v: field(v) % 2 == 0), (lambda v: field(v) % 2 == 1)
    taken, whole = device.array(x), device.array(np.zeros(2 * n, x.dtype))
    short, others = whole[:room], device.array(np.zeros(n, x.dtype))
    count, counts = device.array(np.zeros(1, np.int32)), device.array(np.zeros(2, np.int32))

    def holds(expected):
        found = device.host(whole)
        assert (found[:room] == expected[:room]).all() and (found[room:] == np.zeros(1, x.dtype)).all()

    compute.select(taken, short, count, first, n)
    holds(x[::2])
    if kind == "structs":
        return
    compute.three_way_partition(taken, others, short, others[:0], counts, first, second, n)
    holds(x[1::2])
    compute.three_way_partition(taken, others, others[:0], short, counts, lambda v: False, first, n)
    holds(x[1::2])
    compute.unique_by_key(taken, taken, others, short, count, lambda a, b: field(a) // 4 == field(b) // 4, n)
    holds(x[::4])
    assert device.host(count)[0] == n // 4 and list(device.host(counts)) == [0, n // 2]


def test_tiles_of_many_groups(device, monkeypatch):
    """Groups whose totals are looked back at, one after the other; an order that shows."""
    monkeypatch.setattr(scan_tiles, "rows_for", lambda width, size, roomy: scan_tiles.Rows(1, 1, 32, 2))
    x = np.random.default_rng(7).integers(1, 9, 32 * (32 * 32 + 40) + 5).astype(np.int32)
    compute.clear_all_caches()
    expected = np.cumsum(x, dtype=np.int32)
    np.testing.assert_array_equal(scanned(device, "inclusive", x, add, None), expected)
    last = lambda a, b: b  # noqa: E731
    np.testing.assert_array_equal(scanned(device, "exclusive", x, last, np.int32(3)), np.concatenate([[3], x[:-1]]))
    compute.clear_all_caches()


def test_parts_of_many_groups(device, monkeypatch):
    """Counts of groups of tiles; items in front of a run that other lanes, rows, warps and tiles have."""
    monkeypatch.setattr(part_tiles, "rows_for", lambda types, counted, roomy: part_tiles.Rows(2, 3, 64, 2))
    compute.clear_all_caches()
    n = 64 * 6 * (64 * 2 + 3) + 5
    x = np.random.default_rng(8).integers(0, 7, n).astype(np.int32)
    out, count = [device.array(np.zeros(n, np.int32)) for _ in range(3)], device.array(np.zeros(2, np.int64))
    compute.select(device.array(x), out[0], count, lambda v: v != 3, n)
    np.testing.assert_array_equal(device.host(out[0])[: device.host(count)[0]], x[x != 3])
    compute.three_way_partition(device.array(x), *out, count, lambda v: v < 2, lambda v: v < 5, n)
    for part, found in zip((x[x < 2], x[(x >= 2) & (x < 5)], x[x >= 5]), out, strict=True):
        np.testing.assert_array_equal(device.host(found)[: len(part)], part)
    compute.unique_by_key(device.array(x), device.array(np.arange(n)), *out[:2], count, OpKind.EQUAL_TO, n)
    first = np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]]))
    assert device.host(count)[0] == len(first)
    np.testing.assert_array_equal(device.host(out[1])[: len(first)], first)
    compute.clear_all_caches()


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64", "complex128"])
def test_parts_of_any_address(device, dtype):
    """Of arrays that begin anywhere, a tile goes to shared memory before its items go to threads."""
    x = np.random.default_rng(9).integers(0, 90, 40_001).astype(dtype)
    whole, n = device.array(x), len(x) - 1
    out, count = [device.array(np.zeros(n + 1, dtype))[1:] for _ in range(3)], device.array(np.zeros(2, np.int64))
    is_low, is_even = (lambda v: abs(v) < 30), (lambda v: int(abs(v)) % 2 == 0)
    low, even = np.abs(x[1:]) < 30, np.abs(x[1:]).astype(int) % 2 == 0
    compute.select(whole[1:], out[0], count, is_even, n)
    np.testing.assert_array_equal(device.host(out[0])[: even.sum()], x[1:][even])
    compute.three_way_partition(whole[1:], *out, count, is_low, is_even, n)
    for part, found in zip((low, ~low & even, ~low & ~even), out, strict=True):
        np.testing.assert_array_equal(device.host(found)[: part.sum()], x[1:][part])
    assert device.host(count).tolist() == [low.sum(), (~low & even).sum()]


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64", "complex128"])
def test_scans_of_any_address(device, dtype):
    """Of arrays that begin anywhere, each tile goes through shared memory: what is read, and what is stored."""
    x = np.random.default_rng(9).integers(0, 2, 50_001).astype(dtype)
    whole, n = device.array(x), len(x) - 1
    far = device.array(np.full(n + 2, 7, dtype))
    with np.errstate(over="ignore"):
        expected = np.cumsum(x[1:], dtype=dtype)
    compute.inclusive_scan(whole[1:], far[1:-1], add, None, n)
    np.testing.assert_array_equal(device.host(far), np.concatenate([[7], expected, [7]]).astype(dtype))
    compute.exclusive_scan(whole[1:], far[1:-1], add, np.zeros(1, dtype), n)
    np.testing.assert_array_equal(device.host(far)[1:-1], (expected - x[1:]).astype(dtype))


def test_blocks_that_stay(device, monkeypatch):
    """A block goes through several tiles, and ends with the last one that is left."""
    monkeypatch.setattr(importlib.import_module("tilewright.compute.scan"), "multiprocessors", lambda place: 1)
    compute.clear_all_caches()
    x = np.random.default_rng(5).integers(-50, 50, 60_001)
    np.testing.assert_array_equal(scanned(device, "inclusive", x, add, None), np.cumsum(x))
    np.testing.assert_array_equal(scanned(device, "exclusive", x, add, np.int64(2)), np.cumsum(x) - x + 2)
    compute.clear_all_caches()


@pytest.mark.parametrize("dtype", ["int8", "float64"])
@pytest.mark.parametrize("kept", [0.0, 0.02, 0.5, 1.0])
def test_parts_of_ranges_write_nothing_of_others(dtype, kept, monkeypatch):
    """On the CPU, an item is written before anybody asks whether it is kept: never where a range of others begins, nor
    behind all that are kept."""
    monkeypatch.setattr(scanning, "_RANGE", 64)
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "7")
    compute.clear_all_caches()
    n, random = 64 * 301 + 5, np.random.default_rng(12)
    x = np.where(random.random(n) < kept, random.integers(50, 100, n), random.integers(0, 50, n)).astype(dtype)
    out, others, rest, counts = *(np.full(n + 1, 7, dtype) for _ in range(3)), np.zeros(2, np.int64)
    compute.select(x, out, counts, lambda v: v >= 50, n)
    assert counts[0] == (x >= 50).sum()
    np.testing.assert_array_equal(out, np.concatenate([x[x >= 50], np.full(n + 1 - counts[0], 7, dtype)]))
    out[:] = 7
    compute.three_way_partition(x, out, others, rest, counts, lambda v: v >= 50, lambda v: v < 20, n)
    for found, part in ((out, x[x >= 50]), (others, x[x < 20]), (rest, x[(x >= 20) & (x < 50)])):
        np.testing.assert_array_equal(found, np.concatenate([part, np.full(n + 1 - len(part), 7, dtype)]))
    out[:], others[:] = 7, 7
    compute.unique_by_key(x, x, out, others, counts, lambda a, b: (a >= 50) == (b >= 50), n)
    first = np.flatnonzero(np.concatenate([[True], (x[1:] >= 50) != (x[:-1] >= 50)]))
    for found in (out, others):
        np.testing.assert_array_equal(found[: len(first)], x[first])
        assert (found[len(first) :] == 7).all()
    compute.clear_all_caches()


def test_parts_of_arrays_are_moved_without_a_branch():
    """On the CPU, where what goes where cannot be foreseen: loops that move items of arrays ask nothing. Those of
    iterators ask, for what reads or writes an item may do more."""
    x, counts, bodies = np.zeros(8, np.int32), np.zeros(2, np.int64), []
    for source in (x, compute.TransformIterator(x, lambda v: v + 1)):
        compute.clear_all_caches()
        made = compute.make_select(source, x.copy(), counts, lambda v: v > 3)
        kernel = made.scanner.chain
        ((_, key),) = kernel.made
        text = compiler.capture_kernel(kernel, "cpu", key).module.text(False, True)
        loops = re.findall(r"scf\.for [^\n]*\n((?:(?!scf\.for|\n +\}).)*?)\n +scf\.yield", text, re.S)
        bodies.append([loop for loop in loops if "tile.scatter" in loop and "i8" in loop and "scf.if" not in loop])
    assert [len(found) for found in bodies] == [1, 0]


@pytest.mark.parametrize("at", [0, 1])
def test_blocks_that_part_stay(device, monkeypatch, at):
    """A block parts several tiles, which it reads at once or, of arrays that begin anywhere, by shared memory."""
    monkeypatch.setattr(importlib.import_module("tilewright.compute.select"), "multiprocessors", lambda place: 1)
    monkeypatch.setattr(part_tiles, "rows_for", lambda types, counted, roomy: part_tiles.Rows(4, 2, 64, 2))
    compute.clear_all_caches()
    n = 64 * 8 * 70 + 5
    x = np.random.default_rng(13).integers(0, 9, n + at).astype(np.int32)
    held, x = device.array(x)[at:], x[at:]
    out, count = [device.array(np.zeros(n, np.int32)) for _ in range(3)], device.array(np.zeros(2, np.int64))
    compute.select(held, out[0], count, lambda v: v != 3, n)
    assert device.host(count)[0] == (x != 3).sum()
    np.testing.assert_array_equal(device.host(out[0])[: (x != 3).sum()], x[x != 3])
    compute.three_way_partition(held, *out, count, lambda v: v < 2, lambda v: v < 5, n)
    for part, found in zip((x[x < 2], x[(x >= 2) & (x < 5)], x[x >= 5]), out, strict=True):
        np.testing.assert_array_equal(device.host(found)[: len(part)], part)
    compute.clear_all_caches()


def test_tiles_are_the_same_on_all_gpus_if_asked():
    """Else they are larger where blocks have more shared memory, and sums of floats are rounded elsewhere."""
    x, found = np.zeros(8, np.float32), []
    compute.clear_all_caches()
    for how in (Determinism.RUN_TO_RUN, Determinism.GPU_TO_GPU):
        made = [
            compute.make_inclusive_scan(x, x, OpKind.PLUS, None, determinism=how, compute_capability=c)
            for c in (89, 90)
        ]
        found.append([one.scanner.rows.tile for one in made])
    assert found == [[24 << 10, 32 << 10], [24 << 10, 24 << 10]]
    compute.clear_all_caches()
