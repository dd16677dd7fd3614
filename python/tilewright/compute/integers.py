"""Integers of kernels in a type of their own, where Numba's rules would compute in 64 bits."""

from __future__ import annotations

from typing import Any

from ..capture.simt import intrinsics
from ..dtype import DType, int32
from ..errors import TileError


class _Operation:
    """In a kernel: an operation on two integers, which are converted to a type."""

    def __init__(self, name: str, dtype: DType, compares: bool = False) -> None:
        self.name, self.dtype, self.compares = name, dtype, compares

    def __call__(self, a: Any, b: Any) -> Any:
        raise TileError("an operation of kernels was called on the host")

    def __tw_call__(self, frame: Any, a: Any, b: Any) -> Any:
        emit = frame.emit
        x, y = (emit.constant(v, self.dtype) if type(v) is int else emit.cast(v, self.dtype) for v in (a, b))
        return emit.compare(self.name, x, y) if self.compares else emit.binary(self.name, x, y)


class In:
    """The operations in a type."""

    def __init__(self, dtype: DType) -> None:
        self.add, self.sub, self.mul = (_Operation(name, dtype) for name in ("add", "sub", "mul"))
        self.and_, self.or_, self.xor = (_Operation(f"bitwise_{name}", dtype) for name in ("and", "or", "xor"))
        self.shl, self.shr = (_Operation(f"bitwise_{name}shift", dtype) for name in ("l", "r"))
        self.min, self.max = (_Operation(f"{name}imum", dtype) for name in ("min", "max"))
        self.equal, self.differ, self.less = (_Operation(n, dtype, True) for n in ("equal", "not_equal", "less"))


class _Count:
    """In a kernel: how many bits of an integer are set."""

    def __call__(self, x: Any) -> Any:
        raise TileError("an operation of kernels was called on the host")

    def __tw_call__(self, frame: Any, x: Any) -> Any:
        return intrinsics.of_bits(frame, "popc", x)


class _Bits:
    """In a kernel: the bits of a float32 as an int32."""

    def __call__(self, x: Any) -> Any:
        raise TileError("an operation of kernels was called on the host")

    def __tw_call__(self, frame: Any, x: Any) -> Any:
        return frame.emit.bitcast(x, int32)


popc, bits_of_float = _Count(), _Bits()
i32 = In(int32)
add32 = i32.add
