"""What a random program is made of: each choice with its values, the plainest first, and which values go together.

    choices = choose(seed, "fill")     # every choice of one kind of program, the same for the same seed
    plainer(choices)                   # the same program with one choice less, for each

A choice that others make meaningless or wrong is set to what goes with them (`settle`), so that any mixture is a
valid program, and one that drops to its plainest value remains one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

Choices = dict[str, Any]

LOOPS = ["for", "step", "while", "reversed", "break", "two", "remainder", "peeled", "nested", "branch"]
FORMS = ["mma", "zeros", "zeros", "iadd", "matmul"]
SCALES = ["none", "none", "low", "wide", "half"]

HINTS: dict[str, list[Any]] = {
    "num_warps": [None, 4, 8],
    "num_stages": [None, 1, 2, 3],
    "num_ctas": [None, 1, 2],
    "occupancy": [None, 1, 2],
    "dynamic_schedule": [None, 0, 1],
    "dependent_launch": [None, 0],
    "layout_rank": [None, 1, 2],
}
SHARING: dict[str, list[Any]] = {"split_k": [None, 1, 2, 3], "slice_tiles": [None, 1, 2], "coarsen_tiles": [None, 1, 2]}
RESCALE: dict[str, list[Any]] = {"lazy_rescale": [None, 0, 1]}

ROWS = ["T", "permute", "transpose", "order", "columns", "gather", "masked"]
TURNED = ("T", "permute", "transpose", "order")
OPERANDS = ["load", "load", "T", "permute", "transpose", "order", "gather", "wrapped", "masked", "table"]
OPERANDS += ["flat", "flat columns", "flat wrapped"]

GEMM: dict[str, list[Any]] = {
    "dtype": [
        "float16", "float16", "bfloat16", "bfloat16", "tfloat32", "float8_e4m3fn", "float8_e5m2", "int8", "uint8",
    ],
    "sum": ["wide", "wide", "float16"],
    "tile": [
        (64, 64, 64), (128, 128, 64), (128, 256, 64), (128, 64, 64), (256, 128, 64), (64, 128, 32), (128, 128, 32),
        (64, 256, 64), (128, 128, 128), (32, 64, 64), (64, 32, 64), (32, 128, 32), (128, 32, 128), (16, 64, 64),
        (256, 64, 32), (64, 16, 64), (16, 128, 64),
    ],
    "left": OPERANDS,
    "right": OPERANDS,
    "loop": LOOPS,
    "form": FORMS,
    "grid": ["plane", "plane", "turned", "swizzle", "persistent", "persistent while", "batch"],
    "before left": ["none", "none", "low", "wide", "relu", "rows", "sum"],
    "before right": ["none", "none", "none", "wide", "one", "bytes", "grouped bytes"],
    "held": [False, False, False, True],
    "init": ["zeros", "zeros", "full", "load", "bias"],
    "second": [None, None, None, "right", "both"],
    "after": ["none", "none", "relu", "bias", "positions", "scale", "residual", "silu"],
    "out": ["sum", "low", "low"],
    "store": ["store", "store", "T", "order", "scatter", "flat", "rows"],
    "data": ["integers", "normal"],
    "unit": [16, 16, 64, 8, 1],
}  # fmt: skip

ATTENTION: dict[str, list[Any]] = {
    "dtype": ["float16", "float16", "bfloat16", "bfloat16", "float8_e4m3fn"],
    "tile": [
        (64, 64, 64), (128, 64, 64), (128, 128, 64), (128, 128, 128), (64, 64, 128), (128, 64, 128), (64, 32, 32),
        (128, 32, 32), (128, 32, 128), (64, 128, 128), (64, 128, 64), (16, 64, 64), (32, 32, 64),
    ],
    "keys": ["rows", "rows", "columns", "order", "gather", "masked", "paged"],
    "values": ["rows", "rows", "columns", "gather", "masked"],
    "place": ["heads first", "heads last"],
    "loop": [*LOOPS, "split"],
    "form": ["mma", "zeros", "matmul"],
    "scale": ["after", "wide", "low", "late"],
    "mask": ["none", "causal", "window", "lengths"],
    "score": ["softmax", "softmax", "softmax", "softmax", "relu", "sigmoid"],
    "base": ["exp2", "exp"],
    "init": ["-math.inf", "-1e30"],
    "early values": [False, True],
    "end": ["divide", "reciprocal"],
    "vectors": [False, True],
    "grid": ["plane", "turned", "backwards", "persistent"],
    "groups": [1, 1, 2],
    "bias": ["none", "none", "slopes", "cap"],
    "lse": [False, False, True],
    "unit": [64, 16, 1],
}  # fmt: skip

BACKWARD: dict[str, list[Any]] = {
    "dtype": ["float16", "float16", "bfloat16", "bfloat16", "tfloat32", "float32"],
    "tile": [
        (64, 64, 64), (128, 64, 64), (64, 128, 64), (128, 128, 64), (64, 64, 128), (128, 64, 128), (64, 128, 128),
        (128, 128, 128), (32, 64, 64), (64, 32, 64), (32, 32, 32), (16, 64, 64), (64, 64, 32), (64, 128, 32),
    ],
    "walk": ["keys", "keys", "queries", "queries", "both", "alone"],
    "scores": ["straight", "turned"],
    "sums": ["straight", "straight", "straight", "turned"],
    "q": ROWS, "k": ROWS, "v": ROWS, "dy": ROWS,
    "turn": ["T", "permute", "transpose"],
    "place": ["heads first", "heads first", "heads last"],
    "loop": [*LOOPS, "split"],
    "form": ["mma", "mma", "zeros", "matmul"],
    "scale": ["after", "early", "wide", "low"],
    "mask": ["none", "causal", "causal", "window"],
    "masked": ["weights", "scores"],
    "guard": [True, False],
    "base": ["exp2", "exp"],
    "statistics": ["lse", "lse", "lse", "divide", "reciprocal"],
    "vectors": ["reshape", "vector", "gather"],
    "delta": ["load", "load", "rows"],
    "difference": ["at once", "at once", "apart"],
    "order": ["values first", "products first", "values late"],
    "grid": ["plane", "turned", "backwards", "persistent"],
    "groups": [1, 1, 1, 2],
    "out": ["low", "low", "wide"],
    "unit": [64, 16, 1],
}  # fmt: skip

# How many of the programs have what came to the tables later: drawn apart, so that other programs keep their numbers.
LATER: dict[str, dict[str, tuple[Any, float]]] = {
    "gemm": {
        "dtype": ("float32", 0.1), "loop": ("ahead", 0.08), "grid": ("persistent swizzle", 0.08),
        "tile": ((128, 128, 256), 0.05), "one sum": (True, 0.3),
    },
    "attention": {"flush": (True, 0.2), "two parts": (True, 0.15)},
}  # fmt: skip

TABLES = {"gemm": GEMM, "attention": ATTENTION, "backward": BACKWARD}
BACKWARD_SHARE = 0.25  # of all programs


def hints_of(kind: str) -> dict[str, list[Any]]:
    return HINTS | {"gemm": SHARING, "attention": RESCALE}.get(kind, {})


def choose(seed: int, sizes: str = "fill", wanted: str | None = None) -> Choices:
    """The choices of program number `seed`, of the kind `wanted` if there is one. Sizes fill a GPU in three of four
    programs, or are `few` tiles, or `small`: such that an emulator runs the program in seconds."""
    pick = random.Random(seed)
    kind = pick.choice(["gemm", "attention"])
    if wanted or random.Random(f"{seed} kind").random() < BACKWARD_SHARE:
        kind = wanted or "backward"
    choices: Choices = {"kind": kind, "seed": seed, "small": sizes == "small"}
    choices |= {name: pick.choice(values) for name, values in TABLES[kind].items()}
    later = random.Random(f"{seed} later")
    choices |= {name: value for name, (value, share) in LATER.get(kind, {}).items() if later.random() < share}
    hinted = hints_of(kind) if pick.random() < 0.4 else {}
    for name, values in hinted.items():
        value = pick.choice(values) if pick.random() < 0.5 else None
        if value is not None:
            choices[name] = value
    fill = sizes == "fill" and pick.random() < 0.75
    size = {"gemm": gemm_size, "attention": attention_size, "backward": backward_size}[kind]
    choices["size"] = size(pick, choices, fill)
    return settle(choices)


def gemm_size(pick: random.Random, choices: Choices, fill: bool) -> tuple[int, int, int, int]:
    """Rows, columns, depth and number of batches; `fill`: at least 132 blocks."""
    steps = pick.choice([1, 2, 3, 4, 5, 7, 8, 9, 16])
    rows, columns = (pick.randint(8, 18), pick.randint(17, 24)) if fill else (pick.randint(1, 3), pick.randint(1, 3))
    if choices["small"]:
        deep = choices["tile"][2] > 128
        limits = zip(choices["tile"], (128, 128, 64), strict=True)
        choices["tile"] = (64, 64, 512) if deep else tuple(min(t, limit) for t, limit in limits)
        rows, columns, steps = min(rows, 2), min(columns, 2), min(steps, 2 if deep else 4)
    batches = 2 if choices["grid"] == "batch" else 1
    lengths = (
        ragged(pick, n * t, t, choices["unit"]) for n, t in zip((rows, columns, steps), choices["tile"], strict=True)
    )
    return (*lengths, batches)


def attention_size(pick: random.Random, choices: Choices, fill: bool) -> tuple[int, int]:
    """Length and heads."""
    if choices["small"]:
        choices["tile"] = tuple(min(t, 64) for t in choices["tile"])
        return ragged(pick, 64 * pick.randint(1, 4), 64, choices["unit"]), 2
    length = ragged(pick, pick.choice([256, 512, 640, 1024, 2048] if fill else [128, 256, 512]), 128, choices["unit"])
    blocks = -(-length // choices["tile"][0])
    heads = -(-132 // blocks) + pick.randint(0, 2 if length > 1024 else 9) if fill else pick.randint(1, 3)
    return length, heads + heads % 2


def backward_size(pick: random.Random, choices: Choices, fill: bool) -> tuple[int, int]:
    """Length and heads; a block takes TM queries, TN keys, or a whole head."""
    if choices["small"]:
        return attention_size(pick, choices, fill)
    whole, rows = choices["walk"] == "alone", choices["tile"][choices["walk"] == "keys"]
    lengths = [128, 256] if whole else [256, 512, 640, 1024] if fill else [128, 256, 512]
    length = ragged(pick, pick.choice(lengths), 128, choices["unit"])
    blocks = 1 if whole else -(-length // rows)
    heads = -(-132 // blocks) + pick.randint(0, 9) if fill else pick.randint(1, 3)
    return length, heads + heads % 2


def ragged(pick: random.Random, length: int, tile: int, unit: int) -> int:
    """Up to a tile shorter, by a multiple of `unit`; or as long as whole tiles."""
    if unit >= tile or pick.random() < 0.3:
        return length
    return length - unit * pick.randrange(tile // unit)


def settle(choices: Choices) -> Choices:
    """The same choices without what does not go together."""
    c = dict(choices)
    {"gemm": settle_gemm, "attention": settle_attention, "backward": settle_backward}[c["kind"]](c)
    return c


def settle_gemm(c: Choices) -> None:
    integers, narrow = c["dtype"] in ("int8", "uint8"), c["dtype"].startswith("float8")
    if integers:
        c["data"] = "integers"
        c["before left"] = {"low": "none", "wide": "none", "rows": "none"}.get(c["before left"], c["before left"])
    if integers or c["dtype"] in ("tfloat32", "float32", "bfloat16"):
        c["sum"] = "wide"
    if integers or narrow:  # a sum or a product of such tiles is not what is meant here
        c["form"] = {"iadd": "zeros", "matmul": "zeros"}.get(c["form"], c["form"])
        c["before left"] = {"sum": "none", "low": "none", "relu": "none", "rows": "none"}.get(
            c["before left"], c["before left"]
        )
        c["before right"] = "none" if c["before right"] != "wide" or integers else "wide"
        c["after"] = {"silu": "relu", "scale": "relu"}.get(c["after"], c["after"]) if integers else c["after"]
        c["out"] = "sum"
    if c["dtype"] in ("tfloat32", "float32"):
        c["tile"] = tuple(min(t, limit) for t, limit in zip(c["tile"], (128, 256, 32), strict=True))
    if c["dtype"] == "tfloat32":
        c["form"] = {"iadd": "zeros", "matmul": "zeros"}.get(c["form"], c["form"])
        c["before right"] = {"bytes": "none", "grouped bytes": "none", "one": "none"}.get(
            c["before right"], c["before right"]
        )
    if c["held"]:  # the left operand is the same in all iterations, which go along the columns
        c |= {"grid": "plane", "second": None, "init": "zeros"} | dict.fromkeys(SHARING)
        c["loop"] = {"peeled": "for", "remainder": "for", "two": "for", "ahead": "for"}.get(c["loop"], c["loop"])
        c["store"] = {"rows": "store"}.get(c["store"], c["store"])
        m, n, k, _ = c["size"]
        c["size"] = (m, n, min(k, c["tile"][2]), 1)
    if c["grid"] == "batch":
        c["left"], c["right"] = ({"T": "T", "load": "load"}.get(c[side], "load") for side in ("left", "right"))
        c["store"] = "store"
        c["init"] = "zeros" if c["init"] == "load" else c["init"]
    else:
        c["size"] = (*c["size"][:3], 1)
    if c["before right"] == "grouped bytes" and c["right"] not in ("load", *TURNED):
        c["right"] = "load"
    if (c["second"] or c["grid"] == "batch") and c["before right"] == "grouped bytes":
        c["before right"] = "bytes"
    if c["store"] == "rows":  # sums of rows of whole tiles: beyond the array is nothing but zeros
        c |= {"out": "sum", "init": "zeros"}
        c["after"] = {"bias": "none", "positions": "none", "residual": "none"}.get(c["after"], c["after"])
        c["before right"] = {"one": "none"}.get(c["before right"], c["before right"])
        c["right"] = {"wrapped": "gather", "table": "gather", "flat wrapped": "flat"}.get(c["right"], c["right"])


def settle_attention(c: Choices) -> None:
    if c["dtype"].startswith("float8"):
        c["form"] = {"matmul": "zeros"}.get(c["form"], c["form"])
        c["scale"] = {"low": "wide"}.get(c["scale"], c["scale"])
    if c["score"] != "softmax":
        c |= {"lse": False, "init": "-1e30", "vectors": False, "lazy_rescale": None}
        c["scale"] = {"late": "after"}.get(c["scale"], c["scale"])
        c["base"] = "exp"
    # An iteration may see no key of a row at all: its largest score is finite, so that nothing is infinity - infinity.
    if c["loop"] in ("reversed", "nested", "branch", "two") or c["mask"] in ("window", "lengths") or c["bias"] == "cap":
        c["init"] = "-1e30"
    if c["mask"] == "lengths" or c["mask"] == "window":
        c["loop"] = {"split": "for", "remainder": "for", "peeled": "for"}.get(c["loop"], c["loop"])
    if c["keys"] == "paged":
        c["values"] = "rows"
    if c["place"] == "heads last":
        c["keys"] = {"columns": "rows", "order": "rows"}.get(c["keys"], c["keys"])
        c["values"] = {"columns": "rows"}.get(c["values"], c["values"])


def settle_backward(c: Choices) -> None:
    if c["dtype"] in ("tfloat32", "float32"):
        c["tile"] = tuple(min(t, limit) for t, limit in zip(c["tile"], (128, 64, 64), strict=True))
    if c["dtype"] == "tfloat32":
        c["form"] = {"matmul": "zeros"}.get(c["form"], c["form"])
        c["scale"] = {"wide": "after", "low": "early"}.get(c["scale"], c["scale"])
    if c["walk"] == "both":
        c |= {"groups": 1, "tile": (min(c["tile"][:2]), min(c["tile"][:2]), c["tile"][2])}
    if c["statistics"] != "lse":  # rows beyond the end are divided by zero
        c |= {"guard": True, "masked": "weights", "loop": {"split": "for"}.get(c["loop"], c["loop"])}
    if c["mask"] == "window":
        c["loop"] = {"split": "for"}.get(c["loop"], c["loop"])
    if c["delta"] == "rows":
        c["dy"] = {"columns": "T"}.get(c["dy"], c["dy"])
    if c["place"] == "heads last":
        c |= {x: "T" for x in ("q", "k", "v", "dy") if c[x] in ("columns", "order")}


def plainer(choices: Choices) -> Iterator[Choices]:
    """Programs with one choice set to its plainest value, or with a smaller size."""
    kind = choices["kind"]
    for name in hints_of(kind):
        if choices.get(name) is not None:
            yield settle({key: value for key, value in choices.items() if key != name})
    for name, values in TABLES[kind].items():
        if choices[name] != values[0] and name not in ("tile", "unit"):
            other = settle({**choices, name: values[0]})
            if other[name] == values[0]:
                yield other
    for axis, length in enumerate(choices["size"]):
        tile = choices["tile"][min(axis, 2)] if kind == "gemm" else choices["tile"][0]
        for less in (tile, length // 2 // tile * tile, length // tile * tile):
            if 0 < less < length and (kind == "gemm" or axis == 0):
                yield settle({**choices, "size": (*choices["size"][:axis], less, *choices["size"][axis + 1 :])})
