// Rows that begin anywhere go through shared memory an element at a time, where each lane has a bank as well when it has
// neighbours that fill a word: weights come as words then.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-assign-layouts))' 2>/dev/null | FileCheck %s

// CHECK: #[[WORDS:.*]] = #tile.linear<register = {{\[\[}}0, 1], {{.*}}], lane = {{\[\[}}0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], warp = {{\[\[}}0, 64], [0, 128]]>
// CHECK: func.func @weighted
// CHECK: tile.load %arg0{{.*}} -> tensor<1x4096xbf16, #[[WORDS]]>
// CHECK: tile.store %{{.*}}, %arg0{{.*}} : tensor<1x4096xbf16, #[[WORDS]]>
!A = memref<?x?xbf16, strided<[?, 1]>>
!W = memref<?xbf16, strided<[1]>>
module attributes {tile.target = "sm_90a"} {
  func.func @weighted(%x: !A {tile.align = 16 : i32}, %w: !W {tile.align = 16 : i32}) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %i = tile.block_id 0
    %c0 = arith.constant 0 : i32
    %a = tile.load %x[%i, %c0] : !A, i32, i32 -> tensor<1x4096xbf16>
    %b = tile.load %w[%c0] : !W, i32 -> tensor<4096xbf16>
    %c = tile.reshape %b : tensor<4096xbf16> -> tensor<1x4096xbf16>
    %y = arith.mulf %a, %c : tensor<1x4096xbf16>
    tile.store %y, %x[%i, %c0] : tensor<1x4096xbf16>, !A, i32, i32
    return
  }
}
