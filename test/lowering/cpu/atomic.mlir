// One access of the machine an element, under the mask; what it gives is kept, so that it is done once.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(tile-to-cpu)' | FileCheck %s

!array = memref<?xi32, strided<[1]>>

// CHECK-LABEL: func.func @lanes
// CHECK: scf.for
// CHECK-COUNT-16: llvm.atomicrmw umax {{.*}} acq_rel
// CHECK-NOT: llvm.atomicrmw
func.func @lanes(%a: !array, %i: i32) attributes {tile.kernel} {
  %n = tile.iota : tensor<64xi32>
  %x = tensor.splat %i : tensor<64xi32>
  %old = tile.atomic max acq_rel device, %x, %a[%n] {check_bounds, is_unsigned} : tensor<64xi32>, !array, tensor<64xi32> -> tensor<64xi32>
  %twice = arith.addi %old, %old : tensor<64xi32>
  tile.scatter %twice, %a[%old] {check_bounds} : tensor<64xi32>, !array, tensor<64xi32>
  return
}

// -----

// No machine adds floats of 16 bits: f32, and a loop until nobody came between.
// CHECK-LABEL: func.func @narrow
// CHECK: scf.while
// CHECK: arith.addf {{.*}} : f32
// CHECK: llvm.cmpxchg {{.*}} monotonic monotonic : !llvm.ptr, i16
func.func @narrow(%a: memref<?xbf16, strided<[1]>>, %x: bf16, %i: i32) attributes {tile.kernel} {
  %old = tile.atomic add relaxed device, %x, %a[%i] : bf16, memref<?xbf16, strided<[1]>>, i32 -> bf16
  return
}
