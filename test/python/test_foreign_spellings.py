"""Programs in the habits of other people (test/spellings/foreign.py): what they compute on GPUs, emulated, is what the
reference computes."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest

from tilewright import cli
from tilewright import tile as ct

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "spellings"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "emulator"))
import emulate
import foreign
import plan


@pytest.mark.parametrize("name", foreign.PROGRAMS)
def test_it_is_right(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    emulate.stand_in(monkeypatch, "sm_90a")
    for found, wanted in foreign.results_of(foreign.PROGRAMS[name], ct.launch):
        most = max(1e-30, np.abs(wanted).max())
        assert np.allclose(found, wanted, rtol=0, atol=2e-2 * most), np.abs(found - wanted).max()


# ---- plans ---------------------------------------------------------------------------------------------------------


def plan_of(name: str) -> plan.Plan:
    return foreign.compiled(foreign.PROGRAMS[name])[0]


def test_operands_that_fit_shared_memory_once_come_in_steps() -> None:
    plain, found = plan_of("gemm"), plan_of("operands that fit once")
    assert found.is_as_good_as(plain), f"{found}\nand not {plain}"


@pytest.mark.parametrize("name", ["batches", "batches of rows"])
def test_products_of_a_batch_of_one_are_those_of_matrices(name: str) -> None:
    plain, found = plan_of("gemm"), plan_of(name)
    counts = {**found.counts, "tma loads": plain.counts["tma loads"]}  # rows of 64 are one box, columns of 256 four
    found = dataclasses.replace(found, counts=counts)
    assert found.is_as_good_as(plain), f"{found}\nand not {plain}"


def test_products_of_one_sum_run_on_into_the_next_iteration() -> None:
    found = plan_of("two products of one sum")
    assert found.waits == (0, 1) and found.spills == 0 and not found.remarks, str(found)


def test_sums_of_512_columns_have_two_warpgroups() -> None:
    """Whose sums stay in registers, and whose tiles a producer brings."""
    found = plan_of("MLA decode")
    assert found.counts["wgmma"] > 0 and found.counts["mma"] == 0 and found.counts["tma loads"] > 0, str(found)
    assert found.spills == 0 and found.votes and not found.remarks, str(found)


def test_tiles_that_are_needed_at_a_time_have_more_warps() -> None:
    assert plan_of("n-body").spills == 0


def test_products_of_few_rows_beside_large_ones_have_warps_that_can_share_them() -> None:
    found = plan_of("Mamba-2 chunks")
    assert found.counts["mma"] == 0 and found.counts["wgmma"] > 0 and found.counts["tma stores"] > 0, str(found)


# ---- no silent loss -------------------------------------------------------------------------------------------------


def test_what_is_lost_is_told_in_these_words() -> None:
    """`python test/spellings/foreign.py --write` writes down what is told now."""
    assert foreign.corpus() == foreign.REMARKS.read_text()


@pytest.mark.parametrize("name", foreign.PROGRAMS)
def test_no_plan_is_lost_in_silence(name: str) -> None:
    found = plan_of(name)
    waits = bool(found.roles) and found.counts["wgmma"] > 0 and 1 not in found.waits
    if waits or found.counts["mma"] > 0 or found.spills > 64 or found.remarks:
        assert foreign.losses_of(foreign.PROGRAMS[name]), str(found)


@ct.kernel
def grid_stride_of_multiples(X, Y, Z, N):
    foreign.grid_stride_steps(X, Y, Z, ct.assume_divisible_by(N, 16))


def test_what_a_remark_advises_helps() -> None:
    told: list[tuple[int, str, str]] = []
    key = cli.specialization(grid_stride_of_multiples, list(foreign.PROGRAMS["grid-stride add"].arguments))
    plan.of(grid_stride_of_multiples, key, "sm_90a", told)
    assert sum("in pieces of up to 16 bytes" in message for _, _, message in told) == 2
