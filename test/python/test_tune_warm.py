"""tune.launch of what was launched before, which the kernel finds in C: what it launches, and when it asks again."""

from __future__ import annotations

import dataclasses
import functools
import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import tile as ct
from tilewright import tune
from tilewright.tune import launching

FACTOR = 2
QUICK: dict[str, Any] = {"budget": 0.05, "isolate": False, "progress": False}


@ct.kernel
def scale(X, Y, T: ct.Constant[int]):
    ct.store(Y, index=(ct.bid(0),), tile=ct.load(X, index=(ct.bid(0),), shape=(T,)) * FACTOR)


@pytest.fixture(autouse=True)
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Records say 256 in the place of any tile, and what the record was asked for."""
    asked: list[Any] = []

    def best(kernel: Any, args: tuple[Any, ...], *, record_file: Any = None) -> Any:
        asked.append(record_file)
        return launching.Best(kernel.replace_hints(opt_level=1), {"T": 256}, None)  # type: ignore[arg-type]

    monkeypatch.setattr(launching, "best", best)
    monkeypatch.setenv("TILEWRIGHT_TUNED", str(tmp_path / "tuned.jsonl"))
    launching.forget(scale)
    return asked


def vectors(count: int = 4096) -> tuple[Any, Any]:
    return np.arange(count, dtype=np.float32), np.zeros(count, np.float32)


def kept(kernel: Any = scale) -> list[Any]:
    """What was compiled of the kernel with the hints that were found."""
    return [key[2][1] for _, key, _ in kernel.replace_hints(opt_level=1).variants()]


@pytest.mark.parametrize(
    "grid",
    [
        16,
        (16,),
        [16, 1],
        np.int64(16),
        lambda X, T: X.shape[0] // T,
        lambda T, X: (ct.cdiv(X.shape[0], T), 1, 1),
        functools.partial(lambda n, T: n // T, 4096),
    ],
)
def test_what_was_found_is_launched_again(grid: Any, found: list[Any]) -> None:
    for _ in range(3):
        x, y = vectors()
        tune.launch(None, grid, scale, (x, y, 16))
        np.testing.assert_array_equal(y, 2 * x)
    assert found == [None] and kept() == [256]


def test_two_functions_of_the_grid_take_turns(found: list[Any]) -> None:
    x, y = vectors()
    for grid in (lambda T: 4096 // T, lambda X, T: X.shape[0] // T, 16) * 2:
        y[:] = 0
        tune.launch(None, grid, scale, (x, y, 16))
        np.testing.assert_array_equal(y, 2 * x)
    assert found == [None]


def test_other_shapes_ask_again(found: list[Any]) -> None:
    for _ in range(2):
        for count in (4096, 1024, 512):
            x, y = vectors(count)
            tune.launch(None, lambda X, T: X.shape[0] // T, scale, (x, y, 16))
            np.testing.assert_array_equal(y, 2 * x)
    assert len(found) == 3


def test_more_shapes_than_there_are_slots(found: list[Any]) -> None:
    """What another row has pushed out is launched as right as before, and the record is not read for it."""
    longest = np.arange(256 + 16 * 1200, dtype=np.float32)
    for _ in range(2):
        for n in range(1200):
            y = np.zeros(256, np.float32)
            tune.launch(None, 1, scale, (longest[: 256 + 16 * n], y, 16))
            assert y[-1] == 510
    assert len(found) == 1200


def test_a_variant_that_is_gone_or_stale_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = vectors()
    tune.launch(None, 16, scale, (x, y, 16))
    scale.replace_hints(opt_level=1).clear_variants()
    y[:] = 0
    tune.launch(None, lambda T: 4096 // T, scale, (x, y, 16))
    np.testing.assert_array_equal(y, 2 * x)
    monkeypatch.setitem(globals(), "FACTOR", 3)
    tune.launch(None, 16, scale, (x, y, 16))
    np.testing.assert_array_equal(y, 3 * x)


def test_a_search_has_the_record_asked_again(found: list[Any]) -> None:
    x, y = vectors()
    tune.launch(None, 16, scale, (x, y, 16))
    tune.search(scale, (x, y, 64), space={"T": (64,)}, grid=64, budget=0.05, isolate=False, progress=False)
    tune.launch(None, 16, scale, (x, y, 16))
    assert len(found) == 2


def test_what_is_wrong_is_told_as_at_first() -> None:
    x, y = vectors()
    tune.launch(None, 16, scale, (x, y, 16))
    for grid, args, told in (
        (16, (x, y), "takes \\(X, Y, T\\), found 2 arguments"),
        (0, (x, y, 16), "grid"),
        (lambda T: "many", (x, y, 16), "grid"),
        (lambda Z: 1, (x, y, 16), "asks for 'Z'"),
        (16, (x, "y", 16), "needs an array"),
    ):
        with pytest.raises(ct.TileError, match=told):
            tune.launch(None, grid, scale, args)
    with pytest.raises(ZeroDivisionError):
        tune.launch(None, lambda T: 1 // 0, scale, (x, y, 16))
    with pytest.raises(ct.TileError, match="works on a @ct.kernel"):
        tune.launch(None, 16, len, (x, y, 16))
    with pytest.raises(TypeError):
        tune.launch(None, 16, scale)  # type: ignore[call-arg]
    tune.launch(stream=None, grid=16, kernel=scale, args=(x, y, 16))
    read_only = np.zeros(4096, np.float32)
    read_only.flags.writeable = False
    with pytest.raises(ct.TileError, match="read-only"):
        tune.launch(None, 16, scale, (x, read_only, 16))


@dataclasses.dataclass
class Pair:
    source: Any
    target: Any
    name: ct.Constant[str]


@ct.kernel
def of_pair(pair, weights, T: ct.Constant[int]):
    x = ct.load(pair.source, ct.bid(0), T)
    ct.store(pair.target, ct.bid(0), x + len(weights) if pair.name == "sum" else x)


def test_structures_and_constants_that_are_no_numbers(found: list[Any]) -> None:
    """Numbers that stand for them in a key are a kernel's own, and so is the key of the kernel in its place."""
    other = of_pair.replace_hints(opt_level=1)
    x, y = vectors()
    ct.launch(None, 16, other, (Pair(x, y, "none"), [x], 256))  # "none" is its first constant
    for name, more in (("sum", 2), ("none", 0), ("sum", 2)):
        tune.launch(None, lambda T: 4096 // T, of_pair, (Pair(x, y, name), [x, y], 16))
        np.testing.assert_array_equal(y, x + more)
    assert len(found) == 2


def test_an_autotuned_kernel_searches_once_and_is_launched_as_found(found: list[Any], tmp_path: Path) -> None:
    path = str(tmp_path / "own.jsonl")
    tuned = tune.AutotunedKernel(scale, {"T": (64,)}, {"record_file": path, **QUICK})
    x, y = vectors()
    tune.launch(None, 16, scale, (x, y, 16))  # which is another launch
    for _ in range(3):
        y[:] = 0
        tune.launch(None, lambda T: 4096 // T, tuned, (x, y, 16))
        np.testing.assert_array_equal(y, 2 * x)
    assert found == [None, path] and len(tuned.seen) == 1


def test_a_kernel_that_was_launched_can_end() -> None:
    kernel = ct.kernel(scale.function)
    x, y = vectors()
    tune.launch(None, lambda T: 4096 // T, tune.AutotunedKernel(kernel, {}, QUICK), (x, y, 16))
    tune.launch(None, 16, kernel, (x, y, 16))
    end = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert end() is None
