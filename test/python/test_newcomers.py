"""Programs of those who come from Triton (test/spellings/newcomers.py): emulated, they compute what the reference does,
and their accesses are vectors."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from tilewright import tile as ct

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "spellings"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "emulator"))
import emulate
import foreign
import newcomers

# What is read side by side, but not from multiples of a vector on: elements, of which the first cache has the others.
NEIGHBOURS = {"causal convolution, taps as an axis", "stencil of 7 points, flat"}
# Tiles of 64 elements have two for each lane of a warp.
SMALL = {"rope of halves, flat"}


@pytest.mark.parametrize("name", newcomers.PROGRAMS)
def test_it_is_right(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    emulate.stand_in(monkeypatch, "sm_90a")
    for found, wanted in foreign.results_of(newcomers.PROGRAMS[name], ct.launch):
        assert np.allclose(found, wanted, rtol=2e-2, atol=1e-2, equal_nan=True), np.abs(found - wanted).max()


@pytest.mark.parametrize("name", newcomers.PROGRAMS)
def test_most_bytes_move_in_vectors(name: str) -> None:
    widths = [size for _, size in newcomers.widths_of(newcomers.PROGRAMS[name])]
    vectors = sum(size for size in widths if size >= 8)
    assert (vectors >= 0.75 * sum(widths)) == (name not in NEIGHBOURS | SMALL), widths
