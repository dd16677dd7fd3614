// Attention waits for a product where its sums are read: softmax stands in front of that of the product before.
// RUN: tw-opt %S/Inputs/attention.mlir -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-online-softmax,tile-pipeline-mma,tile-assign-layouts,tile-promote-memory,tile-sink-waits),canonicalize,cse)' | FileCheck %s --check-prefix=WAIT
// RUN: tw-opt %S/Inputs/attention.mlir -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-online-softmax,tile-pipeline-mma,tile-assign-layouts,tile-promote-memory,tile-sink-waits,tile-pipeline),canonicalize,cse,tile-allocate-shared,func.func(tile-insert-barriers),tile-to-nvvm)' | FileCheck %s --check-prefix=NVVM

// WAIT-LABEL: @attention
// WAIT: scf.for
// WAIT: %[[S:.*]] = tile.async_mma
// WAIT-NEXT: %[[O:.*]] = tile.async_mma
// WAIT: tile.mma_wait %[[S]], 1 {complete}
// WAIT: math.exp2
// WAIT: %[[IF:.*]]:4 = scf.if
// WAIT: %{{.*}}, %[[ORDERED:.*]] = tile.mma_wait %[[O]], 0 with %[[IF]]#1
// WAIT: arith.truncf %[[ORDERED]]
// WAIT: scf.if
// WAIT: scf.yield

// A wait orders the registers; the weights cross to the next iteration two in a word.
// NVVM-LABEL: @attention
// NVVM: ^bb{{[0-9]*}}({{.*}}: vector<2xbf16>
// NVVM: wgmma.mma_async
// NVVM: wgmma.mma_async
// NVVM: wgmma.wait_group.sync.aligned 1;", "=&f,=&f
// NVVM: llvm.nvvm.vote.any.sync
// NVVM: wgmma.wait_group.sync.aligned 0;", "=&f,=&f
