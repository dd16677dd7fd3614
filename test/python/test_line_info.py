"""PTX says which line of Python an instruction comes from, if asked, and is the same code otherwise."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import compile
from tilewright import tile as ct
from tilewright.times import Times

T = 128
ptxas = pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas here")
nvdisasm = pytest.mark.skipif(shutil.which("nvdisasm") is None, reason="no nvdisasm here")


def squared(x):
    return x * x  # inlined


@ct.kernel
def kernel(A, B):
    a = ct.load(A, (ct.bid(0),), (T,))
    b = squared(a)
    ct.store(B, (ct.bid(0),), ct.sqrt(b))


def line_of(text: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if line.strip().startswith(text))


def ptx_of(target: str = "sm_80") -> str:
    args: tuple[Any, ...] = (np.zeros(T, np.float32), np.zeros(T, np.float32))
    _, key = kernel.specialization(args)
    module = kernel.capture(target, key)
    image = compile.build(module, target, kernel.name, Times(kernel.name, target), lambda ptx, _: ptx)
    return image.code.decode().rstrip("\0")


@pytest.fixture
def with_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_LINE_INFO", "1")


def instructions(ptx: str) -> list[tuple[int, str]]:
    """Each with the line that the `.loc` before it names."""
    line, found = 0, []
    for text in ptx.splitlines():
        if match := re.match(r"\t\.loc\t1 (\d+) (\d+)", text):
            line = int(match[1])
        elif re.match(r"\t(@%p\d+ )?[a-z]+\.", text):
            found.append((line, text.strip()))
    return found


@pytest.mark.usefixtures("with_lines")
def test_instructions_have_the_lines_of_python() -> None:
    ptx = ptx_of()
    assert f'.file\t1 "{__file__}"' in ptx
    found = instructions(ptx)
    assert {line for line, text in found if text.startswith("mul.f32")} == {line_of("return x * x")}
    assert {line for line, text in found if text.startswith("sqrt")} == {line_of("ct.store(B")}
    assert "debug" not in ptx.split(".target")[1].splitlines()[0]  # which would have ptxas optimize nothing


def without_lines(ptx: str) -> list[str]:
    dropped = ("\t.loc\t", "$L__", "\t.file", "\t.section", "//")
    return [line for line in ptx.splitlines() if line.strip() and not line.startswith(dropped)]


def test_the_code_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = ptx_of()
    assert ".loc" not in plain
    monkeypatch.setenv("TILEWRIGHT_LINE_INFO", "1")
    found = ptx_of()
    labels = [line for line in plain.splitlines() if line.startswith("$L__BB")]
    assert labels == [line for line in found.splitlines() if line.startswith("$L__BB")]
    assert without_lines(found) == without_lines(plain)


@ptxas
@nvdisasm
@pytest.mark.usefixtures("with_lines")
def test_tools_show_the_lines(tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(ptx_of())
    subprocess.run(["ptxas", "-arch=sm_80", "-lineinfo", "k.ptx", "-o", "k.cubin"], cwd=tmp_path, check=True)
    command = ["nvdisasm", "-g", "-c", "k.cubin"]
    text = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    lines = {int(n) for n in re.findall(rf'//## File "{re.escape(__file__)}", line (\d+)', text)}
    assert {line_of("a = ct.load"), line_of("return x * x"), line_of("ct.store(B")} <= lines
