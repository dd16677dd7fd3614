"""Arrays of our own: `tilewright.Array`, on a GPU or in memory of the CPU.

    x = tilewright.to_device(np.arange(1000))       # the first GPU; the CPU where there is none
    y = tilewright.empty((1000,), np.float32, device="cuda:1", stream=stream)
    x[10:20].to_numpy()

An array is a view: slices, transposes and reshapes share the memory, which goes back to its pool behind all work
that was queued on it. Kernels take arrays as they take any library's, and other libraries take them by DLPack or the
CUDA Array Interface. `as_array(x)` makes a view of another library's GPU memory, and keeps its owner alive.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _core
from .dtype import BY_NAME, DType, _from_numpy
from .errors import DriverError, TileIndexError, TileTypeError, TileValueError
from .quiet import quiet, quiet_methods

if TYPE_CHECKING:
    import numpy as np

CPU = -1


def _format(dtype: Any) -> tuple[Any, ...]:
    """(dtype, name, item size, typestr, descr) of what names a dtype."""
    import numpy as np

    if isinstance(dtype, DType):
        known = dtype.name not in _NO_TYPESTR
        return (dtype, dtype.name, dtype.itemsize, dtype.numpy.str if known else None, None)
    try:
        found = np.dtype(dtype)
    except TypeError as error:
        raise TileTypeError(f"no array has the dtype {dtype!r}: {error}") from None
    ours = _from_numpy(found)
    if ours is not None:
        return _format(ours) if ours.name in _NO_TYPESTR else (found, ours.name, found.itemsize, found.str, None)
    if ((found.kind == "c" and found.itemsize <= 16) or found.kind in "mM") and found.isnative:
        return (found, found.name, found.itemsize, found.str, None)
    if found.kind == "V" and found.itemsize:
        return (found, "record", found.itemsize, f"|V{found.itemsize}", found.descr if found.fields else None)
    raise TileTypeError(
        f"no array has the dtype {found}; expected numbers, booleans, complex numbers, dates or structures of numbers"
    )


_NO_TYPESTR = {name for name in BY_NAME if name.startswith(("bfloat", "float8", "float4", "tfloat"))}


def _device(device: Any) -> int:
    """The number of a GPU, -1 for the CPU; None is the first GPU if there is one."""
    if device is None:
        return 0 if _has_gpu() else CPU
    if isinstance(device, str):
        kind, _, number = device.partition(":")
        if kind == "cpu" and not number:
            return CPU
        if kind in ("cuda", "gpu") and (not number or number.isdecimal()):
            return int(number or 0)
    elif isinstance(device, int) and not isinstance(device, bool) and device >= 0:
        return device
    raise TileValueError(f"a device is None, 'cpu', 'cuda', 'cuda:1' or the number of a GPU, found {device!r}")


@functools.cache
def _has_gpu() -> bool:
    try:
        return _core.device_count() > 0
    except DriverError:
        return False


def _extents(shape: Any) -> tuple[int, ...]:
    try:
        several = isinstance(shape, Sequence) or getattr(shape, "ndim", 0) == 1  # a NumPy array
        extents = tuple(map(operator.index, shape if several else (shape,)))
    except TypeError:
        raise TileTypeError(f"a shape is an integer or a tuple of integers, found {shape!r}") from None
    if any(n < 0 for n in extents):
        raise TileValueError(f"a shape has no negative extents, found {shape!r}")
    return extents


def _steps(shape: tuple[int, ...], item: int, order: str = "C") -> tuple[int, ...]:
    """Byte strides of a compact array."""
    steps, step = [], item
    for extent in shape if order == "F" else shape[::-1]:
        steps.append(step)
        step *= max(extent, 1)
    return tuple(steps if order == "F" else steps[::-1])


@quiet_methods
class Array(_core.DeviceArray):
    """An array on a GPU or on the CPU, made by `to_device`, `empty`, `zeros` or `as_array`.

    Indexing gives views, and with an integer for each axis the element. `to_numpy` copies to the host.
    """

    __slots__ = ()
    __array_priority__ = 100  # of operators with NumPy arrays, which would convert it element by element

    # === what it is ===

    @property
    def dtype(self) -> Any:
        """The dtype: NumPy's, or one of `tilewright.tile` for formats that NumPy lacks."""
        return self.format[0]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return int(self.format[2])

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def device(self) -> str:
        """'cpu', or 'cuda:0' and so on."""
        number = self.memory.device
        return "cpu" if number == CPU else f"cuda:{number}"

    @property
    def stream(self) -> Any:
        """The home stream: None is the default one."""
        return self.memory.stream

    @property
    def flags(self) -> dict[str, bool]:
        return {"C_CONTIGUOUS": self.is_c_contiguous(), "F_CONTIGUOUS": self.is_f_contiguous()}

    def is_c_contiguous(self) -> bool:
        return self._is_compact("C")

    def is_f_contiguous(self) -> bool:
        return self._is_compact("F")

    def _is_compact(self, order: str) -> bool:
        steps = zip(self.shape, self.strides, _steps(self.shape, self.itemsize, order), strict=True)
        return not self.size or all(extent == 1 or a == b for extent, a, b in steps)

    def __len__(self) -> int:
        if not self.shape:
            raise TileTypeError("an array without axes has no length")
        return self.shape[0]

    def __bool__(self) -> bool:
        return bool(self._only("bool()"))

    def __int__(self) -> int:
        return int(self._only("int()"))

    def __float__(self) -> float:
        return float(self._only("float()"))

    def item(self) -> Any:
        """The only element, as a Python number."""
        return self._only("item()").item()

    def _only(self, what: str) -> Any:
        if self.size != 1:
            raise TileValueError(f"{what} needs an array of one element, found the shape {self.shape}")
        return self.to_numpy().reshape(())[()]

    # === views ===

    def _view(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], form: Any = None) -> Array:
        return Array(self.memory, address, shape, strides, form or self.format, self.read_only)

    def __getitem__(self, index: Any) -> Any:
        """A view; the element itself where each axis has an integer. A record of an array on the CPU is in its place,
        one of a GPU a copy that cannot be written."""
        view = self._indexed(index)
        indices = index if isinstance(index, tuple) else (index,)
        if view.shape or any(i is Ellipsis for i in indices):
            return view
        if isinstance(self.dtype, DType):
            return view.to_numpy()[()]
        host = view._host_view() if self.device == "cpu" else view.to_numpy()
        host.flags.writeable &= self.device == "cpu"
        return host[()]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._indexed(index).copy_to_device(value)

    def getitem(self, item: Any, stream: Any = None) -> Any:
        """`self[item]`, of an element behind what is queued on the array."""
        return self[item]

    def setitem(self, key: Any, value: Any, stream: Any = None) -> None:
        """`self[key] = value` in the order of a stream."""
        self._indexed(key).copy_to_device(value, stream=stream)

    def _indexed(self, index: Any) -> Array:
        if isinstance(index, str):
            return self._field(index)
        indices = self._spread(index if isinstance(index, tuple) else (index,))
        address, axis = self.address, 0
        shape: list[int] = []
        strides: list[int] = []
        for i in indices:
            if i is None:
                shape.append(1)
                strides.append(0)
                continue
            extent, stride = self.shape[axis], self.strides[axis]
            axis += 1
            if isinstance(i, slice):
                start, _, step = i.indices(extent)
                count = len(range(*i.indices(extent)))
                address += start * stride if count else 0
                shape.append(count)
                strides.append(step * stride)
            else:
                address += self._place(i, axis - 1) * stride
        return self._view(address, tuple(shape), tuple(strides))

    def _spread(self, indices: tuple[Any, ...]) -> list[Any]:
        """An entry for each axis, and None for each new one."""
        count = sum(i is not None and i is not Ellipsis for i in indices)
        dots = [at for at, i in enumerate(indices) if i is Ellipsis]
        if count > self.ndim or len(dots) > 1:
            raise TileIndexError(f"an array of {self.ndim} axes was given {count} indices and {len(dots)} times '...'")
        at = dots[0] if dots else len(indices)
        whole = [slice(None)] * (self.ndim - count)
        return [*indices[:at], *whole, *indices[at + 1 :]]

    def _place(self, index: Any, axis: int) -> int:
        try:
            i = operator.index(index)
        except TypeError:
            raise TileTypeError(
                f"arrays are indexed by integers, slices, '...' and None, found {index!r}; gather elements in a kernel"
            ) from None
        extent = self.shape[axis]
        if not -extent <= i < extent:
            raise TileIndexError(f"the index {i} is outside of axis {axis} with {extent} elements")
        return i % extent

    def _field(self, name: str) -> Array:
        fields: Mapping[str, Any] = getattr(self.dtype, "fields", None) or {}
        if name not in fields:
            raise TileValueError(f"the dtype {self.dtype} has no field '{name}'; it has {', '.join(fields) or 'none'}")
        dtype, offset, *_ = fields[name]
        base, inner = dtype.subdtype or (dtype, ())
        steps = _steps(inner, base.itemsize)
        address = self.address + offset if self.size else 0
        return self._view(address, self.shape + inner, self.strides + steps, _format(base))

    def transpose(self, *axes: Any) -> Array:
        """A view with the axes in another order: reversed, or as given."""
        order = axes[0] if len(axes) == 1 and isinstance(axes[0], Sequence | None) else axes
        order = tuple(order or ()) or tuple(range(self.ndim))[::-1]
        if sorted(order) != list(range(self.ndim)):
            raise TileValueError(f"an array of {self.ndim} axes cannot be transposed by {order}")
        return self._view(self.address, tuple(self.shape[i] for i in order), tuple(self.strides[i] for i in order))

    @property
    def T(self) -> Array:
        return self.transpose()

    def reshape(self, *shape: Any, order: str = "C") -> Array:
        """A view with another shape; the array must be contiguous, of order "A" in either. One extent may be -1."""
        extents = list(shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape)
        known = math.prod(n for n in extents if n != -1)
        if extents.count(-1) == 1 and known:
            extents[extents.index(-1)] = self.size // known
        wanted = _extents(tuple(extents))
        if math.prod(wanted) != self.size:
            raise TileValueError(f"an array of shape {self.shape} cannot have the shape {tuple(extents)}")
        if order == "A":
            order = "F" if self._is_compact("F") and not self._is_compact("C") else "C"
        if order not in ("C", "F") or not self._is_compact(order):
            raise TileValueError(f"reshape needs an array that is contiguous in order {order}; copy it first")
        return self._view(self.address, wanted, _steps(wanted, self.itemsize, order))

    def split(self, section: int) -> list[Array]:
        """Views of so many elements each, and one of those that are left; of an array with one axis."""
        if len(self.shape) != 1 or section < 1:
            raise TileValueError(f"split takes an array with one axis by 1 or more, found {self.shape} by {section}")
        return [self[first : first + section] for first in range(0, self.size, section)]

    def ravel(self, order: str = "C") -> Array:
        return self.reshape(-1, order=order) if self.size else self._view(0, (0,), (self.itemsize,))

    def view(self, dtype: Any) -> Array:
        """The same memory as elements of another dtype; the last axis becomes longer or shorter."""
        form = _format(dtype)
        item = form[2]
        if item == self.itemsize:
            return self._view(self.address, self.shape, self.strides, form)
        last = self.shape[-1] * self.itemsize if self.shape else 0
        if not self.shape or self.strides[-1] != self.itemsize or last % item:
            raise TileValueError(f"a view as {dtype} needs a contiguous last axis of a multiple of {item} bytes")
        return self._view(self.address, (*self.shape[:-1], last // item), (*self.strides[:-1], item), form)

    def as_bytes(self) -> Array:
        """The same memory as bytes: those of an element along one axis more."""
        import numpy as np

        return self._view(self.address, (*self.shape, self.itemsize), (*self.strides, 1), _format(np.uint8))

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    # === copies ===

    def to_numpy(self, *, stream: Any = None) -> np.ndarray:
        """A copy as a NumPy array, when all that is queued on the array is done."""
        import numpy as np

        host = np.empty(self.shape, self._numpy_dtype())
        return self.copy_to_host(host, stream=stream)

    def copy_to_host(self, ary: Any = None, stream: Any = None) -> Any:
        """Copies into a NumPy array of the same shape and dtype, or a fresh one, and waits until it is done."""
        if ary is None:
            return self.to_numpy(stream=stream)
        if ary.shape != self.shape or ary.dtype != self._numpy_dtype():
            raise TileValueError(
                f"copy_to_host: expected an array of shape {self.shape} and dtype {self.dtype}, found "
                f"{ary.shape} and {ary.dtype}"
            )
        if self.device == "cpu":
            ary[...] = self._host_view()
        elif ary.flags.c_contiguous:
            self._copy(ary, stream, to_host=True)
        else:
            ary[...] = self.to_numpy(stream=stream)
        return ary

    def copy_to_device(self, ary: Any, stream: Any = None) -> None:
        """Copies into this array what NumPy makes of `ary`, broadcast to the shape, or another Array."""
        import numpy as np

        if self.read_only:
            raise TileValueError("the array is read-only; copy it first")
        if isinstance(ary, _core.DeviceArray):
            ary = ary.to_numpy(stream=stream)  # type: ignore[attr-defined]
        host = np.ascontiguousarray(np.broadcast_to(np.asarray(ary, self._numpy_dtype()), self.shape))
        if self.device == "cpu":
            self._host_view()[...] = host.reshape(self.shape)
        else:
            self._copy(host, stream, to_host=False)

    def copy(self, order: str = "C") -> Array:
        """A contiguous copy on the same device."""
        fresh = empty(self.shape, self.dtype, device=self._place_of(), stream=self.stream, order=order)
        if self._is_compact(order) and self.device != "cpu" and self.size:
            self.memory.follow(self.stream)
            _core.array_copy(self.memory.device, self.stream, fresh.address, self.address, 0, 0, self.nbytes, 1, False)
        else:
            fresh.copy_to_device(self.to_numpy())
        return fresh

    def _place_of(self) -> Any:
        return "cpu" if self.memory.device == CPU else self.memory.device

    def _numpy_dtype(self) -> Any:
        return self.dtype.numpy if isinstance(self.dtype, DType) else self.dtype

    def _host_view(self) -> np.ndarray:
        """The memory of an array on the CPU, as NumPy sees it; it keeps the array alive."""
        import numpy as np

        if not self.size:
            return np.empty(self.shape, self._numpy_dtype())
        low = sum(min(0, (n - 1) * s) for n, s in zip(self.shape, self.strides, strict=True))
        high = sum(max(0, (n - 1) * s) for n, s in zip(self.shape, self.strides, strict=True)) + self.itemsize
        holder = _Memory(self, self.address + low, high - low)
        return np.ndarray(self.shape, self._numpy_dtype(), np.asarray(holder), -low, self.strides)

    def _copy(self, host: np.ndarray, stream: Any, *, to_host: bool) -> None:
        """Between this array, on a GPU, and a contiguous one of the host."""
        if not self.size:
            return
        stream = self.stream if stream in (None, 0) else stream
        self.memory.follow(stream)
        wait = True  # the host's memory may be gone, or written to, right after the call
        for place, at, runs, step in self._runs():
            mine, other = self.address + place, host.ctypes.data + at
            width, (target, source) = runs[0], (other, mine) if to_host else (mine, other)
            pitches = (width, step) if to_host else (step, width)
            _core.array_copy(self.memory.device, stream, target, source, *pitches, width, runs[1], wait)

    def _runs(self) -> Iterator[tuple[int, int, tuple[int, int], int]]:
        """Where the array differs from a contiguous one: (offset here, offset there, (bytes, rows), bytes to a row)."""
        dims = [(n, s) for n, s in zip(self.shape, self.strides, strict=True) if n > 1]
        width = self.itemsize
        while dims and dims[-1][1] == width:
            width *= dims.pop()[0]
        rows, step = dims.pop() if dims and dims[-1][1] > width else (1, width)
        places = [(0, 0)]
        block = width * rows
        for extent, stride in reversed(dims):
            places = [(i * stride + here, i * block + there) for i in range(extent) for here, there in places]
            block *= extent
        yield from ((here, there, (width, rows), step) for here, there in places)

    # === other libraries, and people ===

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """NumPy's view of an array on the CPU, a copy of one on a GPU."""
        if self.device == "cpu" and not copy:
            host = self._host_view()
            host.flags.writeable = not self.read_only
        elif copy is False:
            raise TileValueError("an array on a GPU cannot be a NumPy array without a copy")
        else:
            host = self.to_numpy()
        return host if dtype is None else host.astype(dtype, copy=False)

    def __repr__(self) -> str:
        text = repr(self.to_numpy())[len("array(") : -1].replace("\n      ", "\n" + " " * 17)
        return f"tilewright.Array({text}, device='{self.device}')"

    def _repr_html_(self) -> str:
        rows = (
            ("shape", " × ".join(map(str, self.shape)) or "()"),
            ("dtype", str(self.dtype)),
            ("device", self.device),
            ("bytes", f"{self.nbytes:,}"),
        )
        cells = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows)
        return f"<table>{cells}</table><pre>{_escaped(str(self.to_numpy()))}</pre>"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class _Memory:
    """Bytes of an array on the CPU, for NumPy, which keeps this object."""

    def __init__(self, array: Array, address: int, size: int) -> None:
        self.array = array
        self.__array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3}


@quiet
def empty(shape: Any, dtype: Any = float, *, device: Any = None, stream: Any = None, order: str = "C") -> Array:
    """An array whose elements are undefined: on the first GPU (None), on another one, or on the CPU."""
    extents, form, place = _extents(shape), _format(dtype), _device(device)
    if order not in ("C", "F"):
        raise TileValueError(f"the order of an array is 'C' or 'F', found {order!r}")
    if form[1] == "float4_e2m1fn":
        raise TileTypeError("an array has no elements of 4 bits; make one of uint8, and view it with ct.float4_e2m1fn")
    memory = _core.memory_take(math.prod(extents) * form[2], place, stream)
    return Array(memory, memory.address, extents, _steps(extents, form[2], order), form, False)


@quiet
def zeros(shape: Any, dtype: Any = float, *, device: Any = None, stream: Any = None, order: str = "C") -> Array:
    """An array of zeros."""
    array = empty(shape, dtype, device=device, stream=stream, order=order)
    if array.size:
        import numpy as np

        array.copy_to_device(np.zeros((), array._numpy_dtype()))
    return array


def order_like(other: Any) -> str:
    """F or C: that of another array's axes, where it is a part of one, too."""
    shape, steps = tuple(other.shape), tuple(other.strides)
    rising = all(a <= b for a, b in itertools.pairwise(steps)) and len(set(steps)) > 1
    fortran = len(shape) > 1 and (steps == _steps(shape, other.dtype.itemsize, "F") or (rising and steps[0] > 0))
    return "F" if fortran else "C"


@quiet
def empty_like(other: Any, *, device: Any = None, stream: Any = None) -> Array:
    """An undefined array of the shape, dtype and order of another one."""
    return empty(other.shape, other.dtype, device=device, stream=stream, order=order_like(other))


@quiet
def to_device(obj: Any, *, device: Any = None, stream: Any = None) -> Array:
    """A copy of what NumPy can read, or of another Array, on a device."""
    import numpy as np

    host = obj.to_numpy() if isinstance(obj, Array) else np.asarray(obj)
    order = "F" if host.flags.f_contiguous and not host.flags.c_contiguous else "C"
    array = empty(host.shape, host.dtype, device=device, stream=stream, order=order)
    if array.size:
        (array.T if order == "F" else array).copy_to_device(host.T if order == "F" else host, stream=stream)
    return array


@quiet
def as_array(obj: Any) -> Array:
    """A view of an array on a GPU that has the CUDA Array Interface; it keeps `obj` alive."""
    if isinstance(obj, Array):
        return obj
    try:
        interface = obj.__cuda_array_interface__
    except AttributeError:
        raise TileTypeError(
            f"{type(obj).__name__!r} has no __cuda_array_interface__; to copy it to a GPU write to_device"
        ) from None
    except Exception as error:
        raise TileTypeError(f"its __cuda_array_interface__ cannot be read: {error}") from error
    return from_interface(interface, owner=obj)


@quiet
def from_interface(interface: Mapping[str, Any], owner: Any = None) -> Array:
    """A view of what a CUDA Array Interface describes. The caller keeps the memory alive, or `owner` does."""
    found = _core.describe_interface(interface)
    form = _format(_dtype_of(interface))
    item, shape = form[2], found["shape"]
    strides = tuple(n * item for n in found["strides"])
    low = sum(min(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True))
    high = sum(max(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True)) + item
    if not math.prod(shape):
        low = high = 0
    device = max(found["device_id"], 0)
    memory = _core.memory_of(found["data"] + low, high - low, device, owner, interface.get("stream"))
    return Array(memory, found["data"], shape, strides, form, found["read_only"])


def _dtype_of(interface: Mapping[str, Any]) -> Any:
    import numpy as np
    from numpy.lib.format import descr_to_dtype

    descr = interface.get("descr")
    typestr = interface["typestr"]
    if typestr[1] != "V" or not descr or descr == [("", typestr)]:
        return np.dtype(typestr)
    try:
        dtype = descr_to_dtype([tuple(field) for field in descr])  # np.dtype would name the gaps between the fields
    except (TypeError, ValueError) as error:
        raise TileTypeError(f"its array interface has a descr that NumPy refuses: {error}") from error
    if dtype.itemsize != int(typestr[2:]):
        raise TileValueError(f"its array interface has a descr of {dtype.itemsize} bytes, but the typestr {typestr!r}")
    return dtype


__all__ = ["Array", "as_array", "empty", "empty_like", "from_interface", "to_device", "zeros"]
