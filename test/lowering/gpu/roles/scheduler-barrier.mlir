// Two warpgroups of a block start their products in turn, so that one computes while the other's run.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-specialize-warps))' 2>/dev/null | FileCheck %s
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-specialize-warps))' 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-specialize-warps),tile-allocate-shared,tile-to-nvvm)' 2>/dev/null | FileCheck %s --check-prefix=NVVM
// RUN: sed 's/tile.hints = {/tile.hints = {race_check = 1 : i32, /' %s | tw-opt -split-input-file -pass-pipeline='builtin.module(func.func(tile-specialize-warps),tile-allocate-shared,func.func(tile-insert-barriers))' 2>/dev/null | FileCheck %s --check-prefix=RACE

// REMARK: remark: 'func.func' op has a scheduler barrier: one warpgroup computes while the other's products run

#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
#b = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#a = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>

// CHECK-LABEL: func.func @computes
// CHECK: consumer {
// CHECK: %[[GROUP:.*]] = tile.consumer_group {tile.groups}
// CHECK: %[[SECOND:.*]] = arith.cmpi eq, %[[GROUP]], %c1_i32
// CHECK: scf.if %[[SECOND]] {
// CHECK-NEXT: tile.ordered_arrive {tile.groups}
// CHECK-NEXT: }
// CHECK: scf.for
// CHECK: tile.barrier_wait
// CHECK: tile.ordered_wait {tile.groups}
// CHECK-NEXT: tile.async_mma
// CHECK-NEXT: tile.ordered_arrive {tile.groups}
// CHECK-NEXT: tile.mma_wait
// CHECK: math.exp2
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[GROUP]], %c0_i32
// CHECK: scf.if %[[FIRST]] {
// CHECK-NEXT: tile.ordered_wait {tile.groups}

// In a race-check build the groups meet around each product: none could wait for its turn.
// RACE-LABEL: func.func @computes
// RACE-NOT: tile.ordered
// RACE: tile.barrier
// RACE-NOT: tile.ordered

// 256 threads of the two meet at the barrier of the one that waits.
// NVVM-LABEL: llvm.func @computes
// NVVM: %[[G:.*]] = llvm.udiv
// NVVM: llvm.nvvm.barrier.cta.arrive.aligned.count"(%{{.*}}, %[[ALL:.*]]) :
// NVVM: llvm.nvvm.barrier.cta.sync.aligned.count"
module attributes {tile.target = "sm_90a"} {
  func.func @computes(%n: i32) attributes {tile.kernel, tile.async_mma, tile.hints = {num_warps = 8 : i32}} {
    %zero = arith.constant dense<0.0> : tensor<128x64xf32, #acc>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared : !tile.buffer<1x64x64xbf16, #b>
    %a = tile.alloc_shared : !tile.buffer<1x128x64xbf16, #a>
    %full = tile.alloc_barriers arrivals 1 : !tile.barriers<1>
    tile.roles producer_warps 1 producer {
    } consumer {
      %d = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<128x64xf32, #acc>) : i32 {
        tile.barrier_wait %full[%c0], %c0 : !tile.barriers<1>
        %p = tile.async_mma %a[%c0], %b[%c0], %zero : !tile.buffer<1x128x64xbf16, #a>, !tile.buffer<1x64x64xbf16, #b>, tensor<128x64xf32, #acc> -> tensor<128x64xf32, #acc>
        %w = tile.mma_wait %p, 0 : tensor<128x64xf32, #acc> -> tensor<128x64xf32, #acc>
        %e = math.exp2 %w : tensor<128x64xf32, #acc>
        %t = arith.truncf %e : tensor<128x64xf32, #acc> to tensor<128x64xbf16, #acc>
        %q = tile.async_mma %t, %b[%c0], %sum : tensor<128x64xbf16, #acc>, !tile.buffer<1x64x64xbf16, #b>, tensor<128x64xf32, #acc> -> tensor<128x64xf32, #acc>
        %s = tile.mma_wait %q, 0 : tensor<128x64xf32, #acc> -> tensor<128x64xf32, #acc>
        scf.yield %s : tensor<128x64xf32, #acc>
      }
    }
    return
  }
}

// -----

#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
#b = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#a = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>

// Products that merely add up keep the Tensor Core busy by themselves.
// REMARK-NOT: scheduler barrier
// CHECK-LABEL: func.func @adds_up
// CHECK-NOT: tile.ordered
module attributes {tile.target = "sm_90a"} {
  func.func @adds_up(%n: i32) attributes {tile.kernel, tile.async_mma, tile.hints = {num_warps = 8 : i32}} {
    %zero = arith.constant dense<0.0> : tensor<128x64xf32, #acc>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared : !tile.buffer<1x64x64xbf16, #b>
    %a = tile.alloc_shared : !tile.buffer<1x128x64xbf16, #a>
    tile.roles producer_warps 1 producer {
    } consumer {
      %d = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<128x64xf32, #acc>) : i32 {
        %p = tile.async_mma %a[%c0], %b[%c0], %sum : !tile.buffer<1x128x64xbf16, #a>, !tile.buffer<1x64x64xbf16, #b>, tensor<128x64xf32, #acc> -> tensor<128x64xf32, #acc>
        %w = tile.mma_wait %p, 0 : tensor<128x64xf32, #acc> -> tensor<128x64xf32, #acc>
        scf.yield %w : tensor<128x64xf32, #acc>
      }
    }
    return
  }
}

// -----

#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
#b = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#a = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>

// An iteration that waits for its only product and goes on with the sums takes no turns.
// CHECK-LABEL: func.func @goes_on
// CHECK-NOT: tile.ordered
module attributes {tile.target = "sm_90a"} {
  func.func @goes_on(%n: i32) attributes {tile.kernel, tile.async_mma, tile.hints = {num_warps = 8 : i32}} {
    %zero = arith.constant dense<0.0> : tensor<128x64xf32, #acc>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared : !tile.buffer<1x64x64xbf16, #b>
    %a = tile.alloc_shared : !tile.buffer<1x128x64xbf16, #a>
    tile.roles producer_warps 1 producer {
    } consumer {
      %r = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<128x64xf32, #acc>) : i32 {
        %p = tile.async_mma %a[%c0], %b[%c0], %zero : !tile.buffer<1x128x64xbf16, #a>, !tile.buffer<1x64x64xbf16, #b>, tensor<128x64xf32, #acc> -> tensor<128x64xf32, #acc>
        %w = tile.mma_wait %p, 0 : tensor<128x64xf32, #acc> -> tensor<128x64xf32, #acc>
        %e = arith.addf %w, %sum : tensor<128x64xf32, #acc>
        scf.yield %e : tensor<128x64xf32, #acc>
      }
    }
    return
  }
}
