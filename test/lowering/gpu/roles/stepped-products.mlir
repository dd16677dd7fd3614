// What a product reads from registers is computed behind the waits for its stages, right in front of it: its steps of k
// start one by one, and the arithmetic for the later ones runs beside them. The product is not started late for it.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-pipeline-mma))' 2>/dev/null | FileCheck %s --check-prefix=MARK
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-pipeline-mma,tile-assign-layouts,tile-promote-memory,tile-sink-waits,tile-specialize-warps),canonicalize,cse)' 2>/dev/null | FileCheck %s
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-pipeline-mma,tile-assign-layouts,tile-promote-memory,tile-sink-waits,tile-specialize-warps),canonicalize,cse,tile-allocate-shared,func.func(tile-insert-barriers),tile-to-nvvm,tile-order-stores)' 2>/dev/null | FileCheck %s --check-prefix=CODE

!A = memref<?x?xbf16, strided<[?, 1]>>

// MARK-LABEL: @scaled
// MARK: tile.mma {{.*}}tile.steps
// CHECK-LABEL: @scaled
// CHECK: consumer {
// CHECK: scf.for
// CHECK: tile.barrier_wait %[[X:[0-9]+]]
// CHECK: %[[A:.*]] = tile.local_load
// CHECK: tile.barrier_arrive
// CHECK: tile.barrier_wait %[[W:[0-9]+]]
// CHECK-NEXT: %[[S:.*]] = arith.mulf %[[A]]
// CHECK-NEXT: %[[D:.*]] = tile.async_mma %[[S]], {{.*}} {stepped}
// CHECK-NEXT: tile.mma_wait %[[D]], 1
// CHECK-NOT: tile.async_mma
// The words of a step go to the registers of the same step before when that is done, and are computed in front of it.
// CODE-LABEL: @scaled
// CODE: llvm.fmul
// CODE: tile.ptx = "step"{{.*}}wgmma.wait_group.sync.aligned 2;\0Axor.b32 $0, $4, $8;{{.*}}xor.b32 $3, $7, $8;
// CODE: tile.ptx = "step"{{.*}}add.s64 b, ${{[0-9]+}}, 0;\0Awgmma.mma_async
// CODE: llvm.fmul
// CODE: wgmma.wait_group.sync.aligned 2;
// CODE: llvm.fmul
// CODE: wgmma.wait_group.sync.aligned 2;
// CODE: llvm.fmul
// CODE: wgmma.wait_group.sync.aligned 2;
// CODE: wgmma.mma_async
// CODE: wgmma.wait_group.sync.aligned 3;
module attributes {tile.target = "sm_90a"} {
  func.func @scaled(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %half = arith.constant dense<0.5> : tensor<128x64xbf16>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
      %a = tile.load %x[%c0, %i] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %w[%i, %c0] padding zero : !A, i32, i32 -> tensor<64x256xbf16>
      %s = arith.mulf %a, %half : tensor<128x64xbf16>
      %d = tile.mma %s, %b, %acc : tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>
      scf.yield %d : tensor<128x256xf32>
    }
    tile.store %r, %y[%c0, %c0] : tensor<128x256xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Where more is computed than a word an element, its product starts an iteration late instead; so does one of few columns.
// MARK-LABEL: @much
// MARK-NOT: tile.steps
// CHECK-LABEL: @much
// CHECK-NOT: {stepped
// CODE-LABEL: @much
// CODE-NOT: tile.ptx = "step"
module attributes {tile.target = "sm_90a"} {
  func.func @much(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %none = arith.constant dense<0.0> : tensor<128x128xf32>
    %half = arith.constant dense<0.5> : tensor<128x64xbf16>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
      %a = tile.load %x[%c0, %i] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %w[%i, %c0] padding zero : !A, i32, i32 -> tensor<64x256xbf16>
      %s = arith.mulf %a, %half : tensor<128x64xbf16>
      %t = arith.addf %s, %half : tensor<128x64xbf16>
      %u = arith.mulf %t, %a : tensor<128x64xbf16>
      %d = tile.mma %u, %b, %acc : tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>
      scf.yield %d : tensor<128x256xf32>
    }
    tile.store %r, %y[%c0, %c0] : tensor<128x256xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    %q = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %none) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%c0, %i] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %w[%i, %c0] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %s = arith.mulf %a, %half : tensor<128x64xbf16>
      %d = tile.mma %s, %b, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    tile.store %q, %y[%c1, %c0] : tensor<128x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
