"""select, three_way_partition and unique_by_key: items that are kept, in their order, and how many they are.

Whether an item is kept is asked once, and noted in a byte of the temporary storage. How many are kept is not known when
a call is checked: an output may have fewer items than the input, and nothing is written behind its end.
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, assignment"

from __future__ import annotations

from typing import Any

from ..dtype import int32, int64, uint8
from .checks import check_holds
from .inputs import ArrayInput
from .iterators import states_of
from .launching import Launch, Part, size
from .objects import Algorithm, Given, call, make
from .part_tiles import Column, TileParting
from .plans import is_roomy, multiprocessors
from .scanning import Scanned, Scanner
from .types import Convert

_count, _part = Convert(int64, "a count"), Convert(int32, "a part")
_NO_END = (1 << 63) - 1  # the room of an iterator without an end


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
        rooms = tuple(size(_NO_END if given[n].count is None else given[n].count) for n in self.outs)
        return inputs, (*outputs, rooms), tuple(states_of(given[n]) for n in self.ops), notes

    def launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        check_holds(given[self.number], given["num_items"], f"{self.name}: '{self.number}'")
        if self.parting:
            inputs, outputs, arrays, _ = self.states(given, None)
            return self.parting.launches(inputs, outputs, arrays, n, temporary)
        return self.scanner.launches(self.states(given, temporary[0]), n, temporary[1:])

    def sample_launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        if self.parting:
            inputs, outputs, arrays, _ = self.states(given, None)
            return self.parting.sample_launches(inputs, outputs, arrays, n, temporary)
        return self.launches(given, n, temporary)

    def needed(self, given: Given) -> dict[str, Any]:
        """How many are kept is not known before: room for all must be there in what is read only."""
        return {self.number: self.numbers} | dict.fromkeys(self.ins, given["num_items"])

    def by_parts(
        self, given: Given, columns: list[Column], counted: int, part_of: Any, told: Any, has_before: bool
    ) -> None:
        """The kernels: what is moved, how many parts are counted, which part an item goes to, who hears the counts."""
        if self.shape.threads > 1:
            most, roomy = multiprocessors(self.place), is_roomy(self.place, self.targets)
            self.parting = TileParting(columns, counted, part_of, told, has_before, most, roomy)
        else:
            moved = [given[name] for name in (*self.ins, *self.outs)]
            at_once = all(isinstance(one, ArrayInput) for one in moved)
            self.scanner = Scanner(_by_ranges(columns, counted, part_of, told, has_before, at_once))


def _by_ranges(
    columns: list[Column], counted: int, part_of: Any, told: Any, has_before: bool, at_once: bool
) -> Scanned:
    """A scan of the counts of parts; (states) are inputs, outputs, what operators have, and notes. `at_once` if reading
    and writing an item does nothing else."""
    read, moves = columns[0].read, [_moving(columns, part) for part in range(len(columns[0].writes))]
    one, first, second, rest = counted == 1, moves[0], moves[min(1, len(moves) - 1)], moves[-1]

    def counts(part):
        return (_count(part == 0),) if one else (_count(part == 0), _count(part == 1))

    def item(states, i):
        value = before = read(states[0], i)
        if has_before and i > 0:
            before = read(states[0], i - 1)
        part = part_of(states[2], value, before, i)
        notes = states[3]
        notes[i] = part
        return counts(part)

    def noted(states, i):
        return counts(states[3][i])

    def add(states, a, b):
        return (a[0] + b[0],) if one else (a[0] + b[0], a[1] + b[1])

    def emit_one(states, i, before, after):
        if after[0] != before[0]:
            first(states, i, before[0])

    def emit(states, i, before, after):
        if after[0] != before[0]:
            first(states, i, before[0])
        elif after[1] != before[1]:
            second(states, i, before[1])
        else:
            rest(states, i, i - before[0] - before[1])

    def done(states, total):
        told(states[1], total)

    over = _going_over(columns, counted, moves) if at_once else None
    return Scanned((int64,) * counted, add, item, noted, emit_one if one else emit, None, done, over)


def _going_over(columns: list[Column], counted: int, moves: list[Any]) -> Any:
    """A function for kernels: the items of a range go to their places, part by part, without a branch that nobody can
    foresee. Each item goes where the next one of the part will be, up to the last one of it: nothing is written that is
    not then overwritten."""
    ways = tuple((p, moves[p], tuple((c.read, c.writes[p], c.rooms[p]) for c in columns)) for p in range(len(moves)))

    def moved(states, begin, end, to, p, move, columns):
        notes, last, fits = states[3], end, True
        while last > begin and notes[last - 1] != p:
            last = last - 1
        for _, _, room in columns:
            fits = fits and to + (end - begin) <= room(states[1])
        if fits:
            for i in range(begin, last):
                for read, write, _ in columns:
                    write(states[1], to, read(states[0], i))
                to = to + _count(notes[i] == p)
        else:
            for i in range(begin, last):
                if notes[i] == p:
                    move(states, i, to)
                    to = to + 1
        return to

    def over(states, begin, end, before):
        found, left = (), begin
        for place in before:
            left = left - place
        for (p, move, columns), place in zip(ways, (*before, left), strict=False):
            found = (*found, moved(states, begin, end, place, p, move, columns))
        return found[:counted]

    return over


def _moving(columns: list[Column], part: int) -> Any:
    """A function for kernels: item i goes to a place of a part's outputs."""
    ways = ((c.read, c.writes[part], c.rooms[part]) for c in (columns[0], columns[-1]))
    (read, write, room), (read_value, write_value, value_room) = ways
    has_values = len(columns) > 1

    def move(states, i, to):
        if to < room(states[1]):
            write(states[1], to, read(states[0], i))
        if has_values and to < value_room(states[1]):
            write_value(states[1], to, read_value(states[0], i))

    return move


def _column(given: Any, which: int, outs: list[Any]) -> Column:
    """Items of the input `which`, and for each part how they are written, and to which output."""
    read = given.reader()

    def read_of(inputs, i):
        return read(inputs[which], i)

    return Column(
        given.value_type, read_of, tuple(_writing(*out) for out in outs), tuple(_room(which) for _, which in outs)
    )


def _writing(write: Any, which: int) -> Any:
    def write_to(outputs, i, value):
        write(outputs[which], i, value)

    return write_to


def _room(which: int) -> Any:
    def room(outputs):
        return outputs[-1][which]

    return room


class Select(_Kept):
    name = "select"
    ins, outs, ops = ("d_in",), ("d_out", "d_num_selected_out"), {"cond": 1}
    order = ("d_in", "d_out", "d_num_selected_out", "cond", "num_items")
    number, predicates = "d_num_selected_out", tuple(ops)
    integers = (number,)

    def build(self, given: Given) -> None:
        cond = given["cond"]
        write, tell = (given[name].writer() for name in self.outs)

        def part_of(arrays, value, before, i):
            return _part(0) if cond(arrays[0], value) else _part(-1)

        def told(outputs, counts):
            tell(outputs[1], 0, counts[0])

        self.by_parts(given, [_column(given["d_in"], 0, [(write, 0)])], 1, part_of, told, False)


class UniqueByKey(_Kept):
    name = "unique_by_key"
    ins, ops = ("d_in_keys", "d_in_items"), {"op": 2}
    outs = ("d_out_keys", "d_out_items", "d_out_num_selected")
    order = (*ins, *outs, "op", "num_items")
    number, predicates = "d_out_num_selected", tuple(ops)
    integers = (number,)

    def build(self, given: Given) -> None:
        *writes, tell = (given[name].writer() for name in self.outs)
        equal = given["op"]

        def part_of(arrays, value, before, i):
            found = _part(0)
            if i > 0 and equal(arrays[0], before, value):
                found = _part(-1)
            return found

        def told(outputs, counts):
            tell(outputs[2], 0, counts[0])

        keys, items = (
            _column(given[name], i, [(w, i)]) for i, (name, w) in enumerate(zip(self.ins, writes, strict=True))
        )
        self.by_parts(given, [keys, items], 1, part_of, told, True)


class ThreeWayPartition(_Kept):
    name = "three_way_partition"
    ins, ops = ("d_in",), {"select_first_part_op": 1, "select_second_part_op": 1}
    outs = ("d_first_part_out", "d_second_part_out", "d_unselected_out", "d_num_selected_out")
    order = (*ins, *outs, *ops, "num_items")
    number, numbers, predicates = "d_num_selected_out", 2, tuple(ops)
    integers = (number,)

    def build(self, given: Given) -> None:
        is_first, is_second = (given[name] for name in self.ops)
        *writes, tell = (given[name].writer() for name in self.outs)

        def part_of(arrays, value, before, i):
            part = _part(2)
            if is_first(arrays[0], value):
                part = _part(0)
            elif is_second(arrays[1], value):
                part = _part(1)
            return part

        def told(outputs, numbers):
            tell(outputs[3], 0, numbers[0])
            tell(outputs[3], 1, numbers[1])

        columns = [_column(given["d_in"], 0, [(write, which) for which, write in enumerate(writes)])]
        self.by_parts(given, columns, 2, part_of, told, False)


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
