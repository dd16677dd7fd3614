"""`make test` runs every test: each runner is asked which files it would take, and those are all that there are.

Of pytest the modules are found and not imported: what is in them is no matter here, where a folder lies is.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tools"))
import run_tests
from run_tests import ROOT

FINDER = """
import pytest

class Unread(pytest.Module):
    def collect(self):
        return []

def pytest_pycollect_makemodule(module_path, parent):
    print("found", module_path)
    return Unread.from_parent(parent, path=module_path)
"""


@pytest.fixture(scope="module")
def parts() -> dict[str, list[str]]:
    build = Path(os.environ.get("TW_BIN", ROOT / "build" / "dev" / "bin")).parent
    return {part.name: part.command for part in run_tests.parts(build, "1")}


def asked(command: list[str], **environment: str) -> str:
    known = os.environ | environment
    done = subprocess.run(command, cwd=ROOT, env=known, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout


def below(folder: str, pattern: str) -> set[Path]:
    """Where tests may lie: not what was built, nor what is hidden."""
    found = ROOT.joinpath(folder).rglob(pattern)
    return {p for p in found if not any(part == "build" or part[0] == "." for part in p.relative_to(ROOT).parts)}


def test_pytest(parts: dict[str, list[str]], tmp_path: Path) -> None:
    (tmp_path / "finder.py").write_text(FINDER)
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    told = asked([*parts["pytest"], "-n0", "-s", "--collect-only", "-p", "finder"], PYTHONPATH=path)
    found = {Path(line.removeprefix("found ")) for line in told.splitlines() if line.startswith("found ")}
    assert found == below(".", "test_*.py") | below(".", "*_test.py")


def test_lit(parts: dict[str, list[str]]) -> None:
    told = asked([*parts["lit"], "--show-tests"])
    found = {ROOT / "test" / line.split(" :: ")[1] for line in told.splitlines() if " :: " in line}
    assert found == {p for p in below(".", "*.mlir") if "Inputs" not in p.parts}


def test_ctest(parts: dict[str, list[str]]) -> None:
    told = asked([*parts["unit"], "-N"])
    found = set(re.findall(r"Test +#\d+: (\w+)", told))
    assert found == {path.stem for path in below(".", "test_*.c")}
