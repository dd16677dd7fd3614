// Bytes that lie along the rows of a computed left operand: a thread has two neighbouring rows, which ldmatrix turns as
// one word of 16 bits.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-assign-layouts,tile-promote-memory,tile-specialize-warps),canonicalize)' 2>/dev/null | FileCheck %s
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-assign-layouts,tile-promote-memory,tile-specialize-warps),tile-allocate-shared,tile-to-nvvm)' 2>/dev/null | FileCheck %s --check-prefix=NVVM

// CHECK: #[[PAIRED:.*]] = #tile.linear<register = {{\[\[}}1, 0], [0, 1], [8, 0], {{.*}}lane = {{\[\[}}2, 0], [4, 0], [0, 2], [0, 4], [0, 8]]
// CHECK: func.func @rows
// CHECK: tile.local_load {{.*}} -> tensor<64x128xi8, #[[PAIRED]]>
// CHECK: #[[ALONG:.*]] = #tile.linear<register = {{\[\[}}0, 1], [8, 0], {{.*}}[0, 32]], lane = {{\[\[}}0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]
// CHECK: func.func @along_k
// CHECK: tile.local_load {{.*}} -> tensor<128x64xi8, #[[ALONG]]>

// NVVM-LABEL: @rows
// NVVM: ldmatrix{{.*}}trans
// NVVM-NOT: sitofp
// NVVM: llvm.nvvm.prmt
// NVVM-NOT: sitofp
// NVVM-LABEL: @along_k
!A = memref<?x?xbf16, strided<[?, 1]>>
!Q = memref<?x?xi8, strided<[?, 1]>>
module attributes {tile.target = "sm_90a"} {
  func.func @rows(%q: !Q {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 16, 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %q[%i, %c0] padding zero : !Q, i32, i32 -> tensor<64x128xi8>
      %f = arith.sitofp %a : tensor<64x128xi8> to tensor<64x128xbf16>
      %l = tile.permute %f [1, 0] : tensor<64x128xbf16>
      %b = tile.load %w[%i, %c0] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %d = tile.mma %l, %b, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    tile.store %r, %y[%c0, %c0] : tensor<128x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>
!Q = memref<?x?xi8, strided<[?, 1]>>
module attributes {tile.target = "sm_90a"} {
  func.func @along_k(%q: !Q {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 16, 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %q[%c0, %i] padding zero : !Q, i32, i32 -> tensor<128x64xi8>
      %f = arith.sitofp %a : tensor<128x64xi8> to tensor<128x64xbf16>
      %b = tile.load %w[%i, %c0] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %d = tile.mma %f, %b, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    tile.store %r, %y[%c0, %c0] : tensor<128x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
