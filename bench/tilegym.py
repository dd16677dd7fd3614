"""NVIDIA's TileGym on Tilewright and on NVIDIA's own compiler: its operators, by its own benchmarks, on one GPU.

    git clone https://github.com/NVIDIA/TileGym
    pip install cuda-tile[tileiras]
    python bench/tilegym.py TileGym

Two processes run each benchmark file, one after the other: one as the file is, one with `import cuda.tile` answered by
Tilewright. Shapes, data and checks of the result are the file's. What is timed is the GPU's work: calls in a CUDA
graph, the median of its repetitions, because some operators take longer on the host, where both compilers' launches
wait for TileGym alike; calls that no graph can hold are timed as they are (`host` in the row). First every case runs
once, several files at a time, so that both compilers find their caches filled. A case counts where both have a time.
The ratio is NVIDIA's time over ours: above 1 is faster than NVIDIA's. TileGym's own search over tile sizes is off.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import runpy
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

WHOSE = ("cutile", "tilewright")

Row = dict[str, Any]  # a case: plot (the name of its benchmark), case (its arguments), ms or what is wrong


def benchmark_files(checkout: Path, only: str) -> list[Path]:
    found = sorted((checkout / "tests" / "benchmark").rglob("bench_*.py"))
    return [file for file in found if file.name != "bench_utils.py" and re.search(only, file.stem)]


class Report:
    """Stands for Triton's report: runs the cases of NVIDIA's spelling alone, writes a row each, and draws nothing."""

    def __init__(self, fn: Callable[..., Any], plots: Any, into: Path, times: list[Row], seconds: float):
        self.fn, self.plots = fn, plots if isinstance(plots, list) else [plots]
        self.into, self.times, self.seconds = into, times, seconds

    def run(self, **_: Any) -> None:
        for plot in self.plots:
            if plot is None:
                continue
            start = time.monotonic()
            for line, name in zip(plot.line_vals, plot.line_names, strict=True):
                if "cutile" not in f"{line} {name}".lower():
                    continue
                for x in plot.x_vals:
                    if time.monotonic() - start < self.seconds:
                        self.one(plot, line, x)

    def one(self, plot: Any, line: Any, x: Any) -> None:
        import torch

        values = x if isinstance(x, list | tuple) else [x] * len(plot.x_names)
        arguments = {**dict(zip(plot.x_names, values, strict=True)), plot.line_arg: line, **plot.args}
        told = ", ".join(f"{key}={value}" for key, value in arguments.items() if key != "backend")
        row: Row = {"plot": plot.plot_name, "case": told}
        self.times.clear()
        torch.manual_seed(0)
        try:
            self.fn(**arguments)
            row |= self.times[-1]
        except Exception as wrong:  # a case that one of the two does not run is told, and the next one runs
            row["wrong"] = f"{type(wrong).__name__}: {wrong}"[:300]
        with self.into.open("a") as out:
            print(json.dumps(row), file=out)
        torch.cuda.empty_cache()


def serve(checkout: Path, whose: str, seconds: float, once: bool) -> None:
    """Runs the files that come by standard input in this process; a line `FILE<tab>RESULT FILE` each, answered by one.
    `once`: nothing is timed, each case runs once."""
    sys.path.insert(0, str(checkout / "src"))
    answers, sys.stdout = sys.stdout, sys.stderr
    if whose == "tilewright":
        import tilewright.dropin

        tilewright.dropin.install()
    import torch
    import triton.testing

    sys.path.append(str(checkout / "tests" / "benchmark"))
    import bench_utils  # TileGym's

    times: list[Row] = []
    with_host, by_graph = triton.testing.do_bench, triton.testing.do_bench_cudagraph

    def timed(fn: Callable[[], Any], *_: Any, quantiles: list[float] | None = None, **options: Any) -> Any:
        cleared = {"grad_to_none": options.get("grad_to_none")}
        if once:
            fn()
            torch.cuda.synchronize()
            times.append({"ms": 1.0})
        else:
            try:
                times.append({"ms": by_graph(fn, return_mode="median", **cleared)})
            except Exception:  # a call that waits for the GPU, say
                torch.cuda.synchronize()
                times.append({"ms": with_host(fn, return_mode="median", **cleared), "host": True})
        ms = times[-1]["ms"]
        return [ms] * len(quantiles) if quantiles else ms

    triton.testing.do_bench = triton.testing.do_bench_cudagraph = bench_utils.profile_with_l2flush = timed
    for line in sys.stdin:
        file, into = line.strip().split("\t")
        triton.testing.perf_report = lambda plots, into=Path(into): lambda fn: Report(fn, plots, into, times, seconds)
        sys.path.insert(0, str(Path(file).parent))
        try:
            runpy.run_path(file, run_name="__main__")
            told = "done"
        except BaseException as wrong:
            told = f"{type(wrong).__name__}: {wrong}".replace("\n", " ")[:300]
        del sys.path[0]
        print(told, file=answers, flush=True)


class Server:
    """A process that runs benchmark files with one of the two compilers; begun anew when it dies or takes too long."""

    def __init__(self, checkout: Path, whose: str, seconds: float, limit: float, once: bool = False):
        self.command = [sys.executable, __file__, str(checkout), "--serve", whose, "--seconds", str(seconds)]
        self.command += ["--once"] if once else []
        self.limit = limit
        self.process: subprocess.Popen[str] | None = None

    def run(self, file: Path) -> list[Row]:
        if self.process is None or self.process.poll() is not None:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            self.process = subprocess.Popen(self.command, text=True, cwd=file.parent, **pipes)
        process = self.process
        assert process.stdin and process.stdout
        with tempfile.TemporaryDirectory() as folder:
            into = Path(folder) / "rows"
            into.touch()
            late = threading.Timer(self.limit, process.kill)
            late.start()
            try:
                process.stdin.write(f"{file}\t{into}\n")
                process.stdin.flush()
                told = process.stdout.readline().strip() or "the process died, or took too long"
            except BrokenPipeError:
                told = "the process died"
            finally:
                late.cancel()
            rows = [json.loads(line) for line in into.read_text().splitlines()]
        return rows if told == "done" else [*rows, {"plot": file.stem, "case": "", "wrong": told}]

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def fill_caches(checkout: Path, files: list[Path], seconds: float, limit: float, jobs: int) -> None:
    work = [(file, whose) for file in files for whose in WHOSE]
    done = 0

    def once(item: tuple[Path, str]) -> None:
        nonlocal done
        file, whose = item
        start = time.monotonic()
        server = Server(checkout, whose, seconds, limit, once=True)
        server.run(file)
        server.close()
        done += 1
        took = time.monotonic() - start
        print(f"compiled {done} of {len(work)}: {file.stem} by {whose}, {took:.0f} s", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(once, work))


def side_by_side(file: Path, servers: list[Server]) -> list[Row]:
    found = [{(row["plot"], row["case"]): row for row in server.run(file)} for server in servers]
    rows = []
    for case in {**found[0], **found[1]}:
        row: Row = {"file": file.stem, "plot": case[0], "case": case[1]}
        for whose, of in zip(WHOSE, found, strict=True):
            what = of.get(case, {"wrong": "not run"})
            row |= {f"{whose}_{key}": what[key] for key in ("ms", "host", "wrong") if key in what}
        if all(f"{whose}_ms" in row for whose in WHOSE):
            row["ratio"] = row["cutile_ms"] / row["tilewright_ms"]
        rows.append(row)
    return rows


def tell(row: Row) -> None:
    if "ratio" in row:
        times = " ".join(f"{row[f'{whose}_ms']:9.4f}" for whose in WHOSE)
        print(f"{row['ratio']:6.2f}  {times} ms  {row['plot']}  {row['case']}", flush=True)
    else:
        what = "; ".join(f"{whose} {row.get(f'{whose}_wrong', 'runs')}" for whose in WHOSE)
        print(f"    --  {row['plot']}  {row['case']}: {what}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="a checkout of NVIDIA/TileGym")
    parser.add_argument("--only", default="", help="files whose names match this pattern")
    parser.add_argument("--seconds", type=float, default=60, help="after so long no further case of a plot begins")
    parser.add_argument("--limit", type=float, default=600, help="a file may take so many seconds")
    parser.add_argument(
        "--jobs", type=int, default=min(8, os.cpu_count() or 1), help="files at a time in the beginning"
    )
    parser.add_argument("--json", type=Path, help="append the figures to this file of JSON lines")
    parser.add_argument("--serve", choices=WHOSE, help=argparse.SUPPRESS)
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    checkout = args.checkout.resolve()
    if args.serve:
        return serve(checkout, args.serve, args.seconds, args.once)
    os.environ["TILEGYM_DISABLE_AUTOTUNE"] = "1"
    files = benchmark_files(checkout, args.only)
    fill_caches(checkout, files, args.seconds, args.limit, args.jobs)
    servers = [Server(checkout, whose, args.seconds, args.limit) for whose in WHOSE]
    ratios = []
    for file in files:
        for row in side_by_side(file, servers):
            tell(row)
            ratios += [row["ratio"]] if "ratio" in row else []
            if args.json:
                with args.json.open("a") as out:
                    print(json.dumps(row), file=out)
    for server in servers:
        server.close()
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{len(ratios)} cases: mean {mean:.3f}, least {min(ratios):.3f}, {sum(r < 1 for r in ratios)} under 1")


if __name__ == "__main__":
    main()
