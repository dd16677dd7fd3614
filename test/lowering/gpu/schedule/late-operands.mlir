// Where registers are short, what a product reads from registers is made behind the waits in front of it.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-sink-waits))' | FileCheck %s

#l = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#w = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [0, 8], [0, 16], [0, 32]]>
#t = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128]]>
!S = !tile.buffer<1x64x64xbf16, #s>
!F = tensor<64x64xf32, #l>
!B = tensor<64x64xbf16, #l>
!T = tensor<64x256xf32, #w>
!W = !tile.buffer<1x64x256xbf16, #t>

// The operand and the initial sum of the second product, beside another tile.
// CHECK-LABEL: @short
func.func @short(%c: !T, %other: !T) -> (!T, !T) {
  %z = arith.constant 0 : i32
  %f = arith.constant dense<0.5> : !T
  %zero = arith.constant dense<0.0> : !F
  %b = tile.alloc_shared : !S
  %v = tile.alloc_shared : !W
  // CHECK: tile.async_mma
  // CHECK-NEXT: tile.mma_wait
  // CHECK-NEXT: %[[N:.*]] = arith.truncf
  // CHECK-NEXT: %[[L:.*]] = tile.local_load
  // CHECK-NEXT: %[[A:.*]] = arith.mulf %[[L]], %[[N]]
  // CHECK: %[[I:.*]] = arith.mulf %{{.*}} : tensor<64x256xf32
  // CHECK-NEXT: tile.async_mma %[[A]], {{.*}}, %[[I]]
  %i = arith.mulf %c, %f : !T
  %l = tile.local_load %b[%z] : !S -> !B
  %x = tile.async_mma %b[%z], %b[%z], %zero : !S, !S, !F -> !F
  %x2 = tile.mma_wait %x, 0 : !F -> !F
  %n = arith.truncf %x2 : !F to !B
  %a = arith.mulf %l, %n : !B
  %y = tile.async_mma %a, %v[%z], %i : !B, !W, !T -> !T
  %y2 = tile.mma_wait %y, 0 : !T -> !T
  return %y2, %other : !T, !T
}

// Not past a store to the buffer.
// CHECK-LABEL: @stored
func.func @stored(%c: !T, %other: !T) -> (!T, !T) {
  %z = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : !F
  %b = tile.alloc_shared : !S
  %d = tile.alloc_shared : !S
  %v = tile.alloc_shared : !W
  // CHECK: tile.local_load
  // CHECK: tile.mma_wait
  // CHECK: tile.local_store
  // CHECK-NEXT: arith.mulf
  // CHECK-NEXT: tile.async_mma
  %l = tile.local_load %b[%z] : !S -> !B
  %x = tile.async_mma %d[%z], %d[%z], %zero : !S, !S, !F -> !F
  %x2 = tile.mma_wait %x, 0 : !F -> !F
  %n = arith.truncf %x2 : !F to !B
  tile.local_store %n, %b[%z] : !B, !S
  %a = arith.mulf %l, %n : !B
  %y = tile.async_mma %a, %v[%z], %c : !B, !W, !T -> !T
  %y2 = tile.mma_wait %y, 0 : !T -> !T
  return %y2, %other : !T, !T
}

// What fits is made while a product runs.
// CHECK-LABEL: @enough
func.func @enough(%c: !F) -> !F {
  %z = arith.constant 0 : i32
  %f = arith.constant dense<0.5> : !F
  %zero = arith.constant dense<0.0> : !F
  %b = tile.alloc_shared : !S
  // CHECK: arith.mulf
  // CHECK: tile.async_mma
  // CHECK-NEXT: tile.mma_wait
  // CHECK-NEXT: arith.truncf
  // CHECK-NEXT: tile.async_mma
  %i = arith.mulf %c, %f : !F
  %x = tile.async_mma %b[%z], %b[%z], %zero : !S, !S, !F -> !F
  %x2 = tile.mma_wait %x, 0 : !F -> !F
  %n = arith.truncf %x2 : !F to !B
  %y = tile.async_mma %n, %b[%z], %i : !B, !S, !F -> !F
  %y2 = tile.mma_wait %y, 0 : !F -> !F
  return %y2 : !F
}
