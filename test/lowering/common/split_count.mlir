// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-canonicalize),canonicalize,cse)' | FileCheck %s

!V = memref<?xf32, strided<[1]>>

// The count is carried, and changes at the begin of a step; the first step of a tile finds the tile, the last one stores.
// CHECK-LABEL: @carried
// CHECK: %[[SOME:.*]] = arith.cmpi sgt, %[[N:.*]], %c0_i32
// CHECK: %[[TILES:.*]] = arith.select %[[SOME]], %arg1, %c0_i32
// CHECK: scf.for %[[I:.*]] = %c0_i32 to %[[TILES]] step %c1_i32
// CHECK: %[[T:.*]] = arith.muli %[[I]], %c3_i32
// CHECK: %[[Y:.*]] = scf.for %[[K:.*]] = %c0_i32 to %[[N]] step %c1_i32 iter_args(%[[X:.*]] = %cst)
// CHECK-NEXT: tile.load %arg0[%[[K]]]
// CHECK-NEXT: arith.addf %[[X]]
// CHECK-NEXT: scf.yield
// CHECK: tile.store %[[Y]], %arg0[%[[T]]]
// CHECK-NOT: scf.if
// CHECK: return
func.func @carried(%a: !V, %m: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %before = arith.constant -1 : i32
  %start = arith.constant -3 : i32
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %n = tile.dim %a, 0 : !V
  %all = arith.muli %n, %m : i32
  %last = arith.subi %n, %c1 : i32
  %r:3 = scf.for %s = %c0 to %all step %c1 iter_args(%k = %before, %t = %start, %x = %zero) -> (i32, i32, tensor<8xf32>) : i32 {
    %was_last = arith.cmpi eq, %k, %last : i32
    %up = arith.addi %k, %c1 : i32
    %p = arith.select %was_last, %c0, %up : i32
    %is_first = arith.cmpi eq, %p, %c0 : i32
    %u = scf.if %is_first -> i32 {
      %next = arith.addi %t, %c3 : i32
      scf.yield %next : i32
    } else {
      scf.yield %t : i32
    }
    %b = tile.load %a[%p] padding zero : !V, i32 -> tensor<8xf32>
    %y = arith.addf %x, %b : tensor<8xf32>
    %is_last = arith.cmpi eq, %p, %last : i32
    scf.if %is_last {
      tile.store %y, %a[%u] : tensor<8xf32>, !V, i32
    }
    %z = arith.select %is_last, %zero, %y : tensor<8xf32>
    scf.yield %p, %u, %z : i32, i32, tensor<8xf32>
  }
  return
}

// -----

!V = memref<?xf32, strided<[1]>>

// By what is left over, with a branch that gives what goes on.
// CHECK-LABEL: @rest
// CHECK: scf.for %[[I:.*]] = %c0_i32 to
// CHECK: %[[Y:.*]] = scf.for %[[K:.*]] = %c0_i32 to
// CHECK-NEXT: tile.load %arg0[%[[K]]]
// CHECK: tile.store %[[Y]], %arg0[%[[I]]]
// CHECK-NOT: scf.if
// CHECK: return
func.func @rest(%a: !V, %m: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %n = tile.dim %a, 0 : !V
  %all = arith.muli %m, %n : i32
  %last = arith.subi %n, %c1 : i32
  %r = scf.for %s = %c0 to %all step %c1 iter_args(%x = %zero) -> (tensor<8xf32>) : i32 {
    %p = arith.remsi %s, %n : i32
    %t = arith.floordivsi %s, %n : i32
    %b = tile.load %a[%p] padding zero : !V, i32 -> tensor<8xf32>
    %y = arith.addf %x, %b : tensor<8xf32>
    %is_last = arith.cmpi eq, %p, %last : i32
    %z = scf.if %is_last -> tensor<8xf32> {
      tile.store %y, %a[%t] : tensor<8xf32>, !V, i32
      scf.yield %zero : tensor<8xf32>
    } else {
      scf.yield %y : tensor<8xf32>
    }
    scf.yield %z : tensor<8xf32>
  }
  return
}

// -----

!V = memref<?xf32, strided<[1]>>

// Not where a sum begins anew with something else, or a step stores, too.
// CHECK-LABEL: @as_it_is
// CHECK-COUNT-1: scf.for
// CHECK-NOT: scf.for
// CHECK-LABEL: @stores
// CHECK-COUNT-1: scf.for
// CHECK-NOT: scf.for
func.func @as_it_is(%a: !V, %m: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %one = arith.constant dense<1.0> : tensor<8xf32>
  %n = tile.dim %a, 0 : !V
  %all = arith.muli %m, %n : i32
  %last = arith.subi %n, %c1 : i32
  %r = scf.for %s = %c0 to %all step %c1 iter_args(%x = %zero) -> (tensor<8xf32>) : i32 {
    %p = arith.remsi %s, %n : i32
    %is_last = arith.cmpi eq, %p, %last : i32
    scf.if %is_last {
      tile.store %x, %a[%s] : tensor<8xf32>, !V, i32
    }
    %y = arith.addf %x, %x : tensor<8xf32>
    %z = arith.select %is_last, %one, %y : tensor<8xf32>
    scf.yield %z : tensor<8xf32>
  }
  return
}

func.func @stores(%a: !V, %m: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %n = tile.dim %a, 0 : !V
  %all = arith.muli %m, %n : i32
  %last = arith.subi %n, %c1 : i32
  scf.for %s = %c0 to %all step %c1 : i32 {
    %p = arith.remsi %s, %n : i32
    tile.store %zero, %a[%p] : tensor<8xf32>, !V, i32
    %is_last = arith.cmpi eq, %p, %last : i32
    scf.if %is_last {
      tile.store %zero, %a[%s] : tensor<8xf32>, !V, i32
    }
  }
  return
}
