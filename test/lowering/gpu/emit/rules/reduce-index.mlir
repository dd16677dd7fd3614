// The indices of an argmax lie aligned behind the bytes that two warps leave.
// RUN: tw-opt %s -pass-pipeline='builtin.module(tile-to-nvvm)' | FileCheck %s

#l = #tile.linear<lane = [[1], [2], [4], [8], [16]], warp = [[32]]>

module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: @two_warps
  // CHECK: %[[BEHIND:.*]] = llvm.mlir.constant(8 : i32) : i32
  // CHECK: llvm.getelementptr %{{.*}}[%[[BEHIND]]] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
  func.func @two_warps(%a: memref<?xi8, strided<[1]>>, %b: memref<i32>, %i: i32) attributes {tile.kernel, tile.hints = {num_warps = 2 : i32}} {
    %x = tile.load %a[%i] : memref<?xi8, strided<[1]>>, i32 -> tensor<64xi8, #l>
    %r = tile.reduce argmax, %x axis 0 : tensor<64xi8, #l>
    tile.store %r, %b[] : i32, memref<i32>
    return
  }
}
