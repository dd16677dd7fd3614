"""The kernels that people write (python/examples/kernels) against NumPy, in every execution."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Backends, run, run_reference
from zoo import CASES


@pytest.mark.parametrize("name", CASES)
def test_kernel(backends: Backends, name: str) -> None:
    case = CASES[name]
    inputs, _ = case.arguments()
    expected = case.expected(inputs)
    for back_end in ("reference", *backends.names):
        inputs, outputs = case.arguments()
        for grid, kernel, args in case.launches(*inputs, *outputs):
            if back_end == "reference":
                run_reference(kernel, grid, args)
            else:
                run(back_end, kernel, grid, args)
        if back_end.startswith("sm_"):
            continue
        assert all(np.isfinite(x.astype(np.float32)).all() for x in outputs), back_end
        assert case.error(outputs, expected) <= case.tolerance, back_end
