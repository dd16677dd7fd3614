"""Whether the tests would notice: change one operator, constant or branch of a module at a time, and test it.

    python tools/mutate.py python/tilewright/dtype.py test/python/test_dtype.py test/python/test_interpret.py
        [--lines 40-120] [--most 100] [--seed 1] [--tests-a-mutant 80] [--proven FILE]

A mutant that no test fails for survives: a line of the list at the end, with the change. Some change nothing that can
be seen (a faster way, a message's place); the others want a test. The tool also tells which requirements of
test/data/spec.tsv have a test that failed for some mutant, and adds them to the file of --proven: marks that never
appear there, over runs on all modules that matter, may sit on tests that cannot fail.

Mutants live in forked processes and touch no file; processes that a test starts see the module as it is. Tests run
in the order of how much they may tell: those whose requirements have not failed yet come first.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.machinery
import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy  # noqa: F401 - here, so that each child need not
import pytest

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 120  # for the tests of one mutant: one that hangs is noticed, too

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


def changes(node: ast.AST) -> Iterator[Callable[[Any], None]]:
    """What may be done to a node, each as a function that does it in place."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        yield lambda n: n.ops.__setitem__(0, COMPARISONS[type(n.ops[0])]())
    elif isinstance(node, ast.BoolOp):
        yield lambda n: setattr(n, "op", ast.And() if isinstance(n.op, ast.Or) else ast.Or())
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPERATORS:
        yield lambda n: setattr(n, "op", OPERATORS[type(n.op)]())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield lambda n: setattr(n, "operand", ast.UnaryOp(ast.Not(), n.operand))
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield lambda n: setattr(n, "value", not n.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield lambda n: setattr(n, "value", n.value + 1)
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield lambda n: setattr(n, "test", ast.Constant(False))
        if not isinstance(node, ast.While):
            yield lambda n: setattr(n, "test", ast.Constant(True))


class Mutant(NamedTuple):
    line: int
    before: str
    after: str
    tree: ast.Module


def shown(node: ast.AST) -> str:
    """The changed node in one line; of a statement only its head."""
    part = node.test if isinstance(node, ast.If | ast.While) else node
    return " ".join(ast.unparse(part).split())[:100]


def hints_of(node: ast.AST) -> list[ast.expr]:
    """The annotations of a node, which nobody runs."""
    return [hint for name in ("annotation", "returns") if (hint := getattr(node, name, None)) is not None]


def mutants(source: str, lines: range) -> list[Mutant]:
    tree = ast.parse(source)
    types = {id(part) for node in ast.walk(tree) for hint in hints_of(node) for part in ast.walk(hint)}
    found = []
    for position, node in enumerate(ast.walk(tree)):
        if getattr(node, "lineno", 0) not in lines or id(node) in types:
            continue
        for number, _ in enumerate(changes(node)):
            fresh = copy.deepcopy(tree)
            target = next(n for i, n in enumerate(ast.walk(fresh)) if i == position)
            list(changes(target))[number](target)
            ast.fix_missing_locations(fresh)
            found.append(Mutant(node.lineno, shown(node), shown(target), fresh))  # type: ignore[attr-defined]
    return found


# --- running tests in a child -------------------------------------------------------------------------


class Watch:
    """Of each test: whether it failed, its requirements, and the lines of the module that it ran."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        self.lines: set[int] = set()
        self.rows: dict[str, dict[str, Any]] = {}

    def trace(self, frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != self.path:
            return None
        if event in ("line", "call"):
            self.lines.add(frame.f_lineno)
        return self.trace

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.lines = set()
        if self.path:
            threading.settrace(self.trace)
            sys.settrace(self.trace)
        yield
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        self.rows[item.nodeid]["lines"] = sorted(self.lines)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        row = self.rows.setdefault(report.nodeid, {"failed": False, "ids": [], "seconds": 0.0})
        row["failed"] |= report.failed
        row["seconds"] += report.duration
        row["ids"] = sorted({i for key, value in report.user_properties if key == "spec" for i in value})


def install(path: Path, tree: ast.Module) -> None:
    """Has the next import of the file take the tree."""
    plain = importlib.machinery.SourceFileLoader.get_code

    def get_code(loader: Any, name: str) -> Any:
        here = Path(loader.path).resolve() == path
        return compile(tree, loader.path, "exec") if here else plain(loader, name)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign]


def run(path: Path, tree: ast.Module, tests: list[str], traced: bool) -> dict[str, dict[str, Any]] | None:
    """What the tests did over that module; None: the process died, or took too long, or found no tests to run."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        signal.alarm(SECONDS)
        install(path, tree)
        watch = Watch(str(path) if traced else None)
        pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", *tests], plugins=[watch])
        with os.fdopen(writer, "w") as out:
            json.dump(watch.rows, out)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text) or None if text else None


# --- the whole ----------------------------------------------------------------------------------------


def covering(mutant: Mutant, rows: dict[str, dict[str, Any]], proven: set[str], most: int) -> list[str]:
    """Tests for a mutant: of its line, or all for one that runs at import; the most telling first."""
    chosen = [name for name, row in rows.items() if mutant.line in row["lines"]] or list(rows)

    def order(name: str) -> tuple[bool, float]:
        return (not set(rows[name]["ids"]) - proven, rows[name]["seconds"])

    return sorted(chosen, key=order)[:most]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", type=Path, help="the file that is changed")
    parser.add_argument("tests", nargs="+", help="test files, or what else pytest takes")
    parser.add_argument("--lines", default="1-1000000", help="first and last line that may change")
    parser.add_argument("--most", type=int, default=100, help="mutants, drawn at random")
    parser.add_argument("--seed", type=int, default=1, help="of the draw (default: 1)")
    parser.add_argument("--tests-a-mutant", type=int, default=80, help="the most that are run for one (default: 80)")
    parser.add_argument("--proven", type=Path, help="file of requirements that had a failing test, read and extended")
    options = parser.parse_args()
    os.environ["TILEWRIGHT_NO_CACHE"] = "1"
    path = options.module.resolve()
    source = path.read_text()
    first, last = map(int, options.lines.split("-"))
    everything = mutants(source, range(first, last + 1))
    chosen = random.Random(options.seed).sample(everything, min(options.most, len(everything)))
    proven = set(options.proven.read_text().split()) if options.proven and options.proven.exists() else set()

    rows = run(path, ast.parse(source), options.tests, traced=True)
    if rows is None or any(row["failed"] for row in rows.values()):
        sys.exit("the tests fail without a change, or there are none")
    marked = {i for row in rows.values() for i in row["ids"]}
    survivors = []
    begin = time.monotonic()
    for number, mutant in enumerate(sorted(chosen, key=lambda m: m.line)):
        seen = run(path, mutant.tree, covering(mutant, rows, proven, options.tests_a_mutant), traced=False)
        failed = {name for name, row in (seen or {}).items() if row["failed"]}
        proven |= {i for name in failed for i in rows.get(name, {"ids": []})["ids"]}
        if seen is not None and not failed:
            survivors.append(mutant)
        if sys.stderr.isatty():
            print(f"\r{number + 1}/{len(chosen)}, {len(survivors)} survive", end="", file=sys.stderr)
    for mutant in survivors:
        print(f"{options.module}:{mutant.line}: {mutant.before}  ->  {mutant.after}")
    print(f"{len(survivors)} of {len(chosen)} mutants survive ({time.monotonic() - begin:.0f} s)")
    print(f"of {len(marked)} requirements that these tests name, no test has failed yet for:", *sorted(marked - proven))
    if options.proven:
        options.proven.write_text("".join(f"{i}\n" for i in sorted(proven)))
    return bool(survivors)


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "python"))
    sys.exit(main())
