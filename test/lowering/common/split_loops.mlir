// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-split-loops),canonicalize,cse)' | FileCheck %s

// A diagonal and a ragged end: the first of the two borders ends the loop without masks.
// CHECK-LABEL: @causal
// CHECK-SAME: %[[ROW:[a-z0-9]*]]: i32, %[[KEYS:[a-z0-9]*]]: i32, %[[N:[a-z0-9]*]]: i32)
// CHECK-DAG: %[[C64:.*]] = arith.constant 64 : i64
// CHECK: arith.floordivsi %{{.*}}, %[[C64]]
// CHECK: arith.floordivsi %{{.*}}, %[[C64]]
// CHECK: arith.minsi
// CHECK: %[[BORDER:.*]] = arith.trunci
// CHECK: %[[FIRST:.*]] = scf.for %{{.*}} = %{{.*}} to %[[BORDER]]
// CHECK-NOT: arith.cmpi
// CHECK-NOT: arith.select
// CHECK: scf.yield
// CHECK: scf.for %{{.*}} = %[[BORDER]] to %[[N]] {{.*}} iter_args(%{{.*}} = %[[FIRST]])
// CHECK: arith.cmpi sle
// CHECK: arith.cmpi slt
// CHECK: arith.select
func.func @causal(%q: tensor<64x64xf16>, %k: tensor<64x64xf16>, %row: i32, %keys: i32, %n: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %low = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %i = tile.iota : tensor<64xi32>
  %ir = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %ic = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %rs = tensor.splat %row : tensor<64x1xi32>
  %rr = arith.addi %rs, %ir : tensor<64x1xi32>
  %rows = tile.broadcast %rr : tensor<64x1xi32> -> tensor<64x64xi32>
  %end = tensor.splat %keys : tensor<64x64xi32>
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %s = tile.mma %q, %k, %acc : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
    %first = arith.muli %j, %c64 : i32
    %fs = tensor.splat %first : tensor<1x64xi32>
    %cs = arith.addi %fs, %ic : tensor<1x64xi32>
    %columns = tile.broadcast %cs : tensor<1x64xi32> -> tensor<64x64xi32>
    %below = arith.cmpi sle, %columns, %rows : tensor<64x64xi32>
    %inside = arith.cmpi slt, %columns, %end : tensor<64x64xi32>
    %visible = arith.andi %below, %inside : tensor<64x64xi1>
    %t = arith.select %visible, %s, %low : tensor<64x64xi1>, tensor<64x64xf32>
    scf.yield %t : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----

// A mask that begins to hold: the loop without it comes last. The last row, 63, must see the first column.
// CHECK-LABEL: @window
// CHECK: arith.ceildivsi
// CHECK: %[[BORDER:.*]] = arith.trunci
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[BORDER]]
// CHECK: arith.cmpi
// CHECK: scf.for %{{.*}} = %[[BORDER]] to
// CHECK-NOT: arith.cmpi
func.func @window(%q: tensor<64x64xf16>, %k: tensor<64x64xf16>, %row: i32, %n: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %low = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %i = tile.iota : tensor<64xi32>
  %ir = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %ic = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %rs = tensor.splat %row : tensor<64x1xi32>
  %rr = arith.addi %rs, %ir : tensor<64x1xi32>
  %rows = tile.broadcast %rr : tensor<64x1xi32> -> tensor<64x64xi32>
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %s = tile.mma %q, %k, %acc : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
    %first = arith.muli %j, %c64 : i32
    %fs = tensor.splat %first : tensor<1x64xi32>
    %cs = arith.addi %fs, %ic : tensor<1x64xi32>
    %columns = tile.broadcast %cs : tensor<1x64xi32> -> tensor<64x64xi32>
    %visible = arith.cmpi sgt, %columns, %rows : tensor<64x64xi32>
    %t = arith.select %visible, %s, %low : tensor<64x64xi1>, tensor<64x64xf32>
    scf.yield %t : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----

// No product in the loop, or a mask that is not affine: one loop.
// CHECK-LABEL: @left_alone
// CHECK-COUNT-2: scf.for
// CHECK-NOT: scf.for
func.func @left_alone(%q: tensor<64x64xf16>, %x: tensor<64x64xf32>, %any: tensor<64x64xi32>, %n: i32) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %i = tile.iota : tensor<64xi32>
  %ir = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %rows = tile.broadcast %ir : tensor<64x1xi32> -> tensor<64x64xi32>
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %js = tensor.splat %j : tensor<64x64xi32>
    %visible = arith.cmpi slt, %js, %rows : tensor<64x64xi32>
    %t = arith.select %visible, %acc, %x : tensor<64x64xi1>, tensor<64x64xf32>
    scf.yield %t : tensor<64x64xf32>
  }
  %u = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %s = tile.mma %q, %q, %acc : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
    %js = tensor.splat %j : tensor<64x64xi32>
    %visible = arith.cmpi slt, %js, %any : tensor<64x64xi32>
    %t = arith.select %visible, %s, %x : tensor<64x64xi1>, tensor<64x64xf32>
    scf.yield %t : tensor<64x64xf32>
  }
  return %r, %u : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// A loop that begins where the mask no longer holds everywhere stays whole: 128 i / 64 is the border, too.
// CHECK-LABEL: @begins_at_the_border
// CHECK-COUNT-1: scf.for
// CHECK-NOT: scf.for
func.func @begins_at_the_border(%q: tensor<64x64xf16>, %k: tensor<64x64xf16>, %i: i32, %n: i32) -> tensor<64x64xf32> {
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %low = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %o = tile.iota : tensor<64xi32>
  %or = tile.reshape %o : tensor<64xi32> -> tensor<64x1xi32>
  %oc = tile.reshape %o : tensor<64xi32> -> tensor<1x64xi32>
  %row = arith.muli %i, %c128 : i32
  %lb = arith.floordivsi %row, %c64 : i32
  %rs = tensor.splat %row : tensor<64x1xi32>
  %rr = arith.addi %rs, %or : tensor<64x1xi32>
  %rows = tile.broadcast %rr : tensor<64x1xi32> -> tensor<64x64xi32>
  %r = scf.for %j = %lb to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %s = tile.mma %q, %k, %acc : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
    %first = arith.muli %j, %c64 : i32
    %fs = tensor.splat %first : tensor<1x64xi32>
    %cs = arith.addi %fs, %oc : tensor<1x64xi32>
    %columns = tile.broadcast %cs : tensor<1x64xi32> -> tensor<64x64xi32>
    %visible = arith.cmpi sle, %columns, %rows : tensor<64x64xi32>
    %t = arith.select %visible, %s, %low : tensor<64x64xi1>, tensor<64x64xf32>
    scf.yield %t : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----

// The mask of the indices of rows that a product reads, however few.
// CHECK-LABEL: @gathered
// CHECK: scf.for
// CHECK: tile.load %arg1[%{{.*}}] {tile.in_bounds}
// CHECK: scf.for
// CHECK: %[[MASK:.*]] = arith.cmpi slt
// CHECK: arith.select %[[MASK]]
func.func @gathered(%a: memref<?x?xf16, strided<[?, 1]>>, %table: memref<?xi32>, %keys: i32, %n: i32) -> tensor<16x16xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %none = arith.constant dense<-1> : tensor<16xi32>
  %i = tile.iota : tensor<16xi32>
  %ic = tile.reshape %i : tensor<16xi32> -> tensor<1x16xi32>
  %columns = tile.broadcast %ic : tensor<1x16xi32> -> tensor<16x16xi32>
  %end = tensor.splat %keys : tensor<16xi32>
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %first = arith.muli %j, %c16 : i32
    %fs = tensor.splat %first : tensor<16xi32>
    %row = arith.addi %fs, %i : tensor<16xi32>
    %inside = arith.cmpi slt, %row, %end : tensor<16xi32>
    %t = tile.gather %table[%row] mask %inside : tensor<16xi1> else %none : tensor<16xi32> : memref<?xi32>, tensor<16xi32> -> tensor<16xi32>
    %tr = tile.reshape %t : tensor<16xi32> -> tensor<16x1xi32>
    %rows = tile.broadcast %tr : tensor<16x1xi32> -> tensor<16x16xi32>
    %x = tile.gather %a[%rows, %columns] {check_bounds} : memref<?x?xf16, strided<[?, 1]>>, tensor<16x16xi32>, tensor<16x16xi32> -> tensor<16x16xf16>
    %s = tile.mma %x, %x, %acc : tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf32>
    scf.yield %s : tensor<16x16xf32>
  }
  return %r : tensor<16x16xf32>
}

// -----

// A mask of columns alone is for all rows. Where the last column is known to be inside, one loop is left.
// CHECK-LABEL: @columns
// CHECK: scf.for
// CHECK-NOT: arith.cmpi
// CHECK-NOT: arith.select
// CHECK: scf.yield
// CHECK-NOT: scf.for
func.func @columns(%q: tensor<64x64xf16>, %k: tensor<64x64xf16>) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %low = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %end = arith.constant dense<256> : tensor<64xi32>
  %i = tile.iota : tensor<64xi32>
  %r = scf.for %j = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %s = tile.mma %q, %k, %acc : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
    %first = arith.muli %j, %c64 : i32
    %fs = tensor.splat %first : tensor<64xi32>
    %columns = arith.addi %fs, %i : tensor<64xi32>
    %inside = arith.cmpi slt, %columns, %end : tensor<64xi32>
    %row = tile.reshape %inside : tensor<64xi1> -> tensor<1x64xi1>
    %visible = tile.broadcast %row : tensor<1x64xi1> -> tensor<64x64xi1>
    %t = arith.select %visible, %s, %low : tensor<64x64xi1>, tensor<64x64xf32>
    scf.yield %t : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}
