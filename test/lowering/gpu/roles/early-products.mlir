// A product on an operand that the loop carries starts before the loads that the next operand is made of.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-pipeline-mma,tile-assign-layouts,tile-promote-memory,tile-sink-waits,tile-specialize-warps),canonicalize,cse)' 2>/dev/null | FileCheck %s
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-pipeline-mma,tile-assign-layouts,tile-promote-memory,tile-sink-waits,tile-specialize-warps),canonicalize,cse,tile-allocate-shared,func.func(tile-insert-barriers),tile-to-nvvm)' 2>/dev/null | FileCheck %s --check-prefix=CODE

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
// What the wait orders is no sum that a product left: it goes on as it is, in words of two.
// CODE-LABEL: @scaled
// CODE: wgmma.wait_group.sync.aligned 1;
// CODE: wgmma.wait_group.sync.aligned 0;
// CODE-NOT: xor.b32
// CODE: llvm.fmul %{{.*}} : vector<2xbf16>
module attributes {tile.target = "sm_90a"} {
  func.func @scaled(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %start = arith.constant dense<1.0> : tensor<128x256xf32>
    %half = arith.constant dense<0.5> : tensor<128x64xbf16>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %start) -> (tensor<128x256xf32>) : i32 {
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

// Not one of 256 columns where more is computed for the next operand than its product covers.
// CHECK-LABEL: @much
// CHECK: consumer {
// CHECK: scf.for
// CHECK-NOT: tile.async_mma
// CHECK: tile.local_load
// CHECK: tile.async_mma
module attributes {tile.target = "sm_90a"} {
  func.func @much(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %start = arith.constant dense<1.0> : tensor<128x256xf32>
    %half = arith.constant dense<0.5> : tensor<128x64xf32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %start) -> (tensor<128x256xf32>) : i32 {
      %a = tile.load %x[%c0, %i] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %w[%i, %c0] padding zero : !A, i32, i32 -> tensor<64x256xbf16>
      %f = arith.extf %a : tensor<128x64xbf16> to tensor<128x64xf32>
      %g = arith.subf %f, %half : tensor<128x64xf32>
      %h = arith.mulf %g, %f : tensor<128x64xf32>
      %k = arith.addf %h, %half : tensor<128x64xf32>
      %s = arith.truncf %k : tensor<128x64xf32> to tensor<128x64xbf16>
      %d = tile.mma %s, %b, %acc : tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>
      scf.yield %d : tensor<128x256xf32>
    }
    tile.store %r, %y[%c0, %c0] : tensor<128x256xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>
!V = memref<?xbf16, strided<[1]>>

// A vector is little beside the product's tile, and is not brought with it: it is read earlier, for the next operand.
// CHECK-LABEL: @beside
// CHECK: consumer {
// CHECK: scf.for
// CHECK: tile.async_mma
// CHECK-NOT: tile.local_load
// CHECK: tile.barrier_wait
// CHECK: tile.local_load
module attributes {tile.target = "sm_90a"} {
  func.func @beside(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %v: !V {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 1>}, %y: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %start = arith.constant dense<1.0> : tensor<128x128xf32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %start) -> (tensor<128x128xf32>) : i32 {
      %b = tile.load %w[%i, %c0] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %g = tile.load %v[%i] padding zero : !V, i32 -> tensor<64xbf16>
      %a = tile.load %x[%c0, %i] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %line = tile.reshape %g : tensor<64xbf16> -> tensor<1x64xbf16>
      %lines = tile.broadcast %line : tensor<1x64xbf16> -> tensor<128x64xbf16>
      %s = arith.mulf %a, %lines : tensor<128x64xbf16>
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
