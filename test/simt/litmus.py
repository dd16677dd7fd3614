"""Litmus tests of the memory model: which results of small programs on several threads never come.

    PYTHONPATH=python python test/simt/litmus.py [--cpu] [--rounds N] [--seconds N] [--only NAME]

Each program has roles, a thread each, and registers, what the roles read. A trial is one run of a program on two
locations of its own, which are far apart, for what goes to one slice of the L2 cache arrives in order; the lanes of a
warp run 32 trials at a time, and the roles of a trial meet before each. At scope `block` roles are warps of one block,
at `device` blocks. Forbidden results are counted, and must be 0; so are those that the same program may show when all
is relaxed, of which a GPU must show some (`weak`), or the test is blind.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tilewright import device

APART = 16  # elements between the locations of two trials
LANES = 32
SPINS = 400  # how long a role waits for the others of its trial


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
    rounds,
    seed,
    program: device.ConstExpr,
    roles: device.ConstExpr,
    write: device.ConstExpr,
    read: device.ConstExpr,
    scope: device.ConstExpr,
):
    """`locations` is int32[2, trials, APART], `read_by` int32[trials, roles, 2], `gates` int32[groups * rounds]."""
    number = device.int32(device.block_idx.x) if scope == "device" else device.int32(device.thread_idx.x) // LANES
    group = number // roles if scope == "device" else device.int32(device.block_idx.x)
    role, lane = number % roles, device.int32(device.thread_idx.x) % LANES
    noise = device.uint32(seed) + device.uint32(number) * 2654435761
    for step in range(rounds):
        trial = (group * rounds + step) * LANES + lane
        x, y = device.atomic_ref(locations, (0, trial, 0)), device.atomic_ref(locations, (1, trial, 0))
        x.load("relaxed", scope)  # a load that waits for DRAM sees what is stored meanwhile
        y.load("relaxed", scope)
        meet(device.atomic_ref(gates, group * rounds + step), lane, roles)
        noise = noise * 1664525 + 1013904223
        for _ in range(device.int32(noise >> 25)):  # up to 127 steps: some hundred cycles
            noise = noise * 1664525 + 1013904223
        a, b = program(role, x, y, device.int32(-1), device.int32(-1), write, read, scope)
        read_by[trial, role, 0], read_by[trial, role, 1] = a, b


@device.func
def meet(gate, lane, roles):
    if lane == 0:
        gate.add(1, "relaxed", "device")
        spins = device.int32(0)
        while gate.load("relaxed", "device") < roles and spins < SPINS:
            spins += 1
    device.syncwarp()


# --- What may never come --------------------------------------------------------------------------------------

Regs = Any  # int32[trials, roles, 2]: what each role has read as a and b; and the locations behind it


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
        lambda r, m: (r[:, 1, 0] == 2) & (r[:, 1, 1] != 2) | (m[:, 0] != 2),
        (("relaxed", "relaxed"),),
        weak=False,
    ),
    "2+2W": Program(both_stores, 2, lambda r, m: (m[:, 0] == 1) & (m[:, 1] == 1), (("seq_cst", "seq_cst"),)),
    "RMW": Program(
        exchanged, 2, lambda r, _: (r[:, 0, 0] == 0) == (r[:, 1, 1] == 0), (("relaxed", "relaxed"),), weak=False
    ),
    "WRC": Program(causality, 3, lambda r, _: (r[:, 2, 0] == 1) & (r[:, 2, 1] == 0), PASSING),
    "IRIW": Program(
        independent_reads,
        4,
        lambda r, _: (r[:, 2] == [1, 0]).all(axis=1) & (r[:, 3] == [1, 0]).all(axis=1),
        (("seq_cst", "seq_cst"),),
    ),
}
RELAXED = ("relaxed", "relaxed")


@dataclasses.dataclass(frozen=True)
class Outcome:
    name: str
    scope: str
    write: str
    read: str
    trials: int
    seen: int
    forbidden: bool

    @property
    def wrong(self) -> bool:
        return self.forbidden and self.seen > 0


def variants(only: str = "") -> Iterator[tuple[str, str, str, str]]:
    for name, program in PROGRAMS.items():
        for scope in ("block", "device"):
            relaxed = (RELAXED,) if program.weak and RELAXED not in program.ordered else ()
            for write, read in (*program.ordered, *relaxed):
                if only in name:
                    yield name, scope, write, read


def run(place: Any, back: Any, variant: tuple[str, str, str, str], groups: int, rounds: int, seed: int) -> Outcome:
    """Arrays go to where the kernel runs by `place`, and come back by `back`."""
    name, scope, write, read = variant
    program = PROGRAMS[name]
    count = groups * rounds * LANES
    locations, gates = place(np.zeros((2, count, APART), np.int32)), place(np.zeros(groups * rounds, np.int32))
    found = place(np.full((count, program.roles, 2), -1, np.int32))
    grid, block = (groups * program.roles, LANES) if scope == "device" else (groups, LANES * program.roles)
    operands = (locations, gates, found, rounds, seed, program.body, program.roles, write, read, scope)
    device.launch(trials, *operands, grid=grid, block=block)
    seen = int(np.count_nonzero(program.seen(back(found), back(locations)[:, :, 0].T)))
    return Outcome(name, scope, write, read, count, seen, (write, read) in program.ordered)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--groups", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=64, help="of 32 trials, of each group of roles")
    parser.add_argument("--seconds", type=float, default=50, help="of all variants together; each runs once at least")
    options = parser.parse_args()
    if options.cpu:
        place = back = lambda array: array
    else:
        import torch

        place, back = lambda array: torch.from_numpy(array).cuda(), lambda tensor: tensor.cpu().numpy()
    wrong, weak, end = 0, 0, time.monotonic() + options.seconds
    totals: dict[tuple[str, str, str, str], list[int]] = {}
    seed = 0
    while seed == 0 or time.monotonic() < end:
        seed += 1
        for variant in variants(options.only):
            if seed > 1 and time.monotonic() > end:
                break
            outcome = run(place, back, variant, options.groups, options.rounds, seed)
            total = totals.setdefault(variant, [0, 0])
            total[0] += outcome.trials
            total[1] += outcome.seen
            wrong += outcome.wrong
            weak += outcome.seen if not outcome.forbidden else 0
    for (name, scope, write, read), (count, seen) in totals.items():
        forbidden = (write, read) in PROGRAMS[name].ordered
        row = {"name": name, "scope": scope, "write": write, "read": read, "trials": count, "seen": seen}
        print(json.dumps(row | {"forbidden": forbidden, "ok": not (forbidden and seen)}))
    print(json.dumps({"wrong": wrong, "weak": weak, "blind": weak == 0}))
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
