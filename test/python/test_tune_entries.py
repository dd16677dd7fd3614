"""The other two ways into the tuner: cuTile's exhaustive search, and kernels that their first launch tunes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import tile as ct
from tilewright import tune
from tilewright.tune import automatic, exhaustive
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


def test_kernels_of_a_function_and_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exhaustive, "BUDGET_SECONDS", 0.05)
    x, y = vectors()
    result = tune.exhaustive_search(
        [256], None, lambda T: 16, lambda T: scale, lambda T: (x, y, T), quiet=True, single_run_timeout_sec=5.0
    )
    assert result.best.config == 256 and not y.any()


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


def test_autotune_stands_over_a_kernel() -> None:
    with pytest.raises(ct.TileTypeError, match="stands over @ct.kernel"):
        tune.autotune({"T": (16,)})(len)  # type: ignore[arg-type]
