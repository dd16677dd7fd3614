// A product on an operand that the loop carries starts before the loads that the next operand is made of.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-pipeline-mma,tile-assign-layouts,tile-promote-memory,tile-sink-waits,tile-specialize-warps),canonicalize,cse)' 2>/dev/null | FileCheck %s

!A = memref<?x?xbf16, strided<[?, 1]>>

// CHECK-LABEL: @scaled
// CHECK: consumer {
// CHECK: scf.for {{.*}} iter_args(%[[ACC:arg[0-9]+]] = {{[^,]*}}, %[[P:arg[0-9]+]] =
// CHECK-NOT: tile.local_load
// CHECK: tile.barrier_wait %[[FULL:[0-9]+]][%[[SLOT:.*]]],
// CHECK-NEXT: %[[D:.*]] = tile.async_mma %[[P]], %{{.*}}[%[[SLOT]]], %[[ACC]]
// CHECK: tile.barrier_wait
// CHECK: tile.local_load
// CHECK: tile.barrier_arrive
// CHECK: tile.mma_wait %[[D]], 0 with
module attributes {tile.target = "sm_90a"} {
  func.func @scaled(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %half = arith.constant dense<0.5> : tensor<128x64xbf16>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%c0, %i] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %w[%i, %c0] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %s = arith.mulf %a, %half : tensor<128x64xbf16>
      %d = tile.mma %s, %b, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    tile.store %r, %y[%c0, %c0] : tensor<128x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
