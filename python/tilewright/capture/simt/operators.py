"""Operators in device code on what is no number: vectors, and what describes targets."""

from __future__ import annotations

import operator
from typing import Any

from ..frame import Frame

_OF_TARGETS = {"bitwise_or": operator.or_, "bitwise_and": operator.and_}


def binary(frame: Frame, name: str, x: Any, y: Any) -> Any:
    """What `x` and `y` give, or None where neither is of a kind of its own."""
    from ...device.targets import TargetDescription  # the classes need this package
    from ...device.vectors import Vector
    from . import vectors

    if isinstance(x, Vector) or isinstance(y, Vector):
        return vectors.by_element(frame, name, lambda a, b: frame.emit.binary(name, a, b), x, y)
    if name in _OF_TARGETS and (isinstance(x, TargetDescription) or isinstance(y, TargetDescription)):
        return _OF_TARGETS[name](x, y)
    return None


def unary(frame: Frame, name: str, x: Any) -> Any:
    from ...device.targets import TargetDescription  # the classes need this package
    from ...device.vectors import Vector
    from . import vectors

    if isinstance(x, Vector):
        of_node = {"USub": "negative", "Invert": "bitwise_not", "UAdd": ""}[name]
        return vectors.by_element(frame, name, lambda a: frame.emit.unary(of_node, a), x) if of_node else x
    if isinstance(x, TargetDescription) and name == "Invert":
        return ~x
    return None
