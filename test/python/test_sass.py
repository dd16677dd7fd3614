"""The structure of the machine code of products and attention on Hopper, by plan: nothing runs, no GPU is needed.

Overlap is lost silently: PTX says what may run by itself, and ptxas serializes it where a register is touched too
early, spills, or moves a wait. Only the machine code shows it.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import sass

sys.path.insert(0, str(Path(__file__).parents[2] / "python" / "examples"))
import attention
import matmul
from kernels import (
    attention_backward,
    convolution,
    grouped_attention,
    grouped_gemm,
    layer_norm_linear,
    linear,
    linear_attention,
    paged_attention,
    quantized_linear,
    scaled_gemm,
    swiglu,
)
from tilewright import tile as ct
from tilewright.errors import TileError

pytestmark = pytest.mark.skipif(sass.MISSING is not None, reason=str(sass.MISSING))

BF16 = ml_dtypes.bfloat16


def empty(*shape: int, dtype: Any = BF16) -> np.ndarray:
    return np.empty(shape, dtype)


@dataclasses.dataclass(frozen=True)
class Plan:
    launch: Callable[[], Any]  # (grid, kernel, arguments)
    products: list[tuple[int, int, int]]  # m, n, k of those of one iteration of the loop
    exponentials: bool = False  # some stand between the products
    overlap: bool = False  # ... and run while one of them does
    opcode: str = "HGMMA"
    gathers: bool = False  # rows at indices, by a producer's copies, which need no registers
    vectors: bool = False  # what many threads hold is read from shared memory, not from arrays
    specialized: bool = False  # a loop that stores, of which a producer brings the tiles


def gemm(*tiles: int, kernel: Any = matmul.matmul, **hints: int) -> Plan:
    square = lambda: empty(4096, 4096)  # noqa: E731
    return Plan(lambda: (None, kernel.replace_hints(**hints), (square(), square(), square(), *tiles)), [tiles])


def narrow(*tiles: int, dtype: Any, out: Any = BF16, row_major: bool = False) -> Plan:
    a, b = empty(4096, 4096, dtype=dtype), empty(4096, 4096, dtype=dtype)
    b = b if row_major else b.T
    opcode = "IGMMA" if dtype == np.int8 else "QGMMA"
    return Plan(lambda: (None, matmul.matmul, (a, b, empty(4096, 4096, dtype=out), *tiles)), [tiles], opcode=opcode)


def heads(*tiles: int, d: int = 128, **hints: int) -> Plan:
    kernel = attention.attention.replace_hints(**hints)
    launch = lambda: (None, kernel, (*(empty(1, 1, 4096, d) for _ in range(4)), 0.1, *tiles, d))  # noqa: E731
    tm, tn = tiles
    return Plan(launch, [(tm, tn, d), (tm, d, tn)], exponentials=True, overlap=True)


def first(module: Any, *args: Any, skip: int = 0, **options: Any) -> Callable[[], Any]:
    return lambda: list(module.launches(*args, **options))[skip]


HEADS = [empty(1, 2, 1024, 128) for _ in range(5)]
NARROW = [empty(1, 2, 1024, 64) for _ in range(5)]
ROWS = [empty(1, 2, 1024, dtype=np.float32) for _ in range(2)]
TILE = (64, 64, 128)
PLANS = {
    "gemm 64x64x64": gemm(64, 64, 64),
    "gemm 128x128x64": gemm(128, 128, 64),
    "gemm 128x256x64": gemm(128, 256, 64),
    "gemm 256x128x64": gemm(256, 128, 64),
    # Of a step of k that is longer than a line of 128 bytes an iteration takes a line.
    "gemm 128x128x128": dataclasses.replace(gemm(128, 128, 128), products=[(128, 128, 64)]),
    "gemm 128x128x64 in clusters": gemm(128, 128, 64, kernel=matmul.matmul.replace_hints(num_ctas=2)),
    "gemm 128x256x64 in clusters": gemm(128, 256, 64, kernel=matmul.matmul.replace_hints(num_ctas=2)),
    "gemm 128x256x32": gemm(128, 256, 32),
    # Blocks share tiles: the products go into the registers that the sums of parts come from.
    "gemm 128x256x64 shared": gemm(128, 256, 64, kernel=matmul.matmul.replace_hints(split_k=0)),
    "gemm 128x256x32 shared": gemm(128, 256, 32, kernel=matmul.matmul.replace_hints(split_k=0)),
    "gemm 64x256x64 shared": gemm(64, 256, 64, kernel=matmul.matmul.replace_hints(split_k=0)),
    "e4m3 128x128x128": narrow(128, 128, 128, dtype=ml_dtypes.float8_e4m3fn),
    "e4m3 128x256x128": narrow(128, 256, 128, dtype=ml_dtypes.float8_e4m3fn),
    "e5m2 128x256x128": narrow(128, 256, 128, dtype=ml_dtypes.float8_e5m2),
    # Lines of 64 bytes; where they are not along k a thread turns them around.
    "e4m3 128x256x64": narrow(128, 256, 64, dtype=ml_dtypes.float8_e4m3fn),
    "e4m3 128x256x64, row-major": narrow(128, 256, 64, dtype=ml_dtypes.float8_e4m3fn, row_major=True),
    "e4m3 128x128x64, row-major": narrow(128, 128, 64, dtype=ml_dtypes.float8_e4m3fn, row_major=True),
    "attention 64x64": heads(64, 64),
    "attention 128x64": heads(128, 64),
    "attention 128x128": heads(128, 128),
    "attention 128x128 of 64": heads(128, 128, d=64),
    "attention 128x128, a maximum each time": heads(128, 128, lazy_rescale=0),
    "swiglu": Plan(first(swiglu, *(empty(1024, 1024) for _ in range(4))), 2 * [(128, 128, 64)]),
    "linear": Plan(
        first(linear, *(empty(1024, 1024) for _ in range(2)), empty(1024), *(empty(1024, 1024) for _ in range(2))),
        [(128, 128, 64)],
    ),
    "layer norm linear": Plan(
        first(layer_norm_linear, empty(1024, 1024), *(empty(1024) for _ in range(2)), *(empty(1024, 1024),) * 2),
        [(128, 256, 64)],
    ),
    "scaled gemm": Plan(
        first(
            scaled_gemm,
            *(empty(1024, 1024, dtype=ml_dtypes.float8_e4m3fn) for _ in range(2)),
            *(empty(n, 8, dtype=np.float32) for n in (1024, 8)),
            empty(1024, 1024),
        ),
        [(128, 128, 128)],
        opcode="QGMMA",
    ),
    "grouped gemm": Plan(
        first(grouped_gemm, empty(1024, 1024), empty(4, 1024, 1024), np.empty(5, np.int32), empty(1024, 1024)),
        [(128, 128, 64)],
        gathers=True,
    ),
    "attention of pages": Plan(
        first(
            paged_attention,
            empty(1, 4, 256, 128),
            *(empty(64, 64, 2, 128) for _ in range(2)),
            *(np.empty(shape, np.int32) for shape in ((1, 64), (1,))),
            empty(1, 4, 256, 128),
            tiles=(128, 64),
        ),
        [(128, 64, 128), (128, 128, 64)],
        exponentials=True,
        overlap=True,
        gathers=True,
    ),
    "convolution, two warpgroups": Plan(
        first(convolution, empty(4, 64, 64, 256), empty(256, 3, 3, 256), empty(4, 64, 64, 256), tiles=(128, 256, 64)),
        [(128, 256, 64)],
        gathers=True,
    ),
    "convolution": Plan(
        first(convolution, empty(4, 64, 64, 256), empty(256, 3, 3, 256), empty(4, 64, 64, 256)),
        [(128, 128, 64)],
        gathers=True,
    ),
    "attention with a cap": Plan(first(grouped_attention, *HEADS[:4], cap=30.0), 2 * [(64, 64, 128)], True, True),
    "attention with a cap 128x128": Plan(
        first(grouped_attention, *HEADS[:4], cap=30.0, tiles=(128, 128)), 2 * [(128, 128, 128)], True, True
    ),
    "grouped attention 128x128": Plan(
        first(grouped_attention, *HEADS[:4], tiles=(128, 128)), 2 * [(128, 128, 128)], True, True
    ),
    "linear attention": Plan(  # both warpgroups compute all scores: twice 64x64x128
        first(linear_attention, *HEADS[:4]),
        2 * [(64, 64, 128)] + [(64, 128, 128), (64, 128, 64), (128, 128, 64)],
        specialized=True,
    ),
    "gradient of keys": Plan(
        first(attention_backward, *HEADS, *ROWS, *HEADS[:3], skip=1, tiles=(128, 64)),
        2 * [(128, 64, 128)] + 2 * [(128, 128, 64)],
        exponentials=True,
        vectors=True,
    ),
    "gradient of keys, all visible": Plan(
        first(attention_backward, *HEADS, *ROWS, *HEADS[:3], skip=1, tiles=(128, 64), causal=False),
        2 * [(128, 64, 128)] + 2 * [(128, 128, 64)],
        exponentials=True,
        vectors=True,
    ),
    "gradient of keys, rows of 64": Plan(  # keys and values stay in registers
        first(attention_backward, *NARROW, *ROWS, *NARROW[:3], skip=1, tiles=(128, 64), causal=False),
        2 * [(128, 64, 64)] + 2 * [(128, 64, 64)],
        exponentials=True,
        vectors=True,
    ),
    "gradient of queries, rows of 64": Plan(
        first(attention_backward, *NARROW, *ROWS, *NARROW[:3], skip=2, tiles=(128, 64), causal=False),
        3 * [(128, 64, 64)],
        exponentials=True,
    ),
    "gradient of queries, all visible": Plan(
        first(attention_backward, *HEADS, *ROWS, *HEADS[:3], skip=2, tiles=(128, 64), causal=False),
        2 * [(128, 64, 128)] + [(128, 128, 64)],
        exponentials=True,
        overlap=True,
    ),
    "gradient of queries": Plan(
        first(attention_backward, *HEADS, *ROWS, *HEADS[:3], skip=2, tiles=(128, 64)),
        2 * [(128, 64, 128)] + [(128, 128, 64)],
        exponentials=True,
        overlap=True,
    ),
}


def assemble(plan: Plan) -> sass.Code:
    _, kernel, args = plan.launch()
    return sass.assemble(kernel, kernel.specialization(args)[1])


def work(body: list[sass.Instruction]) -> int:
    """Multiplications of the matrix instructions of one warpgroup."""
    shapes = (re.match(r"[HQI]GMMA\.(\d+)x(\d+)x(\d+)", i.opcode) for i in body)
    return sum(int(s[1]) * int(s[2]) * int(s[3]) for s in shapes if s)


def exponentials_run_beside_a_product(body: list[sass.Instruction]) -> bool:
    """All stand between the wait for the scores, which leaves a product running, and the wait for that one."""
    waits = [(i, x.operands) for i, x in enumerate(body) if sass.matches(x, "WARPGROUP.DEPBAR.LE")]
    begin = min(i for i, operands in waits if operands.endswith("0x1"))
    end = max(i for i, operands in waits if operands.endswith("0x0"))
    return sass.count(body, "MUFU.EX2") == sass.count(body[begin:end], "MUFU.EX2")


@pytest.mark.parametrize("name", PLANS)
def test_plan(name: str) -> None:
    plan = PLANS[name]
    code = assemble(plan)
    assert code.spills == 0
    assert code.serialized == []
    assert code.wrong == []
    assert plan.gathers == (code.count("LDGSTS") > 0)
    loops = code.loops(plan.opcode)
    assert loops
    wanted = sum(m * n * k for m, n, k in plan.products)
    for body in loops:
        assert work(body) * code.warpgroups == wanted
        assert sass.count(body, "STL") == sass.count(body, "LDL") == 0
        assert sass.count(body, "MEMBAR.ALL.GPU") == sass.count(body, "MEMBAR.SC.GPU") == 0
        assert sass.zeroed_accumulators(body) == set()  # a product starts from zero by its own means
        assert plan.exponentials == (sass.count(body, "MUFU.EX2") > 0)
        assert sass.count(body, "LDGSTS") == 0
        assert not plan.overlap or exponentials_run_beside_a_product(body)
        assert not plan.vectors or (sass.count(body, "LDS") > 0 and sass.count(body, "LDG") == 0)
        assert plan.specialized == (sass.count(body, "UTMASTG") > 0)


@ct.kernel
def strips(A, B, C, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    """A block computes several tiles of the result, one after the other."""
    i = ct.bid(0)
    for j in range(ct.num_tiles(B, axis=1, shape=(TK, TN))):
        acc = ct.zeros((TM, TN), dtype=ct.float32)
        for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
            acc = ct.mma(ct.load(A, index=(i, k), shape=(TM, TK)), ct.load(B, index=(k, j), shape=(TK, TN)), acc)
        ct.store(C, index=(i, j), tile=acc.astype(C.dtype))


@ct.kernel
def states(X, W, Y, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    """A state that each tile of rows is added to, and what it is after each."""
    h = ct.zeros((TM, TN), dtype=ct.float32)
    w = ct.load(W, index=(0, 0), shape=(TK, TN))
    for i in range(ct.num_tiles(X, axis=0, shape=(TM, TK))):
        h = ct.mma(ct.load(X, index=(i, ct.bid(0)), shape=(TM, TK)), w, h * 0.5)
        ct.store(Y, index=(i, ct.bid(0)), tile=h.astype(Y.dtype))


@pytest.mark.parametrize(
    "kernel, tiles", [(strips, (128, 128, 64)), (strips, (128, 256, 64)), (states, (128, 128, 128))]
)
def test_loops_that_store(kernel: Any, tiles: tuple[int, int, int]) -> None:
    """A producer brings the tiles of all, and the accelerator takes the results."""
    code = assemble(gemm(*tiles, kernel=kernel))
    assert code.spills == 0 and code.serialized == [] and code.wrong == []
    assert code.count("UTMALDG") > 0 and code.count("UTMASTG") > 0
    assert code.count("LDG") == code.count("STG") == code.count("LDGSTS") == 0


def test_a_gather_finds_addresses_before_its_loop() -> None:
    """What moves in a convolution is one distance for all rows; and its results leave in pieces of 16 bytes."""
    code = assemble(PLANS["convolution, two warpgroups"])
    (loop,) = code.loops("LDGSTS")
    assert len(loop) < 180 and sass.count(loop, "MUFU.RCP") == 0
    assert code.count("STG.E.128") == 16 and code.count("STG.E") == 16


@pytest.mark.parametrize("name, counters", [("attention 128x128", 2), ("gradient of keys", 2), ("gemm 128x256x64", 0)])
def test_unequal_blocks_are_scheduled_dynamically(name: str, counters: int) -> None:
    """In the last iteration of the producer's last loop, or behind a loop that does not run."""
    code = assemble(PLANS[name])
    assert code.count("ATOMG") == counters and code.count("MEMBAR.ALL.GPU") == 0


@pytest.mark.parametrize("name, hinted", [("attention 128x128", 2), ("gradient of keys", 4), ("gemm 128x256x64", 0)])
def test_what_is_read_once_makes_room(name: str, hinted: int) -> None:
    """Boxes of queries, or of a block's own keys and values, come with a policy for the L2 cache; no others do."""
    code = assemble(PLANS[name])
    boxes = [i.operands for i in code.instructions if sass.matches(i, "UTMALDG")]
    assert sum("desc[" in operands for operands in boxes) == hinted < len(boxes)
    assert sum("leave the L2 cache first" in remark for remark in code.remarks) == (hinted + 1) // 2


@pytest.mark.parametrize("tiles", [(16, 64, 256), (256, 128, 64)], ids=str)
@pytest.mark.parametrize("bits", [8, 4])
def test_bytes_become_floats_by_arithmetic(bits: int, tiles: tuple[int, int, int]) -> None:
    weights = empty(1024, 128 * bits, dtype=np.int8)
    arrays = empty(1024, 1024), weights, empty(1024, dtype=np.float32), empty(1024, 1024)
    code = assemble(Plan(first(quantized_linear, *arrays, bits=bits, tiles=tiles), []))
    (loop,) = code.loops("PRMT")
    assert code.spills == 0
    assert not [i for i in loop if i.opcode.startswith(("I2F", "STS"))]  # and go from registers into the product


def test_an_operand_is_computed_beside_a_product() -> None:
    """The next one is, between the start of the product and the wait for it."""
    (loop,) = assemble(PLANS["layer norm linear"]).loops("HGMMA")
    begin = min(i for i, x in enumerate(loop) if sass.matches(x, "HGMMA"))
    end = max(i for i, x in enumerate(loop) if sass.matches(x, "WARPGROUP.DEPBAR.LE"))
    assert sass.count(loop, "FFMA") == sass.count(loop[begin:end], "FFMA") == 32


@ct.kernel
def flushed_quotients(X, Y, Z):
    i = ct.bid(0)
    ct.store(Z, i, ct.truediv(ct.load(X, i, 128), ct.load(Y, i, 128), flush_to_zero=True))


def test_a_quotient_is_flushed_apart() -> None:
    """Were it the product before that flushed, a subnormal factor of that would be zero."""
    arrays = (empty(1024, dtype=np.float32),) * 3
    code = sass.assemble(flushed_quotients, flushed_quotients.specialization(arrays)[1])
    flushing = [i.operands.split(", ") for i in code.instructions if i.opcode == "FMUL.FTZ"]
    assert code.count("MUFU.RCP") and not [row for row in flushing if "1" not in row]
    assert code.count("FADD.FTZ") >= 3


def test_a_cap_is_bent_beside_the_exponentials() -> None:
    """What is far from zero falls through into one block with all else, so that the slow unit is not waited for."""
    loop, _ = assemble(PLANS["attention with a cap"]).loops("HGMMA")
    ends = [i for i, x in enumerate(loop) if sass.matches(x, "BRA")]
    blocks = [loop[a:b] for a, b in itertools.pairwise(ends)]
    assert [sass.count(b, "MUFU.EX2") for b in blocks if sass.count(b, "MUFU.RCP") == 8] == [32 + 32]


ANY_TILES = [(m, n, k) for m in (16, 64, 256) for n in (16, 64, 256) for k in (32, 128) if m * n < 256 * 256]


@pytest.mark.parametrize("tiles", ANY_TILES, ids=str)
def test_any_tile_fits(tiles: tuple[int, int, int]) -> None:
    """Whatever becomes of a product, where a block has registers for its sums nothing spills."""
    code = assemble(gemm(*tiles))
    assert code.spills == 0 and code.serialized == []


TOO_LARGE = [
    ((256, 512, 64), r"needs \d+ bytes of shared memory for a tile of \(256, 512\) bfloat16"),
    ((512, 512, 32), r"tile of \(512, 512\) float32"),
]


@pytest.mark.parametrize(("tiles", "message"), TOO_LARGE, ids=("shared memory", "registers"))
def test_a_tile_that_does_not_fit_is_named(tiles: tuple[int, int, int], message: str) -> None:
    with pytest.raises(TileError, match=message):
        assemble(gemm(*tiles, slice_tiles=1))


@pytest.mark.parametrize("tiles", [tiles for tiles, _ in TOO_LARGE], ids=str)
def test_a_tile_that_does_not_fit_is_cut(tiles: tuple[int, int, int]) -> None:
    code = assemble(gemm(*tiles))
    assert code.spills == 0 and code.serialized == [] and code.count("HGMMA") > 0


LOAD = sass.Instruction(16, "LDG.E.64", "R24, desc[UR4][R8]", writes=frozenset({"R24", "R25"}))


@pytest.mark.parametrize(
    "between, added, found",
    [([], "R24", {24, 25}), ([LOAD], "R24", set()), ([], "RZ", set())],
    ids=("added", "loaded", "not added"),
)
def test_zeroed_accumulators(between: list[sass.Instruction], added: str, found: set[int]) -> None:
    """Zeros matter where a product adds to them: not where they stand for what a load may leave out."""
    zeros = sass.Instruction(0, "CS2R", "R24, SRZ")
    product = sass.Instruction(32, "HGMMA.64x64x16.F32.BF16", f"R24, gdesc[UR16], {added}, gsb0")
    assert sass.zeroed_accumulators([zeros, *between, product]) == found
