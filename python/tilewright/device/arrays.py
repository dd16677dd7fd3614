"""Arrays that a kernel makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import TileError

if TYPE_CHECKING:
    from ..capture.frame import Frame

__all__ = ["shared_array"]


class _SharedArray:
    """shared_array(shape, dtype): an array that the threads of a block share; its elements are undefined at first.

    The shape is constant. Every call in the source is one array, whose memory is the block's for the whole kernel.
    """

    def __call__(self, shape: Any, dtype: Any) -> Any:
        raise TileError("device.shared_array() can only be called in a kernel")

    def __tw_call__(self, frame: Frame, shape: Any, dtype: Any) -> Any:
        from ..capture.simt import arrays

        return arrays.shared_array(frame, shape, dtype)


shared_array = _SharedArray()
