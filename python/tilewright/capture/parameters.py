"""The parameters of functions, and the arguments of calls bound to them, as Python does it."""

from __future__ import annotations

import ast
import functools
import inspect
import operator
import re
import types
import weakref
from typing import Any

from ..errors import TileTypeError
from ..names import keyword_advice
from .values import LocalFunction

_GATHERS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


class Binder:
    """Binds the arguments of calls to the parameters of a function, as Python does."""

    def __init__(self, function: Any) -> None:
        self.made_from = _parameters_of(function)
        if _is_plain(function):
            self._function = weakref.ref(function)  # binders are kept as long as their functions are
            self._read_code(function)
        else:
            self.signature = _signature_of(function)
            self._read_signature()

    def _read_code(self, function: types.FunctionType) -> None:
        """Parameters of a function without '*' and '**', which its code tells sooner than `inspect` does."""
        code, defaults = function.__code__, function.__defaults__ or ()
        self.positional = [*code.co_varnames[: code.co_argcount]]
        self.only_by_name = [*code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]]
        self.by_name = frozenset((*self.positional[code.co_posonlyargcount :], *self.only_by_name))
        self.defaults = dict(zip(self.positional[len(self.positional) - len(defaults) :], defaults, strict=True))
        self.defaults |= function.__kwdefaults__ or {}
        self.rest: str | None = None
        self.is_plain = True

    def _read_signature(self) -> None:
        kinds, parameters = inspect.Parameter, [*self.signature.parameters.values()]
        self.positional = [p.name for p in parameters if p.kind <= kinds.POSITIONAL_OR_KEYWORD]
        self.only_by_name = [p.name for p in parameters if p.kind == kinds.KEYWORD_ONLY]
        by_name = [p.name for p in parameters if p.kind == kinds.POSITIONAL_OR_KEYWORD]
        self.by_name = frozenset((*by_name, *self.only_by_name))
        self.defaults = {p.name: p.default for p in parameters if p.default is not kinds.empty}
        self.rest = next((p.name for p in parameters if p.kind == kinds.VAR_POSITIONAL), None)
        self.is_plain = len(self.positional) + len(self.only_by_name) == len(parameters)

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        return _signature_of(self._function())

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
        return values if len(values) == len(self.positional) + len(self.only_by_name) else None


def _is_users(function: Any) -> bool:
    return isinstance(function, types.FunctionType) and not hasattr(function, "__tw_op__")


def _signature_of(function: Any) -> inspect.Signature:
    """Without annotations, so that it reads well in a message. A wrapper of a user's has parameters of its own."""
    signature = inspect.signature(function, follow_wrapped=not _is_users(function))
    return inspect.Signature([p.replace(annotation=p.empty) for p in signature.parameters.values()])


def _is_plain(function: Any) -> bool:
    """Whether the code of a function tells its parameters: none are gathered, and nothing says otherwise."""
    if not isinstance(function, types.FunctionType) or function.__code__.co_flags & _GATHERS:
        return False
    return not (hasattr(function, "__signature__") or (hasattr(function, "__wrapped__") and not _is_users(function)))


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
