#!/usr/bin/env python3
"""The PTX of every kernel of the tests' zoo, the examples and the benchmarks, and what differs between two compilers.

    ptx_corpus.py write FOLDER [--targets sm_80,sm_90a] [--only TEXT] [--jobs N]
    ptx_corpus.py compare FOLDER FOLDER

`write` compiles all of them for six targets into one file each; needs no GPU. Symbols are numbered in the order in
which they occur, so that a kernel or a global that has another name is the same code. Beside the PTX a file has what
a launch knows of the kernel. `compare` is 1 where the PTX of a kernel differs, or one folder lacks it; launch facts
that differ are counted, not refused.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

from sasscheck.modules import renamed

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("python", "python/examples", "test/numerics", "bench")]

TARGETS = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")
GEMM = (("TM=128", "TN=128", "TK=64"), ("TM=128", "TN=256", "TK=64"), ("TM=64", "TN=64", "TK=32"))
# Hints under which the launcher asks for another variant of a kernel, tried on each kernel of the zoo for sm_90a.
VARIANTS = ({"slice_tiles": 2}, {"coarsen_tiles": 2}, {"split_k": 2}, {"num_ctas": 2}, {"dynamic_schedule": 1})


def matrices(dtype: str, *names: str) -> list[str]:
    return [f"{name}={dtype}[?,?]" for name in names]


def heads(*names: str) -> list[str]:
    return [f"{name}=bf16[?,?,?,128]" for name in names]


def rows() -> Iterator[tuple[str, str, list[str]]]:
    """(module, kernel, arguments as the command line takes them) of the examples and benchmarks."""
    yield "vector_add", "vector_add", ["A=f32[?]", "B=f32[?]", "C=f32[?]", "T=1024"]
    yield "vector_add", "vector_add", ["A=f32[?]unaligned", "B=f32[?]", "C=f32[?]", "T=1024"]
    for columns in (256, 4096, 32768, 65536):
        yield "softmax", "softmax", [*matrices("bf16", "X", "Y"), f"TN={columns}"]
        norm = ["W=bf16[?]", "EPS=1e-5", f"N={columns - 96}", f"TN={columns}"]
        yield "memory", "rms_norm", [*matrices("bf16", "X", "Y"), *norm]
        yield "memory", "layer_norm", [*matrices("bf16", "X", "Y"), "B=bf16[?]", *norm]
        yield "memory", "row_sum", ["X=f32[?,?]", "Y=f32[?]", f"TN={columns}"]
        yield "memory", "row_cumsum", [*matrices("f32", "X", "Y"), f"TN={columns}"]
    for dtype in ("f16", "bf16", "f32", "f8e4m3"):
        for tiles in GEMM:
            yield (
                "matmul",
                "matmul",
                [*matrices(dtype, "A", "B"), f"C={'f32' if dtype[1] == '8' else dtype}[?,?]", *tiles],
            )
    odd = ["A={}[4099,4099]", "B={}[4099,4099]", "C=f32[4099,4099]"]  # rows that begin anywhere
    for dtype in ("bf16", "f8e4m3"):
        for tiles in GEMM:
            yield "matmul", "matmul", [*(array.format(dtype) for array in odd), *tiles]
    for causal, file in (("attention", "attention"), ("full_attention", "gpu")):
        for tiles in (("TM=128", "TN=128"), ("TM=128", "TN=64"), ("TM=64", "TN=64")):
            yield file, causal, [*heads("Q", "K", "V", "Y"), "SCALE=0.125", *tiles, "D=128"]
    batched = [f"{name}=bf16[?,?,?]" for name in "ABC"]
    yield "gpu", "batched_matmul", [*batched, *GEMM[1]]
    for kernel in ("promoted", "fast"):
        yield "products", kernel, [*matrices("f8e4m3", "A", "B"), "C=bf16[?,?]", "TM=128", "TN=256", "TK=128"]
    yield "products", "promoted", [*matrices("bf16", "A", "B", "C"), "TM=16", "TN=64", "TK=256"]
    yield "memory", "transpose", [*matrices("bf16", "X", "Y"), "TM=128", "TN=128"]
    yield "memory", "embedding", ["Table=bf16[?,?]", "Index=i32[?]", "Y=bf16[?,?]", "TM=1", "D=1024"]


def written_rows() -> Iterator[tuple[str, Any, Any]]:
    from tilewright import cli

    if importlib.util.find_spec("torch") is None:  # the benchmarks' kernels need none of it
        names = ("torch", "torch.nn", "torch.nn.attention", "torch.nn.functional")
        sys.modules.update({name: mock.MagicMock() for name in names})
    for file, name, arguments in rows():
        kernel = getattr(importlib.import_module(file), name)
        yield f"{file} {name} {' '.join(arguments)}", kernel, cli.specialization(kernel, arguments)


def aligned(array: Any) -> Any:
    """A copy that starts at a line of the cache, as memory of a GPU does: what is compiled depends on it."""
    import numpy as np

    line = 128
    memory = np.empty(array.nbytes + line, np.uint8)
    start = -memory.ctypes.data % line
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def zoo_rows() -> Iterator[tuple[str, Any, Any]]:
    import zoo

    for case in zoo.CASES.values():
        inputs, outputs = (list(map(aligned, arrays)) for arrays in case.arguments())
        for number, (_, kernel, arguments) in enumerate(case.launches(*inputs, *outputs)):
            yield f"zoo {case.name} {number}", kernel, kernel.specialization(tuple(arguments))[1]


def jobs(targets: list[str]) -> Iterator[tuple[str, Any, Any, str]]:
    for name, kernel, key in (*written_rows(), *zoo_rows()):
        for target in targets:
            yield f"{target} {name}", kernel, key, target
        for hints in VARIANTS if "sm_90a" in targets and not kernel.rules.simt else ():
            hinted = " ".join(f"{hint}={value}" for hint, value in hints.items())
            yield f"sm_90a {name} {hinted}", kernel.replace_hints(**hints), key, "sm_90a"


# --- One kernel --------------------------------------------------------------------------------------


def normalized(ptx: str) -> str:
    """With the symbols that it declares numbered."""
    return renamed(ptx, lambda number, _: f"symbol{number}")


def built(kernel: Any, key: Any, target: str) -> Any:
    """The image of a kernel for a target, its code PTX."""
    from tilewright import compile
    from tilewright.times import Times

    times = Times(kernel.name, target)
    return compile.build(kernel.capture(target, key), target, kernel.name, times, lambda ptx, _: ptx)


def compiled(kernel: Any, key: Any, target: str) -> tuple[str, str]:
    """PTX and launch facts; what the compiler says where it refuses."""
    from tilewright import _core
    from tilewright.errors import TileError

    try:
        image = built(kernel, key, target)
    except TileError as error:
        return f"refused: {error.message}\n", ""
    facts = _core.launch_facts(image.record)
    return normalized(image.code.rstrip(b"\0").decode()), "\n".join(f"{k}: {v!r}" for k, v in sorted(facts.items()))


def file_name(name: str) -> str:
    return re.sub(r"[^\w.=?-]+", "_", name).replace("?", "N")


def write(folder: Path, targets: list[str], only: str, workers: int) -> int:
    folder.mkdir(parents=True, exist_ok=True)

    def one(job: tuple[str, Any, Any, str]) -> None:
        name, *rest = job
        ptx, facts = compiled(*rest)
        (folder / f"{file_name(name)}.ptx").write_text(ptx)
        (folder / f"{file_name(name)}.facts").write_text(facts)

    wanted = [job for job in jobs(targets) if only in job[0]]
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(one, wanted))
    refused = sum(path.read_text().startswith("refused") for path in folder.glob("*.ptx"))
    print(f"{len(wanted)} kernels, {refused} refused")
    return 0


# --- Two folders -------------------------------------------------------------------------------------


def differing(folders: list[Path], suffix: str) -> tuple[int, list[str]]:
    """How many names there are, and those of which the folders have other texts, or one has none."""
    names = sorted({path.name for folder in folders for path in folder.glob(f"*.{suffix}")})

    def text(folder: Path, name: str) -> str | None:
        return (folder / name).read_text() if (folder / name).exists() else None

    return len(names), [name for name in names if len({text(folder, name) for folder in folders}) > 1]


def compare(folders: list[Path]) -> int:
    count, ptx = differing(folders, "ptx")
    _, facts = differing(folders, "facts")
    for name in ptx:
        print(name)
    print(f"{count} kernels: {len(ptx)} have other PTX, {len(facts)} other launch facts")
    return int(bool(ptx) or not count)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, dest="command")
    writes = commands.add_parser("write")
    writes.add_argument("folder", type=Path, help="where the files go")
    writes.add_argument("--targets", default=",".join(TARGETS), help="separated by commas (default: all)")
    writes.add_argument("--only", default="", help="kernels whose name has this text")
    writes.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    commands.add_parser("compare").add_argument("folders", type=Path, nargs=2, help="of two calls of write")
    options = parser.parse_args()
    if options.command == "compare":
        return compare(options.folders)
    return write(options.folder, options.targets.split(","), options.only, options.jobs)


if __name__ == "__main__":
    sys.exit(main())
