"""Functions and kernels that C++ calls: symbols, parameters as nvcc has them, objects that link, and the host."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import interop_cases as cases
import pytest

from cuda import device
from tilewright import compilation, compile, plans
from tilewright.capture.c_entry import capture_for_c
from tilewright.compilation.interop import entry_of
from tilewright.device import abi
from tilewright.errors import TileError, TileTypeError, TileValueError
from tilewright.layout import layout_of
from tilewright.toolkit import find_tool

CLANG = os.environ.get("CLANG", "clang-22")
needs_clang = pytest.mark.skipif(shutil.which(CLANG) is None, reason=f"{CLANG} makes the host's half")
needs_nvlink = pytest.mark.skipif(find_tool("nvlink") is None, reason="no nvlink of NVIDIA's package")

# Results and parameters in the PTX that nvcc 13.0 makes of interop_cases.FUNCTIONS_OF_C.
OF_NVCC = {
    "scaled": (".b32", [".align 4 .b8[8]", ".b32"]),
    "numbers": (
        ".align 4 .b8[8]",
        [*[".b32"] * 6, ".b64", ".align 2 .b8[2]", ".align 1 .b8[1]", ".align 2 .b8[2]"],
    ),
    "records": (
        ".align 16 .b8[16]",
        [*[".align 16 .b8[16]"] * 3, ".align 1 .b8[3]", ".align 8 .b8[32]"],
    ),
    "large": (".align 8 .b8[32]", [".align 8 .b8[32]", ".b64"]),
    "successor": (".b32", [".b32"]),
    "negated": (".b32", [".b32"]),
    "halves": ("", [".b64", ".b64", ".align 2 .b8[2]"]),  # __half2 has a copy constructor
    "mixed": (".align 8 .b8[16]", [".align 8 .b8[8]", ".align 8 .b8[16]", ".b64"]),
    "first_row": (".b64", [".align 8 .b8[40]", ".b32"]),
    "nothing": ("", [".align 8 .b8[8]"]),
    "blend": (
        "",
        [
            ".u8",
            ".u8",
            ".align 2 .b8[2]",
            ".align 4 .b8[12]",
            ".align 4 .b8[4]",
            ".align 8 .b8[32]",
            ".align 8 .b8[24]",
        ],
    ),
}
HEAD = re.compile(r"\.visible \.(?:func|entry)\s*(\([^)]*\))?\s*(\w+)\(([^)]*)\)")


def one(parameter: str) -> str:
    """A parameter of PTX without its name."""
    found = re.match(r"\s*\.param ((?:\.align \d+ )?\.\w+) \w+(\[\d+\])?", parameter)
    return f"{found[1]}{found[2] or ''}" if found else ""


def heads(ptx: str) -> dict[str, tuple[str, list[str]]]:
    return {
        m[2]: (one((m[1] or "").strip("()")), [one(p) for p in m[3].split(",") if p.strip()])
        for m in HEAD.finditer(ptx)
    }


def exported(tmp_path: Path, functions: Any = cases.FUNCTIONS, **how: Any) -> bytes:
    path = tmp_path / "functions"
    compilation.export_functions(functions, path, **{"gpu_code": "sm_90", "output_format": "ptx", **how})
    return path.read_bytes()


@pytest.mark.spec("D-018", "D-019", "D-020", "D-021", "D-049", "D-298", "D-300", "D-309", "D-059", "D-058")
@pytest.mark.spec("D-251", "D-252", "D-253", "D-254", "D-257")
@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100"])
def test_symbols_and_parameters_are_those_of_nvcc(tmp_path: Path, target: str) -> None:
    ptx = exported(tmp_path, gpu_code=target).decode()
    assert heads(ptx) == OF_NVCC
    assert ".visible .entry blend(" in ptx and ".visible .func (.param .b32 func_retval0) scaled(" in ptx.replace(
        "  ", " "
    )


def run_nvcc(command: list[str], folder: Path) -> None:
    """Without what is loaded before Python, as a sanitizer is: nvcc ends with a fault under it."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    subprocess.run(command, cwd=folder, check=True, env=environment)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc of a CUDA toolkit")
def test_nvcc_declares_them_alike(tmp_path: Path) -> None:
    """What stands in OF_NVCC is what nvcc makes of the declarations."""
    source = cases.DECLARATIONS
    for name, declared in cases.FUNCTIONS_OF_C.items():
        body = "{}" if declared.startswith("void") else "{ return a; }" if name == "halves" else "{ return {}; }"
        space = "__global__" if name == "blend" else "__device__"
        source += f'extern "C" {space} {declared} {body}\n'
    (tmp_path / "declared.cu").write_text(source)
    command = ["nvcc", "-std=c++17", "-rdc=true", "-arch=sm_90", "-ptx", "declared.cu", "-o", "declared.ptx"]
    run_nvcc(command, tmp_path)
    assert heads((tmp_path / "declared.ptx").read_text()) == OF_NVCC


@pytest.mark.spec("D-022", "D-301")
def test_other_functions_have_no_symbol(tmp_path: Path) -> None:
    """What is not interoperable is part of its callers."""

    @device.func
    def twice(x):
        return x + x

    @device.func(interop=True)
    def four_times(x: device.float32) -> device.float32:
        return twice(twice(x))

    assert set(heads(exported(tmp_path, [four_times]).decode())) == {"four_times"}


@pytest.mark.spec("D-111", "D-126", "D-151", "D-166")
def test_vectors_travel_as_their_bytes() -> None:
    for name, kind in ((name, kind) for name, kind in vars(device).items() if re.fullmatch(r"\w+\dx[1-4]", name)):
        layout = layout_of(kind)
        (value,) = abi.nvptx([abi.value_of(kind)], None, is_kernel=True).parameters
        ((piece, count, start),) = value.pieces
        assert (int(piece[1:]) // 8, int(piece[1:]) // 8 * count, start) == (layout.align, layout.size, 0), name


# ---------------------------------------------------------------------------------------------
# Linking

CALLER = """
.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b32 result) scaled (.param .align 4 .b8 p[8], .param .b32 s);
.visible .entry caller(.param .u64 out) {
  .reg .b64 %rd<2>; .reg .f32 %f<4>;
  { .param .align 4 .b8 p[8]; .param .b32 s; .param .b32 r;
    mov.f32 %f1, 0f3F800000;
    st.param.f32 [p], %f1; st.param.f32 [p+4], %f1; st.param.f32 [s], %f1;
    call (r), scaled, (p, s);
    ld.param.f32 %f2, [r]; }
  ld.param.u64 %rd1, [out];
  st.global.f32 [%rd1], %f2;
  ret;
}
"""


def assemble(tmp_path: Path, ptx: str) -> Path:
    (tmp_path / "caller.ptx").write_text(ptx)
    path = tmp_path / "caller.cubin"
    subprocess.run([find_tool("ptxas"), "-c", "-arch=sm_90", tmp_path / "caller.ptx", "-o", path], check=True)
    return path


def linked(tmp_path: Path, *parts: Path) -> subprocess.CompletedProcess[str]:
    command = [find_tool("nvlink"), "-arch=sm_90", *parts, "-o", tmp_path / "linked.cubin"]
    return subprocess.run(command, capture_output=True, text=True)


@needs_nvlink
@pytest.mark.spec("D-017", "D-299", "D-005", "D-003")
def test_objects_link_with_a_caller(tmp_path: Path) -> None:
    caller = assemble(tmp_path, CALLER)
    assert "scaled" in linked(tmp_path, caller).stderr  # which is undefined
    functions = tmp_path / "functions.cubin"
    compilation.export_functions(cases.FUNCTIONS, functions, gpu_code="sm_90", output_format="object")
    done = linked(tmp_path, caller, functions)
    assert done.returncode == 0, done.stderr
    assert b"blend" in (tmp_path / "linked.cubin").read_bytes()


MDSPAN = """
#include <cuda/interoperable_array_descriptor.h>
using Descriptor = cuda::interoperable_array_descriptor<float, 2>;
static_assert(sizeof(Descriptor) == 40 && alignof(Descriptor) == 8);
static_assert(sizeof(cuda::interoperable_array_descriptor<char, 0>) == 8);
static_assert(cuda::std::is_trivially_copyable<Descriptor>::value);
extern "C" __device__ cuda::std::uint64_t first_row(Descriptor a, float value);
extern "C" __device__ float both_ways(float *p, int n) {
  cuda::std::mdspan<float, cuda::std::dextents<int, 2>> rows(p, n, 4);
  Descriptor of_rows = rows, copied = of_rows;
  cuda::std::mdspan<float, cuda::std::dextents<cuda::std::uint64_t, 2>, cuda::std::layout_stride> back = copied;
  return back(1, 2) + first_row(rows, 1);
}
"""


@pytest.mark.spec("D-255", "D-256", "D-258")
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc of a CUDA toolkit, which has mdspan")
def test_descriptors_are_made_of_mdspan_and_back(tmp_path: Path) -> None:
    (tmp_path / "spans.cu").write_text(MDSPAN)
    command = [
        "nvcc",
        "-std=c++17",
        "-rdc=true",
        "-arch=sm_90",
        "-ptx",
        f"-I{compilation.include_folder()}",
        "spans.cu",
    ]
    run_nvcc(command, tmp_path)
    ptx = (tmp_path / "spans.ptx").read_text()
    assert re.search(r"\.param \.align 8 \.b8 \w+\[40\]", ptx)  # of the call


# ---------------------------------------------------------------------------------------------
# The host


OF_THE_HOST = """
#include <stdbool.h>
#include <stdint.h>
typedef struct { float x, y; } Point;
typedef struct { _Alignas(16) int count; double sum; } Wide;
typedef struct { double a, b, c; } Triple;
typedef struct { Triple values; Point corner; } Large;
typedef struct { _Alignas(8) float real; float imag; } Complex;
typedef struct { int a; double b; } Pair;
typedef struct { double b; int a; } Swapped;
typedef struct { _Alignas(16) float x; float y, z, w; } float4;
typedef struct { _Alignas(16) double x; double y; } double2;
typedef struct { signed char x, y, z; } char3;
typedef struct { unsigned short bits; } half;
typedef struct { unsigned char bits; } fp8;
typedef struct { void *data; uint64_t shape[2], strides[2]; } Array2;
typedef struct { void *data; } Array0;
float scaled(Point, float);
Point numbers(signed char, unsigned char, short, bool, int, float, uint64_t, half, fp8, half);
Wide records(Wide, float4, double2, char3, Large);
Large large(Large, double);
signed char successor(signed char);
bool negated(bool);
Swapped mixed(Complex, Pair, void *);
uint64_t first_row(Array2, float);
void nothing(Array0);

int check(void) {
  Large m = {{1, 2, 3}, {4, 5}};
  Point p = numbers(-1, 200, -300, true, 5, 6, 7, (half){0x3C00}, (fp8){0x38}, (half){0x3F80});
  Point q = numbers(-1, 200, -300, false, 5, 6, 7, (half){0x3C00}, (fp8){0x38}, (half){0x3F80});
  Wide w = records((Wide){1, 2}, (float4){1, 2, 3, 4}, (double2){5, 6}, (char3){7, 8, 9}, m);
  Large l = large(m, 10);
  Swapped s = mixed((Complex){1, 2}, (Pair){3, 4}, 0);
  float cells[8] = {0};
  int number = 0;
  uint64_t stride = first_row((Array2){cells, {2, 4}, {4, 1}}, 1);
  nothing((Array0){&number});
  if (scaled((Point){2, 3}, 4) != 11) return 1;
  if (p.x != 0 || p.y != 201 || q.x != -289 || q.y != 8) return 2;
  if (w.count != 10 || w.sum != 2 + 4 + 6 + 3 + 5) return 3;
  if (l.values.a != 10 || l.values.c != 3 || l.corner.y != 5) return 4;
  if (successor(127) != -128 || successor(-3) != -2) return 5;
  if (negated(true) || !negated(false)) return 6;
  if (s.b != 6 || s.a != 3) return 7;
  if (stride != 16 || cells[0] != 1 || cells[3] != 4 || cells[4] != 0) return 8;
  return number == 7 ? 0 : 9;
}
"""


@needs_clang
@pytest.mark.spec("D-019", "D-020", "D-021")
def test_the_host_calls_them(tmp_path: Path) -> None:
    """C that clang compiles passes and gets what the functions take and give."""
    (tmp_path / "caller.c").write_text(OF_THE_HOST)
    parts = []
    for f in cases.FUNCTIONS:
        if f not in (cases.blend, cases.halves):  # a kernel; a class of C++
            parts.append(tmp_path / f"{f.__name__}.o")
            compilation.export_functions([f], parts[-1], gpu_code="host", output_format="object")
    library = tmp_path / "functions.so"
    subprocess.run([CLANG, "-O1", "-shared", "-fPIC", tmp_path / "caller.c", *parts, "-o", library], check=True)
    assert ctypes.CDLL(str(library)).check() == 0


ARM = "aarch64"


@needs_clang
def test_conventions_of_the_host_are_those_of_clang(tmp_path: Path) -> None:
    """The pieces in which values travel, and whether on the stack or by address, on both kinds of machines."""
    types = [cases.Point, cases.Wide, cases.Large, tuple[int, device.float64], device.int8x3, device.float32x4]
    types += [device.float32x3, device.float64x2, device.int16x4, device.complex64, device.array(device.int8, 1)]
    for machine in ("x86_64", ARM):
        passed = abi.of_host(machine)([abi.value_of(t) for t in types[:4]], abi.value_of(types[2]))
        assert passed.result.on_stack
        forms = [
            [kind for kind, _, _ in abi.of_host(machine)([abi.value_of(t)], None).parameters[0].pieces] for t in types
        ]
        assert forms == OF_MACHINES[machine]


OF_MACHINES = {
    "x86_64": [
        *[["vector<2xf32>"], ["i64", "f64"], [], ["i64", "f64"], ["i24"], ["vector<2xf32>", "vector<2xf32>"]],
        *[["vector<2xf32>", "f32"], ["f64", "f64"], ["i64"], ["vector<2xf32>"], []],
    ],
    ARM: [
        *[["f32"], ["i128"], [], ["i64"], ["i64"], ["f32"]],
        *[["f32"], ["f64"], ["i64"], ["f32"], []],
    ],
}


@needs_clang
def test_a_function_of_a_gpu_computes(tmp_path: Path) -> None:
    """Its code, but for the call, which is LLVM's for this machine: the pieces of a struct are arguments."""
    entry = entry_of(cases.scaled, "sm_90")
    module = capture_for_c(cases.scaled.underlying, entry, "sm_90")
    plans.lower(module, compile.GPU_STAGES, module.lower)
    text = module.emit(compile.EMIT_LLVM).decode()
    text = re.sub(r"^target .*\n", "", text, flags=re.MULTILINE).replace("[2 x i32] %0", "[2 x i32] %0")
    text = re.sub(
        r"%\d+ = (?:tail )?call i32 @llvm.nvvm.read.*\n", lambda m: m[0].split("=")[0] + "= add i32 0, 0\n", text
    )
    (tmp_path / "scaled.ll").write_text(text)
    library = tmp_path / "scaled.so"
    subprocess.run([CLANG, "-O1", "-w", "-shared", "-fPIC", tmp_path / "scaled.ll", "-o", library], check=True)
    scaled = ctypes.CDLL(str(library)).scaled
    scaled.argtypes, scaled.restype = [ctypes.c_uint32, ctypes.c_uint32, ctypes.c_float], ctypes.c_float
    assert scaled(0x40000000, 0x40400000, 4.0) == 11


# ---------------------------------------------------------------------------------------------
# What is refused


@device.func(interop=True)
def untyped(x, y: device.float32):
    return y


@device.func(interop=True)
def constant(x: device.ConstExpr):
    return


@device.func(interop=True)
def gives(x: device.float32):
    return x


@device.func(interop=True)
def promises(x: device.float32) -> device.float32:
    return


@device.func(interop=True)
def stands(x: device.float32) -> int:
    return device.tid(1)


@pytest.mark.spec("D-023")
@pytest.mark.parametrize(
    "function, target, told",
    [
        (untyped, "sm_90", "'x' has no hint, expected one such as x: device.float32"),
        (constant, "sm_90", "the parameter 'x' is a constant, which C\\+\\+ cannot pass"),
        (gives, "sm_90", "gives gives C\\+\\+ a run-time float32 scalar; say so with a hint"),
        (promises, "sm_90", "promises returns nothing, but its hint promises C\\+\\+ a value"),
        (stands, "host", "device.tid\\(\\) is device only"),
        (cases.blend, "host", "blend is a kernel, and those run on a GPU"),
        (len, "sm_90", "C\\+\\+ calls what is made with interop=True"),
    ],
)
def test_refused(tmp_path: Path, function: Any, target: str, told: str) -> None:
    with pytest.raises(TileError, match=told):
        exported(tmp_path, [function], gpu_code=target, output_format="object" if target == "host" else "ptx")


def test_refused_files(tmp_path: Path) -> None:
    with pytest.raises(TileValueError, match="output_format is 'ptx' or 'object', found 'cubin'"):
        exported(tmp_path, output_format="cubin")
    with pytest.raises(TileValueError, match="gpu_code is a GPU such as 'sm_90a', or 'host', found ''"):
        exported(tmp_path, gpu_code="")
    with pytest.raises(TileValueError, match="a file for the host is an object with one function"):
        exported(tmp_path, gpu_code="host", output_format="object")
    with pytest.raises(TileTypeError, match="an array has 0 to 8 dimensions, found 9"):
        device.array(device.float32, 9)
    with pytest.raises(TileTypeError, match="arrays of C\\+\\+ are of numbers"):
        device.array(cases.Point, 1)
