"""The other two ways into the tuner: cuTile's exhaustive search, and kernels that their first launch tunes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tilewright import tile as ct
from tilewright import tune
from tilewright.tune import automatic, exhaustive, trial
from tilewright.tune.search import Search
from tilewright.tune.statistics import Measurement


@ct.kernel
def scale(X, Y, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(Y, index=(i,), tile=ct.load(X, index=(i,), shape=(T,)) * 2)


def vectors() -> tuple[Any, Any]:
    return np.arange(4096, dtype=np.float32), np.zeros(4096, np.float32)


def searched(configs: list[int], monkeypatch: pytest.MonkeyPatch | None, **settings: Any) -> tune.TuningResult:
    """3 is no power of two, and is refused."""
    x, y = vectors()
    if monkeypatch is not None:
        monkeypatch.setattr(exhaustive, "BUDGET_SECONDS", 0.05)
    return tune.exhaustive_search(configs, None, lambda T: (4096 // T,), scale, lambda T: (x, y, T), **settings)


def test_every_configuration_is_measured_or_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = searched([64, 3, 1024], monkeypatch, hints_fn=lambda T: {"num_warps": 4})
    assert [m.config for m in result.successes] == [64, 1024] and result.best in result.successes
    ((config, kind, text),) = result.failures
    assert config == 3 and issubclass(kind, ct.TileError) and "power" in text
    best = result.best
    assert best.num_samples > 1 and best.mean_us > 0 and best.error_margin_us >= 0
    assert "2 succeeded, 1 failed" in capsys.readouterr().out


def order_of(monkeypatch: pytest.MonkeyPatch, args_fn: Any) -> list[str]:
    """What happens to four configurations, one behind the other."""
    told: list[str] = []
    monkeypatch.setattr(exhaustive, "BUDGET_SECONDS", 0.05)
    for name in ("prepare", "measure"):
        method = getattr(Search, name)

        def watched(search: Search, *given: Any, name: str = name, method: Any = method) -> Any:
            warm = f" {given[-1]}" if name == "measure" else ""
            told.append(f"{name}{warm}")
            return method(search, *given)

        monkeypatch.setattr(Search, name, watched)

    def args(T: int) -> Any:
        told.append("args")
        return args_fn(T)

    found = tune.exhaustive_search([16, 64, 256, 1024], None, lambda T: 4096 // T, scale, args, quiet=True)
    assert [m.config for m in found.successes] == [16, 64, 256, 1024]
    return told


def test_configurations_are_compiled_before_one_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Side by side, and then the device is warm for all of them."""
    x, y = vectors()
    told = order_of(monkeypatch, lambda T: (x, y, T))
    assert told == ["args"] * 4 + ["prepare"] * 4 + ["measure 0.3"] + ["measure 0.0"] * 3


def test_arrays_of_their_own_are_of_one_configuration_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    told = order_of(monkeypatch, lambda T: (*vectors(), T))
    turn = ["args", "prepare", "measure 0.3"]
    assert told == ["args", *turn * 3, *turn[1:]]  # one is asked for ahead, to see whose arrays it has


def test_kernels_of_a_function_and_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exhaustive, "BUDGET_SECONDS", 0.05)
    x, y = vectors()
    result = tune.exhaustive_search(
        [256], None, lambda T: 16, lambda T: scale, lambda T: (x, y, T), quiet=True, single_run_timeout_sec=5.0
    )
    assert result.best.config == 256 and not y.any()


@pytest.mark.parametrize("flush_l2", [True, False])
def test_the_cache_is_flushed_unless_told_otherwise(flush_l2: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = set()
    time = trial.Bench.time

    def watch(bench: trial.Bench, number: int, count: int, flush: bool = True) -> list[float]:
        asked.add(flush)
        return time(bench, number, count, flush)

    monkeypatch.setattr(trial.Bench, "time", watch)
    searched([64], monkeypatch, quiet=True, flush_l2=flush_l2)
    assert asked == {flush_l2}


def test_where_nothing_works() -> None:
    with pytest.raises(ValueError, match="empty"):
        searched([], None)
    with pytest.raises(ValueError, match="No valid config found in search space: 3: Tile"):
        searched([3], None, quiet=True)


def test_a_long_table_leaves_the_middle_out() -> None:
    rows = [Measurement(n * 1e-6, n * 1e-6, n * 1e-6, 9, config=n) for n in range(1, 31)]
    text = tune.TuningResult(best=rows[0], successes=rows, failures=()).summary(top_k=3, bottom_k=2)
    assert text.splitlines()[1].startswith("* 1 :") and "... 25 more not shown" in text and "30:" in text
    assert len(text.splitlines()) == 1 + 3 + 1 + 2
    shown = tune.TuningResult(best=rows[0], successes=rows[:1], failures=((2, ValueError, "a < b"),))._repr_html_()
    assert shown.startswith("<pre>") and "a &lt; b" in shown


def test_the_first_launch_searches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_TUNED", str(tmp_path / "tuned.jsonl"))
    searches: list[Any] = []

    def counted(*args: Any, **settings: Any) -> Any:
        searches.append(settings)
        return tune.search(*args, **settings)

    monkeypatch.setattr(automatic, "search", counted)
    tuned = tune.autotune({"T": (16, 1024)}, budget=0.1, isolate=False, progress=False)(scale)
    for _ in range(2):
        x, y = vectors()
        tune.launch(None, lambda X, T: X.shape[0] // T, tuned, (x, y, 64))
        np.testing.assert_array_equal(y, 2 * x)
    assert len(searches) == 1 and tune.best(scale, (x, y, 64)) is not None
    again = tune.autotune({"T": (16, 1024)})(scale)  # as another process: the record has it
    tune.launch(None, lambda X, T: X.shape[0] // T, again, (x, y, 64))
    assert len(searches) == 1


def test_launches_of_other_shapes_have_other_keys() -> None:
    """What the record is asked for once: extents, dtypes and constants count, addresses and numbers do not."""

    @ct.kernel
    def of(X, Y, n: int, T: ct.Constant[int]):
        ct.store(Y, ct.bid(0), ct.load(X, ct.bid(0), T) * n)

    x, y = (np.zeros(256, np.float32) for _ in range(2))
    one = of.shape_key((x, y, 3, 64))
    assert one == of.shape_key((y, x, 5, 64)) == of.shape_key((x.copy(), y, 3, 64))
    others = [(x, y, 3, 32), (x[:128], y, 3, 64), (x, y[:192], 3, 64), (x.astype(np.float16), y, 3, 64)]
    others += [(x.reshape(2, 128), y, 3, 64), (x, y, 3.0, 64), (x[::2], y, 3, 64)]
    assert len({one, *(of.shape_key(args) for args in others)}) == 1 + len(others)


def test_a_record_is_found_for_shapes_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches of several shapes in turns: each with the constants that were found for it."""
    monkeypatch.setenv("TILEWRIGHT_TUNED", str(tmp_path / "tuned.jsonl"))
    for size, tile in ((256, 32), (4096, 1024)):
        x, y = np.ones(size, np.float32), np.zeros(size, np.float32)
        tune.search(scale, (x, y, 16), space=[{"T": tile}], grid=lambda X, T: X.shape[0] // T, budget=0.1,
                    isolate=False, progress=False, limit=None)  # fmt: skip
    grids: list[int] = []
    for size in (256, 4096, 256, 4096):
        x, y = np.ones(size, np.float32), np.zeros(size, np.float32)
        tune.launch(None, lambda X, T: grids.append(T) or X.shape[0] // T, scale, (x, y, 16))
        np.testing.assert_array_equal(y, 2 * x)
    assert grids[:2] == grids[2:] and set(grids) <= {16, 32, 1024}


def test_autotune_stands_over_a_kernel() -> None:
    with pytest.raises(ct.TileTypeError, match="stands over @ct.kernel"):
        tune.autotune({"T": (16,)})(len)  # type: ignore[arg-type]


# --- arguments that hold others ---------------------------------------------------------------------------------------


@dataclasses.dataclass
class Layer:
    weights: list[Any]
    factor: float
    length: ct.Constant[int]


class Ends(NamedTuple):
    source: Any
    target: Any


@ct.kernel
def add_up(layer, ends, table, T: ct.Constant[int]):
    """Writes to an array in a named tuple, and to one in a dict that it also reads."""
    i = ct.bid(0)
    total = ct.load(ends.source, i, T) * layer.factor
    for w in layer.weights:
        total = total + ct.load(w, i, T)
    ct.store(ends.target, i, total + layer.length)
    ct.store(table["count"], i, ct.load(table["count"], i, T) + 1)


def held() -> tuple[Any, ...]:
    x, y, *weights = (np.full(64, value, np.float32) for value in (1, 0, 10, 20))
    return Layer(weights, 3.0, 100), Ends(x, y), {"count": np.zeros(64, np.int32)}


def is_as_given(args: tuple[Any, ...]) -> bool:
    return not args[1].target.any() and not args[2]["count"].any()


@pytest.mark.parametrize("isolate", [True, False])
def test_arrays_in_structures_are_copied(isolate: bool) -> None:
    args = held()
    found = tune.search(
        add_up, (*args, 16), space={"T": (32, 64)}, grid=lambda T: 64 // T, budget=0.1, isolate=isolate,
        record_file=False, progress=False,
    )  # a table of several in a line  # fmt: skip
    assert len(found.measured()) == 3, str(found)  # each has counted from 0 on: none is wrong
    assert is_as_given(args)
    found.launch()
    assert (args[1].target == 133).all() and (args[2]["count"] == 1).all()


@pytest.mark.parametrize("timeout", [None, 20.0])
def test_an_exhaustive_search_takes_structures(timeout: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exhaustive, "BUDGET_SECONDS", 0.05)
    args = held()
    found = tune.exhaustive_search(
        [16, 64], None, lambda T: (64 // T,), add_up, lambda T: (*args, T), quiet=True, single_run_timeout_sec=timeout
    )
    assert len(found.successes) == 2 and is_as_given(args)


def test_what_is_wrong_in_a_structure_has_its_name() -> None:
    @ct.kernel
    def wrong(ys, T: ct.Constant[int]):
        ct.store(ys[1], 0, ct.full(16, T, ys[1].dtype))

    ys = [np.zeros(16, np.float32) for _ in range(2)]
    found = tune.search(wrong, (ys, 1), space={"T": (2,)}, grid=1, budget=0.05, record_file=False, progress=False)
    assert "ys[1] differs from the reference" in str(found)


def test_the_record_knows_structures(tmp_path: Path) -> None:
    path = str(tmp_path / "tuned.jsonl")
    args = held()
    tuned = tune.autotune({"T": (64,)}, budget=0.05, progress=False, record_file=path)(add_up)
    for _ in range(2):
        tune.launch(None, lambda T: 64 // T, tuned, (*args, 16))
    assert (args[2]["count"] == 2).all()
    found = tune.best(add_up, (*args, 16), record_file=path)
    assert found is not None and "layer.weights[1]=float32[64]" in found.entry.arguments
    shorter = dataclasses.replace(args[0], weights=args[0].weights[:1])
    assert tune.best(add_up, (shorter, *args[1:], 16), record_file=path) is None
