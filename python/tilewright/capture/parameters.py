"""The parameters of functions, and the arguments of calls bound to them, as Python does it."""

from __future__ import annotations

import ast
import inspect
import operator
import re
import types
import weakref
from typing import Any

from ..errors import TileTypeError
from ..names import keyword_advice
from .values import LocalFunction


class Binder:
    """Binds the arguments of calls to the parameters of a function, as Python does."""

    def __init__(self, function: Any) -> None:
        self.made_from = _parameters_of(function)
        # Without annotations, so that it reads well in a message.
        empty = inspect.Parameter.empty
        is_users = isinstance(function, types.FunctionType) and not hasattr(function, "__tw_op__")
        signature = inspect.signature(function, follow_wrapped=not is_users)  # a wrapper has parameters of its own
        parameters = [p.replace(annotation=empty) for p in signature.parameters.values()]
        self.signature = inspect.Signature(parameters)
        kinds = inspect.Parameter
        self.positional = [p.name for p in parameters if p.kind <= kinds.POSITIONAL_OR_KEYWORD]
        self.only_by_name = [p.name for p in parameters if p.kind == kinds.KEYWORD_ONLY]
        by_name = [p.name for p in parameters if p.kind == kinds.POSITIONAL_OR_KEYWORD]
        self.by_name = frozenset((*by_name, *self.only_by_name))
        self.defaults = {p.name: p.default for p in parameters if p.default is not empty}
        self.rest = next((p.name for p in parameters if p.kind == kinds.VAR_POSITIONAL), None)
        self.is_plain = len(self.positional) + len(self.only_by_name) == len(parameters)

    def bind(self, name: str, args: list[Any], keywords: dict[str, Any]) -> dict[str, Any]:
        """Parameter -> value, with defaults."""
        values = self._bind_plain(args, keywords)
        if values is not None:
            return values
        try:
            bound = self.signature.bind(*args, **keywords)
        except TypeError as error:
            hint = self._hint(args, keywords)
            signature = re.sub(r"<(\w+\.\w+): [^>]*>", r"ct.\1", str(self.signature))
            unknown = [k for k in keywords if k not in self.by_name]
            wrong = f"got an unexpected keyword argument '{unknown[0]}'" if unknown else _wrong(error)
            raise TileTypeError(f"{name}{signature}: {wrong}{hint}") from None
        bound.apply_defaults()
        return bound.arguments

    def _hint(self, args: list[Any], keywords: dict[str, Any]) -> str:
        """What to write instead, as the end of a sentence."""
        unknown = [k for k in keywords if k not in self.by_name]
        if len(args) > len(self.positional) and self.rest is None:
            if self.positional[-1:] in (["axes"], ["shape"]):
                return f"; {self.positional[-1]} is one tuple"
            others = ", the others by name" if self.only_by_name else ""
            return f"; it takes {len(self.positional)} by position{others}"
        if unknown and unknown[0] in self.positional:
            return "; give it by its place"
        return keyword_advice(unknown[0], self.by_name) if unknown else ""

    def arguments(self, name: str, args: list[Any], keywords: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The values by position and those by name."""
        if self.rest is not None and not keywords and len(args) >= len(self.positional) and not self.only_by_name:
            return args, keywords
        values = self.bind(name, args, keywords)
        if not self.is_plain:
            bound = inspect.BoundArguments(self.signature, values)
            return list(bound.args), bound.kwargs
        return [values[n] for n in self.positional], {n: values[n] for n in self.only_by_name}

    def _bind_plain(self, args: list[Any], keywords: dict[str, Any]) -> dict[str, Any] | None:
        """The same, quickly, where nothing is wrong and there are no '*' and '**' parameters."""
        if not self.is_plain or len(args) > len(self.positional):
            return None
        values = dict(zip(self.positional, args, strict=False))
        for key, value in keywords.items():
            if key in values or key not in self.by_name:
                return None
            values[key] = value
        for key, value in self.defaults.items():
            values.setdefault(key, value)
        return values if len(values) == len(self.signature.parameters) else None


_binders: weakref.WeakKeyDictionary[Any, Binder] = weakref.WeakKeyDictionary()


def binder_of(function: Any) -> Binder:
    binder = _binders.get(function)
    if binder is None or not all(map(operator.is_, binder.made_from, _parameters_of(function))):
        binder = _binders[function] = Binder(function)
    return binder


_special: weakref.WeakKeyDictionary[type, tuple[Any, Binder]] = weakref.WeakKeyDictionary()


def binder_of_special(function: Any) -> Binder:
    """Of an object that says itself what a call of it becomes: by the `__call__` of its class, which Python has too."""
    if hasattr(function, "__wrapped__") or hasattr(function, "__signature__"):
        return Binder(function)
    kind = type(function)
    own, binder = _special.get(kind, (None, None))
    if binder is None or own is not kind.__call__:
        own, binder = _special[kind] = (kind.__call__, Binder(function))
    return binder


def _parameters_of(function: Any) -> tuple[Any, ...]:
    """What the parameters of a function follow from, which can be set."""
    return tuple(getattr(function, part, None) for part in ("__code__", "__defaults__", "__kwdefaults__"))


def _wrong(error: TypeError) -> str:
    """What a call lacks, in the words of every version of Python."""
    return str(error).replace("a required keyword-only argument", "a required argument")


def bind_local(function: LocalFunction, args: list[Any], keywords: dict[str, Any]) -> dict[str, Any]:
    of = function.node.args
    is_plain = not (of.posonlyargs or of.kwonlyargs or of.vararg or of.kwarg or keywords)
    if is_plain and len(args) == len(of.args):
        return {a.arg: value for a, value in zip(of.args, args, strict=True)}
    signature = _local_signature(function)
    try:
        bound = signature.bind(*args, **keywords)
    except TypeError as error:
        names = ", ".join(str(p) for p in signature.parameters.values())
        raise TileTypeError(f"'{function.name}' takes ({names}): {_wrong(error)}") from None
    bound.apply_defaults()
    return dict(bound.arguments)


def _local_signature(function: LocalFunction) -> inspect.Signature:
    args, kinds = function.node.args, inspect.Parameter
    plain: list[tuple[ast.arg, Any]] = [(a, kinds.POSITIONAL_ONLY) for a in args.posonlyargs]
    plain += [(a, kinds.POSITIONAL_OR_KEYWORD) for a in args.args]
    defaults = [kinds.empty] * (len(plain) - len(function.defaults)) + list(function.defaults)
    found = [kinds(a.arg, kind, default=d) for (a, kind), d in zip(plain, defaults, strict=True)]
    if args.vararg:
        found.append(kinds(args.vararg.arg, kinds.VAR_POSITIONAL))
    by_name = function.keyword_defaults
    found += [kinds(a.arg, kinds.KEYWORD_ONLY, default=by_name.get(a.arg, kinds.empty)) for a in args.kwonlyargs]
    if args.kwarg:
        found.append(kinds(args.kwarg.arg, kinds.VAR_KEYWORD))
    return inspect.Signature(found)
