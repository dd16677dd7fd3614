"""Metamorphic tests: a program that is spelled in another way comes to the plan of its plain form: as many instructions
that load, multiply, wait and store, rings as deep, no more spills, no serialized products. Needs no GPU; without ptxas
nothing is said of registers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tilewright import _core, cli, plans
from tilewright import compile as compiler
from tilewright import tile as ct

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "spellings"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "emulator"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "numerics"))
import emulate
import plan
import respell
import test_flat_loops
from check import check

GEMM = {
    "loop": ["step", "while", "reversed", "break", "two", "remainder", "peeled", "branch", "ahead"],
    "form": ["zeros", "iadd", "matmul"],
    "left": ["gather", "masked", "flat"],
    "right": ["gather", "masked", "flat"],
    "grid": ["turned", "swizzle", "persistent", "persistent while", "persistent swizzle"],
    "store": ["scatter", "flat"],
    "sum": ["float16"],
}
ATTENTION = {
    "loop": ["step", "while", "reversed", "break", "two", "remainder", "branch", "split"],
    "form": ["zeros"],
    "keys": ["columns", "order", "gather"],
    "values": ["columns", "gather"],
    "scale": ["late"],
    "base": ["exp"],
    "init": ["-1e30"],
    "early values": [True],
    "end": ["reciprocal"],
    "vectors": [True],
    "grid": ["turned", "backwards", "persistent"],
}
# Where a block holds all the sums that it can.
WIDE = {"loop": ["while", "two", "ahead"], "form": ["zeros"], "grid": ["persistent"]}


def each(kind: str, tile: tuple[int, int, int], changes: dict[str, list[Any]]) -> list[Any]:
    return [
        pytest.param(kind, tile, {name: value}, id=f"{kind} {tile[0]}x{tile[1]} {name} {value}")
        for name, values in changes.items()
        for value in values
    ]


@pytest.mark.parametrize(
    ("kind", "tile", "change"),
    [
        *each("gemm", (128, 128, 64), GEMM),
        *each("gemm", (128, 256, 64), WIDE),
        *each("attention", (128, 64, 64), ATTENTION),
        # a wish that would spill: it is dropped
        pytest.param("attention", (128, 128, 128), {"occupancy": 2}, id="attention 128x128 occupancy 2"),
        pytest.param("gemm", (128, 128, 64), {"loop": "ahead", "form": "zeros", "grid": "swizzle"}, id="all at once"),
    ],
)
def test_a_spelling_comes_to_the_plan_of_its_plain_form(
    kind: str, tile: tuple[int, int, int], change: dict[str, Any]
) -> None:
    plain = respell.plan_of(respell.choices_of(kind, tile=tile))
    found = respell.plan_of(respell.choices_of(kind, tile=tile, **change))
    assert plain.counts["wgmma"] > 0 and 1 in plain.waits and not plain.spills
    assert found.is_as_good_as(plain), f"{found}\nand not {plain}"


@pytest.mark.parametrize("form", ["BEGIN", "END", "REST", "TILES"])
def test_steps_of_all_tiles_in_one_loop_have_the_plan_of_two(form: str) -> None:
    given = [*(f"{x}=f16[?,?]" for x in "ABC"), "T=128"]
    key = cli.specialization(test_flat_loops.flat, [*given, f"FORM={getattr(test_flat_loops, form)}"])
    found = plan.of(test_flat_loops.flat, key)
    assert found.waits == (0, 1) and found.counts["tma stores"] > 0 and found.counts["stores"] == 0, str(found)
    assert not found.spills and "consumer_groups 2" in found.roles, str(found)


# ---- scaled queries ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["low", "wide"])
@pytest.mark.parametrize("mask", ["none", "causal"])
def test_scaled_queries_wait_in_shared_memory(scale: str, mask: str) -> None:
    """They come through registers, and are written once; all else is as with queries that are loaded."""
    plain, found = (respell.plan_of(respell.attention(mask=mask, scale=x)) for x in ("after", scale))
    same = ("wgmma", "tma stores", "stores", "copies")
    assert [found.counts[name] for name in same] == [plain.counts[name] for name in same], str(found)
    assert (found.waits, found.votes, found.roles, found.remarks) == (plain.waits, True, plain.roles, ())
    assert found.spills <= plain.spills + 16  # bytes of a thread, outside of the loop


def test_blocks_that_scale_several_queries_are_right(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A tile is not written where products of the tile before still read."""
    emulate.stand_in(monkeypatch, "sm_90a")
    choices = respell.attention(scale="wide", tile=(128, 128, 64), grid="persistent", size=(256, 2), small=True)
    outcome = check(choices, "cpu", tmp_path)
    assert outcome.kind == "right", outcome.text


# ---- no silent loss ------------------------------------------------------------------------------------------------


@ct.kernel
def until_a_zero(A, B, C):
    acc = ct.zeros((128, 128), ct.float32)
    k = 0
    while True:
        a = ct.load(A, (ct.bid(0), k), (128, 64))
        acc = ct.mma(a, ct.load(B, (k, ct.bid(1)), (64, 128)), acc)
        if ct.sum(a).item() == 0:
            break
        k += 1
    ct.store(C, (ct.bid(0), ct.bid(1)), acc.astype(C.dtype))


def started_full(folder: Path) -> Any:
    choices = respell.gemm(tile=(128, 128, 64), init="full")
    return respell.kernel_of(respell.program_of(choices).source(""), folder)


@pytest.mark.parametrize(
    ("kernel_in", "told"),
    [
        (started_full, "from zero, with that tile added behind the loop"),
        (lambda folder: until_a_zero, "a count that each step changes by the same"),
    ],
    ids=["a sum from a tile", "an end that data tells"],
)
def test_a_remark_tells_what_wins_the_plan_back(kernel_in: Callable[[Path], Any], told: str, tmp_path: Path) -> None:
    kernel = kernel_in(tmp_path)
    module = kernel.capture("sm_90a", cli.specialization(kernel, [f"{x}=bf16[?,?]" for x in "ABC"]))
    diagnostics = str(plans.lower(module, compiler.GPU_STAGES, module.lower))
    assert told in diagnostics


# ---- tiles counted in one number ---------------------------------------------------------------------------------


@ct.kernel
def plane(A, B, C):
    sum_of_tile(A, B, C, ct.bid(0), ct.bid(1))


@ct.kernel
def turned(A, B, C):
    sum_of_tile(A, B, C, ct.bid(1), ct.bid(0))


@ct.kernel
def in_line(A, B, C):
    t, rows = ct.bid(0), ct.cdiv(A.shape[0], 128)
    sum_of_tile(A, B, C, t % rows, t // rows)


@ct.kernel
def in_groups(A, B, C):
    i, j = grouped_position(A.shape[0], B.shape[1], ct.bid(0))
    sum_of_tile(A, B, C, i, j)


@ct.kernel
def in_turn(A, B, C):
    columns = ct.cdiv(B.shape[1], 128)
    for t in range(ct.bid(0), ct.cdiv(A.shape[0], 128) * columns, ct.num_blocks(0)):
        sum_of_tile(A, B, C, t // columns, t % columns)


@ct.kernel
def groups_in_turn(A, B, C):
    t, all_tiles = ct.bid(0), ct.num_tiles(A, 0, (128, 64)) * ct.num_tiles(B, 1, (64, 128))
    while t < all_tiles:
        i, j = grouped_position(A.shape[0], B.shape[1], t)
        sum_of_tile(A, B, C, i, j)
        t += ct.num_blocks(0)


def grouped_position(m, n, t):
    rows, columns = ct.cdiv(m, 128), ct.cdiv(n, 128)
    group = t // (8 * columns)
    height = min(rows - group * 8, 8)
    return group * 8 + t % height, t % (8 * columns) // height


def sum_of_tile(A, B, C, i, j):
    acc = ct.zeros((128, 128), ct.float32)
    for k in range(ct.cdiv(A.shape[1], 64)):
        a = ct.load(A, (i, k), (128, 64), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(a, ct.load(B, (k, j), (64, 128), padding_mode=ct.PaddingMode.ZERO), acc)
    ct.store(C, (i, j), acc.astype(C.dtype))


def code_of(kernel: Any) -> str:
    """PTX, but for the kernel's name. Rows begin within lines of the cache, so that neighbours share tiles."""
    arrays = ["A=bf16[4000,4104]", "B=bf16[4104,4360]", "C=bf16[4000,4360]"]
    module = kernel.capture("sm_90a", cli.specialization(kernel, arrays))
    plans.lower(module, compiler.GPU_STAGES, module.lower)
    return module.emit(compiler.EMIT_ASSEMBLY).decode().replace(kernel.name, "kernel")


@pytest.mark.parametrize("kernel", [in_line, in_groups, in_turn, groups_in_turn])
def test_tiles_counted_in_one_number_are_a_grid(kernel: Any) -> None:
    """The code of the plain program, clusters and all."""
    same = code_of(turned if kernel is in_turn else plane)
    assert ".reqnctapercluster" in same or ".explicitcluster" in same
    assert code_of(kernel) == same


# ---- masks, and flat offsets ----------------------------------------------------------------------------------------


@ct.kernel
def advanced(A, B, C, M, N, K):
    i, j = ct.bid(0), ct.bid(1)
    rows, columns = (x * t + ct.arange(t, dtype=ct.int32) for x, t in ((i, 128), (j, 256)))
    depth = ct.arange(64, dtype=ct.int32)
    left, right = rows[:, None] * K + depth[None, :], depth[:, None] * N + columns[None, :]
    acc = ct.zeros((128, 256), ct.float32)
    for k in range(ct.cdiv(K, 64)):
        a = ct.gather(A, left, mask=(rows[:, None] < M) & (depth[None, :] < K - k * 64))
        b = ct.gather(B, right, mask=(columns[None, :] < N) & (depth[:, None] < K - k * 64))
        acc = ct.mma(a, b, acc)
        left += 64
        right += 64 * N
    ct.store(C, (i, j), acc.astype(C.dtype))


@pytest.mark.parametrize("divisor", [16, 1])
def test_offsets_advanced_by_a_stride_of_run_time(divisor: int) -> None:
    """Boxes of rows where the launch's numbers are multiples of vectors, and single elements elsewhere."""
    arrays = [entry for _, entry in map(cli.parse_argument, ("A=bf16[?]", "B=bf16[?]", "C=bf16[?,?]"))]
    plain, found = respell.plan_of(respell.gemm()), plan.of(advanced, (*arrays, *3 * [("scalar", "int32", divisor)]))
    same = [name for name in ("roles", "stages", "waits", "spills") if getattr(found, name) == getattr(plain, name)]
    assert (len(same) == 4 and found.counts["tma loads"] > 0) == (divisor == 16), str(found)


def test_blocks_take_several_tiles_of_rows_in_flat_arrays(tmp_path: Path) -> None:
    """Nothing is left of the offsets that would show where blocks lie."""
    choices = respell.gemm(tile=(128, 128, 64), size=(4000, 4360, 4104, 1), left="flat", right="flat")
    kernel = respell.kernel_of(respell.program_of(choices).source(""), tmp_path)
    arrays = ["A=bf16[16416000]", "B=bf16[17893440]", "C=bf16[4000,4360]"]
    module = kernel.capture("sm_90a", cli.specialization(kernel, arrays))
    assert "coarsens its tiles" in str(plans.lower(module, compiler.GPU_STAGES, module.lower))


@pytest.mark.parametrize("side", ["left", "right"])
def test_flat_offsets_of_columns_are_a_transposed_load(side: str) -> None:
    plain, found = (respell.plan_of(respell.gemm(tile=(128, 128, 64), **{side: x})) for x in ("T", "flat columns"))
    assert found.is_as_good_as(plain), f"{found}\nand not {plain}"


# As Triton's tutorial has it: rows and columns that lie beyond are those of the beginning, which nobody stores.
@ct.kernel
def wrapped(A, B, C, M, N, K):
    m, n = ct.bid(0) * 128 + ct.arange(128, dtype=ct.int32), ct.bid(1) * 256 + ct.arange(256, dtype=ct.int32)
    depth = ct.arange(64, dtype=ct.int32)
    left, right = (m % M)[:, None] * K + depth[None, :], depth[:, None] * N + (n % N)[None, :]
    acc = ct.zeros((128, 256), ct.float32)
    for k in range(ct.cdiv(K, 64)):
        a = ct.gather(A, left, mask=depth[None, :] < K - k * 64)
        acc = ct.mma(a, ct.gather(B, right, mask=depth[:, None] < K - k * 64), acc)
        left += 64
        right += 64 * N
    inside = (m < M)[:, None] & (n < N)[None, :]
    ct.scatter(C, m[:, None] * N + n[None, :], acc.astype(C.dtype), mask=inside)


def test_rows_that_are_wrapped_around_and_not_stored_are_a_tile() -> None:
    arrays = [entry for _, entry in map(cli.parse_argument, ("A=bf16[?]", "B=bf16[?]", "C=bf16[?]"))]
    plain, found = respell.plan_of(respell.gemm()), plan.of(wrapped, (*arrays, *3 * [("scalar", "int32", 16)]))
    same = ("roles", "stages", "waits", "spills", "remarks")
    assert [getattr(found, name) for name in same] == [getattr(plain, name) for name in same], str(found)
    assert found.counts["tma loads"] and found.counts["tma stores"] == plain.counts["tma stores"]


def test_rows_that_are_cut_off_and_gathered_are_right(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The loop counts columns down, so that they are no tile's: each row is compared with the end."""
    emulate.stand_in(monkeypatch, "sm_90a")
    how = {"left": "flat wrapped", "loop": "reversed", "store": "flat"}
    choices = respell.gemm(**how, tile=(128, 64, 64), size=(200, 160, 72, 1), small=True)
    outcome = check(choices, "cpu", tmp_path)
    assert outcome.kind == "right", outcome.text


def test_a_launch_whose_rows_lie_otherwise_has_a_variant_that_assumes_nothing() -> None:
    arrays = [entry for _, entry in map(cli.parse_argument, ("A=bf16[?]", "B=bf16[?]", "C=bf16[?]"))]
    images: list[compiler.Image] = []
    first = compiler.Specialization(
        wrapped, "sm_90a", (*arrays, *3 * [("scalar", "int32", 16)]), made=lambda _, image, __: images.append(image)
    )
    first.compile()
    first._better("as_launched", 0)
    assert [bool(_core.launch_facts(image.record)["views"]) for image in images] == [True, False]


@ct.kernel
def selected(A, B, C, M: int, K: int):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((128, 128), ct.float32)
    rows, depth = i * 128 + ct.arange(128, dtype=ct.int32), ct.arange(64, dtype=ct.int32)
    for k in range(ct.cdiv(K, 64)):
        a = ct.load(A, (i, k), (128, 64), padding_mode=ct.PaddingMode.ZERO)
        a = ct.where((rows < M)[:, None] & (k * 64 + depth < K)[None, :], a, 0)
        acc = ct.mma(a, ct.load(B, (k, j), (64, 128), padding_mode=ct.PaddingMode.ZERO), acc)
    ct.store(C, (i, j), acc.astype(C.dtype))


def test_what_a_select_keeps_is_the_tile_of_a_smaller_array() -> None:
    arrays = cli.specialization(by_gather, ["A=bf16[?,?]", "B=bf16[?,?]", "C=bf16[?,?]", "E=i32[?]"])[:3]
    found = plan.of(selected, (*arrays, *2 * [("scalar", "int32", 16)]))
    assert found.is_as_good_as(respell.plan_of(respell.gemm(tile=(128, 128, 64)))), str(found)


# ---- an element that says where tiles lie ------------------------------------------------------------------------


@ct.kernel
def by_gather(A, B, C, E):
    i, j = ct.bid(0), ct.bid(1)
    expert = ct.gather(E, i)
    grouped(A, B, C, expert, i, j)


@ct.kernel
def by_item(A, B, C, E):
    i, j = ct.bid(0), ct.bid(1)
    expert = ct.load(E, (i,), (1,)).item()
    grouped(A, B, C, expert, i, j)


@ct.kernel
def by_reshape(A, B, C, E):
    i, j = ct.bid(0), ct.bid(1)
    expert = ct.load(E, (i,), (1,), padding_mode=ct.PaddingMode.ZERO).reshape(())
    grouped(A, B, C, expert, i, j)


@ct.kernel
def by_shape(A, B, C, E):
    i, j = ct.bid(0), ct.bid(1)
    expert = ct.load(E, i, shape=())
    grouped(A, B, C, expert, i, j)


def grouped(A, B, C, expert, i, j):
    acc = ct.zeros((128, 128), ct.float32)
    for k in range(ct.cdiv(A.shape[1], 64)):
        a = ct.load(A, (i, k), (128, 64))
        b = ct.load(B, (expert, k, j), (1, 64, 128)).reshape((64, 128))
        acc = ct.mma(a, b, acc)
    ct.store(C, (i, j), acc.astype(C.dtype))


def plan_of(kernel: Any) -> plan.Plan:
    return plan.of(kernel, cli.specialization(kernel, ["A=bf16[?,?]", "B=bf16[?,?,?]", "C=bf16[?,?]", "E=i32[?]"]))


@pytest.mark.parametrize("kernel", [by_item, by_reshape, by_shape])
def test_an_element_is_one_operation(kernel: Any) -> None:
    plain, found = plan_of(by_gather), plan_of(kernel)
    assert plain.counts["tma loads"] > 0
    assert found.is_as_good_as(plain), f"{found}\nand not {plain}"
