// Threads of a SIMT block as lanes of vectors.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(tile-split-threads,tile-to-cpu)' | FileCheck %s

!x = memref<?xf32, strided<[1]>>

// Neighbours are a vector; where all lanes are in bounds there is no mask, else a second form has one.
// CHECK-LABEL: func.func @guarded
// CHECK: %[[P:.*]] = arith.cmpi slt, {{.*}} : vector<16xi32>
// CHECK: scf.if
// CHECK-NEXT: arith.extsi
// CHECK: llvm.load {{.*}} -> vector<16xf32>
// CHECK: llvm.store {{.*}} : vector<16xf32>
// CHECK: } else {
// CHECK: llvm.intr.masked.load
// CHECK: llvm.intr.masked.store
module attributes {tile.target = "cpu:x86-64-v4"} {
func.func @guarded(%x: !x, %n: i32) attributes {tile.kernel, tile.simt} {
  %t = tile.thread_id 0
  %p = arith.cmpi slt, %t, %n : i32
  scf.if %p {
    %v = tile.gather %x[%t] : !x, i32 -> f32
    tile.scatter %v, %x[%t] : f32, !x, i32
  }
  return
}
}

// -----

!x = memref<?xf32, strided<[1]>>

// The number of a warp is the same in all its lanes: one load.
// CHECK-LABEL: func.func @warps
// CHECK: llvm.load {{.*}} -> f32
// CHECK-NOT: masked.gather
module attributes {tile.target = "cpu:x86-64-v4"} {
func.func @warps(%x: !x) attributes {tile.kernel, tile.simt} {
  %c32 = arith.constant 32 : i32
  %t = tile.thread_id 0
  %w = arith.divui %t, %c32 : i32
  %v = tile.gather %x[%w] : !x, i32 -> f32
  tile.scatter %v, %x[%t] : f32, !x, i32
  return
}
}

// -----

// Rounds that differ: as many as all lanes have, then those that some have. A lane that is done keeps its sum.
// CHECK-LABEL: func.func @rounds
// CHECK: vector.reduction <minui>
// CHECK: scf.for
// CHECK-NOT: arith.select
// CHECK: }
// CHECK: scf.for
// CHECK: arith.cmpi ugt
// CHECK: arith.select
module attributes {tile.target = "cpu:x86-64-v4"} {
func.func @rounds(%x: memref<?xi32, strided<[1]>>, %n: i32) attributes {tile.kernel, tile.simt} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = tile.thread_id 0
  %s = scf.for %i = %t to %n step %c1 iter_args(%sum = %c0) -> (i32) : i32 {
    %next = arith.addi %sum, %i : i32
    scf.yield %next : i32
  }
  tile.scatter %s, %x[%t] : i32, memref<?xi32, strided<[1]>>, i32
  return
}
}

// -----

// A loop that lanes leave one by one ends when none is left; a thread that is alone along x is no vector.
// CHECK-LABEL: func.func @leaving
// CHECK: scf.while {{.*}} : (i32) -> i32
// CHECK: scf.while {{.*}} vector<16xi1>
// CHECK: vector.bitcast {{.*}} : vector<16xi1> to vector<1xi16>
// CHECK: scf.condition
module attributes {tile.target = "cpu:x86-64-v4"} {
func.func @leaving(%x: memref<?xi32, strided<[1]>>, %n: i32) attributes {tile.kernel, tile.simt} {
  %t = tile.thread_id 0
  %last = scf.while (%i = %t) : (i32) -> i32 {
    %p = arith.cmpi slt, %i, %n : i32
    scf.condition(%p) %i : i32
  } do {
  ^bb0(%i: i32):
    %next = arith.addi %i, %i : i32
    scf.yield %next : i32
  }
  tile.scatter %last, %x[%t] : i32, memref<?xi32, strided<[1]>>, i32
  return
}
}

// -----

!v = memref<?xi8, strided<[1]>>
!x = memref<?xi32, strided<[1]>>

// Elements of lanes: their indices leave the vector by words of 64 bits, not by way of memory.
// CHECK-LABEL: func.func @counts
// CHECK: %[[LANES:.*]] = llvm.load {{.*}} -> vector<16xi8>
// CHECK: %[[WORDS:.*]] = vector.bitcast %[[LANES]] : vector<16xi8> to vector<2xi64>
// CHECK-NOT: llvm.store {{.*}} vector
// CHECK: vector.extract %[[WORDS]][0]
// CHECK-COUNT-16: llvm.atomicrmw add
// CHECK: } else {
module attributes {tile.target = "cpu:x86-64-v4"} {
func.func @counts(%v: !v, %x: !x) attributes {tile.kernel, tile.simt} {
  %c1 = arith.constant 1 : i32
  %t = tile.thread_id 0
  %byte = tile.gather %v[%t] : !v, i32 -> i8
  %i = arith.extui %byte : i8 to i32
  %old = tile.atomic add relaxed device, %c1, %x[%i] : i32, !x, i32 -> i32
  return
}
}

// -----

!x = memref<?xf32, strided<[1]>>

// Sums of all lanes in one element are one.
// CHECK-LABEL: func.func @total
// CHECK: vector.shuffle {{.*}} [8, 9, 10, 11, 12, 13, 14, 15]
// CHECK: llvm.atomicrmw fadd
// CHECK-NOT: llvm.atomicrmw
// CHECK: } else {
module attributes {tile.target = "cpu:x86-64-v4"} {
func.func @total(%x: !x, %y: !x) attributes {tile.kernel, tile.simt} {
  %c0 = arith.constant 0 : i32
  %t = tile.thread_id 0
  %v = tile.gather %x[%t] : !x, i32 -> f32
  %old = tile.atomic add relaxed device, %v, %y[%c0] : f32, !x, i32 -> f32
  return
}
}

// -----

!x = memref<?xi32, strided<[1]>>

// Rounds of a known step are counted by integers; floats would divide where it is known at the launch only.
// CHECK-LABEL: func.func @known_step
// CHECK: arith.divui %{{.*}}, %{{.*}} : vector<16xi32>
// CHECK-NOT: arith.divf
// CHECK: vector.reduction <maxui>
module attributes {tile.target = "cpu:x86-64-v4"} {
func.func @known_step(%x: !x, %n: i32) attributes {tile.kernel, tile.simt} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %t = tile.thread_id 0
  %s = scf.for %i = %t to %n step %c32 iter_args(%sum = %c0) -> (i32) : i32 {
    %v = tile.gather %x[%i] : !x, i32 -> i32
    %next = arith.addi %sum, %v : i32
    scf.yield %next : i32
  }
  tile.scatter %s, %x[%t] : i32, !x, i32
  return
}
}
