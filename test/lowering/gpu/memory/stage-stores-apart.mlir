// RUN: tw-opt %s -pass-pipeline='builtin.module(func.func(tile-promote-memory))' 2>/dev/null | FileCheck %s

!C = memref<?x?xbf16, strided<[?, 1]>>
#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

module attributes {tile.target = "sm_90a"} {
  // Stores to two tiles of an array go through one buffer.
  // CHECK-LABEL: func.func @halves
  // CHECK: %[[B:.*]] = tile.alloc_shared
  // CHECK-NOT: tile.alloc_shared
  // CHECK: tile.tma_store %{{.*}} through %[[B]]
  // CHECK: tile.tma_store %{{.*}} through %[[B]]
  // CHECK-NEXT: tile.tma_store_wait %[[B]]
  // CHECK-NEXT: return
  func.func @halves(%c: !C {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %i: i32) attributes {tile.kernel, tile.async_mma, tile.hints = {num_warps = 4 : i32}} {
    %t = arith.constant dense<1.0> : tensor<64x64xbf16, #acc>
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %even = arith.muli %i, %c2 : i32
    %odd = arith.addi %even, %c1 : i32
    tile.store %t, %c[%i, %even] : tensor<64x64xbf16, #acc>, !C, i32, i32
    tile.store %t, %c[%i, %odd] : tensor<64x64xbf16, #acc>, !C, i32, i32
    return
  }

  // Not to tiles that may be one, or in a loop that may come back to them.
  // CHECK-LABEL: func.func @maybe_one
  // CHECK-NOT: tile.tma_store
  // CHECK: return
  func.func @maybe_one(%c: !C {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %i: i32, %j: i32) attributes {tile.kernel, tile.async_mma, tile.hints = {num_warps = 4 : i32}} {
    %t = arith.constant dense<1.0> : tensor<64x64xbf16, #acc>
    tile.store %t, %c[%i, %i] : tensor<64x64xbf16, #acc>, !C, i32, i32
    tile.store %t, %c[%i, %j] : tensor<64x64xbf16, #acc>, !C, i32, i32
    return
  }

  // CHECK-LABEL: func.func @in_a_loop
  // CHECK-NOT: tile.tma_store
  // CHECK: return
  func.func @in_a_loop(%c: !C {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %n: i32) attributes {tile.kernel, tile.async_mma, tile.hints = {num_warps = 4 : i32}} {
    %t = arith.constant dense<1.0> : tensor<64x64xbf16, #acc>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %k = %c0 to %n step %c1 : i32 {
      %next = arith.addi %k, %c1 : i32
      tile.store %t, %c[%c0, %k] : tensor<64x64xbf16, #acc>, !C, i32, i32
      tile.store %t, %c[%c0, %next] : tensor<64x64xbf16, #acc>, !C, i32, i32
    }
    return
  }
}
