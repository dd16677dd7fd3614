"""Several kernels in a module: each gets what it gets alone, whatever the others are and however many threads compile.

A pass works on one function, and what a launch must know of it stands there. MLIR runs such passes on several functions
at once, so one that wrote anywhere else would show here.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "examples"))
import attention
import matmul
from tilewright import _core, compile, device
from tilewright import tile as ct

TW_OPT = Path(os.environ.get("TW_BIN", Path(__file__).resolve().parents[2] / "build/dev/bin")) / "tw-opt"
TARGETS = ["sm_80", "sm_90a"]


@ct.kernel
def copy(X, Y, TN: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    ct.store(Y, index=(i, j), tile=ct.load(X, index=(i, j), shape=(64, TN)))


@ct.kernel(num_warps=2)
def row_sums(X, Y, TN: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(Y, index=(i,), tile=ct.sum(ct.load(X, index=(i, 0), shape=(4, TN)), axis=1))


@device.kernel
def reverse(X, Y):
    shared = device.shared_array(64, device.float32)
    i = device.tid(1)
    shared[i] = X[i]
    device.syncthreads()
    Y[i] = shared[63 - i]


def modules(target: str) -> dict[str, Any]:
    """Each kernel's own module, by name."""
    half, single = np.empty((4096, 4096), np.float16), np.empty(4096, np.float32)
    heads = [np.empty((1, 2, 1024, 128), np.float16) for _ in range(4)]
    kernels = [
        (matmul.matmul.replace_hints(num_ctas=2), (half, half.copy(), half.copy(), 128, 256, 64)),
        (copy, (half, half.copy(), 64)),
        (reverse, (single, single.copy())),
        (attention.attention, (*heads, 0.1, 128, 128, 128)),
        (row_sums, (half.astype(np.float32), single, 1024)),
    ]
    return {k.name: k.capture(target, k.specialization(args)[1]) for k, args in kernels}


def joined(texts: list[str]) -> str:
    """One module of the kernels of several; `#a` is another alias in each."""
    aliases, bodies, head = [], [], ""
    for number, text in enumerate(texts):
        text = re.sub(r"#(\w+)\b(?=[ ,>)}])", rf"#\1_{number}", text) if text.startswith("#") else text
        before, head, body = re.split(r"^(module attributes \{.*\} \{)$", text, maxsplit=1, flags=re.MULTILINE)
        aliases.append(before)
        bodies.append(body.rstrip().removesuffix("}"))
    return "".join(aliases) + head + "".join(bodies) + "\n}\n"


def entries(ptx: str) -> dict[str, str]:
    """The code of each kernel, without the numbers by which labels tell the functions of a module apart."""
    found = re.findall(r"\.entry (\w+)\((.*?)^\}", ptx, flags=re.MULTILINE | re.DOTALL)
    return {name: re.sub(r"\$L__BB\d+_", "$L__BB_", body) for name, body in found}


@pytest.mark.parametrize("target", TARGETS)
def test_each_gets_what_it_gets_alone(target: str) -> None:
    alone = modules(target)
    together = _core.parse(joined([module.text() for module in alone.values()]))
    together.lower("llvm")
    code, records = entries(together.emit(compile.EMIT_ASSEMBLY).decode()), dict(together.kernels())
    assert list(records) == list(alone)
    for name, module in alone.items():
        module.lower("llvm")
        assert _core.launch_facts(records[name]) == _core.launch_facts(compile.record_of(module)), name
        assert {name: code[name]} == entries(module.emit(compile.EMIT_ASSEMBLY).decode())
    facts = {name: _core.launch_facts(record) for name, record in records.items()}
    assert (facts["reverse"]["num_threads"], facts["row_sums"]["num_threads"]) == (0, 64)
    clusters = [fact["cluster_blocks"] for fact in facts.values()]
    assert clusters == [2 if target == "sm_90a" else 0, 0, 0, 0, 0]
    assert not facts["copy"]["persistent"] and not facts["reverse"]["tensor_maps"]


@pytest.mark.skipif(not TW_OPT.exists(), reason="needs build/dev/bin/tw-opt")
def test_threads_of_the_pass_manager_agree(tmp_path: Path) -> None:
    """Eight kernels, eight times, on as many threads as MLIR starts; and on one."""
    texts = [module.text() for module in modules("sm_90a").values()]
    names = re.compile(r"func\.func @(\w+)")
    many = [names.sub(rf"func.func @\1_{n}", text) for n in range(2) for text in texts[:4]]
    source = tmp_path / "several.mlir"
    source.write_text(joined(many))
    stages = [_core.stage_passes("sm_90a", stage) for stage in ("legal", "layout", "pipelined", "nvvm")]
    passes = ",".join(text.removeprefix("builtin.module(").removesuffix(")") for text in stages)

    def compiled(*options: str) -> str:
        command = [TW_OPT, source, f"--pass-pipeline=builtin.module({passes})", *options]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout

    one = compiled("--mlir-disable-threading")
    assert one.count("nvvm.kernel") == 8 and one.count("tile.launch") == 8
    assert {compiled() for _ in range(8)} == {one}


def test_no_pass_writes_to_the_module() -> None:
    """What the module has when all is lowered is what it had, and the stage."""
    (module,) = (module for name, module in modules("sm_90a").items() if name == "matmul")
    module.lower("nvvm")
    head = next(line for line in module.text().splitlines() if line.startswith("module"))
    assert head == 'module attributes {tile.stage = "nvvm", tile.target = "sm_90a"} {'


def test_several_kernels_on_the_cpu() -> None:
    modules_ = modules("cpu")
    together = _core.parse(joined([modules_[name].text() for name in ("copy", "row_sums")]))
    together.lower("llvm")
    for name, record in together.kernels():
        modules_[name].lower("llvm")
        assert record == compile.record_of(modules_[name])
