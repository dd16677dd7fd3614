"""Integers of kernels in 32 bits, where Numba's rules would compute in 64."""

from __future__ import annotations

from typing import Any

from ..dtype import DType, int32
from ..errors import TileError


class _In:
    """In a kernel: an operation on two integers, which are converted to a type, as is its result."""

    def __init__(self, operation: str, dtype: DType) -> None:
        self.operation, self.dtype = operation, dtype

    def __call__(self, a: Any, b: Any) -> Any:
        raise TileError("an operation of kernels was called on the host")

    def __tw_call__(self, frame: Any, a: Any, b: Any) -> Any:
        emit = frame.emit
        x, y = (emit.cast(emit.tile(v, "an integer"), self.dtype) for v in (a, b))
        return emit.binary(self.operation, x, y)


add32, sub32, mul32 = _In("add", int32), _In("sub", int32), _In("mul", int32)
and32, shl32, shr32 = _In("bitwise_and", int32), _In("bitwise_lshift", int32), _In("bitwise_rshift", int32)
