"""Records in kernels of Numba programs: elements of structured arrays, which a name stands for in their places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.errors import TileTypeError
from tilewright.numba import cuda

POINT = np.dtype([("x", np.float64), ("n", np.int32), ("h", np.float32, (3,)), ("m", np.int16, (2, 2))], align=True)
PAIR = np.dtype([("a", POINT), ("b", np.int64)], align=True)


def test_a_record_is_written_by_a_kernel() -> None:
    @cuda.jit
    def kernel(r: Any, v: Any) -> None:
        r.x = v
        r["n"] = 7
        r.h[1] = r.x / 2
        r["m"][1, 0] = r.n
        r[0] += 1

    points = np.zeros(3, POINT)
    kernel[1, 1](points[1], 4.0)
    assert points[1]["x"] == 5 and points[1]["n"] == 7 and points[1]["h"].tolist() == [0, 2, 0]
    assert points[1]["m"].tolist() == [[0, 0], [7, 0]]
    assert points[0] == points[2] == np.zeros(1, POINT)[0]


def test_a_name_for_an_element_stands_for_its_place() -> None:
    @cuda.jit
    def kernel(points: Any, which: Any) -> None:
        i = cuda.grid(1)
        if i < points.size:
            p = points[i]
            p.n = i
            other = p
            other.x += 2
            p.h[i % 3] = p.x
            q = points[0] if which else points[1]
            if i == 2:
                q.m[0, 1] = 9

    points = np.zeros(4, POINT)
    kernel[1, 4](points, True)
    assert points["n"].tolist() == [0, 1, 2, 3] and points["x"].tolist() == [2] * 4
    assert points["h"].tolist() == [[2, 0, 0], [0, 2, 0], [0, 0, 2], [2, 0, 0]]
    assert points["m"][:, 0, 1].tolist() == [9, 0, 0, 0]


def test_structs_in_structs_and_whole_records() -> None:
    @cuda.jit
    def kernel(pairs: Any, points: Any, source: Any) -> None:
        pairs[0].a.x = 3
        pairs[0].a.h[2] = 4
        pairs[1].a = pairs[0].a
        points[1] = pairs[1].a
        points[0].h = source
        points["h"][2, 1] = points.h[0, 2]

    pairs, points = np.zeros(2, PAIR), np.zeros(3, POINT)
    kernel[1, 1](pairs, points, np.array([1, 2, 3], np.float32))
    assert pairs[1] == pairs[0] and points[1] == pairs[0]["a"] and points[1]["x"] == 3
    assert points["h"].tolist() == [[1, 2, 3], [0, 0, 4], [0, 3, 0]]


def test_a_field_is_assigned_by_its_name() -> None:
    @cuda.jit
    def kernel(r: Any) -> None:
        r["z"] = 1

    with pytest.raises(TileTypeError, match="has no field 'z'"):
        kernel[1, 1](np.zeros(1, POINT)[0])


def test_what_is_only_read_does_not_change() -> None:
    @cuda.jit
    def kernel(a: Any, r: Any) -> None:
        a[0] = 3
        r.n = 3

    numbers, points = np.zeros(1, np.int64), np.zeros(1, POINT)
    kernel[1, 1](cuda.In(numbers), points[0])
    assert numbers[0] == 0 and points["n"][0] == 3
    kernel[1, 1](cuda.InOut(numbers), points[0])
    assert numbers[0] == 3


def test_a_record_of_a_device_array_on_the_cpu_is_in_its_place() -> None:
    points = cuda.to_device(np.zeros(2, POINT))
    record = points[1]
    if points.device == "cpu":
        record["n"] = 5
        assert points[1]["n"] == 5 and points.copy_to_host()["n"].tolist() == [0, 5]
    else:
        with pytest.raises(ValueError, match="read-only"):
            record["n"] = 5
