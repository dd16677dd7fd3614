"""What stage 3 asks of the driver: launches on the stream and nothing else, so that a graph can hold it; threads."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from every import EVERY, calls

from tilewright import compute

TESTS = Path(__file__).resolve().parent.parent

ON_THE_STAND_IN = """
import ctypes
import os
import sys
import numpy as np
from every import calls

fake = ctypes.CDLL(os.environ["TILEWRIGHT_CUDA_DRIVER"])
FORBIDDEN = ("cuMemAlloc_v2", "cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuStreamSynchronize", "cuCtxSynchronize")
FORBIDDEN += ("cuEventSynchronize", "cuModuleLoadDataEx", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2")
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

for name, call in calls().items():
    made = call.make(**moved(call.made_of))
    values = moved({n: v for n, v in call.made_of.items() if n != "order"}) | call.more
    storage = [OnGpu(np.zeros(made(None, **values), np.uint8))] if made.has_storage else []
    made(*storage, **values, stream=0x5001)
    before, launches = asked(), fake.fake_calls(b"cuLaunchKernelEx")
    for _ in range(3):
        made(*storage, **values, stream=0x5001)
    assert asked() == before, (name, dict(zip(FORBIDDEN, zip(before, asked()))))
    assert fake.fake_calls(b"cuLaunchKernelEx") > launches, name
print("all of them")
"""


@pytest.mark.spec("C-056")
def test_nothing_but_launches(tmp_path):
    sys.path.insert(0, str(TESTS / "python"))
    from fake_driver import find_driver

    (tmp_path / "program.py").write_text(ON_THE_STAND_IN)
    environment = os.environ | {"TILEWRIGHT_CUDA_DRIVER": str(find_driver()), "TILEWRIGHT_CACHE_DIR": str(tmp_path)}
    environment |= {"PYTHONPATH": os.pathsep.join([str(TESTS / "compute"), *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py"], env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.stdout == "all of them\n", done.stdout + done.stderr


@pytest.mark.parametrize("name", EVERY)
def test_threads_share_an_object(name):
    """And what is compiled: eight threads want it at once, one of them makes it."""
    compute.clear_all_caches()
    call, made, wrong = calls()[name], [], []
    start = threading.Barrier(8)

    def work():
        try:
            start.wait()
            made.append(call.make(**call.made_of))
            for _ in range(5):
                call.check(made[-1])
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(made) == 8 and len(set(map(id, made))) == 1
