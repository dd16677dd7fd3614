"""inclusive_scan and exclusive_scan: running totals by an operator, whose operands keep their order."""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import Any

from ..arrays import Array
from ..errors import TileTypeError
from .checks import check_structs, chosen
from .inputs import as_input, is_array
from .iterators import states_of
from .launching import Launch, Part
from .objects import Algorithm, Given, call, initial, initial_type, make, named
from .plans import is_roomy, multiprocessors
from .proxies import ProxyArray
from .reduce import Determinism
from .scan_tiles import TileScan
from .scanning import Scanned, Scanner
from .types import Convert
from .vectors import width_for


class _Scan(Algorithm):
    ins, outs, ops = ("d_in",), ("d_out",), {"op": 2}
    order = ("d_in", "d_out", "op", "num_items", "init_value")
    inclusive: bool

    values = ("init_value",)
    in_place = frozenset({("d_in", "d_out")})

    def take_options(self, determinism: Determinism) -> None:  # type: ignore[override]
        self.determinism = determinism

    @classmethod
    def value_key(cls, given: Given, what: str) -> Any:
        init = given[what]
        if _is_on_device(init):
            return "array", as_input(init, f"{cls.name}: '{what}'").value_type
        return scan_key(cls.name, init, what)

    def build(self, given: Given) -> None:
        self.init = check_initial(self, given)
        t = self.type = given["d_in"].value_type if self.init is None else self.init[1]
        check_structs(self.name, given["d_in"].value_type, t)
        convert, operator = Convert(t, f"{self.name}: 'd_in'"), given["op"].giving(t)
        read, write, inclusive = given["d_in"].reader(), given["d_out"].writer(), self.inclusive

        def fold(states, a, b):
            return operator(states[2], a, b)

        def store(states, i, value):
            write(states[1], i, value)

        def item(states, i):
            return convert(read(states[0], i))

        def emit(states, i, before, after):
            write(states[1], i, after if inclusive else before)

        def first_value(states):
            return convert(states[3])

        def first_item(states):
            return convert(states[3][0])

        first = None if self.init is None else first_value if self.init[0] == "value" else first_item
        self.alone = self.shape.threads == 1
        if self.alone:
            self.scanner: Any = Scanner(Scanned(t, fold, item, item, emit, first))
        else:
            width = width_for(*(found for found in (given["d_in"].value_type, given["d_out"].value_type, t) if found))
            most = multiprocessors(self.place)
            roomy = self.determinism is not Determinism.GPU_TO_GPU and is_roomy(self.place, self.targets)
            self.scanner = TileScan(t, operator, item, store, first, inclusive, width, most, roomy)

    def parts(self, n: int) -> list[Part]:
        return self.scanner.parts(n)

    def launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        return self._launches(self.scanner.launches, given, n, temporary)

    def sample_launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        of = self.scanner.launches if self.alone else self.scanner.sample_launches
        return self._launches(of, given, n, temporary)

    def _launches(self, of: Any, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        init: Any = 0
        if self.init is not None and self.init[0] == "array":
            init = as_input(given["init_value"], "'init_value'").state()
        elif self.init is not None:
            init = initial(self.type, given["init_value"], f"{self.name}: 'init_value'")
        states = (given["d_in"].state(), given["d_out"].state(), states_of(given["op"]), init)
        if self.alone:
            return of(states, n, temporary)
        return of((states[0], states[1], (), init), states[2], n, temporary) if n else []


def scan_key(name: str, init: Any, what: str) -> Any:
    """Where the initial value is, and its type; None where there is none."""
    return None if init is None else ("value", initial_type(init, f"{name}: '{what}'"))


def check_initial(scan: Any, given: Given) -> Any:
    """The key of the initial value, without which there is no exclusive scan."""
    found = scan.value_key(given, "init_value")
    if found is None and not scan.inclusive:
        raise TileTypeError(f"{scan.name} needs an 'init_value', which is its first item; found None")
    return found


def _is_on_device(value: Any) -> bool:
    """Whether a value is in memory of a GPU, where the host does not read it."""
    return isinstance(value, Array | ProxyArray) or (is_array(value) and hasattr(value, "__cuda_array_interface__"))


class InclusiveScan(_Scan):
    name, inclusive = "inclusive_scan", True
    optional = frozenset(("init_value",))


class ExclusiveScan(_Scan):
    name, inclusive = "exclusive_scan", False


def _given(d_in: Any, d_out: Any, op: Any, init_value: Any) -> dict[str, Any]:
    return {"d_in": d_in, "d_out": d_out, "op": op, "init_value": init_value}


def _functions(kind: type[_Scan], total: str) -> tuple[Any, Any]:
    """`make_…` and the function of all stages."""
    what = f"{kind.name}: 'determinism'"

    def make_scan(
        d_in: Any,
        d_out: Any,
        op: Any,
        init_value: Any = None,
        *,
        determinism: Determinism = Determinism.RUN_TO_RUN,
        compute_capability: Any = None,
    ) -> Algorithm:
        given = _given(d_in, d_out, op, init_value)
        return make(kind, given, chosen(Determinism, determinism, what), compute_capability=compute_capability)

    def scan(
        d_in: Any,
        d_out: Any,
        op: Any,
        init_value: Any = None,
        num_items: int | None = None,
        *,
        stream: Any = None,
        determinism: Determinism = Determinism.RUN_TO_RUN,
    ) -> None:
        given = {**_given(d_in, d_out, op, init_value), "num_items": num_items}
        call(kind, given, stream, chosen(Determinism, determinism, what))

    object_told = "An object that scans: `scanner(temp_storage, d_in, d_out, op, num_items, init_value)`."
    return named(make_scan, f"make_{kind.name}", object_told), named(scan, kind.name, f"d_out[i] = {total}.")


make_inclusive_scan, inclusive_scan = _functions(
    InclusiveScan, "init_value joined with d_in[0] to d_in[i]; without one where init_value is None"
)
make_exclusive_scan, exclusive_scan = _functions(ExclusiveScan, "init_value joined with the items before d_in[i]")
