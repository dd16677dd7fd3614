"""SIMT kernels: `from cuda import device`, or `from tilewright import device`.

    @device.kernel
    def scale(x, y, a):
        i = device.tid(1)
        if i < x.shape[0]:
            y[i] = a * x[i]

    device.launch(scale, x, y, 2.0, grid=cdiv(n, 256), block=256, stream=stream)

A kernel runs once for each thread. It goes through the same dialect and lowering as a tile kernel: a value
of a thread is a tile of one element. Arrays decide where it runs, as with `tile.launch`. An index outside
of an array is undefined behaviour; compare it with the extents first. (Source: the specification of `cuda.device`.)
"""

from ..layout import align
from .abi import array
from .arrays import *  # noqa: F403
from .arrays import __all__ as _arrays
from .atomics import *  # noqa: F403
from .atomics import __all__ as _atomics
from .barriers import *  # noqa: F403
from .barriers import __all__ as _barriers
from .complexes import *  # noqa: F403
from .complexes import __all__ as _complexes
from .extern import *  # noqa: F403
from .extern import __all__ as _extern
from .functions import *  # noqa: F403
from .functions import __all__ as _functions
from .intrinsics import *  # noqa: F403
from .intrinsics import __all__ as _intrinsics
from .positions import *  # noqa: F403
from .positions import __all__ as _positions
from .structs import *  # noqa: F403
from .structs import __all__ as _structs
from .targets import *  # noqa: F403
from .targets import __all__ as _targets
from .types import *  # noqa: F403
from .types import __all__ as _types
from .vectors import *  # noqa: F403
from .vectors import __all__ as _vectors
from .warps import *  # noqa: F403
from .warps import __all__ as _warps

__all__ = [
    "align",
    "array",
    *_arrays,
    *_atomics,
    *_barriers,
    *_complexes,
    *_extern,
    *_functions,
    *_intrinsics,
    *_positions,
    *_structs,
    *_targets,
    *_types,
    *_vectors,
    *_warps,
]
