"""Programs of test/random_products, a seeded set: compiled, emulated, on the CPU, on the GPU; and what runs them."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import Backends

sys.path.insert(0, str(Path(__file__).parent.parent / "random_products"))
sys.path.insert(0, str(Path(__file__).parent.parent / "emulator"))
sys.path.insert(0, str(Path(__file__).parent.parent))
import check
import emulate
from attention_programs import Attention
from check import difference, source_of
from choices import TABLES, choose
from numbers_of import NumPy, Output, rounded

import program_runner
from run import Products

FEW = {"sm_90a": 24, "sm_80": 12}  # programs, each for its target
GRADIENTS = {  # all of them, plainly
    "kind": "backward", "seed": 17, "small": True, "dtype": "float16", "tile": (64, 64, 64), "walk": "both",
    "scores": "straight", "sums": "straight", "q": "T", "k": "T", "v": "T", "dy": "T", "turn": "T",
    "place": "heads first", "loop": "for", "form": "mma", "scale": "after", "mask": "causal", "masked": "weights",
    "guard": True, "base": "exp2", "statistics": "lse", "vectors": "vector", "delta": "load", "difference": "at once",
    "order": "values first", "grid": "plane", "groups": 1, "out": "low", "unit": 64, "size": (192, 2),
}  # fmt: skip
EMULATED = {"sm_90a": 8, "sm_80": 4}


def assert_right(
    backend: str, sizes: str, count: int, seed: int, tmp_path: Path, processes: int = 1, kind: str | None = None
) -> None:
    options = Namespace(backend=backend, sizes=sizes, count=count, seed=seed, processes=processes, kind=kind)
    options.__dict__ |= {"seconds": 1800, "limit": 300, "out": tmp_path}
    report = program_runner.run_all(Products(), options)
    assert report.kinds["right"] == count, report.summary()


def test_programs(backends: Backends, tmp_path: Path) -> None:
    if backends.names == ("cpu",):
        assert_right("cpu", "small", 40, 100, tmp_path)
    elif "cuda" in backends.names:
        assert_right("gpu", "fill", 1000, 0, tmp_path, processes=8)


@pytest.mark.parametrize("target", FEW)
def test_compile(target: str, tmp_path: Path) -> None:
    """To PTX, and through ptxas where there is one."""
    assert_right(target, "few", FEW[target], 300, tmp_path)


@pytest.mark.skipif(emulate.MISSING is not None, reason="the emulator compiles with clang")
@pytest.mark.parametrize("target", EMULATED)
def test_emulated(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_EMULATE", target)
    assert_right("emulated", "small", EMULATED[target], 500, tmp_path)


def test_interpreted(tmp_path: Path) -> None:
    """The text of a program means what is expected of it."""
    assert_right("interpret", "small", 40, 700, tmp_path)


def test_gradients(tmp_path: Path) -> None:
    """More of those of attention; each way of walking is in these."""
    walks = {choose(seed, "small", "backward")["walk"] for seed in range(900, 930)}
    assert walks == {"keys", "queries", "both", "alone"}
    assert_right("cpu", "small", 30, 900, tmp_path, kind="backward")


@pytest.mark.parametrize(
    ("line", "broken"),
    [
        ("ds = p * (dp - delta)", "ds = p * dp"),
        ("dk = ct.mma(ds", "dk = ct.mma(p"),
        ("scaled, k_t", "scaled * 1.01, k_t"),
    ],
)
def test_wrong_gradients_are_seen(line: str, broken: str, tmp_path: Path) -> None:
    source = source_of(GRADIENTS)
    assert line in source
    assert launched(source, tmp_path).kind == "right"
    assert launched(source.replace(line, broken), tmp_path).kind == "wrong"


def launched(source: str, folder: Path) -> check.Outcome:
    program, numbers = check.program_of(GRADIENTS), NumPy(0)
    arguments, outputs = program.prepare(numbers)
    return check.launched(check.kernel_of(source, folder), program.grid(), "cpu", numbers, arguments, outputs)


def test_a_seed_is_a_program() -> None:
    for seed in range(20):
        assert source_of(choose(seed)) == source_of(choose(seed))


def test_every_choice_occurs() -> None:
    programs = [choose(seed) for seed in range(3000)]
    for kind, table in TABLES.items():
        mine = [c for c in programs if c["kind"] == kind]
        for name, values in table.items():
            assert {str(c[name]) for c in mine} >= {str(v) for v in values if name != "tile"}, (kind, name)


def test_differences_are_found() -> None:
    numbers = NumPy(0)
    want = np.arange(12.0).reshape(3, 4)
    output = Output(want, 0 * want, "float32")
    result = numbers.poisoned((3, 4), "float32")
    assert difference(numbers, result, output).startswith("12 elements are wrong")
    result[...] = want
    assert difference(numbers, result, output) == ""
    result[1, 2] += 1
    assert difference(numbers, result, output).startswith("1 elements are wrong, first at (1, 2)")
    result[1, 2] -= 1
    result.base[20] = 0
    assert difference(numbers, result, output) == "elements behind the array were written"


class Scripted(program_runner.Worker):
    """A process that answers each program with what a script says."""

    def __init__(self, script: str, limit: float = 60) -> None:
        super().__init__(Products(), "cpu", limit)
        self.command = [sys.executable, "-c", f"import sys, os, time\nfor line in sys.stdin:\n    {script}"]


def test_a_crash_is_of_one_program() -> None:
    worker = Scripted("os.abort() if 'bad' in line else print('[\"right\", \"\"]', flush=True)")
    assert worker.check({"loop": "bad"})[0] == "crashed"
    assert worker.check({"loop": "for"}) == ("right", "")
    worker.end("stopped", "-")


def test_a_program_that_does_not_end_is_stopped() -> None:
    worker = Scripted("time.sleep(600 if 'bad' in line else 0); print('[\"right\", \"\"]', flush=True)", limit=5)
    assert worker.check({"loop": "bad"})[0] == "timed out"
    assert worker.check({"loop": "for"}) == ("right", "")
    worker.end("stopped", "-")


def test_a_failing_program_becomes_plain(tmp_path: Path) -> None:
    """Where one choice makes it fail, the others become the plainest ones."""

    class Fails:
        def check(self, choices: Any) -> tuple[str, str]:
            return ("wrong", "x") if choices["loop"] == "while" else ("right", "")

    seed = next(s for s in range(100) if choose(s)["kind"] == "gemm" and choose(s)["loop"] == "while")
    program_runner.shrink(Products(), Fails(), choose(seed), "wrong", "x", Namespace(seconds=60, out=tmp_path))
    (path,) = tmp_path.iterdir()
    found = program_runner.choices_in(path)
    for name, values in TABLES["gemm"].items():
        assert found[name] == ("while" if name == "loop" else values[0]) or name in ("tile", "unit"), name
    assert "    while k < ct.cdiv(K, TK):" in path.read_text()


def sums_of_narrow(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """q k as a Tensor Core adds up 8-bit floats: 32 products at a time, cut off 13 bits below the largest term."""
    total = np.zeros((len(q), len(k)))
    for at in range(0, q.shape[1], 32):
        terms = np.concatenate([q[:, None, at : at + 32] * k[None, :, at : at + 32], total[..., None]], axis=-1)
        unit = np.ldexp(1.0, np.frexp(np.abs(terms).max(axis=-1, keepdims=True))[1] - 14)
        total = (np.trunc(terms / unit) * unit).sum(axis=-1)
    return total


@pytest.mark.parametrize("d", [32, 64, 128])
def test_scores_of_8_bits_are_as_inexact_as_the_tensor_core(d: int) -> None:
    choices = next(c for c in map(choose, range(100)) if c["kind"] == "attention")
    program = Attention(choices | {"dtype": "float8_e4m3fn", "bias": "none", "tile": [64, 64, d]}, 1)
    numbers = NumPy(0)
    q, k = (rounded(numbers, x * numbers.normal((n, d)), program.dtype) for x, n in ((2, 128), (1, 512)))
    exact, found = q @ k.T * d**-0.5, sums_of_narrow(q, k) * d**-0.5
    assert np.abs(found - exact).max() <= program.score_error(np.abs(exact).max())
