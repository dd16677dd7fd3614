"""Statements: assignments, branches and loops, made structured.

A branch on a run-time scalar becomes scf.if; variables that differ after its two sides become its
results. A loop becomes scf.for, or scf.while where it can be left early; variables that it assigns
become loop-carried values. `break`, `continue` and `return` set flags (frame.py), and the statements
after one that may have set a flag go into an scf.if on that flag.

Which variables a loop carries, and as what type, is known only when its body has been captured. So
a body is captured under an assumption, the plan; if it turns out to be wrong, the block is thrown
away and the body captured again under a better one. Each failure makes the plan more general, so
that this ends.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from ..dtype import DType, bool_, constant_dtype, int32, int64, promote, promote_constant
from ..errors import TileError, TileSyntaxError, TileTypeError, TileValueError
from . import simt
from .expressions import binary, evaluate, index_of, truth_of, unsupported
from .frame import RETURN, VALUE, Frame, is_flag
from .source import assigned_names
from .values import (
    Array,
    LocalFunction,
    Range,
    Shape,
    Tile,
    Unusable,
    describe,
    is_number,
    is_run_time,
    tile_type,
    type_name,
)

Handler = Callable[[Frame, Any], None]
_handlers: dict[type[ast.AST], Handler] = {}


class _Missing:
    """A variable's value on a path where it has none, or where none is needed."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()


def handles(*kinds: type[ast.AST]) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        for kind in kinds:
            _handlers[kind] = handler
        return handler

    return register


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
            _run_unless(frame, state, nodes[i + 1 :], node)
            return


def run_statement(frame: Frame, node: ast.stmt) -> None:
    handler = _handlers.get(type(node))
    try:
        if handler is None:
            raise unsupported(node)
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
    from .expressions import BINARY

    if not isinstance(node.target, ast.Name):
        _augmented_element(frame, node)
        return
    old = evaluate(frame, ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
    value = evaluate(frame, node.value)
    assign(frame, node.target, binary(frame, BINARY[type(node.op).__name__], old, value, node))


def _augmented_element(frame: Frame, node: ast.AugAssign) -> None:
    """`x[i] += y`, with the array and the index evaluated once."""
    from .expressions import BINARY

    array = evaluate(frame, node.target.value) if isinstance(node.target, ast.Subscript) else None
    if not isinstance(node.target, ast.Subscript) or not isinstance(array, Array) or not frame.capture.simt:
        assign(frame, node.target, None)  # refuses it
        return
    index = index_of(frame, node.target.slice)
    frame.at(node)
    old = simt.read(frame, array, index)
    value = binary(frame, BINARY[type(node.op).__name__], old, evaluate(frame, node.value), node)
    simt.write(frame, array, index, value)


def assign(frame: Frame, target: ast.expr, value: Any) -> None:
    if isinstance(target, ast.Name):
        if isinstance(value, Range):
            raise TileTypeError("a range can only be the head of a loop: for i in range(...)")
        frame.env[target.id] = value
    elif isinstance(target, ast.Tuple | ast.List):
        _unpack(frame, target, value)
    elif isinstance(target, ast.Subscript):
        what = evaluate(frame, target.value)
        if isinstance(what, Array) and frame.capture.simt:
            index = index_of(frame, target.slice)
            frame.at(target)
            simt.write(frame, what, index, value)
            return
        raise TileTypeError(
            f"{describe(what)} cannot be assigned by index"
            + (
                "; use ct.store for a tile of it, or ct.scatter for elements"
                if isinstance(what, Array)
                else "; tiles and tuples are immutable: make a new one, as with ct.where"
            ),
            frame.places(target),
        )
    else:
        raise TileSyntaxError("only names and tuples of names can be assigned in tile code", frame.places(target))


def _unpack(frame: Frame, target: ast.Tuple | ast.List, value: Any) -> None:
    names = target.elts
    if not isinstance(value, tuple):
        raise TileTypeError(f"cannot unpack {describe(value)}; expected a tuple")
    stars = [i for i, t in enumerate(names) if isinstance(t, ast.Starred)]
    wrong = len(value) < len(names) - 1 if stars else len(value) != len(names)
    if wrong:
        least = "at least " if stars else ""
        raise TileValueError(f"cannot unpack {len(value)} values into {least}{len(names) - len(stars)} names")
    if stars:
        i, more = stars[0], len(value) - len(names) + 1
        value = (*value[:i], value[i : i + more], *value[i + more :])
    for t, v in zip(names, value, strict=True):
        assign(frame, t.value if isinstance(t, ast.Starred) else t, v)


@handles(ast.Delete)
def _delete(frame: Frame, node: ast.Delete) -> None:
    for target in node.targets:
        if not isinstance(target, ast.Name):
            raise TileSyntaxError("only names can be deleted in tile code")
        evaluate(frame, ast.copy_location(ast.Name(target.id, ast.Load()), target))
        del frame.env[target.id]


@handles(ast.Assert)
def _assert(frame: Frame, node: ast.Assert) -> None:
    condition = evaluate(frame, node.test)
    message = "" if node.msg is None else evaluate(frame, node.msg)
    if not isinstance(message, str):
        raise TileTypeError(f"the message of 'assert' must be a constant, found {describe(message)}")
    if isinstance(condition, Tile):
        frame.at(node)
        if condition.dtype is not bool_:
            condition = frame.emit.compare("not_equal", condition, 0)
        frame.builder.op("tile.assert", [condition.ir], {"message": message}, [])
    elif not truth_of(frame, condition, "'assert'"):
        raise TileValueError(f"assertion failed{': ' + message if message else ''}")


@handles(ast.FunctionDef)
def _function(frame: Frame, node: ast.FunctionDef) -> None:
    if node.decorator_list:
        raise TileSyntaxError("a decorator is not supported on a function inside of a kernel")
    defaults = tuple(evaluate(frame, d) for d in node.args.defaults)
    keyword_defaults = {
        a.arg: evaluate(frame, d)
        for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        if d is not None
    }
    frame.env[node.name] = LocalFunction(node, frame, defaults, keyword_defaults)


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


@handles(ast.Continue)
def _continue(frame: Frame, node: ast.Continue) -> None:
    frame.env[f"$continue{frame.loops}"] = True


# ---------------------------------------------------------------------------------------------
# Branches


@handles(ast.If)
def _if(frame: Frame, node: ast.If) -> None:
    condition = evaluate(frame, node.test)
    frame.at(node.test)
    truth = truth_of(frame, condition, "the condition of 'if'")
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


def _run_unless(frame: Frame, state: Tile, nodes: Sequence[ast.stmt], node: ast.stmt) -> None:
    """The statements after one that may have left them: they run unless `state` is true."""
    frame.at(node)
    flags = frozenset(n for n, v in frame.env.items() if is_flag(n) and isinstance(v, Tile))
    returned = RETURN in flags

    def rest() -> None:
        for name in flags:
            frame.env[name] = False
        if returned:
            frame.env.pop(VALUE, None)
        run_statements(frame, nodes)

    branch(frame, frame.emit.logical_not(state), rest, None, node, unless=flags)


def choose(
    frame: Frame,
    condition: Tile,
    then: Callable[[], Any],
    orelse: Callable[[], Any],
    node: ast.AST,
) -> Any:
    """The value of one of two expressions, of which only the chosen one is evaluated."""
    name = "$choice"

    def keep(side: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            frame.env[name] = side()

        return run

    branch(frame, condition, keep(then), keep(orelse), node)
    value = frame.env.pop(name)
    if type(value) is Unusable:
        raise TileTypeError(value.message)
    return value


def branch(
    frame: Frame,
    condition: Tile,
    then: Callable[[], None],
    orelse: Callable[[], None] | None,
    node: ast.AST,
    unless: frozenset[str] = frozenset(),
) -> None:
    """scf.if. With `unless`, the flags that tell that the else side has left the statements."""
    before = frame.env
    then_block, then_env = _side(frame, before, then)
    else_block, else_env = _side(frame, before, orelse)
    frame.env = dict(before)
    join = _Join(frame, before, then_env, else_env, node, unless)
    merged = join.variables()
    frame.at(node)
    if join.results or orelse is not None:
        else_block = else_block or frame.builder.block()
    _yield(frame, then_block, [r.then for r in join.results], join.results)
    if else_block is not None:
        _yield(frame, else_block, [r.orelse for r in join.results], join.results)
    types = [tile_type(r.tile.dtype, r.tile.shape) for r in join.results]
    frame.at(node)
    values = frame.builder.op("scf.if", [condition.ir], None, types, [then_block, else_block])
    _fill([r.tile for r in join.results], values)
    for name in join.is_condition:
        merged[name] = condition
    for name in join.is_negated:
        merged[name] = frame.emit.logical_not(condition)
    frame.env = merged


def _side(frame: Frame, before: dict[str, Any], run: Callable[[], None] | None) -> tuple[Any, dict[str, Any]]:
    if run is None:
        return None, before
    block = frame.builder.block()
    frame.builder.enter(block)
    frame.env = dict(before)
    run()
    frame.builder.leave()
    return block, frame.env


def _fill(tiles: Sequence[Tile], values: Any) -> None:
    """Give the tiles that stand for the results of an op their values."""
    if len(tiles) == 1:
        tiles[0].ir = values
    else:
        for tile, value in zip(tiles, values or (), strict=True):
            tile.ir = value


def _yield(frame: Frame, block: Any, values: list[Any], results: Sequence[_Result]) -> None:
    frame.builder.enter(block)
    tiles = [_as_tile(frame, v, r.tile) for v, r in zip(values, results, strict=True)]
    frame.builder.op("scf.yield", [t.ir for t in tiles], None, [])
    frame.builder.leave()


def _as_tile(frame: Frame, value: Any, like: Tile) -> Tile:
    if value is MISSING:
        return frame.emit.constant(0, like.dtype, like.shape)
    if isinstance(value, Tile):
        return value
    return frame.emit.constant(value, like.dtype)


@dataclasses.dataclass(slots=True)
class _Result:
    tile: Tile
    then: Any
    orelse: Any


class _Join:
    """What the variables are after the two sides of a branch."""

    def __init__(
        self,
        frame: Frame,
        before: dict[str, Any],
        then_env: dict[str, Any],
        else_env: dict[str, Any],
        node: ast.AST,
        unless: frozenset[str],
    ) -> None:
        self.frame = frame
        self.node = node
        self.before, self.then_env, self.else_env = before, then_env, else_env
        self.unless = unless
        # Where a side has returned, its variables are of no use; after a break they still are.
        self.then_left = then_env[RETURN] is True
        self.else_left = else_env[RETURN] is True or unless == {RETURN}
        self.results: list[_Result] = []
        self.is_condition: list[str] = []
        self.is_negated: list[str] = []
        self.outside = {id(v) for v in before.values()}

    def variables(self) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for name in {**self.then_env, **self.else_env}:
            a, b = self.then_env.get(name, MISSING), self.else_env.get(name, MISSING)
            if a is b:
                merged[name] = a
            elif is_flag(name):
                merged[name] = self._flag(name, a, b)
            elif name == VALUE:
                a = MISSING if self.then_env[RETURN] is False else a
                b = MISSING if self.else_env[RETURN] is False and not self.unless else b
                merged[name] = self._join(name, a, b)
            else:
                merged[name] = self._variable(name, a, b)
        return merged

    def _flag(self, name: str, a: Any, b: Any) -> Any:
        a, b = (False if v is MISSING else v for v in (a, b))
        if name in self.unless and a is False:
            return b  # b is true only where the else side was taken
        if self.unless == {name} and a is True:
            return True  # b is true wherever the else side was taken
        if a is True and b is False:
            self.is_condition.append(name)
            return a
        if a is False and b is True:
            self.is_negated.append(name)
            return a
        return a if a is b else self._result(bool_, (), a, b)

    def _variable(self, name: str, a: Any, b: Any) -> Any:
        if self.then_left and not self.else_left:
            a = MISSING
        elif self.else_left and not self.then_left:
            b = MISSING
        elif a is MISSING or b is MISSING:
            place = self.frame.places(self.node)
            return Unusable(
                f"the variable '{name}' may not be assigned: only one side of the 'if' in line "
                f"{place[-1].line} assigns it; assign it on both sides or before",
            )
        if a is MISSING and b is MISSING:
            return Unusable(f"the variable '{name}' has no value here")
        return self._join(name, a, b)

    def _join(self, name: str, a: Any, b: Any) -> Any:
        if a is b or type(a) is Unusable:
            return a
        if type(b) is Unusable:
            return b
        if a is MISSING or b is MISSING:
            return self._lift(name, a, b)
        if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
            return self._tuple(name, a, b)
        common = _common_type(a, b)
        if common is not None:
            return self._result(*common, a, b)
        if not is_run_time(a) and not is_run_time(b) and _same_constant(a, b):
            return a
        return Unusable(self._conflict(name, a, b))

    def _conflict(self, name: str, a: Any, b: Any) -> str:
        if self.unless:
            a, b = b, a  # the order of the text
        if name == VALUE:
            return (
                f"the results of the 'return' statements differ in type: {type_name(a)} and "
                f"{type_name(b)}; convert one, as with astype"
            )
        what = "the value" if name == "$choice" else f"the variable '{name}'"
        line = self.frame.places(self.node)[-1].line
        return (
            f"{what} changes type in the branches of the condition in line {line}: {type_name(a)} "
            f"where it holds, {type_name(b)} where it does not; convert one, as with astype, or use "
            "two names"
        )

    def _tuple(self, name: str, a: tuple[Any, ...], b: tuple[Any, ...]) -> Any:
        entries = tuple(self._join(name, x, y) for x, y in zip(a, b, strict=True))
        return next((e for e in entries if type(e) is Unusable), entries)

    def _lift(self, name: str, a: Any, b: Any) -> Any:
        """A value that one side has, and the other does not need."""
        value = b if a is MISSING else a
        if isinstance(value, tuple):
            n = (MISSING,) * len(value)
            return self._tuple(name, *((n, value) if a is MISSING else (value, n)))
        if not isinstance(value, Tile) or id(value) in self.outside:
            return value
        return self._result(value.dtype, value.shape, a, b)

    def _result(self, dtype: DType, shape: Shape, a: Any, b: Any) -> Any:
        for value, other in ((a, b), (b, a)):
            if other is MISSING and id(value) in self.outside:
                return value
        if is_number(a) and is_number(b) and _same_constant(a, b):
            return a
        tile = Tile(None, dtype, shape)
        self.results.append(_Result(tile, a, b))
        return tile


def _same_constant(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return repr(a) == repr(b)  # tells 0.0 from -0.0, and NaN equals itself
    if isinstance(a, Tile | Array | LocalFunction):
        return False
    try:
        return bool(a == b)
    except Exception:  # whatever a user's __eq__ raises
        return False


def _common_type(a: Any, b: Any) -> tuple[DType, Shape] | None:
    """The type that both values have, or take as loosely typed constants; None if there is none."""
    if isinstance(a, Tile) and isinstance(b, Tile):
        return (a.dtype, a.shape) if a.dtype is b.dtype and a.shape == b.shape else None
    if isinstance(a, Tile) and is_number(b):
        return (a.dtype, ()) if not a.shape and _fits(b, a.dtype) else None
    if isinstance(b, Tile) and is_number(a):
        return _common_type(b, a)
    if is_number(a) and is_number(b):
        x, y = constant_dtype(a), constant_dtype(b)
        return (promote(x, y), ()) if x.category == y.category else None
    return None


def _fits(number: Any, dtype: DType) -> bool:
    try:
        return promote_constant(number, dtype) is dtype
    except TileError:
        return False


# ---------------------------------------------------------------------------------------------
# Loops


@dataclasses.dataclass(slots=True)
class _Slot:
    """One loop-carried scalar or tile. `loose` is the constant that it starts from, if it does."""

    dtype: DType
    shape: Shape
    loose: Any = None

    def matches(self, value: Any) -> bool:
        if isinstance(value, Tile):
            return value.dtype is self.dtype and value.shape == self.shape
        return is_number(value) and not self.shape and _fits(value, self.dtype)


@dataclasses.dataclass(slots=True)
class _Plan:
    """What is assumed of a loop.

    carried:   variable -> its value at the entry with a _Slot in the place of what changes
    excluded:  variables that have no usable value at the start of an iteration, and why
    exits:     the loop can be left by break or return
    result:    what the function returns from inside, likewise; MISSING if it does not
    """

    carried: dict[str, Any]
    excluded: dict[str, Unusable]
    exits: bool = False
    returns: bool = False
    result: Any = None


class _Loop:
    """The capture of one loop, common to `for` and `while`."""

    def __init__(self, frame: Frame, node: ast.For | ast.While) -> None:
        if node.orelse:
            word = "for" if isinstance(node, ast.For) else "while"
            raise TileSyntaxError(f"'else' of a '{word}' loop is not supported in tile code")
        self.frame = frame
        self.node = node
        self.before = frame.env
        self.line = frame.places(node)[-1].line
        self.assigned = list(assigned_names(node))
        self.plan = _Plan({}, {})
        for name in self.assigned:
            if name in self.before:
                self._plan_variable(name, self.before[name])

    # -- planning

    def _plan_variable(self, name: str, value: Any) -> None:
        template = _template(value)
        if template is None:
            if type(value) is Unusable:
                self.plan.excluded[name] = value
            return  # a compile-time value: it must stay the same
        self.plan.carried[name] = template

    def _exclude(self, name: str, message: str) -> None:
        self.plan.carried.pop(name, None)
        self.plan.excluded[name] = Unusable(message)

    def slots(self) -> list[_Slot]:
        return _leaves([*self.plan.carried.values(), self.plan.result])

    # -- one attempt

    def initial(self) -> list[Tile]:
        """The values at the entry, in the order of the slots; ops before the loop."""
        values = [self.before[name] for name in self.plan.carried]
        templates = list(self.plan.carried.values())
        tiles = [
            _as_tile(self.frame, value, Tile(None, slot.dtype, slot.shape))
            for template, entry in zip(templates, values, strict=True)
            for slot, value in _pairs(template, entry)
        ]
        constant = self.frame.emit.constant
        tiles += [constant(0, s.dtype, s.shape) for s in _leaves([self.plan.result])]
        if self.plan.exits:
            tiles.append(self.frame.emit.constant(False, bool_))
        if self.plan.returns:
            tiles.append(self.frame.emit.constant(False, bool_))
        return tiles

    def types(self) -> list[str]:
        flags = [bool_.mlir] * (self.plan.exits + self.plan.returns)
        return [tile_type(s.dtype, s.shape) for s in self.slots()] + flags

    def bind(self, values: Sequence[Any]) -> dict[str, Any]:
        """The variables at the start of an iteration, from the values of the slots."""
        env = dict(self.before)
        rest = iter(values)
        for name, template in self.plan.carried.items():
            env[name] = _rebuild(template, rest)
        env.update(self.plan.excluded)
        return env

    def run_body(self) -> None:
        frame = self.frame
        frame.loops += 1
        depth = frame.loops
        frame.env[f"$break{depth}"] = frame.env[f"$continue{depth}"] = False
        run_statements(frame, self.node.body)
        frame.loops -= 1

    def is_settled(self) -> bool:
        """Whether the body kept what the plan says; corrects the plan if not."""
        env, plan = self.frame.env, self.plan
        changes = 0
        returned, broke = env[RETURN], env[f"$break{self.frame.loops + 1}"]
        if (returned is not False or broke is not False) and not plan.exits:
            plan.exits = True
            changes += 1
        if returned is not False:
            changes += self._plan_result(env.get(VALUE))
        for name in self.assigned:
            if name in self.before and name not in plan.excluded:
                changes += self._check_variable(name, env.get(name, MISSING))
        return not changes

    def _plan_result(self, value: Any) -> bool:
        """Plans for a return from inside; whether that changes the plan."""
        plan = self.plan
        if not plan.returns:
            plan.returns = True
            plan.result = _Fixed(value) if (t := _template(value)) is None else t
            return True
        if isinstance(plan.result, _Fixed):
            if _same_constant(plan.result.value, value):
                return False
        elif _matches(plan.result, value):
            return False
        elif (better := _adopt(plan.result, value)) is not None:
            plan.result = better
            return True
        message = "the results of the 'return' statements differ in type"
        changed = not isinstance(plan.result, _Fixed) or type(plan.result.value) is not Unusable
        plan.result = _Fixed(Unusable(message))
        return changed

    def _check_variable(self, name: str, value: Any) -> bool:
        """Whether a variable breaks the plan, which is then corrected."""
        plan, entry = self.plan, self.before[name]
        if type(value) is Unusable or value is MISSING:
            message = getattr(value, "message", f"the variable '{name}' was deleted in the loop")
            self._exclude(name, message)
            return True
        if name not in plan.carried:
            if _same_constant(entry, value):
                return False
            self._exclude(
                name,
                f"the variable '{name}' changes in the loop in line {self.line} from "
                f"{describe(entry)} to {describe(value)}; only tiles, scalars and tuples of them "
                "can change in a loop that runs at run time",
            )
            return True
        template = plan.carried[name]
        if _matches(template, value):
            return False
        better = _adopt(template, value)
        if better is not None:
            plan.carried[name] = better
            return True
        self._exclude(
            name,
            f"the variable '{name}' changes type in the loop in line {self.line}: "
            f"{type_name(entry)} before it, {type_name(value)} after an iteration; make it "
            f"{_remedy(value)} before the loop",
        )
        return True

    def final(self) -> list[Tile]:
        """The values at the end of an iteration, in the order of the slots."""
        env, plan = self.frame.env, self.plan
        tiles = []
        for name, template in plan.carried.items():
            for slot, value in _pairs(template, env[name]):
                tiles.append(_as_tile(self.frame, value, Tile(None, slot.dtype, slot.shape)))
        if plan.returns:
            tiles += self._final_result(env)
        if plan.exits:
            broke = env[f"$break{self.frame.loops + 1}"]
            tiles.append(self._flag(self.frame.emit.binary("bitwise_or", broke, env[RETURN])))
        if plan.returns:
            tiles.append(self._flag(env[RETURN]))
        return tiles

    def _final_result(self, env: dict[str, Any]) -> list[Tile]:
        value = env.get(VALUE, MISSING)
        return [
            _as_tile(self.frame, MISSING if value is MISSING else v, Tile(None, s.dtype, s.shape))
            for s, v in _pairs(self.plan.result, value)
        ]

    def _flag(self, value: Any) -> Tile:
        return value if isinstance(value, Tile) else self.frame.emit.constant(value, bool_)

    # -- after the loop

    def leave(self, values: Sequence[Any]) -> None:
        """The variables after the loop, from the values of its results."""
        frame, plan = self.frame, self.plan
        env = self.bind(values)
        for name in self.assigned:
            if name not in self.before:
                env[name] = self._maybe_unassigned(name)
        if plan.returns:
            count = len(_leaves(list(plan.carried.values())))
            result = _rebuild(plan.result, iter(values[count:]))
            env[VALUE] = result
            env[RETURN] = Tile(values[-1], bool_, ())
        frame.env = env

    def _maybe_unassigned(self, name: str) -> Unusable:
        return Unusable(
            f"the variable '{name}' may not be assigned: it gets a value only in the loop in line "
            f"{self.line}, which may run zero times; assign it before the loop"
        )


@dataclasses.dataclass(slots=True)
class _Fixed:
    """In a template: a compile-time value that stays."""

    value: Any


def _template(value: Any) -> Any:
    """A value with slots for what may change; None for one that cannot be carried."""
    if isinstance(value, Tile):
        return _Slot(value.dtype, value.shape)
    if is_number(value):
        return _Slot(constant_dtype(value), (), value)
    if isinstance(value, tuple):
        parts = tuple(_template(v) for v in value)
        if all(p is None for p in parts):
            return None
        return tuple(_Fixed(v) if p is None else p for p, v in zip(parts, value, strict=True))
    return None


def _leaves(templates: Any) -> list[_Slot]:
    if isinstance(templates, _Slot):
        return [templates]
    if isinstance(templates, tuple | list):
        return [slot for t in templates for slot in _leaves(t)]
    return []


def _pairs(template: Any, value: Any) -> list[tuple[_Slot, Any]]:
    """Each slot of a template with what stands there in a value of its form."""
    if isinstance(template, _Slot):
        return [(template, value)]
    if isinstance(template, tuple):
        values = (MISSING,) * len(template) if value is MISSING else value
        return [pair for t, v in zip(template, values, strict=True) for pair in _pairs(t, v)]
    return []


def _rebuild(template: Any, values: Any) -> Any:
    if isinstance(template, _Slot):
        return Tile(next(values), template.dtype, template.shape)
    if isinstance(template, tuple):
        return tuple(_rebuild(t, values) for t in template)
    return template.value if isinstance(template, _Fixed) else template


def _matches(template: Any, value: Any) -> bool:
    if isinstance(template, _Slot):
        return template.matches(value)
    if isinstance(template, _Fixed):
        return _same_constant(template.value, value)
    return (
        isinstance(value, tuple)
        and len(value) == len(template)
        and all(_matches(t, v) for t, v in zip(template, value, strict=True))
    )


def _adopt(template: Any, value: Any) -> Any:
    """A template that starts from the same constants and has the type of `value`, or None."""
    if isinstance(template, _Slot):
        if template.matches(value):
            return template
        if template.loose is None:
            return None
        dtype = value.dtype if isinstance(value, Tile) and not value.shape else None
        if is_number(value):
            dtype = constant_dtype(value)
        if dtype is not None and _fits(template.loose, dtype):
            return _Slot(dtype, (), template.loose)
        return None
    if isinstance(template, tuple) and isinstance(value, tuple) and len(value) == len(template):
        parts = tuple(_adopt(t, v) for t, v in zip(template, value, strict=True))
        return None if any(p is None for p in parts) else parts
    return template if isinstance(template, _Fixed) and _matches(template, value) else None


def _remedy(value: Any) -> str:
    if isinstance(value, Tile) and value.shape:
        return f"a tile, as in ct.zeros({value.shape}, ct.{value.dtype}),"
    if isinstance(value, Tile):
        return f"ct.{value.dtype}(...)"
    return "one type"


@handles(ast.While)
def _while(frame: Frame, node: ast.While) -> None:
    loop = _Loop(frame, node)
    # The condition may assign nothing, so what it sees at first is what is there now.
    while True:
        frame.env = dict(loop.before)
        initial = loop.initial()
        types = loop.types()
        head = frame.builder.block(types)
        frame.builder.enter(head)
        frame.env = loop.bind(head.args)
        condition = _while_condition(loop, head.args)
        frame.builder.op("scf.condition", [condition.ir, *head.args], None, [])
        frame.builder.leave()
        body = frame.builder.block(types)
        frame.builder.enter(body)
        frame.env = loop.bind(body.args)
        loop.run_body()
        settled = loop.is_settled()
        if settled:
            frame.at(node)
            frame.builder.op("scf.yield", [t.ir for t in loop.final()], None, [])
        frame.builder.leave()
        if settled:
            break
    _finish_while(loop, initial, types, head, body)


def _while_condition(loop: _Loop, args: Sequence[Any]) -> Tile:
    frame, test = loop.frame, loop.node.test  # type: ignore[union-attr]
    value = evaluate(frame, test)
    frame.at(test)
    truth = truth_of(frame, value, "the condition of 'while'")
    if truth is True and not loop.plan.exits and not _may_exit(loop.node):
        raise TileValueError(
            "the condition of this 'while' is always true and nothing leaves the loop; expected "
            "a 'break' or a condition that changes",
            frame.places(test),
        )
    if loop.plan.exits:
        stop = Tile(args[len(loop.slots())], bool_, ())
        truth = frame.emit.binary("bitwise_and", frame.emit.logical_not(stop), truth)
    return truth if isinstance(truth, Tile) else frame.emit.constant(truth, bool_)


def _may_exit(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Break | ast.Return) for n in ast.walk(node))


def _finish_while(loop: _Loop, initial: list[Tile], types: list[str], head: Any, body: Any, extra: int = 0) -> None:
    frame = loop.frame
    frame.at(loop.node)
    frame.env = loop.before
    operands = [t.ir for t in initial]
    values = frame.builder.op("scf.while", operands, None, types, [head, body])
    values = () if values is None else values if isinstance(values, tuple) else (values,)
    loop.leave(values[extra:])


@handles(ast.For)
def _for(frame: Frame, node: ast.For) -> None:
    if not isinstance(node.target, ast.Name):
        raise TileSyntaxError("a loop has one variable: for i in range(...)", frame.places(node.target))
    bounds = evaluate(frame, node.iter)
    if not isinstance(bounds, Range):
        raise TileSyntaxError(
            f"a 'for' loop goes over range(...), found {describe(bounds)}",
            frame.places(node.iter),
        )
    frame.at(node.iter)
    try:
        count = _Count(frame, bounds)
    except TileError as error:
        error.places = error.places or frame.places(node.iter)
        raise
    loop = _Loop(frame, node)
    name = node.target.id
    loop.plan.carried.pop(name, None)
    while True:
        frame.env = dict(loop.before)
        frame.at(node)
        if loop.plan.exits:
            if _for_as_while(loop, count, name):
                break
        elif _plain_for(loop, count, name):
            break
    frame.env[name] = loop._maybe_unassigned(name)


def _plain_for(loop: _Loop, count: _Count, name: str) -> bool:
    """scf.for; False if the plan was wrong."""
    frame = loop.frame
    initial, types = loop.initial(), loop.types()
    body = frame.builder.block([count.dtype.mlir, *types])
    frame.builder.enter(body)
    index, *args = body.args
    frame.env = loop.bind(args)
    frame.env[name] = count.value(Tile(index, count.dtype, ()))
    loop.run_body()
    frame.env.pop(name, None)
    settled = loop.is_settled()
    if settled:
        frame.at(loop.node)
        frame.builder.op("scf.yield", [t.ir for t in loop.final()], None, [])
    frame.builder.leave()
    if not settled:
        return False
    frame.at(loop.node)
    operands = [count.lower.ir, count.upper.ir, count.step.ir, *(t.ir for t in initial)]
    values = frame.builder.op("scf.for", operands, None, types, [body])
    loop.leave(() if values is None else values if isinstance(values, tuple) else (values,))
    return True


def _for_as_while(loop: _Loop, count: _Count, name: str) -> bool:
    """A loop that can be left: scf.while that counts by itself; False if the plan was wrong."""
    frame, emit = loop.frame, loop.frame.emit
    initial = [count.lower, *loop.initial()]
    types = [count.dtype.mlir, *loop.types()]
    head = frame.builder.block(types)
    frame.builder.enter(head)
    index, *args = head.args
    more = emit.compare("less", Tile(index, count.dtype, ()), count.upper)
    stop = Tile(args[len(loop.slots())], bool_, ())
    more = emit.binary("bitwise_and", more, emit.logical_not(stop))
    frame.builder.op("scf.condition", [more.ir, *head.args], None, [])
    frame.builder.leave()
    body = frame.builder.block(types)
    frame.builder.enter(body)
    index, *args = body.args
    frame.env = loop.bind(args)
    position = Tile(index, count.dtype, ())
    frame.env[name] = count.value(position)
    loop.run_body()
    frame.env.pop(name, None)
    settled = loop.is_settled()
    if settled:
        frame.at(loop.node)
        following = emit.binary("add", position, count.step)
        frame.builder.op("scf.yield", [following.ir, *(t.ir for t in loop.final())], None, [])
    frame.builder.leave()
    if settled:
        _finish_while(loop, initial, types, head, body, extra=1)
    return settled


class _Count:
    """A range as an upward count: `lower` to `upper` by `step`, and the variable's value."""

    def __init__(self, frame: Frame, bounds: Range) -> None:
        emit = self.emit = frame.emit
        parts = [emit.index(b, "a bound of range") for b in (bounds.start, bounds.stop, bounds.step)]
        self.dtype = int64 if any(p.dtype is int64 for p in parts) else int32
        start, stop, step = (emit.cast(p, self.dtype) for p in parts)
        self.start: Tile | None = None
        self.lower, self.upper, self.step = start, stop, step
        if bounds.step == 0 if is_number(bounds.step) else False:
            raise TileValueError("the step of range must not be zero")
        if is_number(bounds.step) and bounds.step > 0:
            return
        self.start, self.by = start, step
        self.lower, self.step = emit.constant(0, self.dtype), emit.constant(1, self.dtype)
        self.upper = self._trips(start, stop, step, is_number(bounds.step))

    def _trips(self, start: Tile, stop: Tile, step: Tile, is_negative: bool) -> Tile:
        emit = self.emit
        down = emit.binary("cdiv", emit.binary("sub", start, stop), emit.unary("negative", step))
        if is_negative:
            return down
        up = emit.binary("cdiv", emit.binary("sub", stop, start), step)
        return emit.select(emit.compare("greater", step, 0), up, down)

    def value(self, position: Tile) -> Tile:
        if self.start is None:
            return position
        emit = self.emit
        return emit.binary("add", self.start, emit.binary("mul", position, self.by))


__all__ = ["branch", "choose", "run_body", "run_statements"]
