// Vectors that many threads hold are copied beside the tiles of products, and read from shared memory where they are used.
// RUN: tw-opt %S/Inputs/vector.mlir -pass-pipeline='builtin.module(func.func(tile-prefetch-loads))' | FileCheck %s

// The copy stands behind those of the products' tiles, the read and the other forms of the vector in front of their use.
// CHECK-LABEL: @brought
// CHECK: %[[V:.*]] = tile.alloc_shared : <1x64xf32
// CHECK: scf.for %[[I:.*]] = %c0_i32
// CHECK: tile.async_copy %arg0
// CHECK: %[[NEXT:.*]] = arith.addi %[[I]], %c1_i32
// CHECK: tile.async_copy %arg1[%[[NEXT]]] into %[[V]]
// CHECK: tile.async_mma
// CHECK-NOT: tile.load
// CHECK: tile.mma_wait
// CHECK: arith.mulf
// CHECK: %[[L:.*]] = tile.local_load %[[V]]
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.reshape %[[L]]
// CHECK-NEXT: tile.broadcast
// CHECK-NEXT: arith.subf
