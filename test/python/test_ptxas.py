"""The PTX of the examples assembles for each generation of chips, up to Hopper without spilling registers."""

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tilewright import cli, compile

EXAMPLES = Path(__file__).parents[2] / "python" / "examples"
TUNED = ("sm_80", "sm_89", "sm_90a")
CHIPS = (*TUNED, "sm_100a", "sm_120a")
MATRIX, HEADS = "bf16[?,?]", "bf16[?,?,?,128]"
MATMUL = [f"{name}={MATRIX}" for name in "ABC"]
ATTENTION = [f"{name}={HEADS}" for name in "QKVY"]
CORPUS = {
    "matmul 128x128x64": ("matmul", "matmul", [*MATMUL, "TM=128", "TN=128", "TK=64"]),
    "matmul 128x256x32": ("matmul", "matmul", [*MATMUL, "TM=128", "TN=256", "TK=32"]),
    "matmul fp8": ("matmul", "matmul", ["A=f8e4m3[?,?]", "B=f8e4m3[?,?]", "C=f16[?,?]", "TM=64", "TN=64", "TK=64"]),
    "matmul unaligned": ("matmul", "matmul", [f"{a}unaligned" for a in MATMUL] + ["TM=64", "TN=64", "TK=32"]),
    **{
        f"matmul {dtype} odd {tm}x{tn}x{tk}": (
            "matmul",
            "matmul",
            [f"A={dtype}[77,99]", f"B={dtype}[99,77]", "C=bf16[77,77]", f"TM={tm}", f"TN={tn}", f"TK={tk}"],
        )
        for dtype in ("bf16", "f8e4m3")
        for tm, tn, tk in ((64, 64, 64), (128, 256, 64), (128, 128, 128))
    },
    "attention": ("attention", "attention", [*ATTENTION, "SCALE=0.125", "TM=128", "TN=64", "D=128"]),
}

needs_ptxas = pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas on PATH")


def ptx_of(module_name: str, kernel_name: str, arguments: list[str], chip: str) -> bytes:
    spec = importlib.util.spec_from_file_location(module_name, EXAMPLES / f"{module_name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    key = tuple(cli.parse_argument(a)[1] for a in arguments)
    captured = compile.capture_kernel(getattr(module, kernel_name), chip, key)
    captured.module.lower("llvm")
    return captured.module.emit(compile.EMIT_ASSEMBLY)


@needs_ptxas
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", CORPUS)
def test_assembles(name: str, chip: str, tmp_path: Path) -> None:
    source = tmp_path / "kernel.ptx"
    source.write_bytes(ptx_of(*CORPUS[name], chip))
    command = ["ptxas", "-v", f"-arch={chip}", str(source), "-o", str(tmp_path / "kernel.cubin")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", done.stderr)
    assert chip not in TUNED or spills is None or spills.groups() == ("0", "0"), done.stderr


def test_matmul_uses_the_tensor_cores() -> None:
    ptx = ptx_of(*CORPUS["matmul 128x128x64"], "sm_80").decode()
    loop = ptx[ptx.index("mma.sync") : ptx.rindex("mma.sync")]
    assert ptx.count("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32") == 128
    assert ptx.count("ldmatrix.sync.aligned.m8n8.x4") == 32
    assert "bar.sync" not in loop and "barrier" not in loop


def test_matmul_uses_warpgroups_on_hopper() -> None:
    assert "wgmma.mma_async" in ptx_of(*CORPUS["matmul 128x128x64"], "sm_90a").decode()
