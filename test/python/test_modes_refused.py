"""Keywords that an operation does not take, or not with these values: the class of the error, its words, its caret."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from tilewright import tile as ct
from tilewright.capture import ArrayArgument, capture
from tilewright.errors import (
    TileError,
    TileTypeError,
    TileUnsupportedFeatureError,
    TileValueError,
)

F32 = ArrayArgument(ct.float32, 1, 16, (16,), ((1, 1),))
RM = ct.RoundingMode


def wrong(operation: Any, **keywords: Any) -> Any:
    def kernel(X):
        x = ct.load(X, 0, 8)
        operation(x, **keywords)

    return kernel


def of_integers(operation: Any, **keywords: Any) -> Any:
    def kernel(X):
        operation(ct.load(X, 0, 8).astype(ct.int32), **keywords)

    return kernel


def twice(operation: Any) -> Any:
    return lambda x, **keywords: operation(x, x, **keywords)


def cast(x, **keywords):
    return ct.astype(x, ct.float16, **keywords)


def cast_to_fp8(x, **keywords):
    return ct.astype(x, ct.float8_e5m2, **keywords)


def cast_to_int(x, **keywords):
    return ct.astype(x, ct.int32, **keywords)


CASES = [
    (wrong(ct.sqrt, rounding_mode=RM.RA), TileTypeError, "ct.sqrt has no rounding_mode RA; it has RN, RZ, RM, RP"),
    (wrong(ct.sum, rounding_mode=RM.RA), TileTypeError, "ct.sum has no rounding_mode RA; it has RN, RZ, RM, RP"),
    (wrong(cast, rounding_mode=RM.RA), TileUnsupportedFeatureError, "rounding_mode RA to float16 is not supported"),
    (wrong(cast, rounding_mode=RM.APPROX), TileTypeError, "ct.astype has no rounding_mode APPROX; it has RN, RZ"),
    (
        wrong(cast_to_fp8, rounding_mode=RM.RZ),
        TileUnsupportedFeatureError,
        "rounding_mode RZ to float8_e5m2 is not supported",
    ),
    (wrong(cast_to_int, rounding_mode=RM.RN), TileTypeError, "conversions of floats to floats, found float32 to int32"),
    (
        wrong(twice(ct.mul), rounding_mode=RM.FULL),
        TileTypeError,
        "ct.mul has no rounding_mode FULL; it has RN, RZ, RM, RP",
    ),
    (wrong(ct.exp, rounding_mode=RM.RN), TileTypeError, "ct.exp has no rounding_mode RN; it has FULL, APPROX"),
    (
        wrong(twice(ct.mul), rounding_mode="RN"),
        TileTypeError,
        "rounding_mode must be a ct.RoundingMode or None, found 'RN'",
    ),
    (of_integers(twice(ct.add), rounding_mode=RM.RN), TileTypeError, "a rounding_mode is for floats, found int32"),
    (of_integers(twice(ct.add), flush_to_zero=True), TileTypeError, "flush_to_zero is for float32, found int32"),
    (of_integers(ct.max, flush_to_zero=True), TileTypeError, "ct.max: flush_to_zero is for float32, found int32"),
    (of_integers(ct.isnan), TileTypeError, "ct.isnan needs floats, found int32, which has no NaN"),
]


@pytest.mark.parametrize(("kernel", "kind", "message"), CASES, ids=[message for *_, message in CASES])
def test_modes_that_an_operation_does_not_have(kernel: Any, kind: type[TileError], message: str) -> None:
    with pytest.raises(kind) as caught:
        capture(kernel, [F32], "cpu")
    assert type(caught.value) is kind and message in str(caught.value)
    assert caught.value.where is not None and "^" in str(caught.value)
    reference = ct.kernel(kernel)
    with pytest.raises(kind) as caught:
        reference.interpret(1, (np.ones(8, np.float32),))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("keywords", "kind", "message"),
    [
        ({"memory_order": ct.MemoryOrder.ACQ_REL}, TileTypeError, "has no memory_order ACQ_REL; it has RELAXED, "),
        ({"memory_order": ct.MemoryOrder.RELAXED}, TileTypeError, "needs a memory_scope of BLOCK, DEVICE or SYS"),
        ({"memory_scope": ct.MemoryScope.SYS}, TileTypeError, "memory_scope SYS needs a memory_order other than WEAK"),
        ({"memory_order": "weak"}, TileTypeError, "memory_order must be a ct.MemoryOrder, found 'weak'"),
    ],
)
def test_memory_orders(keywords: dict[str, Any], kind: type[TileError], message: str) -> None:
    @ct.kernel
    def load(X):
        ct.load(X, 0, 8, **keywords)

    @ct.kernel
    def store(X):
        ct.store(X, 0, 1.0, **keywords)

    for kernel in (load, store):
        for run in (lambda k, x: ct.launch(None, 1, k, (x,)), lambda k, x: k.interpret(1, (x,))):
            with pytest.raises(kind, match=message):
                run(kernel, np.ones(8, np.float32))


def test_fast_accumulation_is_for_8_bits() -> None:
    @ct.kernel
    def kernel(X):
        x = ct.load(X, (0, 0), (16, 16))
        ct.mma(x, x, x, use_fast_acc=True)

    x = np.ones((16, 16), np.float32)
    for run in (lambda: ct.launch(None, 1, kernel, (x,)), lambda: kernel.interpret(1, (x,))):
        with pytest.raises(TileTypeError, match="use_fast_acc is for float8_e4m3fn and float8_e5m2, found float32"):
            run()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (((1, 2), (3,)), r"the entries of one tuple have the shapes \(1,\), \(2,\)"),
        ((1, 2, 3), "a tuple of 3 entries; expected 1, 2, 4"),
        ((), "a tuple of 0 entries"),
    ],
)
def test_nested_tuples_that_are_no_tile(value: Any, message: str) -> None:
    @ct.kernel
    def kernel(X):
        ct.astile(value, dtype=ct.float32)

    x = np.ones(8, np.float32)
    for run in (lambda: ct.launch(None, 1, kernel, (x,)), lambda: kernel.interpret(1, (x,))):
        with pytest.raises(TileTypeError, match=message):
            run()


def test_a_function_of_the_host_stays_there() -> None:
    @ct.function(tile=False)
    def on_host():
        return 1

    @ct.kernel
    def kernel(X):
        on_host()

    assert on_host() == 1
    x = np.ones(8, np.float32)
    for run in (lambda: ct.launch(None, 1, kernel, (x,)), lambda: kernel.interpret(1, (x,))):
        with pytest.raises(TileTypeError, match="function of the host"):
            run()


def test_a_hint_that_is_not_taken_says_so() -> None:
    def body(X):
        ct.store(X, 0, 1.0)

    with pytest.warns(UserWarning, match="the hint num_worker_warps is not taken") as told:
        kernel = ct.kernel(num_worker_warps=ct.ByTarget(sm_90=8))(body)
    assert [warning.filename for warning in told] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ct.kernel(num_worker_warps=None)(body)
    x = np.zeros(1, np.float32)
    ct.launch(None, 1, kernel, (x,))
    assert x[0] == 1
    with pytest.raises(TileValueError, match="num_worker_warps is 4 or 8, found 3"):
        ct.kernel(num_worker_warps=3)(body)


def test_keywords_of_a_launch() -> None:
    @ct.kernel
    def kernel(X):
        ct.store(X, 0, 1.0)

    x = np.zeros(1, np.float32)
    ct.launch(None, grid=1, kernel=kernel, kernel_args=(x,), programmatic_dependent_launch=True)
    assert x[0] == 1
    launch: Any = ct.launch
    with pytest.raises(
        TileTypeError, match="takes no 'args'; it takes stream, grid, kernel, kernel_args, hints, programmatic"
    ):
        launch(None, 1, kernel, args=(x,))
    with pytest.raises(TileTypeError, match="was given 'grid' twice"):
        launch(None, 1, grid=1, kernel=kernel, kernel_args=(x,))
    with pytest.raises(TileTypeError, match=r"takes \(stream, grid, kernel, kernel_args\)"):
        launch(None, grid=1, kernel=kernel)


def test_dtypes_of_torch_and_numpy() -> None:
    torch = pytest.importorskip("torch")

    @ct.kernel
    def kernel(X, D: ct.Constant):
        ct.store(X, 0, ct.full(8, 2.5, np.float16).astype(D).astype(torch.float32))

    for run in (lambda *a: ct.launch(None, 1, kernel, a), lambda *a: kernel.interpret(1, a)):
        x = np.zeros(8, np.float32)
        run(x, torch.int32)
        assert x[0] == 2


def test_annotations_that_cannot_be_honoured() -> None:
    with pytest.raises(TileValueError, match="static_shape_dims has axes from 0 to 7, found"):
        ct.ArrayAnnotation(static_shape_dims=(8,))
    with pytest.raises(TileValueError, match="ct.ScalarAnnotation: dtype is int32 or int64, found int8"):
        ct.ScalarAnnotation(dtype=ct.int8)

    @ct.kernel
    def kernel(X, n: ct.ScalarInt64):
        ct.store(X, 0, n)

    x = np.zeros(1, np.int64)
    for run in (lambda *a: ct.launch(None, 1, kernel, a), lambda *a: kernel.interpret(1, a)):
        with pytest.raises(TileTypeError, match="argument 'n': it is annotated as an integer of int64, found float32"):
            run(x, 2.5)
