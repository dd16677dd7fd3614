"""Structs and tuples: what they hold, their layouts, methods, and how they reach a kernel."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuda import device
from tilewright.errors import TileTypeError, TileValueError
from tilewright.layout import layout_of


@device.struct
class Point:
    x: device.float32
    y: device.float32

    @device.func
    def dot(self, other):
        return self.x * other.x + self.y * other.y

    @property
    def sum(self):
        return self.x + self.y


@device.struct
class Segment:
    first: Point
    last: Point
    weight: float = 1.0
    tags: tuple[int, device.int8] = (1, 2)


@device.struct(align=16)
class Complex:
    real: float
    imag: float


@device.struct
class Mixed:
    flag: bool
    wide: device.float64
    small: device.int8
    v: device.float32x3
    pair: tuple[device.int8, device.int32]
    c: Complex
    aligned: device.align(device.int16, 8)
    end: device.uint8


@device.kernel
def structs(p, s, x, out):
    q = Point(x[0], y=2)
    out[0] = p.dot(q)
    r = q
    q.x = 5
    q.y += 1
    out[1], out[2], out[3] = q.x, q.y, r.x
    out[4] = s.first.x + s.last.y + s.weight + s.tags[1]
    s.last.x = 7
    out[5] = s.last.x
    out[6] = q.sum
    out[7] = (q == Point(5, 3)) + (q != r)
    for i in range(3):
        q = Point(q.x + i, q.y)
    if q.x > 6:
        q = r
    out[8] = q.x


@pytest.mark.spec("D-190", "D-191", "D-200", "D-203", "D-204", "D-329")
def test_structs_in_device_code(run: Any) -> None:
    out = np.zeros(9, np.float32)
    s = Segment(Point(1, 2), Point(3, 4), tags=(1, np.int8(5)))
    run(structs, Point(3, 4), s, np.array([10], np.float32), out)
    np.testing.assert_array_equal(out, [38, 5, 3, 10, 11, 7, 8, 2, 10])


@device.kernel
def tuples(t, out):
    a, (b, c) = t
    out[0] = a + b * c
    out[1] = t[1][0]
    s = (a, b)
    out[2] = len((*s, c))
    none = t[1][1] if len(t) == 3 else None
    out[3] = none is None


@pytest.mark.spec("D-057", "D-184", "D-327", "D-328")
def test_tuples_and_none(run: Any) -> None:
    out = np.zeros(4, np.float32)
    run(tuples, (1, (2.5, np.float32(4))), out)
    np.testing.assert_array_equal(out, [11, 2.5, 3, 1])

    @device.kernel
    def optional(x, y):
        x[0] = 1 if y is None else y

    run(optional, out, None)
    assert out[0] == 1
    run(optional, out, 7)
    assert out[0] == 7


C_SOURCE = r"""
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
typedef struct { float x, y; } Point;
typedef struct { int32_t a; int8_t b; } tags;
typedef struct { Point first, last; float weight; tags tags; } Segment;
typedef struct __attribute__((aligned(16))) { float real, imag; } Complex;
typedef struct { float x, y, z; } float3;
typedef struct { int8_t a; int32_t b; } pair;
typedef int16_t aligned_short __attribute__((aligned(8)));
typedef struct {
  bool flag; double wide; int8_t small; float3 v; pair pair; Complex c; aligned_short aligned; uint8_t end;
} Mixed;
#define F(T, f) printf("%s %zu\n", #T "." #f, offsetof(T, f));
int main(void) {
  printf("Point %zu %zu\nSegment %zu %zu\nComplex %zu %zu\nMixed %zu %zu\n", sizeof(Point), _Alignof(Point),
         sizeof(Segment), _Alignof(Segment), sizeof(Complex), _Alignof(Complex), sizeof(Mixed), _Alignof(Mixed));
  F(Point, x) F(Point, y) F(Segment, first) F(Segment, last) F(Segment, weight) F(Segment, tags)
  F(Complex, real) F(Complex, imag)
  F(Mixed, flag) F(Mixed, wide) F(Mixed, small) F(Mixed, v) F(Mixed, pair) F(Mixed, c) F(Mixed, aligned) F(Mixed, end)
}
"""


@pytest.mark.spec("D-185", "D-186", "D-188", "D-189", "D-193", "D-194", "D-201", "D-202", "D-206", "D-210")
def test_offsets_are_those_of_c(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("clang-22")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "offsets.c").write_text(C_SOURCE)
    subprocess.run([compiler, "-std=c11", str(tmp_path / "offsets.c"), "-o", str(tmp_path / "offsets")], check=True)
    told = subprocess.run([str(tmp_path / "offsets")], check=True, capture_output=True, text=True).stdout
    kinds = {kind.__name__: kind for kind in (Point, Segment, Complex, Mixed)}
    for line in told.splitlines():
        name, *numbers = line.split()
        kind, _, field = name.partition(".")
        layout = layout_of(kinds[kind])
        if field:
            assert layout.fields[list(kinds[kind].__tw_struct__).index(field)] == int(numbers[0]), name
        else:
            assert [layout.size, layout.align] == [int(n) for n in numbers], name


@pytest.mark.spec("D-187", "D-192", "D-205", "D-211")
def test_layouts_of_the_samples() -> None:
    @device.struct
    class point:
        x: int
        y: int
        z: int

    assert (layout_of(point).size, layout_of(point).align) == (12, 4)
    assert (layout_of(Complex).size, layout_of(Complex).align) == (16, 16)
    three = layout_of(tuple[int, int, int])
    assert (three.size, three.align, three.fields) == (12, 4, (0, 4, 8))
    assert layout_of(tuple[device.int8, device.int32]).size == 8
    wide = device.align(device.float32, 16)
    assert (layout_of(wide).size, layout_of(wide).align) == (4, 16)
    assert (layout_of(device.float32).size, layout_of(device.float32).align) == (4, 4)


@pytest.mark.spec("D-196", "D-198", "D-199", "D-204")
def test_structs_of_the_host() -> None:
    class Plain:
        x: int
        y: float = 2.0

    kind = device.struct(Plain)
    assert kind.underlying is Plain
    p = kind(3)
    assert (p.x, p.y) == (3, 2.0) and p == kind(x=3, y=2.0)
    for change in (lambda: setattr(p, "x", 4), lambda: setattr(p, "z", 4)):
        with pytest.raises(AttributeError):
            change()
    with pytest.raises(TileTypeError, match="the field 'x' of Plain is of type int, found 1.5"):
        kind(1.5)
    with pytest.raises(TileTypeError, match="missing a required argument: 'x'"):
        kind()
    assert isinstance(Point(1, 2).x, np.float32) and Point(1, 2).dot(Point(3, 4)) == 11


@pytest.mark.spec("D-195", "D-197")
def test_what_is_no_struct() -> None:
    with pytest.raises(TileValueError, match="the alignment is a power of two, found 12"):
        device.struct(align=12)
    with pytest.raises(TileTypeError, match="the field 'y' has no type hint; write y: TYPE"):

        @device.struct
        class Untyped:
            x: int
            y = 3

    with pytest.raises(TileTypeError, match="the field 'x': list is no type of device code"):

        @device.struct
        class Wrong:
            x: list


@pytest.mark.spec("D-055", "D-199")
def test_no_attribute_is_added(run: Any) -> None:
    @device.kernel
    def k(p, x):
        p.z = 3
        x[0] = p.x

    with pytest.raises(TileTypeError, match="a Point has no field 'z'"):
        run(k, Point(1, 2), np.zeros(1, np.float32))


@device.kernel
def parts_of(given, out):
    out[0], out[1], out[2], out[3] = given.at.x, given.z.imag, given.n, given.two[1]


@pytest.mark.spec("D-327", "D-054")
def test_scalars_of_structured_dtypes(run: Any) -> None:
    """An element that NumPy took out of an array is the struct, as an argument."""
    point = np.dtype([("x", np.float64), ("y", np.float64)])
    dtype = np.dtype([("at", point), ("z", np.complex64), ("n", np.int8), ("two", np.float32, 2)])
    x, out = np.array([((1.5, 2.5), 1 - 3j, -7, (4, 5))], dtype), np.zeros(4)
    run(parts_of, x[0], out)
    assert list(out) == [1.5, -3, -7, 5]
