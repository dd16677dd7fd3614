"""Objects as bytes: each algorithm there and back, for the CPU and for named GPUs, and bytes that are none."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from every import EVERY, calls

from tilewright import _core, arrays, compute
from tilewright.compute import OpKind, ProxyArray, ProxyValue, launching, serialization
from tilewright.errors import TileTypeError, TileValueError

TESTS = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("name", EVERY)
def test_there_and_back(name):
    call = calls()[name]
    blob = compute.serialize(call.make(**call.made_of))
    made = compute.deserialize(blob)
    assert type(made) is serialization.ALGORITHMS[name] and compute.serialize(made) == blob
    before = launching.counts["compilations"]
    call.check(made)
    assert launching.counts["compilations"] == before


def proxies_of(call):
    """The same with no data."""
    return {n: proxy_of(v, n.startswith("d_")) for n, v in call.made_of.items()}


def proxy_of(value, is_array):
    if is_array and isinstance(value, np.ndarray):
        return ProxyArray(value.dtype)
    return ProxyValue(value.dtype) if isinstance(value, np.generic) else value


@pytest.mark.parametrize("targets, most", [([89], 99 << 10), ([80, 90], 160 << 10), ([89, 90], 99 << 10)])
def test_tiles_are_for_the_shared_memory_of_all_targets(targets, most):
    x, counts = np.zeros(8), np.zeros(2, np.int64)
    compute.clear_all_caches()
    for made, of in (
        (compute.make_inclusive_scan(x, x, lambda a, b: a + b, None, compute_capability=targets), "scanner"),
        (compute.make_select(x, x, counts, lambda v: v > 3, compute_capability=targets), "parting"),
    ):
        for image in getattr(made, of).kernel.images.values():
            shared = _core.launch_facts(image.record)["shared_bytes"]
            assert most - (40 << 10) < shared <= most
    compute.clear_all_caches()


@pytest.mark.parametrize("name", EVERY)
def test_for_gpus_that_are_not_there(name, monkeypatch):
    """The code of each kernel is there for each target, and no array's address or size was needed."""
    monkeypatch.setattr(serialization, "_cubin", lambda image, target: b"")  # ptxas would take its time
    call = calls()[name]
    made = call.make(**proxies_of(call), compute_capability=[90, (8, 0)])
    assert made.targets == ("sm_80", "sm_90a") and made is call.make(**proxies_of(call), compute_capability=[80, 90])
    again = compute.deserialize(made.serialize())
    assert again.targets == made.targets
    used = [rows for kernel in serialization.kernels_of(again).values() if (rows := kernel.stored.args[2])]
    assert used
    for rows in used:
        assert [row.target for row in rows] == ["sm_80", "sm_90a"]
        assert all(f".target {row.target}".encode() in row.codes["ptx"] for row in rows)
    with pytest.raises(TileTypeError, match="made for sm_80, sm_90a, the arrays are on cpu"):
        again(*([None] if again.has_storage else []), **call.values())


def test_machine_code_and_what_newer_gpus_run(monkeypatch):
    """Both are kept, where a GPU is there whose driver has made machine code."""
    monkeypatch.setenv("TILEWRIGHT_NO_CACHE", "1")
    monkeypatch.setattr(serialization.compile, "assemble", lambda ptx, target: b"\x7fELF")
    compute.clear_all_caches()
    call = calls()["reduce_into"]
    made = call.make(**proxies_of(call), compute_capability=80)
    again = compute.deserialize(made.serialize())
    compute.clear_all_caches()
    used = [row for kernel in serialization.kernels_of(again).values() for row in kernel.stored.args[2]]
    assert used and all(row.codes["cubin"] == b"\x7fELF" for row in used)
    assert all(b".target sm_80" in row.codes["ptx"] for row in used)


def test_what_a_proxy_is_not(monkeypatch):
    monkeypatch.setattr(arrays, "_has_gpu", lambda: False)  # a proxy is for the GPU that is there
    x, out, zero = np.arange(3), np.zeros(1, np.int64), np.int64(0)
    with pytest.raises(TileTypeError, match="'d_in' is a ProxyArray of int64, which is on no device"):
        compute.make_reduce_into(ProxyArray(np.int64), out, OpKind.PLUS, zero)
    made = compute.make_reduce_into(x, out, OpKind.PLUS, zero)
    with pytest.raises(TileTypeError, match="'d_in' is a ProxyArray of int64, which has no memory; pass an array"):
        made(None, ProxyArray(np.int64), out, OpKind.PLUS, 3, zero)
    for wrong, error in (
        (70, TileValueError),
        ("ninety", TileTypeError),
        ((1, 2, 3), TileValueError),
        ([], TileValueError),
    ):
        with pytest.raises(error, match="compute capability|compute_capability|GPU"):
            compute.make_reduce_into(x, out, OpKind.PLUS, zero, compute_capability=wrong)


@compute.gpu_struct
class Pixel:
    red: np.uint8
    depth: np.float64


def brighter(a, b):
    return Pixel(max(a.red, b.red), max(a.depth, b.depth))


def test_structs_iterators_and_arrays_from_outside():
    """What is looked at is how structs lie, not which class they are of."""
    pixels = np.array([(3, 0.5), (200, 0.25)], Pixel.dtype)
    out = np.zeros(1, Pixel.dtype)
    weights = np.array([2, 3])
    it = compute.TransformIterator(compute.CountingIterator(np.int64(0)), lambda i: weights[i % 2])
    folded = compute.deserialize(compute.make_reduce_into(pixels, out, brighter, Pixel(0, 0)).serialize())
    storage = np.zeros(folded(None, pixels, out, brighter, 2, Pixel(0, 0)), np.uint8)
    other = compute.gpu_struct({"red": np.uint8, "depth": np.float64})
    folded(storage, pixels.view(other.dtype), out, brighter, 2, other(0, 1))
    assert tuple(out[0]) == (200, 1.0)
    with pytest.raises(TileTypeError, match="'h_init' is a struct AnonymousStruct, not what"):
        folded(storage, pixels, out, brighter, 2, compute.gpu_struct({"red": np.uint8, "depth": np.float32})(0, 0))
    total, zero = np.zeros(1, np.int64), np.int64(0)
    summed = compute.deserialize(compute.make_reduce_into(it, total, OpKind.PLUS, zero).serialize())
    storage = np.zeros(summed(None, it, total, OpKind.PLUS, 5, zero), np.uint8)
    summed(storage, it, total, OpKind.PLUS, 5, zero)
    assert total[0] == 12
    with pytest.raises(TileTypeError, match="'d_in' is a CountingIterator"):
        summed(storage, compute.CountingIterator(zero), total, OpKind.PLUS, 5, zero)


def test_an_operator_that_cannot_be_told():
    table = {1: 2}
    made = compute.make_unary_transform(np.zeros(1), np.zeros(1), lambda v: v + table[1])
    with pytest.raises(TileTypeError, match=r"uses \{1: 2\} from outside"):
        made.serialize()
    with pytest.raises(TileTypeError, match="an object that a make_ function gave"):
        compute.serialize(3)


# --- bytes that are no such object ------------------------------------------------------------------------------


def blob_of():
    return compute.make_reduce_into(np.zeros(3), np.zeros(1), OpKind.PLUS, np.float64(0)).serialize()


def altered(blob, change):
    """The bytes with another head, whole again."""
    _, size = serialization._HEAD.unpack_from(blob)
    at = serialization._HEAD.size
    head = json.loads(blob[at : at + size])
    change(head)
    told = json.dumps(head).encode()
    whole = serialization._HEAD.pack(serialization.MAGIC, len(told)) + told + blob[at + size : -32]
    return whole + hashlib.sha256(whole).digest()


def test_bytes_that_are_cut_or_changed():
    blob = blob_of()
    for wrong in (b"", b"x" * 100, blob[:-1], blob[1:], blob + b"x", blob[:40], b"CCCLPYS1" + blob[8:]):
        with pytest.raises(TileValueError, match="deserialize: "):
            compute.deserialize(wrong)
    for at in range(0, len(blob), 97):
        with pytest.raises(TileValueError, match="deserialize: "):
            compute.deserialize(blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :])
    with pytest.raises(TileTypeError, match="takes the bytes"):
        compute.deserialize("text")


def _deep(head):
    told = "int8"
    for _ in range(100):
        told = {"tuple": [told]}
    head["values"]["h_init"] = told


CHANGES = {
    "version": lambda h: h.update(version="Python 2.7"),
    "algorithm": lambda h: h.update(algorithm="__class__"),
    "no kernels": lambda h: h.update(kernels={}),
    "a kernel of another name": lambda h: h["kernels"].update(build=[]),
    "code beyond the bytes": lambda h: h["kernels"]["finish"][0].update(module=[0, 1 << 40]),
    "code before the bytes": lambda h: h["kernels"]["finish"][0].update(module=[-5, 4]),
    "no code": lambda h: h["kernels"]["finish"][0].pop("module"),
    "a target of another kind": lambda h: h["kernels"]["finish"][0].update(target="sm_80"),
    "a mask": lambda h: h["kernels"]["finish"][0].update(written=-1),
    "a type": lambda h: h["values"].update(h_init="os.system"),
    "a type without end": _deep,
    "a large type": lambda h: h["inputs"].update(d_in=["array", {"of": "int8", "shape": [999, 999, 999]}]),
    "a field": lambda h: h["inputs"].update(d_in=["array", {"fields": [["a b", "int8", 0]], "bytes": 1}]),
    "a field outside": lambda h: h["inputs"].update(d_in=["array", {"fields": [["a", "int8", 9]], "bytes": 1}]),
    "an input": lambda h: h["inputs"].pop("d_in"),
    "an option": lambda h: h.update(options=[["Determinism", "__class__"]]),
    "a key": lambda h: h["keys"].update(d_in=[1]),
    "on a GPU": lambda h: h.update(on="gpu"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_heads_that_do_not_hold_together(what):
    with pytest.raises(TileValueError, match="deserialize: "):
        compute.deserialize(altered(blob_of(), CHANGES[what]))


def test_a_module_that_is_none():
    """Text in the place of the module is refused where the kernel is first used."""
    _, size = serialization._HEAD.unpack_from(blob := blob_of())
    at = serialization._HEAD.size + size
    whole = blob[:at] + b"x" * (len(blob) - at - 32)
    made = compute.deserialize(whole + hashlib.sha256(whole).digest())
    with pytest.raises(TileValueError, match="reduce_into: .*code.* is not what serialize wrote"):
        made(np.zeros(4096, np.uint8), np.zeros(3), np.zeros(1), OpKind.PLUS, 3, np.float64(0))


# --- on a GPU ---------------------------------------------------------------------------------------------------

ON_THE_STAND_IN = """
import ctypes
import os
import sys
import numpy as np
from tilewright import compute
from tilewright.compute import OpKind, ProxyArray, ProxyValue, launching

class OnGpu:
    def __init__(self, count, offset):
        self.__cuda_array_interface__ = {
            "shape": (count,), "typestr": "<f4", "data": (0x100000000000 + offset, False), "version": 3
        }

i32 = (ProxyArray(np.float32), ProxyArray(np.float32), OpKind.PLUS, ProxyValue(np.float32))
made = compute.deserialize(compute.make_reduce_into(*i32, compute_capability=sys.argv[1].split()).serialize())
x, out, storage = OnGpu(9000, 0), OnGpu(1, 65536), OnGpu(4096, 131072)
compilations = launching.counts["compilations"]
made(storage, x, out, OpKind.PLUS, 9000, np.float32(0))
assert launching.counts["compilations"] == compilations
calls = ctypes.CDLL(os.environ["TILEWRIGHT_CUDA_DRIVER"]).fake_calls
print(calls(b"cuLaunchKernelEx"), "launches", calls(b"cuLibraryLoadData"), "loads")
"""


@pytest.mark.parametrize(
    ("targets", "told"), [("80 90", "2 launches 2 loads"), ("80", "2 launches"), ("100", "this GPU is sm_90a")]
)
def test_the_gpu_that_is_there(targets, told, tmp_path):
    """The code for its target is loaded, or PTX of an older one; nothing is compiled."""
    sys.path.insert(0, str(TESTS / "python"))
    from fake_driver import find_driver

    (tmp_path / "program.py").write_text(ON_THE_STAND_IN)
    environment = os.environ | {"TILEWRIGHT_CUDA_DRIVER": str(find_driver()), "TILEWRIGHT_NO_CACHE": "1"}
    environment |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py", targets], env=environment, capture_output=True, text=True, timeout=60
    )
    assert told in done.stdout + done.stderr, done.stdout + done.stderr


@pytest.mark.skipif(not arrays._has_gpu(), reason="what was made without data runs on a GPU")
@pytest.mark.parametrize("name", EVERY)
def test_on_a_gpu(name):
    call = calls()[name]
    made = call.make(**proxies_of(call), compute_capability=_core.device_info(0)["capability"])
    again, before = compute.deserialize(made.serialize()), launching.counts["compilations"]
    values = {n: arrays.to_device(v) if isinstance(v, np.ndarray) else v for n, v in call.values().items()}
    storage = [arrays.to_device(np.zeros(again(None, **values), np.uint8))] if again.has_storage else []
    again(*storage, **values)
    for output, expected in call.expected.items():
        np.testing.assert_array_equal(values[output].to_numpy()[: len(expected)], expected, err_msg=output)
    assert launching.counts["compilations"] == before


ASSEMBLED = """
import ctypes
import os
import sys
import numpy as np
from tilewright import compute
from tilewright.compute import OpKind, ProxyArray

class OnGpu:
    def __init__(self, count, offset):
        self.__cuda_array_interface__ = {
            "shape": (count,), "typestr": "<f4", "data": (0x100000000000 + offset, False), "version": 3
        }

name, *targets = sys.argv[1:]
x, out = (ProxyArray(np.float32),) * 2 if targets else (OnGpu(4096, 0), OnGpu(4096, 65536))
for_gpus = {"compute_capability": targets or None}
if name == "transform":
    compute.make_unary_transform(x, out, OpKind.NEGATE, **for_gpus)
elif name == "scan":
    compute.make_inclusive_scan(x, out, OpKind.PLUS, None, **for_gpus)
else:
    compute.make_reduce_into(x, out, lambda a, b: a if a > b else b, np.float32(0), **for_gpus)
calls = ctypes.CDLL(os.environ["TILEWRIGHT_CUDA_DRIVER"]).fake_calls
print(calls(b"cuLinkComplete"), "links", calls(b"cuLibraryLoadData"), "loads")
"""


@pytest.mark.parametrize(
    ("name", "targets", "told"),
    [
        ("transform", [], "0 links 1 loads"),
        ("transform", ["90"], "1 links 0 loads"),
        ("scan", [], "3 links 3 loads"),  # the kernel that clears among them, which others have, too
        ("reduce", [], "3 links 3 loads"),
    ],
)
def test_what_is_loaded_at_once_is_not_linked(name, targets, told, tmp_path):
    """The driver assembles the one kernel of an object as it loads it; of several, and for GPUs by name, its linker
    makes machine code."""
    sys.path.insert(0, str(TESTS / "python"))
    from fake_driver import find_driver

    (tmp_path / "program.py").write_text(ASSEMBLED)
    environment = os.environ | {"TILEWRIGHT_CUDA_DRIVER": str(find_driver()), "TILEWRIGHT_NO_CACHE": "1"}
    environment |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py", name, *targets],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert told in done.stdout + done.stderr, done.stdout + done.stderr
