"""Whether kernels have become slower: a fixed set, as given, beside the last run on the same device.

    python bench/regress.py [--on auto] [--least 2] [--against FILE] [--only TEXT] [--out FILE]

A run is a file of sweep records (tilewright.sweep.records) in bench/results/; what moved beyond noise and by more than
--least percent is told. The exit status is 1 where something is slower.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path

import record as results
from tilewright.sweep import records
from tilewright.sweep.run import Plan, Sweep
from tilewright.sweep.shapes import Shape

EXAMPLES = results.ROOT / "python" / "examples"


def square(n: int, tiles: tuple[int, int, int]) -> Shape:
    arrays = tuple(f"{name}=bf16[{n},{n}]" for name in "ABC")
    constants = tuple(f"{name}={tile}" for name, tile in zip(("TM", "TN", "TK"), tiles, strict=True))
    return Shape((*arrays, *constants), (), "cdiv(A.shape[0], TM), cdiv(B.shape[1], TN)")


def rows(n: int, width: int) -> Shape:
    return Shape((f"X=bf16[{n},{width}]", f"Y=bf16[{n},{width}]", f"TN={width}"), (), "X.shape[0]")


def vectors(n: int) -> Shape:
    return Shape((*(f"{name}=f32[{n}]" for name in "ABC"), "T=1024"), (), "cdiv(A.shape[0], T)")


def heads(length: int) -> Shape:
    arrays = tuple(f"{name}=bf16[4,16,{length},64]" for name in "QKVY")
    return Shape((*arrays, "SCALE=0.18", "TM=64", "TN=64", "D=64"), (), "cdiv(Q.shape[2], TM), Q.shape[1], Q.shape[0]")


# Kernel -> shapes for a GPU, and small ones for a CPU. Odd sizes are among them.
CASES: dict[str, tuple[list[Shape], list[Shape]]] = {
    "vector_add.py:vector_add": ([vectors(1 << 24), vectors(9_999_991)], [vectors(1 << 16)]),
    "softmax.py:softmax": ([rows(8192, 4096), rows(1000, 2048)], [rows(64, 512)]),
    "matmul.py:matmul": (
        [square(4096, (128, 128, 64)), square(1000, (128, 128, 64))],
        [square(128, (64, 64, 32))],
    ),
    "attention.py:attention": ([heads(4096), heads(1000)], []),
}


def measure(out: Path, on: str, only: str) -> None:
    for place, (large, small) in CASES.items():
        shapes = small if on.startswith("cpu") else large
        if only in place and shapes:
            file, _, name = place.partition(":")
            Sweep(Plan(f"{EXAMPLES / file}:{name}", tuple(shapes), (), on=on, turns=False), out).run()


def last_run(folder: Path, out: Path, device: str) -> Path | None:
    """The latest file of another run on the device."""
    for path in sorted(folder.glob("*-regress.jsonl"), reverse=True):
        if path != out and any(r.device == device for r in records.read([path]).records.values()):
            return path
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", default="auto")
    parser.add_argument("--least", type=float, default=2.0, metavar="PERCENT")
    parser.add_argument("--against", type=Path, metavar="FILE")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases with this in their names")
    parser.add_argument("--out", type=Path, metavar="FILE")
    options = parser.parse_args()
    now = datetime.datetime.now().strftime("%Y-%m-%d-%H%M%S")
    out = options.out or results.RESULTS / f"{now}-regress.jsonl"
    measure(out, options.on, options.only)
    found = list(records.read([out]).records.values())
    failed = [r for r in found if not r.measured]
    for r in found:
        print(f"{r.kernel} {r.arguments}: {f'{r.us:.1f} us' if r.measured else f'failed: {r.why}'}")
    before = options.against or last_run(out.parent, out, found[0].device if found else "")
    if before is None:
        print(f"{out}: the first run on this device")
        return 1 if failed else 0
    moved = records.moves(records.read([before]).records.values(), found, options.least / 100)
    for move in moved:
        print(move)
    print(f"{out} beside {before}: {len(moved)} moved beyond noise and {options.least:g} %")
    return 1 if failed or any(move.ratio > 1 for move in moved) else 0


if __name__ == "__main__":
    sys.exit(main())
