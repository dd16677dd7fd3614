"""Complex numbers: `complex64`, `complex128`, and Python's `complex`, which has two floats of 32 bits in device code.

On the host they are NumPy's and Python's own. In device code a complex number is its two parts; arrays of NumPy's
complex dtypes hold them.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

from .. import dtype as dt
from ..dtype import DType
from ..layout import Layout
from ..reference import threads

if TYPE_CHECKING:
    from ..capture.frame import Frame

__all__ = ["complex64", "complex128"]


class Complex:
    """What the types of complex numbers share; `part` is the format of a part."""

    part: ClassVar[DType]
    loose: ClassVar[bool] = False
    fields: ClassVar[tuple[str, ...]] = ("real", "imag")
    name: ClassVar[str]
    dtype: ClassVar[Any]
    __tw_tree__ = True

    @classmethod
    def __tw_layout__(cls) -> Layout:
        size = cls.part.itemsize
        return Layout(2 * size, 2 * size, ((0, cls.part), (size, cls.part)), (0, size))

    @classmethod
    def __tw_make__(cls, frame: Frame, args: list[Any], keywords: dict[str, Any]) -> Any:
        from ..capture.simt import complexes

        return complexes.make(frame, cls, args, keywords)

    def __tw_attribute__(self, frame: Frame, name: str) -> Any:
        from ..capture.simt import complexes

        return complexes.attribute(frame, self, name)

    def __copy__(self) -> Any:
        return of_parts(type(self), getattr(self, "real"), getattr(self, "imag"))  # noqa: B009


def of_parts(kind: Any, real: Any, imag: Any) -> Any:
    made = object.__new__(kind)
    object.__setattr__(made, "real", real)
    object.__setattr__(made, "imag", imag)
    return made


def _complex_class(name: str, part: DType, loose: bool = False) -> Any:
    def new(cls: Any, value: Any = 0, imag: Any = None) -> Any:
        """On the host NumPy's scalar, in the interpreter its number."""
        import numpy as np

        if threads.current() is not None:
            from ..reference.complexes import ComplexNumber

            return ComplexNumber.of(value, imag, name)
        whole = value if imag is None else value + 1j * imag
        return getattr(np, name)(whole)

    namespace = {"part": part, "loose": loose, "name": name, "__module__": "cuda.device", "__new__": new}
    fields = [("real", Any), ("imag", Any)]
    made = dataclasses.make_dataclass(name, fields, bases=(Complex,), namespace=namespace, frozen=True, init=False)
    made.__module__ = "cuda.device"
    made.dtype = made  # type: ignore[attr-defined]
    return made


complex64 = _complex_class("complex64", dt.float32)
complex128 = _complex_class("complex128", dt.float64)
PythonComplex = _complex_class("complex", dt.float32, loose=True)
KINDS = {kind.name: kind for kind in (complex64, complex128, PythonComplex)}


def argument(value: Any) -> Any:
    """A complex number of the host as an argument of a launch: its parts; None of anything else."""
    import numpy as np

    if type(value) is complex:
        return of_parts(PythonComplex, value.real, value.imag)
    if isinstance(value, np.complexfloating):
        kind = KINDS[value.dtype.name]
        return of_parts(kind, kind.part.numpy.type(value.real), kind.part.numpy.type(value.imag))
    return None
