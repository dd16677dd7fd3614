"""`import cuda.compute`, in a process of its own."""

import subprocess
import sys

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


def test_dropin(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    subprocess.run([sys.executable, "-m", "tilewright.dropin", str(script)], check=True)
