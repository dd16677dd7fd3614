"""The reference execution by itself: what a user sees who debugs a kernel with it."""

from __future__ import annotations

import array
import ast
import inspect
import os
import runpy
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright import interpret
from tilewright import tile as ct
from tilewright.errors import TileCheckError, TileError, TileTypeError, TileValueError
from tilewright.reference.values import round_to


def run(function: Any, *args: Any, grid: Any = 1) -> None:
    interpret.run(function, grid, args)


def test_every_operation_has_an_execution() -> None:
    assert ct.OPS.keys() == interpret.OPS.keys()
    for name, op in ct.OPS.items():
        assert getattr(ct, name) is op and op.__tw_op__ == name
        assert inspect.getdoc(op), name


@pytest.mark.spec("T-044")
@pytest.mark.parametrize("name", [name for name in ct.OPS if name != "cdiv"])
def test_tile_code_only(name: str) -> None:
    parameters = inspect.signature(ct.OPS[name]).parameters.values()
    needed = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    by_name = {p.name: 1 for p in needed if p.kind is p.KEYWORD_ONLY}
    with pytest.raises(TileError, match=rf"ct\.{name} can be used in tile code only"):
        ct.OPS[name](*[1] * (len(needed) - len(by_name)), **by_name)


def test_one_operation_is_for_hosts_too() -> None:
    assert ct.cdiv(9, 4) == 3 and ct.cdiv(8, 4) == 2 and ct.cdiv(0, 4) == 0


def test_wrong_arguments() -> None:
    def kernel() -> None:
        ct.zeros((4,), dtyp=ct.float32)  # type: ignore[call-arg]

    with pytest.raises(TypeError, match="dtyp"):
        run(kernel)


def test_frames_are_the_users() -> None:
    """A debugger stops in the kernel's own file and line, and sees its variables."""
    seen = []

    def kernel(X):
        x = ct.load(X, 0, 4)  # noqa: F841
        frame = sys._getframe()
        seen.append((frame.f_code, frame.f_locals["x"]))

    run(kernel, np.arange(4.0, dtype=np.float32))
    code, x = seen[0]
    assert code is kernel.__code__
    assert repr(x) == "Tile([0., 1., 2., 3.], shape=(4,), dtype=float32)"
    assert np.array_equal(x.numpy(), [0, 1, 2, 3]) and not x.numpy().flags.writeable
    assert np.asarray(x).dtype == np.float32 and np.array_equal(np.asarray(x, np.int8), [0, 1, 2, 3])


def test_error_points_into_the_kernel() -> None:
    def kernel() -> None:
        ct.zeros((4,), ct.float32) + ct.zeros((8,), ct.float32)

    with pytest.raises(TileTypeError, match=r"\(4,\) and \(8,\)") as caught:
        run(kernel)
    assert any(entry.name == "kernel" for entry in caught.traceback)
    assert not interpret.active()


def test_range_gives_run_time_values() -> None:
    def kernel(n):
        for i in range(3):
            assert i.dtype == ct.int32 and i.shape == ()
        for i in range(n):
            assert i.dtype == ct.int64
        assert [int(i) for i in range(5, 0, -2)] == [5, 3, 1]

    run(kernel, np.int64(2))


def test_functions_called_from_kernels_see_the_same_range() -> None:
    run(calls_a_function)


def calls_a_function() -> None:
    assert uses_range(2) == 1
    assert (lambda: [type(i) for i in range(1)])() == [int]  # a comprehension is of constants


def uses_range(n: int) -> Any:
    total: Any = 0
    for i in range(n):
        assert isinstance(i, ct.Tile)
        total = total + i
    return total


def test_minimum_and_maximum_of_tiles() -> None:
    def kernel(X):
        x = ct.load(X, 0, 4)
        assert np.array_equal(min(x, 2).numpy(), [0, 1, 2, 2])
        assert np.array_equal(max(1, x, 2.5).numpy(), [2.5, 2.5, 2.5, 3])
        assert min(3, 2) == 2 and max([1, 5]) == 5

    run(kernel, np.arange(4, dtype=np.float32))


def test_undetermined_padding_is_poison() -> None:
    def kernel(F, N, B):
        assert np.isnan(ct.load(F, 0, 4).numpy()[3])
        assert ct.load(N, 0, 4).numpy()[3] == 0xA5A5
        assert ct.load(B, 0, 4).numpy()[3]

    run(kernel, np.zeros(3, ml_dtypes.bfloat16), np.zeros(3, np.uint16), np.zeros(3, bool))


def test_check_bounds_is_a_promise() -> None:
    def kernel(X):
        ct.load(X, 1, 4, check_bounds=False)

    run(kernel, np.zeros(8, np.float32))
    with pytest.raises(TileCheckError, match=r"block \(0, 0, 0\) reads X\[7\], .*check_bounds=False promised"):
        run(kernel, np.zeros(7, np.float32))


def test_conditions_need_scalars() -> None:
    def kernel() -> None:
        if ct.zeros((4,), ct.bool_):
            pass

    with pytest.raises(TileTypeError, match=r"scalar is needed.*ct\.where"):
        run(kernel)


def test_arrays_have_no_addresses() -> None:
    def kernel(X):
        assert not any(hasattr(X, name) for name in ("ptr", "data", "__array_interface__"))
        y = X
        ct.store(y, 0, ct.ones((4,), ct.float32))
        with pytest.raises(TileTypeError, match="load it first"):
            X + 1

    x = np.zeros(4, np.float32)
    run(kernel, x)
    assert (x == 1).all()


@pytest.mark.parametrize(
    "array",
    [np.zeros(3, np.complex64), np.zeros(3, ">f4"), np.zeros(3, "U3"), np.zeros(3, object)],
    ids=lambda a: str(a.dtype),
)
def test_refused_arrays(array: Any) -> None:
    with pytest.raises(TileTypeError, match=r"argument 'x'.*not supported"):
        run(lambda x: None, array)


def test_strides_that_split_elements() -> None:
    packed = np.zeros(4, np.dtype([("a", "f4"), ("b", "i1")]))
    with pytest.raises(TileTypeError, match="no multiples"):
        run(lambda x: None, packed["a"])


def test_read_only_arrays() -> None:
    def kernel(X, Z):
        ct.store(Z, 0, ct.load(X, 0, 4))

    x, z = np.ones(4, np.float32), np.zeros(4, np.float32)
    x.flags.writeable = False
    run(kernel, x, z)
    assert (z == 1).all()
    with pytest.raises(TileValueError, match="'Z' is read-only"):
        run(kernel, z, x)


def test_argument_count_and_defaults() -> None:
    def kernel(X, n: ct.Constant[int] = 4, m: ct.Constant[int] = 2):
        ct.store(X, 0, ct.full((n,), m, ct.float32))

    x = np.zeros(8, np.float32)
    run(kernel, x, 8)
    assert (x == 2).all()
    with pytest.raises(TileTypeError, match="takes 3 arguments"):
        run(kernel)


@pytest.mark.parametrize("grid", [0, (-1,), (1, 0), (1, 2, 3, 4), (2**31,), (1, 65536), (1, 1, 65536)])
def test_refused_grids(grid: Any) -> None:
    with pytest.raises(TileValueError, match="grid"):
        run(lambda: None, grid=grid)


@pytest.mark.parametrize("limit", [(2**31 - 1, 65535, 65535), (1, 65535), (1, 1, 65535)])
def test_largest_grids(limit: Any) -> None:
    class EnoughError(Exception):
        pass

    def kernel() -> None:
        raise EnoughError

    with pytest.raises(EnoughError):
        run(kernel, grid=limit)


def test_order_of_blocks() -> None:
    seen = []

    def kernel() -> None:
        assert [int(ct.num_blocks(axis)) for axis in (0, 1, 2)] == [2, 3, 2]
        seen.append(tuple(int(ct.bid(axis)) for axis in (0, 1, 2)))

    run(kernel, grid=(2, 3, 2))
    assert seen == [(x, y, z) for z in range(2) for y in range(3) for x in range(2)]


@pytest.mark.parametrize("axis", [-1, 3])
@pytest.mark.parametrize("function", [ct.bid, ct.num_blocks])
def test_axes_of_the_grid(function: Any, axis: int) -> None:
    with pytest.raises(TileValueError, match=f"axis is 0, 1 or 2, found {axis}"):
        run(lambda: function(axis))


class Foreign:
    """An array of a library that has its own class."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class Tensor(Foreign):
    """As torch's: `on_gpu`, its copy on the host is elsewhere."""

    __module__ = "torch"
    __dlpack__ = property()  # not the way in  # type: ignore[assignment]
    __array_interface__ = None

    def __init__(self, array: np.ndarray, on_gpu: bool) -> None:
        super().__init__(array)
        self.on_gpu = on_gpu
        self.copies = 0

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return Tensor(self.array.copy(), False) if self.on_gpu else self

    def numpy(self) -> np.ndarray:
        return self.array

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def copy_(self, host: Tensor) -> None:
        self.array[...] = host.array
        self.copies += 1


class Cupy(Foreign):
    __module__ = "cupy"
    __dlpack__ = property()  # type: ignore[assignment]
    __cuda_array_interface__ = None

    def get(self) -> np.ndarray:
        return self.array.copy()

    def set(self, host: np.ndarray) -> None:
        self.array[...] = host


@pytest.mark.parametrize(
    "wrap",
    [Foreign, lambda a: Tensor(a, False), lambda a: Tensor(a, True), Cupy],
    ids=["dlpack", "torch on the CPU", "torch on a GPU", "cupy"],
)
def test_arrays_of_libraries(wrap: Any) -> None:
    def kernel(X, Y):
        ct.store(Y, 0, ct.load(X, 0, 4) + 1)

    x, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    target = wrap(y)
    run(kernel, wrap(x), target)
    assert (y == x + 1).all()
    if isinstance(target, Tensor):
        assert target.copies == int(target.on_gpu)


def test_static_assert() -> None:
    def kernel(n):
        ct.static_assert(True, "fine")
        if n == 1:
            ct.static_assert(False, "the reason")

    with pytest.raises(TileValueError, match="static assertion failed: the reason"):
        run(kernel, 1)
    run(kernel, 2)
    with pytest.raises(TileValueError, match="static assertion failed$"):
        run(lambda: ct.static_assert(False))


@pytest.mark.parametrize(
    ("format", "values", "message"),
    [
        ("%d %d", (1,), "too few values"),
        ("%d", (1, 2), "too many values"),
        (3, (), "constant format string"),
        ("%c", (65,), "'%c' in '%c' is none of .*a character is a constant"),
        ("%p", (1,), "an array has no address"),
        ("%n", (1,), "nothing is written back"),
        ("%*d", (3, 4), "width or precision is part of the format"),
        ("%1000d", (3,), "at most 999"),
        ("%5s", (3,), "%s takes no width"),
        ("%", (), "a '%' that is text is doubled"),
    ],
)
def test_refused_formats(format: Any, values: tuple[int, ...], message: str) -> None:
    with pytest.raises(TileTypeError, match=message):
        run(lambda: ct.printf(format, *values))
    kernel = ct.kernel(printing(format, values))
    with pytest.raises(TileTypeError, match=message):
        ct.launch(None, 1, kernel, ())


def printing(format: Any, values: tuple[int, ...]) -> Any:
    def kernel():
        ct.printf(format, *values)

    return kernel


def test_output(capsys: pytest.CaptureFixture[str]) -> None:
    def kernel(X):
        x = ct.load(X, 0, 4)
        ct.print("x =", x, ct.bid(0), sep=" ", end=";\n")
        ct.printf("%d %5.2f %g %s%%\n", 3, ct.sum(x), x, "of it")
        print(f"{ct.sum(x):.3f}")

    run(kernel, np.arange(4, dtype=ml_dtypes.bfloat16))
    assert capsys.readouterr().out == ("x = [0.0, 1.0, 2.0, 3.0] 0;\n3  6.00 [0, 1, 2, 3] of it%\n6.000\n")


def test_rounding_is_done_once() -> None:
    """float64 through round-to-odd to 16 bits, against exact rational rounding."""
    rng = np.random.default_rng(0)
    wide = np.concatenate([rng.standard_normal(500), 1 + rng.integers(0, 512, 500) * 2.0**-9])
    wide = np.concatenate([wide, np.nextafter(wide, 9), np.nextafter(wide, -9)])
    found = round_to(wide, ct.bfloat16).astype(np.float64)
    with np.errstate(invalid="ignore"):
        grid = np.arange(2**16, dtype=np.uint16).view(ml_dtypes.bfloat16).astype(np.float64)
    grid = np.unique(grid[np.isfinite(grid)])
    above = np.searchsorted(grid, wide)
    low, high = grid[above - 1], grid[above]
    nearer = np.where(wide - low < high - wide, low, high)
    tie = wide - low == high - wide
    assert np.array_equal(found[~tie], nearer[~tie])
    assert np.isin(found[tie], np.concatenate([low[tie], high[tie]])).all()


def test_wide_integers_round_once() -> None:
    values = np.array([2**63 - 1, 2**53 + 1, 2**62 + 2**54 + 1, -(2**62) - 2**54 - 1])

    def kernel(X, Z):
        ct.store(Z, 0, ct.load(X, 0, 4).astype(ct.bfloat16))

    z = np.zeros(4, ml_dtypes.bfloat16)
    run(kernel, values, z)
    assert z.astype(float).tolist() == [2.0**63, 2.0**53, 2.0**62 + 2.0**55, -(2.0**62) - 2.0**55]


def test_launch_interprets_when_asked(tmp_path: Path) -> None:
    """TILEWRIGHT_INTERPRET=1: a breakpoint then stops, which compiled code goes past."""
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, numpy as np\n"
        "from tilewright import tile as ct\n"
        "sys.breakpointhook = lambda: print(sys._getframe(1).f_locals['x'].numpy().sum())\n"
        "@ct.kernel\n"
        "def kernel(X):\n"
        "    x = ct.load(X, 0, 4)\n"
        "    breakpoint()\n"
        "    ct.store(X, 0, x)\n"
        "ct.launch(None, 1, kernel, (np.ones(4, np.float32),))\n"
    )
    for interpreted, told in (("1", "4.0\n"), ("0", "")):
        environment = {**os.environ, "TILEWRIGHT_INTERPRET": interpreted, "PYTHONPATH": ":".join(sys.path)}
        command = [sys.executable, str(program)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout == told, done.stderr


ASSERTIONS = """
from tilewright import tile as ct

@ct.kernel
def kernel(X):
    x = ct.load(X, 0, 4)
    assert x < 20, "too large"
    assert not (ct.max(x) > 20)
    ct.store(X, 0, x + 1)
"""


def test_assertions_on_tiles(tmp_path: Path) -> None:
    """As compiled: about each element. (In a file of its own: pytest makes other code of a test's assertions.)"""
    (tmp_path / "kernels.py").write_text(ASSERTIONS)
    kernel = runpy.run_path(str(tmp_path / "kernels.py"))["kernel"]
    for way in (kernel.interpret, lambda grid, args: ct.launch(None, grid, kernel, args)):
        x = np.arange(4, dtype=np.float32)
        way(1, (x,))
        assert x.tolist() == [1, 2, 3, 4]
        with pytest.raises((AssertionError, TileError), match="too large"):
            way(1, (x + 18,))

    def branch(X):
        if ct.load(X, 0, 4) < 20:
            ct.store(X, 0, 0)

    with pytest.raises(TileTypeError, match="a scalar is needed here"):
        run(branch, np.arange(4, dtype=np.float32))


def test_defaults_of_parameters() -> None:
    @ct.kernel
    def kernel(X, value=2.0, T: ct.Constant[int] = 4):
        ct.store(X, 0, ct.full((T,), value, ct.float32))

    for way in (kernel.interpret, lambda grid, args: ct.launch(None, grid, kernel, args)):
        for args, expected in (((), [2, 2, 2, 2]), ((3.0,), [3, 3, 3, 3]), ((3.0, 2), [3, 3, 0, 0])):
            x = np.zeros(4, np.float32)
            way(1, (x, *args))
            assert x.tolist() == expected
    with pytest.raises(TileTypeError, match="takes 3 argument"):
        ct.launch(None, 1, kernel, ())


def test_the_names_of_the_package_can_be_listed() -> None:
    """Its arrays and modules, and nothing else; each is there without an import of its own."""
    script = "import tilewright; print([n for n in dir(tilewright) if getattr(tilewright, n) is not None])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert ast.literal_eval(found) == [
        *("Array", "__version__", "as_array", "compilation", "compute", "device", "dropin", "empty", "empty_like"),
        *("from_interface", "jax", "numba", "tile", "to_device", "tune", "zeros"),
    ]


def test_the_names_of_tile_code_can_be_listed() -> None:
    names = dir(ct)
    assert {"kernel", "launch", "function", "ByTarget", "Tile", "Array", "load", "float32", "Constant"} <= set(names)
    assert not {"functools", "inspect", "OPS", "F", "T", "annotations"} & set(names)
    assert all(hasattr(ct, name) for name in names)
    assert list(inspect.signature(ct.launch).parameters) == [
        "stream",
        "grid",
        "kernel",
        "kernel_args",
        "hints",
        "programmatic_dependent_launch",
        "check",
    ]


@ct.kernel
def misspelt(A):
    ct.store(A, (0,), ct.laod(A, (0,), (4,)))


@ct.kernel
def reaches_outside(A):
    ct.store(A, (0,), _outside(A))


def _outside(A):
    return ct.gather(A, ct.arange(4, dtype=ct.int32) + 3, check_bounds=False)


@pytest.mark.parametrize(
    ("kernel", "frames"),
    [(misspelt, []), (reaches_outside, ["reaches_outside", "_outside"])],
    ids=lambda v: str(v)[:12],
)
def test_a_traceback_shows_the_users_frames(kernel: Any, frames: list[str]) -> None:
    with pytest.raises(ct.TileError) as caught:
        kernel.interpret(1, (np.zeros(4, np.float32),))
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names == ["test_a_traceback_shows_the_users_frames", *frames]


def test_arguments_that_a_launch_refuses_are_refused_in_its_words() -> None:
    @ct.kernel
    def kernel(X):
        ct.store(X, 0, ct.load(X, 0, 4) + 1)

    x = np.zeros(4, np.float32)
    for wrong in (x.astype(">f4"), x.astype(object), x.astype("M8[s]"), np.ma.masked_less(x, 1), 2**64, b"1234"):
        told = []
        for start in (lambda w: ct.launch(None, 1, kernel, (w,)), lambda w: kernel.interpret(1, (w,))):
            with pytest.raises((TypeError, ValueError, NotImplementedError)) as found:
                start(wrong)
            told.append((type(found.value), str(found.value)))
        assert told[0] == told[1] and "kernel kernel, argument 'X': " in told[0][1]


def test_memory_that_is_no_array() -> None:
    @ct.kernel
    def kernel(X):
        ct.store(X, 0, ct.load(X, 0, 4) * 2)

    for memory in (bytearray([1, 2, 3, 4]), array.array("f", [1, 2, 3, 4]), memoryview(np.arange(1, 5))):
        for start in (lambda m: ct.launch(None, 1, kernel, (m,)), lambda m: kernel.interpret(1, (m,))):
            start(memory)
        assert list(memory) == [4, 8, 12, 16]
