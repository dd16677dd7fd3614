// Elements of bf16 beside others: each is widened by one instruction from the word that it is half of, though a pair of
// them has two words, and by the same one for both tiles.
// RUN: tw-opt %s --pass-pipeline='builtin.module(tile-to-nvvm,cse)' | FileCheck %s

#l = #tile.linear<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]]>
// CHECK-LABEL: llvm.func @behind
// CHECK-NOT: llvm.fpext
// CHECK: llvm.return
module attributes {tile.target = "sm_90a"} {
  func.func @behind(%x: memref<?xbf16, strided<[1]>> {tile.align = 16 : i32, tile.shape_div = array<i64: 16>}, %y: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %one = arith.constant dense<1> : tensor<256xi32, #l>
    %at = tile.iota : tensor<256xi32, #l>
    %zero = arith.constant dense<0.0> : tensor<256xbf16, #l>
    %back = arith.subi %at, %one : tensor<256xi32, #l>
    %a = tile.gather %x[%back] else %zero : tensor<256xbf16, #l> {check_bounds} : memref<?xbf16, strided<[1]>>, tensor<256xi32, #l> -> tensor<256xbf16, #l>
    %w = arith.extf %a : tensor<256xbf16, #l> to tensor<256xf32, #l>
    tile.store %w, %y[%c0] : tensor<256xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}
