"""Objects of algorithms: stage 1 makes one and compiles, stage 2 asks it for bytes, stage 3 runs it.

An algorithm says what its arguments are, what temporary storage it needs for a number of items, and which kernels it
launches. Stage 1 compiles all of them; a function, which is all three stages in one, those that the call starts.
Objects keep no arguments, and threads may share them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar

from .. import _core, arrays, knobs
from ..errors import TileCheckError, TileTypeError, TileValueError
from ..quiet import quiet
from . import call_plan
from .checks import check_count, check_integers, check_memory, check_storage
from .compiling import target_of
from .inputs import CPU, ArrayInput, as_input, common_place, has_proxies, place_of, view_of
from .launching import (
    Launch,
    Number,
    Part,
    bytes_of,
    carved,
    compile_all,
    compile_missing,
    empty_bytes,
    stream_of,
    told_of_call,
)
from .operators import as_operator
from .plans import Shape, shape_for
from .proxies import ProxyValue
from .types import ItemType, argument_of, name_of, numpy_dtype, on_host, type_of_value

Given = dict[str, Any]  # the arguments of a call by name, as iterators, operators and values


class Algorithm(_core.Planned):
    """The base of the objects. A subclass has `build`, `parts` and `launches`."""

    name: ClassVar[str]
    ins: ClassVar[tuple[str, ...]] = ()  # arguments that are read
    outs: ClassVar[tuple[str, ...]] = ()  # arguments that are written
    ops: ClassVar[dict[str, int]] = {}  # operators, and how many values they take
    order: ClassVar[tuple[str, ...]] = ()  # of the arguments of stage 3
    has_storage: ClassVar[bool] = True  # whether objects are called with temporary storage
    optional: ClassVar[frozenset[str]] = frozenset()  # those that may be left out, or None
    defaults: ClassVar[dict[str, Any]] = {}  # operators in the place of None

    values: ClassVar[tuple[str, ...]] = ()  # arguments of the host on whose types the kernels depend
    predicates: ClassVar[tuple[str, ...]] = ()  # operators that decide
    integers: ClassVar[tuple[str, ...]] = ()  # arrays of offsets, counts or places
    in_place: ClassVar[frozenset[tuple[str, str]]] = frozenset()  # (in, out) that may be the same array
    reads_first: ClassVar[bool] = False  # whether all is read before anything is written
    refusals = planned = 0  # calls of which no plan could be made, and plans that were (call_plan.py)
    is_complete = True  # all kernels are there: false of an object for functions, until stage 1 wants the same one

    def __init__(self, given: Given, place: Any, options: tuple[Any, ...], targets: tuple[str, ...]) -> None:
        self.is_complete, self._completing = False, threading.Lock()
        self.inputs = {n: told_of(given[n]) for n in (*self.ins, *self.outs)}
        self.begin(given, place, options, targets, keys_of(type(self), given))

    def begin(
        self, given: Given, place: Any, options: tuple[Any, ...], targets: tuple[str, ...], keys: dict[str, Any]
    ) -> None:
        """All but the code of the kernels."""
        self.place, self.targets, self.options = place, targets, options
        self.shape, self.keys = shape_for(place), keys
        self.commuting = {n: bool(given[n].commutes) for n in self.ops}
        self.take_options(*options)
        for what in self.integers:
            check_integers(given[what], f"{self.name}: '{what}'")
        self.build(given | {n: given[n].deciding() for n in self.predicates})

    blob = b""  # what it was made of by `deserialize`

    def serialize(self) -> bytes:
        from . import serialization

        return serialization.serialize(self)

    def form(self, key: Any) -> Any:
        """A key as `self.keys` has it."""
        return key

    # -- what an algorithm says

    def take_options(self) -> None:
        """What is chosen when an object is made and no argument of stage 3 is."""

    @classmethod
    def value_key(cls, given: Given, what: str) -> Any:
        """What the kernels depend on of one of `values`."""
        return initial_type(given[what], f"{cls.name}: '{what}'")

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
        return given["num_items"]

    def needed(self, given: Given) -> dict[str, Any]:
        """How many items each array must have at least."""
        n = self.counts(given)
        return dict.fromkeys((*self.ins, *self.outs), n)

    def check(self, given: Given) -> None:
        """What else must hold before anything is written."""

    # -- stage 1

    def complete(self, given: Given) -> None:
        """Compile the kernels that are not there yet, so that calls compile none."""
        with self._completing:  # one of several threads does
            if not self.is_complete:
                self._compile(given)
                self.is_complete = True

    def _compile(self, given: Given) -> None:
        sample = {n: zero_of(v) if isinstance(v, ProxyValue) else v for n, v in given.items()} | self.sample(given)
        n = self.counts(sample)
        parts = self.parts(n)
        place = "cpu" if self.targets else self.place  # for other machines' GPUs nothing is on one
        temporary = carved(empty_bytes(bytes_of(parts), place, None), parts)
        compile_all(self.sample_launches(sample, n, temporary), self.targets)

    def sample(self, given: Given) -> Given:
        """Values of the arguments that stage 1 does not have, for which all kernels are used."""
        return {"num_items": 1}

    # -- stages 2 and 3

    @quiet
    def call_unplanned(self, temp_storage: Any, *values: Any, stream: Any = None, **named: Any) -> int:
        """Bytes of temporary storage if `temp_storage` is None; else runs the algorithm, and gives the same number.

        This is what a call does that no plan fits."""
        return self._called(temp_storage, self._named(values, named), stream)

    def _called(self, temp_storage: Any, values: dict[str, Any], stream: Any) -> int:
        given = self._read(values)
        stream_of(stream, given["place"])  # a wrong one is an error before anything is written
        parts = self.parts(self.counts(given))
        count = bytes_of(parts)
        if temp_storage is None:
            return count
        storage = self._storage(temp_storage, count, given["place"])
        check_storage(self, given, storage)
        self._start(values, given, storage, parts, stream)
        return count

    def run(self, given: Given, stream: Any) -> None:
        """Stages 2 and 3 with storage of our own."""
        parts = self.parts(self.counts(given))
        handle = stream_of(stream, given["place"])
        storage = empty_bytes(bytes_of(parts), given["place"], handle) if parts else None
        self._start(None, given, storage, parts, stream)

    def _start(self, values: dict[str, Any] | None, given: Given, storage: Any, parts: list[Part], stream: Any) -> None:
        """`values` are the arguments of an object's call, of which a plan may be made."""
        handle = stream_of(stream, given["place"])
        launches = self.launches(given, self.counts(given), carved(storage, parts) if parts else [])
        if not self.is_complete:
            compile_missing(launches)
        try:
            for launch in launches:
                launch.run(handle)
        except TileCheckError as error:
            raise told_of_call(error, self.name) from None
        if values is not None and launches and not knobs.check():
            call_plan.note(self, values, given, storage, launches)

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
        for what, key in keys_of(type(self), given).items():
            if (key if key is None else self.form(key)) != self.keys[what]:
                raise self._another(what, given[what])
        for what in (*self.ins, *self.outs):
            if given[what] is not None and has_proxies(given[what]):
                raise TileTypeError(f"{self.name}: '{what}' is {given[what]!r}, which has no memory; pass an array")
        given["place"] = place = place_of_all(type(self), given)
        if place != self.place and not (self.place == GPUS and place != CPU):
            made_for = ", ".join(self.targets) or self.place
            raise TileTypeError(f"{self.name}: the object was made for {made_for}, the arrays are on {place}")
        check_all(self, given)
        return given

    def _another(self, what: str, found: Any) -> TileTypeError:
        """The error for an argument that is of another kind than that of stage 1."""
        if what in self.ops:
            return TileTypeError(f"{self.name}: '{what}' is another operator than the object was made for")
        if what in self.values:
            return TileTypeError(f"{self.name}: '{what}' is {describe_value(found)}, not what the object was made for")
        expected = "none" if self.keys[what] is None else "another kind of iterator or another dtype"
        return TileTypeError(f"{self.name} dtype mismatch: '{what}' is {found!r}, the object was made for {expected}")

    def _storage(self, storage: Any, count: int, wanted: Any) -> Any:
        import numpy as np

        view = view_of(storage, f"{self.name}: 'temp_storage'")
        place = place_of(view)
        if place != wanted:
            raise TileTypeError(f"{self.name}: 'temp_storage' is on {place}, the arrays are on {wanted}")
        found = view.size * view.dtype.itemsize
        if found < count:
            raise TileValueError(f"{self.name}: 'temp_storage' has {found} bytes, {count} are needed")
        if view.read_only if isinstance(view, arrays.Array) else not view.flags.writeable:
            raise TileValueError(f"{self.name}: 'temp_storage' is read-only; pass memory that can be written to")
        return view.view(np.uint8)


class InPlace(Algorithm):
    """An algorithm without temporary storage: its objects are called with the other arguments, and give nothing."""

    has_storage = False

    def call_unplanned(self, *values: Any, stream: Any = None, **named: Any) -> None:  # type: ignore[override]
        named.pop("temp_storage", None)
        found = self._named(values, named)
        self._start(found, self._read(found), None, [], stream)


def read(kind: type[Algorithm], values: dict[str, Any]) -> Given:
    """Arguments as users write them, as iterators and operators; what is written is looked at, too."""
    given = dict(values)
    for what in (*kind.ins, *kind.outs):
        if values.get(what) is not None:
            given[what] = as_input(values[what], f"{kind.name}: '{what}'")
        elif what not in kind.optional:
            raise TileTypeError(f"{kind.name} needs the argument '{what}', found None")
    for what in kind.outs:
        if given.get(what) is not None:
            given[what].check_writable(f"{kind.name}: '{what}'")
    for what in kind.ins:
        if given.get(what) is not None and not isinstance(given[what], ArrayInput) and not given[what].reads:
            raise TileTypeError(f"{kind.name}: '{what}' is a {type(given[what]).__name__}, which is only written")
    for what, count in kind.ops.items():
        op = kind.defaults.get(what) if values.get(what) is None else values[what]
        given[what] = as_operator(op, count, f"{kind.name}: '{what}'")
    for what in ("num_items", "num_segments", "num_values", "num_samples"):
        if what in given:
            given[what] = read_count(given[what], f"{kind.name}: '{what}'")
    if given.get("max_segment_size") is not None:
        given["max_segment_size"] = read_count(given["max_segment_size"], f"{kind.name}: 'max_segment_size'")
    return given


def read_count(value: Any, what: str) -> int:
    import operator

    try:
        found = operator.index(value)
    except TypeError:
        raise TileTypeError(f"{what} is an integer, found {value!r}") from None
    if found < 0:
        raise TileValueError(f"{what} is not negative, found {found}")
    if found >= 1 << 63:
        raise TileValueError(f"{what} is below 2**63, found {found}")
    return found


def check_all(kind: Algorithm, given: Given) -> None:
    needed = kind.needed(given)
    for what, count in needed.items():
        check_count(given.get(what), count, f"{kind.name}: '{what}'")
    kind.check(given)
    check_memory(kind, given, needed)


def keys_of(kind: type[Algorithm], given: Given) -> dict[str, Any]:
    """What an object depends on, by arguments: kinds of arrays and iterators, operators, types of values."""
    found = {n: None if given[n] is None else given[n].kind for n in (*kind.ins, *kind.outs)}
    found |= {n: given[n].key for n in kind.ops}
    return found | {n: kind.value_key(given, n) for n in kind.values}


def place_of_all(kind: type[Algorithm], given: Given) -> Any:
    return common_place([(n, given[n]) for n in (*kind.outs, *kind.ins, *kind.ops) if given[n] is not None], kind.name)


def told_of(given: Any) -> Any:
    """What a file says of an array, its dtype, or of an iterator, the type of its items."""
    if given is None:
        return None
    return ("array", given.view.dtype) if isinstance(given, ArrayInput) else ("iterator", given.value_type)


# --- stage 1 and its cache --------------------------------------------------------------------------------------

GPUS = "GPUs"  # the place of objects that are for named GPUs, wherever those are
_made: dict[Any, Algorithm] = {}
_lock = threading.Lock()


def make(kind: type[Algorithm], values: dict[str, Any], *options: Any, compute_capability: Any = None) -> Algorithm:
    """The object for arguments of these types; the same one for the same types, operators and options.

    compute_capability: makes it for GPUs of these, which need not be there.
    """
    found, given = _object_for(kind, values, options, compute_capability)
    if not found.is_complete:
        found.complete(given)
    return found


def begun(kind: type[Algorithm], values: dict[str, Any], *options: Any) -> Algorithm:
    """The same object for a function, whose kernels are compiled when a call starts them."""
    return _object_for(kind, values, options, None)[0]


def _object_for(
    kind: type[Algorithm], values: dict[str, Any], options: tuple[Any, ...], compute_capability: Any
) -> tuple[Algorithm, Given]:
    given = read(kind, values)
    targets = targets_of(compute_capability, kind, given)
    place = GPUS if targets else place_of_all(kind, given)
    keys = tuple(keys_of(kind, given).values())
    key = (kind, place, targets, shape_for(place), keys, options)
    found = _made.get(key)
    if found is None:
        new = kind(given, place, options, targets)
        with _lock:  # all threads get the one that comes first
            found = _made.setdefault(key, new)
    return found, given


def targets_of(compute_capability: Any, kind: type[Algorithm], given: Given) -> tuple[str, ...]:
    """`("sm_80", "sm_90a")` of [80, (9, 0)]; none where objects are for where the arrays are."""
    if compute_capability is None:
        proxies = [n for n in (*kind.ins, *kind.outs) if given[n] is not None and has_proxies(given[n])]
        if not proxies:
            return ()
        if not arrays._has_gpu():
            raise TileTypeError(
                f"{kind.name}: '{proxies[0]}' is {given[proxies[0]]!r}, which is on no device: say for which GPUs the "
                "object is, as in compute_capability=[80, 90]"
            )
    is_list = isinstance(compute_capability, list | set | tuple) and not _is_pair(compute_capability)
    wanted = compute_capability if is_list else [compute_capability]
    found = sorted({target_of(cc) for cc in wanted}, key=lambda name: int(name[3:].rstrip("af")))
    if problem := next(filter(None, map(_core.target_problem, found)), None):
        raise TileValueError(f"{kind.name}: compute_capability: {problem}")
    if not found:
        raise TileValueError(f"{kind.name}: compute_capability names one GPU or more, found {compute_capability!r}")
    return tuple(found)


def _is_pair(cc: Any) -> bool:
    """Whether it is (9, 0), not (80, 90)."""
    return isinstance(cc, tuple) and len(cc) == 2 and all(isinstance(n, int) and n < 20 for n in cc)


def clear_all_caches() -> None:
    """Forget all objects; those that a program holds go on working."""
    with _lock:
        _made.clear()


def call(kind: type[Algorithm], values: dict[str, Any], stream: Any, *options: Any) -> None:
    """All three stages."""
    algorithm = begun(kind, values, *options)
    algorithm.run(algorithm._read({n: values.get(n) for n in algorithm.order}), stream)


def named(function: Callable[..., Any], name: str, told: str) -> Callable[..., Any]:
    """A function that was made for one algorithm of several, under the name that users call it by."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = told
    return function


def describe_value(value: Any) -> str:
    return "None" if value is None else f"a {name_of(type_of_value(value))}"


# --- values of the host -----------------------------------------------------------------------------------------


def zero_of(proxy: ProxyValue) -> Any:
    import numpy as np

    return np.zeros((), numpy_dtype(proxy.item_type))[()]


def initial_type(value: Any, what: str) -> ItemType:
    if isinstance(value, ProxyValue):
        return value.item_type
    try:
        return type_of_value(value)
    except TypeError as error:
        raise TileTypeError(f"{what}: {error}") from None


def initial(t: ItemType, value: Any, what: str) -> Any:
    """An initial value as an argument of a launch."""
    if isinstance(value, Number):
        return value
    return argument_of(t, on_host(t, value, what))


__all__ = ["Algorithm", "Shape", "clear_all_caches"]
