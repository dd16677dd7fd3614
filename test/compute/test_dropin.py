"""`import cuda.compute`, in a process of its own."""

import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
import cuda.compute
from cuda.compute import OpKind, gpu_struct
from cuda.compute.iterators import CountingIterator
from cuda.compute.algorithms import reduce_into

out = np.zeros(1, np.int32)
it = CountingIterator(np.int32(1))
cuda.compute.reduce_into(d_in=it, d_out=out, op=OpKind.PLUS, num_items=10, h_init=np.array([0]))
assert out[0] == 55 and reduce_into is cuda.compute.reduce_into
"""

TYPES = """
import ctypes
import numpy as np
import cuda.compute
from cuda.compute import CountingIterator, TransformIterator, types
from cuda.compute.iterators import IteratorBase
from cuda.compute.typing import DeviceArrayLike, GpuStruct, IteratorT, Operator, StreamLike

def first(it: IteratorT, op: Operator, stream: StreamLike | None = None) -> IteratorT:
    return TransformIterator(it, op)

it = first(CountingIterator(np.int32(3)), lambda v: v * 2)
assert isinstance(it, IteratorBase) and it.value_type == types.from_numpy_dtype(np.dtype(np.int64)) == types.int64
Pair = types.struct({"a": types.int8, "b": types.float64}, "Pair")
assert Pair.dtype == np.dtype([("a", "i1"), ("b", "f8")], align=True) and Pair.__name__ == "Pair"
assert types.to_ctypes_type(types.uint16) is ctypes.c_uint16 and types.boolean == types.from_numpy_dtype(bool)

def widened(v: types.int32) -> types.float64:
    return v / 2

out = np.zeros(1)
cuda.compute.unary_transform(d_in=it, d_out=out, op=widened, num_items=1)
assert out[0] == 3
"""


@pytest.mark.parametrize("program", [PROGRAM, TYPES], ids=["algorithms", "types"])
def test_dropin(tmp_path, program):
    script = tmp_path / "program.py"
    script.write_text(program)
    subprocess.run([sys.executable, "-m", "tilewright.dropin", str(script)], check=True)
