// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-promote-memory))' 2>/dev/null | FileCheck %s
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-promote-memory))' 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-promote-memory),canonicalize,cse,tile-allocate-shared,func.func(tile-insert-barriers),tile-to-nvvm)' 2>/dev/null | FileCheck %s --check-prefix=NVVM

// One after the other, of the kernels below.
// REMARK: remark: 'tile.store' op is done by the threads: the kernel reads or writes the array elsewhere too
// REMARK: remark: 'tile.store' op is done by the threads: it says allow_tma=False
// REMARK: remark: 'tile.store' op is done by the threads: a loop may store to the same place again
// REMARK: remark: 'tile.store' op is done by the threads: a loop may store to the same place again
// REMARK: remark: 'tile.store' op is done by the threads: the array may be another that the kernel writes, or reads behind it
// REMARK: remark: 'tile.store' op is done by the threads: the array may be another that the kernel writes, or reads behind it
// REMARK: remark: 'tile.store' op is done by the threads: the array may be another that the kernel writes, or reads behind it
// REMARK: remark: 'tile.store' op is done by the threads: the array is not known to have an address
// REMARK: remark: 'tile.store' op is done by the threads: warpgroups do not own boxes of its tile
// REMARK: remark: 'tile.store' op is done by the threads: shared memory has no room for its boxes

!C = memref<?x?xbf16, strided<[?, 1]>>
// Of 128x128 elements, two warpgroups own 64 rows each: boxes of 64x64, lanes and warps as in the accumulator.
#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
#rows = #tile.linear<register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0], [64, 0]], lane = [[0, 8], [0, 16], [0, 32], [0, 64], [1, 0]], warp = [[2, 0], [4, 0], [8, 0]]>

// The exchange for the threads' sake is gone; two stages a warpgroup.
// CHECK: #[[BOX:.*]] = #tile.linear<offset = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
// CHECK-LABEL: func.func @staged
// CHECK: %[[B:.*]] = tile.alloc_shared : <4x64x64xbf16, #[[BOX]]>
// CHECK-NOT: convert_layout
// CHECK: tile.tma_store %{{.*}} through %[[B]] into %{{.*}}[%{{.*}}, %{{.*}}]
// CHECK-NEXT: tile.tma_store_wait %[[B]]
// CHECK-NEXT: return
// NVVM-LABEL: llvm.func @staged
// Two boxes a warpgroup, each by four instructions of four matrices.
// NVVM: cp.async.bulk.wait_group.read 1;
// NVVM: barrier.cta.sync
// NVVM-COUNT-4: stmatrix.sync.aligned.m8n8.x4
// NVVM: fence.proxy.async
// NVVM: barrier.cta.sync
// NVVM: elect.sync{{.*}}cp.async.bulk.tensor.2d.global.shared::cta{{.*}}cp.async.bulk.commit_group
// NVVM: cp.async.bulk.wait_group.read 1;
// NVVM: barrier.cta.sync
// NVVM-COUNT-4: stmatrix.sync.aligned.m8n8.x4
// NVVM: fence.proxy.async
// NVVM: barrier.cta.sync
// NVVM: elect.sync{{.*}}cp.async.bulk.tensor.2d.global.shared::cta{{.*}}cp.async.bulk.commit_group
// NVVM: cp.async.bulk.wait_group.read 0;
module attributes {tile.target = "sm_90a"} {
  func.func @staged(%c: !C {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %i: i32) attributes {tile.kernel, tile.async_mma, tile.hints = {num_warps = 8 : i32}} {
    %t = arith.constant dense<1.0> : tensor<128x128xbf16, #acc>
    %s = tile.convert_layout %t : tensor<128x128xbf16, #acc> -> tensor<128x128xbf16, #rows>
    tile.store %s, %c[%i, %i] : tensor<128x128xbf16, #rows>, !C, i32, i32
    return
  }
}

// -----

!C = memref<?x?xbf16, strided<[?, 1]>>
#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// Who reads the array could see when it is written, but a load of the same tile that comes before.
// CHECK-LABEL: func.func @read
// CHECK: tile.store
// CHECK-LABEL: func.func @in_place
// CHECK: tile.load
// CHECK: tile.tma_store
// CHECK-LABEL: func.func @behind
// CHECK: tile.store
module attributes {tile.target = "sm_90a"} {
  func.func @read(%c: !C {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %i: i32) attributes {tile.kernel, tile.async_mma, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %t = tile.load %c[%i, %c0] padding zero : !C, i32, i32 -> tensor<64x64xbf16, #acc>
    tile.store %t, %c[%i, %i] : tensor<64x64xbf16, #acc>, !C, i32, i32
    return
  }
  func.func @in_place(%c: !C {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %i: i32) attributes {tile.kernel, tile.async_mma, tile.hints = {num_warps = 4 : i32}} {
    %t = tile.load %c[%i, %i] padding zero : !C, i32, i32 -> tensor<64x64xbf16, #acc>
    tile.store %t, %c[%i, %i] : tensor<64x64xbf16, #acc>, !C, i32, i32
    return
  }
  func.func @behind(%c: !C {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %d: !C, %i: i32) attributes {tile.kernel, tile.async_mma, tile.hints = {num_warps = 4 : i32}} {
    %t = arith.constant dense<1.0> : tensor<64x64xbf16, #acc>
    tile.store %t, %c[%i, %i] : tensor<64x64xbf16, #acc>, !C, i32, i32
    %u = tile.load %c[%i, %i] padding zero : !C, i32, i32 -> tensor<64x64xbf16, #acc>
    tile.store %u, %d[%i, %i] : tensor<64x64xbf16, #acc>, !C, i32, i32
    return
  }
}

// -----

!C = memref<?x?xbf16, strided<[?, 1]>>
#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// Two stores to one place would have no order. Blocks that a persistent loop goes through write to different places.
// CHECK-LABEL: func.func @loop
// CHECK: tile.store
// CHECK: scf.for
// CHECK: tile.store
// CHECK: scf.for
// CHECK: tile.store
// CHECK: scf.for
// CHECK: tile.tma_store
// CHECK: tile.tma_store_wait
// CHECK-NEXT: return
module attributes {tile.target = "sm_90a"} {
  func.func @loop(%b: !C {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %c: !C {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %d: !C {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %e: !C {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %i: i32, %j: i32) attributes {tile.kernel, tile.async_mma, tile.hints = {num_warps = 4 : i32}} {
    %t = arith.constant dense<1.0> : tensor<64x64xbf16, #acc>
    tile.store %t, %b[%i, %i] {tile.allow_tma = false} : tensor<64x64xbf16, #acc>, !C, i32, i32
    scf.for %k = %i to %j step %i : i32 {
      tile.store %t, %c[%j, %i] : tensor<64x64xbf16, #acc>, !C, i32, i32
    }
    scf.for %k = %i to %j step %i : i32 {
      %even = arith.divsi %k, %j : i32
      tile.store %t, %e[%even, %i] : tensor<64x64xbf16, #acc>, !C, i32, i32
    }
    scf.for %k = %i to %j step %i : i32 {
      tile.store %t, %d[%k, %i] : tensor<64x64xbf16, #acc>, !C, i32, i32
    } {tile.persistent}
    return
  }
}

// -----

!C = memref<?x?xbf16, strided<[?, 1]>>
#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// Places that differ in any two iterations, in an array that the launch finds apart from the other one.
// CHECK-LABEL: func.func @places
// CHECK-SAME: no_alias = [{array = {bits = 16 : i32, rank = 2 : i32, word = 0 : i32}, or_same = 0 : i32, other = {bits = 16 : i32, rank = 2 : i32, word = 5 : i32}}]
// CHECK: scf.for
// CHECK: scf.for
// CHECK: tile.tma_store
// CHECK: tile.tma_store_wait
// CHECK-NEXT: return
module attributes {tile.target = "sm_90a"} {
  func.func @places(%b: !C {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %c: !C {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %i: i32, %j: i32) attributes {tile.kernel, tile.async_mma, tile.hints = {num_warps = 4 : i32}} {
    %two = arith.constant 2 : i32
    %t = tile.load %b[%i, %i] padding zero : !C, i32, i32 -> tensor<64x64xbf16, #acc>
    scf.for %k = %i to %j step %i : i32 {
      %first = arith.addi %j, %k : i32
      scf.for %l = %i to %j step %i : i32 {
        %twice = arith.muli %l, %two : i32
        %second = arith.subi %twice, %k : i32
        tile.store %t, %c[%first, %second] : tensor<64x64xbf16, #acc>, !C, i32, i32
      }
    }
    return
  }
}

// -----

!C = memref<?x?xbf16, strided<[?, 1]>>
#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// What is stored behind it, or before it, may lie in the same place.
// CHECK-LABEL: func.func @stored_over
// CHECK-COUNT-2: tile.store
module attributes {tile.target = "sm_90a"} {
  func.func @stored_over(%b: !C {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %c: !C {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %i: i32) attributes {tile.kernel, tile.async_mma, tile.hints = {num_warps = 4 : i32, may_alias}} {
    %t = arith.constant dense<1.0> : tensor<64x64xbf16, #acc>
    tile.store %t, %b[%i, %i] : tensor<64x64xbf16, #acc>, !C, i32, i32
    tile.store %t, %c[%i, %i] : tensor<64x64xbf16, #acc>, !C, i32, i32
    return
  }
}

// -----

!C = memref<?x?xbf16, strided<[?, 1]>>
#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// CHECK-LABEL: func.func @overlapping
// CHECK: tile.store
module attributes {tile.target = "sm_90a"} {
  func.func @overlapping(%b: !C {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %c: !C {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %i: i32, %j: i32) attributes {tile.kernel, tile.async_mma, tile.hints = {num_warps = 4 : i32, may_alias}} {
    %two = arith.constant 2 : i32
    %t = tile.load %b[%i, %i] padding zero : !C, i32, i32 -> tensor<64x64xbf16, #acc>
    scf.for %k = %i to %j step %i : i32 {
      %first = arith.addi %j, %k : i32
      scf.for %l = %i to %j step %i : i32 {
        %twice = arith.muli %l, %two : i32
        %second = arith.subi %twice, %k : i32
        tile.store %t, %c[%first, %second] : tensor<64x64xbf16, #acc>, !C, i32, i32
      }
    }
    return
  }
}

// -----

!C = memref<?x?xbf16, strided<[?, 1]>>
#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#odd = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [32, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// CHECK-LABEL: func.func @fallback
// CHECK-COUNT-2: tile.store
module attributes {tile.target = "sm_90a"} {
  func.func @fallback(%c: !C {tile.align = 16 : i32}, %d: !C {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %i: i32) attributes {tile.kernel, tile.async_mma, tile.hints = {num_warps = 4 : i32}} {
    %t = arith.constant dense<1.0> : tensor<64x64xbf16, #acc>
    %u = arith.constant dense<1.0> : tensor<64x64xbf16, #odd>
    tile.store %t, %c[%i, %i] : tensor<64x64xbf16, #acc>, !C, i32, i32
    tile.store %u, %d[%i, %i] : tensor<64x64xbf16, #odd>, !C, i32, i32
    return
  }
}

// -----

!C = memref<?x?xbf16, strided<[?, 1]>>
#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#line = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0]]>

// Two stages of 131,072 bytes are too much already.
// CHECK-LABEL: func.func @full
// CHECK: tile.store
module attributes {tile.target = "sm_90a"} {
  func.func @full(%c: !C {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %i: i32) attributes {tile.kernel, tile.async_mma, tile.hints = {num_warps = 4 : i32}} {
    %b = tile.alloc_shared : !tile.buffer<1x256x256xbf16, #line>
    %t = arith.constant dense<1.0> : tensor<64x64xbf16, #acc>
    tile.store %t, %c[%i, %i] : tensor<64x64xbf16, #acc>, !C, i32, i32
    return
  }
}
