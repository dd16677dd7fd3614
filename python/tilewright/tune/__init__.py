"""Tuning: find the quickest constants and hints of a kernel for given arguments, keep them, and use them again.

    from tilewright import tune

    result = tune.search(kernel, args, space={"TM": (64, 128), "num_warps": (4, 8)}, grid=lambda A, TM: ...)
    print(result)                 # a table; result.plot("sweep.svg") draws it
    result.launch()

    tune.launch(stream, grid, kernel, args)    # in any later process: as ct.launch, with what was found

space.py       what may vary
cost.py        the model that ranks candidates before anything is compiled
search.py      the search: compile in parallel, try, compare, time in turns
launching.py   launches with what was found; automatic.py a kernel that its first launch tunes
exhaustive.py  cuTile's search
worker.py      the process that candidates run in; trial.py what it does, memory.py the copies of the arrays
statistics.py  intervals, and when the best is clear
record.py      the text file
plot.py        pictures
"""

from .automatic import AutotunedKernel, autotune
from .exhaustive import TuningResult, exhaustive_search
from .launching import Best, best, launch
from .record import Entry
from .search import Result, Trial, search
from .space import Candidate
from .statistics import Measurement

__all__ = [
    "AutotunedKernel",
    "Best",
    "Candidate",
    "Entry",
    "Measurement",
    "Result",
    "Trial",
    "TuningResult",
    "autotune",
    "best",
    "exhaustive_search",
    "launch",
    "search",
]
