"""Random programs like attention: two products in a loop, with a softmax or another function between them."""

from __future__ import annotations

import math
from typing import Any

from choices import Choices, hints_of
from heads import BLOCKS, Heads, all_of, repeated
from numbers_of import EPS, Output, rounded
from source import Lines, file

LOG2E = math.log2(math.e)
PAGE = 16  # keys that lie together, where a table says where
SLOPE, CAP = 0.125, 4.0


class Attention(Heads):
    def __init__(self, choices: Choices, blocks: int = BLOCKS) -> None:
        super().__init__(choices, blocks)
        c = choices
        self.rows_of_blocks = -(-self.length // self.tm)
        self.out = "bfloat16" if self.dtype.startswith("float8") else self.dtype
        self.softmax = c["score"] == "softmax"
        self.scale = self.d**-0.5 * (LOG2E if self.softmax and c["base"] == "exp2" else 1)

    # ---- the program ------------------------------------------------------------------------------

    def plane(self) -> tuple[int, int]:
        return self.rows_of_blocks, self.heads

    def parameters(self) -> list[str]:
        c = self.c
        names = ["Q", "K", "V"]
        names += ["TABLE"] if c["keys"] == "paged" else []
        names += ["LENGTHS"] if c["mask"] == "lengths" else []
        return names

    def source(self, about: str) -> str:
        c, lines = self.c, Lines()
        self.begin(lines, "i", "h")
        self.block(lines)
        constants = {"S": self.length, "TM": self.tm, "TN": self.tn, "D": self.d, "CHANGE": self.scale}
        hints = {name: c[name] for name in hints_of("attention") if c.get(name) is not None}
        return file(hints, constants, [*self.parameters(), *(["LSE"] if c["lse"] else []), "O"], lines.text, about)

    def block(self, lines: Lines) -> None:
        c = self.c
        state = "(TM,)" if c["vectors"] else "(TM, 1)"
        lines.add(f"g = h // {c['groups']}", f"q = {self.rows('Q', 'h', 'i', 'TM')}")
        if c["scale"] == "wide":
            lines.add("q = (q.astype(ct.float32) * CHANGE).astype(Q.dtype)")
        if c["scale"] == "low":
            lines.add(f"q = q * ct.full((), CHANGE, ct.{self.dtype})")
        lines.add("rows = i * TM + ct.arange(TM, dtype=ct.int32)")
        if self.softmax:
            lines.add(f"m = ct.full({state}, {c['init']}, ct.float32)", f"l = ct.zeros({state}, ct.float32)")
        lines.add("o = ct.zeros((TM, D), ct.float32)")
        self.loops(lines)
        if self.softmax:
            total = "l[:, None]" if c["vectors"] else "l"
            lines.add(f"o = o / {total}" if c["end"] == "divide" else f"o = o * (1.0 / {total})")
        lines.add(self.store("O", "o"))
        if c["lse"]:
            log = "ct.log2(l)" if c["base"] == "exp2" else "ct.log(l)"
            m = "m * CHANGE" if c["scale"] == "late" else "m"
            lines.add(f"ct.store(LSE, (h, i), ({m} + {log}).reshape((1, TM)))")

    def loops(self, lines: Lines) -> None:
        """Over the keys that any row of the block may see, or over those that all see and then the others."""
        c = self.c
        length = "S"
        if c["mask"] == "lengths":
            lines.add("length = ct.gather(LENGTHS, h)")
            length = "length"
        lines.add(f"end = ct.cdiv({length}, TN)")
        if c["mask"] == "causal":
            lines.add("end = min(end, ct.cdiv((i + 1) * TM, TN))")
        loop = "for" if c["loop"] == "split" else c["loop"]
        first = "0"
        if c["loop"] == "split":
            first = "whole"
            lines.add(f"whole = {'min(i * TM, S)' if c['mask'] == 'causal' else 'S'} // TN")
            lines.loop(loop, "n", "whole", lambda n: self.step(lines, n, masked=False))
        if c["mask"] == "window":
            first = "first"
            lines.add(f"first = max(i * TM - {self.window - 1}, 0) // TN")
        if first == "0":
            lines.loop(loop, "n", "end", lambda n: self.step(lines, n))
        else:
            lines.loop(loop, "n1", f"(end - {first})", lambda n: self.moved(lines, n, first))

    def moved(self, lines: Lines, n: str, first: str) -> None:
        lines.add(f"n = {first} + {n}")
        self.step(lines, "n")

    def keys(self, n: str) -> str:
        kind = self.c["keys"]
        if kind == "columns":
            return self.columns("K", "g", n, "TN")
        if kind == "order":
            return self.columns("K", "g", n, "TN", ", order=(0, 2, 1)")
        if kind == "rows":
            return f"{self.rows('K', 'g', n, 'TN')}.T"
        mask = ", mask=(columns < S)[:, None]" if kind == "masked" else ""
        return f"{self.gathered('K', 'g', 'places' if kind == 'paged' else 'columns', mask)}.T"

    def values(self, n: str) -> str:
        kind = self.c["values"]
        if self.c["keys"] == "paged":
            return self.gathered("V", "g", "places")
        if kind == "columns":
            return f"{self.columns('V', 'g', n, 'TN')}.T"
        if kind == "rows":
            return self.rows("V", "g", n, "TN")
        return self.gathered("V", "g", "columns", ", mask=(columns < S)[:, None]" if kind == "masked" else "")

    def step(self, lines: Lines, n: str, masked: bool = True) -> None:
        c = self.c
        lines.add(f"columns = {n} * TN + ct.arange(TN, dtype=ct.int32)")
        if c["keys"] in ("gather", "masked", "paged") or c["values"] in ("gather", "masked"):
            lines.add("dims = ct.arange(D, dtype=ct.int32)")
        if c["keys"] == "paged":
            lines.add(f"places = ct.gather(TABLE, columns // {PAGE}) * {PAGE} + columns % {PAGE}")
        lines.add(f"k = {self.keys(n)}")
        if c["early values"]:
            lines.add(f"v = {self.values(n)}")
        lines.add("s = ct.mma(q, k, ct.zeros((TM, TN), ct.float32))")
        if c.get("two parts"):
            lines.add("s = ct.mma(q, k, s)")
        self.change_scores(lines)
        if masked:
            self.mask(lines)
        if self.softmax:
            self.softmax_step(lines)
        else:
            self.plain_step(lines, masked)
        if not c["early values"]:
            lines.add(f"v = {self.values(n)}")
        self.second_product(lines)

    def change_scores(self, lines: Lines) -> None:
        c = self.c
        if c["scale"] == "after":
            lines.add("s = s * CHANGE")
        if c["bias"] == "slopes":
            lines.add(f"s = s - {SLOPE} * (rows[:, None] - columns[None, :]).astype(ct.float32) / S")
        if c["bias"] == "cap":
            lines.add(f"s = {CAP} * ct.tanh(s / {CAP})")

    def mask(self, lines: Lines) -> None:
        parts = {
            "none": ["(columns < S)[None, :]"],
            "causal": ["rows[:, None] >= columns[None, :]", "(columns < S)[None, :]"],
            "window": [
                "rows[:, None] >= columns[None, :]",
                f"rows[:, None] - columns[None, :] < {self.window}",
                "(columns < S)[None, :]",
            ],
            "lengths": ["(columns < length)[None, :]"],
        }[self.c["mask"]]
        visible = all_of(parts)
        lines.add(f"s = ct.where({visible}, s, -math.inf)" if self.softmax else f"seen = {visible}")

    def softmax_step(self, lines: Lines) -> None:
        c, keep = self.c, "" if self.c["vectors"] else ", keepdims=True"
        of_rows = "[:, None]" if c["vectors"] else ""
        late = " * CHANGE" if c["scale"] == "late" else ""
        flush = ", flush_to_zero=True" if c.get("flush") and c["base"] == "exp2" else ""
        lines.add(
            f"new = ct.maximum(m, ct.max(s, axis=1{keep}))",
            f"p = ct.{c['base']}({f'(s - new{of_rows}){late}' if late else f's - new{of_rows}'}{flush})",
            f"fade = ct.{c['base']}({f'(m - new){late}' if late else 'm - new'}{flush})",
            f"l = l * fade + ct.sum(p, axis=1{keep})",
            "m = new",
        )

    def plain_step(self, lines: Lines, masked: bool) -> None:
        function = {"relu": "ct.maximum(s, 0.0)", "sigmoid": "1.0 / (1.0 + ct.exp(-s))"}[self.c["score"]]
        lines.add(f"p = ct.where(seen, {function}, 0.0)" if masked else f"p = {function}")

    def second_product(self, lines: Lines) -> None:
        form = self.c["form"]
        fade = "fade[:, None]" if self.c["vectors"] else "fade"
        faded = f"o * {fade}" if self.softmax else "o"
        low = "p.astype(V.dtype)"
        if form == "mma":
            lines.add(f"o = ct.mma({low}, v, {faded})")
            return
        lines.add(*([f"o = {faded}"] if self.softmax else []))
        more = f"ct.mma({low}, v, ct.zeros((TM, D), ct.float32))" if form == "zeros" else f"ct.matmul({low}, v)"
        lines.add(f"o = o + {more}" if form == "zeros" else f"o += {more}")

    # ---- its arguments, and what it must give -----------------------------------------------------

    def prepare(self, numbers: Any) -> tuple[list[Any], list[Output]]:
        """The arrays that are read, and what comes out."""
        c = self.c
        shared = self.heads // c["groups"]
        shapes = [(heads, self.length, self.d) for heads in (self.heads, shared, shared)]
        q, k, v = (numbers.normal(shape) for shape in shapes)
        q, k, v = (rounded(numbers, x, self.dtype) for x in (2 * q, k, v))  # scores that differ: few keys weigh much
        self.arrays["Q"] = numbers.of_dtype(self.placed(q), self.dtype)
        k, v = self.place_keys(numbers, k, v)
        k, v = (repeated(numbers, x, c["groups"]) for x in (k, v))
        s, seen = self.scores(numbers, q, k), self.seen(numbers)
        p, total, lse = self.weights(numbers, s, seen)
        allowed = self.allowed(p, total, seen, v, float(abs(s).max()))
        outputs = [Output(self.placed(p @ v), self.placed(allowed + abs(p @ v) * EPS[self.out]), self.out)]
        if c["lse"]:
            largest = float(abs(q).max() * abs(k).max())
            error = self.score_error(float(abs(s).max())) + self.cut_off(largest)
            outputs.insert(0, Output(lse, abs(lse) * 2.0**-18 + error, "float32"))
        return [self.arrays[name] for name in self.parameters()], outputs

    def score_error(self, most: float) -> float:
        """How far off scores may be: sums round a little, and a hyperbolic tangent is the hardware's. Of 8-bit floats
        each product is cut off 13 bits below the largest, so that the error grows with their number."""
        unit = max(self.d, 64) * 2.0**-18 if self.dtype.startswith("float8") else 2.0**-20
        return (most + 4) * unit + (2.0**-9 * CAP if self.c["bias"] == "cap" else 0)

    def cut_off(self, largest: float) -> float:
        """How far off one score may be by what the Tensor Core drops of each product of 8-bit floats."""
        parts = 2 if self.c.get("two parts") else 1
        return parts * self.d * 2.0**-13 * largest * self.scale if self.dtype.startswith("float8") else 0

    def allowed(self, p: Any, total: Any, seen: Any, v: Any, most: float) -> Any:
        """Weights round to the dtype of the values, and in it partial sums where the program says so."""
        error = 0.6 * EPS[self.dtype] * (2 if self.c["form"] == "matmul" else 1) + 2 * self.score_error(most)
        allowed = error * (p @ abs(v)) + 1e-5
        if self.dtype.startswith("float8"):  # small weights are subnormal
            allowed = allowed + 2.0**-9 / total * ((seen * 1.0 + 0 * p) @ abs(v))
        return allowed

    def place_keys(self, numbers: Any, k: Any, v: Any) -> tuple[Any, Any]:
        """Keys and values as a program reads them, wide; their arrays are made on the way."""
        c = self.c
        array_k, array_v = self.placed(k), self.placed(v)
        if c["keys"] == "columns":
            array_k = k.swapaxes(1, 2)
        if c["values"] == "columns":
            array_v = v.swapaxes(1, 2)
        if c["keys"] == "paged":
            pages = -(-self.length // PAGE)
            table = numbers.integers(0, max(self.length // PAGE, 1), (pages,))
            self.arrays["TABLE"] = numbers.of_dtype(table, "int32")
            place = numbers.whole(numbers.arange(self.length))
            place = numbers.whole(table)[place // PAGE] * PAGE + place % PAGE
            k, v = k[:, place], v[:, place]
        self.arrays["K"] = numbers.of_dtype(array_k, self.dtype)
        self.arrays["V"] = numbers.of_dtype(array_v, self.dtype)
        return k, v

    def scores(self, numbers: Any, q: Any, k: Any) -> Any:
        c, lib = self.c, numbers.lib
        factor = self.scale
        if c["scale"] in ("wide", "low"):
            narrow = "float32" if c["scale"] == "wide" else self.dtype
            factor = float(rounded(numbers, numbers.integers(0, 1, (1,)) + self.scale, narrow)[0])
            q, factor = rounded(numbers, q * factor, self.dtype), 1.0
        s = (q @ k.swapaxes(1, 2)) * factor * (2 if c.get("two parts") else 1)
        row, column = numbers.arange(self.length)[:, None], numbers.arange(self.length)[None, :]
        if c["bias"] == "slopes":
            slopes = SLOPE * (row - column) / self.length
            s = s - (slopes * (self.scale if c["scale"] == "late" else 1))
        if c["bias"] == "cap":
            late = self.scale if c["scale"] == "late" else 1
            s = CAP * lib.tanh(s / late / CAP) * late
        return s

    def seen(self, numbers: Any) -> Any:
        """Which keys a row sees, of each head."""
        c = self.c
        row, column = numbers.arange(self.length)[:, None], numbers.arange(self.length)[None, :]
        everywhere = (column < self.length) & (row >= 0)
        if c["mask"] == "lengths":
            lengths = numbers.integers(1, self.length + 1, (self.heads,))
            self.arrays["LENGTHS"] = numbers.of_dtype(lengths, "int32")
            return (column < lengths[:, None])[:, None, :] & everywhere
        if c["mask"] == "causal":
            return (row >= column)[None]
        if c["mask"] == "window":
            return ((row >= column) & (row - column < self.window))[None]
        return everywhere[None]

    def weights(self, numbers: Any, s: Any, seen: Any) -> tuple[Any, Any, Any]:
        """Of each row: the weights of the keys, what they were divided by, and the logarithm of that."""
        lib, c = numbers.lib, self.c
        if c["score"] == "relu":
            return s * (s > 0) * seen, 1.0, None
        if c["score"] == "sigmoid":
            return 1 / (1 + lib.exp(-s)) * seen, 1.0, None
        if c["base"] == "exp2":
            s = s * math.log(2)
        s = lib.where(seen, s, -math.inf)
        most = lib.amax(s, axis=-1, keepdims=True)
        p = lib.exp(s - most)
        total = p.sum(axis=-1, keepdims=True)
        lse = (most + lib.log(total))[..., 0] / (math.log(2) if c["base"] == "exp2" else 1)
        return p / total, total, lse
