// Random ops, mostly malformed: each is a diagnostic or IR that lowers, never a crash.
// RUN: %python %S/make_malformed.py %tile_ops 1 1500 > %t.mlir
// RUN: not tw-opt %t.mlir -split-input-file --tile-legalize --canonicalize 2>&1 | FileCheck %s
// CHECK: error: 'tile.
