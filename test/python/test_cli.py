"""The command `tilewright`, and the pictures of layouts."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

from tilewright import cli, picture
from tilewright import tile as ct
from tilewright.errors import TileValueError

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "python" / "examples"
ACCUMULATOR = (
    "tensor<16x8xf32, #tile.linear<register = [[0, 1], [8, 0]], "
    "lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>>"
)
MATMUL = [f"{EXAMPLES / 'matmul.py'}:matmul"]
for text in ("A=f16[?,?]", "B=f16[?,?]", "C=f16[?,?]", "TM=128", "TN=128", "TK=32"):
    MATMUL += ["--arg", text]


# --- pictures --------------------------------------------------------------------------------------------------------


def test_owners_of_an_mma_accumulator() -> None:
    layout = picture.parse_layout(ACCUMULATOR)
    owners = layout.owners()
    assert len(owners) == 16 * 8
    assert owners[0, 0] == [{"register": 0, "lane": 0}]
    assert owners[0, 1] == [{"register": 1, "lane": 0}]
    assert owners[8, 0] == [{"register": 2, "lane": 0}]
    assert owners[3, 5] == [{"register": 1, "lane": 3 * 4 + 2}]


def test_replicated_elements_have_several_owners() -> None:
    layout = picture.parse_layout("tensor<2x2xf32, #tile.linear<register = [[0, 1]], lane = [[1, 0], [0, 0]]>>")
    assert layout.owners()[1, 0] == [{"register": 0, "lane": 1}, {"register": 0, "lane": 3}]


def test_buffer_layout_covers_one_slot() -> None:
    layout = picture.parse_layout("!tile.buffer<3x2x4xf32, #tile.linear<offset = [[0, 1], [0, 2], [1, 0]]>>")
    assert layout.shape == (2, 4)
    assert layout.is_shared


def row_major(rows: int, columns: int, swizzled: bool) -> picture.Layout:
    vectors = [(0, 1 << bit) for bit in range(columns.bit_length() - 1)]
    vectors += [(1 << bit, 8 << bit if swizzled and bit < 3 else 0) for bit in range(rows.bit_length() - 1)]
    return picture.Layout((rows, columns), "bf16", {"offset": tuple(vectors)})


def test_swizzle_is_free_of_conflicts() -> None:
    assert picture.ldmatrix_passes(row_major(32, 64, swizzled=False)) == 8
    assert picture.ldmatrix_passes(row_major(32, 64, swizzled=True)) == 1


def test_svg_shows_lane_and_register(tmp_path: Path) -> None:
    path = picture.write(picture.parse_layout(ACCUMULATOR), tmp_path / "a.svg", "accumulator")
    tree = ElementTree.parse(path)
    texts = [node.text for node in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("T0") == 4
    assert "accumulator" in texts


def test_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = picture.write(picture.parse_layout(ACCUMULATOR), tmp_path / "a.png")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_layouts_of_a_module_follow_aliases() -> None:
    text = """#linear = #tile.linear<register = [[1]], lane = [[2], [4]]>
    %0 = tile.iota : tensor<8xi32, #linear>
    %1 = arith.addi %0, %0 : tensor<8xi32, #linear>
    tile.store %1, %arg0[%c0] : tensor<8xi32, #linear>, memref<?xi32>
"""
    assert [line for line, _ in picture.layouts_of(text)] == ["%0 = tile.iota", "%1 = arith.addi %0, %0"]


def test_the_layout_of_a_line_is_its_result(tmp_path: Path) -> None:
    text = """#a = #tile.linear<register = [[0, 1]], lane = [[1, 0]]>
    %2 = tile.mma %0, %1, %acc : tensor<2x2xf16, #a>, tensor<2x2xf16, #a>, tensor<2x2xf32, #a>
    %3 = arith.truncf %2 : tensor<2x2xf32, #a> to tensor<2x2xbf16, #a>
    %4 = tile.alloc_shared : <4x2x2xf16, #tile.linear<offset = [[0, 1], [1, 0]]>>
"""
    assert [layout.element for _, layout in picture.layouts_of(text)] == ["f32", "bf16", "f16"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tensor<4xf32>", r"no layout in .* expected a type such as tensor<4x2xf32"),
        ("tensor<4xf32, #tile.linear<thread = [[1], [2]]>>", "unknown group 'thread'"),
    ],
)
def test_bad_layout_text(text: str, message: str) -> None:
    with pytest.raises(TileValueError, match=message):
        picture.parse_layout(text)


def test_picture_needs_a_known_ending(tmp_path: Path) -> None:
    with pytest.raises(TileValueError, match=r"must end in \.svg or \.png"):
        picture.write(picture.parse_layout(ACCUMULATOR), tmp_path / "a.bmp")


# --- arguments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A=f16[?,?]", ("A", ("array", "float16", 2, 16, (16, 16), ((0, 64), (1, 1)), True, True))),
        ("A=f16[?,4104]", ("A", ("array", "float16", 2, 16, (16, 1), ((0, 8), (1, 1)), True, True))),
        ("A=f32[1000,777]", ("A", ("array", "float32", 2, 16, (1, 1), ((0, 1), (1, 1)), True, False))),
        ("A=bf16[?,?]unaligned", ("A", ("array", "bfloat16", 2, 1, (1, 1), ((0, 1), (1, 1)), True, False))),
        ("x=f32[]", ("x", ("array", "float32", 0, 16, (), (), True, False))),
        ("n=i32", ("n", ("scalar", "int32", 1))),
        ("n=i32|16", ("n", ("scalar", "int32", 16))),
        ("TM=128", ("TM", ("const", 128))),
        ("scale=0.125", ("scale", ("const", 0.125))),
        ("flag=True", ("flag", ("const", True))),
    ],
)
def test_argument(text: str, expected: object) -> None:
    assert cli.parse_argument(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A", "expected NAME=dtype"),
        ("A=f17[?]", "unknown dtype 'f17'; there are bf16"),
        ("A=f16[x]", "the extent 'x' is neither a number nor"),
        ("n=f32|16", "neither a dtype .* nor a constant"),
        ("n=i32|8", "neither a dtype .* nor a constant"),
        ("A=spam eggs", "neither a dtype .* nor a constant"),
    ],
)
def test_bad_argument(text: str, message: str) -> None:
    with pytest.raises(TileValueError, match=message):
        cli.parse_argument(text)


VECTOR_ADD = [*(f"--arg={name}=f32[?]" for name in "ABC"), "--arg=T=64"]


@ct.kernel
def stored(X, value: ct.Constant):
    ct.store(X, 0, ct.full((16,), value, ct.float32))


# --- commands --------------------------------------------------------------------------------------------------------


def tilewright(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tilewright", *arguments]
    environment = {"PYTHONPATH": str(ROOT / "python"), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment)


@pytest.mark.parametrize(
    ("target", "stage", "expected"),
    [
        ("sm_90a", "tile", r"tile\.mma"),
        ("sm_90a", "legal", r"tile\.load"),
        ("sm_90a", "layout", r"#tile\.linear"),
        ("sm_90a", "tile-select-mma", r'tile\.mma .*tile\.family = "wgmma", .*places = "ss"(?![\s\S]*#tile\.linear)'),
        ("sm_90a", "tile-promote-memory", r"tile\.async_copy(?![\s\S]*tile\.roles)"),
        ("sm_90a", "pipelined", r"tile\.tma_load"),
        ("sm_90a", "nvvm", r"nvvm\."),
        ("sm_90a", "llvm", r"llvm\.func"),
        ("sm_90a", "ptx", r"\.target sm_90a[\s\S]*wgmma\.mma_async"),
        ("sm_80", "ptx", r"\.target sm_80[\s\S]*mma\.sync"),
        ("cpu", "vector", r"vector\."),
        ("cpu", "llvm", r"llvm\.func"),
        ("cpu", "asm", r"\.globl\s+matmul[\s\S]*\bmovq\b[\s\S]*\bretq\b"),
    ],
)
def test_compile_prints_each_stage(target: str, stage: str, expected: str) -> None:
    done = tilewright("compile", *MATMUL, "--target", target, "--emit", stage)
    assert done.returncode == 0, done.stderr
    assert re.search(expected, done.stdout), done.stdout[:2000]


def test_compile_writes_a_file_with_remarks(tmp_path: Path) -> None:
    target = tmp_path / "matmul.ptx"
    done = tilewright("compile", *MATMUL, "--emit", "ptx", "--remarks", "-o", str(target))
    assert done.returncode == 0, done.stderr
    assert ".entry" in target.read_text()
    assert re.search(r"\^{10,}\n(.*\n)? +the load moves 128x32xf16 by TMA", done.stderr), done.stderr
    assert "the product runs as wgmma m64n" in done.stderr
    alone = tilewright("compile", *MATMUL, "--remarks")
    assert (alone.returncode, alone.stdout, alone.stderr) == (0, "", done.stderr)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compile", "nothing.py:f"], "there is no file 'nothing.py'"),
        (["compile", "matmul"], "expected FILE:KERNEL"),
        (["compile", f"{EXAMPLES / 'matmul.py'}:spam"], "has no kernel 'spam'; it has matmul"),
        (["compile", *MATMUL[:3]], "say what B, C, TM, TN, TK is"),
        (["compile", *MATMUL, "--arg", "X=1"], "has no parameter 'X'; it has A, B, C, TM, TN, TK"),
        (["compile", *MATMUL, "--emit", "tile", "--remarks"], "--remarks needs a later stage than tile"),
        (["compile", ":k"], "expected FILE:KERNEL"),
        (["compile", "matmul.py:"], "expected FILE:KERNEL"),
        (["compile", "nosuch:k"], "'nosuch' is neither a file that ends in .py nor a module"),
        (["compile", "/etc/passwd:k"], "'/etc/passwd' is neither a file that ends in .py nor a module"),
        (["compile", *MATMUL, "-o", "/nonexistent/x"], "'/nonexistent/x' lies in '/nonexistent', which is no folder"),
        (["compile", *MATMUL, "-o", "/tmp"], "the output '/tmp' is a folder"),
        (["compile", *MATMUL, "--arg", "TM=64"], "--arg TM=… is given 2 times"),
        (["compile", *MATMUL, "--emit", "asm"], "target sm_90a has no stage 'asm'; it has tile, legal"),
    ],
)
def test_errors_say_what_to_do(arguments: list[str], message: str) -> None:
    done = tilewright(*arguments)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(:\n", 'bad.py", line 1'),
        ("x = 1\nprint(y)\n", 'bad.py", line 2, in <module>'),
        ("import nosuch\n", "No module named 'nosuch'"),
    ],
)
def test_a_file_that_does_not_run(text: str, message: str, tmp_path: Path) -> None:
    """The user's own line, and none of ours."""
    (tmp_path / "bad.py").write_text(text)
    done = tilewright("compile", f"{tmp_path / 'bad.py'}:f")
    assert done.returncode == 1
    assert "bad.py does not run:" in done.stderr and message in done.stderr
    assert "tilewright/cli.py" not in done.stderr and "importlib" not in done.stderr


def test_what_a_file_prints_is_not_in_the_output(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text("print('loud')\n" + (EXAMPLES / "vector_add.py").read_text())
    done = tilewright("compile", f"{tmp_path / 'loud.py'}:vector_add", *VECTOR_ADD, "--emit", "ptx")
    assert "loud" not in done.stdout and "loud\n" in done.stderr, done.stderr


def test_version() -> None:
    assert tilewright("--version").stdout.startswith("tilewright ")


def test_layout_lists_and_draws(tmp_path: Path) -> None:
    listed = tilewright("layout", *MATMUL)
    assert listed.returncode == 0, listed.stderr
    assert "tile.mma" in listed.stdout
    path = tmp_path / "accumulator.svg"
    drawn = tilewright("layout", *MATMUL, "--value", "mma", "-o", str(path))
    assert drawn.returncode == 0, drawn.stderr
    assert "128x128 f32" in path.read_text()


def test_examples_from_anywhere(tmp_path: Path) -> None:
    """As the documentation names them; a file of that name that is there comes first."""
    command = ["compile", "python/examples/vector_add.py:vector_add", "--emit", "tile"]
    command += [f"--arg={text}" for text in ("A=f32[?]", "B=f32[?]", "C=f32[?]", "T=1024")]
    assert "func.func @vector_add" in tilewright(*command, cwd=tmp_path).stdout
    (tmp_path / "python/examples").mkdir(parents=True)
    (tmp_path / "python/examples/vector_add.py").write_text("")
    assert "has no kernel 'vector_add'" in tilewright(*command, cwd=tmp_path).stderr


def test_doctor_says_what_is_there() -> None:
    done = tilewright("doctor")
    assert re.search(r"ok\s+CPU back end\s+\S+, \d+ threads", done.stdout), done.stdout + done.stderr
    assert "disk cache" in done.stdout


def test_cache_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    x = np.zeros(16, np.float32)
    ct.launch(None, 1, stored, (x, float(np.random.default_rng().uniform(1, 9))))
    assert cli.main(["cache"]) == 0
    assert "1 entries" in capsys.readouterr().out
    assert cli.main(["cache", "clear"]) == 0
    assert cli.main(["cache"]) == 0
    assert "0 entries" in capsys.readouterr().out


def test_every_argument_has_help() -> None:
    [commands] = [action for action in cli.parser()._actions if isinstance(action.choices, dict)]
    silent = {
        f"{name}: {action.dest}"
        for name, parser in commands.choices.items()
        for action in parser._actions
        if not action.help
    }
    assert not silent
