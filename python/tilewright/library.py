"""Functions that are written in tile code itself, of the operations: a call of one is captured as its body.

Integers and bools compute as float32, 16-bit floats in float32, float64 in float64; a float gives its own dtype back.
An error in one of them is about the line that calls it. test/numerics/test_library.py holds each to its stated bound.
"""

# Tile code: its values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, operator"

from __future__ import annotations

import math

from . import tile as ct

__all__ = [
    "argsort",
    "asinh",
    "atan2",
    "cbrt",
    "clip",
    "dot",
    "erf",
    "expm1",
    "flip",
    "gelu",
    "grid_dependency_control_launch_dependents",
    "grid_dependency_control_wait",
    "log1p",
    "philox",
    "rand",
    "randn",
    "relu",
    "sigmoid",
    "silu",
    "softplus",
    "sort",
    "topk",
]


_NUMBER = (int, float)


def _wide(x):
    """x as it is computed with."""
    if isinstance(x, _NUMBER):
        return ct.astype(x, ct.float32)
    return x if x.dtype == ct.float64 else ct.astype(x, ct.float32)


def _like(y, x):
    """A result in the dtype of the operand, where that is a float."""
    if isinstance(x, _NUMBER) or not x.dtype.is_float:
        return y
    return ct.astype(y, x.dtype)


def _polynomial(x, coefficients):
    """The coefficient of the highest power comes first."""
    y = coefficients[0]
    for coefficient in coefficients[1:]:
        y = y * x + coefficient
    return y


def relu(x, /):
    """The larger of x and 0; NaN stays."""
    return ct.maximum(x, 0, propagate_nan=True)


def clip(x, low, high, /):
    """x, or the bound that it is beyond; NaN stays."""
    return ct.minimum(ct.maximum(x, low, propagate_nan=True), high, propagate_nan=True)


def sigmoid(x, /):
    """1 / (1 + exp(-x)), to 9 units in the last place of its dtype; in bfloat16 below 2**-126 it may be 0."""
    wide = _wide(x)
    e = ct.exp(-ct.abs(wide))
    above = ct.where(wide < 0, e, 1.0)
    # float64 has no other quotient than the exact one.
    if ct.static_eval(wide.dtype == ct.float64):
        return _like(above / (1 + e), x)
    return _like(above * ct.truediv(1.0, 1 + e, rounding_mode=ct.RoundingMode.APPROX), x)


def silu(x, /):
    """x * sigmoid(x), to 10 units in the last place of its dtype, or to 2**-142 where sigmoid(x) is subnormal; in
    bfloat16 it may be 0 there."""
    wide = _wide(x)
    return _like(wide * sigmoid(wide), x)


def softplus(x, /):
    """log(1 + exp(x)), to 7 units in the last place of its dtype."""
    wide = _wide(x)
    return _like(ct.maximum(wide, 0, propagate_nan=True) + log1p(ct.exp(-ct.abs(wide))), x)


def gelu(x, /, approximate="none"):
    """x times the normal distribution up to x, or with `approximate="tanh"` by that function.

    To 4 units in the last place of x, in float64 to 64: no good bound for the small results of an x far below 0.
    """
    ct.static_assert(approximate in ("none", "tanh"), 'ct.gelu: approximate must be "none" or "tanh"')
    wide = _wide(x)
    if approximate == "tanh":
        inner = ct.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide * wide * wide))
    else:
        inner = erf(wide * math.sqrt(0.5))
    return _like(0.5 * wide * (1 + inner), x)


def _narrow(x):
    """What a function gives of float32 and a constant, which is float64 in Numba's code."""
    return ct.astype(x, ct.float32)


def _with_sign_of(y, x):
    """float32 y, with the sign of x."""
    sign = ct.bitcast(x, ct.int32) & -0x80000000
    return ct.bitcast((ct.bitcast(_narrow(y), ct.int32) & 0x7FFFFFFF) | sign, ct.float32)


# log(1 + f) = f + f * f * p(f), where 1 + f is from 3/4 to 3/2.
_LOG1P = (
    0.054173097014427185,
    -0.12070018798112869,
    0.14983046054840088,
    -0.1682208776473999,
    0.19977104663848877,
    -0.24993494153022766,
    0.3333354890346527,
    -0.5000005960464478,
)
_LN_2_OF_BITS = math.log(2) * 2.0**-23


def log1p(x, /):
    """log(1 + x), exact near 0: to 2 units in the last place of its dtype; in float64 to 4."""
    wide = _wide(x)
    return _like(_log1p_64(wide) if wide.dtype == ct.float64 else _log1p_32(wide), x)


def _log1p_32(x):
    """1 + x = 2**e * (1 + f), where f is x * 2**-e + (2**-e - 1): e is that of the rounded sum, and f still exact."""
    near = 1 + x
    moved = (ct.bitcast(near, ct.int32) - 0x3F400000) & -0x800000  # e as an exponent: times 2**23
    small = ct.bitcast(ct.bitcast(x, ct.int32) - moved, ct.float32)
    f = small + (ct.bitcast(0x40800000 - moved, ct.float32) * 0.25 - 1)
    y = ct.astype(moved, ct.float32) * _LN_2_OF_BITS + (f * f * _polynomial(f, _LOG1P) + f)
    y = ct.where((x > -1) & (x < math.inf), y, x * math.inf + math.inf)
    return _with_sign_of(ct.where(x == -1, -math.inf, y), x)


def _log1p_64(wide):
    near = 1 + wide
    rest = near - 1  # what of x came into the sum: the quotient of the two makes up for the rest
    y = ct.log(near) * (wide / ct.where(rest == 0, 1.0, rest))
    return ct.where((rest == 0) | (wide == math.inf), wide, y)


# exp(r) - 1 = r + r * r * p(r), where r is at most log(2) / 2; log(2) in two parts, of which the first has few bits.
_EXPM1 = (
    0.0013870705151930451,
    0.008366272784769535,
    0.04166743531823158,
    0.1666654646396637,
    0.4999999701976776,
)
_LN_2_HIGH, _LN_2_LOW, _LOG2_E = 0.693359375, -2.12194440e-4, math.log2(math.e)
_ROUNDS = 1.5 * 2.0**23  # a float32 that is added to it has its integer in the last bits


def expm1(x, /):
    """exp(x) - 1, exact near 0: to 2 units in the last place of its dtype; in float64 to 6."""
    wide = _wide(x)
    return _like(_expm1_64(wide) if wide.dtype == ct.float64 else _expm1_32(wide), x)


def _expm1_32(x):
    """x = n * log(2) + r: 2**n * (exp(r) - 1) + (2**n - 1), half of it first, which is finite where n is 128."""
    near = ct.minimum(ct.maximum(x, -26.0, propagate_nan=True), 89.0, propagate_nan=True)
    kept = _narrow(near)  # the result is -1 or infinity beyond
    marked = kept * _LOG2_E + _ROUNDS
    n = marked - _ROUNDS
    r = kept + n * -_LN_2_HIGH + n * -_LN_2_LOW
    half = ct.bitcast((ct.bitcast(marked, ct.int32) << 23) + 0x3F000000, ct.float32)
    y = (r * r * _polynomial(r, _EXPM1) + r) * half + (half - 0.5)
    return _with_sign_of(y + y, x)


def _expm1_64(wide):
    e = ct.exp(wide)
    rest = e - 1
    log = ct.log(e)
    y = ct.where(rest == -1, -1.0, rest * (wide / ct.where(log == 0, 1.0, log)))
    y = ct.where(e == math.inf, e, y)
    return ct.where(e == 1, wide, y)


def asinh(x, /):
    """The inverse of the hyperbolic sine, to 8 units in the last place of its dtype."""
    wide = _wide(x)
    size = ct.abs(wide)
    small = ct.minimum(size, 2.0**28, propagate_nan=True)  # its square is no infinity; beyond it the 1 does not matter
    y = log1p(small + small * small / (1 + ct.sqrt(1 + small * small)))
    y = ct.where(size > 2.0**28, ct.log(size) + math.log(2), y)
    return _like(ct.where(wide < 0, -y, ct.where(wide == 0, wide, y)), x)


def cbrt(x, /):
    """The cube root, of negative numbers, too: to 2 units in the last place of its dtype."""
    wide = _wide(x)
    size = ct.abs(wide)
    y = ct.exp2(ct.log2(size) * (1 / 3))
    y = y - (y - size / (y * y)) * (1 / 3)  # Newton
    y = ct.where(wide < 0, -y, y)
    return _like(ct.where((size == 0) | (size == math.inf), wide, y), x)


# In float32 erf(x) / x in x * x, up to 1, and log2(erfc(x)) in x, from 1 to 4.
_ERF_NEAR = (
    -0.0005513457581400871,
    0.0048899282701313496,
    -0.026688847690820694,
    0.1127944067120552,
    -0.3761224150657654,
    1.1283791065216064,
)
_LOG2_ERFC = (
    -0.0016695552039891481,
    0.021398069337010384,
    -0.12811152637004852,
    -0.943868100643158,
    -1.6123871803283691,
    -0.003778528654947877,
)
# In float64 the first as a series, and exp(x * x) * erfc(x) in x, moved to -1 up to 1, from 1 to 6.
_ERF_SERIES = tuple(2 / math.sqrt(math.pi) * (-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in reversed(range(20)))
_ERF_END_64 = 6.0
_ERFCX_64 = (
    9.813714302356663e-08,
    -2.1803873992958625e-07,
    -1.0954104133751743e-07,
    2.1321339303797978e-07,
    1.1396485829546183e-06,
    -2.3876470194827823e-06,
    2.6159395851925113e-06,
    -5.6472171021805462e-06,
    1.4223449863654747e-05,
    -2.9079076636877712e-05,
    5.7213352770999447e-05,
    -0.00011410958521443568,
    0.00022460257224564856,
    -0.00043346700239418759,
    0.0008222382885713209,
    -0.0015324940492086935,
    0.0028033287235386742,
    -0.0050280707146889494,
    0.008833423690892234,
    -0.01518251135114111,
    0.025495559654121886,
    -0.041766788125809425,
    0.066632082453003005,
    -0.10330894458306936,
    0.15529365560889485,
)


def erf(x, /):
    """The error function, to 4 units in the last place of its dtype; in float64 to 64."""
    wide = _wide(x)
    size = ct.abs(wide)
    if wide.dtype == ct.float64:
        size = ct.minimum(size, _ERF_END_64, propagate_nan=True)
        near = wide * _polynomial(size * size, _ERF_SERIES)
        place = (2 * size - (1 + _ERF_END_64)) * (1 / (_ERF_END_64 - 1))
        far = 1 - ct.exp(-(size * size)) * _polynomial(place, _ERFCX_64)
        return ct.where(size < 1, near, ct.where(wide < 0, -far, far))
    near = wide * _polynomial(wide * wide, _ERF_NEAR)
    far = 1 - ct.exp2(_polynomial(_narrow(ct.minimum(size, 4.0, propagate_nan=True)), _LOG2_ERFC))
    return _like(ct.where(size < 1, near, _with_sign_of(far, wide)), x)


# atan(t) = t + t**3 * p(t * t) for t from 0 to 1; in float64 atan(t) / t as a series, for t up to tan(pi / 8).
_ATAN = (
    0.0029203281737864017,
    -0.01636642962694168,
    0.04320932924747467,
    -0.07551988959312439,
    0.1066589206457138,
    -0.14211024343967438,
    0.19993768632411957,
    -0.33333152532577515,
)
_ATAN_SERIES = tuple((-1) ** n / (2 * n + 1) for n in reversed(range(21)))


def atan2(y, x, /):
    """The angle of the point (x, y), from -pi to pi, to 4 units in the last place of its dtype.

    Zeros have signs: atan2(-0.0, -1) is -pi.
    """
    like = y + x
    wide_y, wide_x = _wide(y), _wide(x)
    if like.dtype == ct.float64:
        return _atan2_64(ct.astype(wide_y, ct.float64), ct.astype(wide_x, ct.float64))
    return _like(_atan2_32(wide_y, wide_x), like)


def _atan2_32(y, x):
    height, width = ct.abs(y), ct.abs(x)
    least, most = ct.minimum(height, width, propagate_nan=True), ct.maximum(height, width, propagate_nan=True)
    quotient = least / _narrow(ct.maximum(most, 2.0**-149, propagate_nan=True))
    ratio = _narrow(ct.where(least == math.inf, 1.0, quotient))
    square = ratio * ratio
    angle = ratio * square * _polynomial(square, _ATAN) + ratio
    angle = ct.where(height > width, math.pi / 2 - angle, angle)
    angle = ct.where(ct.bitcast(x, ct.int32) < 0, math.pi - angle, angle)
    return _with_sign_of(angle, y)


def _atan2_64(y, x):
    height, width = ct.abs(y), ct.abs(x)
    least, most = ct.minimum(height, width, propagate_nan=True), ct.maximum(height, width, propagate_nan=True)
    ratio = ct.where(most == 0, 0.0, ct.where(least == most, 1.0, least / most))
    is_steep = ratio > math.tan(math.pi / 8)
    t = ct.where(is_steep, (ratio - 1) / (ratio + 1), ratio)
    angle = t * _polynomial(t * t, _ATAN_SERIES)
    angle = ct.where(is_steep, angle + math.pi / 4, angle)
    angle = ct.where(ct.isnan(most), most, angle)
    angle = ct.where(height > width, math.pi / 2 - angle, angle)
    angle = ct.where(_is_negative(x), math.pi - angle, angle)
    return ct.where(_is_negative(y), -angle, angle)


def _is_negative(x):
    """Whether the sign says so, of zeros, too."""
    return ct.where(x == 0, 1 / x, x) < 0


# --- products ---------------------------------------------------------------------------------------------------------


def dot(x, y, /, acc=None):
    """The sum of x * y of two 1-D tiles; of matrices and batches of them the product, added to `acc`.

    As in `mma`, floats add up in float32 (float64 in float64), integers in int32, which is the dtype of the result.
    """
    if len(x.shape) == 1:
        ct.static_assert(acc is None, "ct.dot of 1-D tiles takes no acc")
        like = _sum_of(x.dtype)
        return ct.sum(ct.astype(x, like) * ct.astype(y, like))
    if acc is None:
        ct.static_assert(len(x.shape) == len(y.shape), "ct.dot needs tiles of as many dimensions, or acc")
        shape = (*x.shape[:-1], y.shape[-1])
        return ct.mma(x, y, ct.zeros(shape, _sum_of(x.dtype)))
    return ct.mma(x, y, acc)


def _sum_of(dtype):
    if dtype == ct.float64:
        return ct.float64
    return ct.float32 if dtype.is_float else ct.int32


# --- random bits ------------------------------------------------------------------------------------------------------


def philox(seed, c0, c1=0, c2=0, c3=0, /):
    """Four tiles of random uint32: Philox4x32-10 of the counter (c0, c1, c2, c3), 32 bits each, with a key of 64 bits.

    Each counter has bits of its own, whatever else is computed, by whom and in which order.
    """
    k0, k1 = _words(seed)
    a, b, c, d = (ct.astype(word, ct.uint32) for word in (c0, c1, c2, c3))
    for _ in ct.static_iter(range(10)):
        high_a, low_a = _words(ct.astype(a, ct.uint64) * 0xD2511F53)
        high_c, low_c = _words(ct.astype(c, ct.uint64) * 0xCD9E8D57)
        a, b, c, d = low_c ^ b ^ k0, high_c, low_a ^ d ^ k1, high_a
        k0, k1 = k0 + ct.uint32(0x9E3779B9), k1 + ct.uint32(0xBB67AE85)
    return a, b, c, d


def _words(x):
    """The low and the high 32 bits."""
    wide = ct.astype(x, ct.uint64)
    return ct.astype(wide & 0xFFFFFFFF, ct.uint32), ct.astype(wide >> 32, ct.uint32)


def rand(seed, offset, /):
    """Random float32 in [0, 1), for each number of the tile `offset` its own: 24 bits of `philox`.

    `ct.rand(seed, i)` of `i = ct.bid(0) * n + ct.arange(n, dtype=ct.int32)` differs from block to block; the same seed
    gives the same numbers on every machine.
    """
    bits, _, _, _ = philox(seed, *_words(offset))
    return ct.astype(bits >> 8, ct.float32) * 2.0**-24


def randn(seed, offset, /):
    """Normally distributed random float32 (Box and Muller), for each number of the tile `offset` its own."""
    a, b, _, _ = philox(seed, *_words(offset))
    uniform = (ct.astype(a >> 8, ct.float32) + 0.5) * 2.0**-24  # not 0
    angle = ct.astype(b >> 8, ct.float32) * (2 * math.pi * 2.0**-24)
    return ct.sqrt(-2 * ct.log(uniform)) * ct.cos(angle)


# --- order ------------------------------------------------------------------------------------------------------------


def flip(x, /, axis=-1):
    """The elements along the axis in reverse order."""
    axis = _checked(axis, x, "ct.flip")
    for i in ct.static_iter(range(_log2(x.shape[axis]))):
        x = _exchanged(x, axis, 1 << i)
    return x


def _checked(axis, x, what):
    """An axis, from the front."""
    ct.static_assert(isinstance(axis, int), f"{what}: axis must be a constant integer")
    n = len(x.shape)
    ct.static_assert(-n <= axis < n, f"{what}: axis {axis} is outside of the tile; expected {-n} to {n - 1}")
    return axis % n


def _log2(n):
    return n.bit_length() - 1


_INTEGERS = {8: ct.int8, 16: ct.int16, 32: ct.int32, 64: ct.int64}


def _exchanged(x, axis, step):
    """Elements whose places along the axis differ in one bit, `step`, in each other's place.

    Of two integers, of which one is taken from the sum, the other is left: no memory is gone through.
    """
    if x.dtype.is_float:
        return ct.bitcast(_exchanged(ct.bitcast(x, _INTEGERS[x.dtype.bits]), axis, step), x.dtype)
    if x.dtype == ct.bool_:
        return _exchanged(ct.astype(x, ct.int32), axis, step) != 0
    shape = x.shape
    pairs = ct.reshape(x, (*shape[:axis], shape[axis] // (2 * step), 2, step, *shape[axis + 1 :]))
    return ct.reshape(_other(pairs, axis + 1), shape)


def _other(pairs, axis):
    """Of integers along an axis of two the other one."""
    return ct.sum(pairs, axis, keepdims=True) - pairs


def sort(x, /, axis=-1, descending=False):
    """The elements along the axis in ascending order, or descending; NaN is larger than all, as in NumPy."""
    axis = _checked(axis, x, "ct.sort")
    keys, _ = _network(_keys(x, descending), None, axis)
    return _of_keys(keys, x.dtype, descending)


def argsort(x, /, axis=-1, descending=False):
    """The places along the axis of the elements in order, as int32; of equal elements the first one comes first."""
    _, places = _sorted(x, _checked(axis, x, "ct.argsort"), descending)
    return places


def topk(x, /, k, axis=-1):
    """The k largest elements along the axis, in descending order, and their places, as int32.

    k is a power of two; of equal elements the first one comes first, and NaN is larger than all.
    """
    axis = _checked(axis, x, "ct.topk")
    n = x.shape[axis]
    ct.static_assert(isinstance(k, int), "ct.topk: k must be a constant integer")
    ct.static_assert(0 < k <= n and k & (k - 1) == 0, f"ct.topk: k is {k}, expected a power of two up to {n}")
    values, places = _sorted(x, axis, True)
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    start = (0,) * len(shape)
    return ct.extract(values, start, shape), ct.extract(places, start, shape)


def _along(x, axis):
    """The places along the axis, in a shape that broadcasts to x."""
    places = ct.arange(x.shape[axis], dtype=ct.int32)
    return ct.reshape(places, (*(1,) * axis, x.shape[axis], *(1,) * (len(x.shape) - axis - 1)))


def _keys(x, descending):
    """Integers with a sign in the order of the elements."""
    if x.dtype == ct.bool_:
        keys = ct.astype(x, ct.int32)
    elif x.dtype.is_float:
        bits = ct.bitcast(x, _INTEGERS[x.dtype.bits])
        keys = ct.where(ct.isnan(x), bits.dtype.max, _turned(bits))
    elif x.dtype.min == 0:
        keys = ct.bitcast(x, _INTEGERS[x.dtype.bits]) ^ _INTEGERS[x.dtype.bits].min
    else:
        keys = x
    return ~keys if descending else keys


def _of_keys(keys, dtype, descending):
    """The elements that have these keys."""
    keys = ~keys if descending else keys
    if dtype == ct.bool_:
        return keys != 0
    if dtype.is_float:
        return ct.bitcast(_turned(keys), dtype)
    return ct.bitcast(keys ^ keys.dtype.min, dtype) if dtype.min == 0 else keys


def _turned(bits):
    """The bits of floats as integers in their order, and back: of negative ones the larger has the smaller bits."""
    return ct.where(bits < 0, bits ^ bits.dtype.max, bits)


def _sorted(x, axis, descending):
    """The elements in order, and their places: by the keys, of which both zeros have one, then by the places.

    The last bit of a place says which zero it was.
    """
    keys, places = _keys(x, descending), ct.broadcast_to(_along(x, axis), x.shape) * 2
    if x.dtype.is_float:
        places = places | ct.astype((x == 0) & (keys != 0), ct.int32)
        keys = ct.where(x == 0, 0, keys)
    keys, places = _by_keys_and_places(keys, places, axis)
    if x.dtype.is_float:
        keys = ct.where((places & 1) != 0, -1, keys)
    return _of_keys(keys, x.dtype, descending), places >> 1


def _by_keys_and_places(keys, places, axis):
    """Keys of up to 32 bits are one number with their places."""
    if keys.dtype.bits > 32:
        return _network(keys, places, axis)
    both, _ = _network((ct.astype(keys, ct.int64) << 32) | ct.astype(places, ct.int64), None, axis)
    return ct.astype(both >> 32, keys.dtype), ct.astype(both & 0xFFFFFFFF, ct.int32)


_FEW_RUNS = 7  # each step has code of its own: in a loop it is slower by half and more, since there are few elements


def _network(keys, places, axis):
    """Batcher's bitonic network: runs of 2, 4, 8 ... elements, every second one in reverse, are merged.

    Of many runs each step has code once, which a loop over runs enters where these begin. What shall be in reverse is
    complemented there: bit r of `turns` says that runs of 2^r and of 2^(r+1) elements, of which this one is part, are
    in opposite orders.
    """
    along, runs = _along(keys, axis), _log2(keys.shape[axis])
    if runs <= _FEW_RUNS:
        for run in ct.static_iter(range(1, runs + 1)):
            for i in ct.static_iter(range(run - 1, -1, -1)):
                takes_larger = (((along >> i) ^ (along >> run)) & 1) != 0
                keys, places = _step(keys, places, axis, 1 << i, takes_larger)
    else:
        turns = along ^ (along >> 1)
        before, behind = keys.shape[:axis], keys.shape[axis + 1 :]
        of_pairs = (*(1,) * (axis + 1), 2, *(1,) * (len(keys.shape) - axis))  # the shape of what tells both of a pair
        keys, places = _turned_where((along & 1) != 0, keys, places)
        for run in range(1, runs + 1):
            keys, places = _turned_where((turns & (1 << (run - 1))) != 0, keys, places)
            for i in ct.static_iter(range(runs - 1, -1, -1)):
                if i < run:
                    pairs = (*before, 1 << (runs - 1 - i), 2, 1 << i, *behind)
                    keys, places = _step_of_pairs(keys, places, axis + 1, pairs, of_pairs)
    return keys, places


def _turned_where(turns, keys, places):
    """In the opposite order, there."""
    return ct.where(turns, ~keys, keys), None if places is None else ct.where(turns, ~places, places)


def _step(keys, places, axis, step, takes_larger):
    """Elements whose places differ in one bit are compared."""
    other_places = None if places is None else _exchanged(places, axis, step)
    return _compared(keys, _exchanged(keys, axis, step), places, other_places, takes_larger)


def _step_of_pairs(keys, places, axis, pairs, of_pairs):
    """The same, of which the first one becomes the smaller one; which is first depends on the pair's axis alone."""
    shape = keys.shape
    keys = ct.reshape(keys, pairs)
    is_second = ct.reshape(ct.arange(2, dtype=ct.int32), of_pairs) != 0
    if places is None:
        return ct.reshape(_compared(keys, _other(keys, axis), None, None, is_second)[0], shape), None
    places = ct.reshape(places, keys.shape)
    keys, places = _compared(keys, _other(keys, axis), places, _other(places, axis), is_second)
    return ct.reshape(keys, shape), ct.reshape(places, shape)


def _compared(keys, other, places, other_places, takes_larger):
    """The smaller one of two elements, or the larger one; places tell equal keys apart."""
    if places is None:
        return ct.where(takes_larger, ct.maximum(keys, other), ct.minimum(keys, other)), None
    is_behind = (keys > other) | ((keys == other) & (places > other_places))
    moves = is_behind ^ takes_larger
    return ct.where(moves, other, keys), ct.where(moves, other_places, places)


# --- kernels that overlap ---------------------------------------------------------------------------------------------


def grid_dependency_control_launch_dependents():
    """From here on the next kernel in the stream may start. The compiler lets it start at
    once, and it waits in turn."""


def grid_dependency_control_wait():
    """Behind it, all that the kernel before in the stream has written is there. It is so at each access to memory: the
    compiler waits before the first one."""
