// A warpgroup gathers what two others compute on: rows by cp.async, beside a box that the accelerator brings.
// RUN: tw-opt %s -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-optimize-indices,tile-assign-layouts,tile-promote-memory,tile-specialize-warps),canonicalize,cse)' 2>/dev/null | FileCheck %s
// RUN: tw-opt %s -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-optimize-indices,tile-assign-layouts,tile-promote-memory,tile-specialize-warps),canonicalize,cse,tile-allocate-shared,func.func(tile-insert-barriers),tile-to-nvvm)' 2>/dev/null | FileCheck %s --check-prefix=NVVM

!A = memref<?x?xbf16, strided<[?, 1]>>
!T = memref<?xi32, strided<[1]>>

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

// All threads of the producer work; one of its lanes starts the accelerator. The consumers have a fence.
// NVVM-LABEL: llvm.func @rows
// NVVM-DAG: setmaxnreg.dec.sync.aligned.u32 104
// NVVM-DAG: nvvm.elect.sync
// NVVM-DAG: mbarrier.arrive.expect_tx
// NVVM-DAG: cp.async.cg.shared.global [$0], [$1 + 0], 16, $2;
// NVVM-DAG: cp.async.bulk.tensor
// NVVM-DAG: cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$0];
// NVVM-DAG: setmaxnreg.inc.sync.aligned.u32 200
// NVVM: mbarrier.try_wait.parity{{.*}}
// NVVM-NEXT: fence.proxy.async.shared::cta;
// NVVM: wgmma.mma_async
module attributes {tile.target = "sm_90a"} {
  func.func @rows(%x: !A {tile.tma, tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %t: !T, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_stages = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %none = arith.constant dense<0.0> : tensor<128x64xbf16>
    %minus = arith.constant dense<-1> : tensor<128xi32>
    %i = tile.iota : tensor<128xi32>
    %p = tile.gather %t[%i] else %minus : tensor<128xi32> {check_bounds} : !T, tensor<128xi32> -> tensor<128xi32>
    %q = tile.reshape %p : tensor<128xi32> -> tensor<128x1xi32>
    %rows = tile.broadcast %q : tensor<128x1xi32> -> tensor<128x64xi32>
    %m = tile.iota : tensor<64xi32>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
      %start = arith.muli %k, %c64 : i32
      %s = tensor.splat %start : tensor<64xi32>
      %c = arith.addi %s, %m : tensor<64xi32>
      %r = tile.reshape %c : tensor<64xi32> -> tensor<1x64xi32>
      %columns = tile.broadcast %r : tensor<1x64xi32> -> tensor<128x64xi32>
      %a = tile.gather %x[%rows, %columns] else %none : tensor<128x64xbf16> {check_bounds} : !A, tensor<128x64xi32>, tensor<128x64xi32> -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x256xbf16>
      %e = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>
      scf.yield %e : tensor<128x256xf32>
    }
    tile.store %d, %z[%c0, %c0] : tensor<128x256xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
