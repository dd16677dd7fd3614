"""The data model: arrays of one type that only the host makes, parts and tile spaces of them, rounding modes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from harness import Backends, ulp

from tilewright import compile
from tilewright import tile as ct
from tilewright.errors import TileError, TileTypeError


def refused(backends: Backends, body: Any, kind: type[TileError], message: str) -> None:
    @ct.kernel
    def kernel(X, n):
        body(X, n)

    backends.rejects(kernel, 1, lambda: [np.zeros((4, 8), np.float32), 3], kind, message)


@pytest.mark.spec("T-001")
def test_elements_have_one_type(backends: Backends) -> None:
    """An array of objects is none; constants of several types become tiles of one."""

    @ct.kernel
    def kernel(X, Y):
        t = ct.astile((1, 2.5, 3, 4), dtype=Y.dtype)
        ct.static_assert((t + 1).dtype == ct.float32)
        ct.store(Y, 0, t)

    y = backends.run_all(kernel, 1, lambda: [np.zeros(4, np.float32), np.zeros(4, np.float32)])[1]
    assert y.tolist() == [1, 2.5, 3, 4]
    mixed = np.array([1, "two"], dtype=object)
    backends.rejects(kernel, 1, lambda: [mixed, np.zeros(4, np.float32)], TileTypeError, "object")


@pytest.mark.spec("T-002")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda X, n: X.data, "has no attribute 'data'"),
        (lambda X, n: X.ptr, "has no attribute 'ptr'"),
        (lambda X, n: X + n, "needs a tile or a number, found the 2-D float32 array"),
        (lambda X, n: X.get_raw_memory() + n, "RawArrayMemory"),
        (lambda X, n: ct.load(n, 0, 4), "needs an array"),
    ],
    ids=["data", "ptr", "sum", "memory", "address"],
)
def test_there_are_no_addresses(backends: Backends, body: Any, message: str) -> None:
    refused(backends, body, TileTypeError, message)


@pytest.mark.spec("T-004")
def test_products_are_fed_by_the_copy_engine() -> None:
    """On Hopper: boxes by tensor maps, and the Tensor Cores."""

    @ct.kernel
    def kernel(A, B, C):
        c = ct.zeros((128, 128), ct.float32)
        for k in range(ct.num_tiles(A, 1, (128, 64))):
            c = ct.mma(ct.load(A, (ct.bid(0), k), (128, 64)), ct.load(B, (k, ct.bid(1)), (64, 128)), c)
        ct.store(C, (ct.bid(0), ct.bid(1)), c.astype(C.dtype))

    arrays = tuple(np.zeros((256, 256), np.float16) for _ in range(3))
    module = kernel.capture("sm_90a", kernel.specialization(arrays)[1])
    module.lower("llvm")
    ptx = module.emit(compile.EMIT_ASSEMBLY).decode()
    assert "cp.async.bulk.tensor" in ptx and "wgmma.mma_async" in ptx


@pytest.mark.spec("T-045")
def test_a_tile_is_in_registers() -> None:
    """One that is loaded, changed and stored is in no memory of its own."""

    @ct.kernel
    def kernel(X, Y):
        ct.store(Y, ct.bid(0), ct.load(X, ct.bid(0), 1024) * 2 + 1)

    arrays = tuple(np.zeros(4096, np.float32) for _ in range(2))
    module = kernel.capture("sm_90a", kernel.specialization(arrays)[1])
    module.lower("llvm")
    ptx = module.emit(compile.EMIT_ASSEMBLY).decode()
    assert "ld.global.v4" in ptx and ".local" not in ptx and "ld.shared" not in ptx and "st.shared" not in ptx


@pytest.mark.spec("T-009")
def test_the_product_of_the_shape_counts_the_elements(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Y):
        ct.scatter(Y, 0, X.shape[0] * X.shape[1] * X.shape[2])

    x = np.zeros((3, 5, 7), np.int8)[:, ::2]
    assert backends.run_all(kernel, 1, lambda: [x, np.zeros(1, np.int32)])[1][0] == x.size


@pytest.mark.spec("T-013")
@pytest.mark.parametrize(
    "made", [lambda X: ct.zeros((4, 8), ct.float32), lambda X: ct.load(X, (0, 0), (4, 8))], ids=["zeros", "load"]
)
def test_tile_code_makes_no_arrays(backends: Backends, made: Any) -> None:
    """What it makes is a tile, in which nothing can be stored."""
    refused(backends, lambda X, n: ct.store(made(X), (0, 0), 1.0), TileTypeError, "ct.store needs an array")


@pytest.mark.spec("T-015", "T-016", "T-017")
def test_a_slice_shares_the_memory(backends: Backends) -> None:
    """What is stored through it is in the array, at its place, and what is stored in the array is seen through it."""

    @ct.kernel
    def kernel(X, Y, start, stop):
        part = X.slice(0, start, stop)
        ct.store(part, 1, ct.full(4, 7.0, X.dtype))
        ct.store(X, 0, ct.full(4, 9.0, X.dtype))
        ct.store(Y, 0, ct.load(part, 0, 8, padding_mode=ct.PaddingMode.ZERO))
        ct.scatter(Y, 8, ct.astype(part.shape[0], Y.dtype))

    x, y = np.arange(16, dtype=np.float32), np.zeros(9, np.float32)
    found = backends.run_all(kernel, 1, lambda: [x.copy(), y.copy(), 3, 9])
    whole = x.copy()
    whole[7:9] = 7  # the second tile of the part is cut off at its end
    whole[0:4] = 9
    assert found[0].tolist() == whole.tolist()
    assert found[1].tolist() == [*whole[3:9], 0, 0, 6]


@ct.kernel
def spaces(X, Y, N, shape: ct.Constant, steps: ct.Constant):
    """Each tile times 2 into Y, where it begins; how many tiles there are."""
    read = X.tiled_view(shape, padding_mode=ct.PaddingMode.ZERO, traversal_steps=steps)
    ct.static_assert(len(read.num_tiles) == 2 and read.tile_shape == shape)
    rows, columns = read.num_tiles
    ct.scatter(N, 0, rows)
    ct.scatter(N, 1, columns)
    ct.scatter(N, 2, read.num_tiles(0) * read.num_tiles(axis=-1))
    written = Y.tiled_view(shape, traversal_steps=steps)
    for i in range(rows):
        for j in range(columns):
            written.store((i, j), read.load((i, j)) * 2)


VIEWS = {  # the steps, and which rows and columns some tile has
    "side by side": (None, range(13), range(21)),
    "that overlap": ((2, 5), range(13), range(21)),
    "with gaps": ((6, 12), (0, 1, 2, 3, 6, 7, 8, 9, 12), (*range(8), *range(12, 20))),
}


@pytest.mark.spec(
    *("T-060", "T-061", "T-062", "T-063", "T-064", "T-065", "T-066", "T-067", "T-068", "T-069"),
    *("T-070", "T-071", "T-072"),
)
@pytest.mark.parametrize("name", VIEWS)
def test_tile_spaces(backends: Backends, name: str) -> None:
    steps, rows, columns = VIEWS[name]
    x = np.arange(1, 13 * 21 + 1, dtype=np.float32).reshape(13, 21)
    found = backends.run_all(spaces, 1, lambda: [x, np.zeros_like(x), np.zeros(3, np.int32), (4, 8), steps])
    counts = [math.ceil(n / step) for n, step in zip(x.shape, steps or (4, 8), strict=True)]
    assert found[2].tolist() == [*counts, counts[0] * counts[1]]
    wanted = np.zeros_like(x)
    wanted[np.ix_(list(rows), list(columns))] = 2 * x[np.ix_(list(rows), list(columns))]
    np.testing.assert_array_equal(found[1], wanted)


@pytest.mark.spec("T-073")
@pytest.mark.parametrize("steps", [(0, 1), (-1, 4), (4,), (4, 4, 4)], ids=str)
def test_steps_are_positive_and_one_an_axis(backends: Backends, steps: Any) -> None:
    message = "is not positive" if len(steps) == 2 else "expected a length of 2"
    refused(backends, lambda X, n: X.tiled_view((4, 4), traversal_steps=steps), TileTypeError, message)


@pytest.mark.spec("T-074")
def test_overlapping_tiles_of_several_blocks(backends: Backends) -> None:
    """Each element is what one of the blocks has stored there, whichever."""

    @ct.kernel
    def kernel(X):
        X.tiled_view(4, traversal_steps=2).store(ct.bid(0), ct.full(4, ct.bid(0) + 1, X.dtype))

    for run in (lambda a: ct.launch(None, 3, kernel, a), lambda a: kernel.interpret(3, a)):
        x = np.zeros(8, np.int32)
        run((x,))
        assert all(x[i] in (i // 2, i // 2 + 1) for i in range(2, 6))
        assert x[:2].tolist() == [1, 1] and x[6:].tolist() == [3, 3]


@pytest.mark.parametrize("view", [0, 1])
def test_tiles_of_a_chosen_view_are_counted(backends: Backends, view: int) -> None:
    @ct.kernel
    def kernel(X, Y, N, n):
        chosen = X.tiled_view((4, 8)) if n == 0 else Y.tiled_view((4, 8))
        ct.scatter(N, 0, chosen.num_tiles(0) * 10 + chosen.num_tiles[1])

    arrays = [np.zeros((8, 8), np.float32), np.zeros((12, 24), np.float32), np.zeros(1, np.int32), view]
    assert (
        backends.run_all(kernel, 1, lambda: [a.copy() if isinstance(a, np.ndarray) else a for a in arrays])[2][0]
        == (21, 33)[view]
    )


@pytest.mark.spec("T-083")
def test_equal_bits_of_two_dtypes(backends: Backends) -> None:
    """What is in memory, and what comes of it: a shift, a comparison, a conversion."""

    @ct.kernel
    def kernel(X, Y, Z):
        x = ct.load(X, 0, 4)
        ct.store(Y, 0, x >> 1)
        ct.store(Z, 0, ct.where(x > 0, x.astype(ct.float32), -1.0))

    bits = np.array([0xFF, 0x80, 0x7F, 1], np.uint8)
    for dtype in (np.uint8, np.int8):
        x = bits.view(dtype)
        found = backends.run_all(kernel, 1, lambda x=x: [x, np.zeros_like(x), np.zeros(4, np.float32)])
        assert found[1].tolist() == (x >> 1).tolist()
        assert found[2].tolist() == [float(v) if v > 0 else -1.0 for v in x.tolist()]


@pytest.mark.spec("T-152", "T-153", "T-154", "T-155")
def test_each_direction_of_rounding(backends: Backends) -> None:
    """1 and 2^-30: between 1 and the next float32, nearer to 1; and the same below zero."""

    @ct.kernel
    def kernel(X, Y, Z):
        x, y = ct.load(X, 0, 2), ct.load(Y, 0, 2)
        ct.store(Z, (0, 0), ct.add(x, y, rounding_mode=ct.RoundingMode.RN).reshape((1, 2)))
        ct.store(Z, (1, 0), ct.add(x, y, rounding_mode=ct.RoundingMode.RZ).reshape((1, 2)))
        ct.store(Z, (2, 0), ct.add(x, y, rounding_mode=ct.RoundingMode.RM).reshape((1, 2)))
        ct.store(Z, (3, 0), ct.add(x, y, rounding_mode=ct.RoundingMode.RP).reshape((1, 2)))

    x, y = np.array([1, -1], np.float32), np.array([2**-24, -(2**-24)], np.float32)
    z = backends.run_all(kernel, 1, lambda: [x, y, np.zeros((4, 2), np.float32)])[2]
    up = float(np.nextafter(np.float32(1), np.float32(2)))
    assert z.tolist() == [[1, -1], [1, -1], [1, -up], [up, -1]]  # a tie goes to the even one


@pytest.mark.spec("T-152", "T-153", "T-154", "T-155", "T-156", "T-157", "T-158")
def test_values_of_rounding_modes() -> None:
    names = {"RN": "nearest_even", "RZ": "zero", "RM": "negative_inf", "RP": "positive_inf", "FULL": "full"}
    names |= {"APPROX": "approx", "RZI": "nearest_int_to_zero"}
    for name, value in names.items():
        assert ct.RoundingMode[name].value == value and ct.RoundingMode(value) is ct.RoundingMode[name]


@pytest.mark.spec("T-156", "T-157")
@pytest.mark.parametrize("mode", [ct.RoundingMode.FULL, ct.RoundingMode.APPROX], ids=lambda m: m.name)
def test_modes_that_allow_an_error(backends: Backends, mode: ct.RoundingMode) -> None:
    """Of float32 quotients; not of sums, which have none to allow."""

    @ct.kernel
    def kernel(X, Y, Z):
        ct.store(Z, 0, ct.truediv(ct.load(X, 0, 8), ct.load(Y, 0, 8), rounding_mode=mode))

    x, y = np.arange(1, 9, dtype=np.float32), np.full(8, 3, np.float32)
    z = backends.run_all(kernel, 1, lambda: [x, y, np.zeros_like(x)], tolerance=ulp(4))[2]
    np.testing.assert_allclose(z, x / y, rtol=2**-22)
    refused(backends, lambda X, n: ct.add(ct.load(X, (0, 0), (1, 1)), 1.0, rounding_mode=mode), TileError, mode.name)


@pytest.mark.spec("T-158")
def test_rounding_to_an_integer_is_of_conversions(backends: Backends) -> None:
    """To integers a conversion goes towards zero by itself; no sum takes the mode."""
    mode = ct.RoundingMode.RZI
    refused(backends, lambda X, n: ct.add(ct.load(X, (0, 0), (1, 1)), 1.0, rounding_mode=mode), TileError, mode.name)

    @ct.kernel
    def kernel(X, Z):
        ct.store(Z, 0, ct.load(X, 0, 4).astype(ct.int32))

    x = np.array([1.75, -1.75, 0.5, -0.5], np.float32)
    assert backends.run_all(kernel, 1, lambda: [x, np.zeros(4, np.int32)])[1].tolist() == [1, -1, 0, 0]
