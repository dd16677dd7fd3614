"""Runs one kernel on every back end and holds the results against the reference execution.

    run_all(kernel, grid, lambda: [x.copy(), y.copy(), out()], tolerance=ulp(1))

`make_args` returns fresh arguments each time: arrays of any strides, numbers, constants. After
the launch each array argument must equal the reference's, to `tolerance`, except where
`ignore` says that the language leaves the value open.
"""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright import dtype as dt
from tilewright import structure
from tilewright import tile as ct

Arguments = Sequence[Any]


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """Units in the last place of the expected value, and an absolute error beside them."""

    ulp: float = 0
    absolute: float = 0.0


EXACT = Tolerance()


def ulp(count: float, absolute: float = 0.0) -> Tolerance:
    return Tolerance(count, absolute)


# ---------------------------------------------------------------------------------------------
# Comparison


def is_float(dtype: np.dtype) -> bool:
    return dtype.kind == "f" or dtype.name.startswith(("bfloat", "float"))


def spacing(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Distance of neighbours of `dtype` at each of the float64 `values`."""
    info = ml_dtypes.finfo(dtype)
    smallest = float(info.smallest_subnormal)
    exponent = np.frexp(np.where(np.isfinite(values), values, 1.0))[1] - 1
    return np.maximum(np.ldexp(float(info.eps), exponent), smallest)


def mismatch(found: np.ndarray, expected: np.ndarray, tolerance: Tolerance, open_: np.ndarray | None) -> str | None:
    """What differs, or None. NaN equals NaN; the sign of zero is not compared."""
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if not is_float(expected.dtype):
        wrong = found != expected
    else:
        with np.errstate(invalid="ignore", over="ignore"):
            a, b = found.astype(np.float64), expected.astype(np.float64)
            allowed = tolerance.ulp * spacing(b, expected.dtype) + tolerance.absolute
            near = np.isfinite(a) & np.isfinite(b) & (np.abs(a - b) <= allowed)
            wrong = ~((a == b) | (np.isnan(a) & np.isnan(b)) | near)
    if open_ is not None:
        wrong = wrong & ~open_
    if not wrong.any():
        return None
    first = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
    values = [np.atleast_1d(v)[first] for v in (found, expected)]
    return (
        f"{int(wrong.sum())} of {wrong.size} elements differ; first at {first}: "
        f"found {values[0]!r}, expected {values[1]!r}"
    )


# ---------------------------------------------------------------------------------------------
# Back ends


def run_reference(kernel: Any, grid: Any, args: Arguments) -> None:
    kernel.interpret(grid, tuple(args))


def run_cpu(kernel: Any, grid: Any, args: Arguments) -> None:
    ct.launch(None, grid, kernel, tuple(args))


def run_cuda(kernel: Any, grid: Any, args: Arguments) -> None:
    """The same on a GPU, where each array lies in memory as it does here, and back."""
    import torch
    from gpu_arrays import GpuArray

    arrays: list[GpuArray] = []

    def moved(value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.dtype != object:  # which no other memory can hold
            arrays.append(GpuArray(value, arrays))
            return arrays[-1].value
        if isinstance(value, list):  # which `assembled` would make a tuple, as tile code sees it
            return list(map(moved, value))
        found = structure.described(value)
        return structure.assembled(*found[:2], list(map(moved, found[2]))) if found else value

    values = list(map(moved, args))
    ct.launch(torch.cuda.current_stream(), grid, kernel, tuple(values))
    torch.cuda.synchronize()
    for gpu in arrays:
        gpu.copy_back()


def run_ptx(kernel: Any, target: str, args: Arguments) -> None:
    """Compile for a GPU that need not be here, and assemble the PTX where there is a ptxas."""
    from tilewright import compile
    from tilewright.times import Times

    _, key = kernel.specialization(tuple(args))
    code = compile.build(kernel.capture(target, key), target, kernel.name, Times(kernel.name, target)).code
    ptxas = shutil.which("ptxas")
    if ptxas is not None and code[:4] != b"\x7fELF":
        with tempfile.NamedTemporaryFile(suffix=".ptx") as file:
            file.write(code.rstrip(b"\0"))
            file.flush()
            command = [ptxas, f"-arch={target}", "-o", "/dev/null", file.name]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def run(name: str, kernel: Any, grid: Any, args: Arguments) -> None:
    """On the back end of this name; an architecture ("sm_90a") only compiles."""
    if name.startswith("sm_"):
        run_ptx(kernel, name, args)
    else:
        {"cpu": run_cpu, "cuda": run_cuda}[name](kernel, grid, args)


# ---------------------------------------------------------------------------------------------
# The comparison of all


@dataclasses.dataclass
class Backends:
    """What --backend chose; the fixture `backends` gives it."""

    names: tuple[str, ...]

    def run_all(
        self,
        kernel: Any,
        grid: Any,
        make_args: Callable[[], Arguments],
        *,
        tolerance: Tolerance | Mapping[int, Tolerance] = EXACT,
        ignore: Mapping[int, np.ndarray] | None = None,
    ) -> list[Any]:
        """Run everywhere, compare each array argument, and return the reference's arguments.

        `tolerance` and `ignore` may be by the position of the argument.
        """
        expected = list(make_args())
        run_reference(kernel, grid, expected)
        for name in self.names:
            args = list(make_args())
            run(name, kernel, grid, args)
            if name.startswith("sm_"):
                continue
            problems = list(_problems(args, expected, tolerance, ignore or {}))
            assert not problems, f"{name} differs from the reference: " + "; ".join(problems)
        return expected

    def rejects(self, kernel: Any, grid: Any, make_args: Callable[[], Arguments], error: Any, match: str) -> None:
        """Every back end refuses the kernel with the same kind of error."""
        with pytest.raises(error, match=match):
            run_reference(kernel, grid, make_args())
        for name in self.names:
            with pytest.raises(error, match=match):
                run(name, kernel, grid, make_args())


def arrays_in(value: Any) -> list[np.ndarray]:
    """An argument that is an array, or those that it holds."""
    if isinstance(value, np.ndarray):
        return [value]
    held = structure.described(value)
    return [array for part in held[2] for array in arrays_in(part)] if held else []


def _problems(args: Any, expected: Any, tolerance: Any, ignore: Any) -> Any:
    for i, pair in enumerate(zip(args, expected, strict=True)):
        for found, wanted in zip(*map(arrays_in, pair), strict=True):
            limit = tolerance if isinstance(tolerance, Tolerance) else tolerance.get(i, EXACT)
            text = mismatch(found, wanted, limit, ignore.get(i))
            if text is None and i not in ignore and found.base is not None:
                text = mismatch(whole(found), whole(wanted), limit, None)
                text = f"memory around it: {text}" if text else None
            if text:
                yield f"argument {i}: {text}"


def whole(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


# ---------------------------------------------------------------------------------------------
# Values

ARRAY_DTYPES = tuple(
    d for d in dt.ALL if d not in (ct.tfloat32, ct.float4_e2m1fn)
)  # tf32 lives in tiles only; float4 packs two elements a byte
ARITHMETIC = tuple(d for d in dt.ARITHMETIC if d is not ct.bool_)
INTEGERS = tuple(d for d in ARITHMETIC if d.is_integral)
FLOATS = tuple(d for d in ARITHMETIC if d.is_float)


def special(dtype: dt.DType) -> np.ndarray:
    """Values at which an operation of this dtype may go wrong."""
    if dtype.is_bool:
        return np.array([False, True])
    if dtype.is_integral:
        low, high = dtype.min, dtype.max
        values = [0, 1, 2, 3, 5, 7, 10, 100, high, high - 1, high // 2, low, low + 1, low // 2]
        values += [-1, -2, -3, -7, -100] if dtype.signed else []
        return np.array(values, dtype.numpy)
    info = ml_dtypes.finfo(dtype.numpy)
    values = [0.0, 1.0, 1.5, 2.0, 3.0, 0.1, 0.5, 7.3, 100.0, float(info.max)]
    values += [float(info.tiny), float(info.smallest_subnormal) * 3, float(info.eps), np.inf]
    with np.errstate(all="ignore"):
        return np.array([*values, *(-v for v in values), np.nan]).astype(dtype.numpy)


def random_values(dtype: dt.DType, count: int, seed: int = 0) -> np.ndarray:
    """Ordinary values: all integers of a dtype, floats around 1."""
    rng = np.random.default_rng(seed)
    if dtype.is_bool:
        return rng.random(count) < 0.5
    if dtype.is_integral:
        return rng.integers(dtype.min, dtype.max, count, dtype.numpy, endpoint=True)
    scale = 1.0 if dtype.bits < 16 else 3.0
    values = rng.standard_normal(count) * scale
    if dtype is ct.float8_e8m0fnu:
        values = np.abs(values)
    return values.astype(np.float32 if dtype.bits < 64 else np.float64).astype(dtype.numpy)


def pairs(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each value of x with each of y."""
    return np.repeat(x, len(y)), np.tile(y, len(x))
