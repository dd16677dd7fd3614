"""`compile`: functions as device code that C++ calls."""

import ctypes
import math
import os
import re
import shutil
import subprocess
import threading

import numpy as np
import pytest
from every import calls

from tilewright import compile as compiler
from tilewright import compute, numba, nvjitlink, nvvm, plans
from tilewright.capture.c_entry import CEntry, capture_for_c
from tilewright.compute import OpKind, compiling, launching
from tilewright.compute.launching import COMPUTE
from tilewright.compute.types import converted
from tilewright.device import abi
from tilewright.errors import TileCompilationError, TileError
from tilewright.numba import cuda, types
from tilewright.toolkit import find_tool

CLANG = os.environ.get("CLANG", "clang-22")
HEAD = re.compile(r"\.visible \.func\s*(\([^)]*\))?\s*(\w+)\(([^)]*)\)")


def op(value):
    return 2 * value


@pytest.mark.spec("C-002", "C-009", "C-010", "C-011", "C-012", "C-013", "C-014", "C-016")
def test_a_function_of_a_number():
    ptx, result = cuda.compile(op, sig=numba.int32(numba.int32))
    assert result is numba.int32 and ptx.encode("utf-8")
    returned, name, parameters = HEAD.search(ptx).groups()
    assert name == "op" and ".b32 func_retval0" in returned and parameters.split() == [".param", ".b32", "op_param_0"]
    assert "shl.b32" in ptx and "mul" not in ptx
    least = cuda.compile(op, sig=numba.int32(numba.int32), cc=(8, 0))[0]  # what compile_ptx is for, with a GPU or not
    assert cuda.compile_ptx(op, "int32(int32)", device=True)[0] == least


@compute.gpu_struct
class Pair:
    a: np.int8
    b: np.float64


def total(p):
    return p[0].real + p[0].imag


def both(p, q):
    q[1] = p.a + p.b
    return Pair(p.a + 1, q[0])


@pytest.mark.spec("C-008", "C-017", "C-033", "C-035", "C-037")
@pytest.mark.parametrize(
    ("function", "sig", "head"),
    [
        (op, numba.float32(numba.float32), (".param .b32 func_retval0", [".b32 op_param_0"])),
        (op, numba.int64(numba.uint8), (".param .b64 func_retval0", [".b32 op_param_0"])),
        (op, numba.complex64(numba.complex64), (".align 8 .b8 func_retval0[8]", [".align 8 .b8 op_param_0[8]"])),
        (total, numba.int32(types.CPointer(numba.complex128)), (".param .b32 func_retval0", [".b64 total_param_0"])),
        (
            both,
            (Pair, types.CPointer(numba.float64)),
            (".align 8 .b8 func_retval0[16]", [".align 8 .b8 both_param_0[16]", ".b64 both_param_1"]),
        ),
    ],
)
def test_declarations_of_cpp(function, sig, head):
    ptx, _ = cuda.compile(function, sig)
    returned, _, parameters = HEAD.search(ptx).groups()
    assert head[0] in returned
    found = [part.replace(".param", "").replace(".u8", ".b8").strip() for part in parameters.split(",")]
    assert found == head[1]
    assert "ld.global" not in ptx  # an address of C++ may be one of any memory


def test_results_that_are_found():
    assert cuda.compile(op, (numba.float32,))[1] == numba.float64
    assert cuda.compile(both, (Pair, types.CPointer(numba.float64)))[1] is Pair
    assert cuda.compile(op, (numba.int16,), output="llvm")[0].startswith("; ModuleID")


def host_function(function, sig, tmp_path):
    """The same function for this machine, loaded."""
    _, entry = compiling.entry_of(function, sig, "sm_80")
    values = [p.value if hasattr(p, "__tw_argument__") else abi.value_of(p) for p in entry.parameters]
    text = abi.of_host()(values, abi.value_of(entry.result)).text()
    module = capture_for_c(function, CEntry(entry.parameters, entry.result, text, False), "host", COMPUTE, converted)
    plans.lower(module, compiler.CPU_STAGES, module.lower)
    (tmp_path / f"{function.__name__}.o").write_bytes(module.emit(compiler.EMIT_OBJECT))
    subprocess.run(
        [CLANG, "-shared", "-o", tmp_path / f"{function.__name__}.so", tmp_path / f"{function.__name__}.o", "-lm"],
        check=True,
    )
    return getattr(ctypes.CDLL(str(tmp_path / f"{function.__name__}.so")), function.__name__)


@pytest.mark.spec("C-015", "C-034", "C-036", "C-038")
@pytest.mark.skipif(shutil.which(CLANG) is None, reason=f"{CLANG} links the host's half")
def test_results(tmp_path):
    doubled = host_function(op, numba.int32(numba.int32), tmp_path)
    assert doubled(42) == 84 and doubled(-5) == -10
    summed = host_function(total, numba.int32(types.CPointer(numba.complex128)), tmp_path)
    value = np.array([1 + 2j], dtype=np.complex128)
    assert summed(value.ctypes.data_as(ctypes.c_void_p)) == 3


@pytest.mark.spec("C-031", "C-032")
def test_sizes():
    assert (compute.sizeof(numba.complex128), compute.alignof(numba.complex128)) == (16, 16)
    assert (compute.sizeof(Pair), compute.alignof(Pair)) == (16, 8)
    assert (compute.sizeof(np.float16), compute.alignof(numba.int64)) == (2, 8)


KERNEL = """
extern "C" __device__ int op(int a);
struct __align__(16) storage_t { char data[16]; };
extern "C" __device__ int total(char *state);
extern "C" __global__ void kernel(int value, storage_t z, int *out) { out[threadIdx.x] = op(value) + total(z.data); }
template <class T> __global__ void instance(T value, int *out) { out[0] = total(value.data); }
template __global__ void instance<storage_t>(storage_t, int *);
"""


@pytest.mark.spec("C-021", "C-022", "C-030", "C-039", "C-040")
@pytest.mark.skipif(find_tool("nvcc") is None or find_tool("nvlink") is None, reason="nvcc and nvlink are not there")
def test_links_with_cuda_cpp(tmp_path):
    """Relocatable objects of C++ and of Python make a cubin; nothing is launched."""
    parts = [cuda.compile(op, numba.int32(numba.int32), cc=(9, 0))[0]]
    parts.append(cuda.compile(total, numba.int32(types.CPointer(numba.complex128)), cc=(9, 0))[0])
    objects = []
    for number, ptx in enumerate(parts):
        (tmp_path / f"{number}.ptx").write_text(ptx)
        made = tmp_path / f"{number}.o"
        subprocess.run([find_tool("ptxas"), "-c", "-arch=sm_90a", tmp_path / f"{number}.ptx", "-o", made], check=True)
        objects.append(made)
    (tmp_path / "kernel.cu").write_text(KERNEL)
    nvcc = [
        find_tool("nvcc"),
        "-arch=sm_90a",
        "-rdc=true",
        "-cubin",
        "-o",
        tmp_path / "kernel.o",
        tmp_path / "kernel.cu",
    ]
    subprocess.run(nvcc, check=True)
    linked = tmp_path / "linked.cubin"
    link = [find_tool("nvlink"), "-arch=sm_90a", *objects, tmp_path / "kernel.o", "-o", linked]
    subprocess.run(link, check=True)
    symbols = linked.read_bytes()
    assert b".text.kernel" in symbols and b"_Z8instanceI9storage_tEvT_Pi" in symbols


@pytest.mark.spec("C-027", "C-029", "C-018", "C-019", "C-020")
def test_outputs(monkeypatch):
    with pytest.raises(ValueError, match="one of 'ptx', 'llvm', 'ltoir', found 'elf'"):
        cuda.compile(op, numba.int32(numba.int32), output="elf")
    with pytest.raises(TypeError, match="op takes 1 values, its signature has 2"):
        cuda.compile(op, numba.int32(numba.int32, numba.int32))
    monkeypatch.setenv("PATH", "")  # no compiler of anybody's
    ptx, _ = cuda.compile(op, numba.int32(numba.int32), cc=90)
    assert ".target sm_90a" in ptx


def test_what_objects_share_is_compiled_once(monkeypatch):
    """Storage of a scan and of a selection is cleared by one kernel, and no items need none of their own."""
    import emulate

    from tilewright.compute import launching, objects, plans

    emulate.stand_in(monkeypatch)
    monkeypatch.setattr(objects, "shape_for", lambda place: plans.GPU)
    monkeypatch.setattr(launching, "_shared", {})
    compute.clear_all_caches()
    x, out, count = np.zeros(3, np.int32), np.zeros(3, np.int32), np.zeros(1, np.int32)
    before = launching.counts["compilations"]
    compute.make_inclusive_scan(x, out, compute.OpKind.PLUS, None)
    assert launching.counts["compilations"] == before + 3
    compute.make_select(x, out, count, compute.OpKind.LOGICAL_NOT)
    assert launching.counts["compilations"] == before + 5
    compute.clear_all_caches()


@pytest.fixture
def compiled(monkeypatch):
    """`compiled()` gives the names of the kernels that were compiled, for a GPU, since it was asked last."""
    import emulate

    from tilewright.compute import launching, objects, plans

    emulate.stand_in(monkeypatch)
    monkeypatch.setattr(objects, "shape_for", lambda place: plans.GPU)
    monkeypatch.setattr(launching, "_shared", {})
    names, compile_variant = [], launching.compile_variant

    def noted(kernel, *rest):
        names.append(kernel.name)
        return compile_variant(kernel, *rest)

    def taken():
        found = sorted(names)
        names.clear()
        return found

    monkeypatch.setattr(launching, "compile_variant", noted)
    compute.clear_all_caches()
    yield taken
    compute.clear_all_caches()


def counted(samples, out):
    compute.histogram_even(samples, out, len(out) + 1, np.float32(0), np.float32(1), len(samples))


def test_a_function_compiles_what_it_starts(compiled):
    """Of a histogram the kernel for so many bins; others when a call has more, and none twice."""
    x = np.repeat(np.array([0.1, 0.3, 0.6, 0.9], np.float32), [2000, 500, 1000, 1500])
    few, many = np.zeros(4, np.int32), np.zeros(100_000, np.int32)
    counted(x, few)
    assert compiled() == ["clear", "count_shared"] and list(few) == [2000, 500, 1000, 1500]
    counted(x[1:], few)
    assert compiled() == [] and few.sum() == 4999
    counted(x, many)
    assert compiled() == ["count_many"] and many.sum() == 5000
    counted(x[1998:2003], few)
    assert compiled() == ["count_at_once"] and list(few) == [2, 3, 0, 0]


def test_an_object_compiles_all_there_is(compiled):
    """Also where functions have begun it; and stages 2 and 3 compile nothing, nor do functions behind it."""
    x, few, many = np.zeros(9, np.float32), np.zeros(4, np.int32), np.zeros(100_000, np.int32)
    counted(x, few)
    assert compiled() == ["count_at_once"]
    given = (x, few, np.int32(5), np.float32(0), np.float32(1))
    made = compute.make_histogram_even(*given, 9)
    assert compiled() == ["clear", "count_many", "count_packed", "count_shared"]
    assert compute.make_histogram_even(*given, 9) is made
    storage = np.zeros(made(None, *given, 9), np.uint8)
    made(storage, *given, 9)
    made(storage, x, many, np.int32(100_001), *given[3:], 9)
    counted(x, many)
    assert compiled() == [] and few[0] == 9 and many[0] == 9


def test_short_sorts_compile_no_merge(compiled):
    """One tile is sorted alone; bits of none are copied."""
    x, out = np.array([3, 1, 2], np.uint32), np.zeros(3, np.uint32)
    compute.merge_sort(x, None, out, None, lambda a, b: a < b, 3)
    assert compiled() == ["sort_tiles"] and list(out) == [1, 2, 3]
    longer, sorted_ones = np.arange(3000, dtype=np.uint32)[::-1].copy(), np.zeros(3000, np.uint32)
    compute.merge_sort(longer, None, sorted_ones, None, lambda a, b: a < b, 3000)
    assert compiled() == ["sort_tiles"] and list(sorted_ones) == [*range(3000)]  # with more items of a thread
    order = compute.SortOrder.ASCENDING
    compute.radix_sort(x, out, order=order, num_items=3, begin_bit=8, end_bit=8)
    assert compiled() == ["copy"] and list(out) == [3, 1, 2]
    compute.radix_sort(x, out, order=order, num_items=3)
    assert compiled() == ["bases", "clear", "count", "sweep"] and list(out) == [1, 2, 3]


def test_nothing_is_launched_where_a_kernel_does_not_compile(compiled):
    """Kernels of a call are compiled before the first one is launched; the next call tries again."""
    x, out, count = np.arange(5000), np.full(5000, 7), np.full(1, 7)
    for _ in range(2):
        with pytest.raises(TypeError):
            compute.select(x, out, count, lambda v: v + "a", 5000)
        assert (out == 7).all() and count[0] == 7
    assert compiled() == ["clear", "part_tiles", "part_tiles"]


def test_few_items_have_one_kernel(compiled):
    """Of a reduction, a scan and a selection of some thousands; more of them have others, and objects have all."""
    x, out, count, zero = np.arange(5000), np.zeros(5000, np.int64), np.zeros(1, np.int64), np.int64(0)

    def add(a, b):
        return a + b

    for n, kernels in ((3000, ["few", "part_few", "scan_few"]), (4096, []), (5000, ["clear", "finish", "in_order"])):
        compute.reduce_into(x, count, add, n, zero)
        assert count[0] == x[:n].sum()
        compute.inclusive_scan(x, out, add, None, n)
        np.testing.assert_array_equal(out[:n], np.cumsum(x[:n]))
        compute.select(x, out, count, lambda v: v % 3 == 0, n)
        assert count[0] == len(x[:n:3])
        assert compiled() == kernels + (["part_tiles", "scan_tiles"] if n == 5000 else [])
    compute.clear_all_caches()
    compute.make_reduce_into(x, count, add, zero)
    assert compiled() == ["few", "finish", "in_order"]


def test_first_calls_at_once_compile_each_kernel_once(compiled):
    """Of functions and objects, from several threads, on the same types."""
    x = np.linspace(0, 0.99, 40, dtype=np.float32)
    barrier, failed = threading.Barrier(4), []

    def work(i):
        out = np.zeros(4, np.int32)
        try:
            barrier.wait(60)
            if i % 2:
                compute.make_histogram_even(x, out, np.int32(5), np.float32(0), np.float32(1), 40)
            counted(x, out)
            assert out.sum() == 40
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert compiled() == ["clear", "count_at_once", "count_many", "count_packed", "count_shared"]


LTO_KERNEL = """
extern "C" __device__ int op(int value);
extern "C" __global__ void kernel(int *x) { x[threadIdx.x] = op(x[threadIdx.x]); }
"""


@pytest.mark.spec("C-021", "C-022", "C-027", "C-028")
@pytest.mark.skipif(nvvm.library() is None, reason="libNVVM makes LTO-IR")
def test_lto_ir(tmp_path):
    """A linker takes it for a function of CUDA C++, and inlines it."""
    code, result = cuda.compile(op, numba.int32(numba.int32), output="ltoir", cc=(10, 0))
    assert isinstance(code, bytes) and result == numba.int32
    if find_tool("nvcc") is None or nvjitlink.library() is None:
        return
    (tmp_path / "kernel.cu").write_text(LTO_KERNEL)
    made = tmp_path / "kernel.ltoir"
    subprocess.run(
        [find_tool("nvcc"), "-arch=sm_100", "-dlto", "-ltoir", "-o", made, tmp_path / "kernel.cu"], check=True
    )
    cubin = nvjitlink.linked("sm_100", [("kernel.ltoir", made.read_bytes()), ("op.ltoir", code)])
    assert b".text.kernel" in cubin and b".text.op" not in cubin
    with pytest.raises(TileCompilationError, match="(?s)nvJitLink refused the kernel.*op"):
        nvjitlink.linked("sm_100", [("kernel.ltoir", made.read_bytes())])


def root_of(p):
    return math.sqrt(p[0].real) + math.sin(p[0].imag)


@pytest.mark.skipif(nvvm.library() is None, reason="libNVVM makes LTO-IR")
def test_lto_ir_of_pointers_and_functions():
    sig = numba.float64(numba.types.CPointer(numba.types.complex128))
    assert cuda.compile(root_of, sig, output="ltoir", cc=(10, 0))[0]
    with pytest.raises(TileCompilationError, match="(?s)libNVVM refused op:.*expected type"):
        nvvm.lto_of("define nothing", "op", 100)


def test_where_no_lto_ir_is(monkeypatch):
    with pytest.raises(TileError, match="'ltoir' is for GPUs of compute capability 10.0 .*found sm_90a.*take 'ptx'"):
        cuda.compile(op, numba.int32(numba.int32), output="ltoir", cc=(9, 0))
    monkeypatch.setattr(nvvm, "library", lambda: None)
    with pytest.raises(TileError, match="made by libNVVM, which is not found: .*nvidia-nvvm; take 'ptx'"):
        cuda.compile(op, numba.int32(numba.int32), output="ltoir", cc=(10, 0))


def reductions():
    x, out = np.arange(9), np.zeros(1, np.int64)
    yield compute.make_reduce_into, {"d_in": x, "d_out": out, "op": OpKind.PLUS, "h_init": np.int64(0)}


def test_threads_of_blocks_of_the_cpu(monkeypatch):
    """The compiler is told how many threads a block has at most, and makes no loops over them where that is one."""
    compiled, found = launching.Launch.compile, set()

    def compile_launch(self, targets):
        compiled(self, targets)
        hints = self.kernel.hints_for("cpu")
        assert self.block <= hints["most_threads"] and "most_threads" not in self.kernel.hints_for("sm_90a")
        found.add(hints["most_threads"])

    monkeypatch.setattr(launching.Launch, "compile", compile_launch)
    compute.clear_all_caches()
    for make, given in (*((call.make, call.made_of) for call in calls().values()), *reductions()):
        make(**given)
    assert min(found) == 1 < max(found)
