"""mypy finds nothing wrong with a user's kernel, and what is wrong in one; pyright too, where it is installed."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
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


def checked(tool: str, folder: Path, text: str) -> tuple[int, str]:
    program = folder / "program.py"
    program.write_text(text)
    (folder / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{PYTHON}"]}}')
    command = {
        "mypy": [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-incremental"],
        "pyright": [shutil.which("pyright") or "pyright", "--pythonpath", sys.executable],
    }[tool]
    environment = os.environ | {"MYPYPATH": str(PYTHON)}
    done = subprocess.run([*command, program.name], cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


# build/venv has mypy. It has no pyright, whose package fetches Node.js when it first runs: no test may need a network.
@pytest.mark.parametrize("tool", ["mypy", "pyright"])
def test_a_kernel_passes(tool: str, tmp_path: Path) -> None:
    if not (importlib.util.find_spec("mypy") if tool == "mypy" else shutil.which("pyright")):
        pytest.skip(f"{tool} is not installed (pip install {tool})")
    code, said = checked(tool, tmp_path, RIGHT)
    assert code == 0, said


def test_a_name_that_does_not_exist_is_found(tmp_path: Path) -> None:
    if not importlib.util.find_spec("mypy"):
        pytest.skip("mypy is not installed (pip install mypy)")
    code, said = checked("mypy", tmp_path, WRONG)
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
    assert (PYTHON / "tilewright/py.typed").exists()
