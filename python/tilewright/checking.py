"""Check mode: `ct.launch(..., check=True)`, or TILEWRIGHT_CHECK=1 for all launches.

    variant with the hint `check` -> launch with a report and owners -> wait -> read the report -> TileCheckError

A kernel has a twin with two more parameters, a *report* and the *owners*: for each element of the arrays that it
stores to a word, which names the block that does, and behind all of these another one for the block that reads it. The
pass tile-legalize (lowering/common/check.c) makes the accesses tell what goes wrong, and does no harm where they would.
lowering/common/check.h says what the words of the report are.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, cast

import numpy as np

from . import _core, compile, structure
from .errors import Place, TileValueError, places_of
from .findings import Finding, error_of
from .quiet import quiet

RECORD_WORDS = 16
SITE, BLOCK, OTHER, VALUE, INDEX = range(5)
MOST_FINDINGS = 256  # that the report has room for
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


@dataclasses.dataclass(frozen=True)
class _Site:
    """What the compiler says of a place that can be reported."""

    kind: str
    parameter: int
    dtype: str
    of_thread: bool
    places: tuple[Place, ...]
    text: str


def _sites(attribute: str) -> list[_Site]:
    """From the printed attribute `tile.check_sites`."""
    found = []
    for row in _STRING.findall(attribute):
        text = re.sub(r"\\([0-9A-Fa-f]{2}|.)", lambda m: chr(int(m[1], 16)) if len(m[1]) == 2 else m[1], row)
        kind, parameter, dtype, who, location, message = text.encode("latin-1").decode().split("\t", 5)
        found.append(_Site(kind, int(parameter), dtype, who == "thread", places_of(location), message))
    return found


# ---------------------------------------------------------------------------------------------
# Kernels


class CheckedKernel(_core.Dispatcher):
    """The twin of a kernel that reports."""

    checked = True

    def __init__(self, kernel: Any) -> None:
        parameters = (*kernel.parameters, "the report", "the owners")
        forms = (*kernel.forms, None, None)
        constants = [i for i, form in enumerate(forms) if form is True]
        super().__init__(kernel.name, parameters, constants, _compile, kernel.rules.simt, None, 0, forms)
        self.kernel, self.function, self.rules = kernel, kernel.function, kernel.rules
        self.links, self.held, self.rows = kernel.links, kernel.held, kernel.rows
        self.sites: dict[int, tuple[Any, list[_Site]]] = {}  # of each variant, by its address

    def hints_for(self, target: str) -> dict[str, int | str]:
        return {**self.kernel.hints_for(target), "check": 1}

    def replace_hints(self, **hints: Any) -> CheckedKernel:
        return cast(CheckedKernel, self.kernel.replace_hints(**hints).checked())

    def without_hints(self, names: Collection[str]) -> CheckedKernel | None:
        plain = self.kernel.without_hints(names)
        return plain and cast(CheckedKernel, plain.checked())

    def capture(self, target: str, key: compile.Key) -> Any:
        """The module of tile IR, before anything is checked."""
        return compile.capture_kernel(self, target, key).module

    def note(self, _: Any, image: compile.Image, variant: Any) -> None:
        self.sites[id(variant)] = variant, _sites(image.sites)


def _compile(twin: CheckedKernel, target: str, key: Any) -> Any:
    from .kernel import compile_variant

    return compile_variant(twin, target, key, twin.note)


# ---------------------------------------------------------------------------------------------
# Memory on the device of a launch

MOST_WORDS = (1 << 30) - 16  # for what each kind of access remembers: the two are one array, of int32 indices


class _DeviceArray:
    """Zeros on a GPU, for as long as a launch takes."""

    def __init__(self, device: int, count: int, dtype: np.dtype) -> None:
        self.device, self.bytes = device, count * dtype.itemsize
        self.host = np.zeros(count, dtype)
        self.address = _core.memory_alloc(device, self.bytes)
        self.__cuda_array_interface__ = {
            "shape": (count,),
            "typestr": dtype.str,
            "data": (self.address, False),
            "version": 3,
        }

    def push(self) -> None:
        _core.memory_copy(self.device, self.address, self.host.ctypes.data, self.bytes)

    def pull(self) -> np.ndarray:
        _core.memory_copy(self.device, self.host.ctypes.data, self.address, self.bytes)
        return self.host

    def free(self) -> None:
        _core.memory_free(self.device, self.address)


class _HostArray:
    def __init__(self, count: int, dtype: np.dtype) -> None:
        self.host = np.zeros(count, dtype)

    def push(self) -> None: ...

    def pull(self) -> np.ndarray:
        return self.host

    def free(self) -> None: ...


@contextlib.contextmanager
def _zeros(device: int | None, count: int, dtype: Any) -> Iterator[Any]:
    count = -(-count // 16) * 16  # so that the facts of the array are always the same
    try:
        array = _HostArray(count, np.dtype(dtype)) if device is None else _DeviceArray(device, count, np.dtype(dtype))
    except MemoryError:
        size = count * np.dtype(dtype).itemsize
        raise TileValueError(
            f"check=True needs {size} bytes, two words of 4 bytes for each element of the arrays that the kernel "
            "stores to, and there is no such memory; check a launch on smaller arrays"
        ) from None
    try:
        yield array
    finally:
        array.free()


def _given(array: Any) -> Any:
    return array.host if isinstance(array, _HostArray) else array


# ---------------------------------------------------------------------------------------------
# Arrays and their owners


def _array(leaf: structure.Leaf) -> dict[str, Any] | None:
    """What an array is, or None for a number."""
    value = leaf.value
    is_array = isinstance(value, _core.ArrayView) or (not isinstance(value, np.generic) and structure.is_array(value))
    return {**_core.describe_array(value), "name": leaf.name} if is_array else None


def _bytes(array: dict[str, Any]) -> tuple[int, int, int]:
    """Where an array begins and ends in memory, and the bytes of an element."""
    from .dtype import BY_NAME

    itemsize = max(1, BY_NAME[array["dtype"]].bits // 8)
    if 0 in array["shape"]:
        return array["data"], array["data"], itemsize
    reach = [(n - 1) * s * itemsize for n, s in zip(array["shape"], array["strides"], strict=True)]
    return (
        array["data"] + sum(min(r, 0) for r in reach),
        array["data"] + sum(max(r, 0) for r in reach) + itemsize,
        itemsize,
    )


def _owners(arrays: Sequence[dict[str, Any] | None], written: Sequence[bool]) -> tuple[list[tuple[int, int]], int]:
    """For each parameter its first word and words an element, or (-1, 0); and how many words there are.

    An array is watched if it is written, or overlaps one that is. Those that overlap share words, by address.
    """
    spans = {i: _bytes(a) for i, a in enumerate(arrays) if a is not None}
    places, total = [(-1, 0)] * len(arrays), 0
    left = sorted(spans, key=lambda i: spans[i][0])
    while left:
        group = [left.pop(0)]
        end = spans[group[0]][1]
        while left and spans[left[0]][0] < end:
            group.append(left.pop(0))
            end = max(end, spans[group[-1]][1])
        if not any(written[i] for i in group):
            continue
        unit = math.gcd(*(spans[i][2] for i in group), *(arrays[i]["data"] - spans[group[0]][0] for i in group))  # type: ignore[index]
        for i in group:
            if written[i] or len(group) > 1:
                places[i] = total + (arrays[i]["data"] - spans[group[0]][0]) // unit, spans[i][2] // unit  # type: ignore[index]
        total += -(-(end - spans[group[0]][0]) // unit)
    return places, total


# ---------------------------------------------------------------------------------------------
# A launch


@quiet
def launch(
    stream: Any,
    grid: Any,
    kernel: Any,
    kernel_args: tuple[Any, ...],
    *,
    hints: dict[str, Any] | None = None,
    programmatic_dependent_launch: bool = False,
    check: bool = True,
) -> None:
    """ct.launch that waits for the kernel and raises a TileCheckError if something went wrong."""
    if hints is not None and hasattr(kernel, "replace_hints"):
        kernel = kernel.replace_hints(**hints)
    if not check or not hasattr(kernel, "checked") or not isinstance(kernel_args, tuple):
        _core.launch(stream, grid, kernel, kernel_args)
        return
    _checked(kernel, kernel_args, grid, None, lambda which, args: _core.launch(stream, grid, which, args))


def launch_threads(stream: Any, grid: Any, block: Any, kernel: Any, kernel_args: tuple[Any, ...], shared: int) -> None:
    """device.launch that waits for the kernel and raises a TileCheckError if a thread did something wrong."""

    def start(which: Any, args: tuple[Any, ...]) -> None:
        _core.launch_threads(stream, grid, block, which, args, shared)

    _checked(kernel, kernel_args, grid, block, start)


def _checked(
    kernel: Any, kernel_args: tuple[Any, ...], grid: Any, block: Any, start: Callable[[Any, tuple[Any, ...]], None]
) -> None:
    """`start` launches the kernel, or its twin with two more arguments."""
    args = _with_defaults(kernel, kernel_args)
    if len(args) != len(kernel.parameters):
        start(kernel, kernel_args)  # which says what is wrong
        return
    twin, leaves = kernel.checked(), structure.leaves(kernel.parameters, args, kernel.forms)
    arrays = [_array(leaf) for leaf in leaves if not leaf.is_constant]  # of the compiled kernel's parameters
    device = next((a["device_id"] for a in arrays if a is not None and a["device"] == "cuda"), None)
    with _zeros(device, 1, np.int64) as report, _zeros(device, 1, np.int32) as owners:
        variant = twin.chosen(1 if kernel.rules.simt else grid, (*args, _given(report), _given(owners)))
    written = [bool(variant.written >> i & 1) for i, leaf in enumerate(leaves) if not leaf.is_constant]
    places, words = _owners(arrays, written)
    if words > MOST_WORDS:
        raise TileValueError(
            f"check=True follows {MOST_WORDS} elements of the arrays that a kernel stores to, found {words}; check a "
            "launch on smaller arrays"
        )
    header = -(-(1 + 2 * (len(arrays) + 2)) // RECORD_WORDS) * RECORD_WORDS
    with (
        _zeros(device, header + MOST_FINDINGS * RECORD_WORDS, np.int64) as report,
        _zeros(device, 2 * words, np.int32) as owners,
    ):
        for i, place in enumerate(places):
            report.host[1 + 2 * i : 3 + 2 * i] = place
        report.host[1 + 2 * (len(arrays) + 1)] = words  # where those of the readers begin
        report.push()
        owners.push()
        _wait(device)
        start(twin, (*args, _given(report), _given(owners)))
        _wait(device)
        found = report.pull().copy()
    sites = twin.sites[id(variant)][1]
    for array, is_written in zip(arrays, written, strict=True):
        if array is not None:
            array["written"] = is_written
    _raise(kernel, grid, block, arrays, sites, found[0], found[header:].reshape(-1, RECORD_WORDS))


def _wait(device: int | None) -> None:
    if device is not None:
        _core.synchronize(device)


def _with_defaults(kernel: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    defaults = structure.defaults_of(kernel.function)
    missing = len(kernel.parameters) - len(args)
    return (*args, *defaults[len(defaults) - missing :]) if 0 < missing <= len(defaults) else args


# ---------------------------------------------------------------------------------------------
# What was found


def _raise(
    kernel: Any, grid: Any, block: Any, arrays: Any, sites: list[_Site], count: int, records: np.ndarray
) -> None:
    if not count:
        return
    sizes, threads = _sizes(grid), None if block is None else _sizes(block)
    records = records[: min(int(count), len(records))]
    order = sorted(range(len(records)), key=lambda i: (records[i][BLOCK], records[i][SITE], records[i][OTHER]))
    findings = [_finding(sizes, threads, arrays, sites, records[i]) for i in order]
    raise error_of(kernel.name, findings, int(count))


_IN_A_ROW = (1024, 1, 1)  # threads in a kernel of tiles


def _sizes(extents: Any) -> tuple[int, int, int]:
    return (*(extents if isinstance(extents, tuple | list) else (extents,)), 1, 1)[:3]


def _finding(grid: Any, threads: Any, arrays: Any, sites: list[_Site], record: np.ndarray) -> Finding:
    site = sites[int(record[SITE])]
    array = arrays[site.parameter] if 0 <= site.parameter < len(arrays) else None
    block = _position(int(record[BLOCK]), grid)
    blocks = ("two writers", "read of written", "write of read")
    other = _position(int(record[OTHER]), grid) if site.kind in blocks and record[OTHER] >= 0 else None
    index: tuple[int, ...] | None = None
    if array is not None and site.kind != "padding used":
        index = tuple(int(n) for n in record[INDEX : INDEX + len(array["shape"])])
        if site.text == "offset":
            index = (sum(index),)
    value = (
        _value(record[VALUE], site.dtype, array["dtype"] if array else site.dtype)
        if site.dtype and (array or site.parameter < 0)
        else None
    )
    name = None if array is None else array["name"]
    shape = None if array is None else tuple(array["shape"])
    overlaps = site.kind in ("read of written", "write of read") and array is not None and not array["written"]
    thread = _position(int(record[OTHER]), threads or _IN_A_ROW) if site.of_thread else None
    text = site.text or "overlap" * overlaps
    return Finding(site.kind, name, shape, index, block, value, other, text, site.places, thread)


def _position(number: int, grid: Any) -> tuple[int, int, int]:
    rest, x = divmod(number, int(grid[0]))
    z, y = divmod(rest, int(grid[1]))
    return x, y, z


def _value(bits: Any, dtype: str, of_array: str) -> Any:
    """From the low bits of a word; narrow floats come as float32."""
    raw = np.asarray(bits, np.int64).tobytes()
    if dtype[0] in "fbt" and not dtype.startswith(("f64", "f32", "f16", "bf16")):
        dtype = "f32"
    if dtype == "bf16":
        return float(np.frombuffer(b"\0\0" + raw[:2], np.float32)[0])
    kinds = {"f64": np.float64, "f32": np.float32, "f16": np.float16}
    if dtype in kinds:
        return np.frombuffer(raw, kinds[dtype])[0].item()
    width = int(re.sub(r"\D", "", dtype))
    if width == 1:
        return bool(bits & 1)
    unsigned = int(bits) & ((1 << width) - 1)
    return unsigned if of_array.startswith("u") or unsigned < 1 << (width - 1) else unsigned - (1 << width)
