// Rows at indices, gathered for a product: from the program to copies that run ahead.
// RUN: tw-opt %S/Inputs/gathered-rows.mlir --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-optimize-indices,tile-assign-layouts,tile-promote-memory,tile-pipeline),canonicalize,cse)' | FileCheck %s
// RUN: tw-opt %S/Inputs/gathered-rows.mlir --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-optimize-indices,tile-assign-layouts,tile-promote-memory,tile-pipeline,tile-report),canonicalize,cse,tile-allocate-shared,func.func(tile-insert-barriers),tile-to-nvvm)' 2>&1 | FileCheck %s --check-prefix=NVVM

// CHECK-LABEL: func.func @rows
// The loop carries the entries of the table for the copies of the next iteration. Neither they nor what becomes of
// them change their layout.
// CHECK: %[[BUF:.*]] = tile.alloc_shared : <3x64x32xbf16
// CHECK: tile.gather %[[T:arg2]]
// CHECK: tile.async_gather %arg0[%{{.*}}, %{{.*}}] into %[[BUF]][%c0
// CHECK: tile.gather %[[T]]
// CHECK: tile.async_gather %arg0[%{{.*}}, %{{.*}}] into %[[BUF]][%c1
// CHECK: %[[P2:.*]] = tile.gather %[[T]]
// CHECK: scf.for {{.*}} iter_args(%{{.*}}, %[[READ:.*]] = %c0_i32, %[[WRITE:.*]] = %c2_i32, %[[P:.*]] = %[[P2]])
// CHECK: tile.async_wait 1
// CHECK-NEXT: tile.barrier
// CHECK-NOT: convert_layout
// CHECK: %[[E:.*]] = arith.select %{{.*}}, %{{.*}}, %[[P]]
// CHECK: tile.reshape %[[E]]
// CHECK: tile.async_gather %arg0[%{{.*}}, %{{.*}}] into %[[BUF]][%[[WRITE]]] if %{{.*}} {check_bounds}
// CHECK: tile.async_commit
// CHECK: %[[PN:.*]] = tile.gather %[[T]]
// CHECK: tile.local_load %[[BUF]][%[[READ]]]
// CHECK: scf.yield %{{.*}}, %{{.*}}, %{{.*}}, %[[PN]]

// NVVM: remark: 'tile.async_gather' op reads 64x32xbf16 by cp.async, in pieces of up to 16 bytes
// NVVM-LABEL: llvm.func @rows
// NVVM: cp.async.cg.shared.global [$0], [$1 + 0], 16, $2;
// NVVM-NOT: cp.async.ca
