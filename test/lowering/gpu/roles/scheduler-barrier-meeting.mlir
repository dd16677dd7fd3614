// While one warpgroup has its turn, the other waits for it: the two may not meet there.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-specialize-warps))' 2>/dev/null | FileCheck %s

#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
#b = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#row = #tile.linear<register = [[1]], lane = [[2], [4], [8], [0], [0]], warp = [[16], [32], [0]]>
#column = #tile.linear<register = [[0]], lane = [[1], [2], [4], [0], [0]], warp = [[8], [16], [32]]>

// The turn is passed on before threads exchange values through shared memory.
// CHECK-LABEL: func.func @exchanges
// CHECK: tile.ordered_wait {tile.groups}
// CHECK-NEXT: tile.async_mma
// CHECK-NEXT: tile.ordered_arrive {tile.groups}
// CHECK-NEXT: tile.convert_layout
// CHECK-NEXT: tile.mma_wait
module attributes {tile.target = "sm_90a"} {
  func.func @exchanges(%n: i32, %v: tensor<64xi32, #row>) attributes {tile.kernel, tile.async_mma, tile.hints = {num_warps = 8 : i32}} {
    %zero = arith.constant dense<0.0> : tensor<128x64xf32, #acc>
    %left = arith.constant dense<1.0> : tensor<128x64xbf16, #acc>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared : !tile.buffer<1x64x64xbf16, #b>
    tile.roles producer_warps 1 producer {
    } consumer {
      scf.for %k = %c0 to %n step %c1 : i32 {
        %p = tile.async_mma %left, %b[%c0], %zero : tensor<128x64xbf16, #acc>, !tile.buffer<1x64x64xbf16, #b>, tensor<128x64xf32, #acc> -> tensor<128x64xf32, #acc>
        %c = tile.convert_layout %v : tensor<64xi32, #row> -> tensor<64xi32, #column>
        %w = tile.mma_wait %p, 0 : tensor<128x64xf32, #acc> -> tensor<128x64xf32, #acc>
        %e = math.exp2 %w : tensor<128x64xf32, #acc>
        %q = tile.async_mma %left, %b[%c0], %e : tensor<128x64xbf16, #acc>, !tile.buffer<1x64x64xbf16, #b>, tensor<128x64xf32, #acc> -> tensor<128x64xf32, #acc>
        %s = tile.mma_wait %q, 0 : tensor<128x64xf32, #acc> -> tensor<128x64xf32, #acc>
      }
    }
    return
  }
}

// -----

#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
#b = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#t = #tile.linear<register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 16], [0, 32], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0], [32, 0]]>

// What threads write they meet for before a product reads it: there are no turns.
// CHECK-LABEL: func.func @writes
// CHECK-NOT: tile.ordered
module attributes {tile.target = "sm_90a"} {
  func.func @writes(%n: i32, %v: tensor<64x64xbf16, #t>) attributes {tile.kernel, tile.async_mma, tile.hints = {num_warps = 8 : i32}} {
    %zero = arith.constant dense<0.0> : tensor<128x64xf32, #acc>
    %left = arith.constant dense<1.0> : tensor<128x64xbf16, #acc>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared : !tile.buffer<1x64x64xbf16, #b>
    tile.roles producer_warps 1 producer {
    } consumer {
      scf.for %k = %c0 to %n step %c1 : i32 {
        tile.local_store %v, %b[%c0] : tensor<64x64xbf16, #t>, !tile.buffer<1x64x64xbf16, #b>
        %p = tile.async_mma %left, %b[%c0], %zero : tensor<128x64xbf16, #acc>, !tile.buffer<1x64x64xbf16, #b>, tensor<128x64xf32, #acc> -> tensor<128x64xf32, #acc>
        %w = tile.mma_wait %p, 0 : tensor<128x64xf32, #acc> -> tensor<128x64xf32, #acc>
        %e = math.exp2 %w : tensor<128x64xf32, #acc>
        %q = tile.async_mma %left, %b[%c0], %e : tensor<128x64xbf16, #acc>, !tile.buffer<1x64x64xbf16, #b>, tensor<128x64xf32, #acc> -> tensor<128x64xf32, #acc>
        %s = tile.mma_wait %q, 0 : tensor<128x64xf32, #acc> -> tensor<128x64xf32, #acc>
      }
    }
    return
  }
}
