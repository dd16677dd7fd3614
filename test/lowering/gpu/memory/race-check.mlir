// With tile.race_check, every wait waits for everything and every access stands between barriers.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-insert-barriers))' | FileCheck %s

#l = #tile.linear<register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]]>
module {
  // CHECK-LABEL: @shared
  func.func @shared(%x: tensor<64x16xf32, #l>, %slot: i32) -> tensor<64x16xf32, #l> attributes {tile.kernel, tile.hints = {race_check = 1 : i32}} {
    %b = tile.alloc_shared : !tile.buffer<2x64x16xf32, #s>
    // CHECK: tile.async_wait 0
    // CHECK-NEXT: tile.barrier
    // CHECK-NEXT: tile.local_store
    // CHECK-NEXT: tile.async_wait 0
    // CHECK-NEXT: tile.barrier
    tile.local_store %x, %b[%slot] : tensor<64x16xf32, #l>, !tile.buffer<2x64x16xf32, #s>
    // CHECK-NOT: tile.async_wait 2
    tile.async_wait 2
    // CHECK: tile.local_load
    // CHECK-NEXT: tile.async_wait 0
    // CHECK-NEXT: tile.barrier
    %y = tile.local_load %b[%slot] : !tile.buffer<2x64x16xf32, #s> -> tensor<64x16xf32, #l>
    return %y : tensor<64x16xf32, #l>
  }
}

// -----

#l = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [0, 8], [0, 16], [0, 32]]>
module {
  // A product that would run into the next iteration is waited for where it is.
  // CHECK-LABEL: @product
  func.func @product(%a: !tile.buffer<2x64x64xbf16, #s>, %c: tensor<64x64xf32, #l>, %n: i32) -> tensor<64x64xf32, #l> attributes {tile.kernel, tile.hints = {race_check = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c) -> tensor<64x64xf32, #l> : i32 {
      // CHECK: tile.barrier
      // CHECK-NEXT: %[[D:.*]] = tile.async_mma
      // CHECK-NEXT: %[[E:.*]] = tile.mma_wait %[[D]], 0
      // CHECK-NEXT: tile.async_wait 0
      // CHECK-NEXT: tile.barrier
      // CHECK: %[[W:.*]] = tile.mma_wait %[[E]], 0
      // CHECK: scf.yield %[[W]]
      %d = tile.async_mma %a[%c0], %a[%c1], %acc : !tile.buffer<2x64x64xbf16, #s>, !tile.buffer<2x64x64xbf16, #s>, tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
      %w = tile.mma_wait %d, 1 : tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
      scf.yield %w : tensor<64x64xf32, #l>
    }
    return %r : tensor<64x64xf32, #l>
  }
}

// -----

// Without the attribute nothing changes.
// CHECK-LABEL: @usual
func.func @usual() attributes {tile.kernel} {
  // CHECK-NEXT: tile.async_wait 2
  // CHECK-NEXT: return
  tile.async_wait 2
  return
}

// -----

#l = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module {
  // What is on its way to memory has been read before anything goes on.
  // CHECK-LABEL: @result
  func.func @result(%x: tensor<64x64xbf16, #l>, %a: memref<?x?xbf16, strided<[?, 1]>>, %i: i32) attributes {tile.kernel, tile.hints = {race_check = 1 : i32}} {
    %b = tile.alloc_shared : !tile.buffer<1x64x64xbf16, #s>
    // CHECK: tile.barrier
    // CHECK-NEXT: tile.tma_store
    // CHECK-NEXT: tile.tma_store_wait
    // CHECK-NEXT: tile.async_wait 0
    // CHECK-NEXT: tile.barrier
    // CHECK: return
    tile.tma_store %x through %b into %a[%i, %i] : tensor<64x64xbf16, #l> through !tile.buffer<1x64x64xbf16, #s> into memref<?x?xbf16, strided<[?, 1]>>, i32, i32
    return
  }
}
