// Operands that are computed from loads: raw tiles are copied, and read in the layout in which the product wants the result.
// RUN: tw-opt %S/Inputs/scaled.mlir --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-assign-layouts,tile-promote-memory),canonicalize,cse)' | FileCheck %s --check-prefix=SCALED
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-assign-layouts,tile-promote-memory),canonicalize,cse)' | FileCheck %s

// The left operand stays in registers; nothing is converted between its parts and the product. A loop in front that loads
// the same tiles for something else reads copies, too. Where operands are computed, two groups of warps take turns.
// SCALED-LABEL: @scaled
// SCALED-SAME: num_warps = 8
// SCALED: scf.for
// SCALED: tile.async_copy %arg0
// SCALED: tile.local_load
// SCALED: tile.reduce
// SCALED: scf.for
// SCALED-NOT: tile.convert_layout
// SCALED: tile.async_copy %arg0
// SCALED: %[[X:.*]] = tile.local_load %{{.*}} -> tensor<128x64xbf16, #[[LHS:.*]]>
// SCALED: tile.async_copy %arg1
// SCALED: %[[V:.*]] = tile.local_load %{{.*}} -> tensor<64xbf16
// SCALED: tile.async_copy %arg2
// SCALED: arith.mulf %{{.*}} : tensor<128x64xf32, #[[LHS]]>
// SCALED: %[[L:.*]] = arith.truncf
// SCALED: tile.async_mma %[[L]],

!A = memref<?x?xbf16, strided<[?, 1]>>
!V = memref<?xf32, strided<[?]>>

// A right operand is written to shared memory, from a copy of what it is made of. A vector that no tensor map describes
// goes through registers, and does not keep the rest from the accelerator.
// CHECK-LABEL: @dequantized
// CHECK: scf.for
// CHECK: tile.async_copy %arg1
// CHECK: tile.local_load %{{.*}} -> tensor<64x64xi8
// CHECK: tile.load %arg2
// CHECK: tile.local_store
// CHECK: tile.async_mma
module attributes {tile.target = "sm_90a"} {
  func.func @dequantized(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %w: memref<?x?xi8, strided<[?, 1]>> {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 16, 1>}, %v: !V, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %q = tile.load %w[%k, %c0] padding zero : memref<?x?xi8, strided<[?, 1]>>, i32, i32 -> tensor<64x64xi8>
      %s = tile.load %v[%k] padding zero : !V, i32 -> tensor<64xf32>
      %f = arith.sitofp %q : tensor<64x64xi8> to tensor<64x64xf32>
      %column = tile.reshape %s : tensor<64xf32> -> tensor<64x1xf32>
      %rows = tile.broadcast %column : tensor<64x1xf32> -> tensor<64x64xf32>
      %m = arith.mulf %f, %rows : tensor<64x64xf32>
      %b = arith.truncf %m : tensor<64x64xf32> to tensor<64x64xbf16>
      %e = tile.mma %a, %b, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    }
    tile.store %d, %z[%c0, %c0] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// A copy fills what is outside of an array with zeros: of a tile that wants other values there it brings nothing.
// CHECK-LABEL: @padded
// CHECK: scf.for
// CHECK-NOT: tile.async_copy %arg0
// CHECK: tile.load %arg0[{{.*}}] padding nan
// CHECK: tile.async_copy %arg1
module attributes {tile.target = "sm_90a"} {
  func.func @padded(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %two = arith.constant dense<2.0> : tensor<128x64xf32>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding nan : !A, i32, i32 -> tensor<128x64xbf16>
      %f = arith.extf %a : tensor<128x64xbf16> to tensor<128x64xf32>
      %g = arith.mulf %f, %two : tensor<128x64xf32>
      %l = arith.truncf %g : tensor<128x64xf32> to tensor<128x64xbf16>
      %b = tile.load %w[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %e = tile.mma %l, %b, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %e : tensor<128x128xf32>
    }
    tile.store %d, %z[%c0, %c0] : tensor<128x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
