// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-canonicalize),canonicalize,cse)' | FileCheck %s

// A `break` behind the count, the first step being done in any case; and one before it, of a count that goes down.
// CHECK-LABEL: @at_the_end
// CHECK: %[[END:.*]] = arith.maxsi %arg0, %c1_i32
// CHECK: scf.for %[[K:.*]] = %c0_i32 to %[[END]] step %c2_i32
// CHECK-NEXT: tile.print "{}", %[[K]]
// CHECK-NEXT: }
// CHECK-DAG: %[[LAST:.*]] = arith.addi %{{.*}}, %c-1_i32
// CHECK-DAG: %[[LEAST:.*]] = arith.minsi %[[LAST]], %c8_i32
// CHECK: %[[HIGH:.*]] = arith.subi %c0_i32, %[[LEAST]]
// CHECK: scf.for %{{.*}} = %c-9_i32 to %[[HIGH]] step %c1_i32
// CHECK-NOT: scf.while
// CHECK: return
func.func @at_the_end(%n: i32, %a: memref<?xi32, strided<[1]>>) {
  %false = arith.constant false
  %true = arith.constant true
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c9 = arith.constant 9 : i32
  %r:2 = scf.while (%k = %c0, %done = %false) : (i32, i1) -> (i32, i1) {
    %more = arith.xori %done, %true : i1
    scf.condition(%more) %k, %done : i32, i1
  } do {
  ^bb0(%k: i32, %d: i1):
    tile.print "{}", %k : i32
    %next = arith.addi %k, %c2 : i32
    %last = arith.cmpi sge, %next, %n : i32
    scf.yield %next, %last : i32, i1
  }
  %dim = tile.dim %a, 0 : memref<?xi32, strided<[1]>>
  %q = scf.while (%k = %c9, %done = %false) : (i32, i1) -> i32 {
    %more = arith.xori %done, %true : i1
    scf.condition(%more) %k : i32
  } do {
  ^bb0(%k: i32):
    tile.print "{}", %k : i32
    %last = arith.cmpi sle, %k, %dim : i32
    %next = scf.if %last -> i32 {
      scf.yield %k : i32
    } else {
      %down = arith.subi %k, %c1 : i32
      scf.yield %down : i32
    }
    scf.yield %next, %last : i32, i1
  }
  return
}

// -----

// A `break` at the head of a step, around which a branch skips the rest: what the loop leaves is as it was.
// CHECK-LABEL: @at_the_head
// CHECK: %[[END:.*]] = arith.minsi {{.*}}%c100_i32
// CHECK: %[[R:.*]] = scf.for %[[K:.*]] = %c0_i32 to %[[END]] step %c1_i32 iter_args(%[[X:.*]] = %arg1)
// CHECK-NEXT: tile.print "{}", %[[K]]
// CHECK-NEXT: %[[Y:.*]] = arith.addf %[[X]], %[[X]]
// CHECK-NEXT: scf.yield %[[Y]]
// CHECK: return %[[R]]
func.func @at_the_head(%n: i32, %a: tensor<8xf32>) -> tensor<8xf32> {
  %false = arith.constant false
  %true = arith.constant true
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %most = arith.constant 100 : i32
  %r:2 = scf.while (%k = %c0, %x = %a, %done = %false) : (i32, tensor<8xf32>, i1) -> (i32, tensor<8xf32>) {
    %below = arith.cmpi slt, %k, %most : i32
    %on = arith.xori %done, %true : i1
    %more = arith.andi %below, %on : i1
    scf.condition(%more) %k, %x : i32, tensor<8xf32>
  } do {
  ^bb0(%k: i32, %x: tensor<8xf32>):
    %ends = arith.cmpi sge, %k, %n : i32
    %y = scf.if %ends -> tensor<8xf32> {
      scf.yield %x : tensor<8xf32>
    } else {
      tile.print "{}", %k : i32
      %twice = arith.addf %x, %x : tensor<8xf32>
      scf.yield %twice : tensor<8xf32>
    }
    %next = arith.addi %k, %c1 : i32
    scf.yield %next, %y, %ends : i32, tensor<8xf32>, i1
  }
  return %r#1 : tensor<8xf32>
}

// -----

// A count that meets the bound: which cannot lie before it, or is an index; otherwise it may go around all numbers.
// CHECK-LABEL: @meets
// CHECK: scf.for
// CHECK: %[[SOME:.*]] = arith.maxsi %arg1, %c1_i32
// CHECK: scf.for %{{.*}} = %c0_i32 to %[[SOME]]
// CHECK: scf.while
func.func @meets(%a: memref<?xi32, strided<[1]>>, %n: i32) {
  %false = arith.constant false
  %true = arith.constant true
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %dim = tile.dim %a, 0 : memref<?xi32, strided<[1]>>
  %r = scf.while (%k = %c0) : (i32) -> i32 {
    %more = arith.cmpi ne, %dim, %k : i32
    scf.condition(%more) %k : i32
  } do {
  ^bb0(%k: i32):
    tile.print "{}", %k : i32
    %next = arith.addi %k, %c1 : i32
    scf.yield %next : i32
  }
  %q = scf.while (%k = %c0, %done = %false) : (i32, i1) -> i32 {
    %more = arith.xori %done, %true : i1
    scf.condition(%more) %k : i32
  } do {
  ^bb0(%k: i32):
    %x = tile.load %a[%k] padding zero : memref<?xi32, strided<[1]>>, i32 -> tensor<8xi32>
    tile.print "{}", %x : tensor<8xi32>
    %next = arith.addi %k, %c1 : i32
    %last = arith.cmpi eq, %next, %n : i32
    scf.yield %next, %last : i32, i1
  }
  %s = scf.while (%k = %c0) : (i32) -> i32 {
    %more = arith.cmpi ne, %k, %n : i32
    scf.condition(%more) %k : i32
  } do {
  ^bb0(%k: i32):
    tile.print "{}", %k : i32
    %next = arith.addi %k, %c1 : i32
    scf.yield %next : i32
  }
  return
}

// -----

// What is behind the test does more than compute, or divides by what may be zero then; the count is read behind the loop.
// CHECK-LABEL: @as_they_are
// CHECK-COUNT-2: scf.while
func.func @as_they_are(%n: i32) -> (i32, i32) {
  %false = arith.constant false
  %true = arith.constant true
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c9 = arith.constant 9 : i32
  %r:2 = scf.while (%k = %c0, %x = %c0, %done = %false) : (i32, i32, i1) -> (i32, i32) {
    %more = arith.xori %done, %true : i1
    scf.condition(%more) %k, %x : i32, i32
  } do {
  ^bb0(%k: i32, %x: i32):
    %left = arith.subi %n, %k : i32
    %last = arith.cmpi eq, %left, %c0 : i32
    %next:2 = scf.if %last -> (i32, i32) {
      scf.yield %k, %x : i32, i32
    } else {
      %share = arith.divsi %c9, %left : i32
      %up = arith.addi %k, %c1 : i32
      scf.yield %up, %share : i32, i32
    }
    scf.yield %next#0, %next#1, %last : i32, i32, i1
  }
  %q = scf.while (%k = %c0, %done = %false) : (i32, i1) -> i32 {
    %more = arith.xori %done, %true : i1
    scf.condition(%more) %k : i32
  } do {
  ^bb0(%k: i32):
    %last = arith.cmpi sge, %k, %n : i32
    %next = scf.if %last -> i32 {
      scf.yield %k : i32
    } else {
      %up = arith.addi %k, %c1 : i32
      scf.yield %up : i32
    }
    tile.print "{}", %next : i32
    scf.yield %next, %last : i32, i1
  }
  return %r#1, %q : i32, i32
}
