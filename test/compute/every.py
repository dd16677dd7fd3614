"""One call of each algorithm: what its object is made of, what it is called with, and what must come out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright import compute
from tilewright.compute import OpKind, SortOrder


@dataclasses.dataclass
class Call:
    make: Callable[..., Any]
    made_of: dict[str, Any]
    more: dict[str, Any]  # of stage 3
    expected: dict[str, Any]  # the first items of outputs

    def values(self) -> dict[str, Any]:
        """Arguments of stage 3 with outputs of their own."""
        own = {n: np.zeros_like(v) if n in self.expected else v for n, v in self.made_of.items()}
        return {n: v for n, v in own.items() if n != "order"} | self.more

    def check(self, algorithm: Any) -> None:
        """Stages 2 and 3."""
        values = self.values()
        if algorithm.has_storage:
            needed = algorithm(None, **values)
            algorithm(np.full(needed, 0xA5, np.uint8), **values)
        else:
            algorithm(**values)
        for name, expected in self.expected.items():
            np.testing.assert_array_equal(values[name][: len(expected)], expected, err_msg=name)


def add(a, b):
    return a + b


def is_odd(v):
    return v % 2 == 1


def less(a, b):
    return a < b


def calls() -> dict[str, Call]:
    x, n = np.array([3, 9, 4, 7, 9, 1], np.int32), 6
    out, wide, count = np.zeros(n, np.int32), np.zeros(n, np.int64), np.zeros(1, np.int64)
    zero, starts, ends = np.int64(0), np.array([0, 2, 2]), np.array([2, 2, 6])
    items = {"num_items": n}
    segments = {"start_offsets_in": starts, "end_offsets_in": ends}
    keys = {"d_in_keys": x, "d_out_keys": out}
    pairs = {**keys, "d_in_values": np.arange(n), "d_out_values": wide}
    order = np.argsort(x, kind="stable")
    levels = {"h_num_output_levels": 3, "h_lower_level": np.int32(0), "h_upper_level": np.int32(8)}
    search = {"d_data": np.sort(x), "d_values": x[:3].copy(), "d_out": np.zeros(3, np.uint64), "comp": less}
    parts = ("d_first_part_out", "d_second_part_out", "d_unselected_out")
    return {
        "reduce_into": Call(
            compute.make_reduce_into, {"d_in": x, "d_out": count, "op": add, "h_init": zero}, items, {"d_out": [33]}
        ),
        "inclusive_scan": Call(
            compute.make_inclusive_scan,
            {"d_in": x, "d_out": wide, "op": add, "init_value": zero},
            items,
            {"d_out": np.cumsum(x)},
        ),
        "exclusive_scan": Call(
            compute.make_exclusive_scan,
            {"d_in": x, "d_out": wide, "op": OpKind.PLUS, "init_value": zero},
            items,
            {"d_out": [0, *np.cumsum(x)[:-1]]},
        ),
        "segmented_reduce": Call(
            compute.make_segmented_reduce,
            {"d_in": x, "d_out": np.zeros(3, np.int64), **segments, "op": add, "h_init": zero},
            {"num_segments": 3},
            {"d_out": [12, 0, 21]},
        ),
        "segmented_inclusive_scan": Call(
            compute.make_segmented_inclusive_scan,
            {"d_in": x, "d_out": wide, **segments, "op": add, "init_value": None},
            {"num_segments": 3},
            {"d_out": [3, 12, 4, 11, 20, 21]},
        ),
        "segmented_exclusive_scan": Call(
            compute.make_segmented_exclusive_scan,
            {"d_in": x, "d_out": wide, **segments, "op": add, "init_value": zero},
            {"num_segments": 3},
            {"d_out": [0, 3, 0, 4, 11, 20]},
        ),
        "unary_transform": Call(
            compute.make_unary_transform, {"d_in": x, "d_out": out, "op": OpKind.NEGATE}, items, {"d_out": -x}
        ),
        "binary_transform": Call(
            compute.make_binary_transform, {"d_in1": x, "d_in2": x, "d_out": out, "op": add}, items, {"d_out": 2 * x}
        ),
        "select": Call(
            compute.make_select,
            {"d_in": x, "d_out": out, "d_num_selected_out": count, "cond": is_odd},
            items,
            {"d_out": [3, 9, 7, 9, 1], "d_num_selected_out": [5]},
        ),
        "three_way_partition": Call(
            compute.make_three_way_partition,
            {"d_in": x, **{p: out.copy() for p in parts}, "d_num_selected_out": np.zeros(2, np.int64)}
            | {"select_first_part_op": lambda v: v < 4, "select_second_part_op": lambda v: v > 8},
            items,
            dict(zip((*parts, "d_num_selected_out"), ([3, 1], [9, 9], [4, 7], [2, 2]), strict=True)),
        ),
        "unique_by_key": Call(
            compute.make_unique_by_key,
            {"d_in_keys": x // 4, "d_in_items": x, "d_out_keys": out, "d_out_items": out.copy()}
            | {"d_out_num_selected": count, "op": OpKind.EQUAL_TO},
            items,
            {"d_out_keys": [0, 2, 1, 2, 0], "d_out_items": [3, 9, 4, 9, 1], "d_out_num_selected": [5]},
        ),
        "merge_sort": Call(
            compute.make_merge_sort, pairs | {"op": less}, items, {"d_out_keys": x[order], "d_out_values": order}
        ),
        "radix_sort": Call(
            compute.make_radix_sort,
            pairs | {"order": SortOrder.ASCENDING},
            items,
            {"d_out_keys": x[order], "d_out_values": order},
        ),
        "segmented_sort": Call(
            compute.make_segmented_sort,
            keys | {"d_in_values": None, "d_out_values": None} | segments | {"order": SortOrder.DESCENDING},
            {"num_items": n, "num_segments": 3},
            {"d_out_keys": [9, 3, 9, 7, 4, 1]},
        ),
        "histogram_even": Call(
            compute.make_histogram_even,
            {"d_samples": x, "d_histogram": np.zeros(2, np.int32), **levels, "num_samples": n},
            {},
            {"d_histogram": [2, 2]},
        ),
        "lower_bound": Call(compute.make_lower_bound, search, {"num_items": n, "num_values": 3}, {"d_out": [1, 4, 2]}),
        "upper_bound": Call(compute.make_upper_bound, search, {"num_items": n, "num_values": 3}, {"d_out": [2, 6, 3]}),
    }


EVERY = sorted(calls())
