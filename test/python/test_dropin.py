"""Programs written for cuTile run as they are: `import cuda.tile as ct` means Tilewright."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys

import cuda.tile as ct
import numpy as np
from cuda.tile import Constant, float32

@ct.kernel
def scale(x, a, n: Constant[int]):
    i = ct.bid(0)
    ct.store(x, index=(i,), tile=ct.load(x, index=(i,), shape=(n,)).astype(float32) * a)

x = np.arange(32, dtype=np.float32)
ct.launch(None, (2,), scale, (x, 3.0, 16))
assert np.array_equal(x, np.arange(32) * 3.0)
print(sys.argv[1:], __name__, ct.__name__)
"""


def python(tmp_path: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "HOME": str(tmp_path)}
    return subprocess.run([sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True)


def test_a_script_runs_unchanged(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PROGRAM)
    done = python(tmp_path, "-m", "tilewright.dropin", "script.py", "-a", "b")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['-a', 'b'] __main__ cuda.tile\n"


def test_a_module_runs_unchanged(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = python(tmp_path, "-m", "tilewright.dropin", "-m", "program", "x")
    assert done.returncode == 0, done.stderr


def test_device_code_runs_unchanged(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import numpy as np\nfrom cuda import device\n@device.kernel\ndef k(x):\n    x[device.tid(1)] = 7\n"
        "x = np.zeros(4)\ndevice.launch(k, x, grid=1, block=4)\nprint(x, device.float32x2.__name__)\n"
    )
    done = python(tmp_path, "-m", "tilewright.dropin", "program.py")
    assert (done.returncode, done.stdout) == (0, "[7. 7. 7. 7.] float32x2\n"), done.stderr


def test_install_comes_before_the_first_import(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import tilewright.dropin\ntilewright.dropin.install()\ntilewright.dropin.install()\n"
        "import cuda.tile, tilewright.tile, tilewright.tune\nfrom cuda.tile import tune\nfrom cuda.tile import *\n"
        "assert cuda.tile.load is tilewright.tile.load is load and tune.search is tilewright.tune.search\n"
        "assert 'load' in dir(cuda.tile) and cuda.tile.kernel is tilewright.tile.kernel is kernel\n"
    )
    done = python(tmp_path, str(script))
    assert done.returncode == 0, done.stderr


def test_the_real_one_is_not_replaced_behind_its_back(tmp_path: Path) -> None:
    (tmp_path / "cuda" / "tile").mkdir(parents=True)
    (tmp_path / "cuda" / "tile" / "__init__.py").write_text("")
    (tmp_path / "cuda" / "other.py").write_text("here = 1\n")
    script = tmp_path / "script.py"
    script.write_text("import cuda.tile, tilewright.dropin\ntilewright.dropin.install()\n")
    done = python(tmp_path, "script.py")
    assert "cuda.tile was imported already" in done.stderr and "before the first import" in done.stderr
    script.write_text(
        "import tilewright.dropin as d\nd.install()\nimport cuda.tile, cuda.other\n"
        "assert cuda.tile.load and cuda.other.here == 1\n"
    )
    done = python(tmp_path, "script.py")
    assert done.returncode == 0, done.stderr


def test_variables_of_the_environment_are_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEWRIGHT_CACHE_DIR", raising=False)  # the tests' own, which would come first
    monkeypatch.setenv("CUDA_TILE_LOGS", "CUTILEIR")
    monkeypatch.setenv("CUDA_TILE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CUDA_TILE_COMPILER_TIMEOUT_SEC", "100")
    (tmp_path / "script.py").write_text(PROGRAM)
    done = python(tmp_path, "-m", "tilewright.dropin", "script.py")
    assert done.returncode == 0 and "tile.store" in done.stderr, done.stderr
    assert any((tmp_path / "cache").iterdir())
    monkeypatch.setenv("CUDA_TILE_COMPILER_TIMEOUT_SEC", "0.001")
    monkeypatch.setenv("CUDA_TILE_CACHE_DIR", "off")
    done = python(tmp_path, "-m", "tilewright.dropin", "script.py")
    assert "TileCompilerTimeoutError: kernel scale takes longer than 0.001 s to compile" in done.stderr


def test_public_names_are_taken_from_private_modules(tmp_path: Path) -> None:
    done = python(
        tmp_path,
        "-c",
        "import tilewright.dropin as d; d.install()\n"
        "from cuda.tile._datatype import float4_e2m1fn, float8_e4m3fn\n"
        "from cuda.tile._numeric_semantics import RoundingMode\n"
        "from cuda.tile._stub import pack_to_bytes\n"
        "print(RoundingMode.RN, float8_e4m3fn)",
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["cuda.tile.cext", "cuda.tile._passes"])
def test_what_is_not_there_says_so(tmp_path: Path, name: str) -> None:
    done = python(tmp_path, "-c", f"import tilewright.dropin as d; d.install(); import {name}")
    assert f"{name} is not part of Tilewright" in done.stderr and "ModuleNotFoundError" in done.stderr
