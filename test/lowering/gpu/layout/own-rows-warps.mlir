// Rows that are reduced one by one, of which each warp has its own: no warp waits for another, and a thread has twice the
// bytes, so that more of a multiprocessor's registers wait for memory. Where warps reduce together there are more of them.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-plan-block))' | FileCheck %s

!A = memref<?x?xbf16, strided<[?, 1]>>
!B = memref<?xbf16, strided<[1]>>
!F = memref<?x?xf32, strided<[?, 1]>>
!G = memref<?xf32, strided<[1]>>
// CHECK-LABEL: @rows
// CHECK-SAME: num_warps = 2
// CHECK-LABEL: @row
// CHECK-SAME: num_warps = 4
// Three tiles of numbers at a time have room in two warps. The mask beside them takes no registers.
// CHECK-LABEL: @masked
// CHECK-SAME: num_warps = 2
// A walk along short rows, of which the program wants four blocks side by side: eight numbers a thread, not four. Longer
// rows have all warps.
// CHECK-LABEL: @walk
// CHECK-SAME: num_warps = 8
// CHECK-LABEL: @side_by_side
// CHECK-SAME: num_warps = 4
// CHECK-LABEL: @longer
// CHECK-SAME: num_warps = 8
module attributes {tile.target = "sm_90a"} {
  func.func @rows(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>}, %y: !B) attributes {tile.kernel} {
    %i = tile.block_id 0
    %c0 = arith.constant 0 : i32
    %a = tile.load %x[%i, %c0] padding zero : !A, i32, i32 -> tensor<32x128xbf16>
    %most = tile.reduce max, %a axis 1 : tensor<32x128xbf16>
    tile.store %most, %y[%i] : tensor<32xbf16>, !B, i32
    return
  }
  func.func @row(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>}, %y: !B) attributes {tile.kernel} {
    %i = tile.block_id 0
    %c0 = arith.constant 0 : i32
    %a = tile.load %x[%i, %c0] padding zero : !A, i32, i32 -> tensor<1x4096xbf16>
    %most = tile.reduce max, %a axis 1 : tensor<1x4096xbf16>
    tile.store %most, %y[%i] : tensor<1xbf16>, !B, i32
    return
  }
  func.func @masked(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>}, %y: memref<?xf32, strided<[1]>>, %z: !A) attributes {tile.kernel} {
    %i = tile.block_id 0
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : tensor<32x128xf32>
    %t = tile.load %x[%i, %c0] padding zero : !A, i32, i32 -> tensor<32x128xbf16>
    %a = arith.extf %t : tensor<32x128xbf16> to tensor<32x128xf32>
    %mask = arith.cmpf ogt, %a, %zero : tensor<32x128xf32>
    %b = arith.mulf %a, %a : tensor<32x128xf32>
    %c = arith.addf %b, %a : tensor<32x128xf32>
    %most = tile.reduce max, %c axis 1 : tensor<32x128xf32>
    tile.store %most, %y[%i] : tensor<32xf32>, memref<?xf32, strided<[1]>>, i32
    %d = arith.select %mask, %a, %b : tensor<32x128xi1>, tensor<32x128xf32>
    %e = arith.addf %d, %c : tensor<32x128xf32>
    %f = arith.truncf %e : tensor<32x128xf32> to tensor<32x128xbf16>
    tile.store %f, %z[%i, %c0] : tensor<32x128xbf16>, !A, i32, i32
    return
  }
  func.func @walk(%x: !F {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>}, %y: !G, %n: i32) attributes {tile.kernel} {
    %i = tile.block_id 0
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %k = %i to %n step %c1 : i32 {
      %a = tile.load %x[%k, %c0] padding zero : !F, i32, i32 -> tensor<1x1024xf32>
      %most = tile.reduce max, %a axis 1 : tensor<1x1024xf32>
      tile.store %most, %y[%k] : tensor<1xf32>, !G, i32
    }
    return
  }
  func.func @side_by_side(%x: !F {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>}, %y: !G, %n: i32) attributes {tile.kernel, tile.hints = {occupancy = 4 : i32}} {
    %i = tile.block_id 0
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %k = %i to %n step %c1 : i32 {
      %a = tile.load %x[%k, %c0] padding zero : !F, i32, i32 -> tensor<1x1024xf32>
      %most = tile.reduce max, %a axis 1 : tensor<1x1024xf32>
      tile.store %most, %y[%k] : tensor<1xf32>, !G, i32
    }
    return
  }
  func.func @longer(%x: !F {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>}, %y: !G, %n: i32) attributes {tile.kernel, tile.hints = {occupancy = 4 : i32}} {
    %i = tile.block_id 0
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %k = %i to %n step %c1 : i32 {
      %a = tile.load %x[%k, %c0] padding zero : !F, i32, i32 -> tensor<1x2048xf32>
      %most = tile.reduce max, %a axis 1 : tensor<1x2048xf32>
      tile.store %most, %y[%k] : tensor<1xf32>, !G, i32
    }
    return
  }
}
