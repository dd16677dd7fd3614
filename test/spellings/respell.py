"""Programs of test/random_products with the plainest choices, and the plan of any other spelling of them.

    plan_of(gemm(loop="while"))

`show` prints the plans of all spellings beside the plain one's, those that differ marked:

    PYTHONPATH=python python test/spellings/respell.py [gemm|attention|backward]
"""

from __future__ import annotations

import functools
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "random_products"))

import plan
from check import arguments_of, kernel_of, program_of
from choices import TABLES, Choices, settle
from numbers_of import NumPy

from tilewright import cli
from tilewright.errors import TileError

SIZES = {"gemm": (512, 512, 512, 1), "attention": (512, 2), "backward": (512, 2)}
TILES = {
    "gemm": ((128, 256, 64), (128, 128, 64)),
    "attention": ((128, 128, 128), (128, 64, 64)),
    "backward": ((64, 128, 64),),
}
PLAIN = {"dtype": "bfloat16", "data": "normal", "small": False, "seed": 0}
OUT = {"gemm": {"out": "low"}, "attention": {}, "backward": {}}
SHORT = {"bfloat16": "bf16", "float16": "f16", "float32": "f32", "int32": "i32", "int8": "i8"}


def choices_of(kind: str, **other: Any) -> Choices:
    plainest = {name: values[0] for name, values in TABLES[kind].items()}
    start = {"kind": kind, "size": SIZES[kind], "tile": TILES[kind][0]}
    return settle(plainest | PLAIN | OUT[kind] | start | other)


gemm = functools.partial(choices_of, "gemm")
attention = functools.partial(choices_of, "attention")
backward = functools.partial(choices_of, "backward")


def described(name: str, value: Any, dtype: Any) -> str:
    """An argument as the command line names it: an aligned array, so that no memory of this process decides."""
    text = SHORT.get(str(dtype), str(dtype))
    return f"{name}={text}[{','.join('?' * value.ndim)}]"


@functools.cache
def plan_of_text(text: str, target: str) -> plan.Plan:
    choices = json.loads(text)
    program = program_of(choices)
    with tempfile.TemporaryDirectory() as folder:
        kernel = kernel_of(program.source(text), Path(folder))
        names = list(kernel.parameters)
        arguments = arguments_of(choices, NumPy(0))
        given = [described(name, a, a.dtype) for name, a in zip(names, arguments, strict=True)]
        return plan.of(kernel, cli.specialization(kernel, given), target)


def plan_of(choices: Choices, target: str = "sm_90a") -> plan.Plan:
    return plan_of_text(json.dumps(choices), target)


def spellings(kind: str) -> Iterator[tuple[str, Any]]:
    for name, values in TABLES[kind].items():
        if name not in ("dtype", "tile", "unit", "data", "second", "after", "mask", "score", "groups", "bias", "lse"):
            yield from ((name, value) for value in dict.fromkeys(values[1:]) if value != values[0])
    if kind == "gemm":
        yield "loop", "ahead"


def show(kind: str) -> None:
    for tile in TILES[kind]:
        plain = plan_of(choices_of(kind, tile=tile))
        print(f"{kind} {tile}: {plain}")
        for name, value in spellings(kind):
            try:
                found: Any = plan_of(choices_of(kind, tile=tile, **{name: value}))
                same = found.is_as_good_as(plain)
            except TileError as error:
                found, same = error.message, False
            print(f"  {' ' if same else '!'} {name} {value}: {'' if same else found}", flush=True)


if __name__ == "__main__":
    for kind in sys.argv[1:] or list(TABLES):
        show(kind)
