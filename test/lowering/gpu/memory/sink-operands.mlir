// An operand of multiply-adds is read and converted right before its product, not before an earlier one.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-assign-layouts,tile-promote-memory,tile-pipeline))' | FileCheck %s

// CHECK-LABEL: @two
// CHECK: scf.for
// CHECK: tile.local_load
// CHECK-NEXT: tile.local_load
// CHECK-NEXT: %[[S:.*]] = tile.mma
// CHECK-NEXT: %[[P:.*]] = tile.convert_layout %[[S]]
// CHECK-NEXT: %[[V:.*]] = tile.local_load
// CHECK-NEXT: tile.mma %[[P]], %[[V]]
module attributes {tile.target = "sm_80"} {
  func.func @two(%a: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %q = tile.load %a[%c0, %c0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<64x64xf32>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %k = tile.load %a[%c0, %i] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<64x64xf32>
      %v = tile.load %a[%i, %c0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<64x64xf32>
      %s = tile.mma %q, %k, %zero : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
      %m = tile.mma %s, %v, %acc : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
      scf.yield %m : tensor<64x64xf32>
    }
    tile.store %sum, %a[%c0, %c0] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
