"""How long a user waits: import, the first launch of each example with an empty cache, and from the disk cache.

    python bench/compile.py [--target sm_90a] [--out FILE]

Each figure comes from a process of its own (median of several). `cold` compiles a kernel for the given GPU down to PTX,
which needs no GPU, after one small kernel has warmed the process; `first` is the first launch on the CPU, and on a GPU
where torch finds one, with an empty disk cache (the driver's own cache is off): capture, compiler and the driver's
assembler, less a later launch; `cached` the same with the cache that it left. `steps` are the milliseconds of each step
(TILEWRIGHT_TIMES). The GPU comes first, with three processes of some four seconds; its programs are those of the goals:
vector add 30 ms, matmul 128x256x64 200 ms, attention 128x128 500 ms.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from record import ROOT, Results, cpu_name, versions

EXAMPLES = ROOT / "python" / "examples"
F16 = {name: f"{name}=f16[?,?]" for name in "ABCXY"}
PROGRAMS = {
    "vector_add": ["A=f32[?]", "B=f32[?]", "C=f32[?]", "T=1024"],
    "softmax": [F16["X"], F16["Y"], "TN=4096"],
    "matmul": [F16["A"], F16["B"], F16["C"], "TM=128", "TN=256", "TK=64"],
    "attention": [*(f"{name}=f16[?,?,?,?]" for name in "QKVY"), "SCALE=0.125", "TM=128", "TN=128", "D=128"],
}


def child_import() -> None:
    begin = time.perf_counter()
    import tilewright  # noqa: F401
    from tilewright import tile  # noqa: F401

    print(json.dumps({"import_ms": 1e3 * (time.perf_counter() - begin)}))


def child_cold(target: str) -> None:
    from tilewright import cli

    def compile_once(name: str) -> float:
        kernel = cli.load_kernel(f"{EXAMPLES / name}.py:{name}")
        key = cli.specialization(kernel, PROGRAMS[name])
        begin = time.perf_counter()
        cli.lower(kernel, key, target, "asm" if target.startswith("cpu") else "ptx")
        return 1e3 * (time.perf_counter() - begin)

    compile_once("vector_add")
    print(json.dumps({name: compile_once(name) for name in PROGRAMS}))


def child_launch(device: str) -> None:
    sys.path.insert(0, str(EXAMPLES))
    import attention
    import matmul
    import softmax
    import vector_add

    if device == "cpu":
        import numpy as np

        tiles, head, rows = (64, 64, 64), 64, (64, 64)
        square, heads = (128, 128), (1, 1)

        def zeros(*shape: int) -> Any:
            return np.zeros(shape, np.float32)
    else:
        import torch

        tiles, head, rows = (128, 256, 64), 128, (128, 128)
        square, heads = (4096, 4096), (8, 32)  # tiles for two turns of all multiprocessors: else they may be cut

        def zeros(*shape: int) -> Any:
            return torch.zeros(shape, dtype=torch.bfloat16, device="cuda")

        vector_add.run(zeros(100), zeros(100), zeros(100), tile=512)  # opens the driver

    work = {
        "vector_add": lambda: vector_add.run(zeros(100), zeros(100), zeros(100)),
        "softmax": lambda: softmax.run(zeros(2, 4096), zeros(2, 4096)),
        "matmul": lambda: matmul.run(*(zeros(*square) for _ in range(3)), tiles=tiles),
        "attention": lambda: attention.run(*(zeros(*heads, 256, head) for _ in range(4)), tiles=rows),
    }
    times = {}
    for name, run in work.items():
        begin = time.perf_counter()
        run()
        first = time.perf_counter() - begin
        begin = time.perf_counter()
        run()
        times[name] = 1e3 * (first - (time.perf_counter() - begin))
    print(json.dumps(times))


GOALS = {"vector_add": 30, "matmul": 200, "attention": 500}  # milliseconds of a first launch on an H200
TIMES = re.compile(r"^(\w+) for \w+: [\d.]+ ms \((.*)\)$", re.MULTILINE)


def steps_of(told: str) -> dict[str, dict[str, float]]:
    """Milliseconds by program and step, from what TILEWRIGHT_TIMES prints; the last compilation of each counts."""
    return {
        name: {step: float(ms) for step, _, ms in (item.rpartition(" ") for item in steps.split(", "))}
        for name, steps in TIMES.findall(told)
    }


def child(*arguments: str, cache: str, steps: dict[str, dict[str, float]] | None = None) -> dict[str, float]:
    """What a process of its own measured; `steps` gets the times of its compilations."""
    environment = os.environ | {"TILEWRIGHT_CACHE_DIR": cache, "CUDA_CACHE_DISABLE": "1"}
    if steps is not None:
        environment["TILEWRIGHT_TIMES"] = "1"
    command = [sys.executable, str(Path(__file__)), "--child", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)} failed:\n{done.stderr}")
    if steps is not None:
        steps |= steps_of(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def has_gpu() -> bool:
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


def medians(rows: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(row[key] for row in rows) for key in rows[0]}


def launches(device: str, rounds: int, cached_rounds: int, folder: str, results: Results) -> None:
    """First launches with an empty cache, in so many processes, then with the caches that they left."""
    steps: dict[str, dict[str, float]] = {}
    caches = [f"{folder}/{device}{number}" for number in range(rounds)]
    first = medians([child("launch", device, cache=cache, steps=steps) for cache in caches])
    cached = medians([child("launch", device, cache=cache) for cache in caches[:cached_rounds]])
    for name, ms in first.items():
        results.add(
            bench="first launch",
            target=device,
            program=name,
            ms=ms,
            cached_ms=cached[name],
            steps=steps.get(name, {}),
        )
        if device == "cuda" and name in GOALS:
            print(f"{name}: {ms:.0f} ms (goal: at most {GOALS[name]})", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="sm_90a", help="compiled for (default: sm_90a)")
    parser.add_argument("--rounds", type=int, default=5, help="processes of each figure (default: 5)")
    parser.add_argument("--out", type=Path, help="the results, a JSON object a line")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        kind, *rest = options.child
        {"import": child_import, "cold": child_cold, "launch": child_launch}[kind](*rest)
        return 0

    results = Results(
        "compile", cpu_name(), options.out, versions=versions("numpy", "tilewright"), rounds=options.rounds
    )
    with tempfile.TemporaryDirectory() as folder:
        if has_gpu():
            launches("cuda", 2, 1, folder, results)
        launches("cpu", options.rounds, options.rounds, folder, results)
        imports = [child("import", cache=folder) for _ in range(options.rounds)]
        results.add(bench="import", ms=medians(imports)["import_ms"])
        for target in (options.target, "cpu"):
            cold = medians([child("cold", target, cache=folder) for _ in range(options.rounds)])
            for name, ms in cold.items():
                results.add(bench="cold compile", target=target, program=name, ms=ms)
    print(f"written to {results.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
