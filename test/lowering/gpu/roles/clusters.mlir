// Two blocks of a cluster fill multi-stage buffers together: each brings a half of the tile that both want, and gives stages back to both.
// RUN: tw-opt %s -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-assign-layouts,tile-promote-memory,tile-specialize-warps),canonicalize,cse)' | FileCheck %s
// RUN: tw-opt %s -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-assign-layouts,tile-promote-memory,tile-specialize-warps),canonicalize,cse,tile-allocate-shared,tile-to-nvvm,tile-dependent-launch)' | FileCheck %s --check-prefix=NVVM

!A = memref<?x?xbf16, strided<[?, 1]>>

// Eight warps of each block have to arrive before a stage is filled again. The producer ends when all stages are free: the
// other block gives them back here.
// CHECK: %[[FULL:.*]] = tile.alloc_barriers arrivals 1 : <2>
// CHECK: %[[EMPTY:.*]] = tile.alloc_barriers arrivals 16 : <2>
// CHECK: tile.barrier_expect %[[FULL]][%{{.*}}], 24576
// CHECK-NEXT: tile.tma_load %arg0[%{{.*}}] into %{{.*}} signal %[[FULL]][%{{.*}}] : memref
// CHECK-NEXT: tile.tma_load %arg1[%{{.*}}] into %{{.*}} signal %[[FULL]][%{{.*}}] cache evict_last {tile.multicast} : memref
// CHECK: } {tile.persistent}
// CHECK-COUNT-2: tile.barrier_wait %[[EMPTY]]
// CHECK-NOT: barrier_wait
// CHECK: } consumer {
// CHECK: tile.barrier_arrive %[[EMPTY]][%{{.*}}] if %{{.*}} {tile.multicast}

// Blocks meet when their barriers are there. The box of the tile that they share has half of its 64 rows.
// NVVM: nvvm.cluster_dim = array<i32: 2, 1, 1>
// NVVM-SAME: tensor_maps = [{{{.*}}box = array<i32: 64, 128, 0, 0, 0>{{.*}}}, {{{.*}}box = array<i32: 64, 32, 0, 0, 0>
// NVVM: fence.mbarrier_init.release.cluster
// NVVM-NEXT: "barrier.cluster.arrive.relaxed.aligned;\0Abarrier.cluster.wait.aligned;"
// NVVM: nvvm.griddepcontrol wait
// NVVM: cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {$3, $4}], [$2];"
// NVVM: %[[RANK:.*]] = llvm.and %{{.*}}, %{{.*}} : i32
// NVVM: llvm.mul %[[RANK]]
// NVVM: %[[PART:.*]] = llvm.mul %[[RANK]]
// NVVM-NEXT: %[[TO:.*]] = llvm.getelementptr %{{.*}}[%[[PART]]]
// NVVM: bytes.multicast::cluster.L2::cache_hint [$0], [$1, {$3, $4}], [$2], $5, 0x14F0000000000000;", "r,l,r,r,r,h" %[[TO]]
// NVVM: mapa.shared::cluster.u32 a, $0, $2;\0A@$1 mbarrier.arrive.shared::cluster.b64 _, [a];
module attributes {tile.target = "sm_90a"} {
  func.func @f(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32, num_stages = 2 : i32}, tile.launch = {persistent = 1 : i32, cluster_blocks = 2 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    scf.for %v = %c0 to %n step %c1 : i32 {
      %d = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<128x64xf32>) : i32 {
        %a = tile.load %x[%v, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
        %b = tile.load %y[%k, %c0] padding zero {tile.multicast, tile.cache = 2 : i32} : !A, i32, i32 -> tensor<64x64xbf16>
        %e = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
        scf.yield %e : tensor<128x64xf32>
      }
      tile.store %d, %z[%v, %c0] : tensor<128x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    } {tile.persistent}
    return
  }
}
