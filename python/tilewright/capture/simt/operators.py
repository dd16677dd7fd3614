"""Operators in device code on what is no number: vectors, and what describes targets."""

from __future__ import annotations

import operator
from typing import Any

from ..frame import Frame
from ..values import Tile

_OF_TARGETS = {"bitwise_or": operator.or_, "bitwise_and": operator.and_}


def binary(frame: Frame, name: str, x: Any, y: Any) -> Any:
    """What `x` and `y` give, or None where neither is of a kind of its own."""
    from ...device.targets import TargetDescription  # the classes need this package
    from ...device.vectors import Vector
    from . import complexes, vectors

    if complexes.is_complex(x) or complexes.is_complex(y):
        return complexes.binary(frame, name, x, y)
    if isinstance(x, Vector) or isinstance(y, Vector):
        return vectors.by_element(frame, name, lambda a, b: frame.emit.binary(name, a, b), x, y)
    if name in _OF_TARGETS and (isinstance(x, TargetDescription) or isinstance(y, TargetDescription)):
        return _OF_TARGETS[name](x, y)
    return None


def compare(frame: Frame, is_equal: bool, x: Any, y: Any) -> Any:
    """`x == y`, `x != y` of complex numbers; None of others."""
    from . import complexes  # the classes need this package

    if not (complexes.is_complex(x) or complexes.is_complex(y)):
        return None
    same = complexes.equal(frame, x, y)
    if is_equal:
        return same
    return frame.emit.logical_not(same) if isinstance(same, Tile) else not same


def unary(frame: Frame, name: str, x: Any) -> Any:
    from ...device.targets import TargetDescription  # the classes need this package
    from ...device.vectors import Vector
    from . import complexes, vectors

    if complexes.is_complex(x) and name in ("USub", "UAdd"):
        return complexes.negative(frame, x) if name == "USub" else x
    if isinstance(x, Vector):
        of_node = {"USub": "negative", "Invert": "bitwise_not", "UAdd": ""}[name]
        return vectors.by_element(frame, name, lambda a: frame.emit.unary(of_node, a), x) if of_node else x
    if isinstance(x, TargetDescription) and name == "Invert":
        return ~x
    return None
