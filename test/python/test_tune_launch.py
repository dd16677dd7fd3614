"""What a search times is what a launch runs, against the stand-in driver: tiles sliced, coarsened or shared.

Each case runs in a process of its own, which opens the stand-in driver: this file runs itself with the name of a case.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_driver import find_driver
from fake_launches import Fake

from tilewright import _core, compile, tune
from tilewright import tile as ct
from tilewright.tune.progress import Progress
from tilewright.tune.search import Search
from tilewright.tune.space import Problem

ROOT = Path(__file__).parents[2]
sys.path += [str(ROOT / "python" / "examples"), str(ROOT / "test" / "numerics")]

import producers  # noqa: E402

from matmul import matmul  # noqa: E402
from softmax import softmax  # noqa: E402


@ct.kernel
def rows(X, W, Y, T: ct.Constant[int]):
    """Y = X @ W, a tile of rows after the other: the next ones come before the last ones are stored."""
    w = ct.load(W, index=(0, 0), shape=(T, T))
    for i in range(ct.num_tiles(X, axis=0, shape=(T, T))):
        y = ct.mma(ct.load(X, index=(i, 0), shape=(T, T)), w, ct.zeros((T, T), dtype=ct.float32))
        ct.store(Y, index=(i, 0), tile=y.astype(Y.dtype))


@ct.kernel
def across(X, Y, T: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    ct.store(Y, index=(j, i), tile=ct.load(X, index=(i, j), shape=(T, T)).T)


QUICK: dict[str, Any] = {"budget": 0.1, "progress": False, "record_file": None, "isolate": False}


def on_gpu(*shapes: tuple[int, ...]) -> list[Any]:
    return [producers.CudaArray(producers.device_address(0, i << 26), s, "<f2") for i, s in enumerate(shapes)]


def product(m: int, n: int, k: int) -> list[Any]:
    return on_gpu((m, k), (k, n), (m, n))


def tiles(m: int, n: int) -> Callable[[int, int], tuple[int, int]]:
    return lambda TM, TN: (ct.cdiv(m, TM), ct.cdiv(n, TN))


def searched(shape: tuple[int, int, int], given: tuple[int, int, int], space: dict[str, Any]) -> dict[str, str]:
    """What a search says of each candidate of a product, without its time."""
    args = (*product(*shape), *given)
    found = tune.search(matmul, args, space=space, grid=tiles(*shape[:2]), limit=None, **QUICK)
    return {str(t.candidate): str(t).partition(": ")[2] if t.dropped else "".join(_added(t)) for t in found.trials}


def _added(trial: tune.Trial) -> list[str]:
    return [f"{name}={value} " for name, value in trial.launched.items()]


def loaded() -> list[bytes]:
    """What is loaded from now on."""
    made, load = [], compile.load

    def spy(image: compile.Image, *args: Any, **more: Any) -> Any:
        made.append(image.settled().pack())
        return load(image, *args, **more)

    compile.load = spy
    return made


SAME = "is the same program as: as given"


def slices_and_shares() -> None:
    """How many slices or parts is for the launch's model to say."""
    found = searched((1024, 1024, 1024), (128, 256, 64), {"slice_tiles": (None, 1, 2, 4, 8), "split_k": (None, 1)})
    plan = found["as given"].strip()
    assert re.fullmatch(r"slice_tiles=\d", plan), found
    assert found[plan] == found["split_k=1"] == SAME
    assert found["slice_tiles=1"] == ""
    assert found["split_k=1 slice_tiles=1"] == "is the same program as: slice_tiles=1"
    found = searched((256, 256, 16384), (128, 128, 64), {"split_k": (None, 1, 8), "slice_tiles": (None, 1)})
    assert re.fullmatch(r"(slice_tiles=\d )?split_k=0 ", found["as given"]), found
    assert found["slice_tiles=1"] in ("split_k=0 ", SAME) and found["split_k=1"].startswith("slice_tiles=")
    assert found["split_k=8"] == found["split_k=1 slice_tiles=1"] == ""  # exactly that


def tiles_that_are_coarsened() -> None:
    found = searched((4096, 4096, 4096), (64, 64, 64), {"coarsen_tiles": (None, 1, 2, 4, 8, 16)})
    plan = found["as given"].strip()
    assert re.fullmatch(r"coarsen_tiles=\d+", plan), found
    assert found[plan] == SAME and found["coarsen_tiles=1"] == found["coarsen_tiles=2"] == ""


def layouts() -> None:
    """Runners-up are programs of their own, as many as there are."""
    x, y = on_gpu((1024, 1024), (1024, 1024))
    found = tune.search(across, (x, y, 64), space={"layout_rank": (0, 1, 7)}, grid=(16, 16), limit=None, **QUICK)
    assert "  - 1 more come to the same programs as these" in str(found)
    said = {str(trial.candidate): trial.dropped for trial in found.trials}
    assert said["layout_rank=0"] == "is the same program as: as given"
    assert said["layout_rank=1"] is None and said["layout_rank=7"] is None
    args = (*on_gpu((512, 1024), (512, 1024)), 1024)
    found = tune.search(softmax, args, space={"layout_rank": (1, 2)}, grid=512, limit=None, **QUICK)
    said = {str(trial.candidate): trial.dropped for trial in found.trials}
    assert said["layout_rank=1"] is None
    assert said["layout_rank=2"] == "is not accepted: the layouts have 1 runners-up"


def arrays_that_overlap() -> None:
    """The caller's decide, and a launch that they are passed to."""
    made = loaded()
    for overlap, variants in ((False, 1), (True, 2)):
        made.clear()
        rows.clear_variants()
        x, w, y = on_gpu((4096, 64), (64, 64), (4096, 64))
        later = producers.CudaArray(producers.device_address(0, 1280), (4096, 64), "<f2")  # ten rows of X
        args = (x, w, later if overlap else y, 64)
        search = Search(Problem(rows, args, 1), None, 10.0, 60.0, Progress(False))
        search._compile(search._rank(search.problem.candidates({}), None), False)
        assert len(made) == variants
        _core.launch(None, 1, rows, args)
        assert made[-1] == made[variants - 1] == search.programs[0].image


def kept(path: str) -> None:
    """The kernel as given is not accepted, so that the best is another."""
    args = (*product(1024, 1024, 1024), 128, 256, 7)
    search = Search(Problem(matmul, args, tiles(1024, 1024)), None, 10.0, 60.0, Progress(False))
    result = search.run({"TM": (128,), "TK": (64,)}, None, 0.1, False, path)
    assert str(result.best.candidate) == "TK=64" and list(result.best.launched) == ["slice_tiles"]
    found = tune.best(matmul, args, record_file=path)
    assert found is not None and found.entry.launched == result.best.launched
    program = search.programs[search.trials.index(result.best)]
    print(_core.hash128(program.image.hex()), program.grid)


def launched_again() -> None:
    """In another process: the same code, with the grid of its slices."""
    made = loaded()
    grid = (8, 4, 1)
    for _ in range(2):  # by the record, and as it is remembered
        tune.launch(None, tiles(1024, 1024), matmul, (*product(1024, 1024, 1024), 128, 256, 7))
    last = Fake().last
    assert Fake().calls("cuLaunchKernelEx") == 2
    facts = _core.launch_facts(compile.Image.unpack(made[-1]).record)  # type: ignore[union-attr]
    parts = facts["grid_scale"]
    assert tuple(last.grid) == tuple(n * p for n, p in zip(grid, parts, strict=True)) or facts["persistent"]
    assert (last.block[0], last.shared_bytes) == (facts["num_threads"], facts["shared_bytes"])
    print(_core.hash128(made[-1].hex()), grid)


def run(name: str, *arguments: str, **environment: str) -> str:
    environment = os.environ | {"TILEWRIGHT_CUDA_DRIVER": str(find_driver())} | environment
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, __file__, name, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["slices_and_shares", "tiles_that_are_coarsened", "layouts", "arrays_that_overlap"])
def test_a_search_times_what_a_launch_runs(name: str) -> None:
    run(name)


def test_the_next_process_launches_what_was_timed(tmp_path: Path) -> None:
    record = str(tmp_path / "tuned.jsonl")
    timed = run("kept", record)
    assert timed == run("launched_again", TILEWRIGHT_TUNED=record)
    assert list(json.loads((tmp_path / "tuned.jsonl").read_text())["launched"]) == ["slice_tiles"]


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
