// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-split-loops),canonicalize)' | FileCheck %s

// CHECK-LABEL: func.func @vector
func.func @vector(%a: memref<?xf32, strided<[?]>>) -> tensor<64xf32> {
  // CHECK-NEXT: %[[I:.*]] = tile.block_id 0
  // CHECK-NEXT: %[[T:.*]] = tile.load %arg0[%[[I]]] padding zero : memref<?xf32, strided<[?]>>, i32 -> tensor<64xf32>
  // CHECK-NEXT: tile.store %[[T]], %arg0[%[[I]]] : tensor<64xf32>
  // CHECK-NEXT: return
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %c64 = arith.constant 64 : i32
  %i = tile.block_id 0
  %base = arith.muli %c64, %i : i32
  %s = tensor.splat %base : tensor<64xi32>
  %n = tile.iota : tensor<64xi32>
  %j = arith.addi %n, %s : tensor<64xi32>
  %t = tile.gather %a[%j] else %zero : tensor<64xf32> {check_bounds} : memref<?xf32, strided<[?]>>, tensor<64xi32> -> tensor<64xf32>
  tile.scatter %t, %a[%j] {check_bounds} : tensor<64xf32>, memref<?xf32, strided<[?]>>, tensor<64xi32>
  return %t : tensor<64xf32>
}

// Rows and columns of a matrix, a constant offset among them.
// CHECK-LABEL: func.func @matrix
func.func @matrix(%a: memref<?x?xf32, strided<[?, 1]>>, %i: i32) -> tensor<8x16xf32> {
  // CHECK: %[[NEXT:.*]] = arith.addi %arg1, %c1_i32
  // CHECK: tile.load %arg0[%[[NEXT]], %c2_i32] padding neg_inf : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<8x16xf32>
  %minus = arith.constant dense<0xFF800000> : tensor<8x16xf32>
  %c8 = arith.constant 8 : i32
  %base = arith.muli %i, %c8 : i32
  %next = arith.addi %base, %c8 : i32
  %rows0 = tile.iota : tensor<8xi32>
  %rows1 = tile.reshape %rows0 : tensor<8xi32> -> tensor<8x1xi32>
  %rows2 = tensor.splat %next : tensor<8x1xi32>
  %rows3 = arith.addi %rows1, %rows2 : tensor<8x1xi32>
  %rows = tile.broadcast %rows3 : tensor<8x1xi32> -> tensor<8x16xi32>
  %columns0 = tile.iota : tensor<16xi32>
  %c32 = arith.constant dense<32> : tensor<16xi32>
  %columns1 = arith.addi %columns0, %c32 : tensor<16xi32>
  %columns2 = tile.reshape %columns1 : tensor<16xi32> -> tensor<1x16xi32>
  %columns = tile.broadcast %columns2 : tensor<1x16xi32> -> tensor<8x16xi32>
  %t = tile.gather %a[%rows, %columns] else %minus : tensor<8x16xf32> {check_bounds} : memref<?x?xf32, strided<[?, 1]>>, tensor<8x16xi32>, tensor<8x16xi32> -> tensor<8x16xf32>
  return %t : tensor<8x16xf32>
}

// One row: the axis without iota has extent one.
// CHECK-LABEL: func.func @row
func.func @row(%a: memref<?x?xf32, strided<[?, 1]>>, %i: i32) -> tensor<16xf32> {
  // CHECK: %[[T:.*]] = tile.load %arg0[%arg1, %c0_i32] : {{.*}} -> tensor<1x16xf32>
  // CHECK: tile.reshape %[[T]] : tensor<1x16xf32> -> tensor<16xf32>
  %row = tensor.splat %i : tensor<16xi32>
  %column = tile.iota : tensor<16xi32>
  %t = tile.gather %a[%row, %column] {check_bounds} : memref<?x?xf32, strided<[?, 1]>>, tensor<16xi32>, tensor<16xi32> -> tensor<16xf32>
  return %t : tensor<16xf32>
}

// A mask chooses after the load, whose bounds are then always checked.
// CHECK-LABEL: func.func @mask
func.func @mask(%a: memref<?xf32>, %m: tensor<16xi1>, %p: tensor<16xf32>) -> tensor<16xf32> {
  // CHECK: %[[T:.*]] = tile.load %arg0[%c0_i32] : memref<?xf32>, i32 -> tensor<16xf32>
  // CHECK: arith.select %arg1, %[[T]], %arg2
  %j = tile.iota : tensor<16xi32>
  %t = tile.gather %a[%j] mask %m : tensor<16xi1> else %p : tensor<16xf32> : memref<?xf32>, tensor<16xi32> -> tensor<16xf32>
  return %t : tensor<16xf32>
}

// What the front end promised stays said.
// CHECK-LABEL: func.func @promised
func.func @promised(%a: memref<?xf32>) -> tensor<16xf32> {
  // CHECK: tile.load %arg0[%c0_i32] {tile.in_bounds}
  %j = tile.iota : tensor<16xi32>
  %t = tile.gather %a[%j] : memref<?xf32>, tensor<16xi32> -> tensor<16xf32>
  return %t : tensor<16xf32>
}

// A mask that holds for all that counts up is none: the load keeps what the front end promised, and so does a store. One
// that fails for the last is one.
// CHECK-LABEL: func.func @mask_that_holds
func.func @mask_that_holds(%a: memref<?xf32>, %b: memref<?xf32>, %c: memref<?xf32>) {
  // CHECK: %[[T:.*]] = tile.load %arg0[%c0_i32] {tile.in_bounds}
  // CHECK-NOT: arith.select
  // CHECK: tile.store %[[T]], %arg1[%c0_i32] {tile.in_bounds}
  // CHECK: tile.scatter {{.*}} mask
  %j = tile.iota : tensor<16xi32>
  %extent = arith.constant dense<16> : tensor<16xi32>
  %less = arith.constant dense<15> : tensor<16xi32>
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  %m = arith.cmpi slt, %j, %extent : tensor<16xi32>
  %n = arith.cmpi slt, %j, %less : tensor<16xi32>
  %t = tile.gather %a[%j] mask %m : tensor<16xi1> else %zero : tensor<16xf32> : memref<?xf32>, tensor<16xi32> -> tensor<16xf32>
  tile.scatter %t, %b[%j] mask %m : tensor<16xi1> : tensor<16xf32>, memref<?xf32>, tensor<16xi32>
  tile.scatter %t, %c[%j] mask %n : tensor<16xi1> : tensor<16xf32>, memref<?xf32>, tensor<16xi32>
  return
}

// One element for all, with the padding of all; a mask that holds is none.
// CHECK-LABEL: func.func @one_element
func.func @one_element(%a: memref<?xi32>, %i: i32) -> tensor<16xi32> {
  // CHECK: %[[X:.*]] = tile.gather %arg0[%arg1] else %c-1_i32 : i32 {check_bounds}
  // CHECK: tensor.splat %[[X]]
  %s = tensor.splat %i : tensor<16xi32>
  %m = arith.constant dense<true> : tensor<16xi1>
  %p = arith.constant dense<-1> : tensor<16xi32>
  %t = tile.gather %a[%s] mask %m : tensor<16xi1> else %p : tensor<16xi32> {check_bounds} : memref<?xi32>, tensor<16xi32> -> tensor<16xi32>
  return %t : tensor<16xi32>
}

// The %i-th 16 of rows that lie in pages of 64: four tiles to a page.
// CHECK-LABEL: func.func @pages
func.func @pages(%a: memref<?x?xf32, strided<[?, 1]>>, %table: memref<?xi32>, %i: i32) -> tensor<16xf32> {
  // CHECK: %[[N:.*]] = arith.floordivsi %arg2, %c4_i32
  // CHECK: %[[PAGE:.*]] = tile.gather %arg1[%[[N]]]
  // CHECK: %[[PART:.*]] = arith.andi %arg2, %c3_i32
  // CHECK: tile.load %arg0[%[[PAGE]], %[[PART]]] {{.*}} -> tensor<1x16xf32>
  %c16 = arith.constant 16 : i32
  %b = arith.muli %i, %c16 : i32
  %s = tensor.splat %b : tensor<16xi32>
  %n = tile.iota : tensor<16xi32>
  %j = arith.addi %s, %n : tensor<16xi32>
  %size = arith.constant dense<64> : tensor<16xi32>
  %last = arith.constant dense<63> : tensor<16xi32>
  %q = arith.floordivsi %j, %size : tensor<16xi32>
  %page = tile.gather %table[%q] {check_bounds} : memref<?xi32>, tensor<16xi32> -> tensor<16xi32>
  %r = arith.andi %j, %last : tensor<16xi32>
  %zeros = arith.constant dense<0.0> : tensor<16xf32>
  %t = tile.gather %a[%page, %r] else %zeros : tensor<16xf32> {check_bounds} : memref<?x?xf32, strided<[?, 1]>>, tensor<16xi32>, tensor<16xi32> -> tensor<16xf32>
  return %t : tensor<16xf32>
}

// A word of each 8 rows, and of each 4 by a shift.
// CHECK-LABEL: func.func @repeated
func.func @repeated(%a: memref<?x?xi32, strided<[?, 1]>>, %i: i32) -> tensor<64x32xi32> {
  // CHECK: %[[W:.*]] = tile.load %arg0[%arg1, %c0_i32] : {{.*}} -> tensor<8x32xi32>
  // CHECK: %[[ONE:.*]] = tile.reshape %[[W]] : tensor<8x32xi32> -> tensor<8x1x32xi32>
  // CHECK: %[[ALL:.*]] = tile.broadcast %[[ONE]] : tensor<8x1x32xi32> -> tensor<8x8x32xi32>
  // CHECK: tile.reshape %[[ALL]] : tensor<8x8x32xi32> -> tensor<64x32xi32>
  // CHECK: tile.load %arg0[%arg1, %c0_i32] : {{.*}} -> tensor<16x32xi32>
  %c64 = arith.constant 64 : i32
  %b = arith.muli %i, %c64 : i32
  %s = tensor.splat %b : tensor<64xi32>
  %n = tile.iota : tensor<64xi32>
  %k = arith.addi %s, %n : tensor<64xi32>
  %eight = arith.constant dense<8> : tensor<64xi32>
  %two = arith.constant dense<2> : tensor<64xi32>
  %j = tile.iota : tensor<32xi32>
  %j1 = tile.reshape %j : tensor<32xi32> -> tensor<1x32xi32>
  %columns = tile.broadcast %j1 : tensor<1x32xi32> -> tensor<64x32xi32>
  %q = arith.floordivsi %k, %eight : tensor<64xi32>
  %q1 = tile.reshape %q : tensor<64xi32> -> tensor<64x1xi32>
  %rows = tile.broadcast %q1 : tensor<64x1xi32> -> tensor<64x32xi32>
  %t = tile.gather %a[%rows, %columns] {check_bounds} : memref<?x?xi32, strided<[?, 1]>>, tensor<64x32xi32>, tensor<64x32xi32> -> tensor<64x32xi32>
  %r = arith.shrsi %k, %two : tensor<64xi32>
  %r1 = tile.reshape %r : tensor<64xi32> -> tensor<64x1xi32>
  %rows4 = tile.broadcast %r1 : tensor<64x1xi32> -> tensor<64x32xi32>
  %u = tile.gather %a[%rows4, %columns] {check_bounds} : memref<?x?xi32, strided<[?, 1]>>, tensor<64x32xi32>, tensor<64x32xi32> -> tensor<64x32xi32>
  %sum = arith.addi %t, %u : tensor<64x32xi32>
  return %sum : tensor<64x32xi32>
}

// Columns of the tile are rows of the array.
// CHECK-LABEL: func.func @turned
func.func @turned(%a: memref<?x?xf32, strided<[?, 1]>>) -> tensor<8x32xf32> {
  // CHECK: %[[T:.*]] = tile.load %arg0[%c0_i32, %c0_i32] : {{.*}} -> tensor<32x8xf32>
  // CHECK: tile.permute %[[T]] [1, 0] : tensor<32x8xf32>
  %i = tile.iota : tensor<8xi32>
  %i1 = tile.reshape %i : tensor<8xi32> -> tensor<8x1xi32>
  %columns = tile.broadcast %i1 : tensor<8x1xi32> -> tensor<8x32xi32>
  %j = tile.iota : tensor<32xi32>
  %j1 = tile.reshape %j : tensor<32xi32> -> tensor<1x32xi32>
  %rows = tile.broadcast %j1 : tensor<1x32xi32> -> tensor<8x32xi32>
  %t = tile.gather %a[%rows, %columns] {check_bounds} : memref<?x?xf32, strided<[?, 1]>>, tensor<8x32xi32>, tensor<8x32xi32> -> tensor<8x32xf32>
  return %t : tensor<8x32xf32>
}

// CHECK-LABEL: func.func @stays
func.func @stays(%a: memref<?xf32>, %b: memref<?x?xf32, strided<[?, 1]>>, %i: i32, %m: tensor<16xi1>, %p: tensor<16xf32>, %t: tensor<16xi32>) {
  %n = tile.iota : tensor<16xi32>
  %s = tensor.splat %i : tensor<16xi32>
  // The base is no multiple of the extent.
  // CHECK: tile.gather
  %j0 = arith.addi %n, %s : tensor<16xi32>
  %0 = tile.gather %a[%j0] else %p : tensor<16xf32> {check_bounds} : memref<?xf32>, tensor<16xi32> -> tensor<16xf32>
  // A padding that a load has not.
  // CHECK: tile.gather
  %1 = tile.gather %a[%n] else %p : tensor<16xf32> {check_bounds} : memref<?xf32>, tensor<16xi32> -> tensor<16xf32>
  // Steps of two.
  // CHECK: tile.gather
  %two = arith.constant dense<2> : tensor<16xi32>
  %j2 = arith.muli %n, %two : tensor<16xi32>
  %2 = tile.gather %a[%j2] {check_bounds} : memref<?xf32>, tensor<16xi32> -> tensor<16xf32>
  // The diagonal.
  // CHECK: tile.gather
  %3 = tile.gather %b[%n, %n] {check_bounds} : memref<?x?xf32, strided<[?, 1]>>, tensor<16xi32>, tensor<16xi32> -> tensor<16xf32>
  // Indices from memory.
  // CHECK: tile.gather
  %4 = tile.gather %a[%t] {check_bounds} : memref<?xf32>, tensor<16xi32> -> tensor<16xf32>
  // Sums of eight bits, which wrap.
  // CHECK: tile.gather
  %n8 = tile.iota : tensor<16xi8>
  %j5 = arith.extsi %n8 : tensor<16xi8> to tensor<16xi32>
  %5 = tile.gather %a[%j5] {check_bounds} : memref<?xf32>, tensor<16xi32> -> tensor<16xf32>
  // A page that ends within the tile, and one that is no power of two.
  // CHECK: tile.gather
  // CHECK: tile.gather
  %eight = arith.constant dense<8> : tensor<16xi32>
  %hundred = arith.constant dense<99> : tensor<16xi32>
  %j6 = arith.floordivsi %n, %eight : tensor<16xi32>
  %6 = tile.gather %a[%j6] {check_bounds} : memref<?xf32>, tensor<16xi32> -> tensor<16xf32>
  %j7 = arith.andi %n, %hundred : tensor<16xi32>
  %7 = tile.gather %a[%j7] {check_bounds} : memref<?xf32>, tensor<16xi32> -> tensor<16xf32>
  // A masked scatter.
  // CHECK: tile.scatter
  tile.scatter %0, %a[%n] mask %m : tensor<16xi1> {check_bounds} : tensor<16xf32>, memref<?xf32>, tensor<16xi32>
  tile.print "{} {} {} {} {} {} {}", %1, %2, %3, %4, %5, %6, %7 : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
  return
}
