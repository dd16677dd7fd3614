"""Records of sweeps: what a file takes and gives back, whoever wrote it; questions about them; what the cost model
learns."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import random
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tilewright import _core, cli, knobs
from tilewright.errors import TileError, TileValueError
from tilewright.sweep import fit, page, records
from tilewright.sweep.records import Record, Writer, moves, parse, read
from tilewright.tune import cost

WORK = {
    "blocks": 64.0,
    "moved": 2e6,
    "unique": 1e6,
    "flop": 0.0,
    "operand_bytes": 0.0,
    "bits": 0.0,
    "elements": 1e6,
    "carried": 0.0,
    "turn": 0.0,
    "known": 1.0,
}


def record(us: float = 10.0, **fields: Any) -> Record:
    base: dict[str, Any] = {
        "device": "D",
        "driver": "1",
        "compiler": "c",
        "kernel": "k",
        "source": "s",
        "shape_class": "f",
        "arguments": "A=f[1]",
        "choice": {"T": 64, "layout(p)": "narrow", "num_warps": None},
        "status": "measured",
        "us": us,
        "low_us": 0.99 * us,
        "high_us": 1.01 * us,
        "work": WORK,
    }
    return Record(**(base | fields))


def written(path: Path, *rows: Record) -> Path:
    writer = Writer(path)
    for row in rows:
        writer.add(row)
    writer.close()
    return writer.path


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    path = written(tmp_path, record(), record(choice={}), record(status="failed", us=0.0, low_us=0.0, why="no"))
    assert path == tmp_path / "trials.jsonl"
    assert [r.choice for r in read([path]).records.values()] == [record().choice, {}]  # of one key the last counts
    assert read([tmp_path]).records == read([path]).records
    assert parse(record().line()) == record()


@pytest.mark.parametrize(
    "change",
    [
        {"us": -1.0},
        {"us": float("nan")},
        {"us": "1"},
        {"us": True},
        {"us": 0.0},
        {"us": 1e-300},
        {"status": "great"},
        {"device": 3},
        {"device": "x" * 5000},
        {"device": "a\nb"},
        {"choice": [1]},
        {"choice": {"T": [[1]]}},
        {"choice": {"T": [1] * 100}},
        {"given": {"T": ["x"]}},
        {"choice": {"T": {"x": 1}}},
        {"choice": {f"a{i}": 1 for i in range(100)}},
        {"work": {"blocks": "many"}},
        {"samples": -1},
        {"samples": 1 << 40},
        {"v": 2},
        {"surprise": 1},
        {"kernel": None},
    ],
)
def test_lines_of_others_are_checked(change: dict[str, Any]) -> None:
    row = json.loads(record().line())
    assert parse(json.dumps(row | change)) is None
    del row["device"]
    assert parse(json.dumps(row)) is None


@pytest.mark.parametrize("line", ["", "{", "[1]", "3", "null", "[" * 100_000, '{"v": 1}', "\x00", '{"class": "x"}'])
def test_what_is_no_record(line: str) -> None:
    assert parse(line) is None


def test_damaged_lines_are_left_out_and_told(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    good = record().line()
    path.write_bytes(b"nonsense\n" + good.encode() + b"x" * 100_000 + b"\n\xff\xfe\n" + good[:40].encode())
    found = read([path])
    assert len(found.records) == 1 and len(found.damaged) == 4
    assert found.told() == f"left out what is no record: {path}, line 1; {path}, line 3; {path}, line 4 and 1 more"
    written(path, record(20.0, arguments="B=f[1]"))  # after a line that was never ended
    assert len(read([path]).records) == 2


def test_files_are_merged_by_cat_and_read_by_fsspec(tmp_path: Path) -> None:
    pytest.importorskip("fsspec", reason="an extra: pip install tilewright[sweep]")
    one, two = written(tmp_path / "one.jsonl", record()), written(tmp_path / "two.jsonl", record(9.0, arguments="B"))
    both = tmp_path / "both.jsonl"
    both.write_bytes(one.read_bytes() + two.read_bytes())
    assert read([both]).records == read([one, two]).records == read([tmp_path]).records
    assert read([f"file://{tmp_path}"]).records == read([tmp_path]).records
    with pytest.raises(TileValueError, match="cannot be read"):
        read([f"nosuch://{tmp_path}"])


WRITE = """
import sys
sys.path.insert(0, {folder!r})
from test_sweep_records import record
from pathlib import Path
from tilewright.sweep.records import Writer
writer = Writer(Path({path!r}))
for i in range(200):
    writer.add(record(1.0 + i, arguments=f"{{sys.argv[1]}} {{i}}", why="x" * (i * 7 % 900)))
"""


def test_several_processes_write_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    code = WRITE.format(folder=str(Path(__file__).parent), path=str(path))
    environment = knobs.environment_of_children()
    running = [subprocess.Popen([sys.executable, "-c", code, str(i)], env=environment) for i in range(3)]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    found = read([path])
    assert len(found.records) == 600 and not found.damaged


def test_pruning_beside_a_writer(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.add(record())
    writer.add(record(choice={}, status="failed", us=0.0))
    records.rewrite(tmp_path, lambda rows: [row for row in rows if row.measured])
    writer.add(record(5.0, arguments="later"))  # goes to the file that has the name now
    assert {r.arguments for r in read([tmp_path]).records.values()} == {"A=f[1]", "later"}


ADD = """
import sys
sys.path.insert(0, {folder!r})
from test_sweep_records import record
from pathlib import Path
from tilewright.sweep.records import Writer
writers = [Writer(Path(path)) for path in sys.argv[1:]]
print(flush=True)
for i, writer in enumerate(writers):
    writer.add(record(arguments=f"meanwhile {{i}}"))
"""


def test_what_is_added_while_others_are_pruned_is_kept(tmp_path: Path) -> None:
    """Those of all files of a folder, which become one."""
    paths = [written(tmp_path / name, record(arguments=name)) for name in ("a.jsonl", "trials.jsonl")]
    added: list[subprocess.Popen[str]] = []

    def choose(rows: list[Record]) -> list[Record]:
        code = ADD.format(folder=str(Path(__file__).parent))
        command = [sys.executable, "-c", code, *map(str, paths)]
        added.append(subprocess.Popen(command, env=knobs.environment_of_children(), stdout=-1, text=True))
        assert added[0].stdout is not None and added[0].stdout.readline() == "\n"
        return rows

    records.rewrite(tmp_path, choose)
    assert added[0].wait(60) == 0
    found = {r.arguments for r in read([tmp_path]).records.values()}
    assert found == {"a.jsonl", "trials.jsonl", "meanwhile 0", "meanwhile 1"}


def test_a_folder_that_cannot_be_pruned_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.jsonl", "trials.jsonl"):
        written(tmp_path / name, record(arguments=name))

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as change:
        change.setattr(os, "replace", full)
        with pytest.raises(TileError, match="cannot be rewritten: No space left on device; its records are as"):
            records.rewrite(tmp_path, lambda rows: rows)
    assert {r.arguments for r in read([tmp_path]).records.values()} == {"a.jsonl", "trials.jsonl"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "trials.jsonl"]


@pytest.mark.parametrize(
    "value", [math.inf, 10**30, (1, (2, 3)), (True, None), 3 + 4j, b"x", "\u202e", "a" * 5000, float("nan")]
)
def test_constants_that_json_has_not_are_recorded_all_the_same(tmp_path: Path, value: Any) -> None:
    """By a text, and the same again."""
    one, other = record(choice={"T": value}, given={"N": value}), record(choice={"T": "b" * 5000}, given={"N": value})
    found = read([written(tmp_path, one, other, one)])
    assert not found.damaged and list(found.records) == [one.key, other.key]
    assert parse(next(iter(found.records.values())).line()) == next(iter(found.records.values()))


def test_a_full_disk_keeps_what_was_measured(tmp_path: Path) -> None:
    path = written(tmp_path, record())
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    writer = Writer(tmp_path)
    try:
        before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100, limit[1]))
        with pytest.raises(TileError, match="takes no more records.*what was measured before is kept"):
            writer.add(record(arguments="more"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)
    found = read([tmp_path])
    assert len(found.records) == 1 and not found.damaged


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(TileValueError, match="records cannot be written"):
        Writer(tmp_path / "records")


def test_a_file_in_the_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "records").write_text("")
    with pytest.raises(TileValueError, match="records cannot be written"):
        Writer(tmp_path / "records" / "deeper")


# --- questions --------------------------------------------------------------------------------------------------------


def test_moves_beyond_noise() -> None:
    before = [record(10.0), record(20.0, arguments="B"), record(30.0, arguments="C"), record(5.0, arguments="gone")]
    after = [record(12.0), record(20.1, arguments="B"), record(15.0, arguments="C"), record(9.0, arguments="new")]
    after = [dataclasses.replace(r, compiler="later", source="other") for r in after]
    found = moves(before, after)
    assert [(round(m.ratio, 2), m.before.arguments) for m in found] == [(1.2, "A=f[1]"), (0.5, "C")]
    assert str(found[0]).endswith("on D: 10.0 -> 12.0 us, 20.0% slower")
    assert [m.ratio for m in moves(before, after, 0.3)] == [0.5]


def test_launches_on_other_grids_are_not_compared() -> None:
    rows = [record(10.0, grid="N = 1"), record(20.0, grid="N = 2")]
    assert moves(rows, rows[::-1]) == [] and len(moves(rows, [record(15.0, grid="M + 1 = 2")])) == 1


def test_arrays_that_lie_otherwise_are_another_problem(tmp_path: Path) -> None:
    rows = [record(shape_class="float32[64](1)@16"), record(shape_class="float32[64](1)@4")]
    assert len(read([written(tmp_path, *rows)]).records) == 2


def test_the_best_is_compared_with_what_its_own_compiler_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [record(30.0, choice={}), record(20.0), record(11.0, choice={}, compiler="d"), record(10.0, compiler="d")]
    assert cli.main(["records", "best", str(written(tmp_path, *rows))]) == 0
    told = capsys.readouterr().out
    assert "10.0 us, 1.100 times as fast as given" in told and "next: as given, +10.0%" in told
    rows[2:] = [record(10.0, compiler="d")]
    assert cli.main(["records", "best", str(written(tmp_path / "one", *rows))]) == 0
    assert "times as fast" not in capsys.readouterr().out


def test_the_command_says_that_there_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    assert cli.main(["records", "best", str(empty)]) == 0
    assert capsys.readouterr().err == f"there is no record in {empty}\n"


def test_the_command_lists_merges_compares_and_prunes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = written(tmp_path / "old.jsonl", record(10.0), record(11.0, choice={}))
    new = written(tmp_path / "new.jsonl", record(14.0, compiler="d"), record(0.0, choice={}, status="failed", why="no"))
    assert cli.main(["records", "diff", str(old), str(new)]) == 1
    out = capsys.readouterr().out
    assert "10.0 -> 14.0 us, 40.0% slower" in out and "1 slower, 0 quicker" in out
    assert cli.main(["records", "diff", str(old), str(old)]) == 0
    assert cli.main(["records", "merge", str(old), str(new), "-o", str(tmp_path / "all")]) == 0
    assert len(read([tmp_path / "all"]).records) == 3  # the failed one has the key of one that was measured
    assert cli.main(["records", "list", str(tmp_path / "all")]) == 0
    assert "T=64 layout(p)=narrow num_warps=auto" in capsys.readouterr().out
    assert cli.main(["records", "prune", "--compilers", "--failures", str(tmp_path / "all")]) == 0
    (kept,) = read([tmp_path / "all"]).records.values()
    assert kept.compiler == "d"
    capsys.readouterr()
    assert cli.main(["records", "diff", str(old)]) == 1 and "compares two places" in capsys.readouterr().err


# --- learning ---------------------------------------------------------------------------------------------------------


def synthetic(factors: dict[str, float], machine: cost.Machine, problems: int = 9, noise: float = 0.01) -> list[Record]:
    """Times of a machine whose constants are others than the model's, by these factors."""
    from tilewright.sweep.station import machine_figures

    rng, found = random.Random(0), []
    for problem in range(problems):
        size = 10 ** rng.uniform(5, 8)
        for tile in (16, 32, 64, 128, 256):
            blocks = max(1, int(size / tile / 64))
            product, work_of = int(problem % 3 == 1), (1.0, 0.0, 200.0)[problem % 3]
            work = WORK | {"blocks": float(blocks), "moved": size * (1 + 256 / tile), "unique": size}
            work |= {
                "elements": size * work_of,
                "flop": size * 300 * product,
                "bits": 16.0 * product,
            }
            work |= {"operand_bytes": size * 512 / tile * product, "turn": 256.0 * tile * product}
            row = record(1.0, choice={"T": tile}, arguments=f"P{problem}", device=machine.name, work=work)
            row = dataclasses.replace(row, machine=machine_figures(machine))
            (sample,) = fit.samples_of([row])
            us = fit.expected_us([sample], factors)[0] * math.exp(rng.gauss(0, noise))
            found.append(dataclasses.replace(row, us=us, low_us=us, high_us=us))
    return found


CPU = cost.Machine("a CPU", False, 8, 3e9, 2e10, 256 << 10, cost.CPU_CHIP)
H200 = cost.Machine("H200", True, 132, 1.98e9, 4.8e12, 233472, _core.chip(90) | {"wave_ns": 1500, "iteration_ns": 50})


@pytest.mark.parametrize(
    ("machine", "factors"),
    [
        (CPU, {"bandwidth": 2.0, "cpu_flop": 0.5, "cpu_block_ns": 3.0}),
        (H200, {"bandwidth": 0.7, "wave_ns": 2.5, "fma_flop": 0.6, "tensor_flop": 0.5}),
    ],
)
def test_constants_that_are_known_are_found(machine: cost.Machine, factors: dict[str, float]) -> None:
    pytest.importorskip("scipy", reason="an extra: pip install tilewright[sweep]")
    found = fit.fit(synthetic(factors, machine))
    constants, rows = found.devices[machine.name].constants, found.devices[machine.name].rows
    for name in ("bandwidth", "cpu_flop", "cpu_block_ns") if machine is CPU else ("bandwidth", "wave_ns"):
        old, new = constants[name]
        assert new / old == pytest.approx(factors[name], rel=0.15), name
    (row,) = rows
    assert row.problems == 9 and row.error[1] < 0.1 < row.error[0]
    assert row.regret[1] <= row.regret[0] + 0.02
    assert "regret before" in str(found) and json.loads(found.text())[machine.name].keys() == constants.keys()


def test_constants_stay_what_is_possible_and_what_is_not_told_stays() -> None:
    """Times as of a memory three times as fast as its datasheet says; nothing that tells of products' rates."""
    pytest.importorskip("scipy", reason="an extra: pip install tilewright[sweep]")
    rows = [r for r in synthetic({"bandwidth": 3.0, "wave_ns": 0.5}, H200) if not r.work["bits"]]
    (device,) = fit.fit(rows).devices.values()
    for name, (old, new) in device.constants.items():
        low, high = fit.GPU_RANGES[name].logs(old)
        assert low <= math.log(new / old) <= high
    assert device.constants["bandwidth"][1] <= H200.bandwidth * 1.001
    assert {"tensor_flop", "shared_rate"} <= set(device.left)
    assert "not determined by these records, left" in str(device.lines())
    (alone,) = fit.fit(rows, only=["wave_ns"]).devices.values()
    assert list(alone.constants) == ["wave_ns"]
    with pytest.raises(TileValueError, match="has no constant 'speed'; it has bandwidth, memory_ns"):
        fit.fit(rows, only=["speed"])


def test_what_a_launch_turned_into_another_program_is_no_evidence() -> None:
    pytest.importorskip("scipy", reason="an extra: pip install tilewright[sweep]")
    rows = synthetic({}, CPU)
    twice = [dataclasses.replace(r, us=9 * r.us, arguments=f"{r.arguments}'", launched={"split_k": 4}) for r in rows]
    assert fit.solve(fit.samples_of([*rows, *twice])) == fit.solve(fit.samples_of(rows))


def test_records_of_earlier_constants_are_of_the_same_machine() -> None:
    """A fit changes what later records tell of their machine; what they measured is as true as before."""
    pytest.importorskip("scipy", reason="an extra: pip install tilewright[sweep]")
    rows = synthetic({"bandwidth": 0.7, "wave_ns": 2.5}, H200)
    later = [dataclasses.replace(r, machine=r.machine | {"wave_ns": 2.5 * r.machine["wave_ns"]}) for r in rows]
    whole, mixed = (fit.fit(found).devices["H200"].constants for found in (later, [*rows[:20], *later[20:]]))
    assert mixed == whole and whole["wave_ns"][0] == 3750


def test_constants_of_the_tree_come_from_their_record() -> None:
    """Records tell of the machine as the model had it then."""
    pytest.importorskip("scipy", reason="an extra: pip install tilewright[sweep]")
    path = Path(__file__).resolve().parents[2] / "bench/results/2026-11-28-nvidia-h200-trials.jsonl"
    samples = fit.samples_of(list(read([path]).records.values()))
    found = fit.solve(samples, ["wave_ns", "memory_ns", "iteration_ns"])
    assert not found.left and not found.at_bounds
    for name, factor in found.factors.items():
        assert _core.chip(90)[name] == pytest.approx(factor * samples[0].machine.chip[name], rel=0.02), name


@pytest.mark.parametrize(
    "change",
    [
        *(
            {"machine": {name: worth}}
            for name in ("units", "bandwidth", "cpu_flop", "clock")
            for worth in (0, -1, None)
        ),
        *({"work": {name: worth}} for name in ("blocks", "unique", "turn") for worth in (-1, None)),
        {"work": {"blocks": 0}},
        {"machine": {"is_gpu": 1}},
        {"machine": {"cpu_block_ns": 1e17}, "work": {"moved": 1e17, "elements": 1e17}},
    ],
)
def test_records_of_others_that_no_machine_has(change: dict[str, dict[str, Any]]) -> None:
    """What they tell of a machine or of work is no evidence, and stops neither a fit nor a page."""
    pytest.importorskip("scipy", reason="an extra: pip install tilewright[sweep]")
    sound = synthetic({}, CPU, problems=3)

    def wrong(r: Record) -> Record:
        for field, figures in change.items():
            table = getattr(r, field) | {name: worth for name, worth in figures.items() if worth is not None}
            table = {name: worth for name, worth in table.items() if figures.get(name, 0) is not None}
            r = dataclasses.replace(r, **{field: table})
        found = parse(r.line())
        assert found is not None
        return found

    foreign = [wrong(r) for r in sound]
    assert "constant" in str(fit.fit([*foreign, *sound]))
    assert page.page("Foreign", foreign).count("<h2>") == 3
    if all(worth is not None and worth > 1e9 for figures in change.values() for worth in figures.values()):
        assert len(fit.samples_of(foreign)) == len(foreign)
    else:
        assert not fit.samples_of(foreign)


def test_devices_with_few_records_leave_the_others(tmp_path: Path) -> None:
    pytest.importorskip("scipy", reason="an extra: pip install tilewright[sweep]")
    found = fit.fit([*synthetic({}, CPU, problems=3), *synthetic({}, H200, problems=1)[:3]])
    assert list(found.devices) == ["a CPU"]
    assert str(found).endswith("H200: 3 measurements are left out; a fit needs 8 or more")


def test_work_that_gives_no_time_is_no_evidence() -> None:
    rows = synthetic({}, H200)[:12]
    wrong = [dataclasses.replace(r, work=r.work | {"turn": 5e-324}, arguments="none") for r in rows]
    assert all(parse(r.line()) for r in wrong)
    assert len(fit.samples_of([*rows, *wrong])) == 12 and fit.fit([*rows, *wrong]).devices


def test_constants_of_one_device_are_fitted_beside_records_of_others() -> None:
    found = fit.fit([*synthetic({}, CPU), *synthetic({}, H200)], only=["wave_ns"])
    assert list(found.devices) == ["H200"]
    with pytest.raises(TileValueError, match="has no constant 'wave'; it has"):
        fit.fit([*synthetic({}, CPU), *synthetic({}, H200)], only=["wave"])


def test_what_cannot_be_fitted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = synthetic({}, CPU, problems=1)[:4]
    with pytest.raises(TileValueError, match="needs 8 measurements of a device or more, found 4 on a CPU"):
        fit.fit(few)
    with pytest.raises(TileValueError, match="needs 8 measurements of a device or more, found 0"):
        fit.fit([])
    with pytest.raises(TileValueError, match="--folds 1"):
        fit.fit(few, folds=1)
    written(tmp_path, *few)
    assert cli.main(["fit", str(tmp_path)]) == 1 and "needs 8 measurements" in capsys.readouterr().err
