// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-canonicalize),canonicalize,cse)' | FileCheck %s

!V = memref<?xf32, strided<[1]>>

// What is left over is a step of the loop, whose loads have its padding.
// CHECK-LABEL: @rest
// CHECK: %[[END:.*]] = arith.ceildivsi %[[N:.*]], %c8_i32
// CHECK: %[[R:.*]] = scf.for %[[K:.*]] = %c0_i32 to %[[END]] step %c1_i32
// CHECK-NEXT: tile.load %arg0[%[[K]]] padding zero
// CHECK-NOT: scf.if
// CHECK: return %[[R]]
func.func @rest(%a: !V) -> tensor<8xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %n = tile.dim %a, 0 : !V
  %some = arith.floordivsi %n, %c8 : i32
  %r = scf.for %k = %c0 to %some step %c1 iter_args(%s = %zero) -> (tensor<8xf32>) : i32 {
    %x = tile.load %a[%k] : !V, i32 -> tensor<8xf32>
    %y = arith.addf %s, %x : tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  }
  %whole = arith.muli %some, %c8 : i32
  %more = arith.cmpi slt, %whole, %n : i32
  %t = scf.if %more -> tensor<8xf32> {
    %x = tile.load %a[%some] padding zero : !V, i32 -> tensor<8xf32>
    %y = arith.addf %r, %x : tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  } else {
    scf.yield %r : tensor<8xf32>
  }
  return %t : tensor<8xf32>
}

// -----

!V = memref<?xf32, strided<[1]>>

// By another condition, and the step in the other branch: one step more where it does not hold.
// CHECK-LABEL: @upon_condition
// CHECK: %[[MORE:.*]] = arith.select %arg1, %c0_i32, %c2_i32
// CHECK: %[[END:.*]] = arith.addi %[[MORE]], %c6_i32
// CHECK: scf.for %{{.*}} = %c0_i32 to %[[END]] step %c2_i32
// CHECK-NOT: scf.if
// CHECK: return
func.func @upon_condition(%a: !V, %c: i1) -> tensor<8xf32> {
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  %c5 = arith.constant 5 : i32
  %c6 = arith.constant 6 : i32
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %r = scf.for %k = %c0 to %c5 step %c2 iter_args(%s = %zero) -> (tensor<8xf32>) : i32 {
    %x = tile.load %a[%k] padding zero : !V, i32 -> tensor<8xf32>
    %y = arith.addf %s, %x : tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  }
  %t = scf.if %c -> tensor<8xf32> {
    scf.yield %r : tensor<8xf32>
  } else {
    %x = tile.load %a[%c6] padding zero : !V, i32 -> tensor<8xf32>
    %y = arith.addf %r, %x : tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  }
  return %t : tensor<8xf32>
}

// -----

!V = memref<?xf32, strided<[1]>>

// A step of another number; a sum that is read besides; a condition upon the sum.
// CHECK-LABEL: @as_they_are
// CHECK-COUNT-2: scf.if
// CHECK: arith.select
func.func @as_they_are(%a: !V, %c: i1, %d: i1) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  %c6 = arith.constant 6 : i32
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %r:3 = scf.for %k = %c0 to %c5 step %c1 iter_args(%s = %zero, %t = %zero, %u = %c0) -> (tensor<8xf32>, tensor<8xf32>, i32) : i32 {
    %x = tile.load %a[%k] padding zero : !V, i32 -> tensor<8xf32>
    %y = arith.addf %s, %x : tensor<8xf32>
    %z = arith.mulf %t, %x : tensor<8xf32>
    %v = arith.muli %u, %u : i32
    scf.yield %y, %z, %v : tensor<8xf32>, tensor<8xf32>, i32
  }
  %p = scf.if %c -> tensor<8xf32> {
    %x = tile.load %a[%c6] padding zero : !V, i32 -> tensor<8xf32>
    %y = arith.addf %r#0, %x : tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  } else {
    scf.yield %r#0 : tensor<8xf32>
  }
  %q = scf.if %d -> tensor<8xf32> {
    %x = tile.load %a[%c5] padding zero : !V, i32 -> tensor<8xf32>
    %z = arith.mulf %r#1, %x : tensor<8xf32>
    scf.yield %z : tensor<8xf32>
  } else {
    scf.yield %r#1 : tensor<8xf32>
  }
  %large = arith.cmpi sgt, %r#2, %c6 : i32
  %w = scf.if %large -> tensor<8xf32> {
    scf.yield %p : tensor<8xf32>
  } else {
    scf.yield %q : tensor<8xf32>
  }
  return %r#1, %q, %w : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
