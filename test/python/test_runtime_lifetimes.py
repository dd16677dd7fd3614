"""What launches leave behind, against the stand-in driver: code that is unloaded, graphs, workspaces of streams."""

from __future__ import annotations

import ctypes
import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import producers as p
import pytest
from fake_launches import PTX, SPLIT, Cases, cuda, fake, make, on, own, shares

from tilewright import _core
from tilewright.errors import TileError

case = Cases()


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
    assert unloaded() == 0 and fake.calls("cuLibraryLoadData") == 8
    launch_and_drop(range(8))
    assert unloaded() == 0 and fake.calls("cuLibraryLoadData") == 8
    kept = make("A", image=code(3))
    _core.launch(None, 1, kept, (on(0, 4),))
    launch_and_drop(range(8, 9))
    assert unloaded() == 0  # seven others
    launch_and_drop(range(9, 10))
    at = fake.log.index("unload 0")
    assert unloaded() == 8 and fake.log[at - 1] == "sync 0" and fake.log[at + 8] == "load 0"
    _core.launch(None, 1, kept, (on(0, 4),))
    assert fake.calls("cuLibraryLoadData") == 10  # the one that is held was not unloaded
    launch_and_drop(range(1))
    assert fake.calls("cuLibraryLoadData") == 11


@case()
def code_stays_where_the_device_cannot_be_waited_for() -> None:
    launch_and_drop(range(8))
    fake.fail("cuCtxSynchronize", 1, 900)  # another stream captures
    launch_and_drop(range(8, 9))
    assert unloaded() == 0 and fake.calls("cuLibraryLoadData") == 9
    fake.fail("cuLibraryUnload", 1, 1)
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
    assert fake.calls("cuLibraryLoadData") == 10 + 1 + 9
    launch_and_drop(range(1))
    assert fake.calls("cuLibraryLoadData") == 20


@case()
def workspaces_belong_to_streams() -> None:
    k = make("A", threads=384, persistent=True, split=SPLIT, split_applied=True)
    found = {stream: shares(k, (8, 4), 1 << 16, stream)[3] for stream in (0x5001, 0x5002, 0x5001, 0x5003)}
    for stream in range(0x5010, 0x5015):
        found[stream] = shares(k, (8, 4), 1 << 16, stream)[3]
    assert len(set(found.values())) == 8 == fake.calls("cuMemAlloc_v2") and all(found.values())
    assert not [line for line in fake.log if line.startswith(("wait", "record"))]


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
    assert fake.log[-3:] == ["wait 5022", "launch kernel 5022", "record 5022"]
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
    fake.lib.fake_forbid(1)
    eager = own(k, 0x500E)
    first, branch = own(k, 0x500F), own(k, 0x501F)
    assert len({eager, first, branch}) == 3 and own(k, 0x500F) == first
    zeroed = ["fill 16384 in 50f0", "synchronize 50f0", "launch kernel 500f"]
    at = fake.log.index("launch kernel 500f")
    assert fake.log[at - 2 : at + 1] == zeroed and fake.spoilt is None
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
        assert fake.lib.fake_mode() == 0


@case()
def workspaces_that_there_is_no_memory_for() -> None:
    fake.lib.fake_forbid(1)  # another stream captures
    fake.fail("cuMemAlloc_v2", 1, 2)
    k = make("A", threads=384, persistent=True, split=SPLIT, split_applied=True)
    assert shares(k, (8, 4), 1 << 16) == (32, 1, 32, 0)
    assert shares(k, (8, 4), 1 << 16)[:3] == (128, 4, 0)
    assert fake.spoilt is None


# --- beside a capture ------------------------------------------------------------------------------------------------


def memory_of_all_kinds() -> None:
    address, pinned, managed = _core.memory_alloc(0, 64), _core.host_take(0, 64), _core.managed_take(0, 64)
    _core.memory_fill(0, address, 1, 64)
    _core.memory_copy(0, managed, address, 64)
    for taken in (address, managed):
        _core.memory_free(0, taken)
    _core.host_pin(0, pinned, 64)
    _core.host_unpin(0, pinned)
    _core.host_give(0, pinned)
    _core.memory_info(0)
    _core.memory_take(64, 0, 0x5001)  # and given back


def streams_and_events() -> None:
    stream, begin, end = _core.stream_create(0), _core.event_create(0), _core.event_create(0)
    for event in (begin, end):
        _core.event_record(0, event, stream)
    _core.event_query(0, end)
    _core.event_wait(0, end)
    _core.event_elapsed(0, begin, end)
    _core.stream_synchronize(0, stream)
    _core.synchronize()
    for event in (begin, end):
        _core.event_destroy(0, event)
    _core.stream_destroy(0, stream)


def code_of_kernels() -> None:
    """More of it than is kept, which is then unloaded."""
    launch_and_drop(range(12), 0x5001)
    _core.ptx_to_cubin(PTX)
    kernel = cuda(64)
    kernel.load(0)
    kernel.usage(0)


def owners_that_launches_keep() -> None:
    """On the stream that captures, too: nobody may ask for the event of a capture."""
    k = make("A")
    for stream in (0x5001, 0x500F, 0x500F, 0x5001, 0x5001):
        _core.launch(stream, 1, k, (p.CudaArray(p.device_address(0), (4,)),))


def beside_a_capture(what: Any) -> None:
    fake.lib.fake_forbid(1)
    what()
    assert fake.spoilt is None, (what, fake.spoilt)


@case()
def nothing_spoils_a_capture() -> None:
    """One in the mode of torch's: calls that could wait for the device would end it, whichever thread has them."""
    for what in (memory_of_all_kinds, streams_and_events, code_of_kernels, owners_that_launches_keep):
        beside_a_capture(what)
        with ThreadPoolExecutor(1) as thread:
            thread.submit(beside_a_capture, what).result()
    assert "unload 0" in fake.log and "record 500f" not in fake.log
    assert fake.lib.cuMemFree_v2(ctypes.c_uint64(p.device_address(0))) == 900 and fake.spoilt == b"cuMemFree_v2"


@case()
def what_fails_leaves_the_mode_as_it_was() -> None:
    for name, call in (
        ("cuMemAlloc_v2", lambda: _core.memory_alloc(0, 64)),
        ("cuMemAllocFromPoolAsync", lambda: _core.memory_take(64, 0, 0x5001)),
        ("cuLibraryLoadData", lambda: cuda(64).load(0)),
    ):
        fake.fail(name, 1, 2)
        with pytest.raises((MemoryError, TileError)):
            call()
        assert fake.lib.fake_mode() == 0, name


@pytest.mark.parametrize("name", case)
def test_cuda(name: str) -> None:
    case.run(__file__, name)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
