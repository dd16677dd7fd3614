// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-split-loops),canonicalize,cse)' | FileCheck %s

// Both edges of a window of 256 keys: each of the loops in front and behind compares with its own edge.
// CHECK-LABEL: @both_edges
// CHECK: scf.for
// CHECK-NOT: arith.cmpi sle
// CHECK: arith.cmpi sgt
// CHECK-NOT: arith.cmpi
// CHECK: scf.for
// CHECK-NOT: arith.cmpi
// CHECK: scf.for
// CHECK: arith.cmpi sle
// CHECK-NOT: arith.cmpi
// CHECK: return
func.func @both_edges(%q: tensor<64x64xf16>, %k: tensor<64x64xf16>, %block: i32, %n: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %low = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %reach = arith.constant dense<256> : tensor<64x64xi32>
  %i = tile.iota : tensor<64xi32>
  %ir = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %ic = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %row = arith.muli %block, %c64 : i32
  %rs = tensor.splat %row : tensor<64x1xi32>
  %rr = arith.addi %rs, %ir : tensor<64x1xi32>
  %rows = tile.broadcast %rr : tensor<64x1xi32> -> tensor<64x64xi32>
  %far = arith.subi %rows, %reach : tensor<64x64xi32>
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %s = tile.mma %q, %k, %acc : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
    %first = arith.muli %j, %c64 : i32
    %fs = tensor.splat %first : tensor<1x64xi32>
    %cs = arith.addi %fs, %ic : tensor<1x64xi32>
    %columns = tile.broadcast %cs : tensor<1x64xi32> -> tensor<64x64xi32>
    %below = arith.cmpi sle, %columns, %rows : tensor<64x64xi32>
    %near = arith.cmpi sgt, %columns, %far : tensor<64x64xi32>
    %visible = arith.andi %below, %near : tensor<64x64xi1>
    %t = arith.select %visible, %s, %low : tensor<64x64xi1>, tensor<64x64xf32>
    scf.yield %t : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----

// One of 32 keys: the diagonal is met before all rows see the first column, so the loop in front compares with both.
// CHECK-LABEL: @short_window
// CHECK: scf.for
// CHECK: arith.cmpi sle
// CHECK: arith.cmpi sgt
// CHECK: scf.for
// CHECK-NOT: arith.cmpi
// CHECK: scf.for
// CHECK: arith.cmpi sle
// CHECK-NOT: arith.cmpi
// CHECK: return
func.func @short_window(%q: tensor<64x64xf16>, %k: tensor<64x64xf16>, %block: i32, %n: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %low = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %reach = arith.constant dense<32> : tensor<64x64xi32>
  %i = tile.iota : tensor<64xi32>
  %ir = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %ic = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %row = arith.muli %block, %c64 : i32
  %rs = tensor.splat %row : tensor<64x1xi32>
  %rr = arith.addi %rs, %ir : tensor<64x1xi32>
  %rows = tile.broadcast %rr : tensor<64x1xi32> -> tensor<64x64xi32>
  %far = arith.subi %rows, %reach : tensor<64x64xi32>
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %s = tile.mma %q, %k, %acc : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
    %first = arith.muli %j, %c64 : i32
    %fs = tensor.splat %first : tensor<1x64xi32>
    %cs = arith.addi %fs, %ic : tensor<1x64xi32>
    %columns = tile.broadcast %cs : tensor<1x64xi32> -> tensor<64x64xi32>
    %below = arith.cmpi sle, %columns, %rows : tensor<64x64xi32>
    %near = arith.cmpi sgt, %columns, %far : tensor<64x64xi32>
    %visible = arith.andi %below, %near : tensor<64x64xi1>
    %t = arith.select %visible, %s, %low : tensor<64x64xi1>, tensor<64x64xf32>
    scf.yield %t : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}
