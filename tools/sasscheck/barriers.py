"""Barriers of the PTX: who waits has somebody who arrives.

A barrier in shared memory (mbarrier) is told by the constant part of its address: buffers of several stages lie at a
constant, and what is added to it is the stage. Neighbours of one count are one buffer.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator

from .findings import Finding
from .ptx import Entry, Statement

INIT, WAIT, ARRIVE, EXPECT, COMPLETE = "init", "wait", "arrive", "expect", "complete"
USES = {
    r"mbarrier\.init\b": (INIT,),
    r"mbarrier\.(try_wait|test_wait)\b": (WAIT,),
    r"mbarrier\.arrive\.expect_tx\b": (ARRIVE, EXPECT),
    r"mbarrier\.arrive\b": (ARRIVE,),
    r"mbarrier\.expect_tx\b": (EXPECT,),
    r"cp\.async\.mbarrier\.arrive\b": (ARRIVE,),
    r"(cp\.async\.bulk|st\.async)\..*mbarrier::complete_tx": (COMPLETE,),
}
SYNCHRONIZES = re.compile(r"(bar|barrier)\.(sync|red|cta\.sync|cta\.red|cluster\.wait)\b")


@dataclasses.dataclass(frozen=True)
class Use:
    at: int
    statement: Statement
    kinds: tuple[str, ...]
    offsets: frozenset[int]  # constant parts of the address; none: not known


def check_barriers(entry: Entry) -> Iterator[Finding]:
    uses = list(barrier_uses(entry))
    yield from check_pairs(entry, uses)
    yield from check_visible(entry, uses)
    yield from check_named(entry)
    yield from check_groups(entry)


def finding(entry: Entry, s: Statement, reason: str) -> Finding:
    return Finding(entry.name, "barrier", f"line {s.line} of the PTX, {s.opcode}: {reason}")


def barrier_uses(entry: Entry) -> Iterator[Use]:
    for at, s in enumerate(entry.statements):
        kinds = next((kinds for pattern, kinds in USES.items() if re.match(pattern, s.opcode)), None)
        if kinds:
            addresses = [o for o in s.operands if o.startswith("[")]
            yield Use(at, s, kinds, constant_parts(entry, at, addresses[-1 if kinds == (COMPLETE,) else 0]))


def constant_parts(entry: Entry, at: int, address: str) -> frozenset[int]:
    base, plus, offset = address.strip("[] ").partition("+")
    extra = int(offset, 0) if plus else 0
    return frozenset(part + extra for part in parts(entry, at, base.strip(), frozenset()))


def parts(entry: Entry, at: int, operand: str, seen: frozenset[int]) -> frozenset[int]:
    """Of a sum, the sum of its constants: one for each way in which the operand may have come about."""
    if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)", operand):
        return frozenset({int(operand, 0)})
    if not operand.startswith("%"):
        return frozenset({0})  # a symbol
    found: set[int] = set()
    for d in entry.graph.roots(at, operand) - seen:
        if d >= 0:
            found |= of_statement(entry, d, seen | {d})
    return frozenset(found)


def of_statement(entry: Entry, at: int, seen: frozenset[int]) -> frozenset[int]:
    s = entry.statements[at]
    sources = [parts(entry, at, o, seen) for o in s.operands[1:]]
    name = s.opcode.split(".")[0]
    if name in ("mov", "cvt", "cvta", "mapa"):
        return sources[0]
    if name == "selp":
        return sources[0] | sources[1]
    if name == "add" or (name == "or" and s.operands[-1].isdigit()):
        return frozenset(a + b for a in sources[0] for b in sources[1])
    return frozenset({0})  # a stage, or something else that is not known


def multibuffers(uses: list[Use]) -> Iterator[list[int]]:
    """Addresses of neighbours that are initialized with one count."""
    counts = {offset: u.statement.operands[-1] for u in uses if u.kinds == (INIT,) for offset in u.offsets}
    multibuffer: list[int] = []
    for offset in sorted(counts):
        if multibuffer and (offset != multibuffer[-1] + 8 or counts[offset] != counts[multibuffer[0]]):
            yield multibuffer
            multibuffer = []
        multibuffer.append(offset)
    yield from [multibuffer] * bool(multibuffer)


def check_pairs(entry: Entry, uses: list[Use]) -> Iterator[Finding]:
    known = {offset for u in uses if u.kinds == (INIT,) for offset in u.offsets}
    for u in uses:
        if u.offsets and not u.offsets & known:
            yield finding(entry, u.statement, f"no mbarrier is initialized at {sorted(u.offsets)}")
    for multibuffer in multibuffers(uses):
        kinds = {kind for u in uses if u.offsets & set(multibuffer) for kind in u.kinds}
        first = next(u.statement for u in uses if u.kinds == (INIT,) and multibuffer[0] in u.offsets)
        for one, other in ((WAIT, ARRIVE), (ARRIVE, WAIT), (COMPLETE, EXPECT), (EXPECT, COMPLETE)):
            if one in kinds and other not in kinds:
                yield finding(
                    entry, first, f"the barriers at {multibuffer[0]} to {multibuffer[-1]} have {one}, but no {other}"
                )


def check_visible(entry: Entry, uses: list[Use]) -> Iterator[Finding]:
    """Between the initialization and any other use there is a barrier of the block."""
    inits = [u.at for u in uses if u.kinds == (INIT,)]
    others = {u.at: u for u in uses if u.kinds != (INIT,)}
    reached = behind(entry, inits, SYNCHRONIZES)
    for at in sorted(reached & others.keys()):
        yield finding(entry, entry.statements[at], "may run before the barrier is initialized for all threads")


def behind(entry: Entry, begins: list[int], stops: re.Pattern[str] | None = None) -> set[int]:
    """Statements that may run behind some, on ways up to an operation at which they stop."""
    graph = entry.graph
    todo, seen = list(begins), set[int]()
    while todo:
        at = todo.pop()
        following = [*graph.targets[at], *([at + 1] if graph.falls[at] else [])]
        new = {t for t in following if t < len(entry.statements)} - seen
        seen |= new
        todo += [t for t in new if not stops or not stops.match(entry.statements[t].opcode)]
    return seen


def check_named(entry: Entry) -> Iterator[Finding]:
    """bar.sync and bar.arrive: as many threads as the block may have, the same at each use; arrivals are waited for."""
    counts: dict[str, str] = {}
    waited = {s.operands[0] for s in entry.statements if SYNCHRONIZES.match(s.opcode) and s.operands}
    known = all(name.isdigit() for name in waited)
    for s in entry.statements:
        if not re.match(r"(bar|barrier)(\.cta)?\.(sync|arrive|red)\b", s.opcode):
            continue
        name, *rest = [o for o in s.operands if not re.fullmatch(r"!?%p\d+", o)]
        count = rest[0] if rest and rest[0].isdigit() else ""
        if count and (int(count) % 32 or (entry.threads and int(count) > entry.threads)):
            yield finding(entry, s, f"waits for {count} of {entry.threads} threads")
        if name.isdigit() and counts.setdefault(name, count) != count:
            yield finding(
                entry, s, f"barrier {name} has {count or 'all'} threads here and {counts[name] or 'all'} elsewhere"
            )
        if ".arrive" in s.opcode and known and name.isdigit() and name not in waited:
            yield finding(entry, s, f"nobody waits at barrier {name}")


GROUPS = {
    r"cp\.async\.(ca|cg)\b": (
        r"cp\.async\.(commit_group|mbarrier\.arrive)",
        r"cp\.async\.(wait_group|wait_all|mbarrier\.arrive)",
    ),
    r"cp\.async\.bulk\..*\.global\.shared": (r"cp\.async\.bulk\.commit_group", r"cp\.async\.bulk\.wait_group"),
    r"cp\.reduce\.async\.bulk\b": (r"cp\.async\.bulk\.commit_group", r"cp\.async\.bulk\.wait_group"),
    r"wgmma\.mma_async\b": (r"wgmma\.commit_group", r"wgmma\.wait_group"),
}


def check_groups(entry: Entry) -> Iterator[Finding]:
    """Each asynchronous operation is in a group that some way closes, and that is waited for behind."""
    behind_of = functools.cache(lambda end: behind(entry, [end]))
    for started, (closes, waits) in GROUPS.items():
        closing, waiting = (matching(entry, pattern) for pattern in (closes, waits))
        for at in sorted(matching(entry, started)):
            end = entry.graph.ends[entry.graph.block_of(at)] - 1
            found = behind_of(end) | set(range(at + 1, end + 1))
            if not found & closing:
                yield finding(entry, entry.statements[at], "no group that it is in is closed")
            elif not found & waiting:
                yield finding(entry, entry.statements[at], "nothing waits for it")


def matching(entry: Entry, pattern: str) -> set[int]:
    return {at for at, s in enumerate(entry.statements) if re.match(pattern, s.opcode)}
