"""One word for one thing: retired words are gone from sources and documents, and no two structs have one name."""

from __future__ import annotations

import collections
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("base", "dialect", "include", "lowering", "runtime", "python", "docs", "README.md", "CONTRIBUTING.md")

# What was said once, and what is said now (docs/glossary.md).
RETIRED = {
    r"tickets?": "dynamic schedule, next tile",
    r"cut_tiles|cut_blocks": "slice_tiles",
    r"fuse_tiles|fuse_blocks|fused blocks": "coarsen_tiles",
    r"stale_softmax": "lazy_rescale",
    r"layout_choice": "layout_rank",
    r"teams?": "consumer group",
    r"(await|pass)_turn": "ordered_wait, ordered_arrive",
    r"to_and_fro|to and fro": "serpentine",
    r"\w+_rings?(_\w+)?|ring_\w+": "multi-stage buffer",
    r"slots? of (a|the) (buffer|ring)": "stage",
    r"persist\.c|take_tickets|walk_tiles|keep_tiles|bring_vectors|own_indices|lift_indices": "the file's name today",
}
# The table of old names itself, and what names a thing of somebody else.
EXCEPTIONS = {
    "python/tilewright/names.py",  # answers the old names
    "docs/errors.md",  # what it answers
}
STRUCT = re.compile(r"^\}\s*(\w+_t);|^(?:typedef )?struct (\w+) \{", re.MULTILINE)


def tracked(*folders: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / line for line in listed.stdout.splitlines()]


def test_retired_words_are_gone() -> None:
    retired = re.compile(rf"(?<![\w-])(?:{'|'.join(RETIRED)})(?![\w-])")
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in tracked(*SOURCES)
        if path.suffix in (".c", ".h", ".cpp", ".def", ".td", ".py", ".pyi", ".md")
        and str(path.relative_to(ROOT)) not in EXCEPTIONS
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if retired.search(line)
    ]
    assert not found, "\n".join(found)


def test_old_hints_are_retired_and_new_ones_exist() -> None:
    from tilewright.kernel import kernel
    from tilewright.names import RENAMED_HINTS

    assert set(RENAMED_HINTS.values()) <= set(kernel.hint_names)
    assert not set(RENAMED_HINTS) & set(kernel.hint_names)


def test_no_two_structs_have_one_name() -> None:
    where: dict[str, set[str]] = collections.defaultdict(set)
    for path in tracked("base", "dialect", "include", "lowering", "runtime", "python/ext"):
        if path.suffix in (".c", ".h", ".cpp"):
            for match in STRUCT.finditer(path.read_text()):
                where[match[1] or f"struct {match[2]}"].add(str(path.relative_to(ROOT)))
    assert not {name: files for name, files in where.items() if len(files) > 1}


def test_the_root_holds_what_contributing_names() -> None:
    """And nothing else: what a program leaves in the working folder is not committed."""
    folders = {str(path.relative_to(ROOT)).split("/")[0] for path in tracked() if path.parent != ROOT}
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert {name for name in folders if not name.startswith(".")} == set(
        re.findall(r"^\| `(\w+)/` \|", text, re.MULTILINE)
    )
    files = {path.name for path in tracked() if path.parent == ROOT and not path.name.startswith(".")}
    built = {"CMakeLists.txt", "Makefile", "mkdocs.yml", "pyproject.toml"}
    assert files == built | {"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "NOTICE", "README.md"}
