"""Source: the syntax tree of a function, with positions in its file, and what its names mean.

The tree is made from the lines which the code object covers, so that nothing of the rest of the
file is parsed. A function that is indented is parsed inside of an `if`, which keeps its columns.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import linecache
import sys
import threading
import types
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import Place, TileSyntaxError
from .values import lambda_as_function

_parsing = threading.Lock()


def syntax_tree(text: str) -> ast.Module:
    """One at a time: CPython 3.11 counts the depth of all trees that are being made in one number, and raises
    SystemError where another thread has changed it meanwhile (python/cpython#106905)."""
    with _parsing:
        return ast.parse(text)


@dataclasses.dataclass(slots=True)
class Source:
    """A function's tree. `line_offset` + node.lineno is the line in the file."""

    function: types.FunctionType
    tree: ast.FunctionDef
    file: str
    line_offset: int
    locals: frozenset[str]
    closure: dict[str, types.CellType]

    @property
    def name(self) -> str:
        return self.function.__name__

    def place(self, node: ast.AST) -> Place:
        line = getattr(node, "lineno", 1) + self.line_offset
        end_line = (getattr(node, "end_lineno", None) or 0) + self.line_offset
        column = getattr(node, "col_offset", 0) + 1
        end_column = (getattr(node, "end_col_offset", None) or column) + 1
        if isinstance(node, ast.stmt) and end_line != line:  # a block: its first line will do
            end_line, end_column = line, 0
        return Place(self.file, line, column, end_line, end_column, self.name)


# What a function's lines hold, from which line on, and the function's own variables.
_Parsed = tuple[ast.FunctionDef, int, frozenset[str]]
_cache: weakref.WeakKeyDictionary[types.CodeType, _Parsed] = weakref.WeakKeyDictionary()


def source_of(function: types.FunctionType) -> Source:
    code = function.__code__
    if (parsed := _cache.get(code)) is None:
        tree, offset = _parse(function)
        names = frozenset(code.co_varnames + code.co_cellvars) - _own_of_comprehensions(tree)
        parsed = _cache.setdefault(code, (tree, offset, names))
    tree, offset, names = parsed
    closure = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    return Source(function, tree, code.co_filename, offset, names, closure)


class _Bindings(ast.NodeVisitor):
    """The names that a function binds: those of comprehensions, and all others. Other functions are not entered."""

    def __init__(self) -> None:
        self.of_comprehensions: set[str] = set()
        self.others: set[str] = set()

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self.of_comprehensions |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
        for part in (node.iter, *node.ifs):
            self.visit(part)

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.others.add(node.id)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.others.add(node.name)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        pass

    def generic_visit(self, node: ast.AST) -> None:
        # A class, an import, a handler, a pattern.
        self.others |= {
            name for field in ("name", "asname", "rest") if isinstance(name := getattr(node, field, None), str)
        }
        super().generic_visit(node)


def _own_of_comprehensions(tree: ast.FunctionDef) -> set[str]:
    """Variables of comprehensions alone, which Python 3.12 counts among those of the function."""
    if sys.version_info < (3, 12):
        return set()
    bindings = _Bindings()
    bindings.others |= {arg.arg for arg in ast.walk(tree.args) if isinstance(arg, ast.arg)}
    for statement in tree.body:
        bindings.visit(statement)
    return bindings.of_comprehensions - bindings.others


def definition_place(function: types.FunctionType) -> Place:
    code = function.__code__
    return Place(code.co_filename, code.co_firstlineno, function=function.__name__)


def _parse(function: types.FunctionType) -> tuple[ast.FunctionDef, int]:
    code = function.__code__
    first = code.co_firstlineno
    lines = _lines_of(code)
    if len(lines) < first:
        lines = _unsaved_lines(function)
    if function.__name__ == "<lambda>" and (found := _parse_lambda(function, lines)) is not None:
        return found
    for last in _possible_ends(code, lines):
        block = lines[first - 1 : last]
        indented = block[0][:1].isspace()
        try:
            tree = syntax_tree(("if 1:\n" if indented else "") + "".join(block))
        except SyntaxError:
            continue
        body = tree.body[0].body if indented and isinstance(tree.body[0], ast.If) else tree.body
        if body and isinstance(body[0], ast.FunctionDef):
            _check_same(function, body[0])
            return body[0], first - (2 if indented else 1)
        break
    raise TileSyntaxError(
        "this kind of function cannot be used in tile code; expected one made by 'def' or 'lambda'",
        [definition_place(function)],
    )


_versions: dict[str, list[list[str]]] = {}  # of files, the latest last
_MOST_VERSIONS = 8


def _lines_of(code: types.CodeType) -> list[str]:
    """Of its file, which may have been edited and loaded again: as it was when the code was made."""
    linecache.checkcache(code.co_filename)
    now, known = linecache.getlines(code.co_filename), _versions.setdefault(code.co_filename, [])
    if not any(lines is now or lines == now for lines in known):
        known.append(now)
        del known[:-_MOST_VERSIONS]
    if len(known) == 1:
        return now
    return next((lines for lines in reversed(known) if _has(lines, code)), now)


def _has(lines: list[str], code: types.CodeType) -> bool:
    """Whether these lines make the code."""
    try:
        made = [compile("".join(lines), code.co_filename, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        return False
    for one in made:
        made += [c for c in one.co_consts if isinstance(c, types.CodeType)]
    return code in made


def _parse_lambda(function: types.FunctionType, lines: list[str]) -> tuple[ast.FunctionDef, int] | None:
    """The innermost lambda whose expression holds all that the instructions of `function` come from.

    Its own lines are parsed first: most often they are a statement, or read like one. The file is the last resort.
    """
    places = [(line, end, at, end_at) for line, end, at, end_at in function.__code__.co_positions() if end_at]
    first = function.__code__.co_firstlineno
    last = max([first, *(end or 0 for _, end, _, _ in places)])
    for lambdas, offset in _lambdas_by_and_by(lines, first, last):
        moved = [(line and line - offset, end and end - offset, *columns) for line, end, *columns in places]
        found = [n for n in lambdas if all(_is_inside(n.body, *p) for p in moved)]
        if not places:  # the result is a constant, whose place Python 3.12 does not keep
            found = [n for n in found if _has_instructions(n, function.__code__, offset)]
        if found:
            return lambda_as_function(found[-1]), offset
    return None


_AROUND = (("", ""), ("if 1:\n", ""), ("call(\n", "\n)"), ("{\n", "\n}"))  # what makes lines a statement


def _lambdas_by_and_by(lines: list[str], first: int, last: int) -> Iterator[tuple[list[ast.Lambda], int]]:
    """Those in the lines of one and in some lines more, then those in the file, and what their numbers lack."""
    for end in range(last, min(last + 4, len(lines)) + 1):
        block = "".join(lines[first - 1 : end])
        for before, behind in _AROUND:
            try:
                tree = syntax_tree(before + block + behind)
            except SyntaxError:
                continue
            yield [n for n in ast.walk(tree) if isinstance(n, ast.Lambda)], first - 1 - before.count("\n")
    yield _lambdas_in(lines) or [], 0


_files: list[tuple[list[str], list[ast.Lambda] | None]] = []  # lines of the last files, and their lambdas
_MOST_FILES = 4


def _lambdas_in(lines: list[str]) -> list[ast.Lambda] | None:
    """All lambdas in a file, outer ones first; None where the file cannot be parsed. A file is parsed once."""
    for known, lambdas in _files:
        if known is lines:
            return lambdas
    try:
        found = [n for n in ast.walk(syntax_tree("".join(lines))) if isinstance(n, ast.Lambda)]
    except SyntaxError:
        found = None
    _files[:] = [*_files[1 - _MOST_FILES :], (lines, found)]
    return found


def _has_instructions(node: ast.Lambda, code: types.CodeType, offset: int) -> bool:
    """Whether a lambda begins in the line of `code` and has its instructions, parameters and constants."""
    if node.lineno + offset != code.co_firstlineno:
        return False
    constants = compile(ast.Expression(node), code.co_filename, "eval").co_consts
    made = [c for c in constants if isinstance(c, types.CodeType)][-1]  # those of its defaults are before it
    first, second = ((c.co_code, c.co_varnames, repr(c.co_consts)) for c in (made, code))
    return first == second


def _is_inside(node: ast.expr, line: int | None, end_line: int | None, at: int | None, end_at: int | None) -> bool:
    """Whether a piece of text lies in the text of an expression."""
    begin, end = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
    return begin <= (line or 0, at or 0) and (end_line or 0, end_at or 0) <= end


def _check_same(function: types.FunctionType, tree: ast.FunctionDef) -> None:
    """Refuses lines that are not the function's any more, because the file was edited after its import."""
    code = function.__code__
    arguments = [a.arg for a in (*tree.args.posonlyargs, *tree.args.args)]
    if tree.name != code.co_name or arguments != list(code.co_varnames[: code.co_argcount]):
        raise TileSyntaxError(
            f"the source of {function.__name__} has changed since it was imported: line "
            f"{code.co_firstlineno} of {code.co_filename} is another function now; start Python again",
            [definition_place(function)],
        )


def _unsaved_lines(function: types.FunctionType) -> list[str]:
    """The lines of a function whose file only `inspect` can find (a notebook's cell), or of `python -c`."""
    if (lines := _lines_of_command(function.__code__)) is not None:
        return lines
    try:
        lines, _ = inspect.findsource(function)
    except (OSError, TypeError):
        raise TileSyntaxError(
            f"the source of {function.__name__} is not available; define it in a file or a "
            "notebook's cell (tile code is captured from its source)",
            [definition_place(function)],
        ) from None
    return lines


def _lines_of_command(code: types.CodeType) -> list[str] | None:
    """The text behind `python -c`, where the code was made of it."""
    place = len(sys.orig_argv) - len(sys.argv)  # argv begins with "-c", the text's place
    if code.co_filename != "<string>" or sys.argv[:1] != ["-c"] or not 0 < place < len(sys.orig_argv):
        return None
    text = sys.orig_argv[place]
    try:
        made = [compile(text, code.co_filename, "exec", dont_inherit=True)]
    except SyntaxError:
        return None
    for one in made:
        made += [c for c in one.co_consts if isinstance(c, types.CodeType)]
    return text.splitlines(keepends=True) if code in made else None


def _last_line(code: types.CodeType) -> int:
    """The last one on which an instruction begins."""
    lines = [line or 0 for _, _, line in code.co_lines()]
    nested = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return max([code.co_firstlineno, *lines, *(_last_line(c) for c in nested)])


def _possible_ends(code: types.CodeType, lines: list[str]) -> Iterator[int]:
    """Last lines to try: what the instructions cover, then a little more, then the whole block.

    Code that the compiler left out (after a return, under `if 0`) is beyond the first.
    """
    last = _last_line(code)
    indent = len(lines[code.co_firstlineno - 1]) - len(lines[code.co_firstlineno - 1].lstrip())
    end = last
    while end < len(lines):  # lines that are indented further belong to the function
        text = lines[end]
        if text.strip() and len(text) - len(text.lstrip()) <= indent:
            break
        end += 1
    yield end
    yield from range(last, min(len(lines), end + 200) + 1)


def assigned_names(loop: ast.For | ast.While) -> tuple[str, ...]:
    """Names that the body of a loop may assign, in the order of their first assignment."""
    known: tuple[str, ...] | None = getattr(loop, "_tw_assigned", None)
    if known is None:
        known = loop._tw_assigned = _assigned_names(loop.body)  # type: ignore[union-attr]
    return known


def _assigned_names(nodes: list[ast.stmt]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for node in nodes for name in _stored(node)))


def own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function's body without those of functions in it."""
    rest: list[ast.AST] = list(function.body)
    while rest:
        node = rest.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            rest.extend(ast.iter_child_nodes(node))


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _stored(node: ast.AST) -> Iterator[str]:
    """Names that a node assigns, but for those of functions and comprehensions in it, which are their own."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
        yield node.id
    elif isinstance(node, ast.FunctionDef):
        yield node.name
    elif isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield from _holder(node)  # a vector or a struct: the name gets a new one
    elif isinstance(node, _COMPREHENSIONS):
        yield from (n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
    elif not isinstance(node, ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from _stored(child)


def _holder(node: ast.expr) -> list[str]:
    """The name whose value a part of is assigned."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return [node.id] if isinstance(node, ast.Name) else []


def reads(nodes: Sequence[ast.stmt], name: str) -> bool:
    """Whether statements read a variable."""
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for s in nodes for n in ast.walk(s)
    )


def _names_in(node: ast.AST) -> list[ast.Name]:
    """The names below a node, in no order: `ast.walk` takes three times as long."""
    found: list[ast.Name] = []
    rest: list[Any] = [node]
    while rest:
        at = rest.pop()
        if isinstance(at, ast.Name):
            found.append(at)
        elif isinstance(at, list):
            rest += at
        elif isinstance(at, ast.AST):
            rest += map(vars(at).get, at._fields)
    return found


def is_read_round(loop: ast.For | ast.While, name: str) -> bool:
    """Whether the body of a loop reads a variable under a condition, above where it assigns it: `if k > 0: f(last)`.

    Not the variable of the loop, which each iteration begins with.
    """
    if isinstance(loop, ast.For) and any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(loop.target)):
        return False
    mentions = _mentions(loop).get(name)
    if not mentions:
        return False
    line, _, is_load, statement = min(mentions, key=lambda row: row[:2])
    reads_first = is_load or any(row[0] == line and row[2] for row in mentions)
    return reads_first and statement in (ast.If, ast.For, ast.While)


def _mentions(loop: ast.For | ast.While) -> dict[str, list[tuple[int, int, bool, type]]]:
    """Where the body of a loop names a variable, whether that reads it, and in what kind of statement of the body."""
    known: dict[str, list[tuple[int, int, bool, type]]] | None = getattr(loop, "_tw_mentions", None)
    if known is None:
        known = {}
        for statement in loop.body:
            for n in _names_in(statement):
                row = (n.lineno, n.col_offset, isinstance(n.ctx, ast.Load), type(statement))
                known.setdefault(n.id, []).append(row)
        loop._tw_mentions = known  # type: ignore[union-attr]
    return known


def is_read_later(tree: ast.AST, node: ast.AST, name: str) -> bool:
    """Whether the text behind `node` reads a variable before it assigns it."""
    known: dict[str, list[tuple[int, int, bool]]] | None = getattr(tree, "_tw_names", None)
    if known is None:
        known = {}
        for n in _names_in(tree):
            known.setdefault(n.id, []).append((n.lineno, n.col_offset, isinstance(n.ctx, ast.Load)))
        tree._tw_names = known  # type: ignore[attr-defined]
    end = getattr(node, "end_lineno", 0)
    line = min((row for row in known.get(name, ()) if row[0] > end), default=None)
    if line is None:
        return False
    return any(is_load for at, _, is_load in known[name] if at == line[0])  # `x = x + 1` reads, too
