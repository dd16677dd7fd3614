// Up to four accesses of a thread along a dimension are compared with what is left of the array in 64 bits: two
// instructions each. More are compared in 32, to which what is left is cut once.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-assign-layouts),tile-to-nvvm)' 2>/dev/null | FileCheck %s

!A = memref<?xf32, strided<[1]>>
module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: llvm.func @few
  // CHECK-NOT: llvm.intr
  // CHECK: %[[START:.*]] = llvm.sub %arg1, %{{.*}} : i64
  // CHECK: %[[COUNTED:.*]] = llvm.select %{{.*}}, %{{.*}}, %[[START]]
  // CHECK: %[[LEFT:.*]] = llvm.sub %[[COUNTED]], %{{.*}} : i64
  // CHECK-COUNT-2: llvm.icmp "sgt" %[[LEFT]], %{{.*}} : i64
  // CHECK-NOT: llvm.intr
  // CHECK: llvm.return
  func.func @few(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16>}) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %i = tile.block_id 0
    %a = tile.load %x[%i] padding zero : !A, i32 -> tensor<1024xf32>
    %b = arith.addf %a, %a : tensor<1024xf32>
    tile.store %b, %x[%i] : tensor<1024xf32>, !A, i32
    return
  }
  // CHECK-LABEL: llvm.func @many
  // CHECK: llvm.intr.smax
  // CHECK: llvm.icmp "sgt" %{{.*}} : i32
  // CHECK: llvm.return
  func.func @many(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16>}) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %a = tile.load %x[%i] padding zero : !A, i32 -> tensor<1024xf32>
    %b = arith.addf %a, %a : tensor<1024xf32>
    tile.store %b, %x[%i] : tensor<1024xf32>, !A, i32
    return
  }
}
