"""Hints by the names that a program gives its tiles, and those of families, roles and rasters: what they change, that
they change no result, and what is said of illegal ones."""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import _core, cli, hints, plans
from tilewright import compile as compiler
from tilewright import tile as ct
from tilewright.errors import TileError, TileTypeError, TileValueError
from tilewright.sweep.axes import read_axis

sys.path.insert(0, str(Path(__file__).parent.parent / "emulator"))
import emulate

emulated = pytest.mark.skipif(emulate.MISSING is not None, reason=str(emulate.MISSING))


@ct.kernel
def softmax(X, Y, T: ct.Constant[int]):
    x = ct.load(X, (ct.bid(0), 0), (1, T), padding_mode=ct.PaddingMode.NEG_INF)
    e = ct.exp(x - ct.max(x, axis=1, keepdims=True))
    y = e / ct.sum(e, axis=1, keepdims=True)
    ct.store(Y, (ct.bid(0), 0), y)


@ct.kernel
def product(A, B, C, M: ct.Constant[int], N: ct.Constant[int], K: ct.Constant[int]):
    acc = ct.zeros((M, N), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(M, K))):
        a = ct.load(A, (ct.bid(0), k), (M, K), padding_mode=ct.PaddingMode.ZERO)
        b = ct.load(B, (k, ct.bid(1)), (K, N), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(a, b, acc)
    ct.store(C, (ct.bid(0), ct.bid(1)), acc)


ROW = ["X=f32[?,?]", "Y=f32[?,?]", "T=1024"]
GEMM = ["A=f16[?,?]", "B=f16[?,?]", "C=f32[?,?]", "M=64", "N=64", "K=32"]
WIDE = [*GEMM[:3], "M=128", "N=128", "K=64"]


def text(kernel: Any, arguments: list[str], target: str = "sm_90a", stage: str = "layout", **wanted: Any) -> str:
    key = cli.specialization(kernel, arguments)
    return cli.lower(kernel.replace_hints(**wanted), key, target, stage).decode()


def layouts(kernel: Any, arguments: list[str], target: str = "sm_90a", **wanted: Any) -> dict[str, Any]:
    """By name: the kind that is taken, and the bits of each kind."""
    found = {}
    module = kernel.replace_hints(**wanted).capture(target, cli.specialization(kernel, arguments))
    for stage in ("legal", "layout"):
        module.lower(stage)
    for names, _, taken, choices in module.layouts(kernel.name):
        found |= {name: (choices[taken][0], {kind: bits for kind, bits, _ in choices}) for name in names}
    return found


def test_the_listing_has_names_kinds_and_bits() -> None:
    lines = text(softmax, ROW).splitlines()
    assert lines[0] == "// layout(x), layout(e), layout(y): 1x1024xf32"
    assert re.fullmatch(r"//  \* access +\d+ slots  register = .*lane = .*warp = .*", lines[1])
    assert any(line.startswith("//    narrow") for line in lines)


def test_a_kind_and_its_bits_are_the_same_choice() -> None:
    kind, choices = layouts(softmax, ROW)["x"]
    other = next(name for name in choices if name != kind)
    by_kind = layouts(softmax, ROW, **{"layout(x)": other})
    assert by_kind["x"][0] == by_kind["e"][0] == other
    by_bits = text(softmax, ROW, stage="ptx", **{"layout(x)": choices[other]})
    assert by_bits == text(softmax, ROW, stage="ptx", **{"layout(x)": other})
    assert by_bits != text(softmax, ROW, stage="ptx")


def test_names_do_not_change_code_and_locations_keep_them() -> None:
    module = softmax.capture("sm_90a", cli.specialization(softmax, ROW))
    assert '"%x"' in module.text(True) and '"%x"' not in module.text()


def test_a_hint_stands_in_the_ir() -> None:
    wanted = {"layout(x)": "narrow", "family": "mma.sync", "warps": 2}
    module = softmax.replace_hints(**wanted).capture("sm_90a", cli.specialization(softmax, ROW))
    assert 'tile.hints = {family = "mma.sync", "layout(x)" = "narrow", num_warps = 2 : i32}' in module.text()


@pytest.mark.parametrize(
    ("arguments", "target", "wanted", "told"),
    [
        (ROW, "sm_90a", {"layout(x)": "best"}, r"layout\(x\)=best, which is no value of this axis: .*access.*narrow"),
        (ROW, "sm_90a", {"layout(q)": "access"}, "kernel softmax has no tile 'q', of which .*; it has e, x, y"),
        (ROW, "cpu", {"layout(q)": "access"}, "kernel softmax has no tile 'q', of which .*; it has e, x, y"),
        (ROW, "sm_90a", {"layout(x)": "register = [[0, 1]], lane = [[0, 2]]"}, "other lanes or warps than the kernel"),
        (ROW, "sm_90a", {"layout(x)": "register = [[9, 9]]"}, "which is no value of this axis"),
        (ROW, "sm_90a", {"layout(x)": "access", "layout(e)": "narrow"}, "asks for another one"),
        (ROW, "sm_90a", {"warps(x)": "4x2"}, "no product has this name"),
        (GEMM, "sm_80", {"warps(acc)": "3x1"}, r"as a product of mma.sync on 4 warps it has 1x4, 2x2, 4x1"),
        (WIDE, "sm_90a", {"warps(acc)": "2x2"}, "as a product of wgmma on 4 warps it has no other"),
        (GEMM, "sm_80", {"swizzle(a)": "16"}, r"swizzle\(a\)=16, which is no value of this axis; it has 32, 64, 128"),
        (ROW, "sm_90a", {"swizzle(x)": "64"}, "no such tile is loaded into shared memory"),
        (GEMM, "sm_80", {"family": "wgmma"}, "family wgmma by the hint family: the target, or its dtypes"),
    ],
)
def test_what_is_illegal_is_named_with_what_is_legal(
    arguments: list[str], target: str, wanted: dict[str, Any], told: str
) -> None:
    kernel = softmax if arguments is ROW else product
    with pytest.raises(TileValueError, match=told):
        text(kernel, arguments, target, "legal" if target == "cpu" else "llvm", **wanted)


@pytest.mark.parametrize(
    ("wanted", "error", "told"),
    [
        ({"layut(x)": "a"}, TileTypeError, r"no hint 'layut\(x\)'.*of a tile t layout\(t\), swizzle\(t\), warps\(t\)"),
        ({"family": "fpga"}, TileValueError, "one of fma, mma.sync, wgmma, found 'fpga'"),
        ({"layout(x)": 3}, TileValueError, "is a text such as 'access'"),
        ({"layout(x)": 'a"b'}, TileValueError, "is a text such as 'access'"),
        ({"swizzle(x)": 64}, TileValueError, "is a text such as '64', found 64"),
        ({"warps(x)": 8}, TileValueError, "is a text such as '4x2', found 8"),
        ({"warps": 3}, TileValueError, "num_warps is a power of two"),
        ({"warps": 4, "num_warps": 4}, TileTypeError, "num_warps is given twice"),
    ],
)
def test_hints_that_no_kernel_has(wanted: dict[str, Any], error: type[TileError], told: str) -> None:
    with pytest.raises(error, match=told):
        softmax.replace_hints(**wanted)


def test_a_launch_takes_the_same_words() -> None:
    x = np.random.default_rng(0).random((4, 1024), np.float32)
    expected, y = np.exp(x) / np.exp(x).sum(1, keepdims=True), np.empty_like(x)
    for keywords in ({}, {"check": True}):
        ct.launch(None, 4, softmax, (x, y, 1024), hints={"layout(x)": "narrow", "stages": 2}, **keywords)
        np.testing.assert_allclose(y, expected, rtol=1e-5)
    with pytest.raises(TileTypeError, match="no hint 'speed'"):
        ct.launch(None, 4, softmax, (x, y, 1024), hints={"speed": 9})
    with pytest.raises(TypeError, match="hints is a dict"):
        ct.launch(None, 4, softmax, (x, y, 1024), hints=[1])


def test_each_axis_changes_what_it_says() -> None:
    base = text(product, WIDE, stage="ptx")
    assert "wgmma" in base and "wgmma" not in text(product, WIDE, stage="ptx", family="mma.sync")
    assert "mma.sync" not in text(product, GEMM, "sm_80", "ptx", family="fma")
    assert "tile.roles" in text(product, WIDE, stage="pipelined")
    assert "tile.roles" not in text(product, WIDE, stage="pipelined", roles="none")
    order = text(product, WIDE, raster=1, group=4)
    assert "group = 4 : i32" in order and "raster = array<i32: 1, 0, 2>" in order
    assert ".v4" in text(softmax, ROW, stage="ptx") and ".v4" not in text(softmax, ROW, stage="ptx", vector=4)
    plan = layouts(product, GEMM, "sm_80", **{"warps(acc)": "4x1"})["acc"][1]["product"]
    assert plan.endswith("warp = [[16, 0], [32, 0]]")


def test_legal_values_of_a_hint() -> None:
    assert hints.legal_values("warps") == (1, 2, 4, 8, 16, 32)
    assert hints.legal_values("family") == ("fma", "mma.sync", "wgmma")
    assert hints.legal_values("layout(x)") is None


def random_bits(layout: str, seed: int) -> str:
    """Another owner for every element: the vectors of a layout in another order."""
    groups = dict(re.findall(r"(\w+) = (\[(?:\[[^\]]*\](?:, )?)*\])", layout))
    vectors = [v for group in groups.values() for v in re.findall(r"\[[^\[\]]*\]", group)]
    random.Random(seed).shuffle(vectors)
    texts = []
    for name, group in groups.items():
        count = len(re.findall(r"\[[^\[\]]*\]", group))
        texts.append(f"{name} = [{', '.join(vectors[:count])}]")
        del vectors[:count]
    return ", ".join(texts)


@emulated
def test_any_layout_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kinds, and bits that no access would want: of a row, and of what comes out of a product."""
    monkeypatch.setattr(compiler, "compile_kernel", emulate.compile_kernel)
    x = np.random.default_rng(0).random((3, 256), np.float32)
    expected = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    kind, choices = layouts(softmax, ["X=f32[?,256]", "Y=f32[?,256]", "T=256"])["x"]
    assert kind in choices and len(choices) > 1
    for wanted in (*choices, *(random_bits(choices[kind], seed) for seed in range(4))):
        y = np.zeros_like(x)
        ct.launch(None, 3, softmax, (x, y, 256), hints={"layout(x)": wanted})
        np.testing.assert_allclose(y, expected, rtol=1e-5)


@emulated
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_products_compute_the_same(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulate, "TARGET", target)
    monkeypatch.setattr(compiler, "compile_kernel", emulate.compile_kernel)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((100, 70), (70, 80)))
    rows: list[dict[str, Any]] = [{"family": "fma"}, {"family": "mma.sync"}, {"raster": 1, "group": 2}, {"vector": 4}]
    rows += [{"roles": role} for role in ("none", "one", "pingpong")]
    rows += [{"family": "mma.sync", "warps(acc)": split} for split in ("1x4", "4x1")]
    rows += [{"family": "mma.sync", "swizzle(a)": wide, "swizzle(b)": "64"} for wide in ("32", "64", "128")]
    for wanted in rows:
        c = np.zeros((100, 80), np.float32)
        ct.launch(None, (2, 2), product, (a, b, c, 64, 64, 32), hints=wanted)
        np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32), err_msg=str(wanted))


# Every axis as a sweep takes it, of a product or a row for sm_90a, with a value that the compiler does not choose.
AXES = [
    ("M=64", product, WIDE),
    ("warps=4", softmax, ROW),
    ("stages=2", product, WIDE),
    ("vector=8", softmax, ROW),
    ("family=mma.sync", product, WIDE),
    ("roles=none", product, WIDE),
    ("roles=one", product, WIDE),
    ("raster=1", product, WIDE),
    ("group=4", product, WIDE),
    ("cluster=2", product, WIDE),
    ("split=4", product, WIDE),
    ("slice_tiles=2", product, WIDE),
    ("coarsen_tiles=2", product, WIDE),
    ("dynamic_schedule=1", product, WIDE),
    ("layout(x)=narrow", softmax, ROW),
    ("layout_rank=1", softmax, ROW),
    ("swizzle(a)=32", product, GEMM),
    ("warps(acc)=4x1 if family == 'mma.sync'", product, GEMM),
]


@pytest.mark.parametrize(("axis", "kernel", "arguments"), AXES, ids=[axis for axis, *_ in AXES])
def test_an_axis_is_given_back_in_the_words_of_the_sweep(
    axis: str, kernel: Any, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To replace_hints, the decorator and ct.launch; and it changes what the compiler makes."""
    constants = [name for name, _ in (text.split("=", 1) for text in arguments if "[" not in text)]
    family = {"family": "mma.sync"} if "acc" in axis or "swizzle" in axis else {}
    read = read_axis(axis, kernel, constants, lambda name: ())
    ((name, value),) = [(read.name, value) for value in read.at(family) or ()]
    assert read.at({"family": "wgmma"}) is None or " if " not in axis
    if name in constants:
        rows = [f"{name}={value}" if text.startswith(f"{name}=") else text for text in arguments]
        assert text(kernel, rows) != text(kernel, arguments)
        return
    as_written = axis.partition("=")[0]  # `stages`, which is short
    wanted = {as_written: value, **family}

    def made(of: Any) -> str:
        module = of.capture("sm_90a", cli.specialization(of, arguments))
        plans.lower(module, compiler.GPU_STAGES, module.lower)
        return f"{module.emit(compiler.EMIT_ASSEMBLY).decode()}\n{_core.launch_facts(compiler.record_of(module))}"

    code = made(kernel.replace_hints(**wanted))
    assert code != made(kernel.replace_hints(**family))
    assert code == made(kernel.replace_hints(**{name: value, **family})) == made(ct.kernel(**wanted)(kernel.function))
    launched: list[Any] = []

    def hear(of: Any, *_: Any) -> Any:
        launched.append(of)
        raise TileValueError("it was heard")

    monkeypatch.setattr(compiler, "compile_kernel", hear)
    values = [np.zeros((8, 8), np.float32) if "[" in text else int(text.split("=")[1]) for text in arguments]
    with pytest.raises(TileValueError, match="it was heard"):
        ct.launch(None, 1, kernel, tuple(values), hints=wanted)
    monkeypatch.undo()
    assert code == made(launched[0])
