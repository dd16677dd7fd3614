"""tools/ptx_corpus.py: the same kernels are the same, other names do not matter, other code does."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import ptx_corpus

ROOT = Path(__file__).resolve().parents[2]
PTX = """.global .align 4 .u32 counter;
.visible .entry scale(
\t.param .u64 .ptr scale_param_0
)
{
\tld.param.b64 %rd1, [scale_param_0];
\tmov.b64 %rd2, counter;
\tadd.s32 %r1, %r2, 1;
\tst.shared.b32 [%r3], %r1;
}
"""


def test_names_do_not_matter() -> None:
    renamed = PTX.replace("scale", "double_it").replace("counter", "c")
    assert ptx_corpus.normalized(PTX) == ptx_corpus.normalized(renamed)
    assert ptx_corpus.normalized(PTX) != ptx_corpus.normalized(PTX.replace("%r2, 1", "%r2, 2"))


def test_registers_and_types_do() -> None:
    """Of instructions that name a space of memory no word is a symbol."""
    assert "st.shared.b32 [%r3], %r1;" in ptx_corpus.normalized(PTX)
    assert ptx_corpus.normalized(PTX) != ptx_corpus.normalized(PTX.replace("[%r3], %r1", "[%r3], %r4"))


def test_writes_and_compares(tmp_path: Path) -> None:
    script = [sys.executable, str(ROOT / "tools/ptx_corpus.py")]
    one, other = tmp_path / "one", tmp_path / "other"
    subprocess.run([*script, "write", str(one), "--only", "sm_80 vector_add"], check=True, capture_output=True)
    shutil.copytree(one, other)
    same = subprocess.run([*script, "compare", str(one), str(other)], capture_output=True, text=True)
    assert same.returncode == 0 and same.stdout.startswith("2 kernels: 0 have other PTX")
    changed = min(other.glob("*.ptx"))
    changed.write_text(changed.read_text().replace("add.", "sub."))
    differ = subprocess.run([*script, "compare", str(one), str(other)], capture_output=True, text=True)
    assert differ.returncode == 1 and changed.name in differ.stdout
    changed.unlink()
    assert subprocess.run([*script, "compare", str(one), str(other)], capture_output=True).returncode == 1
