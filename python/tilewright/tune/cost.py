"""A cost model: seconds that a candidate should take, from what its blocks do and what the machine can do.

`Module.work` counts, for given arguments, what one block loads, stores and computes. A block of the first, the last and
of places between stands for all. Time is the largest of what each resource needs, over the share of the multiprocessors
that blocks keep busy:

    DRAM      each array once
    L2        every tile that is loaded or stored
    shared    operand tiles of products: written once, read by each warp group
    tensor    operations of products
    issue     elementwise operations

and memory is only as fast as there are bytes in flight. What one block waits for is added once: the machine is filled
and drained once, and while a loop's turn of one block waits for its tiles, others compute. The model ranks; what is
kept is measured.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from .. import _core
from ..dtype import BY_NAME
from .memory import Layout

KIB = 1024
CPU_CLOCK, CPU_BANDWIDTH, CPU_CACHE = 3e9, 2e10, 256 * KIB
CPU_CHIP = {"cpu_flop": 32, "cpu_block_ns": 200}  # operations a clock of a thread; what a block costs beside its work


@dataclasses.dataclass(frozen=True)
class Machine:
    """Peaks of a device. A unit is a multiprocessor, or a thread of the CPU."""

    name: str
    is_gpu: bool
    units: int
    clock: float  # Hz
    bandwidth: float  # bytes a second
    shared_bytes: int  # of a unit
    chip: dict[str, int] = dataclasses.field(default_factory=dict)  # figures of include/tilewright/machine.h

    def flop_rate(self, bits: int) -> float:
        """Operations a second on operands of so many bits, as `tw_mma_cycles` of the compiler has them; 0: elementwise
        on 32."""
        if not self.is_gpu:
            return self.units * self.clock * self.chip["cpu_flop"]
        tensor = self.chip["tensor_flop"]
        by_bits = {8: 2.0 * tensor, 16: tensor, 19: tensor / 2}
        return self.units * self.clock * by_bits.get(bits, self.chip["fma_flop"])


# What `predict` reads of a chip.
_OF_GPUS = ("fma_flop", "iteration_ns", "l2_bytes", "memory_ns", "registers_sm", "shared_rate", "tensor_flop",
            "threads_sm", "wave_ns")  # fmt: skip


def machine_from(name: str, figures: Mapping[str, float]) -> Machine | None:
    """A machine from what somebody has written down of it; None where that is no machine, or not all of one."""
    rest = dict(figures)
    is_gpu = bool(rest.pop("is_gpu", 0.0))
    needed = ("units", "clock", "bandwidth", "shared_bytes", *(_OF_GPUS if is_gpu else CPU_CHIP))
    if not all(rest.get(figure, 0.0) >= 1 for figure in needed):
        return None
    units, clock, bandwidth, shared = (rest.pop(figure) for figure in needed[:4])
    return Machine(name, is_gpu, int(units), clock, bandwidth, int(shared), {n: int(v) for n, v in rest.items()})


def machine_of(device: int | None) -> Machine:
    if device is None:
        return Machine(cpu_name(), False, _core.cpu_threads(), CPU_CLOCK, CPU_BANDWIDTH, CPU_CACHE, CPU_CHIP)
    info = _core.device_info(device)
    bandwidth = 2e3 * info["memory_clock_khz"] * info["memory_bus_bits"] / 8
    shared, clock = info["shared_bytes_per_sm"], 1e3 * info["clock_khz"]
    return Machine(info["name"], True, info["sm_count"], clock, bandwidth, shared, info["machine"])


def cpu_name() -> str:
    import platform

    try:
        with open("/proc/cpuinfo") as file:
            models = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        models = []
    return f"{models[0] if models else platform.machine()}, {_core.cpu_threads()} threads"


@dataclasses.dataclass(frozen=True)
class Work:
    """What a whole launch does."""

    blocks: int
    moved: float  # bytes of tiles, whether or not they hit a cache
    unique: float  # bytes of arrays that are touched
    flop: float  # of products
    operand_bytes: float
    bits: int  # of an operand of the products; 0: there are none
    elements: float  # elementwise operations; a function counts 8
    carried: float  # bytes of tiles that a loop of a block carries
    turn: float  # bytes that one turn of a block's loop loads
    known: bool  # nothing depended on data

    @classmethod
    def read(cls, figures: Mapping[str, float]) -> Work | None:
        """From what somebody has written down of it; None where that is no work, or not all of one."""
        names = {field.name for field in dataclasses.fields(cls)}
        if set(figures) != names or min(figures.values()) < 0 or figures["blocks"] < 1:
            return None
        whole = {"blocks": int(figures["blocks"]), "bits": int(figures["bits"]), "known": bool(figures["known"])}
        return cls(**{**figures, **whole})  # type: ignore[arg-type]

    @property
    def intensity(self) -> float:
        """Operations a byte."""
        return (self.flop or self.elements) / max(1.0, self.unique)


def count(
    module: Any, layout: Layout, values: tuple[Any, ...], grid: tuple[int, int, int], constants: set[int]
) -> Work:
    """The work of a launch, from a module at the stage "legal"; `values` as in trial.Program."""
    words: list[int] = []
    sizes: list[float] = []
    for position, value in enumerate(values):
        view = layout.views.get(position)
        if view is not None:
            words += [0, *view.shape, *view.strides]
            sizes.append(math.prod(view.shape) * BY_NAME[view.dtype].bits / 8)
        elif position not in constants:
            words.append(int(value) if isinstance(value, int) else 0)
            sizes.append(0.0)
    blocks = math.prod(grid)
    samples = sorted({round(i * (blocks - 1) / 8) for i in range(9)})
    rows = [module.work(words, grid, _place(i, grid)) for i in samples]

    def mean(name: str) -> float:
        return sum(row[name] for row in rows) / len(rows)

    moved = unique = 0.0
    for i, size in enumerate(sizes):
        for way in ("loaded", "stored"):
            traffic = blocks * sum(row[way][i] for row in rows) / len(rows)
            moved += traffic
            unique += min(traffic, size)
    return Work(
        blocks=blocks,
        moved=moved,
        unique=unique,
        flop=blocks * mean("mma_flop"),
        operand_bytes=blocks * mean("mma_operand_bytes"),
        bits=max(row["mma_bits"] for row in rows),
        elements=blocks * (mean("elements") + 8 * mean("functions")),
        carried=max(row["carried_bytes"] for row in rows),
        turn=max(row["iteration_bytes"] for row in rows),
        known=not any(row["unknown"] for row in rows),
    )


def _place(number: int, grid: tuple[int, int, int]) -> tuple[int, int, int]:
    return number % grid[0], number // grid[0] % grid[1], number // (grid[0] * grid[1])


def slot_seconds(slots: float, machine: Machine) -> float:
    """Seconds of so many slots of warps (lowering/layout/cost.h): a multiprocessor has four in a clock."""
    return slots / (4 * machine.units * machine.clock)


def predict(work: Work, machine: Machine, hints: dict[str, Any]) -> float:
    """Seconds."""
    return _on_gpu(work, machine, hints) if machine.is_gpu else _on_cpu(work, machine)


def _on_cpu(work: Work, machine: Machine) -> float:
    """Threads share the blocks; tiles that do not fit into a core's cache come from memory again."""
    turns = math.ceil(work.blocks / machine.units) / (work.blocks / machine.units)
    spilled = work.operand_bytes if work.turn + work.carried > CPU_CACHE else 0.0
    compute = (work.flop + work.elements) / machine.flop_rate(0)
    waiting = 1e-9 * machine.chip["cpu_block_ns"] * work.blocks / machine.units
    return max(compute, (work.unique + spilled) / machine.bandwidth) * turns + waiting


def _on_gpu(work: Work, machine: Machine, hints: dict[str, Any]) -> float:
    warps = hints.get("num_warps") or (8 if work.carried > 64 * KIB else 4)
    resident, spilling = _residency(work, machine, warps, hints.get("num_stages") or (3 if work.bits else 1))
    busy = work.blocks / (machine.units * math.ceil(work.blocks / machine.units))
    in_flight = resident * max(work.turn, work.moved / work.blocks if not work.turn else 0.0)
    chip = machine.chip
    needed = machine.bandwidth / machine.units * chip["memory_ns"] * 1e-9
    dram = work.unique / machine.bandwidth / min(1.0, max(0.05, in_flight / needed))
    per_second = machine.units * machine.clock
    turns = work.moved / work.blocks / work.turn if work.turn else 0.0
    busy_times = (
        work.moved / (per_second * chip["l2_bytes"]),
        2 * work.operand_bytes / (per_second * chip["shared_rate"]),
        work.flop / machine.flop_rate(work.bits) if work.bits else 0.0,
        work.elements / machine.flop_rate(0),
    )
    waiting = chip["wave_ns"] + chip["iteration_ns"] * turns
    return max(dram, max(busy_times) / busy) * spilling + waiting * 1e-9


def _residency(work: Work, machine: Machine, warps: int, stages: int) -> tuple[int, float]:
    """Blocks that a multiprocessor holds, and by how much values that do not fit into registers slow it down."""
    threads = 32 * warps
    registers = work.carried / threads / 4 + 48  # of a thread
    spilling = 1.0 + max(0.0, registers - 240) / 60
    by_registers = machine.chip["registers_sm"] / (threads * min(255.0, registers))
    by_shared = machine.shared_bytes / (work.turn * stages + KIB) if work.bits else 32
    if by_shared < 1:  # the compiler takes fewer stages then
        spilling *= 1.5
    return max(1, min(int(by_registers), int(by_shared), machine.chip["threads_sm"] // threads)), spilling
