"""The emulator shows what a plan does wrong with products under way.

The code of a plan, in LLVM IR, is broken: then it gives other numbers, or the emulator says what is wrong.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "emulator"))
sys.path.insert(0, str(Path(__file__).parent.parent / "random_products"))
import check
import emulate
from choices import choose
from numbers_of import NumPy
from registers import misused

from tilewright import compile as compiler
from tilewright.times import Times

FOLDERS = [str(Path(__file__).resolve().parent.parent / name) for name in ("emulator", "random_products", "python")]

pytestmark = pytest.mark.skipif(emulate.MISSING is not None, reason="the emulator compiles with clang")

GEMM = {
    "kind": "gemm", "seed": 1, "small": True, "dtype": "float16", "sum": "wide", "tile": (64, 64, 64), "left": "load",
    "right": "load", "loop": "for", "form": "mma", "grid": "plane", "before left": "none", "before right": "none",
    "held": False, "init": "zeros", "second": None, "after": "none", "out": "low", "store": "store", "data": "integers",
    "unit": 16, "size": (128, 128, 256, 1),
}  # fmt: skip
ATTENTION = {
    "kind": "attention", "seed": 1, "small": True, "dtype": "float16", "tile": (64, 64, 64), "keys": "rows",
    "values": "rows", "place": "heads first", "loop": "step", "form": "zeros", "scale": "wide", "mask": "causal",
    "score": "softmax", "base": "exp2", "init": "-1e30", "early values": False, "end": "divide", "vectors": False,
    "grid": "plane", "groups": 1, "bias": "none", "lse": False, "unit": 64, "size": (256, 2),
}  # fmt: skip
PLANS = {
    "sums carried over": GEMM,
    "sums of float16": GEMM | {"sum": "float16", "form": "zeros"},
    "sums of integers": GEMM | {"dtype": "int8", "out": "sum"},
    "left operand written by threads": GEMM | {"before right": "bytes", "num_stages": 1},
    "operands that do not fit twice": GEMM | {"small": False, "tile": (64, 64, 512), "size": (64, 64, 1024, 1)},
    "left operand in registers": ATTENTION,
    "left operands in registers, sums of float16": {
        **GEMM, "sum": "float16", "right": "T", "loop": "reversed", "grid": "persistent while", "before left": "wide",
        "second": "both", "out": "sum", "store": "rows", "data": "normal", "num_warps": 4, "size": (128, 128, 208, 1),
    },
    "right operand in registers, sums of float16": {
        **GEMM, "sum": "float16", "tile": (64, 128, 32), "left": "transpose", "loop": "step", "before right": "wide",
        "out": "sum", "size": (56, 155, 116, 1),
    },
}  # fmt: skip
CONVERTED = {  # beside a product that reads what threads wrote, the left operand of the next goes through shared memory
    **GEMM, "small": False, "tile": (128, 64, 64), "left": "flat", "right": "table", "loop": "two", "out": "sum",
    "size": (112, 64, 192, 1),
}  # fmt: skip
SUMS_THAT_WRAP = {
    **GEMM, "dtype": "uint8", "tile": (64, 128, 64), "after": "relu", "out": "sum", "store": "rows",
    "size": (64, 512, 1024, 1),
}  # fmt: skip
WAIT = re.compile(r'%(\S+) = call (\{[^\n]*?\}) asm sideeffect "wgmma\.wait_group[^\n]*?"\(([^\n]*?)\)')


def fewer_waits(text: str) -> str:
    """Each wait leaves one product more under way."""
    return re.sub(r"wgmma\.wait_group\.sync\.aligned (\d)", lambda m: m[0][:-1] + str(int(m[1]) + 1), text)


def early_uses(text: str) -> str:
    """What a wait gives is taken from what it is given."""
    for wait in WAIT.finditer(text):
        given = wait[3].split(", ")
        use = re.compile(rf"= extractvalue {re.escape(wait[2])} %{wait[1]}, (\d+)$", re.M)
        text = use.sub(lambda m, given=given: f"= bitcast {given[int(m[1])]} to {given[int(m[1])].split()[0]}", text)
    return text


def not_committed(text: str) -> str:
    return text.replace("wgmma.commit_group.sync.aligned;", "")


def no_fences(text: str) -> str:
    """What threads store is not shown to what runs by itself."""
    return text.replace("fence.proxy.async.shared::cta;", "fence.acq_rel.cta;")


FAULTS = {fault.__name__: fault for fault in (fewer_waits, early_uses, not_committed)}


def outcome(choices: dict[str, object], fault: str | None) -> str:
    """What a program gives, in a process of its own: right, wrong, or what the emulator says."""
    code = f"""
import sys, tempfile
from pathlib import Path
sys.path[:0] = {FOLDERS!r}
import emulate
emulate.TARGET = "sm_90a"
emulate.install()
from check import check
from test_emulated_products import FAULTS, no_fences
FAULTS["no_fences"] = no_fences
build = emulate.shared_object
def broken(text, *rest):
    new = FAULTS[{fault!r}](text) if {fault!r} else text
    assert "wgmma" in text and (new != text or not {fault!r}), "there is nothing to break"
    return build(new, *rest)
emulate.shared_object = broken
with tempfile.TemporaryDirectory() as folder:
    found = check({choices!r}, "cpu", Path(folder))
print(found.kind if found.kind in ("right", "wrong") else found.text)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    return done.stdout.strip() if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def ptx_of(choices: dict[str, object], tmp_path: Path) -> str:
    program, numbers = check.program_of(choices), NumPy(0)
    kernel = check.kernel_of(program.source(""), tmp_path)
    arguments, outputs = program.prepare(numbers)
    _, key = kernel.specialization((*arguments, *check.fresh(numbers, outputs)))
    built = compiler.build(kernel.capture("sm_90a", key), "sm_90a", "kernel", Times("kernel", "sm_90a"))
    return built.code.rstrip(b"\0").decode()


@pytest.mark.parametrize("plan", PLANS)
def test_registers_of_broken_plans(plan: str, tmp_path: Path) -> None:
    """The PTX of plans leaves registers of products alone until the wait; without the waits it does not."""
    ptx = ptx_of(PLANS[plan], tmp_path)
    assert "wgmma.mma_async" in ptx
    assert misused(ptx) == []
    assert any("the sum of a product under way" in finding for finding in misused(fewer_waits(ptx)))


def test_an_operand_that_is_overwritten(tmp_path: Path) -> None:
    """A register of a left operand is written between the product and its wait."""
    ptx = ptx_of(PLANS["left operand in registers"], tmp_path)
    operand = re.search(r"wgmma\.mma_async[^\n]*?\}, \{(%r\d+)", ptx)
    wait = "\twgmma.wait_group.sync.aligned 0;"
    assert operand and wait in ptx
    broken = ptx.replace(wait, f"\tmov.b32 {operand[1]}, 0;\n{wait}", 1)
    assert [f"writes {operand[1]} of a product under way" in finding for finding in misused(broken)] == [True]


def test_zeros_of_a_left_operand_are_not_those_of_the_sum(tmp_path: Path) -> None:
    """A product writes its sum before it has read all of its operands, which begin with the same number here."""
    choices = choose(23, "few")
    assert choices["loop"] == "remainder" and choices["dtype"] == "float16"
    ptx = ptx_of(choices, tmp_path)
    assert "{%r" in ptx and misused(ptx) == []


@pytest.mark.parametrize("plan", PLANS)
def test_whole_plans_are_right(plan: str) -> None:
    assert outcome(PLANS[plan], None) == "right"


def test_an_operand_stays_where_it_is_until_the_wait() -> None:
    """No conversion of a layout uses bytes that a product under way reads."""
    assert outcome(CONVERTED, None) == "right"


def test_sums_that_wrap_are_expected() -> None:
    choices = SUMS_THAT_WRAP
    _, outputs = check.program_of(choices).prepare(NumPy(0))
    assert abs(outputs[0].want).max() < 2.0**31
    assert outcome(choices, None) == "right"


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("plan", PLANS)
def test_broken_plans_show(plan: str, fault: str) -> None:
    found = outcome(PLANS[plan], fault)
    assert found == "wrong" or found.startswith("emulator: "), found


@pytest.mark.parametrize(
    "plan", ["left operand written by threads", "sums carried over"]
)  # read by products, by a store
def test_stores_without_a_fence_show(plan: str) -> None:
    assert "writes without a fence since" in outcome(PLANS[plan], "no_fences")
