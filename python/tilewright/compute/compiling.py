"""compile: a Python function as device code that C++ calls, by a signature."""

from __future__ import annotations

import dataclasses
import operator
import types as python_types
from typing import TYPE_CHECKING, Any

from .. import _core, nvvm, plans
from .. import compile as compiler
from ..capture.c_entry import CEntry, argument_of, capture_for_c
from ..capture.inlining import returned_value
from ..capture.kernel import ArrayArgument, Capturing, ConstantArgument, StructureArgument
from ..capture.simt import records as record_values
from ..capture.simt import views
from ..device import abi, records
from ..device.targets import target_named
from ..dtype import uint8
from ..errors import TileTypeError, TileUnsupportedFeatureError, TileValueError
from ..numba import types as numba_types
from .launching import COMPUTE
from .types import ItemType, converted, item_type, size_of, type_in_kernel

if TYPE_CHECKING:
    from ..capture.frame import Frame

OUTPUTS = ("ptx", "llvm", "ltoir")
_EMIT_LLVM = 0
_FIRST_LTO = 100  # whose library reads the LLVM IR of these years


def compile(pyfunc: Any, sig: Any, *, output: str = "ptx", cc: Any = None, name: str | None = None) -> tuple[Any, Any]:
    """(code, type of the result) of a function with a signature, such as `int32(int32)`, for programs of C++.

    output: "ptx" has a visible function with the name and the parameters that C++ gives it; "llvm" is LLVM IR as text;
    "ltoir" is NVIDIA's code for linkers, as bytes, from compute capability 10.0 on, where libNVVM is.
    cc: the compute capability, as (9, 0); that of the first GPU by default, (8, 0) where there is none.
    name: the symbol, if it is not the function's own name.
    """
    if output not in OUTPUTS:
        raise TileValueError(f"compile: the output is one of {', '.join(map(repr, OUTPUTS))}, found {output!r}")
    function, target = function_of(pyfunc), target_of(cc)
    if output == "ltoir":
        _check_lto(target)
    result, entry = entry_of(function, sig, target)
    module = capture_for_c(function, entry, target, COMPUTE, converted, name)
    plans.lower(module, compiler.GPU_STAGES, module.lower)
    text = module.emit(compiler.EMIT_ASSEMBLY if output == "ptx" else _EMIT_LLVM).decode()
    return (nvvm.lto_of(text, function.__name__, _number(target)) if output == "ltoir" else text), result


def _number(target: str) -> int:
    """100 of "sm_100a"."""
    number = target_named(target).number
    assert number is not None
    return number


def _check_lto(target: str) -> None:
    if _number(target) < _FIRST_LTO:
        raise TileUnsupportedFeatureError(
            f"compile: output='ltoir' is for GPUs of compute capability 10.0 and newer, found {target}: for those "
            "before, NVIDIA's library reads LLVM IR of 2018; take 'ptx', which the driver and nvJitLink link, or 'llvm'"
        )
    if nvvm.library() is None:
        raise TileUnsupportedFeatureError(
            "compile: output='ltoir' is made by libNVVM, which is not found: it is in the CUDA toolkit, and in the "
            "package nvidia-nvvm; take 'ptx', which the driver and nvJitLink link, or 'llvm'"
        )


def target_of(cc: Any) -> str:
    """`sm_90a` of (9, 0), 90, "90", "sm_90a", or of the first GPU."""
    if cc is None:
        from ..arrays import _has_gpu

        cc = _core.device_info(0)["capability"] if _has_gpu() else (8, 0)
    if isinstance(cc, str):
        cc = int(cc) if cc.isdigit() else cc
    if isinstance(cc, str) and cc.startswith("sm_"):
        return cc
    try:
        major, minor = divmod(operator.index(cc), 10) if not isinstance(cc, tuple) else map(operator.index, cc)
    except (TypeError, ValueError):
        raise TileTypeError(
            f"a compute capability is a number such as 90, or a pair such as (9, 0), found {cc!r}"
        ) from None
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}"


def function_of(pyfunc: Any) -> python_types.FunctionType:
    function = getattr(pyfunc, "function", getattr(pyfunc, "py_func", pyfunc))
    if isinstance(function, python_types.FunctionType):
        return function
    raise TileTypeError(f"compile needs a function made by 'def' or 'lambda', found {pyfunc!r}")


def entry_of(function: Any, sig: Any, target: str) -> tuple[Any, CEntry]:
    """The type of the result, as the signature has it or else as found, and how C++ calls the function."""
    wanted, given = _parts(sig)
    parameters = [PointerType(item_type(p.element)) if _is_pointer(p) else item_type(p) for p in given]
    if len(parameters) != function.__code__.co_argcount:
        raise TileTypeError(
            f"compile: {function.__name__} takes {function.__code__.co_argcount} values, its signature has "
            f"{len(parameters)}"
        )
    found: Any = _found_type(function, parameters, target) if wanted is None else None
    if wanted is not None and wanted is not numba_types.void:
        found = item_type(wanted)
    values = [p.value if isinstance(p, PointerType) else abi.value_of(p) for p in parameters]
    signature = abi.nvptx(values, None if found is None else abi.value_of(found))
    return (found if wanted is None else wanted), CEntry(parameters, found, signature.text(), False)


def _parts(sig: Any) -> tuple[Any, tuple[Any, ...]]:
    """(type of the result or None where it is to be found, types of the parameters)."""
    if isinstance(sig, tuple):
        return None, sig
    found = numba_types.parse(sig)
    return found.result, found.arguments


def _is_pointer(t: Any) -> bool:
    return isinstance(t, numba_types.Pointer)


def _found_type(function: Any, parameters: list[Any], target: str) -> ItemType | None:
    capturing = Capturing(function, list(map(argument_of, parameters)), target, COMPUTE, False)
    frame = capturing.body()
    value = returned_value(frame, function.__name__)
    return None if value is None else type_in_kernel(frame, value)


# --- pointers ---------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class PointerType:
    """The type of a parameter that is the address of items."""

    element: ItemType
    value = abi.Value(abi.WORD, abi.WORD, ((0, abi.WORD, "int"),), True)

    def __tw_argument__(self) -> StructureArgument:
        form = records.form_of(self.element)
        parts = (
            ArrayArgument(uint8, 0, anywhere=True),
            ConstantArgument(form),
            ConstantArgument(size_of(self.element)),
        )
        return StructureArgument("record", Pointer, parts)


@dataclasses.dataclass(frozen=True)
class Pointer:
    """What a function has for it: `p[i]` is an item."""

    bytes: Any
    form: Any
    size: Any
    fit = records.Fit.ALIGNED

    def _offset(self, frame: Frame, index: Any) -> Any:
        return views.Integers(frame).mul(index, self.size)

    def __tw_item__(self, frame: Frame, index: Any) -> Any:
        return record_values.item_at(frame, self, self._offset(frame, index))

    def __tw_with_item__(self, frame: Frame, index: Any, value: Any) -> Any:
        kind = self.form.kind
        record_values.store_at(frame, self, self._offset(frame, index), converted(frame, value, kind, "an item"))
        return self


__all__ = ["compile"]
