"""The demo: the four programs of this folder on the GPU, or on the CPU where there is none, beside their peers.

    make demo            # or: python python/examples/demo.py [--device cpu|cuda] [--picture FILE] [--quick]

One table: compile and run time, rate, largest error against NumPy, the peer's time (NumPy on the CPU; cuBLAS, cuDNN
and torch's own kernels through torch on a GPU). One picture: who owns which element of the GEMM's accumulator.
"""

import argparse
import contextlib
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import attention
import matmul
import softmax
import vector_add

HERE = Path(__file__).resolve().parent


# --- devices: where arrays live, and how a piece of work is timed ----------------------------------------------------


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def on_all_threads(work: Callable[..., Any]) -> Callable[..., None]:
    """NumPy's loops have one thread, ours have all: parts of the arrays for each of them, side by side."""
    threads = len(os.sched_getaffinity(0))
    pool = ThreadPoolExecutor(threads)

    def run(*arrays: np.ndarray) -> None:
        list(pool.map(work, *(np.array_split(array, threads) for array in arrays)))

    return run


class Cpu:
    """NumPy arrays; the peer is NumPy itself, on as many threads: its products by OpenBLAS, its loops in parts."""

    kind = "CPU"
    dtype = np.dtype(np.float32)
    peer_name = "NumPy, on as many threads"

    def __init__(self) -> None:
        model = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
        name = model[0].partition(":")[2].strip() if model else "CPU"
        self.name = f"{name}, {len(os.sched_getaffinity(0))} threads"

    def put(self, array: np.ndarray) -> Any:
        return np.array(array)

    def get(self, array: Any) -> np.ndarray:
        return array

    def synchronize(self) -> None:
        pass

    def milliseconds(self, works: list[Callable[[], object]], repeats: int = 9) -> list[float]:
        """Medians. They take turns, each after a pause, in which threads that wait for more work stop spinning."""
        times: list[list[float]] = [[] for _ in works]
        for _ in range(repeats):
            for work, its in zip(works, times, strict=True):
                time.sleep(0.1)
                its.append(min(seconds(work), seconds(work)))
        return [1e3 * statistics.median(its) for its in times]


class Gpu:
    """Arrays of the driver's own; no peer."""

    kind = "GPU"
    dtype = np.dtype(np.float16)
    peer_name = "torch (not installed)"

    def __init__(self) -> None:
        import device_array

        self.module = device_array
        self.name = device_array.driver().name

    def put(self, array: np.ndarray) -> Any:
        return self.module.DeviceArray.from_numpy(array)

    def get(self, array: Any) -> np.ndarray:
        return array.numpy()

    def synchronize(self) -> None:
        self.module.synchronize()

    def milliseconds(self, works: list[Callable[[], object]], repeats: int = 7) -> list[float]:
        return [self._milliseconds(work, repeats) for work in works]

    def _milliseconds(self, work: Callable[[], object], repeats: int) -> float:
        """Several launches back to back and one synchronization, so that the launch itself hides."""
        times, batch = [], 20
        for _ in range(repeats):
            self.synchronize()
            begin = time.perf_counter()
            for _ in range(batch):
                work()
            self.synchronize()
            times.append((time.perf_counter() - begin) / batch)
        return 1e3 * sorted(times)[len(times) // 2]


class TorchGpu(Gpu):
    """torch tensors; the peer is torch, which calls cuBLAS and cuDNN."""

    peer_name = "torch: cuBLAS, cuDNN"

    def __init__(self) -> None:
        import torch

        torch.cuda.init()
        self.torch = torch
        self.name = torch.cuda.get_device_name()

    def put(self, array: np.ndarray) -> Any:
        return self.torch.from_numpy(np.ascontiguousarray(array)).cuda()

    def get(self, array: Any) -> np.ndarray:
        return array.cpu().numpy()

    def synchronize(self) -> None:
        self.torch.cuda.synchronize()


def find_device(wanted: str | None) -> Cpu | Gpu:
    if wanted != "cpu":
        for kind in (TorchGpu, Gpu):
            with contextlib.suppress(ImportError, OSError, RuntimeError, AssertionError):
                return kind()
        if wanted == "cuda":
            sys.exit("demo: no GPU was found; `tilewright doctor` tells what is missing")
    return Cpu()


# --- the four programs -----------------------------------------------------------------------------------------------


@dataclass
class Program:
    name: str
    inputs: list[np.ndarray]
    output: tuple[int, ...]
    run: Callable[..., None]  # inputs and output, on the device
    reference: Callable[..., np.ndarray]  # float32 NumPy
    peer: Callable[..., Any]  # inputs and an output -> a callable that does the same work
    work: float  # FLOP or bytes
    unit: str
    tolerance: float


def programs(device: Cpu | Gpu, quick: bool) -> Iterator[Program]:
    random = np.random.default_rng(0)
    on_gpu = isinstance(device, Gpu)
    small, item = device.dtype, device.dtype.itemsize

    def normal(*shape: int) -> np.ndarray:
        return random.standard_normal(shape, dtype=np.float32).astype(small)

    def peer(numpy: Callable[..., Any], torch: Callable[..., Any]) -> Callable[..., Any]:
        def bind(arrays: list[Any]) -> Callable[[], Any] | None:
            if isinstance(device, TorchGpu):
                return lambda: torch(*arrays[:-1])
            return (lambda: numpy(*arrays)) if isinstance(device, Cpu) else None

        return bind

    def torch_sdpa(q: Any, k: Any, v: Any) -> Any:
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.nn.functional import scaled_dot_product_attention

        with sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION]):
            return scaled_dot_product_attention(q, k, v, is_causal=True)

    in_parts = on_all_threads(lambda *heads: attention.reference(*(x[None] for x in heads[:-1])))

    def attention_in_parts(*x: np.ndarray) -> None:
        in_parts(*(array[0] for array in x))

    n = 2**20 + 3 if quick else (2**27 + 3 if on_gpu else 2**24 + 3)
    a, b = random.standard_normal((2, n), dtype=np.float32)
    yield Program(
        f"vector add {n}",
        [a, b],
        (n,),
        lambda *x: vector_add.run(*x, tile=4096 if on_gpu else 1024),
        np.add,
        peer(on_all_threads(np.add), lambda a, b: a + b),
        12.0 * n,
        "GB/s",
        0.0,
    )

    m, n, k = (257, 300, 129) if quick else ((4001, 4104, 3992) if on_gpu else (1000, 1023, 1025))
    if on_gpu:
        n, k = n // 8 * 8, k // 8 * 8  # rows that start at multiples of 16 bytes, as libraries want them
    tiles = (128, 128, 64)
    yield Program(
        f"matmul {m}x{k} · {k}x{n}",
        [normal(m, k), normal(k, n)],
        (m, n),
        lambda *x: matmul.run(*x, tiles=tiles),
        np.matmul,
        peer(np.matmul, lambda a, b: a @ b),
        2.0 * m * n * k,
        "GFLOP/s",
        2e-3 if on_gpu else 2e-6,
    )

    m, n = (100, 1000) if quick else ((16384, 4000) if on_gpu else (1024, 4000))
    yield Program(
        f"softmax {m}x{n}",
        [normal(m, n)],
        (m, n),
        softmax.run,
        softmax.reference,
        peer(on_all_threads(lambda x, _: softmax.reference(x)), lambda x: x.softmax(dim=1)),
        2.0 * m * n * item,
        "GB/s",
        2e-3 if on_gpu else 2e-6,
    )

    b_, h, s, d = (1, 2, 200, 64) if quick else ((2, 16, 2000, 128) if on_gpu else (1, 8, 1000, 64))
    yield Program(
        f"causal attention {b_}x{h}x{s}x{d}",
        [normal(b_, h, s, d) for _ in range(3)],
        (b_, h, s, d),
        lambda *x: attention.run(*x, tiles=(128, 64) if on_gpu else (64, 64)),
        attention.reference,
        peer(attention_in_parts, torch_sdpa),
        4.0 * b_ * h * d * s * (s + 1) / 2,
        "GFLOP/s",
        4e-3 if on_gpu else 1e-5,
    )


@dataclass
class Row:
    program: Program
    compile_ms: float
    run_ms: float
    peer_ms: float | None
    error: float

    @property
    def ok(self) -> bool:
        return self.error <= self.program.tolerance

    def cells(self, device: str) -> list[str]:
        rate = f"{self.program.work / self.run_ms / 1e6:,.1f} {self.program.unit}"
        peer = "-" if self.peer_ms is None else f"{self.peer_ms:.3f} ({self.peer_ms / self.run_ms:.2f}x)"
        error = f"{self.error:.1e}" + ("" if self.ok else f" > {self.program.tolerance:.0e} !")
        return [self.program.name, device, f"{self.compile_ms:.1f}", f"{self.run_ms:.3f}", rate, error, peer]


COLUMNS = ["program", "device", "compile ms", "run ms", "rate", "largest error", "peer ms"]
CAPTION = "error: against NumPy, relative to the largest result; (x): the peer's time / ours"


def measure(program: Program, device: Cpu | Gpu, step: Callable[[str], None]) -> Row:
    inputs = [device.put(array) for array in program.inputs]
    output = device.put(np.zeros(program.output, program.inputs[0].dtype))

    step("compile")
    begin = time.perf_counter()
    program.run(*inputs, output)
    device.synchronize()
    first = 1e3 * (time.perf_counter() - begin)

    step("run")
    peer = program.peer([*inputs, device.put(output)])
    works: list[Callable[[], object]] = [lambda: program.run(*inputs, output)]
    if peer is not None:
        peer()
        works.append(peer)
    step("peer")
    run_ms, *others = device.milliseconds(works)
    peer_ms = others[0] if others else None

    step("check")
    expected = program.reference(*(array.astype(np.float32) for array in program.inputs))
    difference = np.abs(device.get(output).astype(np.float32) - expected).max()
    error = float(difference / max(1.0, float(np.abs(expected).max())))
    return Row(program, max(first - run_ms, 0.0), run_ms, peer_ms, error if math.isfinite(error) else math.inf)


# --- what is shown ---------------------------------------------------------------------------------------------------


def show_rich(device: Cpu | Gpu, todo: list[Program]) -> list[Row]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    rows = []
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=4 * len(todo))
        for program in todo:

            def step(what: str, program: Program = program) -> None:
                progress.update(task, description=f"{what}: {program.name}", advance=1)

            rows.append(measure(program, device, step))
    table = Table(title=f"Tilewright on {device.name}, {device.dtype}", caption=f"{CAPTION}; peer: {device.peer_name}")
    for column in COLUMNS:
        table.add_column(column, justify="left" if column in ("program", "device") else "right")
    for row in rows:
        table.add_row(*row.cells(device.kind), style=None if row.ok else "bold red")
    console.print(table)
    return rows


def show_plain(device: Cpu | Gpu, todo: list[Program]) -> list[Row]:
    def step(what: str) -> None:
        print(f"{what} …", file=sys.stderr)

    rows = [measure(program, device, step) for program in todo]
    table = [COLUMNS, *(row.cells(device.kind) for row in rows)]
    widths = [max(len(line[i]) for line in table) for i in range(len(COLUMNS))]
    for line in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)))
    print(f"on {device.name}; {CAPTION}; peer: {device.peer_name}")
    return rows


def draw_accumulator(path: Path) -> None:
    """Compile the GEMM for a Hopper GPU, which needs none, and draw the layout of its accumulator."""
    from tilewright import cli

    arguments = ["--arg", "A=f16[?,?]", "--arg", "B=f16[?,?]", "--arg", "C=f16[?,?]"]
    arguments += ["--arg", "TM=128", "--arg", "TN=128", "--arg", "TK=32", "--target", "sm_90a"]
    with contextlib.redirect_stdout(None):  # it would say the path
        cli.main(["layout", f"{HERE / 'matmul.py'}:matmul", *arguments, "--value", "mma", "-o", str(path)])


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the four example programs and show what they reach.")
    parser.add_argument("--device", choices=["cpu", "cuda"], help="default: cuda if there is one")
    parser.add_argument("--quick", action="store_true", help="small sizes: a test, not a measurement")
    parser.add_argument("--picture", type=Path, default=Path("build/gemm-accumulator.svg"))
    options = parser.parse_args()

    device = find_device(options.device)
    with tempfile.TemporaryDirectory() as empty:
        os.environ["TILEWRIGHT_CACHE_DIR"] = empty  # the compile times are those of a first run
        todo = list(programs(device, options.quick))
        try:
            import rich  # noqa: F401

            rows = show_rich(device, todo)
        except ImportError:
            rows = show_plain(device, todo)
    options.picture.parent.mkdir(parents=True, exist_ok=True)
    draw_accumulator(options.picture)
    print(f"who owns which element of the GEMM's accumulator: {options.picture}")
    return not all(row.ok for row in rows)


if __name__ == "__main__":
    sys.exit(main())
