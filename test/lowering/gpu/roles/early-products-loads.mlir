// A product that each iteration waits for starts before what comes an iteration early, if that is read behind the wait.
// RUN: tw-opt %s -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-assign-layouts,tile-promote-memory,tile-sink-waits,tile-prefetch-loads,tile-specialize-warps),canonicalize,cse)' 2>/dev/null | FileCheck %s

!A = memref<?x?xf8E4M3FN, strided<[?, 1]>>
!S = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: @beside_loads
// CHECK: consumer {
// CHECK: scf.for
// CHECK: tile.barrier_wait
// CHECK-NEXT: %[[D:.*]] = tile.async_mma
// CHECK: tile.settle
// CHECK: tile.load %arg2
// CHECK: tile.mma_wait %[[D]], 0
// What is only read in front of the wait is loaded in front of the product.
// CHECK-LABEL: @in_front
// CHECK: consumer {
// CHECK: scf.for
// CHECK: tile.load %arg2
// CHECK: tile.async_mma
module attributes {tile.target = "sm_90a"} {
  func.func @beside_loads(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 16, 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 16, 1>}, %f: !S, %y: !S, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %g = tile.load %f[%c0, %i] padding zero : !S, i32, i32 -> tensor<128x1xf32>
      %a = tile.load %x[%c0, %i] padding zero : !A, i32, i32 -> tensor<128x128xf8E4M3FN>
      %b = tile.load %w[%c0, %i] padding zero : !A, i32, i32 -> tensor<128x128xf8E4M3FN>
      %t = tile.permute %b [1, 0] : tensor<128x128xf8E4M3FN>
      %d = tile.mma %a, %t, %zero : tensor<128x128xf8E4M3FN>, tensor<128x128xf8E4M3FN>, tensor<128x128xf32>
      %h = tile.broadcast %g : tensor<128x1xf32> -> tensor<128x128xf32>
      %p = arith.mulf %d, %h : tensor<128x128xf32>
      %e = arith.addf %acc, %p : tensor<128x128xf32>
      scf.yield %e : tensor<128x128xf32>
    }
    tile.store %r, %y[%c0, %c0] : tensor<128x128xf32>, !S, i32, i32
    return
  }
  func.func @in_front(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 16, 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 16, 1>}, %f: !S, %y: !S, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %g = tile.load %f[%c0, %i] padding zero : !S, i32, i32 -> tensor<128x1xf32>
      %v = arith.mulf %g, %g : tensor<128x1xf32>
      %a = tile.load %x[%c0, %i] padding zero : !A, i32, i32 -> tensor<128x128xf8E4M3FN>
      %b = tile.load %w[%c0, %i] padding zero : !A, i32, i32 -> tensor<128x128xf8E4M3FN>
      %t = tile.permute %b [1, 0] : tensor<128x128xf8E4M3FN>
      %d = tile.mma %a, %t, %zero : tensor<128x128xf8E4M3FN>, tensor<128x128xf8E4M3FN>, tensor<128x128xf32>
      %h = tile.broadcast %v : tensor<128x1xf32> -> tensor<128x128xf32>
      %p = arith.mulf %d, %h : tensor<128x128xf32>
      %e = arith.addf %acc, %p : tensor<128x128xf32>
      scf.yield %e : tensor<128x128xf32>
    }
    tile.store %r, %y[%c0, %c0] : tensor<128x128xf32>, !S, i32, i32
    return
  }
}
