"""As much of PTX as tells where the operands of its asynchronous products come from.

kernels = read(text)
kernels["matmul"].products[0].operands   # of each register of the left operand, the constants and lines it comes from
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Iterator

from .flow import Graph, Step

# The first operand of these is no register that they write.
WRITES_NOTHING = re.compile(
    r"(st|stmatrix|red|bar|barrier|bra|brx|ret|exit|trap|cp|fence|membar|prefetch|prefetchu|setmaxnreg|griddepcontrol"
    r"|nanosleep|discard|applypriority|createpolicy_|wgmma|call|mbarrier\.(init|inval))\b"
)


@dataclasses.dataclass(frozen=True)
class Statement:
    line: int
    guard: str
    opcode: str
    operands: list[str]
    scope: str

    @property
    def writes(self) -> frozenset[str]:
        if self.opcode.startswith("wgmma.mma_async") and self.operands:
            return registers(self.operands[0])
        if WRITES_NOTHING.match(self.opcode) or not self.operands or self.operands[0].startswith("["):
            return frozenset()
        return registers(self.operands[0])

    @property
    def copies(self) -> tuple[tuple[str, str], ...]:
        plain = self.opcode.startswith("mov.") and all(re.fullmatch(r"%\w+", o) for o in self.operands)
        return ((self.operands[0], self.operands[1]),) if plain and len(self.operands) == 2 else ()

    @property
    def constant(self) -> int | None:
        number = (
            re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)|0[fF]([0-9a-fA-F]{8})", self.operands[-1])
            if self.operands
            else None
        )
        if number is None or not re.fullmatch(r"mov\.[a-z]32", self.opcode):
            return None
        return int(number[2], 16) if number[2] else int(number[0], 0) & 0xFFFFFFFF


@dataclasses.dataclass(frozen=True)
class Product:
    line: int
    shape: str  # 64x128x16
    operands: tuple[frozenset[str], ...]  # what each register of the left one may hold; none: in shared memory
    halves: tuple[frozenset[str], ...]  # ... and what that is computed from
    shared: tuple[str, ...] = ()  # registers of the left one that are sums, too


@dataclasses.dataclass(frozen=True)
class Entry:
    name: str
    statements: list[Statement]
    graph: Graph
    threads: int | None  # of a block

    @functools.cached_property
    def products(self) -> list[Product]:
        return products(self.statements, self.graph)


def registers(operand: str) -> frozenset[str]:
    return frozenset(registers_in_order(operand))


def registers_in_order(operand: str) -> list[str]:
    return re.findall(r"%\w+(?:\.\w+)?", operand)


def read(text: str) -> dict[str, Entry]:
    """The kernels of a module."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
    found = {}
    for head in re.finditer(r"\.entry\s+([\w$]+)", text):
        begin = text.index("{", head.end())
        threads = re.search(r"\.(?:req|max)ntid\s+([\d, ]+)", text[head.end() : begin])
        body, line = text[begin : closing(text, begin)], text.count("\n", 0, begin) + 1
        code, labels = statements(body, line)
        size = math.prod(int(n) for n in threads[1].split(",")) if threads else None
        found[head[1]] = Entry(head[1], code, graph_of(code, labels), size)
    return found


def closing(text: str, begin: int) -> int:
    depth = 0
    for found in re.finditer(r"[{}]", text[begin:]):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return begin + found.end()
    return len(text)


def statements(body: str, line: int) -> tuple[list[Statement], dict[str, int]]:
    """And the labels. What a scope declares has its name in front: `AGAIN` of the fourth one is /1/4/AGAIN."""
    found: list[Statement] = []
    labels: dict[str, int] = {}
    local: dict[str, str] = {}  # by scope: a pattern of the registers that it declares without %
    for text, at, scope in pieces(body, line):
        while label := re.match(r"([\w$]+):\s*", text):
            labels[scope + label[1]] = len(found)
            text = text[label.end() :]
        if declared := re.match(r"\.reg\s+\.\w+\s+(\w[\w, ]*)$", text):
            local[scope] = "|".join([*filter(None, [local.get(scope)]), *re.split(r",\s*", declared[1])])
        if local.get(scope):
            text = re.sub(rf"(?<![\w%$.])({local[scope]})(?![\w$.])", rf"%\1{scope.replace('/', '_')}", text)
        parsed = re.match(r"(?:(@!?%\w+)\s+)?(\.?[a-z][\w.:]*)\s*(.*)", text, re.S)
        if parsed and parsed[2] != ".reg":
            found.append(Statement(at, parsed[1] or "", parsed[2], list(operands(parsed[3])), scope))
    return found, labels


def pieces(body: str, line: int) -> Iterator[tuple[str, int, str]]:
    """Statements as text, each with its line and its scope; braces around groups of operands stay."""
    begin, scope, scopes = 0, "/", 0
    for found in re.finditer(r"[;{}]", body):
        text, brace = body[begin : found.start()], found[0]
        if brace != ";" and is_group(text, brace):
            continue
        blank = len(text) - len(text.lstrip())
        if text.strip():
            yield text.strip(), line + text.count("\n", 0, blank), scope
        line += text.count("\n")
        if brace == "{":
            scopes += 1
            scope += f"{scopes}/"
        elif brace == "}":
            scope = scope[: scope.rindex("/", 0, -1) + 1]
        begin = found.end()


def resolve(labels: dict[str, int], scope: str, name: str) -> int:
    """The statement behind the label of the innermost scope that has it."""
    while scope + name not in labels:
        scope = scope[: scope.rindex("/", 0, -1) + 1]
    return labels[scope + name]


def is_group(text: str, brace: str) -> bool:
    """Whether a brace belongs to a statement that has begun."""
    return bool(re.search(r"[a-z]", re.sub(r"^\s*[\w$]+:", "", text))) and (brace == "{" or "{" in text)


def operands(text: str) -> Iterator[str]:
    """Split at commas outside of brackets."""
    depth, begin = 0, 0
    for at, c in enumerate(text):
        depth += (c in "{[(") - (c in "}])")
        if c == "," and depth == 0:
            yield text[begin:at].strip()
            begin = at + 1
    if text[begin:].strip():
        yield text[begin:].strip()


HALVES_DEPTH = 6  # statements from the halves that are put together to what they are loaded by


def products(code: list[Statement], graph: Graph) -> list[Product]:
    found = []
    for at, s in enumerate(code):
        shape = re.match(r"wgmma\.mma_async\..*\.m(\d+)n(\d+)k(\d+)", s.opcode)
        if shape:
            left = registers_in_order(s.operands[1]) if s.operands[1].startswith("{") else []
            values = tuple(frozenset(graph.values(at, r)) for r in left)
            halves = tuple(frozenset(sources(code, graph, at, r, HALVES_DEPTH)) for r in left)
            sums = tuple(r for r in left if r in registers(s.operands[0]))
            found.append(Product(s.line, "x".join(shape.groups()), values, halves, sums))
    return found


def sources(code: list[Statement], graph: Graph, at: int, register: str, depth: int) -> set[str]:
    """The values that a register is computed from, by so many statements."""
    values = graph.values(at, register)
    found = set(values)
    for d in values.values() if depth > 1 else ():
        for operand in code[d].operands[1:] if d >= 0 else ():
            for r in registers_in_order(operand) if not operand.startswith("[") else ():
                found |= sources(code, graph, d, r, depth - 1)
    return found


def graph_of(code: list[Statement], labels: dict[str, int]) -> Graph:
    tables = [resolve(labels, s.scope, o) for s in code if s.opcode == ".branchtargets" for o in s.operands]
    targets: list[tuple[int, ...]] = []
    falls = []
    for s in code:
        jumps = s.opcode.split(".")[0] in ("bra", "brx")
        targets.append(
            tuple(tables if s.opcode.startswith("brx") else [resolve(labels, s.scope, s.operands[0])]) if jumps else ()
        )
        falls.append(bool(s.guard) or not (jumps or s.opcode in ("ret", "exit", "trap")))
    # A label may stand behind the last statement.
    end = len(code)
    targets = [tuple(t for t in ts if t < end) for ts in targets]
    return Graph([Step(s.writes, s.guard, s.copies, s.constant, s.line) for s in code], targets, falls)
