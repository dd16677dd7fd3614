// Roles that gather, as code of threads.
// RUN: tw-opt %S/../../roles/Inputs/gathered-product.mlir -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-optimize-indices,tile-assign-layouts,tile-promote-memory,tile-specialize-warps),canonicalize,cse,tile-allocate-shared,func.func(tile-insert-barriers),tile-to-nvvm)' 2>/dev/null | FileCheck %s

// All threads of the producer work; one of its lanes starts the accelerator. The consumers have a fence.
// CHECK-LABEL: llvm.func @rows
// CHECK-DAG: setmaxnreg.dec.sync.aligned.u32 104
// CHECK-DAG: nvvm.elect.sync
// CHECK-DAG: mbarrier.arrive.expect_tx
// CHECK-DAG: cp.async.cg.shared.global [$0], [$1 + 0], 16, $2;
// CHECK-DAG: cp.async.bulk.tensor
// CHECK-DAG: cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$0];
// CHECK-DAG: setmaxnreg.inc.sync.aligned.u32 200
// CHECK: mbarrier.try_wait.parity{{.*}}
// CHECK-NEXT: fence.proxy.async.shared::cta;
// CHECK: wgmma.mma_async
