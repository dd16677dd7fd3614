// The published promotion table, cell by cell: the result of an op on two dtypes, or the error.
// RUN: %python %S/make_promotion.py %S/../data/tile_promotion.csv > %t.mlir
// RUN: tw-opt %t.mlir -split-input-file -verify-diagnostics | FileCheck %s --input-file=- --check-prefix=COUNT
// COUNT-COUNT-140: tile.select
// COUNT-NOT: tile.select
