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
        ("tile-canonicalize", True),
        ("tile-split-loops", True),
        ("tile-select-mma", True),
        ("tile-assign-layouts", True),
        ("tile-promote-memory", True),
        ("tile-pipeline", True),
        ("tile-report", True),
        ("tile-allocate-shared", False),
        ("tile-insert-barriers", True),
        ("tile-to-nvvm", False),
        ("tile-dependent-launch", False),
        ("tile-to-cpu", False),
    )
]
ALL_FOR_GPU = ",".join(["tile-legalize", *PASSES[1:7], "canonicalize,cse", *PASSES[7:12]])
PIPELINES = [*PASSES, ALL_FOR_GPU, "tile-legalize,tile-to-cpu"]
PARAMETERS = [
    'tile.target = "sm_90a"',
    'tile.target = "cpu"',
    'tile.target = "bogus"',
    "tile.target = 1 : i32",
]
# Of each kernel: what is no dictionary, has no such entries, or has impossible ones.
FACTS = [
    "",
    ", tile.hints = 3 : i32, tile.launch = []",
    ', tile.hints = {num_warps = "x", nothing}, tile.launch = {split = 3 : i32, multicast}',
    ", tile.hints = {num_warps = 3 : i32}",
    ", tile.hints = {num_warps = 0 : i32, num_stages = -5 : i32}",
    ", tile.hints = {num_warps = 1000000 : i32}, tile.launch = {cluster_blocks = 7 : i32, no_alias = [{}]}",
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


def as_kernels(piece: str, parameters: str, facts: str) -> str:
    function = r"^(\s*func\.func .*?)( attributes \{(?:[^{}]|\{[^{}]*\})*\})? \{$"
    piece = re.sub(function, rf"\1 attributes {{tile.kernel{facts}}} {{", piece, flags=re.MULTILINE)
    if re.search(r"^module", piece, flags=re.MULTILINE):
        return re.sub(
            r"^module( attributes \{[^}]*\})?", f"module attributes {{{parameters}}}", piece, flags=re.MULTILINE
        )
    return f"module attributes {{{parameters}}} {{\n{piece}\n}}\n"


LARGE = """
!X = memref<?x?xf16, strided<[?, 1]>>
!Y = memref<?x?xf32, strided<[?, 1]>>
module attributes {tile.target = "sm_90a"} {
  func.func @large(%x: !X {tile.tma, tile.align = 16 : i32}, %y: !Y, %n: i32)
      attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %zero = arith.constant dense<0.0> : tensor<2048x2048xf32>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<2048x2048xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !X, i32, i32 -> tensor<2048x2048xf16>
      %s = tile.scan add, %a axis 0 : tensor<2048x2048xf16>
      %e = tile.mma %a, %s, %acc : tensor<2048x2048xf16>, tensor<2048x2048xf16>, tensor<2048x2048xf32>
      scf.yield %e : tensor<2048x2048xf32>
    }
    %long = tile.iota : tensor<1073741824xi32>
    %most = tile.reduce max, %long axis 0 : tensor<1073741824xi32>
    tile.print "{}", %most : i32
    tile.store %d, %y[%c0, %c0] : tensor<2048x2048xf32>, !Y, i32, i32
    return
  }
}
"""


@pytest.mark.skipif(not TW_OPT.exists(), reason="needs build/dev/bin/tw-opt")
def test_no_pass_takes_a_tile_larger_than_a_layout(tmp_path: Path) -> None:
    """Each pass alone, without the one that refuses such tiles before the others see them."""
    names = re.findall(r"--(tile-[a-z0-9-]+)", subprocess.check_output([TW_OPT, "--help"], text=True))
    assert len(names) > 20
    source = tmp_path / "large.mlir"
    source.write_text(LARGE)
    for name in names:
        for pipeline in (name, f"func.func({name})"):
            command = [TW_OPT, source, f"--pass-pipeline=builtin.module({pipeline})"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            assert done.returncode in (0, 1), f"{pipeline}\n{done.stderr[-3000:]}"


@pytest.mark.skipif(not TW_OPT.exists(), reason="needs build/dev/bin/tw-opt")
@pytest.mark.parametrize("parameters, facts", [*((p, "") for p in PARAMETERS), *((PARAMETERS[0], f) for f in FACTS)])
def test_no_pass_crashes(parameters: str, facts: str, tmp_path: Path) -> None:
    source = tmp_path / "input.mlir"
    source.write_text("\n// -----\n".join(as_kernels(piece, parameters, facts) for piece in pieces()))
    for pipeline in PIPELINES:
        command = [TW_OPT, source, "-split-input-file", f"--pass-pipeline=builtin.module({pipeline})"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode in (0, 1), f"{pipeline}\n{done.stderr[-3000:]}"
