"""Litmus tests of the memory model: which results of small programs on several threads never come.

    PYTHONPATH=python python test/simt/litmus.py [--cpu] [--seconds N] [--only NAME]

Each program has roles, a thread each, and registers, what the roles read. A trial is one run of a program on two
locations of its own. At scope `block` roles are warps of one block, at `device` blocks; the roles of a trial meet
before it, and each waits a little longer, at random. Forbidden results are counted, and must be 0; so are those that
the same program may show when all is relaxed, of which a GPU must show some, or the test is blind.

What shows them is where and beside what trials run (Setting): blocks that meet are far apart, so that one is near to
one slice of the L2 cache and the other to another; a trial's second location lies elsewhere; few lanes or many take
part; other blocks write and read lines of a few slices. For half of the time the relaxed programs run in each setting;
then all run in those that showed most. Warps of one block show none on an H200: a multiprocessor keeps their order.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tilewright import device

LANES = 32
LINE = 32  # elements of a line of the cache
SPINS = 400  # how long a role waits for the others of its trial
STRESSED = 1 << 14  # lines that are stressed
STRESS_STEPS = 1 << 13  # of a block, at most


# --- The programs: what a role does to the locations x and y, and what it has read ------------------------


@device.func
def message_passing(role, x, y, a, b, write, read, scope):
    if role == 0:
        x.store(1, "relaxed", scope)
        y.store(1, write, scope)
    else:
        a = y.load(read, scope)
        b = x.load("relaxed", scope)
    return a, b


@device.func
def store_buffering(role, x, y, a, b, write, read, scope):
    if role == 0:
        x.store(1, write, scope)
        a = y.load(read, scope)
    else:
        y.store(1, write, scope)
        b = x.load(read, scope)
    return a, b


@device.func
def load_buffering(role, x, y, a, b, write, read, scope):
    if role == 0:
        a = y.load(read, scope)
        x.store(1, write, scope)
    else:
        b = x.load(read, scope)
        y.store(1, write, scope)
    return a, b


@device.func
def read_twice(role, x, y, a, b, write, read, scope):
    """Coherence of one location."""
    if role == 0:
        x.store(1, write, scope)
    else:
        a = x.load(read, scope)
        b = x.load(read, scope)
    return a, b


@device.func
def write_twice(role, x, y, a, b, write, read, scope):
    if role == 0:
        x.store(1, write, scope)
        x.store(2, write, scope)
    else:
        a = x.load(read, scope)
        b = x.load(read, scope)
    return a, b


@device.func
def fences(role, x, y, a, b, write, read, scope):
    """Message passing by relaxed accesses, between fences."""
    if role == 0:
        x.store(1, "relaxed", scope)
        device.threadfence(write, scope)
        y.store(1, "relaxed", scope)
    else:
        a = y.load("relaxed", scope)
        device.threadfence(read, scope)
        b = x.load("relaxed", scope)
    return a, b


@device.func
def both_stores(role, x, y, a, b, write, read, scope):
    """2+2W: who writes last."""
    if role == 0:
        x.store(1, write, scope)
        y.store(2, write, scope)
    else:
        y.store(1, write, scope)
        x.store(2, write, scope)
    return a, b


@device.func
def exchanged(role, x, y, a, b, write, read, scope):
    """One of two exchanges comes first."""
    if role == 0:
        a = x.exch(1, write, scope)
    else:
        b = x.exch(2, write, scope)
    return a, b


@device.func
def causality(role, x, y, a, b, write, read, scope):
    """WRC: what is seen is passed on."""
    if role == 0:
        x.store(1, write, scope)
    elif role == 1:
        a = x.load(read, scope)
        y.store(a, write, scope)
    else:
        a = y.load(read, scope)
        b = x.load("relaxed", scope)
    return a, b


@device.func
def independent_reads(role, x, y, a, b, write, read, scope):
    """IRIW: two readers see two stores in one order."""
    if role == 0:
        x.store(1, write, scope)
    elif role == 1:
        y.store(1, write, scope)
    elif role == 2:
        a = x.load(read, scope)
        b = y.load(read, scope)
    else:
        a = y.load(read, scope)
        b = x.load(read, scope)
    return a, b


# --- One launch -----------------------------------------------------------------------------------------------


@device.kernel
def trials(
    locations,
    gates,
    read_by,
    scratch,
    blocks,
    rounds,
    seed,
    lanes,
    apart,
    turn,
    spread,
    delay,
    stride,
    program: device.ConstExpr,
    roles: device.ConstExpr,
    write: device.ConstExpr,
    read: device.ConstExpr,
    scope: device.ConstExpr,
):
    """`locations` is int32[2, trials * apart], `read_by` int32[trials, roles, 2], `gates` int32[meetings + 1, LINE].

    `blocks` have trials, `lanes` in each warp at a time; the others stress the memory until these have ended, which the
    last gate counts. At scope `device` the warps of one number meet, of blocks that are `spread` apart.
    """
    block, lane = device.int32(device.block_idx.x), device.int32(device.thread_idx.x) % LANES
    warp, warps = device.int32(device.thread_idx.x) // LANES, device.int32(device.block_dim.x) // LANES
    ended = device.atomic_ref(gates, (gates.shape[0] - 1, 0))
    if scope == "device":
        place = block * spread % blocks
        group, role = place // roles * warps + warp, place % roles
    else:
        group, role = block, warp
    if block < blocks:
        noise = device.uint32(seed) + device.uint32(block * warps + warp) * 2654435761
        for step in range(rounds):
            meeting = group * rounds + step
            trial = meeting * lanes + lane % lanes
            x = device.atomic_ref(locations, (0, trial * apart))
            y = device.atomic_ref(locations, (1, (trial * turn & read_by.shape[0] - 1) * apart))
            # A load that waits for DRAM sees what is stored meanwhile; both are 0, but nothing knows that.
            noise += device.uint32(x.load("relaxed", scope) + y.load("relaxed", scope))
            meet(device.atomic_ref(gates, (meeting, 0)), lane, roles)
            noise = noise * 1664525 + 1013904223
            for _ in range(device.int32(noise >> 25) & delay):
                noise = noise * 1664525 + 1013904223
            if lane < lanes:
                a, b = program(role, x, y, device.int32(-1), device.int32(-1), write, read, scope)
                read_by[trial, role, 0], read_by[trial, role, 1] = a, b
        if lane == 0:
            ended.add(1, "relaxed", "device")
    else:
        stress(scratch, ended, block - blocks, blocks * warps, stride)


@device.func
def meet(gate, lane, roles):
    if lane == 0:
        gate.add(1, "relaxed", "device")
        spins = device.int32(0)
        while gate.load("relaxed", "device") < roles and spins < SPINS:
            spins += 1
    device.syncwarp()


@device.func
def stress(scratch, ended, number, workers, stride):
    """Writes and reads lines `stride` apart until all `workers` have ended."""
    lane, step = device.int32(device.thread_idx.x) % LANES, device.int32(0)
    while step < STRESS_STEPS and ended.load("relaxed", "device") < workers:
        line = (number + step) * stride & STRESSED - 1
        one, other = device.atomic_ref(scratch, (line, lane)), device.atomic_ref(scratch, (line ^ stride, lane))
        one.store(step, "relaxed", "device")
        other.store(one.load("relaxed", "device"), "relaxed", "device")
        step += 1


# --- What may never come --------------------------------------------------------------------------------------

Regs = Any  # int32[trials, roles, 2]: what each role has read as a and b; and the two locations of each trial behind it


@dataclasses.dataclass(frozen=True)
class Program:
    body: Any
    roles: int
    seen: Callable[[Regs, Regs], Any]  # the trials with the result that is forbidden, if ordered
    ordered: tuple[tuple[str, str], ...]  # orders of stores and of loads that forbid it
    weak: bool = True  # relaxed accesses may show it


PASSING = (("release", "acquire"), ("seq_cst", "seq_cst"))
PROGRAMS = {
    "MP": Program(message_passing, 2, lambda r, _: (r[:, 1, 0] == 1) & (r[:, 1, 1] == 0), PASSING),
    "MP+fences": Program(
        fences, 2, lambda r, _: (r[:, 1, 0] == 1) & (r[:, 1, 1] == 0), (*PASSING, ("acq_rel", "acq_rel"))
    ),
    "SB": Program(store_buffering, 2, lambda r, _: (r[:, 0, 0] == 0) & (r[:, 1, 1] == 0), (("seq_cst", "seq_cst"),)),
    "LB": Program(load_buffering, 2, lambda r, _: (r[:, 0, 0] == 1) & (r[:, 1, 1] == 1), PASSING),
    "CoRR": Program(
        read_twice, 2, lambda r, _: (r[:, 1, 0] == 1) & (r[:, 1, 1] == 0), (("relaxed", "relaxed"),), weak=False
    ),
    "CoWW": Program(
        write_twice,
        2,
        lambda r, m: (r[:, 1, 0] == 2) & (r[:, 1, 1] != 2) | (m[0] != 2),
        (("relaxed", "relaxed"),),
        weak=False,
    ),
    "2+2W": Program(both_stores, 2, lambda r, m: (m[0] == 1) & (m[1] == 1), (("seq_cst", "seq_cst"),)),
    "RMW": Program(
        exchanged, 2, lambda r, _: (r[:, 0, 0] == 0) == (r[:, 1, 1] == 0), (("relaxed", "relaxed"),), weak=False
    ),
    "WRC": Program(causality, 3, lambda r, _: (r[:, 2, 0] == 1) & (r[:, 2, 1] == 0), PASSING),
    "IRIW": Program(
        independent_reads,
        4,
        lambda r, _: (r[:, 2, 0] == 1) & (r[:, 2, 1] == 0) & (r[:, 3, 0] == 1) & (r[:, 3, 1] == 0),
        (("seq_cst", "seq_cst"),),
    ),
}
RELAXED = ("relaxed", "relaxed")
Variant = tuple[str, str, str, str]  # program, scope, orders of stores and of loads


@dataclasses.dataclass(frozen=True)
class Setting:
    lanes: int = 32  # of a warp that have trials; a power of 2
    warps: int = 1  # of a block, at scope `device`
    apart: int = 16  # elements between the locations of two trials
    turn: int = 1  # odd; a trial's second location is at its number times this
    spread: int = 37  # between blocks that meet; prime, and no factor of the blocks
    delay: int = 127  # steps that a role waits at random, at most
    stress: int = 0  # blocks that stress the memory
    stride: int = 16  # lines between those that they touch


STRESS = Setting(4, 2, 64, 8191, 37, 31, 528, 64)  # in which each relaxed program shows weak results on an H200
SETTINGS = [
    Setting(lanes, warps, apart, turn, spread, delay, stress, stride)
    for (lanes, warps, apart), (turn, spread), delay, (stress, stride) in itertools.product(
        [(32, 1, 16), (32, 8, 1), (4, 2, 64), (1, 1, 64)],
        [(1, 1), (8191, 37), (1021, 71)],
        [0, 31, 127],
        [(0, 1), (264, 1), (528, 64)],
    )
]


@dataclasses.dataclass
class Outcome:
    trials: int
    seen: int
    forbidden: bool

    @property
    def wrong(self) -> bool:
        return self.forbidden and self.seen > 0


def variants(only: str = "") -> Iterator[Variant]:
    for name, program in PROGRAMS.items():
        for scope in ("block", "device"):
            relaxed = (RELAXED,) if program.weak and RELAXED not in program.ordered else ()
            for write, read in (*program.ordered, *relaxed):
                if only in name:
                    yield name, scope, write, read


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.int32)


def zeros_on_gpu(*shape: int) -> Any:
    import torch

    return torch.zeros(shape, dtype=torch.int32, device="cuda")


def run(make: Any, variant: Variant, setting: Setting, groups: int, rounds: int, seed: int) -> Outcome:
    """Arrays are made by `make`, where the kernel runs; `groups`, `rounds`: powers of 2."""
    name, scope, write, read = variant
    program = PROGRAMS[name]
    warps = setting.warps if scope == "device" else 1
    count = groups * warps * rounds * setting.lanes
    locations, gates = make(2, count * setting.apart), make(groups * warps * rounds + 1, LINE)
    found, scratch = make(count, program.roles, 2) - 1, make(STRESSED, LINE)
    blocks, threads = (groups * program.roles, LANES * warps) if scope == "device" else (groups, LANES * program.roles)
    where = (setting.lanes, setting.apart, setting.turn, setting.spread, setting.delay, setting.stride)
    operands = (locations, gates, found, scratch, blocks, rounds, seed, *where)
    constants = (program.body, program.roles, write, read, scope)
    device.launch(trials, *operands, *constants, grid=blocks + setting.stress, block=threads)
    order = (make(count) + 1).cumsum(0) - 1  # then of the trials' second locations
    order = (order * setting.turn & count - 1) * setting.apart
    ends = (locations[0, :: setting.apart], locations[1][order])
    return Outcome(count, int(program.seen(found, ends).sum()), (write, read) in program.ordered)


def total(make: Any, options: Any, pairs: list[tuple[Variant, Setting]], end: float) -> list[Outcome]:
    """What the pairs show until the time `end`, in turns, each once at least."""
    totals = [Outcome(0, 0, False) for _ in pairs]
    for seed in itertools.count(1):
        for (variant, setting), so_far in zip(pairs, totals, strict=True):
            if seed > 1 and time.monotonic() > end:
                return totals
            outcome = run(make, variant, setting, options.groups, options.rounds, seed)
            so_far.trials += outcome.trials
            so_far.seen += outcome.seen
            so_far.forbidden = outcome.forbidden
    raise AssertionError


def best_settings(make: Any, options: Any, seconds: float) -> dict[tuple[str, str], Setting]:
    """By program and scope, the setting in which its relaxed form shows most."""
    relaxed = [v for v in variants(options.only) if v[2:] == RELAXED and PROGRAMS[v[0]].weak]
    pairs = list(itertools.product(relaxed, SETTINGS))
    totals = total(make, options, pairs, time.monotonic() + seconds)
    best: dict[tuple[str, str], tuple[float, Setting]] = {}
    for (variant, setting), found in zip(pairs, totals, strict=True):
        rate = found.seen / found.trials
        best[variant[:2]] = max(best.get(variant[:2], (-1.0, setting)), (rate, setting), key=lambda pair: pair[0])
        if found.seen:
            row = {"name": variant[0], "scope": variant[1], "trials": found.trials, "weak": found.seen}
            print(json.dumps(row | dataclasses.asdict(setting)))
    return {of: setting for of, (_, setting) in best.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--groups", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=64, help="of trials, of each group of roles")
    parser.add_argument("--seconds", type=float, default=50, help="of all variants together; each runs once at least")
    options = parser.parse_args()
    make = zeros if options.cpu else zeros_on_gpu
    best = {} if options.cpu else best_settings(make, options, options.seconds / 2)
    pairs = [(variant, best.get(variant[:2], Setting())) for variant in variants(options.only)]
    wrong, blind = 0, []
    totals = total(make, options, pairs, time.monotonic() + options.seconds / 2)
    for ((name, scope, write, read), setting), found in zip(pairs, totals, strict=True):
        wrong += found.wrong
        if not found.forbidden and not found.seen:
            blind.append(f"{name} {scope}")
        row = {"name": name, "scope": scope, "write": write, "read": read, "trials": found.trials, "seen": found.seen}
        row |= {"forbidden": found.forbidden, "ok": not found.wrong}
        print(json.dumps(row | dataclasses.asdict(setting)))
    print(json.dumps({"wrong": wrong, "blind": blind}))
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
