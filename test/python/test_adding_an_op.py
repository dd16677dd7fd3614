"""The walk in docs/adding-an-op.md: its patches apply to this tree and touch no more files than it says."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def patches() -> str:
    text = (ROOT / "docs/adding-an-op.md").read_text()
    return "".join(re.findall(r"^```diff\n(.*?)^```", text, re.MULTILINE | re.DOTALL))


def test_touches_four_files() -> None:
    assert len(set(re.findall(r"^\+\+\+ b/(.+)$", patches(), re.MULTILINE))) == 4


def test_patches_apply(tmp_path: Path) -> None:
    """To the files as they are, whatever git says of the tree."""
    if not shutil.which("git"):
        pytest.skip("git applies the patches")
    for name in re.findall(r"^--- a/(.+)$", patches(), re.MULTILINE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    command = ["git", "apply", "--check", "-"]
    done = subprocess.run(command, cwd=tmp_path, input=patches(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
