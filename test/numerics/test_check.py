"""Check mode: what goes wrong is told with its array, index, block and value, by every execution, and does no harm.

The reference tells of accesses that leave their arrays and of assertions without being asked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Backends, run_ptx

from tilewright import checking
from tilewright import tile as ct
from tilewright.errors import TileCheckError, TileValueError
from tilewright.findings import Finding

T = 64


def run_checked(name: str, kernel: Any, grid: Any, args: list[Any]) -> None:
    if name.startswith("sm_"):
        report, owners = np.zeros(16, np.int64), np.zeros(16, np.int32)
        run_ptx(kernel.checked(), name, (*args, report, owners))
    elif name == "cpu":
        ct.launch(None, grid, kernel, tuple(args), check=True)
    else:
        import torch
        from gpu_arrays import GpuArray

        held = {i: GpuArray(a) for i, a in enumerate(args) if isinstance(a, np.ndarray)}
        values = tuple(held[i].value if i in held else a for i, a in enumerate(args))
        try:
            ct.launch(torch.cuda.current_stream(), grid, kernel, values, check=True)
        finally:
            torch.cuda.synchronize()  # the context is alive
            for array in held.values():
                array.copy_back()


def findings(name: str, kernel: Any, grid: Any, args: list[Any]) -> tuple[Finding, ...]:
    """What a launch tells; nothing where a back end only compiles."""
    try:
        run_checked(name, kernel, grid, args)
    except TileCheckError as error:
        assert str(error).startswith(f"kernel {kernel.name}: block (")
        assert __file__ in str(error)
        return error.findings  # type: ignore[return-value]
    return ()


def told(backends: Backends, kernel: Any, grid: Any, args: list[Any], reference: bool = False) -> list[Finding]:
    """The first finding of each execution that runs; arrays are copied for each."""
    found = []
    for name in backends.names:
        all_ = findings(name, kernel, grid, [a.copy() if isinstance(a, np.ndarray) else a for a in args])
        found += [all_[0]] if not name.startswith("sm_") else []
    if reference:
        with pytest.raises(TileCheckError, match=rf"kernel {kernel.name}: block \(") as caught:
            kernel.interpret(grid, tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args))
        found.append(caught.value.findings[0])
    return found


def silent(backends: Backends, kernel: Any, grid: Any, args: list[Any]) -> None:
    for name in backends.names:
        run_checked(name, kernel, grid, args)


# ---- out of bounds ------------------------------------------------------------------------------------------


@ct.kernel
def gathers(A, N, B):
    index = ct.load(N, (ct.bid(0),), (T,))
    ct.store(B, (ct.bid(0),), ct.gather(A, index, mask=index != 7, check_bounds=False))


def test_gather_outside(backends: Backends) -> None:
    index = np.arange(2 * T, dtype=np.int32)
    index[T + 3] = -2
    index[7] = 7
    args = [np.arange(2 * T, dtype=np.float32), index, np.zeros(2 * T, np.float32)]
    for f in told(backends, gathers, 2, args, reference=True):
        assert (f.kind, f.array, f.index, f.block) == ("read outside", "A", (-2,), (1, 0, 0))
    index[T + 3] = 0
    silent(backends, gathers, 2, args)


@ct.kernel
def scatters(A, K):
    rows = ct.arange(8, dtype=ct.int32)[:, None]
    columns = ct.arange(4, dtype=ct.int32)[None, :]
    ct.scatter(A, (rows, columns + K), (rows * 10 + columns).astype(ct.uint8), check_bounds=False)


def test_scatter_outside_is_not_done(backends: Backends) -> None:
    for f in told(backends, scatters, 1, [np.zeros((8, 6), np.uint8), 4], reference=True):
        assert (f.kind, f.array, f.index, f.value) == ("write outside", "A", (0, 6), 2)
    for name in backends.names:
        whole = np.zeros((8, 8), np.uint8)
        findings(name, scatters, 1, [whole[:, :6], 4])
        assert not whole[:, 6:].any()


@ct.kernel
def whole_tiles(A, B):
    ct.store(B, (ct.bid(0), 0), ct.load(A, (ct.bid(0), 0), (T, 4), order="F", check_bounds=False))


def test_tile_outside(backends: Backends) -> None:
    args = [np.zeros((10, 2 * T), np.float16), np.zeros((3 * T, 4), np.float16)]
    for f in told(backends, whole_tiles, 3, args, reference=True):
        assert (f.kind, f.array, f.block) == ("read outside", "A", (2, 0, 0))


@ct.kernel
def stores_whole(A, B):
    ct.store(B, (ct.bid(0),), ct.load(A, (ct.bid(0),), (T,)), check_bounds=False)


def test_store_outside_is_not_done(backends: Backends) -> None:
    args = [np.arange(2 * T, dtype=np.int64), np.zeros(100, np.int64)]
    for f in told(backends, stores_whole, 2, args, reference=True):
        assert (f.kind, f.array, f.index, f.block, f.value) == ("write outside", "B", (100,), (1, 0, 0), 100)


@ct.kernel
def stores_turned(A, B):
    tile = ct.load(A, (0, 0), (8, 4))
    ct.store(B, (ct.bid(0), ct.bid(1)), tile, order="F", check_bounds=False)


def test_store_outside_in_another_order(backends: Backends) -> None:
    args = [np.arange(32, dtype=np.float16).reshape(8, 4), np.zeros((6, 8), np.float16)]
    for f in told(backends, stores_turned, (1, 2), args, reference=True):
        assert (f.index, f.value, f.block) == ((6, 0), 2, (0, 1, 0))


@ct.kernel
def at_offsets(A, B):
    i = ct.arange(16, dtype=ct.int32)
    A.get_raw_memory().store_offset(i * 3, i)
    old = B.get_raw_memory().atomic_add_offset(i, i)
    ct.store(A, (0, 0), ct.reshape(old, (4, 4)))


def test_offsets_reach_over_rows(backends: Backends) -> None:
    silent(backends, at_offsets, 1, [np.zeros((6, 8), np.int32), np.zeros((2, 8), np.int32)])
    for f in told(backends, at_offsets, 1, [np.zeros((5, 8), np.int32), np.zeros((2, 8), np.int32)], reference=True):
        assert (f.kind, f.array, f.index, f.value) == ("write outside", "A", (42,), 14)
        assert f.message.endswith("outside of its shape (5, 8); an offset counts elements of its memory")


# ---- two blocks ------------------------------------------------------------------------------------------------


@ct.kernel
def halves(A, B):
    ct.store(B, (ct.bid(0) // 2, ct.bid(1)), ct.load(A, (ct.bid(0), ct.bid(1)), (4, T)))


def test_two_writers(backends: Backends) -> None:
    args = [np.ones((16, 2 * T), np.float32), np.zeros((16, 2 * T), np.float32)]
    for f in told(backends, halves, (4, 2), args):
        assert (f.kind, f.array, f.value) == ("two writers", "B", 1.0)
        assert {f.block[0] // 2, f.other[0] // 2} in ({0}, {1}) and f.block != f.other and f.block[1] == f.other[1]
    silent(backends, halves, (1, 2), args)


@ct.kernel
def large_tiles(A, B):
    ct.store(B, (ct.bid(0) % 3, 0), ct.load(A, (ct.bid(0), 0), (64, 128)))


def test_two_writers_of_large_tiles(backends: Backends) -> None:
    args = [np.arange(256 * 128, dtype=np.float32).reshape(256, 128), np.zeros((192, 128), np.float32)]
    for f in told(backends, large_tiles, 4, args):
        assert f.kind == "two writers" and {f.block, f.other} == {(0, 0, 0), (3, 0, 0)}
        assert f.value == args[0][f.block[0] * 64 + f.index[0], f.index[1]]
    silent(backends, large_tiles, 3, args)


@ct.kernel
def counts(A, B):
    ct.atomic_add(B, 0, ct.sum(ct.load(A, (ct.bid(0),), (T,))))


def test_atomics_are_no_conflict(backends: Backends) -> None:
    silent(backends, counts, 4, [np.zeros(4 * T, np.int32), np.zeros(1, np.int32)])


@ct.kernel
def shifted(A, B):
    ct.store(B, (ct.bid(0),), ct.load(A, (ct.bid(0),), (T,)) + 1)


def test_arrays_that_overlap(backends: Backends) -> None:
    if "cuda" in backends.names or backends.names != ("cpu",):
        pytest.skip("which block comes first is known on one thread of the CPU only")
    memory = np.zeros(4 * T, np.float32)
    silent(backends, shifted, 4, [memory, memory])  # in place: each block reads what it writes
    with pytest.raises(TileCheckError, match=r"shares memory with|both store"):
        ct.launch(None, 3, shifted, (memory[: 3 * T][::-1], memory[: 3 * T]), check=True)


# ---- undetermined padding ----------------------------------------------------------------------------------------


@ct.kernel
def sums(A, B):
    ct.store(B, (ct.bid(0),), ct.sum(ct.load(A, (ct.bid(0),), (T,))))


@ct.kernel
def sums_where(A, B):
    place = ct.bid(0) * T + ct.arange(T, dtype=ct.int32)
    a = ct.load(A, (ct.bid(0),), (T,))
    ct.store(B, (ct.bid(0),), ct.sum(ct.where((place < A.shape[0]) & (a > 0), a, 0)))


@ct.kernel
def shifted_in_place(A, D: ct.Constant):
    i = ct.bid(0)
    x = ct.load(A, (i + D,), (T,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(A, (i,), x + 1)


@pytest.mark.parametrize("distance", [1, -1])
def test_a_read_of_what_another_block_writes(backends: Backends, distance: int) -> None:
    """Whichever of the two comes first: in the order of the blocks, they read before the next one writes, or behind."""
    a = np.zeros(4 * T, np.float32)
    for found in told(backends, shifted_in_place, (4,), [a, distance]):
        assert found.kind in ("read of written", "write of read") and found.array == "A" and found.index is not None
        assert found.other is not None and abs(found.block[0] - found.other[0]) == 1
        assert "which block" in found.message and "store to another array" in found.message
        line = 8 if found.kind == "read of written" else 9
        assert found.places[0].line > line and found.places[0].file == __file__
    for name in backends.names:
        assert findings(name, shifted_in_place, (4,), [a, 0]) == (), "a block reads what it writes"


@ct.kernel
def read_and_marked(A, B, ROWS: ct.Constant):
    i = ct.bid(0)
    ct.store(B, (i, 0), ct.load(A, (i - 1, 0), (ROWS, 128), padding_mode=ct.PaddingMode.ZERO))
    ct.store(A, (i, 0), ct.full((ROWS, 128), -1, ct.float32))


@pytest.mark.parametrize("rows", [2, 64])
def test_the_value_that_was_read(backends: Backends, rows: int) -> None:
    """Of tiles in one part and in several; the last block's element may be read before it is written."""
    a = np.arange(3 * rows * 128, dtype=np.float32).reshape(-1, 128)
    for f in told(backends, read_and_marked, 3, [a, np.zeros_like(a), rows]):
        assert f.kind in ("read of written", "write of read")
        assert f.value == -1 or (f.kind == "read of written" and f.value == a[f.index])
        assert f"(the value {f.value!r})" in f.message


@ct.kernel
def gathered_in_place(A, K):
    place = ct.bid(0) * T + ct.arange(T, dtype=ct.int32)
    x = ct.gather(A, ct.gather(K, place))
    ct.scatter(A, place, x, mask=place == 70)


def test_one_element_that_many_read(backends: Backends) -> None:
    """Three blocks read element 70, of which one writes it: who the others are is not told where there are several."""
    a, k = np.zeros(4 * T, np.float32), np.full(4 * T, 70, np.int32)
    for name in backends.names:
        all_ = findings(name, gathered_in_place, (4,), [a.copy(), k])
        assert name.startswith("sm_") or (all_ and {f.index for f in all_} == {(70,)})
        assert all("A[70]" in f.message for f in all_)
        writes = [f for f in all_ if f.kind == "write of read"]
        assert all(f.block == (1, 0, 0) for f in writes) and all(f.value == 0 for f in all_)


@ct.kernel
def handed_over(A, FLAG, Z):
    if ct.bid(0) == 0:
        ct.store(A, (0,), ct.ones((T,), ct.float32))
        ct.atomic_xchg(FLAG, 0, 1)
    else:
        while ct.atomic_add(FLAG, 0, 0) == 0:
            pass
        ct.store(Z, (0,), ct.load(A, (0,), (T,)))


def test_blocks_that_wait_for_each_other(backends: Backends) -> None:
    """What acquires orders the accesses behind it: there is no race, and none is told."""
    for name in backends.names:
        args = [np.zeros(T, np.float32), np.zeros(1, np.int32), np.zeros(T, np.float32)]
        assert findings(name, handed_over, (2,), args) == ()
        assert name.startswith("sm_") or args[2].sum() == T


def test_padding_in_a_sum(backends: Backends) -> None:
    args = [np.ones(100, np.float32), np.zeros(2, np.float32)]
    for f in told(backends, sums, 2, args):
        assert (f.kind, f.array, f.index, f.block) == ("padding stored", "B", (1,), (1, 0, 0))
    silent(backends, sums_where, 2, args)


@ct.kernel
def products(A, B, C, K: ct.Constant):
    acc = ct.zeros((32, 32), ct.float32)
    for k in range(ct.cdiv(A.shape[1], K)):
        a = ct.load(A, (ct.bid(0), k), (32, K))
        if k % 2 == 0:
            a = a + a
        acc = ct.mma(a, ct.load(B, (k, ct.bid(1)), (K, 32)), acc)
    ct.store(C, (ct.bid(0), ct.bid(1)), acc)


@pytest.mark.parametrize("k", [64, 70])
def test_padding_in_a_product(backends: Backends, k: int) -> None:
    """Rows and columns outside are dropped at the store; what is beyond k is summed."""
    args = [np.ones((40, k), np.float16), np.ones((k, 40), np.float16), np.zeros((40, 40), np.float32), 32]
    if k == 64:
        silent(backends, products, (2, 2), args)
    else:
        assert {f.kind for f in told(backends, products, (2, 2), args)} <= {"padding stored"}


@ct.kernel
def by_index(A, N, B):
    ct.store(B, (0,), ct.gather(A, ct.load(N, (0,), (T,))))


def test_padding_as_an_index(backends: Backends) -> None:
    args = [np.zeros(T, np.float32), np.zeros(60, np.int32), np.zeros(T, np.float32)]
    for f in told(backends, by_index, 1, args):
        assert (f.kind, f.array, f.text) == ("padding used", "A", "index")


# ---- what the program says of a number ------------------------------------------------------------------------------


@ct.kernel
def assumes(A, B, n):
    first = ct.assume_divisible_by(n, 16)
    ct.store(B, (0,), ct.gather(A, ct.arange(16, dtype=ct.int32) + first))


def test_assumed_divisor(backends: Backends) -> None:
    args = [np.arange(64, dtype=np.float32), np.zeros(16, np.float32), 24]
    for f in told(backends, assumes, 1, args, reference=True):
        assert (f.kind, f.value, f.text) == ("not divisible", 24, "16")
    backends.run_all(assumes, 1, lambda: [args[0], np.zeros(16, np.float32), 32])


@ct.kernel
def assumes_unsigned(B, n):
    ct.store(B, (0,), ct.full((16,), ct.assume_divisible_by(n.astype(ct.uint8), 200), ct.uint8))


def test_assumed_divisor_of_unsigned(backends: Backends) -> None:
    for f in told(backends, assumes_unsigned, 1, [np.zeros(16, np.uint8), 250], reference=True):
        assert (f.kind, f.value, f.text) == ("not divisible", 250, "200")
    silent(backends, assumes_unsigned, 1, [np.zeros(16, np.uint8), 200])


# ---- assertions ------------------------------------------------------------------------------------------------------


@ct.kernel
def positive(A, B):
    a = ct.load(A, (ct.bid(0),), (T,))
    ct.assert_(a > 0, "a must be positive")
    ct.store(B, (ct.bid(0),), a)


def test_assertion_lets_the_context_live(backends: Backends) -> None:
    args = [np.ones(2 * T, np.int16), np.zeros(2 * T, np.int16)]
    silent(backends, positive, 2, args)
    args[0][T] = 0
    for f in told(backends, positive, 2, args):
        assert (f.kind, f.block) == ("assertion", (1, 0, 0)) and "a must be positive" in f.text
    with pytest.raises(AssertionError, match="a must be positive") as caught:
        positive.interpret(2, tuple(args))
    assert "block (1, 0, 0)" in caught.value.__notes__[0]
    args[0][T] = 1
    silent(backends, positive, 2, args)


def test_text_of_a_finding() -> None:
    with pytest.raises(TileCheckError) as caught:
        ct.launch(None, 2, sums, (np.ones(100, np.float32), np.zeros(2, np.float32)), check=True)
    text = str(caught.value)
    assert text.startswith("kernel sums: block (1, 0, 0) stores to B[1] (the value ")
    assert "give ct.load a padding_mode" in text
    assert "    ct.store(B, (ct.bid(0),), ct.sum(ct.load(A, (ct.bid(0),), (T,))))\n    ^^^^^^^^" in text


@ct.kernel
def stores_beside(p):
    ct.store(p["out"][1], 0, ct.load(p["x"], p["at"], 8))


def test_parts_of_structures_are_named() -> None:
    x, out = np.ones(8, np.float32), np.zeros(8, np.float32)
    ct.launch(None, 1, stores_beside, ({"x": x, "at": 0, "out": (None, out)},), check=True)
    with pytest.raises(TileCheckError, match=r"p\['out'\]\[1\]\[0\] .the value"):
        ct.launch(None, 1, stores_beside, ({"x": x, "at": 1, "out": (None, out)},), check=True)


SUM = """import tilewright.tile as ct
@ct.kernel
def kernel(A, B):
    ct.store(B, (0,), ct.sum(ct.load(A, (0,), (64,))))
"""


def test_lines_that_have_moved(kernel_of: Any) -> None:
    """The disk cache does not give the lines of a program that was the same but for its place."""
    lines = []
    for source in (SUM, "# moved\n\n" + SUM):
        with pytest.raises(TileCheckError) as caught:
            ct.launch(None, 1, kernel_of(source), (np.ones(60, np.float32), np.zeros(1, np.float32)), check=True)
        lines.append(caught.value.where.line)
    assert lines == [4, 6]


# ---- what it cannot remember -----------------------------------------------------------------------------------


@ct.kernel
def first_of(A):
    ct.store(A, (0,), ct.load(A, (0,), (16,)))


def test_arrays_that_are_too_large_to_check(monkeypatch: pytest.MonkeyPatch) -> None:
    large = np.zeros(1 << 30, np.int8)  # its pages are never touched
    with pytest.raises(TileValueError, match="check=True follows 1073741808 elements of .* found 1073741824; check a"):
        ct.launch(None, 1, first_of, (large,), check=True)

    def full(*arguments: Any) -> Any:
        raise MemoryError("Unable to allocate")

    monkeypatch.setattr(checking, "_HostArray", full)
    with pytest.raises(
        TileValueError, match="two words of 4 bytes for each element .* check a launch on smaller arrays"
    ):
        ct.launch(None, 1, first_of, (np.zeros(16, np.int8),), check=True)
