// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-canonicalize),canonicalize,cse)' | FileCheck %s

// A scalar by a known number, a tile by one that is not known.
// CHECK-LABEL: @advanced
// CHECK: scf.for %[[K:.*]] = %c0_i32 to %arg1 step %c4_i32
// CHECK: %[[TWICE:.*]] = arith.muli %[[K]], %c2_i32
// CHECK: %[[P:.*]] = arith.addi %arg2, %[[TWICE]]
// CHECK: tile.print {{.*}}%[[P]]
func.func @advanced(%x: i32, %n: i32, %first: i32) {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %c8 = arith.constant 8 : i32
  %r = scf.for %k = %c0 to %n step %c4 iter_args(%p = %first) -> (i32) : i32 {
    tile.print "{}", %p : i32
    %next = arith.addi %p, %c8 : i32
    scf.yield %next : i32
  }
  return
}

// -----

// CHECK-LABEL: @tiles
// CHECK: scf.for %[[K:.*]] = %c0_i32 to %arg0 step %c1_i32 iter_args(%{{.*}} = %arg2)
// CHECK: %[[BY:.*]] = arith.muli %[[K]], %arg1
// CHECK: %[[ALL:.*]] = tensor.splat %[[BY]]
// CHECK: arith.addi %arg3, %[[ALL]]
func.func @tiles(%n: i32, %s: i32, %a: tensor<8xf32>, %first: tensor<8xi32>, %x: memref<?xf32, strided<[1]>>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %by = tensor.splat %s : tensor<8xi32>
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %a, %p = %first) -> (tensor<8xf32>, tensor<8xi32>) : i32 {
    %t = tile.gather %x[%p] : memref<?xf32, strided<[1]>>, tensor<8xi32> -> tensor<8xf32>
    %sum = arith.addf %acc, %t : tensor<8xf32>
    %next = arith.addi %p, %by : tensor<8xi32>
    scf.yield %sum, %next : tensor<8xf32>, tensor<8xi32>
  }
  return %r#0 : tensor<8xf32>
}
