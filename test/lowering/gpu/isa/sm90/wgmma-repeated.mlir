// What more warpgroups than have 64 columns each do with a product.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma))' 2>&1 | FileCheck %s --check-prefix=SELECT
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-assign-layouts,tile-promote-memory,tile-pipeline),canonicalize,cse)' 2>/dev/null | FileCheck %s --check-prefix=PIPE
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-assign-layouts,tile-promote-memory,tile-pipeline),canonicalize,cse,tile-allocate-shared,func.func(tile-insert-barriers),tile-to-nvvm)' 2>/dev/null | FileCheck %s --check-prefix=NVVM

// Diagnostics come first.
// SELECT: remark: 'tile.mma' op is not a wgmma: its warps cannot share it: some would compute the same

!A = memref<?x?xbf16, strided<[?, 1]>>

// Two warpgroups share out the columns of the second product, and both want all of the first one in registers: each
// computes it. No layout is converted.
// SELECT-LABEL: @repeated
// SELECT: tile.family = "wgmma", tile.places = "ss"
// SELECT: tile.family = "wgmma", tile.places = "rs"
// PIPE-LABEL: @repeated
// PIPE: tile.async_mma {{.*}} -> tensor<64x64xf32
// PIPE-NOT: tile.convert_layout
// PIPE: tile.async_mma {{.*}} -> tensor<64x128xf32
// NVVM-LABEL: @repeated
// NVVM: wgmma.mma_async.sync.aligned.m64n64k16
// NVVM: wgmma.mma_async.sync.aligned.m64n64k16
module attributes {tile.target = "sm_90a"} {
  func.func @repeated(%x: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %none = arith.constant dense<0.0> : tensor<64x64xf32>
    %zero = arith.constant dense<0.0> : tensor<64x128xf32>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %b = tile.load %y[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %s = tile.mma %a, %a, %none : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
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

// Nobody wants all of it in registers twice.
// SELECT-LABEL: @too_small
// PIPE-LABEL: @too_small
// PIPE-NOT: tile.async_mma
module attributes {tile.target = "sm_90a"} {
  func.func @too_small(%x: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %e = tile.mma %a, %a, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    }
    tile.store %d, %z[%c0, %c0] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
