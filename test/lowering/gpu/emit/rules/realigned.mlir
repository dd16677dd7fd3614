// A row that begins anywhere: elements go to shared memory, a thread takes a piece of each 512 bytes from there, and an
// element in front of the first whole piece or behind the last one. What is loaded comes the same way.
// RUN: tw-opt %s --pass-pipeline='builtin.module(tile-to-nvvm)' | FileCheck %s

#l = #tile.linear<register = [[0, 32], [0, 64], [0, 128], [0, 256]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]]>
!A = memref<?x?xbf16, strided<[?, 1]>>
// CHECK-LABEL: llvm.func @row
// CHECK: llvm.ptrtoint
// CHECK-COUNT-2: @$5 ld.global.v4.b32
// CHECK-COUNT-2: @$5 st.shared.v4.b32
// CHECK: @$2 ld.global.b16
// CHECK: @$2 st.shared.b16
// CHECK: nvvm.barrier
// CHECK-COUNT-16: "mov.b16 $0, 0xff80; @$2 ld.shared.b16
// CHECK: llvm.ptrtoint
// CHECK-COUNT-16: "st.shared.b16
// CHECK: nvvm.barrier
// CHECK-COUNT-2: "ld.shared.v4.b32
// CHECK-COUNT-2: @$5 st.global.v4.b32
// CHECK: @$2 ld.shared.b16
// CHECK: @$2 st.global.b16
// CHECK-NOT: global
// CHECK: llvm.return
module attributes {tile.target = "sm_90a"} {
  func.func @row(%y: !A, %i: i32, %j: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %x = tile.load %y[%i, %j] padding neg_inf {tile.realigned, tile.scratch = 0 : i32} : !A, i32, i32 -> tensor<1x512xbf16, #l>
    tile.store %x, %y[%i, %j] {tile.realigned, tile.scratch = 2048 : i32} : tensor<1x512xbf16, #l>, !A, i32, i32
    return
  }
}
