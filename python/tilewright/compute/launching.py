"""Kernels of the algorithms: their rules, how they are compiled before a launch, and how they are launched."""

from __future__ import annotations

import contextvars
import dataclasses
import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import CellType, CodeType, FunctionType
from typing import Any

from .. import _core, arrays, knobs
from .. import compile as compiler
from ..capture import numba_functions, numba_ufuncs
from ..capture.numba_rules import NUMBA, Typing, _Numba
from ..device import records
from ..dtype import BY_NAME, bfloat16, float16, float32
from ..errors import Place, TileCheckError, TileError, TileTypeError, TileValueError
from ..kernel import compile_variant
from ..numba.kernels import Kernel


class _Compute(_Numba):
    """Those of Numba, and bfloat16: as float16 with integers, float32 with float16."""

    name = "compute"
    refers_to_records = False  # an operator is given copies
    wraps_indices = False  # the algorithms count from 0, and their accesses shall lie side by side
    repeats = True

    def generic(self, x: str, y: str) -> str:
        if x == y or bfloat16.name not in (x, y):
            return super().generic(x, y)
        if float16.name in (x, y):
            return float32.name
        a, b = (float16.name if n == bfloat16.name else n for n in (x, y))
        found = super().generic(a, b)
        return bfloat16.name if found == float16.name else found

    def meet(self, op: str, x: str, y: str) -> Typing | None:
        """Floats of 16 bits compute in 32."""
        found = super().meet(op, x, y)
        if found is not None and BY_NAME.get(found[0]) in (bfloat16, float16):
            return float32.name, found[1]
        return found


COMPUTE = _Compute()
COMPUTE.builtins = numba_functions._Functions(COMPUTE).table()
COMPUTE.builtins.update(numba_ufuncs.table(COMPUTE.builtins))
COMPUTE.names = NUMBA.names


class Compiled:
    """What kernels of the same text have been compiled to: variants and their code, by target and key. One of several
    threads that want one compiles it."""

    def __init__(self) -> None:
        self.variants: dict[Any, Any] = {}
        self.lock = threading.RLock()


class ComputeKernel(Kernel):
    """A kernel of an algorithm. It relies on nothing but the types of its arguments: one variant serves all calls."""

    rules = COMPUTE
    decorator = "tilewright.compute"

    threads_on_cpu = 1  # of a block, at most
    # Whether the driver assembles it as it loads it: in three fifths of the time that its linker takes, which alone
    # hands machine code out, and assembles several kernels at a time. The driver caches what it has loaded.
    is_assembled_by_load = False
    is_common = False  # other objects have it, too

    def __init__(self, function: Any, /, **wanted: Any) -> None:
        super().__init__(function, **wanted)
        self.take_long_arrays()  # it is told how many items there are
        self.made: dict[Any, Any] = {}  # variants by target and key
        self.images: dict[Any, Any] = {}  # their code, where it is a GPU's
        self.stored: Any = None  # (target, key): a variant out of a file (serialization.py), or the error to raise
        self.shared = Compiled()
        self.is_prepared = False  # compiled and loaded, for what its object launches

    def hints_for(self, target: str) -> dict[str, Any]:
        return super().hints_for(target) | ({"most_threads": self.threads_on_cpu} if target == "cpu" else {})

    def on_miss(self, target: str, key: Any) -> Any:
        plain = (target, tuple(map(_plain, key)))
        if plain not in self.made:
            with self.shared.lock:
                if plain not in self.made:
                    found = self._found(plain)
                    if isinstance(found, BaseException):
                        return _of_user(found)
                    self.made[plain] = found
        return self.made[plain]

    def _found(self, plain: Any) -> Any:
        return self._compiled(plain) if self.stored is None else self.stored(*plain)

    def _compiled(self, plain: Any) -> Any:
        if plain in self.shared.variants:
            found, self.images[plain] = self.shared.variants[plain]
            return found
        _count("compilations")

        def keep(_: Any, image: Any, variant: Any) -> None:
            self.images[plain] = image

        target, key = plain
        found = compile_variant(self, target, key, keep)
        if not isinstance(found, BaseException):
            self.shared.variants[plain] = found, self.images.get(plain)
        return found

    def prepare(self, values: tuple[Any, ...], targets: tuple[str, ...] = ()) -> None:
        """Compile for these arguments and the targets, by default that of the arrays, which is loaded then; nothing
        runs."""
        own, key = self.specialization(values)
        for target in targets or (own,):
            found = self.on_miss(target, key)
            if isinstance(found, BaseException):
                raise found
        if not targets and own != "cpu":
            found.load(_gpu_of(values))


def resident(kernel: ComputeKernel, threads: int, blocks: int = 0) -> ComputeKernel:
    """The kernel with as few registers as it takes for a multiprocessor to hold so many of its blocks; without their
    number, one, which all kernels of large blocks need, for operators may take any number of registers."""
    kernel.hints = {"most_threads": threads} | ({"occupancy": blocks} if blocks else {})
    return kernel


_shared: dict[Any, Compiled] = {}


def common(kernel: ComputeKernel, key: Any) -> ComputeKernel:
    """A kernel that is the same for all objects that give the key: it is compiled once a process."""
    kernel.shared, kernel.is_common = _shared.setdefault(key, Compiled()), True
    return kernel


class Kernels:
    """A part of an algorithm that has kernels of its own, as attributes."""


_OURS = str(Path(__file__).parent)


def _of_user(error: BaseException) -> BaseException:
    """The same error without the places that are lines of algorithms: an operator's line is what a user can change."""
    if isinstance(error, TileError):
        error.places = _others(error.places)
    return error


def _others(places: Sequence[Place]) -> tuple[Place, ...]:
    return tuple(place for place in places if not place.file.startswith(_OURS))


def told_of_call(error: TileCheckError, name: str) -> TileCheckError:
    """What check mode has found in a call of the algorithm `name`, in words for who has called it."""
    findings = [dataclasses.replace(found, places=_others(found.places)) for found in error.findings]
    message = re.sub(r"^kernel \w+", name, error.message)
    return type(error)(message, _others(error.places), findings)


def _gpu_of(values: Any) -> int:
    """The number of the GPU on which the first array among some arguments is."""
    for value in values:
        if isinstance(value, arrays.Array):
            return int(value.memory.device)
        held = value if isinstance(value, tuple) else (value.bytes,) if isinstance(value, records.RecordArray) else ()
        if (found := _gpu_of(held)) >= 0:
            return found
    return -1


counts = {"compilations": 0, "launches": 0}  # of this process; those by a plan (call_plan.py) are not among them
_counting = threading.Lock()


def _count(what: str) -> None:
    with _counting:
        counts[what] += 1


def _plain(entry: Any) -> Any:
    """An entry of a key without what is known of addresses and divisors."""
    kind, *facts = entry
    if kind in ("tuple", "list", "dict", "record"):
        return (kind, facts[0], tuple(map(_plain, facts[1])))
    if kind in ("scalar", "number"):
        return (kind, facts[0], 1)
    if kind == "array":
        dtype, rank, _, divisors, strides, writable, _ = facts
        size = BY_NAME[dtype].itemsize if dtype in BY_NAME else 1
        return (kind, dtype, rank, size, (1,) * len(divisors), strides, writable, False)
    return entry


# --- sizes ----------------------------------------------------------------------------------------------------


class UnplannedError(Exception):
    """A call, or something that is computed of its sizes, of which no plan can be made."""


def _computing(name: str, of: Callable[[int, int], int], turned: bool = False) -> Any:
    def compute(self: Number, other: Any) -> Number:
        a, b = (other, self) if turned else (self, other)
        return self.trace.computed(name, a, b, of(_value(a), _value(b)))

    return compute


def _comparing(name: str, turned: bool, negated: bool) -> Any:
    def compare(self: Number, other: Any) -> bool:
        a, b = (other, self) if turned else (self, other)
        found = _value(a) < _value(b) if name == "less" else _value(a) == _value(b)
        return self.trace.compared(name, a, b, found) != negated

    return compare


def _value(number: Any) -> int:
    if not isinstance(number, Number | int):
        raise UnplannedError(f"{number!r} among sizes")
    return number.value if isinstance(number, Number) else number


class Number:
    """A size of a call while a plan is made of it (call_plan.py): what is computed of it, and how it compares, is
    noted. No integer of Python's can be made of it, which nobody would note."""

    def __init__(self, trace: Any, register: int, value: int) -> None:
        self.trace, self.register, self.value = trace, register, value

    __add__ = __radd__ = _computing("add", lambda a, b: a + b)
    __sub__, __rsub__ = (_computing("subtract", lambda a, b: a - b, turned) for turned in (False, True))
    __mul__ = __rmul__ = _computing("multiply", lambda a, b: a * b)
    __floordiv__, __rfloordiv__ = (_computing("divide", lambda a, b: a // b, turned) for turned in (False, True))
    __mod__, __rmod__ = (_computing("remainder", lambda a, b: a % b, turned) for turned in (False, True))
    __lt__, __ge__ = (_comparing("less", False, negated) for negated in (False, True))
    __gt__, __le__ = (_comparing("less", True, negated) for negated in (False, True))
    __eq__, __ne__ = (_comparing("equal", False, negated) for negated in (False, True))
    __hash__ = None  # type: ignore[assignment]

    def __neg__(self) -> Number:
        return 0 - self

    def __bool__(self) -> bool:
        return self != 0

    def __index__(self) -> int:
        raise UnplannedError("a size that must be known")

    __int__ = __float__ = __truediv__ = __rtruediv__ = __index__


def size(n: Any) -> Any:
    """A size as kernels take it."""
    import numpy as np

    return n if isinstance(n, Number) else np.int64(n)


def known(n: Any) -> int:
    """A size on which the list of launches itself depends: plans are for calls that have the same one."""
    return n.value if isinstance(n, Number) and n == n.value else n


def arguments(values: Any) -> tuple[Any, ...]:
    return tuple(map(records.argument, values))


@dataclasses.dataclass(frozen=True)
class Launch:
    """One launch of an algorithm's."""

    kernel: ComputeKernel
    arguments: tuple[Any, ...]
    grid: int
    block: int

    def run(self, stream: Any) -> None:
        _count("launches")
        if knobs.check():
            from .. import checking  # which compiles the kernel again

            checking.launch_threads(stream, self.grid, self.block, self.kernel, arguments(self.arguments), 0)
            return
        _core.launch_threads(stream, self.grid, self.block, self.kernel, arguments(self.arguments), 0)

    def compile(self, targets: tuple[str, ...]) -> None:
        self.kernel.prepare(arguments(self.arguments), targets)


def compile_missing(launches: list[Launch]) -> None:
    """Compile the kernels of launches that nobody has compiled yet, all of them before anything is launched."""
    missing = [launch for launch in launches if not launch.kernel.is_prepared]
    if missing:
        compile_all(missing, ())


def compile_all(launches: list[Launch], targets: tuple[str, ...]) -> None:
    """Compile the kernels of launches at the same time. What is made for targets is machine code, which is kept.

    They are captured one after the other, the longest one first: that is work for Python, which has one thread run at a
    time, and what is behind the longest capture takes longest, too."""
    by_kernel: dict[int, list[Launch]] = {}
    for launch in launches:
        by_kernel.setdefault(id(launch.kernel), []).append(launch)
    own = [group[0].kernel for group in by_kernel.values() if not group[0].kernel.is_common]
    for kernel in own:
        kernel.is_assembled_by_load = len(own) == 1 and not targets

    def compile_each(group: list[Launch], captured: threading.Event) -> None:
        compiler.when_captured.set(captured.set)
        try:
            for launch in group:
                launch.compile(targets)
            group[0].kernel.is_prepared = True
        finally:
            captured.set()

    if len(by_kernel) < 2:
        compile_each(launches, threading.Event())
        return
    groups = sorted(by_kernel.values(), key=lambda group: -_length(group[0].kernel.function, set()))
    with ThreadPoolExecutor(len(groups)) as threads:
        found = []
        for group in groups:
            captured = threading.Event()
            found.append(threads.submit(contextvars.copy_context().run, compile_each, group, captured))
            captured.wait()
        for done in found:
            done.result()


def _length(value: Any, seen: set[int]) -> int:
    """Bytes of the code of a function and of those that it was made with."""
    if isinstance(value, tuple):
        return sum(_length(part, seen) for part in value)
    if not isinstance(value, FunctionType) or id(value) in seen:
        return 0
    seen.add(id(value))
    return _of_code(value.__code__) + sum(_length(_held(cell), seen) for cell in value.__closure__ or ())


def _held(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that has none yet
        return None


def _of_code(code: CodeType) -> int:
    return len(code.co_code) + sum(_of_code(c) for c in code.co_consts if isinstance(c, CodeType))


def stream_of(stream: Any, place: Any) -> Any:
    """What a launch takes for a stream; on the CPU there are none."""
    if stream is not None and not isinstance(stream, int) and not hasattr(stream, "__cuda_stream__"):
        known = any(hasattr(stream, name) for name in ("cuda_stream", "ptr", "handle", "value"))
        if not known:
            raise TileTypeError(
                f"stream argument {stream!r} does not implement the '__cuda_stream__' protocol: expected None, a "
                "handle or a stream of a library"
            )
    if hasattr(stream, "__cuda_stream__"):
        found = stream.__cuda_stream__() if callable(stream.__cuda_stream__) else stream.__cuda_stream__
        if not (isinstance(found, tuple) and len(found) == 2):
            raise TileTypeError(f"could not obtain __cuda_stream__ protocol version and handle from {stream!r}")
        version, handle = found
        if version != 0:
            raise TileTypeError(f"unsupported __cuda_stream__ version {version!r} of {stream!r}, expected 0")
        if not isinstance(handle, int):
            raise TileTypeError(f"invalid stream handle {handle!r} of {stream!r}, expected an integer")
        if handle < 0:
            raise TileValueError(f"invalid stream handle {handle} of {stream!r}")
        stream = handle
    return None if place == "cpu" else stream


# --- bytes that an algorithm needs ------------------------------------------------------------------------------

ALIGN = 256  # of each part of the temporary storage


@dataclasses.dataclass(frozen=True)
class Part:
    """An array in the temporary storage: `count` items of a type, or of a dtype of NumPy."""

    type: Any
    count: int

    @property
    def bytes(self) -> int:
        from .types import size_of

        return size_of(self.type) * self.count


def bytes_of(parts: list[Part]) -> int:
    return max(1, sum(-(-part.bytes // ALIGN) * ALIGN for part in parts) + (ALIGN if parts else 0))


def carved(storage: Any, parts: list[Part]) -> list[Any]:
    """The arrays, in a buffer of bytes."""
    from .types import view_as

    address = storage.address if isinstance(storage, arrays.Array) else storage.ctypes.data
    at, found = -address % ALIGN, []
    for part in parts:
        found.append(view_as(storage[at : at + part.bytes], part.type))
        at += -(-part.bytes // ALIGN) * ALIGN
    return found


def empty_bytes(count: int, place: Any, stream: Any) -> Any:
    """Fresh memory on a device; it goes back behind the work that is queued on it."""
    import numpy as np

    if place == "cpu":
        return np.empty(count, np.uint8)
    return arrays.empty(count, np.uint8, device=place, stream=stream)
