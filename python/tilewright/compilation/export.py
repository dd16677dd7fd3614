"""Export: kernels as a file of PTX or a cubin.

What an exported kernel takes is what its program says (signature.py): whoever launches it knows nothing of ours. So it
has no tensor maps, and its grid is the program's; the hint `exported` tells the passes.
"""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from .. import _core, compile, plans
from ..dtype import int32, int64
from ..errors import TileTypeError, TileUnsupportedFeatureError, TileValueError
from ..structure import UNMARKED, Marks, parameter_marks
from ..toolkit import find_tool
from .signature import (
    ArrayConstraint,
    ConstantConstraint,
    KernelSignature,
    ParameterConstraint,
    ScalarConstraint,
    TupleConstraint,
)

MOST_DIVISOR = 16  # that facts of a launch name
_ALONE = {"num_ctas": 1, "split_k": 1, "slice_tiles": 1, "coarsen_tiles": 1, "dependent_launch": 0}
# What a launch must know of an exported kernel; of any other fact the launch would have to be ours.
_KNOWN = {"num_warps", "num_threads", "shared_bytes", "no_alias"}


@dataclasses.dataclass(frozen=True)
class ExportedKernel:
    """What a launch of an exported kernel must know beside its arguments."""

    symbol: str
    signature: KernelSignature
    threads: int  # of a block, along its axis 0
    shared_bytes: int  # of dynamic shared memory; from 48 KiB on a kernel has to be told so before (cuFuncSetAttribute)


def export_kernel(
    kernel: Any,
    signatures: Sequence[KernelSignature],
    output_file: IO[bytes] | str | bytes | os.PathLike[str],
    *,
    gpu_code: str | None = None,
    output_format: str,
    bytecode_version: str | None = None,
) -> tuple[ExportedKernel, ...]:
    """Compile a kernel for each signature, and write them all to a file, by its name or open for bytes.

    output_format: "ptx", or "cubin", for which ptxas or a GPU of the target must be there.
    gpu_code: the target, such as "sm_90a".
    The result says of each kernel how it is launched: the program's grid, so many threads and bytes of shared memory.
    """
    if output_format not in ("ptx", "cubin"):
        kind = TileUnsupportedFeatureError if output_format == "tileir_bytecode" else TileValueError
        raise kind(f"output_format is 'ptx' or 'cubin', found {output_format!r}")
    if bytecode_version is not None:
        raise TileUnsupportedFeatureError("bytecode_version is for Tile IR of NVIDIA's, which is not made here")
    if gpu_code is None:
        raise TileValueError("gpu_code is the target, such as 'sm_90a'; none was given")
    if not gpu_code.startswith("sm_"):
        raise TileValueError(f"gpu_code is a GPU such as 'sm_90a', found {gpu_code!r}")
    if not signatures:
        raise TileValueError("export_kernel needs one signature or more, found none")
    made = [_compile(kernel, signature, gpu_code) for signature in signatures]
    _check_symbols([entry.symbol for entry, _ in made])
    ptx = join([text for _, text in made])
    write(output_file, ptx.encode() if output_format == "ptx" else assemble(ptx, gpu_code))
    return tuple(entry for entry, _ in made)


def _check_symbols(symbols: Sequence[str]) -> None:
    for symbol in symbols:
        if re.fullmatch(r"[a-zA-Z][\w$]*|[_$%][\w$]+", symbol, re.ASCII) is None:
            raise TileValueError(f"{symbol!r} is no symbol of PTX: it has letters, digits, '_' and '$'")
        if symbols.count(symbol) > 1:
            raise TileValueError(f"two signatures have the symbol {symbol}; each needs one of its own")


def write(file: IO[bytes] | str | bytes | os.PathLike[str], content: bytes) -> None:
    if isinstance(file, str | bytes | os.PathLike):
        Path(os.fsdecode(file)).write_bytes(content)
    else:
        file.write(content)


# --- one kernel -------------------------------------------------------------------------------------------------------


def _compile(kernel: Any, signature: KernelSignature, target: str) -> tuple[ExportedKernel, str]:
    if len(signature.parameters) != len(kernel.parameters):
        raise TileTypeError(
            f"kernel {kernel.name} has {len(kernel.parameters)} parameters, the signature {len(signature.parameters)}"
        )
    if signature.symbol is None:
        signature = signature.with_mangled_symbol(kernel.name)
    symbol = signature.symbol or ""
    marks = parameter_marks(kernel.function)
    rows = zip(kernel.parameters, signature.parameters, strict=True)
    key = tuple(_fact(kernel, name, p, marks.get(name, UNMARKED)) for name, p in rows)
    arrays = [p for p in _leaves(signature.parameters) if isinstance(p, ArrayConstraint)]
    overlapping = any(p.alias_groups or p.may_alias_internally for p in arrays)
    told = _ALONE | {"exported": _index_bits(arrays)}
    module = compile.capture_kernel(kernel, target, key, overlapping, symbol, **told).module
    plans.lower(module, compile.GPU_STAGES, module.lower)
    facts, plain = _core.launch_facts(compile.record_of(module)), _core.launch_facts(_core.launch_record())
    if beyond := sorted(name for name, value in facts.items() if value != plain[name] and name not in _KNOWN):
        raise TileUnsupportedFeatureError(f"kernel {kernel.name} cannot be exported: its launch has {beyond[0]}")
    entry = ExportedKernel(symbol, signature, facts["num_threads"], facts["shared_bytes"])
    return entry, module.emit(compile.EMIT_ASSEMBLY).decode()


def _index_bits(arrays: Sequence[ArrayConstraint]) -> int:
    """Of extents and strides among the parameters."""
    kinds = {p.index_dtype for p in arrays} or {int32}
    if len(kinds) > 1 or not kinds <= {int32, int64}:
        found = ", ".join(sorted(map(str, kinds)))
        raise TileUnsupportedFeatureError(
            f"the arrays of a signature have one index_dtype, int32 or int64; found {found}"
        )
    return kinds.pop().bits


def _leaves(parameters: Sequence[ParameterConstraint]) -> Iterator[ParameterConstraint]:
    """The parameters, and in the place of a tuple what is in it."""
    for p in parameters:
        yield from _leaves(p.items) if isinstance(p, TupleConstraint) else (p,)


def _is_constant(p: ParameterConstraint) -> bool:
    return isinstance(p, ConstantConstraint) or (isinstance(p, TupleConstraint) and all(map(_is_constant, p.items)))


def _value(p: Any) -> Any:
    return tuple(map(_value, p.items)) if isinstance(p, TupleConstraint) else p.value


def _fact(kernel: Any, name: str, p: ParameterConstraint, marks: Marks) -> tuple[Any, ...]:
    """A constraint as an entry of the key of a specialization."""
    if isinstance(p, TupleConstraint) and not marks.constant:
        parts = enumerate(p.items)
        return "tuple", tuple, tuple(_fact(kernel, f"{name}[{i}]", part, marks.of(i)) for i, part in parts)
    if marks.constant != _is_constant(p):
        wanted = "a constant" if marks.constant else "no ct.Constant"
        raise TileTypeError(f"kernel {kernel.name}: parameter {name} is {wanted}, the signature has {p}")
    if marks.constant:
        return "const", _value(p)
    if isinstance(p, ScalarConstraint):
        return "scalar", p.dtype.name, 1
    if not isinstance(p, ArrayConstraint):
        raise TileUnsupportedFeatureError(
            f"kernel {kernel.name}: parameter {name}: a {type(p).__name__} is not exported"
        )
    annotated = marks.index_dtype or int32
    if p.index_dtype is not annotated and p.index_dtype is not int64:
        raise TileTypeError(f"kernel {kernel.name}: parameter {name} has indices of {annotated}, the signature {p}")
    strides = zip(p.stride_constant, p.stride_divisible_by, strict=True)
    extents = zip(p.shape_constant, p.shape_divisible_by, strict=True)
    return (
        "array",
        p.dtype.name,
        p.ndim,
        _power_of_two(p.base_addr_divisible_by),
        tuple(_power_of_two(n if constant is None else constant) for constant, n in extents),
        tuple((1, 1) if constant == 1 else (0, _power_of_two(constant or n)) for constant, n in strides),
        True,
        False,  # no tensor maps
        _known(kernel, name, marks.extents, p.shape_constant, "extent"),
        _known(kernel, name, marks.strides, p.stride_constant, "stride"),
    )


def _known(kernel: Any, name: str, axes: tuple[int, ...], constants: Sequence[int | None], what: str) -> dict[int, int]:
    """The extents or strides that an annotation makes constants, which the signature must know."""
    found = {}
    for axis in axes:
        value = constants[axis] if axis < len(constants) else None
        if value is None:
            raise TileTypeError(
                f"kernel {kernel.name}: parameter {name} has a constant {what} along axis {axis}, the signature none"
            )
        found[axis] = value
    return found


def _power_of_two(n: int) -> int:
    """The largest that divides it."""
    return MOST_DIVISOR if n == 0 else min(MOST_DIVISOR, n & -n)


# --- all of them ------------------------------------------------------------------------------------------------------

_HEADER = re.compile(r"^(?://.*|\.version .*|\.target .*|\.address_size .*|)\n", re.MULTILINE)
_SHARED = re.compile(r"^\.extern \.shared .*;\n", re.MULTILINE)
_EXTERN = re.compile(r"^\.extern \.func [^;]*;\n", re.MULTILINE)
_GLOBAL = re.compile(r"^\.global .* (\w+)\[", re.MULTILINE)


def join(modules: Sequence[str]) -> str:
    """Modules of PTX as one: what they declare alike stands once, and each has variables of its own."""
    joined, declared = modules[0], set(_SHARED.findall(modules[0]) + _EXTERN.findall(modules[0]))
    for number, text in enumerate(modules[1:], 1):
        for name in _GLOBAL.findall(text):
            text = re.sub(rf"\b{name}\b", f"{name}_of_{number}", text)
        text = _HEADER.sub("", text)
        for declaration in _SHARED.findall(text) + _EXTERN.findall(text):
            if declaration in declared:
                text = text.replace(declaration, "")
            declared.add(declaration)
        joined += "\n" + text
    return joined


def assemble(ptx: str, target: str) -> bytes:
    """A cubin of PTX: by ptxas, or where that is not found by the driver, on a GPU of the target."""
    ptxas = find_tool("ptxas")
    if ptxas is None:
        code = compile.assemble(ptx.encode(), target)
        if code == ptx.encode():
            raise TileUnsupportedFeatureError(
                f"a cubin for {target} needs ptxas of the CUDA toolkit, or such a GPU; 'ptx' needs neither"
            )
        return code
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(ptx)
        done = subprocess.run([ptxas, f"-arch={target}", source, "-o", cubin], capture_output=True, text=True)
        if done.returncode:
            raise compile.AssemblerError(f"ptxas refused the PTX for {target}: {done.stderr.strip()}")
        return cubin.read_bytes()
