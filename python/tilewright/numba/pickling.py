"""Functions of kernels in a pickle: by their name where a module has them, else whole, with their source.

The capture reads the source of a kernel, so that goes along: the process that loads the kernel need not have its file.
"""

from __future__ import annotations

import inspect
import linecache
import marshal
import pickle
import sys
import types
import zlib
from collections.abc import Iterator
from typing import Any


def is_of_its_module(made: Any, function: Any) -> bool:
    """Whether a module has `made` by the name of its function."""
    return getattr(sys.modules.get(function.__module__), function.__qualname__, None) is made


class Packed:
    """A function, which comes out of the pickle as itself."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __reduce__(self) -> Any:
        function: types.FunctionType = self.function
        if is_of_its_module(function, function):
            return _itself, (function,)
        lines, first = inspect.getsourcelines(function)
        head = (function.__name__, function.__qualname__, function.__module__)
        values = {name: _packed(value) for name, value in _globals_of(function).items()}
        cells = tuple(_packed(cell.cell_contents) for cell in function.__closure__ or ())
        defaults = (function.__defaults__, function.__kwdefaults__)
        source = "\n" * (max(first, 1) - 1) + "".join(lines)
        return _function, (marshal.dumps(function.__code__), head, values, cells, defaults, source)


class _Module:
    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> Any:
        return __import__, (self.name, None, None, ("",))


def _itself(function: Any) -> Any:
    return function


def _packed(value: Any) -> Any:
    if isinstance(value, types.ModuleType):
        return _Module(value.__name__)
    return Packed(value) if isinstance(value, types.FunctionType) else value


def _globals_of(function: types.FunctionType) -> dict[str, Any]:
    """What the function may look up; of what no pickle takes nothing, as many names are those of attributes."""
    found = {}
    for name in sorted({name for code in _codes(function.__code__) for name in code.co_names}):
        value = function.__globals__.get(name)
        if value is None or value is function or getattr(value, "function", None) is function:
            continue
        try:
            pickle.dumps(_packed(value))
        except Exception:
            continue
        found[name] = value
    return found


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _function(code: bytes, head: Any, values: dict[str, Any], cells: Any, defaults: Any, source: str) -> Any:
    loaded = _with_source(marshal.loads(code), source)
    name, qualified, module = head
    space = {"__builtins__": __builtins__, "__name__": module, **values}
    made = types.FunctionType(loaded, space, name, defaults[0], tuple(map(types.CellType, cells)))
    made.__qualname__, made.__module__, made.__kwdefaults__ = qualified, module, defaults[1]
    return made


def _with_source(code: types.CodeType, source: str) -> types.CodeType:
    """The code under a file that has its lines: its own, or one in memory."""
    lines = source.splitlines(True)
    first = code.co_firstlineno - 1
    if linecache.getlines(code.co_filename)[first : len(lines)] == lines[first:]:
        return code
    name = f"<pickled {zlib.crc32(source.encode()):x} of {code.co_filename}>"
    linecache.cache[name] = (len(source), None, lines, name)
    return _under(code, name)


def _under(code: types.CodeType, name: str) -> types.CodeType:
    inner = tuple(_under(c, name) if isinstance(c, types.CodeType) else c for c in code.co_consts)
    return code.replace(co_filename=name, co_consts=inner)
