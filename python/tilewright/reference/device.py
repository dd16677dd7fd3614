"""`kernel.interpret` of cuda.device: the Python body runs once for each thread, x fastest, block after block.

Breakpoints hold: what runs is the function's own code, but for the assignments to parts of values, which give a name a
new value (rewrite). Arrays are NumPy's, of which elements are numbers of their format (numbers.py).
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import math
import textwrap
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import dtype as dt
from ..device.records import form_of_dtype
from ..errors import TileTypeError, TileValueError
from ..structure import is_namespace
from .complexes import ComplexNumber
from .device_arrays import DeviceArray
from .device_block import Block
from .device_records import RecordArray, Reference, element
from .numbers import Number

Dim = tuple[int, int, int]
MOST_THREADS = 1024


def run(function: types.FunctionType, args: Sequence[Any], grid: Any, block: Any, shared: int = 0) -> None:
    grid, block = dim3(grid, "the grid"), dim3(block, "the block")
    if math.prod(block) > MOST_THREADS:
        raise TileValueError(f"a block of {block} has {math.prod(block)} threads; the most are {MOST_THREADS}")
    values = [argument(value, name) for name, value in zip(_names(function, args), args, strict=True)]
    body = runnable(function)
    for place in positions(grid):
        run_block(body, values, place, grid, block, shared)


def run_block(body: Callable[..., Any], values: list[Any], place: Dim, grid: Dim, block: Dim, shared: int) -> None:
    """The threads of a block, one after the other where none waits."""

    def run_thread() -> None:
        result = body(*values)
        if result is not None:
            raise TileTypeError(f"the kernel returns {result!r}; a kernel returns nothing")

    Block([Thread(index, place, block, grid) for index in positions(block)], shared).run(run_thread)


def positions(extents: Dim) -> Any:
    """All places, x fastest."""
    return ((x, y, z) for z, y, x in itertools.product(*(range(n) for n in reversed(extents))))


def dim3(value: Any, what: str) -> Dim:
    found = tuple(value) if isinstance(value, tuple | list) else (value,)
    if not 1 <= len(found) <= 3 or not all(isinstance(n, int | np.integer) and n > 0 for n in found):
        raise TileTypeError(f"{what} is an integer, or a tuple of one to three, all above zero; found {value!r}")
    x, y, z = (*map(int, found), 1, 1)[:3]
    return x, y, z


class Thread:
    """Where a thread stands."""

    def __init__(self, index: Dim, place: Dim, block: Dim, grid: Dim) -> None:
        self.thread_idx, self.block_idx, self.block_dim, self.grid_dim = index, place, block, grid

    def position(self, name: str) -> Any:
        from ..device.vectors import Dim3  # which needs this module

        if name == "warp_size":
            return Number(32, dt.int32)
        if name == "lane_id":
            (x, y, z), (across, down, _) = self.thread_idx, self.block_dim
            return Number((x + across * (y + down * z)) % 32, dt.int32)
        return Dim3(*(Number(n, dt.uint32) for n in getattr(self, name)))


def _names(function: types.FunctionType, args: Sequence[Any]) -> list[str]:
    names = list(function.__code__.co_varnames[: function.__code__.co_argcount])
    if len(names) != len(args):
        raise TileTypeError(
            f"kernel {function.__name__} takes {len(names)} argument(s) ({', '.join(names)}), found {len(args)}"
        )
    return names


def argument(value: Any, name: str) -> Any:
    """An argument of a launch as the body sees it."""
    if isinstance(value, np.ndarray):
        return RecordArray(value) if value.dtype.names or value.dtype.kind == "c" else DeviceArray(value)
    if isinstance(value, np.complexfloating):
        return ComplexNumber(value, value.dtype.name)
    if isinstance(value, np.void) and value.dtype.names:
        return element(form_of_dtype(value.dtype), value)
    if isinstance(value, np.generic):
        return Number(value, dt.as_dtype(value.dtype))
    if isinstance(value, tuple | list):
        return tuple(argument(v, f"{name}[{i}]") for i, v in enumerate(value))
    if hasattr(type(value), "__tw_tree__"):
        return with_numbers(value)
    if value is None or isinstance(value, bool | int | float | complex | str | dt.DType):
        return value
    raise TileTypeError(f"argument '{name}': {type(value).__name__} is no array, number or struct")


def with_numbers(value: Any) -> Any:
    """A struct, a vector or a tuple with numbers of their format in the place of NumPy's scalars."""
    if isinstance(value, tuple):
        return tuple(map(with_numbers, value))
    if isinstance(value, np.generic):
        return Number(value, dt.as_dtype(value.dtype))
    if not hasattr(type(value), "__tw_tree__"):
        return value
    made = object.__new__(type(value))
    for name in value.__dataclass_fields__:
        object.__setattr__(made, name, with_numbers(getattr(value, name)))
    return made


# ---------------------------------------------------------------------------------------------
# The body


class Rewrite(ast.NodeTransformer):
    """`v[i] = a` becomes `v = $set(v, i, a)`, and `s.x = a` likewise: of arrays the same one comes back."""

    def visit_Assign(self, node: ast.Assign) -> Any:
        if len(node.targets) != 1:
            return node
        return ast.copy_location(self._rebound(node.targets[0], node.value) or node, node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        target = node.target
        if isinstance(target, ast.Name):
            return node
        read = ast.copy_location(_as_load(target), target)
        value = ast.copy_location(ast.BinOp(read, node.op, node.value), node)
        return ast.copy_location(self._rebound(target, value) or node, node)

    def _rebound(self, target: ast.expr, value: ast.expr) -> ast.Assign | None:
        if isinstance(target, ast.Subscript):
            made = _call("$set_item", [_as_load(target.value), _index(target.slice), value], target)
        elif isinstance(target, ast.Attribute):
            made = _call("$set_field", [_as_load(target.value), ast.Constant(target.attr), value], target)
        else:
            return None
        holder = target.value
        if isinstance(holder, ast.Name):
            return ast.Assign([ast.Name(holder.id, ast.Store())], made)
        return self._rebound(holder, made)


def _index(node: ast.expr) -> ast.expr:
    """A subscript as an expression: `a:b` is `slice(a, b)`."""
    if isinstance(node, ast.Tuple):
        return ast.Tuple([_index(n) for n in node.elts], ast.Load())
    if not isinstance(node, ast.Slice):
        return node
    parts = [part or ast.Constant(None) for part in (node.lower, node.upper, node.step)]
    return ast.Call(ast.Name("slice", ast.Load()), parts, [])


def _as_load(node: ast.expr) -> ast.expr:
    fresh = {ast.Name: lambda n: ast.Name(n.id, ast.Load())}
    if isinstance(node, ast.Name):
        return fresh[ast.Name](node)
    if isinstance(node, ast.Attribute):
        return ast.Attribute(_as_load(node.value), node.attr, ast.Load())
    if isinstance(node, ast.Subscript):
        return ast.Subscript(_as_load(node.value), node.slice, ast.Load())
    return node


def _call(name: str, args: list[ast.expr], place: ast.AST) -> ast.Call:
    return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), args, []), place)


def set_item(holder: Any, index: Any, value: Any) -> Any:
    """What a name holds after `holder[index] = value`."""
    from ..device.vectors import Vector  # which needs this module
    from ..device.warps import WarpMask

    if isinstance(holder, WarpMask):
        return holder.with_lane(int(index), bool(value))
    if not isinstance(holder, Vector):
        holder[index] = value
        return holder
    elements = list(holder)
    elements[int(index)] = value
    return type(holder)(*elements)


def set_field(holder: Any, name: str, value: Any) -> Any:
    """What a name holds after `holder.name = value`."""
    if isinstance(holder, Reference):
        setattr(holder, name, value)
        return holder
    if is_namespace(holder):
        return types.SimpleNamespace(**{**vars(holder), name: value})
    if not hasattr(type(holder), "__tw_tree__"):
        raise TileTypeError(f"{type(holder).__name__} gets no attribute '{name}' in device code")
    fields = list(type(holder).__dataclass_fields__)
    if name not in fields:
        raise TileTypeError(f"a {type(holder).__name__} has no field '{name}'; it has {', '.join(fields)}")
    return type(holder)(*(value if n == name else getattr(holder, n) for n in fields))


def runnable(function: types.FunctionType) -> Callable[..., Any]:
    """The function with its assignments to parts of values rewritten; in its file, at its lines, with its globals."""
    code = _rewritten(function.__code__)
    if code is None:
        return function
    maker = types.FunctionType(code, function.__globals__)
    fresh = maker(set_item, set_field, *(cell.cell_contents for cell in function.__closure__ or ()))
    fresh.__defaults__, fresh.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return fresh


@functools.lru_cache(maxsize=256)
def _rewritten(code: types.CodeType) -> types.CodeType | None:
    """Of a function that makes the function, from what it assigns by and what its closure holds."""
    try:
        lines, first = inspect.getsourcelines(code)
    except OSError:
        return None
    tree = ast.parse(textwrap.dedent("".join(lines)))
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        return None
    definition.decorator_list = []
    ast.increment_lineno(tree, first - 1)
    definition = Rewrite().visit(definition)
    parameters = [ast.arg(name) for name in ("$set_item", "$set_field", *code.co_freevars)]
    back = ast.Return(ast.Name(definition.name, ast.Load()))
    maker = ast.FunctionDef(
        "$maker", ast.arguments([], parameters, None, [], [], None, []), [definition, back], [], None, None
    )
    module = ast.fix_missing_locations(ast.Module([maker], []))
    constants = compile(module, code.co_filename, "exec").co_consts
    return next(c for c in constants if isinstance(c, types.CodeType))
