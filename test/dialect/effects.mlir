// What an op may be assumed to do: equal ones become one, dead ones go, invariant ones leave loops.
// RUN: tw-opt %s --cse --canonicalize --loop-invariant-code-motion | FileCheck %s

// CHECK-LABEL: func.func @equal_arithmetic
func.func @equal_arithmetic(%x: tensor<8xf32>, %y: tensor<8xi8>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK-NEXT: %[[SUM:.*]] = tile.add
  // CHECK-NEXT: return %[[SUM]], %[[SUM]]
  %0 = tile.add %x, %y : tensor<8xf32>, tensor<8xi8>
  %1 = tile.add %x, %y : tensor<8xf32>, tensor<8xi8>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @dead
func.func @dead(%a: memref<?xf32>, %i: i32) {
  // CHECK-NEXT: return
  %0 = tile.load %a[%i] : memref<?xf32>, i32 -> tensor<8xf32>
  %1 = tile.exp %0 : tensor<8xf32>
  return
}

// A store may change what a load reads.
// CHECK-LABEL: func.func @store_between
func.func @store_between(%a: memref<?xf32>, %i: i32) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK: tile.load
  // CHECK: tile.store
  // CHECK: tile.load
  %0 = tile.load %a[%i] : memref<?xf32>, i32 -> tensor<8xf32>
  %1 = tile.neg %0 : tensor<8xf32>
  tile.store %1, %a[%i] : tensor<8xf32>, memref<?xf32>, i32
  %2 = tile.load %a[%i] : memref<?xf32>, i32 -> tensor<8xf32>
  return %0, %2 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @equal_loads
func.func @equal_loads(%a: memref<?xf32>, %i: i32) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK-COUNT-1: tile.load
  // CHECK-NOT: tile.load
  // CHECK: return
  %0 = tile.load %a[%i] : memref<?xf32>, i32 -> tensor<8xf32>
  %1 = tile.load %a[%i] : memref<?xf32>, i32 -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @invariant
func.func @invariant(%x: tensor<8xf32>, %n: i32) -> tensor<8xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // CHECK: tile.exp
  // CHECK: scf.for
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %x) -> tensor<8xf32> : i32 {
    %0 = tile.exp %x : tensor<8xf32>
    %1 = tile.add %acc, %0 : tensor<8xf32>, tensor<8xf32>
    scf.yield %1 : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// CHECK-LABEL: func.func @folds
func.func @folds(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4x8xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  // CHECK-DAG: %[[ONES:.*]] = arith.constant dense<1.000000e+00> : tensor<8x4xf32>
  // CHECK-DAG: %[[TURNED:.*]] = arith.constant dense<1.000000e+00> : tensor<4x8xf32>
  // CHECK: return %{{.*}}, %[[ONES]], %[[TURNED]], %{{.*}}, %{{.*}} :
  %0 = tile.permute %x [0, 1] : tensor<8x4xf32>
  %one = tile.constant dense<1.0> : tensor<1x4xf32>
  %1 = tile.broadcast %one : tensor<1x4xf32> -> tensor<8x4xf32>
  %2 = tile.permute %1 [1, 0] : tensor<8x4xf32>
  %3 = tile.reshape %x : tensor<8x4xf32> -> tensor<32xf32>
  %4 = tile.reshape %3 : tensor<32xf32> -> tensor<8x4xf32>
  %5 = tile.cast %x : tensor<8x4xf32> -> tensor<8x4xf32>
  return %0, %1, %2, %4, %5 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<4x8xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}
