// Rows that begin anywhere go through shared memory.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-promote-memory))' | FileCheck %s

#l = #tile.linear<register = [[0, 64], [0, 128], [0, 256]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[0, 32]]>
!A = memref<?x?xbf16, strided<[?, 1]>>

// CHECK-LABEL: @anywhere
// CHECK: tile.load {{.*}} {tile.realigned}
// CHECK: tile.store {{.*}} {tile.realigned}
// CHECK: tile.store {{.*}} {tile.realigned}
// An array whose rows are known to begin at multiples of 16 bytes; pieces between loads; a loop, whose iterations do not
// wait for one another.
// CHECK-NOT: tile.realigned
module attributes {tile.target = "sm_90a"} {
  func.func @anywhere(%y: !A {tile.align = 16 : i32}, %by_4: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 2, 1>}, %by_16: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %i: i32) attributes {tile.kernel, tile.hints = {num_warps = 2 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %x = tile.load %y[%i, %i] padding zero : !A, i32, i32 -> tensor<1x512xbf16, #l>
    tile.store %x, %y[%i, %i] : tensor<1x512xbf16, #l>, !A, i32, i32
    tile.store %x, %by_4[%i, %i] : tensor<1x512xbf16, #l>, !A, i32, i32
    tile.store %x, %by_16[%i, %i] : tensor<1x512xbf16, #l>, !A, i32, i32
    tile.store %x, %y[%i, %i] {tile.late = 32 : i32} : tensor<1x512xbf16, #l>, !A, i32, i32
    scf.for %j = %c0 to %i step %c1 : i32 {
      %z = tile.load %y[%i, %j] padding zero : !A, i32, i32 -> tensor<1x512xbf16, #l>
      tile.store %z, %y[%i, %j] : tensor<1x512xbf16, #l>, !A, i32, i32
    }
    return
  }
}

// -----

#few = #tile.linear<register = [[0, 64], [0, 128]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[0, 32]]>
#rows = #tile.linear<register = [[0, 64], [0, 128], [1, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[0, 32]]>
#row = #tile.linear<register = [[0, 64], [0, 128], [0, 256]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[0, 32]]>
!A = memref<?x?xbf16, strided<[?, 1]>>
!T = memref<?x?xbf16, strided<[1, ?]>>

// Less than a piece for each thread; two rows; elements that lie apart.
// CHECK-LABEL: @others
// CHECK-NOT: tile.realigned
module attributes {tile.target = "sm_90a"} {
  func.func @others(%y: !A, %t: !T, %few: tensor<1x256xbf16, #few>, %rows: tensor<2x256xbf16, #rows>, %x: tensor<1x512xbf16, #row>, %i: i32) attributes {tile.kernel, tile.hints = {num_warps = 2 : i32}} {
    tile.store %few, %y[%i, %i] : tensor<1x256xbf16, #few>, !A, i32, i32
    tile.store %rows, %y[%i, %i] : tensor<2x256xbf16, #rows>, !A, i32, i32
    tile.store %x, %t[%i, %i] : tensor<1x512xbf16, #row>, !T, i32, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[0, 32], [0, 64], [0, 128], [0, 256]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]]>
!A = memref<?x?xbf16, strided<[?, 1]>>

// Blocks of one warp start packed.
// CHECK-LABEL: @one_warp
// CHECK-NOT: tile.realigned
module attributes {tile.target = "sm_90a"} {
  func.func @one_warp(%y: !A, %x: tensor<1x512xbf16, #l>, %i: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    tile.store %x, %y[%i, %i] : tensor<1x512xbf16, #l>, !A, i32, i32
    return
  }
}
