"""The runtime on a real GPU, with torch: streams, graphs, threads, devices, faults. Skipped where there is none.

The kernels are PTX by hand, so that a failure here is the launcher's and nobody else's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import pytest

from tilewright import _core
from tilewright.errors import LaunchError, TileCompilationError, TileValueError

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)

WORDS = ", ".join(f".param .b64 p{i}" for i in range(9))
HEAD = ".version 7.8\n.target sm_80\n.address_size 64\n"
# C[i] = A[i] + B[i] for arrays of rank 1: pointer, extent, stride each.
ADD = f"""{HEAD}
.visible .entry add({WORDS}) {{
  .reg .pred %over;
  .reg .b32 %block, %threads, %thread;
  .reg .b64 %a, %b, %c, %n, %i;
  .reg .f32 %x, %y;
  mov.u32 %block, %ctaid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %thread, %tid.x;
  mad.lo.u32 %block, %block, %threads, %thread;
  cvt.u64.u32 %i, %block;
  ld.param.u64 %n, [p1];
  setp.ge.u64 %over, %i, %n;
  @%over bra DONE;
  shl.b64 %i, %i, 2;
  ld.param.u64 %a, [p0];
  ld.param.u64 %b, [p3];
  ld.param.u64 %c, [p6];
  add.u64 %a, %a, %i;
  add.u64 %b, %b, %i;
  add.u64 %c, %c, %i;
  ld.global.f32 %x, [%a];
  ld.global.f32 %y, [%b];
  add.f32 %x, %x, %y;
  st.global.f32 [%c], %x;
DONE:
  ret;
}}
"""
FAULT = f"""{HEAD}
.visible .entry writes_nowhere({WORDS}) {{
  .reg .b64 %a;
  mov.u64 %a, 16;
  st.global.u32 [%a], 1;
  ret;
}}
"""


def cuda(image: Any, name: str, **more: Any) -> Any:
    own = {key: more.pop(key) for key in ("written", "better", "overlapping") if key in more}
    return _core.CudaKernel(image, name, _core.launch_record(num_threads=128, **more), **own)


def make(image: Any = ADD, name: str = "add", **more: Any) -> Any:
    return _core.Dispatcher(name, ["A", "B", "C"], [], lambda *_: cuda(image, name, **more))


def arrays(n: int = 1000, device: str = "cuda") -> tuple[Any, Any, Any]:
    a = torch.arange(n, dtype=torch.float32, device=device)
    return a, 2 * a, torch.zeros_like(a)


def check(a: Any, b: Any, c: Any) -> None:
    assert torch.equal(c, a + b)


def test_add() -> None:
    k = make(written=4)
    args = arrays()
    for stream in (None, 0, torch.cuda.current_stream(), torch.cuda.current_stream().cuda_stream):
        args[2].zero_()
        _core.launch(stream, 8, k, args)
        check(*args)
    assert len(k.variants()) == 1
    major, minor = torch.cuda.get_device_capability()
    assert k.variants()[0][0] == f"sm_{major}{minor}" + ("a" if major >= 9 else "")


def test_cubin() -> None:
    cubin, _ = _core.ptx_to_cubin(ADD)
    assert cubin[:4] == b"\x7fELF"
    args = arrays()
    _core.launch(None, 8, make(cubin), args)
    check(*args)
    usage = cuda(cubin, "add").usage(0)
    assert 0 < usage["registers"] < 64 and usage["max_threads"] >= 128


def test_streams() -> None:
    """The launch follows torch's current stream; a long copy before it would show a wrong order."""
    k = make()
    side = torch.cuda.Stream()
    a, b, c = arrays(1 << 22)
    with torch.cuda.stream(side):
        for _ in range(20):
            a.add_(1)
        _core.launch(None, 1 << 15, k, (a, b, c))
        copy = c.clone()
    side.synchronize()
    check(a, b, copy)
    _core.launch(side, 1 << 15, k, (a, b, c))
    side.synchronize()
    check(a, b, c)


class OnlyDlpack:
    """Hides everything but the DLPack methods, as of a library without the C exchange API."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.streams: list[Any] = []

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, *, stream: Any = None) -> Any:
        self.streams.append(stream)
        return self.tensor.__dlpack__(stream=stream)


class OnlyInterface:
    def __init__(self, tensor: Any) -> None:
        self.__cuda_array_interface__ = tensor.__cuda_array_interface__


@pytest.mark.parametrize("wrap", [OnlyDlpack, OnlyInterface])
def test_other_protocols(wrap: Any) -> None:
    a, b, c = arrays()
    _core.launch(None, 8, make(), tuple(map(wrap, (a, b, c))))
    torch.cuda.synchronize()
    check(a, b, c)
    first, second = _core.describe_array(a), _core.describe_array(wrap(a))
    assert first == second


def test_dlpack_is_told_the_stream() -> None:
    a, b, c = arrays()
    side = torch.cuda.Stream()
    wrapped = OnlyDlpack(a)
    with torch.cuda.stream(side):
        _core.launch(None, 8, make(), (wrapped, b, c))
    assert wrapped.streams == [side.cuda_stream]
    side.synchronize()
    check(a, b, c)


@pytest.mark.parametrize("loaded", [True, False])
def test_graph_capture(loaded: bool) -> None:
    """A launch is captured and replayed, even one that has to load its module first."""
    # The comment makes an image of its own, so that it is not loaded yet.
    k = make(f"{ADD}// {os.urandom(8).hex()}\n")
    a, b, c = arrays()
    if loaded:
        _core.launch(None, 8, k, (a, b, c))
        torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        _core.launch(None, 8, k, (a, b, c))
    for value in (1.0, 5.0):
        a.fill_(value)
        c.zero_()
        graph.replay()
        torch.cuda.synchronize()
        check(a, b, c)


def test_threads() -> None:
    """A new thread has no context; nor does it need one."""
    k = make()
    failures: list[BaseException] = []

    def work(stream: Any) -> None:
        try:
            a, b, c = host = arrays()
            torch.cuda.synchronize()
            _core.launch(stream, 8, k, host)
            _core.synchronize(0)
            check(a, b, c)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(stream,)) for stream in (0, None, 2, torch.cuda.Stream())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_devices() -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    k = make()
    for device in ("cuda:1", "cuda:0", "cuda:1"):
        args = arrays(device=device)
        _core.launch(None, 8, k, args)
        torch.cuda.synchronize(device)
        check(*args)
    assert torch.cuda.current_device() == 0
    a, b, _ = arrays()
    with pytest.raises(LaunchError, match="A, B on CUDA device 0; C on CUDA device 1"):
        _core.launch(None, 8, k, (a, b, arrays(device="cuda:1")[2]))


@pytest.mark.parametrize(
    "name",
    [
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "float8_e4m3fn",
        "float8_e5m2",
        "float8_e8m0fnu",
    ],
)
def test_dtypes(name: str) -> None:
    if not hasattr(torch, name):
        pytest.skip(f"this torch has no {name}")
    tensor = torch.zeros((4, 6), dtype=torch.uint8, device="cuda").view(-1)
    size = torch.empty(0, dtype=getattr(torch, name)).element_size()
    seen = _core.describe_array(tensor[: 24 // size * size].view(getattr(torch, name)))
    assert seen["dtype"] == ("bool_" if name == "bool" else name)
    assert seen["device"] == "cuda" and seen["data"] == tensor.data_ptr()


def test_other_tensors() -> None:
    parameter = torch.nn.Parameter(torch.zeros(4, device="cuda"))
    assert _core.describe_array(parameter)["data"] == parameter.data_ptr()
    pinned = torch.zeros(4).pin_memory()
    assert _core.describe_array(pinned)["device"] == "cpu"
    view = torch.zeros((8, 8), device="cuda")[1:, ::2].T
    seen = _core.describe_array(view)
    assert (seen["shape"], seen["strides"], seen["data"]) == ((4, 7), (2, 8), view.data_ptr())
    assert _core.describe_array(torch.zeros(4, dtype=torch.complex64, device="cuda"))["dtype"] == "complex64"
    with pytest.raises(Exception, match="complex"):
        _core.describe_array(torch.zeros(4, dtype=torch.complex32, device="cuda"))


def test_mixture() -> None:
    a, b, c = arrays()
    with pytest.raises(LaunchError, match="B on the CPU"):
        _core.launch(None, 8, make(), (a, b.cpu(), c))


def test_limits() -> None:
    args = arrays()
    with pytest.raises(LaunchError, match="use smaller tiles or fewer stages"):
        _core.launch(None, 1, make(shared_bytes=1 << 20), args)
    most = _core.device_info(0)["shared_bytes_per_block"]
    _core.launch(None, 8, make(shared_bytes=most), args)
    check(*args)
    with pytest.raises(LaunchError, match="at least 1"):
        _core.launch(None, 0, make(), args)


def test_bad_ptx() -> None:
    with pytest.raises(TileCompilationError, match=r"the driver's PTX compiler says:\n(.|\n)*nonsense"):
        _core.launch(None, 1, make(f"{HEAD}nonsense"), arrays())


def test_empty_arrays() -> None:
    args = arrays(0)
    _core.launch(None, 1, make(), args)
    torch.cuda.synchronize()


def test_huge_extent() -> None:
    row = torch.zeros(1, device="cuda").expand(2**31)
    with pytest.raises(TileValueError, match="the most is 2147483647"):
        _core.describe_array(row)


def test_a_fault_names_the_kernel() -> None:
    program = f"""
import torch
from tilewright import _core
from tilewright.errors import LaunchError
k = _core.Dispatcher("writes_nowhere", ["A", "B", "C"], [],
    lambda *_: _core.CudaKernel({FAULT!r}, "writes_nowhere", _core.launch_record(num_threads=32)))
a = torch.zeros(4, device="cuda")
_core.launch(None, 1, k, (a, a, a))
try:
    _core.synchronize(0)
except LaunchError as error:
    print(error)
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)
    assert "a kernel on CUDA device 0 failed while it ran: CUDA_ERROR_ILLEGAL_ADDRESS (700)" in done.stdout, done.stderr
    assert "newest first: writes_nowhere" in done.stdout
