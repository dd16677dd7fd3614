"""The operations of the reference execution by their public names; arguments come as tile.py declares them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

OPS: dict[str, Callable[..., Any]] = {}


def op(name: str) -> Callable[[F], F]:
    """The function below is what the operation `name` computes."""

    def register(function: F) -> F:
        OPS[name] = function
        return function

    return register
