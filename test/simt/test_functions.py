"""Functions and kernels, constant expressions, targets, and the launch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cuda import device
from tilewright.capture import ArrayArgument, capture
from tilewright.dtype import float32, int32
from tilewright.errors import TileError, TileTypeError

ARRAY = np.zeros(4, np.float32)
ONE = ArrayArgument(float32, 1, strides=((1, 1),), shape_div=(1,))


@device.func
def recip(a):
    return 1 / a


@device.func(interop=True)
def diff(a, b):
    return abs(a - b)


@device.kernel
def calls(x, out):
    out[0] = recip(x[0])
    out[1] = diff(x[0], x[1])
    out[2] = undecorated(x[0])
    out[3] = diff(1, 3)


def undecorated(a):
    return recip(a) + 1


@pytest.mark.spec("D-041", "D-042", "D-043", "D-046", "D-048", "D-052", "D-053", "D-303")
def test_functions_in_device_code(run: Any) -> None:
    out = np.zeros(4, np.float32)
    run(calls, np.array([4, 6], np.float32), out)
    np.testing.assert_array_equal(out, [0.25, 2, 1.25, 2])


@pytest.mark.spec("D-040", "D-044", "D-047", "D-307")
def test_functions_of_the_host() -> None:
    assert recip(4.0) == 0.25 and diff(1, 3) == 2
    assert recip.underlying(4.0) == 0.25

    def f(x):
        x[0] = 1

    assert device.func(f).underlying is f

    def g(x):
        x[0] = 1

    assert device.kernel(g).underlying is g


@pytest.mark.spec("D-050", "D-310")
@pytest.mark.parametrize("decorator", [device.func, device.kernel])
def test_unknown_keywords(decorator: Any) -> None:
    with pytest.raises(TileTypeError, match="has no keyword argument 'fast'; it takes interop"):
        decorator(fast=True)


@pytest.mark.spec("D-304", "D-306", "D-308")
def test_a_function_is_one_of_the_two() -> None:
    assert isinstance(device.kernel(interop=False)(lambda_like), device.kernel)
    made = [device.kernel(lambda_like), device.kernel()(lambda_like), device.kernel(interop=True)(lambda_like)]
    assert [kernel.interop for kernel in made] == [False, False, True]
    with pytest.raises(TileTypeError, match="is a @device.func, and so cannot be a @device.kernel"):
        device.kernel(device.func(another))
    with pytest.raises(TileTypeError, match="is a @device.kernel, and so cannot be a @device.func"):
        device.func(device.kernel(lambda_like))


def lambda_like(x):
    x[0] = 1


def another(x):
    x[0] = 1


@pytest.mark.spec("D-295", "D-305")
def test_kernels_are_not_called() -> None:
    with pytest.raises(TileTypeError, match="is device only and is not called; start it with device.launch"):
        calls(ARRAY, ARRAY)


@pytest.mark.spec("D-045", "D-039")
def test_functions_of_devices_alone() -> None:
    @device.func
    def where():
        return device.thread_idx.x

    with pytest.raises(TileError, match="device.thread_idx is device only"):
        where()


@device.kernel
def returns_early(x):
    i = device.tid(1)
    if i >= 2:
        return
    x[i] = 1


@pytest.mark.spec("D-297")
def test_a_kernel_returns_early(run: Any) -> None:
    x = np.zeros(4, np.float32)
    run(returns_early, x, block=4)
    np.testing.assert_array_equal(x, [1, 1, 0, 0])


@pytest.mark.spec("D-296")
def test_a_kernel_returns_nothing(run: Any) -> None:
    @device.kernel
    def k(x):
        x[0] = 1
        return x[0]

    with pytest.raises(TileTypeError, match="return"):
        run(k, np.zeros(1, np.float32))


# ---------------------------------------------------------------------------------------------
# Constants

FACTOR = 3


@device.kernel
def constants(x, n: device.ConstExpr, flag: device.ConstExpr[bool]):
    m = 2 * n
    shape = (n, m)
    for i, extent in enumerate(shape):
        x[i] = extent * FACTOR
    if flag:
        x[2] = helper(m)


@device.func
def helper(k: device.ConstExpr[int]):
    return k + 0.5


@pytest.mark.spec("D-026", "D-027", "D-028", "D-029", "D-030", "D-031", "D-033")
def test_constant_expressions(run: Any) -> None:
    x = np.zeros(4, np.float32)
    run(constants, x, 4, True)
    np.testing.assert_array_equal(x, [12, 24, 8.5, 0])
    globals()["FACTOR"] = 5
    run(constants, x, 4, True)
    globals()["FACTOR"] = 3
    np.testing.assert_array_equal(x[:2], [20, 40])


@pytest.mark.spec("D-032", "D-034")
def test_what_is_no_constant() -> None:
    @device.kernel
    def k(x, n):
        x[0] = helper(n)

    with pytest.raises(TileTypeError, match="'k' of helper must be a constant expression, found a run-time int"):
        device.launch(k, ARRAY, 3, grid=1, block=1)

    @device.kernel
    def wrong(x):
        x[0] = helper(1.5)

    with pytest.raises(TileTypeError, match=r"'k' of helper is a constant of type int, found the constant 1\.5"):
        device.launch(wrong, ARRAY, grid=1, block=1)
    with pytest.raises(TileTypeError, match="'flag' of constants is a constant of type bool, found the constant 2"):
        device.launch(constants, ARRAY, 4, 2, grid=1, block=1)


# ---------------------------------------------------------------------------------------------
# Targets


def text(function: Any, target: str) -> str:
    return str(capture(function, [ONE], target, rules=device.kernel.rules).module.text())


def chosen(description: Any, target: str) -> bool:
    """Whether code under `if target(description)` is made for a target."""

    def k(x):
        if device.target(description):
            x[0] = 42.0

    return "tile.scatter" in text(k, target)


@pytest.mark.spec("D-262", "D-264", "D-265", "D-266", "D-267", "D-268", "D-269", "D-270", "D-272", "D-273", "D-274")
@pytest.mark.spec("D-278", "D-280", "D-282", "D-283", "D-284", "D-285", "D-037", "D-038")
@pytest.mark.parametrize(
    ("description", "targets"),
    [
        (device.is_host, []),
        (device.is_device, ["cpu", 80, 89, 90, 100]),
        (device.any_target, ["cpu", 80, 89, 90, 100]),
        (device.no_target, []),
        (device.is_exactly(device.sm80) | device.is_exactly(device.sm90), [80, 90]),
        (device.provides(device.sm89), [89, 90, 100]),
        (~device.provides(device.sm89), ["cpu", 80]),
        (~device.provides(device.sm89) | device.is_exactly(device.sm89), ["cpu", 80, 89]),
        (device.provides(device.sm89) & ~device.is_exactly(device.sm89), [90, 100]),
        (device.provides(device.sm70), [80, 89, 90, 100]),
    ],
    ids=str,
)
def test_targets(description: Any, targets: list[Any]) -> None:
    names = {"cpu": "cpu", 80: "sm_80", 89: "sm_89", 90: "sm_90a", 100: "sm_100"}
    assert [key for key, name in names.items() if chosen(description, name)] == targets
    assert isinstance(description, device.TargetDescription)


@pytest.mark.spec("D-035", "D-259", "D-260", "D-261", "D-263")
def test_the_side_left_out_is_not_looked_at(run: Any) -> None:
    @device.func
    def where():
        if device.target(device.is_host):
            return open(__file__).fileno() * 0 + 7  # no name of device code
        else:
            return int(device.thread_idx.x) + 1

    @device.kernel
    def k(x):
        x[device.tid(1)] = where()
        if device.target(device.is_host & device.is_device):
            x[0] = "text"

    assert where() == 7
    x = np.zeros(3, np.float32)
    run(k, x, block=3)
    np.testing.assert_array_equal(x, [1, 2, 3])


@pytest.mark.spec("D-271", "D-276", "D-277")
def test_every_architecture_has_a_name() -> None:
    for number in (70, 75, 80, 86, 89, 90, 100, 120):
        assert isinstance(getattr(device, f"sm{number}"), device.SMSelector)


@pytest.mark.spec("D-275", "D-279", "D-281")
def test_what_describes_no_target(run: Any) -> None:
    for wrong in (lambda: device.is_host | 3, lambda: 3 & device.is_host, lambda: device.target(device.sm80)):
        with pytest.raises(TileTypeError, match="needs a constant device.TargetDescription"):
            wrong()
    for wrong in (lambda: device.provides(90), lambda: device.is_exactly("sm90")):
        with pytest.raises(TileTypeError, match="needs a constant device.SMSelector, such as device.sm90"):
            wrong()

    @device.kernel
    def k(x, n):
        if device.target(device.provides(n)):
            x[0] = 1

    with pytest.raises(TileTypeError, match="needs a constant device.SMSelector"):
        run(k, ARRAY, 3)


# ---------------------------------------------------------------------------------------------
# The launch


@pytest.mark.spec("D-318", "D-319", "D-320", "D-321", "D-249")
def test_what_is_not_launched() -> None:
    with pytest.raises(TileTypeError, match="device.launch starts a @device.kernel"):
        device.launch(recip, 1, grid=1, block=1)
    with pytest.raises(TileTypeError, match="kernel calls, argument 'out': an object of type set is not supported"):
        device.launch(calls, ARRAY, {1}, grid=1, block=1)
    with pytest.raises(TileTypeError, match=r"kernel calls takes 2 argument\(s\) \(x, out\), 1 were given"):
        device.launch(calls, ARRAY, grid=1, block=1)
    with pytest.raises(TypeError, match="grid"):
        device.launch(calls, ARRAY, ARRAY, block=1)
    with pytest.raises(TypeError, match="block"):
        device.launch(calls, ARRAY, ARRAY, grid=1)


# ---------------------------------------------------------------------------------------------
# Functions of numbers


@device.kernel
def functions(x, out):
    a = x[0]
    out[0] = math.sqrt(a)
    out[1] = math.exp(a) + math.log(a)
    out[2] = math.sin(a) * math.cos(a) + math.tanh(a)
    out[3] = math.floor(a) + math.ceil(a) * 10
    out[4] = math.pow(a, 3) + a**2
    out[5] = math.fabs(-a)
    out[6] = math.isnan(a) + math.isinf(a / 0)
    out[7] = math.trunc(-a) + round_half(a)
    out[8] = math.pi * max(a, 1) + min(a, 1, 2)


@device.func
def round_half(a):
    return int(a + 0.5)


@pytest.mark.spec("D-053")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_of_numbers(run: Any, dtype: Any) -> None:
    a = 2.25
    out = np.zeros(9, dtype)
    with np.errstate(divide="ignore"):
        run(functions, np.array([a], dtype), out)
    expected = [1.5, math.exp(a) + math.log(a), math.sin(a) * math.cos(a) + math.tanh(a), 32, a**3 + a**2, a, 1]
    np.testing.assert_allclose(out, [*expected, 0, math.pi * a + 1], rtol=2e-6)
    assert int32 is device.int32


# ---------------------------------------------------------------------------------------------
# The namespace

NAMES = """
ConstExpr func kernel struct align launch machine_representation Vector Dim3 thread_idx block_idx block_dim
grid_dim tid grid_size warp_size lane_id local_array shared_array dynamic_shared_array Atomic AtomicInterface
atomic_ref threadfence syncthreads syncthreads_count syncthreads_and syncthreads_or WarpMask activemask
lanemask_lt syncwarp all_sync any_sync eq_sync ballot_sync shfl_sync shfl_up_sync shfl_down_sync shfl_xor_sync
match_any_sync match_all_sync popc brev clz ffs cbrt fma target TargetDescription SMSelector is_exactly
provides is_host is_device any_target no_target sm80 int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16
float32 float64 complex64 complex128 float8e4m3 float8e5m2 bfloat16 float32x4
"""


@pytest.mark.spec("D-001", "D-010")
@pytest.mark.parametrize("name", NAMES.split())
def test_every_name_of_the_document(name: str) -> None:
    assert hasattr(device, name) and name in device.__all__


@pytest.mark.spec("D-015")
def test_machine_representation() -> None:
    assert device.machine_representation() == "itanium"


class Both:
    """An array whose two protocols disagree."""

    def __init__(self, first: Any, second: Any) -> None:
        self.first, self.second = first, second

    def __dlpack__(self, **how: Any) -> Any:
        return self.first.__dlpack__(**how)

    def __dlpack_device__(self) -> Any:
        return self.first.__dlpack_device__()

    @property
    def __cuda_array_interface__(self) -> Any:
        return self.second.__array_interface__


@pytest.mark.spec("D-250")
def test_dlpack_comes_first() -> None:
    x, other = np.zeros(4, np.float32), np.zeros(4, np.float32)
    device.launch(returns_early, Both(x, other), grid=1, block=4)
    assert list(x) == [1, 1, 0, 0] and not other.any()


@device.func
def combine(a, b):
    return Pair(a.low + b.low, max(a.high, b.high))


@device.struct
class Pair:
    low: device.float32
    high: device.float32


@device.kernel
def fold(x, out):
    total = Pair(0, 0)
    for value in x:
        total = combine(total, Pair(value, value))
    out[0], out[1] = total.low, total.high


@pytest.mark.spec("D-002")
def test_types_and_operators_of_users_are_used_again(run: Any) -> None:
    out = np.zeros(2, np.float32)
    run(fold, np.array([1, 5, 2], np.float32), out)
    assert list(out) == [8, 5]
    assert combine(Pair(1, 2), Pair(3, 4)) == Pair(4, 4)


# ---------------------------------------------------------------------------------------------
# Hints of parameters


@device.func
def hinted(a: device.float32, b: int, p: Pair, c: device.int8 = 3):
    return a * b + p.low + c


@device.kernel
def passes(x: device.float32, n: int, out):
    out[0] = hinted(x, n, Pair(1, 2))
    out[1] = hinted(2.5, 2, Pair(1, 2), 4)


@pytest.mark.spec("D-012")
def test_hints_of_parameters(run: Any) -> None:
    out = np.zeros(2, np.float32)
    run(passes, np.float32(0.5), 4, out)
    assert list(out) == [6, 10]


@pytest.mark.spec("D-007", "D-012")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: hinted(x[0], 1, Pair(1, 2)), "'a' of hinted is of type float32, found a run-time float64 scalar"),
        (lambda x: hinted(1, 1.5, Pair(1, 2)), "'b' of hinted is of type int, found the constant 1.5"),
        (lambda x: hinted(1, 1, 2), "'p' of hinted is of type Pair, found the constant 2"),
        (lambda x: hinted(1, 1, Pair(1, 2), 300), "'c' of hinted is of type int8, found the constant 300"),
        (lambda x: hinted(x, 1, Pair(1, 2)), "'a' of hinted is of type float32, found the 1-D float64 array"),
    ],
)
def test_arguments_of_another_type(call: Any, message: str) -> None:
    @device.kernel
    def k(x):
        x[0] = call(x)

    with pytest.raises(TileTypeError, match=message):
        device.launch(k, np.zeros(1), grid=1, block=1)
