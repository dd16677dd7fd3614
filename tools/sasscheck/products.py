"""Asynchronous products: what they read and write stays theirs until the wait that covers them.

A warpgroup starts products (HGMMA and its kin), which read their left operand from registers or shared memory and
add to accumulators in registers while the threads run on. `gsb0` on the last one closes a group; groups end in their
order; `WARPGROUP.DEPBAR.LE gsb0, n` waits until at most n run. ptxas keeps these rules, or fails to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import ptx
from .findings import Finding
from .flow import ENTRY, Graph
from .listing import Instruction, Kernel

Group = tuple[int, int]  # accumulators, left operands: a bit a register
Flight = tuple[Group, ...]  # groups that run, then the one that is still open
NONE: Group = (0, 0)


def mask(registers: frozenset[str] | set[str] | list[str]) -> int:
    return sum(1 << int(r[1:]) for r in set(registers) if re.fullmatch(r"R\d+", r))


def names(bits: int) -> str:
    found = [f"R{n}" for n in range(bits.bit_length()) if bits >> n & 1]
    return found[0] if len(found) == 1 else f"{found[0]} to {found[-1]}"


def left_operand(product: Instruction) -> list[str]:
    """The registers that it is in; none: it is in shared memory."""
    found = re.match(r"R\d+, R(\d+)(?:\.reuse)?, gdesc", product.operands)
    return [f"R{int(found[1]) + n}" for n in range(4)] if found else []


def effect(i: Instruction) -> tuple[int, int]:
    """(accumulators, left operand) of a product."""
    return mask(i.writes), mask(left_operand(i))


def after(i: Instruction, flight: Flight) -> Flight:
    """What is under way behind an instruction."""
    *closed, (accumulators, operands) = flight
    if i.is_product:
        more, read = effect(i)
        last = accumulators | more, operands | read
        return (*closed, last, NONE) if "gsb0" in i.operands else (*closed, last)
    if i.matches("WARPGROUP.DEPBAR.LE") and not i.guard:
        pending = int(i.operands.split(", ")[-1], 0)
        closed = closed[len(closed) - pending :] if 0 < pending < len(closed) else closed if pending else []
    return (*closed, (accumulators, operands))


def conflicts(i: Instruction, flight: Flight) -> Iterator[tuple[str, str]]:
    """What an instruction does to registers of products under way: kind, reason."""
    reads, writes = mask(i.reads), mask(i.writes)
    for at, (accumulators, operands) in enumerate(flight):
        covered = "a group that no instruction has closed" if at == len(flight) - 1 else "no wait since then covers it"
        if i.is_product:
            left = mask(left_operand(i))
            if bits := left & accumulators:
                yield (
                    "accumulator",
                    f"takes {names(bits)} as left operand, to which a product under way adds ({covered})",
                )
            if bits := writes & operands & ~left:
                yield "operand", f"adds to {names(bits)}, which a product under way may still read"
            continue
        if bits := reads & accumulators:
            yield "accumulator", f"reads {names(bits)}, to which a product under way adds ({covered})"
        if bits := writes & accumulators:
            yield "accumulator", f"writes {names(bits)}, to which a product under way adds ({covered})"
        if bits := writes & operands:
            yield "operand", f"writes {names(bits)}, which a product under way may still read ({covered})"


def check_flight(kernel: Kernel, graph: Graph) -> Iterator[Finding]:
    """Every way through the kernel, loops included: each state in which a block is entered is followed."""
    code = kernel.instructions
    if not any(i.is_product for i in code):
        return
    found: dict[tuple[int, str], Finding] = {}
    todo: list[tuple[int, Flight]] = [(0, (NONE,))]
    seen = set(todo)
    while todo:
        block, flight = todo.pop()
        for at in range(graph.leaders[block], graph.ends[block]):
            i = code[at]
            if flight != (NONE,):
                for kind, reason in conflicts(i, flight):
                    found.setdefault((at, kind), Finding.at(kernel, i, kind, reason))
            flight = after(i, flight)
        new = {(b, flight) for b in graph.successors[block]} - seen
        seen |= new
        todo += new
    yield from (found[key] for key in sorted(found))


def check_fences(kernel: Kernel, graph: Graph) -> Iterator[Finding]:
    """What an ordinary instruction has written to a register, a product sees behind WARPGROUP.ARRIVE only."""
    code = kernel.instructions
    dirty = [0] * len(graph.leaders)
    found: dict[int, Finding] = {}
    todo = [0]
    seen: set[int] = set()
    while todo:
        block = todo.pop()
        seen.add(block)
        bits = dirty[block]
        for at in range(graph.leaders[block], graph.ends[block]):
            i = code[at]
            if i.is_product:
                late = bits & mask(i.reads)
                bits &= ~mask(i.writes)
                if late:
                    reason = f"{names(late)} is written behind the last WARPGROUP.ARRIVE before it"
                    found.setdefault(at, Finding.at(kernel, i, "fence", reason))
            else:
                bits = 0 if i.matches("WARPGROUP.ARRIVE") else bits | mask(i.writes)
        for b in graph.successors[block]:
            if b not in seen or bits & ~dirty[b]:
                dirty[b] |= bits
                todo.append(b)
    yield from (found[at] for at in sorted(found))


def check_operands(kernel: Kernel, graph: Graph, entry: ptx.Entry) -> Iterator[Finding]:
    """Each register of a left operand holds, on every way to the product, what one product of the PTX wants there."""
    wanted = [p for p in entry.products if p.operands]
    for at, i in enumerate(kernel.instructions):
        if i.is_product and (left := left_operand(i)):
            held = [graph.values(at, register) for register in left]
            known = [p for p in wanted if p.shape == i.opcode.split(".")[1]]
            differences = [list(difference(kernel, graph, held, p)) for p in known]
            if all(differences):
                yield stale(kernel, i, left, min(differences, key=len, default=[]))


def check_sums(entry: ptx.Entry) -> Iterator[Finding]:
    """In the PTX no register is both a sum of a product and of its left operand."""
    for p in entry.products:
        if p.shared:
            reason = f"line {p.line} of the PTX adds to {', '.join(p.shared)}, and has it as left operand"
            yield Finding(entry.name, "operand", reason)


Difference = tuple[int, int, str, frozenset[str]]  # register, where it is written, the value, those wanted


def difference(kernel: Kernel, graph: Graph, held: list[dict[str, int]], product: ptx.Product) -> Iterator[Difference]:
    """What a register may hold and should not."""
    for n, found in enumerate(held):
        for value, at in found.items():
            if value not in product.operands[n] and not computes_halves(kernel, graph, at, product.halves[n]):
                yield n, at, value, product.operands[n]


PACKED = re.compile(r"H(MUL|ADD|FMA|MNMX|SET)2|PRMT|VHMNMX|LOP3")


def computes_halves(kernel: Kernel, graph: Graph, at: int, wanted: frozenset[str], depth: int = 4) -> bool:
    """An instruction that does for two halves what the PTX does for each has no line: what it reads tells."""
    if at == ENTRY or not depth or not PACKED.match(kernel.instructions[at].opcode):
        return False
    read = [graph.values(at, r) for r in kernel.instructions[at].reads if r.startswith("R")]
    found = [(value, d) for values in read for value, d in values.items()]
    return bool(found) and all(v in wanted or computes_halves(kernel, graph, d, wanted, depth - 1) for v, d in found)


def stale(kernel: Kernel, product: Instruction, left: list[str], found: list[Difference]) -> Finding:
    if not found:
        return Finding.at(
            kernel, product, "stale", "no product of the PTX of this shape has its left operand in registers"
        )
    n, at, value, lines = found[0]
    writer = "" if at == ENTRY else f" by {kernel.instructions[at]} at {kernel.instructions[at].address:#06x}"
    wanted = " or ".join(sorted(lines))
    reason = f"may find in {left[n]} the value of {value}{writer}, where the PTX wants that of {wanted}"
    return Finding.at(kernel, product, "stale", reason + (f"; {len(found) - 1} more" if len(found) > 1 else ""))
