"""Names for the hints of programs that pass arrays, streams and operators on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from .iterators import Iterator
from .operators import OpKind
from .raw import RawOp


class DeviceArrayLike(Protocol):
    """An array on a GPU, of any library."""

    __cuda_array_interface__: dict[str, Any]


class StreamLike(Protocol):
    """A stream of any library."""

    def __cuda_stream__(self) -> tuple[int, int]: ...


GpuStruct = TypeVar("GpuStruct")  # an object of a class by `gpu_struct`
IteratorT = TypeVar("IteratorT", bound=Iterator)
Operator = Callable[..., Any] | OpKind | RawOp

__all__ = ["DeviceArrayLike", "GpuStruct", "IteratorT", "Operator", "StreamLike"]
