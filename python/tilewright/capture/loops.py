"""Loops: scf.for, or scf.while where a loop can be left early.

Which variables a loop carries, and as what type, is known only when its body has been captured. So
a body is captured under an assumption, the plan; if it turns out to be wrong, the block is thrown
away and the body captured again under a better one. Each failure makes the plan more general, so
that this ends.

A loop inside of another is captured again with it. The plan that it ended with is kept for that: where the variables
at its entry have the form that they had, it begins with that plan, and so is captured once. Without this, d loops in
each other would be captured 2^d times.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Sequence
from typing import Any

from ..dtype import bool_, int32, int64
from ..errors import TileError, TileSyntaxError, TileValueError
from ..structure import is_record, record_fields
from .branches import MISSING, as_tile, branch, same_constant
from .counting import Count
from .elements import elements
from .expressions import evaluate
from .frame import RETURN, VALUE, Frame
from .iteration import unrolled
from .operators import condition
from .source import assigned_names, is_read_later, is_read_round, reads
from .statements import handles, run_statements
from .static import iterated
from .templates import (
    Fixed,
    Slot,
    Tree,
    adopt,
    all_alike,
    fixed,
    leaves,
    matches,
    pairs,
    rebuild,
    template_of,
    with_slots,
)
from .values import Array, LocalFunction, Range, Tile, Unusable, describe, is_run_time, tile_type, type_name
from .walking import walk, walks

_MOST_PLANS = 32  # kept of one loop: an unrolled loop around it enters it with other constants each time


@dataclasses.dataclass(slots=True)
class _Plan:
    """What is assumed of a loop.

    carried:   variable -> its value at the entry with a Slot in the place of what changes
    made:      variables that have no value at the entry, but one behind the loop, which surely runs, likewise
    excluded:  variables that have no usable value at the start of an iteration, and why
    exits:     the loop can be left by break or return
    result:    what the function returns from inside, likewise; MISSING if it does not
    """

    carried: dict[str, Any]
    excluded: dict[str, Unusable]
    exits: bool = False
    returns: bool = False
    result: Any = None
    made: dict[str, Any] = dataclasses.field(default_factory=dict)


class _Loop:
    """The capture of one loop, common to `for` and `while`."""

    def __init__(self, frame: Frame, node: ast.For | ast.While) -> None:
        self.frame = frame
        self.node = node
        self.before = frame.env
        self.line = frame.places(node)[-1].line
        target = [node.target.id] if isinstance(node, ast.For) and isinstance(node.target, ast.Name) else []
        self.assigned = list(dict.fromkeys((*target, *assigned_names(node))))
        self.plan = _Plan({}, {})
        self.endless = False  # whether only a `break` or a `return` ends it
        self.runs = False  # whether its body runs at least once
        self.breaks = False
        self.left: Tile | None = None  # behind the loop: whether a `break` or a `return` has left it
        if frame.capture.rules.fills:
            self.before = {**self.before, **dict.fromkeys(self._filled(), False)}
        for name in self.assigned:
            if name in self.before:
                self._plan_variable(name, self.before[name])
        self._recall()

    def _filled(self) -> list[str]:
        """Variables that are read where the loop may not have assigned them; False is a 0 of any type."""
        unknown = [
            name for name in self.assigned if isinstance(self.before.get(name, MISSING), Unusable | type(MISSING))
        ]
        tree, node = self.frame.source.tree, self.node
        return [
            name
            for name in unknown
            if is_read_later(tree, node, name) or is_read_round(node, name) or reads(node.orelse, name)
        ]

    # -- planning

    def _visible(self) -> list[dict[str, Any]]:
        """The variables at the entry: those of the function, and of the functions around it."""
        around = [self.before]
        frame = self.frame.lexical
        while frame is not None:
            around.append(dict(frame.env))
            frame = frame.lexical
        return around

    def _kept(self) -> list[tuple[list[dict[str, Any]], _Plan]]:
        """The plans that earlier captures of this loop ended with, and what was visible at the entry."""
        kept: list[tuple[list[dict[str, Any]], _Plan]]
        kept = self.frame.capture.plans.setdefault((self.node, self.frame.callers), [])
        return kept

    def _recall(self) -> None:
        """Begins with the plan that an earlier capture ended with, if it began as this one does."""
        visible = self._visible()
        for then, plan in reversed(self._kept()):
            if all_alike(then, visible):
                fresh = self.plan.carried
                carried = {name: with_slots(fresh.get(name, t), t) for name, t in plan.carried.items()}
                copies = {"excluded": dict(plan.excluded), "made": dict(plan.made)}
                self.plan = dataclasses.replace(plan, carried=carried, **copies)
                return

    def _keep(self) -> None:
        kept = self._kept()
        kept.append((self._visible(), self.plan))
        del kept[:-_MOST_PLANS]

    def _plan_variable(self, name: str, value: Any) -> None:
        template = self._template(value)
        if template is None:
            if type(value) is Unusable:
                self.plan.excluded[name] = value
            return  # a compile-time value: it must stay the same
        self.plan.carried[name] = template

    def _template(self, value: Any) -> Any:
        rules = self.frame.capture.rules
        template = template_of(value, rules.simt)
        return template if self.frame.of_library else rules.prepared(template)

    def _exclude(self, name: str, message: str) -> None:
        self.plan.carried.pop(name, None)
        self.plan.excluded[name] = Unusable(message)

    def slots(self) -> list[Slot]:
        return leaves([*self.plan.carried.values(), *self.plan.made.values(), self.plan.result])

    # -- one attempt

    def initial(self) -> list[Tile]:
        """The values at the entry, in the order of the slots; ops before the loop."""
        values = [self.before[name] for name in self.plan.carried]
        templates = list(self.plan.carried.values())
        tiles = [
            as_tile(self.frame, value, Tile(None, slot.dtype, slot.shape))
            for template, entry in zip(templates, values, strict=True)
            for slot, value in pairs(template, entry)
        ]
        constant = self.frame.emit.constant
        tiles += [constant(0, s.dtype, s.shape) for s in leaves([*self.plan.made.values(), self.plan.result])]
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
            env[name] = rebuild(template, rest)
        env.update(self.plan.excluded)
        return env

    def run_body(self) -> None:
        frame = self.frame
        frame.loops += 1
        depth = frame.loops
        frame.env[f"$break{depth}"] = frame.env[f"$continue{depth}"] = False
        frame.breaks[depth] = []
        frame.loop_types.append({name: t.dtype for name, t in self.plan.carried.items() if isinstance(t, Slot)})
        run_statements(frame, self.node.body)
        frame.loop_types.pop()
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
        changes += self._plan_made()
        if not changes:
            changes += self._plan_first_values()
        if not changes:
            self._keep()
        return not changes

    def _plan_made(self) -> bool:
        """Plans for what the body assigns whichever way it goes and a program reads later; whether that is new."""
        plan, env = self.plan, self.frame.env
        made = {}
        if self.runs and not plan.exits:
            names = [n for n in self.assigned if self.before.get(n, MISSING) is MISSING and n in env]
            names = [n for n in names if is_read_later(self.frame.source.tree, self.node, n)]
            made = {n: t for n in names if _can_leave(t := self._template(env[n]) or Fixed(env[n]))}
        same = made.keys() == plan.made.keys() and all(_fits(t, env[n]) for n, t in plan.made.items())
        if not same:
            plan.made = made
        return not same

    def _at_breaks(self, name: str) -> list[Any]:
        """What a variable is at each `break` of a loop that nothing else ends."""
        breaks = self.frame.breaks[self.frame.loops + 1] if self.endless else []
        return [env.get(name, MISSING) for env in breaks]

    def _plan_first_values(self) -> bool:
        """Plans for variables that only the loop assigns, on each way out of it; whether there is one."""
        found = {}
        for name in self.assigned:
            first, *others = [None] if name in self.before else self._at_breaks(name) or [None]
            template = self._template(first) if is_read_later(self.frame.source.tree, self.node, name) else None
            for value in others:
                template = None if template is None else adopt(template, value)
            if template is not None:
                found[name] = template
        self.plan.carried |= found
        self.before = {**self.before, **dict.fromkeys(found, MISSING)}
        return bool(found)

    def _plan_result(self, value: Any) -> bool:
        """Plans for a return from inside; whether that changes the plan."""
        plan = self.plan
        if not plan.returns:
            plan.returns = True
            plan.result = Fixed(value) if (t := self._template(value)) is None else t
            return True
        if isinstance(plan.result, Fixed):
            if same_constant(plan.result.value, value):
                return False
        elif matches(plan.result, value):
            return False
        elif (better := adopt(plan.result, value)) is not None:
            plan.result = better
            return True
        message = "the results of the 'return' statements differ in type"
        changed = not isinstance(plan.result, Fixed) or type(plan.result.value) is not Unusable
        plan.result = Fixed(Unusable(message))
        return changed

    def _check_variable(self, name: str, value: Any) -> bool:
        """Whether a variable breaks the plan, which is then corrected."""
        plan, entry = self.plan, self.before[name]
        if type(value) is Unusable or value is MISSING:
            message = getattr(value, "message", f"the variable '{name}' was deleted in the loop")
            self._exclude(name, message)
            return True
        if name not in plan.carried:
            if same_constant(entry, value):
                return False
            better = adopt(fixed(entry), value)
            if better is not None:
                plan.carried[name] = better
                return True
            self._exclude(
                name,
                f"the variable '{name}' changes in the loop in line {self.line} from "
                f"{describe(entry)} to {describe(value)}; tiles, scalars, arrays of one dtype "
                "and as many dimensions (no slices), and tuples of them can change in a loop that runs at run time",
            )
            return True
        template = plan.carried[name]
        if matches(template, value):
            return False
        better = adopt(template, value)
        if better is not None:
            plan.carried[name] = better
            return True
        self._exclude(
            name,
            f"the variable '{name}' changes type in the loop in line {self.line}: "
            f"{type_name(entry)} before it, {type_name(value)} after an iteration; make it "
            f"{_remedy(value, self.frame)} before the loop",
        )
        return True

    def final(self) -> list[Tile]:
        """The values at the end of an iteration, in the order of the slots."""
        env, plan = self.frame.env, self.plan
        tiles = []
        for name, template in (plan.carried | plan.made).items():
            for slot, value in pairs(template, env[name]):
                tiles.append(as_tile(self.frame, value, Tile(None, slot.dtype, slot.shape)))
        if plan.returns:
            tiles += self._final_result(env)
        if plan.exits:
            broke = env[f"$break{self.frame.loops + 1}"]
            self.breaks = broke is not False
            tiles.append(self._flag(self.frame.emit.binary("bitwise_or", broke, env[RETURN])))
        if plan.returns:
            tiles.append(self._flag(env[RETURN]))
        return tiles

    def _final_result(self, env: dict[str, Any]) -> list[Tile]:
        value = env.get(VALUE, MISSING)
        return [
            as_tile(self.frame, MISSING if value is MISSING else v, Tile(None, s.dtype, s.shape))
            for s, v in pairs(self.plan.result, value)
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
        rest = iter(values[len(leaves(list(plan.carried.values()))) :])
        env |= {name: rebuild(template, rest) for name, template in plan.made.items()}
        for name in self.assigned:
            first, *others = self._at_breaks(name) or [MISSING]
            if is_constant(first) and all(same_constant(first, value) for value in others):
                env[name] = first
        if plan.exits:
            self.left = Tile(values[len(self.slots())], bool_, ())
        if plan.returns:
            env[VALUE] = rebuild(plan.result, rest)
            env[RETURN] = Tile(values[-1], bool_, ()) if self.breaks or not self.endless else True
        frame.env = env

    def run_orelse(self) -> None:
        """The `else` of the loop, which runs where no `break` and no `return` has left it."""
        frame, nodes = self.frame, self.node.orelse
        if not nodes:
            return
        if self.left is None:
            run_statements(frame, nodes)
            return

        def returned() -> None:
            frame.env[RETURN] = True

        only_returns = returned if self.plan.returns and not self.breaks else None  # what has left it
        frame.at(nodes[0])
        branch(frame, frame.emit.logical_not(self.left), lambda: run_statements(frame, nodes), only_returns, nodes[0])

    def _maybe_unassigned(self, name: str) -> Unusable:
        why = "" if self.runs or self.endless else ", which may run zero times"
        return Unusable(
            f"the variable '{name}' may not be assigned: it gets a value only in the loop in line "
            f"{self.line}{why}; assign it before the loop"
        )


def _can_leave(template: Any) -> bool:
    """Whether all that a value holds is constant or the result of a loop: views of arrays belong to the iteration."""
    if isinstance(template, Tree):
        return all(map(_can_leave, template.parts))
    if isinstance(template, Fixed):
        return type(template.value) is not Unusable and not is_run_time(template.value)
    return isinstance(template, Slot)


def _fits(template: Any, value: Any) -> bool:
    return same_constant(template.value, value) if isinstance(template, Fixed) else matches(template, value)


def is_constant(value: Any) -> bool:
    return not is_run_time(value) and not isinstance(value, Unusable | type(MISSING) | LocalFunction)


def _remedy(value: Any, frame: Frame) -> str:
    if isinstance(value, Tile) and value.shape:
        return f"a tile, as in ct.zeros({value.shape}, ct.{value.dtype}),"
    if isinstance(value, Tile):
        return f"{'device' if frame.capture.rules.simt else 'ct'}.{value.dtype}(...)"
    return "one type"


_UNROLLED = "a loop over constants, as in ct.static_iter, is unrolled"


@handles(ast.While)
def _while(frame: Frame, node: ast.While) -> None:
    frame.refuse_in_combiner("a loop", _UNROLLED)
    if any(isinstance(n, ast.NamedExpr) for n in ast.walk(node.test)):
        node = _asked_inside(frame, node)
    elif not frame.capture.rules.simt:
        node = _asked_first(node)
    loop = _Loop(frame, node)
    # The condition assigns nothing, so what it sees at first is what is there now.
    while True:
        frame.env = dict(loop.before)
        initial = loop.initial()
        types = loop.types()
        head = frame.builder.block(types)
        frame.builder.enter(head)
        frame.env = loop.bind(head.args)
        goes_on = _while_condition(loop, head.args)
        frame.builder.op("scf.condition", [goes_on.ir, *head.args], None, [])
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
    loop.run_orelse()


def _asked_inside(frame: Frame, node: ast.While) -> ast.While:
    """`while (x := f()) > 0` as a loop that asks at the start of each iteration: what the condition assigns is then the
    body's. Made once of each loop, since plans are kept by node."""
    made: ast.While | None = getattr(node, "_tw_asked_inside", None)
    if made is None:
        leaves_outer = [n for s in node.orelse for n in ast.walk(s) if isinstance(n, ast.Break | ast.Continue)]
        if leaves_outer:
            raise TileSyntaxError(
                "the 'else' of a loop whose condition assigns by ':=' cannot leave another one; assign in the body",
                frame.places(leaves_outer[0]),
            )
        ends = [*node.orelse, ast.copy_location(ast.Break(), node.test)]
        asks = ast.If(ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test), ends, [])
        true = ast.copy_location(ast.Constant(True), node.test)
        made = ast.While(true, [ast.copy_location(asks, node.test), *node.body], [])
        node._tw_asked_inside = ast.copy_location(made, node)  # type: ignore[attr-defined]
    return made


def _asked_first(node: ast.While) -> ast.While:
    """`while True: if k >= n: break` as `while not k >= n`, which counts where k does. Made once of each loop."""
    asks, *rest = node.body
    forever = isinstance(node.test, ast.Constant) and node.test.value in (True, 1) and not node.orelse
    if not forever or not rest or not isinstance(asks, ast.If) or asks.orelse:
        return node
    if len(asks.body) > 1 or not isinstance(asks.body[0], ast.Break):
        return node
    read = {n.id for n in ast.walk(asks.test) if isinstance(n, ast.Name)}
    if read.isdisjoint(assigned_names(node)) or any(isinstance(n, ast.NamedExpr) for n in ast.walk(asks.test)):
        return node  # a constant may keep the compiler from what is behind it
    made: ast.While | None = getattr(node, "_tw_asked_first", None)
    if made is None:
        test = ast.copy_location(ast.UnaryOp(ast.Not(), asks.test), asks.test)
        made = ast.copy_location(ast.While(test, rest, []), node)
        made._tw_word = "if"  # type: ignore[attr-defined]
        node._tw_asked_first = made  # type: ignore[attr-defined]
    return made


def _while_condition(loop: _Loop, args: Sequence[Any]) -> Tile:
    frame, test = loop.frame, loop.node.test  # type: ignore[union-attr]
    truth = condition(frame, test, f"the condition of '{getattr(loop.node, '_tw_word', 'while')}'")
    loop.endless = truth is True
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
    try:
        static = iterated(frame, node.iter)
        bounds = evaluate(frame, node.iter) if static is None else tuple(static)
        frame.at(node.iter)
        if not isinstance(bounds, Range) and walks(frame, [bounds]):
            walk(frame, node, bounds)
            return
        if not isinstance(bounds, Range):
            unrolled(frame, node, elements(frame, bounds, "a 'for' loop"))
            return
        count = Count(frame, bounds, node)
    except TileError as error:
        error.places = error.places or frame.places(node.iter)
        raise
    if not isinstance(node.target, ast.Name):
        told = "a loop over range(...) has one variable, found several; enumerate and zip give pairs"
        raise TileSyntaxError(told, frame.places(node.target))
    if _walks_arrays(frame, node, bounds, node.target.id):
        numbers = elements(frame, bounds, "a 'for' loop over arrays")
        unrolled(frame, node, [_numbered(frame, number) for number in numbers])
        return
    if _known_count(bounds) == 0 and not frame.capture.rules.fills:  # its body may have no meaning: xs[i] of no arrays
        run_statements(frame, node.orelse)
        return
    loop = _Loop(frame, node)
    loop.runs = bool(_known_count(bounds))
    name = node.target.id
    while True:
        frame.env = dict(loop.before)
        frame.at(node)
        if loop.plan.exits:
            if _for_as_while(loop, count, name):
                break
        elif _plain_for(loop, count, name):
            break
    if type(loop.before.get(name)) is Unusable:
        frame.env[name] = loop._maybe_unassigned(name)
    loop.run_orelse()


def _known_count(bounds: Range) -> int | None:
    """How many numbers a range has, where that is known."""
    known = [n for n in (bounds.start, bounds.stop, bounds.step) if type(n) is int]
    return len(range(*known)) if len(known) == 3 and known[2] != 0 else None


_MOST_ARRAYS = 64  # that a loop is unrolled over: as many as a launch takes


def _walks_arrays(frame: Frame, node: ast.For, bounds: Range, name: str) -> bool:
    """Whether each iteration is about an array of its own: `for i in range(len(xs))` with an `xs[i]` in the body."""
    if not all(type(n) is int for n in (bounds.start, bounds.stop, bounds.step)) or not bounds.step:
        return False
    if len(range(bounds.start, bounds.stop, bounds.step)) > _MOST_ARRAYS:
        return False
    indexed = (n for statement in node.body for n in ast.walk(statement) if isinstance(n, ast.Subscript))
    return any(_is_name(n.slice, name) and _holds_arrays(_looked_up(frame, n.value)) for n in indexed)


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _looked_up(frame: Frame, node: ast.expr) -> Any:
    """What a name or a field of a record stands for, where that is known without doing anything."""
    if isinstance(node, ast.Name):
        return frame.env.get(node.id)
    if isinstance(node, ast.Attribute):
        holder = _looked_up(frame, node.value)
        return record_fields(holder).get(node.attr) if is_record(holder) else None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        holder = _looked_up(frame, node.value)
        try:
            return holder[node.slice.value] if isinstance(holder, tuple | dict) else None  # type: ignore[index]
        except (LookupError, TypeError):
            return None
    return None


def _holds_arrays(value: Any) -> bool:
    return isinstance(value, tuple) and any(isinstance(v, Array) for v in value)


def _numbered(frame: Frame, number: int) -> Tile:
    """The variable of an unrolled loop, of the type that it has in others."""
    dtype = int32 if int32.min <= number <= int32.max else int64
    return dataclasses.replace(frame.emit.constant(number, dtype), known=number)


def _plain_for(loop: _Loop, count: Count, name: str) -> bool:
    """scf.for; False if the plan was wrong."""
    frame = loop.frame
    frame.refuse_in_combiner("a loop", _UNROLLED)
    initial, types = loop.initial(), loop.types()
    body = frame.builder.block([count.dtype.mlir, *types])
    frame.builder.enter(body)
    index, *args = body.args
    frame.env = loop.bind(args)
    frame.env[name] = frame.capture.rules.counted(frame.emit, count.variable_at(Tile(index, count.dtype, ())))
    loop.run_body()
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


def _for_as_while(loop: _Loop, count: Count, name: str) -> bool:
    """A loop that can be left: scf.while that counts by itself; False if the plan was wrong."""
    frame, emit = loop.frame, loop.frame.emit
    frame.refuse_in_combiner("a loop", _UNROLLED)
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
    frame.env[name] = frame.capture.rules.counted(frame.emit, count.variable_at(position))
    loop.run_body()
    settled = loop.is_settled()
    if settled:
        frame.at(loop.node)
        frame.builder.op("scf.yield", [count.following(position).ir, *(t.ir for t in loop.final())], None, [])
    frame.builder.leave()
    if settled:
        _finish_while(loop, initial, types, head, body, extra=1)
    return settled
