"""Runs many random kernels of Numba at once, and tells which Numba's rules and a back end disagree on.

    python test/random_numba/run.py --backend cpu --count 10000 --processes 16 --seconds 540 --out failures

`--backend`: gpu, cpu, emulated (TILEWRIGHT_EMULATE names the target), or a target such as sm_90a, for which programs
are compiled only. Failing programs go to `--out`, each with what was wrong and its choices, as a file that
`--again FILE` runs once more; with `--shrink` it looks for the smallest program that fails alike, and prints it. The
exit status is 1 if a program is wrong, crashes, is refused or does not end.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import program_runner

FAMILY = program_runner.Drawn("numba", __file__)

if __name__ == "__main__":
    sys.exit(program_runner.main(FAMILY, __doc__))
