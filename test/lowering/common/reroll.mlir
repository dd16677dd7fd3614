// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-canonicalize),canonicalize,cse)' 2>%t | FileCheck %s
// RUN: FileCheck --check-prefix=SAID %s < %t

!m = memref<?x?xf16, strided<[?, 1]>>
!h = tensor<16x16xf16>
!s = tensor<16x16xf32>

// Tiles loaded a step ahead: the loop loads them, and does the last step, too.
// CHECK-LABEL: @ahead
// CHECK: scf.for %[[K:.*]] = %c0_i32 to %c8_i32 step %c1_i32 iter_args(%[[X:.*]] = %{{.*}}) -> (tensor<16x16xf32>)
// CHECK-DAG: %[[A:.*]] = tile.load %arg0[%c0_i32, %[[K]]]
// CHECK-DAG: %[[B:.*]] = tile.load %arg1[%[[K]], %c0_i32]
// CHECK: tile.mma %[[A]], %[[B]], %[[X]]
// CHECK-NOT: tile.load
func.func @ahead(%A: !m, %B: !m) -> !s {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %zero = arith.constant dense<0.0> : !s
  %a0 = tile.load %A[%c0, %c0] : !m, i32, i32 -> !h
  %b0 = tile.load %B[%c0, %c0] : !m, i32, i32 -> !h
  %r:3 = scf.for %k = %c1 to %c8 step %c1 iter_args(%x = %zero, %a = %a0, %b = %b0) -> (!s, !h, !h) : i32 {
    %an = tile.load %A[%c0, %k] : !m, i32, i32 -> !h
    %bn = tile.load %B[%k, %c0] : !m, i32, i32 -> !h
    %y = tile.mma %a, %b, %x : !h, !h, !s
    scf.yield %y, %an, %bn : !s, !h, !h
  }
  %z = tile.mma %r#1, %r#2, %r#0 : !h, !h, !s
  return %z : !s
}

// -----

!m = memref<?x?xf16, strided<[?, 1]>>
!h = tensor<16x16xf16>
!s = tensor<16x16xf32>

// The array is written between the first load and the loop: what is loaded later may differ.
// SAID: remark: 'tile.load' op is for the next step of its loop
// SAID-NOT: for the next step
// CHECK-LABEL: @written
// CHECK: tile.load
// CHECK: tile.store
// CHECK: scf.for {{.*}} -> (tensor<16x16xf32>, tensor<16x16xf16>)
func.func @written(%A: !m, %b: !h, %n: i32) -> !s {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : !s
  %a0 = tile.load %A[%c0, %c0] : !m, i32, i32 -> !h
  tile.store %b, %A[%c0, %c0] : !h, !m, i32, i32
  %r:2 = scf.for %k = %c1 to %n step %c1 iter_args(%x = %zero, %a = %a0) -> (!s, !h) : i32 {
    %an = tile.load %A[%c0, %k] : !m, i32, i32 -> !h
    %y = tile.mma %a, %b, %x : !h, !h, !s
    scf.yield %y, %an : !s, !h
  }
  return %r#0 : !s
}

// -----

!m = memref<?x?xf16, strided<[?, 1]>>
!h = tensor<16x16xf16>
!s = tensor<16x16xf32>

// Two steps in one, up to a number that may be odd: the second step is done nevertheless.
// CHECK-LABEL: @two
// CHECK: %[[STEPS:.*]] = arith.ceildivsi %{{.*}}, %c2_i32
// CHECK: %[[END:.*]] = arith.muli %[[STEPS]], %c2_i32
// CHECK: scf.for %[[K:.*]] = %c0_i32 to %[[END]] step %c1_i32
// CHECK: tile.load %arg0[%c0_i32, %[[K]]]
// CHECK-NOT: tile.load
func.func @two(%A: !m, %b: !h, %n: i32) -> !s {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %zero = arith.constant dense<0.0> : !s
  %r = scf.for %k = %c0 to %n step %c2 iter_args(%x = %zero) -> (!s) : i32 {
    %a = tile.load %A[%c0, %k] : !m, i32, i32 -> !h
    %y = tile.mma %a, %b, %x : !h, !h, !s
    %k1 = arith.addi %k, %c1 : i32
    %a1 = tile.load %A[%c0, %k1] : !m, i32, i32 -> !h
    %z = tile.mma %a1, %b, %y : !h, !h, !s
    scf.yield %z : !s
  }
  return %r : !s
}

// -----

!m = memref<?x?xf16, strided<[?, 1]>>
!h = tensor<16x16xf16>
!s = tensor<16x16xf32>

// The first step in front of the loop, the last one behind it, at the number that the loop would go on with.
// CHECK-LABEL: @beside
// CHECK-NOT: tile.mma
// CHECK: scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step %c1_i32
// CHECK: tile.mma
// CHECK-NOT: tile.mma
func.func @beside(%A: !m, %b: !h, %n: i32) -> !s {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : !s
  %end = arith.maxsi %n, %c1 : i32
  %a0 = tile.load %A[%c0, %c0] : !m, i32, i32 -> !h
  %x0 = tile.mma %a0, %b, %zero : !h, !h, !s
  %r = scf.for %k = %c1 to %n step %c1 iter_args(%x = %x0) -> (!s) : i32 {
    %a = tile.load %A[%c0, %k] : !m, i32, i32 -> !h
    %y = tile.mma %a, %b, %x : !h, !h, !s
    scf.yield %y : !s
  }
  %al = tile.load %A[%c0, %end] : !m, i32, i32 -> !h
  %z = tile.mma %al, %b, %r : !h, !h, !s
  return %z : !s
}

// -----

!h = tensor<16x16xf16>
!s = tensor<16x16xf32>
!m = memref<?x?xf16, strided<[?, 1]>>

// The second of the two reads what the step began with, not what the first one left: they are no steps.
// CHECK-LABEL: @not_two
// CHECK: step %c2_i32
// CHECK-COUNT-2: tile.mma
func.func @not_two(%A: !m, %b: !h, %n: i32) -> (!s, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %zero = arith.constant dense<0.0> : !s
  %r:2 = scf.for %k = %c0 to %n step %c2 iter_args(%x = %zero, %o = %c0) -> (!s, i32) : i32 {
    %i = arith.addi %k, %o : i32
    %a = tile.load %A[%c0, %i] : !m, i32, i32 -> !h
    %y = tile.mma %a, %b, %x : !h, !h, !s
    %p = arith.xori %o, %k : i32
    %i1 = arith.addi %i, %c1 : i32
    %a1 = tile.load %A[%c0, %i1] : !m, i32, i32 -> !h
    %z = tile.mma %a1, %b, %y : !h, !h, !s
    %k1 = arith.addi %k, %c1 : i32
    %q = arith.xori %p, %k1 : i32
    scf.yield %z, %q : !s, i32
  }
  return %r#0, %r#1 : !s, i32
}

// -----

!m = memref<?x?xf16, strided<[?, 1]>>
!h = tensor<16x16xf16>
!s = tensor<16x16xf32>

// What a step in front starts from is a constant, behind the other operand.
// CHECK-LABEL: @from_a_constant
// CHECK: scf.for %[[K:.*]] = %c0_i32 to %c8_i32 step %c1_i32 iter_args(%[[X:.*]] = %[[LEAST:.*]]) -> (tensor<16x16xf32>)
// CHECK: %[[A:.*]] = tile.load %arg0[%c0_i32, %[[K]]]
// CHECK: arith.maxnumf %[[X]],
// CHECK-NOT: tile.load
func.func @from_a_constant(%A: !m) -> !s {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %least = arith.constant dense<-1.0> : !s
  %a0 = tile.load %A[%c0, %c0] : !m, i32, i32 -> !h
  %f0 = arith.extf %a0 : !h to !s
  %m0 = arith.maxnumf %f0, %least : !s
  %r = scf.for %k = %c1 to %c8 step %c1 iter_args(%x = %m0) -> !s : i32 {
    %a = tile.load %A[%c0, %k] : !m, i32, i32 -> !h
    %f = arith.extf %a : !h to !s
    %m = arith.maxnumf %x, %f : !s
    scf.yield %m : !s
  }
  return %r : !s
}

// -----

!m = memref<?x?xf16, strided<[?, 1]>>
!h = tensor<16x16xf16>
!s = tensor<16x16xf32>

// A difference is another one in the other order.
// CHECK-LABEL: @difference
// CHECK: tile.load
// CHECK: scf.for {{.*}} = %c1_i32 to
func.func @difference(%A: !m) -> !s {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %start = arith.constant dense<-1.0> : !s
  %a0 = tile.load %A[%c0, %c0] : !m, i32, i32 -> !h
  %f0 = arith.extf %a0 : !h to !s
  %m0 = arith.subf %f0, %start : !s
  %r = scf.for %k = %c1 to %c8 step %c1 iter_args(%x = %m0) -> !s : i32 {
    %a = tile.load %A[%c0, %k] : !m, i32, i32 -> !h
    %f = arith.extf %a : !h to !s
    %m = arith.subf %x, %f : !s
    scf.yield %m : !s
  }
  return %r : !s
}
