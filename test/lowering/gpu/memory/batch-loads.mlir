// A loop of a thread loads for several iterations before it adds up atomically (batch_loads.c).
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-prefetch-loads))' 2>&1 | FileCheck %s

// CHECK: remark: {{.*}}has the loads of 8 iterations under way together
module attributes {tile.target = "sm_90a"} {
  // CHECK: func.func @add(%[[X:.*]]: memref<?xi32, strided<[1]>>, %[[Z:.*]]: memref<?xi32, strided<[1]>>, %[[N:.*]]: i32)
  // CHECK-SAME: no_alias
  // CHECK: %[[MOST:.*]] = arith.andi %[[N]], %c-8_i32
  // CHECK: scf.for %{{.*}} = %c0_i32 to %[[MOST]] step %c8_i32
  // CHECK-COUNT-8: tile.gather
  // CHECK-COUNT-8: tile.atomic
  // CHECK: %[[REST:.*]] = arith.maxsi %[[MOST]], %c0_i32
  // CHECK: scf.for %{{.*}} = %[[REST]] to %[[N]] step %c1_i32
  // CHECK: tile.gather
  // CHECK-NEXT: tile.atomic
  func.func @add(%x: memref<?xi32, strided<[1]>>, %z: memref<?xi32, strided<[1]>>, %n: i32) attributes {tile.kernel, tile.simt} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %k = %c0 to %n step %c1 : i32 {
      %a = tile.gather %x[%k] : memref<?xi32, strided<[1]>>, i32 -> i32
      %old = tile.atomic add relaxed device, %a, %z[%c0] : i32, memref<?xi32, strided<[1]>>, i32 -> i32
    }
    return
  }
}

// -----

// Not where an atomic access orders the loads.
module attributes {tile.target = "sm_90a"} {
  // CHECK: func.func @ordered
  // CHECK-NOT: step %c8
  func.func @ordered(%x: memref<?xi32, strided<[1]>>, %z: memref<?xi32, strided<[1]>>, %n: i32) attributes {tile.kernel, tile.simt} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %k = %c0 to %n step %c1 : i32 {
      %a = tile.gather %x[%k] : memref<?xi32, strided<[1]>>, i32 -> i32
      %old = tile.atomic add acq_rel device, %a, %z[%c0] : i32, memref<?xi32, strided<[1]>>, i32 -> i32
    }
    return
  }
}
