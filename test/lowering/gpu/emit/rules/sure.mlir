// What is sure to lie inside of an array is not compared with its end, nor a mask that ranges decide.
// RUN: tw-opt %s --pass-pipeline='builtin.module(tile-to-nvvm)' | FileCheck %s

#c = #tile.linear<register = [[32], [64]], lane = [[1], [2], [4], [8], [16]]>
!W = memref<?xf32, strided<[1]>>
module attributes {tile.target = "sm_90a"} {
  // Registers of the elements 0, 32 and 64 on; the fourth has 96 to 127, of which 100 are sure.
  // CHECK-LABEL: llvm.func @copy
  // CHECK-COUNT-3: "ld.global.b32 $0, [$1 + {{[0-9]+}}];"
  // CHECK: "mov.b32 $0, 0x0; @$2 ld.global.b32
  // CHECK-COUNT-3: "st.global.b32
  // CHECK: "@$2 st.global.b32
  func.func @copy(%w: !W) attributes {tile.kernel, tile.launch = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %x = tile.load %w[%c0] padding zero {tile.sure = array<i64: 100>} : !W, i32 -> tensor<128xf32, #c>
    tile.store %x, %w[%c0] {tile.sure = array<i64: 100>} : tensor<128xf32, #c>, !W, i32
    return
  }

  // Of four comparisons one is left.
  // CHECK-LABEL: llvm.func @mask
  // CHECK: llvm.icmp "slt"
  // CHECK-NOT: llvm.icmp "slt"
  // CHECK: llvm.return
  func.func @mask(%w: !W {tile.in_bounds}, %n: i32) attributes {tile.kernel, tile.launch = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c96 = arith.constant 96 : i32
    %one = arith.constant dense<1.0> : tensor<128xf32, #c>
    %two = arith.constant dense<2.0> : tensor<128xf32, #c>
    %end = arith.maxsi %n, %c96 : i32
    %i = tile.iota : tensor<128xi32, #c>
    %s = tensor.splat %end : tensor<128xi32, #c>
    %m = arith.cmpi slt, %i, %s : tensor<128xi32, #c>
    %x = arith.select %m, %one, %two : tensor<128xi1, #c>, tensor<128xf32, #c>
    tile.store %x, %w[%c0] {tile.in_bounds} : tensor<128xf32, #c>, !W, i32
    return
  }
}
