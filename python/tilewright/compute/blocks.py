"""What the threads of a block do together: folds that keep the order of the items. Threads with items come first."""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined"

from __future__ import annotations

from ..numba import intrinsics as cuda


def block_inclusive(shared, t, there, value, fold):
    """shared[i] becomes value of thread 0 joined with those up to thread i, for the first `there` threads."""
    if t < there:
        shared[t] = value
    cuda.syncthreads()
    step = 1
    while step < there:
        if t >= step and t < there:
            value = fold(shared[t - step], value)
        cuda.syncthreads()
        if t < there:
            shared[t] = value
        cuda.syncthreads()
        step = step * 2
