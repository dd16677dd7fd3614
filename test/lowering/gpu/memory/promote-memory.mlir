// What feeds a matrix product is copied through swizzled shared memory.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-promote-memory))' | FileCheck %s

#load = #tile.linear<register = [[0, 1], [0, 2], [0, 4], [8, 0], [16, 0]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]]>
#a = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [16, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#b = #tile.linear<register = [[1, 0], [8, 0], [16, 0], [0, 8], [0, 16]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [16, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>

// A 64-byte row has four chunks of 16 bytes: they are XORed with bits 1 and 2 of the row.
// CHECK: #[[SHARED:.*]] = #tile.linear<offset = {{\[}}[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0]]>
// CHECK-LABEL: @gemm
module attributes {tile.target = "sm_80"} {
  func.func @gemm(%A: memref<?x?xbf16, strided<[?, 1]>>, %B: memref<?x?xbf16, strided<[?, 1]>>, %i: i32, %k: i32,
                  %c: tensor<32x32xf32, #acc>) -> tensor<32x32xf32, #acc> attributes {tile.hints = {num_warps = 1 : i32}} {
    // CHECK: %[[BBUF:.*]] = tile.alloc_shared : <1x32x32xbf16, #[[SHARED]]>
    // CHECK: %[[ABUF:.*]] = tile.alloc_shared : <1x32x32xbf16, #[[SHARED]]>
    // CHECK: tile.async_copy %arg0[%arg2, %arg3] into %[[ABUF]][%{{.*}}]
    // CHECK-NEXT: tile.async_commit
    // CHECK-NEXT: tile.async_wait 0
    // CHECK-NEXT: tile.barrier
    // CHECK: %[[A:.*]] = tile.local_load %[[ABUF]]
    // CHECK-NEXT: tile.barrier
    %a = tile.load %A[%i, %k] padding zero : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 -> tensor<32x32xbf16, #load>
    // CHECK: tile.async_copy %arg1[%arg3, %arg2] into %[[BBUF]][%{{.*}}]
    // CHECK: %[[B:.*]] = tile.local_load %[[BBUF]]
    %b = tile.load %B[%k, %i] padding zero : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 -> tensor<32x32xbf16, #load>
    %al = tile.convert_layout %a : tensor<32x32xbf16, #load> -> tensor<32x32xbf16, #a>
    %bl = tile.convert_layout %b : tensor<32x32xbf16, #load> -> tensor<32x32xbf16, #b>
    // CHECK: tile.mma %[[A]], %[[B]], %arg4
    %d = "tile.mma"(%al, %bl, %c) : (tensor<32x32xbf16, #a>, tensor<32x32xbf16, #b>, tensor<32x32xf32, #acc>) -> tensor<32x32xf32, #acc>
    return %d : tensor<32x32xf32, #acc>
  }

  // An array that is contiguous along its first axis gets a buffer whose rows run that way; a
  // permute is redone on the operand.
  // CHECK-LABEL: @transposed
  func.func @transposed(%B: memref<?x?xbf16, strided<[1, ?]>>, %k: i32, %al: tensor<32x32xbf16, #a>,
                        %c: tensor<32x32xf32, #acc>) -> tensor<32x32xf32, #acc> attributes {tile.hints = {num_warps = 1 : i32}} {
    // CHECK: tile.async_copy
    // CHECK: %[[B:.*]] = tile.local_load
    // CHECK: %[[P:.*]] = tile.permute %[[B]] [1, 0]
    %b = tile.load %B[%k, %k] : memref<?x?xbf16, strided<[1, ?]>>, i32, i32 -> tensor<32x32xbf16, #load>
    %p = "tile.permute"(%b) <{order = array<i32: 1, 0>}> : (tensor<32x32xbf16, #load>) -> tensor<32x32xbf16, #load>
    %bl = tile.convert_layout %p : tensor<32x32xbf16, #load> -> tensor<32x32xbf16, #b>
    // CHECK: tile.mma %{{.*}}, %[[P]]
    %d = "tile.mma"(%al, %bl, %c) : (tensor<32x32xbf16, #a>, tensor<32x32xbf16, #b>, tensor<32x32xf32, #acc>) -> tensor<32x32xf32, #acc>
    return %d : tensor<32x32xf32, #acc>
  }

  // Only zeros can be filled in by a copy.
  // CHECK-LABEL: @other_padding
  // CHECK-NOT: async_copy
  func.func @other_padding(%A: memref<?x?xbf16, strided<[?, 1]>>, %k: i32, %bl: tensor<32x32xbf16, #b>,
                           %c: tensor<32x32xf32, #acc>) -> tensor<32x32xf32, #acc> attributes {tile.hints = {num_warps = 1 : i32}} {
    %a = tile.load %A[%k, %k] padding nan : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 -> tensor<32x32xbf16, #load>
    %al = tile.convert_layout %a : tensor<32x32xbf16, #load> -> tensor<32x32xbf16, #a>
    %d = "tile.mma"(%al, %bl, %c) : (tensor<32x32xbf16, #a>, tensor<32x32xbf16, #b>, tensor<32x32xf32, #acc>) -> tensor<32x32xf32, #acc>
    return %d : tensor<32x32xf32, #acc>
  }
}
