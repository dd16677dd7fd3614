"""Random calls of the algorithms: items of any type, iterators in iterators, operators whose operands have an order.

    Draw(random).call("inclusive_scan", most=5000).run()     # an AssertionError where something else comes out

What must come out is computed one item after the other by Python. Values are small integers, which all types hold, and
results wrap as the type of the accumulator does, so nothing depends on rounding.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tilewright import compute
from tilewright.compute import OpKind, SortOrder
from tilewright.compute.inputs import as_input
from tilewright.compute.types import numpy_dtype

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
SIZES = (0, 1, 2, 3, 16, 17, 31, 32, 33, 127, 128, 129, 300, 2047, 2048, 2049, 4096, 8191, 8192, 8193, 16385, 40000)
GUARD = 3  # items before and behind an output, which nothing may write to


def dtype_of(name: str) -> Any:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


@compute.gpu_struct
class Inner:
    x: np.int16
    y: np.float64


@compute.gpu_struct
class Affine:
    """x -> scale * x + shift: joined one behind the other, in an order that matters."""

    scale: np.int32
    inner: Inner


def compose(f, g):
    return Affine(f.scale * g.scale, Inner(f.inner.x, g.inner.y))


def latest(a, b):
    return b


def earliest(a, b):
    return a


def affine(a, b):
    """Of pairs (scale, shift): first a, then b."""
    return (a[0] * b[0], a[1] * b[0] + b[1])


@dataclasses.dataclass
class Items:
    """What the library reads, and the values, as Python has them, that it must find there."""

    given: Any
    values: list[Any]
    told: str


@dataclasses.dataclass
class Output:
    """Where the library writes: what is passed, and what is stored behind it."""

    given: Any
    stored: Callable[[], list[Any]]
    intact: Callable[[], bool]


class Draw:
    def __init__(self, random: Any, device: Any, most: int = 40000) -> None:
        self.random, self.most = random, most
        self.array, self.host = device.array, device.host

    def choose(self, *some: Any) -> Any:
        return some[self.random.randrange(len(some))]

    def size(self) -> int:
        return self.choose(*(n for n in SIZES if n <= self.most), self.random.randrange(1, min(self.most, 700)))

    # -- input

    def numbers(self, n: int, low: int = 0, high: int = 4) -> list[int]:
        return [self.random.randrange(low, high) for _ in range(n)]

    def slice_of(self, values: Any, dtype: Any) -> Any:
        """An array of the values that begins a few items behind an aligned address."""
        skip = self.choose(0, 0, 1, 3)
        whole = np.zeros(len(values) + skip, dtype)
        whole[skip:] = np.array(values, dtype) if len(values) else whole[:0]
        return self.array(whole)[skip:]

    def plain(self, n: int, name: str, high: int = 4) -> Items:
        values = self.numbers(n, 0 if name.startswith("u") else -1, high)
        return Items(self.slice_of(values, dtype_of(name)), values, name)

    def items(self, n: int, depth: int = 2) -> Items:
        """Numbers of any type, at least n of them, as an array or by iterators."""
        if depth == 0 or self.random.random() < 0.4:
            return self.plain(n, self.choose(*INTEGERS, *FLOATS))
        kind = self.choose("counting", "constant", "transform", "permutation", "reverse", "advanced", "cached", "zip")
        if kind == "counting":
            start = self.random.randrange(3)
            name = self.choose("int32", "int64", "uint32", "float64")
            return Items(compute.CountingIterator(np.dtype(name).type(start)), list(range(start, start + n)), kind)
        if kind == "constant":
            it = compute.ConstantIterator(np.dtype(self.choose(*INTEGERS, "float32")).type(2))
            return Items(it, [2] * n, kind)
        if kind == "cached":
            inner = self.plain(n, self.choose(*INTEGERS))
            how = self.choose("stream", "global", "volatile")
            return Items(compute.CacheModifiedInputIterator(inner.given, how), inner.values, kind)
        if kind == "zip":
            a, b = self.items(n, depth - 1), self.plain(n, self.choose("int32", "float32"))
            it = compute.TransformIterator(compute.ZipIterator(a.given, b.given), lambda pair: pair[0] + pair[1])
            return Items(it, [x + y for x, y in zip(a.values, b.values, strict=False)][:n], f"zip({a.told})")
        if kind == "permutation":
            inner, count = self.items(n + 2, depth - 1), n
            places = [self.random.randrange(n + 2) for _ in range(count)]
            indices = self.slice_of(places, self.choose(np.int32, np.int64, np.uint32))
            it = compute.PermutationIterator(inner.given, indices)
            return Items(it, [inner.values[p] for p in places], f"permutation({inner.told})")
        if kind == "reverse":
            inner = self.plain(n, self.choose(*INTEGERS, *FLOATS))
            return Items(compute.ReverseIterator(inner.given), inner.values[::-1], f"reverse({inner.told})")
        inner = self.items(n + 2, depth - 1)
        if kind == "advanced":
            it = compute.TransformIterator(inner.given, lambda v: v * 2) + 2
            return Items(it, [2 * v for v in inner.values[2:]], f"advanced({inner.told})")
        shift = self.random.randrange(1, 3)
        it = compute.TransformIterator(inner.given, lambda v: v + shift)
        return Items(it, [v + shift for v in inner.values][:n], f"transform({inner.told})")

    # -- output

    def output(self, n: int, dtype: Any, iterated: bool = True) -> Output:
        whole = self.array(np.zeros(n + 2 * GUARD, dtype))
        inside, kind = whole[GUARD : GUARD + n], self.choose("array", "array", "reverse", "permutation", "negated")

        def intact() -> bool:
            raw, zeros = self.host(whole), np.zeros(GUARD, dtype).tolist()
            return raw[:GUARD].tolist() == zeros and raw[GUARD + n :].tolist() == zeros

        def stored() -> list[Any]:
            return self.host(whole)[GUARD : GUARD + n].tolist()

        if not iterated or kind == "array" or n == 0:
            return Output(inside, stored, intact)
        if kind == "reverse":
            return Output(compute.ReverseIterator(inside), lambda: stored()[::-1], intact)
        if kind == "negated" and np.dtype(dtype).kind in "if":
            it = compute.TransformOutputIterator(inside, lambda v: -v, dtype)
            return Output(it, lambda: [wrapped(-v, np.dtype(dtype)) for v in stored()], intact)
        places = list(range(n))
        self.random.shuffle(places)
        it = compute.PermutationIterator(inside, self.slice_of(places, np.int32))
        return Output(it, lambda: [stored()[p] for p in places], intact)

    # -- calls

    def run(self, name: str) -> str:
        told = getattr(self, f"_{name}")()
        return f"{name}: {told}"

    def called(self, make: Any, function: Any, made_of: dict[str, Any], more: dict[str, Any]) -> None:
        """By the function, or in three stages, twice: the second time by a plan."""
        if self.random.random() < 0.4:
            function(**made_of, **more)
            return
        made = make(**made_of)
        values = {key: value for key, value in made_of.items() if key in made.order} | more
        if not made.has_storage:
            made(**values)
            return
        storage = self.array(np.full(made(None, **values), 0xA5, np.uint8))
        for _ in range(self.choose(1, 2)):
            made(storage, **values)

    def folding(self, n: int, items: Items) -> tuple[Any, Any, Any]:
        """The dtype of an accumulator, an operator, and how Python does it.

        Of floats that an integer does not hold nothing is known: an accumulator of floats has all their values.
        """
        wide = ("int32", "int64", "float32", "float64")
        narrow = ("int8", "uint16", "uint64", "float16", "bfloat16")
        name = self.choose(*wide, *(() if has_floats(items.given) or max(items.values, default=0) > 99 else narrow))
        dtype = dtype_of(name)
        some = [(OpKind.MAXIMUM, max), (lambda a, b: b if b < a else a, min), (latest, latest), (earliest, earliest)]
        if dtype.kind in "iu" or n * max(items.values, default=0) < {2: 1 << 7, 4: 1 << 24}.get(
            dtype.itemsize, 1 << 53
        ):
            some += [(OpKind.PLUS, lambda a, b: a + b), (lambda a, b: a + b, lambda a, b: a + b)]
        if dtype.kind in "iu":
            some.append((lambda a, b: a * b, lambda a, b: a * b))
        op, python = self.choose(*some)

        def join(a: Any, b: Any) -> Any:
            return wrapped(python(wrapped(a, dtype), wrapped(b, dtype)), dtype)

        return dtype, op, join

    def initial(self, dtype: Any) -> tuple[Any, int]:
        value = self.random.randrange(4)
        return np.array([value], dtype), value

    def _reduce_into(self) -> str:
        n = self.size()
        items = self.items(n)
        dtype, op, join = self.folding(n, items)
        init, joined = self.initial(dtype)
        out = self.output(1, dtype)
        made_of = {"d_in": items.given, "d_out": out.given, "op": op, "h_init": init}
        self.called(compute.make_reduce_into, compute.reduce_into, made_of, {"num_items": n})
        for value in items.values[:n]:
            joined = join(joined, value)
        self.agree(out, [joined], f"{n} of {items.told} by {op} in {dtype}")
        return items.told

    def _pairs(self) -> str:
        """Affine maps as tuples of two arrays, in structs and by a scan."""
        n = self.size()
        a, b = self.plain(n, "int64", 3), self.plain(n, "int64", 3)
        init = (np.int64(1), np.int64(0))
        made_of = {"d_in": compute.ZipIterator(a.given, b.given), "op": affine, "h_init": init}
        outs = [self.output(1, np.int64, iterated=False) for _ in range(2)]
        out = compute.ZipIterator(*(o.given for o in outs))
        self.called(compute.make_reduce_into, compute.reduce_into, made_of | {"d_out": out}, {"num_items": n})
        running, joined = [], (1, 0)
        for pair in zip(a.values, b.values, strict=True):
            joined = tuple(wrapped(v, np.dtype(np.int64)) for v in affine(joined, pair))
            running.append(joined)
        for i in range(2):
            self.agree(outs[i], [joined[i]], f"pairs, {n}")
        outs = [self.output(n, np.int64, iterated=False) for _ in range(2)]
        compute.inclusive_scan(made_of["d_in"], compute.ZipIterator(*(o.given for o in outs)), affine, init, n)
        for i in range(2):
            self.agree(outs[i], [pair[i] for pair in running], f"scan of pairs, {n}")
        return str(n)

    def _structs(self) -> str:
        n = self.size()
        rows = [(self.random.randrange(-2, 3), (i % 100, self.random.randrange(9))) for i in range(n)]
        x = self.slice_of(rows, Affine.dtype)
        out = self.output(n, Affine.dtype, iterated=False)
        compute.inclusive_scan(x, out.given, compose, None, n)
        expected, joined = [], None
        for row in rows:
            joined = row if joined is None else joined_rows(joined, row)
            expected.append(joined)
        self.agree(out, expected, f"structs, {n}")
        order = sorted(range(n), key=lambda i: rows[i][1][1])
        out, values = self.output(n, Affine.dtype, iterated=False), self.output(n, np.int32, iterated=False)
        compute.merge_sort(
            x, self.slice_of(range(n), np.int32), out.given, values.given, lambda a, b: a.inner.y < b.inner.y, n
        )
        self.agree(out, [rows[i] for i in order], f"sorted structs, {n}")
        self.agree(values, order, f"values of sorted structs, {n}")
        return str(n)

    def _complex(self) -> str:
        n, name = self.size(), self.choose("complex64", "complex128")
        values = [complex(*self.numbers(2, -2, 3)) for _ in range(n)]
        x, out = self.slice_of(values, name), self.output(n, name, iterated=False)
        init, last = self.choose(OpKind.PLUS, lambda a, b: a + b), np.array([2 - 1j], name)
        compute.exclusive_scan(x, out.given, init, last, n)
        self.agree(out, [2 - 1j + sum(values[:0])] if n == 1 else running_sums(values, 2 - 1j), f"{name}, {n}")
        return name

    def _inclusive_scan(self) -> str:
        return self._scan(True)

    def _exclusive_scan(self) -> str:
        return self._scan(False)

    def _scan(self, inclusive: bool) -> str:
        n = self.size()
        items = self.items(n)
        dtype, op, join = self.folding(n, items)
        init, joined = self.initial(dtype)
        if inclusive and self.random.random() < 0.4:  # the accumulator is of the type of the input
            dtype = dtype_of("int32")
            items = self.plain(n, "int32")
            init, joined, op, join = None, None, self.choose(latest, earliest, max_of), None
        out = self.output(n, dtype)
        make, scan = (
            (compute.make_inclusive_scan, compute.inclusive_scan)
            if inclusive
            else (compute.make_exclusive_scan, compute.exclusive_scan)
        )
        made_of = {"d_in": items.given, "d_out": out.given, "op": op, "init_value": init}
        self.called(make, scan, made_of, {"num_items": n})
        expected = scanned(items.values[:n], join or op, joined, inclusive)
        self.agree(out, expected, f"{n} of {items.told} by {op} in {dtype}")
        return items.told

    def segments(self, n: int) -> list[tuple[int, int]]:
        """Apart and in order; some are empty, some items are in none."""
        found, at = [], 0
        longest = self.choose(3, 40, 700, 5000)
        while at < n and len(found) < 900:
            end = min(n, at + self.random.randrange(longest + 1))
            found.append((at, end))
            at = end + (self.random.randrange(3) if self.random.random() < 0.2 else 0)
            if self.random.random() < 0.1:
                found.append((at, at) if at <= n else (n, n))
        return found or [(0, 0)] * self.choose(0, 1, 3)

    def offsets(self, found: list[tuple[int, int]]) -> dict[str, Any]:
        dtype = self.choose(np.int32, np.int64, np.uint32)
        columns = [[pair[i] for pair in found] for i in range(2)]
        names = ("start_offsets_in", "end_offsets_in")
        return {name: self.slice_of(column, dtype) for name, column in zip(names, columns, strict=True)}

    def _segmented_reduce(self) -> str:
        n = self.size()
        items = self.items(n)
        dtype, op, join = self.folding(n, items)
        found = self.segments(n)
        init, first = self.initial(dtype)
        out = self.output(len(found), dtype)
        made_of = {"d_in": items.given, "d_out": out.given, **self.offsets(found), "op": op, "h_init": init}
        self.called(compute.make_segmented_reduce, compute.segmented_reduce, made_of, {"num_segments": len(found)})
        expected = []
        for start, end in found:
            joined = first
            for value in items.values[start:end]:
                joined = join(joined, value)
            expected.append(joined)
        self.agree(out, expected, f"{len(found)} segments of {n} {items.told} by {op} in {dtype}")
        return items.told

    def _segmented_scan(self) -> str:
        n, inclusive = self.size(), self.choose(True, False)
        items = self.items(n)
        dtype, op, join = self.folding(n, items)
        found = self.segments(n)
        init, first = self.initial(dtype)
        out = self.output(n, dtype, iterated=False)
        made_of = {"d_in": items.given, "d_out": out.given, **self.offsets(found), "op": op, "init_value": init}
        word = "inclusive" if inclusive else "exclusive"
        make, scan = (getattr(compute, f"{begin}segmented_{word}_scan") for begin in ("make_", ""))
        self.called(make, scan, made_of, {"num_segments": len(found)})
        expected = [0] * n
        for start, end in found:
            expected[start:end] = scanned(items.values[start:end], join, first, inclusive)
        self.agree(out, expected, f"{len(found)} segments of {n} {items.told} by {op} in {dtype}")
        return items.told

    def _unary_transform(self) -> str:
        n = self.size()
        items = self.items(n)
        dtype = dtype_of(self.choose("int64", "float64", "float32", "int32"))
        out, weights = self.output(n, dtype), self.slice_of([3, 5], np.int64)
        op, python = self.choose(
            (lambda v: v * 2 + 1, lambda v: v * 2 + 1),
            (OpKind.IDENTITY, lambda v: v),
            (lambda v: weights[1] if v > 1 else weights[0], lambda v: 5 if v > 1 else 3),
        )
        made_of = {"d_in": items.given, "d_out": out.given, "op": op}
        self.called(compute.make_unary_transform, compute.unary_transform, made_of, {"num_items": n})
        self.agree(out, [wrapped(python(v), dtype) for v in items.values[:n]], f"{n} of {items.told} to {dtype}")
        return items.told

    def _binary_transform(self) -> str:
        n = self.size()
        a, b, out = self.items(n), self.items(n), self.output(n, np.int64)
        made_of = {"d_in1": a.given, "d_in2": b.given, "d_out": out.given, "op": lambda x, y: x * 3 + y}
        self.called(compute.make_binary_transform, compute.binary_transform, made_of, {"num_items": n})
        expected = [3 * x + y for x, y in zip(a.values[:n], b.values[:n], strict=True)]
        self.agree(out, expected, f"{n} of {a.told}, {b.told}")
        return a.told

    def _select(self) -> str:
        n = self.size()
        items, out, count = self.items(n), self.output(n, np.int64), self.output(1, np.int64, iterated=False)
        made_of = {"d_in": items.given, "d_out": out.given, "d_num_selected_out": count.given}
        made_of["cond"] = lambda v: v > 1
        self.called(compute.make_select, compute.select, made_of, {"num_items": n})
        kept = [v for v in items.values[:n] if v > 1]
        self.agree(count, [len(kept)], items.told)
        self.agree(out, kept, f"{n} of {items.told}")
        return items.told

    def _three_way_partition(self) -> str:
        n = self.size()
        items, outs = self.items(n), [self.output(n, np.int64) for _ in range(3)]
        count = self.output(2, np.int64, iterated=False)
        names = ("d_first_part_out", "d_second_part_out", "d_unselected_out")
        made_of = {"d_in": items.given, **{name: out.given for name, out in zip(names, outs, strict=True)}}
        made_of |= {"d_num_selected_out": count.given}
        made_of |= {"select_first_part_op": lambda v: v > 1, "select_second_part_op": lambda v: v < 1}
        self.called(compute.make_three_way_partition, compute.three_way_partition, made_of, {"num_items": n})
        values = items.values[:n]
        parts = [[v for v in values if v > 1], [v for v in values if v < 1], [v for v in values if v == 1]]
        self.agree(count, [len(part) for part in parts[:2]], items.told)
        for out, part in zip(outs, parts, strict=True):
            self.agree(out, part, f"{n} of {items.told}")
        return items.told

    def _unique_by_key(self) -> str:
        n = self.size()
        keys, items = self.items(n), self.items(n)
        outs, count = [self.output(n, np.int64) for _ in range(2)], self.output(1, np.int64, iterated=False)
        made_of = {"d_in_keys": keys.given, "d_in_items": items.given, "d_out_keys": outs[0].given}
        made_of |= {"d_out_items": outs[1].given, "d_out_num_selected": count.given}
        made_of["op"] = self.choose(OpKind.EQUAL_TO, lambda a, b: a == b)
        self.called(compute.make_unique_by_key, compute.unique_by_key, made_of, {"num_items": n})
        firsts = [i for i in range(n) if i == 0 or keys.values[i] != keys.values[i - 1]]
        self.agree(count, [len(firsts)], keys.told)
        self.agree(outs[0], [keys.values[i] for i in firsts], f"keys of {n} {keys.told}")
        self.agree(outs[1], [items.values[i] for i in firsts], f"items of {n} {items.told}")
        return keys.told

    def _merge_sort(self) -> str:
        n, has_values = self.size(), self.choose(True, False)
        keys, items = self.items(n), self.items(n)
        out, held = self.output(n, np.int64, iterated=False), self.output(n, np.int64, iterated=False)
        made_of = {"d_in_keys": keys.given, "d_out_keys": out.given, "op": self.choose(OpKind.GREATER, greater)}
        made_of |= {"d_in_values": items.given, "d_out_values": held.given} if has_values else {}
        self.called(compute.make_merge_sort, compute.merge_sort, made_of, {"num_items": n})
        order = sorted(range(n), key=lambda i: -keys.values[i])
        self.agree(out, [keys.values[i] for i in order], f"{n} of {keys.told}")
        if has_values:
            self.agree(held, [items.values[i] for i in order], f"values of {n} {items.told}")
        return keys.told

    def _radix_sort(self) -> str:
        n, name = self.size(), self.choose(*INTEGERS, *FLOATS)
        dtype, descending = dtype_of(name), self.choose(True, False)
        bits = 8 * dtype.itemsize
        first = self.random.randrange(bits) if name.startswith("uint") and self.choose(True, False) else 0
        last = self.random.randrange(first, bits + 1) if first else bits
        most = min(bits, 30) if name.startswith("uint") else 7
        values = self.numbers(n, 0 if name.startswith("u") else -100, 1 << most)
        if name == "bfloat16":
            values = self.numbers(n, -100, 100)
        keys, places = self.slice_of(values, dtype), self.slice_of(range(n), np.int32)
        order = sorted(range(n), key=lambda i: (values[i] >> first) % (1 << (last - first)) if first else values[i])
        if descending:
            order = sorted(
                range(n), key=lambda i: -((values[i] >> first) % (1 << (last - first)) if first else values[i])
            )
        more = {"order": SortOrder.DESCENDING if descending else SortOrder.ASCENDING, "num_items": n}
        more |= {"begin_bit": first, "end_bit": last} if first else {}
        told = f"{n} {name}, bits {first} to {last}, {more['order']}"
        if self.choose(True, False):
            kinds = ((keys, dtype), (places, np.int32))
            buffers = [compute.DoubleBuffer(x, self.slice_of([0] * n, kind)) for x, kind in kinds]
            compute.radix_sort(d_in_keys=buffers[0], d_out_keys=None, d_in_values=buffers[1], **more)
            same([int(v) for v in self.host(buffers[0].current()).tolist()], [values[i] for i in order], told)
            same(self.host(buffers[1].current()).tolist(), order, told)
            return told
        out, held = self.output(n, dtype, iterated=False), self.output(n, np.int32, iterated=False)
        made_of = {"d_in_keys": keys, "d_out_keys": out.given, "d_in_values": places, "d_out_values": held.given}
        self.called(compute.make_radix_sort, compute.radix_sort, made_of | {"order": more.pop("order")}, more)
        self.agree(out, [values[i] for i in order], told)
        self.agree(held, order, told)
        return told

    def _segmented_sort(self) -> str:
        n, name, descending = self.size(), self.choose(*INTEGERS, *FLOATS), self.choose(True, False)
        keys, places, found = self.plain(n, name, 60), self.slice_of(range(n), np.int32), self.segments(n)
        sign, order = (-1 if descending else 1), list(range(n))
        for start, end in found:
            order[start:end] = sorted(range(start, end), key=lambda i: sign * keys.values[i])
        inside = [i for start, end in found for i in range(start, end)]
        out, held = self.output(n, dtype_of(name), iterated=False), self.output(n, np.int32, iterated=False)
        made_of = {"d_in_keys": keys.given, "d_out_keys": out.given, "d_in_values": places, "d_out_values": held.given}
        made_of |= self.offsets(found) | {"order": SortOrder.DESCENDING if descending else SortOrder.ASCENDING}
        counts = {"num_items": n, "num_segments": len(found)}
        self.called(compute.make_segmented_sort, compute.segmented_sort, made_of, counts)
        told = f"{len(found)} segments of {n} {name}"
        same([out.stored()[i] for i in inside], [keys.values[order[i]] for i in inside], told)
        same([held.stored()[i] for i in inside], [order[i] for i in inside], told)
        assert out.intact() and held.intact(), told
        return told

    def _histogram_even(self) -> str:
        n, name = self.size(), self.choose(*INTEGERS, "float32", "float64")
        samples, bins = self.plain(n, name, 30), self.choose(1, 2, 5, 20, 300)
        low, high = self.random.randrange(5), self.random.randrange(21, 30)
        if name[0] in "iu" and bins > high - low:
            bins = high - low
        out = self.output(bins, self.choose(np.int32, np.int64, np.uint32), iterated=False)
        level = np.dtype(name).type
        made_of = {"d_samples": samples.given, "d_histogram": out.given, "h_num_output_levels": np.array([bins + 1])}
        made_of |= {"h_lower_level": level(low), "h_upper_level": level(high), "num_samples": n}
        if self.choose(True, False):
            one = {"num_output_levels": bins + 1, "lower_level": level(low), "upper_level": level(high)}
            arrays = {key: made_of[key] for key in ("d_samples", "d_histogram")}
            compute.histogram_even(**arrays, **one, num_samples=n)
        else:
            made = compute.make_histogram_even(**made_of)
            storage = self.array(np.zeros(made(None, **made_of), np.uint8))
            made(storage, **made_of)
        expected = [0] * bins
        for v in samples.values:
            if low <= v < high:
                expected[(v - low) * bins // (high - low)] += 1
        if (high - low) % bins == 0 or name.startswith(("i", "u")):
            self.agree(out, expected, f"{n} {name} in {bins} bins from {low} to {high}")
        else:
            same([sum(out.stored())], [sum(expected)], f"{n} {name} in {bins} bins from {low} to {high}")
        return name

    def _bounds(self) -> str:
        n, m = self.size(), self.size()
        data = sorted(self.numbers(n, 0, 50))
        values, out = self.items(m), self.output(m, self.choose(np.uint64, np.int64, np.int32))
        upper = self.choose(True, False)
        make, search = (getattr(compute, f"{b}{'upper' if upper else 'lower'}_bound") for b in ("make_", ""))
        given = {"d_data": self.slice_of(data, np.int32), "d_values": values.given, "d_out": out.given}
        self.called(make, search, given, {"num_items": n, "num_values": m} | self.choose({}, {"comp": OpKind.LESS}))
        expected = np.searchsorted(np.array(data), np.array(values.values[:m]), "right" if upper else "left")
        self.agree(out, expected.tolist() if m else [], f"{m} of {values.told} in {n}")
        return values.told

    def _along(self) -> str:
        """The functions that return arrays, along an axis of arrays of any strides."""
        shape = tuple(self.choose(1, 2, 3, 5, 17, 40) for _ in range(self.choose(1, 2, 3)))
        x = np.array(self.numbers(int(np.prod([2 * s for s in shape])), 0, 9), self.choose("int32", "float32", "uint8"))
        x = x.reshape([2 * s for s in shape])[
            tuple(self.choose(slice(0, None, 2), slice(None, None, -2)) for _ in shape)
        ]
        x = x.transpose(self.random.sample(range(len(shape)), len(shape)))
        axis = self.random.randrange(-x.ndim, x.ndim)
        told, plain = f"{x.shape} {x.dtype}, strides {x.strides}, axis {axis}", x
        if not isinstance(self.array(x), np.ndarray):
            x = self.array(x)
        what = self.choose("reduce", "maximum", "scan", "exclusive", "sort", "argsort", "topk")
        found, expected = {
            "reduce": lambda: (compute.reduce(x, axis=axis), plain.sum(axis)),
            "maximum": lambda: (compute.reduce(x, OpKind.MAXIMUM, axis=axis), plain.max(axis)),
            "scan": lambda: (compute.scan(x, axis=axis), np.cumsum(plain, axis)),
            "exclusive": lambda: (
                compute.scan(x, OpKind.PLUS, np.int64(0), inclusive=False, axis=axis),
                np.cumsum(plain, axis) - plain,
            ),
            "sort": lambda: (compute.sort(x, axis=axis), np.sort(plain, axis)),
            "argsort": lambda: (compute.argsort(x, axis=axis), np.argsort(plain, axis, kind="stable")),
            "topk": lambda: (compute.topk(x, 1, axis=axis)[0], plain.max(axis, keepdims=True)),
        }[what]()
        np.testing.assert_array_equal(self.host(found), expected, err_msg=f"{what}: {told}")
        return f"{what}: {told}"

    def agree(self, out: Output, expected: list[Any], told: str) -> None:
        same(out.stored()[: len(expected)], expected, told)
        assert out.intact(), f"{told}: items before or behind the output were written to"


def has_floats(given: Any) -> bool:
    return np.dtype(numpy_dtype(as_input(given, "the items").value_type)).kind not in "iu"


def max_of(a, b):
    return a if a > b else b


def greater(a, b):
    return a > b


def joined_rows(a: Any, b: Any) -> Any:
    return (wrapped(a[0] * b[0], np.dtype(np.int32)), (a[1][0], b[1][1]))


def running_sums(values: list[complex], first: complex) -> list[complex]:
    found = []
    for value in values:
        found.append(first)
        first += value
    return found


def scanned(values: list[Any], join: Any, first: Any, inclusive: bool) -> list[Any]:
    found, joined = [], first
    for value in values:
        if not inclusive:
            found.append(joined)
        joined = value if joined is None else join(joined, value)
        if inclusive:
            found.append(joined)
    return found


def wrapped(value: Any, dtype: Any) -> Any:
    """A number as one of a dtype, as integers wrap."""
    if dtype.kind not in "iu":
        return value
    bits = 8 * dtype.itemsize
    found = int(value) % (1 << bits)
    return found - (1 << bits) if dtype.kind == "i" and found >> (bits - 1) else found


def same(found: list[Any], expected: list[Any], told: str) -> None:
    if found != expected:
        i = next((i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), -1)
        some = (found[i : i + 5], expected[i : i + 5])
        raise AssertionError(f"{told}: from item {i} of {len(expected)} on found {some[0]}, expected {some[1]}")


ALGORITHMS = sorted(
    name[1:]
    for name, value in vars(Draw).items()
    if name.startswith("_") and not name.startswith("__") and name != "_scan" and callable(value)
)
