"""Programs of Numba's CUDA target: `from tilewright.numba import cuda, float32`.

types.py       type objects and signatures
kernels.py     @cuda.jit, and launches
intrinsics.py  what a kernel asks of its thread
memory.py      device arrays, streams, events
namespace.py   the namespace `cuda`
wholes.py      @vectorize, @cuda.reduce
random.py      xoroshiro128+
npm.py         the same under the rules of the No-Python mode of NumbaPro
"""

import sys as _sys

from .. import device as _device  # noqa: F401
from . import namespace as cuda
from .types import *  # noqa: F403
from .types import __all__ as _types
from .wholes import vectorize

# No file has this name: numba-cuda's finder takes each module with `numba.cuda` in its name for its own.
_sys.modules[f"{__name__}.cuda"] = cuda

__all__ = ["cuda", "vectorize", *_types]
