"""Predicates: functions without parameters that barriers and votes call."""

from __future__ import annotations

import types
from typing import Any

from ...dtype import bool_
from ...errors import TileTypeError
from ..frame import Frame
from ..parameters import binder_of
from ..values import LocalFunction, Tile, describe


def _has_parameters(function: types.FunctionType | LocalFunction) -> bool:
    if isinstance(function, types.FunctionType):
        return bool(binder_of(function).signature.parameters)
    given = function.node.args
    return bool(given.posonlyargs or given.args or given.kwonlyargs or given.vararg or given.kwarg)


def predicate(frame: Frame, pred: Any, what: str) -> Tile:
    """What `pred()` gives, as a bool."""
    from ..calls import call  # which stands above this package

    if not isinstance(pred, types.FunctionType | LocalFunction) or _has_parameters(pred):
        raise TileTypeError(
            f"{what}: pred is a function without parameters, found {describe(pred)}; write it as in "
            f"{what}(…, lambda: x > 0)"
        )
    return frame.emit.cast(frame.emit.tile(call(frame, pred, [], {}, frame.node), f"{what}: what pred gives"), bool_)
