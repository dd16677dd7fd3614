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
from ..errors import DriverError as CudaSupportError
from ..errors import TileError as KernelRuntimeError
from . import fp16, libdevice, random
from .compiling import *  # noqa: F403
from .compiling import __all__ as _compiling
from .devices import *  # noqa: F403
from .devices import __all__ as _devices
from .host_memory import *  # noqa: F403
from .host_memory import __all__ as _host_memory
from .intrinsics import *  # noqa: F403
from .intrinsics import __all__ as _intrinsics
from .kernels import jit
from .launching import In, InOut, Out
from .linkable import *  # noqa: F403
from .linkable import __all__ as _linkable
from .memory import *  # noqa: F403
from .memory import __all__ as _memory
from .reduction import Reduce, reduce
from .types import bfloat16
from .ufuncs import guvectorize, vectorize
from .vectors import *  # noqa: F403
from .vectors import __all__ as _vectors

__tw_name__ = "cuda"  # what errors call it

__all__ = [
    "CudaSupportError",
    "In",
    "InOut",
    "KernelRuntimeError",
    "Out",
    "Reduce",
    "bfloat16",
    "guvectorize",
    "fp16",
    "jit",
    "libdevice",
    "random",
    "reduce",
    "vectorize",
    *_compiling,
    *_devices,
    *_host_memory,
    *_intrinsics,
    *_linkable,
    *_memory,
    *_vectors,
]
assert _functions
