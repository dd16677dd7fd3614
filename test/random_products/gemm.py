"""Random programs like a matrix product: C = after(init + before(A) @ before(B) …), written in many ways."""

from __future__ import annotations

from typing import Any

from choices import TURNED, Choices, hints_of
from numbers_of import EPS, Output, is_integer, rounded, stored
from source import Lines, file

GATHERED = ("gather", "wrapped", "masked", "table", "flat", "flat columns", "flat wrapped")
GROUP = 4  # rows of tiles that a swizzled order goes along together
LOW, HIGH = -2, 3
BLOCKS = 132  # of a persistent grid


class Gemm:
    def __init__(self, choices: Choices, blocks: int = BLOCKS) -> None:
        self.c = c = choices
        self.dtype, self.size, self.tile = c["dtype"], c["size"][:3], c["tile"]
        self.batches = c["size"][3]
        self.sum = "int32" if is_integer(self.dtype) else "float16" if c["sum"] == "float16" else "float32"
        self.out = stored(self.dtype) if c["out"] == "low" else self.sum
        if c["store"] == "rows" and self.out == "float16":
            self.out = "float32"
        self.gm, self.gn = (-(-x // t) for x, t in zip(self.size[:2], self.tile[:2], strict=True))
        self.blocks = blocks
        self.two_sums = bool(c["second"]) and not c.get("one sum")
        self.factor = 0.5 if c["data"] == "integers" or self.dtype == "tfloat32" else 0.3
        self.arrays: dict[str, Any] = {}

    # ---- the program ------------------------------------------------------------------------------

    def grid(self) -> tuple[int, ...]:
        if self.c["held"]:
            return (self.gm,)
        return {
            "plane": (self.gm, self.gn),
            "turned": (self.gn, self.gm),
            "swizzle": (self.gm * self.gn,),
            "persistent": (self.blocks,),
            "persistent while": (self.blocks,),
            "persistent swizzle": (self.blocks,),
            "batch": (self.gm, self.gn, self.batches),
        }[self.c["grid"]]

    def parameters(self) -> list[str]:
        c = self.c
        names = ["A", "B"]
        names += ["W"] if c["second"] else []
        names += ["A2"] if c["second"] == "both" else []
        names += ["ROWS"] if "table" in (c["left"], c["right"]) else []
        names += ["SCALE"] if c["before left"] == "rows" else []
        names += ["GROUPS"] if c["before right"] == "grouped bytes" else []
        names += {"load": ["START"], "bias": ["BIAS"]}.get(c["init"], [])
        names += {"bias": ["V"], "scale": ["V"], "residual": ["V"]}.get(c["after"], [])
        return names

    def source(self, about: str) -> str:
        lines = Lines()
        (self.held if self.c["held"] else self.blocks_of)(lines)
        constants = dict(zip(("M", "N", "K", "TM", "TN", "TK"), (*self.size, *self.tile), strict=True))
        hints = {name: self.c[name] for name in hints_of("gemm") if self.c.get(name) is not None}
        return file(hints, constants, [*self.parameters(), "C"], lines.text, about)

    def blocks_of(self, lines: Lines) -> None:
        grid = self.c["grid"]
        if grid in ("plane", "turned", "batch"):
            lines.add("i, j = ct.bid(0), ct.bid(1)" if grid != "turned" else "j, i = ct.bid(0), ct.bid(1)")
            lines.add(*(["z = ct.bid(2)"] if grid == "batch" else []))
            self.tile_of(lines)
        elif grid == "swizzle":
            lines.add("t = ct.bid(0)")
            self.swizzled(lines)
            self.tile_of(lines)
        elif grid == "persistent swizzle":
            lines.add(f"for t in range(ct.bid(0), {self.gm * self.gn}, ct.num_blocks(0)):")
            lines.depth += 1
            self.swizzled(lines)
            self.tile_of(lines)
        elif grid == "persistent":
            lines.add(f"for t in range(ct.bid(0), {self.gm * self.gn}, ct.num_blocks(0)):")
            lines.depth += 1
            lines.add(f"i, j = t // {self.gn}, t % {self.gn}")
            self.tile_of(lines)
        else:
            lines.add("t = ct.bid(0)", f"while t < {self.gm * self.gn}:")
            lines.depth += 1
            lines.add(f"i, j = t % {self.gm}, t // {self.gm}")
            self.tile_of(lines)
            lines.add("t += ct.num_blocks(0)")

    def swizzled(self, lines: Lines) -> None:
        """The row and column of tile number t, in groups of rows."""
        lines.add(
            f"width = {GROUP} * {self.gn}",
            f"first = t // width * {GROUP}",
            f"rows_here = min({self.gm} - first, {GROUP})",
            "i = first + t % width % rows_here",
            "j = t % width // rows_here",
        )

    def indices(self, lines: Lines, axis: str) -> None:
        """The numbers of this block's rows (m) or columns (n), where a gather or a scatter wants them."""
        c = self.c
        side, tile, length = {"m": ("left", "TM", "M"), "n": ("right", "TN", "N")}[axis]
        if c[side] not in GATHERED and c["store"] not in ("scatter", "flat"):
            return
        lines.add(f"{axis}s = {'i' if axis == 'm' else 'j'} * {tile} + ct.arange({tile}, dtype=ct.int32)")
        if c[side] in ("wrapped", "flat wrapped"):
            lines.add(f"{axis}s_read = {axis}s % {length}")
        if c[side] == "table":
            lines.add(f"{axis}s_read = ct.gather(ROWS, {axis}s)")

    def tile_of(self, lines: Lines) -> None:
        c = self.c
        self.indices(lines, "m")
        self.indices(lines, "n")
        lines.add(f"acc = {self.init()}")
        if self.two_sums:
            lines.add(f"acc2 = ct.zeros((TM, TN), ct.{self.sum})")
        if c["loop"] == "ahead":
            self.ahead(lines)
        else:
            lines.loop(c["loop"], "k", "ct.cdiv(K, TK)", lambda k: self.step(lines, k))
        if self.two_sums:
            lines.add("acc = acc + acc2")
        self.finish(lines)

    def init(self) -> str:
        return {
            "zeros": f"ct.zeros((TM, TN), ct.{self.sum})",
            "full": f"ct.full((TM, TN), 2, ct.{self.sum})",
            "load": "ct.load(START, (i, j), (TM, TN), padding_mode=ZERO)",
            "bias": f"ct.load(BIAS, (0, j), (1, TN), padding_mode=ZERO) + ct.zeros((TM, TN), ct.{self.sum})",
        }[self.c["init"]]

    def operand(self, array: str, side: str, k: str) -> str:
        """A tile of the left (TM, TK) or of the right (TK, TN) operand."""
        c, left = self.c, side == "left"
        kind = c[side]
        index, shape = (["i", k], ["TM", "TK"]) if left else ([k, "j"], ["TK", "TN"])
        turned = kind in TURNED and kind != "order"
        if turned:
            index, shape = index[::-1], shape[::-1]
        place, size = ", ".join(index), ", ".join(shape)
        if c["grid"] == "batch":
            text = f"ct.load({array}, (z, {place}), (1, {size}), padding_mode=ZERO).reshape(({size}))"
            return f"{text}.T" if turned else text
        order = ", order=(1, 0)" if kind == "order" else ""
        text = f"ct.load({array}, ({place}), ({size}){order}, padding_mode=ZERO)"
        if kind in ("load", *TURNED):
            return {"T": f"{text}.T", "permute": f"{text}.permute((1, 0))", "transpose": f"ct.transpose({text})"}.get(
                kind, text
            )
        return self.gathered(array, kind, left)

    def gathered(self, array: str, kind: str, left: bool) -> str:
        read = "_read" if kind in ("wrapped", "table", "flat wrapped") else ""
        rows, columns = (f"ms{read}[:, None]", "ks[None, :]") if left else ("ks[:, None]", f"ns{read}[None, :]")
        depth = "(ks < K)[None, :]" if left else "(ks < K)[:, None]"
        other = "(ms < M)[:, None]" if left else "(ns < N)[None, :]"
        if kind == "flat":
            return f"ct.gather({array}, {rows} * {'K' if left else 'N'} + {columns}, mask={other} & {depth})"
        if kind == "flat wrapped":
            return f"ct.gather({array}, {rows} * {'K' if left else 'N'} + {columns}, mask={depth})"
        if kind == "flat columns":
            return f"ct.gather({array}, {columns} * {'M' if left else 'K'} + {rows}, mask={other} & {depth})"
        mask = {"wrapped": f", mask={depth}", "masked": f", mask={other} & {depth}, padding_value=0"}.get(kind, "")
        return f"ct.gather({array}, ({rows}, {columns}){mask})"

    def step(self, lines: Lines, k: str) -> None:
        self.loads(lines, k)
        self.products(lines)

    def loads(self, lines: Lines, k: str, prefix: str = "") -> list[str]:
        """The tiles of a step; their names, without the prefix."""
        names = ["a", "b"]
        self.number(lines, k)
        self.left(lines, f"{prefix}a", "A", k)
        self.right(lines, f"{prefix}b", "B", k)
        if self.c["second"] == "both":
            self.left(lines, f"{prefix}a2", "A2", k)
            names.append("a2")
        if self.c["second"]:
            self.right(lines, f"{prefix}w", "W", k)
            names.append("w")
        return names

    def products(self, lines: Lines) -> None:
        self.add_product(lines, "acc", "a", "b")
        if self.c["second"]:
            self.add_product(
                lines, "acc2" if self.two_sums else "acc", "a2" if self.c["second"] == "both" else "a", "w"
            )

    def ahead(self, lines: Lines) -> None:
        """Tiles of the next step are loaded before the product of this one, by hand: the loop carries them."""
        names = self.loads(lines, "0")
        lines.add("for k in range(1, ct.cdiv(K, TK)):")
        lines.depth += 1
        self.loads(lines, "k", "next_")
        self.products(lines)
        lines.add(f"{', '.join(names)} = {', '.join(f'next_{name}' for name in names)}")
        lines.depth -= 1
        self.products(lines)

    def number(self, lines: Lines, k: str) -> None:
        if self.c["left"] in GATHERED or self.c["right"] in GATHERED:
            lines.add(f"ks = {k} * TK + ct.arange(TK, dtype=ct.int32)")

    def left(self, lines: Lines, a: str, array: str, k: str) -> None:
        lines.add(f"{a} = {self.operand(array, 'left', k)}")
        array_dtype = stored(self.dtype)
        lines.add(
            *{
                "none": [],
                "low": [f"{a} = {a} * ct.full((), {self.factor}, ct.{array_dtype})"],
                "wide": [f"{a} = ({a}.astype(ct.float32) * {self.factor}).astype(ct.{array_dtype})"],
                "relu": [f"{a} = ct.maximum({a}, 0)"],
                "rows": [f"{a} = ({a} * ct.load(SCALE, (i, 0), (TM, 1), padding_mode=ZERO)).astype(ct.{array_dtype})"],
                "sum": [f"{a} = {a} + {a}"],
            }[self.c["before left"]]
        )
        if self.dtype == "tfloat32":
            lines.add(f"{a} = {a}.astype(ct.tfloat32)")

    def right(self, lines: Lines, b: str, array: str, k: str) -> None:
        lines.add(f"{b} = {self.operand(array, 'right', k)}")
        array_dtype = stored(self.dtype)
        lines.add(
            *{
                "none": [],
                "wide": [f"{b} = ({b}.astype(ct.float32) * {self.factor}).astype(ct.{array_dtype})"],
                "one": [f"{b} = {b} + 1"],
                "bytes": [f"{b} = {b}.astype(ct.{array_dtype})"],
                "grouped bytes": [
                    f"{b} = {b}.astype(ct.{array_dtype}) * ct.load(GROUPS, ({k}, j), (1, TN), padding_mode=ZERO)"
                ],
            }[self.c["before right"]]
        )
        if self.dtype == "tfloat32":
            lines.add(f"{b} = {b}.astype(ct.tfloat32)")

    def add_product(self, lines: Lines, acc: str, a: str, b: str) -> None:
        lines.add(
            {
                "mma": f"{acc} = ct.mma({a}, {b}, {acc})",
                "zeros": f"{acc} = {acc} + ct.mma({a}, {b}, ct.zeros((TM, TN), ct.{self.sum}))",
                "iadd": f"{acc} += {a} @ {b}",
                "matmul": f"{acc} = {acc} + ct.matmul({a}, {b})",
            }[self.c["form"]]
        )

    def finish(self, lines: Lines) -> None:
        lines.add(
            *{
                "none": [],
                "relu": ["acc = ct.maximum(acc, 0)"],
                "bias": ["acc = acc + ct.load(V, (0, j), (1, TN), padding_mode=ZERO)"],
                "positions": [f"acc = acc + (ct.arange(TN, dtype=ct.int32) % 8).astype(ct.{self.sum})[None, :]"],
                "scale": ["acc = acc * ct.load(V, (i, 0), (TM, 1), padding_mode=ZERO)"],
                "residual": ["acc = acc + ct.load(V, (i, j), (TM, TN), padding_mode=ZERO)"],
                "silu": ["acc = acc / (1.0 + ct.exp(-acc))"],
            }[self.c["after"]]
        )
        if self.c["grid"] == "batch":
            lines.add("ct.store(C, (z, i, j), acc.astype(C.dtype).reshape((1, TM, TN)))")
            return
        lines.add(
            {
                "store": "ct.store(C, (i, j), acc.astype(C.dtype))",
                "T": "ct.store(C, (j, i), acc.T.astype(C.dtype))",
                "order": "ct.store(C, (i, j), acc.astype(C.dtype), order=(1, 0))",
                "scatter": "ct.scatter(C, (ms[:, None], ns[None, :]), acc.astype(C.dtype))",
                "flat": "ct.scatter(C, ms[:, None] * N + ns[None, :], acc.astype(C.dtype), "
                "mask=(ms < M)[:, None] & (ns < N)[None, :])",
                "rows": f"ct.store(C, (i, j), ct.sum(acc.astype(ct.{self.out}), 1, keepdims=True))",
            }[self.c["store"]]
        )

    def held(self, lines: Lines) -> None:
        """The left operand is loaded once; the loop goes along the columns and stores a tile in each step."""
        lines.add("i = ct.bid(0)")
        self.indices(lines, "m")
        self.number(lines, "0")
        self.left(lines, "a", "A", "0")
        lines.loop(self.c["loop"], "j", f"{self.gn}", lambda j: self.held_step(lines))

    def held_step(self, lines: Lines) -> None:
        self.indices(lines, "n")
        self.right(lines, "b", "B", "0")
        product = f"ct.mma(a, b, ct.zeros((TM, TN), ct.{self.sum}))"
        matmul = self.c["form"] in ("iadd", "matmul")
        lines.add(f"acc = {f'ct.matmul(a, b).astype(ct.{self.sum})' if matmul else product}")
        self.finish(lines)

    # ---- its arguments, and what it must give -----------------------------------------------------

    def values(self, numbers: Any, shape: tuple[int, ...], dtype: str) -> Any:
        """Wide numbers that a dtype has."""
        if is_integer(dtype):
            low, high = {"int8": (-128, 128), "uint8": (0, 256)}.get(dtype, (LOW, HIGH))
            return numbers.integers(low, high, shape)
        if self.c["data"] == "integers":
            return numbers.integers(LOW, HIGH, shape)
        narrow = "bfloat16" if dtype in ("tfloat32", "float32") else dtype
        return rounded(numbers, numbers.normal(shape), narrow)

    def side(self, numbers: Any, name: str, left: bool) -> Any:
        """An operand as the product takes it, wide; its array is made on the way."""
        c, (m, n, k) = self.c, self.size
        shape = (m, k) if left else (k, n)
        shape = (self.batches, *shape) if c["grid"] == "batch" else shape
        in_bytes = not left and c["before right"] in ("bytes", "grouped bytes")
        x = numbers.integers(-4, 4, shape) if in_bytes else self.values(numbers, shape, self.dtype)
        kind, array = c["left" if left else "right"], x
        if kind in TURNED:
            array = x.swapaxes(-1, -2)
        if kind in ("flat", "flat wrapped"):
            array = x.reshape(-1)
        if kind == "flat columns":
            array = x.swapaxes(-1, -2).reshape(-1)
        if kind == "table":
            rows = self.table(numbers)
            x = x[rows[:m]] if left else x[:, rows[:n]]
        self.arrays[name] = numbers.of_dtype(array, "int8" if in_bytes else stored(self.dtype))
        return (self.before_left if left else self.before_right)(numbers, x)

    def table(self, numbers: Any) -> Any:
        """Row numbers inside of both operands, for both."""
        m, n, _ = self.size
        if "ROWS" not in self.arrays:
            lengths = [x for side, x in (("left", m), ("right", n)) if self.c[side] == "table"]
            rows = numbers.integers(0, min(lengths), (max(m, n),))
            self.arrays["ROWS"] = numbers.of_dtype(rows, "int32")
        return numbers.whole(self.arrays["ROWS"])

    def before_left(self, numbers: Any, a: Any) -> Any:
        before, low = self.c["before left"], stored(self.dtype)
        if before == "low":
            factor = float(rounded(numbers, numbers.integers(0, 1, (1,)) + self.factor, low)[0])
            return rounded(numbers, a * factor, low)
        if before == "wide":
            factor = float(rounded(numbers, numbers.integers(0, 1, (1,)) + self.factor, "float32")[0])
            return rounded(numbers, a * factor, low)
        if before == "relu":
            return a * (a > 0)
        if before == "rows":
            if "SCALE" not in self.arrays:  # both left operands have the same
                self.arrays["SCALE"] = numbers.of_dtype(2.0 ** numbers.integers(-1, 2, (self.size[0], 1)), low)
            return a * numbers.wide(self.arrays["SCALE"])
        return a + a if before == "sum" else a

    def before_right(self, numbers: Any, b: Any) -> Any:
        before, low = self.c["before right"], stored(self.dtype)
        if before == "wide":
            factor = float(rounded(numbers, numbers.integers(0, 1, (1,)) + self.factor, "float32")[0])
            return rounded(numbers, b * factor, low)
        if before == "one":
            return rounded(numbers, b + 1, low)
        if before == "grouped bytes":
            k, n = b.shape
            steps = -(-k // self.tile[2])
            scale = 2.0 ** numbers.integers(-1, 2, (steps, n))
            self.arrays["GROUPS"] = numbers.of_dtype(scale, low)
            return b * self.lines_of(numbers, scale, k)
        return b

    def lines_of(self, numbers: Any, scale: Any, k: int) -> Any:
        """Each line TK times."""
        repeat = numbers.lib.repeat_interleave if hasattr(numbers.lib, "repeat_interleave") else numbers.lib.repeat
        return repeat(scale, self.tile[2], 0)[:k]

    def prepare(self, numbers: Any) -> tuple[list[Any], list[Output]]:
        """The arrays that are read, and what comes out."""
        c, (m, n, _) = self.c, self.size
        a, b = self.side(numbers, "A", True), self.side(numbers, "B", False)
        want, spread, most = product_of(numbers, a, b)
        if c["second"]:
            a2 = self.side(numbers, "A2", True) if c["second"] == "both" else a
            more = product_of(numbers, a2, self.side(numbers, "W", False))
            want, spread, most = want + more[0], spread + more[1], most + more[2]
        want = self.started(numbers, want, m, n)
        exact = self.is_exact(most + 4)
        allowed = want * 0 if exact else self.rounding() * (abs(want) + 5 * spread)
        want, allowed = self.finished(numbers, want, allowed, exact)
        if exact and c["after"] != "silu":
            want = rounded(numbers, want, self.out) if not is_integer(self.out) else want
        else:
            allowed = allowed + abs(want) * EPS[self.out] + 1e-6
        return [self.arrays[name] for name in self.parameters()], [Output(want, allowed, self.out)]

    def started(self, numbers: Any, want: Any, m: int, n: int) -> Any:
        init = self.c["init"]
        if init in ("load", "bias"):
            start = numbers.integers(LOW, HIGH, (m if init == "load" else 1, n))
            self.arrays["START" if init == "load" else "BIAS"] = numbers.of_dtype(start, self.sum)
            return want + start
        return want + 2 if init == "full" else want

    def is_exact(self, most: float) -> bool:
        """Whether sums are so small that every one of their roundings gives the number itself."""
        c = self.c
        if is_integer(self.dtype):
            return True
        if c["data"] != "integers":
            return False
        bits = {"float32": 24, "float16": 11}[self.sum]
        if self.dtype.startswith("float8"):
            bits = min(bits, 12)
        if c["form"] in ("iadd", "matmul"):
            bits = min(bits, {"float16": 11, "bfloat16": 8}.get(self.dtype, 24))
        halves = (c["before left"] in ("low", "wide", "rows")) + (c["before right"] in ("wide", "grouped bytes"))
        halves += c["after"] == "scale"
        return most < 2.0 ** (bits - halves)

    def rounding(self) -> float:
        """How far off sums are, in parts of the numbers that occur on the way: each rounds a little."""
        steps = self.size[2] / 16 + 2
        unit = {"float32": 2.0**-21, "float16": 2.0**-10}[self.sum]
        if self.dtype.startswith("float8"):
            unit = max(unit, 2.0**-11)
        error = unit * steps**0.5
        if self.c["form"] in ("iadd", "matmul"):
            error += EPS.get(self.dtype, 0) * (self.size[2] / self.tile[2] + 1) ** 0.5
        return error

    def finished(self, numbers: Any, want: Any, allowed: Any, exact: bool) -> tuple[Any, Any]:
        c, (m, n, _) = self.c, self.size
        after = c["after"]
        if is_integer(self.sum):
            want = wrapped(want)
        if after == "relu":
            want = want * (want > 0)
        if after == "positions":
            want = want + numbers.arange(n) % self.tile[1] % 8
        if after in ("bias", "residual"):
            more = numbers.integers(LOW, HIGH, (m if after == "residual" else 1, n))
            self.arrays["V"] = numbers.of_dtype(more, self.sum)
            want = want + more
        if after == "scale":
            scale = 2.0 ** numbers.integers(-1, 2, (m, 1))
            self.arrays["V"] = numbers.of_dtype(scale, self.sum)
            want, allowed = want * scale, allowed * scale
        if after == "silu":
            allowed = 1.2 * allowed + (abs(want) + 1) * 4 * EPS[self.sum]
            want = want / (1 + numbers.lib.exp(-want))
        if not exact and not is_integer(self.sum):
            allowed = allowed + abs(want) * 2 * EPS[self.sum]
        if c["store"] == "rows":
            want, allowed = (self.rows_of(numbers, x) for x in (want, allowed))
        if is_integer(self.sum):
            want = wrapped(want)
        if c["store"] == "flat":
            return want.reshape(-1), allowed.reshape(-1)
        return (want.swapaxes(0, 1), allowed.swapaxes(0, 1)) if c["store"] in ("T", "order") else (want, allowed)

    def rows_of(self, numbers: Any, x: Any) -> Any:
        """Sums of TN columns each."""
        padded = numbers.integers(0, 1, (self.size[0], self.gn * self.tile[1]))
        padded[:, : self.size[1]] = x
        return padded.reshape(self.size[0], self.gn, self.tile[1]).sum(2)


def wrapped(x: Any) -> Any:
    """What an int32 has of whole numbers."""
    return (x + 2.0**31) % 2.0**32 - 2.0**31


def product_of(numbers: Any, a: Any, b: Any) -> tuple[Any, Any, float]:
    """a @ b; how large the sums on the way probably are; and the largest that they can be."""
    return a @ b, ((a * a) @ (b * b)) ** 0.5, float((abs(a) @ abs(b)).max())
