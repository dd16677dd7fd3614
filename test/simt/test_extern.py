"""Functions of C++ that device code calls: their calls in PTX, linking, and what stands for them elsewhere."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_driver import find_driver

from cuda import device
from tilewright import compilation, link, nvrtc
from tilewright import compile as compiler
from tilewright.errors import TileCompilationError, TileTypeError, TileUnsupportedFeatureError, TileValueError
from tilewright.toolkit import find_tool

CLANG = os.environ.get("CLANG", "clang-22")


FLOATS = (("array", "float32", 1, 16, (1,), ((1, 1),), True, False, {}, {}),)  # what a launch knows of one array


@device.struct
class Point:
    x: device.float32
    y: device.float32


@device.extern
def noise(p: Point, n: device.uint32) -> Point:
    return Point(p.y * n, p.x)


@device.extern()
def total(a: device.array(device.uint8, 1), h: device.float16x2, z: None, w: device.float64x4) -> device.float32:
    return device.float32(a[0]) + h.x + device.float32(w.w)


@device.extern
def only_there(x: device.float32) -> device.float32: ...


@device.kernel
def calls(x, bytes_):
    i = device.tid(1)
    p = noise(Point(x[i], 2.0), device.uint32(i))
    x[i] = p.x + p.y + total(bytes_, device.float16x2(1, 2), None, device.float64x4(1, 2, 3, 4))


@device.func(interop=True)
def through(x: device.float32, bytes_: device.array(device.uint8, 1)) -> device.float32:
    p = noise(Point(x, 2.0), device.uint32(3))
    return p.x + p.y + total(bytes_, device.float16x2(1, 2), None, device.float64x4(1, 2, 3, 4))


@pytest.mark.host_execution
@pytest.mark.spec("D-016", "D-051", "D-311")
def test_where_no_gpu_is_the_body_stands_for_it(run: Any) -> None:
    x, bytes_ = np.arange(4, dtype=np.float32), np.full(3, 7, np.uint8)
    run(calls, x, bytes_, grid=1, block=4)
    assert list(x) == [12 + 3 * i for i in range(4)]
    assert noise(Point(1, 2), 3) == Point(6, 1)


def exported(tmp_path: Path, function: Any = through, **how: Any) -> Path:
    path = tmp_path / f"{function.__name__}.{how.get('output_format', 'ptx')}"
    compilation.export_functions([function], path, **{"gpu_code": "sm_90", "output_format": "ptx", **how})
    return path


@pytest.mark.spec("D-016")
def test_calls_are_those_of_their_declarations(tmp_path: Path) -> None:
    ptx = re.sub(r"\s+", " ", exported(tmp_path).read_text())
    assert ".extern .func (.param .align 4 .b8 func_retval0[8]) noise ( .param .align 4 .b8 noise_param_0[8]," in ptx
    assert ".param .align 8 .b8 total_param_0[24], .param .b64 total_param_1, .param .b64 total_param_2," in ptx
    assert ".param .align 16 .b8 total_param_3[32]" in ptx
    assert "st.param.b64 [param2], 0;" in ptx
    assert re.search(r"call\.uni \(retval0\), noise, \(param0, param1\);", ptx)


# What takes the place of the functions of C++ here.
@device.func(interop=True)
def of_cpp(p: Point, n: device.uint32) -> Point:
    return Point(p.y * n, p.x)


@pytest.mark.skipif(find_tool("nvlink") is None, reason="no nvlink of NVIDIA's package")
@pytest.mark.spec("D-016")
def test_kernels_are_linked_with_the_files_that_they_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = exported(tmp_path, of_cpp)
    source.write_text(source.read_text().replace("of_cpp", "noise"))

    @device.extern(link=source)
    def noise(p: Point, n: device.uint32) -> Point: ...

    @device.kernel
    def kernel(x):
        x[0] = noise(Point(x[1], x[2]), device.uint32(3)).y

    captured = compiler.capture_kernel(kernel, "sm_90", FLOATS)
    assert str(source) in captured.module.attribute("tile.links")
    image = compiler.image_of(captured.module, captured.module.text(), "sm_90", "kernel", compiler.Times("k", "sm_90"))
    assert image.code.startswith(b"\x7fELF") and b"noise" in image.code
    source.write_text("nonsense")
    with pytest.raises(TileCompilationError, match="ptxas refused .*of_cpp.ptx"):
        link.linked(exported(tmp_path).read_bytes(), "sm_90", [source], None)


CPP = """extern "C" __device__ float scaled(float x) { return FACTOR * x; }"""


@device.extern
def scaled(x: device.float32) -> device.float32: ...


@device.func(interop=True)
def calls_scaled(x: device.float32) -> device.float32:
    return scaled(x) + 1


@pytest.mark.skipif(nvrtc.library() is None, reason="no NVRTC of NVIDIA's packages")
@pytest.mark.skipif(find_tool("nvlink") is None, reason="no nvlink of NVIDIA's package")
@pytest.mark.spec("D-051")
def test_source_is_compiled_then_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, caller = tmp_path / "scaled.cu", exported(tmp_path, calls_scaled).read_bytes()
    source.write_text("#define FACTOR 3\n" + CPP)
    assert link.linked(caller, "sm_90", [source], None).startswith(b"\x7fELF")
    source.write_text(CPP)
    with pytest.raises(TileCompilationError, match='NVRTC refused .*scaled.cu.*\n.*"FACTOR" is undefined'):
        link.linked(caller, "sm_90", [source], None)
    monkeypatch.setattr(nvrtc, "library", lambda: None)
    with pytest.raises(TileCompilationError, match="nvcc refused"):
        link.linked(caller, "sm_90", [source], None)


BY_THE_DRIVER = """
from pathlib import Path
from tilewright import link
folder, = map(Path, sys.argv[1:])
(folder / "a.ptx").write_text(".version 7.8 // a")
(folder / "bad.ptx").write_text(".version 7.8 syntax error")
cubin = link.linked(b".version 7.8 // kernel", "sm_90a", [folder / "a.ptx"], 0)
assert b"// kernel" in cubin and b"// a" in cubin
try:
    link.linked(b".version 7.8", "sm_90a", [folder / "bad.ptx"], 0)
except TileCompilationError as error:
    assert "bad.ptx: the driver's PTX compiler says:" in str(error) and "line 3; fatal" in str(error)
else:
    raise AssertionError("taken")
"""


@pytest.mark.spec("C-019", "C-022", "C-026")
def test_the_driver_links_without_any_tool(tmp_path: Path) -> None:
    given = {**os.environ, "TILEWRIGHT_CUDA_DRIVER": str(find_driver()), "PATH": ""}
    program = "import sys\nfrom tilewright.errors import TileCompilationError\n" + BY_THE_DRIVER
    done = subprocess.run([sys.executable, "-c", program, tmp_path], env=given, capture_output=True, text=True)
    assert not done.returncode, done.stderr


def test_another_file_is_another_kernel(tmp_path: Path) -> None:
    path = tmp_path / "a.ptx"
    path.write_text("one")
    before = link.described([str(path)])
    path.write_text("two")
    assert link.described([str(path)]) != before
    assert link.files_of(before) == [path.resolve()]
    with pytest.raises(TileValueError, match="link= names .*none.ptx, which cannot be read: No such file"):
        link.described([str(tmp_path / "none.ptx")])


OF_THE_HOST = """
#include <stdint.h>
typedef struct { float x, y; } Point;
typedef struct { unsigned char *data; uint64_t shape[1], strides[1]; } Bytes;
typedef struct { _Alignas(16) double x; double y, z, w; } double4;
typedef struct { unsigned short x, y; } half2;
Point noise(Point p, uint32_t n) { return (Point){p.y * n, p.x}; }
float total(Bytes a, half2 *h, void *z, double4 w) { return z ? -1 : a.data[0] + (h->x == 0x3C00) + w.w; }
float through(float, Bytes);
int check(void) {
  unsigned char bytes[] = {7, 8};
  return through(5, (Bytes){bytes, {2}, {1}}) == 6 + 5 + 7 + 1 + 4 ? 0 : 1;
}
"""


@pytest.mark.skipif(shutil.which(CLANG) is None, reason=f"{CLANG} makes the host's half")
def test_the_host_has_functions_of_its_own(tmp_path: Path) -> None:
    """A `__half2` has a copy constructor, and so is passed by address."""
    made = exported(tmp_path, gpu_code="host", output_format="object")
    (tmp_path / "caller.c").write_text(OF_THE_HOST)
    library = tmp_path / "both.so"
    subprocess.run([CLANG, "-O1", "-shared", "-fPIC", tmp_path / "caller.c", "-xnone", made, "-o", library], check=True)
    assert ctypes.CDLL(str(library)).check() == 0


@device.kernel
def without_a_body(x):
    x[0] = only_there(x[1])


@device.kernel
def wrong_array(x):
    x[0] = total(x, device.float16x2(1, 2), None, device.float64x4(1, 2, 3, 4))


def test_refused(tmp_path: Path) -> None:
    x = np.zeros(4, np.float32)
    with pytest.raises(TileTypeError, match="only_there is a function of C\\+\\+ for GPUs; give it a body"):
        device.launch(without_a_body, x, grid=1, block=1)
    with pytest.raises(TileTypeError, match="the argument 'a' of total is a 1-D array of uint8, found the 1-D float32"):
        compiler.capture_kernel(
            wrong_array, "sm_90", (("array", "float32", 1, 16, (1,), ((1, 1),), True, False, {}, {}),)
        )
    with pytest.raises(TileTypeError, match="@device.extern needs a function made by 'def'"):
        device.extern(3)
    with pytest.raises(TileTypeError, match="link= is a file, or several"):
        device.extern(link=[3])(noise.underlying)


def test_tools_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "find_tool", lambda name: None)
    with pytest.raises(TileUnsupportedFeatureError, match="link= for a GPU that is not there needs ptxas"):
        link.linked(b"", "sm_90", [], None)
