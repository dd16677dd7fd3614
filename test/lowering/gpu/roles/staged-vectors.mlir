// The producer brings both tiles together: one barrier counts the bytes of both.
// RUN: tw-opt %S/../memory/Inputs/vector.mlir -pass-pipeline='builtin.module(func.func(tile-prefetch-loads,tile-specialize-warps))' 2>/dev/null | FileCheck %s

// CHECK-LABEL: @brought
// CHECK: producer {
// CHECK: tile.barrier_expect %{{.*}}, 8448
// CHECK: tile.tma_load %arg0
// CHECK: tile.tma_load %arg1
// CHECK: consumer {
// CHECK: tile.barrier_wait
// CHECK: tile.async_mma
// CHECK: tile.mma_wait
// CHECK-NOT: tile.barrier_wait
// CHECK: tile.local_load
// CHECK: tile.barrier_arrive %{{.*}} together
