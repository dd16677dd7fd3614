"""Arguments that hold others: tuples, lists, dicts, named tuples, dataclasses, enumerations and None, nested."""

from __future__ import annotations

import dataclasses
import enum
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest
from harness import Backends

from tilewright import tile as ct
from tilewright.errors import LaunchError, TileError, TileTypeError


def filled(value: float, count: int = 8) -> np.ndarray:
    return np.full(count, value, np.float32)


class Mode(enum.Enum):
    PLAIN = "plain"
    DOUBLED = "doubled"


class Bounds(NamedTuple):
    low: Any
    high: Any


@dataclasses.dataclass(frozen=True)
class Layer:
    weights: list[Any]
    scale: Any
    length: ct.Constant[int]
    bias: Any = None
    mode: Mode = Mode.PLAIN
    note: str = ""


@dataclasses.dataclass
class Network:  # not frozen, and with a layer in it
    layer: Layer
    out: Any

    def tile(self):
        return ct.load(self.layer.weights[0], 0, self.layer.length)


@ct.kernel
def forward(network, bounds, table):
    layer = network.layer
    t = network.tile()
    for w in layer.weights[1:]:
        t = t + ct.load(w, 0, layer.length)
    t = t * layer.scale
    if layer.bias is not None:
        t = t + layer.bias
    if layer.mode is Mode.DOUBLED and layer.note == "twice":
        t = 2 * t
    t = ct.minimum(ct.maximum(t, bounds.low), bounds.high) + table["shift"][0][1]
    ct.store(network.out, 0, t)


@pytest.mark.parametrize(
    "change",
    [{}, {"bias": 7}, {"mode": Mode.DOUBLED, "note": "twice"}, {"scale": np.float32(0.1)}, {"scale": 3}],
    ids=str,
)
def test_nested(backends: Backends, change: dict[str, Any]) -> None:
    layer = dataclasses.replace(Layer([filled(1), filled(2), filled(3)], 0.5, 8), **change)
    backends.run_all(forward, (1,), lambda: [Network(layer, filled(0)), Bounds(-4.0, 20.0), {"shift": [(1, 2)]}])


@ct.kernel
def lists_of_different_lengths(xs, out, empty):
    total = ct.zeros(8, ct.float32)
    for x in xs:
        total = total + ct.load(x, 0, 8)
    ct.store(out, 0, total + len(xs) + 10 * len(empty))


@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_list_of_arrays(backends: Backends, count: int) -> None:
    arrays = [filled(2.0**i) for i in range(count)]
    backends.run_all(lists_of_different_lengths, (1,), lambda: [arrays, filled(0), ()])


@ct.kernel
def annotated(
    pair: tuple[ct.Constant[int], int],
    many: tuple[ct.Constant[int], ...],
    wide: tuple[ct.IndexedWithInt64, Any],
    rest: Annotated[list, ct.ListAnnotation(element=ct.IndexedWithInt64)],
    n: tuple[ct.ScalarInt64, int],
    out,
):
    ct.static_assert(pair[0] == 8 and many == (1, 2, 3))
    ct.static_assert(wide[0].shape[0].dtype == ct.int64 and wide[1].shape[0].dtype == ct.int32)
    ct.static_assert(rest[1].shape[0].dtype == ct.int64)
    ct.static_assert(n[0].dtype == ct.int64 and n[1].dtype == ct.int32)
    t = ct.load(wide[0], 0, pair[0]) + ct.load(rest[1], 0, pair[0])
    ct.store(out, 0, t + (pair[1] + many[2] + n[0] + n[1] + wide[0].shape[0]).astype(ct.float32))


def test_annotations(backends: Backends) -> None:
    def make() -> list[Any]:
        return [(8, 5), (1, 2, 3), (filled(1), filled(2)), [filled(3), filled(4)], (6, 7), filled(0)]

    backends.run_all(annotated, (1,), make)
    backends.rejects(annotated, (1,), lambda: [(8, 5, 1), *make()[1:]], TileTypeError, "'pair': it holds 3 values")


def test_the_form_is_part_of_what_is_compiled_for() -> None:
    @ct.kernel
    def k(config: tuple[tuple[ct.Constant[int], int], Any], out):
        ct.store(out, 0, ct.full(8, config[0][0] + config[0][1], ct.float32) + len(config))

    out = filled(0)
    for config, variants in [
        (((1, 2), 3), 1),
        (((1, 5), 7), 1),
        (((2, 5), 7), 2),
        (((2, 5), (7,)), 3),
        (((2, 5), [7]), 4),
    ]:
        ct.launch(None, 1, k, (config, out))
        assert out[0] == config[0][0] + config[0][1] + 2
        assert len(k.variants()) == variants


def test_classes_and_keys_are_told_apart() -> None:
    @dataclasses.dataclass
    class A:
        n: int

    @dataclasses.dataclass
    class B:
        n: int

    @ct.kernel
    def k(p, out):
        found = 1 if isinstance(p, A) else 2 if isinstance(p, B) else 3 if "n" in p else 4
        ct.store(out, 0, ct.full(8, found, ct.float32))

    out = filled(0)
    for value, expected in [(A(1), 1), (B(1), 2), ({"n": 1}, 3), ({"m": 1}, 4), (A(1), 1)]:
        ct.launch(None, 1, k, (value, out))
        assert out[0] == expected
    assert len(k.variants()) == 4


@ct.kernel
def stores(p):
    ct.store(p["out"][0], 0, ct.load(p["x"], 0, 8))


def frozen() -> np.ndarray:
    array = filled(0)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (
            {"x": filled(1), "out": [frozen()]},
            LaunchError,
            r"kernel stores writes to p\['out'\]\[0\], which is read-only",
        ),
        ({"x": filled(1), "out": [b"x"]}, TileTypeError, r"argument 'p\['out'\]\[0\]': an object of type bytes"),
        ({"x": filled(1), "out": [2**70]}, TileError, r"argument 'p\['out'\]\[0\]': the integer \d+ fits no dtype"),
        ({"x": Layer([object()], 1, 8)}, TileTypeError, r"argument 'p\['x'\]\.weights\[0\]': an object of type object"),
        (
            [filled(1)] * 70,
            TileTypeError,
            r"'p\[64\]': with it the arguments hold more than 64 .*; join arrays into one",
        ),
        (tuple([()] * 70), TileTypeError, r"'p\[63\]': it is one of more than 64 structures"),
    ],
    ids=range(6),
)
def test_what_a_launch_refuses(value: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        ct.launch(None, 1, stores, (value,))


def test_a_list_in_itself() -> None:
    inner: list[Any] = []
    inner.append(inner)
    with pytest.raises(TileTypeError, match="it is nested deeper than 16 levels"):
        ct.launch(None, 1, stores, (inner,))
    with pytest.raises(TileTypeError, match="it is nested deeper than 16 levels"):
        stores.interpret(1, (inner,))


def test_constants_hold_no_arrays() -> None:
    @ct.kernel
    def k(c: ct.Constant[tuple]):
        pass

    with pytest.raises(TileTypeError, match="'c': it is a constant of the kernel, and holds an array"):
        ct.launch(None, 1, k, ((filled(1), 1),))


def test_a_list_that_changes_while_it_is_read() -> None:
    xs: list[Any] = []

    class Shrinking:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

        def __dlpack__(self, **_: Any) -> Any:
            xs.clear()
            return filled(1).__dlpack__()

    xs.extend([Shrinking(), filled(2)])
    out = filled(0)
    with pytest.raises(LaunchError, match="changed while it was launched"):
        ct.launch(None, 1, lists_of_different_lengths, (xs, out, ()))


Still = Annotated[ct.Array, ct.ArrayAnnotation(static_shape_dims=(0,), static_stride_dims=(0, 1))]


@ct.kernel
def still(x: Still, many: Annotated[list, ct.ListAnnotation(element=ct.ArrayAnnotation(static_shape_dims=(1,)))], out):
    ct.static_assert(x.shape[0] == 4 and x.strides[0] == 10 and x.strides[1] == 1)
    ct.static_assert(many[0].shape[1] + many[1].shape[1] == 10)
    t = ct.load(x, (0, 0), (x.shape[0], 8)) + x.shape[1] + x.slice(0, 1, 3).shape[0]
    ct.store(out, (0, 0), t + ct.num_tiles(x, 0, (2, 8)) + x.strides[0] + many[1].shape[0])


def test_extents_and_strides_that_are_constants(backends: Backends) -> None:
    x = np.arange(40, dtype=np.int64).reshape(4, 10)[:, :8]
    many = [np.zeros((2, 5), np.float32), np.zeros((3, 5), np.float32)]
    backends.run_all(still, (1,), lambda: [x, many, np.zeros((4, 8), np.int64)])


@pytest.mark.spec("T-150")
def test_a_tuple_is_an_argument_and_no_array(backends: Backends) -> None:
    """Whether tuples are arguments was left open: they are, and what stands in them is told by its place."""

    @ct.kernel
    def kernel(pair, out):
        ct.store(out, 0, ct.load(pair[0], 0, 8) * pair[1])

    @ct.kernel
    def whole(pair, out):
        ct.store(out, 0, ct.load(pair, 0, 8))

    x = np.arange(8, dtype=np.float32)
    out = backends.run_all(kernel, 1, lambda: [(x, 3), np.zeros(8, np.float32)])[1]
    assert np.array_equal(out, 3 * x)
    backends.rejects(whole, 1, lambda: [(x, 3), x.copy()], TileTypeError, "needs an array .*, found")
    backends.rejects(kernel, 1, lambda: [(object(), 3), x.copy()], TileTypeError, r"'pair\[0\]'")


def test_arrays_of_a_list_agree_in_what_is_constant(backends: Backends) -> None:
    x, out = np.zeros((4, 10), np.int64), np.zeros((4, 8), np.int64)
    many = [np.zeros((2, 5), np.float32), np.zeros((3, 6), np.float32)]
    backends.rejects(still, (1,), lambda: [x, many, out], ValueError, "vary in static shape at axis 1, found 5 and 6")


def test_each_constant_extent_is_compiled_for() -> None:
    @ct.kernel
    def k(x: Annotated[ct.Array, ct.ArrayAnnotation(static_shape_dims=(0,))], out):
        ct.store(out, 0, ct.full(8, x.shape[0], ct.float32))

    out = filled(0)
    for n, variants in [(16, 1), (32, 2), (16, 2)]:
        ct.launch(None, 1, k, (filled(0, n), out))
        assert out[0] == n and len(k.variants()) == variants


def test_annotations_that_are_wrong(backends: Backends) -> None:
    with pytest.raises(TileTypeError, match="must be a tuple of integers"):
        ct.ArrayAnnotation(static_shape_dims=(False,))
    with pytest.raises(TileError, match="has axes from 0 to 7"):
        ct.ArrayAnnotation(static_stride_dims=(8,))
    x = np.zeros(8, np.int64)
    backends.rejects(still, (1,), lambda: [x, [x, x], x], TileError, "'x': it has 1 dimension, and its ct.ArrayAnn")


@dataclasses.dataclass(frozen=True)
class Line:
    """Its methods are tile code."""

    slope: Any
    offset: Any
    target: Any = None
    seen: list[Any] = dataclasses.field(default_factory=list)
    start: dataclasses.InitVar[int] = 0

    def __post_init__(self, start):
        if start:
            ct.scatter(self.target, 7, self.offset + start)

    def __call__(self, x):
        return self.slope * x + self.offset

    def __getitem__(self, i):
        return self(i) * 100

    def __setitem__(self, i, value):
        ct.scatter(self.target, i, value + self.slope)

    @property
    def root(self):
        return -self.offset / self.slope


@ct.kernel
def methods(out, n):
    line = Line(n, 2.0, out, start=5)
    for i in range(n):
        line = dataclasses.replace(line, slope=line.slope + i, offset=line.offset * 2)
    line[1] = line(3.0)
    ct.scatter(out, 2, line[4])
    ct.scatter(out, 3, line.root)
    ct.static_assert(type(line) is Line)


@pytest.mark.parametrize("n", [1, 3])
def test_methods_of_records(backends: Backends, n: int) -> None:
    backends.run_all(methods, (1,), lambda: [filled(0), n])


def test_what_records_refuse() -> None:
    @ct.kernel
    def unknown(out):
        dataclasses.replace(Line(1, 2), curve=3)

    @ct.kernel
    def number(out):
        dataclasses.replace(out, slope=3)

    @ct.kernel
    def kinds(out, n):
        ct.scatter(out, 0, 1 if type(n) is int else 2)

    for kernel, args, message in [
        (unknown, (filled(0),), "Line has no field 'curve'; it has slope"),
        (number, (filled(0),), "dataclasses.replace needs an object of a dataclass, found the 1-D float32 array"),
        (kinds, (filled(0), 3), "a run-time int32 scalar: it has a dtype and a shape"),
    ]:
        with pytest.raises(TileTypeError, match=message):
            ct.launch(None, 1, kernel, args)
