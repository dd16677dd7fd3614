"""A random kernel of `cuda.device`: statements of a thread, and what threads of a warp and a block do together.

Threads that share elements are in an order: what is written to a shared array or to another thread's elements is read
behind a barrier, and written again behind the next. All threads come to a barrier, all lanes of a mask to what lanes do
together. Numbers are int32, and whole numbers in float32 that no order of sums changes.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import numpy as np

from random_language.draws import Draws, Writer

BLOCKS = ((32,), (64,), (96,), (33,), (7,), (128,), (40,), (16, 4), (8, 4), (32, 2), (5, 3), (4, 4, 4), (1,))
GRIDS = (1, 2, 3)
WARP, RESULTS, BINS = 32, 8, 16
FULL = "0xFFFFFFFF"
OWN = 4
ATOMICS = ("add", "max", "min", "and_", "or_", "xor")
# Integers of other widths, on their way back to int32.
MIXED = (
    "device.int32(device.uint8({}) + device.uint8({}))", "device.int32(device.uint16({}) >> device.uint16({} & 7))",
    "(device.int32(device.int64({}) * device.int64(77777) >> 5) - {})",
    "device.int32(device.int8({}) // device.int8({} | 1))",
    "device.int32(device.uint32({}) // device.uint32(({} & 7) + 1))",
    "device.int32(device.uint32({}) >> (device.uint32({}) & 31))",
    "device.int32(device.int8({}) % device.int8(({} & 15) - 20))",
    "device.int32(device.int16({}) << device.int16({} & 7))",
    "device.int32(device.uint64({}) % device.uint64(({} & 31) + 3))", "device.int32(-device.int16({}) - {})",
    "device.int32(device.int16({}) < device.int16({}))", "device.int32(abs(device.int8({})) ^ device.int8({}))",
)  # fmt: skip


class Program(Writer):
    def __init__(self, draws: Draws) -> None:
        super().__init__(draws)
        self.block, self.grid = self.pick(BLOCKS), self.pick(GRIDS)
        self.threads = math.prod(self.block)
        self.n = self.pick([3, 0, 1, 5])
        self.all_here = True  # all threads of the block come here
        self.warps_here = self.threads % WARP == 0  # all lanes of a warp
        self.loops = 0
        self.ints, self.floats = ["t", "x[g]"], ["f[g]"]
        self.fibers = self.rarely(4)
        self.own: list[str] = []  # arrays of the thread
        self.functions: list[str] = []
        self.known: list[str] = []  # functions that can be called
        for _ in range(2 + self.draws.below(12)):
            self.statement()
        self.results()
        for _ in range(self.draws.below(3)):
            self.define_function()
        if self.known:
            self.calls()

    # ---- what is emitted ------------------------------------------------------------------------------

    @contextlib.contextmanager
    def inner(self, all_here: bool, warps_here: bool) -> Iterator[None]:
        """A block of lines, to which some threads come."""
        state = self.all_here, self.warps_here, list(self.ints), list(self.floats)
        self.all_here, self.warps_here = self.all_here and all_here, self.warps_here and warps_here
        self.depth += 1
        yield
        self.depth -= 1
        self.all_here, self.warps_here, self.ints, self.floats = state

    def body(self, most: int = 3) -> None:
        self.change()
        for _ in range(self.draws.below(most)):
            self.statement()

    # ---- expressions ----------------------------------------------------------------------------------

    def integer(self, depth: int = 2) -> str:
        x = self.pick([*self.ints, "n", "lane", "b", "-3", "7"])
        if depth == 0 or self.rarely(3):
            return x
        y = self.integer(depth - 1)
        forms = [
            "({} + {})", "({} - {})", "({} ^ {})", "({} & {})", "({} | {})", "({} * 5 + {})", "({} // 3 - {})",
            "({} % 7 + {})", "(({} << 3) - {})", "(({} >> 2) + {})", "min({}, {})", "max({}, {})", "(abs({}) + {})",
            "({} if {} > 4 else 11)", "(~{} + {})", "(device.popc({}) + {})", "(x[{} % SIZE] - {})",
            "(device.int32(u[{} % SIZE]) + {})", "(device.int32(w[{} % SIZE]) ^ {})", *MIXED,
        ]  # fmt: skip
        forms += [f"({name}[{{}} % {OWN}] + {{}})" for name in self.own]
        return self.pick(forms).format(x, y)

    def number(self) -> str:
        x = self.pick([*self.floats, "device.float32(lane)", "2.0"])
        forms = ["{} + {}", "{} - {}", "min({}, {})", "max({}, {})", "{} * 0.5 + {} * 0.5", "abs({}) - {}"]
        forms += [f"{{}} if {self.condition()} else {{}}", "device.float32(device.float16({}) - device.float16({}))"]
        forms += [f"device.float32(device.float16({self.small()}) * device.float16(0.5)) + 0 * {{}} - {{}}"]
        return self.pick(forms).format(x, self.pick([*self.floats, "1.0", f"device.float32({self.small()})"]))

    def small(self) -> str:
        return f"({self.integer(1)} & 15)"

    def condition(self) -> str:
        x, y = self.integer(1), self.integer(1)
        if self.rarely(5):
            return f"{self.pick(self.floats)} > {self.pick(['0.0', '3.0'])}"
        text = f"{x} {self.pick(['<', '<=', '==', '!=', '>', '>='])} {y}"
        return self.pick(["{}", "{} and t % 3 != 1", "not ({})", "{} or lane == 2"]).format(text)

    def uniform(self) -> str:
        """The same in all threads of the block."""
        return self.pick(["n > 2", "b % 2 == 0", "n == 0", "n + b < 3"])

    # ---- statements -----------------------------------------------------------------------------------

    def statement(self) -> None:
        forms = [self.define, self.define, self.change, self.change, self.store, self.atomic, self.own_array]
        if self.depth < 4:
            forms += [self.branch, self.count, self.repeat, self.branch, self.walk]
        if self.all_here:
            forms += [self.exchange, self.exchange, self.vote, self.shared_atomic]
            forms += [self.alike, self.rounds] if self.depth < 4 else []
            forms += [self.leave] if self.depth == 1 else []
        if self.warps_here:
            forms += [self.shuffle, self.shuffle, self.ballot]
            forms += [self.lanes, self.warps] if self.depth < 4 else []
        self.pick(forms)()

    def define(self) -> None:
        if self.rarely(3):
            name = self.name("h")
            self.emit(f"{name} = device.float32({self.number()})")
            self.floats.append(name)
        else:
            name = self.name("v")
            self.emit(f"{name} = device.int32({self.integer()})")
            self.ints.append(name)

    def change(self) -> None:
        """A variable that is there already."""
        old = [v for v in self.ints + self.floats if v[0] in "vh"]
        if not old:
            return self.define() if self.depth == 1 else self.store()
        name = self.pick(old)
        if name[0] == "h":
            return self.emit(f"{name} = device.float32(({self.number()}) * {self.pick(['0.25', '0.5'])})")
        return self.emit(f"{name} = device.int32({self.integer()})")

    def own_array(self) -> None:
        """An array of the thread, which is made outside of branches."""
        if self.own and (self.depth > 1 or self.rarely(2)):
            return self.emit(f"{self.pick(self.own)}[{self.small()} % {OWN}] = {self.small()}")
        if self.depth > 1:
            return self.store()
        name, t = self.name("p"), self.pick(("int16", "int32", "int64"))
        self.emit(f"{name} = device.local_array({OWN}, device.{t})", f"for i in range({OWN}):", f"    {name}[i] = i")
        return self.own.append(name)

    def define_function(self) -> None:
        """One of the host and of device code that may return early, and call those before it."""
        name, self.ints, self.floats, self.own = self.name("f"), ["a", "c"], ["q"], []
        before, self.lines, self.depth = self.lines, [], 1
        called = [f"{other}(c, a, q)" for other in self.known]
        self.emit(f"r = device.int32({self.plain()})", f"for i in range({self.pick([3, 1, 5])}):")
        self.emit(f"    r += {self.pick(['i', 'a', 'c * i', *called])}", f"    if r > {self.pick([40, 7, -3])}:")
        self.emit(f"        {self.pick(['break', 'return device.int32(c)', 'continue', 'r -= 11'])}")
        self.emit(f"if q > {self.pick(['0.0', '2.0'])} or a == c:", f"    return device.int32({self.plain()})")
        self.emit(f"while r > {self.pick([50, 9])}:", "    r -= 13", f"return device.int32(r ^ {self.plain()})")
        self.functions += ["@device.func", f"def {name}(a, c, q):", *self.lines, "", ""]
        self.known.append(name)
        self.lines = before

    def plain(self) -> str:
        return str(
            self.pick(["a", "c", "a - c", "c * 5 + a", "a // 3", "c % 7", "min(a, c)", "a & 255", "(c >> 2) + a"])
        )

    def calls(self) -> None:
        """What the functions give, which the kernel stores at its end."""
        for i, name in enumerate(self.known):
            self.emit(f"calls[g, {i}] = {name}(t - {self.pick([0, 3, 20])}, lane * {self.pick([1, 3])}, f[g])")

    def store(self) -> None:
        self.emit(f"out[g, {self.draws.below(RESULTS)}] = device.int32({self.integer()})")

    def atomic(self) -> None:
        kind = self.pick(ATOMICS)
        at = f"device.atomic_ref(bins_{kind}, {self.small()})"
        self.emit(f'{at}.{kind}(device.int32({self.integer(1)}), "relaxed", "{self.pick(["device", "system"])}")')

    def branch(self) -> None:
        self.sides(self.condition(), False)

    def alike(self) -> None:
        self.sides(self.uniform(), True)

    def sides(self, condition: str, together: bool) -> None:
        self.emit(f"if {condition}:")
        with self.inner(together, together):
            self.body()
        if self.rarely(2):
            self.emit("else:")
            with self.inner(together, together):
                self.body()

    def count(self) -> None:
        """Rounds of which each thread has its own number."""
        k = self.name("k")
        bounds = [f"{self.small()}", f"lane % 4, {self.small()}, {self.pick([1, 2, 3])}", f"{self.small()}, 0, -2"]
        self.emit(f"for {k} in range({self.pick(bounds)}):")
        with self.inner(False, False):
            self.ints.append(k)
            if self.rarely(3):
                self.emit(f"if {self.condition()}:", f"    {self.pick(['break', 'continue'])}")
            self.body()

    def walk(self) -> None:
        """Over an array, side by side, in steps that are known when the kernel runs."""
        k, v = self.name("k"), self.name("v")
        begin, far = self.pick(["t", "g", "t + n", "lane"]), self.pick(["SIZE", "SIZE - n", "2 * THREADS - 5"])
        self.emit(f"{v} = device.int32({self.small()})", f"for {k} in range({begin}, min({far}, SIZE), many):")
        with self.inner(False, False):
            self.emit(f"{v} = {v} * 3 + {self.pick([f'x[{k}]', f'u[{k}]', f'(x[{k}] ^ u[{k}])'])}")
            self.ints += [k, v]
            self.body()
        self.ints.append(v)

    def rounds(self) -> None:
        k = self.name("k")
        self.emit(f"for {k} in range({self.pick(['n', '2', 'n, 0, -1', 'b + 1', '1, 4, 2'])}):")
        with self.inner(True, True):
            self.ints.append(k)
            self.body()

    def repeat(self) -> None:
        c = self.name("c")
        self.emit(f"{c} = device.int32({self.small()})", f"while {c} > {self.pick(['0', 'lane % 5', 'n'])}:")
        with self.inner(False, False):
            self.ints.append(c)
            self.emit(f"{c} -= {self.pick([1, 2, 5])}")
            if self.rarely(3):
                self.emit(f"if {self.condition()}:", f"    {self.pick(['break', 'continue'])}")
            self.body()

    def leave(self) -> None:
        if self.rarely(2):
            self.emit(f"if {self.condition()}:", "    return")
            self.all_here = self.warps_here = False

    # ---- of the block ---------------------------------------------------------------------------------

    def exchange(self) -> None:
        v = self.name("v")
        other = f"(t * {self.pick([1, 3, 7])} + {self.draws.below(40)}) % THREADS"
        form = self.pick(["shared", "shared", "wide", "array"])
        place, mine, theirs = {
            "shared": ("s", "t", other),
            "wide": ("d", "t", other),
            "array": ("z", "g", f"b * THREADS + {other}"),
        }[form]
        value = f"device.float32({self.pick(self.floats)})" if form == "wide" else f"device.int32({self.integer()})"
        self.emit(f"{place}[{mine}] = {value}", "device.syncthreads()")
        if self.rarely(3):
            self.emit(f"if {self.uniform()}:")
            with self.inner(False, False):
                self.body(2)
        read = f"{place}[{theirs}]"
        if form == "wide":
            v = self.name("h")
        self.emit(f"{v} = {read}", "device.syncthreads()")
        (self.floats if form == "wide" else self.ints).append(v)

    def vote(self) -> None:
        v, kind = self.name("v"), self.pick(["count", "and", "or"])
        told = f"device.syncthreads_{kind}(lambda: {self.condition()})"
        self.emit(f"{v} = device.int32({told if kind == 'count' else f'1 if {told} else 0'})")
        self.ints.append(v)

    def shared_atomic(self) -> None:
        v, kind = self.name("v"), self.pick(ATOMICS)
        self.emit("s[t] = 3", "device.syncthreads()", f"if {self.condition()}:")
        at = f"device.atomic_ref(s, {self.integer(1)} % THREADS)"
        self.emit(f'    {at}.{kind}(device.int32({self.integer(1)}), "relaxed", "block")', "device.syncthreads()")
        self.emit(f"{v} = s[t]", "device.syncthreads()")
        self.ints.append(v)

    # ---- of a warp ------------------------------------------------------------------------------------

    def shuffled(self, mask: str, lanes: int) -> str:
        x = f"device.int32({self.integer(1)})" if self.rarely(2) else self.pick(self.floats)
        far = self.draws.below(lanes)
        forms = [f"xor_sync({mask}, {x}, {far})", f"sync({mask}, {x}, (lane * 3 + {far}) % {lanes})"]
        if lanes == WARP:
            forms += [f"up_sync({mask}, {x}, {far})", f"down_sync({mask}, {x}, {far})"]
        return f"device.shfl_{self.pick(forms)}"

    def shuffle(self, mask: str = FULL, lanes: int = WARP) -> None:
        v = self.name("v")
        self.emit(f"{v} = device.int32({self.shuffled(mask, lanes)})")
        self.ints.append(v)

    def ballot(self, mask: str = FULL) -> None:
        v, condition = self.name("v"), self.condition()
        forms = [
            f"device.ballot_sync({mask}, lambda: {condition}) & 0x7FFFFFF",
            f"1 if device.any_sync({mask}, lambda: {condition}) else 0",
            f"1 if device.all_sync({mask}, lambda: {condition}) else 0",
            f"device.match_any_sync({mask}, {self.small()}) & 0x7FFFFFF",
        ]
        self.emit(f"{v} = device.int32({self.pick(forms)})")
        self.ints.append(v)

    def lanes(self) -> None:
        """Some lanes do something together."""
        count = self.pick([16, 8, 4])
        self.emit(f"if lane < {count}:")
        with self.inner(False, False):
            mask = hex((1 << count) - 1)
            self.shuffle(mask, count)
            self.ballot(mask)
            self.store()

    def warps(self) -> None:
        self.emit(f"if t // {WARP} == {self.pick([0, 1])}:")
        with self.inner(False, True):
            self.body()

    def results(self) -> None:
        for i, v in enumerate([v for v in self.ints if v[0] == "v"][:RESULTS]):
            self.emit(f"out[g, {i}] = {v}")
        for i, v in enumerate(self.floats[-RESULTS:]):
            self.emit(f"reals[g, {i}] = {v}")

    # ---- what runs it ---------------------------------------------------------------------------------

    def source(self, about: str = "") -> str:
        size = self.threads * self.grid
        head = [f"# {about}"] if about else []
        head += ["from cuda import device", "", f"THREADS, SIZE = {self.threads}, {size}", "", ""]
        head += [*self.functions, "@device.kernel"]
        head += [f"def kernel({', '.join(self.arrays())}, n):"]
        head += [
            "    s = device.shared_array(THREADS, device.int32)",
            "    d = device.shared_array(THREADS, device.float32)",
        ]
        head += ["    p, e = device.thread_idx, device.block_dim", "    b = device.int32(device.block_idx.x)"]
        head += ["    t = device.int32((p.z * e.y + p.y) * e.x + p.x)", "    g, lane = b * THREADS + t, t % 32"]
        head += ["    many = device.int32(e.x * e.y * e.z)"]
        if self.fibers:  # a barrier that no thread comes to
            head += ["    if x[g] == 0x7FFFFFF0:", "        device.syncthreads()"]
        return "\n".join([*head, *self.lines, f"# a launch: grid {self.grid}, block {self.block}, n {self.n}", ""])

    def arrays(self) -> dict[str, np.ndarray]:
        """Inputs, and what is written."""
        rng, size = np.random.default_rng(len(self.lines)), self.threads * self.grid
        own = {"out": np.full((size, RESULTS), -7, np.int32), "reals": np.full((size, RESULTS), -7, np.float32)}
        own["calls"] = np.full((size, 2), -7, np.int32)
        bins = {f"bins_{kind}": np.full(BINS, 5, np.int32) for kind in ATOMICS}
        return {
            "x": rng.integers(-100, 100, size).astype(np.int32),
            "f": rng.integers(-8, 8, size).astype(np.float32),
            "u": rng.integers(0, 255, size).astype(np.uint8),
            "w": rng.integers(-(2**40), 2**40, size),
            "z": np.zeros(size, np.int32),
            **own,
            **bins,
        }
