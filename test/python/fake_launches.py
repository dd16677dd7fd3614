"""Launches on the stand-in driver, for the files test_runtime_*.py that need one: kernels, arrays, what the driver got.

The driver is opened once a process, so each case runs in a process of its own, in which its file runs itself with the
name of the case.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import producers as p
import pytest
from fake_driver import find_driver

from tilewright import _core

PTX = ".version 7.8\n.target sm_90a\n.visible .entry kernel() .entry fault_kernel()"
misses: list[Any] = []  # targets and keys of the variants that were asked for


class Cases(dict[str, dict[str, str]]):
    """Those of a file by their names, each with what it has in its environment."""

    def __call__(self, **environment: str) -> Callable[[Any], Any]:
        def add(function: Any) -> Any:
            self[function.__name__] = environment
            return function

        return add

    def run(self, path: str, name: str) -> None:
        environment = os.environ | {"TILEWRIGHT_CUDA_DRIVER": str(find_driver()), "FAKECUDA_CASE": name} | self[name]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        done = subprocess.run([sys.executable, path, name], env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr


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
        self.lib.fake_spoilt.restype = ctypes.c_char_p
        self.lib.fake_launch.restype = ctypes.POINTER(Launch)

    def fail(self, name: str, nth: int, result: int) -> None:
        self.lib.fake_fail(name.encode(), nth, result)

    def hold(self, name: str | None) -> None:
        self.lib.fake_hold(name.encode() if name else None)

    def calls(self, name: str) -> int:
        return int(self.lib.fake_calls(name.encode()))

    @property
    def log(self) -> list[str]:
        return self.lib.fake_log().decode().splitlines()  # type: ignore[no-any-return]

    @property
    def spoilt(self) -> bytes | None:
        """The call that spoilt the capture that `fake_forbid` began, if one did. No thread stays relaxed."""
        assert self.lib.fake_mode() == 0
        return self.lib.fake_spoilt()  # type: ignore[no-any-return]

    @property
    def last(self) -> Launch:
        return self.lib.fake_launch()[0]  # type: ignore[no-any-return]

    @property
    def words(self) -> list[int]:
        return list(self.last.words[: self.last.bytes // 8])


# Of a case's process; None elsewhere, and in a case without a driver.
fake: Any = Fake() if "FAKECUDA_CASE" in os.environ and os.path.exists(os.environ["TILEWRIGHT_CUDA_DRIVER"]) else None


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


MAP = (0, 4, 128, (1, 0), (32, 64))  # word, bytes, swizzle, axes, box
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


def own(k: Any, stream: int) -> int:
    """The workspace of a split launch on the stream."""
    parts, _, workspace = shares(k, (8, 4), 1 << 16, stream)[1:]
    assert parts == 4 and workspace > 0
    return workspace
