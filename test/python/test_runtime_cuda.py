"""Launching on GPUs, against the stand-in driver: devices, streams, mixtures, faults, error texts.

The driver is opened once a process, so each case runs in a process of its own: this file runs
itself with the name of a case.
"""

from __future__ import annotations

import csv
import ctypes
import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_driver import find_driver

HERE = Path(__file__).resolve().parent
PTX = ".version 7.8\n.target sm_90a\n.visible .entry kernel() .entry fault_kernel()"


CASES: dict[str, dict[str, str]] = {}


def case(**environment: str) -> Any:
    def add(function: Any) -> Any:
        CASES[function.__name__] = environment
        return function

    return add


class Launch(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char * 128),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("attributes", ctypes.c_uint),
        ("stream", ctypes.c_size_t),
        ("context", ctypes.c_size_t),
        ("bytes", ctypes.c_size_t),
        ("words", ctypes.c_int64 * 768),
    ]


class Fake:
    """The control functions of the stand-in driver."""

    def __init__(self) -> None:
        self.lib = ctypes.CDLL(os.environ["TILEWRIGHT_CUDA_DRIVER"])
        self.lib.fake_log.restype = ctypes.c_char_p
        self.lib.fake_launch.restype = ctypes.POINTER(Launch)

    def fail(self, name: str, nth: int, result: int) -> None:
        self.lib.fake_fail(name.encode(), nth, result)

    def calls(self, name: str) -> int:
        return int(self.lib.fake_calls(name.encode()))

    @property
    def log(self) -> list[str]:
        return self.lib.fake_log().decode().splitlines()  # type: ignore[no-any-return]

    @property
    def last(self) -> Launch:
        return self.lib.fake_launch()[0]  # type: ignore[no-any-return]

    @property
    def words(self) -> list[int]:
        return list(self.last.words[: self.last.bytes // 8])


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    import numpy as np
    import producers as p
    import records as r

    from tilewright import _core
    from tilewright.errors import DriverError, LaunchError, TileCompilationError, TileTypeError, TileValueError

    fake = Fake() if os.path.exists(os.environ["TILEWRIGHT_CUDA_DRIVER"]) else None
    misses: list[Any] = []


def make(*parameters: str, image: str = PTX, name: str = "kernel", **more: Any) -> Any:
    constants, simt = more.pop("constants", ()), more.pop("simt", False)

    def miss(kernel: Any, target: str, key: Any) -> Any:
        misses.append((target, key))
        assert target.startswith("sm_9")
        return cuda(more.pop("threads", 128), image=image, name=name, **more)

    return _core.Dispatcher("kernel", parameters, constants, miss, simt)


def cuda(threads: int, shared_bytes: int = 0, *, image: Any = PTX, name: str = "kernel", **more: Any) -> Any:
    """A kernel, with these fields of the launch record."""
    own = {key: more.pop(key) for key in ("written", "better", "overlapping") if key in more}
    record = _core.launch_record(num_threads=threads, shared_bytes=shared_bytes, **more)
    return _core.CudaKernel(image, name, record, **own)


def on(device: int, *shape: int, offset: int = 0, kind: Any = None) -> Any:
    kind = kind or p.Exchange
    return kind(p.device_address(device, offset), shape, device=(p.CUDA, device))


def refused(error: Any, message: str, call: Any, *args: Any) -> None:
    with pytest.raises(error) as caught:
        call(*args)
    assert message in str(caught.value), str(caught.value)


# --- what the driver gets ----------------------------------------------------------------------------


@case()
def parameters_and_launch() -> None:
    k = make("A", "n", "T", "x", constants=(2,), shared_bytes=100_000)
    a = on(0, 3, 8, offset=256)
    _core.launch(0x5007, (4, 3, 2), k, (a, 5, 128, 1.0))
    last = fake.last
    assert (last.name, tuple(last.grid), tuple(last.block)) == (b"kernel", (4, 3, 2), (128, 1, 1))
    assert (last.shared_bytes, last.stream, last.attributes) == (100_000, 0x5007, 0)
    assert fake.words == [p.device_address(0, 256), 3, 8, 8, 1, 5, 0x3F800000]
    assert misses[0][0] == "sm_90a"
    assert fake.log == ["capture mode 2", "load 0", "capture mode 0", "launch kernel 5007"]
    for _ in range(3):
        _core.launch(0x5007, (4, 3, 2), k, (a, 5, 128, 1.0))
    assert len(misses) == 1 and fake.calls("cuModuleLoadDataEx") == 1
    assert fake.calls("cuCtxPushCurrent_v2") == fake.calls("cuCtxPopCurrent_v2") > 0


@case()
def arrays_unlike_those_of_the_launch_before() -> None:
    """Each launch with one thing changed, then with the first array again: what is kept of it must not show."""
    k = make("A", "B")

    def array(*, device: int = 0, offset: int = 0, **more: Any) -> Any:
        given = {"shape": (16, 8), "strides": (8, 1), "dtype": (2, 32, 1)} | more
        return p.Exchange(p.device_address(device, offset), given.pop("shape"), device=(p.CUDA, device), **given)

    def words(array: Any) -> list[int]:
        return [array.address + array.byte_offset, *array.dl_shape, *array.dl_strides]

    first, b = array(), array(offset=4096)
    _core.launch(None, 1, k, (first, b))
    specializations = 1
    for other, fresh in [
        (array(offset=256), False),
        (array(offset=4), True),
        (array(byte_offset=8), False),
        (array(byte_offset=32), False),
        (array(shape=(16, 7)), False),
        (array(shape=(24, 8)), True),
        (array(shape=(32, 8)), False),
        (array(strides=(16, 1)), False),
        (array(strides=(9, 1)), True),
        (array(strides=(1, 16)), True),
        (array(dtype=(0, 32, 1)), True),
        (array(dtype=(2, 16, 1)), True),
        (array(shape=(16,), strides=(1,)), True),
        (array(shape=(16, 8, 1), strides=(8, 1, 1)), True),
    ]:
        specializations += fresh
        for a in (other, other, first):
            _core.launch(None, 1, k, (a, b))
            assert fake.words == words(a) + words(b)
        assert len(misses) == specializations, other.__dict__
    again = array()
    again.dl_shape = again._shape = (p.ctypes.c_int64 * 2)(16, 8)
    _core.launch(None, 1, k, (again, b))
    again._shape[0] = 32  # resized in place
    _core.launch(None, 1, k, (again, b))
    assert fake.words[:5] == [again.address, 32, 8, 8, 1]
    refused(LaunchError, "its arrays are in different places", _core.launch, None, 1, k, (array(device=1), b))
    nothing = p.Exchange(0, (16, 8), strides=(8, 1))
    refused(TileValueError, "no memory behind it", _core.launch, None, 1, k, (nothing, b))
    _core.launch(None, 1, k, (array(device=1), array(device=1)))
    assert fake.last.context == 0xC001 and misses[-1][0] == "sm_91a"


@case()
def programmatic_launch_and_given_blocks() -> None:
    _core.launch(None, 1, make("A", dependent_launch=True), (on(0, 4),))
    assert fake.last.attributes == 1
    _core.launch_threads(None, 2, (32, 4), make("A", threads=0, simt=True), (on(0, 4),))
    assert tuple(fake.last.block) == (32, 4, 1)


@case()
def persistent_kernels() -> None:
    """132 multiprocessors, of which each has room for one block of 384 threads or two of 128."""
    a, words = on(0, 4), [p.device_address(0), 4, 1]
    k = make("A", threads=384, persistent=True)
    for grid, started in [((1,), 1), ((132, 1), 132), ((133,), 67), ((20, 10), 100), ((16, 16, 2), 128)]:
        _core.launch(None, grid, k, (a,))
        assert tuple(fake.last.grid) == (started, 1, 1)
        assert fake.words == [*words, *grid, *([1] * (3 - len(grid)))]
    _core.launch(None, (20, 20), make("A", persistent=True), (a,))
    assert tuple(fake.last.grid) == (200, 1, 1)
    assert fake.calls("cuOccupancyMaxActiveBlocksPerMultiprocessor") == 2  # once a kernel
    many = "kernel kernel, grid (65536, 16385, 1): more than 1073741824 blocks; use larger tiles"
    refused(LaunchError, many, _core.launch, None, (1 << 16, (1 << 14) + 1), k, (a,))
    refused(LaunchError, "(2147483647, 65535, 65535)", _core.launch, None, (2147483647, 65535, 65535), k, (a,))
    pairs = make("A", threads=384, persistent=True, multicast=r.multicast(0, 1024, 0, 0, 1365))
    for blocks, started in [(1, 2), (132, 132), (133, 68), (264, 132), (265, 90)]:
        _core.launch(None, blocks, pairs, (a,))
        assert tuple(fake.last.grid) == (started, 1, 1)
    for wrong in [(3, 1, 1, 1, 1), (0, 0, 1, 1, 1), (0, 1, -1, 0, 1), (0, 1, 0, 0, 0)]:
        none = make("A", persistent=True, multicast=r.multicast(*wrong))
        refused(Exception, "", _core.launch, None, 1, none, (a,))
    assert _core.launch_facts(cuda(64, persistent=True).record)["persistent"]
    assert not _core.launch_facts(cuda(64).record)["persistent"]


SPLIT = {
    "loop": {"word": 2, "per_step": 64, "steps": 0},
    "step_cycles": 1025,
    "step_bytes": 4096,
    "forced": 0,
    "part_bytes": 131072,
}


def shares(kernel: Any, grid: Any, k: int, stream: Any = 0x5001) -> tuple[int, ...]:
    """Blocks that are started for tiles of a loop over k, and what they are told: parts, whole tiles, workspace."""
    _core.launch(stream, grid, kernel, (on(0, 4, k),))
    words = fake.words[5:]
    assert words[:3] == [*grid, *([1] * (3 - len(grid)))] and fake.last.grid[1:3] == [1, 1]
    return fake.last.grid[0], *words[3:]


@case()
def tiles_that_blocks_share() -> None:
    """132 multiprocessors with room for one block of 384 threads, or two of 128."""
    k = make("A", threads=384, persistent=True, split=SPLIT, split_applied=True)
    blocks, parts, whole, workspace = shares(k, (8, 4), 1 << 16)
    assert (blocks, parts, whole) == (128, 4, 0) and workspace > 0
    assert shares(k, (8, 4), 1 << 16)[3] == workspace and fake.calls("cuMemAlloc_v2") == 1
    assert [line for line in fake.log if "fill" in line] == ["fill 16384 in 5001"]  # the counters, once
    assert shares(k, (8, 4), 1024) == (32, 1, 32, 0)  # adding up would take longer
    assert shares(k, (8, 4), 0) == (32, 1, 32, 0)
    assert shares(k, (128,), 1 << 16) == (128, 1, 128, 0)
    assert shares(k, (17, 32), 1 << 14)[:3] == (132, 8, 528)  # four turns, and 16 tiles
    assert shares(k, (16, 32), 1 << 14) == (128, 1, 512, 0)  # four turns, nearly
    memory = make("A", threads=384, persistent=True, split=SPLIT | {"step_bytes": 294912}, split_applied=True)
    assert shares(memory, (8, 4), 1 << 16) == (32, 1, 32, 0)  # the L2 cache has no more to give
    wide, loaded = SPLIT | {"step_bytes": 98304}, [r.place(0, 2, 16)]
    large = make("A", threads=384, persistent=True, split=wide, split_applied=True, loaded=loaded)
    assert shares(large, (8, 4), 4096)[:3] == (96, 3, 0)
    _core.launch(0x5001, (8, 4), large, (on(0, 1 << 20, 4096),))
    assert fake.words[8] == 1  # all that is loaded comes from memory, which has no more to give
    plain = make("A", split=SPLIT, split_applied=True)  # two blocks a multiprocessor
    assert shares(plain, (8, 4), 1 << 16) == (128, 4, 0, workspace)
    assert shares(plain, (140,), 1 << 16) == (140, 1, 140, 0)
    constant = make("A", threads=384, split=SPLIT | {"loop": r.loop(-1, 1, 512)}, split_applied=True)
    assert shares(constant, (8, 4), 0)[:3] == (128, 4, 0)
    forced = make("A", split=SPLIT | {"forced": 3}, split_applied=True)
    assert shares(forced, (8, 4), 64)[:3] == (96, 3, 0)
    assert shares(forced, (100,), 64)[:3] == (100 + 2 * 88, 3, 12)  # as many as the workspace has room for


@case()
def blocks_of_the_dynamic_scheduler() -> None:
    """All blocks that fit are started: none has a share of the others. One more word says where tiles are counted."""
    k = make("A", threads=384, persistent=True, dynamic=True)
    blocks, workspace = shares(k, (17, 32), 0)
    assert blocks == 132 and workspace > 0
    assert shares(k, (133,), 0) == (132, workspace) and shares(k, (7, 3), 0) == (21, workspace)
    assert (
        shares(make("A", threads=384, persistent=True, split=SPLIT, split_applied=True), (8, 4), 1 << 16)[3]
        == workspace
    )
    assert shares(k, (9,), 0, 0x5002)[1] not in (0, workspace) and fake.calls("cuMemAlloc_v2") == 2
    fake.fail("cuMemAlloc_v2", 1, 2)
    assert shares(k, (9,), 0, 0x5003) == (9, 0)  # numbers in turn


ASKED = ("cuStreamGetCaptureInfo_v2", "cuStreamGetId", "cuStreamGetCtx", "cuThreadExchangeStreamCaptureMode")


@case()
def launches_that_ask_the_driver_nothing() -> None:
    """The default stream cannot be captured and does not end: its workspace is known from the first launch on."""
    dynamic = make("A", threads=384, persistent=True, dynamic=True)
    shared = make("A", threads=384, persistent=True, split=SPLIT, split_applied=True)
    first = shares(dynamic, (17, 32), 0, None)[1]
    assert shares(shared, (8, 4), 1 << 16, None)[3] == first > 0
    before = [fake.calls(name) for name in ASKED]
    for stream in (None, 0, 1):
        assert shares(dynamic, (17, 32), 0, stream)[1] == first == shares(shared, (8, 4), 1 << 16, stream)[3]
    assert [fake.calls(name) for name in ASKED] == before and fake.calls("cuMemAlloc_v2") == 1
    others = {own(shared, 0x5010 + n) for n in range(12)}  # more than there are workspaces of streams
    assert first not in others and len(others) == 8
    assert shares(dynamic, (9,), 0, None)[1] == first


@case()
def launches_that_ask_the_driver_once() -> None:
    """Of any other stream each thing is asked once a launch: what it captures, and its number for a workspace."""
    plain = make("A")
    dynamic = make("A", threads=384, persistent=True, dynamic=True)
    shared = make("A", threads=384, persistent=True, split=SPLIT, split_applied=True)
    for k, numbers in ((plain, 0), (dynamic, 1), (shared, 1)):
        for _ in range(2):  # the first one allocates
            before = [fake.calls(name) for name in ASKED[:2]]
            _core.launch(0x5001, (8, 4), k, (on(0, 4, 1 << 16),))
            asked = [fake.calls(name) - was for name, was in zip(ASKED, before, strict=False)]
            assert asked == [1, numbers]
    before = [fake.calls(name) for name in ASKED[:2]]
    _core.launch(0x500F, (8, 4), shared, (on(0, 4, 1 << 16),))
    assert [fake.calls(name) for name in ASKED[:2]] == [before[0] + 1, before[1]]  # one that captures has no number


@case()
def a_default_stream_without_memory() -> None:
    dynamic = make("A", threads=384, persistent=True, dynamic=True)
    fake.fail("cuMemAlloc_v2", 1, 2)
    assert shares(dynamic, (9,), 0, None) == (9, 0)
    assert shares(dynamic, (9,), 0, None)[1] > 0


@case()
def what_is_better_is_found_without_the_driver() -> None:
    """A question takes no workspace, not for a stream and not for the graph that it captures."""
    taken: list[int] = []

    def sharing(*what: Any) -> Any:
        taken.append(fake.calls("cuMemAlloc_v2"))
        return cuda(384, 512, persistent=True, split=SPLIT, split_applied=True)

    for number, stream in enumerate((0x5001, 0x500F, None)):
        k = make("A", threads=384, persistent=True, split=SPLIT, better=sharing)
        assert shares(k, (8, 4), 1 << 16, stream)[:3] == (128, 4, 0)
        assert taken == list(range(number + 1)) and fake.calls("cuMemAlloc_v2") == number + 1


def code(number: int) -> str:
    return f"{PTX} // {number}"


def launch_and_drop(numbers: range, stream: Any = None, device: int = 0) -> None:
    """Kernels of different code, each gone after its launch."""
    for number in numbers:
        k = make("A", image=code(number))
        _core.launch(stream, 1, k, (on(device, 4),))
        del k
        gc.collect()


def unloaded() -> int:
    return fake.log.count("unload 0")


@case()
def code_that_nobody_holds_is_unloaded() -> None:
    """The eighth is; a kernel made of code that is still loaded finds it."""
    launch_and_drop(range(8))
    assert unloaded() == 0 and fake.calls("cuModuleLoadDataEx") == 8
    launch_and_drop(range(8))
    assert unloaded() == 0 and fake.calls("cuModuleLoadDataEx") == 8
    kept = make("A", image=code(3))
    _core.launch(None, 1, kept, (on(0, 4),))
    launch_and_drop(range(8, 9))
    assert unloaded() == 0  # seven others
    launch_and_drop(range(9, 10))
    at = fake.log.index("unload 0")
    assert unloaded() == 8 and fake.log[at - 1] == "sync 0" and fake.log[at + 8] == "load 0"
    _core.launch(None, 1, kept, (on(0, 4),))
    assert fake.calls("cuModuleLoadDataEx") == 10  # the one that is held was not unloaded
    launch_and_drop(range(1))
    assert fake.calls("cuModuleLoadDataEx") == 11


@case()
def code_stays_where_the_device_cannot_be_waited_for() -> None:
    launch_and_drop(range(8))
    fake.fail("cuCtxSynchronize", 1, 900)  # another stream captures
    launch_and_drop(range(8, 9))
    assert unloaded() == 0 and fake.calls("cuModuleLoadDataEx") == 9
    fake.fail("cuModuleUnload", 1, 1)
    launch_and_drop(range(9, 10))
    assert unloaded() == 8  # one was not


@case()
def code_is_unloaded_from_each_device() -> None:
    launch_and_drop(range(8))
    launch_and_drop(range(4), device=1)
    launch_and_drop(range(8, 9))
    assert unloaded() == 8 and "unload 1" not in fake.log
    launch_and_drop(range(4), device=1)
    assert fake.log.count("load 1") == 4  # still there
    launch_and_drop(range(20, 26), device=1)
    assert fake.log.count("unload 1") == 8


@case()
def graphs_hold_their_code() -> None:
    launch_and_drop(range(8), 0x500F)
    launch_and_drop(range(8), 0x500F)
    assert fake.calls("cuUserObjectCreate") == 8  # one of each
    launch_and_drop(range(20, 21))
    assert unloaded() == 0
    fake.lib.fake_destroy_graph(1)
    launch_and_drop(range(21, 22))
    assert unloaded() == 9
    for failing in ("cuUserObjectCreate", "cuGraphRetainUserObject"):  # held for ever
        fake.fail(failing, 1, 1)
        fake.lib.fake_capture(fake.calls(failing) + 2)
        launch_and_drop(range(1), 0x500F)
    launch_and_drop(range(30, 39))
    assert fake.calls("cuModuleLoadDataEx") == 10 + 1 + 9
    launch_and_drop(range(1))
    assert fake.calls("cuModuleLoadDataEx") == 20


@case()
def workspaces_belong_to_streams() -> None:
    k = make("A", threads=384, persistent=True, split=SPLIT, split_applied=True)
    found = {stream: shares(k, (8, 4), 1 << 16, stream)[3] for stream in (0x5001, 0x5002, 0x5001, 0x5003)}
    for stream in range(0x5010, 0x5015):
        found[stream] = shares(k, (8, 4), 1 << 16, stream)[3]
    assert len(set(found.values())) == 8 == fake.calls("cuMemAlloc_v2") and all(found.values())
    assert not [line for line in fake.log if line.startswith(("wait", "record"))]


def own(k: Any, stream: int) -> int:
    """The workspace of a split launch on the stream."""
    parts, _, workspace = shares(k, (8, 4), 1 << 16, stream)[1:]
    assert parts == 4 and workspace > 0
    return workspace


@case()
def streams_beyond_the_workspaces() -> None:
    k = make("A", threads=384, persistent=True, split=SPLIT, split_applied=True)
    first = [own(k, 0x5010 + n) for n in range(8)]
    assert own(k, 0x5010) == first[0]  # the oldest is the next one now
    before = fake.calls("cuCtxSynchronize")
    assert own(k, 0x5020) == first[1] and fake.calls("cuCtxSynchronize") == before + 1
    assert fake.log[-1] == "record 5020" and "wait" not in " ".join(fake.log)  # the device was waited for
    assert own(k, 0x5021) == first[2] and own(k, 0x5011) == first[3]
    for n in range(4, 8):
        assert own(k, 0x5010 + n) == first[n]
    assert own(k, 0x5010) == first[0] and own(k, 0x5022) == first[1]
    assert fake.log[-4:] == ["wait 5022", "capture mode 0", "launch kernel 5022", "record 5022"]
    assert own(k, 0x5022) == first[1] and fake.log[-2:] == ["launch kernel 5022", "record 5022"]
    assert fake.calls("cuMemAlloc_v2") == 8 and fake.calls("cuCtxSynchronize") == before + 1
    fake.fail("cuStreamWaitEvent", 1, 400)
    assert shares(k, (8, 4), 1 << 16, 0x5023) == (32, 1, 32, 0)


@case()
def a_device_that_cannot_be_waited_for() -> None:
    k = make("A", threads=384, persistent=True, split=SPLIT, split_applied=True)
    first = [own(k, 0x5010 + n) for n in range(8)]
    fake.fail("cuCtxSynchronize", 1, 900)  # another stream captures
    assert shares(k, (8, 4), 1 << 16, 0x5020) == (32, 1, 32, 0)
    assert own(k, 0x5020) == first[0]


@case()
def workspaces_of_captured_graphs() -> None:
    k = make("A", threads=384, persistent=True, split=SPLIT, split_applied=True)
    eager = own(k, 0x500E)
    first, branch = own(k, 0x500F), own(k, 0x501F)
    assert len({eager, first, branch}) == 3 and own(k, 0x500F) == first
    zeroed = ["capture mode 2", "fill 16384 in 50f0", "synchronize 50f0", "capture mode 0", "launch kernel 500f"]
    at = fake.log.index("launch kernel 500f")
    assert fake.log[at - 4 : at + 1] == zeroed
    fake.lib.fake_capture(2)
    second = own(k, 0x500F)
    assert second not in (eager, first, branch)
    fake.lib.fake_destroy_graph(1)
    fake.lib.fake_capture(3)
    assert {own(k, 0x500F), own(k, 0x501F)} == {first, branch} and fake.calls("cuMemAlloc_v2") == 4
    assert shares(k, (17, 32), 1 << 14, 0x500F)[3] in (first, branch)  # as large
    large = make("A", threads=384, persistent=True, split=SPLIT | {"part_bytes": 1 << 18}, split_applied=True)
    assert shares(large, (8, 4), 1 << 16, 0x500F)[1:3] == (4, 0) and fake.calls("cuMemAlloc_v2") == 5
    assert own(k, 0x500E) == eager
    failures = ("cuUserObjectCreate", "cuGraphRetainUserObject", "cuStreamCreate", "cuMemsetD8Async", "cuMemAlloc_v2")
    for graph, failing in enumerate(failures, 10):
        fake.lib.fake_capture(graph)
        fake.fail(failing, 2 if "Object" in failing else 1, 1)  # the graph's first object is the image
        assert shares(k, (8, 4), 1 << 16, 0x500F) == (32, 1, 32, 0)
        assert own(k, 0x500F) not in (eager, second)
        assert fake.log.count("capture mode 2") == fake.log.count("capture mode 0")


@case()
def workspaces_that_there_is_no_memory_for() -> None:
    fake.fail("cuMemAlloc_v2", 1, 2)
    k = make("A", threads=384, persistent=True, split=SPLIT, split_applied=True)
    assert shares(k, (8, 4), 1 << 16) == (32, 1, 32, 0)
    assert shares(k, (8, 4), 1 << 16)[:3] == (128, 4, 0)
    assert fake.log.count("capture mode 2") == 3  # as loading, no part of a graph that another stream captures


@case()
def clusters_that_would_idle() -> None:
    """Neighbours along axis 1, on 132 multiprocessors: where others take fewer turns, there is another kernel."""
    made: list[tuple[str, int]] = []

    def better(*what: Any) -> Any:
        made.append(what)
        pairs = r.multicast(0, 1138, 0, 0, 2147483647) if what == ("clusters", 0) else None
        return cuda(384, 512 * len(made), persistent=True, multicast=pairs)

    k = make("A", threads=384, persistent=True, multicast=r.multicast(1, 1138, 1024, 0, 1365), better=better)
    own, along_0, alone = 0, 512, 1024
    for grid, started, shared_bytes in [
        ((1, 1), 2, own),
        ((1, 128), 128, own),
        ((30, 3), 120, own),
        ((32, 65), 132, own),  # 16 turns along both
        ((16, 33), 132, along_0),  # 4 turns, and 5 along axis 1, where the last column has no neighbour
        ((128, 1), 128, along_0),
        ((65535, 1), 132, along_0),
        ((131, 1), 132, along_0),
        ((7, 3, 6), 126, alone),
    ]:
        _core.launch(None, grid, k, (on(0, 4),))
        assert (tuple(fake.last.grid), fake.last.shared_bytes) == ((started, 1, 1), shared_bytes), grid
    assert made == [("clusters", 0), ("split_k", 0)]


@case()
def kernels_that_share_are_made_when_wanted() -> None:
    made: list[Any] = []

    def sharing(*what: Any) -> Any:
        assert what == ("split_k", 1)
        made.append(cuda(384, 512, persistent=True, split=SPLIT, split_applied=True))
        return made[-1]

    k = make("A", threads=384, persistent=True, split=SPLIT, better=sharing)
    _core.launch(0x5001, (8, 4), k, (on(0, 4, 1024),))
    assert fake.words[5:] == [8, 4, 1] and not made
    for _ in range(2):
        assert shares(k, (8, 4), 1 << 16)[:3] == (128, 4, 0) and fake.last.shared_bytes == 512
    assert len(made) == 1
    assert shares(k, (8, 4), 1 << 16, 0x500F)[:3] == (128, 4, 0) and len(made) == 1  # captures a graph
    wrong = make("A", threads=384, split=SPLIT, better=lambda *what: 7)
    refused(Exception, "on_miss returned", _core.launch, 0x5001, (8, 4), wrong, (on(0, 4, 1 << 16),))


# 64 of word 2 a step; one class, of the extent in word 1, in tiles of 128; 1, 2, 4 slices: cycles and bytes of a step.
CUT = {
    "loop": {"word": 2, "per_step": 64, "steps": 0},
    "classes": [{"word": 1, "tile": 128}],
    "plans": [
        {"parts": (1,), "cycles": 1088, "bytes": 49152},
        {"parts": (2,), "cycles": 576, "bytes": 32768},
        {"parts": (4,), "cycles": 320, "bytes": 24576},
    ],
}


def cut_kernel(made: list[Any], row: Any = CUT, **more: Any) -> Any:
    """Whose slices have that number of bytes of shared memory."""

    def better(kind: str, parts: int) -> Any:
        assert kind == "slice"
        made.append(parts)
        return cuda(384, parts, grid_scale=(parts, 1, 1))

    return make("A", threads=384, slice=row, better=better, **more)


def slices(kernel: Any, grid: Any, rows: int, columns: int) -> int:
    """Into how many slices a launch cuts each tile."""
    _core.launch(0x5001, grid, kernel, (on(0, rows, columns),))
    parts = max(1, fake.last.shared_bytes)
    assert tuple(fake.last.grid) == (grid[0] * parts, *grid[1:], 1) and len(fake.words) == 5
    return parts


@case()
def tiles_that_are_cut() -> None:
    """132 multiprocessors."""
    made: list[Any] = []
    k = cut_kernel(made)
    assert slices(k, (8, 4), 1024, 1024) == 4 and made == [4]
    assert fake.calls("cuModuleLoadDataEx") == 1  # the driver assembles nothing that is not launched
    assert slices(k, (8, 4), 1024, 2048) == 4 and made == [4]  # kept
    assert slices(k, (8, 16), 1024, 1024) == 1  # as many blocks as can be would still take turns
    assert slices(k, (8, 8), 1024, 2048) == 2 and made == [4, 2]  # with four they would, too
    assert slices(k, (8, 100), 1024, 1024) == 1
    assert slices(k, (8, 4), 1024, 64) == 1  # short
    assert slices(k, (1, 60), 32, 4096) == 2 and made == [4, 2]  # slices that are empty take as long
    slow = cut_kernel(
        made,
        CUT
        | {
            "plans": [
                r.slice_plan((1,), 1088, 180000),
                *(r.slice_plan((n,), c, 100000) for n, c in ((2, 576), (4, 320))),
            ]
        },
    )
    assert slices(slow, (1, 60), 128, 4096) == 1  # all wait for the memory
    assert slices(slow, (1, 60), 32, 4096) == 2  # ... but those that load nothing
    constant = cut_kernel(made, CUT | {"loop": r.loop(-1, 1, 16), "classes": [{"word": -1, "tile": 128}]})
    assert slices(constant, (8, 4), 1, 1) == 4


# Of products in bf16 with tiles of 128x256x64: slices of a tile, how many rows and columns these have, the parts of k
# that a step takes in cycles and bytes.
SLICES = {1: (128, 256, 1088, 49152), 2: (128, 128, 576, 32768), 4: (64, 128, 320, 24576), 8: (64, 64, 234, 16384)}


def measured_plans() -> dict[tuple[int, int, int], dict[tuple[int, int], float]]:
    """Of each shape: microseconds by the number of slices and of parts along k."""
    out: dict[tuple[int, int, int], dict[tuple[int, int], float]] = {}
    with open(HERE.parent / "data" / "plans.csv") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            m, n, k, cut, split = (int(row[name]) for name in ("m", "n", "k", "slice", "split"))
            out.setdefault((m, n, k), {})[cut, split] = float(row["us"])
    return out


def plan_kernel(whole: int, cut: int, shares: bool) -> Any:
    """A kernel whose tile is a slice of those `whole`, now cut further; its bytes of shared memory tell which."""

    def better(kind: str, number: int) -> Any:
        return plan_kernel(whole, cut * number if kind == "slice" else cut, kind == "split_k")

    rows, columns, *_ = SLICES[whole]
    plans = [
        r.slice_plan((rows // tm, columns // tn), *of_step)
        for cuts, (tm, tn, *of_step) in SLICES.items()
        if cuts >= whole
    ]
    tm, tn, cycles, size = SLICES[cut]
    k = r.loop(2, 64, 0)
    classes = [{"word": 11, "tile": rows}, {"word": 12, "tile": columns}]
    whole_tiles = cut == whole and not shares and len(plans) > 1
    return cuda(
        384,
        2 * cut + shares,
        persistent=True,
        split_applied=shares,
        split={"loop": k, "step_cycles": cycles, "step_bytes": size, "part_bytes": 4 * tm * tn},
        loaded=[r.place(0, 2, 16), r.place(5, 2, 16)],
        slice={"loop": k, "classes": classes, "plans": plans} if whole_tiles else None,
        grid_scale=(rows // tm, columns // tn, 1) if cut > whole else (),
        better=better,
    )


def time_of(times: dict[tuple[int, int], float], cut: int, split: int) -> float:
    """Not every number of parts was measured: the slower one of the next ones."""
    splits = [parts for slices, parts in times if slices == cut]
    below, above = max(p for p in splits if p <= split), min(p for p in splits if p >= split)
    return max(times[cut, below], times[cut, above])


@case()
def plans_that_were_measured() -> None:
    """A launch is hardly slower than with the best of the plans that it can choose from."""
    losses = []
    for whole in (1, 2, 4):
        for (m, n, k), times in measured_plans().items():
            rows, columns, *_ = SLICES[whole]
            grid = (-(-m // rows), -(-n // columns))
            if grid[0] * grid[1] != -(-m // 128) * -(-n // 256) * whole:
                continue  # as smaller tiles, without those beyond the array, they were not measured
            kernel = _core.Dispatcher(
                "kernel", ("A", "B", "C"), (), lambda *_, w=whole: plan_kernel(w, w, False), False
            )
            _core.launch(0x5001, grid, kernel, (on(0, m, k), on(0, k, n), on(0, m, n)))
            cut, split, first_shared = fake.last.shared_bytes // 2, 1, 0
            if fake.last.shared_bytes % 2:
                split, first_shared = fake.words[18:20]
            if first_shared == 0:  # else only tiles of the last turn are, which was not measured
                best = min(time for (slices, _), time in times.items() if slices >= whole)
                losses.append((time_of(times, cut, split) / best, (rows, columns), (m, n, k), (cut, split)))
    assert len(losses) > 50 and max(losses)[0] < 1.12, sorted(losses)[-8:]
    assert sum(loss for loss, *_ in losses) / len(losses) < 1.02, sorted(losses)[-8:]


@case()
def variants_forgotten_while_one_is_made() -> None:
    """Compiling runs Python, which may change a variable that the kernel has read."""
    made: list[Any] = []

    def better(kind: str, parts: int) -> Any:
        k.clear_variants()
        gc.collect()
        assert any(type(thing) is _core.CudaKernel for thing in gc.get_objects())  # the one whose launch this is
        made.append(parts)
        return cuda(384, parts, grid_scale=(parts, 1, 1))

    k = make("A", threads=384, slice=CUT, better=better)
    for _ in range(3):
        assert slices(k, (8, 4), 1024, 1024) == 4
    assert made == [4] * 3 and len(k.variants()) == 0


@case()
def variants_launched_longest_ago_are_dropped() -> None:
    """What was loaded stays for graphs that hold it, and is found again."""

    def miss(kernel: Any, target: str, key: Any) -> Any:
        return cuda(128, image=f"{PTX} // {key[0][1]}")

    k = _core.Dispatcher("kernel", ("c", "A"), (0,), miss, False, None, 2)
    for c in (0, 1, 2, 3, 0, 1):
        _core.launch(0x5001, 1, k, (c, on(0, 16)))
    gc.collect()
    assert sum(type(thing) is _core.CudaKernel for thing in gc.get_objects()) == 2
    assert {key[0][1] for _, key, _ in k.variants()} == {0, 1}
    assert fake.calls("cuModuleLoadDataEx") == 4


@case()
def tiles_that_are_cut_or_shared() -> None:
    """Parts of k are for longer loops than slices are."""
    made: list[Any] = []
    k = make("A", threads=384, split=SPLIT, slice=CUT, better=lambda *what: made.append(what))
    for steps, wanted in [(64, ("slice", 4)), (2048, ("split_k", 1))]:
        refused(Exception, "on_miss returned", _core.launch, 0x5001, (8, 4), k, (on(0, 1024, 64 * steps),))
        assert made[-1] == wanted


# 64 of word 2 a step; 1, 2, 4 blocks in one: how many along each axis, cycles and bytes of a step. Axis 0 covers word 1
# by 64 a block.
FUSE = {
    "loop": {"word": 2, "per_step": 64, "steps": 0},
    "plans": [
        {"blocks": (1, 1, 1), "cycles": 234, "bytes": 16384},
        {"blocks": (2, 1, 1), "cycles": 320, "bytes": 24576},
        {"blocks": (2, 2, 1), "cycles": 576, "bytes": 32768},
    ],
    "stores": [{"axis": 0, "word": 1, "tile": 64}],
}


@case()
def blocks_that_are_fused() -> None:
    """132 multiprocessors."""
    made: list[Any] = []

    def better(kind: str, blocks: int) -> Any:
        assert kind == "coarsen"
        made.append(blocks)
        grid = {1: (), 2: (-2, 1, 1), 4: (-2, -2, 1)}[blocks]
        return cuda(384, blocks, coarsen=FUSE, grid_scale=grid)

    def started(kernel: Any, grid: tuple[int, int], rows: int, columns: int = 4096) -> tuple[int, ...]:
        _core.launch(0x5001, grid, kernel, (on(0, rows, columns),))
        assert len(fake.words) == 5
        return (*fake.last.grid, fake.last.shared_bytes)

    k = make("A", threads=384, coarsen=FUSE, better=better)
    assert started(k, (64, 64), 4096) == (32, 32, 1, 4) and made == [4]
    assert started(k, (63, 33), 4032) == (32, 17, 1, 4)  # all of the array: nothing is stored beyond
    assert started(k, (62, 33), 4096) == (31, 17, 1, 4)  # not all, but an even number
    assert started(k, (63, 64), 4096) == (63, 64, 1, 0)  # a row of blocks that must not be
    assert started(k, (8, 8), 512) == (8, 8, 1, 0)  # few
    assert started(k, (16, 16), 1024) == (8, 16, 1, 2) and made == [4, 2]  # four in one would be too few
    assert started(k, (64, 64), 4096, 0) == (64, 64, 1, 0) and made == [4, 2]
    forced = make("A", threads=384, coarsen=FUSE, grid_scale=(-2, -1, 1), better=better)
    assert started(forced, (7, 3), 448) == (4, 3, 1, 0)
    assert started(forced, (7, 3), 449) == (7, 3, 1, 1) and made == [4, 2, 1]


def records_with(field: str, value: Any) -> Iterator[Any]:
    """What is like the value, but for one number that is far beyond its bounds, or one entry that has gone."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield {name: other for name, other in value.items() if name != key} | {"nothing": 1}
            for other in records_with(key, part):
                yield value | {key: other}
    elif isinstance(value, list | tuple):
        yield [*value] * 80
        for i, part in enumerate(value):
            for other in records_with(field, part):
                yield [*value[:i], other, *value[i + 1 :]]
    else:
        yield from (-(1 << 33), 1 << 33, "x", None)


@case()
def records_that_are_refused() -> None:
    good: dict[str, Any] = {
        "split": SPLIT,
        "slice": CUT,
        "coarsen": FUSE,
        "multicast": r.multicast(1, 1138, 1024, 0, 1365),
        "loaded": [r.place(0, 2, 16)],
        "no_alias": [r.no_alias(0, 1, 32, 3, 2, 32, 0)],
        "tensor_maps": [r.tensor_map(*MAP)],
        "grid_scale": (2, 1, 1),
    }
    for field, value in good.items():
        cuda(64, **{field: value})
        for wrong in records_with(field, value):
            refused(Exception, "", lambda wrong=wrong, field=field: cuda(64, **{field: wrong}))
    for field, wrong in {
        "split": SPLIT | {"part_bytes": 0},
        "slice": CUT | {"classes": []},
        "coarsen": FUSE | {"plans": FUSE["plans"][:1]},
        "multicast": r.multicast(2, 1138, 1024, 0, 1365),
        "loaded": [r.place(510, 2, 16)],
        "no_alias": [r.no_alias(0, 1, 32, 510, 2, 32, 0)],
        "grid_scale": (0, 1, 1),
        "split_applied": 1,
        "dynamic": 1,
    }.items():
        refused(TileValueError, "launch record: ", lambda wrong=wrong, field=field: cuda(64, **{field: wrong}))
    more = [*CUT["plans"][:2], r.slice_plan((129,), 320, 24576)]
    refused(TileValueError, "slice.plans.parts does not fit", lambda: cuda(64, slice=CUT | {"plans": more}))
    tall = make("A", grid_scale=(1, 4, 1))
    refused(
        LaunchError, "whose tiles are resized: grid (1, 80000, 1)", _core.launch, None, (1, 20000), tall, (on(0, 4),)
    )


@case()
def bytes_that_are_refused() -> None:
    record = _core.launch_record(num_threads=64, split=SPLIT)
    for wrong in (b"", b"x", record[:-1], record + b"x", b"TWLR" + bytes(8), record[:4] + b"x" + record[5:]):
        refused(TileValueError, "launch record: ", _core.CudaKernel, PTX, "kernel", wrong)
    refused(TypeError, "", _core.CudaKernel, PTX, "kernel", {"num_threads": 64})


@case()
def arrays_that_overlap() -> None:
    """The kernel takes its two arrays for separate; where they overlap another one is made, once. Or it takes them for
    separate or the same."""
    made: list[Any] = []

    def overlapping(*_: Any) -> Any:
        made.append(cuda(64, 512))
        return made[-1]

    pairs = [r.no_alias(0, 1, 32, 3, 2, 32, 0)]
    k = make("A", "B", threads=64, no_alias=pairs, overlapping=overlapping)
    line, address = on(0, 64), p.device_address(0)  # 256 bytes
    for b, together in [
        (on(0, 8, 8, offset=1024), False),
        (on(0, 8, 8, offset=256), False),
        (on(0, 8, 8, offset=252), True),
        (on(0, 0, 8), False),
        (on(0, 8, 8), True),
        (p.CudaArray(address + 1024, (8, 8), "<f4", strides=(-128, 4)), True),  # its last row is the first in memory
        (p.CudaArray(address + 1024, (8, 8), "<f4", strides=(-96, 4)), False),
    ]:
        for _ in range(2):
            _core.launch(None, (1,), k, (line, b))
            assert fake.last.shared_bytes == (512 if together else 0)
    assert 1 < len(made) < 4  # by the facts of the arrays
    wrong = make("A", "B", threads=64, no_alias=pairs, overlapping=lambda *_: 7)
    refused(Exception, "on_miss returned", _core.launch, None, (1,), wrong, (line, line))
    number = len(made)
    k = make("A", "B", threads=64, no_alias=[r.no_alias(0, 1, 32, 3, 1, 32, 1)], overlapping=overlapping)
    for b, together in [
        (line, False),
        (on(0, 60), True),
        (on(0, 64, offset=4), True),
        (p.CudaArray(address, (32,), "<f4", strides=(8,)), True),
        (on(0, 64, offset=256), False),
    ]:
        _core.launch(None, (1,), k, (line, b))
        assert fake.last.shared_bytes == (512 if together else 0)
    assert len(made) > number
    k = make("A", "B", threads=64, no_alias=[r.no_alias(0, 1, 32, 3, 2, 32, 1)], overlapping=overlapping)
    _core.launch(None, (1,), k, (line, on(0, 8, 8)))
    assert fake.last.shared_bytes == 512  # no array is one of another rank


@case()
def joined_kernels() -> None:
    """Four blocks of a warp as the rows of one, where each of 132 multiprocessors still has two of those."""
    a, words = on(0, 4), [p.device_address(0), 4, 1]
    k = make("A", threads=32, packed_blocks=4)
    many = 4 * 2 * 132
    for grid, started, rows in [
        ((1,), (1, 1, 1), 1),
        ((many - 1,), (many - 1, 1, 1), 1),
        ((many,), (many // 4, 1, 1), 4),
        ((many + 1,), (many // 4 + 1, 1, 1), 4),
        ((7, 264), (2, 264, 1), 4),
        ((3, 1000), (3, 1000, 1), 1),
        ((4, 2, 132), (1, 2, 132), 4),
    ]:
        _core.launch(None, grid, k, (a,))
        assert (tuple(fake.last.grid), tuple(fake.last.block)) == (started, (32, rows, 1))
        assert fake.words == [*words, *grid, *([1] * (3 - len(grid)))]


@case()
def cubins_and_usage() -> None:
    cubin, log = _core.ptx_to_cubin(PTX)
    assert cubin.startswith(b"CUBIN") and log == ""
    assert _core.ptx_to_cubin(PTX, "sm_91a")[0] == cubin
    refused(DriverError, "none of the 2 CUDA device(s) runs code for sm_80", _core.ptx_to_cubin, PTX, "sm_80")
    kernel = cuda(64, 1000, image=cubin)
    kernel.load(0)
    assert kernel.usage(0) == {
        "registers": 32,
        "local_bytes": 0,
        "shared_bytes": 0,
        "max_threads": 1024,
    }
    facts = _core.launch_facts(kernel.record)
    assert (facts["num_threads"], facts["shared_bytes"], kernel.name) == (64, 1000, "kernel")
    assert fake.calls("cuModuleLoadDataEx") == 1
    assert _core._bench_driver_launch(kernel, 0, 0, bytes(24), 10) > 0
    assert fake.calls("cuLaunchKernelEx") == 10
    assert not any(line.startswith("level") for line in fake.log)
    _core.ptx_to_cubin("// opt_level 1\n" + PTX)
    cuda(64, image="// opt_level 0\n" + PTX).load(0)
    assert [line for line in fake.log if line.startswith("level")] == ["level 1", "level 0"]


# --- tensor maps -------------------------------------------------------------------------------------


MAP = (0, 4, 128, (1, 0), (32, 64))  # word, bytes, swizzle, axes, box


def described(words: list[int]) -> tuple[Any, ...]:
    """What the stand-in driver was told of a map: address, rank, type, swizzle, extents, strides, box."""
    rank = words[1] & 255
    box = [words[12 + d // 2] >> (32 * (d % 2)) & 0xFFFFFFFF for d in range(rank)]
    return words[0], rank, words[1] >> 8 & 255, words[1] >> 16, words[2 : 2 + rank], words[8 : 7 + rank], box


@case()
def tensor_maps_come_before_the_words() -> None:
    k = make("n", "A", "B", tensor_maps=[r.tensor_map(1, *MAP[1:]), r.tensor_map(6, 2, 0, (0,), (256,))])
    a, b = on(0, 100, 48), on(0, 1000, offset=4096)
    _core.launch(None, 1, k, (7, a, b))
    words = fake.words[6:]  # the driver's parameters begin 48 bytes before
    assert len(words) == 2 * 16 + 1 + 5 + 3
    assert described(words) == (p.device_address(0), 2, 2, 3, [48, 100], [192], [32, 64])
    assert described(words[16:]) == (p.device_address(0, 4096), 1, 1, 0, [1000], [], [256])
    assert words[32:] == [7, p.device_address(0), 100, 48, 48, 1, p.device_address(0, 4096), 1000, 1]
    assert misses[0][1][1][-1] is True  # what the launch says of A


@case()
def tensor_maps_are_made_when_an_array_changes() -> None:
    k = make("A", tensor_maps=[r.tensor_map(*MAP)])
    for n, array in enumerate((on(0, 100, 48), on(0, 100, 48, offset=64), on(0, 99, 48), on(0, 99, 44)), 1):
        for _ in range(3):
            _core.launch(None, 1, k, (array,))
            assert described(fake.words[6:])[0] == fake.words[22]
        assert fake.calls("cuTensorMapEncodeTiled") == n


@case()
def tensor_maps_are_found_when_the_kernel_is_loaded() -> None:
    fake.fail("cuFuncGetParamInfo", 1, 1)
    message = "kernel kernel: finding the tensor maps failed: CUDA_ERROR_INVALID_VALUE (1)"
    refused(Exception, message, _core.launch, None, 1, make("A", tensor_maps=[r.tensor_map(*MAP)]), (on(0, 100, 48),))


@case()
def extents_of_one_may_have_any_stride() -> None:
    _core.launch(None, 1, make("A", tensor_maps=[r.tensor_map(*MAP)]), (on(0, 1, 44),))
    assert described(fake.words[6:])[5] == [16]


@case()
def tensor_maps_that_are_refused() -> None:
    k = make("A", tensor_maps=[r.tensor_map(*MAP)])
    fake.fail("cuTensorMapEncodeTiled", 1, 1)
    message = "kernel kernel, tensor map 0: describing an array to the GPU failed: CUDA_ERROR_INVALID_VALUE (1)"
    refused(LaunchError, message, _core.launch, None, 1, k, (on(0, 100, 48),))
    _core.launch(None, 1, k, (on(0, 100, 48),))
    k = make("n", tensor_maps=[r.tensor_map(*MAP)])
    refused(Exception, "tensor map 0 is of an array that the launch has not", _core.launch, 0x5007, 1, k, (3,))
    for wrong in [
        (0, 3, 128, (1, 0), (32, 64)),
        (0, 4, 100, (1, 0), (32, 64)),
        (0, 4, 128, (1, 1), (32, 64)),
        (0, 4, 128, (2, 0), (32, 64)),
        (0, 4, 128, (1, 0), (0, 64)),
        (0, 4, 128, (), ()),
        (508, 4, 128, (1, 0), (32, 64)),
    ]:
        row = r.tensor_map(*wrong)
        refused(TileValueError, "launch record: ", lambda row=row: cuda(64, tensor_maps=[row]))


# --- streams -----------------------------------------------------------------------------------------


@case()
def forms_of_streams() -> None:
    class Protocol:
        def __cuda_stream__(self) -> tuple[int, int]:
            return (0, 0x5001)

    class Property:
        __cuda_stream__ = (0, 0x5002)

    class Torch:
        cuda_stream = 0x5003

    class Cupy:
        ptr = 0x5004

    class Newer:
        def __cuda_stream__(self) -> tuple[int, int]:
            return (1, 0x5001)

    k = make("A")
    a = on(0, 4)
    for stream in (0, 1, 2, 0x5009):
        _core.launch(stream, 1, k, (a,))
        assert fake.last.stream == stream
    for handle, kind in enumerate((Protocol, Property, Torch, Cupy), 0x5001):
        _core.launch(kind(), 1, k, (a,))
        assert fake.last.stream == handle
    refused(TileTypeError, "version 1 of __cuda_stream__", _core.launch, Newer(), 1, k, (a,))
    refused(LaunchError, "kernel kernel, grid (1, 1, 1)", _core.launch, 0x5100, 1, k, (a,))

    class Both(Protocol):
        """Has the handle as an attribute, too: that is quicker, where the two agree."""

        asked = 0
        ptr = "no handle"

        def __init__(self, handle: int, told: int) -> None:
            self.cuda_stream, self.told = handle, told

        def __cuda_stream__(self) -> tuple[int, int]:
            Both.asked += 1
            return (0, self.told)

    for handle, told, asked in [(0x5002, 0x5003, 1), (0x5002, 0x5003, 2), (0x5004, 0x5004, 3), (0x5005, 0x5005, 4)]:
        _core.launch(Both(handle, told), 1, k, (a,))
        assert (fake.last.stream, Both.asked) == (told, asked)
    _core.launch(Torch(), 1, k, (a,))  # so that it is looked at afresh
    for asked, handle in [(5, 0x5004), (5, 0x5005), (5, 0x5006)]:
        _core.launch(Both(handle, handle), 1, k, (a,))
        assert (fake.last.stream, Both.asked) == (handle, asked)


@case()
def none_is_the_stream_of_the_arrays() -> None:
    k = make("A", "B")
    a = on(0, 4)
    p.Exchange.current_stream = 0x5005
    _core.launch(None, 1, k, (a, a))
    assert fake.last.stream == 0x5005
    # A producer that must be told the stream is told the one of the other array, whatever the order.
    for producer, stream in ((p.Versioned, 0x5005), (p.Unversioned, 0x5005)):
        b = on(0, 4, kind=producer)
        _core.launch(None, 1, k, (b, a))
        assert fake.last.stream == stream and b.asked[-1]["stream"] == stream
    b = on(0, 4, kind=p.Versioned)
    _core.launch(None, 1, k, (b, b))
    assert fake.last.stream == 0 and b.asked[-1] == {"stream": 1, "max_version": (1, 1)}
    _core.launch(0x5006, 1, k, (b, b))
    assert fake.last.stream == 0x5006 and b.asked[-1]["stream"] == 0x5006


@case()
def cuda_array_interface_streams() -> None:
    k = make("A")
    a = p.CudaArray(p.device_address(0), (4,), stream=0x5002)
    _core.launch(None, 1, k, (a,))
    assert fake.last.stream == 0x5002
    assert not any(line.startswith("wait") for line in fake.log)
    _core.launch(0x5003, 1, k, (a,))
    assert fake.log[-4:] == ["record 5002", "wait 5003", "launch kernel 5003", "record 5003"]  # the last keeps `a`
    ambiguous = p.CudaArray(p.device_address(0), (4,), stream=0)
    refused(Exception, "names stream 0, which the interface forbids", _core.launch, None, 1, k, (ambiguous,))


# --- the CUDA Array Interface -------------------------------------------------------------------------


@case()
def cuda_array_interface() -> None:
    a = p.CudaArray(p.device_address(1, 64), (2, 3), "<i2", strides=(12, 4), read_only=True, version=2)
    assert _core.describe_array(a) == {
        "data": p.device_address(1, 64),
        "dtype": "int16",
        "shape": (2, 3),
        "strides": (6, 2),
        "device": "cuda",
        "device_id": 1,
        "read_only": True,
        "overlaps": False,
    }
    for version in range(4):
        a = p.CudaArray(p.device_address(0), (2, 3), "<f8", strides=None, version=version)
        assert _core.describe_array(a)["strides"] == (3, 1)
    with_dtype = p.CudaArray(p.device_address(0), (4,), "<V2")
    with_dtype.dtype = "torch.bfloat16"  # type: ignore[attr-defined]
    assert _core.describe_array(with_dtype)["dtype"] == "bfloat16"
    assert _core.describe_array(p.CudaArray(0, (0, 3)))["device_id"] == -1


@case()
def what_dlpack_cannot_say() -> None:
    class Both(p.CudaArray):
        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 0)

        def __dlpack__(self, **_: Any) -> None:
            raise BufferError("no such dtype in DLPack")

    a = Both(p.device_address(0), (4,), read_only=True)
    assert _core.describe_array(a)["read_only"]


@case()
def refused_cuda_arrays() -> None:
    address = p.device_address(0)
    for array, error, message in [
        (p.CudaArray(address, (4,), mask=p.CudaArray(address, (4,))), NotImplementedError, "has a mask"),
        (p.CudaArray(address, (4,), version=4), TileTypeError, "version 4; versions 0 to 3 are known"),
        (p.CudaArray(address, (4,), ">f4"), TileTypeError, "byte order (dtype '>f4')"),
        (p.CudaArray(address, (4,), "<c32"), TileTypeError, "its dtype <c32 is not supported"),
        (p.CudaArray(address, (4,), "<M8"), TileTypeError, "its dtype <M8 is not supported"),
        (p.CudaArray(address, (4,), strides=(6,)), Exception, "its stride in dimension 0 (6 bytes)"),
        (p.CudaArray(address, (4,), strides=(4, 4)), Exception, "strides of another length"),
        (p.CudaArray(0, (4,)), Exception, "it has no memory behind it"),
        (p.CudaArray(12345 * 4, (4,)), Exception, "not memory that the CUDA driver knows"),
        (p.CudaArray(address, (2**31,)), Exception, "the most is 2147483647"),
        (p.CudaArray(address, (4,), data=7), TileTypeError, "no (pointer, read-only) tuple as data"),
        (p.CudaArray(address, (4,), typestr=None), TileTypeError, "lacks the entry 'typestr'"),
    ]:
        refused(error, message, _core.describe_array, array)
        refused(error, "kernel kernel, argument 'A': it", _core.launch, None, 1, make("A"), (array,)) if (
            message.startswith("it ")
        ) else None


# --- devices -----------------------------------------------------------------------------------------


@case()
def several_devices() -> None:
    assert _core.device_count() == 2 and _core.driver_version() == 12040
    assert _core.device_info(1)["name"] == "Fake GPU 1"
    assert _core.device_info(1)["capability"] == (9, 1)
    k = make("A")
    for _ in range(2):
        for device in (0, 1):
            _core.launch(None, 1, k, (on(device, 4),))
            assert fake.last.context == 0xC000 + device
    assert [target for target, _ in misses] == ["sm_90a", "sm_91a"]
    assert fake.calls("cuModuleLoadDataEx") == 2
    refused(DriverError, "there is no CUDA device 2: the driver shows 2", _core.device_info, 2)


@case()
def the_current_context_is_left_alone() -> None:
    fake.lib.cuInit(0)
    fake.lib.cuCtxSetCurrent(ctypes.c_size_t(0xC001))
    _core.launch(0, 1, make("A"), (on(0, 4),))
    assert fake.last.context == 0xC000
    current = ctypes.c_size_t()
    fake.lib.cuCtxGetCurrent(ctypes.byref(current))
    assert current.value == 0xC001


@case()
def mixtures_are_refused_by_name() -> None:
    k = make("A", "B", "C", "n")
    host = np.zeros(4, np.float32)
    refused(
        LaunchError,
        "kernel kernel: its arrays are in different places: A, C on the CPU; B on CUDA device 1; "
        "move them to one device",
        _core.launch, None, 1, k, (host, on(1, 4), host, 3),
    )  # fmt: skip
    refused(
        LaunchError,
        "A, B on CUDA device 0; C on CUDA device 1",
        _core.launch, None, 1, k, (on(0, 4), on(0, 4), on(1, 4), 3),
    )  # fmt: skip
    assert not misses
    empty = p.CudaArray(0, (0,))  # belongs to no device
    _core.launch(None, 1, k, (on(1, 4), empty, on(1, 4), 3))


@case()
def pinned_and_managed_memory() -> None:
    pinned = np.zeros(4, np.float32)
    a = p.Versioned(pinned.ctypes.data, (4,), device=(p.CUDA_HOST, 0))
    assert _core.describe_array(a)["device"] == "cpu"
    b = p.Versioned(p.device_address(0), (4,), device=(13, 0))
    assert _core.describe_array(b)["device"] == "cuda"


@case()
def kernels_without_arrays() -> None:
    k = make("n")
    _core.launch(0x5105, 1, k, (3,))
    assert fake.last.context == 0xC001 and fake.words == [3]
    _core.launch(0, 1, make("n"), (3,))
    assert fake.last.context == 0xC000


# --- failures ----------------------------------------------------------------------------------------


@case(TILEWRIGHT_CUDA_DRIVER="/no/such/libcuda.so.1")
def no_driver() -> None:
    for _ in range(2):
        refused(DriverError, "no CUDA driver: /no/such/libcuda.so.1 could not be", _core.device_count)
    a = p.Exchange(p.device_address(0), (4,), device=(p.CUDA, 0))
    refused(DriverError, "kernel kernel: no CUDA driver", _core.launch, None, 1, make("A"), (a,))


@case(FAKECUDA_DEVICES="0")
def no_device() -> None:
    refused(DriverError, "no GPU is visible; check CUDA_VISIBLE_DEVICES", _core.device_count)


@case(FAKECUDA_VERSION="11080")
def driver_too_old() -> None:
    k = make("A", image=".version 8.0\n.entry kernel()")
    refused(
        DriverError,
        "kernel kernel: the CUDA driver is too old for this kernel: it supports CUDA 11.8, and PTX 8.0 "
        "needs CUDA 12.0; install a newer NVIDIA driver",
        _core.launch, None, 1, k, (on(0, 4),),
    )  # fmt: skip


@case()
def the_driver_refuses_the_code() -> None:
    bad = make("A", image="syntax error .entry kernel()")
    refused(TileCompilationError, "line 3; fatal : syntax error", _core.launch, None, 1, bad, (on(0, 4),))
    refused(TileCompilationError, "line 3; fatal : syntax error", _core.ptx_to_cubin, "syntax error")


@case()
def out_of_memory_and_resources() -> None:
    k = make("A", shared_bytes=1000)
    fake.fail("cuLaunchKernelEx", 1, 2)
    refused(
        LaunchError,
        "kernel kernel, grid (7, 1, 1), 128 threads, 1000 bytes of shared memory: the launch failed: "
        "CUDA_ERROR_OUT_OF_MEMORY (2), out of memory: free arrays",
        _core.launch, None, 7, k, (on(0, 4),),
    )  # fmt: skip
    _core.launch(None, 7, k, (on(0, 4),))
    large = make("A", shared_bytes=300_000)
    refused(LaunchError, "use smaller tiles or fewer stages", _core.launch, None, 1, large, (on(0, 4),))


@case()
def a_stream_of_another_device() -> None:
    k = make("A")
    refused(
        LaunchError,
        "kernel kernel, grid (1, 1, 1), 128 threads, 0 bytes of shared memory: the stream is one of CUDA device 0, but "
        "the arrays are on CUDA device 1: pass a stream of that device, in torch torch.cuda.current_stream(1), or None",
        _core.launch, 0x5001, 1, k, (on(1, 4),),
    )  # fmt: skip
    _core.launch(0x5101, 1, k, (on(1, 4),))
    fake.fail("cuLaunchKernelEx", 1, 400)  # for another reason
    refused(LaunchError, "the launch failed: CUDA_ERROR_INVALID_HANDLE", _core.launch, 0x5101, 1, k, (on(1, 4),))


@case()
def a_fault_names_the_kernels() -> None:
    _core.launch(None, 1, make("A"), (on(0, 4),))
    _core.synchronize(0)
    _core.launch(None, 1, make("A", name="fault_kernel"), (on(0, 4),))
    message = "failed while it ran: CUDA_ERROR_ILLEGAL_ADDRESS (700)"
    refused(LaunchError, message, _core.synchronize, 0)
    refused(LaunchError, "newest first: fault_kernel, kernel.", _core.synchronize, 0)
    refused(LaunchError, "newest first: fault_kernel", _core.launch, None, 1, make("A"), (on(0, 4),))
    _core.synchronize(1)


@case()
def a_plan_that_the_driver_refuses() -> None:
    bad, spills = PTX + " syntax error", PTX + " // local 4096"
    asked = []

    def other(device: int, problem: str | None, local_bytes: int, threads: int = 96) -> Any:
        asked.append((device, problem is not None and "syntax error" in problem, local_bytes))
        return cuda(threads)

    def launched(image: str, maker: Any) -> int:
        variant = cuda(128, image=image)
        variant.or_else(maker)
        k = _core.Dispatcher("kernel", ("A",), (), lambda *_: variant)
        for _ in range(2):
            _core.launch(None, 1, k, (on(0, 4),))
        return int(fake.last.block[0])

    assert launched(bad, other) == 96 and asked == [(0, True, 0)]
    assert launched(spills, other) == 96 and asked[1:] == [(0, False, 4096)]
    assert launched(spills, lambda *_: None) == 128 and launched(PTX, other) == 128 and len(asked) == 2
    refused(TileCompilationError, "syntax error", launched, bad + " ", lambda *_: None)
    refused(TileCompilationError, "syntax error", launched, bad + "  ", lambda *_: 7)


@case()
def that_no_plan_does_better_is_remembered() -> None:
    import tempfile

    from tilewright import compile as compiler
    from tilewright import tile as ct

    os.environ["TILEWRIGHT_CACHE_DIR"] = tempfile.mkdtemp()
    captured, capture, build = [], compiler.capture_kernel, compiler.build

    def counted_capture(*args: Any) -> Any:
        captured.append(args)
        return capture(*args)

    def build_with_spills(*args: Any) -> Any:
        image = build(*args)
        return image._replace(code=b"// local 4096\n" + image.code)

    def product(A, B, C):
        acc = ct.mma(ct.load(A, (0, 0), (64, 64)), ct.load(B, (0, 0), (64, 64)), ct.zeros((64, 64), ct.float32))
        ct.store(C, (0, 0), acc)

    compiler.capture_kernel, compiler.build = counted_capture, build_with_spills
    half = p.Exchange(p.device_address(0), (64, 64), device=(p.CUDA, 0), dtype=(2, 16, 1))
    counts = []
    for _ in range(2):
        ct.launch(None, 1, ct.kernel(product, slice_tiles=1, coarsen_tiles=1, split_k=1), (half, half, on(0, 64, 64)))
        counts.append(len(captured))
    assert counts[0] > 1 and counts[1] == counts[0] + 1, counts  # each plan that is tried is a capture


@case()
def the_next_plan_is_taken_and_remembered() -> None:
    import tempfile

    from tilewright import tile as ct

    os.environ["TILEWRIGHT_CACHE_DIR"] = tempfile.mkdtemp()

    def product(A, B, C):
        acc = ct.zeros((128, 128), ct.float32)
        for k in range(ct.num_tiles(A, axis=1, shape=(128, 64))):
            acc = ct.mma(ct.load(A, (0, k), (128, 64)), ct.load(B, (k, 0), (64, 128)), acc)
        ct.store(C, (0, 0), acc)

    a, c = on(0, 256, 256), on(0, 256, 256)
    half = p.Exchange(p.device_address(0), (256, 256), device=(p.CUDA, 0), dtype=(2, 16, 1))
    threads = []
    for failures in (0, 1, 0):
        warps = 4 if failures or threads else 8
        kernel = ct.kernel(product, slice_tiles=1, coarsen_tiles=1, split_k=1, num_warps=warps)
        if failures:
            fake.fail("cuModuleLoadDataEx", 1, 218)
        ct.launch(None, 1, kernel, (half, half, c))
        threads.append(fake.last.block[0])
    assert a and threads[1] == threads[2] > 0, threads  # the third finds what the second one settled on
    plain = ct.kernel(product, slice_tiles=1, coarsen_tiles=1, split_k=1, num_warps=4, dynamic_schedule=0)
    ct.launch(None, 1, plain, (half, half, c))
    assert fake.last.block[0] != threads[2]


@case()
def read_only_outputs() -> None:
    k = make("A", "B", written=2)
    b = p.CudaArray(p.device_address(0), (4,), read_only=True)
    refused(LaunchError, "kernel kernel writes to B, which is read-only", _core.launch, None, 1, k, (b, b))


@case()
def forked_children_are_told() -> None:
    _core.launch(None, 1, make("A"), (on(0, 4),))
    child = os.fork()
    if not child:
        try:
            refused(DriverError, 'start worker processes with the "spawn" method', _core.device_count)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("name", CASES)
def test_cuda(name: str) -> None:
    environment = os.environ | {"TILEWRIGHT_CUDA_DRIVER": str(find_driver())} | CASES[name]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run([sys.executable, __file__, name], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    globals()[sys.argv[1]]()
