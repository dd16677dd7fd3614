"""Programs as other people write them (test/programs), in every execution, against their formulas."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import Backends, run, run_reference

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "programs"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "random_products"))
import attention_kernels  # noqa: F401
import product_kernels  # noqa: F401
import row_kernels  # noqa: F401
from numbers_of import NumPy
from program import PROGRAMS

ROUNDINGS = {"float32": 1e-4, "bfloat16": 2**-6}  # of an operand or a result, of the largest element

PRODUCT = {"m": 128, "n": 128, "k": 256, "tiles": (128, 128, 64)}
PACKED = PRODUCT | {"group": 128}
WARPGROUPS: dict[str, dict[str, Any]] = {
    "tf32, right operand by rows": PRODUCT | {"k": 128, "tiles": (128, 128, 32)},
    "RMS norm beside a product": PRODUCT,
    "fp8 in blocks, by gathers": {"m": 128, "n": 128, "k": 384, "block": 128, "tiles": (128, 128)},
    "weights of 8 bits": PACKED,
    "weights of 8 bits, 16 rows": PACKED | {"m": 16, "n": 256, "tiles": (16, 128, 128)},
    "weights of 4 bits by groups": PACKED,
    "weights of 4 bits by groups, 16 rows": PACKED | {"m": 24, "n": 64, "tiles": (16, 64, 128)},
    "convolution by computed taps": {"images": 1, "side": 14, "c": 64, "outs": 128, "taps": 2, "tiles": (128, 128, 64)},
    "MLA decode": {"batch": 1, "heads": 64, "length": 128, "tiles": (64, 64), "parts": (512, 64)},
    "k-means": {"points": 128, "centers": 384, "d": 64, "tiles": (128, 128)},
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(backends: Backends, name: str) -> None:
    check(backends, name, PROGRAMS[name].small)


@pytest.mark.parametrize("name", WARPGROUPS)
def test_tiles_of_warpgroups(backends: Backends, name: str) -> None:
    """Small arrays in the tiles of the full size, which wgmma takes."""
    check(backends, name, WARPGROUPS[name])


def test_steps_of_k_of_two_lines(backends: Backends) -> None:
    """An iteration takes a line; the last ones lie outside of the array."""
    check(backends, "tf32, right operand by rows", PRODUCT | {"m": 256, "k": 160, "tiles": (256, 128, 64)})


def check(backends: Backends, name: str, sizes: dict[str, Any]) -> None:
    entry = PROGRAMS[name]
    for back_end in ("reference", *backends.names):
        numbers = NumPy(0)
        launch = entry.make(numbers, **sizes)
        if back_end == "reference":
            run_reference(launch.kernel, launch.grid, launch.arguments)
        else:
            run(back_end, launch.kernel, launch.grid, launch.arguments)
        if back_end.startswith("sm_"):
            continue
        found, want = launch.arguments[launch.output], launch.want()
        if found.dtype.kind in "iu":
            allowed = 1 if found.dtype == np.int8 else 0  # a tie of what is rounded
        else:
            tf32 = "tf32" in name
            narrow = tf32 or any(x.dtype != np.float32 for x in launch.arguments if isinstance(x, np.ndarray))
            allowed = ROUNDINGS["bfloat16" if narrow else "float32"] * np.abs(want).max()
        wrong = np.abs(found.astype(np.float64) - want)
        assert wrong.max() <= allowed, f"{back_end}: {wrong.max()} at {np.unravel_index(wrong.argmax(), wrong.shape)}"
