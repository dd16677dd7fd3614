"""Programs that call the algorithms with arrays on a GPU that is not there, by the tests' stand-in for the driver."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent

BEGIN = """
import ctypes
import os
import numpy as np
from every import calls

fake = ctypes.CDLL(os.environ["TILEWRIGHT_CUDA_DRIVER"])
FORBIDDEN = ("cuMemAlloc_v2", "cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuStreamSynchronize", "cuCtxSynchronize")
FORBIDDEN += ("cuEventSynchronize", "cuModuleLoadDataEx", "cuLibraryLoadData")
FORBIDDEN += ("cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2")
place = 0x100000000000

class OnGpu:
    def __init__(self, array):
        global place
        typestr, data = array.dtype.str, (place, False)
        self.__cuda_array_interface__ = {"shape": array.shape, "typestr": typestr, "data": data, "version": 3}
        self.dtype = array.dtype
        place += 1 << 16

def moved(values):
    return {n: OnGpu(v) if isinstance(v, np.ndarray) else v for n, v in values.items()}

def asked():
    return [fake.fake_calls(name.encode()) for name in FORBIDDEN]
"""


def run(program, tmp_path):
    sys.path.insert(0, str(TESTS / "python"))
    from fake_driver import find_driver

    (tmp_path / "program.py").write_text(BEGIN + program + "print('all of them')\n")
    environment = os.environ | {"TILEWRIGHT_CUDA_DRIVER": str(find_driver()), "TILEWRIGHT_CACHE_DIR": str(tmp_path)}
    environment |= {"PYTHONPATH": os.pathsep.join([str(TESTS / "compute"), *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py"], env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.stdout == "all of them\n", done.stdout + done.stderr
