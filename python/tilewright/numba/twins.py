"""What a kernel asks of its launches, beside its arguments: the capture finds it, and the launch takes a twin with it.

variables  from outside of the kernel, which hold arrays of the device: the launch adds these to the arguments, as they
           are then
rows       arguments whose elements lie side by side in row-major order, for `reshape`: the launch looks whether they do
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core, structure
from ..capture.values import is_of_device
from ..errors import HeldArrayError, RowsError, TileTypeError

if TYPE_CHECKING:
    from .kernels import Kernel

Variable = tuple[Any, str]  # a cell, or the variables of a module; and the name


class Asked(NamedTuple):
    variables: tuple[Variable, ...] = ()
    rows: frozenset[int] = frozenset()  # leaves of the arguments

    def key(self) -> Any:
        return tuple((id(holder), name) for holder, name in self.variables), self.rows

    def now(self) -> Asked:
        """Without the variables that hold something else by now."""
        return self._replace(variables=tuple(v for v in self.variables if is_of_device(_value(*v))))


def launched(kernel: Kernel, args: tuple[Any, ...], start: Callable[[Kernel, tuple[Any, ...]], None]) -> None:
    """`start` launches a kernel with arguments: this one, or its twin for what it asks."""
    asked = kernel.asked.now()
    while True:
        try:
            return start(*_twin(kernel, asked, args))
        except HeldArrayError as found:
            asked = asked._replace(variables=(*asked.variables, (found.holder, found.variable)))
        except RowsError as found:
            asked = asked._replace(rows=asked.rows | {found.position})
        kernel.asked = asked


def _twin(kernel: Kernel, asked: Asked, args: tuple[Any, ...]) -> tuple[Kernel, tuple[Any, ...]]:
    if asked == Asked():
        return kernel, args
    given = (*_complete(kernel, args), *(_value(*variable) for variable in asked.variables))
    return kernel.twin(asked), given


def check_rows(kernel: Kernel, given: tuple[Any, ...]) -> None:
    """Whether what a launch passes lies in rows where the kernel asks for that."""
    if kernel.rows and len(given) == len(kernel.parameters):
        leaves = structure.leaves(kernel.parameters, given, kernel.forms)
        for position in sorted(kernel.rows):
            _check_rows(kernel.name, leaves[position])


def _value(holder: Any, name: str) -> Any:
    return holder.cell_contents if isinstance(holder, types.CellType) else holder.get(name)


def _complete(kernel: Kernel, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """With the defaults of the last parameters, behind which the arrays from outside stand."""
    defaults = structure.defaults_of(kernel.function)
    missing = len(kernel.parameters) - len(args)
    return (*args, *defaults[len(defaults) - missing :]) if 0 < missing <= len(defaults) else args


def _check_rows(kernel: str, leaf: structure.Leaf) -> None:
    array = _core.describe_array(leaf.value)
    step, extents = 1, array["shape"]
    for extent, stride in zip(reversed(extents), reversed(array["strides"]), strict=True):
        if 0 not in extents and extent != 1 and stride != step:
            raise TileTypeError(
                f"kernel {kernel}, argument '{leaf.name}': the kernel reshapes it, and its elements do not lie side by "
                f"side in row-major order; its shape is {tuple(extents)}, its strides in elements "
                f"{tuple(array['strides'])}; pass a contiguous copy, as of numpy.ascontiguousarray"
            )
        step *= extent
