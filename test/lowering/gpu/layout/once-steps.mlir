// A loop that runs once at most, from a block's first key to its last one: what it brings has one stage. Keys of 512
// columns do not fit beside the values, which go into a product that has no steps, but pieces of them do. Half of a
// multiprocessor's shared memory does not hold them: the hint occupancy is dropped.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-strip-mine))' 2>/dev/null | FileCheck %s
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-strip-mine,tile-select-mma,tile-plan-grid,tile-persistent-loop,tile-assign-layouts,tile-promote-memory,tile-sink-waits,tile-specialize-warps))' 2>&1 | FileCheck %s --check-prefix=REMARK

!A = memref<?x?xbf16, strided<[?, 1]>>

// CHECK-LABEL: @once
// CHECK-SAME: tile.hints = {}
// CHECK-SAME: tile.product_step = 128 : i32
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c128_i32
// CHECK: scf.for %{{.*}} to %c8_i32
// CHECK: tile.load {{.*}}tile.latency = 10 : i32{{.*}} -> tensor<128x64xbf16>
// CHECK: tile.load {{.*}} -> tensor<64x16xbf16>
// CHECK: tile.load {{.*}} -> tensor<128x512xbf16>
// REMARK: drops occupancy=2: operands of its products need
// REMARK: is done in 8 steps of 64 along k
// REMARK: into a buffer of {{[3-9]}} stages of 18432 bytes
// REMARK: into a buffer of 1 stages of 131072 bytes
module attributes {tile.target = "sm_90a"} {
  func.func @once(%q: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %k: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %v: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.hints = {occupancy = 2 : i32}} {
    %c0 = arith.constant 0 : i32
    %c128 = arith.constant 128 : i32
    %scores = arith.constant dense<0.0> : tensor<128x16xf32>
    %zero = arith.constant dense<0.0> : tensor<512x16xf32>
    %b = tile.block_id 0
    %n = tile.dim %k, 0 : !A
    %first = arith.muli %b, %c128 : i32
    %next = arith.addi %first, %c128 : i32
    %end = arith.minsi %next, %n : i32
    %a = tile.load %q[%c0, %c0] order [1, 0] padding zero : !A, i32, i32 -> tensor<512x16xbf16>
    %r = scf.for %i = %first to %end step %c128 iter_args(%acc = %zero) -> (tensor<512x16xf32>) : i32 {
      %keys = tile.load %k[%b, %c0] padding zero {tile.latency = 2 : i32} : !A, i32, i32 -> tensor<128x512xbf16>
      %s = tile.mma %keys, %a, %scores : tensor<128x512xbf16>, tensor<512x16xbf16>, tensor<128x16xf32>
      %p = arith.truncf %s : tensor<128x16xf32> to tensor<128x16xbf16>
      %values = tile.load %v[%b, %c0] padding zero : !A, i32, i32 -> tensor<128x512xbf16>
      %t = tile.permute %values [1, 0] : tensor<128x512xbf16>
      %d = tile.mma %t, %p, %acc : tensor<512x128xbf16>, tensor<128x16xbf16>, tensor<512x16xf32>
      scf.yield %d : tensor<512x16xf32>
    }
    tile.store %r, %y[%b, %c0] : tensor<512x16xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
