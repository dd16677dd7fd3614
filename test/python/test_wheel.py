"""The wheel as a user installs it: alone in a fresh environment, on each CPython from 3.11 on that is there.

`make test` builds the wheel first; run alone, these tests take the one in dist/ and skip where there is none.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WHEELS = sorted((ROOT / "dist").glob("tilewright-*.whl"))
pytestmark = pytest.mark.skipif(not WHEELS, reason="no wheel in dist/: make wheel")


def interpreters() -> list[str]:
    """One python for each version from 3.11 on: this one, those of PATH, and those that pyenv keeps."""
    found = {sys.version_info[:2]: sys.executable}
    for minor in range(11, 16):
        path = shutil.which(f"python3.{minor}")
        kept = sorted(
            Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob(f"versions/3.{minor}.*/bin/python")
        )
        for candidate in [*([path] if path else []), *map(str, kept)]:
            if (3, minor) not in found and subprocess.run([candidate, "-c", "import venv, ensurepip"]).returncode == 0:
                found[3, minor] = candidate
    return [found[version] for version in sorted(found)]


PROGRAM = """
import sys
import tilewright
from tilewright import _core, tile
assert "site-packages" in tilewright.__file__, tilewright.__file__
assert not {"torch", "cupy"} & set(sys.modules), "imports what a user may not have"
module = _core.parse("func.func @f(%x: i32) -> i32 { return %x : i32 }")
assert "func.func @f" in module.text()
print("imported by", sys.version.split()[0])
"""


@pytest.mark.slow
@pytest.mark.parametrize("python", interpreters(), ids=lambda path: re.sub(r"^.*versions/|/bin/.*$", "", path) or path)
def test_imports_in_a_fresh_environment(python: str, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([python, "-m", "venv", venv], check=True)
    install = [venv / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", WHEELS[-1]]
    subprocess.run(install, check=True)
    environment = {"PATH": "/nonexistent", "HOME": str(tmp_path)}  # no compiler, no LLVM, no CUDA to be found
    command = [venv / "bin/python", "-I", "-c", PROGRAM]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([venv / "bin/tilewright", "doctor"], env=environment, capture_output=True, text=True)
    assert "CPU back end" in done.stdout, done.stderr
    folder = re.search(r"examples +(/.*)", done.stdout)
    assert folder is not None and folder[1].endswith("tilewright/examples"), done.stdout
    done = subprocess.run(
        [venv / "bin/python", "-I", f"{folder[1]}/vector_add.py"], env=environment, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    command = [venv / "bin/tilewright", "compile", "python/examples/softmax.py:softmax", "--emit", "ptx"]
    command += [f"--arg={text}" for text in ("X=bf16[?,?]", "Y=bf16[?,?]", "TN=4096")]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True)
    assert done.returncode == 0 and b".visible .entry" in done.stdout, done.stderr


def test_shared_object_is_self_contained() -> None:
    command = [sys.executable, ROOT / "tools/check_so.py", WHEELS[-1]]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_contents() -> None:
    names = zipfile.ZipFile(WHEELS[-1]).namelist()
    assert "tilewright/tile.py" in names and "tilewright/examples/kernels/linear.py" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    strange = [name for name in names if not name.startswith(("tilewright/", "cuda/", "tilewright-"))]
    assert not strange, strange
    assert "tilewright/include/cuda/interoperable_array_descriptor.h" in names  # for programs of C++
    ours = [name for name in names if not name.startswith("tilewright/include/")]
    assert not [name for name in ours if "__pycache__" in name or name.endswith((".c", ".h", ".cpp"))]
