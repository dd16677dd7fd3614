"""Objects of algorithms: stage 1 makes one and compiles, stage 2 asks it for bytes, stage 3 runs it.

An algorithm says what its arguments are, what temporary storage it needs for a number of items, and which kernels it
launches. All of them are compiled when the object is made; objects keep no arguments, and threads may share them.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, ClassVar

from .. import arrays
from ..errors import TileError, TileTypeError, TileValueError
from .inputs import ArrayInput, as_input, check_count, common_place, view_of
from .launching import Launch, Part, bytes_of, carved, empty_bytes, stream_of
from .operators import Operator
from .plans import Shape, shape_for
from .types import ItemType, argument_of, on_host, type_of_value

Given = dict[str, Any]  # the arguments of a call by name, as iterators, operators and values


class Algorithm:
    """The base of the objects. A subclass has `build`, `parts` and `launches`."""

    name: ClassVar[str]
    ins: ClassVar[tuple[str, ...]] = ()  # arguments that are read
    outs: ClassVar[tuple[str, ...]] = ()  # arguments that are written
    ops: ClassVar[dict[str, int]] = {}  # operators, and how many values they take
    order: ClassVar[tuple[str, ...]] = ()  # of the arguments of stage 3
    has_storage: ClassVar[bool] = True  # whether objects are called with temporary storage
    optional: ClassVar[frozenset[str]] = frozenset()  # those that may be left out, or None
    defaults: ClassVar[dict[str, Any]] = {}  # operators in the place of None

    def __init__(self, given: Given, place: Any) -> None:
        self.place, self.shape = place, shape_for(place)
        self.kinds = {n: given[n].kind for n in (*self.ins, *self.outs) if given[n] is not None}
        self.keys = {n: given[n].key for n in self.ops}
        self.build(given)
        self._compile(given)

    # -- what an algorithm says

    @staticmethod
    def more_key(given: Given) -> Any:
        """What the kernels depend on beside the arrays and the operators."""
        return ()

    def build(self, given: Given) -> None:
        """Make the kernels."""
        raise TypeError(f"{type(self).__name__} has no kernels")

    def parts(self, n: int) -> list[Part]:
        """The arrays of the temporary storage for n items."""
        return []

    def launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        """What stage 3 starts, in order."""
        raise TypeError(f"{type(self).__name__} starts nothing")

    def sample_launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        """Launches of all kernels that there are, for stage 1 to compile."""
        return self.launches(given, n, temporary)

    def counts(self, given: Given) -> int:
        """The number of items by which storage and launches are planned."""
        return int(given["num_items"])

    def needed(self, given: Given) -> dict[str, int]:
        """How many items each array must have at least."""
        n = self.counts(given)
        return dict.fromkeys((*self.ins, *self.outs), n)

    def check(self, given: Given) -> None:
        """What else must hold before anything is written."""

    # -- stage 1

    def _compile(self, given: Given) -> None:
        sample = {**given, **self.sample(given)}
        n = self.counts(sample)
        parts = self.parts(n)
        temporary = carved(empty_bytes(bytes_of(parts), self.place, None), parts)
        for launch in self.sample_launches(sample, n, temporary):
            launch.compile()

    def sample(self, given: Given) -> Given:
        """Values of the arguments that stage 1 does not have, for which all kernels are used."""
        return {"num_items": 1}

    # -- stages 2 and 3

    def __call__(self, temp_storage: Any, *values: Any, stream: Any = None, **named: Any) -> int:
        """Bytes of temporary storage if `temp_storage` is None; else runs the algorithm, and gives the same number."""
        try:
            return self._called(temp_storage, self._named(values, named), stream)
        except TileError as error:
            raise error.with_traceback(None) from None

    def _called(self, temp_storage: Any, values: dict[str, Any], stream: Any) -> int:
        given = self._read(values)
        parts = self.parts(self.counts(given))
        count = bytes_of(parts)
        if temp_storage is None:
            return count
        storage = self._storage(temp_storage, count)
        self._start(given, carved(storage, parts), stream)
        return count

    def run(self, given: Given, stream: Any) -> None:
        """Stages 2 and 3 with storage of our own."""
        parts = self.parts(self.counts(given))
        handle = stream_of(stream, self.place)
        storage = empty_bytes(bytes_of(parts), self.place, handle) if parts else None
        self._start(given, carved(storage, parts) if parts else [], stream)

    def _start(self, given: Given, temporary: list[Any], stream: Any) -> None:
        handle = stream_of(stream, self.place)
        for launch in self.launches(given, self.counts(given), temporary):
            launch.run(handle)

    def _named(self, values: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        if len(values) > len(self.order):
            raise TileTypeError(f"{self.name} takes ({', '.join(self.order)}), found {len(values)} values")
        found = dict(zip(self.order, values, strict=False))
        for key, value in named.items():
            if key not in self.order or key in found:
                problem = "twice" if key in found else f"it takes {', '.join(self.order)}"
                raise TileTypeError(f"{self.name}: the argument '{key}': {problem}")
            found[key] = value
        missing = [key for key in self.order if key not in found and key not in self.optional]
        if missing:
            raise TileTypeError(f"{self.name} needs the argument '{missing[0]}'")
        return {key: found.get(key) for key in self.order}

    def _read(self, values: dict[str, Any]) -> Given:
        """The arguments of a call, checked against those of stage 1."""
        given = read(type(self), values)
        for what in (*self.ins, *self.outs):
            self._check_kind(what, given[what])
        for what in self.ops:
            if given[what].key != self.keys[what]:
                raise TileTypeError(f"{self.name}: '{what}' is another operator than the object was made for")
        place = common_place([(n, given[n]) for n in (*self.ins, *self.outs) if given[n] is not None])
        if place != self.place:
            raise TileTypeError(f"{self.name}: the object was made for arrays on {self.place}, found {place}")
        check_all(self, given)
        return given

    def _check_kind(self, what: str, found: Any) -> None:
        kind = None if found is None else found.kind
        if kind != self.kinds.get(what):
            expected = "another kind of iterator or another dtype" if what in self.kinds else "none"
            raise TileTypeError(
                f"{self.name} dtype mismatch: '{what}' is {found!r}, the object was made for {expected}"
            )

    def _storage(self, storage: Any, count: int) -> Any:
        import numpy as np

        view = view_of(storage, "temp_storage")
        place = view.device if isinstance(view, arrays.Array) else "cpu"
        if place != self.place:
            raise TileTypeError(f"{self.name}: temp_storage is on {place}, the arrays are on {self.place}")
        found = view.size * view.dtype.itemsize
        if found < count:
            raise TileValueError(f"{self.name}: temp_storage has {found} bytes, {count} are needed")
        return view.view(np.uint8)


class InPlace(Algorithm):
    """An algorithm without temporary storage: its objects are called with the other arguments, and give nothing."""

    has_storage = False

    def __call__(self, *values: Any, stream: Any = None, **named: Any) -> None:  # type: ignore[override]
        named.pop("temp_storage", None)
        self.run(self._read(self._named(values, named)), stream)


def read(kind: type[Algorithm], values: dict[str, Any]) -> Given:
    """Arguments as users write them, as iterators and operators; what is written is looked at, too."""
    given = dict(values)
    for what in (*kind.ins, *kind.outs):
        if values.get(what) is not None:
            given[what] = as_input(values[what], f"{kind.name}: '{what}'")
    for what in kind.outs:
        if given.get(what) is not None:
            given[what].check_writable(f"{kind.name}: '{what}'")
    for what in kind.ins:
        if given.get(what) is not None and not isinstance(given[what], ArrayInput) and not given[what].reads:
            raise TileTypeError(f"{kind.name}: '{what}' is a {type(given[what]).__name__}, which is only written")
    for what, count in kind.ops.items():
        op = kind.defaults.get(what) if values.get(what) is None else values[what]
        given[what] = Operator(op, count, f"{kind.name}: '{what}'")
    for what in ("num_items", "num_segments", "num_values", "num_samples"):
        if what in given:
            given[what] = read_count(given[what], f"{kind.name}: '{what}'")
    return given


def read_count(value: Any, what: str) -> int:
    import operator

    try:
        found = operator.index(value)
    except TypeError:
        raise TileTypeError(f"{what} is an integer, found {value!r}") from None
    if found < 0:
        raise TileValueError(f"{what} is not negative, found {found}")
    return found


def check_all(kind: Algorithm, given: Given) -> None:
    for what, count in kind.needed(given).items():
        check_count(given.get(what), count, f"{kind.name}: '{what}'")
    kind.check(given)


# --- stage 1 and its cache --------------------------------------------------------------------------------------

_made: dict[Any, Algorithm] = {}
_lock = threading.Lock()


def make(kind: type[Algorithm], values: dict[str, Any], *options: Any) -> Algorithm:
    """The object for arguments of these types; the same one for the same types, operators and options."""
    given = read(kind, values)
    place = common_place([(n, given[n]) for n in (*kind.outs, *kind.ins) if given[n] is not None])
    kinds = tuple(None if given[n] is None else given[n].kind for n in (*kind.ins, *kind.outs))
    key = (kind, place, shape_for(place), kinds, tuple(given[n].key for n in kind.ops), kind.more_key(given), options)
    with _lock:
        if key not in _made:
            _made[key] = kind(given, place, *options)
        return _made[key]


def clear_all_caches() -> None:
    """Forget all objects; those that a program holds go on working."""
    with _lock:
        _made.clear()


def call(kind: type[Algorithm], values: dict[str, Any], stream: Any, *options: Any) -> None:
    """All three stages."""
    algorithm = make(kind, values, *options)
    algorithm.run(algorithm._read({n: values.get(n) for n in algorithm.order}), stream)


def told(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of users whose errors show the line that calls it, and none of ours."""

    @functools.wraps(function)
    def outside(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except TileError as error:
            raise error.with_traceback(None) from None

    return outside


# --- values of the host -----------------------------------------------------------------------------------------


def initial_type(value: Any, what: str) -> ItemType:
    try:
        return type_of_value(value)
    except TypeError as error:
        raise TileTypeError(f"{what}: {error}") from None


def initial(t: ItemType, value: Any, what: str) -> Any:
    """An initial value as an argument of a launch."""
    return argument_of(t, on_host(t, value, what))


__all__ = ["Algorithm", "Shape", "clear_all_caches", "told"]
