# ruff: noqa: F821 - lit provides `config`
"""lit's configuration: .mlir files below test/, run with tw-opt and FileCheck (TW_BIN says where tw-opt is)."""

import os
import sys
from pathlib import Path

import lit.formats

root = Path(__file__).resolve().parent
tw_bin = Path(os.environ.get("TW_BIN", root.parent / "build" / "dev" / "bin")).resolve()

config.name = "tilewright"
config.test_format = lit.formats.ShTest()
config.suffixes = [".mlir"]
config.excludes = ["python", "numerics", "unit", "data", "Inputs"]
config.test_source_root = str(root)
config.test_exec_root = str(tw_bin.parent / "lit")
config.substitutions.append(("%python", sys.executable))
config.substitutions.append(("%tile_ops", str(tw_bin.parent / "TileOps.json")))
config.environment["PATH"] = os.pathsep.join([str(tw_bin), "/usr/lib/llvm-22/bin", os.environ["PATH"]])
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
