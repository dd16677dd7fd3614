"""Prints what the compiler makes of each program at its full size, without a GPU.

PYTHONPATH=python python test/programs/show.py [PART OF A NAME] [--target sm_90a] [--remarks]

Instructions, waits, rings, roles, registers and spills, as test/spellings/plan.py reads them.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "programs"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "spellings"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "random_products"))
import attention_kernels  # noqa: F401
import plan
import product_kernels  # noqa: F401
import row_kernels  # noqa: F401
from numbers_of import NumPy
from program import PROGRAMS


class Shapes(NumPy):
    """Arrays of zeros whose memory no one has touched: a launch knows of them what it would, and they cost nothing."""

    def integers(self, low: int, high: int, shape: tuple[int, ...]) -> Any:
        return np.zeros(shape)

    def normal(self, shape: tuple[int, ...]) -> Any:
        return np.zeros(shape)

    def of_dtype(self, x: Any, dtype: str) -> Any:
        return np.zeros(np.shape(x), super().of_dtype(np.zeros(()), dtype).dtype)

    def poisoned(self, shape: tuple[int, ...], dtype: str) -> Any:
        return self.of_dtype(np.broadcast_to(np.float64(0), shape), dtype)


def key_of(launch: Any) -> Any:
    """What the launch is compiled for."""
    return launch.kernel.specialization(tuple(launch.arguments))[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", default="", help="only programs whose name contains this")
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--remarks", action="store_true", help="what the compiler tells of each line, too")
    options = parser.parse_args()
    for name, entry in PROGRAMS.items():
        if options.name not in name:
            continue
        launch = entry.make(Shapes(0), **entry.full)
        key = key_of(launch)
        start = time.perf_counter()
        try:
            text = str(plan.of(launch.kernel, key, options.target))
        except Exception as problem:  # the others are shown, too
            text = f"{type(problem).__name__}: {str(problem).splitlines()[0]}"
        print(f"{name}: {text} ({time.perf_counter() - start:.1f} s)", flush=True)
        if options.remarks:
            for _, line, message in launch.kernel.capture(options.target, key).lower("llvm"):
                print(f"    {line}: {message}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
