"""Programs of the CUDA toolkit, which nothing needs but a look at machine code and an export of it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

_PARTS = ("cuda_nvcc", "cu13")  # of packages up to CUDA 12, and from 13 on


def find_tool(name: str) -> str | None:
    """From PATH, from a usual place, or from NVIDIA's packages for Python; None where it is not found."""
    places = [Path("/usr/local/cuda/bin") / name]
    places += [Path(folder) / "nvidia" / part / "bin" / name for folder in sys.path for part in _PARTS]
    return shutil.which(name) or next((str(place) for place in places if place.is_file()), None)
