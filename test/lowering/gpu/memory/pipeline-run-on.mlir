// Products of a loop without producers: one that only adds to a carried value runs into the next iteration.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-assign-layouts,tile-promote-memory,tile-pipeline),canonicalize,cse)' 2>/dev/null | FileCheck %s

!A = memref<?x?xbf16, strided<[?, 1]>>

// The stage that it reads is written two iterations later; its sum is waited for behind the loop.
// CHECK-LABEL: @adds
// CHECK: scf.for
// CHECK: tile.async_wait 1
// CHECK: %[[D:.*]] = tile.async_mma
// CHECK: tile.mma_wait %[[D]], 1
// CHECK: }
// CHECK: tile.mma_wait %{{.*}}, 0
// CHECK: tile.store
module attributes {tile.target = "sm_90a"} {
  func.func @adds(%x: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32, num_stages = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %d = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    tile.store %r, %z[%c0, %c0] : tensor<128x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Not with three stages, of which two copies have two.
// CHECK-LABEL: @few_stages
// CHECK: scf.for
// CHECK: %[[D:.*]] = tile.async_mma %
// CHECK: tile.mma_wait %[[D]], 0
module attributes {tile.target = "sm_90a"} {
  func.func @few_stages(%x: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32, num_stages = 3 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %d = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    tile.store %r, %z[%c0, %c0] : tensor<128x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Not with four warps, beside which another block may stand.
// CHECK-LABEL: @few_warps
// CHECK: scf.for
// CHECK: %[[D:.*]] = tile.async_mma %
// CHECK: tile.mma_wait %[[D]], 0
module attributes {tile.target = "sm_90a"} {
  func.func @few_warps(%x: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32, num_stages = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %d = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    tile.store %r, %z[%c0, %c0] : tensor<128x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Not where the sum is carried elsewhere.
// CHECK-LABEL: @swapped
// CHECK: scf.for
// CHECK: %[[D:.*]] = tile.async_mma %
// CHECK: tile.mma_wait %[[D]], 0
module attributes {tile.target = "sm_90a"} {
  func.func @swapped(%x: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32, num_stages = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %other = %zero) -> (tensor<128x128xf32>, tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %d = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %other, %d : tensor<128x128xf32>, tensor<128x128xf32>
    }
    tile.store %r#1, %z[%c0, %c0] : tensor<128x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Nor where it reads registers, which the next iteration writes.
// CHECK-LABEL: @from_registers
// CHECK: scf.for
// CHECK: %[[L:.*]] = arith.truncf
// CHECK: %[[D:.*]] = tile.async_mma %[[L]], %
// CHECK: tile.mma_wait %[[D]], 0
module attributes {tile.target = "sm_90a"} {
  func.func @from_registers(%x: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32, num_stages = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %f = arith.extf %a : tensor<128x64xbf16> to tensor<128x64xf32>
      %g = arith.mulf %f, %f : tensor<128x64xf32>
      %l = arith.truncf %g : tensor<128x64xf32> to tensor<128x64xbf16>
      %b = tile.load %y[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %d = tile.mma %l, %b, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    tile.store %r, %z[%c0, %c0] : tensor<128x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
