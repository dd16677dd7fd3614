// A tile beside a gather of its neighbours: the vectors of the tile are loaded once for both; not where something is
// written between, or the tile pads with another value than zero.
// RUN: tw-opt %s --pass-pipeline='builtin.module(tile-to-nvvm)' | FileCheck %s

#l = #tile.linear<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]]>
#r = #tile.linear<register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 64], [0, 128]]>
!A = memref<?x?xbf16, strided<[?, 1]>>
// CHECK-LABEL: llvm.func @once
// CHECK-COUNT-2: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK-LABEL: llvm.func @padded
// CHECK-COUNT-3: ld.global.v4.b32
// CHECK-LABEL: llvm.func @written
// CHECK-COUNT-3: ld.global.v4.b32
module attributes {tile.target = "sm_90a"} {
  func.func @once(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>}, %y: !A, %i: i32, %j: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c256 = arith.constant 256 : i32
    %ones = arith.constant dense<1> : tensor<256xi32, #l>
    %zeros = arith.constant dense<0.0> : tensor<256xbf16, #l>
    %first = arith.muli %j, %c256 : i32
    %firsts = tensor.splat %first : tensor<256xi32, #l>
    %rows = tensor.splat %i : tensor<256xi32, #l>
    %iota = tile.iota : tensor<256xi32, #l>
    %at = arith.addi %firsts, %iota : tensor<256xi32, #l>
    %back = arith.subi %at, %ones : tensor<256xi32, #l>
    %a = tile.gather %x[%rows, %back] else %zeros : tensor<256xbf16, #l> {check_bounds} : !A, tensor<256xi32, #l>, tensor<256xi32, #l> -> tensor<256xbf16, #l>
    %b = tile.load %x[%i, %j] padding zero : !A, i32, i32 -> tensor<1x256xbf16, #r>
    %c = tile.reshape %b : tensor<1x256xbf16, #r> -> tensor<256xbf16, #l>
    %d = arith.addf %a, %c : tensor<256xbf16, #l>
    %e = tile.reshape %d : tensor<256xbf16, #l> -> tensor<1x256xbf16, #r>
    tile.store %e, %y[%i, %j] : tensor<1x256xbf16, #r>, !A, i32, i32
    return
  }
  func.func @padded(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>}, %y: !A, %i: i32, %j: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c256 = arith.constant 256 : i32
    %ones = arith.constant dense<1> : tensor<256xi32, #l>
    %zeros = arith.constant dense<0.0> : tensor<256xbf16, #l>
    %first = arith.muli %j, %c256 : i32
    %firsts = tensor.splat %first : tensor<256xi32, #l>
    %rows = tensor.splat %i : tensor<256xi32, #l>
    %iota = tile.iota : tensor<256xi32, #l>
    %at = arith.addi %firsts, %iota : tensor<256xi32, #l>
    %back = arith.subi %at, %ones : tensor<256xi32, #l>
    %a = tile.gather %x[%rows, %back] else %zeros : tensor<256xbf16, #l> {check_bounds} : !A, tensor<256xi32, #l>, tensor<256xi32, #l> -> tensor<256xbf16, #l>
    %b = tile.load %x[%i, %j] padding neg_inf : !A, i32, i32 -> tensor<1x256xbf16, #r>
    %c = tile.reshape %b : tensor<1x256xbf16, #r> -> tensor<256xbf16, #l>
    %d = arith.addf %a, %c : tensor<256xbf16, #l>
    %e = tile.reshape %d : tensor<256xbf16, #l> -> tensor<1x256xbf16, #r>
    tile.store %e, %y[%i, %j] : tensor<1x256xbf16, #r>, !A, i32, i32
    return
  }
  func.func @written(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>}, %y: !A, %i: i32, %j: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c256 = arith.constant 256 : i32
    %ones = arith.constant dense<1> : tensor<256xi32, #l>
    %zeros = arith.constant dense<0.0> : tensor<256xbf16, #l>
    %first = arith.muli %j, %c256 : i32
    %firsts = tensor.splat %first : tensor<256xi32, #l>
    %rows = tensor.splat %i : tensor<256xi32, #l>
    %iota = tile.iota : tensor<256xi32, #l>
    %at = arith.addi %firsts, %iota : tensor<256xi32, #l>
    %back = arith.subi %at, %ones : tensor<256xi32, #l>
    %a = tile.gather %x[%rows, %back] else %zeros : tensor<256xbf16, #l> {check_bounds} : !A, tensor<256xi32, #l>, tensor<256xi32, #l> -> tensor<256xbf16, #l>
    tile.scatter %a, %x[%rows, %at] {check_bounds} : tensor<256xbf16, #l>, !A, tensor<256xi32, #l>, tensor<256xi32, #l>
    %b = tile.load %x[%i, %j] padding zero : !A, i32, i32 -> tensor<1x256xbf16, #r>
    tile.store %b, %y[%i, %j] : tensor<1x256xbf16, #r>, !A, i32, i32
    return
  }
}
