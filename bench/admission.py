"""Whether a contender computes what it should, before its time counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

# The largest error, relative to the largest result, that is admitted: of outputs of that dtype.
LIMITS = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}


class WrongResultError(Exception):
    pass


def relative_error(found: Any, expected: Any) -> float:
    difference = (found.float() - expected.float()).abs().max()
    return (difference / expected.float().abs().max()).item()


def checked(
    work: Callable[[], Any], outputs: Sequence[Any], error: Callable[[], float], wait: Callable[[], Any]
) -> float:
    """Runs `work` over poisoned outputs, which it writes, or gives as its result; the error that is there then.

    So none inherits what another has computed.
    """
    for output in outputs:
        output[...] = math.nan
    result = work()
    wait()
    if result is not None and result is not outputs[0]:
        if math.prod(result.shape) != math.prod(outputs[0].shape):
            raise WrongResultError(
                f"its result has the shape {tuple(result.shape)}, expected {tuple(outputs[0].shape)}"
            )
        outputs[0][...] = result.reshape(outputs[0].shape)
    found, limit = error(), max(LIMITS[str(output.dtype).removeprefix("torch.")] for output in outputs)
    if not found <= limit:  # nor where it is NaN
        raise WrongResultError(f"its error is {found:.1e}, expected {limit:.0e} at most")
    return found
