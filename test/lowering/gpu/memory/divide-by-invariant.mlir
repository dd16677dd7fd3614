// RUN: tw-opt %s -pass-pipeline='builtin.module(func.func(tile-optimize-indices),canonicalize)' | FileCheck %s
// RUN: tw-opt %s -pass-pipeline='builtin.module(func.func(tile-optimize-indices),canonicalize)' | FileCheck %s --check-prefix=LIFT

// What goes through rows, places and channels by one loop divides by numbers of the launch. None of them is negative, so
// the remainder with the sign of the divisor is the plain one.
// CHECK-LABEL: func.func @two
// CHECK: %[[N:.*]] = tile.dim %{{.*}}, 0
// CHECK: %[[Q:.*]] = arith.divui %c-1_i32, %[[N]]
// CHECK: scf.for %[[K:.*]] = %c0_i32
// CHECK-NOT: arith.floordivsi
// CHECK-NOT: arith.remsi
// CHECK: %[[GUESS:.*]] = arith.trunci
// CHECK: %[[LESS:.*]] = arith.cmpi uge
// CHECK: %[[ROW:.*]] = arith.select %[[LESS]]
// CHECK: %[[REST:.*]] = arith.select
// CHECK-NOT: arith.select
// CHECK: tile.load %{{.*}}[%[[ROW]], %[[REST]]]
func.func @two(%A: memref<?x?xf32, strided<[?, 1]>>, %B: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x32xf32>
  %n = tile.dim %A, 0 : memref<?x?xf32, strided<[?, 1]>>
  %m = tile.dim %A, 1 : memref<?x?xf32, strided<[?, 1]>>
  %all = arith.muli %n, %m : i32
  %sum = scf.for %k = %c0 to %all step %c1 iter_args(%s = %zero) -> (tensor<1x32xf32>) : i32 {
    %q = arith.floordivsi %k, %n : i32
    %r = arith.remsi %k, %n : i32
    %x = arith.xori %r, %n : i32
    %negative = arith.cmpi slt, %x, %c0 : i32
    %some = arith.cmpi ne, %r, %c0 : i32
    %move = arith.andi %some, %negative : i1
    %moved = arith.addi %r, %n : i32
    %rest = arith.select %move, %moved, %r : i32
    %t = tile.load %A[%q, %rest] padding zero : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<1x32xf32>
    %next = arith.addf %s, %t : tensor<1x32xf32>
    scf.yield %next : tensor<1x32xf32>
  }
  tile.store %sum, %B[%c0, %c0] : tensor<1x32xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
  return
}

// Of a scalar argument nothing is known, so it stays; and so does what changes in the loop.
// CHECK-LABEL: func.func @unknown
// CHECK-NOT: arith.divui
// CHECK: scf.for
// CHECK: arith.floordivsi
// CHECK: arith.remsi
func.func @unknown(%A: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c9 = arith.constant 9 : i32
  %one = arith.constant dense<1.0> : tensor<1x32xf32>
  scf.for %k = %c1 to %c9 step %c1 : i32 {
    %q = arith.floordivsi %k, %n : i32
    %r = arith.remsi %c9, %k : i32
    tile.store %one, %A[%q, %r] : tensor<1x32xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
  }
  return
}

// The index of rows is a tile from outside and a natural number; that of columns counts from a multiple of 64, which
// does not overflow, as it is below the extent. The third index may be negative and stays.
// LIFT-LABEL: func.func @indices
// LIFT-DAG: %[[IOTA:.*]] = tile.iota : tensor<64xi32>
// LIFT-DAG: %[[FLAT:.*]] = tile.reshape %[[IOTA]]
// LIFT-DAG: %[[COLUMNS:.*]] = tile.broadcast %[[FLAT]] : tensor<1x64xi32> -> tensor<16x64xi32>
// LIFT-DAG: %[[ROWS:.*]] = tile.broadcast %{{.*}} : tensor<16x1xi32> -> tensor<16x64xi32>
// LIFT: scf.for %[[K:.*]] = %c0_i32
// LIFT-DAG: %[[BY:.*]] = tensor.splat %[[K]] : tensor<16x64xi32>
// LIFT-DAG: %[[I:.*]] = arith.addi %[[ROWS]], %[[BY]] {tile.hoisted}
// LIFT-DAG: %[[J:.*]] = arith.addi %[[COLUMNS]], %{{.*}} {tile.hoisted}
// LIFT-DAG: %[[D:.*]] = tile.broadcast
// LIFT: tile.gather %{{.*}}[%[[D]], %[[I]], %[[J]]]
func.func @indices(%A: memref<?x?x?xf32, strided<[?, ?, 1]>>, %Z: memref<?x?xf32, strided<[?, 1]>>, %r: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<16x64xf32>
  %n = tile.dim %A, 2 : memref<?x?x?xf32, strided<[?, ?, 1]>>
  %tiles = arith.ceildivsi %n, %c64 : i32
  %start = tensor.splat %r : tensor<16xi32>
  %row = tile.iota : tensor<16xi32>
  %rows = arith.addi %start, %row : tensor<16xi32>
  %column = tile.iota : tensor<64xi32>
  %sum = scf.for %k = %c0 to %tiles step %c1 iter_args(%s = %zero) -> (tensor<16x64xf32>) : i32 {
    %by = tensor.splat %k : tensor<16xi32>
    %i = arith.addi %rows, %by : tensor<16xi32>
    %i2 = tile.reshape %i : tensor<16xi32> -> tensor<16x1xi32>
    %i3 = tile.broadcast %i2 : tensor<16x1xi32> -> tensor<16x64xi32>
    %first = arith.muli %k, %c64 : i32
    %from = tensor.splat %first : tensor<64xi32>
    %j = arith.addi %from, %column : tensor<64xi32>
    %j2 = tile.reshape %j : tensor<64xi32> -> tensor<1x64xi32>
    %j3 = tile.broadcast %j2 : tensor<1x64xi32> -> tensor<16x64xi32>
    %less = arith.subi %k, %r : i32
    %down = tensor.splat %less : tensor<16xi32>
    %d = arith.addi %rows, %down : tensor<16xi32>
    %d2 = tile.reshape %d : tensor<16xi32> -> tensor<16x1xi32>
    %d3 = tile.broadcast %d2 : tensor<16x1xi32> -> tensor<16x64xi32>
    %t = tile.gather %A[%d3, %i3, %j3] else %zero : tensor<16x64xf32> {check_bounds} : memref<?x?x?xf32, strided<[?, ?, 1]>>, tensor<16x64xi32>, tensor<16x64xi32>, tensor<16x64xi32> -> tensor<16x64xf32>
    %next = arith.addf %s, %t : tensor<16x64xf32>
    scf.yield %next : tensor<16x64xf32>
  }
  tile.store %sum, %Z[%c0, %c0] : tensor<16x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
  return
}
