// Whether shared memory has room for the boxes of a result, beside two stages of all that loops copy.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-assign-layouts,tile-promote-memory))' 2>/dev/null | FileCheck %s

!A = memref<?x?xbf16, strided<[?, 1]>>

// Loops that follow one another copy tiles of the same form from the same arrays: they use the same stages.
// CHECK-LABEL: func.func @one_after_the_other
// CHECK: tile.tma_store %
module attributes {tile.target = "sm_90a"} {
  func.func @one_after_the_other(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %m: i32, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %r = scf.for %k = %c0 to %m step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
      %b = tile.load %y[%k, %c0] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
      %d = tile.mma %a, %b, %acc : tensor<128x128xbf16>, tensor<128x128xbf16>, tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    %s = scf.for %k = %m to %n step %c1 iter_args(%acc = %r) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
      %b = tile.load %y[%k, %c0] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
      %d = tile.mma %a, %b, %acc : tensor<128x128xbf16>, tensor<128x128xbf16>, tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    %t = arith.truncf %s : tensor<128x128xf32> to tensor<128x128xbf16>
    tile.store %t, %z[%c0, %c0] : tensor<128x128xbf16>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// In one loop they are all there at a time.
// CHECK-LABEL: func.func @at_once
// CHECK-NOT: tile.tma_store
// CHECK: tile.store
module attributes {tile.target = "sm_90a"} {
  func.func @at_once(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %s = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
      %b = tile.load %y[%k, %c0] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
      %e = tile.load %x[%c1, %k] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
      %f = tile.load %y[%k, %c1] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
      %c = tile.mma %a, %b, %acc : tensor<128x128xbf16>, tensor<128x128xbf16>, tensor<128x128xf32>
      %d = tile.mma %e, %f, %c : tensor<128x128xbf16>, tensor<128x128xbf16>, tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    %t = arith.truncf %s : tensor<128x128xf32> to tensor<128x128xbf16>
    tile.store %t, %z[%c0, %c0] : tensor<128x128xbf16>, !A, i32, i32
    return
  }
}
