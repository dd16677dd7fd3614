"""Programs of test/random_simt, a seeded set: on the CPU, emulated, compiled; and how they are made."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "emulator"))
import emulate

from program_runner import assert_right
from random_simt import check
from random_simt.run import FAMILY


def test_on_the_cpu(tmp_path: Path) -> None:
    assert_right(FAMILY, "cpu", 24, 0, tmp_path)


@pytest.mark.skipif(emulate.MISSING is not None, reason="the emulator compiles with clang")
@pytest.mark.parametrize("target", ["sm_90a", "sm_80"])
def test_emulated(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_EMULATE", target)
    assert_right(FAMILY, "emulated", 6, 9000, tmp_path)


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas on PATH")
def test_assembled(tmp_path: Path) -> None:
    assert_right(FAMILY, "sm_90a", 12, 5000, tmp_path)


WORDS = """break continue else: while range( return syncthreads() syncthreads_count syncthreads_and syncthreads_or
shared_array shfl_sync shfl_up_sync shfl_down_sync shfl_xor_sync ballot_sync any_sync all_sync match_any_sync
atomic_ref(s, atomic_ref(bins_max popc 0xffff 0x7FFFFFF0 float32( u[ w[ local_array float16( uint16(
@device.func calls["""


def test_every_part_occurs() -> None:
    text = "".join(check.source_of({"seed": seed}) for seed in range(200))
    assert not [word for word in WORDS.split() if word not in text]


def test_what_is_wrong_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program whose compiled form computes something else."""
    choices = {"kind": "simt", "seed": 3}
    assert check.check(choices, "cpu", tmp_path).kind == "right"
    launch = check.device.launch
    monkeypatch.setattr(check.device, "launch", lambda kernel, x, *rest, **how: launch(kernel, x + 1, *rest, **how))
    found = check.check(choices, "cpu", tmp_path)
    assert found.kind == "wrong" and "found" in found.text
