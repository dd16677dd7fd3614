"""The cases of bench/compute.py: those of a program written with CUB, under its names, with its kinds of data.

Integers have all bit patterns, floats lie from 0 to 1; the values of pairs are the numbers of the items; segments have
lengths from 1 to twice their mean.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from compute_data import NAMES, holds, mix, near, ordered, prints, total
from tilewright import compute
from tilewright.compute import OpKind, SortOrder

Held = dict[str, Any]  # the arrays of a case, of torch or NumPy


@dataclasses.dataclass
class Case:
    """`make` is stage 1 and `arguments` are those behind the temporary storage, both of arrays as they are shown."""

    bench: str
    dtype: str
    n: int
    arrays: Callable[[Any], Held]
    shown: dict[str, Any]  # dtypes under which algorithms see the arrays, where that is not the arrays' own
    make: Callable[[Held], Any]
    arguments: Callable[[Held], tuple[Any, ...]]
    check: Callable[[Any, Held], bool]
    other: Callable[[Any, Held], Any] | None = None  # the same work by torch or NumPy


def larger(a, b):  # type: ignore[no-untyped-def]  # of two magnitudes
    return a if abs(a) > abs(b) else b


def greatest(a, b):  # type: ignore[no-untyped-def]
    return a if a > b else b


def below(a, b):  # type: ignore[no-untyped-def]
    return a < b


Range = compute.gpu_struct({"lo": np.float32, "hi": np.float32, "count": np.int64}, "Range")


def join(a, b):  # type: ignore[no-untyped-def]
    return Range(a.lo if a.lo < b.lo else b.lo, a.hi if a.hi > b.hi else b.hi, a.count + b.count)


def _dtypes(dtype: str, *names: str) -> dict[str, Any]:
    return dict.fromkeys(names, np.dtype(NAMES[dtype]))


# --- transform ----------------------------------------------------------------------------------------------------


def transforms(n: int) -> Iterator[Case]:
    def unary(x):  # type: ignore[no-untyped-def]
        return x * 2 + 1

    def binary(x, y):  # type: ignore[no-untyped-def]
        return x * 2 + y

    for dtype in ("f32", "f64"):
        yield Case(
            "transform_unary",
            dtype,
            n,
            lambda d, t=dtype: {"x": d.random(n, t), "out": d.zeros(n, t)},
            {},
            lambda a: compute.make_unary_transform(a["x"], a["out"], unary),
            lambda a: (a["x"], a["out"], unary, n),
            lambda d, a: holds(n, lambda i, j: near(a["out"][i:j], a["x"][i:j] * 2 + 1, 1e-6)),
        )
        yield Case(
            "transform_binary",
            dtype,
            n,
            lambda d, t=dtype: {"x": d.random(n, t), "y": d.random(n, t), "out": d.zeros(n, t)},
            {},
            lambda a: compute.make_binary_transform(a["x"], a["y"], a["out"], binary),
            lambda a: (a["x"], a["y"], a["out"], binary, n),
            lambda d, a: holds(n, lambda i, j: near(a["out"][i:j], a["x"][i:j] * 2 + a["y"][i:j], 1e-6)),
            lambda lib, a: lib.add(a["x"], a["y"], out=a["out"]),
        )


# --- reduce, scan -------------------------------------------------------------------------------------------------


def _reduced(data: Any, a: Held, name: str, dtype: str, n: int) -> bool:
    x, found = a["x"], a["out"][0]
    if name == "reduce_sum" and dtype == "i32":
        return int(found) == int(np.int64(total(data, n, lambda i, j: x[i:j])).astype(np.int32))
    if name == "reduce_sum":
        return bool(near(float(found), total(data, n, lambda i, j: x[i:j], "f64"), 1e-4 if dtype == "f32" else 1e-10))
    if name == "reduce_max":
        return holds(n, lambda i, j: x[i:j] <= found) and bool((x == found).any())
    return holds(n, lambda i, j: abs(x[i:j]) <= abs(found)) and bool((x == found).any())


def reductions(n: int) -> Iterator[Case]:
    for dtype in ("f32", "i32", "f64"):
        zero = np.zeros((), NAMES[dtype])
        for name, op in (("reduce_sum", OpKind.PLUS), ("reduce_max", OpKind.MAXIMUM), ("reduce_custom", larger)):
            yield Case(
                name,
                dtype,
                n,
                lambda d, t=dtype: {"x": d.random(n, t) >> 1 if t == "i32" else d.random(n, t), "out": d.zeros(1, t)},
                {},
                lambda a, op=op, zero=zero: compute.make_reduce_into(a["x"], a["out"], op, zero),
                lambda a, op=op, zero=zero: (a["x"], a["out"], op, n, zero),
                lambda d, a, name=name, t=dtype: _reduced(d, a, name, t, n),
                {"reduce_sum": lambda lib, a: a["x"].sum(), "reduce_max": lambda lib, a: a["x"].max()}.get(name),
            )
    none = Range(np.float32(2), np.float32(-2), np.int64(0))
    yield Case(
        "reduce_custom",
        "struct16",
        n,
        lambda d: {"x": _ranges(d, n), "out": d.zeros(4, "i32")},
        dict.fromkeys(("x", "out"), Range.dtype),
        lambda a: compute.make_reduce_into(a["x"], a["out"], join, none),
        lambda a: (a["x"], a["out"], join, n, none),
        lambda d, a: _range_found(d, a, n),
    )


def _ranges(data: Any, n: int) -> Any:
    """Words of structs of one number each."""
    words = data.zeros(4 * n, "i32").reshape(n, 4)
    words[:, 0] = data.view(data.random(n, "f32"), "i32")
    words[:, 1] = words[:, 0]
    words[:, 2] = 1
    return words.reshape(4 * n)


def _range_found(data: Any, a: Held, n: int) -> bool:
    numbers, found = data.view(a["x"], "f32").reshape(n, 4)[:, 0], data.view(a["out"], "f32")
    right = float(found[0]) == float(numbers.min()) and float(found[1]) == float(numbers.max())
    return right and int(data.view(a["out"], "i64")[1]) == n


def _scanned(a: Held, join: Any, dtype: str, n: int, exclusive: bool) -> bool:
    x, out = a["x"], a["out"]
    tolerance = {"f32": 1e-4, "f64": 1e-10}.get(dtype, 0)
    first = out[:1] == (0 if exclusive else x[:1])
    later = lambda i, j: near(out[1:][i:j], join(out[i:j], x[0 if exclusive else 1 :][i:j]), tolerance)  # noqa: E731
    return bool(first.all()) and holds(n - 1, lambda i, j: later(i, min(j, n - 1)))


def scans(n: int) -> Iterator[Case]:
    for dtype in ("f32", "i32", "f64"):
        arrays = lambda d, t=dtype: {"x": d.random(n, t), "out": d.zeros(n, t)}  # noqa: E731
        yield Case(
            "inclusive_sum",
            dtype,
            n,
            arrays,
            {},
            lambda a: compute.make_inclusive_scan(a["x"], a["out"], OpKind.PLUS, None),
            lambda a: (a["x"], a["out"], OpKind.PLUS, n, None),
            lambda d, a, t=dtype: _scanned(a, lambda p, q: p + q, t, n, False),
            lambda lib, a: lib.cumsum(a["x"], 0, dtype=a["x"].dtype, out=a["out"]),
        )
        zero = np.zeros((), NAMES[dtype])
        yield Case(
            "exclusive_sum",
            dtype,
            n,
            arrays,
            {},
            lambda a, zero=zero: compute.make_exclusive_scan(a["x"], a["out"], OpKind.PLUS, zero),
            lambda a, zero=zero: (a["x"], a["out"], OpKind.PLUS, n, zero),
            lambda d, a, t=dtype: _scanned(a, lambda p, q: p + q, t, n, True),
        )
        yield Case(
            "inclusive_scan_custom_max",
            dtype,
            n,
            arrays,
            {},
            lambda a: compute.make_inclusive_scan(a["x"], a["out"], greatest, None),
            lambda a: (a["x"], a["out"], greatest, n, None),
            lambda d, a, t=dtype: _scanned(a, d.lib.maximum, t, n, False),
        )


# --- select, partition, unique ------------------------------------------------------------------------------------


def selects(n: int) -> Iterator[Case]:
    for dtype, half in (("i32", 0), ("f64", 0.5)):

        def keep(v, half=half):  # type: ignore[no-untyped-def]
            return v < half

        yield Case(
            "select_if_half",
            dtype,
            n,
            lambda d, t=dtype: {"x": d.random(n, t), "out": d.zeros(n, t), "count": d.zeros(1, "i32")},
            {},
            lambda a, keep=keep: compute.make_select(a["x"], a["out"], a["count"], keep),
            lambda a, keep=keep: (a["x"], a["out"], a["count"], keep, n),
            lambda d, a, half=half: _equal(a["out"], a["x"][a["x"] < half], a["count"][0]),
            lambda lib, a, half=half: a["x"][a["x"] < half],
        )


def _equal(out: Any, expected: Any, count: Any) -> bool:
    return len(expected) == int(count) and bool((out[: len(expected)] == expected).all())


def partitions(n: int) -> Iterator[Case]:
    low, middle = 0x55555555, 0xAAAAAAAA
    first = lambda v: v < np.uint32(low)  # noqa: E731
    second = lambda v: v < np.uint32(middle)  # noqa: E731
    outs = ("first", "second", "rest", "counts")

    def check(d: Any, a: Held) -> bool:
        x = ordered(a["x"], "u32")
        is_first, is_rest = x < low - (1 << 31), x >= middle - (1 << 31)
        rest = a["x"][is_rest]
        return (
            _equal(a["first"], a["x"][is_first], a["counts"][0])
            and _equal(a["second"], a["x"][~is_first & ~is_rest], a["counts"][1])
            and bool((a["rest"][: len(rest)] == rest).all())
        )

    yield Case(
        "partition_three_way",
        "u32",
        n,
        lambda d: {"x": d.random(n, "u32"), **{o: d.zeros(n, "u32") for o in outs[:3]}, "counts": d.zeros(2, "i32")},
        _dtypes("u32", "x", *outs[:3]),
        lambda a: compute.make_three_way_partition(a["x"], *(a[o] for o in outs), first, second),
        lambda a: (a["x"], *(a[o] for o in outs), first, second, n),
        check,
    )


def uniques(n: int) -> Iterator[Case]:
    """Runs of four equal keys."""
    for dtype in ("u32", "u64"):

        def arrays(d: Any, t: str = dtype) -> Held:
            runs = mix(d.arange(n, "i64") // 4 + 1)
            keys = d.cast(runs, t)
            return {
                "keys": keys,
                "values": d.arange(n, t),
                "keys_out": d.zeros(n, t),
                "values_out": d.zeros(n, t),
                "count": d.zeros(1, "i32"),
            }

        def check(d: Any, a: Held) -> bool:
            kept = d.lib.concatenate([a["keys"][:1] == a["keys"][:1], a["keys"][1:] != a["keys"][:-1]])
            keys, values = a["keys"][kept], a["values"][kept]
            return _equal(a["keys_out"], keys, a["count"][0]) and _equal(a["values_out"], values, a["count"][0])

        names = ("keys", "values", "keys_out", "values_out", "count")
        yield Case(
            "unique_by_key_runs_of_4",
            f"{dtype}/{dtype}",
            n,
            arrays,
            _dtypes(dtype, *names[:4]),
            lambda a, names=names: compute.make_unique_by_key(*(a[x] for x in names), OpKind.EQUAL_TO),
            lambda a, names=names: (*(a[x] for x in names), OpKind.EQUAL_TO, n),
            check,
        )


# --- histogram ----------------------------------------------------------------------------------------------------


def histograms(n: int) -> Iterator[Case]:
    rows = [("u8", 256), ("i32", 256), ("i32", 65536), ("f32", 256), ("f32", 65536)]
    for (dtype, bins), one_value in ((row, one) for row in rows for one in (False, True)):
        span = {"u8": 256, "i32": 65536, "f32": 1}[dtype]
        level = np.float32 if dtype == "f32" else np.int32
        levels = (np.array([bins + 1], np.int32), np.array([0], level), np.array([span], level))

        def arrays(d: Any, t: str = dtype, span: int = span, one: bool = one_value, bins: int = bins) -> Held:
            x = d.random(n, t) if t == "f32" else d.below(span, n, t)
            if one:
                x[:] = 0.5 if t == "f32" else span // 2
            return {"x": x, "out": d.zeros(bins, "i32")}

        def check(d: Any, a: Held, t: str = dtype, span: int = span, bins: int = bins) -> bool:
            factor = bins if t == "f32" else 1
            width = 1 if t == "f32" else span // bins
            place = lambda i, j: mix(d.cast(a["x"][i:j] * factor, "i64") // width + 7)  # noqa: E731
            weighed = mix(d.arange(bins, "i64") + 7) * a["out"]
            return int(a["out"].sum()) == n and total(d, n, place) == int(weighed.sum())

        yield Case(
            f"histogram_even_{bins}_{'one_value' if one_value else 'uniform'}",
            dtype,
            n,
            arrays,
            {},
            lambda a, levels=levels: compute.make_histogram_even(a["x"], a["out"], *levels, n),
            lambda a, levels=levels: (a["x"], a["out"], *levels, n),
            check,
            (lambda lib, a: lib.bincount(a["x"], minlength=256)) if dtype == "u8" else None,
        )


# --- sorts --------------------------------------------------------------------------------------------------------


def _sorted(d: Any, a: Held, dtype: str) -> bool:
    n, out = len(a["x"]), ordered(a["out"], dtype)
    in_order = holds(n - 1, lambda i, j: out[i : min(j, n - 1)] <= out[i + 1 : min(j, n - 1) + 1])
    return in_order and prints(d, a["x"], dtype) == prints(d, a["out"], dtype)


def _pairs_sorted(d: Any, a: Held, dtype: str) -> bool:
    """Values say where keys were: equal ones are in the order of their values."""
    keys, values, n = ordered(a["out"], dtype), a["values_out"], len(a["x"])
    inside = holds(n, lambda i, j: (values[i:j] >= 0) & (values[i:j] < n))

    def in_order(i: int, j: int) -> Any:
        j = min(j, n - 1)
        left, right = slice(i, j), slice(i + 1, j + 1)
        return (keys[left] < keys[right]) | ((keys[left] == keys[right]) & (values[left] < values[right]))

    moved = lambda i, j: a["x"][d.cast(values[i:j], "i64")] == a["out"][i:j]  # noqa: E731
    return inside and holds(n - 1, in_order) and holds(n, moved)


def radix_sorts(n: int) -> Iterator[Case]:
    up = SortOrder.ASCENDING
    for dtype in ("u32", "u64", "f32", "i16"):
        yield Case(
            "radix_sort_keys",
            dtype,
            n,
            lambda d, t=dtype: {"x": d.random(n, t) - 0.5 if t == "f32" else d.random(n, t), "out": d.zeros(n, t)},
            _dtypes(dtype, "x", "out"),
            lambda a: compute.make_radix_sort(a["x"], a["out"], None, None, up),
            lambda a: (a["x"], a["out"], None, None, n, None, None),
            lambda d, a, t=dtype: _sorted(d, a, t),
            (lambda lib, a: lib.sort(a["x"])) if dtype == "f32" else None,
        )
    names = ("x", "out", "values", "values_out")
    for dtype in ("u32", "u64"):
        yield Case(
            "radix_sort_pairs",
            f"{dtype}/{dtype}",
            n,
            lambda d, t=dtype: _pairs(d, n, t),
            _dtypes(dtype, *names),
            lambda a: compute.make_radix_sort(*(a[x] for x in names), up),
            lambda a: (*(a[x] for x in names), n, None, None),
            lambda d, a, t=dtype: _pairs_sorted(d, a, t),
        )


def _pairs(data: Any, n: int, dtype: str) -> Held:
    x, values = data.random(n, dtype), data.arange(n, dtype)
    return {"x": x, "out": data.zeros(n, dtype), "values": values, "values_out": data.zeros(n, dtype)}


def merge_sorts(n: int) -> Iterator[Case]:
    yield Case(
        "merge_sort_keys_custom",
        "i32",
        n,
        lambda d: {"x": d.random(n, "i32"), "out": d.zeros(n, "i32")},
        {},
        lambda a: compute.make_merge_sort(a["x"], None, a["out"], None, below),
        lambda a: (a["x"], None, a["out"], None, below, n),
        lambda d, a: _sorted(d, a, "i32"),
    )
    names = ("x", "values", "out", "values_out")
    yield Case(
        "merge_sort_pairs_custom",
        "i32/i32",
        n,
        lambda d: _pairs(d, n, "i32"),
        {},
        lambda a: compute.make_merge_sort(*(a[x] for x in names), below),
        lambda a: (*(a[x] for x in names), below, n),
        lambda d, a: _pairs_sorted(d, a, "i32"),
    )


# --- segments -----------------------------------------------------------------------------------------------------


def _starts(data: Any, count: int, mean: int) -> Any:
    """Where each segment begins, and where the last one ends."""
    starts = data.arange(count + 1, "i64") * mean
    starts[1:-1] += data.below(mean, count - 1, "i64")
    return data.cast(starts, "i32")


def segmented_reductions(n: int) -> Iterator[Case]:
    zero = np.float32(0)
    for mean in (mean for mean in (16, 1000, 100000) if mean <= n):
        count = n // mean

        def arrays(d: Any, mean: int = mean, count: int = count) -> Held:
            starts = _starts(d, count, mean)
            return {"x": d.random(count * mean, "f32"), "out": d.zeros(count, "f32"), "at": starts, "to": starts[1:]}

        def check(d: Any, a: Held) -> bool:
            sums = d.lib.cumsum(d.cast(a["x"], "f64"), 0)
            ends = d.lib.concatenate([sums[:1] * 0, sums[d.cast(a["to"], "i64") - 1]])
            return bool(near(d.cast(a["out"], "f64"), ends[1:] - ends[:-1], 1e-4).all())

        yield Case(
            f"segmented_reduce_sum_mean_{mean}",
            "f32",
            count * mean,
            arrays,
            {},
            lambda a: compute.make_segmented_reduce(a["x"], a["out"], a["at"], a["to"], OpKind.PLUS, zero),
            lambda a, count=count: (a["x"], a["out"], OpKind.PLUS, count, a["at"], a["to"], zero),
            check,
        )


def segmented_sorts(n: int) -> Iterator[Case]:
    for mean in (mean for mean in (100, 5000) if mean <= n):
        count, items = n // mean, n // mean * mean

        def arrays(d: Any, mean: int = mean, count: int = count) -> Held:
            starts, items = _starts(d, count, mean), count * mean
            return {"x": d.random(items, "i32"), "out": d.zeros(items, "i32"), "at": starts, "to": starts[1:]}

        def check(d: Any, a: Held, items: int = items) -> bool:
            ends = d.zeros(items + 1, "i32")
            ends[d.cast(a["to"], "i64")] = 1
            of = d.lib.cumsum(d.cast(ends[:items], "i64"), 0)  # the segment that an item is in
            out = a["out"]
            right = (out[1:] >= out[:-1]) | (ends[1:items] == 1)
            return bool(right.all()) and prints(d, a["x"], "i32", of) == prints(d, out, "i32", of)

        yield Case(
            f"segmented_sort_keys_mean_{mean}",
            "i32",
            items,
            arrays,
            {},
            lambda a: compute.make_segmented_sort(a["x"], a["out"], None, None, a["at"], a["to"]),
            lambda a, items=items, count=count: (a["x"], a["out"], None, None, items, count, a["at"], a["to"]),
            check,
        )


def cases(n: int) -> Iterator[Case]:
    """All of them; nothing is made before a case runs."""
    kinds = (transforms, reductions, scans, selects, partitions, uniques, histograms, radix_sorts, merge_sorts)
    for some in (*kinds, segmented_reductions, segmented_sorts):
        yield from some(n)
