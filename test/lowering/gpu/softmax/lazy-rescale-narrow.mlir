// Weights that become 8 bits with a largest number of 448 may not grow above it: they would saturate.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-online-softmax),canonicalize,cse)' | FileCheck %s

!A = memref<?x?xf8E4M3FN, strided<[?, 1]>>
!F = memref<?x?xf32, strided<[?, 1]>>

// CHECK-DAG: %[[LIMIT:.*]] = arith.constant dense<4.480000e+02> : tensor<64x4xf32>
// CHECK: %[[FAR:.*]] = arith.cmpf ugt, %{{.*}}, %[[LIMIT]]
// CHECK: tile.warp_any %[[FAR]]
module attributes {tile.target = "sm_90a"} {
  func.func @narrow(%q: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 16, 1>}, %k: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 16, 1>}, %y: !F, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %low = arith.constant dense<0xFF800000> : tensor<64x1xf32>
    %a = tile.load %q[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf8E4M3FN>
    %r:2 = scf.for %j = %c0 to %n step %c1 iter_args(%m = %low, %acc = %zero) -> (tensor<64x1xf32>, tensor<64x64xf32>) : i32 {
      %b = tile.load %k[%j, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf8E4M3FN>
      %bt = tile.permute %b [1, 0] : tensor<64x64xf8E4M3FN>
      %s = tile.mma %a, %bt, %zero : tensor<64x64xf8E4M3FN>, tensor<64x64xf8E4M3FN>, tensor<64x64xf32>
      %x = tile.reduce max, %s axis 1 : tensor<64x64xf32>
      %xr = tile.reshape %x : tensor<64xf32> -> tensor<64x1xf32>
      %m2 = arith.maximumf %m, %xr : tensor<64x1xf32>
      %mb = tile.broadcast %m2 : tensor<64x1xf32> -> tensor<64x64xf32>
      %d = arith.subf %s, %mb : tensor<64x64xf32>
      %p = math.exp2 %d : tensor<64x64xf32>
      %g = arith.subf %m, %m2 : tensor<64x1xf32>
      %f = math.exp2 %g : tensor<64x1xf32>
      %fb = tile.broadcast %f : tensor<64x1xf32> -> tensor<64x64xf32>
      %af = arith.mulf %acc, %fb : tensor<64x64xf32>
      %h = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xf8E4M3FN>
      %o = tile.mma %h, %bt, %af : tensor<64x64xf8E4M3FN>, tensor<64x64xf8E4M3FN>, tensor<64x64xf32>
      scf.yield %m2, %o : tensor<64x1xf32>, tensor<64x64xf32>
    }
    %z = arith.divf %r#1, %r#1 : tensor<64x64xf32>
    tile.store %z, %y[%c0, %c0] : tensor<64x64xf32>, !F, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf8E4M3FN, strided<[?, 1]>>
!F = memref<?x?xf32, strided<[?, 1]>>

// Weights with signs: sums of them say nothing about the largest.
// CHECK-LABEL: @signed
// CHECK-NOT: tile.warp_any
module attributes {tile.target = "sm_90a"} {
  func.func @signed(%q: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 16, 1>}, %k: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 16, 1>}, %y: !F, %g0: !F, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %low = arith.constant dense<0xFF800000> : tensor<64x1xf32>
    %a = tile.load %q[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf8E4M3FN>
    %r:2 = scf.for %j = %c0 to %n step %c1 iter_args(%m = %low, %acc = %zero) -> (tensor<64x1xf32>, tensor<64x64xf32>) : i32 {
      %b = tile.load %k[%j, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf8E4M3FN>
      %bt = tile.permute %b [1, 0] : tensor<64x64xf8E4M3FN>
      %s = tile.mma %a, %bt, %zero : tensor<64x64xf8E4M3FN>, tensor<64x64xf8E4M3FN>, tensor<64x64xf32>
      %x = tile.reduce max, %s axis 1 : tensor<64x64xf32>
      %xr = tile.reshape %x : tensor<64xf32> -> tensor<64x1xf32>
      %m2 = arith.maximumf %m, %xr : tensor<64x1xf32>
      %mb = tile.broadcast %m2 : tensor<64x1xf32> -> tensor<64x64xf32>
      %d = arith.subf %s, %mb : tensor<64x64xf32>
      %p = math.exp2 %d : tensor<64x64xf32>
      %g = arith.subf %m, %m2 : tensor<64x1xf32>
      %f = math.exp2 %g : tensor<64x1xf32>
      %fb = tile.broadcast %f : tensor<64x1xf32> -> tensor<64x64xf32>
      %af = arith.mulf %acc, %fb : tensor<64x64xf32>
      %sign = tile.load %g0[%c0, %c0] padding zero : !F, i32, i32 -> tensor<64x64xf32>
      %ps = arith.mulf %p, %sign : tensor<64x64xf32>
      %h = arith.truncf %ps : tensor<64x64xf32> to tensor<64x64xf8E4M3FN>
      %o = tile.mma %h, %bt, %af : tensor<64x64xf8E4M3FN>, tensor<64x64xf8E4M3FN>, tensor<64x64xf32>
      scf.yield %m2, %o : tensor<64x1xf32>, tensor<64x64xf32>
    }
    %z = arith.divf %r#1, %r#1 : tensor<64x64xf32>
    tile.store %z, %y[%c0, %c0] : tensor<64x64xf32>, !F, i32, i32
    return
  }
}
