"""`from tilewright.numba import cuda`: what programs with kernels of Numba use of `numba.cuda`.

    @cuda.jit
    def axpy(r, a, x, y):
        i = cuda.grid(1)
        if i < r.size:
            r[i] = a * x[i] + y[i]

    axpy[blocks, 128](r, 2.0, x, y)

They run on the GPU, and where there is none on the CPU, compiled.
"""

from ..capture import numba_functions as _functions  # the functions of Python and math in kernels
from . import random
from .compiling import compile, compile_ptx
from .intrinsics import *  # noqa: F403
from .intrinsics import __all__ as _intrinsics
from .kernels import In, InOut, Out, jit
from .memory import *  # noqa: F403
from .memory import __all__ as _memory
from .wholes import Reduce, reduce, vectorize

__tw_name__ = "cuda"  # what errors call it

__all__ = [
    "In",
    "InOut",
    "Out",
    "Reduce",
    "compile",
    "compile_ptx",
    "jit",
    "random",
    "reduce",
    "vectorize",
    *_intrinsics,
    *_memory,
]
assert _functions
