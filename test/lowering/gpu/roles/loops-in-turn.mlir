// Two loops that take the tiles of two products in turn: each store finds another place each time, as the quotient and
// the rest of a number show before these are optimized; both go through one buffer, and both products through one ring.
// Sums that a loop starts are zeros, for ptxas would keep registers for each of them all the time.
// RUN: tw-opt %s -pass-pipeline='builtin.module(func.func(tile-qualify-accesses,tile-plan-block,tile-strip-mine,tile-select-mma,tile-plan-grid,tile-persistent-loop,tile-optimize-indices,tile-assign-layouts,tile-promote-memory,tile-sink-waits,tile-specialize-warps))' 2>/dev/null | FileCheck %s

!A = memref<?x?xbf16, strided<[?, 1]>>

// CHECK-LABEL: @in_turn
// CHECK-NOT: ub.poison : tensor<128x128xf32
// CHECK: tile.tma_store %{{.*}} through %[[B:.*]] into %{{.*}}tile.moves
// CHECK-NOT: ub.poison : tensor<128x128xf32
// CHECK: tile.tma_store %{{.*}} through %[[B]] into %{{.*}}tile.moves
module attributes {tile.target = "sm_90a"} {
  func.func @in_turn(%a: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %b: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %c: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %d: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %n: i32 {tile.div = 1 : i32}, %k: i32 {tile.div = 1 : i32}) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c132 = arith.constant 132 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %first = tile.block_id 0
    scf.for %t = %first to %n step %c132 : i32 {
      %i = arith.floordivsi %t, %k : i32
      %j = arith.remsi %t, %k : i32
      %s = scf.for %p = %c0 to %k step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
        %x = tile.load %a[%i, %p] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
        %y = tile.load %b[%p, %j] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
        %m = tile.mma %x, %y, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
        scf.yield %m : tensor<128x128xf32>
      }
      %o = arith.truncf %s : tensor<128x128xf32> to tensor<128x128xbf16>
      tile.store %o, %c[%i, %j] : tensor<128x128xbf16>, !A, i32, i32
    }
    scf.for %t = %first to %n step %c132 : i32 {
      %i = arith.floordivsi %t, %k : i32
      %j = arith.remsi %t, %k : i32
      %s = scf.for %p = %c0 to %k step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
        %x = tile.load %b[%i, %p] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
        %y = tile.load %a[%p, %j] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
        %m = tile.mma %x, %y, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
        scf.yield %m : tensor<128x128xf32>
      }
      %o = arith.truncf %s : tensor<128x128xf32> to tensor<128x128xbf16>
      tile.store %o, %d[%i, %j] : tensor<128x128xbf16>, !A, i32, i32
    }
    return
  }
}
