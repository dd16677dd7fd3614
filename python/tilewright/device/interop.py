"""The signatures of functions that C++ calls, or that are C++'s: what their hints say."""

from __future__ import annotations

import inspect
import types
from collections.abc import Sequence
from typing import Any

from ..errors import TileTypeError
from ..structure import annotations_of, constant_parameters
from . import abi
from .targets import HOST_NAME


def hints_of(function: types.FunctionType) -> tuple[list[Any], Any]:
    """The types of the parameters, and that of the result; None of what is nothing."""
    hints = annotations_of(function)
    parameters = [_hint(function, name, hints) for name in inspect.signature(function).parameters]
    result = hints.get("return")
    if len(parameters) > abi.MOST_PARAMETERS:
        raise TileTypeError(f"{function.__name__}: C++ passes {abi.MOST_PARAMETERS} parameters at most")
    return [_plain(t) for t in parameters], _plain(result)


def _plain(t: Any) -> Any:
    return None if t is type(None) else t


def _hint(function: types.FunctionType, name: str, hints: dict[str, Any]) -> Any:
    if name not in hints:
        raise TileTypeError(
            f"{function.__name__} is one function of C++, so its parameters have types; '{name}' has no hint, expected "
            f"one such as {name}: device.float32, or device.array(device.float32, 1)"
        )
    if name in constant_parameters(function):
        raise TileTypeError(f"{function.__name__}: the parameter '{name}' is a constant, which C++ cannot pass")
    return hints[name]


def signature_of(parameters: Sequence[Any], result: Any, target: str, is_kernel: bool = False) -> str:
    """TW_C_SIGNATURE of lowering/c_values.h, by the convention of a target."""
    values = [abi.value_of(t) for t in parameters]
    returned = None if result is None else abi.value_of(result)
    if target == HOST_NAME:
        return abi.of_host()(values, returned).text()
    return abi.nvptx(values, returned, is_kernel).text()
