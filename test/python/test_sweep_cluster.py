"""Sweeps over workers that differ: devices of several kinds, and workers that compile for others that measure.

The devices are those of the stand-in driver, whose launches do nothing: what is tested is who does what, and what is
recorded of it. Each such case runs in a process of its own: this file runs itself with the name of a case.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any

import pytest
from fake_driver import find_driver

from tilewright import cli, compile
from tilewright.errors import TileError
from tilewright.sweep import artefacts, cluster, records, shapes, workers
from tilewright.sweep.run import Plan, Sweep
from tilewright.tune import memory
from tilewright.tune.trial import Bench

EXAMPLES = Path(__file__).resolve().parents[2] / "python" / "examples"
PLACE = f"{EXAMPLES / 'softmax.py'}:softmax"
SHAPE = shapes.Shape(("X=f32[256,1024]", "Y=f32[256,1024]", "TN=1024"), (), "X.shape[0]")
SECRET = b"a secret of this sweep alone....."


# --- artefacts --------------------------------------------------------------------------------------------------------


def wanted() -> artefacts.Wanted:
    return artefacts.Wanted("sm_90a", cli.specialization(cli.load_kernel(PLACE), SHAPE.arguments), 13000)


@pytest.fixture(scope="module")
def made() -> artefacts.Artefact:
    """By a process that opens no driver."""
    found = artefacts.compiled(SECRET, PLACE, wanted(), {"num_warps": 8})
    assert found is not None
    return found


def asked(artefact: Any, secret: bytes = SECRET, target: str = "sm_90a", **choice: Any) -> compile.Image | None:
    """What a worker that captures the same kernel with a choice takes."""
    kernel, key = artefacts.wanted_choice(cli.load_kernel(PLACE), wanted(), choice)
    captured = compile.capture_kernel(kernel, target, key)
    return artefacts.reader(secret, artefact)(captured.module.text(False), target, 0)


def test_an_artefact_is_taken_for_the_program_that_it_is_of(made: artefacts.Artefact) -> None:
    image = asked(made, num_warps=8)
    assert image is not None and image.record
    assert asked(made, num_warps=4) is None and asked(made, num_warps=8, TN=2048) is None
    assert asked(made, num_warps=8, target="sm_80") is None


@pytest.mark.parametrize(
    "change",
    [
        lambda a: {"blob": a.blob[:-1] + bytes([a.blob[-1] ^ 1])},
        lambda a: {"blob": a.blob + b"\n"},
        lambda a: {"blob": a.blob[:100]},
        lambda a: {"blob": b""},
        lambda a: {"blob": "text"},
        lambda a: {"mark": a.mark[:-1]},
        lambda a: {"mark": None},
        lambda a: {"address": bytes(32)},
        lambda a: {"blob": bytes(artefacts.MOST_BYTES + 1)},
    ],
)
def test_what_was_changed_on_its_way_is_left(made: artefacts.Artefact, change: Any) -> None:
    assert asked(dataclasses.replace(made, **change(made)), num_warps=8) is None


def test_artefacts_of_others_are_left(made: artefacts.Artefact) -> None:
    assert asked(made, b"the secret of another sweep", num_warps=8) is None
    for nothing in (None, b"code", {"blob": made.blob}, made.blob):
        assert asked(nothing, num_warps=8) is None
    # What bears the mark and is no image: a worker with the secret that is broken.
    image = asked(made, num_warps=8)
    assert image is not None
    bad = artefacts.Artefact(made.address, b"\xff" * 99, artefacts._mark(SECRET, made.address, b"\xff" * 99))
    assert asked(bad, num_warps=8) is None


def test_a_build_is_its_front_end_too(tmp_path: Path) -> None:
    """Records of a sweep are none of what another one captures; how it is measured is no part of it."""
    for name in ("core.so", "capture/a.py", "tile.py", "tune/b.py", "cli.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("one")
    digests = [artefacts.digest_of_build(tmp_path / "core.so", tmp_path)]
    for name in ("tune/b.py", "cli.py", "core.so", "capture/a.py", "tile.py"):
        (tmp_path / name).write_text("other")
        digests.append(artefacts.digest_of_build(tmp_path / "core.so", tmp_path))
    assert digests[0] == digests[1] == digests[2] and len(set(digests)) == 4


def test_what_does_not_compile_has_no_artefact() -> None:
    assert artefacts.compiled(SECRET, PLACE, wanted(), {"TN": 3}) is None


def test_machine_code_is_made_by_an_assembler_of_the_drivers_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artefacts, "ptxas_version", lambda: (13, 0))
    monkeypatch.setattr(artefacts, "assemble_by_ptxas", lambda ptx, target: b"machine code")
    assert artefacts._assembled(13000, b"ptx", "sm_90a") == b"machine code"
    assert artefacts._assembled(12080, b"ptx", "sm_90a") == b"ptx"
    monkeypatch.setattr(artefacts, "ptxas_version", lambda: None)
    assert artefacts._assembled(13000, b"ptx", "sm_90a") == b"ptx"


def test_the_address_of_a_cluster_says_who_does_what() -> None:
    read = cluster.Where.read
    assert read("dask://h:1") == cluster.Where("h:1", ({},), {})
    assert read("dask://h:1?GPU=2") == cluster.Where("h:1", ({"GPU": 2.0},), {})
    assert read("dask://h:1?kinds=H200,L4&compile=CPU").kinds == ({"H200": 1.0}, {"L4": 1.0})
    assert read("dask://h:1?kinds=H200,L4&compile=CPU").compilers == {"CPU": 1.0}
    with pytest.raises(TileError, match="a resource has a number, as in \\?GPU=1"):
        read("dask://h:1?GPU=yes")


def test_a_worker_has_as_many_tasks_as_it_has_threads() -> None:
    """So that others are compiled while one is measured, and none waits where another worker is free."""
    rows = [{"nthreads": n, "resources": {"GPU": 1} if n != 2 else {}} for n in (1, 2, 4, 64)]
    client = types.SimpleNamespace(scheduler_info=lambda n_workers: {"workers": dict(enumerate(rows))})
    users = cluster.Users(client, None, 1)
    assert users.tasks_of({}) == [2, 2, 4, 5]
    assert users.tasks_of({"GPU": 1.0}) == [2, 4, 5]
    with pytest.raises(TileError, match="no worker of the cluster has the resource CPU=1; its 4 workers have GPU"):
        users.tasks_of({"CPU": 1.0})


# --- on the stand-in driver -------------------------------------------------------------------------------------------


def swept(on: str, folder: str, tell: Any = None) -> dict[str, list[records.Record]]:
    """The records of each device."""
    plan = Plan(PLACE, (SHAPE,), ("warps=none,4,8", "TN=1024,3"), on=on, turns=False, timeout=30.0)
    Sweep(plan, Path(folder), tell).run()
    found: dict[str, list[records.Record]] = {}
    for record in records.read([folder]).records.values():
        found.setdefault(record.device, []).append(record)
    return found


def are_all_there(found: list[records.Record]) -> None:
    measured = {records.choice_text(r.choice) for r in found if r.measured}
    assert measured == {"as given", "num_warps=4", "num_warps=8"}, [r.why for r in found]
    assert len(found) == 6 and all("power" in r.why for r in found if not r.measured)


def kinds_of_this_host(folder: str) -> None:
    """Its CPU and its GPU in one sweep."""
    found = swept("cuda:0,cpu", folder)
    assert len(found) == 2 and "Fake GPU 0" in found
    for rows in found.values():
        are_all_there(rows)
    assert swept("cpu,cuda:0", folder) == found  # nothing again


def two_gpus_of_this_host(folder: str) -> None:
    """Alike, so that they share the candidates. Each candidate runs on the GPU of the worker that has it, in whatever
    process: that of another one would be refused."""
    os.environ |= {"FAKECUDA_NAME": "Fake GPU", "FAKECUDA_DEVICES": "2"}
    for on in ("cuda:0,cuda:1", "cuda:1"):
        found = swept(on, f"{folder}/{on}")
        assert set(found) == {"Fake GPU"}
        are_all_there(found["Fake GPU"])
    layout = memory.Layout(0, (), {})
    with pytest.raises(TileError, match="device 0 of this process is gpu-f0f1.*, no gpu-f1f2"):
        Bench(layout, None, "gpu-f1f2")


def gpus_by_other_names(folder: str) -> None:
    """What CUDA_VISIBLE_DEVICES calls them: each worker has the one that is meant, and checks it."""
    os.environ |= {"FAKECUDA_NAME": "Fake GPU", "FAKECUDA_DEVICES": "4"}
    for seen, count in (
        ("3,1", 2),
        ("GPU-f2f3f4f5,GPU-f0f1", 2),
        ("GPU-f3,0,2", 3),
        ("1,-1,2", 1),
        ("2,GPU-77,1", 1),
    ):
        code = f"import test_sweep_cluster as t; t.seen_by_workers({folder!r}, {count})"
        environment = os.environ | {"CUDA_VISIBLE_DEVICES": seen}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, f"{seen}: {done.stderr[-3000:]}"


def seen_by_workers(folder: str, count: int) -> None:
    assert workers.devices("cuda") == [f"cuda:{n}" for n in range(count)]
    place = Path(folder) / os.environ["CUDA_VISIBLE_DEVICES"]
    plan = Plan(PLACE, (SHAPE,), ("warps=none,4,8", "TN=1024,3"), on="cuda", turns=False, timeout=30.0)
    sweep = Sweep(plan, place)
    sweep.run()
    are_all_there(sweep.outcomes[0].records)
    assert not sweep.unfit, sweep.unfit


def gpus_that_are_not_fit(folder: str) -> None:
    """The others measure what they had: nothing is lost, and no candidate is to blame. One cannot be opened; another
    one cannot hold the arguments; in the place of a third there is another GPU."""
    os.environ |= {"FAKECUDA_NAME": "Fake GPU", "FAKECUDA_DEVICES": "4"}
    alone = workers.alone
    full = {"FAKECUDA_FAIL": "cuMemAlloc_v2:1:2"}
    for where, change, told in (
        (0, {"CUDA_VISIBLE_DEVICES": "9"}, "the worker on cuda:0 does not start: this worker has no GPU"),
        (1, {"CUDA_VISIBLE_DEVICES": "9"}, "the worker on cuda:1 does not start: this worker has no GPU"),
        (1, {"CUDA_VISIBLE_DEVICES": "3"}, "cuda:0 of this worker is gpu-f3f4f5"),
        (0, full, "the worker on cuda:0: "),
        (2, full, "the worker on cuda:2: "),
    ):

        def changed(name: str, where: int = where, change: dict[str, str] = change) -> tuple[str, dict[str, str]]:
            found, environment = alone(name)
            return found, environment | (change if name == f"cuda:{where}" else {})

        workers.alone = changed
        axes = ("warps=none,4,8", "TN=1024,3")
        plan = Plan(PLACE, (SHAPE,), axes, on="cuda:0,cuda:1,cuda:2", timeout=30.0, keep=False)
        sweep = Sweep(plan, Path(folder) / f"{where}{len(told)}")
        sweep.run()
        (outcome,) = sweep.outcomes
        are_all_there(outcome.records)
        assert len(sweep.unfit) == 1 and told in "".join(sweep.unfit.values()), sweep.unfit
        assert outcome.decided is not None and not outcome.note, outcome.note


def layouts_by_name(folder: str) -> None:
    """All that the compiler lists; one that it does not have fails by itself, and a tile that is not there is named."""

    def choices(name: str, *axes: str) -> dict[Any, records.Record]:
        Sweep(Plan(PLACE, (SHAPE,), axes, on="cuda:0", turns=False), Path(folder) / name).run()
        rows = records.read([Path(folder) / name]).records.values()
        return {r.choice.get("layout(x)"): r for r in rows}

    listed = choices("all", "layout(x)")
    assert len(listed) > 2 and "narrow" in listed and all(r.measured for r in listed.values())
    found = choices("some", "layout(x)=narrow,best")
    assert found["narrow"].measured and not found["best"].measured
    assert "layout(x)=best, which is no value of this axis" in found["best"].why
    for axis, told in (
        ("layout(q)", "kernel softmax has no axis layout(q): threads hold no such tile; they hold"),
        ("swizzle(x)", "say which values, as in swizzle(x)=32,64,128"),
    ):
        try:
            choices("none", axis)
            raise AssertionError(f"{axis} is there")
        except TileError as error:
            assert told in str(error), error


def taken() -> int:
    from tilewright.sweep import station

    return sum(one.taken for one in station._HERE.values())


def compiled_elsewhere(folder: str) -> None:
    from distributed import Client, Nanny, Scheduler, SpecCluster

    def worker(name: str, **environment: str) -> dict[str, Any]:
        # Each has a cache of its own, as on a host of its own.
        own = {"TILEWRIGHT_CACHE_DIR": f"{folder}/cache-{name}", **environment}
        return {"cls": Nanny, "options": {"nthreads": 2, "resources": {name: 1}, "env": own}}

    driver = {"TILEWRIGHT_CUDA_DRIVER": str(find_driver())}
    rows = {name: worker(name, FAKECUDA_NAME=f"Fake {name}", **driver) for name in ("large", "small")}
    rows["CPU"] = worker("CPU", TILEWRIGHT_CUDA_DRIVER="/nowhere/libcuda.so")
    scheduler = {"cls": Scheduler, "options": {"dashboard": False, "host": "127.0.0.1", "port": 0}}
    with SpecCluster(workers=rows, scheduler=scheduler) as cluster, Client(cluster) as client:
        client.wait_for_workers(3)
        address = cluster.scheduler_address.removeprefix("tcp://")
        counts: list[int] = []

        def tell(event: Any) -> None:
            counts[:] = sorted(client.run(taken).values())

        found = swept(f"dask://{address}?kinds=large,small&compile=CPU", f"{folder}/records", tell)
        assert set(found) == {"Fake large", "Fake small"}
        for each in found.values():
            are_all_there(each)
        # What is measured was compiled by the worker without a driver: once for each candidate that compiles.
        assert counts == [0, 3, 3], counts
        try:
            swept(f"dask://{address}?kinds=large,huge", f"{folder}/none")
            raise AssertionError("there is no such worker")
        except TileError as error:
            assert "no worker of the cluster has the resource huge=1; its 3 workers have CPU, large, small" in str(
                error
            )
        try:
            swept(f"dask://{address}?CPU=1&compile=CPU", f"{folder}/none")
            raise AssertionError("it has no GPU")
        except TileError as error:
            assert "this worker has no GPU" in str(error)


def devices_here() -> list[str]:
    from tilewright.sweep import station
    from tilewright.tune.alone import name_of

    return [name_of(one.number) for one in station._HERE.values()]


def devices_of(client: Any) -> list[str]:
    return [name for names in client.run(devices_here).values() for name in names]


def own_devices() -> list[str]:
    from tilewright.sweep import station

    return [station._own_device(device) for device in ("auto", "cuda", "cuda:1", "cpu")]


def gpus_of_a_cluster(folder: str) -> None:
    """Workers of a host that see all of its GPUs have one each. What is left of a sweep ends with it. One that is not
    like the others takes no part, and none of their candidates."""
    from distributed import Client, Nanny, Scheduler, SpecCluster

    def worker(**environment: str) -> dict[str, Any]:
        own = {
            "FAKECUDA_NAME": "Fake GPU",
            "FAKECUDA_DEVICES": "2",
            "TMPDIR": place,
        }  # and other tests' locks elsewhere
        driver = {"TILEWRIGHT_CUDA_DRIVER": str(find_driver())}
        return {"cls": Nanny, "options": {"nthreads": 1, "resources": {"GPU": 1}, "env": driver | own | environment}}

    place = folder
    scheduler = {"cls": Scheduler, "options": {"dashboard": False, "host": "127.0.0.1", "port": 0}}
    seen: list[list[str]] = []
    for rows in ([worker(), worker()], [worker(), worker(FAKECUDA_VERSION="13000")]):
        with SpecCluster(workers=dict(enumerate(rows)), scheduler=scheduler) as cluster, Client(cluster) as client:
            client.wait_for_workers(2)
            address = cluster.scheduler_address.removeprefix("tcp://")
            axes, folder = ("warps=none,1,2,4,8,16", "stages=none,2,3", "TN=1024,3"), f"{folder}/next"
            plan = Plan(PLACE, (SHAPE,), axes, on=f"dask://{address}?GPU=1", turns=False, timeout=30.0)
            sweep = Sweep(plan, Path(folder), lambda event: seen.append(devices_of(client)))
            sweep.run()
            (outcome,) = sweep.outcomes
            assert len(outcome.measured) == 18 and len(outcome.records) == 36
            assert all("power" in r.why for r in outcome.records if not r.measured), [r.why for r in outcome.records]
            owned = sorted(client.run(own_devices).values())  # the same for whatever asks next
            assert owned == [[f"cuda:{n}", f"cuda:{n}", "cuda:1", "cpu"] for n in range(2)], owned
            while devices_of(client):
                time.sleep(0.05)
        if rows[1]["options"]["env"].get("FAKECUDA_VERSION"):
            assert len(sweep.unfit) == 1 and "another driver" in "".join(sweep.unfit.values()), sweep.unfit
        else:
            assert not sweep.unfit and max(len(set(names)) for names in seen) == 2, seen


@pytest.mark.parametrize(
    "name",
    [
        "kinds_of_this_host",
        "two_gpus_of_this_host",
        "gpus_by_other_names",
        "gpus_that_are_not_fit",
        "layouts_by_name",
        "compiled_elsewhere",
        "gpus_of_a_cluster",
    ],
)
def test_workers_that_differ(name: str, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    if name in ("compiled_elsewhere", "gpus_of_a_cluster"):
        pytest.importorskip("distributed", reason="Dask is an extra: pip install tilewright[sweep]")
    else:
        environment["TILEWRIGHT_CUDA_DRIVER"] = str(find_driver())
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), *sys.path]))
    command = [sys.executable, __file__, name, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
