// Rows that are reduced one by one, of which each warp has its own: no warp waits for another, and a thread has twice the
// bytes, so that more of a multiprocessor's registers wait for memory. Where warps reduce together there are more of them.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-plan-block))' | FileCheck %s

!A = memref<?x?xbf16, strided<[?, 1]>>
!B = memref<?xbf16, strided<[1]>>
// CHECK-LABEL: @rows
// CHECK-SAME: num_warps = 2
// CHECK-LABEL: @row
// CHECK-SAME: num_warps = 4
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
}
