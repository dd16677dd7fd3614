"""The walks in docs/adding-an-op.md: their patches apply to this tree, touch no more files than they say, build, and
the ops that they add compute what NumPy computes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "emulator"))
import emulate

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TW_BIN", ROOT / "build/dev/bin")).parent
# What the extension and the numerics tests are made of.
PARTS = (
    *("CMakeLists.txt", "cmake", "base", "dialect", "include", "lowering", "runtime", "python", "tools"),
    *("test/conftest.py", "test/data", "test/numerics", "test/program_outcome.py", "test/emulator"),
    *("pyproject.toml", "docs"),
)


# What passes make of an op that they have never heard of, as an operand that a product could have copied.
PRODUCT = """
import sys
sys.path.insert(0, "test/emulator")
import numpy as np
from tilewright import tile as ct

@ct.kernel
def kernel(A, B, C):
    acc = ct.zeros((64, 64), ct.float32)
    for k in range(ct.num_tiles(B, axis=0, shape=(32, 64))):
        a = ct.load_clamped(A, index=(ct.bid(0), k), shape=(64, 32))
        b = ct.load(B, index=(k, 0), shape=(32, 64), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(a, b, acc)
    ct.store(C, index=(ct.bid(0), 0), tile=acc)

if len(sys.argv) > 1:
    import emulate
    emulate.TARGET = sys.argv[1]
    emulate.install()
a, b = np.random.default_rng(0).standard_normal((2, 70, 70)).astype(np.float16)
c = np.zeros((70, 64), np.float32)
ct.launch(None, (2,), kernel, (a, b, c))
assert np.allclose(c, a.astype(np.float32) @ b[:, :64].astype(np.float32), atol=1e-2)
"""


def walks() -> tuple[str, str]:
    """The patches of the elementwise op, and of the one that accesses memory."""
    text = (ROOT / "docs/adding-an-op.md").read_text()
    elementwise, memory = text.split("\n## A memory operation")
    found = [re.findall(r"^```diff\n(.*?)^```", part, re.MULTILINE | re.DOTALL) for part in (elementwise, memory)]
    return "".join(found[0]), "".join(found[1])


def test_few_files_are_touched() -> None:
    assert [len(set(re.findall(r"^\+\+\+ b/(.+)$", walk, re.MULTILINE))) for walk in walks()] == [3, 6]


def run(tree: Path, *command: str, seconds: int) -> str:
    # Without optimization: most of the compiler is compiled again, since the table of ops is longer.
    environment = {
        **os.environ,
        "PYTHONPATH": f"{tree / 'python'}:{tree / 'test/emulator'}",
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


@pytest.mark.skipif(not (BUILD / "CMakeCache.txt").exists(), reason="compiles into the tree of make build")
def test_the_ops_compute(tmp_path: Path) -> None:
    for part in PARTS:
        (tmp_path / part).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, tmp_path / part)
    (tmp_path / "python/tilewright/_core.abi3.so").unlink()
    for walk in walks():
        (tmp_path / "walk.patch").write_text(walk)
        run(tmp_path, "git", "apply", "--unsafe-paths", "walk.patch", seconds=20)
    options = [f"-D{name}={configured(name)}" for name in ("CMAKE_C_COMPILER", "CMAKE_CXX_COMPILER", "MLIR_DIR")]
    options += [
        f"-DCMAKE_{language}_COMPILER_LAUNCHER={configured('CMAKE_C_COMPILER_LAUNCHER')}" for language in ("C", "CXX")
    ]
    options += [f"-DPython_EXECUTABLE={sys.executable}", "-DTW_TOOLS=OFF", "-DCMAKE_BUILD_TYPE=None"]
    run(tmp_path, "cmake", "-G", "Ninja", "-S", ".", "-B", "build", *options, seconds=60)
    run(tmp_path, "ninja", "-C", "build", seconds=1800)
    run(tmp_path, sys.executable, "tools/twgen.py", "generate", "build/TileOps.json", seconds=20)
    (tmp_path / "product.py").write_text(PRODUCT)
    emulated = [["-p", "emulated", "--backend=cpu"]] if shutil.which(emulate.CLANG) else []
    for name, file, more in (
        ("log1p", "test_elementwise.py", [["--backend=sm_80"]]),
        ("load_clamped", "test_examples.py", [["--backend=sm_80"], *emulated]),
    ):
        tests = ("-m", "pytest", "-q", "-p", "no:cacheprovider", f"test/numerics/{file}", "-k", name)
        for options in (["--backend=cpu"], *more):
            told = run(tmp_path, sys.executable, *tests, *options, seconds=120)
            assert re.search(r"^[1-9]\d* passed", told, re.MULTILINE), told
    for target in ([], *([["sm_80"], ["sm_90a"]] if emulated else [])):
        run(tmp_path, sys.executable, "product.py", *target, seconds=60)
