"""Many threads that launch on a GPU, by the stand-in driver: streams, arrays' memories, tuned launches, variants."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import producers as p
import pytest
from fake_launches import SPLIT, Cases, cuda, fake, make, on, own

from threads import THREADS, at_once
from tilewright import _core
from tilewright.errors import LaunchError, TileTypeError

case = Cases()


@case()
def launches_on_streams() -> None:
    """Streams of several classes, arrays of several libraries, variants that are loaded and made by the way."""

    def miss(kernel: Any, target: str, key: Any) -> Any:
        return cuda(128)

    class Stream:
        def __init__(self, handle: int) -> None:
            self.handle = handle

        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, self.handle

    class Interface:
        def __init__(self, address: int) -> None:
            self.__cuda_array_interface__ = {
                "shape": (16,),
                "typestr": "<f4",
                "data": (address, False),
                "version": 3,
            }

    class Torch:
        def __init__(self, handle: int) -> None:
            self.cuda_stream = handle

    kernel = _core.Dispatcher("kernel", ["A", "B", "n"], [2], miss)
    format = (np.dtype(np.float32), "float32", 4, "<f4", None)
    memory = _core.memory_take(256, 0, 0x5001)
    shared = _core.DeviceArray(memory, memory.address, (16,), (4,), format)
    before = fake.calls("cuLaunchKernelEx")

    def work(i: int) -> None:
        for step in range(60):
            handle = 0x5001 + (i + step) % 4
            stream = (handle, Stream(handle), Torch(handle), None)[step % 4]
            own = _core.memory_take(64, 0, handle)
            arrays = (
                shared,
                _core.DeviceArray(own, own.address, (16,), (4,), format),
                on(0, 16, offset=4096 * i),
                Interface(p.device_address(0, 256 * i)),
            )
            a, b = arrays[(i + step) % 4], arrays[(i * step + 1) % 4]
            _core.launch(stream, 1 + step % 3, kernel, (a, b, step % 5))
            memory.follow(Torch(0x5001 + step % 3))
            if step % 10 == 9:
                _core.synchronize(0)
                assert shared.__cuda_array_interface__["data"][0] == memory.address

    at_once(work)
    assert fake.calls("cuLaunchKernelEx") - before == 60 * THREADS
    assert len(kernel.variants()) >= 5


@case()
def tuned_launches() -> None:
    """Rows are remembered, used and forgotten by all threads."""

    def miss(kernel: Any, target: str, key: Any) -> Any:
        return cuda(128)

    given = _core.Dispatcher("given", ["A", "n"], [1], miss)
    other = _core.Dispatcher("other", ["A", "n"], [1], miss)

    def grid(n: Any) -> Any:
        return (n, 1, 1)

    def work(i: int) -> None:
        for step in range(60):
            array, n = on(0, 16 * (1 + step % 4), offset=4096 * i), 1 + step % 3
            given.remember_tuned(given, (array, n), other, ((1, n + 1),), grid.__code__, (1,))
            try:
                _core.launch_tuned(0x5001, grid if step % 2 else (2,), given, (array, n))
            except (TileTypeError, LaunchError, AttributeError):
                assert has_forgotten  # then the front end is asked, which has no such kernel
            if i == 0 and step % 20 == 19:
                has_forgotten.append(step)
                given.forget_tuned()

    has_forgotten: list[int] = []
    at_once(work)
    assert fake.calls("cuLaunchKernelEx") >= THREADS * 30


@case()
def variants_for_other_launches() -> None:
    """What a variant makes for other launches is made by all threads, and one of them is kept."""
    made = []

    def better(kind: str, number: int) -> Any:
        made.append((kind, number))
        return cuda(256)

    def miss(kernel: Any, target: str, key: Any) -> Any:
        found = cuda(128)
        found.or_else(lambda *_: None, 2048)
        return found

    kernel = _core.Dispatcher("kernel", ["A"], [], miss)
    a = on(0, 64)

    def work(i: int) -> Any:
        _core.launch(0x5001, 1, kernel, (a,))
        return kernel.chosen(1, (a,))

    assert len({id(variant) for variant in at_once(work)}) == 1
    variant = kernel.chosen(1, (a,))
    with pytest.raises(RuntimeError, match="once"):
        variant.or_else(better, 1)


@case()
def workspaces_are_passed_on() -> None:
    """More streams than workspaces: one goes to another stream behind the last kernel that used it."""
    kernel = make("A", threads=384, persistent=True, split=SPLIT, split_applied=True)
    for n in range(9):  # from now on there are events
        own(kernel, 0x5010 + n)
    fake.lib.fake_log_words(1)
    begin, array = len(fake.log), on(0, 4, 1 << 16)

    def work(i: int) -> None:
        for step in range(40):
            _core.launch(0x5020 + 16 * i + step % 2, (8, 4), kernel, (array,))

    at_once(work)
    check_workspaces(fake.log[begin:])


def check_workspaces(log: list[str]) -> None:
    """Launches on a workspace are in one stream, or a stream waits for an event behind those of the one before."""
    last: dict[str, tuple[str, int]] = {}  # by workspace: the stream, and the line
    recorded: dict[str, int] = {}
    waits: dict[str, int] = {}
    launches = 0
    for line, (what, *words) in enumerate(entry.split() for entry in log):
        if what == "record":
            recorded[words[0]] = line
        elif what == "wait":
            waits[words[0]] = line
        elif what == "launch":
            _, stream, workspace = words
            before, at = last.get(workspace, (stream, -1))
            if before != stream:
                assert at < recorded[before] < waits[stream], (log[at], log[line])
            last[workspace] = stream, line
            launches += 1
    assert (launches, len(last)) == (40 * THREADS, 8), (launches, last)


@pytest.mark.parametrize("name", case)
def test_cuda(name: str) -> None:
    case.run(__file__, name)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
