// Where a tile lies is computed in front of a branch that only starts its copy; what a branch computes itself stays in it.
// RUN: tw-opt %s --pass-pipeline='builtin.module(tile-to-nvvm)' | FileCheck %s

#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64]]>
!A = memref<?x?xf32, strided<[?, 1]>>
// CHECK-LABEL: llvm.func @k
// CHECK: llvm.intr.smin
// CHECK: llvm.cond_br %{{.*}}, ^[[FIRST:bb[0-9]+]], ^[[THEN:bb[0-9]+]]
// CHECK: ^[[FIRST]]:
// CHECK-NOT: llvm.intr.smin
// CHECK: cp.async
// CHECK: llvm.br ^[[THEN]]
// CHECK: ^[[THEN]]:
// CHECK-NOT: llvm.intr.smin
// CHECK: llvm.cond_br %{{.*}}, ^[[SECOND:bb[0-9]+]], ^{{bb[0-9]+}}
// CHECK: ^[[SECOND]]:
// CHECK: llvm.intr.smin
// CHECK: cp.async
module attributes {tile.target = "sm_90a"} {
  func.func @k(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 4, 1>}, %i: i32, %j: i32, %p: i1) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared at 0 : !tile.buffer<2x1x128xf32, #s>
    scf.if %p {
      tile.async_copy %x[%i, %c1] into %b[%c0] : !A, i32, i32 into !tile.buffer<2x1x128xf32, #s>
    }
    scf.if %p {
      %k = arith.addi %i, %j : i32
      tile.async_copy %x[%k, %c0] into %b[%c1] : !A, i32, i32 into !tile.buffer<2x1x128xf32, #s>
    }
    return
  }
}
