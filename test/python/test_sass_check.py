"""tools/check_sass.py: finds each kind of wrong code, and none in the kernels of this repository, by any ptxas."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from sasscheck import barriers, check, flow, listing, products, ptx
from sasscheck.listing import Instruction, Kernel

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "test/data/sass"
VERSIONS = check.assemblers()
needs_ptxas = pytest.mark.skipif(not VERSIONS, reason="needs the assemblers of tools/ptxas.txt: make build/stamp/ptxas")


def of(text: str) -> frozenset[str]:
    """R24-R27 UR4: the registers."""
    found: set[str] = set()
    for part in text.split():
        kind, first, last = re.fullmatch(r"([A-Z]+)(\d+)(?:-R(\d+))?", part).groups()  # type: ignore[union-attr]
        found |= {f"{kind}{n}" for n in range(int(first), int(last or first) + 1)}
    return frozenset(found)


def kernel(*rows: str) -> Kernel:
    """Of instructions, `@guard opcode operands | reads | writes`, and labels, `.L_x_1:`."""
    code: list[Instruction] = []
    labels: dict[str, int] = {}
    for row in rows:
        if row.endswith(":"):
            labels[row[:-1]] = len(code)
            continue
        text, reads, writes = (part.strip() for part in (row + "||").split("|")[:3])
        guard, opcode, operands = re.fullmatch(r"(@\S+ )?(\S+) ?(.*)", text).groups()  # type: ignore[union-attr]
        code.append(Instruction(16 * len(code), opcode, operands, (guard or "").strip(), of(reads), of(writes)))
    return Kernel("k", code, labels)


SUM, OPERAND = "R24-R27", "R88-R91"
START = f"HGMMA.64x8x16.F32 R24, R88, gdesc[UR16], R24, gsb0 | {SUM} {OPERAND} | {SUM}"
OPEN = START.replace(", gsb0", "")
ALL, ONE = "WARPGROUP.DEPBAR.LE gsb0, 0x0", "WARPGROUP.DEPBAR.LE gsb0, 0x1"
READ, NEXT = "FADD R4, R5, R27 | R5 R27 | R4", "LDSM.16.M88.4 R88, [R16] | R16 | R88-R91"
OTHER = START.replace("24", "32").replace("27", "35").replace("88", "92").replace("91", "95")
FLIGHT = {
    "waited for": ([START, ALL, READ, NEXT], set()),
    "read before the wait": ([START, READ, ALL], {"accumulator"}),
    "of a group that is not closed": ([OPEN, ALL, READ], {"accumulator"}),
    "the wait leaves another group": ([START, OTHER, ONE, READ], set()),
    "the wait leaves this group": ([OTHER, START, ONE, READ], {"accumulator"}),
    "operand loaded under the product": ([START, NEXT, ALL], {"operand"}),
    "sum set under the product": ([START, "MOV R24, RZ || R24", ALL], {"accumulator"}),
    "chained": ([OPEN, START, ALL, READ], set()),
    "a sum as operand": ([START, OPEN.replace("R88", "R24").replace(OPERAND, "")], {"accumulator"}),
    "waited for on one way only": (["@P0 BRA `(.L_x_1)", START, ".L_x_1:", "NOP", READ], {"accumulator"}),
    "waited for by some": ([START, "@P0 " + ALL, READ], {"accumulator"}),
}


@pytest.mark.parametrize("name", FLIGHT)
def test_products_under_way(name: str) -> None:
    rows, kinds = FLIGHT[name]
    code = kernel(*rows, "EXIT")
    assert {f.kind for f in products.check_flight(code, flow.sass_graph(code))} == kinds


@pytest.mark.parametrize("pending, kinds", [("0x0", set()), ("0x1", {"operand"})])
def test_the_next_iteration_loads_under_the_product(pending: str, kinds: set[str]) -> None:
    code = kernel(".L_x_1:", NEXT, START, f"WARPGROUP.DEPBAR.LE gsb0, {pending}", "@P0 BRA `(.L_x_1)", ALL, "EXIT")
    assert {f.kind for f in products.check_flight(code, flow.sass_graph(code))} == kinds


@pytest.mark.parametrize("rows, found", [(["NOP", NEXT, "WARPGROUP.ARRIVE"], 0), (["WARPGROUP.ARRIVE", NEXT], 1)])
def test_operands_written_behind_the_fence(rows: list[str], found: int) -> None:
    code = kernel(*rows, START, ALL, "EXIT")
    assert len(list(products.check_fences(code, flow.sass_graph(code)))) == found


def written_at(*rows: str) -> set[int]:
    """Where the value of R8 comes from, before the last instruction."""
    graph = flow.sass_graph(kernel(*rows))
    return graph.roots(len(graph.steps) - 1, "R8")


def test_values_are_followed() -> None:
    spilled = ["LDG R8, [R2] | R2 | R8", "STL.64 [R1+0x10], R8 | R1 R8 R9 |", "FADD R8, R3, R3 | R3 | R8"]
    assert written_at(*spilled, "LDL R8, [R1+0x10] | R1 | R8", "EXIT") == {0}
    assert written_at(*spilled, "LDL R8, [R1+0x14] | R1 | R8", "EXIT") == {flow.ENTRY}
    assert written_at("FADD R7, R3, R3 | R3 | R7", "IMAD.MOV.U32 R8, RZ, RZ, R7 | R7 | R8", "EXIT") == {0}
    halves = ["LDS R8, [R2] | R2 | R8", "@P0 FADD R8, R3, R3 | R3 P0 | R8", "@!P0 MOV R8, RZ | P0 | R8"]
    assert written_at(*halves, "EXIT") == {1, 2}
    assert written_at(*halves[:2], "ISETP.EQ P0, PT, R2, RZ, PT | R2 | P0", halves[2], "EXIT") == {0, 1, 3}
    loop = [".L_x_1:", "NOP", "FADD R8, R8, R3 | R8 R3 | R8", "@P0 BRA `(.L_x_1)"]
    assert written_at("LDS R8, [R2] | R2 | R8", *loop) == {2}


def test_constants_are_values() -> None:
    rows = ["CS2R R8, SRZ", "MOV R8, 0x3f800000", "HFMA2.MMA R8, -RZ, RZ, 1.875, 0", "MOV R8, R9"]
    assert [flow.constant(kernel(row).instructions[0]) for row in rows] == [0, 0x3F800000, 0x3F800000, None]


PTX = """.visible .entry k() .reqntid 160
{{
{body}
}}
"""


def entry(*lines: str) -> ptx.Entry:
    return ptx.read(PTX.format(body="\n".join(lines)))["k"]


def test_operands_of_ptx() -> None:
    found = entry(
        "mov.b32 %r1, 0;",  # line 3
        "mov.b32 %r2, 0; $loop:",
        "{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared.b64 p, [%r9], 0;",
        "@p bra DONE; bra AGAIN; DONE: }",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, %rd1, 1, 1, 1, 0;",
        "cvt.rn.f16x2.f32 %r5, %f1, %f2;",  # line 8
        "mov.b32 %r1, %r5;",
        "@%p1 bra $loop;",
    )
    (product,) = found.products
    assert product.operands == ({"0x0", "line 8"}, {"0x0"}, {"nothing"}, {"nothing"})


@pytest.mark.parametrize("operand, found", [("%f4", 1), ("%r4", 0)])
def test_a_sum_is_no_operand_of_its_product(operand: str, found: int) -> None:
    sums = "{%f1,%f2,%f3,%f4}"
    product = f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {sums}, {{%r1,%r2,%r3,{operand}}}, %rd1, 1, 1, 1, 0;"
    assert len(list(products.check_sums(entry(product)))) == found


INIT = ["mov.b32 %r1, shared;", "add.s32 %r2, %r1, 64;", "mbarrier.init.shared.b64 [%r2], 1;", "bar.sync 0;"]
SLOT = ["shl.b32 %r8, %r9, 3;", "add.s32 %r3, %r1, %r8;", "add.s32 %r4, %r3, 64;"]
WAITS, ARRIVES = "mbarrier.try_wait.parity.shared.b64 %p1, [%r4], 0;", "mbarrier.arrive.shared.b64 _, [%r3+64];"
BARRIERS = {
    "": [*INIT, *SLOT, WAITS, ARRIVES, "bar.sync 1, 128;", "bar.arrive 2, 64;", "bar.sync 2, 64;"],
    "but no arrive": [*INIT, *SLOT, WAITS],
    "but no wait": [*INIT, *SLOT, ARRIVES],
    "no mbarrier is initialized at [72]": [*INIT, *SLOT, WAITS, ARRIVES.replace("64]", "72]"), ARRIVES],
    "may run before": [*INIT[:-1], *SLOT, WAITS, "bar.sync 0;", ARRIVES],
    "waits for 256 of 160 threads": ["bar.sync 1, 256;"],
    "waits for 100 of 160 threads": ["bar.sync 1, 100;"],
    "has 64 threads here and 128": ["bar.sync 1, 128;", "bar.arrive 1, 64;"],
    "nobody waits at barrier 3": ["bar.arrive 3, 64;", "bar.sync 2, 64;"],
    "nothing waits for it": ["cp.async.cg.shared.global [%r1], [%rd1], 16;", "cp.async.commit_group;"],
    "no group that it is in is closed": ["cp.async.wait_group 0;", "cp.async.cg.shared.global [%r1], [%rd1], 16;"],
}


@pytest.mark.parametrize("reason", BARRIERS)
def test_barriers(reason: str) -> None:
    found = [f.reason for f in barriers.check_barriers(entry(*BARRIERS[reason]))]
    assert len(found) == bool(reason) and all(reason in text for text in found)


@pytest.mark.parametrize(
    "line, kind, about",
    [
        (
            "(C7510) Potential Performance Loss: instructions are serialized due to x",
            "serialized",
            "C7510",
        ),
        ("0 bytes stack frame, 8 bytes spill stores, 16 bytes spill loads", "spill", "8 bytes stored, 16 bytes loaded"),
    ],
)
def test_what_ptxas_says(line: str, kind: str, about: str) -> None:
    (found,) = check.check_log(f"ptxas info    : Function properties for k\n    {line}\n")
    assert found.kernel == "k" and found.kind == kind and about in found.reason


def test_life_ranges_are_read() -> None:
    table = listing.Table()
    for row in ("---+---", "      GPR    |  PRED  |", "      0011   |        |", "    # 8901   | # 01   |"):
        table.header(row)
    assert table.row("    2 v^ x   | 1 :^   |") == (of("R8 R11"), of("R9 R11 P1"))


@needs_ptxas
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name, kind", [("operand_overwritten", "stale"), ("sum_read_early", "accumulator")])
def test_wrong_code_is_found(name: str, kind: str, version: str) -> None:
    report = check.check_ptx((DATA / f"{name}.ptx").read_text(), VERSIONS[version], check.tool("nvdisasm"))
    assert {f.kind for f in report.wrong} == (set() if kind == "stale" and version > "13.1" else {kind})


@needs_ptxas
def test_modules_that_are_checked_together() -> None:
    wrong = (DATA / "sum_read_early.ptx").read_text()
    right = (DATA / "operand_overwritten.ptx").read_text().replace("wgmma.mma_async", "// wgmma.mma_async")
    tools = VERSIONS["13.0.88"], check.tool("nvdisasm")
    first, second, third = check.check_together([right, wrong, right], *tools)
    assert (first, third) == (None, None)
    assert second is not None and second.findings == check.check_ptx(wrong, *tools).findings != []


@needs_ptxas
def test_the_command_says_what_is_wrong() -> None:
    path = DATA / "sum_read_early.ptx"
    done = run(str(path))
    assert done.returncode == 1
    assert f"{path}, ptxas 13.0.88: 4 products" in done.stdout
    assert "HADD2" in done.stdout and "to which a product under way adds" in done.stdout


def run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools/check_sass.py"), *options]
    return subprocess.run(command, capture_output=True, text=True)


# What is known to run one product after the other: slower, and right. CUDA 12.8 does so where sums start at zero.
SERIALIZED = r"quantized linear, 4 bits|swiglu 0 split_k=2|two warpgroups 0 slice_tiles=2|ptxas 12\.8"
PARTS = 4  # to share between processes of pytest


def assert_right(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"[1-9]\d* plans checked", done.stdout)


def titles_of(output: str, kind: str) -> set[str]:
    """The programs with findings of a kind."""
    found, title = set(), ""
    for line in output.splitlines():
        title = line if not line.startswith(" ") else title
        if f": {kind}:" in line:
            found.add(title)
    return found


@needs_ptxas
@pytest.mark.parametrize("part", range(PARTS))
def test_kernels_for_hopper(part: int) -> None:
    done = run("--corpus", "sm_90a", "--part", f"{part}/{PARTS}")
    assert_right(done)
    assert [title for title in titles_of(done.stdout, "serialized") if not re.search(SERIALIZED, title)] == []


@needs_ptxas
@pytest.mark.parametrize("target", ["sm_80", "sm_89"])
def test_kernels_for_others(target: str) -> None:
    assert_right(run("--corpus", target, "--ptxas", "13.0.88"))


@needs_ptxas
def test_language_programs() -> None:
    assert_right(run("--random", "10", "--ptxas", "13.0.88"))
