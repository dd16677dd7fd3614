"""bench: a contender that is wrong does not get to be timed; what the figures and their picture say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import admission
import picture
import readme
import record

X = np.linspace(1, 2, 64, dtype=np.float32)


def error_of(work: Any, out: np.ndarray) -> float:
    """Of a work that shall double X."""
    return admission.checked(work, (out,), lambda: float(abs(out - X * 2).max() / 4), lambda: None)


def test_what_is_right_is_admitted() -> None:
    out, own = np.empty_like(X), np.empty_like(X)
    assert error_of(lambda: np.multiply(X, 2, out=out), out) == 0
    assert error_of(lambda: np.multiply(X, 2, out=own), out) == 0  # an output of its own
    assert error_of(lambda: (X * 2).reshape(8, 8), out) == 0
    assert error_of(lambda: X * np.float32(2.000002), out) < 1e-5


def test_what_writes_nothing_inherits_nothing() -> None:
    out = np.empty_like(X)
    error_of(lambda: np.multiply(X, 2, out=out), out)
    with pytest.raises(admission.WrongResultError, match="its error is nan"):
        error_of(lambda: None, out)


def test_what_is_wrong_is_told() -> None:
    out = np.empty_like(X)
    with pytest.raises(admission.WrongResultError, match="expected 1e-05 at most"):
        error_of(lambda: X * 2.001, out)
    with pytest.raises(admission.WrongResultError, match="its error is nan"):
        error_of(lambda: np.copyto(out[:32], X[:32] * 2), out)  # half of it is left out
    with pytest.raises(admission.WrongResultError, match="its result has the shape"):
        error_of(lambda: X[:32] * 2, out)


def test_one_tile_size_for_all() -> None:
    """The best at each size is 2; with one variant it is that of the one with the better mean, measured everywhere."""
    ratios = {"a": (2.0, 0.5), "b": (1.5, 2.0), "c": (9.0,)}
    rows = [
        {"bench": f"f M={size}", "shape": "1x1", "who": f"tilewright {who}", "ms": 1, "of_peer": ratio}
        for who, its in ratios.items()
        for size, ratio in enumerate(its)
    ]
    assert readme.one_for_all(rows) == {("f", "peer"): pytest.approx(3**0.5)}
    assert readme.one_for_all(rows[:2]) == {}  # there was no choice


def test_the_picture_has_each_program_and_its_peers() -> None:
    found = picture.picture([("a & b", [("peer", [0.5, 2.0]), ("other", [9.0])]), ("c", [("peer", [1.0])])])
    drawn = ElementTree.fromstring(found)
    texts = [element.text for element in drawn.iter() if element.tag.endswith("text")]
    assert {"a & b", "1.00 peer, 9.00 other", "c", "1.00 peer", "▸"} <= set(texts)
    marks = [float(element.attrib["cx"]) for element in drawn.iter() if element.tag.endswith("circle")]
    assert sorted(marks)[:2] == [pytest.approx(picture.at(1), abs=0.1)] * 2, "as much faster as slower is as fast"
    assert readme.PICTURE.read_text() == picture.picture(
        [(program, list(its.items())) for program, its in readme.programs()[0].items()]
    ), "make figures"


def test_medians_tell_their_spread(tmp_path: Path) -> None:
    """Half of the times 1 to 5 lie between 1.5 and 4.5."""
    median = record.interleave({"x": iter([5.0, 1.0, 3.0, 2.0, 4.0]).__next__}, 5)["x"]
    record.Results("times", "device", tmp_path / "file").add(ms=median)
    assert median == 3 and '"ms": 3.0, "spread": 1.0' in (tmp_path / "file").read_text()
