// What two warpgroups do with a deep product that one of them could do alone.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma))' 2>/dev/null | FileCheck %s --check-prefix=SELECT
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-assign-layouts,tile-promote-memory,tile-pipeline),canonicalize,cse)' 2>/dev/null | FileCheck %s --check-prefix=PIPE
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-assign-layouts,tile-promote-memory,tile-pipeline),canonicalize,cse,tile-allocate-shared,func.func(tile-insert-barriers),tile-to-nvvm)' 2>/dev/null | FileCheck %s --check-prefix=NVVM

!A = memref<?x?xbf16, strided<[?, 1]>>

// Of so deep a product each computes one half, whose columns are lines of their own; the other one gets it through
// shared memory.
// SELECT-LABEL: @shared
// SELECT: tile.family = "wgmma", tile.narrow_groups, tile.places = "ss"
// SELECT: tile.family = "wgmma", tile.places = "rs"
// PIPE-LABEL: @shared
// PIPE: tile.async_mma {{.*}}tile.narrow_groups{{.*}} -> tensor<64x64xf32
// PIPE: tile.convert_layout
// PIPE: tile.async_mma {{.*}} -> tensor<64x128xf32
// NVVM-LABEL: @shared
// NVVM: wgmma.mma_async.sync.aligned.m64n32k16
// NVVM: wgmma.mma_async.sync.aligned.m64n64k16
module attributes {tile.target = "sm_90a"} {
  func.func @shared(%x: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %none = arith.constant dense<0.0> : tensor<64x64xf32>
    %zero = arith.constant dense<0.0> : tensor<64x128xf32>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<64x256xbf16>
      %b = tile.load %y[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %t = tile.permute %a [1, 0] : tensor<64x256xbf16>
      %s = tile.mma %a, %t, %none : tensor<64x256xbf16>, tensor<256x64xbf16>, tensor<64x64xf32>
      %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xbf16>
      %e = tile.mma %p, %b, %acc : tensor<64x64xbf16>, tensor<64x128xbf16>, tensor<64x128xf32>
      scf.yield %e : tensor<64x128xf32>
    }
    tile.store %d, %z[%c0, %c0] : tensor<64x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// As deep, but lines hold neighbouring columns: they are not cut, and each computes it.
// SELECT-LABEL: @columns_in_lines
// SELECT-NOT: tile.narrow_groups
// NVVM-LABEL: @columns_in_lines
// NVVM: wgmma.mma_async.sync.aligned.m64n64k16
module attributes {tile.target = "sm_90a"} {
  func.func @columns_in_lines(%x: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %none = arith.constant dense<0.0> : tensor<64x64xf32>
    %zero = arith.constant dense<0.0> : tensor<64x128xf32>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<64x256xbf16>
      %w = tile.load %y[%c1, %k] padding zero : !A, i32, i32 -> tensor<256x64xbf16>
      %b = tile.load %y[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %s = tile.mma %a, %w, %none : tensor<64x256xbf16>, tensor<256x64xbf16>, tensor<64x64xf32>
      %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xbf16>
      %e = tile.mma %p, %b, %acc : tensor<64x64xbf16>, tensor<64x128xbf16>, tensor<64x128xf32>
      scf.yield %e : tensor<64x128xf32>
    }
    tile.store %d, %z[%c0, %c0] : tensor<64x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
