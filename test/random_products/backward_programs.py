"""Random programs like the gradients of attention: the weights are computed once more, four or five products in a loop.

A block has some keys and walks over the queries that see them, for dK and dV (`walk`: keys); or some queries and walks
over their keys, for dQ (queries); or does one after the other (both); or a block takes a whole head, and adds dQ up in
memory (alone). Scores are queries by keys, or turned: keys by queries; so are sums, or their transposes.
"""

from __future__ import annotations

import math
from typing import Any

from choices import Choices, hints_of
from heads import BLOCKS, Heads, all_of, repeated
from numbers_of import EPS, Output, rounded, stored
from source import Lines, file

LOG2E = math.log2(math.e)
TURN = {"T": "{}.T", "permute": "{}.permute((1, 0))", "transpose": "ct.transpose({})"}
ORDERS = {  # of what an iteration computes: weights, their products, products of gradients, gradients of scores
    "values first": ("weights", "dv", "dp", "ds"),
    "products first": ("dp", "weights", "ds", "dv"),
    "values late": ("weights", "dp", "ds", "dv"),
}
ARRAYS = {"q": "Q", "k": "K", "v": "V", "dy": "DY"}
UNIT = 2.0**-20  # how far off sums in float32 are, in parts of what is added up


class Backward(Heads):
    def __init__(self, choices: Choices, blocks: int = BLOCKS) -> None:
        super().__init__(choices, blocks)
        c = choices
        self.out = stored(self.dtype) if c["out"] == "low" else "float32"
        self.keys, self.queries = c["walk"] != "queries", c["walk"] != "keys"
        self.turned, self.sums_turned = c["scores"] == "turned", c["sums"] == "turned"
        self.scale = self.d**-0.5
        self.change = self.scale * (LOG2E if c["base"] == "exp2" else 1)

    # ---- the program ------------------------------------------------------------------------------

    def plane(self) -> tuple[int, int]:
        numbers = {"keys": -(-self.length // self.tn), "alone": 1}.get(self.c["walk"], -(-self.length // self.tm))
        return numbers, self.heads if self.c["walk"] == "queries" else self.heads // self.c["groups"]

    def parameters(self) -> list[str]:
        names = ["Q", "K", "V", "DY"]
        names += ["LSE"] if self.c["statistics"] == "lse" else ["MOST", "TOTAL"]
        return [*names, "DELTA" if self.c["delta"] == "load" else "Y"]

    def source(self, about: str) -> str:
        c, lines = self.c, Lines()
        self.begin(lines, "block", "h" if c["walk"] == "queries" else "g")
        body = {"keys": self.of_keys, "queries": self.of_queries, "both": self.of_both, "alone": self.of_head}[
            c["walk"]
        ]
        body(lines)
        constants = {"S": self.length, "TM": self.tm, "TN": self.tn, "D": self.d}
        constants |= {"SCALE": self.scale, "CHANGE": self.change}
        hints = {name: c[name] for name in hints_of("backward") if c.get(name) is not None}
        outputs = [*(["DQ"] if self.queries else []), *(["DK", "DV"] if self.keys else [])]
        return file(hints, constants, [*self.parameters(), *outputs], lines.text, about)

    def of_keys(self, lines: Lines) -> None:
        lines.add("j = block", *self.positions("columns", "j", "TN"))
        self.operands(lines, "keys", "kv")
        lines.add(f"dk = {self.zeros('TN')}", f"dv = {self.zeros('TN')}")
        self.heads_of_group(lines, lambda: self.walk_queries(lines, "keys"))
        self.store_keys(lines)

    def of_queries(self, lines: Lines) -> None:
        lines.add("i = block", f"g = h // {self.c['groups']}", *self.positions("rows", "i", "TM"))
        self.operands(lines, "queries", "qd")
        self.statistics(lines)
        lines.add(f"dq = {self.zeros('TM')}")
        end = {"none": "ct.cdiv(S, TN)"}.get(self.c["mask"], "min(ct.cdiv(S, TN), ct.cdiv((i + 1) * TM, TN))")
        first = f"max(i * TM - {self.window - 1}, 0) // TN" if self.c["mask"] == "window" else "0"
        whole = "i * TM // TN" if self.c["mask"] == "causal" else "S // TN"
        self.walk(lines, "j", first, end, whole, "before", lambda masked: self.query_step(lines, masked))
        lines.add(self.gradient("DQ", "dq", "h", "i", "TM"))

    def of_both(self, lines: Lines) -> None:
        """Tiles are square, and each head has its keys, so both have as many blocks."""
        self.of_keys(lines)
        lines.add("h = g")
        self.of_queries(lines)

    def of_head(self, lines: Lines) -> None:
        """The sums of dQ are in memory between the blocks of keys, and begin with the first."""
        lines.add("for j in range(ct.cdiv(S, TN)):")
        lines.depth += 1
        lines.add(*self.positions("columns", "j", "TN"))
        self.operands(lines, "alone", "kv")
        lines.add(f"dk = {self.zeros('TN')}", f"dv = {self.zeros('TN')}")
        self.heads_of_group(lines, lambda: self.walk_queries(lines, "alone"))
        self.store_keys(lines)

    def heads_of_group(self, lines: Lines, body: Any) -> None:
        groups = self.c["groups"]
        if groups == 1:
            lines.add("h = g")
            body()
            return
        lines.add(f"for r in range({groups}):")
        lines.depth += 1
        lines.add(f"h = g * {groups} + r")
        body()
        lines.depth -= 1

    def walk_queries(self, lines: Lines, walk: str) -> None:
        mask = self.c["mask"]
        if walk == "alone":
            first, end = "0", "ct.cdiv(S, TM)"
        else:
            first = "0" if mask == "none" else "j * TN // TM"
            end = f"min(ct.cdiv(S, TM), ct.cdiv((j + 1) * TN + {self.window - 1}, TM))"
            end = end if mask == "window" else "ct.cdiv(S, TM)"
        masked = "min(ct.cdiv((j + 1) * TN, TM), ct.cdiv(S, TM))" if mask == "causal" else "1"
        self.walk(lines, "i", first, end, masked, "behind", lambda m: self.key_step(lines, walk, m))

    def walk(self, lines: Lines, k: str, first: str, end: str, border: str, where: str, step: Any) -> None:
        """From `first` to `end`; split: masked only where it must be, which is before or behind the border."""
        lines.add(f"first, end = {first}, {end}")
        if self.c["loop"] != "split":
            lines.loop(self.c["loop"], "n", "(end - first)", lambda n: self.moved(lines, k, n, lambda: step(True)))
            return
        lines.add(f"border = {border}")
        masked = [where == "behind", where == "before"]
        for low, high, is_masked in (("first", "border", masked[0]), ("border", "end", masked[1])):
            lines.add(f"for {k} in range({low}, {high}):")
            lines.inner(lambda _, m=is_masked: step(m), k)

    def moved(self, lines: Lines, k: str, n: str, step: Any) -> None:
        lines.add(f"{k} = first + {n}")
        step()

    def positions(self, name: str, number: str, count: str) -> list[str]:
        return [f"{name} = {number} * {count} + ct.arange({count}, dtype=ct.int32)"]

    def zeros(self, count: str) -> str:
        return f"ct.zeros({f'(D, {count})' if self.sums_turned else f'({count}, D)'}, ct.float32)"

    # What is read

    def needed(self, walk: str) -> set[tuple[str, bool]]:
        """Which operands the products of a walk take, and whether turned."""
        need = {("q", self.turned), ("k", not self.turned), ("dy", self.turned), ("v", not self.turned)}
        if walk != "queries":
            need |= {("dy", self.sums_turned), ("q", self.sums_turned)}
        if walk != "keys":
            need.add(("k", self.sums_turned))
        return need

    def operands(self, lines: Lines, walk: str, which: str) -> None:
        """Those of the keys (kv) or of the queries (qd)."""
        mine = ("k", "v") if which == "kv" else ("q", "dy")
        head, number, count, places = ("g", "j", "TN", "columns") if which == "kv" else ("h", "i", "TM", "rows")
        for name in mine:
            wanted = sorted(turned for x, turned in self.needed(walk) if x == name)
            self.operand(lines, name, wanted, (head, number, count, places))
        if which == "qd":
            self.scaled(lines)

    def operand(self, lines: Lines, name: str, wanted: list[bool], where: tuple[str, str, str, str]) -> None:
        kind, array, (head, number, count, places) = self.c[name], ARRAYS[name], where
        cast = ".astype(ct.tfloat32)" if self.dtype == "tfloat32" else ""
        if kind == "columns":
            lines.add(f"{name}_t = {self.columns(array, head, number, count)}{cast}")
            lines.add(*([f"{name} = {TURN[self.c['turn']].format(f'{name}_t')}"] if False in wanted else []))
            return
        if kind == "order" and True in wanted:
            lines.add(f"{name}_t = {self.columns(array, head, number, count, ', order=(0, 2, 1)')}{cast}")
        if False in wanted or kind != "order":
            lines.add(*(["dims = ct.arange(D, dtype=ct.int32)"] if kind in ("gather", "masked") else []))
            lines.add(f"{name} = {self.lines_of(kind, array, head, number, count, places)}{cast}")
        if True in wanted and kind != "order":
            turn = kind if kind in TURN else self.c["turn"]
            lines.add(f"{name}_t = {TURN[turn].format(name)}")

    def lines_of(self, kind: str, array: str, head: str, number: str, count: str, places: str) -> str:
        if kind in ("gather", "masked"):
            return self.gathered(array, head, places, f", mask=({places} < S)[:, None]" if kind == "masked" else "")
        return self.rows(array, head, number, count)

    def scaled(self, lines: Lines) -> None:
        q = "q_t" if self.turned else "q"
        low = {"wide": f"({q}.astype(ct.float32) * CHANGE).astype(Q.dtype)",
               "low": f"{q} * ct.full((), CHANGE, ct.{self.dtype})"}  # fmt: skip
        lines.add(f"scaled = {low.get(self.c['scale'], q)}")

    def statistics(self, lines: Lines) -> None:
        """Of the rows: what their scores are taken less, what weights are divided by, and sums of dY Y."""
        for name in ["LSE"] if self.c["statistics"] == "lse" else ["MOST", "TOTAL"]:
            lines.add(f"{name.lower()} = {self.vector(name)}")
        if self.c["delta"] == "load":
            lines.add(f"delta = {self.vector('DELTA')}")
            return
        place = ("h", "i", "TM", "rows")
        product = " * ".join(f"{self.lines_of('rows', x, *place)}.astype(ct.float32)" for x in ("DY", "Y"))
        lines.add(f"delta = ct.sum({product}, axis=1){'[None, :]' if self.turned else '[:, None]'}")

    def vector(self, array: str) -> str:
        kind, shape = self.c["vectors"], "(1, TM)" if self.turned else "(TM, 1)"
        load = f"ct.load({array}, (h, i), (1, TM), padding_mode=ZERO)"
        spread = "[None, :]" if self.turned else "[:, None]"
        return {
            "reshape": f"{load}.reshape({shape})",
            "vector": f"{load}.reshape((TM,)){spread}",
            "gather": f"ct.gather({array}, (h, rows)){spread}",
        }[kind]

    # What is computed

    def key_step(self, lines: Lines, walk: str, masked: bool) -> None:
        lines.add(*self.positions("rows", "i", "TM"))
        self.operands(lines, walk, "qd")
        self.statistics(lines)
        self.step(lines, masked)
        self.add_product(lines, "dk", "ds", "q", turned=True)
        if walk == "alone":
            self.add_in_memory(lines)

    def query_step(self, lines: Lines, masked: bool) -> None:
        lines.add(*self.positions("columns", "j", "TN"))
        self.operands(lines, "queries", "kv")
        self.step(lines, masked, with_values=False)
        self.add_product(lines, "dq", "ds", "k", turned=False)

    def add_in_memory(self, lines: Lines) -> None:
        kept = self.rows("DQ", "h", "i", "TM")
        lines.add(f"dq = {self.zeros('TM')}", "if j > 0:")
        lines.add(f"    dq = {TURN[self.c['turn']].format(kept) if self.sums_turned else kept}")
        self.add_product(lines, "dq", "ds", "k", turned=False)
        last = " * (SCALE if j == ct.cdiv(S, TN) - 1 else 1.0)" if self.c["scale"] != "early" else ""
        value = TURN[self.c["turn"]].format("dq") if self.sums_turned else "dq"
        lines.add(self.store("DQ", f"({value}{last})", "h", "i", "TM"))

    def step(self, lines: Lines, masked: bool, with_values: bool = True) -> None:
        for part in ORDERS[self.c["order"]]:
            if part == "weights":
                self.weights(lines, masked)
            elif part == "dv" and with_values:
                self.add_product(lines, "dv", "p", "dy", turned=True)
            elif part == "dp":
                left, right = ("v", "dy_t") if self.turned else ("dy", "v_t")
                lines.add(f"dp = {self.product(left, right)}")
            elif part == "ds":
                self.gradients(lines)

    def product(self, left: str, right: str) -> str:
        return f"ct.mma({left}, {right}, ct.zeros({'(TN, TM)' if self.turned else '(TM, TN)'}, ct.float32))"

    def weights(self, lines: Lines, masked: bool) -> None:
        c = self.c
        lines.add(f"s = {self.product(*(('k', 'scaled') if self.turned else ('scaled', 'k_t')))}")
        lines.add(*(["s = s * CHANGE"] if c["scale"] in ("after", "early") else []))
        visible = self.visible() if masked else ""
        if visible and c["masked"] == "scores":
            lines.add(f"s = ct.where({visible}, s, -math.inf)")
        lines.add(f"p = ct.{c['base']}(s - {'lse' if c['statistics'] == 'lse' else 'most'})")
        lines.add(*{"divide": ["p = p / total"], "reciprocal": ["p = p * (1.0 / total)"]}.get(c["statistics"], []))
        if visible and c["masked"] == "weights":
            lines.add(f"p = ct.where({visible}, p, 0.0)")

    def visible(self) -> str:
        row, column = ("[None, :]", "[:, None]") if self.turned else ("[:, None]", "[None, :]")
        parts = [f"rows{row} >= columns{column}"] if self.c["mask"] != "none" else []
        parts += [f"rows{row} - columns{column} < {self.window}"] if self.c["mask"] == "window" else []
        if self.c["guard"]:
            parts += [f"(rows < S){row}", f"(columns < S){column}"]
        return all_of(parts)

    def gradients(self, lines: Lines) -> None:
        """Of the scores."""
        spread = {"at once": "p * (dp - delta)", "apart": "p * dp - p * delta"}[self.c["difference"]]
        lines.add(f"ds = {spread}", *(["ds = ds * SCALE"] if self.c["scale"] == "early" else []))

    def narrow(self, x: str) -> str:
        return f"{x}.astype(ct.{self.dtype})"

    def add_product(self, lines: Lines, acc: str, x: str, y: str, turned: bool) -> None:
        """acc += x y, or x^T y (`turned`), where x is a tile like the scores; or the transpose of all that."""
        low = self.narrow(x)
        flip = turned != (self.turned != self.sums_turned)
        left = TURN[self.c["turn"]].format(low) if flip else low
        left, right = (f"{y}_t", left) if self.sums_turned else (left, y)
        form = self.c["form"]
        count = "TM" if acc == "dq" else "TN"
        lines.add(
            {
                "mma": f"{acc} = ct.mma({left}, {right}, {acc})",
                "zeros": f"{acc} = {acc} + ct.mma({left}, {right}, {self.zeros(count)})",
                "matmul": f"{acc} += ct.matmul({left}, {right})",
            }[form]
        )

    def store_keys(self, lines: Lines) -> None:
        lines.add(self.gradient("DK", "dk", "g", "j", "TN"))
        lines.add(self.gradient("DV", "dv", "g", "j", "TN"))

    def gradient(self, array: str, value: str, head: str, number: str, count: str) -> str:
        value = TURN[self.c["turn"]].format(value) if self.sums_turned else value
        scaled = array != "DV" and self.c["scale"] != "early"
        return self.store(array, f"({value} * SCALE)" if scaled else value, head, number, count)

    # ---- its arguments, and what it must give -----------------------------------------------------

    def prepare(self, numbers: Any) -> tuple[list[Any], list[Output]]:
        """The arrays that are read, and what comes out."""
        groups = self.c["groups"]
        q, k, v, dy = self.inputs(numbers)
        wide_k, wide_v = (repeated(numbers, x, groups) for x in (k, v))
        s, seen = self.scores(numbers, q, wide_k), self.seen(numbers)
        p = self.statistics_of(numbers, s, seen)
        y = rounded(numbers, p @ wide_v, stored(self.dtype))
        self.arrays["Y"] = numbers.of_dtype(self.placed(y), stored(self.dtype))
        delta = self.narrow_vector(numbers, "DELTA", (dy * y).sum(-1))
        dp = dy @ wide_v.swapaxes(1, 2)
        ds = p * (dp - delta)
        p_error = 2 * (float(abs(s).max()) + 4) * UNIT  # in parts of p
        sums = abs(dy) @ abs(wide_v).swapaxes(1, 2) + abs(delta) + (abs(dy) * abs(y)).sum(-1)[..., None]
        ds_error = p * (p_error * (abs(dp) + abs(delta)) + UNIT * sums)
        off = self.off(ds, ds_error, seen, self.scale if self.c["scale"] == "early" else 1.0)
        outputs = []
        if self.queries:
            outputs.append(self.output(ds @ wide_k, off @ abs(wide_k), self.scale))
        if self.keys:
            outputs.append(self.output(*self.of_group(ds, off, q), self.scale))
            outputs.append(self.output(*self.of_group(p, self.off(p, p * p_error, seen), dy), 1.0))
        return [self.arrays[name] for name in self.parameters()], outputs

    def inputs(self, numbers: Any) -> tuple[Any, Any, Any, Any]:
        shared = self.heads // self.c["groups"]
        arrays = []
        for name, heads in (("q", self.heads), ("k", shared), ("v", shared), ("dy", self.heads)):
            x = numbers.normal((heads, self.length, self.d)) * (2 if name == "q" else 1)  # scores that differ
            x = rounded(numbers, x, "bfloat16" if self.dtype == "tfloat32" else stored(self.dtype))
            array = x.swapaxes(1, 2) if self.c[name] == "columns" else self.placed(x)
            self.arrays[ARRAYS[name]] = numbers.of_dtype(array, stored(self.dtype))
            arrays.append(x)
        return tuple(arrays)

    def scores(self, numbers: Any, q: Any, k: Any) -> Any:
        """In units of the base."""
        factor = self.change
        if self.c["scale"] in ("wide", "low"):
            narrow = "float32" if self.c["scale"] == "wide" else self.dtype
            factor = float(rounded(numbers, numbers.integers(0, 1, (1,)) + factor, narrow)[0])
            q, factor = rounded(numbers, q * factor, self.dtype), 1.0
        return (q @ k.swapaxes(1, 2)) * factor

    def seen(self, numbers: Any) -> Any:
        """Which keys a row sees."""
        row, column = numbers.arange(self.length)[:, None], numbers.arange(self.length)[None, :]
        if self.c["mask"] == "none":
            return (row >= 0) & (column >= 0)
        return (row >= column) & (row - column < (self.window if self.c["mask"] == "window" else self.length))

    def statistics_of(self, numbers: Any, s: Any, seen: Any) -> Any:
        """The weights that follow from the statistics as float32 has them."""
        lib, ln = numbers.lib, math.log(2) if self.c["base"] == "exp2" else 1.0
        most = lib.amax(lib.where(seen, s, -math.inf), axis=-1, keepdims=True)
        total = lib.where(seen, lib.exp((s - most) * ln), 0.0).sum(-1)
        if self.c["statistics"] == "lse":
            lse = self.narrow_vector(numbers, "LSE", most[..., 0] + lib.log(total) / ln)
            return lib.where(seen, lib.exp(lib.where(seen, s - lse, 0.0) * ln), 0.0)
        most = self.narrow_vector(numbers, "MOST", most[..., 0])
        total = self.narrow_vector(numbers, "TOTAL", total)
        return lib.where(seen, lib.exp(lib.where(seen, s - most, 0.0) * ln), 0.0) / total

    def narrow_vector(self, numbers: Any, name: str, x: Any) -> Any:
        """An array of statistics, and its numbers, one for each row."""
        self.arrays[name] = numbers.of_dtype(x, "float32")
        return numbers.wide(self.arrays[name])[..., None]

    def off(self, x: Any, error: Any, seen: Any, factor: float = 1.0) -> Any:
        """How far off a left operand is, and for each of its elements the sum: it has an error, rounds to the operands'
        dtype, where `factor` times it may be subnormal; and so do sums of a step where the program says so."""
        rounds = 0.6 * EPS[self.dtype] * (2 if self.c["form"] == "matmul" else 1) + UNIT
        tiny = 2.0**-24 / factor if self.dtype == "float16" else 0.0
        return error + rounds * abs(x) + tiny * seen

    def of_group(self, x: Any, off: Any, y: Any) -> tuple[Any, Any]:
        """x^T y and how far off it may be, added up over the heads that share their keys."""
        sums = (z.swapaxes(1, 2) @ w for z, w in ((x, y), (off, abs(y))))
        groups = self.c["groups"]
        want, allowed = (z.reshape((-1, groups, *z.shape[1:])).sum(1) for z in sums)
        return want, allowed

    def output(self, want: Any, allowed: Any, scale: float) -> Output:
        dtype = "float32" if self.c["walk"] == "alone" else self.out
        want, allowed = want * scale, allowed * scale
        return Output(self.placed(want), self.placed(allowed + abs(want) * EPS[dtype] + 1e-6), dtype)
