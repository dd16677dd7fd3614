"""Programs of Numba's CUDA target: `from tilewright.numba import cuda, float32`.

types.py       type objects and signatures
kernels.py     @cuda.jit, and launches
intrinsics.py  what a kernel asks of its thread
memory.py      device arrays, streams, events
cuda.py        the namespace `cuda`
wholes.py      @vectorize, @cuda.reduce
random.py      xoroshiro128+
npm.py         the same under the rules of seed 000, the No-Python mode of NumbaPro
"""

from .. import device as _device  # noqa: F401
from . import cuda
from .types import *  # noqa: F403
from .types import __all__ as _types
from .wholes import vectorize

__all__ = ["cuda", "vectorize", *_types]
