// How many stages the multi-stage buffers of a loop in a loop get: what the outer one brings does with one stage where shared memory is
// short, and a stage that goes back an iteration late counts for less.
// RUN: tw-opt %s -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-plan-grid,tile-persistent-loop,tile-assign-layouts,tile-promote-memory,tile-sink-waits,tile-specialize-warps))' 2>&1 | FileCheck %s

!A = memref<?x?xbf16, strided<[?, 1]>>

// CHECK: into a buffer of 1 stages of 65536 bytes
// CHECK: into a buffer of 5 stages of 16384 bytes
// CHECK: into a buffer of 3 stages of 16384 bytes
module attributes {tile.target = "sm_90a"} {
  func.func @gradient(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %start = arith.constant dense<0.0> : tensor<128x128xf32>
    %b = tile.block_id 0
    %q = tile.load %x[%b, %c0] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
    %dy = tile.load %x[%b, %c1] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%dq = %start) -> (tensor<128x128xf32>) : i32 {
      %k = tile.load %w[%i, %c0] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %v = tile.load %w[%i, %c1] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %kt = tile.permute %k [1, 0] : tensor<64x128xbf16>
      %vt = tile.permute %v [1, 0] : tensor<64x128xbf16>
      %s = tile.mma %q, %kt, %zero : tensor<128x128xbf16>, tensor<128x64xbf16>, tensor<128x64xf32>
      %d = tile.mma %dy, %vt, %zero : tensor<128x128xbf16>, tensor<128x64xbf16>, tensor<128x64xf32>
      %m = arith.mulf %s, %d : tensor<128x64xf32>
      %ds = arith.truncf %m : tensor<128x64xf32> to tensor<128x64xbf16>
      %dq2 = tile.mma %ds, %k, %dq : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %dq2 : tensor<128x128xf32>
    }
    %o = arith.truncf %r : tensor<128x128xf32> to tensor<128x128xbf16>
    tile.store %o, %y[%b, %c0] : tensor<128x128xbf16>, !A, i32, i32
    return
  }
}
