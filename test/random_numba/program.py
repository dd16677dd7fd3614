"""A random kernel of Numba: numbers of all types, branches, loops that are left, functions that return early, arrays of
a thread and of a block, atomics whose order does not matter.

A variable keeps one type, as each assignment converts to it. Products of floats are by powers of two, so that a product
and a sum in one instruction give the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from random_language.draws import Draws, Writer

BLOCKS = (32, 64, 7, 33, 128, 1, 96)
GRIDS = (1, 2, 3)
RESULTS, BINS, OWN = 6, 8, 4
INTEGERS = ("int64", "int32", "uint32", "int8", "uint8", "int16", "uint16", "uint64")
FLOATS = ("float64", "float32", "float16")
ATOMICS = {
    "add": ("int64", "int32", "uint32", "uint64", "float64"), "max": ("int64", "int32", "uint32", "uint64"),
    "min": ("int64", "int32", "uint64"), "and_": ("int32", "uint64"), "or_": ("uint32", "int64"), "xor": ("int64",),
    "sub": ("int32", "int64"),
}  # fmt: skip


# What stands for operands: i, j integers, v a variable of one, e an element; r, q floats, w, x such; b, d floats that
# fit an integer; c, a conditions; t, f a type, s a signed one, o an order, k a constant.
OF_INTEGERS = (
    "({i} + {j})", "({i} - {j})", "({i} * {j})", "({i} // ({j} | 1))", "({i} % ({j} | 1))", "({i} & {j})",
    "({i} | {j})", "({i} ^ {j})", "({e} << {k})", "({i} >> {k})", "({e} << ({j} & 31))",
    "({i} >> ({j} & 63))", "(-{i})", "(~{i})", "{t}({i})", "int({i})",
    "({t}({i}) if {c} else {t}({j}))", "int64({c})",
    "min({t}({i}), {t}({j}))", "max({t}({i}), {t}({j}))", "abs({s}({i}))", "({i} // 3)", "({i} // -16)", "({i} // -1)",
    "({i} % 5)", "({i} % -8)", "({i} % -1)", "({i} // 2)", "({i} % 16)", "(({i} % 5) ** 3)", "(({i} % 7) ** 0)",
    "({i} ** 2)", "int64({b})", "{s}({b} * 0.125)", "round({b})", "int({b})",
)  # fmt: skip
OF_REALS = (
    "({r} + {q})", "({r} - {q})", "({r} * 0.5)", "({r} * 2)", "({r} * float32(0.25))", "({r} / 4)",
    "({r} / (math.fabs({q}) + 1.0))", "(-{r})", "abs({r})", "float({i})", "{f}({r})", "({r} + {i})", "({i} - {r})",
    "({i} / ({j} | 1))", "math.sqrt(math.fabs({r}))", "math.copysign(float64({r}), float64({q}))",
    "({r} // (math.fabs({q}) + 0.1))",
    "({r} % (math.fabs({q}) + 0.3))", "({r} % -(math.fabs({q}) + 0.3))", "({f}({r}) if {c} else {f}({q}))",
    "min({f}({r}), {f}({q}))", "max({f}({r}), {f}({q}))", "float16({b})", "(float16({b}) + float16({d}))",
    "(float16({b}) - float32({r}))", "float32(int16({i}))", "(float16({b}) / 3)", "float({c})", "math.floor({r})",
    "math.ceil({r})", "math.trunc({r})",
)  # fmt: skip
CONDITIONS = (
    "({i} {o} {j})", "({i} % 3 {o} {j} % 3)", "({r} {o} {q})", "({i} {o} {r})", "({i} <= {j} < {v})",
    "({c} and {a})", "({c} or {a})", "(not {c})",
)  # fmt: skip


class _Operands(dict[str, str]):
    def __init__(self, program: Program, depth: int) -> None:
        super().__init__()
        self.program, self.depth = program, depth

    def __missing__(self, letter: str) -> str:
        p, d = self.program, self.depth
        make: Callable[[], str] = {
            "i": lambda: p.integer(d), "j": lambda: p.integer(d), "v": lambda: p.pick(p.ints),
            "e": lambda: p.element(INTEGERS, d), "r": lambda: p.real(d), "q": lambda: p.real(d),
            "w": lambda: p.pick([*p.reals, "1.5"]), "x": lambda: p.element(FLOATS, d), "b": lambda: p.bounded(d),
            "d": lambda: p.bounded(d), "c": lambda: p.condition(d), "a": lambda: p.condition(d),
            "t": lambda: p.pick(INTEGERS), "f": lambda: p.pick(FLOATS), "s": lambda: p.pick(("int64", "int32", "int8")),
            "o": lambda: p.pick(("<", "<=", "==", "!=", ">", ">=")), "k": lambda: str(p.pick((1, 7, 31, 40, 63))),
        }[letter]  # fmt: skip
        self[letter] = make()
        return self[letter]


class Program(Writer):
    def __init__(self, draws: Draws) -> None:
        super().__init__(draws)
        self.functions: list[str] = []
        self.known: list[str] = []  # functions that can be called
        self.loops = 0
        self.threads, self.grid = self.pick(BLOCKS), self.pick(GRIDS)
        self.size = self.threads * self.grid
        self.function = ""  # the one whose body is being made
        self.all_here = True  # all threads of the block come here
        self.own: list[tuple[str, str]] = []  # arrays of the thread, and their types
        self.ints, self.reals = ["a", "b"], ["c"]
        self.variables: list[tuple[str, str]] = []  # which can be assigned, and their types
        for _ in range(self.draws.below(3)):
            self.define_function()
        self.ints, self.reals, self.variables, self.own = ["t", "g", "n"], [], [], []
        for _ in range(3 + self.draws.below(12)):
            self.statement()
        self.results()

    # ---- what is emitted ------------------------------------------------------------------------------

    @contextlib.contextmanager
    def inner(self, all_here: bool = False) -> Iterator[None]:
        state = self.all_here, list(self.ints), list(self.reals), list(self.variables), list(self.own)
        self.all_here = self.all_here and all_here
        self.depth += 1
        yield
        self.depth -= 1
        self.all_here, self.ints, self.reals, self.variables, self.own = state

    def body(self, most: int = 3) -> None:
        self.change()
        for _ in range(self.draws.below(most)):
            self.statement()

    def define_function(self) -> None:
        """One that may return early, and call those before it."""
        before, self.lines, self.function = self.lines, [], self.name("f")
        self.ints, self.reals, self.variables, self.own = ["a", "b"], ["c"], [], []
        for _ in range(1 + self.draws.below(5)):
            self.statement()
        self.emit(f"return {self.result()}")
        head = ["@cuda.jit(device=True)", f"def {self.function}(a, b, c):"]
        self.functions += [*head, *self.lines, "", ""]
        self.known.append(self.function)
        self.lines, self.function = before, ""

    def result(self) -> str:
        return f"int64({self.integer()})"

    # ---- expressions ----------------------------------------------------------------------------------

    def element(self, kinds: tuple[str, ...], depth: int) -> str:
        """Of an array, or a variable."""
        if self.function or depth < 0:
            return self.pick(self.ints if kinds is INTEGERS else [*self.reals, "1.5"])
        return f"x_{self.pick(kinds)}[{self.made(depth, ['g', '{i} % SIZE', '-({i} % SIZE) - 1'])}]"

    def made(self, depth: int, forms: Sequence[str]) -> str:
        """One of the forms, whose operands have a depth."""
        return str(self.pick(forms)).format_map(_Operands(self, depth))

    def integer(self, depth: int = 2) -> str:
        if depth <= 0 or self.rarely(4):
            return self.made(depth - 1, ["{v}", "{e}", "{e}", "3", "-7", "int64(1000003)"])
        forms = list(OF_INTEGERS)
        forms += [f"{self.pick(self.known)}(int64({{i}}), int32({{j}}), float64({{r}}))"] * 6 if self.known else []
        forms += [f"{name}[{{i}} % {OWN}]" for name, t in self.own if t in INTEGERS] * 3
        return self.made(depth - 1, forms)

    def real(self, depth: int = 2) -> str:
        if depth <= 0 or self.rarely(4):
            return self.made(depth - 1, ["{w}", "{x}", "{x}", "0.5", "-2.75"])
        forms = [*OF_REALS, *(f"{name}[{{i}} % {OWN}]" for name, t in self.own if t in FLOATS)]
        return self.made(depth - 1, forms)

    def condition(self, depth: int = 2) -> str:
        return self.made(depth - 1, CONDITIONS if depth > 1 else CONDITIONS[:5])

    def bounded(self, depth: int) -> str:
        """A float that fits an integer."""
        return f"min(max(float64({self.real(depth)}), -900.0), 900.0)"

    def uniform(self) -> str:
        return self.pick(["n > 2", "cuda.blockIdx.x % 2 == 0", "n == 3", "cuda.blockIdx.x + n < 4"])

    def small(self) -> str:
        return f"({self.integer(1)}) % {self.pick([4, 7, 3])}"

    # ---- statements -----------------------------------------------------------------------------------

    def statement(self) -> None:
        forms = [self.define, self.define, self.define, self.change, self.change, self.own_array]
        if not self.function:
            forms += [self.store, self.atomic]
        if self.depth < 4:
            forms += [self.branch, self.count, self.repeat]
        if self.all_here and not self.function:
            forms += [self.exchange, self.exchange] + ([self.alike, self.rounds] if self.depth < 3 else [])
        if self.function or (self.depth == 1 and self.rarely(3)):
            forms += [self.leave]
        self.pick(forms)()

    def value(self, t: str) -> str:
        if t in FLOATS:
            return f"{t}({self.bounded(1) if t == 'float16' else self.real()})"
        return f"{t}({self.integer()})"

    def define(self) -> None:
        t = self.pick((*INTEGERS, *FLOATS, "float64", "int64"))
        name = self.name("v")
        self.emit(f"{name} = {self.value(t)}")
        self.variables.append((name, t))
        (self.reals if t in FLOATS else self.ints).append(name)

    def change(self) -> None:
        """A variable that is there already."""
        if not self.variables:
            return self.define() if self.depth == 1 else self.emit("pass")
        name, t = self.pick(self.variables)
        if t == "int64" and self.rarely(2):
            return self.emit(f"{name} {self.pick(['+=', '-=', '*=', '^=', '&=', '|='])} int32({self.integer(1)})")
        if t == "float64" and self.rarely(2):
            return self.emit(f"{name} {self.pick(['+=', '-='])} {self.real(1)}")
        others = [(n, u) for n, u in self.variables if u == t and n != name]
        if others and self.rarely(3):
            other = self.pick(others)[0]
            return self.emit(f"{name}, {other} = {other}, {name}")
        return self.emit(f"{name} = {self.value(t)}")

    def own_array(self) -> None:
        if self.own and self.rarely(2):
            name, t = self.pick(self.own)
            return self.emit(f"{name}[{self.integer(1)} % {OWN}] = {self.value(t)}")
        if self.depth > 1:
            return self.change()
        name, t = self.name("p"), self.pick((*INTEGERS, *FLOATS))
        self.emit(f"{name} = cuda.local.array({OWN}, {t})", f"for k in range({OWN}):", f"    {name}[k] = {t}(k - 1)")
        self.own.append((name, t))

    def store(self) -> None:
        self.emit(f"out[g * {RESULTS} + {self.draws.below(RESULTS)}] = {self.integer()}")

    def atomic(self) -> None:
        kind = self.pick(list(ATOMICS))
        t = self.pick(ATOMICS[kind])
        value = "float64(int8({}))" if t == "float64" else f"{t}({{}})"
        self.emit(f"cuda.atomic.{kind}(bins_{kind}_{t}, ({self.integer(1)}) % {BINS}, {value.format(self.integer(1))})")

    def branch(self) -> None:
        self.sides(self.condition(), False)

    def alike(self) -> None:
        self.sides(self.uniform(), True)

    def sides(self, condition: str, together: bool) -> None:
        self.emit(f"if {condition}:")
        with self.inner(together):
            self.body()
        if self.rarely(3):
            self.emit(f"elif {self.uniform() if together else self.condition(1)}:")
            with self.inner(together):
                self.body()
        if self.rarely(2):
            self.emit("else:")
            with self.inner(together):
                self.body()

    def count(self) -> None:
        k = self.name("k")
        bounds = [
            self.small(),
            f"{self.ints[0]} % 3, {self.small()}, {self.pick([1, 2, 3])}",
            f"{self.small()}, -2, -2",
        ]
        self.emit(f"for {k} in range({self.pick(bounds)}):")
        self.turns(k)
        self.otherwise()

    def turns(self, k: str | None) -> None:
        with self.inner():
            self.ints += [k] if k else []
            self.body()
            if self.rarely(2):
                self.emit(f"if {self.condition(1)}:")
                with self.inner():
                    self.change()
                    self.emit(self.pick(["break", "continue"]))
            if self.function and self.rarely(3):
                self.emit(f"if {self.condition(1)}:", f"    return {self.result()}")
            if self.rarely(2):
                self.statement()

    def otherwise(self) -> None:
        """What a loop does that no break has left."""
        if self.rarely(4):
            self.emit("else:")
            with self.inner():
                self.change()

    def rounds(self) -> None:
        k = self.name("k")
        self.emit(f"for {k} in range({self.pick(['n', '2', 'n, 0, -1', '1, 6, 2'])}):")
        with self.inner(True):
            self.ints.append(k)
            self.body()

    def repeat(self) -> None:
        c = self.name("w")
        self.emit(f"{c} = int64({self.small()})", f"while {c} > {self.pick(['0', f'{self.ints[0]} % 3'])}:")
        with self.inner():
            self.ints.append(c)
            self.emit(f"{c} -= {self.pick([1, 2])}")
        self.turns(c)
        self.otherwise()

    def leave(self) -> None:
        if self.rarely(2):
            self.emit(f"if {self.condition()}:", f"    return {self.result() if self.function else ''}".rstrip())
            self.all_here = False

    def exchange(self) -> None:
        t, v, place = self.pick((*INTEGERS, *FLOATS)), self.name("v"), self.name("s")
        self.emit(f"{place} = cuda.shared.array(THREADS, {t})") if self.depth == 1 else None
        if self.depth > 1:
            t, place = "int32", "shared"
        other = f"(t * {self.pick([1, 3, 5])} + {self.draws.below(40)}) % THREADS"
        self.emit(f"{place}[t] = {self.value(t)}", "cuda.syncthreads()")
        self.emit(f"{v} = {t}({place}[{other}])", "cuda.syncthreads()")
        self.variables.append((v, t))
        (self.reals if t in FLOATS else self.ints).append(v)

    def results(self) -> None:
        for i, v in enumerate(self.ints[:1:-1][:RESULTS]):
            self.emit(f"out[g * {RESULTS} + {i}] = {v}")
        for i, v in enumerate(self.reals[-RESULTS:]):
            self.emit(f"reals[g * {RESULTS} + {i}] = {v}")

    # ---- what runs it ---------------------------------------------------------------------------------

    def source(self, about: str = "") -> str:
        head = [f"# {about}"] if about else []
        head += ["import math", "", f"from tilewright.numba import cuda, {', '.join(sorted((*INTEGERS, *FLOATS)))}", ""]
        head += [f"THREADS, SIZE = {self.threads}, {self.size}", "", "", *self.functions, "@cuda.jit"]
        head += [f"def kernel({', '.join(self.arrays())}, n):", "    shared = cuda.shared.array(THREADS, int32)"]
        head += ["    t, g = int64(cuda.threadIdx.x), cuda.grid(1)"]
        return "\n".join([*head, *self.lines, f"# a launch: grid {self.grid}, block {self.threads}, n {self.n}", ""])

    @property
    def n(self) -> int:
        return 3

    def arrays(self) -> dict[str, np.ndarray]:
        """Inputs, and what is written."""
        rng, size = np.random.default_rng(len(self.lines)), self.size
        found = {}
        for t in INTEGERS:
            info = np.iinfo(t)
            found[f"x_{t}"] = rng.integers(info.min, info.max, size, dtype=t, endpoint=True)
            found[f"x_{t}"][: size // 2] = rng.integers(-5 if info.min else 0, 9, size // 2)
        for f in FLOATS:
            found[f"x_{f}"] = (rng.normal(size=size) * rng.choice([1, 8, 100], size)).astype(f)
        bins = {f"bins_{kind}_{t}": np.full(BINS, 5, t) for kind, kinds in ATOMICS.items() for t in kinds}
        own = {"out": np.full(size * RESULTS, -7), "reals": np.full(size * RESULTS, -7.0)}
        return {**found, **bins, **own}
