"""NVIDIA's tests of `cuda.compute` against `tilewright.compute`, on the CPU: how many of each file pass.

    python tools/cccl_tests.py FOLDER [--out FILE]     # python/cuda_cccl/tests/compute of a clone of NVIDIA/cccl

The tests are run where they are, not copied. They take arrays and streams from `cuda.core`, which needs a GPU; in its
place stand NumPy arrays (STANDINS). Of private modules that they patch there is an empty one. Tests marked `large` are
left out. WHY says of each file with failures what they are.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

STANDINS = '''
import sys
import types

import numpy as np

import tilewright.dropin
import tilewright.numba

tilewright.dropin.install()
sys.modules.setdefault("numba", tilewright.numba)
sys.modules.setdefault("numba.cuda", tilewright.numba.cuda)
import cuda.compute


def module(name, **members):
    made = types.ModuleType(name)
    made.__dict__.update(members, __path__=[])
    sys.modules[name] = made
    return made


class DeviceArray(np.ndarray):
    @classmethod
    def empty(cls, shape, dtype=None, order="C", **other):
        return np.zeros(shape, dtype, order=order).view(cls)

    @classmethod
    def from_numpy(cls, x, **other):
        return np.array(x, copy=True, order="K").view(cls)

    def copy_to_host(self, **other):
        return np.array(self)

    def copy_from_host(self, x, **other):
        self[...] = x


class Stream:
    def __cuda_stream__(self):
        return (0, 0)

    def sync(self):
        pass

    close = sync


class Device:
    device_id, compute_capability, default_stream = 0, (8, 0), Stream()

    def set_current(self):
        pass

    sync = set_current

    def create_stream(self):
        return Stream()


class Missing:
    """A compiler of CUDA C++, which a machine without GPUs need not have: the tests that call it fail."""

    def __init__(self, *args, **named):
        raise NotImplementedError("it is not part of tilewright.compute")


module("cuda.core", Device=Device, Stream=Stream, Buffer=object)
module("_utils")
module("_utils.device_array", DeviceArray=DeviceArray, get_compute_capability=lambda: (8, 0))
storage = module("cuda.compute._utils.temp_storage_buffer", TempStorageBuffer=lambda n, *_: np.empty(n, np.uint8))
protocols = module("cuda.compute._utils.protocols", compute_c_contiguous_strides_in_bytes=Missing)
module("cuda.compute._utils", temp_storage_buffer=storage, protocols=protocols)
for name in ("_cccl_interop", "_cpp_compile", "_jit", "_caching", "_bindings"):
    setattr(cuda.compute, name, module(f"cuda.compute.{name}", _check_sass=False, compile_cpp_op_code=Missing))
'''
_PRIVATE = "private members of the peer's modules and objects"
_CPP = "a compiler of CUDA C++, and operators of LTO-IR, which run on GPUs alone"
WHY = {
    "test_binary_search.py": "any integers are taken for places, not those of 64 bits alone",
    "test_bindings.py": _PRIVATE,
    "test_free_threading_stress.py": _PRIVATE,
    "test_func_caching.py": _PRIVATE,
    "test_histogram.py": "two objects of one key are to differ; here they are one, which threads share",
    "test_iterators.py": "operators of one text are equal whatever their names; " + _PRIVATE,
    "test_multi_cc_serialization.py": "asks a driver for GPUs",
    "test_nested_struct.py": _PRIVATE,
    "test_no_numba.py": _CPP,
    "test_numba_path_thread_safety.py": "objects of one key are to differ, for they hold arguments; " + _PRIVATE,
    "test_permutation_iterator.py": _PRIVATE,
    "test_raw_op.py": _CPP,
    "test_reduce.py": "arrays without the CUDA Array Interface; inputs are converted where the peer refuses; "
    + _PRIVATE,
    "test_segmented_reduce.py": "random floats, whose sum in another order ends in another digit in some runs",
    "test_serialization_diagnostics.py": "bytes of the peer's format are changed",
    "test_void_ptr_wrapper_validation.py": _PRIVATE,
    "test_zip_iterator.py": _PRIVATE,
}
SUMMARY = re.compile(r"(\d+) (passed|failed|errors?|skipped)")


def run(file: Path, standins: Path) -> dict[str, int]:
    """How many tests of a file passed, failed, were skipped."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{standins}"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "standins", "-p", "no:cacheprovider", "-m", "not large"]
    done = subprocess.run([*command, str(file)], capture_output=True, text=True, env=environment, cwd=standins)
    last = (done.stdout.strip().splitlines() or [""])[-1]
    return {kind.removesuffix("s"): int(number) for number, kind in SUMMARY.findall(last)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "tools" / "compute.tsv")
    options = parser.parse_args()
    rows = ["file\tpassed\tfailed\twhy"]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "standins.py").write_text(STANDINS)
        for file in sorted(options.folder.resolve().glob("test_*.py")):
            found = run(file, Path(folder))
            failed = found.get("failed", 0) + found.get("error", 0)
            why = WHY.get(file.name, "") if failed else ""
            rows.append(f"{file.name}\t{found.get('passed', 0)}\t{failed}\t{why}")
            print(rows[-1], flush=True)
    options.out.write_text("\n".join(rows) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
