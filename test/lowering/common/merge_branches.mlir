// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-canonicalize),canonicalize,cse)' | FileCheck %s

!A = memref<?x?xf16, strided<[?, 1]>>

// Two loops that differ in what the first leaves open are one, with the padding of the second, and without a promise
// that holds in one branch only.
// CHECK-LABEL: @one_loop
// CHECK-NOT: scf.if
// CHECK: %[[R:.*]] = scf.for %[[K:.*]] = %c0_i32 to %arg3
// CHECK: tile.load %arg0[%c0_i32, %[[K]]] padding zero : memref
// CHECK: tile.load %arg1[%[[K]], %c0_i32] padding zero : memref
// CHECK: tile.mma
// CHECK-NOT: scf.if
// CHECK: tile.store %[[R]]
func.func @one_loop(%a: !A, %b: !A, %c: memref<?x?xf32, strided<[?, 1]>>, %n: i32, %even: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.if %even -> tensor<64x64xf32> {
    %s = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %x = tile.load %a[%c0, %k] : !A, i32, i32 -> tensor<64x32xf16>
      %y = tile.load %b[%k, %c0] padding zero {tile.in_bounds} : !A, i32, i32 -> tensor<32x64xf16>
      %p = tile.mma %x, %y, %acc : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32>
      scf.yield %p : tensor<64x64xf32>
    }
    scf.yield %s : tensor<64x64xf32>
  } else {
    %s = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %x = tile.load %a[%c0, %k] padding zero : !A, i32, i32 -> tensor<64x32xf16>
      %y = tile.load %b[%k, %c0] : !A, i32, i32 -> tensor<32x64xf16>
      %p = tile.mma %x, %y, %acc : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32>
      scf.yield %p : tensor<64x64xf32>
    }
    scf.yield %s : tensor<64x64xf32>
  }
  tile.store %r, %c[%c0, %c0] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
  return
}

// -----

!V = memref<?xf32, strided<[1]>>

// Stores that are the same are done once; other paddings, indices, arrays or results are not the same.
// CHECK-LABEL: @alike
// CHECK-NOT: scf.if
// CHECK: tile.store
// CHECK-NOT: tile.store
// CHECK-LABEL: @others
// CHECK-COUNT-4: scf.if
func.func @alike(%a: !V, %c: i1, %i: i32) {
  scf.if %c {
    %x = tile.load %a[%i] padding zero : !V, i32 -> tensor<8xf32>
    tile.store %x, %a[%i] : tensor<8xf32>, !V, i32
  } else {
    %x = tile.load %a[%i] padding zero : !V, i32 -> tensor<8xf32>
    tile.store %x, %a[%i] : tensor<8xf32>, !V, i32
  }
  return
}

func.func @others(%a: !V, %b: !V, %c: i1, %d: i1, %e: i1, %f: i1, %i: i32, %j: i32) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %p = scf.if %c -> tensor<8xf32> {
    %x = tile.load %a[%i] padding zero : !V, i32 -> tensor<8xf32>
    scf.yield %x : tensor<8xf32>
  } else {
    %x = tile.load %a[%i] padding nan : !V, i32 -> tensor<8xf32>
    scf.yield %x : tensor<8xf32>
  }
  %q = scf.if %d -> tensor<8xf32> {
    %x = tile.load %a[%i] : !V, i32 -> tensor<8xf32>
    scf.yield %x : tensor<8xf32>
  } else {
    %x = tile.load %a[%j] : !V, i32 -> tensor<8xf32>
    scf.yield %x : tensor<8xf32>
  }
  %r = scf.if %e -> tensor<8xf32> {
    %x = tile.load %a[%i] : !V, i32 -> tensor<8xf32>
    scf.yield %x : tensor<8xf32>
  } else {
    %x = tile.load %b[%i] : !V, i32 -> tensor<8xf32>
    scf.yield %x : tensor<8xf32>
  }
  %s = scf.if %f -> tensor<8xf32> {
    %x = tile.load %a[%i] : !V, i32 -> tensor<8xf32>
    tile.store %x, %b[%i] : tensor<8xf32>, !V, i32
    scf.yield %x : tensor<8xf32>
  } else {
    %x = tile.load %a[%i] : !V, i32 -> tensor<8xf32>
    tile.store %x, %b[%i] : tensor<8xf32>, !V, i32
    scf.yield %zero : tensor<8xf32>
  }
  return %p, %q, %r, %s : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// What tells which threads are there stays in both places, for the threads that come to each.
// CHECK-LABEL: @threads
// CHECK: tile.sync_threads
// CHECK: else
// CHECK: tile.sync_threads
// CHECK: tile.active_mask
// CHECK: else
// CHECK: tile.active_mask
func.func @threads(%c: i1, %d: i1) -> i32 attributes {tile.kernel, tile.simt} {
  scf.if %c {
    tile.sync_threads
  } else {
    tile.sync_threads
  }
  %m = scf.if %d -> i32 {
    %x = tile.active_mask
    scf.yield %x : i32
  } else {
    %x = tile.active_mask
    scf.yield %x : i32
  }
  return %m : i32
}
