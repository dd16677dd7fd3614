"""Kernels as operations of JAX: `cutile_call` starts one with JAX arrays, in a function under `jax.jit`, too.

    from tilewright.jax import OutputPlaceholder, cutile_call

    y = cutile_call((10,), scale, (x, OutputPlaceholder(x.shape, x.dtype), 3))

Arrays of JAX do not change, so what a kernel writes is new: an array for each `OutputPlaceholder`, whose elements are
zero where the kernel stores nothing, and a changed copy for each `InputOutput`. XLA calls the kernel with arrays of
the host, wherever the program runs: on a GPU that takes two copies over the bus, and `ct.launch` with arrays of JAX,
outside of `jax.jit`, takes none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from . import structure
from .kernel import kernel as kernel_type
from .kernel import launch

__all__ = ["InputOutput", "OutputPlaceholder", "cutile_call"]


@dataclasses.dataclass
class OutputPlaceholder:
    """In the arguments of `cutile_call`: an array to be made, which the call returns."""

    shape: tuple[int, ...]
    dtype: Any


@dataclasses.dataclass
class InputOutput:
    """In the arguments of `cutile_call`: an array of which the kernel changes a copy, which the call returns."""

    array: Any


@dataclasses.dataclass(frozen=True)
class _Input:
    """Stands for an array in the arguments of a call that XLA makes."""

    number: int
    changes: bool


def cutile_call(grid: tuple[int, ...], kernel: Any, args: tuple[Any, ...]) -> Any:
    """Start a kernel with arrays of JAX, and give back what it writes: an array, or a tuple of them in their order.

    `args` holds for each parameter an array of JAX, which is only read; an `OutputPlaceholder` or an `InputOutput`; a
    number, a constant of the function under `jax.jit`; or a tuple of such.
    """
    jax = _jax()
    if not isinstance(kernel, kernel_type):
        raise TypeError(f"cutile_call needs a @ct.kernel, found {kernel!r}")
    _check_arguments(kernel, args)
    inputs: list[Any] = []
    plan = tuple(_planned(arg, inputs, jax.Array, f"argument '{kernel.parameters[i]}'") for i, arg in enumerate(args))
    outputs = [_shape_of(jax, leaf, inputs) for leaf in _leaves(plan) if _is_output(leaf)]
    if not outputs:
        raise TypeError(
            f"cutile_call: no argument of {kernel.name} is an OutputPlaceholder or an InputOutput to return"
        )

    def run(*arrays: Any) -> tuple[np.ndarray, ...]:
        made: list[np.ndarray] = []
        values = tuple(_given(part, [np.asarray(a) for a in arrays], made) for part in plan)
        launch(None, grid, kernel, values)
        return tuple(made)

    found = jax.pure_callback(run, tuple(outputs), *inputs, vmap_method="sequential")
    return found[0] if len(found) == 1 else tuple(found)


def _jax() -> Any:
    try:
        import jax
    except ImportError:
        raise ImportError("cutile_call needs JAX, which is not installed: pip install jax") from None
    return jax


def _check_arguments(kernel: Any, args: Any) -> None:
    if not isinstance(args, tuple) or len(args) != len(kernel.parameters):
        found = len(args) if isinstance(args, tuple) else type(args).__name__
        raise TypeError(f"{kernel.name} expects a tuple of {len(kernel.parameters)} arguments, got {found}")
    for name, marks in structure.parameter_marks(kernel.function).items():
        value = args[kernel.parameters.index(name)] if name in kernel.parameters else ()
        wanted = len(marks.parts) if marks.parts is not None else None
        if wanted is not None and (not isinstance(value, tuple) or len(value) != wanted):
            found = len(value) if isinstance(value, tuple) else type(value).__name__
            raise TypeError(f"{kernel.name}: argument '{name}' expects a tuple of length {wanted}, got {found}")


def _planned(value: Any, inputs: list[Any], array: type, what: str) -> Any:
    """An argument with numbers in the place of its arrays, which are added to `inputs`."""
    if isinstance(value, tuple):
        return tuple(_planned(part, inputs, array, f"{what}[{i}]") for i, part in enumerate(value))
    if isinstance(value, OutputPlaceholder | bool | int | float):
        return value
    changes = isinstance(value, InputOutput)
    found = value.array if isinstance(value, InputOutput) else value
    if not isinstance(found, array):
        raise TypeError(f"{what}: expected an array of JAX, an OutputPlaceholder, an InputOutput or a number")
    inputs.append(found)
    return _Input(len(inputs) - 1, changes)


def _leaves(plan: Any) -> Iterator[Any]:
    if isinstance(plan, tuple):
        for part in plan:
            yield from _leaves(part)
    else:
        yield plan


def _is_output(leaf: Any) -> bool:
    return isinstance(leaf, OutputPlaceholder) or (isinstance(leaf, _Input) and leaf.changes)


def _shape_of(jax: Any, leaf: Any, inputs: Sequence[Any]) -> Any:
    like = inputs[leaf.number] if isinstance(leaf, _Input) else leaf
    return jax.ShapeDtypeStruct(tuple(like.shape), like.dtype)


def _given(leaf: Any, arrays: Sequence[np.ndarray], made: list[np.ndarray]) -> Any:
    """What the kernel is given for an argument; what it writes is added to `made`."""
    if isinstance(leaf, tuple):
        return tuple(_given(part, arrays, made) for part in leaf)
    if isinstance(leaf, _Input) and not leaf.changes:
        return arrays[leaf.number]
    if not _is_output(leaf):
        return leaf
    made.append(arrays[leaf.number].copy() if isinstance(leaf, _Input) else np.zeros(leaf.shape, leaf.dtype))
    return made[-1]
