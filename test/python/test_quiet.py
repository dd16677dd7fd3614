"""Errors of launches show the program's frames, and none of this package."""

from __future__ import annotations

import inspect
import operator
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import numpy as np
import pytest

import tilewright.tile as ct
from cuda import device
from tilewright import arrays, checking, kernel
from tilewright.annotations import T
from tilewright.errors import TileError, TileInternalError, TileTypeError
from tilewright.numba import cuda, float32, vectorize
from tilewright.quiet import quiet


@ct.kernel
def tiles(x):
    x.nothing


@device.kernel
def threads(x):
    x[0] = x.nothing


@cuda.jit
def of_numba(x):
    x[0] = x.nothing


@cuda.jit
def outside(x):
    x[4] = 0


@vectorize(["float32(float32)"])
def elementwise(x):
    return x.nothing


@cuda.reduce
def joined(a, b):
    return a.nothing


@device.func(interop=True)
def of_cpp(x: device.float32) -> device.float32:
    return x.nothing


X = np.zeros(4, np.float32)
LAUNCHES: dict[str, Callable[[], Any]] = {
    "ct.launch": lambda: ct.launch(None, 1, tiles, (X,)),
    "ct.launch in check mode": lambda: checking.launch(None, 1, tiles, (X,)),
    "ct.launch by the reference": lambda: kernel._interpret_launch(None, 1, tiles, (X,)),
    "interpret": lambda: tiles.interpret(1, (X,)),
    "device.launch": lambda: device.launch(threads, X, grid=1, block=1),
    "device.launch of a wrong block": lambda: device.launch(threads, X, grid=1, block=5000),
    "device.launch in check mode": lambda: device.launch(threads, X, grid=1, block=1, check=True),
    "interpret of threads": lambda: threads.interpret((X,), 1, 1),
    "kernel[grid, block]": lambda: of_numba[1, 1](X),
    "kernel[grid, block] of too few arguments": lambda: of_numba[1, 1](),
    "forall": lambda: of_numba.forall(4)(X),
    "compile": lambda: of_numba.compile("void(float[:)"),
    "a tile kernel in brackets": lambda: tiles[1](X),
    "a kernel that is called": lambda: of_numba(X),
    "compile_ptx": lambda: cuda.compile_ptx(of_numba, "void(float32[:])"),
    "vectorize": lambda: elementwise(X),
    "reduce": lambda: joined(X),
    "an element that an array lacks": lambda: arrays.to_device(X, device="cpu")[5],
    "a value for it": lambda: operator.setitem(arrays.to_device(X, device="cpu"), 5, 1),
    "a number of several elements": lambda: int(arrays.to_device(X, device="cpu")),
    "the length of an array without axes": lambda: len(arrays.zeros((), device="cpu")),
    "a shape of other elements": lambda: arrays.to_device(X, device="cpu").reshape(3),
    "a copy into another shape": lambda: arrays.to_device(X, device="cpu").copy_to_host(np.zeros(3)),
    "an array of no shape": lambda: arrays.empty("shape"),
    "ByTarget of no GPU": lambda: ct.ByTarget(blackwell=3),
    "cdiv by zero": lambda: ct.cdiv(3, 0),
    "cdiv of a text": lambda: ct.cdiv(3, "0"),
    "tile code on the host": lambda: ct.load(X, 0, 4),
    "a constant of a number": lambda: ct.Constant[3],
    "a constant of two types": lambda: ct.Constant[int, int],
    "cuda.compile": lambda: cuda.compile(lambda x: x.nothing, float32(float32)),
}
FOLDER = str(Path(ct.__file__).parent)


def tiles_of_constants(n: ct.Constant, m: ct.Constant[int]): ...


@pytest.mark.parametrize("launch", LAUNCHES.values(), ids=LAUNCHES)
def test_no_frame_of_ours(launch) -> None:
    with pytest.raises((TileError, AttributeError)) as caught:
        launch()
    left = [
        caught.value,
        caught.value.__cause__,
        None if caught.value.__suppress_context__ else caught.value.__context__,
    ]
    files = [frame.filename for error in left if error for frame in traceback.extract_tb(error.__traceback__)]
    assert files and not [file for file in files if file.startswith(FOLDER)]


def test_errors_of_the_host_say_what_to_write() -> None:
    with pytest.raises(ZeroDivisionError, match="divides 3 by zero"):
        ct.cdiv(3, 0)
    with pytest.raises(IndexError, match="index 5 is outside of axis 0 with 4 elements"):
        arrays.to_device(X, device="cpu")[5]
    with pytest.raises(
        TypeError, match=r"takes a type, as in ct.Constant\[int\], found 3; .* n: ct.Constant\[int\] = 3"
    ):
        ct.Constant[3]


def test_a_constant_is_an_annotation_as_any() -> None:
    assert ct.Constant[int] == Annotated[int, *ct.Constant.__metadata__] and repr(ct.Constant) == repr(ct.Constant[T])
    assert get_type_hints(tiles_of_constants, include_extras=True) == {"n": ct.Constant, "m": ct.Constant[int]}
    assert pickle.loads(pickle.dumps(ct.Constant)) is ct.Constant
    assert ct.Constant[int] in get_args(ct.Constant[int] | None) and get_args(None | ct.Constant)[1] == ct.Constant[T]


def test_export_has_none(tmp_path: Path) -> None:
    from tilewright.compilation import export_functions

    with pytest.raises(TileError) as caught:
        export_functions([of_cpp], tmp_path / "f.ptx", gpu_code="sm_90a", output_format="ptx")
    assert [entry.name for entry in caught.traceback] == ["test_export_has_none"]


def test_what_the_reference_runs_shows_the_program() -> None:
    """Its own lines, not those that came to them."""

    @device.kernel
    def wrong(x):
        x[0] = helper(x)

    def helper(x):
        assert x[0] > 0, "here"
        return x[0]

    with pytest.raises(AssertionError, match="here") as caught:
        wrong.interpret((X,), 1, 1)
    assert [e.name for e in caught.traceback] == ["test_what_the_reference_runs_shows_the_program", "wrong", "helper"]


def test_a_fault_of_ours_keeps_its_frames() -> None:
    def raises(error: Exception) -> None:
        raise error

    from tilewright import findings

    for error, kept in ((TileInternalError("x"), True), (TileTypeError("x"), False)):
        code = compile("def inner(error): raise error", findings.__file__, "exec")
        space: dict[str, Any] = {}
        exec(code, space)
        with pytest.raises(TileError) as caught:
            quiet(space["inner"])(error)
        assert ("inner" in [entry.name for entry in caught.traceback]) is kept


def test_a_plain_function_otherwise() -> None:
    assert device.launch.__name__ == "launch" and "Start" in (inspect.getdoc(device.launch) or "")
    assert next(iter(inspect.signature(device.launch).parameters)) == "f"
    assert pickle.loads(pickle.dumps(device.launch)) is device.launch


def test_the_whole_text() -> None:
    program = (
        "import numpy as np\nfrom tilewright.numba import cuda\n\n\ndef f(x):\n    x[0] = y\n\n\n"
        "cuda.jit(f)[1, 1](np.zeros(1))\n"
    )
    path = Path(__file__).with_name("no_such_program.py")
    run = f"import linecache\nlinecache.cache[{str(path)!r}] = (1, None, {program.splitlines(True)!r}, {str(path)!r})\n"
    run += f"exec(compile({program!r}, {str(path)!r}, 'exec'))\n"
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "tilewright/" not in done.stderr.replace(str(path), "")
    assert "the name 'y' is not defined" in done.stderr and "x[0] = y" in done.stderr
