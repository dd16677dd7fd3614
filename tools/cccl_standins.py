"""What NVIDIA's tests of `cuda.compute` import, and is not here; a plugin of pytest (cccl_tests.py).

`cuda.compute` is `tilewright.compute`. Arrays and streams are those of `cuda.core`, for which NumPy stands in on the
CPU and CuPy on a GPU (CCCL_BACKEND=cuda). Private modules of the peer have members that can be imported and do nothing
but fail. Each outcome is a line of the file CCCL_OUTCOMES.
"""

from __future__ import annotations

import functools
import importlib.machinery
import os
import sys
import types
from typing import Any

import numpy as np

import tilewright.dropin
import tilewright.numba

ON_GPU = os.environ.get("CCCL_BACKEND") == "cuda"
PRIVATE = "a private name of the peer's"


def module(name: str, **members: Any) -> types.ModuleType:
    return known(types.ModuleType(name), name, **members)


def known(made: types.ModuleType, name: str, **members: Any) -> types.ModuleType:
    made.__dict__.update(members, __path__=[], __spec__=importlib.machinery.ModuleSpec(name, None, is_package=True))
    sys.modules[name] = made
    return made


class Missing:
    """A private member: a test that calls it fails."""

    def __init__(self, *args: Any, **named: Any) -> None:
        raise NotImplementedError(PRIVATE)


def private(name: str, **members: Any) -> types.ModuleType:
    made = module(name, **members)
    made.__getattr__ = lambda attribute: _missing(attribute)  # type: ignore[method-assign]
    return made


def _missing(attribute: str) -> Any:
    if attribute.startswith("__"):
        raise AttributeError(attribute)
    return type(attribute, (Missing,), {})


class Privates:
    """Finds `cuda.compute._names`."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if not name.startswith("cuda.compute._"):
            return None
        return importlib.machinery.ModuleSpec(name, Privates, is_package=True)  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: Any) -> types.ModuleType:
        return private(spec.name)

    @staticmethod
    def exec_module(made: Any) -> None:
        pass


def compile_cpp(source: str, arch: str, include_path: Any = ()) -> bytes:
    """LTO-IR of CUDA C++, by NVRTC."""
    import ctypes

    from tilewright import nvrtc
    from tilewright.toolkit import include_folders, output_of, text_of

    library, program = nvrtc.library(), ctypes.c_void_p()
    if library is None:
        raise NotImplementedError("NVRTC is not installed")
    folders = [f"--include-path={folder}" for folder in (*include_folders(), *(include_path or ()))]
    words = [w.encode() for w in (f"--gpu-architecture={arch}", "--relocatable-device-code=true", "-dlto", *folders)]
    library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"test.cu", 0, None, None)
    if library.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words)):
        raise RuntimeError(text_of(library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog, program))
    return bytes(output_of(library.nvrtcGetLTOIRSize, library.nvrtcGetLTOIR, program))


class ProgramOptions(types.SimpleNamespace):
    include_path = ()


class Program:
    def __init__(self, source: str, language: str, options: Any = None) -> None:
        self.source, self.options = source, options

    def compile(self, kind: str) -> Any:
        return types.SimpleNamespace(code=compile_cpp(self.source, self.options.arch, self.options.include_path))


# --- the CPU ----------------------------------------------------------------------------------------------------


class HostArray(np.ndarray):
    """NumPy's array with the methods of NVIDIA's `DeviceArray` and of CuPy's arrays."""

    @classmethod
    def empty(cls, shape: Any, dtype: Any = None, order: Any = "C", **other: Any) -> Any:
        return np.zeros(shape, dtype, order=order).view(cls)

    @classmethod
    def from_numpy(cls, x: Any, **other: Any) -> Any:
        return np.array(x, copy=True, order="K").view(cls)

    def copy_to_host(self, **other: Any) -> Any:
        return np.array(self)

    get = copy_to_host

    def copy_from_host(self, x: Any, **other: Any) -> None:
        self[...] = x

    set = copy_from_host


class HostStream:
    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, 0)

    def sync(self) -> None:
        pass

    close = sync


class HostDevice:
    device_id, compute_capability, default_stream = 0, (8, 0), HostStream()

    def __init__(self, number: int = 0) -> None:
        pass

    def set_current(self) -> None:
        pass

    sync = set_current

    def create_stream(self) -> Any:
        return HostStream()


class HostCupy(types.ModuleType):
    """CuPy, as far as the examples go: NumPy, whose arrays have `get`."""

    def __init__(self, name: str, of: Any = np) -> None:
        super().__init__(name)
        self.of = of

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self.of, name)
        if isinstance(found, types.ModuleType):
            return HostCupy(name, found)
        if not callable(found) or isinstance(found, type):
            return found

        @functools.wraps(found)
        def wrapped(*args: Any, **named: Any) -> Any:
            given = found(*args, **named)
            return np.asarray(given).view(HostArray) if isinstance(given, np.ndarray | np.generic) else given

        return wrapped

    @staticmethod
    def asnumpy(x: Any) -> Any:
        return np.asarray(x)


def _log_gamma(x: Any) -> Any:
    import math

    return np.vectorize(math.lgamma, otypes=[np.float64])(x).view(HostArray)


def stand_in_on_the_cpu() -> None:
    module("cuda.core", Device=HostDevice, Stream=HostStream, Buffer=object, Program=Program)
    sys.modules["cuda.core"].__dict__["ProgramOptions"] = ProgramOptions
    module("cuda.core.system", get_num_devices=lambda: 1)
    module("_utils")
    module("_utils.device_array", DeviceArray=HostArray, get_compute_capability=lambda: (8, 0))
    storage = module("cuda.compute._utils.temp_storage_buffer", TempStorageBuffer=lambda n, *_: np.empty(n, np.uint8))
    private("cuda.compute._utils", temp_storage_buffer=storage)
    known(HostCupy("cupy"), "cupy")
    for name in ("cupyx", "cupyx.scipy"):
        module(name)
    module("cupyx.scipy.special", loggamma=_log_gamma)


# --- a GPU ------------------------------------------------------------------------------------------------------


def stand_in_on_a_gpu() -> None:
    """`cuda.core` over CuPy, for the `DeviceArray` of the tests' own."""
    import cupy

    runtime = cupy.cuda.runtime

    class Stream:
        def __init__(self, of: Any) -> None:
            self.of, self.device = of, Device()

        def __cuda_stream__(self) -> tuple[int, int]:
            return (0, int(self.of.ptr))

        def sync(self) -> None:
            self.of.synchronize()

        def close(self) -> None:
            pass

    class Buffer:
        def __init__(self, handle: int, size: int, owner: Any) -> None:
            self.handle, self.size, self.owner = handle, size, owner

        @classmethod
        def from_handle(cls, ptr: int, size: int, owner: Any = None) -> Any:
            return cls(ptr, size, owner)

        def copy_from(self, other: Any, stream: Any) -> None:
            runtime.memcpyAsync(self.handle, other.handle, other.size, runtime.memcpyDefault, stream.of.ptr)

        def copy_to(self, other: Any, stream: Any) -> None:
            runtime.memcpyAsync(other.handle, self.handle, other.size, runtime.memcpyDefault, stream.of.ptr)

    class Device:
        device_id = 0
        compute_capability = divmod(int(cupy.cuda.Device().compute_capability), 10)

        def __init__(self, number: int = 0) -> None:
            pass

        def set_current(self) -> None:
            runtime.setDevice(0)

        def sync(self) -> None:
            runtime.deviceSynchronize()

        @property
        def default_stream(self) -> Any:
            return Stream(cupy.cuda.Stream.null)

        def create_stream(self) -> Any:
            return Stream(cupy.cuda.Stream(non_blocking=True))

        def allocate(self, size: int, stream: Any = None) -> Any:
            memory = cupy.cuda.alloc(max(size, 1))
            return Buffer(memory.ptr, size, memory)

    core = module("cuda.core", Device=Device, Stream=Stream, Buffer=Buffer, Program=Program)
    core.__dict__["ProgramOptions"] = ProgramOptions
    module("cuda.core.system", get_num_devices=lambda: runtime.getDeviceCount())

    @functools.lru_cache(maxsize=256)
    def compile_cpp_op_code(source: str, arch: str | None = None) -> bytes:
        return compile_cpp(source, arch or "sm_{}{}".format(*Device.compute_capability))

    def storage_of(n: int, *_: Any) -> Any:
        return cupy.empty(n, np.uint8)

    storage = module("cuda.compute._utils.temp_storage_buffer", TempStorageBuffer=storage_of)
    private("cuda.compute._utils", temp_storage_buffer=storage)
    private("cuda.compute._cpp_compile", compile_cpp_op_code=compile_cpp_op_code, _get_include_paths=list)


def install() -> None:
    tilewright.dropin.install()
    sys.modules.setdefault("numba", tilewright.numba)
    sys.modules.setdefault("numba.cuda", tilewright.numba.cuda)
    sys.meta_path.insert(0, Privates)  # type: ignore[arg-type]
    import cuda.compute

    stand_in_on_a_gpu() if ON_GPU else stand_in_on_the_cpu()
    private("cuda.compute._build_info", USING_V2=False)
    for name in ("_cccl_interop", "_cpp_compile"):
        made = sys.modules.get(f"cuda.compute.{name}") or private(f"cuda.compute.{name}")
        setattr(cuda.compute, name, made)
    sys.modules["cuda.compute._cccl_interop"].__dict__["_check_sass"] = False


install()


# --- outcomes ---------------------------------------------------------------------------------------------------


def _note(outcome: str, test: str, message: str = "") -> None:
    with open(os.environ["CCCL_OUTCOMES"], "a") as out:
        out.write(f"{outcome}\t{test}\t{message}\n")


def _message(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    told = crash.message if crash else str(report.longrepr)
    return " ".join(told.split())[:300]


def pytest_runtest_logreport(report: Any) -> None:
    if os.environ.get("PYTEST_XDIST_WORKER"):
        return
    if report.failed:
        _note("failed", report.nodeid, _message(report))
    elif report.when == "call" and report.passed:
        _note("passed", report.nodeid)
    elif report.skipped:
        _note("skipped", report.nodeid)


def pytest_collectreport(report: Any) -> None:
    if report.failed and not os.environ.get("PYTEST_XDIST_WORKER"):
        _note("failed", report.nodeid, _message(report))
