"""tilewright.tune on the CPU: what a search finds, keeps and survives; the cost model's counts; the pictures."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "python" / "examples"))
from matmul import matmul
from tilewright import _core, cli, tune
from tilewright import compile as compiler
from tilewright import tile as ct
from tilewright.errors import TileCompilationError, TileError, TileTypeError, TileValueError
from tilewright.times import Times
from tilewright.tune import cost, memory, plot, programs, record, statistics
from tilewright.tune.compare import Comparer
from tilewright.tune.search import UNLIKELY, in_parallel
from tilewright.tune.space import Candidate, Problem
from tilewright.tune.statistics import Measurement
from tilewright.tune.trial import FEW_SAMPLES, MIN_SAMPLES, MOST_SAMPLES, Bench, Program, difference, inside
from tilewright.tune.worker import Assembler, Assemblers, LostError, SafeBench, Spare, Worker

FACTOR = 2.0


def double(x):
    return x * FACTOR


@ct.kernel
def scale(X, Y, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(Y, index=(i,), tile=double(ct.load(X, index=(i,), shape=(T,))))


@ct.kernel
def moody(X, Y, MODE: ct.Constant[int]):
    """0: right; 1: never ends; 3: wrong; 4: is not accepted."""
    x = ct.load(X, index=(0,), shape=(16,))
    y = x * 2.0
    if MODE == 1:
        n = ct.sum(x).astype(ct.int32) * 0
        while n < 1:
            ct.store(Y, index=(0,), tile=y)
            n = n * 1
    if MODE == 3:
        y = y + 1.0
    if MODE == 4:
        y = y @ 3
    ct.store(Y, index=(0,), tile=y)


@ct.kernel
def increment(X, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(X, index=(i,), tile=ct.load(X, index=(i,), shape=(T,)) + 1.0)


def blocks(X, T):
    return ct.cdiv(X.shape[0], T)


def vectors(n: int = 4096) -> tuple[Any, Any]:
    return np.arange(n, dtype=np.float32), np.zeros(n, np.float32)


QUICK: dict[str, Any] = {"budget": 0.2, "progress": False, "timeout": 5.0}


# --- a search ---------------------------------------------------------------------------------------------------------


def test_a_search_finds_keeps_and_finds_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "folder" / "tuned.jsonl"
    monkeypatch.setenv("TILEWRIGHT_TUNED", str(path))
    x, y = vectors(1 << 16)
    result = tune.search(scale, (x, y, 16), space={"T": (16, 1024, 4096)}, grid=blocks, **QUICK)
    assert result.path == path
    assert path.stat().st_mode & 0o777 == 0o600
    assert not y.any(), "the arrays of the caller are left alone"
    # A tile of 16 elements is far from the best.
    chosen = dict(result.best.candidate.constants)["T"]
    assert chosen in (1024, 4096)
    assert result.speedup is not None and result.speedup > 1
    assert "as given" in str(result) and repr(result) == str(result)
    result.launch()
    np.testing.assert_array_equal(y, 2 * x)

    found = tune.best(scale, (x, y, 16))
    assert found is not None and found.args((x, y, 16))[2] == chosen
    y[:] = 0
    tune.launch(None, blocks, scale, (x, y, 16))
    np.testing.assert_array_equal(y, 2 * x)
    # Shapes of the same class count, others do not.
    assert tune.best(scale, (x[:65520], y[:65520], 16)) is not None
    assert tune.best(scale, (x[:1024], y[:1024], 16)) is None
    # A name that the kernel reads is part of what it says.
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert tune.best(scale, (x, y, 16)) is None


@pytest.mark.parametrize("isolate", [True, False])
def test_in_place_arguments_are_protected(isolate: bool) -> None:
    x = np.zeros(4096, np.float32)
    result = tune.search(
        increment, (x, 64), space={"T": (64, 128, 256)}, grid=blocks, isolate=isolate, record_file=None, **QUICK
    )
    assert not x.any()
    assert len(result.measured()) == 3  # each saw zeros: none is wrong
    result.launch()
    assert (x == 1).all()


@ct.kernel
def writes(X, Y, Z, T: ct.Constant[int], MODE: ct.Constant[int]):
    i = ct.bid(0)
    x = ct.load(X, index=(i,), shape=(T,))
    if MODE != 1:
        ct.store(Y, index=(i,), tile=x * 2.0)
    if MODE == 2:
        ct.store(Z, index=(i,), tile=x)
    if MODE == 3:
        ct.store(Y, index=(i,), tile=x * 2.0 + ct.load(Z, index=(i,), shape=(T,)))
    if MODE == 4:
        ct.store(X, index=(i,), tile=x + 1.0)


@pytest.mark.parametrize("isolate", [True, False])
def test_candidates_write_what_the_reference_writes_and_nothing_else(isolate: bool) -> None:
    """One that leaves an array out is quicker, and wrong. What one writes, the next one does not read."""
    x, y, z = np.ones(4096, np.float32), np.zeros(4096, np.float32), np.zeros(4096, np.float32)
    space = [{"MODE": mode} for mode in (1, 2, 4, 3)]
    found = tune.search(writes, (x, y, z, 64, 0), space=space, grid=64, isolate=isolate, record_file=False, budget=0.5)
    why = {str(trial.candidate): trial.dropped for trial in found.trials}
    assert why["as given"] is None and why["MODE=3"] is None
    assert re.fullmatch(
        r"Y differs from the reference by .*, which writes this array; say scratch='Y' if .*", str(why["MODE=1"])
    )
    assert re.fullmatch(
        r"Z differs from the reference by .*, which does not write this array; say scratch='Z' if .*",
        str(why["MODE=2"]),
    )
    assert re.fullmatch(r"X differs from the reference by .*, which does not write this array; .*", str(why["MODE=4"]))
    assert not y.any() and not z.any() and (x == 1).all()


def test_scratch_holds_what_candidates_like() -> None:
    """As the sums of a split product do: of one part there are none. It is put back as all is that candidates write."""
    x, y, z = np.ones(4096, np.float32), np.zeros(4096, np.float32), np.zeros(4096, np.float32)
    space = [{"MODE": mode} for mode in (1, 2, 3)]
    settings: dict[str, Any] = {"space": space, "grid": 64, "record_file": False, "budget": 0.5}
    found = tune.search(writes, (x, y, z, 64, 0), scratch="Z", **settings)
    why = {str(trial.candidate): trial.dropped for trial in found.trials}
    assert why["as given"] is why["MODE=2"] is why["MODE=3"] is None and "Y differs" in str(why["MODE=1"])
    assert not z.any()
    base = np.zeros((4096, 2), np.float32)  # in one segment with the result
    found = tune.search(writes, (x, base[:, 0], base[:, 1], 64, 0), scratch=["Z"], isolate=False, **settings)
    assert {str(trial.candidate): trial.dropped for trial in found.trials}["MODE=2"] is None and not base.any()
    with pytest.raises(TileValueError, match="scratch: kernel writes has no array 'W'; it has X, Y, Z"):
        tune.search(writes, (x, y, z, 64, 0), scratch=("W",), **settings)


@ct.kernel
def halves(X, Y, Z, MODE: ct.Constant[int]):
    x = ct.load(X, index=(0, 0), shape=(4, 64))
    ct.store(Y, index=(0, 0), tile=x * 3.0 if MODE == 0 else x * 3.000001)
    ct.store(Z, index=(0, 0), tile=ct.astype(x * 100.0, ct.int32) + (1 if MODE == 2 else 0))


def test_arrays_that_lie_between_each_other_are_compared_each_by_its_dtype() -> None:
    """Sums in another order are right beside integers that are equal. What is between the arrays stays as it was."""
    x, base = np.random.rand(4, 64).astype(np.float32), np.zeros((4, 192), np.float32)
    y, z = base[:, :64], base.view(np.int32)[:, 64:128]
    assert len(memory.describe((y, z), [0, 1]).segments) == 1
    space = {"MODE": (1, 2)}
    found = tune.search(halves, (x, y, z, 0), space=space, grid=1, isolate=False, record_file=False, budget=0.2)
    why = {str(trial.candidate): trial.dropped for trial in found.trials}
    assert why["MODE=1"] is None and "Z differs from the reference by inf" in str(why["MODE=2"])


def test_bad_candidates_are_dropped_and_told() -> None:
    x, y = np.ones(16, np.float32), np.zeros(16, np.float32)
    settings = QUICK | {"timeout": 1.0}
    result = tune.search(moody, (x, y, 0), space={"MODE": (1, 3, 4, 5)}, grid=1, record_file=None, **settings)
    why = {str(trial.candidate): trial.dropped or "" for trial in result.trials}
    assert "did not end within 1 s" in why["MODE=1"]
    assert "Y differs from the reference" in why["MODE=3"]
    assert "is not accepted" in why["MODE=4"]
    assert not why["as given"]
    assert str(result.best.candidate) == "as given"
    assert not y.any()


def test_a_worker_takes_no_module_from_the_current_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever lies where the user happens to stand is not executed."""
    for name in ("socket", "numpy", "types", "tempfile"):
        (tmp_path / f"{name}.py").write_text("open('executed', 'w'); raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    Worker("assembler").close()
    assert not (tmp_path / "executed").exists()


def test_a_worker_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "tempfile.py").write_text("raise RuntimeError('no space left')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(LostError, match=r"exit status 1\): RuntimeError: no space left"):
        Worker("assembler")


def test_a_worker_that_dies_says_how() -> None:
    x = np.zeros(16, np.float32)
    layout = memory.describe((x,), [0])
    path = memory.save(layout)
    try:
        worker = Worker("bench", layout, path)
        os.kill(worker.process.pid, signal.SIGSEGV)
        with pytest.raises(LostError, match="crashed with signal 11"):
            worker.call("time", 0, 1, timeout=5.0)
    finally:
        memory.remove(path)


def test_a_worker_that_hangs_is_told_with_its_last_words() -> None:
    worker = Worker("assembler")
    worker.errors.write(b"more\nthe last words\n")
    worker.errors.flush()
    os.kill(worker.process.pid, signal.SIGSTOP)
    with pytest.raises(LostError, match="did not end within 0 s: the last words$"):
        worker.call("assemble", b"", "sm_90a", timeout=0.1)


def test_loading_is_no_part_of_the_time_of_a_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many processes that share a GPU take seconds for it."""
    calls, call = [], SafeBench.call

    def spy(self: SafeBench, method: str, *arguments: Any, timeout: float) -> Any:
        calls.append((method, timeout))
        return call(self, method, *arguments, timeout=timeout)

    monkeypatch.setattr(SafeBench, "call", spy)
    x, y = vectors()
    tune.search(scale, (x, y, 64), space=[], grid=blocks, isolate=False, record_file=None, **QUICK)
    assert calls[:2] == [("add", 60.0), ("first", 5.0)]


def has_gpu() -> bool:
    try:
        return _core.device_count() > 0
    except TileError:
        return False


WORDS = ", ".join(f".param .b64 {name}" for name in ("pointer", "extent", "stride"))
TRAP = f".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry moody({WORDS}) {{ trap; }}\n"


@pytest.mark.skipif(not has_gpu(), reason="needs a GPU")
def test_hangs_and_faults_on_a_gpu_take_nothing_along() -> None:
    torch = pytest.importorskip("torch")
    x, y = torch.ones(16, device="cuda"), torch.zeros(16, device="cuda")
    settings = QUICK | {"timeout": 2.0}
    result = tune.search(moody, (x, y, 0), space={"MODE": (1, 3)}, grid=1, record_file=None, **settings)
    why = {str(trial.candidate): trial.dropped or "" for trial in result.trials}
    assert "did not end within 2 s" in why["MODE=1"]
    assert "Y differs from the reference" in why["MODE=3"]
    assert not y.any()
    result.launch()
    assert (y == 2).all()

    image = compiler.Image(TRAP.encode(), _core.launch_record(num_threads=32)).pack()
    layout = memory.describe((x,), [0])
    path = memory.save(layout)
    try:
        worker = Worker("bench", layout, path)
        program = Program(image, "moody", "sm_90a", 1, ("X",), (), (None,), (1, 1, 1))
        with pytest.raises(LostError, match="a kernel on CUDA device 0 failed while it ran"):
            worker.call("first", 0, program, timeout=20.0)
    finally:
        memory.remove(path)
    increments = torch.zeros(4096, device="cuda")
    again = tune.search(increment, (increments, 64), space={"T": (128, 256)}, grid=blocks, record_file=None, **QUICK)
    assert len(again.measured()) >= 1 and not increments.any()


def test_a_trial_ends_with_who_wanted_it() -> None:
    """One that takes an hour, too, of a parent that was killed."""
    program = (
        "import sys, time; from tilewright.tune import worker; worker.Worker.STOP_SECONDS = 0; "
        "worker.end_with_parent(int(sys.argv[1])); print('on', flush=True); time.sleep(3600)"
    )
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-c", program, str(theirs.fileno())]
        with subprocess.Popen(command, pass_fds=[theirs.fileno()], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stdout.readline() == b"on\n"
            theirs.close()
            assert process.poll() is None
            ours.close()
            assert process.wait(120) == 1


def waiting(assemblers: Assemblers) -> int:
    return sum(worker is not None for worker in assemblers.places.queue)


def test_assemblers_come_back_and_say_why_they_cannot() -> None:
    """Each thread has its own; one that crashes or takes too long is replaced."""
    assemblers = Assemblers(120.0)
    assert assemblers.assemble(b"ret;", "sm_12345") == b"ret;" and not assemblers.all
    assemblers.SMALL = 0
    try:
        if not has_gpu():  # nothing assembles then: PTX stays PTX
            assert assemblers.assemble(b"ret;", "sm_90a") == b"ret;"
        with pytest.raises(TileCompilationError, match="the driver's assembler ended its process"):
            assemblers.load(b"no image", "kernel", "sm_90a", 0)
        assert waiting(assemblers) == len(assemblers.all) - 1
        assemblers.timeout = 0.5
        first = assemblers._start()
        os.kill(first.process.pid, signal.SIGSTOP)
        assemblers.places.get()
        assemblers.places.put(first)
        with pytest.raises(TileCompilationError, match="the driver's assembler did not end within"):
            assemblers.assemble(b"ret;", "cpu")
        assemblers.timeout = 120.0
        assert assemblers.assemble(b"ret;", "sm_12345") == b"ret;"
    finally:
        assemblers.close()
    assert all(worker.process.poll() is not None for worker in assemblers.all)
    with pytest.raises(TileCompilationError, match="the driver's assembler"):
        assemblers.assemble(b"ret;", "sm_12345")


def test_a_spare_process_starts_when_it_is_asked_for() -> None:
    """The next one would open its device while others are waited for."""
    spare = Spare(0 if has_gpu() else 77)
    try:
        spare.take("assembler").close()
        assert spare.next is None
        spare.take("assembler").close()  # a fresh one
        spare.renew()
        renewed = spare.next
        spare.renew()
        assert renewed is not None and spare.next is renewed
    finally:
        spare.close()


def test_a_spare_process_becomes_what_is_asked_for() -> None:
    """One that could have no context says nothing; who takes its place does."""
    x = np.ones(16, np.float32)
    layout, spare = memory.describe((x,), [0]), Spare(0 if has_gpu() else 77)
    path = memory.save(layout)
    try:
        first, second = spare.take("bench", layout, path), spare.take("bench", layout, path)
        assert first.process.pid != second.process.pid
        for worker in (first, second):
            worker.call("drop", 0, timeout=20.0)
            worker.close()
    finally:
        spare.close()
        memory.remove(path)


def test_what_processes_are_asked_for_is_there() -> None:
    """A method that only a text names is not found by who looks for what nothing uses."""
    folder = Path(tune.__file__).parent
    places = (
        ("bench", "search.py"),
        ("bench", "../sweep/station.py"),
        ("worker", "worker.py"),
        ("self._", "worker.py"),
    )
    asked: dict[str, set[str]] = {}
    for name, file in places:
        found = re.findall(rf"{name}\.?call\(\s*\"(\w+)\"", (folder / file).read_text())
        asked[name] = asked.get(name, set()) | set(found)
    assert {"add", "first", "check", "time", "sample", "drop"} <= asked["bench"] and asked["self._"] == {
        "assemble",
        "load",
    }
    assert [name for name in asked["bench"] if not hasattr(Bench, name)] == []
    others = asked["worker"] | asked["self._"]
    assert [name for name in others if not hasattr(Bench, name) and not hasattr(Assembler, name)] == []


def test_the_reference_is_the_first_that_works() -> None:
    x, y = np.ones(16, np.float32), np.zeros(16, np.float32)
    settings = QUICK | {"timeout": 1.0}
    result = tune.search(moody, (x, y, 1), space={"MODE": (0,)}, grid=1, record_file=None, **settings)
    assert str(result.best.candidate) == "MODE=0"
    assert result.speedup is None
    with pytest.raises(TileValueError, match="no candidate of kernel moody works: as given: did not end"):
        tune.search(moody, (x, y, 1), space={}, grid=1, record_file=None, **settings)


def test_the_limit_keeps_what_the_model_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "cpu_threads", lambda: 2)  # on a machine with many, more blocks are better
    x, y = vectors(1 << 16)
    space = {"T": (16, 32, 2048, 4096)}
    result = tune.search(scale, (x, y, 1024), space=space, grid=blocks, limit=3, record_file=None, **QUICK)
    left = {str(trial.candidate) for trial in result.trials if trial.dropped == UNLIKELY}
    assert left == {"T=16", "T=32"}
    assert "2 more: not tried" in str(result)


def test_ranges_are_compared_where_they_lie() -> None:
    room = memory.Memory(None)
    comparer = Comparer(room)
    arrays = np.arange(40_003, dtype=np.int32), np.arange(40_003, dtype=np.int32)
    x, y = (array.ctypes.data for array in arrays)
    assert comparer.equal(x, y, 4 * 40_003)
    arrays[1][40_002] = 0
    assert not comparer.equal(x, y, 4 * 40_003)
    assert comparer.equal(x, y, 4 * 40_002)
    room.close()


def test_layouts_are_ranked_by_the_compilers_estimate() -> None:
    """The runners-up of one candidate behind its best, and those that it has not refused."""
    x, y = vectors(1 << 16)
    _, key = scale.specialization((x, y, 1024))
    machine = cost.Machine("H200", True, 132, 1.98e9, 4.8e12, 233472, _core.chip(90))

    def module_of(**wanted: Any) -> Any:
        module = scale.replace_hints(**wanted).capture("sm_90a", key)
        module.lower("legal")
        return module

    module = module_of()
    assert 0 < programs._layout_seconds(module, module_of(), (64, 1, 1), machine, 1) < 1e-6
    with pytest.raises(TileValueError, match="the layouts have . runners-up"):
        programs._layout_seconds(module, module_of(), (64, 1, 1), machine, 7)
    module.lower("legal")  # is past it, and stays there
    assert "#tile.linear" in module.text()


def test_copies_of_arrays_do_not_outlive_their_process() -> None:
    """One that is killed leaves a file, which the next one that saves removes; one that lives keeps its own."""
    code = (
        "import numpy, tilewright.tune.memory as m; x = numpy.zeros(4);"
        "print(m.save(m.describe((x,), [0])), flush=True); input()"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    copy = Path(child.stdout.readline().strip())
    layout = memory.describe((np.zeros(4),), [0])
    memory.remove(memory.save(layout))
    assert copy.exists()
    child.kill()
    child.wait()
    assert copy.exists()
    mine = memory.save(layout)
    assert mine.exists() and not copy.exists()
    memory.remove(mine)
    assert not mine.exists()


@pytest.mark.parametrize("hint", [{"num_warps": 8}, {"num_stages": 2}, {"raster": 1}, {"group": 4}])
def test_candidates_that_differ_in_how_alone_are_counted_once(hint: dict[str, int]) -> None:
    """The operations in which work is counted are the same."""
    key = cli.specialization(matmul, [*(f"{name}=bf16[512,512]" for name in "ABC"), "TM=128", "TN=128", "TK=64"])

    def body(kernel: Any) -> list[str]:
        module = kernel.capture("sm_90a", key)
        module.lower("legal")
        return [line for line in module.text().splitlines() if "tile.kernel" not in line]

    assert set(hint) <= set(programs.SAME_WORK)
    assert len(body(matmul)) > 10 and body(matmul.replace_hints(**hint)) == body(matmul)
    problem = Problem(scale, (*vectors(4096), 64), lambda X, T: ct.cdiv(X.shape[0], T))
    counted: dict[Any, cost.Work] = {}
    facts = problem.facts()
    rows = [problem.candidate(row) for row in ({}, hint, {"T": 128}, {"T": 128} | hint)]
    layout, machine = facts.layout(), cost.machine_of(None)
    each = [programs.estimate(problem, facts, layout, machine, row, counted) for row in rows]
    assert len(counted) == 2 and each == [programs.estimate(problem, facts, layout, machine, row) for row in rows]


def test_a_disk_without_room_for_copies_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "_has_room", lambda folder, size: False)
    monkeypatch.setattr(memory.tempfile, "gettempdir", lambda: str(tmp_path))
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    x, y = np.ones(1 << 16, np.float32), np.zeros(1 << 16, np.float32)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limit[1]))
        with pytest.raises(TileError, match=r"takes no copy of the arguments, which are 524,288 bytes: .*TMPDIR"):
            tune.search(scale, (x, y, 64), space={"T": (64, 128)}, grid=lambda T: (1 << 16) // T, record_file=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)
    assert not list(tmp_path.iterdir())


def test_a_record_that_cannot_be_written_costs_no_result(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(record.os, "replace", full)
    x, y = vectors()
    path = tmp_path / "tuned.jsonl"
    with pytest.warns(UserWarning, match="tuned.jsonl' cannot be written: No space left on device; what was found"):
        found = tune.search(scale, (x, y, 64), space={"T": (64, 128)}, grid=lambda T: 4096 // T, record_file=path)
    assert found.path is None and found.measured() and not path.exists()


def test_views_of_one_array_stay_views() -> None:
    """Overlapping arguments: what one is written through, the other one shows."""
    base = np.zeros(64, np.float32)
    layout = memory.describe((base[:32], base[16:48], base[::-1]), [0, 1, 2])
    assert len(layout.segments) == 1 and layout.segments[0][1] == 256
    path = memory.save(layout)
    try:
        assert path.stat().st_mode & 0o777 == 0o600
        room, bases = memory.load(layout, path)
    finally:
        memory.remove(path)
    first, second, reverse = (memory.array_at(None, bases[0], layout.views[i]) for i in range(3))
    assert bases[0] % 256 == base.ctypes.data % 256
    bits = np.float32(7).view(np.uint32)
    for array in (first, second, reverse):
        assert _core.describe_array(array)["dtype"] == "float32"
    first.array[16] = bits
    assert second.array[0] == bits and reverse.array[63 - 16] == bits
    assert not base.any()
    room.close()


# --- the space --------------------------------------------------------------------------------------------------------


def test_choices_of_tiles_are_no_choices_of_a_cpu() -> None:
    x, y = vectors()
    space = {"layout(x)": ("access", "none such"), "warps(x)": ("4x2",)}
    result = tune.search(scale, (x, y, 64), space=space, grid=blocks, record_file=False, isolate=False, **QUICK)
    assert not result.best.candidate.hints
    told = [trial.dropped or "" for trial in result.trials if trial.candidate.hints]
    assert len(told) == 2 and all("is a choice on GPUs; on a CPU no threads hold parts" in why for why in told)


def test_candidates() -> None:
    x, y = vectors()
    problem = Problem(scale, (x, y, 64), blocks)
    found = problem.candidates({"T": (64, 128), "num_warps": (4, 8)})
    assert [str(c) for c in found] == [
        "as given",
        "num_warps=4",
        "num_warps=8",
        "T=128 num_warps=4",
        "T=128 num_warps=8",
    ]
    assert problem.candidates([{"T": 128}, {"T": 128}]) == [Candidate(), Candidate((("T", 128),))]
    assert problem.grid_of(found[-1]) == (32, 1, 1)
    kernel = problem.kernel_of(found[-1])
    assert kernel.hints == {"num_warps": 8} and problem.kernel_of(found[-1]) is kernel
    with pytest.raises(TileValueError, match="neither a constant nor a hint 'X'; constants: T; hints: num_warps"):
        problem.candidates({"X": (1,)})
    with pytest.raises(TileValueError, match="num_warps is an integer from 1 to 32, found 99"):
        problem.kernel_of(problem.candidate({"num_warps": 99}))
    with pytest.raises(TileValueError, match="the space has no values of 'T'"):
        problem.candidates({"num_warps": (4, 8), "T": ()})
    for grid in ("x", 2.0, (1, 2.0), (), (1, 1, 1, 1)):
        with pytest.raises(TileValueError, match="a grid has one to three extents, which are integers"):
            Problem(scale, (x, y, 64), grid).grid_of(Candidate())  # type: ignore[arg-type]
    with pytest.raises(TileTypeError, match=r"the grid asks for 'Q'; kernel scale has \(X, Y, T\)"):
        Problem(scale, (x, y, 64), lambda Q: Q).grid_of(Candidate())
    with pytest.raises(TileTypeError, match=r"kernel scale takes \(X, Y, T\), found 2 arguments"):
        Problem(scale, (x, y), 1)
    with pytest.raises(TileTypeError, match="tune works on a @ct.kernel"):
        Problem(double, (), 1)  # type: ignore[arg-type]


# --- the cost model ---------------------------------------------------------------------------------------------------


def work_of(kernel: Any, args: tuple[Any, ...], grid: tuple[int, int, int]) -> cost.Work:
    target, key = kernel.specialization(args)
    layout = memory.describe(args, [i for i, (kind, *_) in enumerate(key) if kind == "array"])
    constants = {i for i, (kind, *_) in enumerate(key) if kind == "const"}
    module = kernel.capture(target, key)
    module.lower("legal")
    return cost.count(
        module, layout, tuple(None if i in layout.views else v for i, v in enumerate(args)), grid, constants
    )


def test_work_is_counted() -> None:
    a, b = np.zeros((256, 128), np.float16), np.zeros((128, 512), np.float16)
    c = np.zeros((256, 512), np.float32)
    work = work_of(matmul, (a, b, c, 64, 128, 32), (4, 4, 1))
    assert work.flop == 2 * 256 * 512 * 128
    assert work.moved == 16 * 2 * 128 * (64 + 128) + c.nbytes
    assert work.unique == a.nbytes + b.nbytes + c.nbytes
    assert (work.bits, work.carried, work.turn, work.known) == (16, 64 * 128 * 4, 2 * 32 * (64 + 128), True)
    x, y = vectors()
    assert work_of(scale, (x, y, 64), (64, 1, 1)).unique == x.nbytes + y.nbytes


def test_triangular_loops_and_data_dependent_ones_are_counted() -> None:
    @ct.kernel
    def triangle(X, Y, T: ct.Constant[int]):
        i = ct.bid(0)
        total = ct.zeros((T,), dtype=ct.float32)
        for j in range(i + 1):
            total += ct.load(X, index=(j,), shape=(T,))
        if i > 1000:
            total += ct.load(X, index=(0,), shape=(T,))
        ct.store(Y, index=(i,), tile=total)

    x, y = vectors(1024)
    work = work_of(triangle, (x, y, 64), (9, 1, 1))  # every block is a sample
    assert work.known
    assert work.moved == 4 * 64 * (sum(range(1, 10)) + 9)
    assert not work_of(moody, (x, y, 1), (1, 1, 1)).known


def test_the_model_ranks_the_obvious() -> None:
    h200 = cost.Machine("H200", True, 132, 1.98e9, 4.8e12, 233472, _core.chip(90))

    def matmul_work(m: int, n: int, k: int, size: int = 4096) -> cost.Work:
        count = (size // m) * (size // n)
        moved = count * (2.0 * size * (m + n) + 2 * m * n)
        return cost.Work(
            count,
            moved,
            6.0 * size**2,
            2.0 * size**3,
            count * 2.0 * size * (m + n),
            16,
            0,
            4.0 * m * n,
            2.0 * k * (m + n),
            True,
        )

    def predict(m: int, n: int, k: int, size: int = 4096, **hints: int) -> float:
        return cost.predict(matmul_work(m, n, k, size), h200, hints)

    assert predict(128, 256, 64) < predict(128, 128, 64) < predict(64, 64, 64)
    assert predict(128, 256, 64) < predict(128, 256, 16)  # many turns
    assert predict(64, 128, 64, 1024) < predict(256, 256, 64, 1024)  # 16 blocks for 132 multiprocessors
    assert predict(128, 256, 64) < predict(128, 256, 64, num_warps=2)  # values do not fit into registers
    assert 0.7 < predict(128, 256, 64) / (2 * 4096**3 / 989e12) < 1.5
    assert h200.flop_rate(8) == 2 * h200.flop_rate(16) == 2 * 132 * 1.98e9 * 4096


# --- statistics -------------------------------------------------------------------------------------------------------


def test_intervals_hold_the_median() -> None:
    random = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        found = statistics.Measurement.of(list(random.exponential(1.0, 21)))
        hits += found.low <= np.log(2) <= found.high
    assert hits > 0.94 * 400
    one = statistics.Measurement.of([2.0])
    assert (one.median, one.low, one.high, one.width) == (2.0, 2.0, 2.0, 0.0)


def test_who_stays_and_who_wins() -> None:
    def at(median: float, reach: float) -> statistics.Measurement:
        return statistics.Measurement(median, median - reach, median + reach, 9)

    rows = {0: at(1.0, 0.1), 1: at(0.97, 0.1), 2: at(2.0, 0.1)}
    assert statistics.survivors(rows) == [0, 1]
    assert not statistics.is_decided(rows)
    assert statistics.winner(rows) == 1  # three in a hundred is worth having
    assert statistics.winner({0: at(1.0, 0.1), 1: at(0.995, 0.1)}) == 0  # this is not
    assert statistics.is_decided({0: at(1.0, 0.001), 1: at(1.005, 0.001)})


def test_differences() -> None:
    r = np.array([1.0, np.nan, np.inf, 1000.0], np.float32)
    bytes_ = r.view(np.uint8)
    assert difference(bytes_, bytes_.copy(), 0, "float32")[0] == 0
    for wrong in (np.array([1.0, 0.0, np.inf, 1000.0]), np.array([1.0, np.nan, -np.inf, 1000.0])):
        assert difference(wrong.astype(np.float32).view(np.uint8), bytes_, 0, "float32")[0] == np.inf
    near = np.array([1.0, np.nan, np.inf, 1000.01], np.float32).view(np.uint8)
    error, limit = difference(near, bytes_, 0, "float32")
    assert 0 < error < limit
    assert difference(np.zeros(4, np.uint8), np.ones(4, np.uint8), 0, "int32") == (np.inf, 0.0)
    assert difference(np.ones(4, np.uint8), np.ones(4, np.uint8), 0, "int32") == (0.0, 0.0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_what_stands_for_minus_infinity_does_not_measure_others(dtype: str) -> None:
    least = np.finfo(dtype).min
    right = np.array([least, 1.0] * 8, dtype)
    wrong = np.array([least, 2.0] * 8, dtype)
    error, limit = difference(wrong.view(np.uint8), right.view(np.uint8), 0, dtype)
    assert error > limit


def test_elements_of_an_array_in_its_segment() -> None:
    content = np.arange(64, dtype=np.uint8)

    def found(dtype: str, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
        row: list[int] = inside(content, memory.View(0, offset, dtype, shape, strides, False)).tolist()
        return row

    assert found("uint16", 4, (2, 2), (8, 1)) == [4, 5, 6, 7, 20, 21, 22, 23]
    assert found("uint16", 6, (2,), (-3,)) == [6, 7, 0, 1]
    assert found("uint8", 3, (1000, 2), (0, 1)) == [3, 4]
    assert found("float4_e2m1fn", 8, (2, 4), (16, 1)) == [8, 9, 16, 17]
    assert found("int32", 12, (), ()) == [12, 13, 14, 15]


# --- the record -------------------------------------------------------------------------------------------------------


def entry(**changes: Any) -> record.Entry:
    row = {
        "device": "GPU", "kernel": "k", "source": "s", "shape_class": "c", "arguments": "A=float32[64]",
        "constants": {"T": 64}, "hints": {"num_warps": 4}, "us": 1.0, "low_us": 0.9, "high_us": 1.1, "untuned_us": 2.0,
        "version": "0", "date": "2026-01-01",
    }  # fmt: skip
    return record.Entry(**(row | changes))


def test_the_file_is_merged_and_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "tuned.jsonl"
    record.write(path, entry())
    record.write(path, entry(kernel="other"))
    record.write(path, entry(us=0.5))
    assert [(e.kernel, e.us) for e in record.read(path)] == [("other", 1.0), ("k", 0.5)]
    good = entry().line()
    row = json.loads(good)
    bad = [
        "", "null", "[]", "{", '{"class": 1}', "[" * 100000, json.dumps(row | {"us": "fast"}),
        json.dumps(row | {"us": -1}),
        json.dumps(row | {"constants": {"T": [1]}}), json.dumps(row | {"hints": {"num_warps": "4"}}),
        json.dumps(row | {"extra": 1}), json.dumps(row | {"kernel": "a\u001b[31m"}), good.replace("1.0", "1e999", 1),
    ]  # fmt: skip
    path.write_text("\n".join([*bad, good]) + "\n")
    os.chmod(path, 0o600)
    assert record.read(path) == [entry()]
    os.chmod(path, 0o666)
    with pytest.warns(UserWarning, match="others may write to it"):
        assert record.read(path) == []
    assert record.read(tmp_path / "none") == []


def test_a_record_is_a_file_of_its_own(tmp_path: Path) -> None:
    """A pipe in its place does not hold the reader up; a link in the lock's place is not followed."""
    path, other = tmp_path / "tuned.jsonl", tmp_path / "other"
    os.mkfifo(path)
    with pytest.warns(UserWarning, match="it is no plain file"):
        assert record.read(path) == []
    memory.remove(path)
    path.with_name(path.name + ".lock").symlink_to(other)
    with pytest.raises(OSError):
        record.write(path, entry())
    assert not other.exists() and not path.exists()


def test_an_entry_that_the_kernel_refuses_is_passed_over(tmp_path: Path) -> None:
    x, y = vectors()
    _, key = scale.specialization((x, y, 64))
    layout = memory.describe((x, y), [0, 1])
    right = {
        "device": cost.machine_of(None).name,
        "kernel": "scale",
        "source": record.source_hash(scale.function),
        "shape_class": record.shape_class(key, layout),
        "arguments": record.arguments_text(scale.parameters, layout),
    }
    path = tmp_path / "tuned.jsonl"
    record.write(path, entry(**right, hints={"num_warps": 99}))
    assert tune.best(scale, (x, y, 64), record_file=path) is None
    record.write(path, entry(**(right | {"arguments": "X=float32[4000] Y=float32[4000]"}), hints={}))
    found = tune.best(scale, (x, y, 16), record_file=path)
    assert found is not None and found.constants == {"T": 64}


def test_nearest_shapes() -> None:
    wanted = "A=f[4096,4096] B=f[4096,64]"
    near, far = "A=f[4000,4096] B=f[4096,64]", "A=f[2100,2100] B=f[2100,64]"
    assert 0 == record.distance(wanted, wanted) < record.distance(near, wanted) < record.distance(far, wanted)
    assert record.distance("A=f[1]", wanted) == float("inf")


def test_a_source_is_what_it_says() -> None:
    def plain(x):
        return x * 2

    def commented(x):
        # another look
        return x * 2

    def other(x):
        return x * 3

    assert record.source_hash(plain) == record.source_hash(commented) != record.source_hash(other)
    assert len(record.source_hash(scale.function)) == 16


@pytest.mark.parametrize(
    ("one", "other", "used"),
    [
        ("A = 1", "A = 2", "x * A"),
        ("A = ct.float16", "A = ct.float32", "ct.astype(x, A)"),
        ("A = (1, (2, 3))", "A = (1, (2, 4))", "x * A[1][0]"),
        ("A = {'a': [1]}", "A = {'a': [2]}", "x * A['a'][0]"),
        ("class A:\n    n = 1", "class A:\n    n = 2", "x * A.n"),
        ("class A(enum.IntEnum):\n    n = 1", "class A(enum.IntEnum):\n    n = 2", "x * A.n"),
        ("A = types.SimpleNamespace(n=1)", "A = types.SimpleNamespace(n=2)", "x * A.n"),
        ("def f(x, y=1): return x * y", "def f(x, y=2): return x * y", "f(x)"),
        ("def g(x, y): return x * y\nf = partial(g, y=1)", "def g(x, y): return x * y\nf = partial(g, y=2)", "f(x)"),
        ("A = 1\ndef f(x): return x * A", "A = 2\ndef f(x): return x * A", "f(x)"),
        ("import constants1 as c", "import constants2 as c", "x * c.N"),
    ],
)
def test_a_source_is_what_it_refers_to(
    one: str, other: str, used: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records of the kernel as it was are none of what it is after an edit of a dtype or a number elsewhere."""
    monkeypatch.syspath_prepend(tmp_path)
    for n in (1, 2):
        (tmp_path / f"constants{n}.py").write_text(f"N = {n}\nUNUSED = {n}\n")
    head = "import enum, types\nfrom functools import partial\nfrom tilewright import tile as ct\n"
    body = f"@ct.kernel\ndef k(X, Y):\n    x = ct.load(X, (0,), (64,))\n    ct.store(Y, (0,), {used})\n"

    def hash_of(name: str, text: str) -> str:
        path = tmp_path / f"{name}.py"
        path.write_text(f"{head}{text}\nUNUSED = {name!r}\n{body}")
        return record.source_hash(cli.load_kernel(f"{path}:k").function)

    assert hash_of("first", one) == hash_of("again", one) != hash_of("second", other)


# --- compilation in threads -------------------------------------------------------------------------------------------


def test_compilations_run_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many modules in several threads give what one thread gives."""
    monkeypatch.setenv("TILEWRIGHT_NO_CACHE", "1")
    arrays = tuple(np.zeros((64, 64), np.float16) for _ in range(3))
    found: dict[tuple[int, str], bytes] = {}

    def ptx(tile: int, target: str) -> bytes:
        _, key = matmul.specialization((*arrays, tile, 64, 32))
        module = matmul.capture(target, key)
        module.lower("llvm")
        return module.emit(1)

    work = [(tile, target) for tile in (32, 64, 128) for target in ("sm_80", "sm_90a", "cpu")]
    threads = [threading.Thread(target=lambda w=w: found.__setitem__(w, ptx(*w))) for w in work * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {w: ptx(*w) for w in work}


def test_a_compilation_that_does_not_end_is_left_behind() -> None:
    def work(number: int) -> bytes:
        if number == 1:
            time.sleep(3)
        if number == 2:
            raise TileValueError("no\nmore lines")
        return b"code"

    begin = time.monotonic()
    outcomes = dict(in_parallel(work, [0, 1, 2, 3], 0.3, 2))
    assert time.monotonic() - begin < 2
    assert outcomes == {0: b"code", 1: "takes longer than 0 s", 2: "no", 3: b"code"}


def test_times_are_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    x, y = vectors()
    target, key = scale.specialization((x, y, 64))
    monkeypatch.setenv("TILEWRIGHT_TIMES", "1")
    compiler.compile_kernel(scale, target, key)
    assert "scale for cpu: " in (told := capsys.readouterr().err) and "capture" in told and "object" in told
    times = Times("k", "cpu")
    with times.step("a"), times.step("b"):
        pass
    assert set(times.milliseconds) == {"a", "b"}


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("drawn", [True, False])
def test_a_notebook_shows_the_table_and_the_picture(drawn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if drawn:
        pytest.importorskip("matplotlib", reason="draws the picture")
    else:
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    result = tune.search(
        scale, (*vectors(1 << 12), 16), space={"T": (16, 1024)}, grid=blocks, record_file=False, **QUICK
    )
    shown = result._repr_html_()
    assert shown.startswith("<pre>scale on ") and "T=1024" in shown
    assert shown.count("<svg") == shown.count("</svg>") == drawn and "<?xml" not in shown


SCALE = f"{Path(__file__)}:scale"


def run(*arguments: str) -> int:
    return cli.main(list(arguments))


def test_the_command_tunes_and_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("TILEWRIGHT_TUNED", str(tmp_path / "tuned.jsonl"))
    arrays = ["--arg", "X=f32[65536]", "--arg", "Y=f32[65536]", "--arg", "T=16", "--device", "cpu", "--budget", "0.2"]
    grid = ["--grid", "cdiv(X.shape[0], T)"]
    picture = tmp_path / "sweep.svg"
    space = ["--space", "T=16,1024,4096", "--space", "opt_level=auto,2"]
    assert run("tune", SCALE, *arrays, *grid, *space, "--plot", str(picture)) == 0
    told = capsys.readouterr().out
    assert "times as fast as given" in told and "kept in" in told and "scale on" in told
    assert picture.read_text().startswith("<?xml")
    assert run("roofline", SCALE, *arrays, *grid, "-o", str(tmp_path / "roofline.png")) == 0
    assert (tmp_path / "roofline.png").read_bytes().startswith(b"\x89PNG")
    assert "GB/s" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--space", "T"], r"--space 'T': expected NAME=VALUE"),
        (["--grid", "cdiv("], r"--grid 'cdiv\(' is no expression"),
        (["--grid", "open('/etc/passwd')"], r"'open' is unknown"),
        (["--device", "tpu"], r"--device 'tpu': expected cpu"),
        (["--arg", "X=f32[?]"], r"needs its extents as numbers"),
        (["--arg", "X=f32[1e3]"], r"the extent .1e3. is neither a number nor|the extent .1e3. is no number"),
        (["--arg", "T=i32"], r"a scalar needs a value"),
    ],
)
def test_the_command_explains(change: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = {name: text for name, _, text in (a.partition("=") for a in ("X=f32[64]", "Y=f32[64]", "T=16"))}
    if change[0] == "--arg":
        name, _, text = change[1].partition("=")
        arguments, change = arguments | {name: text}, []
    base = [word for name, text in arguments.items() for word in ("--arg", f"{name}={text}")]
    assert run("tune", SCALE, *base, "--device", "cpu", "--grid", "1", *change) == 1
    import re

    assert re.search(message, capsys.readouterr().err)


def test_a_map_says_what_is_as_given() -> None:
    """A hint that is left to the compiler comes first, and under that name."""
    plt = pytest.importorskip("matplotlib.pyplot", reason="pictures are matplotlib's")
    x, y = vectors()
    some = {"T": (64, 1024), "opt_level": (None, 1)}
    result = tune.search(scale, (x, y, 64), space=some, grid=blocks, record_file=None, isolate=False, **QUICK)
    figure, axis = plt.subplots()
    plot.draw_map(figure, axis, result, "opt_level", "T")
    assert [text.get_text() for text in axis.get_yticklabels()] == ["as given", "1"]
    points = [plot.Point(f"choice {i}", 1.0, 1e9) for i in range(3)]
    figure, axis = plt.subplots()
    plot.draw_roofline(axis, result.machine, points, [0])
    assert len(axis.get_legend().get_texts()) == 3, "labels of equal points lie in a list, not on each other"
    plt.close("all")


class Timed(Bench):
    """A bench whose launches take what the test says."""

    def __init__(self, *seconds: float) -> None:
        self.seconds, self.asked = itertools.cycle(seconds), 0

    def time(self, number: int, count: int, flush_l2: bool = True) -> list[float]:
        self.asked += count
        return [next(self.seconds) for _ in range(count)]


def test_what_is_clearly_slower_than_the_best_is_not_measured_for_long() -> None:
    """As many samples as an interval needs; what may be the best gets all that its median needs."""
    quick, noisy = 1e-5, [1e-5 * (1 + 0.1 * i) for i in range(10)]
    assert len(Timed(quick).sample(0, quick)) == len(Timed(quick).sample(0, quick, best=quick)) >= MIN_SAMPLES
    assert len(Timed(*noisy).sample(0, quick)) == len(Timed(*noisy).sample(0, quick, best=quick)) >= MOST_SAMPLES
    assert len(Timed(*noisy).sample(0, quick, best=0.8 * quick)) == FEW_SAMPLES
    slow = Timed(0.03)
    assert len(slow.sample(0, 0.03, best=0.02)) == slow.asked == FEW_SAMPLES
    found = Measurement.of(range(1, 1 + FEW_SAMPLES))
    assert (found.low, found.high) == (1, FEW_SAMPLES) and 2 * 0.5**FEW_SAMPLES < 0.05
