"""tilewright.compilation: signatures, their symbols, and kernels exported for programs that have no Python."""

from __future__ import annotations

import ctypes
import io
import itertools
import random
import re
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "python" / "examples"))
from matmul import matmul
from tilewright import compilation as co
from tilewright import tile as ct
from tilewright.compilation import ArrayConstraint, CallingConvention, KernelSignature, ScalarConstraint

V1, V2 = CallingConvention.cutile_python_v1(), CallingConvention.cutile_python_v2()
needs_ptxas = pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas on PATH")


@ct.kernel
def scale(X, Y, a, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(Y, index=(i,), tile=ct.load(X, index=(i,), shape=(T,)) * a)


@ct.kernel
def talk(X, T: ct.Constant[int]):
    ct.printf("%f", ct.load(X, index=(0,), shape=(T,)))


def vector(**facts: Any) -> ArrayConstraint:
    settings = {
        "index_dtype": ct.int32,
        "stride_lower_bound_incl": 0,
        "alias_groups": (),
        "may_alias_internally": False,
    }
    return ArrayConstraint(ct.float32, 1, **(settings | facts))


def of_vectors(symbol: str | None = None, **facts: Any) -> KernelSignature:
    array = vector(stride_constant=1, **facts)
    return KernelSignature([array, array, ScalarConstraint(ct.float32), 128], V2, symbol)


# --- signatures and symbols -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "symbol"),
    [
        ([True, 42, -7, 1.5, -0.0], "f_Kt2_B1_I42_I_7_F3ff8000000000000_F8000000000000000"),
        ([ScalarConstraint(d) for d in (ct.bool_, ct.uint8, ct.bfloat16)], "f_Kt2_Sb8_Su8_Sbf16"),
        ([vector()], "f_Kt2_A1f32_1l0"),
        ([vector(index_dtype=ct.int64, base_addr_divisible_by=16)], "f_Kt2_A1f32_1l0_p16w"),
        ([vector(alias_groups=["x"]), vector(alias_groups=["x"])], "f_Kt2_A1f32_1l0_g0_A1f32_1l0_g0"),
        ([(1, (ScalarConstraint(ct.int32),)), vector(shape_constant=8)], "f_Kt2_T2I1T1Si32_A1f32_1s8l0"),
        ([co.ListConstraint(vector(), alias_groups=(), elements_may_alias=True)], "f_Kt2_LiA1f32_1l0"),
        ([None, "aK_é", ct.int8], "f_Kt2_Cn__Cs_a_k___e9_z_Cd_i8"),
    ],
)
def test_symbols(parameters: list[Any], symbol: str) -> None:
    signature = KernelSignature(parameters, V2)
    assert co.mangle_kernel_name("f", signature) == symbol
    name, found = co.demangle_kernel_name(symbol)
    assert (name, found.symbol, found.calling_convention) == ("f", symbol, V2)
    assert co.mangle_kernel_name("f", found) == symbol


def some_array(chance: random.Random) -> ArrayConstraint:
    ndim = chance.randrange(5)

    def axes(*values: Any) -> list[Any]:
        return [chance.choice(values) for _ in range(ndim)]

    return ArrayConstraint(
        chance.choice([ct.float16, ct.int64, ct.float8_e5m2, ct.tfloat32]),
        ndim,
        index_dtype=chance.choice([ct.int32, ct.uint32, ct.int64]),
        stride_lower_bound_incl=axes(None, 0, -3),
        alias_groups=[],
        may_alias_internally=chance.random() < 0.5,
        stride_constant=axes(None, None, 48),
        shape_constant=axes(None, None, 48),
        stride_divisible_by=axes(1, 8, 16),
        shape_divisible_by=axes(1, 16),
        base_addr_divisible_by=chance.choice([1, 16, 128]),
    )


def test_random_signatures_come_back() -> None:
    chance = random.Random(7)
    for _ in range(300):
        parameters = [some_array(chance) for _ in range(chance.randrange(4))]
        constants = [chance.choice([True, -5, 0.1, "x_K_z", (3, ScalarConstraint(ct.int8))]) for _ in range(3)]
        signature = KernelSignature([*parameters, *constants], V2)
        name, found = co.demangle_kernel_name(co.mangle_kernel_name("a_Kb", signature))
        assert (name, found.parameters) == ("a_Kb", signature.parameters)


@pytest.mark.parametrize(
    ("symbol", "problem"),
    [
        ("plain", "has no '_K'"),
        ("f_Kt9_I1", "no calling convention has the code 't9'"),
        ("f_Kt1_T1I1", "version >= 2 is required"),
        ("f_Kt1_Q", "expected the letter of a parameter, found 'Q'"),
        ("f_Kt2_A1f32_2l0", "1 axes have no mask 2"),
        ("f_Kt2_A1f32_1i8_1i16", "two shape_divisible_by of axis 0"),
        ("f_Kt2_A1f32_g1", "expected an alias group up to 0, found 'g1'"),
    ],
)
def test_what_is_no_symbol(symbol: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        co.demangle_kernel_name(symbol)


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        ({"shape_divisible_by": [1, 2]}, "shape_divisible_by has 2 values"),
        ({"stride_constant": 7, "stride_divisible_by": 4}, "no multiple of its stride_divisible_by"),
        ({"stride_constant": 7, "stride_lower_bound_incl": 8}, "not at least its stride_lower_bound_incl"),
        ({"index_dtype": ct.int8}, "index_dtype must be"),
        ({"base_addr_divisible_by": 0}, "must be at least 1"),
        ({"shape_constant": -1}, "must be at least 0"),
    ],
)
def test_wrong_constraints(facts: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        vector(**facts)


def test_an_alias_group_has_two_members() -> None:
    with pytest.raises(ValueError, match="alias group 'x' has one member only"):
        KernelSignature([vector(alias_groups=["x"])], V2)


def test_a_signature_of_arguments() -> None:
    x = np.zeros(256, np.float32)
    signature = KernelSignature.from_kernel_args(scale, (x, x.copy(), 2.0, 128), V2)
    assert signature.symbol == "scale_Kt2_A1f32_1i16t1_p16_A1f32_1i16t1_p16_Sf32_I128"
    assert co.demangle_kernel_name(signature.symbol)[1].parameters == signature.parameters


def test_an_extent_of_one_is_a_constant_from_version_2_on() -> None:
    x = np.zeros((8, 1), np.float32)
    known = [
        KernelSignature.from_kernel_args(scale, (x, x, 2.0, 128), version).parameters[0].shape_constant
        for version in (V1, V2)
    ]
    assert known == [(None, None), (None, 1)]

    @ct.kernel
    def plain(X, Y: Annotated[ct.Array, ct.ArrayAnnotation(static_shape_dims=(0,))]):
        ct.store(X, (0, 0), ct.load(Y, (0, 0), (8, 1)))

    parameters = KernelSignature.from_kernel_args(plain, (x, x), V2).parameters
    assert [p.shape_constant for p in parameters] == [(None, 1), (8, None)]


# --- the code ---------------------------------------------------------------------------------------------------------


def exported(kernel: Any, *signatures: KernelSignature, target: str = "sm_90a", form: str = "ptx") -> tuple[str, Any]:
    file = io.BytesIO()
    entries = co.export_kernel(kernel, signatures, file, gpu_code=target, output_format=form)
    return file.getvalue().decode(errors="replace"), entries


@pytest.mark.parametrize("bits", [32, 64])
def test_parameters_have_the_widths_of_the_signature(bits: int) -> None:
    ptx, (entry,) = exported(scale, of_vectors("mine", index_dtype=getattr(ct, f"int{bits}")))
    widths = re.findall(r"\.param \.u(\d+) mine_param", ptx)
    assert widths == ["64", str(bits), str(bits), "64", str(bits), str(bits), "32"]
    assert entry.symbol == "mine" and f".reqntid {entry.threads}" in ptx


@ct.kernel
def of_a_tuple(pair, word: ct.Constant, out):
    ct.scatter(out[0], 0, pair[0] * ct.float32(pair[1][1]) + word[0])


def test_tuples_are_exported_by_their_parts() -> None:
    """A parameter each, in order; one in a tuple that is annotated as a constant is none."""
    pair = co.TupleConstraint([ScalarConstraint(ct.float32), co.TupleConstraint([3, ScalarConstraint(ct.int64)])])
    signature = KernelSignature([pair, (10,), co.TupleConstraint([vector(stride_constant=1)])], V2, "mine")
    with pytest.raises(ct.TileTypeError, match=r"parameter pair\[1\]\[0\] is no ct.Constant"):
        exported(of_a_tuple, signature)
    plain = co.TupleConstraint([ScalarConstraint(ct.float32), co.TupleConstraint([ScalarConstraint(ct.int64)] * 2)])
    ptx, _ = exported(of_a_tuple, KernelSignature([plain, (10,), signature.parameters[2]], V2, "mine"))
    assert re.findall(r"\.param \.[uf](\d+) mine_param", ptx) == ["32", "64", "64", "64", "32", "32"]


def test_kernels_of_one_file() -> None:
    signatures = [KernelSignature([vector(stride_constant=1), T], V1) for T in (32, 64)]
    ptx, entries = exported(talk, *signatures)
    assert re.findall(r"\.entry (\w+)\(", ptx) == [entry.symbol for entry in entries]
    texts = re.findall(r"^\.global .* (\w+)\[", ptx, re.MULTILINE)
    assert len(texts) == len(set(texts)) >= 2 and ptx.count(".version") == 1


@needs_ptxas
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_a_product_is_launched_as_any_kernel(target: str, tmp_path: Path) -> None:
    """No tensor maps, no grid of ours: one pointer, two extents and two strides an array are all it takes."""
    half = np.zeros((512, 512), np.float16)
    signature = KernelSignature.from_kernel_args(matmul, (half, half.copy(), half.copy(), 128, 128, 64), V2)
    ptx, (entry,) = (
        exported(matmul, signature, signature.with_symbol("again"), target=target)[0],
        exported(matmul, signature, target=target)[1],
    )
    assert ptx.count(f"{signature.symbol}_param_") > 15 and f"{signature.symbol}_param_15" not in ptx
    path = tmp_path / "kernels.cubin"
    co.export_kernel(matmul, [signature], path, gpu_code=target, output_format="cubin")
    assert path.read_bytes().startswith(b"\x7fELF") and entry.shared_bytes > 0


@pytest.mark.parametrize(
    ("settings", "kind", "problem"),
    [
        ({"output_format": "tileir_bytecode"}, ct.TileUnsupportedFeatureError, "is 'ptx' or 'cubin'"),
        ({"output_format": "elf"}, ct.TileValueError, "is 'ptx' or 'cubin'"),
        ({"gpu_code": None}, ct.TileValueError, "gpu_code is the target"),
        ({"gpu_code": "cpu"}, ct.TileValueError, "gpu_code is a GPU"),
        ({"signatures": []}, ct.TileValueError, "one signature or more"),
        ({"signatures": [of_vectors("a b")]}, ct.TileValueError, "'a b' is no symbol of PTX"),
        ({"signatures": [of_vectors("a"), of_vectors("a")]}, ct.TileValueError, "two signatures have the symbol a"),
        ({"signatures": [KernelSignature([1, 2, 3, 4], V2)]}, ct.TileTypeError, "parameter X is no ct.Constant"),
        ({"signatures": [KernelSignature([1], V2)]}, ct.TileTypeError, "has 4 parameters, the signature 1"),
    ],
)
def test_what_is_not_exported(settings: dict[str, Any], kind: type[Exception], problem: str) -> None:
    given = {"signatures": [of_vectors("a")], "gpu_code": "sm_90a", "output_format": "ptx"} | settings
    signatures = given.pop("signatures")
    with pytest.raises(kind, match=problem):
        co.export_kernel(scale, signatures, io.BytesIO(), **given)


def test_an_exported_kernel_runs() -> None:
    """By the driver alone, as a program in C would."""
    torch = pytest.importorskip("torch", reason="a tensor of torch gives the kernel its memory")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    target = "sm_{}{}".format(*torch.cuda.get_device_capability())
    target += "a" if target == "sm_90" else ""
    file = io.BytesIO()
    (entry,) = co.export_kernel(scale, [of_vectors("run")], file, gpu_code=target, output_format="cubin")
    x = torch.arange(1000, device="cuda", dtype=torch.float32)
    y = torch.zeros_like(x)
    driver = ctypes.CDLL("libcuda.so.1")
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    assert driver.cuModuleLoadData(ctypes.byref(module), file.getvalue()) == 0
    assert driver.cuModuleGetFunction(ctypes.byref(function), module, b"run") == 0
    words = [(ctypes.c_void_p(t.data_ptr()), ctypes.c_int32(1000), ctypes.c_int32(1)) for t in (x, y)]
    values = [*itertools.chain(*words), ctypes.c_float(3.0)]
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    launch = driver.cuLaunchKernel
    assert launch(function, 8, 1, 1, entry.threads, 1, 1, entry.shared_bytes, stream, pointers, None) == 0
    torch.cuda.synchronize()
    assert torch.equal(y, 3 * x)
