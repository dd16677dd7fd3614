"""A module `numba` in front of ours, which answers the imports of numba-cuda's tests (tools/numba_suite.py).

What is no part of the public interface is `Internal`: a test that uses it is skipped.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import linecache
import os
import sys
import tempfile
import types
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = str(Path(__file__).parent)
# Packages of others that the tests import, and that may not be here.
NEEDS_A_GPU = "needs a GPU"
FOREIGN = ("cffi", "llvmlite", "cuda.core", "cuda.bindings", "cuda.pathfinder", "cupy", "pynvjitlink")


def module(name: str, **members: Any) -> types.ModuleType:
    made = types.ModuleType(name)
    made.__dict__.update(members)
    sys.modules[name] = made
    return made


def _same(*_: Any, **__: Any) -> Any:
    """A decorator that skips on another kind of GPU, or under the simulator: neither is here."""
    return _[0] if len(_) == 1 and callable(_[0]) and not isinstance(_[0], str) else lambda test: test


class Internal:
    """A name that is no part of the public interface: a test that uses it is skipped."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise unittest.SkipTest(f"uses {self.__name__}, which is internal")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _error_of(name) if name.endswith("Error") else Internal(f"{self.__name__}.{name}")

    def __mro_entries__(self, bases: Any) -> Any:
        return ()

    def __tw_value__(self, frame: Any) -> Any:
        self()

    def __iter__(self) -> Any:
        self()


class _Internals(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules of numba, and of others, that are not here."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        known = name.startswith("numba.") or any(name == n or name.startswith(f"{n}.") for n in FOREIGN)
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if known else None

    def create_module(self, spec: Any) -> Any:
        return None

    def exec_module(self, made: types.ModuleType) -> None:
        made.__getattr__ = _internal_of(made.__name__)  # type: ignore[method-assign]


def _internal_of(module_name: str) -> Any:
    def find(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name.endswith("Error") or (module_name.endswith("errors") and name.endswith("Warning")):
            return _error_of(name)
        return _same if name.startswith(("skip", "xfail", "expected")) else Internal(f"{module_name}.{name}")

    return find


def _error_of(name: str) -> type[Exception]:
    from tilewright import errors

    return UserWarning if name.endswith("Warning") else errors.TileError


class ForeignArray:
    """An array of another library, by the CUDA Array Interface alone."""

    def __init__(self, array: Any) -> None:
        self._array = array

    @property
    def __cuda_array_interface__(self) -> Any:
        if self._array.device == "cpu":
            raise unittest.SkipTest(NEEDS_A_GPU)
        return self._array.__cuda_array_interface__


class Config(types.ModuleType):
    """Numba's settings: all of them off."""

    CUDA_PER_THREAD_DEFAULT_STREAM = ENABLE_CUDASIM = 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return 0


# === numba.cuda.tests.support ===


class TestCase(unittest.TestCase):
    FLOAT16_RTOL, FLOAT32_RTOL, FLOAT64_RTOL = 2.0**-10, 2.0**-23, 2.0**-52

    def setUp(self) -> None:
        self._warn = None

    def skip_if_lto(self, reason: str) -> None:
        return

    def assertPreciseEqual(self, first: Any, second: Any, prec: str = "exact", ulps: int = 1, **_: Any) -> None:
        import numpy as np

        if prec == "exact":
            np.testing.assert_array_equal(first, second)
            return
        for part in (np.real, np.imag):  # an infinite one would make the other one's difference no number
            found, expected = (part(np.asarray(value)) for value in (first, second))
            np.testing.assert_allclose(found, expected, rtol=ulps * (1e-6 if prec == "single" else 1e-14))

    def reset_module_warnings(self, module_: Any) -> None:
        getattr(module_, "__warningregistry__", {}).clear()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("assertFileCheck"):
            raise unittest.SkipTest("tests the text of Numba's compiler")
        raise AttributeError(name)

    @contextlib.contextmanager
    def assertTypingError(self) -> Iterator[Any]:
        with self.assertRaises(_error_of("")) as caught:
            yield caught


@contextlib.contextmanager
def override_config(name: str, value: Any) -> Iterator[None]:
    config = sys.modules["numba.cuda.core.config"]
    before = getattr(config, name)
    setattr(config, name, value)
    try:
        yield
    finally:
        setattr(config, name, before)


@contextlib.contextmanager
def captured(name: str) -> Iterator[io.StringIO]:
    before, made = getattr(sys, name), io.StringIO()
    setattr(sys, name, made)
    try:
        yield made
    finally:
        setattr(sys, name, before)


def temp_directory(prefix: str) -> str:
    return tempfile.mkdtemp(prefix=prefix)


SUPPORT: dict[str, Any] = {
    "TestCase": TestCase,
    "MemoryLeakMixin": type("MemoryLeakMixin", (), {}),
    "EnableNRTStatsMixin": type("EnableNRTStatsMixin", (), {}),
    "override_config": override_config,
    "captured_stdout": lambda: captured("stdout"),
    "captured_stderr": lambda: captured("stderr"),
    "temp_directory": temp_directory,
    "linux_only": _same,
}
SKIPS = (
    "on_cudasim", "unless_cc_53", "unless_cc_60", "unless_cc_75", "unless_cc_80", "unless_cc_90",
    "unless_conda_cudatoolkit", "if_external_memmgr", "under_cuda_memcheck", "if_curand_kernel_missing",
    "if_nvjitlink_missing", "if_mvc_enabled", "without_nvdisasm", "with_nvdisasm", "on_arm", "if_cuda_includes_missing",
    "if_cupy_unavailable", "on_wsl2", "if_lto", "on_nvjitlink_13_1_sm_120", "unless_cffi", "if_cudadevrt_missing",
)  # a table of several in a line  # fmt: skip


def from_dtype(dtype: Any) -> Any:
    from tilewright.errors import TileTypeError
    from tilewright.numba import types

    try:
        return types.from_dtype(dtype)
    except TileTypeError as error:
        raise unittest.SkipTest(str(error)) from None


def exec_with_source(text: Any, space: Any = None, locals_: Any = None) -> None:
    """exec, after which the functions have their source, as those of a notebook have."""
    caller = sys._getframe(1)
    if space is None:
        space, locals_ = caller.f_globals, caller.f_locals
    if isinstance(text, str):
        name = f"<exec {len(linecache.cache)}>"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        text = compile(text, name, "exec")
    builtins.exec(text, space, space if locals_ is None else locals_)


# === installing ===


def install(tests: Path | None = None) -> None:
    """What the tests import; `tests` is the folder of Numba's tests."""
    import numpy as np

    import tilewright.numba as ours
    from tilewright.numba import cuda
    from tilewright.numba import types as our_types

    sys.meta_path.append(_Internals())
    numba = module("numba", **{n: getattr(ours, n) for n in ours.__all__}, types=our_types, __version__="0.61")
    config = Config("numba.cuda.core.config")
    sys.modules[config.__name__] = config
    space = module("numba.cuda", **{n: getattr(cuda, n) for n in cuda.__all__}, types=our_types, config=config)
    space.__dict__.update({name: getattr(our_types, name) for name in our_types.__all__}, HAS_NUMBA=False)
    space.__path__ = []  # type: ignore[attr-defined]
    numba.__path__, numba.cuda = [], space  # type: ignore[attr-defined]
    _install_tests(tests)
    for name in ("random", "cg", "libdevice", "fp16"):
        found = getattr(cuda, name, None)
        if found is not None:
            names = getattr(found, "__all__", vars(found))
            module(f"numba.cuda.{name}", **{n: getattr(found, n) for n in names})
    our_types.__dict__.update(_domains(our_types))
    module("numba.cuda.types", **our_types.__dict__)
    module("numba.cuda.core", config=config, __path__=[])
    version = tuple(map(int, np.__version__.split(".")[:2]))
    support = {"from_dtype": from_dtype, "as_dtype": lambda of: of.dtype, "numpy_version": version}
    module("numba.cuda.np", __path__=[], numpy_support=module("numba.cuda.np.numpy_support", **support))
    module("numba.cuda.cudadrv", __path__=[])
    module("numba.cuda.cudadrv.linkable_code", **_linkable(cuda))
    for name in [n for n in sys.modules if n == "numba" or n.startswith("numba.")]:
        if not isinstance(sys.modules[name], Config):
            sys.modules[name].__dict__.setdefault("__getattr__", _internal_of(name))


def _domains(types_: Any) -> dict[str, Any]:
    """The sets of types that tests choose from."""
    signed = frozenset((types_.int8, types_.int16, types_.int32, types_.int64))
    unsigned = frozenset((types_.uint8, types_.uint16, types_.uint32, types_.uint64))
    real, complex_ = frozenset((types_.float32, types_.float64)), frozenset((types_.complex64, types_.complex128))
    sets = {"signed": signed, "unsigned": unsigned, "integer": signed | unsigned, "real": real, "complex": complex_}
    return {f"{name}_domain": members for name, members in sets.items()}


def _linkable(cuda: Any) -> dict[str, Any]:
    names = ("LinkableCode", "PTXSource", "CUSource", "Fatbin", "Cubin", "Archive", "Object", "LTOIR")
    return {name: getattr(cuda, name) for name in names if hasattr(cuda, name)}


def _install_tests(tests: Path | None) -> None:
    skips = {f"skip_{name}": _same for name in SKIPS}
    skips["skip_unless_cudasim"] = unittest.skip  # of the simulator
    skips["skip_on_standalone_numba_cuda"] = unittest.skip("needs Numba's compiler for CPUs")
    support = {**SUPPORT, **skips}
    testing = {**support, "unittest": unittest, "CUDATestCase": TestCase, "ForeignArray": ForeignArray}
    where = [] if tests is None else [str(tests)]
    data = None if tests is None else tests / "data"
    module("numba.cuda.testing", **testing, numba_cuda_dir=tests and tests.parent, test_data_dir=data)
    package = module("numba.cuda.tests", __path__=where)
    package.support = module("numba.cuda.tests.support", **support)  # type: ignore[attr-defined]


def for_children(tests: Path, folder: Path) -> dict[str, str]:
    """The environment of a process of Python that is to have this module `numba`, by a file in `folder`."""
    lines = ["import sys", "from pathlib import Path", f"sys.path.append({HERE!r})", "import numba_shim"]
    (folder / "sitecustomize.py").write_text("\n".join([*lines, f"numba_shim.install(Path({str(tests)!r}))", ""]))
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
