"""Programs of test/random_numba, a seeded set: on the CPU, emulated, compiled; and how they are made."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "emulator"))
import emulate

from program_runner import assert_right
from random_numba import check, meaning
from random_numba.run import FAMILY


def test_on_the_cpu(tmp_path: Path) -> None:
    assert_right(FAMILY, "cpu", 24, 0, tmp_path)


@pytest.mark.skipif(emulate.MISSING is not None, reason="the emulator compiles with clang")
@pytest.mark.parametrize("target", ["sm_90a", "sm_80"])
def test_emulated(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_EMULATE", target)
    assert_right(FAMILY, "emulated", 6, 9000, tmp_path)


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas on PATH")
def test_assembled(tmp_path: Path) -> None:
    assert_right(FAMILY, "sm_90a", 8, 5000, tmp_path)


WORDS = """break continue else: elif while range( return syncthreads() shared.array local.array device=True float16(
atomic.add atomic.max atomic.xor ** // % << >> ~ round( math.sqrt x_uint64[ x_int8[ x_float16[ -( += not and or"""


def test_every_part_occurs() -> None:
    text = "".join(check.source_of({"seed": seed}) for seed in range(200))
    assert not [word for word in WORDS.split() if word not in text]


def test_most_have_a_meaning() -> None:
    meant = [check.wanted_of(check.program_of({"seed": seed})) is not None for seed in range(30)]
    assert sum(meant) > 24


def test_what_is_wrong_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that is run on other numbers."""
    choices = {"kind": "numba", "seed": 3}
    assert check.check(choices, "cpu", tmp_path).kind == "right"
    wanted = check.wanted_of(check.program_of(choices))
    assert wanted is not None
    wanted["out"][0] += 1
    monkeypatch.setattr(check, "wanted_of", lambda program: wanted)
    found = check.check(choices, "cpu", tmp_path)
    assert found.kind == "wrong" and "out: 1 of" in found.text


@pytest.mark.parametrize(
    "text, value, kind",
    [
        ("int32(2**31 - 1) + int32(1)", 2**31, "int64"),
        ("uint32(5) - uint32(6)", 2**64 - 1, "uint64"),
        ("uint64(1) + int64(-2)", -1, "int64"),
        ("int8(7) / int8(2)", 3.5, "float64"),
        ("float32(1) + int32(1)", 2.0, "float64"),
        ("float32(1) + int16(1)", 2.0, "float32"),
        ("float16(1) + int8(1)", 2.0, "float16"),
        ("int64(-7) // 2", -4, "int64"),
        ("int64(-7) % 3", 2, "int64"),
        ("uint8(3) << 2", 12, "uint64"),
        ("uint64(2**63) > int64(-1)", True, "bool"),
        ("round(2.5)", 2, "int64"),
        ("int8(200)", -56, "int8"),
        ("float64(1.0) // 0.1", 9.0, "float64"),
    ],
)
def test_meanings(text: str, value: float, kind: str) -> None:
    found = eval(text, meaning.names(meaning.Thread()))
    assert (found.v, found.t) == (value, kind)


@pytest.mark.parametrize("text", ["int64(1) // 0", "int64(1) << int64(64)", "int32(1e10)", "int64(float64(np.nan))"])
def test_what_has_none(text: str) -> None:
    with pytest.raises(meaning.Undefined):
        eval(text, meaning.names(meaning.Thread()) | {"np": np})
