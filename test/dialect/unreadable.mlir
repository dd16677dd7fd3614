// Text that MLIR's parser does not survive is refused before it gets there; words, strings and comments hold what they like.
// RUN: tw-opt %s -o /dev/null
// RUN: not tw-opt %S/Inputs/index_array.txt 2>&1 | FileCheck %s
// CHECK: index_array.txt":4:38): error: a dense array holds integers or floats of a stated width, such as array<i64: 1>; found another type
// CHECK-NOT: error

// array<index: 1>
func.func private @"\"array<index: 1>"() attributes {tile.of = array<i64: 1>, tile.my_array = "array<index: 1>"}
