// A warpgroup gathers what two others compute on: rows by cp.async, beside a box that the accelerator brings.
// RUN: tw-opt %S/Inputs/gathered-product.mlir -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-optimize-indices,tile-assign-layouts,tile-promote-memory,tile-specialize-warps),canonicalize,cse)' 2>/dev/null | FileCheck %s

// The stage is full when the 128 threads of the producer have what they gathered, and the announced bytes of the other
// operand are there: 129 arrivals. The producer computes its indices itself; a thread of its four warps has the rows of
// two threads of the eight.
// CHECK: #[[ROWS:.*]] = #tile.linear<register = {{\[}}[32], [64], [16]], lane = {{.*}}, warp = {{\[}}[4], [8]]>
// CHECK-LABEL: func.func @rows
// CHECK-DAG: %[[A:.*]] = tile.alloc_shared : <4x128x64xbf16
// CHECK-DAG: %[[B:.*]] = tile.alloc_shared : <4x64x256xbf16
// CHECK-DAG: %[[FULL:.*]] = tile.alloc_barriers arrivals 129 : <4>
// CHECK-DAG: %[[EMPTY:.*]] = tile.alloc_barriers arrivals 8 : <4>
// CHECK: tile.roles producer_warps 4 registers 104, 200 producer {
// CHECK: tile.gather %arg2{{.*}} -> tensor<128xi32, #[[ROWS]]>
// CHECK: scf.for %[[K:.*]] = %{{.*}} iter_args(%[[SLOT:.*]] = %c0{{.*}}, %[[PARITY:.*]] = %c0{{.*}}) -> (i32, i32)
// CHECK: tile.barrier_wait %[[EMPTY]][%[[SLOT]]], %{{.*}} : <4>
// CHECK-NEXT: tile.barrier_expect %[[FULL]][%[[SLOT]]], 32768
// CHECK-NEXT: tile.tma_load %arg1[%[[K]], %c0{{.*}}] into %[[B]][%[[SLOT]]] signal %[[FULL]][%[[SLOT]]]
// CHECK-NEXT: tile.async_gather %arg0[%{{.*}}, %{{.*}}] into %[[A]][%[[SLOT]]] {check_bounds}
// CHECK-NEXT: tile.barrier_arrive %[[FULL]][%[[SLOT]]] gathered
// CHECK: } consumer {
// CHECK-NOT: gather
// CHECK: tile.barrier_wait %[[FULL]][%{{.*}}], %{{.*}} gathered
// CHECK: tile.async_mma %[[A]][%{{.*}}], %[[B]]
