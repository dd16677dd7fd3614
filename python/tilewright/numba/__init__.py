"""Programs of Numba's CUDA target: `from tilewright.numba import cuda, float32`.

types.py       type objects and signatures
kernels.py     @cuda.jit
launching.py   launches, and what is done to their arguments
twins.py       what kernels ask of their launches beside arguments
pickling.py    kernels in a pickle
compiled.py    what was compiled of a kernel
compiling.py   PTX without a launch
linkable.py    functions of C++
intrinsics.py  what a kernel asks of its thread
memory.py      device arrays, streams, events
host_memory.py pinned, mapped and managed arrays
devices.py     devices and contexts
namespace.py   the namespace `cuda`
ufuncs.py      @vectorize, @guvectorize
reduction.py   @cuda.reduce
random.py      xoroshiro128+
npm.py         the same under the rules of the No-Python mode of NumbaPro
"""

import sys as _sys

from .. import device as _device  # noqa: F401
from . import namespace as cuda
from .types import *  # noqa: F403
from .types import __all__ as _types
from .ufuncs import guvectorize, vectorize

# No file has this name: numba-cuda's finder takes each module with `numba.cuda` in its name for its own.
_sys.modules[f"{__name__}.cuda"] = cuda
_sys.modules |= {f"{__name__}.cuda.{name}": getattr(cuda, name) for name in ("fp16", "libdevice", "random")}

__all__ = ["cuda", "guvectorize", "vectorize", *_types]
