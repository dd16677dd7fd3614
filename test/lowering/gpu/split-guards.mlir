// Elements of rows at odd places: where three quarters of a tile lie inside, or half, they are loaded and stored without
// guards; of rows of several tiles whole ones are. What is read behind the branch is its result.
// RUN: tw-opt %s --pass-pipeline='builtin.module(tile-to-nvvm)' | FileCheck %s

#l = #tile.linear<register = [[0, 32], [0, 64], [0, 128], [0, 256]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]]>
!A = memref<?x?xbf16, strided<[?, 1]>>
// CHECK-LABEL: llvm.func @row
// CHECK: llvm.cond_br
// CHECK-COUNT-12: side_effects "ld.global.b16
// CHECK-COUNT-4: side_effects "mov.b16 $0, 0x0; @$2 ld.global.b16
// CHECK-COUNT-12: "stores"} "st.global.b16
// CHECK-COUNT-4: "stores"} "@$2 st.global.b16
// CHECK: llvm.cond_br
// CHECK-COUNT-8: side_effects "ld.global.b16
// CHECK-COUNT-24: side_effects "mov.b16 $0, 0x0; @$2 ld.global.b16
// CHECK-LABEL: llvm.func @tiles
// CHECK: llvm.cond_br
// CHECK-COUNT-16: side_effects "ld.global.b16
// CHECK: llvm.br ^[[JOIN:bb[0-9]+]](
// CHECK-COUNT-16: side_effects "mov.b16 $0, 0x0; @$2 ld.global.b16
// CHECK: llvm.br ^[[JOIN]](
module attributes {tile.target = "sm_90a"} {
  func.func @row(%x: !A, %y: !A) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %row = tile.block_id 0
    %c0 = arith.constant 0 : i32
    %t = tile.load %x[%row, %c0] padding zero : !A, i32, i32 -> tensor<1x512xbf16, #l>
    %z = arith.negf %t : tensor<1x512xbf16, #l>
    tile.store %z, %y[%row, %c0] : tensor<1x512xbf16, #l>, !A, i32, i32
    return
  }

  func.func @tiles(%x: !A, %y: !A, %j: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %row = tile.block_id 0
    %t = tile.load %x[%row, %j] padding zero : !A, i32, i32 -> tensor<1x512xbf16, #l>
    tile.barrier
    tile.store %t, %y[%row, %j] : tensor<1x512xbf16, #l>, !A, i32, i32
    return
  }
}
