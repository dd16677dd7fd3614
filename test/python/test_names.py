"""Names that tile code does not have are answered with the nearest one, or with what other systems' users need."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import names
from tilewright import tile as ct
from tilewright.errors import TileError, TileTypeError


def message_of(body: Any) -> str:
    with pytest.raises(TileError) as caught:
        ct.launch(None, 1, ct.kernel(body), (np.ones(8, np.float32),))
    assert caught.value.where is not None and "^" in str(caught.value)
    return caught.value.message


CASES = {
    "ct.laod(X, 0, 8)": "did you mean ct.load?",
    "ct.Float32": "did you mean ct.float32?",
    "ct.program_id(0)": "write ct.bid(axis)",
    "ct.umulhi(x, x)": "write a product in ct.int64, shifted to the right by 32",
    "ct.zeros_like(x)": "write ct.zeros(x.shape, x.dtype)",
    "ct.threadIdx.x": "a program is one block",
    "ct.float8_e5m3fnu(1)": "float8_e5m3fnu is not supported on any target: GPUs have it from Rubin on",
    "x.astype(ct.float8_e5m3fnu)": "float8_e5m3fnu is not supported on any target: GPUs have it from Rubin on",
    "x.flatten()": "write x.reshape((-1,))",
    "x.to(ct.int32)": "write x.astype(dtype)",
    "x.sum()": "use ct.sum(x)",
    "np.absolute(x)": "write ct.abs(x)",
    "np.maximum(x, 0)": "use ct.maximum",
    "np.maxmum": "did you mean maximum?",
    "xx + 1": "did you mean x?",
    "lem(x)": "did you mean len?",
}


@pytest.mark.parametrize("expression", CASES)
def test_an_unknown_name_is_answered(expression: str, tmp_path: Any) -> None:

    file = tmp_path / "program.py"
    file.write_text(
        "import numpy as np\nfrom tilewright import tile as ct\n"
        f"def body(X):\n    x = ct.load(X, 0, 8)\n    {expression}\n"
    )
    body = runpy.run_path(str(file))["body"]
    assert CASES[expression] in message_of(body)


def test_the_reference_answers_too() -> None:
    @ct.kernel
    def kernel(X):
        ct.program_id(0)

    with pytest.raises(TileTypeError, match=r"no attribute 'program_id'; write ct.bid\(axis\)"):
        kernel.interpret(1, (np.ones(8, np.float32),))


def test_no_advice_where_nothing_is_near() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'qwertz'$"):
        ct.qwertz
    with pytest.raises(AttributeError, match="has no attribute '__wrapped__'$"):
        ct.__wrapped__


def test_what_is_advised_exists() -> None:
    """Each ct.name in the table is there, and none of the names that it answers."""
    public = set(dir(ct))
    for name, text in names.ELSEWHERE.items():
        assert name not in ct.OPS, name
        for advised in re.findall(r"ct\.(\w+)", text):
            assert advised in public, (name, advised)


def test_dtypes_called_without_a_value_are_zero() -> None:
    @ct.kernel
    def kernel(X):
        ct.store(X, 0, ct.full(8, ct.float32(), ct.float32) + ct.float32(2))

    for run in (lambda x: ct.launch(None, 1, kernel, (x,)), lambda x: kernel.interpret(1, (x,))):
        x = np.ones(8, np.float32)
        run(x)
        assert x[0] == 2


def test_the_page_about_cutile_says_what_is() -> None:
    tool = Path(__file__).resolve().parents[2] / "tools/cutile.py"
    done = subprocess.run([sys.executable, str(tool), "check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_name_of_cutile_that_is_not_here_says_what_serves_instead() -> None:
    tool = runpy.run_path(str(Path(__file__).resolve().parents[2] / "tools/cutile.py"))
    for row in tool["rows"]():
        if tool["found"](row["name"]) is None:
            assert row["differs"], row["name"]


def test_methods_take_their_keywords() -> None:
    @ct.kernel
    def kernel(X, Z):
        x = ct.load(X, (0, 0), (2, 4)).permute(axes=(1, 0)).transpose(axis0=0, axis1=1)
        ct.store(Z, (0, 0), x.reshape(shape=(4, 2)).astype(dtype=ct.float32))

    x = np.arange(8, dtype=np.int32).reshape(2, 4)
    for run in (lambda *a: ct.launch(None, 1, kernel, a), lambda *a: kernel.interpret(1, a)):
        z = np.zeros((4, 2), np.float32)
        run(x, z)
        assert np.array_equal(z, x.reshape(4, 2))
