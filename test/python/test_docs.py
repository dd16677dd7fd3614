"""The documentation says what is true: its snippets run, the files that it names exist, its figures were measured."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright import _core, cli

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/*.md")])
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PATH = re.compile(r"`([\w.-]+(?:/[\w.*{},-]+)+/?|[\w-]+\.(?:md|toml|txt))`")
SOURCES = (".c", ".cpp", ".def", ".h", ".py", ".td")
BUILT = ("build/", "dist/", "bench/results/")  # what a clean checkout has not


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path, language: str) -> list[str]:
    """The blocks of a language; one marked `gpu` needs a GPU, one marked `sketch` shows a form."""
    found = BLOCK.findall(path.read_text())
    return [body for kind, mark, body in found if kind == language and mark.strip() not in ("gpu", "sketch")]


def with_blocks(language: str) -> list[Path]:
    return [path for path in DOCUMENTS if blocks(path, language)]


def run(command: list[str], where: Path) -> None:
    environment = {
        "PYTHONPATH": str(ROOT / "python"),
        "PATH": f"{Path(sys.executable).parent}:{ROOT / 'build/dev/bin'}:/usr/lib/llvm-22/bin:/usr/bin:/bin",
        "HOME": str(where),
    }
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


@pytest.mark.parametrize("document", with_blocks("python"), ids=name)
def test_python_snippets_run(document: Path, tmp_path: Path) -> None:
    """The blocks of one document, in order, are one program: a kernel's source must come from a file."""
    program = tmp_path / "snippets.py"
    program.write_text("\n\n".join(blocks(document, "python")))
    run([sys.executable, str(program)], tmp_path)


def commands(document: Path) -> list[str]:
    """Lines of `sh` blocks that start with our own programs; a backslash continues a line."""
    text = "\n".join(blocks(document, "sh")).replace("\\\n", " ")
    return [line.strip() for line in text.splitlines() if re.match(r"\s*(tilewright|tw-opt)\s", line)]


SHELL = [(document, command) for document in DOCUMENTS for command in commands(document)]


@pytest.mark.parametrize(
    ("document", "command"), SHELL, ids=lambda value: name(value) if isinstance(value, Path) else value
)
def test_commands_run(document: Path, command: str, tmp_path: Path) -> None:
    command = re.sub(r"(-o |TILEWRIGHT_DUMP=)(\S+)", rf"\1{tmp_path}/\2", command)
    function = f'tilewright() {{ {sys.executable} -m tilewright "$@"; }}'
    run(["bash", "-euo", "pipefail", "-c", f"{function}\n{command}"], tmp_path)


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_paths_exist(document: Path) -> None:
    text = BLOCK.sub("", document.read_text())
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
    broken = [link for link in links if not (document.parent / link).exists()]
    named = [path for path in PATH.findall(text) if not path.startswith(BUILT) and "*" not in path and "{" not in path]
    broken += [path for path in named if not (ROOT / path).exists() and not (document.parent / path).exists()]
    assert not broken, f"{name(document)} names what is not there: {broken}"


EXAMPLES = sorted(path for path in (ROOT / "python/examples").glob("*.py") if path.stem not in ("demo", "device_array"))


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_examples_run(example: Path, tmp_path: Path) -> None:
    run([sys.executable, str(example)], tmp_path)


@pytest.mark.slow
def test_demo(tmp_path: Path) -> None:
    picture = tmp_path / "accumulator.svg"
    demo = str(ROOT / "python/examples/demo.py")
    run([sys.executable, demo, "--quick", "--device", "cpu", "--picture", str(picture)], tmp_path)
    assert picture.read_text().startswith("<svg")


def test_examples_are_short() -> None:
    for example in EXAMPLES:
        assert len(example.read_text().splitlines()) <= 90, name(example)


def test_passes_are_named_once_in_order() -> None:
    """Each row of lowering/passes.def: in the table of the docs, and with its sentence in the help of tw-opt."""
    source = (ROOT / "lowering/passes.def").read_text()
    passes = re.findall(r'^TW_PASS\(.*?"(tile-[a-z0-9-]+)".*?"(.*?)"\)$', source, re.MULTILINE | re.DOTALL)
    table = (ROOT / "docs/design/lowering.md").read_text()
    rows = re.findall(r"^\|[^|]*\| `(tile-[a-z0-9-]+)` \| (.*?) \|", table, re.MULTILINE)
    assert rows == passes and len(dict(passes)) == len(passes)
    tw_opt = Path(os.environ.get("TW_BIN", ROOT / "build/dev/bin")) / "tw-opt"
    if not tw_opt.exists():
        pytest.skip("needs build/dev/bin/tw-opt")
    told = subprocess.run([tw_opt, "--help"], capture_output=True, text=True, check=True).stdout
    for name, sentence in passes:
        assert re.search(rf"--{name} +- +{re.escape(sentence)}", told), name


def test_parts_of_passes_are_named() -> None:
    """The file of each pass, and those beside it to which it gives a kernel: in the docs, and each names its pass."""
    table = (ROOT / "docs/design/lowering.md").read_text()
    rows = re.findall(r"^\|.*\| `(tile-[a-z0-9-]+)` \|.*\| (`lowering/[^|]*) \|$", table, re.MULTILINE)
    of_pass = {name: re.findall(r"`([^`]+)`", files) for name, files in rows}
    assert of_pass["tile-qualify-accesses"][1:] == ["cache_hints", "relax_atomics"]
    for name, (first, *parts) in of_pass.items():
        for part in [Path(first).stem, *parts]:
            [file] = [*(ROOT / first).parent.glob(f"{part}.c")] or (ROOT / first).parent.glob(f"*/{part}.c")
            assert name in file.read_text().partition("*/")[0], (name, part)


def test_a_gpu_has_at_most_thirty_passes() -> None:
    """Of our own: the next one takes another's place. A reader holds so many in the head."""
    rows = re.findall(r"^TW_PASS\(\w+, (\w+), ", (ROOT / "lowering/passes.def").read_text(), re.MULTILINE)
    assert 0 < len([targets for targets in rows if targets in ("GPU", "ALL")]) <= 30


@pytest.mark.parametrize("room", sorted({p.parent for p in (ROOT / "lowering").glob("*/**/*.c")}), ids=name)
def test_rooms_say_what_is_in_them(room: Path) -> None:
    """In at most fifteen lines, each file, and passes in running order. The page of isa has the generations, too."""
    page = room / "README.md" if (room / "README.md").exists() else room.parent / "README.md"
    text = page.read_text()
    assert len(text.splitlines()) <= 15
    missing = [
        path.stem for path in room.glob("*.c") if not re.search(rf"`[^`]*\b{path.stem}\b[^`]*`", pass_files(text))
    ]
    assert not missing
    running = re.findall(r'"(tile-[a-z0-9-]+)"', (ROOT / "lowering/passes.def").read_text())
    named = re.findall(r"`(tile-[a-z0-9-]+)`", text)
    assert named == sorted(named, key=running.index)


def pass_files(text: str) -> str:
    """With the file of each pass beside it, which has its name."""
    return re.sub(r"`tile-([a-z0-9-]+)`", lambda match: f"`{match.group(1).replace('-', '_')}`", text)


def test_the_glossary_names_what_there_is() -> None:
    """Each name in code spans, paths aside, is a word of some source; first pages link here."""
    glossary = (ROOT / "docs/glossary.md").read_text()
    folders = ("dialect", "include", "lowering", "python", "runtime")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in SOURCES]
    source = "\n".join(path.read_text() for path in files)
    names = {name for name in re.findall(r"`([^`]+)`", glossary) if "/" not in name}
    missing = [name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", source)]
    assert not [name for name in missing if f'"{name.removeprefix("tile.")}"' not in source]
    for page in ("README.md", "CONTRIBUTING.md", "docs/README.md", "lowering/gpu/README.md"):
        assert re.search(r"\]\([\w./]*glossary\.md\)", (ROOT / page).read_text()), page


def test_heads_of_passes_have_no_figures() -> None:
    """Speeds that were measured have a date and a device: docs/design/measurements.md."""
    heads = {path: path.read_text().partition("*/")[0] for path in (ROOT / "lowering/gpu").rglob("*.[ch]")}
    found = [name(path) for path, head in heads.items() if re.search(r"H200|cuBLAS|cuDNN|\d (us|µs|TFLOP)", head)]
    assert not found


def test_options_are_all_named() -> None:
    from tilewright import hints

    text = (ROOT / "docs/options.md").read_text()
    variables = {
        name
        for folder in ("python/tilewright", "runtime")
        for path in (ROOT / folder).rglob("*.[pc]*")
        if path.suffix in (".py", ".c")
        for name in re.findall(r"TILEWRIGHT_[A-Z]+(?:_[A-Z]+)*", path.read_text())
    }
    missing = [name for name in (*hints.NAMES, *hints.OF_TILES, *sorted(variables)) if f"`{name}" not in text]
    assert not missing


def test_the_api_reference_is_what_exists() -> None:
    """Names, signatures, docstrings, and what each example prints (tools/api.py)."""
    run([sys.executable, str(ROOT / "tools/api.py"), "check"], ROOT)


def test_the_contract_of_numbers_is_what_the_tests_hold() -> None:
    run([sys.executable, str(ROOT / "tools/contract.py"), "check"], ROOT)


def test_the_picture_of_hopper_is_the_script_s() -> None:
    made = subprocess.run([sys.executable, ROOT / "tools/draw_hopper.py"], capture_output=True, text=True, check=True)
    assert made.stdout == (ROOT / "docs/hopper.svg").read_text()


HOPPER_GEMM = [*(f"{name}=bf16[?,?]" for name in "ABC"), "TM=128", "TN=256", "TK=64"]


def test_a_gemm_is_decided_in_ten_files() -> None:
    """The tour goes through at most so many files on Hopper: each is there, and the pass beside it changes the IR."""
    text = (ROOT / "docs/tour.md").read_text().partition("## The same on Hopper")[2]
    rows = re.findall(r"^\| (\d+) \| `([^`]+)` \| [^|]+ \| (?:`([\w-]+)`)? ?\|$", text, re.MULTILINE)
    assert [int(number) for number, _, _ in rows] == list(range(1, len(rows) + 1)) and 5 <= len(rows) <= 10
    assert all((ROOT / file).is_file() for _, file, _ in rows)
    kernel = cli.load_kernel(f"{ROOT}/python/examples/matmul.py:matmul")
    key = cli.specialization(kernel, HOPPER_GEMM)
    names = [name for _, name, _ in _core.passes("sm_90a")]
    for stop in {stop for _, _, stop in rows if stop in names}:
        before = names[names.index(stop) - 1] if names.index(stop) else "tile"
        assert cli.lower(kernel, key, "sm_90a", before) != cli.lower(kernel, key, "sm_90a", stop), stop
    assert {stop for _, _, stop in rows if stop} <= {*names, "nvvm"}
