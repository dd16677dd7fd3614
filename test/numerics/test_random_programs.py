"""Random programs: typed expressions, loops and branches that every execution must agree on.

A program uses exact operations only and avoids what the language leaves open, so that all
results are compared bit for bit. Floats are multiplied by powers of two only, because a GPU may
fuse a product and a sum and then rounds once. A failing example is shrunk, and its source is in the report.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from harness import Backends, random_values
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tilewright import dtype as dt
from tilewright import tile as ct

NAMES = "int32 bool_ int8 int16 int64 uint8 uint32 float16 bfloat16 float32 float64"
DTYPES = tuple(getattr(ct, name) for name in NAMES.split())
Draw = Callable[[Any], Any]


class Program:
    """Builds the source of a kernel statement by statement; knows the type of each variable."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.types: dict[str, tuple[dt.DType, tuple[int, ...]]] = {}
        self.inputs: list[dt.DType] = []
        self.indent = 1
        self.count = itertools.count()
        self.full = self.pick([(4, 16), (2, 2), (32, 8), (1, 64), (16, 64), (64, 64)])

    def pick(self, values: Any) -> Any:
        return self.draw(st.sampled_from(list(values)))

    def emit(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def input(self, dtype: dt.DType) -> None:
        name = f"v{next(self.count)}"
        self.emit(f"{name} = ct.load(X{len(self.inputs)}, (0, 0), {self.full})")
        self.inputs.append(dtype)
        self.types[name] = (dtype, self.full)

    def assign(self) -> None:
        makers = [self.cast, self.arithmetic, self.constant, self.compare, self.select]
        makers += [self.bits, self.unary, self.shape, self.reduce, self.product]
        text, dtype, shape = self.pick(makers)() or self.cast()
        name = f"v{next(self.count)}"
        self.emit(f"{name} = {text}")
        self.types[name] = (dtype, shape)

    # Expressions: text, dtype, shape; or None where no variable fits.

    def variable(self, accept: Callable[[dt.DType], bool]) -> str | None:
        names = [n for n, (d, _) in self.types.items() if accept(d)]
        return self.pick(names) if names else None

    def pair(self, accept: Callable[[dt.DType], bool]) -> Any:
        """Two variables that promote to a dtype which `accept` takes."""
        x = self.pick(self.types)
        dtype, shape = self.types[x]
        fitting = [
            (n, dt.PROMOTION[dtype, d], np.broadcast_shapes(shape, s))
            for n, (d, s) in self.types.items()
            if dt.PROMOTION[dtype, d] is not None and accept(dt.PROMOTION[dtype, d])
            and exact_conversion(d, dt.PROMOTION[dtype, d])
            and exact_conversion(dtype, dt.PROMOTION[dtype, d])
        ]  # fmt: skip
        return (x, *self.pick(fitting)) if fitting else None

    def arithmetic(self) -> Any:
        found = self.pair(lambda d: not d.is_bool)
        if found is None:
            return None
        x, y, dtype, shape = found
        forms = [f"{x} + {y}", f"{x} - {y}"] + ([] if dtype.is_float else [f"{x} * {y}"])
        forms += [f"ct.minimum({x}, {y})", f"ct.maximum({x}, {y})"]
        return self.pick(forms), dtype, shape

    def constant(self) -> Any:
        x = self.variable(lambda d: not d.is_bool)
        if x is None:
            return None
        dtype, shape = self.types[x]
        number = self.pick([1, 2, 3, 7, 10])
        forms = [f"{x} + {number}", f"{number} - {x}"]
        if dtype.is_integral:
            forms += [f"{x} * {number}"]
            forms += [f"{x} // {number}", f"{x} % {number}", f"{x} << {number % 7}", f"{x} >> 2"]
        else:
            forms += [f"{x} / {number}", f"ct.floor({x})", f"{x} * 0.5", f"{x} * 4"]
        return self.pick(forms), dtype, shape

    def compare(self) -> Any:
        found = self.pair(lambda d: True)
        if found is None:
            return None
        x, y, _, shape = found
        return f"{x} {self.pick(['<', '<=', '==', '!=', '>', '>='])} {y}", ct.bool_, shape

    def select(self) -> Any:
        condition, found = self.variable(lambda d: d.is_bool), self.pair(lambda d: True)
        if condition is None or found is None:
            return None
        x, y, dtype, shape = found
        shape = np.broadcast_shapes(shape, self.types[condition][1])
        return f"ct.where({condition}, {x}, {y})", dtype, shape

    def bits(self) -> Any:
        found = self.pair(lambda d: not d.is_float)
        if found is None:
            return None
        x, y, dtype, shape = found
        return f"{x} {self.pick('&|^')} {y}", dtype, shape

    def unary(self) -> Any:
        x = self.variable(lambda d: not d.is_bool)
        if x is None:
            return None
        return f"{self.pick(['-{}', 'abs({})']).format(x)}", *self.types[x]

    def cast(self) -> Any:
        x = self.pick(self.types)
        source, shape = self.types[x]
        target = self.pick([d for d in DTYPES if exact_conversion(source, d)])
        if source.is_float and target.is_integral:
            low = -100 if target.signed else 0
            x = f"ct.minimum(ct.maximum(ct.where({x} == {x}, {x}, 0), {low}), 100)"
        return f"({x}).astype(ct.{target})", target, shape

    def shape(self) -> Any:
        x = self.pick(self.types)
        dtype, shape = self.types[x]
        rows, columns = self.full
        forms = [(f"ct.broadcast_to({x}, {self.full})", self.full)]
        if shape == (columns,):
            forms += [(f"{x}[None, :]", (1, columns)), (f"{x}.reshape((1, -1))", (1, columns))]
        if shape == self.full:
            split = (rows, 2, columns // 2)
            forms += [
                (f"{x}.transpose().reshape({self.full})", self.full),
                (f"ct.permute({x}.reshape({split}), (1, 2, 0)).reshape({self.full})", self.full),
            ]
        text, shape = self.pick(forms)
        return text, dtype, shape

    def reduce(self) -> Any:
        x = self.variable(lambda d: not d.is_bool)
        if x is None or len(self.types[x][1]) < 2:
            return None
        dtype, shape = self.types[x]
        op = self.pick(["sum", "max", "min"] if dtype.is_integral else ["max", "min"])
        axis, keep = self.pick([(0, False), (0, True), (1, True), (None, False)])
        shape = np.zeros(shape).sum(axis, keepdims=keep).shape
        return f"ct.{op}({x}, axis={axis}, keepdims={keep})", dtype, shape

    def product(self) -> Any:
        """Two products, one after the other, of numbers so small that every sum is exact."""
        names = [n for n, (_, s) in self.types.items() if s == self.full]
        if not names:
            return None
        factor = self.pick(["ct.float16", "ct.bfloat16"])
        x, y, z = (
            f"ct.where({n} == 0, 1, ct.where({n} > ct.zeros((), ct.{self.types[n][0]}), 2, -1)).astype({factor})"
            for n in (self.pick(names) for _ in range(3))
        )
        rows, columns = self.full
        inner = f"ct.mma({x}, ({y}).transpose(), ct.zeros({(rows, rows)}, ct.float32))"
        inner = f"ct.where({inner} > 1, 1, -1).astype({factor})"
        return f"ct.mma({inner}, {z}, ct.zeros({(rows, columns)}, ct.float32))", ct.float32, self.full

    # Statements around them.

    def update(self) -> None:
        """Give an existing variable a new value of the same type."""
        name = self.pick(self.types)
        dtype, _ = self.types[name]
        if dtype.is_bool:
            self.emit(f"{name} = ~{name}")
        else:
            self.emit(f"{name} = {name} {self.pick(['+ 3', '- 5', '* 2'])}")

    def load(self) -> None:
        """From the array S, which the program also writes."""
        rows = self.pick([self.full[0], 1])
        name = f"v{next(self.count)}"
        if rows == 1 and self.draw(st.booleans()):
            self.emit(f"{name} = ct.gather(S, {self.places()})")
            self.types[name] = (ct.int32, self.full)
            return
        index = self.draw(st.integers(0, 2 * self.full[0] // rows - 1))
        self.emit(f"{name} = ct.load(S, ({index}, 0), ({rows}, {self.full[1]}))")
        self.types[name] = (ct.int32, (rows, self.full[1]))

    def places(self) -> str:
        """Rows of S, each once, in some order."""
        rows, columns = self.full
        step, first = self.pick([1, 3, 5]), self.draw(st.integers(0, 2 * rows - 1))
        row = f"(ct.arange({rows}, dtype=ct.int32) * {step} + {first}) % {2 * rows}"
        return f"(({row})[:, None], ct.arange({columns}, dtype=ct.int32)[None, :])"

    def write(self) -> None:
        rows, columns = self.full
        names = [n for n, (_, s) in self.types.items() if s in (self.full, (1, columns))]
        if not names:
            return self.update()
        name = self.pick(names)
        dtype, shape = self.types[name]
        index = self.draw(st.integers(0, 2 * rows // shape[0] - 1))
        value = name if dtype is ct.int32 else f"ct.where({name} == {name}, 1, 2)"
        if shape == self.full and self.draw(st.booleans()):
            self.emit(f"ct.scatter(S, {self.places()}, {value})")
            return
        self.emit(f"ct.store(S, ({index}, 0), {value})")

    def block(self) -> None:
        """Local variables of a block do not leave it; updates do."""
        outer = dict(self.types)
        self.indent += 1
        for _ in range(self.draw(st.integers(1, 3))):
            self.pick([self.assign, self.update, self.write, self.load])()
        self.types = outer
        self.update()
        self.indent -= 1

    def statement(self) -> None:
        kind = self.pick(["assign"] * 6 + ["update", "for", "if", "load", "write"])
        if kind == "assign":
            self.assign()
        elif kind in ("update", "load", "write"):
            getattr(self, kind)()
        elif self.indent > 2:
            self.assign()
        elif kind == "for":
            self.emit(f"for _ in range({self.pick(['n', 'n - 3', '3', '0'])}):")
            self.block()
        else:
            self.emit(f"if n {self.pick(['>', '<', '==', '!='])} {self.pick([0, 3, 4])}:")
            self.block()

    def source(self) -> str:
        for dtype in [self.pick(DTYPES) for _ in range(self.draw(st.integers(1, 3)))]:
            self.input(dtype)
        for _ in range(self.draw(st.integers(1, 12))):
            self.statement()
        arrays = [f"X{i}" for i in range(len(self.inputs))]
        outputs = []
        for name, (_, shape) in self.types.items():
            outputs.append(f"Z{name}")
            self.emit(f"ct.store(Z{name}, {(0,) * len(shape)}, {name})")
        head = [
            "from tilewright import tile as ct",
            "",
            "",
            "@ct.kernel",
            f"def kernel({', '.join([*arrays, *outputs, 'S', 'n'])}):",
        ]
        return "\n".join([*head, *self.lines, ""])


def exact_conversion(source: dt.DType, target: dt.DType) -> bool:
    """Whether all executions round the conversion alike (wide integers to bfloat16 may not)."""
    return not (source.is_integral and source.bits > 16 and target is ct.bfloat16)


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_random_program(backends: Backends, kernel_of: Callable[[str], Any], data: st.DataObject) -> None:
    program = Program(data.draw)
    source = program.source()
    note(source)
    kernel = kernel_of(source)
    rows, columns = program.full
    inputs = [random_values(d, rows * columns, i).reshape(rows, columns) for i, d in enumerate(program.inputs)]
    n = data.draw(st.integers(0, 5))
    kernel = kernel.replace_hints(num_warps=data.draw(st.sampled_from([None, 1, 4, 8])))
    backends.run_all(
        kernel,
        1,
        lambda: [
            *(x.copy() for x in inputs),
            *(np.zeros(s, d.numpy) for d, s in program.types.values()),
            np.arange(2 * rows * columns, dtype=np.int32).reshape(2 * rows, columns),
            n,
        ],
    )
