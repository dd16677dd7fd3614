"""IR that no pass expects, given to every pass: a diagnostic or a result, never a crash.

The inputs are those of the lit tests: every function is made a kernel, and the module gets parameters that are right,
unknown or absurd.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TW_OPT = Path(os.environ.get("TW_BIN", ROOT / "build/dev/bin")) / "tw-opt"

PASSES = [
    f"func.func({name})" if on_functions else name
    for name, on_functions in (
        ("tile-legalize", False),
        ("tile-gather-to-load", True),
        ("tile-legalize-mma", True),
        ("tile-assign-layouts", True),
        ("tile-promote-memory", True),
        ("tile-pipeline", True),
        ("tile-check-registers", True),
        ("tile-race-check", True),
        ("tile-allocate-shared", False),
        ("tile-insert-barriers", True),
        ("tile-to-nvvm", False),
        ("tile-overlap-launches", False),
        ("tile-to-cpu", False),
    )
]
ALL_FOR_GPU = ",".join(["tile-legalize", *PASSES[1:6], "canonicalize,cse", *PASSES[6:11]])
PIPELINES = [*PASSES, ALL_FOR_GPU, "tile-legalize,tile-to-cpu"]
PARAMETERS = [
    'tile.target = "sm_90a"',
    'tile.target = "cpu"',
    'tile.target = "bogus"',
    'tile.target = 1 : i32, tile.num_warps = "x"',
    'tile.target = "sm_80", tile.num_warps = 3 : i32',
    'tile.target = "sm_90a", tile.num_warps = 0 : i32, tile.num_stages = -5 : i32',
    'tile.target = "sm_90a", tile.num_warps = 1000000 : i32',
]


def pieces() -> list[str]:
    """The modules of the lit tests, without their checks."""
    found = []
    for path in sorted([*ROOT.glob("test/dialect/*.mlir"), *ROOT.glob("test/lowering/**/*.mlir")]):
        if "invalid" in path.stem:
            continue  # does not get past the verifier
        text = re.sub(r"^//(?! -----).*$", "", path.read_text(), flags=re.MULTILINE)
        found += re.split(r"^// -----.*$", text, flags=re.MULTILINE)
    return [piece for piece in found if "func.func" in piece]


def as_kernels(piece: str, parameters: str) -> str:
    piece = re.sub(
        r"^(\s*func\.func .*?)( attributes \{[^}]*\})? \{$", r"\1 attributes {tile.kernel} {", piece, flags=re.MULTILINE
    )
    if "module attributes" in piece:
        return re.sub(r"module attributes \{[^}]*\}", f"module attributes {{{parameters}}}", piece)
    return f"module attributes {{{parameters}}} {{\n{piece}\n}}\n"


@pytest.mark.skipif(not TW_OPT.exists(), reason="needs build/dev/bin/tw-opt")
@pytest.mark.parametrize("parameters", PARAMETERS)
def test_no_pass_crashes(parameters: str, tmp_path: Path) -> None:
    source = tmp_path / "input.mlir"
    source.write_text("\n// -----\n".join(as_kernels(piece, parameters) for piece in pieces()))
    for pipeline in PIPELINES:
        command = [TW_OPT, source, "-split-input-file", f"--pass-pipeline=builtin.module({pipeline})"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode in (0, 1), f"{pipeline}\n{done.stderr[-3000:]}"
