"""What tuning is worth: kernels with the tile sizes that one would write down, beside the best of `tune.search`.

    python bench/tuned.py [--only NAME] [--shape TEXT] [--budget SECONDS] [--seconds N] [--plots FOLDER] [--out FILE]

`untuned` is one choice for all shapes, with no hint. A search measures it and its candidates in turns, in one process,
with the L2 cache emptied before each launch, as a launch runs them (tiles sliced, shared or coarsened); the figure is
the median. `ratio` is the speed of the untuned kernel over that of the tuned one: 1 means that there was nothing to
find, and the goal is 0.93. Results are checked against the untuned kernel's. `dropped` says what did not work, and why.
A line takes 3 to 8 seconds; `--seconds` is for all of them: what has not begun by then is told and left out.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from record import ROOT, Results, clocks, versions

sys.path.insert(0, str(ROOT / "python" / "examples"))
import attention
import matmul
import softmax
import vector_add
from memory import layer_norm, rms_norm
from tilewright import tile as ct
from tilewright import tune
from tilewright.errors import TileError

Case = tuple[str, str, Any, tuple[Any, ...], dict[str, tuple[Any, ...]], Callable[..., Any]]
LAYOUTS = {"layout_rank": (0, 1)}
ROWS = 16384


def random(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype)


def vector_add_cases() -> Iterator[Case]:
    a, b, c = (random(1 << 27, dtype=torch.float32) for _ in range(3))
    space = {"T": (512, 1024, 2048, 4096, 8192), "num_warps": (None, 4, 8), **LAYOUTS}
    grid = lambda A, T: ct.cdiv(A.shape[0], T)  # noqa: E731
    yield "vector add f32", f"{1 << 27}", vector_add.vector_add, (a, b, c, 2048), space, grid


def row_cases(name: str, kernel: Any, arguments: Callable[[torch.Tensor, int], tuple[Any, ...]]) -> Iterator[Case]:
    space = {"num_warps": (None, 1, 2, 4, 8, 16), **LAYOUTS}
    for columns in (1024, 4096, 16384):
        args = arguments(random(ROWS, columns), columns)
        yield f"{name} bf16", f"{ROWS}x{columns}", kernel, args, space, lambda X: X.shape[0]


def softmax_cases() -> Iterator[Case]:
    return row_cases("softmax", softmax.softmax, lambda x, n: (x, torch.empty_like(x), n))


def rms_norm_cases() -> Iterator[Case]:
    return row_cases("rms norm", rms_norm, lambda x, n: (x, random(n), torch.empty_like(x), 1e-5, n, n))


def layer_norm_cases() -> Iterator[Case]:
    return row_cases("layer norm", layer_norm, lambda x, n: (x, random(n), random(n), torch.empty_like(x), 1e-5, n, n))


def matmul_cases() -> Iterator[Case]:
    space = {"TM": (64, 128, 256), "TN": (64, 128, 256), "TK": (64, 128)}
    grid = lambda A, B, TM, TN: (ct.cdiv(A.shape[0], TM), ct.cdiv(B.shape[1], TN))  # noqa: E731
    for m, n, k in ((1024,) * 3, (2048,) * 3, (4096,) * 3, (8192,) * 3, (16384, 8192, 1280)):
        args = (random(m, k), random(k, n), random(m, n), 128, 256, 64)
        yield "matmul bf16", f"{m}x{n}x{k}", matmul.matmul, args, space, grid


def attention_cases() -> Iterator[Case]:
    space = {"TM": (64, 128), "TN": (32, 64, 128)}
    grid = lambda Q, TM: (ct.cdiv(Q.shape[2], TM), Q.shape[1], Q.shape[0])  # noqa: E731
    for shape in ((4, 16, 4096, 128), (4, 32, 4096, 64)):
        q, k, v, y = (random(*shape) for _ in range(4))
        args = (q, k, v, y, math.log2(math.e) / math.sqrt(shape[-1]), 128, 128, shape[-1])
        yield "attention bf16 causal", "x".join(map(str, shape)), attention.attention, args, space, grid


CASES = {
    "vector_add": vector_add_cases,
    "softmax": softmax_cases,
    "rms_norm": rms_norm_cases,
    "layer_norm": layer_norm_cases,
    "matmul": matmul_cases,
    "attention": attention_cases,
}


def measure(results: Results, case: Case, budget: float, limit: int, plots: Path | None) -> float | None:
    """Adds a line, and tells its ratio."""
    name, shape, kernel, args, space, grid = case
    before, begin = clocks(), time.monotonic()
    try:
        result = tune.search(
            kernel, args, space=space, grid=grid, budget=budget, limit=limit, record_file=None, tolerance=0.05
        )
    except TileError as problem:  # one kernel that fails must not hide the others' figures
        results.add(bench=name, shape=shape, failed=str(problem)[:400])
        return None
    best, untuned = result.best.measurement, result.untuned.measurement
    drops = [str(t) for t in result.trials if t.dropped and "not tried" not in t.dropped and "same" not in t.dropped]
    row: dict[str, Any] = {
        "bench": name,
        "shape": shape,
        "best": str(result.best.candidate),
        "measured": len(result.measured()),
    }
    row["seconds"] = time.monotonic() - begin
    if best is not None and untuned is not None:
        row |= {
            "untuned_ms": 1e3 * untuned.median,
            "tuned_ms": 1e3 * best.median,
            "ratio": best.median / untuned.median,
        }
        row |= {"low_ms": 1e3 * best.low, "high_ms": 1e3 * best.high}
    results.add(**row, dropped=drops[:8], clocks_before=before, clocks_after=clocks())
    if plots is not None:
        plots.mkdir(parents=True, exist_ok=True)
        result.plot(plots / f"{name}-{shape}.svg".replace(" ", "-"))
    return row.get("ratio")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(CASES), action="append", help="repeat it for several (default: all)")
    parser.add_argument("--shape", help="only shapes whose name has this text")
    parser.add_argument("--budget", type=float, default=2.0, help="seconds of measuring for each shape")
    parser.add_argument("--limit", type=int, default=12, help="candidates of each shape that are measured")
    parser.add_argument("--seconds", type=float, default=300.0, help="for all: no shape is begun later")
    parser.add_argument("--plots", type=Path, help="draw every sweep into this folder")
    parser.add_argument("--out", type=Path, help="the results, a JSON object a line")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("bench/tuned.py: torch sees no GPU")
    torch.manual_seed(0)
    device = torch.cuda.get_device_name()
    results = Results("tuned", device, options.out, versions=versions("numpy", "tilewright"), budget=options.budget)
    deadline, ratios = time.monotonic() + options.seconds, []
    for name in options.only or CASES:
        for case in CASES[name]():
            if options.shape and options.shape not in case[1]:
                continue
            if time.monotonic() > deadline:
                results.add(bench=case[0], shape=case[1], failed=f"not begun within {options.seconds:.0f} s")
                continue
            ratios.append(measure(results, case, options.budget, options.limit, options.plots))
            torch.cuda.empty_cache()
    found = [ratio for ratio in ratios if ratio is not None]
    if found:
        print(
            f"untuned against tuned: geometric mean {math.prod(found) ** (1 / len(found)):.3f}, least {min(found):.3f}"
        )
    print(f"written to {results.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
