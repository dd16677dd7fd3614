"""serialize and deserialize: an object as bytes, for named GPUs or the CPU, and back without its operators.

    magic, size of the head, head as JSON, code of the kernels one behind the other, SHA-256 of all before

The head says which algorithm it is, what each argument was, and where the code of each kernel lies. What an argument
of stage 3 must be is kept as a hash of its key (objects.keys_of), and so is for which arguments a kernel's code is.
For a GPU the code is a cubin, or PTX that the driver assembles; for the CPU it is the module that the capture made,
which is compiled where it is loaded, for that CPU.

Bytes may come from anywhere: nothing in them is run or looked up while they are read, and what does not hold together
is refused. Code that they carry runs when the object is called, as that of any library.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .. import _core, compile
from ..device import records
from ..dtype import BY_NAME, DType, as_dtype
from ..errors import TileError, TileTypeError, TileValueError
from ..times import Times
from .histogram import HistogramEven
from .inputs import ProxyInput
from .iterators import Iterator as ItemIterator
from .launching import ComputeKernel, Kernels
from .merge_sort import MergeSort
from .objects import GPUS, Algorithm
from .operators import Itself
from .proxies import ProxyArray, ProxyValue
from .radix_sort import RadixSort, SortOrder
from .reduce import Determinism, Reduce
from .scan import ExclusiveScan, InclusiveScan
from .search import LowerBound, UpperBound
from .segmented_reduce import SegmentedReduce
from .segmented_scan import SegmentedExclusiveScan, SegmentedInclusiveScan
from .segmented_sort import SegmentedSort
from .select import Select, ThreeWayPartition, UniqueByKey
from .transform import BinaryTransform, UnaryTransform
from .types import ItemType, is_complex, is_struct, item_type, numpy_dtype

MAGIC = b"TWcompu1"
_HEAD, _DIGEST = struct.Struct("<8sI"), 32
MOST_BYTES, MOST_HEAD, MOST_FIELDS, MOST_DEPTH = 1 << 28, 1 << 20, 1000, 16

_SORTS = (MergeSort, RadixSort, SegmentedSort)
_FOLDS = (Reduce, SegmentedReduce, InclusiveScan, ExclusiveScan, SegmentedInclusiveScan, SegmentedExclusiveScan)
_OTHERS = (
    HistogramEven,
    Select,
    ThreeWayPartition,
    UniqueByKey,
    UnaryTransform,
    BinaryTransform,
    LowerBound,
    UpperBound,
)
ALGORITHMS: dict[str, type[Algorithm]] = {kind.name: kind for kind in (*_SORTS, *_FOLDS, *_OTHERS)}
_OPTIONS = (Determinism, SortOrder)


# --- keys as hashes ---------------------------------------------------------------------------------------------


def digest(key: Any) -> str:
    return hashlib.sha256(spelled(key).encode()).hexdigest()


def spelled(key: Any) -> str:
    """A key as text, the same in every process."""
    if isinstance(key, tuple | list):
        return f"{type(key).__name__}({','.join(map(spelled, key))})"
    if key is None or isinstance(key, bool | int | str | bytes | float | complex):
        return f"{type(key).__name__} {key!r}"
    if isinstance(key, DType):
        return key.name
    if isinstance(key, enum.Enum):
        return f"{type(key).__name__}.{key.name}"
    if isinstance(key, records.Form):
        return spelled(("form", key.kind, key.offset, key.loose, key.is_atomic, *key.parts))
    if is_struct(key):
        return spelled(("struct", *key.__tw_struct__.items()))
    return _spelled_object(key)


def _spelled_object(key: Any) -> str:
    import numpy as np

    if isinstance(key, np.dtype):
        return spelled(("dtype", _of_type(key)))
    if isinstance(key, np.generic):
        return f"{key.dtype} {key.item()!r}"
    name = getattr(key, "__qualname__", getattr(key, "__name__", None))
    if isinstance(key, Itself) or name is None or "<" in name:
        held = key.value if isinstance(key, Itself) else key
        raise TileTypeError(f"an object that uses {held!r} from outside of its operators cannot be serialized")
    return f"{getattr(key, '__module__', '')}.{name}"


# --- types in the head ------------------------------------------------------------------------------------------


def _of_type(t: Any) -> Any:
    """An item type, or a dtype of NumPy, for JSON."""
    import numpy as np

    if isinstance(t, tuple):
        return {"tuple": [_of_type(part) for part in t]}
    if isinstance(t, DType) or is_complex(t):
        return t.name
    if not isinstance(t, np.dtype):
        t = numpy_dtype(t)
    if t.subdtype is not None:
        base, shape = t.subdtype
        return {"of": _of_type(base), "shape": list(shape)}
    if t.names is None:
        return t.name if t.kind == "c" else as_dtype(t).name
    fields = [[name, _of_type(t.fields[name][0]), t.fields[name][1]] for name in t.names]
    return {"fields": fields, "bytes": t.itemsize}


def _type_of(told: Any, depth: int = 0) -> ItemType:
    """The item type; a dtype of NumPy where there are fields."""
    _hold(depth < MOST_DEPTH, "a type is nested too deep")
    if isinstance(told, str):
        _hold(told in BY_NAME or told in ("complex64", "complex128"), f"there is no type {told[:40]!r}")
        return BY_NAME[told] if told in BY_NAME else item_type(told)
    if isinstance(told, dict) and told.keys() == {"tuple"}:
        return tuple(_type_of(part, depth + 1) for part in _list(told["tuple"], MOST_FIELDS))
    return item_type(_dtype_of(told, depth))


def _dtype_of(told: Any, depth: int = 0) -> Any:
    import numpy as np

    _hold(depth < MOST_DEPTH, "a type is nested too deep")
    if isinstance(told, dict) and told.keys() == {"of", "shape"}:
        shape = tuple(_number(n, MOST_FIELDS) for n in _list(told["shape"], 4))
        return _small(np.dtype((_dtype_of(told["of"], depth + 1), shape)))
    if not (isinstance(told, dict) and told.keys() == {"fields", "bytes"}):
        return numpy_dtype(_type_of(told, depth + 1))
    rows = [_list(row, 3) for row in _list(told["fields"], MOST_FIELDS)]
    _hold(rows and all(len(row) == 3 and str(row[0]).isidentifier() for row in rows), "a struct has fields with names")
    size = _number(told["bytes"], 1 << 20)
    described = {
        "names": [str(row[0]) for row in rows],
        "formats": [_dtype_of(row[1], depth + 1) for row in rows],
        "offsets": [_number(row[2], size) for row in rows],
        "itemsize": size,
    }
    return _small(np.dtype(described))  # type: ignore[call-overload]


def _small(dtype: Any) -> Any:
    _hold(dtype.itemsize <= 1 << 20, "an item is too large")
    return dtype


# --- what is written --------------------------------------------------------------------------------------------


def serialize(algorithm: Algorithm) -> bytes:
    """An object that a `make_…` gave, as bytes. `deserialize` makes it again, in any process."""
    if not isinstance(algorithm, Algorithm):
        raise TileTypeError(f"serialize takes an object that a make_ function gave, found {algorithm!r}")
    if algorithm.blob:
        return algorithm.blob
    code = bytearray()
    kernels = {name: list(_rows(kernel, code)) for name, kernel in kernels_of(algorithm).items()}
    head = {
        "version": _version(),
        "algorithm": algorithm.name,
        "on": "cpu" if algorithm.place == "cpu" else "gpu",
        "options": [[type(o).__name__, o.name] if isinstance(o, enum.Enum) else o for o in algorithm.options],
        "inputs": {n: None if told is None else [told[0], _of_type(told[1])] for n, told in algorithm.inputs.items()},
        "values": {n: _of_value(algorithm.keys[n]) for n in algorithm.values},
        "commutes": {n: algorithm.commuting[n] for n in algorithm.ops},
        "keys": {n: None if key is None else digest(key) for n, key in algorithm.keys.items()},
        "kernels": kernels,
    }
    told = json.dumps(head).encode()
    whole = _HEAD.pack(MAGIC, len(told)) + told + bytes(code)
    return whole + hashlib.sha256(whole).digest()


def _of_value(key: Any) -> Any:
    """The type of a value of the host, as `value_key` has it."""
    if key is None:
        return None
    return (
        [key[0], _of_type(key[1])] if isinstance(key, tuple) and key and key[0] in ("array", "value") else _of_type(key)
    )


def kernels_of(algorithm: Algorithm) -> dict[str, ComputeKernel]:
    """The kernels by the attributes in which they are."""
    return dict(_kernels_in("", vars(algorithm)))


def _kernels_in(prefix: str, held: dict[str, Any]) -> Iterator[tuple[str, ComputeKernel]]:
    for name, value in held.items():
        if isinstance(value, ComputeKernel):
            yield prefix + name, value
        elif isinstance(value, Kernels):
            yield from _kernels_in(f"{prefix}{name}.", vars(value))


def _rows(kernel: ComputeKernel, code: bytearray) -> Iterator[dict[str, Any]]:
    """What the head says of the variants of a kernel, whose code goes to the end of `code`."""
    for (target, key), variant in kernel.made.items():
        row = {"target": target, "key": digest(key), "written": variant.written}
        if target.startswith("cpu"):
            yield row | _kept(code, "module", compile.capture_kernel(kernel, target, key).module.text().encode())
            continue
        image = kernel.images[target, key]
        row |= {"record": image.record.hex()}
        row |= _kept(code, "ptx", _ptx(kernel, target, key, image))
        yield row | _kept(code, "cubin", _cubin(image, target))


def _ptx(kernel: ComputeKernel, target: str, key: Any, image: compile.Image) -> bytes:
    """What newer GPUs run, also where this machine's GPU made machine code of it; nothing of what is linked with."""
    if image.is_ptx:
        return image.code
    module = compile.capture_kernel(kernel, target, key).module
    times = Times(kernel.name, target)
    again = compile.build(module, target, kernel.name, times, lambda ptx, _: ptx, image.plan)
    return again.code if again.is_ptx else b""


def _cubin(image: compile.Image, target: str) -> bytes:
    """Machine code, where ptxas or a GPU of the target is there; else nothing."""
    if not image.is_ptx:
        return image.code
    from ..compilation.export import assemble

    try:
        return assemble(image.code.decode(), target)
    except TileError:
        return b""


def _kept(code: bytearray, kind: str, content: bytes) -> dict[str, Any]:
    if not content:
        return {}
    at = len(code)
    code += content
    return {kind: [at, len(content)]}


@functools.cache
def _version() -> str:
    """Names what must be the same where bytes are read: kernels and their parameters follow from these sources."""
    found = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        found.update(path.read_bytes())
    python = ".".join(map(str, sys.version_info[:2]))  # operators are compared by Python's instructions
    return f"Python {python}, launch records {_core.LAUNCH_RECORD_VERSION}, {found.hexdigest()[:32]}"


# --- what is read -----------------------------------------------------------------------------------------------


def _hold(condition: Any, problem: str) -> None:
    if not condition:
        raise TileValueError(f"deserialize: {problem}; serialize the object again")


def _list(value: Any, most: int) -> list[Any]:
    _hold(isinstance(value, list) and len(value) <= most, "a list is missing, or too long")
    return list(value)


def _number(value: Any, most: int) -> int:
    _hold(type(value) is int and 0 <= value <= most, "a number is missing, or out of its range")
    return int(value)


def _dict(value: Any, keys: Any) -> dict[str, Any]:
    _hold(
        isinstance(value, dict) and set(value) == set(keys), "what is told of arguments is not what the algorithm has"
    )
    return dict(value)


def deserialize(blob: bytes) -> Algorithm:
    """The object of which `serialize` made the bytes. Threads may share it.

    What it is called with must be as it was in stage 1: dtypes, kinds of iterators, operators.
    """
    head, code = _parted(blob)
    _hold(isinstance(head.get("algorithm"), str) and head["algorithm"] in ALGORITHMS, "there is no such algorithm")
    kind = ALGORITHMS[head["algorithm"]]
    try:
        made = _made(kind, head, code)
    except (LookupError, AttributeError, TypeError, ValueError, RecursionError, TileError) as error:
        if isinstance(error, TileValueError):
            raise
        raise TileValueError(f"deserialize: the bytes do not hold together ({error}); serialize again") from None
    made.blob = bytes(blob)
    return made


def _parted(blob: bytes) -> tuple[dict[str, Any], memoryview]:
    """The head and the code, of bytes that are whole."""
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise TileTypeError(f"deserialize takes the bytes that serialize gave, found {type(blob).__name__}")
    whole = memoryview(bytes(blob))
    _hold(_HEAD.size + _DIGEST <= len(whole) <= MOST_BYTES, f"there are {len(whole)} bytes, which is no such object")
    magic, size = _HEAD.unpack_from(whole)
    _hold(magic == MAGIC, "bad magic: the bytes are of something else")
    body = whole[:-_DIGEST]
    _hold(hashlib.sha256(body).digest() == whole[-_DIGEST:], "bytes were changed or are missing")
    _hold(size <= min(MOST_HEAD, len(body) - _HEAD.size), "the head is longer than the bytes")
    try:
        head = json.loads(bytes(body[_HEAD.size : _HEAD.size + size]))
    except (ValueError, RecursionError):
        head = None
    _hold(isinstance(head, dict), "the head is no JSON")
    version = head.get("version")
    _hold(version == _version(), f"it is of another version: {str(version)[:80]!r}, here it is {_version()!r}")
    return head, body[_HEAD.size + size :]


def _made(kind: type[Algorithm], head: dict[str, Any], code: memoryview) -> Algorithm:
    inputs = _dict(head["inputs"], (*kind.ins, *kind.outs))
    given: dict[str, Any] = {n: _input(told, f"{kind.name}: '{n}'") for n, told in inputs.items()}
    commutes, values = _dict(head["commutes"], kind.ops), _dict(head["values"], kind.values)
    given |= {n: _StoredOperator(commutes[n] is True) for n in kind.ops}
    given |= {n: _value(told) for n, told in values.items()}
    keys = _dict(head["keys"], (*inputs, *commutes, *values))
    _hold(all(key is None or isinstance(key, str) for key in keys.values()), "a key is no text")
    on_gpu = head["on"] == "gpu"
    targets = _targets(head["kernels"]) if on_gpu else ()
    made = kind.__new__(kind)
    made.form = digest  # type: ignore[method-assign]
    made.inputs = {n: None if told is None else (told[0], _told(told)) for n, told in inputs.items()}
    made.begin(given, GPUS if on_gpu else "cpu", _options(head["options"]), targets, keys)
    _attach(made, head["kernels"], code, on_gpu)
    return made


def _told(told: Any) -> Any:
    return _dtype_of(told[1]) if told[0] == "array" and isinstance(told[1], dict) else _type_of(told[1])


def _input(told: Any, what: str) -> Any:
    if told is None:
        return None
    form, _ = _list(told, 2)
    _hold(form in ("array", "iterator"), "an input is neither array nor iterator")
    return ProxyInput(ProxyArray(_told(told)), what) if form == "array" else _StoredIterator(_told(told))


def _value(told: Any) -> Any:
    if isinstance(told, list):
        form, t = _list(told, 2)
        return ProxyArray(_type_of(t)) if form == "array" else ProxyValue(_type_of(t))
    return None if told is None else ProxyValue(_type_of(told))


def _options(told: Any) -> tuple[Any, ...]:
    found: list[Any] = []
    for option in _list(told, 4):
        if isinstance(option, bool):
            found.append(option)
            continue
        name, member = _list(option, 2)
        kinds = [kind for kind in _OPTIONS if kind.__name__ == name and member in kind.__members__]
        _hold(kinds, f"there is no option {str(name)[:40]!r}")
        found.append(kinds[0][member])
    return tuple(found)


def _targets(kernels: Any) -> tuple[str, ...]:
    found = {str(row["target"]) for rows in kernels.values() for row in _list(rows, MOST_FIELDS)}
    problem = next(filter(None, map(_core.target_problem, found)), None)
    _hold(found and problem is None, problem or "there is no code")
    return tuple(sorted(found, key=lambda name: int(name[3:].rstrip("af"))))


class _StoredIterator(ItemIterator):
    """An iterator of stage 1, of which the type is known."""

    def __init__(self, t: ItemType) -> None:
        self.value_type, self.kind = t, None

    def reader(self) -> Any:
        return None

    writer = reader


class _StoredOperator:
    """An operator of stage 1, of which it is known whether it commutes; its code is in that of the kernels."""

    def __init__(self, commutes: bool) -> None:
        self.commutes = commutes

    def giving(self, t: ItemType, what: str | None = None) -> _StoredOperator:
        return self

    def deciding(self) -> _StoredOperator:
        return self

    typed = giving


# --- code of kernels --------------------------------------------------------------------------------------------


class Stored(NamedTuple):
    """A variant of a kernel in a file."""

    target: str
    key: str
    written: int
    record: bytes
    codes: dict[str, bytes]  # cubin, ptx or module

    def variant(self, kernel: ComputeKernel, is_own: bool) -> Any:
        """`is_own`: it is for just this target, not for an older one."""
        name = kernel.name
        if "module" in self.codes:
            text = self.codes["module"].decode()
            module = _core.parse(text)
            image = compile.image_of(module, text, self.target, name, Times(name, self.target))
        else:
            code = self.codes.get("cubin") if is_own else None
            image = compile.Image(code or self.codes["ptx"], self.record)
        return compile.load(image, name, self.written, self.target)


def _attach(made: Algorithm, told: Any, code: memoryview, on_gpu: bool) -> None:
    kernels = kernels_of(made)
    for name, rows in _dict(told, kernels).items():
        found = [_stored(row, code, on_gpu) for row in _list(rows, MOST_FIELDS)]
        kernels[name].stored = functools.partial(_find, made, kernels[name], found)


def _stored(row: Any, code: memoryview, on_gpu: bool) -> Stored:
    codes = {}
    for kind in ("cubin", "ptx") if on_gpu else ("module",):
        if kind in row:
            at, size = (_number(n, len(code)) for n in _list(row[kind], 2))
            _hold(0 < size <= len(code) - at, "code lies outside of the bytes")
            codes[kind] = bytes(code[at : at + size])
    _hold(codes, "a kernel has no code")
    record = bytes.fromhex(row["record"]) if on_gpu else b""
    if on_gpu:
        _core.launch_facts(record)
    target, key = row["target"], row["key"]
    _hold(isinstance(target, str) and isinstance(key, str) and (on_gpu or target == "cpu"), "a kernel has no target")
    return Stored(target, key, _number(row["written"], (1 << 64) - 1), record, codes)


def _find(made: Algorithm, kernel: ComputeKernel, rows: list[Stored], target: str, key: Any) -> Any:
    """The variant for a launch, or the error to raise."""
    wanted = digest(key)
    for row in sorted(rows, key=lambda row: row.target != target):
        if row.key == wanted and (row.target == target or ("ptx" in row.codes and _runs(row.target, target))):
            try:
                return row.variant(kernel, row.target == target)
            except (TileError, RuntimeError, UnicodeDecodeError) as error:
                told = f"the code of {kernel.name} is not what serialize wrote"
                return TileValueError(f"{made.name}: {told}: {str(error).splitlines()[0]}")
    if not any(row.key == wanted for row in rows):
        return TileTypeError(f"{made.name}: arrays of structs lie otherwise than those that the object was made for")
    there = ", ".join(made.targets) or "cpu"
    return TileValueError(f"{made.name}: the object was made for {there}, and this GPU is {target}")


def _runs(made_for: str, target: str) -> bool:
    """Whether the driver assembles PTX of one target for another: PTX of sm_80 for newer GPUs, of sm_90a for none."""
    return made_for[3:].isdigit() and int(made_for[3:]) <= int(target[3:].rstrip("af"))


__all__ = ["deserialize", "serialize"]
