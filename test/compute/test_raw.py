"""RawOp: operators in code of CUDA C++, which kernels are linked with."""

import functools
import re
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import emulate
import numpy as np
import pytest

from tilewright import arrays, compute, link, nvjitlink
from tilewright.compute import OpKind, ProxyArray, ProxyValue, RawOp, objects, plans, serialization
from tilewright.errors import TileCompilationError, TileTypeError, TileUnsupportedFeatureError, TileValueError
from tilewright.toolkit import find_tool

# What CUDA C++ makes of `void f(void *a, void *b, void *r) { *(int *)r = *(int *)a + *(int *)b; }`, as PTX for
# a GPU, and as LLVM IR for the emulator.
PTX = """
.version 7.8
.target sm_80
.address_size 64
.visible .func added(.param .b64 a, .param .b64 b, .param .b64 result) {
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [result];
  ld.u32 %r1, [%rd1]; ld.u32 %r2, [%rd2]; add.s32 %r3, %r1, %r2; st.u32 [%rd3], %r3; ret;
}
"""
ADDED = """define void @added(i64 %a, i64 %b, i64 %result) {
  %pa = inttoptr i64 %a to ptr
  %pb = inttoptr i64 %b to ptr
  %pr = inttoptr i64 %result to ptr
  %x = load i32, ptr %pa
  %y = load i32, ptr %pb
  %z = add i32 %x, %y
  store i32 %z, ptr %pr
  ret void
}"""
# bool larger(void *state, void *a): *a > *(double *)state
LARGER = """define void @larger(i64 %s, i64 %a, i64 %result) {
  %ps = inttoptr i64 %s to ptr
  %pa = inttoptr i64 %a to ptr
  %pr = inttoptr i64 %result to ptr
  %x = load double, ptr %ps
  %y = load double, ptr %pa
  %c = fcmp ogt double %y, %x
  %z = zext i1 %c to i8
  store i8 %z, ptr %pr
  ret void
}"""


@pytest.fixture
def emulated(monkeypatch):
    """Calls of these functions run what is above."""
    emulate.stand_in(monkeypatch)
    monkeypatch.setattr(objects, "shape_for", lambda place: plans.GPU)
    made = emulate.shared_object

    def with_functions(text, *more):
        for name, body in (("added", ADDED), ("larger", LARGER)):
            text = re.sub(rf"^declare .*@{name}\(.*$", body, text, flags=re.MULTILINE)
        return made(text, *more)

    monkeypatch.setattr(emulate, "shared_object", with_functions)


def test_results(emulated):
    op = RawOp(name="added", ptx=PTX)
    x, out = np.arange(300, dtype=np.int32), np.zeros(1, np.int32)
    compute.reduce_into(x, out, op, 300, np.int32(5))
    assert out[0] == x.sum() + 5
    sums, total = np.zeros(300, np.int32), np.zeros(1, np.int64)
    compute.binary_transform(x, x, sums, op, 300)
    assert (sums == 2 * x).all()
    compute.inclusive_scan(x, sums, op, None, 300)
    assert (sums == np.cumsum(x)).all()
    it = compute.TransformIterator(x, RawOp(name="larger", ptx=PTX, state=np.float64(1).tobytes()), value_type=np.uint8)
    with pytest.raises(TileTypeError, match="needs value_type="):
        compute.TransformIterator(x, op)
    assert it.value_type.name == "uint8" and total[0] == 0


def test_state(emulated):
    """Its bytes are no part of what is compiled: another state needs no other object."""
    x, out, count = np.arange(200.0), np.zeros(200), np.zeros(1, np.int64)

    def above(limit):
        return RawOp(name="larger", ptx=PTX, state=np.float64(limit).tobytes(), state_alignment=8)

    made = compute.make_select(x, out, count, above(1))
    assert made is compute.make_select(x, out, count, above(2)) and above(1) != above(2)
    for limit in (10.5, 197):
        storage = np.zeros(made(None, x, out, count, above(limit), 200), np.uint8)
        made(storage, x, out, count, above(limit), 200)
        assert list(out[: count[0]]) == list(x[x > limit])


@pytest.mark.spec("C-026")
def test_kernels_are_linked_with_it(monkeypatch):
    """For a GPU that is not there, by the toolkit's programs; what is not linked is told by name, with the log."""
    if find_tool("nvlink") is None or find_tool("ptxas") is None:
        pytest.skip("nvlink and ptxas link for a GPU that is not there")
    x, zero = ProxyArray(np.int32), ProxyValue(np.int32)
    made = compute.make_reduce_into(x, x, RawOp(name="added", ptx=PTX), zero, compute_capability=80)
    images = [image for k in serialization.kernels_of(made).values() for image in k.images.values()]
    assert images and not any(image.is_ptx for image in images)
    assert compute.deserialize(made.serialize()).targets == ("sm_80",)
    with pytest.raises(TileCompilationError, match="missing"):
        compute.make_reduce_into(x, x, RawOp(name="missing", ptx=PTX), zero, compute_capability=80)
    with pytest.raises(TileCompilationError, match=r"ptxas refused .*\n?.*syntax error|ptxas refused"):
        compute.make_reduce_into(x, x, RawOp(name="added", ptx=".version 7.8\nnonsense"), zero, compute_capability=80)


def test_code_is_there_whole_for_all_threads():
    code = bytes(range(256)) * 4096

    def read(_):
        return Path(link.stored(code, ".ptx")).read_bytes() == code

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(read, range(64)))


def test_code_has_one_place_for_all_threads(monkeypatch):
    """The first code of a process, too: kernels that are compiled at the same time name the same file."""
    start, made = threading.Barrier(8), tempfile.mkdtemp

    def slow(**how):
        time.sleep(0.05)
        return made(**how)

    monkeypatch.setattr(link, "_made_folder", functools.cache(link._made_folder.__wrapped__))
    monkeypatch.setattr(tempfile, "mkdtemp", slow)

    def place(_):
        start.wait()
        return link.stored(PTX.encode(), ".ptx")

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(place, range(8)))) == 1


def test_code_of_two_files_is_linked_once(tmp_path):
    for name in ("one.ptx", "two.ptx"):
        (tmp_path / name).write_text(PTX)
    (tmp_path / "other.ptx").write_text(PTX.replace("added", "other"))
    given = [tmp_path / "one.ptx", tmp_path / "two.ptx", tmp_path / "." / "one.ptx", tmp_path / "other.ptx"]
    found = link.files_of(link.described(map(str, given)))
    assert [file.name for file in found] == ["one.ptx", "other.ptx"]


@pytest.mark.skipif(not arrays._has_gpu(), reason="the driver links, and the result runs, on a GPU")
def test_on_a_gpu():
    x, out = arrays.to_device(np.arange(3000, dtype=np.int32)), arrays.to_device(np.zeros(1, np.int32))
    compute.reduce_into(x, out, RawOp(name="added", ptx=PTX), 3000, np.int32(5))
    assert out.to_numpy()[0] == sum(range(3000)) + 5


def test_lto_ir(tmp_path, monkeypatch):
    x, zero = ProxyArray(np.int32), ProxyValue(np.int32)
    if find_tool("nvcc") is not None and nvjitlink.library() is not None:
        source = 'extern "C" __device__ void added(void *a, void *b, void *r) { *(int *)r = *(int *)a + *(int *)b; }'
        (tmp_path / "op.cu").write_text(source)
        command = [find_tool("nvcc"), "-arch=sm_80", "-dlto", "-ltoir", "-o", tmp_path / "op.ltoir", tmp_path / "op.cu"]
        subprocess.run(command, check=True)
        code = (tmp_path / "op.ltoir").read_bytes()
        compute.make_reduce_into(x, x, RawOp(name="added", ltoir=code), zero, compute_capability=80)
        with pytest.raises(TileCompilationError, match="nvJitLink refused"):
            compute.make_reduce_into(x, x, RawOp(name="added", ltoir=b"none"), zero, compute_capability=80)
    monkeypatch.setattr(nvjitlink, "library", lambda: None)
    with pytest.raises(TileUnsupportedFeatureError, match="'op' is LTO-IR, which nvJitLink .* PTX"):
        compute.make_reduce_into(x, x, RawOp(name="added", ltoir=b"code"), zero, compute_capability=80)


def test_what_a_raw_op_is_not():
    x = np.zeros(3, np.int32)
    with pytest.raises(TileTypeError, match="'op' is a RawOp, which is code for GPUs; found arrays on the CPU"):
        compute.unary_transform(x, x, RawOp(name="added", ptx=PTX), 3)
    wrong = [
        ({"name": "a b", "ptx": PTX}, TileValueError, "the name is that of a function of C"),
        ({"name": "a"}, TileTypeError, "one of ltoir= and ptx="),
        ({"name": "a", "ptx": PTX, "ltoir": b""}, TileTypeError, "one of ltoir= and ptx="),
        ({"name": "a", "ptx": 3}, TileTypeError, "code is bytes, or PTX as text"),
        ({"name": "a", "ptx": PTX, "state_alignment": 3}, TileValueError, "state_alignment is"),
        ({"name": "a", "ptx": PTX, "state": bytes(5000)}, TileValueError, "the state has 4096 bytes at most"),
    ]
    for given, error, words in wrong:
        with pytest.raises(error, match=words):
            RawOp(**given)
    assert compute.make_unary_transform(x, x, OpKind.NEGATE) is compute.make_unary_transform(x, x, OpKind.NEGATE)
