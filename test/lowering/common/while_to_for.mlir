// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-canonicalize),canonicalize,cse)' | FileCheck %s

// CHECK-LABEL: @up
// CHECK: %[[R:.*]] = scf.for %[[K:.*]] = %arg0 to %arg1 step %c2_i32 iter_args(%[[X:.*]] = %arg2)
// CHECK: arith.addf %[[X]]
// CHECK-NOT: scf.while
// CHECK: return %[[R]]
func.func @up(%low: i32, %n: i32, %a: tensor<8xf32>) -> tensor<8xf32> {
  %c2 = arith.constant 2 : i32
  %r:2 = scf.while (%x = %a, %k = %low) : (tensor<8xf32>, i32) -> (i32, tensor<8xf32>) {
    %more = arith.cmpi sgt, %n, %k : i32
    scf.condition(%more) %k, %x : i32, tensor<8xf32>
  } do {
  ^bb0(%k: i32, %x: tensor<8xf32>):
    %next = arith.addi %k, %c2 : i32
    %y = arith.addf %x, %x : tensor<8xf32>
    scf.yield %y, %next : tensor<8xf32>, i32
  }
  return %r#1 : tensor<8xf32>
}

// -----

// A count down to zero, its end used: the loop goes over the negatives.
// CHECK-LABEL: @down
// CHECK: %[[LOW:.*]] = arith.subi %c0_i32, %arg0
// CHECK: scf.for %[[K:.*]] = %[[LOW]] to %c1_i32 step %c1_i32
// CHECK: %[[OLD:.*]] = arith.subi %c0_i32, %[[K]]
// CHECK: tile.print {{.*}}%[[OLD]]
// CHECK: return
func.func @down(%n: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.while (%k = %n) : (i32) -> i32 {
    %more = arith.cmpi sge, %k, %c0 : i32
    scf.condition(%more) %k : i32
  } do {
  ^bb0(%k: i32):
    tile.print "{}", %k : i32
    %next = arith.subi %k, %c1 : i32
    scf.yield %next : i32
  }
  return %r : i32
}

// -----

// The bound changes, or the step may be zero: no count.
// CHECK-LABEL: @no_count
// CHECK: scf.while
// CHECK: scf.while
func.func @no_count(%a: memref<?xi32, strided<[1]>>, %n: i32, %s: i32) -> (i32, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.while (%k = %c0) : (i32) -> i32 {
    %end = tile.gather %a[%c0] : memref<?xi32, strided<[1]>>, i32 -> i32
    %more = arith.cmpi slt, %k, %end : i32
    scf.condition(%more) %k : i32
  } do {
  ^bb0(%k: i32):
    %next = arith.addi %k, %c1 : i32
    scf.yield %next : i32
  }
  %q = scf.while (%k = %c0) : (i32) -> i32 {
    %more = arith.cmpi slt, %k, %n : i32
    scf.condition(%more) %k : i32
  } do {
  ^bb0(%k: i32):
    %next = arith.addi %k, %s : i32
    scf.yield %next : i32
  }
  return %r, %q : i32, i32
}

// -----

// A second condition that further steps cannot break is looked at once, from either side; of two that steps break the
// nearer one counts.
// CHECK-LABEL: @guarded
// CHECK-SAME: %[[LOW:.*]]: i32, %[[FROM:.*]]: i32, %[[N:.*]]: i32
// CHECK: %[[HOLDS:.*]] = arith.cmpi sge, %[[LOW]], %[[FROM]]
// CHECK: %[[BEHIND:.*]] = arith.subi %[[LOW]], %[[FROM]]
// CHECK: %[[FIRST:.*]] = arith.maxsi %[[BEHIND]], %c0_i32
// CHECK: %[[MOST:.*]] = arith.subi %[[N]], %[[FROM]]
// CHECK: %[[END:.*]] = arith.select %[[HOLDS]], %[[MOST]], %[[FIRST]]
// CHECK: scf.for %[[K:.*]] = %[[FIRST]] to %[[END]]
// CHECK: arith.addi %[[K]], %[[FROM]]
// CHECK: scf.for
// CHECK: %[[NEAR:.*]] = arith.minsi %[[FROM]], %[[N]]
// CHECK: scf.for %{{.*}} = %[[LOW]] to %[[NEAR]]
func.func @guarded(%low: i32, %from: i32, %n: i32) -> (i32, i32, i32) {
  %c1 = arith.constant 1 : i32
  %up = scf.while (%k = %low) : (i32) -> i32 {
    %holds = arith.cmpi sge, %k, %from : i32
    %more = arith.cmpi slt, %k, %n : i32
    %both = arith.andi %holds, %more : i1
    scf.condition(%both) %k : i32
  } do {
  ^bb0(%k: i32):
    tile.print "{}", %k : i32
    %next = arith.addi %k, %c1 : i32
    scf.yield %next : i32
  }
  %down = scf.while (%k = %low) : (i32) -> i32 {
    %holds = arith.cmpi sge, %k, %from : i32
    %more = arith.cmpi slt, %k, %n : i32
    %both = arith.andi %holds, %more : i1
    scf.condition(%both) %k : i32
  } do {
  ^bb0(%k: i32):
    tile.print "{}", %k : i32
    %next = arith.subi %k, %c1 : i32
    scf.yield %next : i32
  }
  %none = scf.while (%k = %low) : (i32) -> i32 {
    %less = arith.cmpi slt, %k, %from : i32
    %more = arith.cmpi slt, %k, %n : i32
    %both = arith.andi %less, %more : i1
    scf.condition(%both) %k : i32
  } do {
  ^bb0(%k: i32):
    tile.print "{}", %k : i32
    %next = arith.addi %k, %c1 : i32
    scf.yield %next : i32
  }
  return %up, %down, %none : i32, i32, i32
}
