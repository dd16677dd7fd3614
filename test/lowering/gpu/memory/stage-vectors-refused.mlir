// RUN: tw-opt %s -pass-pipeline='builtin.module(func.func(tile-prefetch-loads))' | FileCheck %s

// What few threads hold, what is written, no tensor map describes, or has no place that is known ahead stays as it is.
#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
#vector = #tile.linear<register = [[1], [8], [16], [32]], lane = [[2], [4], [0], [0], [0]], warp = [[0], [0], [0]]>
#own = #tile.linear<lane = [[1], [2], [4], [8], [16]], warp = [[32], [64], [128]]>
#a = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#b = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!A = memref<?x?xbf16, strided<[?, 1]>>
!V = memref<?xf32, strided<[1]>>
!D = tensor<128x64xf32, #acc>
!X = tensor<64xf32, #vector>

// CHECK-LABEL: @left
// CHECK: scf.for
// CHECK: tile.async_copy
// CHECK-NOT: tile.async_copy
// CHECK-NOT: tile.local_load
// CHECK-COUNT-4: tile.load
module attributes {tile.target = "sm_90a"} {
  func.func @left(%x: !A {tile.tma}, %v: !V {tile.tma}, %other: !V, %y: !V {tile.tma}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32, %init: !D) attributes {tile.kernel, tile.async_mma, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !D
    %a = tile.alloc_shared : !tile.buffer<1x128x64xbf16, #a>
    %b = tile.alloc_shared : !tile.buffer<1x64x64xbf16, #b>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %init, %at = %c0) -> (!D, i32) : i32 {
      tile.async_copy %x[%i, %c0] into %b[%c0] : !A, i32, i32 into !tile.buffer<1x64x64xbf16, #b>
      tile.async_commit
      tile.async_wait 0
      tile.barrier {tile.copies}
      tile.barrier {tile.copies}
      %d = tile.async_mma %a[%c0], %b[%c0], %zero {transposed_rhs} : !tile.buffer<1x128x64xbf16, #a>, !tile.buffer<1x64x64xbf16, #b>, !D -> !D
      %w = tile.mma_wait %d, 0 : !D -> !D
      tile.barrier {tile.copies}
      %few = tile.load %v[%i] padding zero : !V, i32 -> tensor<256xf32, #own>
      tile.store %few, %y[%i] : tensor<256xf32, #own>, !V, i32
      %written = tile.load %y[%i] padding zero : !V, i32 -> !X
      tile.store %written, %y[%i] : !X, !V, i32
      %undescribed = tile.load %other[%i] padding zero : !V, i32 -> !X
      tile.store %undescribed, %y[%i] : !X, !V, i32
      %carried = tile.load %v[%at] padding zero : !V, i32 -> !X
      tile.store %carried, %y[%i] : !X, !V, i32
      %next = arith.muli %at, %i : i32
      scf.yield %w, %next : !D, i32
    }
    tile.store %r#0, %z[%c0, %c0] : !D, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
