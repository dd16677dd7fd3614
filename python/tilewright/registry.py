"""Tables of functions that decorators fill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def into(table: dict[Any, Any]) -> Callable[..., Callable[[F], F]]:
    """A decorator with keys: the function below is what the table has for them."""

    def keyed(*keys: Any) -> Callable[[F], F]:
        def register(function: F) -> F:
            table.update(dict.fromkeys(keys, function))
            return function

        return register

    return keyed
