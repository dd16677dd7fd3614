"""Runs many random programs of threads at once, and tells which the reference and a back end disagree on.

    python test/random_simt/run.py --backend cpu --count 10000 --processes 16 --seconds 540 --out failures

`--backend`: cpu, interpret, emulated (TILEWRIGHT_EMULATE names the target), or a
target such as sm_90a, for which programs are compiled only. Failing programs go to `--out`, each with what was wrong
and its choices, as a file that `--again FILE` runs once more; with `--shrink` it looks for the smallest program that
fails alike, and prints it. The exit status is 1 if a program is wrong, crashes, is refused or does not end.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import program_runner


class Threads:
    script = Path(__file__).resolve()

    def choose(self, seed: int, options: argparse.Namespace) -> Any:
        return {"kind": "simt", "seed": seed}

    def check(self, choices: Any, backend: str, folder: Path) -> Any:
        from random_simt.check import check

        return check(choices, backend, folder)

    def source_of(self, choices: Any) -> str:
        from random_simt.check import source_of

        return source_of(choices)

    def plainer(self, choices: Any) -> Iterator[Any]:
        from random_simt.check import plainer

        return plainer(choices)

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        pass


if __name__ == "__main__":
    sys.exit(program_runner.main(Threads(), __doc__))
