"""The arrays of a program: what they hold, and how they lie in memory."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tilewright import dtype as dt

from .values import NONE, Error, Shape

LAYOUTS = ("plain", "plain", "columns", "steps", "backwards", "offset")


def random_elements(dtype: dt.DType, count: int, bound: float | None, seed: int) -> np.ndarray:
    """Integers of at most `bound`; or anything: a few awkward values among ordinary ones."""
    rng = np.random.default_rng(seed)
    if dtype.is_bool:
        return rng.random(count) < 0.5
    if bound is not None:
        low = -int(bound) if dtype.is_float or dtype.signed else 0
        return rng.integers(low, int(bound), count, endpoint=True).astype(dtype.numpy)
    if dtype.is_integral:
        values = rng.integers(dtype.min, dtype.max, count, dtype.numpy, endpoint=True)
        awkward = np.array([0, 1, dtype.max, dtype.min, dtype.max - 1], dtype.numpy)
    else:
        with np.errstate(all="ignore"):
            values = (rng.standard_normal(count) * rng.choice([0.1, 3, 300])).astype(dtype.numpy)
            info = dt_info(dtype)
            awkward = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, *info, 1, -1, 0.5]).astype(dtype.numpy)
    return np.where(rng.random(count) < 0.15, rng.choice(awkward, count), values)


def dt_info(dtype: dt.DType) -> list[float]:
    import ml_dtypes

    info = ml_dtypes.finfo(dtype.numpy)
    return [float(info.max), float(info.tiny), float(info.smallest_subnormal), -float(info.tiny) / 4]


def poison(dtype: dt.DType, count: int) -> np.ndarray:
    size = count * dtype.numpy.itemsize
    return np.ones(count, bool) if dtype.is_bool else np.full(size, 0xA5, np.uint8).view(dtype.numpy)


def laid_out(flat: np.ndarray, shape: Shape, layout: str) -> np.ndarray:
    """These elements as an array whose memory has others around them, or another order."""
    array = flat.reshape(shape)
    if layout == "columns":
        return np.asfortranarray(array)
    if layout == "backwards":
        return np.ascontiguousarray(array[::-1])[::-1]
    if layout == "plain" or not shape:
        return array
    wide, start = (2 * shape[-1], 0) if layout == "steps" else (shape[-1] + 3, 1)
    whole = poison(dt.as_dtype(array.dtype), int(np.prod(shape[:-1], dtype=int)) * wide).reshape(*shape[:-1], wide)
    part = whole[..., ::2] if layout == "steps" else whole[..., start : start + shape[-1]]
    part[...] = array
    return part


@dataclasses.dataclass
class Plan:
    """An array before it is made. What is `written` must come out as on the reference, to `error`."""

    name: str
    dtype: dt.DType
    shape: Shape
    bound: float | None = None
    layout: str = "plain"
    seed: int | None = None  # of random elements; else they are poison
    error: Error = NONE

    def make(self) -> np.ndarray:
        count = int(np.prod(self.shape, dtype=int))
        if self.seed is None:
            flat = poison(self.dtype, count)
        else:
            flat = random_elements(self.dtype, count, self.bound, self.seed)
        return laid_out(flat, self.shape, self.layout)


def zeros(shape: Shape, dtype: dt.DType) -> Any:
    return np.zeros(shape, dtype.numpy)


def whole(array: np.ndarray) -> np.ndarray:
    """All elements of the array that owns the memory of a view."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return owner.ravel(order="K").view(array.dtype)


def spacing(values: np.ndarray, dtype: dt.DType) -> np.ndarray:
    """Distance of neighbours of the dtype at these float64 values."""
    import ml_dtypes

    info = ml_dtypes.finfo(dtype.numpy)
    exponent = np.frexp(np.where(np.isfinite(values), values, 1.0))[1] - 1
    return np.maximum(np.ldexp(float(info.eps), exponent), float(info.smallest_subnormal))


def difference(found: np.ndarray, wanted: np.ndarray, error: Error) -> str:
    """What differs, or "". NaN equals NaN; the sign of zero is not compared."""
    dtype = dt.as_dtype(found.dtype)
    if not dtype.is_float:
        wrong = found != wanted
    else:
        with np.errstate(all="ignore"):
            a, b = found.astype(np.float64), wanted.astype(np.float64)
            most = dt_info(dtype)[0] * (1 + error.relative)
            if error:  # one may be infinite where the other is just not
                a, b = (np.where(np.isinf(x), np.copysign(most, x), x) for x in (a, b))
            allowed = error.relative * np.abs(b) + error.absolute + bool(error) * spacing(b, dtype)
            wrong = ~((a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= allowed))
    if not wrong.any():
        return ""
    first = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
    values = [np.atleast_1d(v)[first] for v in (found, wanted)]
    return f"{int(wrong.sum())} of {wrong.size} elements, first at {first}: found {values[0]!r}, expected {values[1]!r}"


def stored_whole(plan: Plan, found: np.ndarray, wanted: np.ndarray) -> str:
    """What differs in an array, or in the memory around it."""
    text = difference(found, wanted, plan.error)
    if not text and not plan.error:
        text = difference(whole(found), whole(wanted), NONE)
        text = f"in memory around it {text}" if text else ""
    return f"{plan.name}: {text}" if text else ""
