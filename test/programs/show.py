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
from respell import SHORT

from tilewright import cli


class Shapes(NumPy):
    """Arrays that have a shape and no memory."""

    def integers(self, low: int, high: int, shape: tuple[int, ...]) -> Any:
        return np.broadcast_to(np.float64(0), shape)

    def normal(self, shape: tuple[int, ...]) -> Any:
        return np.broadcast_to(np.float64(0), shape)

    def of_dtype(self, x: Any, dtype: str) -> Any:
        return np.broadcast_to(super().of_dtype(np.zeros(()), dtype), np.shape(x))

    def poisoned(self, shape: tuple[int, ...], dtype: str) -> Any:
        return self.of_dtype(np.broadcast_to(np.float64(0), shape), dtype)


SCALARS = {"float": "f32", "int": "i32"}
MULTIPLE = 16  # what launches compile for, of numbers that are not negative


def described(name: str, annotation: str, value: Any) -> str:
    """An argument as the command line names it: an aligned array, a number of a launch, a constant."""
    if isinstance(value, np.ndarray):
        return f"{name}={SHORT.get(str(value.dtype), str(value.dtype))}[{','.join('?' * value.ndim)}]"
    return f"{name}={SCALARS.get(annotation, value)}"


def key_of(launch: Any) -> Any:
    annotations = launch.kernel.function.__annotations__
    pairs = zip(launch.kernel.parameters, launch.arguments, strict=True)
    given = [(described(n, annotations.get(n, ""), value), value) for n, value in pairs]
    entries = cli.specialization(launch.kernel, [text for text, _ in given])
    return tuple(known(entry, value) for entry, (_, value) in zip(entries, given, strict=True))


def known(entry: Any, value: Any) -> Any:
    """An entry of a key with what a launch with this number says of it."""
    is_multiple = entry[:2] == ("scalar", "int32") and value % MULTIPLE == 0
    return ("scalar", "int32", MULTIPLE) if is_multiple else entry


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
