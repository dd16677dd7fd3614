// A product of a computed operand runs one iteration late, behind the loads of the next operand's parts: while it does,
// that operand is computed, but for what goes into the registers that the product reads. The first one multiplies zeros,
// the last one stands behind the loop.
// RUN: tw-opt %S/../memory/Inputs/scaled.mlir --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-pipeline-mma,tile-assign-layouts,tile-promote-memory,tile-sink-waits),canonicalize,cse)' | FileCheck %s

// CHECK-LABEL: @scaled
// CHECK: tile.reduce
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[P:.*]] = %{{.*}}) -> (tensor<128x128xf32, #{{.*}}>, tensor<128x64xbf16, #{{.*}}>)
// CHECK: %[[AT:.*]] = arith.select %{{.*}}, %{{.*}}, %c-1_i32
// CHECK: tile.async_copy %arg2[%c0_i32, %[[AT]]] into %[[W:[^\[]*]]
// CHECK: tile.local_load
// CHECK: tile.local_load
// CHECK: %[[D:.*]] = tile.async_mma %[[P]], %[[W]][%c0_i32], %[[ACC]]
// CHECK-NOT: tile.mma_wait
// CHECK-NOT: tile.local_load
// CHECK: arith.mulf
// CHECK: %[[SUM:.*]], %[[ORDERED:.*]] = tile.mma_wait %[[D]], 0 with %{{.*}}
// CHECK: %[[NEXT:.*]] = arith.truncf %[[ORDERED]]
// CHECK-NEXT: scf.yield %[[SUM]], %[[NEXT]]
// CHECK: tile.async_mma
