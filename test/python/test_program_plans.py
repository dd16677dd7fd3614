"""What the compiler makes of programs that people write elsewhere (test/programs), for Hopper and without a GPU."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "programs"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "spellings"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "random_products"))
import plan
import sass
import show
from program import PROGRAMS

from tilewright import compile, plans

OVERLAPPING = [
    "fmha sample",
    "fmha sample, ragged",
    "FlashAttention-2",
    "FlashAttention-2, causal",
    "window with sinks",
]
PRODUCTS = [
    *OVERLAPPING,
    "ALiBi",
    "sigmoid attention",
    "attention in two passes",
    "RMS norm beside a product",
    "weights of 8 bits",
    "weights of 4 bits by groups",
    "convolution by computed taps",
]


def at_full_size(name: str) -> tuple[Any, Any]:
    """The kernel of a program, and what a launch at its full size specializes it for."""
    entry = PROGRAMS[name]
    launch = entry.make(show.Shapes(0), **entry.full)
    return launch.kernel, show.key_of(launch)


def ptx_of(name: str) -> str:
    kernel, key = at_full_size(name)
    module = kernel.capture("sm_90a", key)
    plans.lower(module, compile.GPU_STAGES, module.lower)
    return module.emit(compile.EMIT_ASSEMBLY).decode()


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_overlap(name: str) -> None:
    """Tiles come by TMA, a product runs beside the next, nothing is kept in local memory or serialized."""
    found = plan.of(*at_full_size(name))
    assert found.counts["wgmma"] and found.counts["tma loads"] and not found.counts["mma"], found
    assert max(found.waits) > 0 and not found.remarks and found.spills == 0, found
    assert found.votes == (name in OVERLAPPING), found


def test_products_of_one_sum_are_waited_for_once() -> None:
    """Scores are a product of latent parts and one of rotary parts, in a row; each iteration has one more product."""
    ptx = ptx_of("MLA decode")
    assert ptx.count("wgmma.mma_async") == 40 and ptx.count("wgmma.wait_group") == 2


@pytest.mark.parametrize("name", ["fp8 in blocks, by gathers", "k-means"])
def test_sums_of_each_iteration_take_no_turns(name: str) -> None:
    """Where an iteration goes on with its product's sums, warpgroups are not made to wait for each other."""
    told: list[tuple[int, str, str]] = []
    found = plan.of(*at_full_size(name), told=told)
    assert found.counts["wgmma"] and found.counts["tma loads"] and not found.counts["copies"], found
    assert not found.remarks and found.spills == 0, found
    assert not any("has a scheduler barrier" in message for _, _, message in told)


@pytest.mark.parametrize(
    "name",
    [
        "fmha sample",
        "sigmoid attention",
        "attention in two passes",
        "softmax in chunks",
        "softmax of odd rows, by gathers",
    ],
)
def test_what_ends_in_16_bits_is_approximate(name: str) -> None:
    """Weights and quotients of these need none of the steps that make them exact to f32: a few numbers of rows change
    sign, of a thread's 64 elements none."""
    ptx = ptx_of(name)
    assert "ex2.approx.ftz" in ptx and "fma.rn.sat" not in ptx and ptx.count("neg.f32") < 16


@pytest.mark.skipif(sass.MISSING is not None, reason=sass.MISSING or "")
@pytest.mark.parametrize("name", ["weights of 8 bits", "weights of 4 bits by groups"])
def test_the_next_operand_is_made_while_a_product_runs(name: str) -> None:
    """The products of an iteration start in a row, before anything is loaded for the next ones."""
    code = sass.assemble(*at_full_size(name))
    (loop,) = code.loops("HGMMA")
    products = [at for at, i in enumerate(loop) if sass.matches(i, "HGMMA")]
    loads = [at for at, i in enumerate(loop) if i.opcode.startswith(("LDS", "LDSM"))]
    assert products[-1] < loads[0] and products[-1] - products[0] < 32
    assert not sass.count(loop, "SHFL") and code.spills == 0 and not code.serialized


@pytest.mark.skipif(sass.MISSING is not None, reason=sass.MISSING or "")
def test_an_operand_is_made_while_steps_of_its_product_run() -> None:
    """Each of four steps of k waits for some product only, never for all; sums of rows beside them stay in their
    threads."""
    code = sass.assemble(*at_full_size("RMS norm beside a product"))
    (loop,) = code.loops("HGMMA")
    waits = [i for i in loop if i.opcode.startswith("WARPGROUP.DEPBAR")]
    assert sass.count(loop, "HGMMA") == 4 and len(waits) >= 4
    assert not any(i.operands.endswith("0x0") for i in waits)
    assert not sass.count(loop, "SHFL") and code.spills == 0 and not code.serialized


@pytest.mark.skipif(sass.MISSING is not None, reason=sass.MISSING or "")
def test_two_scales_of_a_product_are_multiplied_first() -> None:
    """Of the 64 sums of a thread each takes one multiply-add, where a branch is not taken."""
    code = sass.assemble(*at_full_size("fp8 in blocks, by gathers"))
    (loop,) = code.loops("QGMMA")
    votes = [at for at, i in enumerate(loop) if sass.matches(i, "VOTE")]
    skips = [at for at, i in enumerate(loop) if at > votes[0] and sass.matches(i, "BRA")]
    scaled = [at for at, i in enumerate(loop) if sass.matches(i, "FMUL")]
    assert sass.count(loop, "FFMA") == 64 and sum(at < skips[0] for at in scaled) < 8
    assert code.spills == 0 and not code.serialized


@pytest.mark.parametrize(("name", "elements"), [("rotary pairs", 0), ("stencil", 0), ("causal convolution", 4)])
def test_neighbours_move_in_vectors(name: str, elements: int) -> None:
    """All accesses are of 16 bytes, but for the weights of a convolution's taps."""
    ptx = ptx_of(next(whole for whole in PROGRAMS if whole.startswith(name)))
    accesses = ptx.count("ld.global") + ptx.count("st.global")
    assert ptx.count("ld.global.v4.b32") and ptx.count("st.global.v4.b32"), ptx
    assert accesses - ptx.count("ld.global.v4.b32") - ptx.count("st.global.v4.b32") == elements


@pytest.mark.skipif(sass.MISSING is not None, reason=sass.MISSING or "")
def test_a_scale_loaded_ahead_is_not_waited_for() -> None:
    """The scale that all threads share comes for the next iteration: to a register of each, not to a uniform one, for
    which the assembler would wait in front of this iteration's sums."""
    (loop,) = sass.assemble(*at_full_size("fp8 in blocks, by gathers")).loops("QGMMA")
    assert sass.count(loop, "LDG") == 3 and not sass.count(loop, "R2UR")


@pytest.mark.parametrize("name", ["weights of 8 bits, 16 rows", "weights of 4 bits by groups, 16 rows"])
def test_few_rows_are_columns_of_a_product(name: str) -> None:
    """A few rows against computed weights: two warpgroups multiply from registers, and blocks share the sum over k."""
    told: list[tuple[int, str, str]] = []
    found = plan.of(*at_full_size(name), told=told)
    assert found.counts["wgmma"] and found.counts["tma loads"] and not found.counts["mma"], found
    assert found.spills == 0 and any("is split along k over several blocks" in message for _, _, message in told)


@pytest.mark.skipif(sass.MISSING is not None, reason=sass.MISSING or "")
def test_words_of_small_numbers_need_no_conversion() -> None:
    """Weights of 4 bits: two are cut out of their words and put behind an exponent by two instructions."""
    (loop,) = sass.assemble(*at_full_size("weights of 4 bits by groups")).loops("HGMMA")
    assert not sass.count(loop, "I2F") and not sass.count(loop, "I2FP") and not sass.count(loop, "F2FP")
    pairs = [one for one in loop if one.opcode == "PRMT" and "0x5410" in one.operands]  # two halves of 16 bits
    assert len(pairs) == 16 and len(loop) < 260


@pytest.mark.skipif(sass.MISSING is not None, reason=sass.MISSING or "")
def test_bytes_along_rows_come_in_words() -> None:
    """Weights of 8 bits that lie along the columns of the right operand: ldmatrix turns them two at a time, and
    arithmetic on words converts them."""
    code = sass.assemble(*at_full_size("weights of 8 bits"))
    (loop,) = code.loops("HGMMA")
    assert sass.count(loop, "LDSM") == 2 and sass.count(loop, "LDS") <= 1 and not sass.count(loop, "I2F")
