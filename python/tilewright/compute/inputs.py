"""Arrays of any library as items of one type, and where they are."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

from ..arrays import Array, as_array
from ..errors import TileTypeError, TileValueError
from ..structure import is_array as has_protocol
from .proxies import ProxyArray
from .types import Convert, ItemType, item_type, name_of, numpy_dtype, stored_type

CPU = "cpu"


def is_array(value: Any) -> bool:
    """Whether a value is an array that a kernel can read."""
    import numpy as np

    return isinstance(value, np.ndarray | Array) or (has_protocol(value) and not isinstance(value, np.generic))


def array_of(value: Any, what: str) -> Any:
    """A NumPy array on the host, or an array of our own on a GPU, over the same memory."""
    import numpy as np

    if type(value) is not np.ndarray and isinstance(value, np.ma.MaskedArray):
        raise TileTypeError(f"{what}: a masked array is not supported; pass its data, and select by its mask")
    if isinstance(value, np.ndarray | Array):
        return value
    if hasattr(value, "__cuda_array_interface__"):
        return as_array(value)
    if hasattr(value, "__dlpack__"):
        return _by_dlpack(value, what)
    if hasattr(value, "__array_interface__"):
        return np.asarray(value)
    raise TileTypeError(f"{what}: expected an array or an iterator, found {value!r}")


def view_of(value: Any, what: str) -> Any:
    """The same as an array of one axis."""
    found = array_of(value, what)
    if not _is_contiguous(found):
        found = found.T  # by columns
    if not _is_contiguous(found):
        raise TileValueError(f"{what}: Non-contiguous arrays are not supported.")
    return found if len(found.shape) == 1 else found.reshape(math.prod(found.shape))


def _by_dlpack(value: Any, what: str) -> Any:
    import numpy as np

    if str(getattr(value, "dtype", "")) == "torch.bfloat16":  # which neither NumPy nor the interfaces know
        import torch

        from ..dtype import bfloat16

        bits = view_of(value.view(torch.int16), what)
        return bits.view(bfloat16 if isinstance(bits, Array) else bfloat16.numpy)
    try:
        return np.from_dlpack(value)
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        raise TileTypeError(f"{what}: the array cannot be read: {error}") from None


def _is_contiguous(array: Any) -> bool:
    return bool(array.is_c_contiguous() if isinstance(array, Array) else array.flags.c_contiguous)


def place_of(view: Any) -> Any:
    """'cpu', or the name of a GPU, as 'cuda:0'."""
    return view.device if isinstance(view, Array) else CPU


@dataclasses.dataclass(frozen=True)
class Access:
    """How a call reaches an array: where it has item 0, how many items further item i + 1 is (None: anywhere), the size
    of an item, and the first and last address of the array."""

    first: int
    step: int | None
    size: int
    low: int
    high: int

    def moved(self, offset: int, step: int | None) -> Access:
        """The same for items that are at `offset + step * i` of those here."""
        if step is None or self.step is None:
            return dataclasses.replace(self, step=None)
        return dataclasses.replace(self, first=self.first + offset * self.step * self.size, step=step * self.step)

    def span(self, count: int | None) -> tuple[int, int]:
        """First and last address of `count` items."""
        if count is None or self.step is None:
            return self.low, self.high
        last = self.first + max(count - 1, 0) * self.step * self.size
        return min(self.first, last), max(self.first, last) + (self.size if count else 0)


class ArrayInput:
    """An array as an iterator (iterators.py): its state is the array, which a call may bring anew."""

    is_proxy = False

    def __init__(self, array: Any, what: str) -> None:
        self.view = view_of(array, what)
        try:
            self.value_type: ItemType = item_type(self.view.dtype)
        except TypeError as error:
            raise TileTypeError(f"{what}: {error}") from None
        self.stored = stored_type(self.view.dtype)  # a structured dtype may place its fields as no struct does
        self.kind: Any = ("array", self.value_type, self.stored)
        self.place = place_of(self.view)
        if not isinstance(self.view, Array) and not self.view.flags.aligned:
            raise TileValueError(
                f"{what}: its address {hex(self.address)} is not a multiple of what its items are aligned to "
                f"({self.view.dtype.alignment} bytes); copy it to an aligned array"
            )
        self.count = int(self.view.shape[0])

    @functools.cached_property
    def address(self) -> int:
        view = self.view
        return int(view.address if isinstance(view, Array) else view.__array_interface__["data"][0])

    def state(self) -> Any:
        return self.view

    def accesses(self, is_written: bool) -> list[Access]:
        size = self.view.dtype.itemsize
        return [Access(self.address, 1, size, self.address, self.address + self.count * size)] if self.count else []

    def check_writable(self, what: str) -> None:
        view = self.view
        if view.read_only if isinstance(view, Array) else not view.flags.writeable:
            raise TileValueError(f"{what}: the array is read-only; pass one that can be written to")

    def reader(self) -> Any:
        if self.stored is self.value_type:
            return _read
        convert = Convert(self.value_type, "an item")

        def read(state: Any, i: Any) -> Any:
            return convert(state[i])

        return read

    def writer(self) -> Any:
        convert = Convert(self.stored, "an item that is stored")

        def write(state: Any, i: Any, value: Any) -> None:
            state[i] = convert(value)

        return write

    def __repr__(self) -> str:
        return f"an array of {name_of(self.value_type)}"


def _read(state: Any, i: Any) -> Any:
    return state[i]


class ProxyInput(ArrayInput):
    """A `ProxyArray`: an array of one item, which stage 3 does not take."""

    is_proxy = True

    def __init__(self, proxy: ProxyArray, what: str) -> None:
        import numpy as np

        super().__init__(np.zeros(1, numpy_dtype(proxy.dtype)), what)
        self.place = None

    def __repr__(self) -> str:
        return f"a ProxyArray of {name_of(self.value_type)}"


def as_input(value: Any, what: str) -> Any:
    """An array or an iterator with the methods of an iterator."""
    from .iterators import Iterator

    if isinstance(value, Iterator):
        return value
    return ProxyInput(value, what) if isinstance(value, ProxyArray) else ArrayInput(value, what)


def common_place(inputs: list[Any], name: str) -> Any:
    """The one device on which all arrays are; the CPU where there are none."""
    places = {p: what for what, given in inputs for p in places_of(given)}
    if len(places) > 1:
        told = "; ".join(f"{what} on {place}" for place, what in places.items())
        raise TileTypeError(f"{name}: the arrays are on different devices: {told}; move them to one")
    return next(iter(places), CPU)


def places_of(given: Any) -> set[Any]:
    return {given.place} - {None} if isinstance(given, ArrayInput) else given.places()


def has_proxies(given: Any) -> bool:
    """Whether an input is a `ProxyArray`, or has one in it."""
    return given.is_proxy if isinstance(given, ArrayInput) else any(map(has_proxies, given.inner()))


__all__ = ["Access", "ArrayInput", "ProxyInput", "as_input", "view_of"]
