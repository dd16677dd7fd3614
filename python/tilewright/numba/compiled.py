"""What was compiled of a kernel: its code as text, and what a thread and a block of it take."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from .. import _core, arrays, plans
from ..cli import lower
from ..compile import EMIT_LLVM, GPU_STAGES, capture_kernel
from ..device import records
from ..errors import TileTypeError, TileUnsupportedFeatureError
from ..kernel import compile_variant
from . import types
from .devices import current_number, get_current_device

if TYPE_CHECKING:
    from .kernels import DeviceFunction, Kernel

LEAST = (8, 0)  # the compute capability that code is made for where there is no GPU


def target_of(cc: Any = None) -> str:
    """`sm_90a` of (9, 0), or of (9, 0, "a"); by default of the current GPU."""
    major, minor, *_ = cc or (get_current_device().compute_capability if arrays._has_gpu() else LEAST)
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}"


def facts_of(signature: types.Signature) -> tuple[Any, ...]:
    """The facts of arguments of these types: none but those."""
    return tuple(map(_entry, signature.arguments))


def _entry(of: Any) -> tuple[Any, ...]:
    element = of.element if isinstance(of, types.Array) else of
    if not isinstance(element, types.Type) or element is types.void:
        raise TileTypeError(f"kernels have no arguments of {of}; pass numbers, structures, and arrays of them")
    if element.of is None:
        return _entry_of_parts(element, of.ndim if isinstance(of, types.Array) else None)
    if not isinstance(of, types.Array):
        return ("scalar", element.of.name, 1)
    return _any_array(element.of.name, of.ndim, element.of.itemsize)


def _any_array(dtype: str, rank: int, align: int, bytes_behind: bool = False) -> tuple[Any, ...]:
    strides = tuple((0, align if bytes_behind else 1) for _ in range(rank))
    whole = (*strides, (1, 1)) if bytes_behind else strides
    return ("array", dtype, len(whole), align, (1,) * len(whole), whole, True, False)


def _entry_of_parts(element: types.Type, rank: int | None) -> tuple[Any, ...]:
    """Of complex numbers and structures, which are the bytes of an array and what these hold."""
    form = records.form_of_dtype(element.dtype)
    if rank is None and element.record is None:
        part = ("scalar", element.underlying_float.name, 1)
        return ("record", form.kind, (part, part))
    widest = max(leaf.kind.itemsize for leaf in form.leaves())
    held = (_any_array("uint8", rank or 1, widest, True), ("const", form), ("const", records.Fit.ALIGNED))
    whole = ("record", records.Records, held)
    return whole if rank is not None else ("record", records.Element, (whole, ("scalar", "int64", 1), ("const", form)))


def _type_of_parts(kind: Any, facts: Any) -> Any:
    """The type of complex numbers and structures; None of other records."""
    name = getattr(kind, "name", None)
    if kind is records.Records:
        (_, _, rank, *_), (_, form), _ = facts
        element = types.NAMES.get(getattr(form.kind, "name", None) or "") or types.Type(_described(form), None)
        return types.Array(element, rank - 1)
    if kind is records.Element:
        return types.Type(_described(facts[2][1]), None)
    return types.NAMES.get({"complex": "complex128"}.get(name, name)) if isinstance(name, str) else None


def _described(form: Any) -> str:
    """`Record(x: float32, y: int64)`"""
    if not form.parts:
        return str(form.kind)
    names = [field.name for field in dataclasses.fields(form.kind)] if dataclasses.is_dataclass(form.kind) else None
    parts = [_described(part) for part in form.parts]
    fields = parts if names is None else [f"{name}: {part}" for name, part in zip(names, parts, strict=True)]
    return f"Record({', '.join(fields)})"


def _type_of(entry: tuple[Any, ...]) -> Any:
    """The type of an argument with these facts; of what has no type in Numba the facts themselves."""
    kind, *facts = entry
    if kind == "record":
        return _type_of_parts(*facts) or entry
    name = {"bool": "bool_"}.get(facts[0], facts[0]) if facts else None
    if kind in ("scalar", "number") and name in types.NAMES:
        return types.NAMES[name]
    return types.Array(types.NAMES[name], facts[1]) if kind == "array" and name in types.NAMES else entry


@dataclasses.dataclass(frozen=True)
class Resources:
    """What the machine code takes; nothing of it is known of code for the CPU."""

    registers: int = 0
    local_bytes: int = 0
    shared_bytes: int = 0
    max_threads: int = 1024
    const_bytes: int = 0


@dataclasses.dataclass(frozen=True)
class Overload:
    """A kernel for a target and the facts of its arguments."""

    kernel: Kernel
    target: str
    facts: tuple[Any, ...]

    @staticmethod
    def of_signature(kernel: Kernel, signature: types.Signature) -> Overload:
        return Overload(kernel, target_of(), facts_of(signature))

    @property
    def signature(self) -> types.Signature:
        own = self.facts[: len(self.facts) - len(self.kernel.held)]
        return types.Signature(types.void, tuple(map(_type_of, own)))

    def inspect_asm(self, cc: Any = None) -> str:
        """PTX, for another GPU by its compute capability."""
        if cc is not None:
            return dataclasses.replace(self, target=target_of(cc)).inspect_asm()
        return lower(self.kernel, self.facts, self.target, "ptx").decode()

    def inspect_llvm(self) -> str:
        module = self.kernel.capture(self.target, self.facts)
        plans.lower(module, GPU_STAGES, module.lower)
        return str(module.emit(EMIT_LLVM).decode())

    def inspect_sass(self) -> str:
        return lower(self.kernel, self.facts, self.target, "sass").decode()

    def resources(self) -> Resources:
        if not arrays._has_gpu():
            return Resources()
        return Resources(**self._variant().usage(current_number()))

    def _variant(self) -> Any:
        variant = compile_variant(self.kernel, self.target, self.facts)
        if isinstance(variant, Exception):
            raise variant
        return variant

    @property
    def cooperative(self) -> bool:
        """Whether it asks for the threads of the grid, with which Numba starts all of its blocks at a time."""
        return capture_kernel(self.kernel, self.target, self.facts).of_grid

    def max_cooperative_grid_blocks(self, blockdim: Any, dynsmemsize: int = 0) -> int:
        """The largest grid of a kernel whose blocks wait for each other: as many as run at a time."""
        threads = math.prod(blockdim) if isinstance(blockdim, tuple | list) else blockdim
        if not arrays._has_gpu():
            return _core.MOST_THREADS_IN_GRID // threads
        return self._variant().resident(current_number(), threads, dynsmemsize)

    regs_per_thread = property(lambda self: self.resources().registers)
    local_mem_per_thread = property(lambda self: self.resources().local_bytes)
    shared_mem_per_block = property(lambda self: self.resources().shared_bytes)
    max_threads_per_block = property(lambda self: self.resources().max_threads)
    const_mem_size = property(lambda self: self.resources().const_bytes)


def overloads_of(kernel: Kernel) -> dict[tuple[Any, ...], Overload]:
    """Of the launches so far; of a kernel with a signature that one. What ran on the CPU shows code for a GPU, too."""
    if kernel.signature is not None:
        return {kernel.signature.arguments: Overload.of_signature(kernel, kernel.signature)}
    kernels = (kernel, *kernel.twins.values())
    rows = [(of, target, facts) for of in kernels for target, facts, _ in of.variants()]
    made = [Overload(of, t if t.startswith("sm_") else target_of(), facts) for of, t, facts in rows]
    return {overload.signature.arguments: overload for overload in made}


def device_code(function: DeviceFunction, signature: Any, output: str) -> str:
    from .compiling import compile

    wanted = signature if signature is not None else function.signature
    if wanted is None:
        raise TileUnsupportedFeatureError(
            f"{function.__name__} has no code of its own without a signature: it becomes part of kernels"
        )
    return str(compile(function, wanted, output=output)[0])
