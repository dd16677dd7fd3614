#!/usr/bin/env python3
"""Derives what follows from the op definitions (dialect/TileOps.td).

    twgen.py tables OPS.json FOLDER  rows that C includes; 1 if a back end lacks a rule for an op (build time)
    twgen.py generate OPS.json       docs/dialect.md, docs/ops/, the table of passes in docs/design/lowering.md and
                                     python/tilewright/_optable.py, which are committed
    twgen.py check OPS.json          1 if one of these is not what would be written

OPS.json is what `llvm-tblgen -dump-json dialect/TileOps.td` prints.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
Record = dict[str, Any]

UPSTREAM = ("floatOp", "signedOp", "unsignedOp", "boolOp")
KINDS = {"b": "bool", "i": "integers", "f": "floats", "n": "narrow floats"}
RULES = {
    "promote": "the common dtype of the operands",
    "float": "the common dtype of the operands; float32 where that is an integer",
    "bool": "bool_, after promotion of the operands",
    "same": "the dtype of the operands, which is one",
}


def read_ops(path: str) -> list[Record]:
    """The records of the dialect's ops, sorted by the name of the op."""
    records = json.loads(Path(path).read_text())
    ops = [records[name] for name in records["!instanceof"]["Tile_Op"]]
    return sorted(ops, key=lambda op: op["opName"].encode())


# --- For C ---------------------------------------------------------------------------------------


def op_table(ops: list[Record]) -> str:
    """One TW_OP row an op."""
    rows = []
    for op in ops:
        upstream = ", ".join(f'"{op[field]}"' for field in UPSTREAM)
        rows.append(
            f'TW_OP({kind_of("tile." + op["opName"])}, "{op["accepts"]}", {op["resultRule"].upper()}, {upstream})\n'
        )
    return "".join(rows)


class Kind(NamedTuple):
    """A row of dialect/op_kinds.h."""

    name: str
    form: str
    arithmetic: str
    columns: str
    back_ends: str  # that must have a rule: BOTH, GPU, CPU, NEITHER


def kind_of(name: str) -> str:
    """What follows TW_ in the enumerator: ARITH_ADDI of arith.addi."""
    return name.replace(".", "_").upper()


UPSTREAM_ROW = re.compile(r'^TW_UPSTREAM\("([\w.]+)", (\w+), (\w+), (\w+), ([\w |]+)\)$', re.MULTILINE)


def upstream_kinds() -> list[Kind]:
    """The rows of lowering/upstream_ops.def."""
    text = (ROOT / "lowering/upstream_ops.def").read_text()
    kinds = []
    for match in UPSTREAM_ROW.finditer(text):
        name, form, arithmetic, back_ends, columns = match.groups()
        kinds.append(Kind(name, form, arithmetic, re.sub(r"(\w+)", r"TW_\1", columns), back_ends))
    return kinds


def form_of(op: Record) -> str:
    if not op["form"] and op["resultRule"] != "own":
        return "ELEMENTWISE"
    return op["form"].upper() or "NONE"


def accesses(op: Record, records: Record) -> Iterator[str]:
    """READS_ARRAY and the like, as the operands are declared."""
    words = {"MemRead": "READS", "MemWrite": "WRITES"}
    memories = {"Tile_Array": "ARRAY", "Tile_BufferType": "SHARED", "Tile_TileOrBuffer": "SHARED"}
    for argument, _ in op["arguments"]["args"]:
        operand = records[argument["def"]]
        for decorator in operand.get("decorators", []):
            if (memory := memories.get(operand["constraint"]["def"])) and decorator["def"] in words:
                yield f"{words[decorator['def']]}_{memory}"


def is_pure(op: Record) -> bool:
    return any(trait["def"] == "Pure" for trait in op["traits"])


def operand_groups(op: Record, records: Record) -> list[tuple[str, bool]]:
    """The names of the operands in their order, and whether there may be several or none of them."""
    groups = []
    for argument, name in op["arguments"]["args"]:
        operand = records[argument["def"]]
        constraint = records[operand["constraint"]["def"]] if "constraint" in operand else operand
        classes = constraint["!superclasses"]
        if "AttrConstraint" not in classes:
            groups.append((name, "Variadic" in classes or "Optional" in classes))
    return groups


def columns_of(op: Record, records: Record) -> list[str]:
    """The columns of one of our ops, in the order of tw_op_columns_t."""
    operands = {name for name, _ in operand_groups(op, records)}
    needed = {"": set(), "tile": {"array", "index"}, "element": {"array", "indices"}}[op["access"]]
    if not needed <= operands:
        raise SystemExit(f"tile.{op['opName']} lacks operands that its access needs: {', '.join(needed - operands)}")
    said = {
        "PURE": is_pure(op),
        **dict.fromkeys(sorted(accesses(op, records)), True),
        "ORDERS_THREADS": op["orders"] == "threads",
        "ORDERS_ALL": op["orders"] == "all",
        "COPIES_BY_THREADS": op["copies"] == "threads",
        "COPIES_BY_ENGINE": op["copies"] == "engine",
        "STARTS_ASYNC": op["async"] == "start",
        "WAITS_ASYNC": op["async"] == "wait",
        "HAS_SCRATCH": bool(op["scratch"]),
        "HAS_REGION": bool(op["regions"]["args"]),
        "BY_TILE": op["access"] == "tile",
        "BY_ELEMENT": op["access"] == "element",
        "MEETS_BLOCK": op["meets"] == "block",
        "MEETS_WARP": op["meets"] == "warp",
        "VARIES": bool(op["varies"]),
        "FLUSHES": bool(op["flushes"]),
    }
    return [column for column, holds in said.items() if holds]


def our_kinds(path: str) -> list[Kind]:
    records = json.loads(Path(path).read_text())
    rows = []
    for op in read_ops(path):
        columns = " | ".join(f"TW_{column}" for column in columns_of(op, records)) or "TW_NOTHING"
        rows.append(Kind(f"tile.{op['opName']}", form_of(op), "NONE", columns, ""))
    return rows


def kind_rows(kinds: list[Kind]) -> str:
    rows = [(kind_of(kind.name), f'"{kind.name}"', kind.form, kind.arithmetic, kind.columns) for kind in kinds]
    return "".join(f"TW_KIND({', '.join(row)})\n" for row in rows)


def operand_tables(path: str) -> tuple[str, str]:
    """TW_OPERAND of each name that operands have, and TW_OPERANDS of each op: what holds their number, that of the
    group whose number is open, how many groups there are, and the group of each name."""
    records, rows, names = json.loads(Path(path).read_text()), [], set()
    for op in read_ops(path):
        groups = operand_groups(op, records)
        is_open = [number for number, (_, several) in enumerate(groups) if several]
        counted = any(trait["def"] == "AttrSizedOperandSegments" for trait in op["traits"])
        open_group = "TW_COUNTED" if counted else str(is_open[0]) if is_open else "TW_CLOSED"
        places = "".join(f", [TW_OPERAND_{name.upper()}] = {number + 1}" for number, (name, _) in enumerate(groups))
        if groups:
            rows.append(f"TW_OPERANDS({kind_of('tile.' + op['opName'])}, {open_group}, {len(groups)}{places})\n")
        names.update(name.upper() for name, _ in groups)
    return "".join(f"TW_OPERAND({name})\n" for name in sorted(names)), "".join(rows)


FACTOR, MASK, WORD = 0x9E3779B97F4A7C15, 2**64 - 1, 8


def hash_of(name: str) -> int:
    """The same as hash_of in dialect/op_kinds.c."""
    text = name.encode()
    value = len(text)
    words = [text[i : i + WORD] for i in range(0, len(text) - WORD, WORD)]
    for word in (*words, text[-WORD:]):
        value = (value ^ int.from_bytes(word, "little")) * FACTOR & MASK
        value = (value ^ value >> 32) * FACTOR & MASK
    return value ^ value >> 32


def slot_of(value: int, seed: int, num_slots: int) -> int:
    return ((value >> 20) + seed * (value >> 40 | 1)) % num_slots


def perfect_hash(names: list[str]) -> tuple[list[int], list[int]]:
    """A seed for each bucket of names, so that no two come to one slot; and the number of the name in each slot."""
    num_slots = 1 << (2 * len(names)).bit_length()
    num_seeds = num_slots // 4
    buckets: dict[int, list[int]] = {}
    for number, name in enumerate(names):
        buckets.setdefault(hash_of(name) % num_seeds, []).append(number)
    seeds, slots = [0] * num_seeds, [0] * num_slots
    for bucket, members in sorted(buckets.items(), key=lambda item: -len(item[1])):
        for seed in range(num_slots):
            places = {slot_of(hash_of(names[member]), seed, num_slots) for member in members}
            if len(places) == len(members) and not any(slots[place] for place in places):
                break
        else:
            raise SystemExit("twgen: no perfect hash; enlarge the table")
        seeds[bucket] = seed
        for member in members:
            slots[slot_of(hash_of(names[member]), seed, num_slots)] = member + 1  # 0 is TW_UNKNOWN_OP
    return seeds, slots


def hash_tables(kinds: list[Kind]) -> str:
    seeds, slots = perfect_hash([kind.name for kind in kinds])
    texts = [f"#define HASH_FACTOR UINT64_C({FACTOR:#x})\n"]
    for name, values in (("seeds", seeds), ("slots", slots)):
        texts.append(f"static const uint16_t hash_{name}[] = {{{', '.join(map(str, values))}}};\n")
    return "".join(texts)


def enums(path: str) -> list[tuple[str, Record, list[Record]]]:
    """The values of attributes: an enum's name in small letters, its record, those of its values."""
    records = json.loads(Path(path).read_text())
    found = [records[name] for name in records["!instanceof"]["Tile_Enum"]]
    return [
        (
            re.sub(r"(?<=[a-z])(?=[A-Z])", "_", enum["className"]).lower(),
            enum,
            [records[case["def"]] for case in enum["enumerants"]],
        )
        for enum in found
    ]


def c_enums(path: str) -> str:
    """The values of attributes as enums of C."""
    texts = []
    for name, enum, cases in enums(path):
        values = ", ".join(f"{enum['cPrefix']}{case['symbol'].upper()} = {case['value']}" for case in cases)
        texts.append(f"typedef enum {{ {values} }} tw_{name}_t; /* {enum['summary']} */\n")
    return "".join(texts)


def own_functions(path: str, field: str) -> str:
    """TW_OWN(kind, number of operands, function) of the ops that have one of their own."""
    records, rows = json.loads(Path(path).read_text()), []
    for op in read_ops(path):
        if op[field]:
            operands = len(operand_groups(op, records))
            rows.append(f"TW_OWN({kind_of('tile.' + op['opName'])}, {operands}, {op[field]})\n")
    return "".join(rows)


def tables(path: str, folder: Path) -> int:
    """Writes what dialect/ and lowering/ include; an unchanged file keeps its time."""
    ops, kinds = read_ops(path), [*our_kinds(path), *upstream_kinds()]
    operand_names, operand_rows = operand_tables(path)
    texts = {
        "TileOpTable.inc": op_table(ops),
        "TileOpKinds.inc": kind_rows(kinds),
        "TileOpHash.inc": hash_tables(kinds),
        "TileOperandNames.inc": operand_names,
        "TileOperands.inc": operand_rows,
        "TileValues.inc": c_enums(path),
        "TileVerifiers.inc": own_functions(path, "verifier"),
        "TileInference.inc": own_functions(path, "inference"),
        "TileScratch.inc": own_functions(path, "scratch"),
        "TileLegalizers.inc": own_functions(path, "legalizer"),
        "GpuRules.inc": "".join(f"TWG_ROW({kind})\n" for kind in sorted(rules_of("lowering/gpu"))),
        "CpuRules.inc": "".join(f"CPU_ROW({kind})\n" for kind in sorted(rules_of("lowering/cpu"))),
        "CpuStripRules.inc": "".join(f"CPU_STRIP_ROW({kind})\n" for kind in sorted(strip_rules())),
    }
    for name, text in texts.items():
        if not (folder / name).exists() or (folder / name).read_text() != text:
            (folder / name).write_text(text)
    missing = [text for back_end in RULE_ROWS for text in missing_rules(ops, back_end, rules_of(back_end))]
    sys.stderr.writelines(f"{text}\n" for text in missing)
    return bool(missing)


# --- Rules of the back ends ----------------------------------------------------------------------

# Ops without an elementwise rule that legalization replaces all the same.
LEGALIZED = ("assume_divisible", "bitcast", "cast", "cat", "constant", "insert", "pack_to_bytes", "unpack_from_bytes")
# A row at the start of a line: the name of a macro, and the kind of op as its first argument.
RULE_ROWS = {
    "lowering/cpu": ("*.c", re.compile(r"^CPU_RULE\w*\(TW_(\w+),", re.MULTILINE)),
    "lowering/gpu": ("*.c", re.compile(r"^TWG_RULE\(TW_(\w+),", re.MULTILINE)),
}


def rules_of(back_end: str) -> set[str]:
    """The kinds of ops that a back end has rows for."""
    files, row = RULE_ROWS[back_end]
    texts = [path.read_text() for path in sorted((ROOT / back_end).rglob(files))]
    return {kind for text in texts for kind in row.findall(text)}


def strip_rules() -> set[str]:
    """The kinds of ops that lanes of a strip of threads do in another way than one thread."""
    texts = [path.read_text() for path in sorted((ROOT / "lowering/cpu").glob("strip*.c"))]
    return {kind for text in texts for kind in re.findall(r"^CPU_STRIP_RULE\(TW_(\w+),", text, re.MULTILINE)}


def lowered_names(op: Record) -> list[str]:
    """The names under which an op reaches the back ends; none of what ends a body, which the op around reads."""
    if any(trait["def"] == "Terminator" for trait in op["traits"]):
        return []
    if op["resultRule"] == "own" and op["opName"] not in LEGALIZED:
        return [f"tile.{op['opName']}"]
    return list(dict.fromkeys(op[field] for field in UPSTREAM if op[field]))


def needed_rules(ops: list[Record], back_end: str) -> dict[str, str]:
    """The kinds that a back end must have a rule for, and why."""
    name = back_end.removeprefix("lowering/").upper()
    needed = {
        kind_of(kind.name): f"{kind.name} of lowering/upstream_ops.def"
        for kind in upstream_kinds()
        if kind.back_ends in ("BOTH", name)
    }
    for op in ops:
        if name == "GPU" or "GpuOps.td" not in op["!locs"][-1]:
            needed.update((kind_of(lowered), f"what tile.{op['opName']} becomes") for lowered in lowered_names(op))
    return needed


def missing_rules(ops: list[Record], back_end: str, rules: set[str]) -> list[str]:
    """What is said of each op that has no row."""
    needed = needed_rules(ops, back_end)
    return [f"{back_end}: no rule for TW_{kind}, {why}" for kind, why in needed.items() if kind not in rules]


# --- For Python ----------------------------------------------------------------------------------

PYTHON_HEAD = '''"""The operations of tile code as the dialect defines them. Made by tools/twgen.py; do not edit."""

from __future__ import annotations

from typing import NamedTuple


class Op(NamedTuple):
    """An operation.

    Attributes:
        name: the op of the dialect.
        public: its name in `tilewright.tile`.
        operator: the Python operator that means the same, or "".
        numpy: its meaning, an expression over x, y and z, or "".
        accepts: letters of the kinds of dtype it takes: b(ool), i(nteger), f(loat), n(arrow float).
        result: the rule of its result's dtype: promote, float, bool, same, or own.
        operands: how many tiles it takes, where it is elementwise; else 0.
        summary: what it does.
    """

    name: str
    public: str
    operator: str
    numpy: str
    accepts: str
    result: str
    operands: int
    summary: str


OPS: tuple[Op, ...] = (
'''


def count_operands(op: Record) -> int:
    """Tiles that an elementwise op takes; 0 for the others."""
    if op["resultRule"] == "own":
        return 0
    return sum(argument[0]["def"] == "Tile_Value" for argument in op["arguments"]["args"])


def python_rows(name: str, summary: str, rows: dict[str, str | int]) -> str:
    """A dict of Python, as the formatter has it."""
    head = f"{name}: dict[str, {type(next(iter(rows.values()))).__name__}] = {{"
    texts = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in rows.items()]
    line = f"{head}{', '.join(texts)}}}"
    if len(line) > 120:
        line = head + "".join(f"\n    {text}," for text in texts) + "\n}"
    return f"\n# {summary}\n{line}\n"


def python_table(path: str) -> str:
    lines, ops = [PYTHON_HEAD], read_ops(path)
    for op in ops:
        if not op["pyName"]:
            continue
        texts = (f"tile.{op['opName']}", op["pyName"], op["pyOperator"], op["numpy"], op["accepts"], op["resultRule"])
        lines.append("    Op(\n")
        lines += [f"        {json.dumps(text)},\n" for text in texts]
        lines.append(f"        {count_operands(op)},\n")
        lines.append(f"        {json.dumps(op['summary'], ensure_ascii=False)},\n    ),\n")
    lines.append(")\n\nBY_PUBLIC: dict[str, Op] = {op.public: op for op in OPS}\n")
    nouns = {f"tile.{op['opName']}": op["noun"] for op in ops if op["noun"]}
    lines.append(python_rows("NOUNS", "What remarks call an op where its name is not the user's.", nouns))
    for name, enum, cases in enums(path):
        words = {case["str"]: case["value"] for case in cases}
        lines.append(python_rows(name.upper(), f"Word -> number: {enum['summary']}.", words))
    return "".join(lines)


# --- For people ----------------------------------------------------------------------------------


def section_of(op: Record, heads: dict[str, list[tuple[int, str]]]) -> tuple[str, str]:
    """The file and section comment under which an op is defined."""
    file, line = op["!locs"][-1].rsplit(":", 1)
    name = Path(file).name
    before = [head for at, head in heads[name] if at < int(line)]
    return name, before[-1] if before else Path(name).stem


def read_heads(path: Path) -> list[tuple[int, str]]:
    """Line numbers and texts of the section comments of a .td file."""
    lines = path.read_text().split("\n")
    heads = []
    for number, line in enumerate(lines):
        if number and lines[number - 1].startswith("//===---") and re.match(r"// \w", line):
            heads.append((number + 1, line.removeprefix("// ").strip()))
    return heads


def argument_names(op: Record, key: str) -> str:
    names = [f"`{name}`" for _, name in op[key]["args"] if name]
    return ", ".join(names) if names else "none"


def document_op(op: Record) -> str:
    rows = [f"### `tile.{op['opName']}`\n", f"{op['summary'][:1].upper()}{op['summary'][1:]}.\n"]
    if op["description"].strip():
        rows.append(textwrap.dedent(op["description"].strip("\n")).strip() + "\n")
    facts = []
    if op["pyName"]:
        operator = f", operator `{op['pyOperator']}`" if op["pyOperator"] else ""
        facts.append(f"In Python: `ct.{op['pyName']}`{operator}")
    if op["numpy"]:
        facts.append(f"Means: `{op['numpy']}`")
    facts.append(f"Operands and attributes: {argument_names(op, 'arguments')}")
    if op["accepts"]:
        facts.append("Takes: " + ", ".join(KINDS[letter] for letter in op["accepts"]))
    if op["resultRule"] in RULES:
        facts.append(f"Result: {RULES[op['resultRule']]}")
    upstream = [op[field] for field in UPSTREAM if op[field]]
    if upstream:
        facts.append("Becomes: " + ", ".join(f"`{name}`" for name in dict.fromkeys(upstream)))
    facts.append(f"Since: {op['since']}")
    rows.append("\n".join(f"- {fact}" for fact in facts) + "\n")
    return "\n".join(rows)


PAGES = {
    "TileOps.td": ("tile.md", "Operations of tile code", "What the front end emits."),
    "GpuOps.td": ("gpu.md", "Operations on layouts and shared memory", "What only the passes of the GPU make."),
    "SimtOps.td": ("simt.md", "Operations of threads", "What SIMT kernels add."),
}


def pages(ops: list[Record]) -> dict[Path, str]:
    """docs/ops: a page for each .td file."""
    heads = {name: read_heads(ROOT / "dialect" / name) for name in PAGES}
    texts: dict[Path, str] = {}
    for name, (page, title, intro) in PAGES.items():
        mine = [op for op in ops if section_of(op, heads)[0] == name]
        mine.sort(key=lambda op: int(op["!locs"][-1].rsplit(":", 1)[1]))
        text, last = [f"<!-- Made by tools/twgen.py from dialect/{name}; do not edit. -->\n# {title}\n\n{intro}\n"], ""
        for op in mine:
            section = section_of(op, heads)[1]
            if section != last and heads[name]:
                text.append(f"## {section}\n")
            last = section
            text.append(document_op(op))
        texts[ROOT / "docs/ops" / page] = "\n".join(text)
    return texts


def overview(ops: list[Record]) -> str:
    """docs/dialect.md: the ops as tables, those that Python sees, then those that only passes make."""
    lines = ["# The operations of the `tile` dialect", "", "Made by `tools/twgen.py` from `dialect/*.td`.", ""]
    lines += ["More on each: [tile code](ops/tile.md), [GPU](ops/gpu.md), [threads](ops/simt.md).", ""]
    lines += ["## As Python has them", "", "| `tilewright.tile` | op | what it computes | in NumPy | dtypes |"]
    lines += ["|---|---|---|---|---|"]
    for op in sorted((op for op in ops if op["pyName"]), key=lambda op: op["pyName"].rstrip("_")):
        kinds = ", ".join(KINDS[kind] for kind in op["accepts"])
        numpy = f"`{op['numpy']}`" if op["numpy"] else ""
        python = f"`{op['pyName'].rstrip('_')}`"
        lines.append(f"| {python} | `tile.{op['opName']}` | {cell(op['summary'])} | {numpy} | {kinds} |")
    lines += ["", "## Of the compiler", "", "| op | what it does |", "|---|---|"]
    lines += [f"| `tile.{op['opName']}` | {cell(op['summary'])} |" for op in ops if not op["pyName"]]
    return "\n".join(lines) + "\n"


PASS_ROW = re.compile(r'^TW_PASS\((\w+), (\w+), \w+, "(.+?)", (\w+), (\w+), (\w+),\s+"(.+)"\)$', re.MULTILINE)
MADE = re.compile(r"(<!-- passes: .*? -->\n).*?(<!-- end of passes -->)", re.DOTALL)


C_TEXT = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\])*"', re.DOTALL)
C_FUNCTION = re.compile(r"^(?:static )?(\w+) (\w+)\(([^)]*)\) \{((?-s:.*)\}|\n.*?^\})$", re.MULTILINE | re.DOTALL)
QUERY = re.compile(r"tw_(?:is|has|may|computes|keeps)_")


def c_functions() -> dict[Path, dict[str, tuple[str, str, str]]]:
    """Of each file of lowering/, its functions: result, parameters and body."""
    paths = sorted((ROOT / "lowering").rglob("*.c"))
    texts = {path: C_TEXT.sub("", path.read_text()) for path in paths}
    return {path: {m[2]: (m[1], m[3], m[4]) for m in C_FUNCTION.finditer(text)} for path, text in texts.items()}


def files_of(run: str, files: dict[Path, dict[str, tuple[str, str, str]]], runs: set[str]) -> list[Path]:
    """Where the function of a pass is, then those of its room, or below, that it gives a part to change."""
    found = [next(path for path, functions in files.items() if run in functions)]
    mine = files[found[0]]
    beside = {
        name: path
        for path, functions in files.items()
        if path.parent.name != "facts" and found[0].parent in (path.parent, path.parent.parent)
        if not runs & functions.keys()
        for name, (result, parameters, _) in functions.items()
        if result in ("bool", "void") and re.fullmatch(r"MlirOperation \w+", parameters) and name.startswith("tw_")
    }

    def follow(name: str, seen: set[str]) -> None:
        for called in re.findall(r"\b\w+\b", mine[name][2]):
            if called in mine and called not in seen:
                follow(called, seen | {called})
            elif called in beside and not QUERY.match(called) and beside[called] not in found:
                found.append(beside[called])

    follow(run, {run})
    return found


def pass_table() -> str:
    """The rows of lowering/passes.def for docs/design/lowering.md."""
    lines = ["| stage | pass | what it does | for | files, in order |", "|---|---|---|---|---|"]
    last, files = "", c_functions()
    rows = PASS_ROW.findall((ROOT / "lowering/passes.def").read_text())
    runs = {row[3] for row in rows}
    for stage, targets, name, run, feature, group, sentence in rows:
        facts = [{"ALL": "", "GPU": "", "CPU": "CPU"}[targets], "" if feature == "ANY_GPU" else feature]
        facts.append("" if group == "GENERAL" else group.lower().replace("_", " "))
        told = ", ".join(fact for fact in facts if fact)
        shown = stage.lower() if stage != last else ""
        first, *steps = files_of(run, files, runs)
        places = ", ".join([f"`{first.relative_to(ROOT)}`", *(f"`{step.stem}`" for step in steps)])
        lines.append(f"| {shown} | `{name}` | {cell(sentence)} | {told} | {places} |")
        last = stage
    return "\n".join(lines) + "\n"


def lowering_page() -> str:
    text = (ROOT / "docs/design/lowering.md").read_text()
    return MADE.sub(lambda match: match.group(1) + pass_table() + match.group(2), text)


def cell(text: str) -> str:
    return text.replace("|", "\\|")


# --- Front door ----------------------------------------------------------------------------------


def committed(ops_file: str) -> dict[Path, str]:
    table, ops = ROOT / "python/tilewright/_optable.py", read_ops(ops_file)
    made = {table: python_table(ops_file), ROOT / "docs/dialect.md": overview(ops), **pages(ops)}
    return made | {ROOT / "docs/design/lowering.md": lowering_page()}


def generate(ops_file: str) -> int:
    for path, text in committed(ops_file).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return 0


def check(ops_file: str) -> int:
    stale = [path for path, text in committed(ops_file).items() if not path.exists() or path.read_text() != text]
    for path in stale:
        print(f"{path.relative_to(ROOT)} is out of date: make generate", file=sys.stderr)
    return bool(stale)


def main(arguments: list[str]) -> int:
    match arguments:
        case ["tables", ops, folder]:
            return tables(ops, Path(folder))
        case ["generate", ops]:
            return generate(ops)
        case ["check", ops]:
            return check(ops)
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
