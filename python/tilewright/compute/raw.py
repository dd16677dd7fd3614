"""RawOp: an operator in machine-near code of the user's, which the kernels are linked with.

It is `void name([void *state,] void *operand…, void *result)`, as CUDA C++ has it by `extern "C" __device__`. Operands
and result are in the thread's own memory for the call, and so is the state, a copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import link, nvjitlink
from ..capture.simt import made_arrays, views
from ..capture.simt import records as record_values
from ..capture.simt.views import Shape
from ..device import abi, records
from ..device.targets import target_named
from ..dtype import DType, int8, uint8, uint64
from ..errors import TileTypeError, TileUnsupportedFeatureError, TileValueError
from .operators import Operator
from .types import ItemType, converted, numpy_dtype, size_of, type_in_kernel

if TYPE_CHECKING:
    from ..capture.frame import Frame
    from ..capture.values import Array

_POINTER = abi.Value(abi.WORD, abi.WORD, ((0, abi.WORD, "int"),), True)
_ALIGN, _WORD = 16, 8
MOST_STATE = 4096


class RawOp:
    """An operator that exists as code for GPUs: `ptx`, text or bytes, or `ltoir`, which needs NVIDIA's nvJitLink.

    `extra_ltoirs`: what the code calls. `state`: bytes of which each call gets a copy, to an address that
    `state_alignment` divides.
    """

    def __init__(
        self,
        *,
        name: str,
        ltoir: bytes | None = None,
        ptx: str | bytes | None = None,
        state: bytes = b"",
        state_alignment: int = 1,
        extra_ltoirs: Any = None,
    ) -> None:
        if not (isinstance(name, str) and name.isascii() and name.replace("$", "_").isidentifier()):
            raise TileValueError(f"RawOp: the name is that of a function of C, found {name!r}")
        if (ltoir is None) == (ptx is None):
            raise TileTypeError("RawOp: the code is one of ltoir= and ptx=")
        if state_alignment not in (1, 2, 4, 8, 16):
            raise TileValueError(f"RawOp: state_alignment is 1, 2, 4, 8 or 16, found {state_alignment!r}")
        self.name, self.state, self.state_alignment = name, bytes(state), state_alignment
        if len(self.state) > MOST_STATE:
            raise TileValueError(f"RawOp: the state has {MOST_STATE} bytes at most, found {len(self.state)}")
        code = [(".ptx", ptx)] if ltoir is None else [(".ltoir", ltoir)]
        extra = [(".ltoir", part) for part in extra_ltoirs or ()]
        self.parts = tuple((suffix, _bytes(part)) for suffix, part in (*code, *extra))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RawOp) and (self.key, self.state) == (other.key, other.state)

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def key(self) -> Any:
        """What kernels depend on: not the bytes of the state."""
        return ("raw", self.name, *self.parts, len(self.state), self.state_alignment)

    def __repr__(self) -> str:
        return f"<RawOp {self.name}>"


def _bytes(code: Any) -> bytes:
    if isinstance(code, str):
        return code.encode()
    if isinstance(code, bytes | bytearray | memoryview):
        return bytes(code)
    raise TileTypeError(f"RawOp: code is bytes, or PTX as text, found {code!r}")


class RawOperator(Operator):
    """A RawOp as kernels call it. It gives what `giving` says; a predicate gives a byte."""

    def __init__(self, op: RawOp, what: str) -> None:
        self.op, self.what, self.commutes, self.key = op, what, False, op.key
        self.arrays: list[Any] = []
        if any(suffix == ".ltoir" for suffix, _ in op.parts) and nvjitlink.library() is None:
            raise TileUnsupportedFeatureError(
                f"{what} is LTO-IR, which nvJitLink of the CUDA toolkit, or of the package nvidia-nvjitlink, makes "
                "machine code; PTX (RawOp(ptx=…)) needs neither"
            )

    def states(self) -> tuple[Any, ...]:
        """The state, as words."""
        import numpy as np

        padded = self.op.state + bytes(-len(self.op.state) % _WORD)
        return tuple(np.frombuffer(padded, np.uint64))

    def typed(self, t: ItemType) -> Operator:
        return _Typed(self, t)

    def __tw_call__(self, frame: Frame, words: Any, *operands: Any) -> Any:
        return self.called(frame, words, operands, uint8)

    def called(self, frame: Frame, words: Any, operands: tuple[Any, ...], t: ItemType) -> Any:
        if target_named(frame.capture.target).number is None:
            raise TileTypeError(f"{self.what} is a RawOp, which is code for GPUs; found arrays on the CPU")
        result = _memory(frame, size_of(t))
        pointers = [_state(frame, words)] if words else []
        pointers += [_stored(frame, value) for value in operands] + [_address(frame, result)]
        signature = abi.nvptx([_POINTER] * len(pointers), None).text()
        attributes = {"callee": self.op.name, "tile.c_signature": frame.builder.attribute(signature)}
        frame.builder.op("tile.c_call", [p.ir for p in pointers], attributes, [])
        frame.capture.links.update({link.stored(code, suffix): None for suffix, code in self.op.parts})
        return record_values.item_at(frame, _as_record(result, t), 0)


class _Typed(Operator):
    """A RawOp that gives items of a type."""

    def __init__(self, operator: RawOperator, t: ItemType) -> None:
        self.operator, self.type, self.what = operator, t, operator.what
        self.commutes, self.key, self.arrays = False, operator.key, []

    def states(self) -> tuple[Any, ...]:
        return self.operator.states()

    def __tw_call__(self, frame: Frame, words: Any, *operands: Any) -> Any:
        return self.operator.called(frame, words, operands, self.type)


def _memory(frame: Frame, size: int) -> Array:
    """Bytes of the thread's own."""
    return made_arrays.local_array(frame, size, uint8, "C", _ALIGN)


def _address(frame: Frame, memory: Array) -> Array:
    """An array of no axes, of which C++ gets the address."""
    return views.made(frame, memory, Shape(0, [], []), int8)


def _as_record(memory: Array, t: ItemType) -> Any:
    form = records.form_of_dtype(numpy_dtype(t)) if not isinstance(t, DType) else records.form_of(t)
    return records.Records(memory, form, records.Fit.ALIGNED)


def _stored(frame: Frame, value: Any) -> Array:
    t = type_in_kernel(frame, value)
    memory = _memory(frame, size_of(t))
    record_values.store_at(frame, _as_record(memory, t), 0, converted(frame, value, t, "an operand"))
    return _address(frame, memory)


def _state(frame: Frame, words: tuple[Any, ...]) -> Array:
    memory = _memory(frame, _WORD * len(words))
    for i, word in enumerate(words):
        record_values.store_at(frame, _as_record(memory, uint64), _WORD * i, word)
    return _address(frame, memory)


__all__ = ["RawOp"]
