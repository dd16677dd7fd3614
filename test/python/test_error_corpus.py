"""Wrong programs of `test/errors` are told what is wrong, where, and what to write instead."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "errors"
sys.path.insert(0, str(FOLDER))
import corpus  # noqa: E402

PROGRAMS = [program for path in corpus.themes() for program in corpus.programs(path)]

# Of what users should not see: the compiler's operations and types, and files of ours.
INSIDE = re.compile(
    r"'(tile|arith|scf|llvm|nvvm|tensor|memref|func)\.\w+'|tensor<|memref<|\bop\b|/tilewright/|(?<!lanes )0x[0-9a-f]{6}"
)
# One thing is no several, and an article goes with what follows it.
GRAMMAR = re.compile(
    r"(?<![\w.,-])1 (dimensions|entries|arguments|arrays|tiles|elements|blocks|values|indices)\b|\ba (u?int\d*|array)\b"
)
# A message says what was expected, or what to write.
REMEDY = re.compile(
    r"; |did you mean|expected|need|must|takes|write |use |is for|only possible|is \d+ to|an integer from|"
    r"a power of two|missing|multiple values|is neither|does not|do not|is (0, 1|out)|is a constant|outside|already|"
    r"the most is"
)


# Requirements that a program breaks outside of kernels, or between threads.
DECORATED = re.compile(r"^@.*\n(def|class) .*:\n(    .*\n)+\Z", re.MULTILINE)  # the end of a program
OF_THE_HOST = {f"D-{n:03}" for n in (39, 45, 197, 198, 249, 287, 292, 305, 306, 318, 319, 398)}
OF_THE_HOST |= {f"D-{n}" for n in (506, 530, 534, 538, 542)}


def test_the_index_has_them() -> None:
    """docs/errors.md, which tools/errors.py makes of the same files."""
    tool = Path(__file__).parents[2] / "tools/errors.py"
    done = subprocess.run([sys.executable, tool, "check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_there_are_enough() -> None:
    assert len(PROGRAMS) >= 250
    assert len({(p.theme, p.name) for p in PROGRAMS}) == len(PROGRAMS)


@pytest.mark.parametrize("path", corpus.themes(), ids=lambda path: path.stem)
def test_what_wrong_programs_are_told(path: Path) -> None:
    """`python test/errors/corpus.py` writes the texts anew, for review."""
    wrong = []
    with corpus.folder():
        for program in corpus.programs(path):
            told, frames = corpus.run(program)
            if told != program.expected:
                wrong.append(f"{program.name}:\n{told}\nexpected:\n{program.expected}\n")
            launches = 'File "' in told or re.search(r"launch\(|\]\(|interpret\(|export_functions\(", program.source)
            launches = launches or DECORATED.search(program.source)
            if launches and any("tilewright" in frame for frame in frames):
                wrong.append(f"{program.name}: the traceback shows {frames}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", corpus.themes(), ids=lambda path: path.stem)
def test_the_reference_refuses_them_in_the_same_words(path: Path) -> None:
    """Programs that launch by themselves aside."""
    with corpus.folder():
        for program in corpus.programs(path):
            if corpus.LAUNCH in program.source:
                assert corpus.run(program, interpreted=True)[0] == program.expected, program.name


@pytest.mark.parametrize("path", corpus.themes(), ids=lambda path: path.stem)
def test_texts_are_for_users(path: Path) -> None:
    for program in corpus.programs(path):
        text = program.expected
        message = text.split("\n  File ")[0]
        assert not text.startswith(("nothing", "TypeError", "AttributeError", "KeyError")), program.name
        if path.stem in ("device", "numba_kernels", "requirements", "threads"):
            assert not re.search(r"\bct\.|\btile code", message), (program.name, "words of the tile language")
        assert "TileCompilationError" not in text and "TileInternalError" not in text, program.name
        assert not INSIDE.search(text), (program.name, text)
        assert not GRAMMAR.search(message), (program.name, message)
        assert REMEDY.search(message), (program.name, message)
        if path.stem != "host" and program.name.split()[0] not in OF_THE_HOST:
            assert re.search(r'\n  File "\w+\.py", line \d+, in \w+\n    .+\n +\^', text), (program.name, text)


def test_each_user_requirement_has_a_program() -> None:
    """Of the 76 of cuda.device; of D-401 (an array outlives what refers to it), the one that a kernel can break."""
    told = [program.name.split()[0] for program in PROGRAMS if program.theme == "requirements"]
    with open(Path(__file__).parents[1] / "data/spec.tsv", newline="") as file:
        known = {row[0] for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)}
    assert len(told) == len(set(told)) == 76 and set(told) <= known
