// A loop over so many of a block's tiles goes over those tiles; not where something else is read of the count.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-canonicalize),canonicalize,cse)' | FileCheck %s

!V = memref<?xf32, strided<[1]>>

// CHECK-LABEL: @tiles
// CHECK: %[[B:.*]] = tile.block_id 0
// CHECK: %[[S:.*]] = tile.num_blocks 0
// CHECK: %[[T:.*]] = tile.dim
// CHECK: scf.for %[[J:.*]] = %[[B]] to %[[T]] step %[[S]]
// CHECK-NEXT: tile.load %arg0[%[[J]]]
// CHECK: scf.for %{{.*}} = %c0_i32 to
func.func @tiles(%a: !V) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %b = tile.block_id 0
  %s = tile.num_blocks 0
  %t = tile.dim %a, 0 : !V
  %left = arith.subi %t, %b : i32
  %mine = arith.ceildivsi %left, %s : i32
  %before = arith.subi %b, %s : i32
  scf.for %i = %c0 to %mine step %c1 : i32 {
    %far = arith.muli %i, %s : i32
    %back = arith.addi %before, %far : i32
    %j = arith.addi %back, %s : i32
    %x = tile.load %a[%j] padding zero : !V, i32 -> tensor<8xf32>
    tile.store %x, %a[%j] : tensor<8xf32>, !V, i32
  }
  scf.for %i = %c0 to %mine step %c1 : i32 {
    %far = arith.muli %i, %s : i32
    %j = arith.addi %b, %far : i32
    %x = tile.load %a[%j] padding zero : !V, i32 -> tensor<8xf32>
    tile.store %x, %a[%i] : tensor<8xf32>, !V, i32
  }
  return
}
