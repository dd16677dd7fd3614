// Sums and products of f16 are computed two at a time, in the word that neighbours share; of one element, by itself.
// RUN: tw-opt %s --pass-pipeline='builtin.module(tile-to-nvvm)' | FileCheck %s

#pair = #tile.linear<register = [[1]], lane = [[2], [4], [8], [16], [32]]>
#one = #tile.linear<register = [], lane = [[1], [2], [4], [8], [16]]>
!a = memref<?xf16, strided<[1]>>
module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: llvm.func @pairs
  // CHECK: llvm.fadd {{.*}} : vector<2xf16>
  // CHECK: llvm.fmul {{.*}} : vector<2xf16>
  // CHECK-NOT: llvm.f{{add|mul}} {{.*}} : f16
  func.func @pairs(%a: !a) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] padding zero : !a, i32 -> tensor<64xf16, #pair>
    %s = arith.addf %x, %x : tensor<64xf16, #pair>
    %p = arith.mulf %s, %x : tensor<64xf16, #pair>
    tile.store %p, %a[%i] : tensor<64xf16, #pair>, !a, i32
    return
  }
  // CHECK-LABEL: llvm.func @alone
  // CHECK: llvm.fsub {{.*}} : f16
  func.func @alone(%a: !a) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] padding zero : !a, i32 -> tensor<32xf16, #one>
    %d = arith.subf %x, %x : tensor<32xf16, #one>
    tile.store %d, %a[%i] : tensor<32xf16, #one>, !a, i32
    return
  }
}
