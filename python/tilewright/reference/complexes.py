"""Complex numbers under `kernel.interpret`: a value of NumPy, with the promotion of cuda.device."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .. import dtype as dt
from ..errors import TileTypeError
from .numbers import Number, _name

_FORMATS = {"complex64": np.complex64, "complex128": np.complex128, "complex": np.complex64}


class ComplexNumber:
    """A complex number of the format `name`."""

    __slots__ = ("name", "value")
    shape, ndim, size = (), 0, 1

    def __init__(self, value: Any, name: str) -> None:
        self.value, self.name = _FORMATS[name](value), name

    @classmethod
    def of(cls, value: Any, imag: Any, name: str) -> ComplexNumber:
        return cls(_plain(value) if imag is None else complex(float(value), float(imag)), name)

    @property
    def dtype(self) -> Any:
        from ..device.complexes import KINDS  # which needs this package

        return KINDS[self.name]

    @property
    def real(self) -> Any:
        return self._part(self.value.real)

    @property
    def imag(self) -> Any:
        return self._part(self.value.imag)

    def _part(self, value: Any) -> Any:
        if self.name == "complex":
            return float(value)
        return Number(value, dt.float64 if self.name == "complex128" else dt.float32)

    def conjugate(self) -> ComplexNumber:
        return ComplexNumber(self.value.conjugate(), self.name)

    def __abs__(self) -> Any:
        return self._part(abs(np.complex128(self.value)))

    def __neg__(self) -> ComplexNumber:
        return ComplexNumber(-self.value, self.name)

    def __eq__(self, other: Any) -> Any:
        return Number(self.value == _plain(other), dt.bool_)

    def __ne__(self, other: Any) -> Any:
        return Number(self.value != _plain(other), dt.bool_)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{self.name}({self.value})"


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, ComplexNumber | Number) else value


def _promoted(x: Any, y: Any) -> str:
    names = [v.name if isinstance(v, ComplexNumber) else _name(v) for v in (x, y)]
    found = _core.device_promotions().get(tuple(names))
    if found is None:
        raise TileTypeError(f"no implicit promotion between {names[0]} and {names[1]}; convert one operand")
    return str(found)


def _operator(name: str, swapped: bool) -> Callable[[ComplexNumber, Any], Any]:
    def run(self: ComplexNumber, other: Any) -> Any:
        x, y = (other, self) if swapped else (self, other)
        with np.errstate(all="ignore"):
            return ComplexNumber(getattr(operator, name)(*(np.complex128(_plain(v)) for v in (x, y))), _promoted(x, y))

    return run


for _python in ("add", "sub", "mul", "truediv", "pow"):
    setattr(ComplexNumber, f"__{_python}__", _operator(_python, False))
    setattr(ComplexNumber, f"__r{_python}__", _operator(_python, True))
