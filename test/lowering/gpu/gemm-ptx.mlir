// A matrix product from legal IR to PTX-level operations: 16-byte copies, ldmatrix.x4, mma.sync, and one barrier an
// iteration.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-assign-layouts,tile-promote-memory,tile-pipeline),canonicalize,cse,tile-allocate-shared,func.func(tile-insert-barriers),tile-to-nvvm)' | FileCheck %s

!array = memref<?x?xbf16, strided<[?, 1]>>

module attributes {tile.target = "sm_90"} {
  // CHECK: llvm.func @gemm
  // CHECK-SAME: num_threads = 128
  // CHECK-SAME: num_warps = 4
  // CHECK-SAME: shared_bytes = 98304
  func.func @gemm(%A: !array {tile.align = 16 : i32, tile.shape_div = array<i64: 1, 8>, tile.stride_div = array<i64: 8, 1>},
                  %B: !array {tile.align = 16 : i32, tile.shape_div = array<i64: 1, 8>, tile.stride_div = array<i64: 8, 1>},
                  %C: !array {tile.align = 16 : i32, tile.shape_div = array<i64: 1, 8>, tile.stride_div = array<i64: 8, 1>})
      attributes {tile.kernel} {
    %i = tile.block_id 0
    %j = tile.block_id 1
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %n = tile.num_blocks 2
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    // The prologue fills two of three stages: 8 + 8 pieces a thread each.
    // CHECK-COUNT-32: cp.async.cg.shared.global {{.*}}, 16,
    // CHECK: "llvm.nvvm.cp.async.wait.group"
    // CHECK-NEXT: nvvm.barrier
    // CHECK-NOT: nvvm.barrier
    // CHECK-COUNT-16: cp.async.cg.shared.global {{.*}}, 16,
    // CHECK: "llvm.nvvm.cp.async.commit.group"
    // A is row-major in memory and in the instruction, B is not.
    // CHECK-COUNT-16: "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3"
    // CHECK-COUNT-16: "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3"
    // CHECK-COUNT-128: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
    // CHECK-NOT: mma.sync
    // CHECK: "llvm.nvvm.cp.async.wait.group"
    %r = scf.for %x = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %A[%i, %x] padding zero : !array, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %B[%x, %j] padding zero : !array, i32, i32 -> tensor<64x128xbf16>
      %d = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    %o = arith.truncf %r : tensor<128x128xf32> to tensor<128x128xbf16>
    tile.store %o, %C[%i, %j] : tensor<128x128xbf16>, !array, i32, i32
    return
  }
}
