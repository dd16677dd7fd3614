"""`from cuda import device`: a portion of the namespace package `cuda`, which has no `__init__`."""

from tilewright.device import *  # noqa: F403
from tilewright.device import __all__ as __all__
