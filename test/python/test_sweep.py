"""tilewright.sweep on the CPU: axes and constraints, samplers, workers of this host and of a cluster, what is
told of bad input, and the page."""

from __future__ import annotations

import dataclasses
import functools
import html.parser
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import types
from pathlib import Path
from typing import Any

import pytest

from tilewright import cli
from tilewright import tile as ct
from tilewright.errors import TileError, TileTypeError, TileValueError
from tilewright.sweep import cluster, command, page, records, run, samplers, shapes, workers
from tilewright.sweep.axes import Axis, Space, key_of, parts_of, read_axis
from tilewright.sweep.claims import Claims
from tilewright.sweep.expressions import Expression
from tilewright.sweep.pool import GoneError
from tilewright.sweep.records import Record
from tilewright.sweep.run import Event, Outcome, Plan, Sweep
from tilewright.sweep.station import (
    Decided,
    Known,
    Session,
    Settings,
    Station,
    Task,
    compiling_at_once,
    gpu_count,
    serve,
)
from tilewright.tune.memory import PREFIX
from tilewright.tune.search import SAME
from tilewright.tune.statistics import Measurement
from tilewright.tune.worker import FailedError, LostError, SafeBench, Worker

KERNELS = '''
from tilewright import tile as ct

@ct.kernel
def scale(X, Y, T: ct.Constant[int], MODE: ct.Constant[int]):
    """MODE 1 is wrong, 2 is refused, 3 hangs."""
    x = ct.load(X, index=(ct.bid(0),), shape=(T,))
    y = x * 2.0 + (MODE == 1)
    if MODE == 2:
        y = y @ 3
    if MODE == 3:
        n = ct.sum(x).astype(ct.int32) * 0
        while n < 1:
            ct.store(Y, index=(ct.bid(0),), tile=y)
            n = n * 1
    ct.store(Y, index=(ct.bid(0),), tile=y)

@ct.kernel
def increment(X, T: ct.Constant[int]):
    ct.store(X, index=(ct.bid(0),), tile=ct.load(X, index=(ct.bid(0),), shape=(T,)) + 1.0)

@ct.kernel
def repeated(X, Y, S: ct.Constant, n):
    for _ in range(n):
        ct.store(Y, index=(ct.bid(0),), tile=ct.load(X, index=(ct.bid(0),), shape=S))
'''


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("sweep") / "swept_kernels.py"
    path.write_text(KERNELS)
    return f"{path}:scale"


ARGUMENTS = ["X=f32[8192]", "Y=f32[8192]", "T=64", "MODE=0"]
GRID = "cdiv(X.shape[0], T)"


def plan(place: str, *axes: str, **settings: Any) -> Plan:
    settings = {"on": "cpu", "turns": False, "compile_timeout": 20.0, **settings}
    return Plan(place, tuple(shapes.of_command(ARGUMENTS, GRID)), axes, **settings)


# --- expressions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("TM * TN <= 64 and not family == 'fma'", True),
        ("cdiv(A.shape[0], TM) + min(1, 2) - 7 // 2 % 2", 13),
        ("TM if TN > 100 else (TN, -TM)[1]", -8),
        ("1 < TM < 9 != 8 or missing", True),
        ("family in ('wgmma', 'mma.sync')", True),
    ],
)
def test_expressions_mean_what_python_does(text: str, value: Any) -> None:
    known = {"TM": 8, "TN": 8, "family": "wgmma", "A": (100,)}
    assert Expression(text, "test").of(known) == value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("__import__('os').system('true')", "there are arithmetic, comparisons"),
        ("TM.real", "'TM.real'"),
        ("(lambda: 1)()", "there are arithmetic"),
        ("[x for x in (1, 2)]", "there are arithmetic"),
        ("9 ** 9 ** 9", "there are arithmetic"),
        ("'a' * 1000000000", "no number of a usual size"),
        ("TM +", "is no expression of Python: "),
        ("(" * 5000, "the most is 2000"),
        ("TX > 1", "'TX', which is unknown; there are TM"),
        ("TM // 0", "cannot be computed"),
        ("-" * 1500 + "TM", "is nested too deeply"),
        ("-" * 50 + "TM", "is nested too deeply"),
        ("abs(TM, key=1)", "there are arithmetic"),
    ],
)
def test_other_expressions_are_refused(text: str, told: str) -> None:
    with pytest.raises(TileValueError, match=re.escape(told)) as caught:
        Expression(text, "test").of({"TM": 8})
    assert "<unknown>" not in str(caught.value)


# --- axes and spaces --------------------------------------------------------------------------------------------------


@ct.kernel
def gemm(A, B, C, TM: ct.Constant[int], TN: ct.Constant[int]):
    ct.store(C, (0, 0), ct.mma(ct.load(A, (0, 0), (TM, TN)), ct.load(B, (0, 0), (TN, TM)), ct.zeros((TM, TM))))


GIVEN = {"TM": 64, "TN": 64, **dict.fromkeys(gemm.hint_names)}


def axis(text: str) -> Axis:
    return read_axis(text, gemm, ["TM", "TN"], lambda name: ["access", "narrow"])


def space(*texts: str, where: tuple[str, ...] = ()) -> Space:
    return Space([axis(text) for text in texts], [Expression(text, "a constraint") for text in where], GIVEN)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("TM=32..256*2", (32, 64, 128, 256)),
        ("TM=3..100*3", (3, 9, 27, 81)),
        ("TM=8..7*2,5..5*9", (5,)),
        (f"TM={2**1100}..{2**1101}*2", (2**1100, 2**1101)),
        ("TM=16..48+16,100", (16, 32, 48, 100)),
        ("TM=TN,2*TN", (64, 128)),
        ("stages=2..5", (2, 3, 4, 5)),
        ("warps=2..8", (2, 4, 8)),
        ("warps", (1, 2, 4, 8, 16, 32)),
        ("family=none,mma.sync", (None, "mma.sync")),
        ("layout(a)", ("access", "narrow")),
        ("layout(a)=access.2,'register = [[0, 1]], lane = []'", ("access.2", "register = [[0, 1]], lane = []")),
        ("warps(acc)=4x2,2x4", ("4x2", "2x4")),
        ("family=auto,'fma'", (None, "fma")),
        ("roles=auto,none,one", (None, "none", "one")),  # none is a value of theirs
        ("warps=auto,none,4", (None, 4)),
        ("roles=none,one if TM > 64", None),
    ],
)
def test_axes_as_a_person_writes_them(text: str, values: Any) -> None:
    assert axis(text).at(GIVEN | {"family": None}) == values


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("TK=1,2", "has no axis 'TK'; its constants are TM, TN, its hints num_warps"),
        ("stagse=2", "has no axis 'stagse'; did you mean"),
        ("TM", "say which values, as in TM=64,128"),
        ("family=fpga", "axis family has no value 'fpga'; it has fma, mma.sync, wgmma"),
        ("warps=3", "axis num_warps has no value 3; legal are 1, 2, 4, 8, 16, 32"),
        ("stages=99", "axis num_stages has no value 99; legal are 1 to 16"),
        ("TM=1..10000000", "has more values than 4096"),
        (f"TM=1..{10**500}+1", "has more values than 4096"),
        ("TM=0..8*2", "steps by * from 1 on"),
        ("TM=1 if TN if TM", "more than one condition"),
    ],
)
def test_axes_that_are_not_there(text: str, told: str) -> None:
    with pytest.raises(TileValueError, match=re.escape(told)):
        axis(text).at(GIVEN)


def test_a_space_of_axes_that_depend_on_each_other() -> None:
    found = space("TM=32,64", "TN=TM,2*TM", "stages=2..3 if TM == 64", where=("TM * TN < 8192",)).listed()
    assert found == [
        {"TM": 32, "TN": 32},
        {"TM": 32, "TN": 64},
        {"TM": 64, "TN": 64, "num_stages": 2},
        {"TM": 64, "TN": 64, "num_stages": 3},
    ]


@pytest.mark.parametrize(
    ("texts", "where", "told"),
    [
        (("TM=64,128",), ("TM > 1000",), "the space is empty: the constraints 'TM > 1000' exclude every candidate"),
        (("TM=8..4",), (), "the space is empty: axis TM has no values"),
        (("TM=1", "TM=2"), (), "axis TM is given 2 times"),
        (("TM=TN", "TN=TM"), (), "the axes TM and TN depend on each other; give one of them values of its own"),
        (("TM=1",), ("TX > 1",), "the constraint 'TX > 1' has the name 'TX', which is unknown"),
        (("TM=1..4000", "TN=1..4000"), (), "more than 200000 candidates"),
    ],
)
def test_spaces_that_cannot_be(texts: tuple[str, ...], where: tuple[str, ...], told: str) -> None:
    with pytest.raises(TileValueError, match=re.escape(told)):
        space(*texts, where=where).listed()


def test_an_axis_comes_behind_those_that_it_speaks_of() -> None:
    """However they are written: the condition is of the axis, not of what is given."""
    found = space("stages=2..3 if TM == 128 and family == 'fma'", "TN=TM..2*TM*2", "TM=32,128", "family=fma").listed()
    assert found == [
        {"TM": 32, "TN": 32, "family": "fma"},
        {"TM": 32, "TN": 64, "family": "fma"},
        *({"TM": 128, "TN": n, "family": "fma", "num_stages": stages} for n in (128, 256) for stages in (2, 3)),
    ]
    assert space("TM=TM,2*TM").listed() == [{"TM": 64}, {"TM": 128}]


def test_a_space_that_drawing_does_not_meet_is_not_said_to_be_empty() -> None:
    some = space("TM=1..4000", "TN=1..4000", where=("TM * 4000 + TN == 4001",))
    with pytest.raises(TileValueError, match=r"none of \d+ candidates that were drawn is left by the constraints 'TM"):
        some.random(5, 0)


def test_more_than_a_space_has_is_not_drawn_for_ever() -> None:
    some = space("TM=16,32", "TN=16,32", where=("TM != TN",))
    assert len(some.random(10**12, 0)) == 2


def test_a_study_ends_where_nothing_more_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("optuna", reason="Optuna is an extra: pip install tilewright[sweep]")
    some = space("TM=1..1000", where=("TM == 7",))
    sampler = samplers.make("optuna", some, 5, 0, lambda rows: [])
    first = {"TM": 7}
    monkeypatch.setattr(sampler, "seen", {key_of(first)})
    monkeypatch.setattr(Space, "drawn", lambda *_: None)
    assert sampler.next() is None


def test_as_many_of_a_large_space_are_ranked_as_can_be() -> None:
    """However few the constraints leave of it."""
    some = space("TM=1..2001", "TN=1..100", where=("TN == 1",))
    sampler = samplers.make("model", some, None, 0, lambda rows: [1.0] * len(rows))
    found = {key_of(sampler.next()[0]) for _ in range(samplers.MOST_RANKED)}  # type: ignore[index]
    assert len(found) == samplers.MOST_RANKED and sampler.next() is None


def test_samplers_give_what_the_constraints_leave() -> None:
    some = space("TM=16..256*2", "TN=16..256*2", where=("TM <= TN",))
    every = {key_of(row) for row in some.rows()}
    assert len(every) == 15

    def rank(rows: list[Any]) -> list[float | None]:
        return [None if row["TM"] == 16 else 1 / row["TN"] for row in rows]

    for name, trials in (("model", None), ("exhaustive", None), ("random", 10), ("optuna", 15)):
        sampler, found = samplers.make(name, some, trials, 0, rank), []
        while (row := sampler.next()) is not None:
            found.append(row)
            sampler.told(row[0], 1.0 / row[0]["TM"])
        keys = {key_of(row) for row, _ in found}
        assert len(keys) == len(found) == (trials or 15) and keys <= every
        if name == "model":
            assert found[0][0]["TN"] == 256 and found[-1][0]["TM"] == 16 and found[0][1] == 1
    again = samplers.make("random", some, 10, 0, rank)
    assert again.next() == samplers.make("random", some, 10, 0, rank).next()


def test_brackets_and_quotes_keep_commas() -> None:
    assert parts_of("a,(b,c),'d,e'", ",") == ["a", "(b,c)", "'d,e'"]


# --- shapes -----------------------------------------------------------------------------------------------------------


def test_shapes_of_a_file(place: str, tmp_path: Path) -> None:
    kernel, path = cli.load_kernel(place), tmp_path / "shapes.toml"
    path.write_text(
        'grid = "cdiv(N, T)"\n[arguments]\nX = "f32[{N}]"\nY = "f32[{N}]"\nT = 64\nMODE = 0\n'
        "[[shapes]]\nN = 100\n[[shapes]]\nN = 1000\nT = 32\n"
    )
    one, two = shapes.read(path, kernel)
    assert one.arguments == ("X=f32[100]", "Y=f32[100]", "T=64", "MODE=0") and str(one) == "N=100"
    assert two.grid_of(kernel).of({"T": 32}) == (32,)
    for text, told in (
        ("grid = 3", "has no grid: expected a text"),
        ("nonsense = 1", "has 'nonsense'"),
        ('grid = "1"\n[[shapes]]\nX = "f32[{M}]"', "says nothing of 'Y'"),
        ('grid = "1"\n[arguments]\nX="f32[{M}]"\nY="f32[1]"\nT=1\nMODE=0', "speaks of 'M', which has no value"),
        ("grid = ", "is no TOML"),
    ):
        path.write_text(text)
        with pytest.raises(TileValueError, match=re.escape(told)):
            shapes.read(path, kernel)
    with pytest.raises(TileTypeError, match="a text or a number"):
        path.write_text('grid = "1"\n[arguments]\nX = [1]')
        shapes.read(path, kernel)
    with pytest.raises(TileValueError, match="cannot be read"):
        shapes.read(tmp_path / "none.toml", kernel)
    with pytest.raises(TileValueError, match="has the name 'M', which is unknown"):
        shapes.of_command(ARGUMENTS, "M")[0].grid_of(kernel)


# --- a sweep ----------------------------------------------------------------------------------------------------------


def swept(some: Plan, folder: Path) -> tuple[Sweep, list[Event]]:
    events: list[Event] = []
    sweep = Sweep(some, folder, events.append)
    sweep.run()
    return sweep, events


def test_a_sweep_measures_records_and_goes_on(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "2")  # of the station; on a machine with many, more blocks rank first
    some = plan(place, "T=16,256,3", "MODE=0..2 if T == 256", "opt_level=1 if MODE == 0")
    sweep, events = swept(some, tmp_path)
    found = {records.choice_text(r.choice): r for r in sweep.outcomes[0].records}
    assert set(found) == {
        "as given",
        "T=16 opt_level=1",
        "T=256 opt_level=1",
        "T=256 MODE=1",
        "T=256 MODE=2",
        "T=3 opt_level=1",
    }
    assert "differs from the reference" in found["T=256 MODE=1"].why
    assert "power" in found["T=3 opt_level=1"].why and found["T=256 MODE=2"].why
    assert found["T=16 opt_level=1"].us > 0 and found["T=256 opt_level=1"].us > 0
    assert found["T=256 opt_level=1"].rank == 1 and found["T=256 opt_level=1"].predicted_us > 0
    assert sweep.outcomes[0].given is not None and not any(e.reused for e in events)
    # A sweep that was stopped after some trials, in the middle of a line.
    path = records.file_of(tmp_path)
    lines = path.read_text().splitlines(keepends=True)
    assert len(lines) == 6
    path.write_text("".join(lines[:3]) + lines[3][:50])
    again, events = swept(some, tmp_path)
    assert sum(e.reused for e in events) == 3 and len(again.outcomes[0].records) == 6
    assert again.found.read.damaged == [f"{path}, line 4"]
    assert len(records.read([tmp_path]).records) == 6


def test_candidates_of_one_program_are_measured_once(place: str, tmp_path: Path) -> None:
    """A CPU has no warps: all but the tile's size is the program as given, and no difference of theirs is told."""
    some = plan(place, "warps=1,2,4", "T=64,32", sampler="exhaustive", turns=True, keep=False)
    sweep, _ = swept(some, tmp_path)
    (outcome,) = sweep.outcomes
    found = {records.choice_text(r.choice): r for r in outcome.records}
    twins = {name: r.why for name, r in found.items() if r.is_twin}
    # Of candidates that come to one program, the first whose code was there.
    first, *others = (name for name in found if name.endswith("T=32") and name not in twins)
    assert (
        len(found) == 7
        and not others
        and twins
        == {
            "num_warps=1": "is the same program as: as given",
            "num_warps=2": "is the same program as: as given",
            "num_warps=4": "is the same program as: as given",
            **{
                f"num_warps={n} T=32": f"is the same program as: {first}" for n in (1, 2, 4) if str(n) not in first[:11]
            },
        }
    )
    assert found["num_warps=4"].us == found["as given"].us and found["num_warps=4 T=32"].measured
    assert outcome.decided is not None and outcome.decided.choice in ({}, found[first].choice)
    assert "    5 more come to the same programs as these\n" in command.table(outcome)


@pytest.mark.parametrize("on", ["cpu", "dask://local*1"])
def test_programs_that_have_records_are_not_measured_again(place: str, tmp_path: Path, on: str) -> None:
    """A CPU has no warps: each tile's size is one program, whoever has measured it."""
    if on.startswith("dask"):
        pytest.importorskip("distributed", reason="Dask is an extra: pip install tilewright[sweep]")
    swept(plan(place, "T=32,128", "warps=1", sampler="exhaustive"), tmp_path)
    sweep, _ = swept(plan(place, "T=32,128", "warps=1,2", on=on, sampler="exhaustive"), tmp_path)
    found = {records.choice_text(r.choice): r for r in sweep.outcomes[0].records}
    assert len(found) == 5 and sweep.outcomes[0].reused == 3 and all(r.program for r in found.values())
    for twin, whose in (("T=32 num_warps=2", "T=32 num_warps=1"), ("T=128 num_warps=2", "T=128 num_warps=1")):
        assert found[twin].why == f"is the same program as: {whose}"
        assert (found[twin].program, found[twin].us) == (found[whose].program, found[whose].us)


class InTurns(workers.Local):
    """Two workers: the second has its first task when the first's was told, and the first its next one then."""

    def __init__(self, base: records.Record) -> None:
        self.names, self.count, self.settings, self.is_stopped = ["cpu", "cpu"], 2, Settings("none"), False
        self.opening, self.gone, self.idle, self.unfit = {}, {}, {}, {}
        self.base, self.heard = base, dict[int, list[Any]]()
        self.told, self.second = threading.Event(), threading.Event()

    def _worker(self, number: int) -> Any:
        return types.SimpleNamespace(call=functools.partial(self.called, number))

    def called(self, number: int, method: str, tasks: list[Task], news: Any, timeout: float) -> Any:
        if number == 1:
            self.second.set()
        if number == 1 or self.heard:
            assert self.told.wait(60) and self.second.wait(60)
        self.heard.setdefault(number, []).append([one.choice for one in news])
        choice = dict(tasks[0].choice)
        record = dataclasses.replace(self.base, choice=choice, status="measured", us=1.0, program=str(number))
        return [(0, record)]


def test_who_opens_its_device_late_keeps_nobody_waiting(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What all records have in common is told by the first, who ranks until the others come."""
    late, answered = threading.Event(), list[tuple[int, str]]()
    ask = workers.Local._ask

    def slow(pool: workers.Local, number: int, method: str, *arguments: Any) -> Any:
        if number == 0 and method == "describe":
            assert late.wait(60)
        found = ask(pool, number, method, *arguments)
        answered.append((number, method))
        return found

    monkeypatch.setattr(workers.Local, "_ask", slow)
    (shape,) = shapes.of_command(ARGUMENTS, GRID)
    pool = workers.Local(Settings(place), ["cpu", "cpu"])
    try:
        assert pool.describe(shape).kernel == "scale"
        assert pool.ask_all("rank", [(shape, [{"T": 16}]), (shape, [{"T": 32}])]) and (0, "rank") not in answered
        late.set()
        assert pool.ask("rank", shape, [{"T": 64}]) != [None]
        assert answered[-1] == (0, "rank") and (0, "describe") in answered
        pool.describe(shape)  # each worker has one call at a time
    finally:
        late.set()
        pool.close()


def test_a_shape_that_no_worker_can_open_is_told(place: str) -> None:
    wrong = shapes.of_command(["X=f32[8192]", "Y=f32", *ARGUMENTS[2:]], GRID)
    pool = workers.Local(Settings(place), ["cpu", "cpu"])
    try:
        with pytest.raises(TileError):
            pool.describe(wrong[0])
        assert pool.describe(shapes.of_command(ARGUMENTS, GRID)[0]).kernel == "scale"
    finally:
        pool.close()


def test_what_one_worker_has_measured_is_known_to_the_others() -> None:
    base = records.Record("d", "", "", "k", "", "", "", {}, "failed")
    pool, known = InTurns(base), list[Known]()
    tasks = [Task(shapes.Shape((), (), "1"), (("T", n),)) for n in range(8)]

    def found(task: Task, outcome: records.Record | str) -> None:
        assert isinstance(outcome, records.Record)
        measured = Known.of(outcome)
        assert measured is not None
        known.append(measured)
        if outcome.program == "0":
            pool.told.set()

    pool.run(lambda: tasks.pop() if tasks else None, found, lambda task: True, 0, known)
    told = [one.choice for one in known]
    assert (
        len(told) == 8
        and pool.heard[1][0][0] == told[0]
        and told[0] == next(one.choice for one in known if one.program == "0")
    )
    for news in pool.heard.values():  # each in its order, and once
        every = [choice for some in news for choice in some]
        assert every == told[: len(every)]
    assert Known.of(dataclasses.replace(base, status="measured", us=1.0, program="p", why=f"{SAME}: x")) is None


class Turns:
    """A pool that knows what candidates really take, in microseconds."""

    def __init__(self, truth: dict[str, float]) -> None:
        self.truth, self.asked = truth, list[list[str]]()

    def ask(self, method: str, shape: Any, choices: list[dict[str, Any]], budget: float, keep: bool) -> Decided:
        assert method == "decide" and budget > 0
        every = [{}, *choices]
        self.asked.append([records.choice_text(choice) for choice in every])
        times = {records.choice_text(choice): 1e-6 * self.truth[records.choice_text(choice)] for choice in every}
        best = min(every, key=lambda choice: times[records.choice_text(choice)])
        us, given = (1e6 * times[records.choice_text(choice)] for choice in (best, {}))
        found = tuple((c, Measurement.of([times[records.choice_text(c)]] * 9)) for c in every)
        return Decided(best, us, given, found)


@pytest.mark.parametrize(
    ("lucky", "asked", "won"),
    [
        (1.0, [["as given", "T=1", "T=2", "T=3", "T=4"], ["as given", "T=1", "T=5"]], "T=1"),  # T=5 seems quicker then
        (0.5, [["as given", "T=1", "T=2", "T=3", "T=4"], ["as given", "T=5"]], "as given"),
    ],
)
def test_times_in_turns_count_from_then_on(
    lucky: float, asked: list[list[str]], won: str, place: str, tmp_path: Path
) -> None:
    """What was quick by chance is not told as the best, neither by the table nor by the records."""
    sweep = Sweep(plan(place, "T=16", turns=True, keep=False), tmp_path)
    base = records.Record("CPU", "", "", "scale", "", "", "", {}, "measured", us=100.0, low_us=99.0, high_us=101.0)
    first = {"T=1": 70.0, "T=2": 71.0, "T=3": 72.0, "T=4": 73.0, "T=5": 85.0}
    rows = [base, *(dataclasses.replace(base, choice={"T": int(n[2:])}, us=us) for n, us in first.items())]
    rows.append(dataclasses.replace(rows[2], choice={"T": 2, "num_warps": 4}, why="is the same program as: T=2"))
    outcome = Outcome(shapes.Shape(("T=8",), (), "1"), rows)
    pool = Turns({"as given": 100.0, "T=1": 90.0 / lucky, "T=2": 110.0, "T=3": 111.0, "T=4": 112.0, "T=5": 105.0})
    sweep._decide(pool, outcome)  # type: ignore[arg-type]
    sweep.writer.close()
    assert pool.asked == asked and outcome.best is not None and records.choice_text(outcome.best.choice) == won
    kept = records.by_problem(records.read([tmp_path]).records.values())
    (times,) = kept.values()
    assert records.choice_text(times[0].choice) == won == records.choice_text(outcome.measured[0].choice)
    assert next(r for r in outcome.records if r.is_twin).us == pytest.approx(110.0)


def test_what_is_not_kept_is_decided_in_turns_all_the_same(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TILEWRIGHT_TUNED", str(tmp_path / "tuned.jsonl"))
    words = [word for text in ARGUMENTS for word in ("--arg", text)]
    asked = ["sweep", place, *words, "--grid", GRID, "--on", "cpu", "-o", str(tmp_path / "r"), "--axis", "T=16,32"]
    assert cli.main([*asked, "--forget"]) == 0
    assert "* in turns, " in capsys.readouterr().out and not (tmp_path / "tuned.jsonl").exists()


def test_a_best_that_cannot_be_kept_is_told(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TILEWRIGHT_TUNED", str(tmp_path / "file" / "tuned.jsonl"))
    (outcome,) = swept(plan(place, "T=32,128", turns=True), tmp_path)[0].outcomes
    assert outcome.decided is not None and outcome.decided.times
    assert outcome.note.endswith("tuned.jsonl' cannot be written, so that tune.launch finds no best")


def test_numbers_constants_and_grids_are_other_launches(place: str, tmp_path: Path) -> None:
    arrays = ("X=f32[4096]", "Y=f32[4096]")
    each = [("S=(64,)", "n=1", "64"), ("S=(64,)", "n=20", "64"), ("S=(32,)", "n=1", "64"), ("S=(64,)", "n=1", "32")]
    rows = tuple(shapes.Shape((*arrays, shape, n), (), grid) for shape, n, grid in each)
    some = Plan(place.replace(":scale", ":repeated"), rows, ("S=(16,)",), on="cpu", turns=False)
    sweep, events = swept(some, tmp_path)
    assert not any(e.reused for e in events) and [len(o.records) for o in sweep.outcomes] == [2, 2, 2, 2]
    assert len(records.read([tmp_path]).records) == 8
    again, events = swept(some, tmp_path)
    assert [e.reused for e in events] == [True] * 8
    first, second = ([sorted(r.line() for r in o.records) for o in one.outcomes] for one in (sweep, again))
    assert first == second
    assert again.outcomes[1].records[1].launch == "X=float32[4096] Y=float32[4096] S=(64,) n=20"


def test_two_sweeps_of_one_plan_share_what_they_measure(place: str, tmp_path: Path) -> None:
    """Whichever begins first, and however far it is when the other one begins."""
    given = [piece for argument in ARGUMENTS for piece in ("--arg", argument)]
    axes = ["--axis", "T=16..4096*2", "--axis", "opt_level=1,2", "--grid", GRID, "--on", "cpu", "--forget"]
    line = [sys.executable, "-m", "tilewright", "sweep", place, *given, *axes, "-o", str(tmp_path / "records")]
    both = [subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    measured = 0
    for one in both:
        told, problems = one.communicate()
        assert one.returncode == 0, problems
        assert ": 19 measured, 0 failed" in told
        found = re.search(r"\((\d+) found in the records", told)
        measured += 19 - (int(found[1]) if found else 0)
    assert measured == 19 == len(records.read([tmp_path / "records"]).records)


CLAIMS = """
import sys
from pathlib import Path
from tilewright.sweep import records
from tilewright.sweep.claims import Claims
claims = Claims(Path(sys.argv[1]))
taken = [claims.take(key) for key in records.read([sys.argv[2]]).records]
print(taken, flush=True)
sys.stdin.read()
"""


def test_a_sweep_waits_for_what_another_one_measures_while_that_lives(place: str, tmp_path: Path) -> None:
    some, path = plan(place, "T=16,32,128", sampler="exhaustive"), tmp_path / "trials.jsonl"
    swept(some, tmp_path)
    lines = path.read_text().splitlines(keepends=True)
    assert len(lines) == 4
    path.write_text("".join(lines[:2]))
    (tmp_path / "claimed").write_text("".join(lines[2:]))
    first, second = (record for record in map(records.parse, lines[2:]) if record is not None)
    command_line = [sys.executable, "-c", CLAIMS, str(path), str(tmp_path / "claimed")]
    other = subprocess.Popen(command_line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None and other.stdout.readline() == "[True, True]\n"
    waited: list[int] = []

    def waits(count: int) -> None:
        """The other one records the first, and dies within the second."""
        waited.append(count)
        if count == 2:
            writer = records.Writer(tmp_path)
            writer.add(dataclasses.replace(first, us=12345.0))
            writer.close()
        else:
            other.kill()
            other.communicate()

    sweep = Sweep(some, tmp_path, None, waits)
    sweep.run()
    found = {r.choice.get("T"): r for r in sweep.outcomes[0].records}
    assert waited == [2, 1] and sweep.outcomes[0].reused == 3
    assert found[first.choice.get("T")].us == 12345.0 and found[second.choice.get("T")].measured
    assert len(path.read_text().splitlines()) == 4


def test_a_claim_is_of_one_sweep_until_it_is_free(tmp_path: Path) -> None:
    first, second = (Claims(tmp_path / "trials.jsonl") for _ in range(2))
    assert first.take((1,)) and not first.take((1,)) and not second.take((1,)) and second.take((2,))
    first.free((1,))
    assert second.take((1,))
    second.close()
    assert first.take((1,)) and first.take((2,))
    first.close()


def test_a_candidate_that_hangs_costs_its_trial(place: str, tmp_path: Path) -> None:
    sweep, _ = swept(plan(place, "MODE=3", "T=16,32", sampler="exhaustive", timeout=0.5, trials=1), tmp_path)
    hung = next(r for r in sweep.outcomes[0].records if r.choice)
    assert "did not end within" in hung.why and sweep.outcomes[0].given is not None


def test_a_kernel_that_writes_what_it_reads(place: str, tmp_path: Path) -> None:
    some = Plan(
        place.replace(":scale", ":increment"),
        (shapes.Shape(("X=f32[4096]", "T=64"), (), "cdiv(X.shape[0], T)"),),
        ("T=64..1024*2",),
        on="cpu",
        turns=False,
    )
    sweep, _ = swept(some, tmp_path)
    assert len(sweep.outcomes[0].measured) == 5, "each saw the same array"


def test_a_worker_that_dies_costs_no_trial_that_is_not_to_blame(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []

    def kill(event: Event) -> None:
        if not killed and event.record.choice:
            killed.append(pool.workers[0].process.pid)
            os.kill(killed[0], signal.SIGKILL)

    sweep = Sweep(plan(place, "T=16..4096*2", sampler="exhaustive"), tmp_path, kill)
    pool = workers.Local(sweep.settings, ["cpu"])
    monkeypatch.setattr(run, "open_pools", lambda text, settings: [pool])
    sweep.run()
    assert killed and len(sweep.outcomes[0].measured) == len(sweep.outcomes[0].records) == 9


@pytest.mark.parametrize("count", [1, 2])
def test_a_candidate_that_kills_its_worker_costs_its_trial(place: str, tmp_path: Path, count: int) -> None:
    """Others are compiled at the same time, which are not to blame."""
    file = Path(place.rpartition(":")[0])
    kills = f"""
import os, signal
from tilewright.sweep import station

def compiled(session, candidate, *more, before=station.Session.compiled):
    if dict(candidate.constants).get("T") == 128:
        os.kill(os.getpid(), signal.SIGKILL)
    return before(session, candidate, *more)

if os.getpid() != {os.getpid()}:
    station.Session.compiled = compiled
"""
    killing = tmp_path / "killing.py"
    killing.write_text(file.read_text() + kills)
    some = plan(f"{killing}:scale", "T=16..4096*2", sampler="exhaustive", on=f"cpu*{count}")
    sweep, _ = swept(some, tmp_path / "records")
    (died,) = [r for r in sweep.outcomes[0].records if not r.measured]
    assert died.choice == {"T": 128} and "its worker crashed with signal 9" in died.why
    assert len(sweep.outcomes[0].measured) == 8


def test_what_is_interrupted_is_no_failure(place: str, tmp_path: Path) -> None:
    """Ctrl-C of a terminal comes to every process; here while a candidate hangs, which would take a minute."""
    words = [word for text in ARGUMENTS for word in ("--arg", text)]
    axes = ["--axis", "MODE=0,3", "--axis", "T=16,32", "--sampler", "exhaustive", "--timeout", "60", "--forget"]
    heeds = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)"  # a shell's `&` has it ignored
    )
    line = [sys.executable, "-c", f"{heeds}; from tilewright import cli; sys.exit(cli.main())", "sweep", place, *words]
    line += ["--grid", GRID, *axes, "--on", "cpu"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        [*line, "-o", str(tmp_path)], stdout=-1, stderr=-1, text=True, env=environment, start_new_session=True
    ) as sweep:
        while len(records.read([tmp_path]).records if records.file_of(tmp_path).exists() else ()) < 3:
            assert sweep.poll() is None
            time.sleep(0.05)
        os.killpg(sweep.pid, signal.SIGINT)
        told, problems = sweep.communicate()
    assert sweep.returncode == 130, problems
    assert "Traceback" not in problems and "3 measured, 0 failed\n" in told
    found = list(records.read([tmp_path]).records.values())
    assert len(found) == 3 and all(r.measured for r in found)


def one(station: Station, task: Task) -> Record:
    ((at, record),) = station.measure([task])
    assert at == 0
    return record


def all_of(station: Station, tasks: list[Task]) -> list[Record]:
    """In the order in which they came."""
    found, left = [], list(tasks)
    while left:
        done = station.measure(left)
        assert done and len({at for at, _ in done}) == len(done)
        assert all(dict(left[at].choice) == record.choice for at, record in done)
        found += [record for _, record in done]
        left = [task for at, task in enumerate(left) if at not in dict(done)]
    return found


def test_one_process_measures_all_candidates(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one costs a second on a GPU. It is replaced only when a candidate takes it along."""
    started: list[Any] = []
    begin = SafeBench._start
    monkeypatch.setattr(SafeBench, "_start", lambda bench: started.append(bench) or begin(bench))
    station, (shape,) = Station(Settings(place, timeout=1.0), "cpu"), shapes.of_command(ARGUMENTS, GRID)
    try:
        tasks = [Task(shape, (("T", 16 << i),)) for i in range(4)]
        found = all_of(station, tasks)
        assert all(r.measured for r in found) and len(started) == 1
        assert not one(station, Task(shape, (("MODE", 3),))).measured
        assert one(station, Task(shape, (("T", 512),))).measured and len(started) == 2
    finally:
        station.close()


def test_a_station_that_is_no_longer_needed_leaves_nothing(place: str) -> None:
    """Its copy of the arguments lies in memory, however the sweep ends."""
    (shape,) = shapes.of_command(ARGUMENTS, GRID)
    for ends in (Worker.close, lambda worker: worker.connection.close()):
        worker = Worker("station", Settings(place), "cpu")
        ((_, record),) = worker.call("measure", [Task(shape, ())], timeout=60.0)
        assert record.measured
        held = [os.readlink(entry) for entry in Path(f"/proc/{worker.process.pid}/fd").iterdir() if entry.is_symlink()]
        copies = [Path(path) for path in held if Path(path).name.startswith(PREFIX)]
        assert copies and all(path.exists() for path in copies)
        ends(worker)
        worker.process.wait(30)
        worker.kill()
        assert not any(path.exists() for path in copies)


def test_stations_share_the_processors_of_their_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(32)))
    assert [compiling_at_once(n, 0) for n in (1, 2, 4, 64)] == [24, 14, 6, 2]
    assert [compiling_at_once(n, None) for n in (0, 1, 8)] == [4, 4, 4], "on a CPU they slow what is measured"


def test_a_sweep_has_more_workers_than_candidates(place: str, tmp_path: Path) -> None:
    """And than there are processors: each is a fork."""
    sweep, _ = swept(plan(place, "T=16..256*2", on="cpu*24", sampler="exhaustive"), tmp_path)
    assert len(sweep.outcomes[0].measured) == 5


def test_a_budget_ends_a_sweep(place: str, tmp_path: Path) -> None:
    sweep, _ = swept(plan(place, "T=16..4096*2", "opt_level", budget=0.001), tmp_path)
    assert sum(len(o.records) for o in sweep.outcomes) == 0


@pytest.mark.parametrize("on", ["cpu", "dask://local*1"])
def test_what_was_taken_in_advance_is_left_when_the_time_is_over(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on: str
) -> None:
    """And is nobody's: the next sweep measures it."""
    if on.startswith("dask"):
        pytest.importorskip("distributed", reason="Dask is an extra: pip install tilewright[sweep]")
    over: list[Event] = []
    monkeypatch.setattr(Sweep, "_is_over", lambda sweep: len(over) >= 2)
    sweep = Sweep(plan(place, "T=16..4096*2", on=on, sampler="exhaustive"), tmp_path, over.append)
    sweep.run()
    assert len(sweep.outcomes[0].records) == 2
    over.clear()
    monkeypatch.undo()
    assert len(swept(plan(place, "T=16..4096*2", sampler="exhaustive"), tmp_path)[0].outcomes[0].measured) == 9


def test_the_tolerance_of_a_sweep_is_that_of_its_turns(place: str, tmp_path: Path) -> None:
    some = plan(place, "MODE=1", "T=64,32", turns=True, keep=False, tolerance=1e9)
    (outcome,) = swept(some, tmp_path)[0].outcomes
    assert outcome.decided is not None
    decided = {records.choice_key(choice) for choice, _ in outcome.decided.times}
    assert {records.choice_key(r.choice) for r in outcome.measured} == decided and len(decided) == 3


@pytest.mark.parametrize(
    ("axes", "settings", "told"),
    [
        (("TX=1",), {}, "has no axis 'TX'"),
        (("T=64",), {"where": ("T > 64",)}, "exclude every candidate"),
        (("layout(x)",), {}, "has no values on a CPU"),
        (("warps(x)",), {}, "say which values, as in warps(x)=4x2"),
        (("T=64",), {"sampler": "magic"}, "expected one of model, exhaustive, random, optuna"),
        (("T=64",), {"trials": 0}, "--trials 0"),
        (("T=64",), {"seed": -1, "sampler": "optuna"}, "--seed -1: expected 0 to 4294967295"),
        (
            ("T=64",),
            {"where": ("stages >= 3",)},
            "; stages is None where it is left to the compiler: stages == None or",
        ),
        (("T=64",), {"on": "tpu"}, "'tpu' is no device"),
        (("T=64",), {"on": "cuda:77"}, "this host has"),
    ],
)
def test_what_a_sweep_cannot_do_is_named(
    place: str, tmp_path: Path, axes: tuple[str, ...], settings: dict[str, Any], told: str
) -> None:
    with pytest.raises(TileError, match=re.escape(told)):
        swept(plan(place, *axes, **settings), tmp_path)


def test_a_kernel_that_does_not_run_as_given(place: str, tmp_path: Path) -> None:
    some = plan(place, "T=64,128")
    wrong = Plan(place, tuple(shapes.of_command([*ARGUMENTS[:3], "MODE=2"], GRID)), some.axes, on="cpu")
    with pytest.raises(TileValueError, match="no candidate of kernel scale works"):
        swept(wrong, tmp_path)


def test_the_first_that_works_is_the_reference_where_the_kernel_as_given_does_not_compile(
    place: str, tmp_path: Path
) -> None:
    """Others are compared with it, as ever."""
    wrong = shapes.of_command([*ARGUMENTS[:3], "MODE=2"], GRID)
    sweep, _ = swept(Plan(place, tuple(wrong), ("MODE=0,1",), on="cpu", turns=False, sampler="exhaustive"), tmp_path)
    found = {records.choice_text(r.choice): r for r in sweep.outcomes[0].records}
    assert not found["as given"].measured and found["MODE=0"].measured
    assert "Y differs from the reference" in found["MODE=1"].why


def test_a_kernel_that_crashes_as_given_is_asked_once(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The arrays are given back by then."""

    def crash(bench: SafeBench, *_: Any, timeout: float) -> Any:
        raise LostError("crashed with signal 11")

    session = Session(Settings(place), "cpu", shapes.of_command(ARGUMENTS, GRID)[0])
    monkeypatch.setattr(SafeBench, "call", crash)
    for _ in range(2):
        with pytest.raises(TileValueError, match="kernel scale as given does not run: crashed with signal 11"):
            session.start()
        assert session.bench is None and session.path is not None and not session.path.exists()


def test_others_are_measured_while_one_is_compiled_or_told(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (shape,) = shapes.of_command(ARGUMENTS, GRID)
    tasks = [Task(shape, (("T", T),)) for T in (16, 32, 128, 256)]
    station, may_go_on, compiled = Station(Settings(place), "cpu"), threading.Event(), Session.compiled

    def slowly(session: Session, candidate: Any, *more: Any) -> Any:
        if dict(candidate.constants) == {"T": 16}:
            assert may_go_on.wait(60)
        return compiled(session, candidate, *more)

    monkeypatch.setattr(Session, "compiled", slowly)
    try:
        assert {r.choice["T"] for r in all_of(station, tasks[:0])} == set()
        first = station.measure(tasks)
        others = [station.trials[task].record for task in tasks if task in station.trials and task is not tasks[0]]
        assert all(ahead.result(60).measured for ahead in others), "nobody asked again"
        left = [task for at, task in enumerate(tasks) if at not in dict(first)]
        again = station.measure(left)
        assert [r for _, r in again] == [ahead.result() for ahead in others]
        assert {r.choice["T"] for _, r in [*first, *again]} == {32, 128, 256} and not station.trials[
            tasks[0]
        ].is_compiled
        may_go_on.set()
        assert one(station, tasks[0]).choice == {"T": 16} and station.trials == {}
    finally:
        may_go_on.set()
        station.close()


def test_what_compiles_for_too_long_is_given_up(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (shape,) = shapes.of_command(ARGUMENTS, GRID)
    station, may_end, compiled = (
        Station(Settings(place, compile_timeout=0.2), "cpu"),
        threading.Event(),
        Session.compiled,
    )

    def endlessly(session: Session, candidate: Any, *more: Any) -> Any:
        assert not candidate.constants or may_end.wait(60)
        return compiled(session, candidate, *more)

    monkeypatch.setattr(Session, "compiled", endlessly)
    try:
        found = one(station, Task(shape, (("T", 16),)))
        assert not found.measured and found.why == "takes longer than 0 s to compile" and found.choice == {"T": 16}
        may_end.set()
        assert one(station, Task(shape, (("T", 32),))).measured
    finally:
        may_end.set()
        station.close()


@pytest.mark.parametrize("extent", ["1e3", "True", "{N"])
def test_an_extent_that_is_no_number(place: str, tmp_path: Path, extent: str) -> None:
    shape = shapes.Shape((f"X=f32[{extent}]", "Y=f32[64]", "T=64", "MODE=0"), (), GRID)
    with pytest.raises(TileValueError, match=f"the extent '{re.escape(extent)}' is no number"):
        Sweep(Plan(place, (shape,), ("T=32",), on="cpu"), tmp_path)


def test_a_shape_after_one_that_cannot_be_opened_is_opened_anew(place: str) -> None:
    """The arrays of the shape before both are given back."""
    good, bad = shapes.of_command(ARGUMENTS, GRID)[0], shapes.of_command(["X=f32[9]", "Y=f32", *ARGUMENTS[2:]], GRID)[0]
    station = Station(Settings(place), "cpu")
    try:
        station.describe(good)
        before = station.session
        with pytest.raises(TileError):
            station.describe(bad)
        assert one(station, Task(good, ())).measured and station.session is not before
    finally:
        station.close()


def test_arrays_that_are_not_aligned_are_measured_as_such(place: str) -> None:
    arguments = ["X=f32[8192]unaligned", *ARGUMENTS[1:]]
    station = Station(Settings(place), "cpu")
    try:
        aligned, other = (station.describe(shapes.of_command(each, GRID)[0]) for each in (ARGUMENTS, arguments))
        assert aligned.arguments == other.arguments and aligned.key != other.key
        assert "(1)@16" in other.shape_class and "(1)@4" in other.shape_class
    finally:
        station.close()


def test_constants_without_a_form_in_json_are_resumed(place: str, tmp_path: Path) -> None:
    shape = shapes.of_command([*ARGUMENTS[:3], "MODE=1e400"], GRID)
    some = Plan(place, tuple(shape), ("T=64,32", "MODE=(1,(2,3)),5"), on="cpu", turns=True, keep=False)
    first, _ = swept(some, tmp_path)
    again, events = swept(some, tmp_path)
    assert len(events) == len(first.outcomes[0].records) == 5 and all(event.reused for event in events)
    assert not again.found.read.damaged
    assert {str(r.choice) for r in again.outcomes[0].records} == {str(r.choice) for r in first.outcomes[0].records}


def test_a_shape_that_cannot_be_measured_leaves_the_others(place: str, tmp_path: Path) -> None:
    """A sweep over many shapes runs overnight. What is wrong with one is told at the end."""
    large, small = "X=f32[99999999999999]", "X=f32[64]"
    each = ((large, "MODE=0"), (small, "MODE=2"), (small, "MODE=0"))
    rows = [shapes.Shape((array, "Y=f32[64]", "T=64", mode), (), GRID) for array, mode in each]
    sweep = Sweep(Plan(place, tuple(rows), ("T=32",), on="cpu", turns=False), tmp_path)
    with pytest.raises(TileValueError, match=r"allocate .*\(and 1 more shapes are without a measurement\)"):
        sweep.run()
    assert [len(outcome.measured) for outcome in sweep.outcomes] == [0, 2]


def test_workers_that_are_not_what_was_asked_for(place: str) -> None:
    if not gpu_count():
        with pytest.raises(TileValueError, match="this worker has no GPU, which cuda:0 asks for"):
            Station(Settings(place), "cuda:0")
    station, (shape,) = Station(Settings(place), "cpu"), shapes.of_command(ARGUMENTS, GRID)
    with pytest.raises(TileValueError, match="and the sweep is of a H200; name the devices of one kind"):
        station.measure([Task(shape, (), 0, "H200")])
    station.close()


# --- a cluster --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["cpu*0", "cpu*1000", "", "cpu,,cpu", "cuda:0,cuda:0", "cuda*2", "cuda,cuda:1"])
def test_devices_that_nobody_can_mean(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker at all, or two on one GPU, which would measure each other."""
    monkeypatch.setattr(workers, "gpu_count", lambda: 2)
    with pytest.raises(TileValueError, match="is no device; expected|is named 2 times; two workers on one GPU"):
        workers.devices(text)
    assert workers.devices("cuda") == workers.devices("cuda:0, cuda:1") == ["cuda:0", "cuda:1"]
    assert workers.devices("cpu*2,cuda:1") == ["cpu", "cpu", "cuda:1"]


def test_a_station_sees_its_gpu_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver opens every GPU that a process sees."""
    monkeypatch.setattr(workers, "gpu_count", lambda: 4)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert workers.alone("cuda:2") == ("cuda:0", {"CUDA_VISIBLE_DEVICES": "2"}) and workers.alone("cpu") == ("cpu", {})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, GPU-1f,0,1")
    assert workers.alone("cuda:1") == ("cuda:0", {"CUDA_VISIBLE_DEVICES": "GPU-1f"})
    monkeypatch.setattr(workers, "gpu_count", lambda: 1)
    assert workers.alone("cuda:0") == ("cuda:0", {})
    worker = Worker(environment={"TILEWRIGHT_CUDA_DRIVER": "/nowhere/libcuda.so"})
    with pytest.raises(FailedError, match="no CUDA driver: /nowhere/libcuda.so could not be opened"):
        worker.call("open", 0, timeout=60.0)
    worker.kill()


def test_a_cluster_of_two_processes(place: str, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="Dask is an extra: pip install tilewright[sweep]")
    some = plan(place, "T=32..256*2", on="dask://local*2", sampler="exhaustive")
    sweep, _ = swept(some, tmp_path)
    assert len(sweep.outcomes[0].measured) == 4
    assert len(records.read([tmp_path]).records) == 4


def test_workers_read_the_kernel_by_its_path(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may run in another folder, and on a host that does not have it."""
    monkeypatch.chdir(Path(place).parent)
    path = Path(place.rpartition(":")[0])
    sweep = Sweep(plan(f"{path.name}:scale", "T=16"), tmp_path)
    assert sweep.settings.place == place
    gone = dataclasses.replace(sweep.settings, place=f"{path.parent}/gone.py:scale")
    with pytest.raises(
        TileValueError, match=re.escape(f"has no '{path.parent}/gone.py', from which it reads the kernel")
    ):
        serve(gone, "cpu", "describe", sweep.plan.shapes[0])
    sweep.writer.close()


def test_workers_that_have_another_source_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a module that the kernel's file imports: that of a worker which lives on stays as it was."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "swept_helper.py").write_text("FACTOR = 2.0\n")
    path = tmp_path / "swept_kernel.py"
    path.write_text(f"import swept_helper\n{KERNELS}".replace("x * 2.0", "x * swept_helper.FACTOR"))
    some = plan(f"{path}:scale", "T=32")
    assert not swept(some, tmp_path / "records")[0].stale
    edited = Sweep(some, tmp_path / "records")
    monkeypatch.setattr(sys.modules["swept_helper"], "FACTOR", 3.0)
    edited.run()
    assert edited.stale.startswith("the workers have another source of kernel scale than this process has")
    command._report(edited, str(tmp_path / "page.html"))
    assert edited.stale in capsys.readouterr().err


def test_a_scheduler_that_is_not_there(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="Dask is an extra: pip install tilewright[sweep]")
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 1)
    with pytest.raises(GoneError, match="there is no Dask scheduler at '127.0.0.1:1'"):
        workers.open_pools("dask://127.0.0.1:1", Settings(place))


def test_a_scheduler_that_goes_away_leaves_what_was_measured(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed", reason="Dask is an extra: pip install tilewright[sweep]")
    some = plan(place, "T=16..4096*2", "opt_level", on="dask://local*1")
    (pool,) = workers.open_pools(some.on, Settings(place))
    monkeypatch.setattr(run, "open_pools", lambda text, settings: [pool])

    def leave(event: Event) -> None:
        if event.done == 3:
            pool.client.close(timeout=1)  # type: ignore[attr-defined]

    with pytest.raises(TileError, match="scheduler is gone"):
        Sweep(some, tmp_path, leave).run()
    assert len(records.read([tmp_path]).records) >= 3


def test_a_worker_of_a_cluster_that_dies(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one, or its successor, measures what it had; at most its own trials are lost, and told."""
    pytest.importorskip("distributed", reason="Dask is an extra: pip install tilewright[sweep]")
    some = plan(place, "T=16..4096*2", on="dask://local*2", sampler="exhaustive")
    (pool,) = workers.open_pools(some.on, Settings(place))
    monkeypatch.setattr(run, "open_pools", lambda text, settings: [pool])
    killed: list[int] = []

    def kill(event: Event) -> None:
        if not killed:
            killed.append(min(pool.client.run(os.getpid).values()))  # type: ignore[attr-defined]
            os.kill(killed[0], signal.SIGKILL)

    sweep = Sweep(some, tmp_path, kill)
    sweep.run()
    (outcome,) = sweep.outcomes
    lost = [r for r in outcome.records if not r.measured]
    assert killed and len(outcome.records) == 9 and len(lost) <= 2 and all("its worker" in r.why for r in lost)


def test_what_goes_wrong_in_a_cluster_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that die over a question, and those that have no Tilewright."""
    distributed = pytest.importorskip("distributed", reason="Dask is an extra: pip install tilewright[sweep]")
    address = types.SimpleNamespace(address="tcp://h:1")
    pool = cluster.Cluster.__new__(cluster.Cluster)
    for problem, kind, told in (
        (
            distributed.KilledWorker("serve", address, 3),
            TileError,
            "workers of the cluster that were asked to rank died",
        ),
        (
            ModuleNotFoundError("No module named 'tilewright'"),
            GoneError,
            "No module named 'tilewright'; all need",
        ),
        (distributed.CancelledError("gone"), GoneError, "the Dask scheduler is gone: gone"),
    ):

        def result(timeout: float, problem: BaseException = problem) -> None:
            raise problem

        future = types.SimpleNamespace(result=result)
        monkeypatch.setattr(pool, "_submit", lambda *_, future=future: future, raising=False)
        for ask in (lambda: pool.ask("rank"), lambda: pool.ask_all("rank", [()])):
            with pytest.raises(kind, match=told):
                ask()


# --- the command, and the page ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "decided, told",
    [
        (
            Decided({"T": 16}, 50.0, 100.0),
            "* in turns, T=16 took 50.0 us, and the kernel as given 100.0: 2.000 times as fast",
        ),
        (Decided({}, 90.0, 90.0), "* in turns, none of the best was quicker than the kernel as given (90.0 us)"),
        (None, "  1.250 times as fast as given"),
    ],
)
def test_what_is_won_is_told_by_times_in_turns(decided: Decided | None, told: str) -> None:
    """Those of the table are of different moments, in which the machine had more or less to do."""
    base = records.Record("CPU", "", "", "scale", "", "", "", {}, "measured", us=100.0)
    rows = [base, dataclasses.replace(base, choice={"T": 16}, us=80.0)]
    assert told in command.table(Outcome(shapes.Shape(("T=8",), (), "1"), rows, decided))


def test_a_mistake_leaves_no_word_of_records(place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [word for text in ARGUMENTS for word in ("--arg", text)]
    asked = ["sweep", place, *words, "--grid", GRID, "--on", "cpu", "-o", str(tmp_path / "r"), "--axis"]
    assert cli.main([*asked, "wraps=2"]) == 1 and "records are in" not in capsys.readouterr().out
    assert cli.main([*asked, "opt_level="]) == 1
    assert "no values are behind the '='; 'opt_level' alone takes all" in capsys.readouterr().err


def test_the_command_from_axes_to_records_and_a_page(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TILEWRIGHT_TUNED", str(tmp_path / "tuned.jsonl"))
    words = [word for text in ARGUMENTS for word in ("--arg", text)]
    folder = tmp_path / "records"
    assert (
        cli.main(["sweep", place, *words, "--grid", GRID, "--axis", "T=16,1024", "--on", "cpu", "-o", str(folder)]) == 0
    )
    out = capsys.readouterr().out
    assert "2 measured" not in out and "3 measured, 0 failed\n" in out and "* in turns, " in out
    assert (folder / "scale.html").is_file() and (tmp_path / "tuned.jsonl").is_file()
    assert cli.main(["records", "best", str(folder)]) == 0
    assert "next: " in capsys.readouterr().out
    (folder / "scale.html").unlink()
    with monkeypatch.context() as without:
        without.setattr("importlib.util.find_spec", lambda name: None)  # no matplotlib
        again = ["sweep", place, *words, "--grid", GRID, "--axis", "T=16,1024", "--on", "cpu", "-o", str(folder)]
        assert cli.main(again) == 0
    out = capsys.readouterr().out
    assert "no page was drawn: pip install" in out and not (folder / "scale.html").exists()
    assert "3 measured, 0 failed (3 found in the records)" in out
    for wrong, told in (
        (["sweep", place, "--axis", "T=1"], "say how many blocks"),
        (["sweep", place, "--arg", "X=f32[1]", "--shapes", "x.toml", "--axis", "T=1"], "both say what"),
        (["sweep", place, *words, "--grid", GRID], "a sweep needs an axis"),
        (["records", "list", str(tmp_path / "nowhere")], "there are no records"),
        (["records", "merge", str(folder)], "needs -o"),
    ):
        assert cli.main(wrong) == 1
        assert told in capsys.readouterr().err


def test_a_full_disk_is_named_whatever_else_it_takes(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page does not fit either; the error is that of the records, and what was measured is shown."""
    add, added = records.Writer.add, []

    def add_two(writer: records.Writer, record: records.Record) -> None:
        if len(added) == 2:
            raise TileError("'trials.jsonl' takes no more records: No space left on device")
        added.append(add(writer, record))

    def no_page(*_: Any) -> None:
        raise TileError("the page 'scale.html' cannot be written: No space left on device")

    monkeypatch.setattr(records.Writer, "add", add_two)
    monkeypatch.setattr(page, "write", no_page)
    arguments = [word for text in ARGUMENTS for word in ("--arg", text)]
    rest = ["--grid", GRID, "--axis", "T=16..256*2", "--on", "cpu", "--forget", "-o", str(tmp_path)]
    assert cli.main(["sweep", place, *arguments, *rest]) == 1
    told = capsys.readouterr()
    assert "2 measured" in told.out and "as given" in told.out
    assert "the page 'scale.html' cannot be written" in told.err
    assert told.err.strip().splitlines()[-1].endswith("takes no more records: No space left on device")
    assert len(records.read([tmp_path]).records) == 2


class Checker(html.parser.HTMLParser):
    """Tags that are closed in order, and what the page would fetch."""

    EMPTY = ("meta", "br", "path", "use", "rect", "image", "link")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "action", "data") and not value.startswith("#"):
                self.fetched.append(value)
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.EMPTY:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.EMPTY:
            assert self.open.pop() == tag


def some_records(count: int = 40) -> list[records.Record]:
    work = {"blocks": 8.0, "moved": 1e6, "unique": 1e6, "flop": 0.0, "operand_bytes": 0.0, "bits": 0.0, "elements": 1e6}
    work |= {"carried": 0.0, "turn": 0.0, "known": 1.0}
    machine = {"is_gpu": 0.0, "units": 2.0, "clock": 3e9, "bandwidth": 2e10, "shared_bytes": 1e6, "cpu_flop": 32.0}
    machine["cpu_block_ns"] = 200.0
    base = {"device": "a <b>CPU</b>", "driver": "none", "compiler": "1", "kernel": "scale", "source": "ab"}
    found = []
    for i in range(count):
        choice = (
            {} if i == 0 else {"T": 16 << i % 7, "layout(x)": f"kind.{i % 3}", "family": "<script>alert(1)</script>"}
        )
        found.append(
            records.Record(
                **base,
                shape_class="f",
                arguments="X=f",
                choice=choice,
                status="failed" if i % 9 == 8 else "measured",
                why="refused" if i % 9 == 8 else "",
                us=10.0 + i,
                low_us=9.0 + i,
                high_us=11.0 + i,
                predicted_us=12.0 + i % 5,
                rank=i,
                work=work,
                machine=machine,
                given={"T": 64},
            )
        )
    return found


def test_a_page_stands_alone_and_escapes_what_records_say() -> None:
    pytest.importorskip("matplotlib", reason="pictures are matplotlib's")
    text = page.page("a <title>", some_records())
    checker = Checker()
    checker.feed(text)
    assert checker.open == [] and checker.fetched == []
    assert "<script>alert(1)" not in text and "<b>CPU" not in text and "purl.org" not in text
    assert text.count("<svg") == 3 and "None" not in re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL)
    ids = re.findall(r' id="(m[0-9a-f]{6,})"', text)
    assert len(ids) == len(set(ids)), "pictures do not use each other's parts"


def browser() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((found for name in names if (found := shutil.which(name))), None)


def test_a_page_of_many_problems_draws_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="draws the pictures")
    monkeypatch.setattr(page, "MOST_DRAWN", 1)
    rows = [dataclasses.replace(r, kernel=f"kernel{n}") for n in range(3) for r in some_records(3)]
    text = page.page("Records", rows)
    assert text.count("<h2>") == 3 and 1 <= text.count("<svg") <= 3
    assert text.count("The first 1 problems have pictures") == 2


def test_what_other_compilers_made_is_shown_by_itself() -> None:
    pytest.importorskip("matplotlib", reason="draws the pictures")
    rows = [dataclasses.replace(r, compiler=f"0.{n}") for n in (1, 2) for r in some_records(3)]
    text = page.page("Records", rows)
    assert text.count("<h2>") == 2 and "compiler 0.1</h2>" in text and "compiler 0.2</h2>" in text


def test_a_page_that_is_there_stays_where_the_next_one_has_no_room(tmp_path: Path, monkeypatch: Any) -> None:
    pytest.importorskip("matplotlib", reason="draws the pictures")
    path = tmp_path / "scale.html"
    page.write(path, "Sweep", some_records(3))
    assert path.stat().st_mode & 0o777 == 0o644
    before = path.read_text()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fchmod", full)
    with pytest.raises(TileError, match="cannot be written: No space left on device"):
        page.write(path, "Sweep", some_records(4))
    assert path.read_text() == before and list(tmp_path.iterdir()) == [path]


def test_names_and_values_with_dollars_are_no_formulas() -> None:
    pytest.importorskip("matplotlib", reason="draws the pictures")
    rows = [
        dataclasses.replace(r, choice={"a$\\frac{$": f"$\\bad{{$ {i}"} if i else {})
        for i, r in enumerate(some_records(3))
    ]
    assert "$\\bad{$ 1" in page.page("Sweep", rows)


def test_ticks_are_numbers_and_no_label_lies_on_the_roof() -> None:
    plt = pytest.importorskip("matplotlib.pyplot", reason="pictures are matplotlib's")
    rows = [r for r in some_records() if r.measured]
    figure, axis = plt.subplots(figsize=(10, 4.2))
    page._against_model(axis, rows)
    figure.canvas.draw()
    ticks = [text.get_text() for way in (True, False) for text in axis.get_yticklabels(minor=way) if text.get_text()]
    assert len(ticks) > 2 and all(0 < float(tick) < 1000 for tick in ticks)
    figure, axis = plt.subplots(figsize=(10, 4.2))
    page._roofline(axis, rows)
    figure.canvas.draw()
    (label,) = [text for text in axis.texts if "GB/s" in text.get_text()]
    box, line = label.get_window_extent(), axis.lines[0]
    (x0, y0), (x1, y1), _ = axis.transData.transform(line.get_xydata())
    at_right = y0 + (y1 - y0) * (box.x1 - x0) / (x1 - x0)
    assert at_right <= box.y0 + 1 and box.x0 > axis.get_window_extent().x0


@pytest.mark.skipif(browser() is None, reason="there is no Chromium here")
def test_a_browser_opens_the_page(tmp_path: Path) -> None:
    """It runs the script without an error, and asks no other place for anything."""
    path = tmp_path / "page.html"
    sort = "<script>document.querySelectorAll('table.sorts')[1].tHead.rows[0].cells[1].click()</script></body>"
    path.write_text(page.page("Sweep", some_records()).replace("</body>", sort))
    command = [str(browser()), "--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"]
    done = subprocess.run(
        [*command, f"--user-data-dir={tmp_path}/profile", "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert 'data-ready="1"' in done.stdout, done.stderr[-2000:]
    rows = re.findall(r'<tr class="[^"]*"><td data-v="\d+">\d+</td><td class="t" data-v="(\d+)">', done.stdout)
    assert rows == sorted(rows, key=int) and len(rows) == 40
    assert "Uncaught" not in done.stderr


def test_a_regression_run_compares_with_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "bench"))
    import regress

    def run_it(number: int) -> tuple[int, str]:
        path = tmp_path / f"{number}-regress.jsonl"
        monkeypatch.setattr(sys, "argv", ["regress.py", "--on", "cpu", "--only", "softmax", "--out", str(path)])
        return regress.main(), capsys.readouterr().out

    code, out = run_it(1)
    assert code == 0 and "the first run on this device" in out
    (first,) = records.read([tmp_path]).records.values()
    fast = dataclasses.replace(first, us=first.us / 9, low_us=first.us / 10, high_us=first.us / 8)
    (tmp_path / "1-regress.jsonl").write_text(fast.line())
    code, out = run_it(2)
    assert code == 1 and " slower" in out and "1 moved beyond noise and 2 %" in out


def test_progress_on_a_terminal_tells_what_is_tried() -> None:
    from tilewright.sweep.command import Shown

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out, rows, shape = Terminal(), some_records(2), shapes.Shape((), (), "1")
    shown = Shown(out)
    shown.tries({"T": 16})
    shown(Event(shape, rows[0], 1, 40, rows[0]))
    shown.tries({"T": 32, "num_warps": 8})
    told = [line.rstrip() for line in out.getvalue().split("\r")[1:]]
    assert told == [
        "tries T=16",
        "1/40 as given: 10.0 us; best 10.0 us: as given",
        "tries T=32 num_warps=8; 1/40 done, best 10.0 us: as given",
    ]


def test_a_sweep_says_what_it_tries(place: str, tmp_path: Path) -> None:
    tried: list[dict[str, Any]] = []
    Sweep(plan(place, "T=16,32", sampler="exhaustive"), tmp_path, tries=tried.append).run()
    assert tried[0] == {} and all(choice in ({}, {"T": 16}, {"T": 32}) for choice in tried)


def test_progress_tells_the_best_so_far(capsys: pytest.CaptureFixture[str]) -> None:
    from tilewright.sweep.command import Shown

    shown, rows = Shown(sys.stderr), some_records(2)
    shape = shapes.Shape((), (), "1")
    shown(Event(shape, rows[1], 11, 40, rows[0]))
    shown(Event(shape, rows[1], 12, 40, rows[0]))
    assert capsys.readouterr().err == (
        "11/40 T=32 layout(x)=kind.1 family=<script>alert(1)</script>: 11.0 us; best 10.0 us: as given\n"
    )
