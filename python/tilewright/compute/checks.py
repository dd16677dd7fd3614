"""What must hold of the arguments of a call before anything is written: sizes, types, memory that is not shared."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from ..arrays import Array
from ..dtype import DType
from ..errors import TileTypeError, TileValueError
from .inputs import Access, ArrayInput
from .types import ItemType, is_struct, name_of, parts_of

if TYPE_CHECKING:
    from .objects import Algorithm, Given

_Choice = TypeVar("_Choice", bound=enum.Enum)


def chosen(kind: type[_Choice], value: Any, what: str) -> _Choice:
    """A member of an enumeration, or what is said of none."""
    try:
        return kind(value)
    except ValueError:
        members = ", ".join(map(str, kind))
        raise TileValueError(f"{what} is one of {members}, found {value!r}") from None


def check_count(given: Any, count: int, what: str) -> None:
    """An array with too few items, or an iterator over one."""
    there = None if given is None else given.count
    if there is not None and there < count:
        first, end = (0, there) if isinstance(given, ArrayInput) else given.bounds()
        begun = f"; its items are {first} to {end - 1}, it + ({first}) begins at the first of them" if first else ""
        raise TileValueError(f"{what} has {there} items, {count} were asked for{begun}")


def check_integers(given: Any, what: str) -> None:
    """Offsets, counts and places are integers."""
    t = None if given is None else given.value_type
    if t is not None and not (isinstance(t, DType) and t.is_integral and not t.is_bool):
        raise TileTypeError(f"{what} has integers as its items, found {given!r}")


def check_holds(given: Any, count: int, what: str) -> None:
    """Numbers up to `count` are stored there, which narrow integers cut."""
    held = given.value_type
    if not count < 1 << min(held.bits - held.signed, 62):
        raise TileValueError(f"{what} has items of {held.name}, which do not hold numbers up to {count}")


def check_structs(name: str, found: ItemType, wanted: ItemType) -> None:
    """Items of a struct are joined as they are: numbers convert, fields of another type may not hold what is there."""
    if is_struct(found) and is_struct(wanted) and not _are_alike(found, wanted):
        told = [f"{name_of(t)} of {', '.join(map(name_of, parts_of(t)))}" for t in (found, wanted)]
        raise TileTypeError(
            f"{name} dtype mismatch: input dtype is {told[0]}, the initial value is {told[1]}; make one of the other "
            "by a TransformIterator"
        )


def _are_alike(a: ItemType, b: ItemType) -> bool:
    some, others = parts_of(a), parts_of(b)
    if not some and not others:
        return bool(a == b)
    return len(some) == len(others) and all(map(_are_alike, some, others))


def check_memory(kind: Algorithm, given: Given, needed: dict[str, int]) -> None:
    """Outputs share no memory with each other, nor with inputs that are read when a part of them is written.

    An input may be the output where `in_place` says so: then both are one array.
    """
    names = [n for n in (*kind.ins, *kind.outs) if given[n] is not None]
    spans = {n: list(_spans(given[n], needed.get(n), n in kind.outs)) for n in names}
    for i, out in enumerate(kind.outs):
        others = (*kind.outs[:i], *(() if kind.reads_first else kind.ins))
        for other in others:
            shared = out in spans and other in spans and _overlap(spans[out], spans[other])
            both = [(given[n].accesses(n in kind.outs), needed.get(n)) for n in (other, out)] if shared else []
            if shared and not ((other, out) in kind.in_place and _are_elementwise(*both)):
                raise _shared(kind, other, out)


def check_storage(kind: Algorithm, given: Given, storage: Any) -> None:
    """Temporary storage is nobody's memory."""
    first = storage.address if isinstance(storage, Array) else storage.__array_interface__["data"][0]
    own = [(first, first + int(storage.shape[0]))]
    for n in (*kind.ins, *kind.outs):
        if given[n] is not None and _overlap(own, list(_spans(given[n], None, False))):
            raise TileValueError(f"{kind.name}: 'temp_storage' and '{n}' share memory; pass storage of its own")


def _shared(kind: Algorithm, other: str, out: str) -> TileValueError:
    same = "; they may be one array, no part of each other" if (other, out) in kind.in_place else ""
    return TileValueError(f"{kind.name}: '{out}' shares memory with '{other}'{same}; pass another array")


def _spans(given: Any, count: int | None, is_written: bool) -> Iterator[tuple[int, int]]:
    """First and last address of the arrays that are read, or written, as far as `count` items reach."""
    is_array = isinstance(given, ArrayInput)
    for access in given.accesses(is_written):
        first, end = access.span(count if is_array else None)
        if first < end:
            yield first, min(end, access.high)


def _overlap(some: list[tuple[int, int]], others: list[tuple[int, int]]) -> bool:
    return any(a < d and c < b for a, b in some for c, d in others)


Accesses = tuple[list[Access], int | None]  # to arrays, by as many items


def _are_elementwise(ins: Accesses, outs: Accesses) -> bool:
    """Whether item i of both is the same memory wherever they share some; of places that data says the user knows."""
    return all(
        a.step is None
        or b.step is None
        or (a.first, a.step, a.size) == (b.first, b.step, b.size)
        or not _overlap([a.span(ins[1])], [b.span(outs[1])])
        for a in ins[0]
        for b in outs[0]
    )


__all__ = ["check_count", "check_holds", "check_integers", "check_memory", "check_storage", "check_structs"]
