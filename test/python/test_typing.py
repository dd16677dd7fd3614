"""mypy and pyright find nothing wrong with a user's kernel, and what is wrong in one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright import tile as ct

PYTHON = Path(__file__).resolve().parents[2] / "python"
RIGHT = """
import numpy as np

import tilewright.tile as ct


@ct.kernel(num_warps=4)
def axpy(X: ct.Array, Y: ct.Array, a: float, T: ct.Constant[int]) -> None:
    i = ct.bid(0)
    x = ct.load(X, index=(i,), shape=(T,))
    y = ct.load(Y, index=(i,), shape=(T,))
    ct.store(Y, index=(i,), tile=a * x + y)


@ct.kernel
def product(A: ct.Array, B: ct.Array, C: ct.Array, TM: ct.Constant[int], TK: ct.Constant[int]) -> None:
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TM), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        a = ct.load(A, index=(i, k), shape=(TM, TK))
        b = ct.load(B, index=(k, j), shape=(TK, TM))
        acc = ct.mma(a, b, acc)
    acc = ct.where(acc > 0, acc, 0.0) / 2 + acc.astype(ct.float32) @ acc.T
    ct.store(C, index=(i, j), tile=acc.astype(C.dtype))


@ct.function
def clamped(x: ct.Tile, low: float = -1.0) -> ct.Tile:
    found: ct.Tile = ct.minimum(ct.maximum(x, low), 1)
    return found


@ct.kernel
def much(X: ct.Array, N: ct.Array, T: ct.Constant[int] = 4) -> None:
    rows, columns = X.shape
    view = X.tiled_view((T, T), padding_mode=ct.PaddingMode.ZERO)
    x = clamped(view.load((ct.bid(0), 0))) * 2 - 1
    i = ct.arange(T, dtype=ct.int32)
    y = ct.gather(X.slice(0, 0, 2), (i[:, None] % 2, i[None, :]), mask=x > 0, padding_value=0)
    total = ct.sum(x * y, axis=1)
    if ct.max(total) > rows and not columns == 3:
        total = -abs(total)
    ct.atomic_add(N, i % 4, total.astype(ct.int32))
    ct.scatter(N, ct.argmax(total), ct.cumsum(i).reshape((T,)).extract(1, ()))
    ct.print(f"{total:8.3f}", ct.where(x != y, x, y))


x = np.ones(8, np.float32)
ct.launch(None, (2, 1, 1), axpy, (x, x.copy(), 2.0, 4))
ct.launch(None, 2, axpy.replace_hints(num_stages=2), (x, x.copy(), 2.0, 4))
"""
WRONG = """
import tilewright.tile as ct


@ct.kernel
def wrong(X: ct.Array) -> None:
    ct.store(X, index=(0,), tile=ct.no_such_thing(X))
"""


# basedpyright is pyright in a package that holds all it runs; pyright's own fetches Node.js: no test needs a network.
TOOLS = {
    "mypy": [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-incremental"],
    "pyright": [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable],
}


def checked(tool: str, folder: Path, text: str) -> tuple[int, str]:
    program = folder / "program.py"
    program.write_text(text)
    (folder / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{PYTHON}"], "typeCheckingMode": "standard"}}')
    environment = os.environ | {"MYPYPATH": str(PYTHON)}
    command = [*TOOLS[tool], program.name]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("tool", TOOLS)
def test_a_kernel_passes(tool: str, tmp_path: Path) -> None:
    code, said = checked(tool, tmp_path, RIGHT)
    assert code == 0, said


@pytest.mark.parametrize("tool", TOOLS)
def test_a_name_that_does_not_exist_is_found(tool: str, tmp_path: Path) -> None:
    code, said = checked(tool, tmp_path, WRONG)
    assert code == 1 and "no_such_thing" in said


def test_checkers_see_the_operators_of_tiles() -> None:
    """What stands under `if TYPE_CHECKING` in the class is what the tables of tile.py make, and no more."""
    text = (PYTHON / "tilewright/reference/values.py").read_text().partition("if TYPE_CHECKING:")[2]
    shown = set(re.findall(r"^        def (\w+)\(self", text.partition("@property")[0], re.MULTILINE))
    reflected = {name for name in vars(ct.Tile) if re.fullmatch("__r(?!epr)[a-z]+__", name) and name != "__rshift__"}
    assert shown <= set(vars(ct.Tile))
    assert shown >= {*ct.TILE_METHODS} | reflected | {name.replace("__r", "__", 1) for name in reflected}


def test_dir_is_the_api() -> None:
    assert not {"constant_parameters", "make_scalar", "BINARY_OPERATORS", "overload", "Callable"} & set(dir(ct))
    assert {"load", "store", "kernel", "launch", "float32", "Tile", "sigmoid", "TileTypeError"} <= set(dir(ct))
    told = subprocess.run(
        [sys.executable, "-c", "from tilewright.tile import *; assert kernel and launch and Tile and sort and tune"],
        env={**os.environ, "PYTHONPATH": str(PYTHON)},
        capture_output=True,
        text=True,
    )
    assert told.returncode == 0, told.stderr
    assert (PYTHON / "tilewright/py.typed").exists()
