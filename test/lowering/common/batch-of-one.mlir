// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-canonicalize),canonicalize,cse)' | FileCheck %s

!m = memref<?x?x?xf16, strided<[?, ?, 1]>>

// Operands, the sum that loops carry, and what is added up in front are matrices; what is stored is a view.
// CHECK-LABEL: @batch
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<16x32xf32>
// CHECK: scf.for {{.*}} iter_args(%[[X:.*]] = %[[ZERO]]) -> (tensor<16x32xf32>)
// CHECK: %[[INNER:.*]] = scf.for {{.*}} iter_args(%[[Y:.*]] = %[[X]]) -> (tensor<16x32xf32>)
// CHECK: %[[B:.*]] = tile.permute %{{.*}} [1, 0] : tensor<32x8xf16>
// CHECK: %[[P:.*]] = tile.mma %{{.*}}, %[[B]], %[[Y]] : tensor<16x8xf16>, tensor<8x32xf16>, tensor<16x32xf32>
// CHECK: scf.yield %[[P]]
// CHECK: scf.yield %[[INNER]]
// CHECK: tile.reshape %{{.*}} : tensor<16x32xf32> -> tensor<1x16x32xf32>
func.func @batch(%A: !m, %n: i32) -> tensor<1x16x32xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x16x32xf32>
  %r = scf.for %z = %c0 to %n step %c1 iter_args(%x = %zero) -> tensor<1x16x32xf32> : i32 {
    %s = scf.for %k = %c0 to %n step %c1 iter_args(%y = %x) -> tensor<1x16x32xf32> : i32 {
      %a = tile.load %A[%z, %c0, %k] : !m, i32, i32, i32 -> tensor<1x16x8xf16>
      %w = tile.load %A[%z, %c1, %k] : !m, i32, i32, i32 -> tensor<1x32x8xf16>
      %b = tile.permute %w [0, 2, 1] : tensor<1x32x8xf16>
      %p = tile.mma %a, %b, %y : tensor<1x16x8xf16>, tensor<1x8x32xf16>, tensor<1x16x32xf32>
      scf.yield %p : tensor<1x16x32xf32>
    }
    scf.yield %s : tensor<1x16x32xf32>
  }
  return %r : tensor<1x16x32xf32>
}

// -----

// A batch of two stays.
// CHECK-LABEL: @other
// CHECK: tile.mma {{.*}} : tensor<2x16x16xf16>, tensor<2x16x16xf16>, tensor<2x16x16xf32>
func.func @other(%a: tensor<2x16x16xf16>, %c: tensor<2x16x16xf32>) -> tensor<2x16x16xf32> {
  %p = tile.mma %a, %a, %c : tensor<2x16x16xf16>, tensor<2x16x16xf16>, tensor<2x16x16xf32>
  return %p : tensor<2x16x16xf32>
}

// -----

!m = memref<?x?x?xf16, strided<[?, ?, 1]>>

// So is what the program makes a matrix of behind a permute; what turns a batch of two is no matrix.
// CHECK-LABEL: @turned
// CHECK: %[[W:.*]] = tile.load {{.*}} -> tensor<1x32x8xf16>
// CHECK: %[[M:.*]] = tile.reshape %[[W]] : tensor<1x32x8xf16> -> tensor<32x8xf16>
// CHECK: %[[B:.*]] = tile.permute %[[M]] [1, 0] : tensor<32x8xf16>
// CHECK: tile.mma %arg1, %[[B]]
// CHECK: tile.permute %{{.*}} [0, 2, 1] : tensor<2x8x16xf16>
func.func @turned(%A: !m, %a: tensor<16x8xf16>, %c: tensor<16x32xf32>, %two: tensor<2x8x16xf16>) -> (tensor<16x32xf32>, tensor<32x8xf16>) {
  %c0 = arith.constant 0 : i32
  %w = tile.load %A[%c0, %c0, %c0] : !m, i32, i32, i32 -> tensor<1x32x8xf16>
  %t = tile.permute %w [0, 2, 1] : tensor<1x32x8xf16>
  %b = tile.reshape %t : tensor<1x8x32xf16> -> tensor<8x32xf16>
  %p = tile.mma %a, %b, %c : tensor<16x8xf16>, tensor<8x32xf16>, tensor<16x32xf32>
  %u = tile.permute %two [0, 2, 1] : tensor<2x8x16xf16>
  %v = tile.reshape %u : tensor<2x16x8xf16> -> tensor<32x8xf16>
  return %p, %v : tensor<16x32xf32>, tensor<32x8xf16>
}
