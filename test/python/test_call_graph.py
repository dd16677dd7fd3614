"""No file of lowering/ calls one that calls it, directly or through others: read from the objects of a build.

tools/check_layers.py finds circles of includes. A header that several files share could hide one of calls.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OBJECTS = Path(os.environ.get("TW_BIN", ROOT / "build/dev/bin")).parent / "CMakeFiles/tw_compiler.dir/lowering"
NM = shutil.which("nm") or shutil.which("llvm-nm-22")


def symbols(path: Path) -> tuple[set[str], set[str]]:
    """What an object defines for others, and what it takes from them."""
    assert NM is not None
    told = subprocess.run([NM, str(path)], capture_output=True, text=True, check=True).stdout
    rows = [line.split()[-2:] for line in told.splitlines()]
    return {name for kind, name in rows if kind in "TDRB"}, {name for kind, name in rows if kind == "U"}


# A family's row names what emits its products, which asks the family in turn: the row calls nothing.
IN_ROWS = {"twg_emit_mma_sync", "twg_emit_wgmma", "twg_emit_wgmma_wait"}


def reachable(start: str, graph: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    left = [start]
    while left:
        new = graph[left.pop()] - found
        found |= new
        left += new
    return found


@pytest.mark.skipif(not OBJECTS.is_dir() or NM is None, reason="reads the objects of make build with nm")
def test_no_circle_of_calls() -> None:
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "lowering").rglob("*.c")}
    tables = {name: symbols(OBJECTS / f"{name.removeprefix('lowering/')}.o") for name in sources}
    home = {symbol: name for name, (defined, _) in tables.items() for symbol in defined}
    graph = {name: {home[s] for s in taken - IN_ROWS if s in home} - {name} for name, (_, taken) in tables.items()}
    circles = sorted(name for name in graph if name in reachable(name, graph))
    assert not circles
