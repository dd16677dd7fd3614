// A product that runs by itself is none whose tile is resized: it stays as it is.
// RUN: tw-opt %s -pass-pipeline='builtin.module(func.func(tile-resize-tiles))' | FileCheck %s

// CHECK-LABEL: @writes
// CHECK: scf.for
// CHECK: %[[P:.*]] = tile.async_mma
// CHECK: tile.mma_wait %[[P]], 0
#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
#b = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module attributes {tile.target = "sm_90a"} {
  func.func @writes(%n: i32) attributes {tile.kernel, tile.async_mma, tile.hints = {num_warps = 8 : i32}} {
    %zero = arith.constant dense<0.0> : tensor<128x64xf32, #acc>
    %left = arith.constant dense<1.0> : tensor<128x64xbf16, #acc>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared : !tile.buffer<1x64x64xbf16, #b>
    scf.for %k = %c0 to %n step %c1 : i32 {
      %p = tile.async_mma %left, %b[%c0], %zero : tensor<128x64xbf16, #acc>, !tile.buffer<1x64x64xbf16, #b>, tensor<128x64xf32, #acc> -> tensor<128x64xf32, #acc>
      %w = tile.mma_wait %p, 0 : tensor<128x64xf32, #acc> -> tensor<128x64xf32, #acc>
    }
    return
  }
}
