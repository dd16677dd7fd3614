// Products that run into the next iteration beside others that each iteration waits for.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-assign-layouts,tile-promote-memory,tile-sink-waits,tile-specialize-warps),canonicalize,cse)' 2>/dev/null | FileCheck %s

!A = memref<?x?xbf16, strided<[?, 1]>>

// Four products, as in the gradients of attention: the last two run on, and hold so many registers that the second
// starts behind the first wait, which then leaves none running.
// CHECK-LABEL: @gradients
// CHECK: consumer {
// CHECK: %[[IN:.*]]:{{.*}} = scf.for
// CHECK: %[[S:.*]] = tile.async_mma
// CHECK-NOT: tile.async_mma %{{[0-9]}}
// CHECK: tile.mma_wait %[[S]], 0
// CHECK: %[[D:.*]] = tile.async_mma
// CHECK: %[[P:.*]] = arith.truncf
// CHECK: %[[X:.*]] = tile.async_mma %[[P]]
// CHECK: tile.mma_wait %[[D]], 1 {complete}
// CHECK: %[[Y:.*]] = tile.async_mma
// CHECK-NOT: tile.mma_wait
// CHECK: scf.yield %[[X]], %[[Y]]
// CHECK: tile.mma_wait %[[IN]]#0, 0
// CHECK: tile.mma_wait %[[IN]]#1, 0
module attributes {tile.target = "sm_90a"} {
  func.func @gradients(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: memref<?x?xf32, strided<[?, 1]>>, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %start = arith.constant dense<0.0> : tensor<128x128xf32>
    %k = tile.load %x[%c0, %c0] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
    %v = tile.load %x[%c1, %c0] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%dv = %start, %dk = %start) -> (tensor<128x128xf32>, tensor<128x128xf32>) : i32 {
      %q = tile.load %x[%i, %c0] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %t = tile.permute %q [1, 0] : tensor<64x128xbf16>
      %s = tile.mma %k, %t, %zero : tensor<128x128xbf16>, tensor<128x64xbf16>, tensor<128x64xf32>
      %d = tile.mma %v, %t, %zero : tensor<128x128xbf16>, tensor<128x64xbf16>, tensor<128x64xf32>
      %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xbf16>
      %dv2 = tile.mma %p, %q, %dv : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      %m = arith.mulf %s, %d : tensor<128x64xf32>
      %ds = arith.truncf %m : tensor<128x64xf32> to tensor<128x64xbf16>
      %dk2 = tile.mma %ds, %q, %dk : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %dv2, %dk2 : tensor<128x128xf32>, tensor<128x128xf32>
    }
    tile.store %r#0, %y[%c0, %c0] : tensor<128x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    tile.store %r#1, %z[%c0, %c0] : tensor<128x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// What is made while the late product runs is kept in front of the wait for it by a branch: one more wait for what the
// product reads, which is there.
// CHECK-LABEL: @softmax
// CHECK: consumer {
// CHECK: scf.for
// CHECK: %[[S:.*]] = tile.async_mma
// CHECK: %[[D:.*]] = tile.async_mma %{{.*}}, %[[V:.*]][%[[SLOT:.*]]],
// CHECK: tile.mma_wait %[[S]], 1 {complete}
// CHECK: %[[E:.*]] = math.exp2
// CHECK: %[[PINNED:.*]] = tile.mma_wait %[[E]], 1 {complete}
// CHECK-NEXT: tile.barrier_wait %{{.*}}[%[[SLOT]]]
// CHECK-NEXT: tile.mma_wait %[[D]], 0 with %[[PINNED]]
module attributes {tile.target = "sm_90a"} {
  func.func @softmax(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %none = arith.constant dense<0.0> : tensor<128x128xbf16>
    %half = arith.constant dense<0.5> : tensor<128x128xf32>
    %q = tile.load %x[%c0, %c0] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %p = %none) -> (tensor<128x128xf32>, tensor<128x128xbf16>) : i32 {
      %k = tile.load %x[%i, %c0] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
      %v = tile.load %x[%i, %c1] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
      %s = tile.mma %q, %k, %zero : tensor<128x128xbf16>, tensor<128x128xbf16>, tensor<128x128xf32>
      %d = tile.mma %p, %v, %acc : tensor<128x128xbf16>, tensor<128x128xbf16>, tensor<128x128xf32>
      %e = math.exp2 %s : tensor<128x128xf32>
      %h = arith.truncf %e : tensor<128x128xf32> to tensor<128x128xbf16>
      %a = arith.mulf %d, %half : tensor<128x128xf32>
      scf.yield %a, %h : tensor<128x128xf32>, tensor<128x128xbf16>
    }
    tile.store %r#0, %y[%c0, %c0] : tensor<128x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Two products of one sum: each is waited for when the other one has started, and its stages go back then.
// CHECK-LABEL: @one_sum
// CHECK: consumer {
// CHECK: %[[R:.*]]:{{.*}} = scf.for
// CHECK: %[[START:.*]] = arith.select %[[MORE:.*]], %{{.*}}, %{{.*}} : tensor<128x128xf32
// CHECK: %[[A:.*]] = tile.async_mma %{{.*}}, %[[START]]
// CHECK-NEXT: %[[A1:.*]] = tile.mma_wait %[[A]], 1 :
// CHECK-NEXT: tile.barrier_arrive %{{.*}} if %[[MORE]]
// CHECK: %[[B:.*]] = tile.async_mma %{{.*}}, %[[A1]]
// CHECK-NEXT: %[[B1:.*]] = tile.mma_wait %[[B]], 1 :
// CHECK-NEXT: tile.barrier_arrive %{{[0-9]+}}[%{{[a-z0-9]+}}] :
// CHECK: scf.yield %[[B1]]
// CHECK: tile.mma_wait %[[R]]#0, 0
module attributes {tile.target = "sm_90a"} {
  func.func @one_sum(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%c0, %i] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %w[%i, %c0] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %s = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      %c = tile.load %x[%c1, %i] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %d = tile.load %w[%i, %c1] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %t = tile.mma %c, %d, %s : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %t : tensor<128x128xf32>
    }
    tile.store %r, %z[%c0, %c0] : tensor<128x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Beside another sum, as of complex numbers, the products of an iteration are waited for together, in the next one.
// CHECK-LABEL: @two_sums
// CHECK: consumer {
// CHECK: %[[R:.*]]:{{.*}} = scf.for
// CHECK: %[[A:.*]] = tile.async_mma
// CHECK-NOT: tile.mma_wait
// CHECK: %[[B:.*]] = tile.async_mma %{{.*}}, %[[A]] :
// CHECK-NOT: tile.mma_wait
// CHECK: %[[C:.*]] = tile.async_mma
// CHECK: %[[C1:.*]] = tile.mma_wait %[[C]], 3 :
// CHECK: scf.yield %[[B]], %[[C1]]
// CHECK: tile.mma_wait %[[R]]#0, 0
// CHECK: tile.mma_wait %[[R]]#1, 0
module attributes {tile.target = "sm_90a"} {
  func.func @two_sums(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%re = %zero, %im = %zero) -> (tensor<128x64xf32>, tensor<128x64xf32>) : i32 {
      %a = tile.load %x[%c0, %i] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %w[%i, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %c = tile.load %x[%c1, %i] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %d = tile.load %w[%i, %c1] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %s = tile.mma %a, %b, %re : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
      %t = tile.mma %c, %d, %s : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
      %u = tile.mma %a, %d, %im : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
      scf.yield %t, %u : tensor<128x64xf32>, tensor<128x64xf32>
    }
    tile.store %r#0, %z[%c0, %c0] : tensor<128x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    tile.store %r#1, %z[%c1, %c0] : tensor<128x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
