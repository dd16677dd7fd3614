"""The walk in docs/adding-a-launch-fact.md: its patches apply to this tree and touch three files; built, the compiler
sets the fact and the runtime asks the driver for what it says."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/dev"
needs_build = pytest.mark.skipif(
    not (BUILD / "compile_commands.json").exists(),
    reason="compiles into the tree of make build",
)

# The passes to code run on a kernel without shared memory, and on one with.
KERNELS = """
module attributes {tile.target = "sm_90a"} {
  func.func @plain(%x: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.simt} { return }
  func.func @shares(%x: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.simt} {
    %a = tile.shared_array : memref<64xf32, 3>
    return
  }
}
"""
# Loads a kernel with the fact and one without; prints how often the driver was asked for an attribute.
LAUNCHER = r"""
#include "tilewright/runtime.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  int (*calls)(const char *) = NULL;
  void *driver = dlopen(getenv("TILEWRIGHT_CUDA_DRIVER"), RTLD_NOW);
  *(void **)&calls = dlsym(driver, "fake_calls");
  for (int fact = 0; fact < 2; fact++) {
    const tw_launch_record_t record = {.num_threads = 32, .prefers_cache = fact};
    tw_launch_record_t read;
    tw_strbuf_t bytes = {0};
    tw_cuda_kernel_t *kernel = NULL;
    if (tw_launch_record_encode(&record, &bytes) || tw_launch_record_decode(bytes.data, bytes.size, &read) ||
        tw_cuda_kernel_create(".version 8.0 // kernel", 22, "kernel", &read, &kernel) || tw_cuda_kernel_load(kernel, 0))
      return 1;
    printf("%d ", calls("cuFuncSetAttribute"));
  }
  return 0;
}
"""


def patches() -> str:
    text = (ROOT / "docs/adding-a-launch-fact.md").read_text()
    return "".join(re.findall(r"^```diff\n(.*?)^```", text, re.MULTILINE | re.DOTALL))


def test_touches_three_files() -> None:
    assert len(set(re.findall(r"^\+\+\+ b/(.+)$", patches(), re.MULTILINE))) == 3


def run(*command: str | Path, folder: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with the patches."""
    tree = tmp_path_factory.mktemp("tree")
    for part in ("base", "dialect", "include", "lowering", "runtime"):
        shutil.copytree(ROOT / part, tree / part)
    (tree / "walk.patch").write_text(patches())
    run("git", "apply", "--unsafe-paths", "walk.patch", folder=tree)
    return tree


@needs_build
def test_the_compiler_sets_it(tree: Path) -> None:
    """A field at the end of the record leaves the others where they are: only what names it, or goes through all of
    them, is compiled again, and linked with the rest of the build."""
    commands = {row["file"]: row for row in json.loads((BUILD / "compile_commands.json").read_text())}
    link = run("ninja", "-t", "commands", "bin/tw-opt", folder=BUILD).splitlines()[-1]
    for source in ("base/launch_record.c", "lowering/launch_record.c", "dialect/facts.c", "lowering/gpu/to_nvvm.c"):
        row = commands[str(ROOT / source)]
        old = re.search(r" -o (\S+)", row["command"])[1]  # type: ignore[index]
        new = tree / f"{Path(source).as_posix().replace('/', '_')}.o"
        command = re.sub(r" -o \S+", f" -o {new}", row["command"]).replace(" -O3 ", " -O0 ")
        command = re.sub(r" -M[DFT]( (?!-)\S+)?", "", command)
        command = re.sub(rf"{re.escape(str(ROOT))}(?!/build)", str(tree), command)
        run(*shlex.split(command), folder=BUILD)
        assert old in link
        link = link.replace(old, str(new))
    tool = tree / "tw-opt"
    run("sh", "-c", re.sub(r" -o bin/tw-opt\b", f" -o {tool}", link), folder=BUILD)
    (tree / "kernels.mlir").write_text(KERNELS)
    lowered = run(tool, "kernels.mlir", "--tile-allocate-shared", "--tile-to-nvvm", folder=tree)
    told = dict(re.findall(r"@(plain|shares)\(.*tile\.launch = \{(.*?)\}", lowered))
    assert "prefers_cache = 1 : i32" in told["plain"] and "prefers_cache" not in told["shares"]


@needs_build
def test_the_runtime_reads_it(tree: Path) -> None:
    (tree / "launcher.c").write_text(LAUNCHER)
    sources = [
        "launcher.c",
        *(str(path) for folder in ("base", "runtime") for path in sorted((tree / folder).glob("*.c"))),
    ]
    compiler = re.search(r"^CMAKE_C_COMPILER:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE)
    assert compiler is not None
    command = [compiler[1], "-std=c17", "-D_GNU_SOURCE", "-w", "-I.", "-Iinclude", *sources, "-ldl", "-lm", "-lpthread"]
    run(*command, "-o", "launcher", folder=tree)
    told = run(tree / "launcher", folder=tree, TILEWRIGHT_CUDA_DRIVER=str(BUILD / "lib/libfakecuda.so"))
    assert told.split() == ["1", "3"]  # one for the shared memory of each, and one for the fact
