"""ct.compiler_timeout: a compilation that takes too long is ended, wherever it is; one that does not is as without."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import compile, deadline
from tilewright import tile as ct


@ct.kernel
def double(X, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(X, index=(i,), tile=2 * ct.load(X, index=(i,), shape=(T,)))


@ct.kernel
def unrolled(X, N: ct.Constant[int]):
    x = ct.load(X, index=(0,), shape=(16,))
    for _ in ct.static_iter(range(N)):
        for _ in ct.static_iter(range(N)):
            x = x + 1
    ct.store(X, index=(0,), tile=x)


def test_what_is_in_time_is_as_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_NO_CACHE", "1")
    x = np.ones(64, np.float32)
    double.clear_variants()
    with ct.compiler_timeout(600):
        ct.launch(None, (4,), double, (x, 16))
    assert (x == 2).all()
    _, key = double.specialization((x, 16))
    module = double.capture("cpu", key)
    with ct.compiler_timeout(600), deadline.running("double"):
        apart = compile.Image.unpack(deadline.build(module.text(True), "cpu", "double", 0) or b"")
    assert apart is not None and apart.record == compile.Specialization(double, "cpu", key)._compile()[2].record


def test_a_capture_without_end_is_ended() -> None:
    with ct.compiler_timeout(0.5), pytest.raises(ct.TileCompilerTimeoutError, match="takes longer than 0.5 s") as found:
        ct.launch(None, (1,), unrolled, (np.ones(16, np.float32), 10000))
    assert "x = x + 1" in str(found.value)


def test_stages_without_end_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is ended; here it would wait for a module that never comes."""
    monkeypatch.setenv("TILEWRIGHT_NO_CACHE", "1")
    monkeypatch.setattr(deadline, "_MODULE", ["-c", "import time; time.sleep(60)"])
    double.clear_variants()
    with ct.compiler_timeout(0.3), pytest.raises(ct.TileCompilerTimeoutError, match="kernel double takes longer"):
        ct.launch(None, (1,), double, (np.ones(16, np.float32), 16))


def test_what_is_refused_is_refused_as_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_NO_CACHE", "1")

    def refuse(*_: object) -> None:
        return None

    monkeypatch.setattr(deadline, "build", refuse)
    x = np.ones(16, np.float32)
    double.clear_variants()
    with ct.compiler_timeout(600):
        ct.launch(None, (1,), double, (x, 16))  # the module is built here again, to hear why: it is not refused
    assert (x == 2).all()


@pytest.mark.parametrize(
    ("seconds", "kind"), [(0, ct.TileValueError), ("1", ct.TileTypeError), (True, ct.TileTypeError)]
)
def test_a_limit_is_a_number_of_seconds(seconds: object, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="ct.compiler_timeout takes"), ct.compiler_timeout(seconds):  # type: ignore[arg-type]
        pass


def test_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_COMPILER_TIMEOUT", "soon")
    with pytest.raises(ct.TileValueError, match="TILEWRIGHT_COMPILER_TIMEOUT is a positive number"):
        double.clear_variants()
        ct.launch(None, (1,), double, (np.ones(16, np.float32), 16))
