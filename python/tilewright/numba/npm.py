"""Kernels under the rules of the CUDA Python specification 0.2 (NumbaPro): `from tilewright.numba.npm import cuda`.

In a loop a variable keeps the type that it had before; `//` gives an integer of 32 bits or more, `/` a float of the
larger width. Everything else is as in `tilewright.numba`.
"""

import functools
import types as _python

from . import namespace as _cuda
from .kernels import jit as _jit
from .types import *  # noqa: F403
from .types import __all__ as _types

cuda = _python.ModuleType("tilewright.numba.npm.cuda", __doc__)
cuda.__dict__.update({name: getattr(_cuda, name) for name in _cuda.__all__})
cuda.__dict__["jit"] = functools.partial(_jit, rules="npm")

__all__ = ["cuda", *_types]
