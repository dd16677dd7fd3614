"""lower_bound and upper_bound: where values would stand in sorted data, a binary search by each thread."""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import Any

from ..numba import intrinsics as cuda
from .checks import check_holds
from .iterators import states_of
from .launching import ComputeKernel, Launch, size
from .objects import Algorithm, Given, InPlace, call, make, named
from .operators import OpKind


class _Bound(InPlace):
    ins, outs, ops = ("d_data", "d_values"), ("d_out",), {"comp": 2}
    order = ("d_data", "d_values", "d_out", "comp", "num_items", "num_values")
    optional, defaults = frozenset(("comp",)), {"comp": OpKind.LESS}
    in_place = frozenset({("d_values", "d_out")})
    integers, predicates = ("d_out",), tuple(ops)
    upper: bool

    def build(self, given: Given) -> None:
        data, values = (given[name].reader() for name in self.ins)
        write, less, threads, upper = given["d_out"].writer(), given["comp"], self.shape.threads, self.upper

        def stands_behind(states, x, place):
            """Whether the value x stands behind the item at a place."""
            if upper:
                return not less(states[3], x, data(states[0], place))
            return less(states[3], data(states[0], place), x)

        def bound(states, n, count, per):
            start = cuda.blockIdx.x * per
            for i in range(start + cuda.threadIdx.x, min(start + per, count), threads):
                x = values(states[1], i)
                low, high = 0, n
                while low < high:
                    middle = (low + high) // 2
                    if stands_behind(states, x, middle):
                        low = middle + 1
                    else:
                        high = middle
                write(states[2], i, low)

        self.kernel = ComputeKernel(bound)

    def counts(self, given: Given) -> int:
        return given["num_values"]

    def sample(self, given: Given) -> Given:
        return {"num_items": 1, "num_values": 1}

    def needed(self, given: Given) -> dict[str, Any]:
        return {"d_data": given["num_items"], "d_values": given["num_values"], "d_out": given["num_values"]}

    def launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        if n == 0:
            return []
        check_holds(given["d_out"], given["num_items"], f"{self.name}: 'd_out'")
        states = tuple(given[name].state() for name in (*self.ins, *self.outs))
        sizes = (size(given["num_items"]), size(n), size(self.shape.per_block(n)))
        launched = ((*states, states_of(given["comp"])), *sizes)
        return [Launch(self.kernel, launched, self.shape.blocks(n), self.shape.threads)]


class LowerBound(_Bound):
    name, upper = "lower_bound", False


class UpperBound(_Bound):
    name, upper = "upper_bound", True


def _given(d_data: Any, d_values: Any, d_out: Any, comp: Any) -> dict[str, Any]:
    return {"d_data": d_data, "d_values": d_values, "d_out": d_out, "comp": comp}


def _functions(kind: type[_Bound], told: str) -> tuple[Any, Any]:
    """`make_…` and the function of all stages."""

    def make_bound(
        d_data: Any, d_values: Any, d_out: Any, comp: Any = None, *, compute_capability: Any = None
    ) -> Algorithm:
        return make(kind, _given(d_data, d_values, d_out, comp), compute_capability=compute_capability)

    def bound(
        d_data: Any, d_values: Any, d_out: Any, num_items: int, num_values: int, comp: Any = None, *, stream: Any = None
    ) -> None:
        given = _given(d_data, d_values, d_out, comp)
        call(kind, {**given, "num_items": num_items, "num_values": num_values}, stream)

    object_told = "An object that searches: `search(d_data, d_values, d_out, comp, num_items, num_values)`."
    return named(make_bound, f"make_{kind.name}", object_told), named(bound, kind.name, told)


make_lower_bound, lower_bound = _functions(
    LowerBound, "d_out[i]: how many items of the sorted d_data are less than d_values[i], by `comp`."
)
make_upper_bound, upper_bound = _functions(
    UpperBound, "d_out[i]: how many items of the sorted d_data are not greater than d_values[i], by `comp`."
)
