"""The memory model: results that orders forbid never come (litmus.py; the same file runs them many times on a GPU)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from litmus import run as run_trials
from litmus import variants


@pytest.mark.spec("D-385", "D-376", "D-378", "D-379", "D-380", "D-381", "D-388", "D-389", "D-502", "D-569")
@pytest.mark.parametrize("variant", list(variants()), ids="-".join)
def test_forbidden_results_never_come(variant: tuple[str, str, str, str], pytestconfig: pytest.Config) -> None:
    place: Any = lambda array: array  # noqa: E731
    back, groups, rounds = place, 2, 16
    if pytestconfig.getoption("--backend") == "cuda":
        import torch

        place, back, groups, rounds = lambda a: torch.from_numpy(a).cuda(), lambda t: t.cpu().numpy(), 64, 128
    outcome = run_trials(place, back, variant, groups, rounds, 1)
    assert not outcome.wrong, outcome
    assert outcome.trials == groups * rounds * 32 and isinstance(outcome.seen, int)
    assert np.isfinite(outcome.seen)
