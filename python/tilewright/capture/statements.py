"""Statements: each kind of node has a function here; branches and loops are in files of their own.

Leaving early is made structured: `break`, `continue` and `return` set flags (frame.py), and the
statements after one that may have set a flag go into an scf.if on that flag.
"""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Callable, Sequence
from typing import Any

from .. import deadline
from ..dtype import bool_
from ..errors import TileError, TileSyntaxError, TileTypeError, TileValueError
from ..findings import RAISED
from ..registry import into
from ..structure import is_namespace
from . import records, static
from .assertions import emit_assert
from .attributes import entry_of, index_of
from .branches import branch, each
from .elements import elements
from .expressions import evaluate, local_function, unsupported
from .frame import RETURN, VALUE, Frame, is_flag
from .operators import BINARY, binary, condition, truth_of
from .selection import choices_of
from .simt import arrays as simt_arrays
from .simt import structs as simt_structs
from .values import Array, Range, Selection, Tile, describe

Handler = Callable[[Frame, Any], None]
_handlers: dict[type[ast.AST], Handler] = {}
handles = into(_handlers)


def run_body(frame: Frame, nodes: Sequence[ast.stmt]) -> None:
    """The statements of a function, without its docstring."""
    first = nodes[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        nodes = nodes[1:]
    run_statements(frame, nodes)


def run_statements(frame: Frame, nodes: Sequence[ast.stmt]) -> None:
    for i, node in enumerate(nodes):
        run_statement(frame, node)
        state = frame.exit_state()
        if state is True:
            return
        if isinstance(state, Tile) and i + 1 < len(nodes):
            run_unless(frame, state, functools.partial(run_statements, frame, nodes[i + 1 :]), node)
            return


def run_statement(frame: Frame, node: ast.stmt) -> None:
    handler = _handlers.get(type(node))
    try:
        deadline.check()
        if handler is None:
            raise unsupported(frame, node)
        handler(frame, node)
    except TileError as error:
        if not error.places:
            error.places = frame.places(node)
        raise


# ---------------------------------------------------------------------------------------------
# Simple statements


@handles(ast.Pass)
def _pass(frame: Frame, node: ast.Pass) -> None:
    return


@handles(ast.Raise)
def _raise(frame: Frame, node: ast.Raise) -> None:
    if not frame.capture.rules.raises:
        static.raised(frame, node)
        return
    if frame.capture.checked:  # else it is silent, as in Numba
        frame.at(node)
        raised = _raised(frame, node.exc)
        told = _told_by(frame, node.exc, raised)
        RAISED.pop(frame.told(node, told), None)
        if raised is not None:
            RAISED[frame.told(node, told)] = raised
        emit_assert(frame, frame.emit.constant(False, bool_), told, node)
    frame.env.pop(VALUE, None)  # what the function gives then is a 0
    frame.env[RETURN] = True


def _raised(frame: Frame, raised: ast.expr | None) -> type[Exception] | None:
    """The class of what `raise` raises."""
    name = raised.func if isinstance(raised, ast.Call) else raised
    found = evaluate(frame, name) if isinstance(name, ast.Name | ast.Attribute) else None
    return found if isinstance(found, type) and issubclass(found, Exception) else None


def _told_by(frame: Frame, raised: ast.expr | None, kind: type | None) -> str:
    """`ValueError: too large` of `ValueError("too large")`."""
    if not isinstance(raised, ast.Call) or len(raised.args) != 1:
        return "raise" if raised is None else ast.unparse(raised)
    argument, name = raised.args[0], ast.unparse(raised.func) if kind is None else kind.__name__
    text = evaluate(frame, argument) if isinstance(argument, ast.Constant | ast.Name) else None
    return f"{name}: {text if isinstance(text, str) else ast.unparse(argument)}"


@handles(ast.Expr)
def _expression(frame: Frame, node: ast.Expr) -> None:
    evaluate(frame, node.value)


@handles(ast.Assign)
def _assign(frame: Frame, node: ast.Assign) -> None:
    value = evaluate(frame, node.value)
    for target in node.targets:
        assign(frame, target, value)


@handles(ast.AnnAssign)
def _annotated_assign(frame: Frame, node: ast.AnnAssign) -> None:
    if node.value is not None:
        assign(frame, node.target, evaluate(frame, node.value))


@handles(ast.AugAssign)
def _augmented_assign(frame: Frame, node: ast.AugAssign) -> None:
    if not isinstance(node.target, ast.Name):
        _augmented_element(frame, node)
        return
    old = evaluate(frame, ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
    value = evaluate(frame, node.value)
    assign(frame, node.target, binary(frame, BINARY[type(node.op).__name__], old, value, node))


def _augmented_element(frame: Frame, node: ast.AugAssign) -> None:
    """`x[i] += y`, with the array and the index evaluated once."""
    array = evaluate(frame, node.target.value) if isinstance(node.target, ast.Subscript) else None
    if _is_part(frame, node.target, array):
        old = evaluate(frame, node.target)
        new = binary(frame, BINARY[type(node.op).__name__], old, evaluate(frame, node.value), node)
        assign(frame, node.target, new)
        return
    if not isinstance(node.target, ast.Subscript) or not _has_elements(frame, array):
        assign(frame, node.target, None)  # refuses it
        return
    index = index_of(frame, node.target.slice)
    frame.at(node)
    old = entry_of(frame, array, index)
    value = binary(frame, BINARY[type(node.op).__name__], old, evaluate(frame, node.value), node)
    _write_element(frame, array, index, value)


def _is_part(frame: Frame, target: ast.expr, holder: Any) -> bool:
    """Whether a target is a field of a struct, or an element of a vector."""
    if not frame.capture.rules.simt:
        return False
    return isinstance(target, ast.Attribute) or hasattr(holder, "__tw_with_item__")


def _has_elements(frame: Frame, value: Any) -> bool:
    return frame.capture.rules.simt and any(isinstance(v, Array) for v in choices_of(value))


def _write_element(frame: Frame, array: Any, index: Any, value: Any) -> None:
    if isinstance(array, Selection):
        each(frame, array, lambda choice: simt_arrays.write(frame, choice, index, value))
    else:
        simt_arrays.write(frame, array, index, value)


def assign(frame: Frame, target: ast.expr, value: Any) -> None:
    if isinstance(target, ast.Name):
        if isinstance(value, Range):
            raise TileTypeError("a range can only be the head of a loop: for i in range(...)")
        if not frame.of_library:
            value = frame.capture.rules.assigned(frame, target.id, value)
            frame.capture.name(value, target.id)
        frame.env[target.id] = value
    elif isinstance(target, ast.Tuple | ast.List):
        _unpack(frame, target, value)
    elif isinstance(target, ast.Subscript):
        what = evaluate(frame, target.value)
        if (field := _field_of(what, target)) is not None:
            _assign_field(frame, field, value)
            return
        if _has_elements(frame, what):
            index = index_of(frame, target.slice)
            frame.at(target)
            _write_element(frame, what, index, value)
            return
        if hasattr(what, "__tw_with_item__"):
            index = index_of(frame, target.slice)
            frame.at(target)
            assign(frame, target.value, what.__tw_with_item__(frame, index, value))
            return
        if records.method_of(what, "__setitem__"):
            index = index_of(frame, target.slice)
            frame.at(target)
            records.call_method(frame, what, "__setitem__", [index, value], {})
            return
        raise TileTypeError(
            f"{describe(what)} cannot be assigned by index; {_instead_of_item(frame, what)}",
            frame.places(target),
        )
    elif isinstance(target, ast.Attribute) and frame.capture.rules.simt:
        _assign_field(frame, target, value)
    else:
        code = frame.capture.rules.code
        raise TileSyntaxError(
            f"only names and tuples of names can be assigned in {code}; ct.store writes to an array",
            frame.places(target),
        )


def _field_of(what: Any, target: ast.Subscript) -> ast.Attribute | None:
    """`what.x` of `what["x"]`, if that is a field of a struct."""
    name = target.slice.value if isinstance(target.slice, ast.Constant) else None
    if not isinstance(name, str) or name not in getattr(type(what), "__tw_struct__", ()):
        return None
    return ast.copy_location(ast.Attribute(target.value, name, ast.Store()), target)


def _instead_of_item(frame: Frame, what: Any) -> str:
    if frame.capture.rules.simt:
        return "tuples, lists and dicts never change; a local array does"
    if isinstance(what, Array):
        return "use ct.store for a tile of it, or ct.scatter for elements"
    return "tiles and tuples are immutable: make a new one, as with ct.where"


def _assign_field(frame: Frame, target: ast.Attribute, value: Any) -> None:
    """`s.x = a` of device code gives the name `s` a new struct, or vector; of an array's element it is a store."""
    if isinstance(target.value, ast.Subscript):
        holder = evaluate(frame, target.value.value)
        if hasattr(holder, "__tw_store_field__"):
            index = index_of(frame, target.value.slice)
            frame.at(target)
            holder.__tw_store_field__(frame, index, target.attr, value)
            return
    what = evaluate(frame, target.value)
    frame.at(target)
    if hasattr(what, "__tw_set_field__"):
        what.__tw_set_field__(frame, target.attr, value)
        return
    if is_namespace(what):
        if isinstance(target.value, ast.Name) and target.value.id not in frame.env:
            raise TileSyntaxError(
                f"'{target.value.id}' is a namespace of the program, which device code cannot change; make one in it: "
                f"{target.value.id} = SimpleNamespace(...)",
                frame.places(target),
            )
        assign(frame, target.value, types.SimpleNamespace(**{**vars(what), target.attr: value}))
        return
    if not hasattr(type(what), "__tw_tree__"):
        raise TileTypeError(
            f"{describe(what)} gets no attribute '{target.attr}' in device code; only fields of structs and of vectors "
            "can be assigned, and attributes of a types.SimpleNamespace",
            frame.places(target),
        )
    assign(frame, target.value, simt_structs.with_field(frame, what, target.attr, value))


def _unpack(frame: Frame, target: ast.Tuple | ast.List, value: Any) -> None:
    names = target.elts
    if not isinstance(value, tuple):
        value = tuple(elements(frame, value, "an assignment to several names"))
    stars = [i for i, t in enumerate(names) if isinstance(t, ast.Starred)]
    wrong = len(value) < len(names) - 1 if stars else len(value) != len(names)
    if wrong:
        least = "at least " if stars else ""
        raise TileValueError(
            f"cannot unpack {len(value)} values into {least}{len(names) - len(stars)} names; "
            "expected a name for each, or *rest"
        )
    if stars:
        i, more = stars[0], len(value) - len(names) + 1
        value = (*value[:i], value[i : i + more], *value[i + more :])
    for t, v in zip(names, value, strict=True):
        assign(frame, t.value if isinstance(t, ast.Starred) else t, v)


@handles(ast.Delete)
def _delete(frame: Frame, node: ast.Delete) -> None:
    for target in node.targets:
        if not isinstance(target, ast.Name):
            raise TileSyntaxError(f"only names can be deleted in {frame.capture.rules.code}")
        evaluate(frame, ast.copy_location(ast.Name(target.id, ast.Load()), target))
        del frame.env[target.id]


@handles(ast.Assert)
def _assert(frame: Frame, node: ast.Assert) -> None:
    if isinstance(node.test, ast.Tuple) and node.test.elts:
        raise TileSyntaxError("an assertion of a tuple always holds; write assert condition, message")
    holds = evaluate(frame, node.test)
    message = "" if node.msg is None else evaluate(frame, node.msg)
    if not isinstance(message, str):
        raise TileTypeError(
            f"the message of 'assert' must be a constant, found {describe(message)}; print shows values"
        )
    if isinstance(holds, Tile):
        frame.at(node)
        if holds.dtype is not bool_:
            holds = frame.emit.compare("not_equal", holds, 0)
        emit_assert(frame, holds, message or ast.unparse(node.test), node)
    elif not truth_of(frame, holds, "'assert'"):
        raise TileValueError(f"assertion failed{': ' + message if message else ''}")


@handles(ast.FunctionDef)
def _function(frame: Frame, node: ast.FunctionDef) -> None:
    if node.decorator_list:
        raise TileSyntaxError("a decorator is not supported on a function inside of a kernel; define it outside")
    frame.env[node.name] = local_function(frame, node)


@handles(ast.Return)
def _return(frame: Frame, node: ast.Return) -> None:
    value = None if node.value is None else evaluate(frame, node.value)
    if frame.is_kernel and value is not None:
        raise TileTypeError(f"a kernel returns nothing, found {describe(value)}; store results in an array")
    frame.env[VALUE] = value
    frame.env[RETURN] = True


@handles(ast.Break)
def _break(frame: Frame, node: ast.Break) -> None:
    frame.env[f"$break{frame.loops}"] = True
    frame.breaks.setdefault(frame.loops, []).append(dict(frame.env))


@handles(ast.Continue)
def _continue(frame: Frame, node: ast.Continue) -> None:
    frame.env[f"$continue{frame.loops}"] = True


# ---------------------------------------------------------------------------------------------
# Branches


@handles(ast.If)
def _if(frame: Frame, node: ast.If) -> None:
    truth = condition(frame, node.test, "the condition of 'if'")
    if not isinstance(truth, Tile):
        run_statements(frame, node.body if truth else node.orelse)
        return
    branch(
        frame,
        truth,
        lambda: run_statements(frame, node.body),
        (lambda: run_statements(frame, node.orelse)) if node.orelse else None,
        node,
    )


def run_unless(frame: Frame, state: Tile, run: Callable[[], None], node: ast.stmt) -> None:
    """What comes after a statement that may have left the ones around it: `run` happens unless `state` is true."""
    frame.at(node)
    flags = frozenset(n for n, v in frame.env.items() if is_flag(n) and isinstance(v, Tile))
    returned = RETURN in flags

    def rest() -> None:
        for name in flags:
            frame.env[name] = False
        if returned:
            frame.env.pop(VALUE, None)
        run()

    branch(frame, frame.emit.logical_not(state), rest, None, node, unless=flags)
