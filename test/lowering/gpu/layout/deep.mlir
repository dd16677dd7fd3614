// Rows that are reduced: lanes bring a line of each, 8 of 16 bytes, and a thread has the rest of its row before it has
// another one.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-assign-layouts))' 2>/dev/null | FileCheck %s

// CHECK: #[[ROWS:.*]] = #tile.linear<register = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 64]], lane = {{\[\[}}0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = {{\[\[}}4, 0], [8, 0], [16, 0]]>
// CHECK: func.func @reduced
// CHECK: tile.reduce max, %{{.*}} axis 1 : tensor<32x128xbf16, #[[ROWS]]>
!A = memref<?x?xbf16, strided<[?, 1]>>
module attributes {tile.target = "sm_90a"} {
  func.func @reduced(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 16, 1>, tile.tma}) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %i = tile.block_id 0
    %c0 = arith.constant 0 : i32
    %a = tile.load %x[%i, %c0] : !A, i32, i32 -> tensor<32x128xbf16>
    %m = tile.reduce max, %a axis 1 : tensor<32x128xbf16>
    %c = tile.reshape %m : tensor<32xbf16> -> tensor<32x1xbf16>
    %b = tile.broadcast %c : tensor<32x1xbf16> -> tensor<32x128xbf16>
    %y = arith.divf %a, %b : tensor<32x128xbf16>
    tile.store %y, %x[%i, %c0] : tensor<32x128xbf16>, !A, i32, i32
    return
  }
  // Nothing is reduced: a row goes to all lanes that it has room for.
  // CHECK: func.func @plain
  // CHECK-NOT: #[[ROWS]]>
  // CHECK: return
  func.func @plain(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 16, 1>, tile.tma}) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %i = tile.block_id 0
    %c0 = arith.constant 0 : i32
    %a = tile.load %x[%i, %c0] : !A, i32, i32 -> tensor<32x128xbf16>
    %y = arith.mulf %a, %a : tensor<32x128xbf16>
    tile.store %y, %x[%i, %c0] : tensor<32x128xbf16>, !A, i32, i32
    return
  }
}
