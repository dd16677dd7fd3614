"""The walk in docs/adding-a-target.md: its patches apply to this tree; built, a family that did not exist takes a
product of a chip that did not exist, ptxas assembles it, and its numbers are those of NumPy."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/dev"
needs_build = pytest.mark.skipif(
    not (BUILD / "compile_commands.json").exists(),
    reason="compiles into the tree of make build",
)

FAMILIES, FAMILY = "lowering/gpu/isa/families.c", "lowering/gpu/isa/sm121/staged.c"
COMPILED = (FAMILIES, FAMILY, "lowering/gpu/machine/target.c")

PRODUCT = """
module attributes {tile.target = "sm_TARGET"} {
  func.func @k(%a: tensor<32x32xf32>, %b: tensor<32x32xf32>, %c: tensor<32x32xf32>) attributes {tile.kernel} {
    %d = tile.mma %a, %b, %c : tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>
    return
  }
}
"""
# A GEMM with ragged edges: its right operand is read where it is loaded to, or written there first.
PROGRAM = """
import emulate
import numpy as np
from tilewright import tile as ct

@ct.kernel
def matmul(A, B, C, FACTOR: ct.Constant[int]):
    acc = ct.zeros((32, 32), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(32, 32))):
        a = ct.load(A, index=(ct.bid(0), k), shape=(32, 32), padding_mode=ct.PaddingMode.ZERO)
        b = ct.load(B, index=(k, ct.bid(1)), shape=(32, 32), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(a, b * FACTOR if FACTOR > 1 else b, acc)
    ct.store(C, index=(ct.bid(0), ct.bid(1)), tile=acc)

emulate.install()
a, b = np.random.default_rng(0).integers(-4, 5, (2, 40, 40)).astype(np.float32)
for factor in (1, 3):
    c = np.zeros((40, 40), np.float32)
    ct.launch(None, (2, 2), matmul, (a, b, c, factor))
    assert (c == a @ (b * factor)).all(), c - a @ b
"""


def patches() -> str:
    text = (ROOT / "docs/adding-a-target.md").read_text()
    return "".join(re.findall(r"^```diff\n(.*?)^```", text, re.MULTILINE | re.DOTALL))


def run(*command: str | Path, folder: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout + done.stderr


def test_touches_one_folder_and_three_tables() -> None:
    touched = set(re.findall(r"^\+\+\+ b/(.+)$", patches(), re.MULTILINE))
    assert {path for path in touched if not path.startswith(str(Path(FAMILY).parent))} == {
        "include/tilewright/targets.def",
        "lowering/gpu/machine/target.h",
        FAMILIES,
    }


def compiled(tree: Path) -> dict[str, str]:
    """The objects of what the patches touch, by those of the build in whose place they stand."""
    commands = {row["file"]: row["command"] for row in json.loads((BUILD / "compile_commands.json").read_text())}
    objects = {}
    for source in COMPILED:
        command = commands[str(ROOT / (source if (ROOT / source).exists() else FAMILIES))]
        new = tree / f"{source.replace('/', '_')}.o"
        command = re.sub(r" -o \S+", f" -o {new}", command).replace(" -O3 ", " -O0 ")
        command = re.sub(r" -M[DFT]( (?!-)\S+)?", "", command)
        command = re.sub(rf"{re.escape(str(ROOT))}(?!/build)", str(tree), command)
        command = re.sub(r" -c \S+", f" -c {tree / source}", command)
        run(*shlex.split(command), folder=BUILD)
        objects[f"CMakeFiles/tw_compiler.dir/{source}.o"] = str(new)
    table, added = (f"CMakeFiles/tw_compiler.dir/{source}.o" for source in (FAMILIES, FAMILY))
    objects[table] += f" {objects.pop(added)}"
    return objects


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with the patches; tw-opt and the extension, linked of them and of the rest of the build."""
    tree = tmp_path_factory.mktemp("tree")
    for part in ("base", "dialect", "include", "lowering"):
        shutil.copytree(ROOT / part, tree / part)
    shutil.copytree(ROOT / "python/tilewright", tree / "python/tilewright")
    (tree / "walk.patch").write_text(patches())
    run("git", "apply", "--unsafe-paths", "walk.patch", folder=tree)
    objects = compiled(tree)
    for name, built in (("tw-opt", "bin/tw-opt"), ("python/tilewright/_core.abi3.so", "_core")):
        link = run("ninja", "-t", "commands", built, folder=BUILD).splitlines()[-1]
        link = re.sub(r" -o \S+", f" -o {tree / name}", link)
        for old, new in objects.items():
            link = link.replace(old, new)
        run("sh", "-c", link, folder=BUILD)
    return tree


@needs_build
def test_the_family_takes_a_product(tree: Path) -> None:
    for target, family in (("121", "staged"), ("120", "")):
        (tree / "product.mlir").write_text(PRODUCT.replace("TARGET", target))
        told = run(tree / "tw-opt", "product.mlir", "--tile-select-mma", folder=tree)
        assert re.findall(r'tile\.family = "(\w+)", tile\.places = "rw"', told) == ([family] if family else [])


@needs_build
def test_its_numbers(tree: Path) -> None:
    (tree / "program.py").write_text(PROGRAM)
    paths = os.pathsep.join(map(str, (tree / "python", ROOT / "test/emulator")))
    run(sys.executable, "program.py", folder=tree, PYTHONPATH=paths, TILEWRIGHT_EMULATE="sm_121")


@needs_build
def test_its_code(tree: Path) -> None:
    arguments = [f"--arg={name}=f32[?,?]" for name in "ABC"] + ["--arg=TM=64", "--arg=TN=64", "--arg=TK=32"]
    kernel = f"{ROOT / 'python/examples/matmul.py'}:matmul"
    command = (
        "-m",
        "tilewright",
        "compile",
        kernel,
        *arguments,
        "--target",
        "sm_121",
        "--emit",
        "ptx",
        "-o",
        "k.ptx",
        "--remarks",
    )
    told = run(sys.executable, *command, folder=tree, PYTHONPATH=str(tree / "python"))
    assert "runs as multiply-adds on 4 warps, its right operand in shared memory" in told
    assert "fma.rn.f32" in (tree / "k.ptx").read_text()
    if shutil.which("ptxas"):
        run("ptxas", "-arch=sm_121", "k.ptx", "-o", "k.cubin", folder=tree)
