// Loads for products in tf32 round what the copy engine brings.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-resize-tiles))' 2>/dev/null | FileCheck %s

!M = memref<?x?xf32, strided<[?, 1]>>

// %B through a transposition, too. What is summed as it is stays; and so do an array of which nobody knows that a map
// describes it, another padding, what shall not go by the engine, and lines that are not along k.
// CHECK-LABEL: func.func @products
// CHECK: %[[A:.*]] = tile.load %arg0[%{{.*}}, %{{.*}}] padding zero {tile.cache = 1 : i32} : {{.*}} -> tensor<64x32xtf32>
// CHECK: %[[B:.*]] = tile.load %arg1[{{.*}}] padding zero : {{.*}} -> tensor<64x32xtf32>
// CHECK: %[[T:.*]] = tile.permute %[[B]] [1, 0] : tensor<64x32xtf32>
// CHECK: tile.mma %[[A]], %[[T]]
// CHECK: tile.load %arg2[{{.*}}] padding zero : {{.*}} -> tensor<64x32xf32>
// CHECK: arith.truncf
// CHECK: tile.load %arg0[{{.*}}] padding nan : {{.*}} -> tensor<64x32xf32>
// CHECK: tile.load %arg1[{{.*}}] padding zero : {{.*}} -> tensor<64x32xf32>
// CHECK: arith.addf
// CHECK: tile.load %arg1[{{.*}}] padding zero {tile.allow_tma = false} : {{.*}} -> tensor<64x32xf32>
// CHECK: tile.load %arg0[{{.*}}] padding zero : {{.*}} -> tensor<64x32xtf32>
// CHECK: tile.load %arg1[{{.*}}] padding zero : {{.*}} -> tensor<32x64xf32>
module attributes {tile.target = "sm_90a"} {
  func.func @products(%A: !M {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>}, %B: !M {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>}, %C: !M, %Z: !M, %i: i32) attributes {tile.kernel} {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %a = tile.load %A[%i, %i] padding zero {tile.cache = 1 : i32} : !M, i32, i32 -> tensor<64x32xf32>
    %ra = arith.truncf %a : tensor<64x32xf32> to tensor<64x32xtf32>
    %b = tile.load %B[%i, %i] padding zero : !M, i32, i32 -> tensor<64x32xf32>
    %rb = arith.truncf %b : tensor<64x32xf32> to tensor<64x32xtf32>
    %tb = tile.permute %rb [1, 0] : tensor<64x32xtf32>
    %d = tile.mma %ra, %tb, %zero : tensor<64x32xtf32>, tensor<32x64xtf32>, tensor<64x64xf32>
    %c = tile.load %C[%i, %i] padding zero : !M, i32, i32 -> tensor<64x32xf32>
    %rc = arith.truncf %c : tensor<64x32xf32> to tensor<64x32xtf32>
    %tc = tile.permute %rc [1, 0] : tensor<64x32xtf32>
    %n = tile.load %A[%i, %i] padding nan : !M, i32, i32 -> tensor<64x32xf32>
    %rn = arith.truncf %n : tensor<64x32xf32> to tensor<64x32xtf32>
    %e = tile.mma %rn, %tc, %d : tensor<64x32xtf32>, tensor<32x64xtf32>, tensor<64x64xf32>
    %s = tile.load %B[%i, %i] padding zero : !M, i32, i32 -> tensor<64x32xf32>
    %s2 = arith.addf %s, %s : tensor<64x32xf32>
    tile.store %s2, %Z[%i, %i] : tensor<64x32xf32>, !M, i32, i32
    %rs = arith.truncf %s : tensor<64x32xf32> to tensor<64x32xtf32>
    %w = tile.load %B[%i, %i] padding zero {tile.allow_tma = false} : !M, i32, i32 -> tensor<64x32xf32>
    %rw = arith.truncf %w : tensor<64x32xf32> to tensor<64x32xtf32>
    %tw = tile.permute %rw [1, 0] : tensor<64x32xtf32>
    %f = tile.mma %rs, %tw, %e : tensor<64x32xtf32>, tensor<32x64xtf32>, tensor<64x64xf32>
    %l = tile.load %A[%i, %i] padding zero : !M, i32, i32 -> tensor<64x32xf32>
    %rl = arith.truncf %l : tensor<64x32xf32> to tensor<64x32xtf32>
    %r = tile.load %B[%i, %i] padding zero : !M, i32, i32 -> tensor<32x64xf32>
    %rr = arith.truncf %r : tensor<32x64xf32> to tensor<32x64xtf32>
    %g = tile.mma %rl, %rr, %f : tensor<64x32xtf32>, tensor<32x64xtf32>, tensor<64x64xf32>
    tile.store %g, %Z[%i, %i] : tensor<64x64xf32>, !M, i32, i32
    return
  }
}

// -----

// Without the engine threads round what they have loaded.
// CHECK-LABEL: func.func @threads
// CHECK-COUNT-2: arith.truncf
!M = memref<?x?xf32, strided<[?, 1]>>
module attributes {tile.target = "sm_80"} {
  func.func @threads(%A: !M {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>}, %Z: !M, %i: i32) attributes {tile.kernel} {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %a = tile.load %A[%i, %i] padding zero : !M, i32, i32 -> tensor<64x32xf32>
    %ra = arith.truncf %a : tensor<64x32xf32> to tensor<64x32xtf32>
    %b = tile.load %A[%i, %i] padding zero : !M, i32, i32 -> tensor<32x64xf32>
    %rb = arith.truncf %b : tensor<32x64xf32> to tensor<32x64xtf32>
    %d = tile.mma %ra, %rb, %zero : tensor<64x32xtf32>, tensor<32x64xtf32>, tensor<64x64xf32>
    tile.store %d, %Z[%i, %i] : tensor<64x64xf32>, !M, i32, i32
    return
  }
}
