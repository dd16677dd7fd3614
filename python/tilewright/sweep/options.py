"""The options of `tilewright sweep`, `records` and `fit`. What runs them is imported when it is asked for."""

from __future__ import annotations

import argparse
import functools
import importlib
import math
from typing import Any

FOLDER = "records"
ACTIONS = ("list", "best", "merge", "diff", "prune", "page")


def _run(name: str, options: argparse.Namespace) -> int:
    command = importlib.import_module(".command", __package__)
    done: int = getattr(command, name)(options)
    return done


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number of seconds")
    return value


def add_parsers(commands: Any) -> None:
    sweep = commands.add_parser(
        "sweep",
        help="measure a kernel over every choice that it has, and keep records",
        description="Measures candidates of a kernel over axes: its constants, hints, layouts of its tiles by name. "
        "Each measurement is a line of the records; a sweep that was stopped goes on where it was.",
        epilog="example: tilewright sweep python/examples/softmax.py:softmax --arg 'X=f32[4096,4096]' "
        "--arg 'Y=f32[4096,4096]' --arg TN=4096 --grid 'X.shape[0]' --axis 'layout(x)' --axis warps -o records/",
    )
    sweep.add_argument("kernel", metavar="FILE:KERNEL", help="a file and the name of a kernel in it, or module:kernel")
    sweep.add_argument("--arg", action="append", default=[], metavar="NAME=WHAT", help="a parameter, as for tune")
    sweep.add_argument("--shapes", metavar="FILE", help="TOML with a launch each, in the place of --arg")
    sweep.add_argument(
        "--grid", metavar="EXPR", help="blocks along each axis: 'cdiv(A.shape[0], TM), cdiv(B.shape[1], TN)'"
    )
    sweep.add_argument(
        "--axis",
        action="append",
        default=[],
        metavar="NAME[=VALUES][ if CONDITION]",
        help="what varies; repeat it for each: TM=32..256*2, TN=TM,2*TM, warps, stages=2..5, 'layout(p)', "
        "'roles=auto,one if family != \"fma\"'",
    )
    sweep.add_argument("--where", action="append", default=[], metavar="EXPR", help="a constraint: 'TM * TN <= 16384'")
    sweep.add_argument(
        "--on", default="auto", metavar="WHERE", help="auto, cpu, cpu*2, cuda:0,cuda:1, dask://host:8786"
    )
    sweep.add_argument(
        "--sampler", default="model", metavar="NAME", help="model (default), exhaustive, random or optuna"
    )
    sweep.add_argument("--trials", type=int, metavar="N", help="candidates of a shape, at most")
    sweep.add_argument("--budget", type=_seconds, metavar="SECONDS", help="for all of the sweep")
    sweep.add_argument("--seed", type=int, default=0, help="of random and optuna (default: 0)")
    sweep.add_argument(
        "--timeout", type=_seconds, default=10.0, metavar="SECONDS", help="a launch that takes longer hangs"
    )
    sweep.add_argument(
        "--compile-timeout",
        type=_seconds,
        default=60.0,
        metavar="SECONDS",
        help="a candidate that compiles longer fails",
    )
    sweep.add_argument(
        "--scratch",
        action="append",
        default=[],
        metavar="NAME",
        help="an array whose contents nobody wants; repeatable",
    )
    sweep.add_argument("--forget", action="store_true", help="do not keep the best where tune.launch finds it")
    sweep.add_argument("-o", "--output", default=FOLDER, metavar="FOLDER", help=f"of the records (default: {FOLDER}/)")
    sweep.add_argument("--html", metavar="FILE", help="the page (default: beside the records)")
    sweep.set_defaults(run=functools.partial(_run, "command_sweep"))

    kept = commands.add_parser("records", help="look at the records of sweeps, merge, compare, prune them")
    kept.add_argument("action", choices=ACTIONS, help="page: an HTML page of them; diff: two, the earlier one first")
    kept.add_argument("places", nargs="+", metavar="PLACE", help="files, folders, or addresses that fsspec opens")
    kept.add_argument("-o", "--output", metavar="FILE", help="of merge and page")
    kept.add_argument(
        "--least", type=float, default=0.0, metavar="PERCENT", help="of diff: what moved less is not told"
    )
    kept.add_argument("--compilers", action="store_true", help="of prune: leave out what older compilers made")
    kept.add_argument("--failures", action="store_true", help="of prune: leave out what failed")
    kept.set_defaults(run=functools.partial(_run, "command_records"))

    fitted = commands.add_parser(
        "fit",
        help="fit the cost model's constants to records",
        description="Least squares on the logarithm of times, cross-validated by problem. Prints error and regret of "
        "untuned choices, before and after, by kernel.",
    )
    fitted.add_argument("places", nargs="+", metavar="PLACE", help="records")
    fitted.add_argument("--folds", type=int, default=5, help="of the cross-validation (default: 5)")
    fitted.add_argument(
        "--only", metavar="NAMES", default="", help="fit these constants, and leave the others: wave_ns,memory_ns"
    )
    fitted.add_argument("-o", "--output", metavar="FILE", help="the constants as JSON")
    fitted.set_defaults(run=functools.partial(_run, "command_fit"))
