"""The memory model: results that orders forbid never come (litmus.py; the same file runs them many times on a GPU)."""

from __future__ import annotations

import dataclasses

import litmus
import pytest
from litmus import PROGRAMS, RELAXED, STRESS, Setting, Variant, run, variants, zeros, zeros_on_gpu

from tilewright import device


@pytest.mark.spec("D-385", "D-376", "D-378", "D-379", "D-380", "D-381", "D-388", "D-389", "D-502", "D-569")
@pytest.mark.parametrize("variant", list(variants()), ids="-".join)
def test_forbidden_results_never_come(variant: Variant, pytestconfig: pytest.Config) -> None:
    on_gpu = pytestconfig.getoption("--backend") == "cuda"
    make, setting, groups, rounds = (zeros_on_gpu, STRESS, 64, 256) if on_gpu else (zeros, Setting(), 2, 16)
    outcome = run(make, variant, setting, groups, rounds, 1)
    assert not outcome.wrong, outcome
    assert outcome.trials >= groups * rounds * setting.lanes


@pytest.mark.spec("D-376", "D-388")
@pytest.mark.parametrize("name", [name for name, program in PROGRAMS.items() if program.weak])
def test_relaxed_programs_show_them_on_a_gpu(name: str, pytestconfig: pytest.Config) -> None:
    """Else the test above would hold of orders that do nothing. The least that was seen is one trial of a thousand."""
    if pytestconfig.getoption("--backend") != "cuda":
        pytest.skip("the CPU that runs this need not be weak")
    outcomes = [run(zeros_on_gpu, (name, "device", *RELAXED), STRESS, 64, 256, seed) for seed in range(1, 4)]
    assert sum(outcome.seen for outcome in outcomes) > 10, outcomes


@device.func
def forbidden(role, x, y, a, b, write, read, scope):
    """What no order of the accesses gives: the flag is up, the message not there. Odd lanes see the message."""
    return device.int32(1), device.int32(1) - (device.lane_id + 1) % 2


@pytest.mark.parametrize("scope", ["block", "device"])
@pytest.mark.parametrize("setting", [Setting(), Setting(4, 2, 64, 1021, 71, 31, 2, 64), Setting(2, 1, 1, 3, 1, 0, 1)])
def test_a_forbidden_result_is_counted(
    setting: Setting, scope: str, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    passing = dataclasses.replace(litmus.PROGRAMS["MP"], body=forbidden)
    monkeypatch.setitem(litmus.PROGRAMS, "MP", passing)
    make = zeros_on_gpu if pytestconfig.getoption("--backend") == "cuda" else zeros
    outcome = run(make, ("MP", scope, *RELAXED), setting, 2, 4, 1)
    assert not outcome.wrong and 2 * outcome.seen == outcome.trials


def test_what_was_written_last_is_of_the_same_trial(pytestconfig: pytest.Config) -> None:
    make = zeros_on_gpu if pytestconfig.getoption("--backend") == "cuda" else zeros
    for turn in (1, 8191):
        outcome = run(make, ("CoWW", "device", *RELAXED), Setting(4, 2, 4, turn), 2, 4, 1)
        assert outcome.forbidden and not outcome.seen
