"""The fixed part of fuzzing (test/fuzz): some cases of each mesh, the same ones in every run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "test" / "fuzz" / "run.py"
FEW = {"mutants": 1500, "control": 20, "tiles": 16, "arrays": 1500, "cache": 300, "commands": 60}


def run(*arguments: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, RUN, *arguments], capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("mesh", FEW)
def test_mesh(mesh: str, tmp_path: Path) -> None:
    status, text = run("--mesh", mesh, "--cases", str(FEW[mesh]), "--kept", str(tmp_path))
    assert status == 0, text + "".join(file.read_text()[:3000] for file in tmp_path.glob("*"))
    assert re.search(rf"{mesh} +{FEW[mesh]} ", text), text


BAD_MESH = """
import os, time
from mesh import FINE, Base, Kind, Outcome

class Mesh(Base):
    limit = 0.5

    def case(self, number):
        if number == 1:
            os.abort()
        if number == 2:
            time.sleep(60)
        return Outcome(Kind.WRONG, "three") if number == 3 else FINE
"""


def test_the_runner_survives_its_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash and a case without end cost a process, not the run."""
    (tmp_path / "badmesh.py").write_text(BAD_MESH)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    code = f"import sys; sys.path.insert(0, {str(RUN.parent)!r}); import run; from pathlib import Path; "
    code += f"print(run.table(run.run(['badmesh'], 60, 6, 0, 1, Path({str(tmp_path / 'kept')!r}))))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    header, row = done.stdout.strip().splitlines()[-2:]
    counts = dict(zip(header.split()[1:], map(int, row.split()[1:]), strict=True))
    assert counts["crash"] == counts["hang"] == counts["wrong"] == 1 and counts["cases"] == 6, done.stdout + done.stderr
    assert sorted(f.name for f in (tmp_path / "kept").iterdir()) == [f"badmesh-{n}.txt" for n in (1, 2, 3)]
