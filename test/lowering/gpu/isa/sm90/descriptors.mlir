// Of a descriptor all but the stage is known before the loop, unless products of an iteration follow each other.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-pipeline-mma,tile-assign-layouts,tile-promote-memory,tile-sink-waits,tile-specialize-warps),canonicalize,cse,tile-allocate-shared,func.func(tile-insert-barriers),tile-to-nvvm)' 2>/dev/null | FileCheck %s

!A = memref<?x?xbf16, strided<[?, 1]>>

// CHECK-LABEL: @alone
// CHECK: llvm.lshr
// CHECK: mbarrier.try_wait
// CHECK-NOT: llvm.lshr
// CHECK: wgmma.mma_async
module attributes {tile.target = "sm_90a"} {
  func.func @alone(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x128xf32>
    %i = tile.block_id 0
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %b = tile.load %w[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %m = tile.mma %a, %b, %acc : tensor<64x64xbf16>, tensor<64x128xbf16>, tensor<64x128xf32>
      scf.yield %m : tensor<64x128xf32>
    }
    tile.store %d, %y[%i, %c0] : tensor<64x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// CHECK-LABEL: @one_behind_the_other
// CHECK: mbarrier.try_wait
// CHECK: llvm.lshr
// CHECK: wgmma.mma_async
// CHECK: wgmma.wait_group
// CHECK: llvm.lshr
// CHECK: wgmma.mma_async
module attributes {tile.target = "sm_90a"} {
  func.func @one_behind_the_other(%q: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %none = arith.constant dense<0.0> : tensor<64x64xf32>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.block_id 0
    %a = tile.load %q[%i, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %b = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %s = tile.mma %a, %b, %none : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xbf16>
      %c = tile.load %w[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %m = tile.mma %p, %c, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %m : tensor<64x64xf32>
    }
    tile.store %d, %y[%i, %c0] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
