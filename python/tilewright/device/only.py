"""Functions that only kernels call: what captures a call of them, and what does it under `kernel.interpret`."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import TileError
from ..reference import threads
from .positions import refuse_for_elements, refuse_on_host

if TYPE_CHECKING:
    from ..capture.frame import Frame


class DeviceFunction:
    """What the function `stub`, which has the signature and the text, is in kernels: the one of its name in
    capture/simt/`module`.py while a kernel is captured, in reference/device_`module`.py while one is interpreted."""

    def __init__(self, stub: Callable[..., Any], module: str) -> None:
        self.__name__ = stub.__name__
        self.__doc__ = stub.__doc__
        self.__signature__ = inspect.signature(stub)
        self._module = module

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        thread = threads.current()
        if thread is None:
            raise TileError(
                f"device.{self.__name__}() can only be called in a kernel; call it from a @device.func or kernel"
            )
        module = importlib.import_module(f"tilewright.reference.device_{self._module}")
        bound = self.__signature__.bind(*args, **keywords)
        bound.apply_defaults()
        return getattr(module, self.__name__)(thread, *bound.args, **bound.kwargs)

    def __tw_call__(self, frame: Frame, *args: Any, **keywords: Any) -> Any:
        refuse_on_host(frame, f"device.{self.__name__}()")
        if self._module != "atomics":
            refuse_for_elements(frame, f"device.{self.__name__}()")
        module = importlib.import_module(f"tilewright.capture.simt.{self._module}")
        return getattr(module, self.__name__)(frame, *args, **keywords)

    def __repr__(self) -> str:
        return f"device.{self.__name__}"


def device_only(module: str) -> Callable[[Callable[..., Any]], Any]:
    return lambda stub: DeviceFunction(stub, module)
