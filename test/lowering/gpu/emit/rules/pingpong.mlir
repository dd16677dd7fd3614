// Two consumer groups of one warpgroup: the second's threads, barriers and bytes for its ops' own use are others than the first's.
// RUN: tw-opt %s -split-input-file -verify-diagnostics -pass-pipeline='builtin.module(tile-allocate-shared,tile-to-nvvm)' | FileCheck %s
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(tile-allocate-shared)' | FileCheck %s --check-prefix=PLACE

#rows = #tile.linear<register = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
#columns = #tile.linear<register = [[1, 0], [2, 0], [4, 0]], lane = [[8, 0], [16, 0], [32, 0], [64, 0], [0, 1]], warp = [[0, 2], [0, 4]]>
#line = #tile.linear<offset = [[0, 1], [0, 2], [1, 0], [2, 0]]>

// The buffer's bytes are dead where the tile is converted, but the other consumer group may be elsewhere: they are not shared.
// PLACE-LABEL: func.func @consumer_groups
// PLACE-SAME: tile.group_scratch_bytes = 4096
// PLACE: tile.alloc_shared at 0
// PLACE: tile.alloc_barriers arrivals 4 at 9216
// PLACE: tile.convert_layout {{.*}}tile.scratch = 1024

// CHECK: llvm.func @consumer_groups
// CHECK-SAME: nvvm.reqntid = array<i32: 288>
// CHECK-SAME: num_threads = 288
// CHECK-SAME: shared_bytes = 9224
// CHECK-DAG: %[[THREAD:.*]] = nvvm.read.ptx.sreg.tid.x
// CHECK-DAG: %[[OWN:.*]] = llvm.urem %[[THREAD]], %{{.*}} : i32
// The producer's warp comes after both consumer groups.
// CHECK-DAG: %[[EIGHT:.*]] = llvm.mlir.constant(8 : i32)
// CHECK: llvm.icmp "uge" %{{.*}}, %[[EIGHT]]
// CHECK: %[[CONSUMER_GROUP:.*]] = llvm.udiv %{{.*}}, %{{.*}} : i32
// A consumer group waits at its own barrier, and passes by at the next one's; 128 threads of each meet there.
// CHECK: %[[MINE:.*]] = llvm.add %[[CONSUMER_GROUP]], %{{.*}} : i32
// CHECK-NEXT: llvm.nvvm.barrier.cta.sync.aligned.count"(%[[MINE]]
// CHECK: %[[NEXT:.*]] = llvm.add %[[CONSUMER_GROUP]], %{{.*}} : i32
// CHECK-NEXT: %[[ROUND:.*]] = llvm.urem %[[NEXT]], %{{.*}} : i32
// CHECK-NEXT: %[[OTHER:.*]] = llvm.add %[[ROUND]], %{{.*}} : i32
// CHECK-NEXT: llvm.nvvm.barrier.cta.arrive.aligned.count"(%[[OTHER]]
// CHECK: %[[DISTANCE:.*]] = llvm.mul %[[CONSUMER_GROUP]], %{{.*}} : i32
// CHECK-NEXT: llvm.getelementptr %{{.*}}[%[[DISTANCE]]]
// CHECK: %[[MEET:.*]] = llvm.add %[[CONSUMER_GROUP]], %{{.*}} : i32
// CHECK-NEXT: llvm.nvvm.barrier.cta.sync.aligned.count"(%[[MEET]]
module attributes {tile.target = "sm_90a"} {
  func.func @consumer_groups(%x: memref<?x?xf32, strided<[?, 1]>>, %y: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %buffer = tile.alloc_shared : !tile.buffer<1x4x4xf32, #line>
    %empty = tile.alloc_barriers arrivals 4 : !tile.barriers<1>
    tile.roles producer_warps 1 consumer_groups 2 producer {
      tile.barrier_wait %empty[%c0], %c0 : !tile.barriers<1>
    } consumer {
      %consumer_group = tile.consumer_group
      tile.ordered_wait
      tile.ordered_arrive
      tile.barrier_arrive %empty[%c0] : !tile.barriers<1>
      %t = tile.load %x[%consumer_group, %c0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<128x8xf32, #rows>
      %u = tile.convert_layout %t : tensor<128x8xf32, #rows> -> tensor<128x8xf32, #columns>
      tile.store %u, %y[%consumer_group, %c0] : tensor<128x8xf32, #columns>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    }
    return
  }
}

// -----

module attributes {tile.target = "sm_90a"} {
  func.func @alone(%x: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    // expected-error @below {{'tile.ordered_wait' op stands where there is no consumer group}}
    tile.ordered_wait
    return
  }
}
