"""Functions of C++ in kernels of Numba programs, and what is known of compiled kernels."""

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tilewright import arrays, link, nvrtc
from tilewright import compile as compiler
from tilewright.errors import TileCompilationError, TileTypeError, TileUnsupportedFeatureError, TileValueError
from tilewright.numba import CPointer, cuda, float32, int32, types
from tilewright.numba.compiled import facts_of
from tilewright.toolkit import find_tool

sys.path.insert(0, str(Path(__file__).parent.parent / "python"))
from fake_driver import find_driver

DOUBLED = cuda.CUSource('extern "C" __device__ int doubled(int *out, int x) { *out = 2 * x; return 0; }')
doubled = cuda.declare_device("doubled", "int32(int32)", link=DOUBLED)
halved = cuda.declare_device("halved", int32(int32), abi="c")
filled = cuda.declare_device("filled", int32(CPointer(int32), int32))


@cuda.jit
def calls(x):
    i = cuda.grid(1)
    x[i] = doubled(x[i]) + halved(x[i] + i) + filled(x, 3)


def module_of(kernel, signature):
    facts = facts_of(types.parse(signature))
    return compiler.capture_kernel(kernel, "sm_90a", facts).module


def test_calls_have_the_conventions_of_numba_and_of_c():
    ptx = re.sub(r"\s+", " ", cuda.compile_ptx(calls, "void(int32[:])", cc=(9, 0))[0])
    assert ".extern .func (.param .b32 func_retval0) doubled ( .param .b64 doubled_param_0, .param .b32" in ptx
    assert ".extern .func (.param .b32 func_retval0) halved ( .param .b32 halved_param_0 )" in ptx
    assert ".extern .func (.param .b32 func_retval0) filled ( .param .b64" in ptx
    assert "cvta.local.u64" in ptx or "cvta.local" in ptx  # of the place of a result


@pytest.mark.skipif(nvrtc.library() is None, reason="no NVRTC of NVIDIA's packages")
@pytest.mark.skipif(find_tool("nvlink") is None, reason="no nvlink of NVIDIA's package")
def test_code_from_memory_is_linked():
    @cuda.jit(link=[cuda.CUSource('extern "C" __device__ int halved(int x) { return x / 2; }')])
    def kernel(x):
        x[0] = doubled(x[1]) + halved(x[2])

    module = module_of(kernel, "void(int32[:])")
    assert len(link.files_of(module.attribute("tile.links"))) == 2
    image = compiler.image_of(module, module.text(), "sm_90a", "kernel", compiler.Times("k", "sm_90a"))
    assert image.code.startswith(b"\x7fELF")

    @cuda.jit
    def lacks(x):
        x[0] = halved(x[1]) + doubled(x[2])

    module = module_of(lacks, "void(int32[:])")
    with pytest.raises(TileCompilationError, match="Undefined reference to 'halved'"):
        compiler.image_of(module, module.text(), "sm_90a", "lacks", compiler.Times("k", "sm_90a"))


def test_linkable_code(tmp_path):
    path = tmp_path / "a.ptx"
    path.write_text(".version 7.8")
    code = cuda.LinkableCode.from_path(path)
    assert isinstance(code, cuda.PTXSource) and code.data == b".version 7.8" and code.name == str(path)
    assert cuda.CUSource("x").name == "<unnamed-cu>" and Path(code.file()).read_bytes() == b".version 7.8"
    assert (doubled.name, doubled.sig.args, doubled.sig.return_type) == ("doubled", (int32,), int32)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: cuda.declare_device("f", (float32,)), TypeError, "Return type must be provided"),
        (lambda: cuda.declare_device("f", "int32()", abi="d"), TileUnsupportedFeatureError, "'numba' or 'c'"),
        (lambda: cuda.declare_device("f", "int32()", link=cuda.LTOIR(b"")), TileUnsupportedFeatureError, "LTO-IR"),
        (lambda: cuda.jit(link=[3]), TileTypeError, "link= is a file or code such as cuda.CUSource"),
        (lambda: cuda.LinkableCode.from_path("a.cuh"), TileValueError, "expected a file of one of .ptx"),
        (lambda: cuda.jit(link=["nowhere.ptx"]), TileValueError, "names nowhere.ptx; there is no such file"),
        (lambda: cuda.CUSource("", setup_callback=print), TileUnsupportedFeatureError, "no callbacks"),
        (lambda: doubled(3), TileTypeError, "is called by kernels"),
        (lambda: calls[1, 1](arrays.to_device([1], device="cpu")), TileTypeError, "this kernel runs on the CPU"),
    ],
)
def test_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


# === device functions =================================================================================================


@cuda.jit("int32(int32)", device=True)
def cut(x):
    return x * 2.5


@cuda.jit(device=True)
def plain(x):
    return x * 2.5


@cuda.jit
def uses(x, y):
    i = cuda.grid(1)
    y[i] = cut(x[i]) + plain(x[i])


def test_a_signature_converts(run):
    _, y = run(uses, 1, 4, np.array([0.5, 1.5, 2.25, -1.5]), np.zeros(4))
    np.testing.assert_array_equal(y, [0 + 1.25, 2 + 3.75, 5 + 5.625, -2 - 3.75])
    assert plain(2) == 5 and cut.py_func(1) == 2.5
    assert ".visible .func" in cut.inspect_asm() and "define" in cut.inspect_llvm()
    with pytest.raises(TileUnsupportedFeatureError, match="no code of its own without a signature"):
        plain.inspect_asm()


# === what was compiled ================================================================================================


@cuda.jit
def scaled(x, a):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= a


def test_what_was_compiled():
    assert scaled.overloads == {} and not scaled.specialized
    scaled.configure(1, 8)(cuda.to_device(np.ones(8, np.float32)), 2)
    assert scaled.signatures == [(types.Array(float32, 1), types.int64)]
    (text,) = scaled.inspect_asm().values()
    assert ".visible .entry scaled" in text and "define" in scaled.inspect_llvm("void(float32[:], float32)")
    assert set(scaled.get_max_threads_per_block().values()) == {1024}
    typed = scaled.specialize(np.ones(3), 1.5)
    assert typed.specialized and (typed.get_regs_per_thread() > 0) == arrays._has_gpu()  # the CPU has none to tell of
    assert pickle.loads(pickle.dumps(scaled)) is scaled and pickle.loads(pickle.dumps(plain)) is plain
    assert scaled.forall(0)() is None
    with pytest.raises(ValueError, match="takes a number of elements, found -1"):
        scaled.forall(-1)


def test_names_of_functions_for_c():
    code, result = cuda.compile(lambda x: x + 1, "int32(int32)", abi_info={"abi_name": "_Z1fi"})
    assert ".func  (.param .b32 func_retval0) _Z1fi(" in code and result is int32


# === devices and the host's memory ====================================================================================


def test_devices_and_mapped_memory():
    with cuda.gpus[0] as context:
        assert context == cuda.current_context() and context.device == cuda.get_current_device()
        free, total = context.get_memory_info()
    assert 0 < free < total and len(cuda.gpus.lst) >= 1
    x = cuda.mapped_array(8, np.float32)
    x[:] = 3
    scaled[1, 8](x, 2)
    cuda.synchronize()  # a GPU writes the host's pages while the program goes on
    np.testing.assert_array_equal(x, 6)
    y = np.full(8, 3, np.float32)
    with cuda.mapped(y) as view:
        scaled[1, 8](view, 2)
    np.testing.assert_array_equal(y, 6)
    assert cuda.pinned_array_like(np.zeros((2, 3), order="F")).flags.f_contiguous


ON_A_GPU = """
import ctypes, gc, os
import numpy as np
from tilewright.numba import cuda
fake = ctypes.CDLL(os.environ["TILEWRIGHT_CUDA_DRIVER"])
fake.fake_log.restype = ctypes.c_char_p
log = lambda: fake.fake_log().decode().split("\\n")

@cuda.jit
def kernel(x):
    x[0] = 1

info = cuda.current_context().get_memory_info()
assert info.total == 80 << 30 and info.free == info.total // 2
x = cuda.pinned_array((4, 8), np.float32)
assert "pinned 128 3" in log()
part = x[1:]
del x; gc.collect()
assert "freed" not in log()
del part; gc.collect()
assert "freed" in log()
with cuda.pinned(np.zeros(16, np.int8)):
    assert "pin 16 3" in log() and "unpin" not in log()
assert "unpin" in log()
mapped = cuda.mapped_array(4, np.float32, wc=True)
assert "pinned 16 7" in log() and cuda.is_cuda_array(mapped)
assert mapped.__cuda_array_interface__["data"][0] == mapped.ctypes.data
assert cuda.managed_array(4, np.float32).shape == (4,)
with cuda.gpus[1]:
    assert cuda.get_current_device().id == 1
assert cuda.get_current_device().id == 0
assert kernel.specialize(np.zeros(1)).get_regs_per_thread() == 32
"""


def test_memory_of_a_gpu(tmp_path):
    """Against the driver that stands in for libcuda."""
    given = {**os.environ, "TILEWRIGHT_CUDA_DRIVER": str(find_driver()), "TILEWRIGHT_CACHE_DIR": str(tmp_path)}
    script = tmp_path / "program.py"
    script.write_text(ON_A_GPU)
    done = subprocess.run([sys.executable, script], env=given, capture_output=True, text=True)
    assert not done.returncode, done.stderr


def test_memory_like_a_part_of_an_array_has_the_order_of_its_axes():
    host = np.zeros((10, 12), order="F")
    for part in (host, host[::2, ::2], host[::2, ::2].T, host[:, 1]):
        for like in (cuda.pinned_array_like, cuda.mapped_array_like, cuda.device_array_like):
            assert like(part).strides == np.empty_like(part).strides
