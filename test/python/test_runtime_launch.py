"""launch() on the CPU: specialization, parameters, threads, and what bad arguments get."""

from __future__ import annotations

import ctypes
import enum
import gc
import re
import struct
import threading
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import producers as p
import pytest

from tilewright import _core
from tilewright.errors import LaunchError, TileCompilationError, TileTypeError, TileValueError

ENTRY = ctypes.CFUNCTYPE(
    None,
    ctypes.POINTER(ctypes.c_int64),
    ctypes.POINTER(ctypes.c_int32),
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_void_p,
)


class Kernel(_core.Dispatcher):
    """A kernel whose "compiled code" is a Python function that writes down what it gets."""

    def __init__(
        self,
        *parameters: str,
        constants: tuple[int, ...] = (),
        written: int = 0,
        scratch: int = 0,
        threads: bool = False,
        most_variants: int = 0,
    ) -> None:
        super().__init__("kernel", parameters, constants, Kernel.compile, threads, None, most_variants)
        self.written, self.scratch = written, scratch
        self.misses: list[tuple[str, Any]] = []
        self.blocks: list[int] = []
        self.words: list[int] = []
        self.grid: tuple[int, ...] = ()
        self.count = 0

    def compile(self, target: str, key: Any) -> _core.CpuKernel:
        self.misses.append((target, key))
        kinds = [entry for entry in key if entry[0] != "const"]
        self.count = sum(1 + 2 * e[2] if e[0] == "array" else 1 for e in kinds)
        entry = ENTRY(self.run)
        address = ctypes.cast(entry, ctypes.c_void_p).value
        assert address
        record = _core.launch_record(scratch_bytes=self.scratch)
        return _core.CpuKernel(address, "kernel", record, self.written, entry)

    def run(self, words: Any, grid: Any, first: int, last: int, scratch: int | None) -> None:
        self.words = words[: self.count]
        self.grid = tuple(grid[:6])
        self.blocks += range(first, last)
        assert (scratch is not None) == bool(self.scratch) and (scratch or 0) % 64 == 0

    @property
    def keys(self) -> list[Any]:
        return [key for _, key in self.misses]


def f32(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


# --- what the code gets ------------------------------------------------------------------------------


def test_words_and_grid() -> None:
    k = Kernel("A", "n", "T", "x", constants=(2,), scratch=100)
    a = f32(3, 8)[:, ::2]
    _core.launch(None, (4, 3, 2), k, (a, -5, 128, 1.5))
    bits = struct.unpack("<i", struct.pack("<f", 1.5))[0]
    assert k.words == [a.ctypes.data, 3, 4, 8, 2, -5, bits]
    assert k.grid == (4, 3, 2, 1, 1, 1)
    assert sorted(k.blocks) == list(range(24))


@pytest.mark.parametrize("grid", [3, (3,), (3, 1), (3, 1, 1), (np.int64(3),), [3, 1], np.int32(3)])
def test_forms_of_the_grid(grid: Any) -> None:
    k = Kernel("A")
    _core.launch(0, grid, k, (f32(4),))
    assert sorted(k.blocks) == [0, 1, 2]


def test_threads_per_block() -> None:
    k = Kernel("A", threads=True)
    _core.launch_threads(None, (2, 1), (32, 4), k, (f32(4),))
    assert k.grid == (2, 1, 1, 32, 4, 1)
    assert k.specialization((f32(4),))[0] == "cpu"
    with pytest.raises(LaunchError, match=r"kernel kernel is written for one thread: .*block=\.\.\.\)"):
        _core.launch(None, 1, k, (f32(4),))
    with pytest.raises(LaunchError, match="kernel kernel is a tile kernel, whose blocks have no threads"):
        _core.launch_threads(None, 1, 32, Kernel("A"), (f32(4),))
    with pytest.raises(LaunchError, match=r"kernel kernel: block \(1024, 2, 1\) has 2048 threads"):
        _core.launch_threads(None, 1, (1024, 2), k, (f32(4),))


@pytest.mark.parametrize("threads", ["1", "3"])
def test_every_block_runs_once(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", threads)
    assert _core.cpu_threads() == int(threads)
    k = Kernel("A", scratch=64)
    for grid in [(1,), (7, 5), (200,)]:
        k.blocks = []
        _core.launch(None, grid, k, (f32(4),))
        assert sorted(k.blocks) == list(range(int(np.prod(grid))))


def test_python_threads_launch_at_once() -> None:
    kernels = [Kernel("A", "n") for _ in range(4)]

    def work(k: Kernel) -> None:
        for n in range(50):
            _core.launch(None, (20,), k, (f32(4), n))

    threads = [threading.Thread(target=work, args=(k,)) for k in kernels]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in kernels:
        assert sorted(k.blocks) == sorted(list(range(20)) * 50)


@pytest.mark.parametrize(
    ("value", "dtype", "word"),
    [
        (7, "int32", 7),
        (2**31, "int64", 2**31),
        (-(2**31), "int32", -(2**31)),
        (2**63, "uint64", -(2**63)),
        (True, "bool_", 1),
        (1.0, "float32", 0x3F800000),
        (np.float64(1.0), "float64", 0x3FF0000000000000),
        (np.float16(1.0), "float16", 0x3C00),
        (ml_dtypes.bfloat16(1.0), "bfloat16", 0x3F80),
        (np.int8(-1), "int8", 0xFF),
        (np.uint64(2**64 - 1), "uint64", -1),
        (np.bool_(True), "bool_", 1),
        (enum.IntEnum("E", {"X": 3}).X, "int32", 3),
    ],
)
def test_scalars(value: Any, dtype: str, word: int) -> None:
    k = Kernel("x")
    _core.launch(None, 1, k, (value,))
    assert k.words == [word]
    assert k.keys[0] == (("scalar", dtype, 16 if value == 2**31 else 1),)


# --- specialization ----------------------------------------------------------------------------------


def test_key_of_arrays() -> None:
    k = Kernel("A")
    a = np.zeros(1 << 14, np.uint8)
    a = a[-a.ctypes.data % 128 :]
    whole = a[: 64 * 32 * 4].view(np.float32).reshape(64, 32)
    frozen = whole.view()
    frozen.flags.writeable = False
    forms = [
        (whole, 16, (16, 16), ((0, 32), (1, 1)), True, True),
        (whole[:, 1:17], 4, (16, 16), ((0, 4), (1, 1)), True, False),  # rows begin within lines
        (whole[:, 4:20], 16, (16, 16), ((0, 4), (1, 1)), True, True),
        (whole[:5, :31], 16, (1, 1), ((0, 32), (1, 1)), True, True),
        (whole.T, 16, (16, 16), ((1, 1), (0, 32)), True, True),
        (whole[:, ::2], 16, (16, 16), ((0, 4), (0, 2)), True, False),
        (whole[::-1, :], 16, (16, 16), ((0, 32), (1, 1)), True, False),
        (whole[:0, :], 16, (16, 16), ((0, 32), (1, 1)), True, False),
        (whole[:, :31].ravel()[:62].reshape(2, 31), 16, (1, 1), ((0, 1), (1, 1)), True, False),
        (whole[:, :30].ravel()[:60].reshape(2, 30), 16, (1, 1), ((0, 2), (1, 1)), True, False),
        (whole[:, :28].ravel()[:56].reshape(2, 28), 16, (1, 1), ((0, 4), (1, 1)), True, True),
        (frozen, 16, (16, 16), ((0, 32), (1, 1)), False, True),
    ]
    for array, align, shape_div, strides, writable, tma in forms:
        _core.launch(None, 1, k, (array,))
        _core.launch(None, 1, k, (array,))
        assert k.keys[-1] == (("array", "float32", 2, align, shape_div, strides, writable, tma),)
    assert len(k.misses) == len({tuple(facts) for _, *facts in forms}) == len(k.variants())
    assert {target for target, _ in k.misses} == {"cpu"}
    assert k.specialization((whole,)) == ("cpu", k.keys[0])


def test_key_of_integers() -> None:
    k = Kernel("n")
    for n in (1, 2, 17, 16, 32, 0, 5):
        _core.launch(None, 1, k, (n,))
    assert k.keys == [(("scalar", "int32", 1),), (("scalar", "int32", 16),)]


@pytest.mark.parametrize("number", [-16, np.int8(-16), np.uint8(240), np.int64(-32), -(2**40), np.uint64(2**63)])
def test_multiples_are_natural_numbers(number: Any) -> None:
    """Kernels are compiled for multiples that are not negative, as signed numbers and as others."""
    k = Kernel("n")
    _core.launch(None, 1, k, (number,))
    assert k.keys[0][0][2] == 1


def test_constants_are_told_apart_by_type_and_value() -> None:
    k = Kernel("c", constants=(0,))
    color = enum.Enum("Color", "RED GREEN")
    values: list[Any] = [
        1, 1.0, True, 0, False, 0.0, -0.0, None, "a", "b", (1, 2), (1, 2.0), (1, (2, True)),
        (1, (2, 1)), 2**70, color.RED, color.GREEN, np.float32, float("nan"), (0.0,), (-0.0,),
    ]  # fmt: skip
    for _ in range(2):
        for value in values:
            _core.launch(None, 1, k, (value,))
    assert len(k.misses) == len(values)
    found = [key[0][1] for key in k.keys]
    assert list(map(repr, found)) == list(map(repr, values))
    _core.launch(None, 1, k, (np.int64(1),))  # NumPy's numbers are Python's
    _core.launch(None, 1, k, ((1, 2),))
    assert len(k.misses) == len(values)


def test_many_variants() -> None:
    k = Kernel("c", "A", constants=(0,))
    for _ in range(2):
        for c in range(300):
            _core.launch(None, 1, k, (c, f32(4)))
    assert len(k.misses) == 300
    k.clear_variants()
    assert k.variants() == []
    _core.launch(None, 1, k, (7, f32(4)))
    assert len(k.misses) == 301


def test_failed_compilation_is_asked_again() -> None:
    calls = []

    def miss(kernel: Any, target: str, key: Any) -> Any:
        calls.append(key)
        raise TileTypeError("no")

    k = _core.Dispatcher("k", ["A"], [], miss)
    for _ in range(2):
        with pytest.raises(TileTypeError, match=r"^no$"):
            _core.launch(None, 1, k, (f32(4),))
    assert len(calls) == 2


def test_a_wrong_variant_is_an_internal_error() -> None:
    k = _core.Dispatcher("k", ["A"], [], lambda *_: 5)
    with pytest.raises(TileCompilationError, match="on_miss returned <class 'int'>"):
        _core.launch(None, 1, k, (f32(4),))


def test_compiling_threads_agree_on_one_variant() -> None:
    barrier = threading.Barrier(4, timeout=10)
    k = Kernel("A")
    compile_plainly = k.compile

    def miss(kernel: Any, target: str, key: Any) -> Any:
        barrier.wait()
        return compile_plainly(target, key)

    d = _core.Dispatcher("d", ["A"], [], miss)
    threads = [threading.Thread(target=_core.launch, args=(None, 1, d, (f32(4),))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(k.misses) == 4 and len(d.variants()) == 1


def kept_variants(k: Kernel) -> set[int]:
    return {key[0][1] for _, key, _ in k.variants()}


def test_variants_launched_longest_ago_are_dropped() -> None:
    gc.collect()
    before = sum(type(x) is _core.CpuKernel for x in gc.get_objects())
    k = Kernel("c", "A", constants=(0,), most_variants=3)
    for c in (0, 1, 2, 0, 3):
        _core.launch(None, 1, k, (c, f32(4)))
    assert kept_variants(k) == {0, 2, 3}
    for c in (*range(4, 40), 38, 37, 39):
        _core.launch(None, 1, k, (c, f32(4)))
        assert len(k.variants()) == 3
    assert kept_variants(k) == {37, 38, 39} and len(k.misses) == 40
    assert sum(type(x) is _core.CpuKernel for x in gc.get_objects()) == before + 3
    _core.launch(None, 1, k, (2, f32(4)))  # dropped, and made again
    assert kept_variants(k) == {2, 37, 39} and len(k.misses) == 41


def test_a_variant_that_runs_is_dropped_after_it_has() -> None:
    running, dropped = threading.Event(), threading.Event()
    ended: list[bool] = []

    class Slow(Kernel):
        def run(self, *words: Any) -> None:
            if not running.is_set():
                running.set()
                ended.append(dropped.wait(10))

    k = Slow("c", "A", constants=(0,), most_variants=1)
    thread = threading.Thread(target=_core.launch, args=(None, 1, k, (0, f32(4))))
    thread.start()
    assert running.wait(10)
    for c in (1, 2):
        _core.launch(None, 1, k, (c, f32(4)))
    assert kept_variants(k) == {2}
    gc.collect()
    dropped.set()
    thread.join()
    assert ended == [True]


def test_kernels_are_collected() -> None:
    k = Kernel("c", "A", constants=(0,))
    _core.launch(None, 1, k, ((k.name, 1), f32(4)))
    gone = weakref.ref(k)
    del k
    gc.collect()
    assert gone() is None


# --- bad arguments -----------------------------------------------------------------------------------


def case(*args: Any, grid: Any = 1, stream: Any = None, written: int = 4) -> Any:
    return args, grid, stream, written


A, B, C = f32(16), f32(16), f32(16)
FROZEN = f32(16)
FROZEN.flags.writeable = False


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (case(A, B), TileTypeError, "kernel kernel takes 4 argument(s) (A, B, C, T), 2 were given"),
        (
            case(A, 1j, C, 1),
            TileTypeError,
            "kernel kernel, argument 'B': an object of type complex is not supported; pass an array (NumPy, or "
            "anything with DLPack or the CUDA Array Interface), an int, a float or a bool, or annotate the "
            "parameter with ct.Constant",
        ),
        (case(A, [1, object()], C, 1), TileTypeError, "argument 'B[1]': an object of type object is not supported"),
        (case(A, b"x", C, 1), TileTypeError, "argument 'B': an object of type bytes is not supported"),
        (case(A, np.complex64(1), C, 1), TileTypeError, "argument 'B': a scalar of type complex64"),
        (case(A, 2**64, C, 1), TileValueError, "argument 'B': the integer 18446744073709551616"),
        (case(A, -(2**63) - 1, C, 1), TileValueError, "argument 'B': the integer -9223372036854775809"),
        (case(A, B, C, A), TileTypeError, "argument 'T': it is a constant of the kernel, found an array"),
        (case(A, B, C, [1]), TileTypeError, "argument 'T': a constant must be hashable, found a list"),
        (
            case(A, B.astype(">f4"), C, 1),
            TileTypeError,
            "kernel kernel, argument 'B': its byte order (dtype '>f') is not this machine's",
        ),
        (
            case(A, B, FROZEN, 1),
            LaunchError,
            "kernel kernel writes to C, which is read-only; pass a writable array (or a copy)",
        ),
        (
            case(A, B, np.lib.stride_tricks.as_strided(C, (4, 4), (4, 4)), 1),
            LaunchError,
            "kernel kernel writes to C, whose elements overlap in memory",
        ),
        (
            case(A, B, C, 1, stream=7),
            LaunchError,
            "its arrays are on the CPU, where the stream must be None or 0",
        ),
        (case(A, B, C, 1, grid=0), LaunchError, "grid (0, 1, 1) has 0 blocks on axis 0"),
        (case(A, B, C, 1, grid=(1, -3)), LaunchError, "grid (1, -3, 1) has -3 blocks on axis 1"),
        (
            case(A, B, C, 1, grid=(1, 65536)),
            LaunchError,
            "grid (1, 65536, 1) has 65536 blocks on axis 1, the most is 65535; use larger tiles",
        ),
        (case(A, B, C, 1, grid=2**31), LaunchError, "the most is 2147483647"),
        (case(A, B, C, 1, grid=2**99), LaunchError, "the grid must be made of integers"),
        (case(A, B, C, 1, grid=(1.5,)), LaunchError, "the grid must be made of integers"),
        (case(A, B, C, 1, grid=(1,) * 4), LaunchError, "the grid must be an int or a tuple"),
        (case(A, B, C, 1, grid=None), LaunchError, "found None"),
        (case(A, B, C, 1, stream="s"), TileTypeError, "stream: expected None, an integer handle or"),
        (case(A, B, C, 1, stream=-1), TileValueError, "stream: the integer is no stream handle"),
        (
            case(A, p.CudaArray(p.device_address(0), (0,)), C, 1),
            None,
            "",
        ),
    ],
)
def test_bad_arguments(call: Any, error: Any, message: str) -> None:
    args, grid, stream, written = call
    k = Kernel("A", "B", "C", "T", constants=(3,), written=written)
    if error is None:
        _core.launch(stream, grid, k, args)
        return
    with pytest.raises(error) as caught:
        _core.launch(stream, grid, k, args)
    assert message in str(caught.value)
    assert not k.blocks


def test_empty_arrays_are_fine() -> None:
    k = Kernel("A", "C", written=2)
    _core.launch(None, 2, k, (f32(0, 4), f32(0)))
    assert k.words[0] == 0 and sorted(k.blocks) == [0, 1]


def test_launch_itself() -> None:
    with pytest.raises(TileTypeError, match=r"launch\(\) takes \(stream, grid, kernel, args\), 2"):
        _core.launch(None, 1)  # type: ignore[call-arg]
    with pytest.raises(TileTypeError, match=r"is no kernel: decorate the function with @ct\.kernel"):
        _core.launch(None, 1, print, ())  # type: ignore[arg-type]
    with pytest.raises(TileTypeError, match="the arguments must be a tuple, found a list"):
        _core.launch(None, 1, Kernel("A"), [A])  # type: ignore[arg-type]


def test_too_many_parameters() -> None:
    with pytest.raises(TileTypeError, match="kernel big has 65 parameters, the most is 64"):
        _core.Dispatcher("big", [f"p{i}" for i in range(65)], [], print)  # type: ignore[arg-type]
    k = Kernel(*[f"p{i}" for i in range(64)])
    with pytest.raises(TileTypeError, match="argument 'p30': the parameters take more than 4096"):
        _core.launch(None, 1, k, (f32(*(1,) * 8),) * 64)


def test_out_of_memory_names_the_kernel() -> None:
    with pytest.raises(MemoryError, match="kernel kernel: out of host memory for"):
        _core.launch(None, 1, Kernel("A", scratch=2**60), (A,))


def test_constant_positions_are_checked() -> None:
    with pytest.raises(ValueError, match="constant position 3 is no parameter"):
        _core.Dispatcher("k", ["A"], [3], print)  # type: ignore[arg-type]


class Raises:
    """A producer that has lost its device."""

    @property
    def __cuda_array_interface__(self) -> Any:
        raise RuntimeError("device lost")


def interface(**entries: Any) -> Any:
    made = {"shape": (4,), "typestr": "<f4", "data": (0, False), "version": 3, **entries}
    return type("Producer", (), {"__cuda_array_interface__": made})()


@pytest.mark.parametrize(
    ("array", "error", "message"),
    [
        (Raises(), TileTypeError, "it cannot be read: device lost"),
        (interface(shape=(4.0,)), TileTypeError, "a shape that is no tuple of 64-bit integers, found (4.0,)"),
        (interface(shape=4), TileTypeError, "a shape that is no tuple of 64-bit integers, found 4"),
        (interface(shape=(2**70,)), TileTypeError, "a shape that is no tuple of 64-bit integers"),
        (interface(strides=("4",)), TileTypeError, "a strides that is no tuple of 64-bit integers"),
        (interface(data=(2**70, False)), TileValueError, "a pointer of more than 64 bits"),
        (interface(version="3"), TileTypeError, "has version '3'; versions 0 to 3 are known"),
        (np.ma.masked_array(A, mask=[1] * 16), NotImplementedError, "it is a masked array, which is not supported"),
        (1e300, TileValueError, "the float 1e+300 is beyond float32, as which a Python float is passed"),
    ],
)
def test_arguments_that_lie(array: Any, error: type, message: str) -> None:
    """Whatever a producer does, the error names the parameter."""
    with pytest.raises(error, match="kernel kernel, argument 'B': .*" + re.escape(message)):
        _core.launch(None, 1, Kernel("A", "B", "C", "T", constants=(3,)), (A, array, C, 1))


def test_grids_of_lists_and_numpy_integers() -> None:
    for grid in ([2, 3], np.int64(6), (np.int32(2), 3), True):
        k = Kernel("A")
        _core.launch(None, grid, k, (A,))
        assert len(k.blocks) == (6 if grid is not True else 1)
