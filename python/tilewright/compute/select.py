"""select, three_way_partition and unique_by_key: items that are kept, in their order, and how many they are.

Whether an item is kept is asked once, and noted in a byte of the temporary storage.
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import Any

from ..dtype import int64, uint8
from .iterators import states_of
from .launching import Launch, Part
from .objects import Algorithm, Given, call, make
from .part_tiles import Column, TileParting
from .scanning import Scanned, Scanner
from .types import Convert

_count = Convert(int64, "a count")


class _Kept(Algorithm):
    """What they share: notes, then the storage of the scan of counts."""

    scanner: Scanner
    number: str  # the argument that says how many were kept
    numbers = 1

    parting: TileParting | None = None  # on a GPU

    def parts(self, n: int) -> list[Part]:
        return self.parting.parts(n) if self.parting else [Part(uint8, n), *self.scanner.parts(n)]

    def states(self, given: Given, notes: Any) -> tuple[Any, ...]:
        inputs, outputs = (tuple(given[n].state() for n in names) for names in (self.ins, self.outs))
        return inputs, outputs, tuple(states_of(given[n]) for n in self.ops), notes

    def launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        if self.parting:
            inputs, outputs, arrays, _ = self.states(given, None)
            return self.parting.launches(inputs, outputs, arrays, n, temporary)
        return self.scanner.launches(self.states(given, temporary[0]), n, temporary[1:])

    def sample_launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        if self.parting:
            return [*self.launches(given, n, temporary), *self.launches(given, 0, temporary)]
        return self.scanner.every_launch(self.states(given, temporary[0]), n, temporary[1:])

    def needed(self, given: Given) -> dict[str, int]:
        """How many are kept is not known before: room for all must be there in what is read only."""
        return {self.number: self.numbers} | dict.fromkeys(self.ins, int(given["num_items"]))

    def _scan(self, item: Any, emit: Any, done: Any) -> None:
        def noted(states, i):
            return _count(states[3][i])

        def add(states, a, b):
            return a + b

        self.scanner = Scanner(Scanned(int64, add, item, noted, emit, None, done), self.shape)


def _column(given: Any, which: int, outs: list[Any]) -> Column:
    """Items of the input `which`, and for each part how they are written, and to which output."""
    read = given.reader()

    def read_of(inputs, i):
        return read(inputs[which], i)

    return Column(given.value_type, read_of, tuple(_writing(*out) for out in outs))


def _writing(write: Any, which: int) -> Any:
    def write_to(outputs, i, value):
        write(outputs[which], i, value)

    return write_to


class Select(_Kept):
    name = "select"
    ins, outs, ops = ("d_in",), ("d_out", "d_num_selected_out"), {"cond": 1}
    order = ("d_in", "d_out", "d_num_selected_out", "cond", "num_items")
    number, predicates = "d_num_selected_out", tuple(ops)
    integers = (number,)

    def build(self, given: Given) -> None:
        read, cond = given["d_in"].reader(), given["cond"]
        write, tell = (given[name].writer() for name in self.outs)

        def part_of(arrays, value, before, i):
            return 0 if cond(arrays[0], value) else -1

        def told(outputs, counts):
            tell(outputs[1], 0, counts[0])

        if self.shape.threads > 1:
            columns = [_column(given["d_in"], 0, [(write, 0)])]
            self.parting = TileParting(columns, 1, part_of, told, False)
            return

        def item(states, i):
            kept = 1 if cond(states[2][0], read(states[0][0], i)) else 0
            notes = states[3]
            notes[i] = kept
            return _count(kept)

        def emit(states, i, before, after):
            if after != before:
                write(states[1][0], before, read(states[0][0], i))

        def done(states, total):
            tell(states[1][1], 0, total)

        self._scan(item, emit, done)


class UniqueByKey(_Kept):
    name = "unique_by_key"
    ins, ops = ("d_in_keys", "d_in_items"), {"op": 2}
    outs = ("d_out_keys", "d_out_items", "d_out_num_selected")
    order = (*ins, *outs, "op", "num_items")
    number, predicates = "d_out_num_selected", tuple(ops)
    integers = (number,)

    def build(self, given: Given) -> None:
        key, value = (given[name].reader() for name in self.ins)
        write_key, write_value, tell = (given[name].writer() for name in self.outs)
        equal = given["op"]

        def part_of(arrays, value, before, i):
            found = 0
            if i > 0 and equal(arrays[0], before, value):
                found = -1
            return found

        def told(outputs, counts):
            tell(outputs[2], 0, counts[0])

        if self.shape.threads > 1:
            columns = [
                _column(given["d_in_keys"], 0, [(write_key, 0)]),
                _column(given["d_in_items"], 1, [(write_value, 1)]),
            ]
            self.parting = TileParting(columns, 1, part_of, told, True)
            return

        def item(states, i):
            kept = 1
            if i > 0 and equal(states[2][0], key(states[0][0], i - 1), key(states[0][0], i)):
                kept = 0
            notes = states[3]
            notes[i] = kept
            return _count(kept)

        def emit(states, i, before, after):
            if after != before:
                write_key(states[1][0], before, key(states[0][0], i))
                write_value(states[1][1], before, value(states[0][1], i))

        def done(states, total):
            tell(states[1][2], 0, total)

        self._scan(item, emit, done)


class ThreeWayPartition(_Kept):
    name = "three_way_partition"
    ins, ops = ("d_in",), {"select_first_part_op": 1, "select_second_part_op": 1}
    outs = ("d_first_part_out", "d_second_part_out", "d_unselected_out", "d_num_selected_out")
    order = (*ins, *outs, *ops, "num_items")
    number, numbers, predicates = "d_num_selected_out", 2, tuple(ops)
    integers = (number,)

    def build(self, given: Given) -> None:
        read = given["d_in"].reader()
        is_first, is_second = (given[name] for name in self.ops)
        write_first, write_second, write_rest, tell = (given[name].writer() for name in self.outs)

        def part_of(arrays, value, before, i):
            part = 2
            if is_first(arrays[0], value):
                part = 0
            elif is_second(arrays[1], value):
                part = 1
            return part

        def told(outputs, numbers):
            tell(outputs[3], 0, numbers[0])
            tell(outputs[3], 1, numbers[1])

        if self.shape.threads > 1:
            columns = [_column(given["d_in"], 0, [(write_first, 0), (write_second, 1), (write_rest, 2)])]
            self.parting = TileParting(columns, 2, part_of, told, False)
            return

        def counts(part):
            return (_count(1 if part == 1 else 0), _count(1 if part == 2 else 0))

        def item(states, i):
            value, part = read(states[0][0], i), 0
            if is_first(states[2][0], value):
                part = 1
            elif is_second(states[2][1], value):
                part = 2
            notes = states[3]
            notes[i] = part
            return counts(part)

        def noted(states, i):
            return counts(states[3][i])

        def add(states, a, b):
            return (a[0] + b[0], a[1] + b[1])

        def emit(states, i, before, after):
            value = read(states[0][0], i)
            if after[0] != before[0]:
                write_first(states[1][0], before[0], value)
            elif after[1] != before[1]:
                write_second(states[1][1], before[1], value)
            else:
                write_rest(states[1][2], i - before[0] - before[1], value)

        def done(states, total):
            tell(states[1][3], 0, total[0])
            tell(states[1][3], 1, total[1])

        scanned = Scanned((int64, int64), add, item, noted, emit, None, done)
        self.scanner = Scanner(scanned, self.shape)


def make_select(d_in: Any, d_out: Any, d_num_selected_out: Any, cond: Any, *, compute_capability: Any = None) -> Select:
    """An object that keeps items: `selector(temp_storage, d_in, d_out, d_num_selected_out, cond, num_items)`."""
    given = {"d_in": d_in, "d_out": d_out, "d_num_selected_out": d_num_selected_out, "cond": cond}
    return make(Select, given, compute_capability=compute_capability)  # type: ignore[return-value]


def select(d_in: Any, d_out: Any, d_num_selected_out: Any, cond: Any, num_items: int, *, stream: Any = None) -> None:
    """The items for which cond is true, in their order, to d_out; their number to d_num_selected_out[0]."""
    given = {"d_in": d_in, "d_out": d_out, "d_num_selected_out": d_num_selected_out, "cond": cond}
    call(Select, {**given, "num_items": num_items}, stream)


def _partition_given(*values: Any) -> dict[str, Any]:
    return dict(zip(ThreeWayPartition.order, values, strict=False))


def make_three_way_partition(
    d_in: Any,
    d_first_part_out: Any,
    d_second_part_out: Any,
    d_unselected_out: Any,
    d_num_selected_out: Any,
    select_first_part_op: Any,
    select_second_part_op: Any,
    *,
    compute_capability: Any = None,
) -> ThreeWayPartition:
    """An object that parts items; it takes temp_storage, these arguments, and num_items."""
    outputs = (d_first_part_out, d_second_part_out, d_unselected_out, d_num_selected_out)
    given = _partition_given(d_in, *outputs, select_first_part_op, select_second_part_op)
    return make(ThreeWayPartition, given, compute_capability=compute_capability)  # type: ignore[return-value]


def three_way_partition(
    d_in: Any,
    d_first_part_out: Any,
    d_second_part_out: Any,
    d_unselected_out: Any,
    d_num_selected_out: Any,
    select_first_part_op: Any,
    select_second_part_op: Any,
    num_items: int,
    *,
    stream: Any = None,
) -> None:
    """Items to one of three arrays, in their order: by the first predicate, else the second one, else the rest.

    d_num_selected_out takes the numbers of the first two.
    """
    outputs = (d_first_part_out, d_second_part_out, d_unselected_out, d_num_selected_out)
    call(
        ThreeWayPartition,
        _partition_given(d_in, *outputs, select_first_part_op, select_second_part_op, num_items),
        stream,
    )


def _unique_given(*values: Any) -> dict[str, Any]:
    return dict(zip(UniqueByKey.order, values, strict=False))


def make_unique_by_key(
    d_in_keys: Any,
    d_in_items: Any,
    d_out_keys: Any,
    d_out_items: Any,
    d_out_num_selected: Any,
    op: Any,
    *,
    compute_capability: Any = None,
) -> UniqueByKey:
    """An object that keeps the first of equal keys; it takes temp_storage, these arguments, and num_items."""
    given = _unique_given(d_in_keys, d_in_items, d_out_keys, d_out_items, d_out_num_selected, op)
    return make(UniqueByKey, given, compute_capability=compute_capability)  # type: ignore[return-value]


def unique_by_key(
    d_in_keys: Any,
    d_in_items: Any,
    d_out_keys: Any,
    d_out_items: Any,
    d_out_num_selected: Any,
    op: Any,
    num_items: int,
    *,
    stream: Any = None,
) -> None:
    """Of each run of keys that op finds equal, the first key and its item."""
    given = _unique_given(d_in_keys, d_in_items, d_out_keys, d_out_items, d_out_num_selected, op, num_items)
    call(UniqueByKey, given, stream)
