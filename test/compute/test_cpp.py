"""CUDA C++ and Python together: a kernel that prints, a launcher, kernels that the driver links and starts."""

import subprocess
import sys
from pathlib import Path

import pytest

from tilewright import _core, arrays, numba
from tilewright.numba import cuda
from tilewright.toolkit import find_tool

ROOT = Path(__file__).resolve().parent.parent.parent
NEEDS_NVCC = pytest.mark.skipif(find_tool("nvcc") is None, reason="nvcc compiles the part in CUDA C++")
NEEDS_A_GPU = pytest.mark.skipif(not arrays._has_gpu(), reason="what the driver has linked is started on a GPU")
LINES = {f"Thread {i}: value = 42" for i in range(4)}

PRINTS = """
from tilewright.numba import cuda

@cuda.jit
def kernel(value):
    print("Thread", cuda.threadIdx.x, "value", value)

kernel[1, 4](42)
cuda.synchronize()
"""


@pytest.mark.spec("C-003", "C-005")
def test_a_kernel_that_prints(tmp_path):
    """All of its lines are there when the launch was waited for; their order is nobody's."""
    (tmp_path / "program.py").write_text(PRINTS)
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py"], capture_output=True, text=True, timeout=60, check=True
    )
    assert sorted(done.stdout.splitlines()) == [f"Thread {i} value 42" for i in range(4)]


LAUNCHER = """
#include <cstdio>
__global__ void kernel(int value) { printf("Thread %d: value = %d\\n", threadIdx.x, value); }
extern "C" int launch(int value) {
  kernel<<<1, 4>>>(value);
  return cudaDeviceSynchronize();
}
"""


@NEEDS_NVCC
@pytest.mark.spec("C-004", "C-005")
def test_a_launcher_of_cpp(tmp_path):
    """It is called from Python, and returns when the kernel has finished, or with the error that there is no GPU."""
    (tmp_path / "launcher.cu").write_text(LAUNCHER)
    library = tmp_path / "liblauncher.so"
    nvcc = [find_tool("nvcc"), "-arch=sm_80", "-shared", "-Xcompiler", "-fPIC", "-o", library, tmp_path / "launcher.cu"]
    subprocess.run(nvcc, check=True)
    program = f"import ctypes; print('result', ctypes.CDLL({str(library)!r}).launch(ctypes.c_int(42)), flush=True)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    lines = set(done.stdout.splitlines())
    assert lines == LINES | {"result 0"} if arrays._has_gpu() else len(lines) == 1 and lines != {"result 0"}


KERNEL = """
#include <cstdio>
extern "C" __device__ int op(int value);
extern "C" __global__ void kernel(int value) { printf("Thread %d: value = %d\\n", threadIdx.x, op(value)); }
"""

# By the driver's own functions: a library of what was linked, a kernel by its name, arguments by their addresses.
STARTS = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    result = getattr(cuda, name)(*arguments)
    assert result == 0, (name, result)
context, device, library, kernel, value = *(ctypes.c_void_p() for _ in range(4)), ctypes.c_int(42)
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
code = open(sys.argv[1], "rb").read()
call("cuLibraryLoadData", ctypes.byref(library), code, None, None, 0, None, None, 0)
call("cuLibraryGetKernel", ctypes.byref(kernel), library, b"kernel")
arguments = (ctypes.c_void_p * 1)(ctypes.addressof(value))
call("cuLaunchKernel", kernel, 1, 1, 1, 4, 1, 1, 0, None, arguments, None)
call("cuCtxSynchronize")
"""


def op(value):
    return 2 * value


@NEEDS_NVCC
@NEEDS_A_GPU
@pytest.mark.spec("C-023", "C-024", "C-025")
def test_the_driver_links_and_starts(tmp_path):
    major, minor = _core.device_info(0)["capability"]
    ptx = cuda.compile(op, numba.int32(numba.int32))[0]
    (tmp_path / "kernel.cu").write_text(KERNEL)
    made = tmp_path / "kernel.ptx"
    nvcc = [find_tool("nvcc"), f"-arch=sm_{major}{minor}", "-rdc=true", "-ptx", "-o", made, tmp_path / "kernel.cu"]
    subprocess.run(nvcc, check=True)
    linked = _core.ptx_to_cubin(made.read_text(), 0, (("op.ptx", ptx.encode()),))[0]
    (tmp_path / "linked.cubin").write_bytes(linked)
    command = [sys.executable, "-c", STARTS, tmp_path / "linked.cubin"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert set(done.stdout.splitlines()) == {f"Thread {i}: value = 84" for i in range(4)}


THEIRS = """
import numpy as np
from _utils.device_array import DeviceArray
import cuda.compute

def test_sum():
    out = DeviceArray.empty(1, np.int32)
    cuda.compute.reduce_into(
        d_in=DeviceArray.from_numpy(np.arange(4, dtype=np.int32)), d_out=out, num_items=4, op=cuda.compute.OpKind.PLUS,
        h_init=np.zeros(1, np.int32),
    )
    assert out.copy_to_host()[0] == 6

def test_that_fails():
    assert cuda.compute.nothing

def test_what_is_private():
    from cuda.compute._caching import CachableFunction
    CachableFunction(None)
"""
EXAMPLES = """
import subprocess, sys

def test_example():
    program = "import cupy, cuda.compute; assert cupy.arange(3).get().sum() == 3 and cuda.compute.OpKind.PLUS"
    subprocess.run([sys.executable, "-c", program], check=True)
"""


@pytest.mark.spec("C-062")
def test_tests_of_the_peer_are_run(tmp_path):
    """tools/cccl_tests.py counts what passes of tests that lie where they are."""
    (tmp_path / "compute").mkdir()
    (tmp_path / "compute" / "test_theirs.py").write_text(THEIRS)
    (tmp_path / "test_examples.py").write_text(EXAMPLES)
    command = [sys.executable, ROOT / "tools/cccl_tests.py", tmp_path, "--out", tmp_path / "found.tsv"]
    subprocess.run([*command, "--failures", tmp_path / "failures.tsv"], check=True, capture_output=True, timeout=120)
    rows = [line.split("\t") for line in (tmp_path / "found.tsv").read_text().splitlines()]
    assert rows[0] == ["file", "passed", "failed", "private", "skipped", "why"]
    assert [row[:5] for row in rows[1:]] == [
        ["test_examples.py", "1", "0", "0", "0"],
        ["test_theirs.py", "1", "1", "1", "0"],
        ["all", "2", "1", "1", "0"],
    ]
    assert "test_that_fails\tAttributeError" in (tmp_path / "failures.tsv").read_text()


@pytest.mark.spec("C-062")
def test_each_failure_of_the_peers_tests_has_a_reason():
    rows = [line.split("\t") for line in (ROOT / "tools/compute.tsv").read_text().splitlines()]
    assert rows[0][-1] == "why" and rows[-1][0] == "all" and len(rows) > 20
    assert not [row for row in rows[1:-1] if (row[2] != "0") != (len(row) == 6)]
