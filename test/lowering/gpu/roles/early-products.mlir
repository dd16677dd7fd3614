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

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Not where a load reads the product's own stage first: the wait for that stands in front of the load.
// CHECK-LABEL: @summed
// CHECK: consumer {
// CHECK: scf.for
// CHECK-NOT: tile.async_mma
// CHECK: tile.barrier_wait %{{[0-9]+}}[%[[SLOT:.*]]],
// CHECK-NEXT: tile.async_mma %{{[^,]*}}, %{{[0-9]+}}[%[[SLOT]]],
module attributes {tile.target = "sm_90a"} {
  func.func @summed(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %none = arith.constant dense<0.0> : tensor<64xf32>
    %a = tile.load %x[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
    %c = tile.load %x[%c1, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %zero, %q = %zero, %sum = %none) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64xf32>) : i32 {
      %b = tile.load %w[%i, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %f = arith.extf %b : tensor<64x64xbf16> to tensor<64x64xf32>
      %s = tile.reduce add, %f axis 0 : tensor<64x64xf32>
      %t = arith.addf %sum, %s : tensor<64xf32>
      %d = tile.mma %a, %b, %p : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      %e = tile.mma %c, %b, %q : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %d, %e, %t : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64xf32>
    }
    %u = tile.reshape %r#2 : tensor<64xf32> -> tensor<1x64xf32>
    %v = tile.broadcast %u : tensor<1x64xf32> -> tensor<64x64xf32>
    %z = arith.addf %r#0, %v : tensor<64x64xf32>
    tile.store %z, %y[%c0, %c0] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    tile.store %r#1, %y[%c1, %c0] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
