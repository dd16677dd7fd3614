"""Any kernel in other words: rewritings of its text that compute the same. None of them knows a kernel.

    rewritten(swiglu, "while", folder)    # another kernel; None where nothing in it can be said so

`show` prints the plan of each kernel of the zoo, and of its rewritings those that have another one:

    PYTHONPATH=python python test/spellings/rewrite.py [PART OF A NAME…]
"""

from __future__ import annotations

import ast
import copy
import inspect
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2] / "tools")]

# ---- syntax ---------------------------------------------------------------------------------------------------------


def is_call(node: Any, *names: str) -> bool:
    """Of ct.NAME."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names


def calls_in(node: ast.AST, *names: str) -> list[Any]:
    return [x for x in ast.walk(node) if is_call(x, *names)]


def argument(call: ast.Call, position: int, name: str) -> Any:
    given = [keyword.value for keyword in call.keywords if keyword.arg == name]
    return (given or call.args[position : position + 1] or [None])[0]


class Fill(ast.NodeTransformer):
    """Names that stand for parts."""

    def __init__(self, parts: dict[str, Any]) -> None:
        self.parts = parts

    def visit_Name(self, node: ast.Name) -> Any:
        return copy.deepcopy(self.parts[node.id]) if node.id in self.parts and isinstance(node.ctx, ast.Load) else node


def statements(text: str, **parts: Any) -> list[Any]:
    return [Fill(parts).visit(x) for x in ast.parse(textwrap.dedent(text)).body]


def expression(text: str, **parts: Any) -> Any:
    return statements(text, **parts)[0].value


def names_in(node: ast.AST, *kinds: type) -> set[str]:
    return {
        x.id for x in ast.walk(node) if isinstance(x, ast.Name) and isinstance(x.ctx, kinds or (ast.Load, ast.Store))
    }


def is_load(stmt: Any) -> bool:
    """NAME = something of ct.load"""
    return (
        isinstance(stmt, ast.Assign)
        and isinstance(stmt.targets[0], ast.Name)
        and bool(calls_in(stmt.value, "load"))
        and not calls_in(stmt.value, "mma", "store")
    )


def has_zeros_outside(load: ast.Call) -> bool:
    mode = argument(load, 3, "padding_mode")
    plain = {keyword.arg for keyword in load.keywords} <= {"index", "shape", "padding_mode"}
    return mode is not None and "ZERO" in ast.unparse(mode) and plain


class Rewriting(ast.NodeTransformer):
    changed = 0
    parameters: tuple[str, ...] = ()  # integers that the kernel takes besides

    @staticmethod
    def launched(grid: Any, arguments: tuple[Any, ...]) -> tuple[Any, Any]:
        """The launch that does the same."""
        return grid, arguments

    def done(self, node: Any) -> Any:
        self.changed += 1
        return node


# ---- loops ----------------------------------------------------------------------------------------------------------


class Loops(Rewriting):
    """for NAME in range(FIRST, END), which nothing leaves."""

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        call = node.iter
        if not isinstance(call, ast.Call) or ast.unparse(call.func) != "range" or len(call.args) > 2:
            return node
        if any(isinstance(x, ast.Break | ast.Continue | ast.Return) for x in ast.walk(node)):
            return node
        first, end = [ast.Constant(0), *call.args][-2:]
        return self.done(self.spelled(ast.unparse(node.target), first, end, node.body))

    def spelled(self, name: str, first: Any, end: Any, body: list[Any]) -> list[Any]:
        raise AssertionError


class While(Loops):
    def spelled(self, name: str, first: Any, end: Any, body: list[Any]) -> list[Any]:
        text = f"{name}, end_of_{name} = first, end\nwhile {name} < end_of_{name}:\n    {name} += 1"
        start, loop = statements(text, first=first, end=end)
        loop.body = [*body, *loop.body]
        return [start, loop]


class Left(Loops):
    """A loop that a test in it leaves. The body stands in front of statement `at` of the loop."""

    text = ""
    at = 0

    def spelled(self, name: str, first: Any, end: Any, body: list[Any]) -> list[Any]:
        *before, loop = statements(self.text.replace("NAME", name), first=first, end=end)
        loop.body[self.at : self.at] = body
        return [*before, loop]


class Forever(Left):
    """By a test at its head."""

    text = """
        NAME = first
        end_of_NAME = end
        while True:
            if NAME >= end_of_NAME:
                break
            NAME += 1
    """
    at = 1


class Until(Left):
    """By one at its end; there is a step."""

    text = """
        NAME = first
        end_of_NAME = end
        while True:
            NAME += 1
            if NAME >= end_of_NAME:
                break
    """


class Met(Left):
    """The same, tested before the count."""

    text = """
        NAME = first
        last_of_NAME = (end) - 1
        while True:
            if NAME == last_of_NAME:
                break
            NAME += 1
    """


class Stopped(Left):
    """A loop of many steps, by a test at its head."""

    text = """
        end_of_NAME = end
        for NAME in range(first, 1 << 30):
            if NAME >= end_of_NAME:
                break
    """
    at = 1


class Branched(Loops):
    """The same loop in both branches of a condition."""

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        (branch,) = statements("if ct.bid(0) % 2 == 0:\n    pass\nelse:\n    pass")
        branch.body, branch.orelse = [node], [copy.deepcopy(node)]
        return self.done(branch)


class Step(Loops):
    def spelled(self, name: str, first: Any, end: Any, body: list[Any]) -> list[Any]:
        text = f"for at_{name} in range((first) * 32, (end) * 32, 32):\n    {name} = at_{name} // 32"
        (loop,) = statements(text, first=first, end=end)
        loop.body += body
        return [loop]


class First(Loops):
    """The first step in front of the loop; there is one."""

    def spelled(self, name: str, first: Any, end: Any, body: list[Any]) -> list[Any]:
        (loop,) = statements(f"for {name} in range((first) + 1, end):\n    pass", first=first, end=end)
        loop.body = body
        return [*statements(f"{name} = first", first=first), *copy.deepcopy(body), loop]


class Last(Loops):
    """The last step behind the loop; there is one."""

    def spelled(self, name: str, first: Any, end: Any, body: list[Any]) -> list[Any]:
        loop, last = statements(
            f"for {name} in range(first, (end) - 1):\n    pass\n{name} = (end) - 1", first=first, end=end
        )
        loop.body = body
        return [loop, last, *copy.deepcopy(body)]


class Two(Loops):
    """Two steps in one; behind the end there are zeros, which add nothing."""

    def spelled(self, name: str, first: Any, end: Any, body: list[Any]) -> list[Any]:
        text = (
            f"for two_{name} in range(first, end, 2):\n    {name} = two_{name}\n    pass\n    {name} = two_{name} + 1"
        )
        (loop,) = statements(text, first=first, end=end)
        loop.body = [loop.body[0], *body, loop.body[2], *copy.deepcopy(body)]
        return [loop]

    def visit_For(self, node: ast.For) -> Any:
        return super().visit_For(node) if all(map(self.adds_nothing, node.body)) else node

    def adds_nothing(self, stmt: Any) -> bool:
        """Where all that it loads is zero: a load, or a sum of products."""
        loads = calls_in(stmt, "load", "gather")
        sums = is_call(getattr(stmt, "value", None), "mma") and ast.unparse(stmt.value.args[2]) == ast.unparse(
            stmt.targets[0]
        )
        zeros = is_load(stmt) and is_call(stmt.value, "load") and has_zeros_outside(stmt.value)
        return zeros or (sums and not loads)


# ---- sums of products -----------------------------------------------------------------------------------------------


class Zeros(Rewriting):
    """acc = acc + mma(a, b, zeros)"""

    def visit_Assign(self, node: ast.Assign) -> Any:
        into = argument(node.value, 2, "acc") if is_call(node.value, "mma") else None
        if not isinstance(into, ast.Name) or into.id != ast.unparse(node.targets[0]) or node.value.keywords:  # type: ignore[attr-defined]
            return node
        node.value.args[2] = expression("ct.zeros(acc.shape, acc.dtype)", acc=into)  # type: ignore[attr-defined]
        return self.done(self.added(into.id, node.value))

    def added(self, name: str, product: ast.expr) -> ast.stmt:
        return statements(f"{name} = {name} + product", product=product)[0]


class Added(Zeros):
    """acc += mma(a, b, zeros)"""

    def added(self, name: str, product: ast.expr) -> ast.stmt:
        return statements(f"{name} += product", product=product)[0]


class Transposed(Rewriting):
    """Sums of products of matrices as their transposes, which are transposed back behind the loop."""

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        sums = [x for x in node.body if self.is_sum(x) and self.stands_alone(x.targets[0].id, node)]
        if not sums:
            return node
        for x in sums:
            a, b, acc = x.value.args
            x.value = expression("ct.mma(ct.transpose(b), ct.transpose(a), c)", a=a, b=b, c=acc)
        turned = [statements(f"{x.targets[0].id} = ct.transpose({x.targets[0].id})")[0] for x in sums]
        return self.done([*turned, node, *copy.deepcopy(turned)])

    def is_sum(self, stmt: Any) -> bool:
        """NAME = mma(a, b, NAME)"""
        return (
            isinstance(stmt, ast.Assign)
            and is_call(stmt.value, "mma")
            and len(stmt.value.args) == 3  # type: ignore[attr-defined]
            and ast.unparse(stmt.value.args[2]) == ast.unparse(stmt.targets[0])  # type: ignore[attr-defined]
        )

    def stands_alone(self, name: str, loop: ast.For) -> bool:
        return sum(isinstance(x, ast.Name) and x.id == name for x in ast.walk(loop)) == 2


class Batched(Rewriting):
    """Products of matrices as those of a batch of one."""

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if not is_call(node, "mma") or len(node.args) != 3 or node.keywords:
            return node
        text = "ct.mma((a)[None, :, :], (b)[None, :, :], (c)[None, :, :]).reshape((c).shape)"
        return self.done(expression(text, a=node.args[0], b=node.args[1], c=node.args[2]))


# ---- accesses -------------------------------------------------------------------------------------------------------


def elements(index: Any, extents: list[Any]) -> list[Any] | None:
    """The indices of a tile's elements, a tile for each axis."""
    if not isinstance(index, ast.Tuple) or len(index.elts) != len(extents):
        return None

    def along(axis: int) -> Any:
        cut = ", ".join(":" if d == axis else "None" for d in range(len(extents)))
        text = f"((i) * (t) + ct.arange(t, dtype=ct.int32))[{cut}]"
        return expression(text, i=index.elts[axis], t=extents[axis])

    return [along(axis) for axis in range(len(extents))]


class Gather(Rewriting):
    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        shape = argument(node, 2, "shape")
        if not is_call(node, "load") or not has_zeros_outside(node) or not isinstance(shape, ast.Tuple):
            return node
        at = elements(argument(node, 1, "index"), shape.elts)
        return self.done(self.gathered(node.args[0], at)) if at else node

    def gathered(self, array: Any, at: list[Any]) -> Any:
        return expression("ct.gather(a, i)", a=array, i=ast.Tuple(at, ast.Load()))


class Masked(Gather):
    """With a mask that says what the array's bounds say."""

    def gathered(self, array: Any, at: list[Any]) -> Any:
        mask = expression("(i) < a.shape[0]", i=at[0], a=array)
        for d in range(1, len(at)):
            mask = expression(f"(m) & ((i) < a.shape[{d}])", m=mask, i=at[d], a=array)
        return expression("ct.gather(a, i, mask=m)", a=array, i=ast.Tuple(at, ast.Load()), m=mask)


class Counted(Loops):
    """Elements in place of tiles: the loop goes on by as many as a tile has, and gathers count on from there."""

    def visit_For(self, node: ast.For) -> Any:
        name = ast.unparse(node.target)
        loads = [call for call in calls_in(node, "load") if name in names_in(call)]
        extents = {ast.unparse(extent) for call in loads for extent in self.along(call, name)}
        told = sum(isinstance(x, ast.Name) and x.id == name for x in ast.walk(node))
        if (
            not all(self.along(call, name) for call in loads)
            or len(extents) != 1
            or told != 1 + len(loads)
            or not all(map(has_zeros_outside, loads))
        ):
            return self.generic_visit(node)
        self.extent, self.name = ast.parse(extents.pop(), mode="eval").body, name
        return super().visit_For(node)

    def along(self, load: Any, name: str) -> list[Any]:
        """What the tile has along the axis that is told by the name alone."""
        index, shape = argument(load, 1, "index"), argument(load, 2, "shape")
        if not isinstance(index, ast.Tuple) or not isinstance(shape, ast.Tuple):
            return []
        return [t for i, t in zip(index.elts, shape.elts, strict=True) if ast.unparse(i) == name]

    def spelled(self, name: str, first: Any, end: Any, body: list[Any]) -> list[Any]:
        text = f"for {name} in range((first) * (t), (end) * (t), t):\n    pass"
        (loop,) = statements(text, first=first, end=end, t=self.extent)
        loop.body = [Counting(name).visit(x) for x in body]
        return [loop]


class Counting(ast.NodeTransformer):
    def __init__(self, name: str) -> None:
        self.name = name

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if not is_call(node, "load") or self.name not in names_in(node):
            return node
        index, shape = argument(node, 1, "index"), argument(node, 2, "shape")
        at = elements(index, shape.elts) or []
        for axis, i in enumerate(index.elts):
            if ast.unparse(i) == self.name:
                at[axis] = Fill({"at": i, "t": shape.elts[axis]}).visit(self.counted(axis, len(at)))
        return expression("ct.gather(a, i)", a=node.args[0], i=ast.Tuple(at, ast.Load()))

    def counted(self, axis: int, rank: int) -> Any:
        cut = ", ".join(":" if d == axis else "None" for d in range(rank))
        return expression(f"(at + ct.arange(t, dtype=ct.int32))[{cut}]")


class Scatter(Rewriting):
    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        index, tile = argument(node, 1, "index"), argument(node, 2, "tile")
        if not is_call(node, "store") or not isinstance(index, ast.Tuple) or len(node.args) + len(node.keywords) != 3:
            return node
        at = elements(index, [expression(f"(x).shape[{d}]", x=tile) for d in range(len(index.elts))])
        return self.done(expression("ct.scatter(a, i, x)", a=node.args[0], i=ast.Tuple(at or [], ast.Load()), x=tile))


class Helped(Rewriting):
    """By functions of the program's own."""

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if is_call(node, "load", "mma", "store"):
            node.func = ast.Name(f"own_{node.func.attr}", ast.Load())  # type: ignore[attr-defined]
            return self.done(node)
        return node


HELPERS = """
def own_load(A, index, shape, **how):
    return ct.load(A, index, shape, **how)


def own_mma(a, b, acc, **how):
    return ct.mma(a, b, acc, **how)


def own_store(A, index, tile):
    ct.store(A, index, tile)


"""

# ---- the order of loads ---------------------------------------------------------------------------------------------


class Bodies(Rewriting):
    """Of loops."""

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        node.body = self.ordered(node.body)
        return node

    def ordered(self, body: list[Any]) -> list[Any]:
        raise AssertionError


class Late(Bodies):
    """Each load right before what uses it first."""

    def ordered(self, body: list[Any]) -> list[Any]:
        for load in filter(is_load, list(body)):
            at, name = body.index(load), load.targets[0].id
            used = next((i for i in range(at + 1, len(body)) if name in names_in(body[i])), at + 1)
            between = body[at + 1 : used]
            if between and not any(names_in(x, ast.Store) & names_in(load) or calls_in(x, "store") for x in between):
                body = self.done([*body[:at], *between, load, *body[used:]])
        return body


class Early(Bodies):
    """Loads first, as far as they need nothing of the body."""

    def ordered(self, body: list[Any]) -> list[Any]:
        first: list[Any] = []
        rest: list[Any] = []
        for stmt in body:
            made = {name for x in rest for name in names_in(x)}
            if is_load(stmt) and not names_in(stmt.value) & made and stmt.targets[0].id not in made:
                first.append(self.done(stmt) if rest else stmt)
            else:
                rest.append(stmt)
        return first + rest


class Swapped(Bodies):
    """Loads that stand side by side in the other order."""

    def ordered(self, body: list[Any]) -> list[Any]:
        out: list[Any] = []
        for stmt in body:
            other = out and is_load(out[-1]) and is_load(stmt) and out[-1].targets[0].id not in names_in(stmt)
            out.insert(len(out) - 1, self.done(stmt)) if other else out.append(stmt)
        return out


class Ahead(Rewriting):
    """What a loop over range(END) loads first is loaded a step ahead; behind the end there are zeros."""

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        count = next((i for i, x in enumerate(node.body) if not is_load(x)), len(node.body))
        loads, rest = node.body[:count], node.body[count:]
        from_zero = ast.unparse(node.iter).startswith("range(") and len(node.iter.args) == 1  # type: ignore[attr-defined]
        if not loads or not from_zero or not self.can_be_ahead(loads, rest):
            return node
        name = ast.unparse(node.target)
        moves = [statements(f"{x.targets[0].id} = {x.targets[0].id}_next")[0] for x in loads]  # type: ignore[attr-defined]
        start = [self.loaded(x, "", **{name: ast.Constant(0)}) for x in loads]
        node.body = [*(self.loaded(x, "_next", **{name: expression(f"{name} + 1")}) for x in loads), *rest, *moves]
        return self.done([*start, node])

    def can_be_ahead(self, loads: list[Any], rest: list[Any]) -> bool:
        made = {x.targets[0].id for x in loads}
        changed = {name for x in rest for name in names_in(x, ast.Store)}
        read = {name for x in loads for name in names_in(x.value)}
        nested = any(isinstance(x, ast.For | ast.While) for stmt in rest for x in ast.walk(stmt))
        calls = [x for load in loads for x in calls_in(load, "load")]
        return not nested and not read & (made | changed) and all(map(has_zeros_outside, calls))

    def loaded(self, load: Any, suffix: str, **now: Any) -> Any:
        return statements(f"{load.targets[0].id}{suffix} = value", value=Fill(now).visit(copy.deepcopy(load.value)))[0]


# ---- arithmetic -----------------------------------------------------------------------------------------------------


TURNED = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE, ast.Eq: ast.Eq, ast.NotEq: ast.NotEq}


class Commuted(Rewriting):
    """a * b as b * a, a + b as b + a, a < b as b > a."""

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Mult | ast.Add | ast.BitAnd | ast.BitOr):
            return node
        return self.done(ast.BinOp(node.right, node.op, node.left))

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        turned = TURNED.get(type(node.ops[0]))
        if len(node.ops) > 1 or turned is None:
            return node
        return self.done(ast.Compare(node.comparators[0], [turned()], [node.left]))


class Chosen(Rewriting):
    """The larger or smaller of two by a comparison."""

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if not is_call(node, "maximum", "minimum") or len(node.args) != 2 or node.keywords:
            return node
        sign = ">" if is_call(node, "maximum") else "<"
        return self.done(expression(f"ct.where(y {sign} x, y, x)", x=node.args[0], y=node.args[1]))


# ---- the grid -------------------------------------------------------------------------------------------------------


class Grid(Rewriting):
    """Another grid, of which a kernel may be told more."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        asked = [ast.unparse(argument(call, 0, "axis")) for call in calls_in(node, "bid")]
        ends = any(isinstance(x, ast.Return) for x in ast.walk(node)) or node.args.defaults or node.args.kwonlyargs
        if calls_in(node, "num_blocks", "threads") or ends or not self.takes(set(asked)):
            return node
        self.generic_visit(node)
        node.body = self.done(node).body
        self.whole(node)
        node.args.args += [ast.arg(name) for name in self.parameters]
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        return expression(self.numbers(int(ast.unparse(node.args[0])))) if is_call(node, "bid") else node

    def takes(self, axes: set[str]) -> bool:
        return axes == {"0", "1"}

    def numbers(self, axis: int) -> str:
        raise AssertionError

    def whole(self, node: ast.FunctionDef) -> None:
        """What else the function needs."""


class Turned(Grid):
    def takes(self, axes: set[str]) -> bool:
        return {"0", "1"} <= axes

    def numbers(self, axis: int) -> str:
        return f"ct.bid({(1, 0, 2)[axis]})"

    @staticmethod
    def launched(grid: tuple[int, ...], arguments: tuple[Any, ...]) -> tuple[Any, Any]:
        return (grid[1], grid[0], *grid[2:]), arguments


class Folded(Grid):
    parameters = ("ROWS_OF_GRID",)

    def numbers(self, axis: int) -> str:
        return f"(ct.bid(0) {'%' if axis == 0 else '//'} ROWS_OF_GRID)"

    @staticmethod
    def launched(grid: tuple[int, ...], arguments: tuple[Any, ...]) -> tuple[Any, Any]:
        return (grid[0] * grid[1],), (*arguments, grid[0])


class Strided(Grid):
    """Each block goes along the grid in steps of its length."""

    parameters = ("ROWS_OF_GRID", "COLUMNS_OF_GRID")

    def numbers(self, axis: int) -> str:
        return f"(tile_of_grid {'%' if axis == 0 else '//'} ROWS_OF_GRID)"

    def whole(self, node: ast.FunctionDef) -> None:
        text = "for tile_of_grid in range(ct.bid(0), ROWS_OF_GRID * COLUMNS_OF_GRID, ct.num_blocks(0)):\n    pass"
        (loop,) = statements(text)
        loop.body = node.body
        node.body = [loop]

    @staticmethod
    def launched(grid: tuple[int, ...], arguments: tuple[Any, ...]) -> tuple[Any, Any]:
        return (min(3, grid[0] * grid[1]),), (*arguments, grid[0], grid[1])


REWRITINGS: dict[str, type[Rewriting]] = {
    "while": While,
    "forever": Forever,
    "until": Until,
    "met": Met,
    "stopped": Stopped,
    "branched": Branched,
    "step": Step,
    "zeros": Zeros,
    "added": Added,
    "transposed": Transposed,
    "batched": Batched,
    "gather": Gather,
    "masked": Masked,
    "counted": Counted,
    "scatter": Scatter,
    "helped": Helped,
    "late": Late,
    "early": Early,
    "swapped": Swapped,
    "ahead": Ahead,
    "first": First,
    "last": Last,
    "two": Two,
    "commuted": Commuted,
    "chosen": Chosen,
    "turned": Turned,
    "folded": Folded,
    "strided": Strided,
}


def rewritten(kernel: Any, name: str, folder: Path) -> Any:
    """The kernel in other words; None where it has nothing that can be said so."""
    function = kernel.function
    rewriting = REWRITINGS[name]()
    tree = rewriting.visit(ast.parse(textwrap.dedent(inspect.getsource(function))))
    if not rewriting.changed:
        return None
    place = Path(inspect.getsourcefile(function) or "").stem
    path = folder / f"{place}_{function.__name__}_{name}.py"
    text = ast.unparse(ast.fix_missing_locations(tree))
    path.write_text("from tilewright import tile as ct\n\n" + HELPERS * (name == "helped") + text)
    scope = dict(function.__globals__)
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return scope[function.__name__]


def key_of(name: str, key: Any) -> Any:
    """What a launch of the rewritten kernel knows, from what one of the kernel knows."""
    return (*key, *(("scalar", "int32", 1) for _ in REWRITINGS[name].parameters))


def show(names: list[str]) -> None:
    import plan

    import ptx_corpus

    with tempfile.TemporaryDirectory() as folder:
        for title, kernel, key in ptx_corpus.zoo_rows():
            if names and not any(name in title for name in names):
                continue
            plain = plan.of(kernel, key)
            print(f"{title}: {plain}", flush=True)
            for name in REWRITINGS:
                other = rewritten(kernel, name, Path(folder))
                found = plan.of(other, key_of(name, key)) if other else plain
                if not found.is_as_good_as(plain):
                    print(f"  ! {name}: {found}", flush=True)


if __name__ == "__main__":
    show(sys.argv[1:])
