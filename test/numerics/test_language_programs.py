"""Programs of test/random_language, a seeded set: on the CPU, emulated, compiled, on the GPU; and how they are made."""

from __future__ import annotations

import shutil
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import Backends

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "emulator"))
import emulate

import program_runner
from random_language import arrays, check, draws, values
from random_language.run import FAMILY
from tilewright import tile as ct
from tilewright._optable import OPS


def assert_right(backend: str, count: int, seed: int, folder: Path, processes: int = 1) -> None:
    """The smallest program that fails as the first failing one does is in the message."""
    options = Namespace(backend=backend, count=count, seed=seed, processes=processes, out=folder, seconds=1800)
    options.limit = 120
    report = program_runner.run_all(FAMILY, options)
    if report.kinds["right"] == count:
        return
    kept = sorted(folder.glob("*.py"))
    options.again, options.shrink, options.seconds = kept[:1], True, 300
    program_runner.again(FAMILY, options)
    pytest.fail("\n".join([report.summary(), *(path.read_text() for path in folder.glob("*plain.py"))]))


def test_programs(backends: Backends, tmp_path: Path) -> None:
    if backends.names == ("cpu",):
        assert_right("cpu", 120, 0, tmp_path)
    elif backends.names[:1] == ("cuda",):
        assert_right("gpu", 2000, 0, tmp_path, processes=8)
    elif backends.names:
        assert_right(backends.names[0], 60, 0, tmp_path)


@pytest.mark.skipif(emulate.MISSING is not None, reason="the emulator compiles with clang")
@pytest.mark.parametrize("target", ["sm_90a", "sm_80"])
def test_emulated(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_EMULATE", target)
    assert_right("emulated", 4, 9000, tmp_path)


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas on PATH")
@pytest.mark.parametrize("target", ["sm_90a", "sm_80"])
def test_assembled(target: str, tmp_path: Path) -> None:
    assert_right(target, 14, 3_000_015, tmp_path)


def test_a_seed_is_a_program_and_so_is_any_list_of_draws() -> None:
    source = check.source_of({"seed": 5})
    assert source == check.source_of({"seed": 5})
    made = check.program_of({"seed": 5}).draws.made
    assert source.split("\n", 1)[1] == check.source_of({"seed": 5, "draws": made}).split("\n", 1)[1]
    for given in ([], [3, 1, 4, 1, 5], made[:40], made[::-1]):
        compile(check.source_of({"seed": 0, "draws": given}), "program", "exec")


WORDS = """break continue else: elif while match lambda return range(4,0,-1) zip( enumerate( and or not if :=
ct.cat ct.insert ct.extract ct.permute ct.broadcast_to ct.expand_dims ct.scan ct.reduce ct.argmax ct.cumsum ct.cumprod
ct.sort ct.argsort ct.flip ct.mma ct.matmul ct.where ct.minimum ct.isnan ct.cdiv ct.divmod ct.bitcast pack_to_bytes
ct.atomic_add ct.atomic_cas atomic_store_max tiled_view .slice( load_advanced_indexing ct.gather ct.scatter mask=
padding_value order='F' NEG_INF traversal_steps float8_e4m3fn tfloat32 rounding_mode flush_to_zero propagate_nan
reverse=True keepdims=True axis=None num_ctas ct.atan2 ct.philox ct.mma_scaled from_foreign get_raw_memory
stepped(v either_of(v followed(X mask=ct.broadcast_to(
caseKind.HIGH|Kind.NONE: [Kind('high')] ct.reduce((v ct.scan((v =Both(v .second+k
traversal_steps=(1,1, traversal_steps=(1,3,
Both(v dataclasses.replace static_iter static_eval withdoubled( =raised(v =folded(v ct.assert_
assume_divisible_by ARRAYS[ ARRAYS.X tuple( dict( [*( assert"""


def test_every_part_of_the_language_occurs() -> None:
    text = "".join(check.source_of({"seed": seed}) for seed in range(900)).replace(" ", "")
    assert not [word for word in WORDS.split() if word not in text]
    assert all(f"ct.{op.public}(" in text for op in OPS if op.operands == 1 and op.result == "float")


def test_a_failing_program_becomes_small(tmp_path: Path) -> None:
    """Where one expression makes it fail, hardly anything else is left."""

    class Fails:
        def check(self, choices: Any) -> tuple[str, str]:
            return ("wrong", "x") if "ct.cumsum" in check.source_of(choices) else ("right", "")

    seed = next(s for s in range(200) if "ct.cumsum" in check.source_of({"kind": "language", "seed": s}))
    options = Namespace(seconds=60, out=tmp_path)
    program_runner.shrink(FAMILY, Fails(), {"kind": "language", "seed": seed}, "wrong", "x", options)
    (path,) = tmp_path.iterdir()
    lines = path.read_text().split("def kernel")[1].splitlines()
    assert any("ct.cumsum" in line for line in lines) and len(lines) < 14, path.read_text()


def test_draws_that_are_missing_are_zero() -> None:
    made = draws.Draws(0, [5, 1])
    assert [made.below(3), made.below(3), made.below(9)] == [2, 1, 0] and made.made == [2, 1, 0]
    assert [3, 0] in list(draws.plainer([3, 4])) and [1, 4] in list(draws.plainer([3, 4]))


def test_differences_are_found() -> None:
    plan = arrays.Plan("X", ct.float32, (2, 3), 5, "offset", 1)
    wanted, found = plan.make(), plan.make()
    assert arrays.stored_whole(plan, found, wanted) == ""
    found[1, 2] += 1
    assert arrays.stored_whole(plan, found, wanted).startswith("X: 1 of 6 elements, first at (1, 2)")
    found[1, 2] -= 1
    arrays.whole(found)[0] = 7
    assert arrays.stored_whole(plan, found, wanted).startswith("X: in memory around it 1 of 12 elements")
    near = values.Error(1e-6)
    assert arrays.difference(np.float32([1.0000001]), np.float32([1]), near) == ""
    assert arrays.difference(np.float32([1.001]), np.float32([1]), near) != ""
