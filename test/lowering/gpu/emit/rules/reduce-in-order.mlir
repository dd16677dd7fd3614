// What a thread adds up: as a tree, or one after the other where registers are few.
// RUN: tw-opt %s -pass-pipeline='builtin.module(tile-to-nvvm)' | FileCheck %s

#rows = #tile.linear<register = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#sums = #tile.linear<lane = [[1], [2], [4], [8], [16]]>

module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: @tree
  // CHECK: %[[X:.*]] = llvm.fadd %[[A:.*]], %[[B:.*]] :
  // CHECK: %[[Y:.*]] = llvm.fadd
  // CHECK: llvm.fadd %[[X]], %[[Y]]
  func.func @tree(%a: memref<?x?xf32, strided<[?, 1]>>, %b: memref<?xf32, strided<[1]>>, %i: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %x = tile.load %a[%i, %i] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<32x4xf32, #rows>
    %r = "tile.reduce"(%x) {kind = 0 : i32, axis = 1 : i32} : (tensor<32x4xf32, #rows>) -> tensor<32xf32, #sums>
    tile.store %r, %b[%i] : tensor<32xf32, #sums>, memref<?xf32, strided<[1]>>, i32
    return
  }
  // CHECK-LABEL: @in_order
  // CHECK: %[[X:.*]] = llvm.fadd
  // CHECK: %[[Y:.*]] = llvm.fadd %[[X]],
  // CHECK: llvm.fadd %[[Y]],
  func.func @in_order(%a: memref<?x?xf32, strided<[?, 1]>>, %b: memref<?xf32, strided<[1]>>, %i: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %x = tile.load %a[%i, %i] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<32x4xf32, #rows>
    %r = "tile.reduce"(%x) {kind = 0 : i32, axis = 1 : i32, tile.in_order} : (tensor<32x4xf32, #rows>) -> tensor<32xf32, #sums>
    tile.store %r, %b[%i] : tensor<32xf32, #sums>, memref<?xf32, strided<[1]>>, i32
    return
  }
}
