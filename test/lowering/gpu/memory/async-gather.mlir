// Rows at indices, gathered for a product: from the program to copies that run ahead.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-optimize-indices))' | FileCheck %s --check-prefix=OWN
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-optimize-indices,tile-assign-layouts,tile-promote-memory,tile-pipeline),canonicalize,cse)' | FileCheck %s
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-optimize-indices,tile-assign-layouts,tile-promote-memory,tile-pipeline,tile-report),canonicalize,cse,tile-allocate-shared,func.func(tile-insert-barriers),tile-to-nvvm)' 2>&1 | FileCheck %s --check-prefix=NVVM

!table = memref<?xi32, strided<[1]>>
!array = memref<?x?xbf16, strided<[?, 1]>>
module attributes {tile.target = "sm_80"} {
  // OWN-LABEL: @rows
  // CHECK-LABEL: func.func @rows
  // NVVM: remark: 'tile.async_gather' op reads 64x32xbf16 by cp.async, in pieces of up to 16 bytes
  // NVVM-LABEL: llvm.func @rows
  func.func @rows(%A: !array {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>},
                  %B: !array {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>},
                  %T: !table {tile.align = 16 : i32, tile.shape_div = array<i64: 16>, tile.stride_div = array<i64: 1>},
                  %C: !array {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>},
                  %n: i32, %end: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32, num_stages = 3 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %minus = arith.constant dense<-1> : tensor<64xi32>
    %zeros = arith.constant dense<0.0> : tensor<64x32xbf16>
    %none = arith.constant dense<0.0> : tensor<64x64xf32>
    %first = tile.iota : tensor<64xi32>
    %column = tile.iota : tensor<32xi32>
    %c = tile.reshape %column : tensor<32xi32> -> tensor<1x32xi32>
    %columns = tile.broadcast %c : tensor<1x32xi32> -> tensor<64x32xi32>
    %ends = tensor.splat %end : tensor<64xi32>
    %x = tile.load %B[%c0, %c0] padding zero : !array, i32, i32 -> tensor<32x64xbf16>
    // The places that the mask of the scores compares are not those that the gather computes.
    // OWN: scf.for
    // OWN: %[[I:.*]] = arith.addi %{{.*}} : tensor<64xi32>
    // OWN: %[[J:.*]] = arith.addi %{{.*}} : tensor<64xi32>
    // OWN: %[[P:.*]] = tile.gather %{{.*}}[%[[I]]] mask
    // OWN-NOT: tile.gather
    // OWN: %[[E:.*]] = arith.select %{{.*}}, %{{.*}}, %[[P]]
    // OWN: %[[R:.*]] = tile.reshape %[[E]]
    // OWN: %[[S:.*]] = tile.broadcast %[[R]]
    // OWN: tile.gather %{{.*}}[%[[S]], %{{.*}}]
    // OWN: tile.reshape %[[J]] : tensor<64xi32> -> tensor<1x64xi32>

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

    // NVVM: cp.async.cg.shared.global [$0], [$1 + 0], 16, $2;
    // NVVM-NOT: cp.async.ca
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %none) -> (tensor<64x64xf32>) : i32 {
      %start = arith.muli %k, %c64 : i32
      %s = tensor.splat %start : tensor<64xi32>
      %i = arith.addi %s, %first : tensor<64xi32>
      %m = arith.cmpi slt, %i, %ends : tensor<64xi32>
      %p = tile.gather %T[%i] mask %m : tensor<64xi1> else %minus : tensor<64xi32> {check_bounds} : !table, tensor<64xi32> -> tensor<64xi32>
      // The original of this is erased: the entry is reached on three ways.
      %negative = arith.cmpi slt, %p, %minus : tensor<64xi32>
      %sum = arith.addi %p, %ends : tensor<64xi32>
      %entry = arith.select %negative, %sum, %p : tensor<64xi1>, tensor<64xi32>
      %q = tile.reshape %entry : tensor<64xi32> -> tensor<64x1xi32>
      %rows = tile.broadcast %q : tensor<64x1xi32> -> tensor<64x32xi32>
      %a = tile.gather %A[%rows, %columns] else %zeros : tensor<64x32xbf16> {check_bounds} : !array, tensor<64x32xi32>, tensor<64x32xi32> -> tensor<64x32xbf16>
      %d = tile.mma %a, %x, %acc : tensor<64x32xbf16>, tensor<32x64xbf16>, tensor<64x64xf32>
      %j = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
      %jj = tile.broadcast %j : tensor<1x64xi32> -> tensor<64x64xi32>
      %ee = tensor.splat %end : tensor<64x64xi32>
      %mm = arith.cmpi slt, %jj, %ee : tensor<64x64xi32>
      %e = arith.select %mm, %d, %none : tensor<64x64xi1>, tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    }
    %h = arith.truncf %r : tensor<64x64xf32> to tensor<64x64xbf16>
    tile.store %h, %C[%c0, %c0] : tensor<64x64xbf16>, !array, i32, i32
    return
  }
}
