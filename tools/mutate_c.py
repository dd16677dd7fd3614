"""Whether the tests would notice, of C: each guard, comparison, constant and call of some files changed, one at a time.

    python tools/mutate_c.py build lowering/gpu/grid/raster.c lowering/gpu/grid/split_k.c  # -> build/mutants
    python tools/mutate_c.py lit [--only split_k] [--most 40] [--seed 1]                    # which of them lit notices
    python tools/mutate_c.py pytest survivors -p emulated --backend=cpu test/numerics/test_wgmma.py

All mutants of all files are in one tw-opt and one extension module: each place asks whether it is the one that the
variable TW_MUTANT names. So a mutant costs a run of the tests that reach its place (a first run records who does), and
no build. The places are found in clang's AST: a conjunct that is dropped, a disjunct, a condition that always or never
holds, `<` for `<=`, a constant more by one, a sum that is a difference, a call for its effect that does not happen.

Both print the survivors, a line each; one that is not reached by any test stands in a condition that none of them
comes to. Some survivors change nothing that can be seen; the others want a test.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "dev"
OUT = ROOT / "build" / "mutants"
SECONDS = 60  # for the tests of one mutant
MEMORY = 4 << 30

HEADER = """
extern _Bool tw_mutant(int);
static inline int tw_m_sign(int id) { return tw_mutant(id) ? -1 : 1; }
static inline _Bool tw_m_force(int never, int always, _Bool is) {
  return tw_mutant(never) ? 0 : tw_mutant(always) ? 1 : is;
}
"""
# At the first place that a process reaches, the number is read; reached places go to a file, one line each.
ASKED = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char seen[1 << 20];
static void forget(int signal) {
  (void)signal;
  memset(seen, 0, sizeof seen);
}
__attribute__((visibility("default"))) _Bool tw_mutant(int id) {
  static int chosen = -2;
  static const char *path;
  if (chosen == -2) {
    const char *text = getenv("TW_MUTANT");
    path = getenv("TW_MUTANTS_SEEN");
    if (path)
      signal(SIGWINCH, forget);
    chosen = text ? atoi(text) : -1;
  }
  if (path && !seen[id]) {
    FILE *file = fopen(path, "a");
    seen[id] = 1;
    if (file) {
      fprintf(file, "%d\\n", id);
      fclose(file);
    }
  }
  return id == chosen;
}
"""
SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}


class Mutant(NamedTuple):
    file: str
    line: int
    what: str


class File:
    """Rewrites one file: all its mutants at once, without changing a line's number."""

    def __init__(self, path: Path, first_id: int) -> None:
        self.path, self.name = path, str(path.relative_to(ROOT))
        self.text = path.read_text(encoding="latin-1")  # clang counts bytes
        self.first_id = first_id
        self.mutants: list[Mutant] = []
        self.edits: list[tuple[int, int, str]] = []  # position, order among edits of one position, text

    def new(self, at: int, what: str) -> int:
        self.mutants.append(Mutant(self.name, self.text.count("\n", 0, at) + 1, " ".join(what.split())[:110]))
        return self.first_id + len(self.mutants) - 1

    def around(self, begin: int, end: int, before: str, after: str) -> None:
        """Nested ranges nest: what is outer opens first and closes last."""
        self.edits.append((begin, -end, before))
        self.edits.append((end, 1 << 30, after))

    def rewritten(self) -> str:
        # Closing texts of one position: the innermost first, which was found last.
        opening = [(p, 1, o, i, t) for i, (p, o, t) in enumerate(self.edits) if o < 0]
        closing = [(p, 0, -i, i, t) for i, (p, o, t) in enumerate(self.edits) if o >= 0]
        out, last = [HEADER.replace("\n", " "), f'\n#line 1 "{self.path}"\n'], 0
        for position, _, _, _, text in sorted(opening + closing):
            out += [self.text[last:position], text]
            last = position
        return "".join([*out, self.text[last:]])


def span(node: dict[str, Any]) -> tuple[int, int] | None:
    """Where the node stands; None inside of macros."""
    begin, end = node.get("range", {}).get("begin", {}), node.get("range", {}).get("end", {})
    if "offset" not in begin or "offset" not in end:
        return None
    return begin["offset"], end["offset"] + end["tokLen"]


def whole(node: dict[str, Any]) -> bool:
    """Whether the value is of an integer type, or a truth."""
    name = node.get("type", {}).get("desugaredQualType", node.get("type", {}).get("qualType", ""))
    return bool(re.fullmatch(r"(const )?(_Bool|bool|(unsigned )?(int|long( long)?)|u?int(ptr|\d+)_t|size_t)", name))


def truth(node: dict[str, Any]) -> bool:
    return node.get("type", {}).get("qualType") in ("bool", "_Bool")


def is_number(node: dict[str, Any]) -> bool:
    while node.get("kind") == "ImplicitCastExpr":
        node = node["inner"][0]
    return bool(node.get("kind") == "IntegerLiteral")


def calls_mlir(callee: dict[str, Any]) -> bool:
    while callee.get("kind") == "ImplicitCastExpr":
        callee = callee["inner"][0]
    return str(callee.get("referencedDecl", {}).get("name", "")).startswith("mlir")


def parts(node: dict[str, Any]) -> list[Any]:
    """The parts of a node that may change: no constants that the compiler needs, nor the numbers of operands."""
    kind, inner = node.get("kind"), node.get("inner", [])
    if node.get("castKind") == "NullToPointer" or kind in ("EnumDecl", "RecordDecl", "UnaryExprOrTypeTraitExpr"):
        return []
    if kind == "CaseStmt":
        return inner[1:]
    if kind == "VarDecl" and node.get("storageClass") == "static":
        return []
    if kind == "VarDecl" and "[" in node["type"]["qualType"]:
        return [child for child in inner if child.get("kind") == "InitListExpr"]
    if kind == "CallExpr" and calls_mlir(inner[0]):
        return [child for child in inner if not is_number(child)]
    return list(inner)


def change_operator(node: dict[str, Any], out: File, begin: int, end: int) -> None:
    operator, own = node["opcode"], out.text[begin:end]
    places = [span(child) for child in node["inner"]]
    if operator in ("&&", "||"):
        for child, place in zip(node["inner"], places, strict=True):
            if place is not None and child.get("opcode") != operator:
                number = out.new(place[0], f"without `{out.text[slice(*place)]}` of {operator}")
                out.around(
                    *place, "((", f") || tw_mutant({number}))" if operator == "&&" else f") && !tw_mutant({number}))"
                )
    elif all(map(whole, node["inner"])) and places[1] is not None:
        right = places[1][0]
        if operator in ("==", "!="):
            out.around(begin, end, "((", f") != tw_mutant({out.new(begin, f'{own}  ->  {SWAPS[operator]}')}))")
        elif operator in SWAPS:  # of integers, x <= y is x < y + 1
            sign = "-" if operator in ("<=", ">") else "+"
            number = out.new(begin, f"{own}  ->  {SWAPS[operator]}")
            out.around(right, end, "((", f") {sign} (int)tw_mutant({number}))")
        elif operator in ("+", "-"):
            out.around(right, end, f"tw_m_sign({out.new(begin, f'{own}  ->  the other sign')}) * (", ")")


def force(out: File, begin: int, end: int) -> None:
    text = out.text[begin:end]
    if text not in ("true", "false"):
        never, always = out.new(begin, f"`{text}` never"), out.new(begin, f"`{text}` always")
        out.around(begin, end, f"tw_m_force({never}, {always}, (", "))")


def visit(node: dict[str, Any], out: File) -> None:
    kind, inner, place = node.get("kind"), parts(node), span(node)
    first = span(inner[0]) if inner else None
    if kind == "BinaryOperator" and place is not None:
        change_operator(node, out, *place)
    elif kind == "IntegerLiteral" and place is not None:
        out.around(*place, "(", f" + (int)tw_mutant({out.new(place[0], f'{out.text[slice(*place)]} + 1')}))")
    elif first is not None and (
        kind in ("IfStmt", "ConditionalOperator") or (kind == "ReturnStmt" and truth(inner[0]))
    ):
        force(out, *first)
    elif kind == "CompoundStmt":
        for where in (span(child) for child in inner if child.get("kind") == "CallExpr"):
            if where is not None:
                out.around(*where, f"if (!tw_mutant({out.new(where[0], f'no {out.text[slice(*where)]}')})) ", "")
    for child in inner:
        visit(child, out)


def files(node: Any) -> Iterator[str]:
    """The files that a part of the tree names, in order: clang names one only where it is another than before."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        if key == "file":
            yield value
        elif key != "includedFrom":
            yield from files(value)


def functions(tree: dict[str, Any], path: Path) -> Iterator[dict[str, Any]]:
    """The bodies of the functions that the file itself defines."""
    current = ""
    for node in tree["inner"]:
        *_, current = [current, *files(node.get("loc", {}))]
        body = [child for child in node.get("inner", []) if child.get("kind") == "CompoundStmt"]
        if node.get("kind") == "FunctionDecl" and body and Path(current) == path:
            yield body[0]
        *_, current = [current, *files(node)]


def build(paths: list[Path]) -> None:
    commands = {row["file"]: row for row in json.loads((BUILD / "compile_commands.json").read_text())}
    (OUT / "python" / "tilewright").mkdir(parents=True, exist_ok=True)
    (OUT / "bin").mkdir(exist_ok=True)
    mutants: list[Mutant] = []
    objects: dict[str, str] = {}
    asked = OUT / "asked.c"
    asked.write_text(ASKED)
    subprocess.run(["clang-22", "-O2", "-fPIC", "-c", asked, "-o", OUT / "asked.o"], check=True)
    for path in paths:
        row = commands[str(path)]
        plain = row["command"].replace("-Werror", "-w").split()
        at = plain.index("-o")
        plain = [word for i, word in enumerate(plain) if i not in (at, at + 1)]
        dumped = subprocess.run(
            [*plain, "-fsyntax-only", "-Xclang", "-ast-dump=json"],
            cwd=BUILD,
            check=True,
            capture_output=True,
            text=True,
        )
        file = File(path, len(mutants))
        for body in functions(json.loads(dumped.stdout), path):
            visit(body, file)
        mutants += file.mutants
        copy, target = OUT / path.name, OUT / f"{path.stem}.o"
        copy.write_text(file.rewritten(), encoding="latin-1")
        plain = [str(copy) if word == str(path) else word for word in plain]
        subprocess.run([*plain, f"-I{path.parent}", "-o", target], cwd=BUILD, check=True)
        objects[re.search(r"-o (\S+)", row["command"])[1]] = str(target)  # type: ignore[index]
        print(f"{file.name}: {len(file.mutants)}")
    for entry in (ROOT / "python" / "tilewright").iterdir():
        if entry.suffix != ".so":
            (OUT / "python" / "tilewright" / entry.name).symlink_to(entry)
    core = ROOT / "python" / "tilewright" / "_core.abi3.so"
    linked = (("bin/tw-opt", OUT / "bin" / "tw-opt"), (str(core), OUT / "python" / "tilewright" / core.name))
    for target, result in linked:
        ninja = ["ninja", "-C", BUILD, "-t", "commands", "-s", target]
        text = subprocess.run(ninja, check=True, capture_output=True, text=True).stdout.strip().splitlines()[-1]
        text = text.replace(f"-o {target}", f"-o {result} {OUT / 'asked.o'}")
        for name, changed in objects.items():
            text = text.replace(f" {name} ", f" {changed} ")
        subprocess.run(text, shell=True, cwd=BUILD, check=True)
    (OUT / "mutants.json").write_text(json.dumps(mutants))


# --- lit ----------------------------------------------------------------------------------------------


def limit() -> None:
    """A mutant that loops takes neither all memory nor all time."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_lines(path: Path) -> list[str]:
    text = re.sub(r"\\\n\s*// ?(RUN:)?", "", path.read_text())
    words = {"%s": str(path), "%t": str(OUT / "tmp" / path.name), "%python": sys.executable}
    return [re.sub(r"%python|%s|%t", lambda m: words[m[0]], line.strip()) for line in re.findall(r"RUN:(.*)", text)]


def passes(lines: list[str], **more: str) -> bool:
    paths = [str(OUT / "bin"), "/usr/lib/llvm-22/bin", os.environ["PATH"]]
    environment = os.environ | {"PATH": os.pathsep.join(paths), "LLVM_DISABLE_CRASH_REPORT": "1"} | more
    script = "set -e -o pipefail\n" + "\n".join(lines)
    done = subprocess.Popen(
        ["bash", "-c", script], env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True, preexec_fn=limit,
    )  # fmt: skip
    try:
        return done.wait(SECONDS) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:  # mutants that never end, or only when memory does, are children of the shell
        with contextlib.suppress(ProcessLookupError):
            os.killpg(done.pid, signal.SIGKILL)


def lit(only: str, folder: Path, most: int, seed: int) -> None:
    mutants = [Mutant(*row) for row in json.loads((OUT / "mutants.json").read_text())]
    (OUT / "tmp").mkdir(exist_ok=True)
    tests = {str(p): run_lines(p) for p in sorted(folder.rglob("*.mlir"))}
    reached: dict[int, list[str]] = collections.defaultdict(list)
    for name, lines in tests.items():
        seen = OUT / "tmp" / "seen"
        seen.unlink(missing_ok=True)
        if not passes(lines, TW_MUTANTS_SEEN=str(seen)):
            print("fails without a change:", name)
        elif seen.exists():
            for number in set(map(int, seen.read_text().split())):
                reached[number].append(name)
    results = {}
    by_file: dict[str, list[int]] = collections.defaultdict(list)
    for number, mutant in enumerate(mutants):
        if re.search(only, mutant.file):
            by_file[mutant.file].append(number)

    def noticed(number: int) -> str:
        """The test that notices; the tests that are about the pass come first."""
        stem = Path(mutants[number].file).stem.replace("_", "-")
        for name in sorted(reached[number], key=lambda n: stem not in n):
            if not passes(tests[name], TW_MUTANT=str(number)):
                return name
        return ""

    for file, numbers in by_file.items():
        chosen = sorted(random.Random(seed).sample(numbers, min(most, len(numbers))))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            found = dict(zip(chosen, pool.map(noticed, chosen), strict=True))
        results.update(found)
        survivors = [number for number, name in found.items() if not name]
        print(f"{file}: {len(survivors)} of {len(chosen)} survive ({len(numbers)} in all)", flush=True)
        for number in survivors:
            mark = "" if reached[number] else "  (not reached)"
            print(f"  {number} {mutants[number].line}: {mutants[number].what}{mark}", flush=True)
    (OUT / "results.json").write_text(json.dumps(results))


# --- pytest -------------------------------------------------------------------------------------------


class Reached:
    """Of each test: the mutants that it reaches, and how long it takes."""

    def __init__(self, seen: Path) -> None:
        self.seen = seen
        self.rows: dict[str, tuple[float, list[int]]] = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        os.kill(os.getpid(), signal.SIGWINCH)  # whatever has been seen is forgotten
        self.seen.write_text("")
        begin = time.monotonic()
        yield
        self.rows[item.nodeid] = (time.monotonic() - begin, sorted(set(map(int, self.seen.read_text().split()))))


def forked(arguments: list[str], **environment: str) -> int:
    """What pytest returns in a child."""
    child = os.fork()
    if child == 0:
        os.environ.update(environment)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        plugins = []
        if "TW_MUTANTS_SEEN" in environment:
            plugins = [Reached(Path(environment["TW_MUTANTS_SEEN"]))]
        else:
            limit()
            signal.alarm(SECONDS)
        code = pytest.main(
            ["-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-o", "pythonpath=", *arguments], plugins=plugins
        )
        for plugin in plugins:
            (OUT / "reached.json").write_text(json.dumps(plugin.rows))
        os._exit(int(code))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def with_pytest(arguments: list[str], numbers: list[int], most: int) -> None:
    mutants = [Mutant(*row) for row in json.loads((OUT / "mutants.json").read_text())]
    os.environ |= {"TILEWRIGHT_NO_CACHE": "1"}
    sys.path[:0] = [str(OUT / "python"), str(ROOT / "test" / "emulator")]
    import tilewright.tile  # noqa: F401 - here, so that each child need not

    if forked(arguments, TW_MUTANTS_SEEN=str(OUT / "tmp" / "reached")):
        sys.exit("the tests fail without a change")
    rows = json.loads((OUT / "reached.json").read_text())
    options = [word for word in arguments if not Path(word.split("::")[0]).exists()]
    for number in numbers:
        tests = sorted((seconds, name) for name, (seconds, seen) in rows.items() if number in seen)
        names = [name for _, name in tests[:most]]
        alive = not names or forked([*options, *names], TW_MUTANT=str(number)) == 0
        state = "not reached" if not names else "survives" if alive else "noticed"
        print(f"{state:12}{number} {mutants[number].file}:{mutants[number].line}: {mutants[number].what}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("build").add_argument("files", nargs="+", type=Path, help="C files that are changed")
    of_lit = actions.add_parser("lit")
    of_lit.add_argument("--only", default="", help="mutants whose file has this in its path")
    of_lit.add_argument("--folder", type=Path, default=ROOT / "test" / "lowering", help="where the tests are")
    of_lit.add_argument("--most", type=int, default=1 << 30, help="how many, drawn at random (default: all)")
    of_lit.add_argument("--seed", type=int, default=1, help="of the draw (default: 1)")
    of_pytest = actions.add_parser("pytest")
    of_pytest.add_argument("numbers", help="by commas; or `survivors` of lit")
    of_pytest.add_argument("--tests-a-mutant", type=int, default=40, help="the most that are run for one (default: 40)")
    of_pytest.add_argument("arguments", nargs=argparse.REMAINDER, help="files and options of pytest")
    options = parser.parse_args()
    if options.action == "build":
        shutil.rmtree(OUT, ignore_errors=True)
        build([path.resolve() for path in options.files])
    elif options.action == "lit":
        lit(options.only, options.folder.resolve(), options.most, options.seed)
    else:
        numbers = [int(number) for number in options.numbers.split(",")] if options.numbers != "survivors" else []
        if not numbers:
            found = json.loads((OUT / "results.json").read_text())
            numbers = [int(number) for number, name in found.items() if not name]
        (OUT / "tmp").mkdir(exist_ok=True)
        with_pytest(options.arguments, numbers, options.tests_a_mutant)


if __name__ == "__main__":
    main()
