"""The walk in docs/adding-an-op.md: its patches apply to this tree, touch no more files than it says, build, and the op
that they add computes what NumPy computes, in all of its numerics tests."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TW_BIN", ROOT / "build/dev/bin")).parent
# What the extension and the numerics tests are made of.
PARTS = (
    *("CMakeLists.txt", "cmake", "base", "dialect", "include", "lowering", "runtime", "python", "tools"),
    *("test/conftest.py", "test/data", "test/numerics", "test/emulator", "pyproject.toml", "docs"),
)


def patches() -> str:
    text = (ROOT / "docs/adding-an-op.md").read_text()
    return "".join(re.findall(r"^```diff\n(.*?)^```", text, re.MULTILINE | re.DOTALL))


def test_touches_three_files() -> None:
    assert len(set(re.findall(r"^\+\+\+ b/(.+)$", patches(), re.MULTILINE))) == 3


def run(tree: Path, *command: str, seconds: int) -> str:
    # Without optimization: most of the compiler is compiled again, since the table of ops is one longer.
    environment = {
        **os.environ,
        "PYTHONPATH": str(tree / "python"),
        "CCACHE_BASEDIR": str(tree),
        "CCACHE_NOHASHDIR": "1",
    }
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


def configured(name: str) -> str:
    """A variable of the build that tests run with."""
    cache = (BUILD / "CMakeCache.txt").read_text()
    found = re.search(rf"^{name}:\w+=(.*)$", cache, re.MULTILINE)
    return found.group(1) if found else ""


@pytest.mark.skipif(not (BUILD / "CMakeCache.txt").exists(), reason="needs a build tree")
def test_the_op_computes(tmp_path: Path) -> None:
    for part in PARTS:
        (tmp_path / part).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, tmp_path / part)
    (tmp_path / "python/tilewright/_core.abi3.so").unlink()
    (tmp_path / "walk.patch").write_text(patches())
    run(tmp_path, "git", "apply", "--unsafe-paths", "walk.patch", seconds=20)
    options = [f"-D{name}={configured(name)}" for name in ("CMAKE_C_COMPILER", "CMAKE_CXX_COMPILER", "MLIR_DIR")]
    options += [
        f"-DCMAKE_{language}_COMPILER_LAUNCHER={configured('CMAKE_C_COMPILER_LAUNCHER')}" for language in ("C", "CXX")
    ]
    options += [f"-DPython_EXECUTABLE={sys.executable}", "-DTW_TOOLS=OFF", "-DCMAKE_BUILD_TYPE=None"]
    run(tmp_path, "cmake", "-G", "Ninja", "-S", ".", "-B", "build", *options, seconds=60)
    run(tmp_path, "ninja", "-C", "build", seconds=600)
    run(tmp_path, sys.executable, "tools/twgen.py", "generate", "build/TileOps.json", seconds=20)
    tests = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "test/numerics/test_elementwise.py", "-k", "log1p")
    for back_end in ("cpu", "sm_80"):
        told = run(tmp_path, sys.executable, *tests, f"--backend={back_end}", seconds=120)
        assert re.search(r"^[1-9]\d* passed", told, re.MULTILINE), told
