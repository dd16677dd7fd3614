"""Functions of threads on tiles: `tile.map`, which runs a body for each element in the thread that holds it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import emulate
import numpy as np
import pytest

import tilewright.tile as ct
from cuda import device
from tilewright.errors import TileCheckError, TileSyntaxError, TileTypeError

Launch = Callable[..., None]


@device.func
def halvings(x, most):
    n = 0
    while x > 1.0 and n < most:
        x = x / 2
        n += 1
    return n


@ct.kernel
def counted(X, out, N: ct.Constant[int]):
    ct.store(out, (ct.bid(0),), halvings(ct.load(X, (ct.bid(0),), (N,)), 9))


@pytest.mark.parametrize("n", [4, 64, 512])
def test_each_element_has_its_own_loop(launch: Launch, n: int) -> None:
    """Also where several threads hold an element."""
    x = (2.0 ** np.arange(1024).clip(0) % 1000 + np.arange(1024) % 7).astype(np.float32)
    out = np.zeros(1024, np.int32)
    launch(counted, 1024 // n, (x, out, n))
    expected = np.ceil(np.log2(np.maximum(x.astype(np.float64), 1)))
    np.testing.assert_array_equal(out, np.minimum(expected, 9))


EMPTY = -1


@device.func
def insert(key, table, counts):
    """Into a hash table with open addressing, by compare and exchange."""
    slot = (key * 7) & 63
    old = device.atomic_ref(table, slot).cas(EMPTY, key, "relaxed", "device")
    while old != EMPTY and old != key:
        slot = (slot + 1) & 63
        old = device.atomic_ref(table, slot).cas(EMPTY, key, "relaxed", "device")
    device.atomic_ref(counts, slot).add(1, "relaxed", "device")


@ct.kernel
def build(keys, table, counts, N: ct.Constant[int]):
    insert(ct.load(keys, (ct.bid(0),), (N,)), table, counts)


@pytest.mark.parametrize("n", [8, 128])
def test_effects_come_once_for_each_element(launch: Launch, n: int) -> None:
    keys = np.random.default_rng(n).integers(0, 40, 256).astype(np.int32)
    table, counts = np.full(64, EMPTY, np.int32), np.zeros(64, np.int32)
    launch(build, 256 // n, (keys, table, counts, n))
    found = {int(k): int(c) for k, c in zip(table, counts, strict=True) if k != EMPTY}
    assert found == dict(zip(*(a.tolist() for a in np.unique(keys, return_counts=True)), strict=True))


@device.func
def plain(a, b):
    return a * b + 1, 3


@device.func
def leaky(x):
    if x > 0:
        return x
    return x / 2


@device.func
def put(x, i, y):
    if x > 0:
        y[i] = x * 2


@device.func
def followed(i, next_, most):
    for _ in range(most):
        i = next_[i]
    return i


@ct.kernel
def among_others(X, Y, A, B, N, Z, W, C, F):
    x = ct.load(X, (ct.bid(0), 0), (8, 16))
    p, q = plain(x, ct.load(Y, (0,), (16,)))  # a row is repeated
    ct.store(Z, (ct.bid(0), 0), p.astype(Z.dtype) + q)
    rows = ct.arange(8, dtype=ct.int32) + ct.bid(0) * 8
    put(ct.sum(x, axis=1), rows, W)
    a, b = ct.load(A, (ct.bid(0), 0), (16, 16)), ct.load(B, (0, 0), (16, 16))
    acc = ct.zeros((16, 16), dtype=ct.float32)
    for _ in range(3):
        acc = leaky(ct.mma(a, b, acc))
    ct.store(C, (ct.bid(0), 0), acc)
    ct.store(F, (ct.bid(0),), followed(rows, N, most=3))


def test_beside_other_operations(launch: Launch) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(-4, 4, (16, 16)).astype(np.float32), rng.integers(-4, 4, 16).astype(np.float16)
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((32, 16), (16, 16)))
    follow = rng.permutation(16).astype(np.int32)
    z, w, c, i = np.zeros_like(x), np.zeros(16, np.float32), np.zeros((32, 16), np.float32), np.zeros(16, np.int32)
    launch(among_others, 2, (x, y, a, b, follow, z, w, c, i))
    np.testing.assert_array_equal(z, x * y + 4)
    np.testing.assert_array_equal(w, np.maximum(2 * x.sum(axis=1), 0))
    np.testing.assert_array_equal(i, follow[follow[follow]])
    expected = np.zeros_like(c)
    for _ in range(3):
        expected += a.astype(np.float32) @ b
        expected = np.where(expected > 0, expected, expected / 2)
    np.testing.assert_array_equal(c, expected)


@device.func
def shares(a, b):
    return a / b


@ct.kernel
def of_integers(X, out):
    ct.store(out, (0,), shares(ct.load(X, (0,), (8,)), 2))


def test_numbers_are_those_of_device_code(launch: Launch) -> None:
    """With and without a branch: int8 / int is float32."""
    out = np.zeros(8, np.float32)
    launch(of_integers, 1, (np.arange(8, dtype=np.int8), out))
    np.testing.assert_array_equal(out, np.arange(8) / 2)


def example() -> Any:
    path = Path(__file__).parents[2] / "python/examples/mandelbrot.py"
    spec = importlib.util.spec_from_file_location("mandelbrot", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("execution", ("cpu", "sm_80", "sm_90a"))
def test_the_example(execution: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if execution.startswith("sm_"):
        emulate.stand_in(monkeypatch, execution)
    module, out = example(), np.zeros((32, 32), np.int32)
    expected = module.reference(out.shape, 20)
    for kernel in (module.mandelbrot, module.by_tiles):
        module.run(out, 20, kernel, tile=16)
        assert np.count_nonzero(out != expected) <= 3  # which fused multiply-adds may round otherwise


# --- errors ---------------------------------------------------------------------------------------------


@device.func
def where_am_i(x):
    return x + device.tid(1)


@device.func
def meets(x):
    device.syncthreads()
    return x


@device.func
def shared(x):
    return device.shared_array(4, device.int32)[0] + x


@device.func
def lane(x):
    return x + device.lane_id


@device.func
def both(x, y):
    device.atomic_ref(y, 0).add(1)
    return x


@device.func
def looks(x, y):
    return x + device.atomic_ref(y, 0).load()


@device.func
def text(x):
    return "no number"


@pytest.mark.parametrize(
    ("body", "kind", "match"),
    [
        (
            where_am_i,
            TileTypeError,
            r"device.tid\(\) is of a thread in its block, and the @device.func 'where_am_i'",
        ),
        (meets, TileTypeError, r"device.syncthreads\(\) is of a thread in its block"),
        (shared, TileTypeError, r"device.shared_array\(\) is of a thread in its block"),
        (lane, TileTypeError, r"device.lane_id is of a thread in its block"),
        (
            both,
            TileTypeError,
            "is called on tiles, has atomic accesses or writes to an array, and returns a",
        ),
        (
            looks,
            TileTypeError,
            "writes to an array, and returns a value; write that to an array, too",
        ),
        (text, TileTypeError, "the @device.func 'text' is called on tiles, and returns 'no number'.*expected a number"),
    ],
)
def test_what_an_element_has_not(body: Any, kind: Any, match: str) -> None:
    takes_array = body in (both, looks)

    @ct.kernel
    def k(X, Y):
        x = ct.load(X, (0,), (4,))
        ct.store(X, (0,), body(x, Y) if takes_array else body(x))

    with pytest.raises(kind, match=match) as error:
        ct.launch(None, 1, k, (np.zeros(4, np.int32), np.zeros(4, np.int32)))
    assert "test_tiles.py" in str(error.value)


def test_not_in_the_function_of_a_reduction() -> None:
    @ct.kernel
    def k(X, Y):
        x = ct.load(X, (0,), (4,))
        ct.store(Y, (0,), ct.reduce(x, 0, lambda a, b: a + leaky(x), 0.0))

    with pytest.raises(TileSyntaxError, match="the @device.func 'leaky' cannot stand in the function of ct.reduce"):
        ct.launch(None, 1, k, (np.zeros(4, np.float32), np.zeros(1, np.float32)))


@ct.kernel
def beyond(X, Y, Z):
    i = ct.load(X, (0,), (8,))
    ct.store(Z, (0,), followed(i, Y, most=1))
    put(i, i, Y)


@pytest.mark.parametrize("execution", ["cpu", "sm_90a"])
def test_check_mode_looks_into_them(execution: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if execution != "cpu":
        emulate.stand_in(monkeypatch, execution)
    x, y, z = np.arange(8, dtype=np.int32), np.arange(6, dtype=np.int32), np.zeros(8, np.int32)
    with pytest.raises(TileCheckError) as error:
        ct.launch(None, 1, ct.kernel(beyond.function), (x, y, z), check=True)
    outside = {(kind, "Y", (i,)) for kind in ("read outside", "write outside") for i in (6, 7)}
    assert {(f.kind, f.array, f.index) for f in error.value.findings} == outside
    assert "i = next_[i]" in str(error.value)
    assert list(y) == [0, 2, 4, 6, 8, 10]
