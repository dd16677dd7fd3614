"""Vectors: their types and layouts, what one has, elements that change, operators."""

from __future__ import annotations

import csv
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuda import device
from tilewright.device.vectors import DTYPES
from tilewright.dtype import as_dtype
from tilewright.errors import TileTypeError, TileValueError
from tilewright.layout import layout_of

DATA = Path(__file__).resolve().parent.parent / "data"
NAMES = [f"{name}x{n}" for name in DTYPES for n in range(1, 5)]
ROWS = [[f"{name}x{n}" for n in range(1, 5)] for name in DTYPES]
# CUDA's names, where there are such types; the others are packed elements.
CUDA = {"int8": "char", "int16": "short", "int32": "int", "int64": "longlong", "float32": "float", "float64": "double"}
CUDA |= {f"u{k}": f"u{v}" for k, v in CUDA.items() if "int" in k}
C_TYPES = {"float8e4m3": "uint8_t", "float8e5m2": "uint8_t", "float16": "uint16_t", "bfloat16": "uint16_t"}
C_TYPES |= {"float32": "float", "float64": "double"}


def numbered(first: int) -> Any:
    """Each type with its requirement's id; they are numbered in the order of the document's table."""
    order = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float8e4m3", "float8e5m2"]
    order += ["float16", "bfloat16", "float32", "float64"]
    rows = [(name, n) for name in order for n in range(1, 5)]
    marks = [pytest.mark.spec(f"D-{first + i}") for i in range(len(rows))]
    return pytest.mark.parametrize(
        "name, n",
        [pytest.param(*row, marks=mark, id=f"{row[0]}x{row[1]}") for row, mark in zip(rows, marks, strict=True)],
    )


def kernel_of(kind: Any, n: int) -> Any:
    @device.kernel
    def roundtrip(x, y):
        """A vector made, kept over a loop, and taken apart again."""
        v = kind(*[x[i] for i in range(n)])
        for _ in range(2):
            v = v + v
        for i, element in enumerate(v):
            y[i] = element

    return roundtrip


@numbered(111)
def test_each_vector_type(name: str, n: int) -> None:
    """Its layout is CUDA's, and device code keeps its elements in its format."""
    kind = getattr(device, f"{name}x{n}")
    dtype = as_dtype(name)
    layout = layout_of(kind)
    whole = min(16, dtype.itemsize * n) if n in (2, 4) else dtype.itemsize
    assert (layout.size, layout.align) == (dtype.itemsize * n, whole)
    assert layout.leaves == tuple((i * dtype.itemsize, dtype) for i in range(n))
    assert kind.dtype is dtype and kind.size == n

    x, y = np.arange(1, n + 1).astype(dtype.numpy), np.zeros(n, dtype.numpy)
    device.launch(kernel_of(kind, n), x, y, grid=1, block=1)
    np.testing.assert_array_equal(y.astype(np.float32), 4 * np.arange(1, n + 1, dtype=np.float32))


PROGRAM = r"""
#include <stdint.h>
#include <stdio.h>
%s
int main(void) {
%s
}
"""


def test_layouts_are_those_of_c(tmp_path: Path) -> None:
    """Sizes and alignments of the host's compiler, for types declared as CUDA's headers declare them."""
    compiler = shutil.which("cc") or shutil.which("clang-22")
    if compiler is None:
        pytest.skip("no C compiler")
    types, prints = [], []
    for name, dtype in DTYPES.items():
        for n in range(1, 5):
            whole = min(16, dtype.itemsize * n) if n in (2, 4) else 1
            element = C_TYPES.get(name, f"{name}_t")
            members = ", ".join("xyzw"[:n])
            types.append(f"typedef struct __attribute__((aligned({whole}))) {{ {element} {members}; }} {name}x{n};")
            prints.append(f'  printf("{name}x{n} %zu %zu\\n", sizeof({name}x{n}), _Alignof({name}x{n}));')
    source = tmp_path / "layouts.c"
    source.write_text(PROGRAM % ("\n".join(types), "\n".join(prints)))
    subprocess.run([compiler, "-std=c11", str(source), "-o", str(tmp_path / "layouts")], check=True)
    told = subprocess.run([str(tmp_path / "layouts")], check=True, capture_output=True, text=True).stdout
    for line in told.splitlines():
        name, size, align = line.split()
        layout = layout_of(getattr(device, name))
        assert (layout.size, layout.align) == (int(size), int(align)), name


@pytest.mark.skipif(not Path("/usr/local/cuda/include/vector_types.h").exists(), reason="CUDA's headers are not here")
def test_layouts_are_those_of_cuda(tmp_path: Path) -> None:
    prints = [
        f'  printf("{name}x{n} %zu %zu\\n", sizeof({cuda}{n}), alignof({cuda}{n}));'
        for name, cuda in CUDA.items()
        for n in range(1, 5)
    ]
    source = tmp_path / "cuda.cpp"
    source.write_text(PROGRAM % ("#include <vector_types.h>", "\n".join(prints)))
    command = ["g++", "-w", "-I/usr/local/cuda/include", str(source), "-o", str(tmp_path / "cuda")]
    subprocess.run(command, check=True)
    told = subprocess.run([str(tmp_path / "cuda")], check=True, capture_output=True, text=True).stdout
    for line in told.splitlines():
        name, size, align = line.split()
        layout = layout_of(getattr(device, name))
        assert (layout.size, layout.align) == (int(size), int(align)), name


@device.kernel
def parts(out):
    v = device.float32x4(1, 2.5, 3, 4)
    out[0] = v.x + v.y * 10 + v.z * 100 + v.w * 1000
    out[1] = v[1] + v[-1]
    out[2] = v.size + len(v)
    out[3] = v.dtype == device.float32
    a, b, c, d = v
    out[4] = a + b + c + d
    total = device.float32(0)
    for e in v:
        total += e
    out[5] = total
    for i, (e, f) in enumerate(zip(v, (4, 3, 2, 1))):  # noqa: B905
        out[6 + i] = e * f


@pytest.mark.spec("D-089", "D-092", "D-093", "D-094", "D-095", "D-098", "D-103", "D-104", "D-105", "D-107", "D-109")
def test_what_a_vector_has(run: Any) -> None:
    out = np.zeros(10, np.float32)
    run(parts, out)
    np.testing.assert_array_equal(out, [4326, 6.5, 8, 1, 10.5, 10.5, 4, 7.5, 6, 4])


@device.kernel
def changes(x, out):
    v = device.int32x3(1, 2, 3)
    w = v
    v[0] = 9
    v.z = x[0]
    v.y += 5
    v[-1] *= 2
    out[0], out[1], out[2] = v
    out[3] = w[0]
    for i in range(3):
        v[i] = v[i] + i  # an index that is known at run time
    out[4] = v.x + v.y + v.z
    out[5] = v[x[1]]


@pytest.mark.spec("D-024", "D-091", "D-100", "D-200")
def test_a_changed_vector_is_another_one(run: Any) -> None:
    out = np.zeros(6, np.int32)
    run(changes, np.array([7, 1], np.int32), out)
    np.testing.assert_array_equal(out, [9, 7, 14, 1, 9 + 8 + 16, 8])


@device.kernel
def operators(x, out):
    v = device.float32x2(x[0], x[1])
    w = device.int32x2(3, 4)
    s = v + w
    out[0], out[1] = s * 2
    out[2], out[3] = 1 / v - w
    out[4], out[5] = -v
    out[6] = (w // 2 + w % 2).y
    out[7] = (v + w).dtype == device.float32
    out[8] = v == device.float32x2(x[0], x[1])
    out[9] = v != device.float32x2(x[0], 0)


@pytest.mark.spec("D-167")
def test_operators_go_by_element(run: Any) -> None:
    x, out = np.array([0.5, 4], np.float32), np.zeros(10, np.float32)
    run(operators, x, out)
    np.testing.assert_array_equal(out, [7, 16, -1, -3.75, -0.5, -4, 2, 1, 1, 1])


@pytest.mark.spec("D-167")
def test_what_vectors_promote_to() -> None:
    from tilewright.capture import DEVICE
    from tilewright.capture.values import Tile

    builtin = {"bool": True, "int": 2, "float": 0.5}
    for cell in csv.DictReader((DATA / "device_promotion_vectors.csv").open()):
        names = [cell["left"].removesuffix("xN"), cell["right"].removesuffix("xN")]
        if any("complex" in name for name in (*names, cell["result"])):
            continue
        x, y = (builtin.get(n) if n in builtin else Tile(None, as_dtype(n), ()) for n in names)
        if cell["result"] == "ERR":
            with pytest.raises(TileTypeError):
                DEVICE.meet("add", (x, y))
        else:
            assert DEVICE.meet("add", (x, y)).result is as_dtype(cell["result"].removesuffix("xN")), cell


@device.kernel
def carried(x, out):
    """A vector over a loop, through a branch, from a function."""
    best = device.float32x2(0, 0)
    for i in range(x.size):
        here = device.float32x2(x[i], i)
        if here.x > best.x:
            best = here
    out[0], out[1] = twice(best)


@device.func
def twice(v):
    return v + v


@pytest.mark.spec("D-089")
def test_vectors_in_control_flow(run: Any) -> None:
    out = np.zeros(2, np.float32)
    run(carried, np.array([1, 5, 3], np.float32), out)
    np.testing.assert_array_equal(out, [10, 2])


@device.kernel
def takes(v, w, out):
    out[0] = v.x + v.y
    out[1] = w.w
    out[2] = w.dtype == device.int16


@pytest.mark.spec("D-326")
def test_vectors_are_arguments(run: Any) -> None:
    out = np.zeros(3, np.float64)
    run(takes, device.float64x2(1.25, 2), device.int16x4(1, 2, 3, -4), out)
    np.testing.assert_array_equal(out, [3.25, -4, 1])


@pytest.mark.spec("D-090", "D-095", "D-099", "D-100", "D-106", "D-108", "D-110")
def test_vectors_of_the_host() -> None:
    v = device.float32x3(1, 2.5, 3)
    assert isinstance(v, device.Vector) and list(v) == [1, 2.5, 3] and len(v) == v.size == 3
    assert v == device.float32x3(1, 2.5, 3) and (v * 2).y == 5 and -v == device.float32x3(-1, -2.5, -3)
    with pytest.raises(TileTypeError, match="a float32x3 is immutable on the host; make a new one"):
        v[0] = 3
    with pytest.raises(TileValueError, match="index 3 is outside of float32x3"):
        v[3]
    with pytest.raises(AttributeError):
        v.w
    for name, axis in [("int8x1", "y"), ("int8x2", "z"), ("int8x3", "w")]:
        assert not hasattr(getattr(device, name)(*range(int(name[-1]))), axis)


@pytest.mark.spec("D-096", "D-097")
def test_what_a_vector_is_not_made_of() -> None:
    with pytest.raises(TileTypeError, match="float32x3 takes 3 values, found 2"):
        device.float32x3(1, 2)
    with pytest.raises(TileTypeError, match="is of type int32, found 1.5"):
        device.int32x2(1.5, 1)
    with pytest.raises(TileValueError, match=r"300 is outside int8 \(-128 to 127\)"):
        device.int8x1(300)


@pytest.mark.spec("D-101", "D-102")
def test_what_an_element_does_not_become(run: Any) -> None:
    @device.kernel
    def another_kind(x):
        v = device.int32x2(1, 2)
        v[0] = 1.5
        x[0] = v.x

    @device.kernel
    def outside(x):
        v = device.int32x2(1, 2)
        v[2] = 1
        x[0] = v.x

    with pytest.raises(TileTypeError):
        run(another_kind, np.zeros(1, np.float32))
    with pytest.raises((TileValueError, IndexError)):
        run(outside, np.zeros(1, np.float32))
