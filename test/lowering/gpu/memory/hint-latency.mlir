// Copies run as many iterations ahead as their latency says.
// RUN: tw-opt %s -pass-pipeline='builtin.module(func.func(tile-pipeline))' | FileCheck %s

#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0]]>
#a = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [16, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>

// CHECK-LABEL: @ahead
// CHECK: tile.alloc_shared : <6x32x32xf32
// CHECK: tile.async_copy {{.*}} {tile.in_bounds, tile.latency = 5 : i32}
module attributes {tile.target = "sm_80"} {
  func.func @ahead(%A: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %init = arith.constant dense<0.0> : tensor<32x32xf32, #a>
    %buf = tile.alloc_shared : !tile.buffer<1x32x32xf32, #s>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<32x32xf32, #a>) : i32 {
      tile.async_copy %A[%c0, %k] into %buf[%c0] {tile.in_bounds, tile.latency = 5 : i32} : memref<?x?xf32, strided<[?, 1]>>, i32, i32 into !tile.buffer<1x32x32xf32, #s>
      tile.async_commit
      tile.async_wait 0
      tile.barrier {tile.copies}
      %x = tile.local_load %buf[%c0] : !tile.buffer<1x32x32xf32, #s> -> tensor<32x32xf32, #a>
      tile.barrier {tile.copies}
      %y = arith.addf %acc, %x : tensor<32x32xf32, #a>
      scf.yield %y : tensor<32x32xf32, #a>
    }
    tile.store %r, %A[%c0, %c0] : tensor<32x32xf32, #a>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
