"""Runs many random programs with products at once, and tells which are wrong, refused, crash, or do not end.

    python test/random_products/run.py --count 20000 --processes 10 --seconds 540 --seed 0 --out failures

`--backend`: gpu (needs torch), cpu, interpret, emulated (TILEWRIGHT_EMULATE names the target), or a target such as
sm_90a, for which programs are compiled only. Programs run in processes of their own: after a crash, an error of the
GPU or a program that does not end, a new one goes on with the next program. Failing programs go to `--out`, each with
what was wrong and its choices, as a file that `--again FILE` runs once more; with `--shrink` it looks for a plainer
program that fails alike. The exit status is 1 if a program is wrong, crashes or does not end.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import program_runner


class Products:
    script = Path(__file__).resolve()

    def choose(self, seed: int, options: argparse.Namespace) -> Any:
        from choices import choose

        return choose(seed, options.sizes or usual_sizes(options.backend), options.kind)

    def check(self, choices: Any, backend: str, folder: Path) -> Any:
        from check import check

        return check(choices, backend, folder)

    def source_of(self, choices: Any) -> str:
        from check import source_of

        return source_of(choices)

    def plainer(self, choices: Any) -> Iterator[Any]:
        from choices import plainer

        return plainer(choices)

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--kind", choices=("gemm", "attention", "backward"), help="of all programs")
        parser.add_argument(
            "--sizes", choices=("fill", "few", "small"), help="what fills a GPU; few tiles; what a CPU runs"
        )


def usual_sizes(backend: str) -> str:
    if backend in ("cpu", "interpret", "emulated"):
        return "small"
    return "few" if backend.startswith("sm_") else "fill"


if __name__ == "__main__":
    sys.exit(program_runner.main(Products(), __doc__))
