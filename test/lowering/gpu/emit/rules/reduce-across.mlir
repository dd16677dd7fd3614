// Reductions across a cluster.
// RUN: tw-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(tile-allocate-shared,func.func(tile-insert-barriers),tile-to-nvvm)' | FileCheck %s

#l = #tile.linear<register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], warp = [[0, 64]]>
#r = #tile.linear<lane = [[0], [0], [0], [0], [0]], warp = [[0]]>

// Two warps of four blocks: each sends its sum to each block, a lane to one, whose barrier counts the bytes. Each reduction
// has bytes and a barrier of its own, which no block is done with when another one comes to the next. Blocks first wait
// until all have started.
module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: llvm.func @sums
  // CHECK-SAME: nvvm.cluster_dim = array<i32: 4, 1, 1>
  // CHECK-SAME: shared_bytes = 2048
  // CHECK: %[[BYTES:.*]] = llvm.mlir.constant(32 : i32)
  // CHECK-COUNT-2: mbarrier.init.shared::cta.b64
  // CHECK: fence.mbarrier_init.release.cluster;
  // CHECK-NEXT: barrier.cluster.arrive.relaxed.aligned;
  func.func @sums(%a: memref<?x?xf32, strided<[?, 1]>>, %b: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 2 : i32}, tile.launch = {cluster_blocks = 4 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i, %i] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<1x128xf32, #l>
    // CHECK-COUNT-5: llvm.nvvm.shfl.sync.bfly
    // CHECK: %[[BLOCK:.*]] = nvvm.read.ptx.sreg.ctaid.x
    // CHECK: barrier.cluster.wait.aligned;
    // CHECK-NOT: nvvm.barrier
    // CHECK: mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;{{.*}}, %[[BYTES]],
    // CHECK: mapa.shared::cluster.u32 a, $0, $2;{{.*}}@$4 st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [a], $1, [b]; }", "r,r,r,r,b"
    // CHECK-NOT: st.
    // CHECK: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [$0], $1;
    // CHECK-COUNT-8: llvm.load
    // CHECK-NOT: llvm.load
    %s = tile.reduce add, %x axis 1 {tile.across = 4 : i32} : tensor<1x128xf32, #l>
    // CHECK-NOT: barrier.cluster.wait.aligned;
    // CHECK: expect_tx
    // CHECK: st.async.shared::cluster
    // CHECK: mbarrier.try_wait
    // CHECK-NOT: barrier.cluster
    %m = tile.reduce max, %x axis 1 {tile.across = 4 : i32} : tensor<1x128xf32, #l>
    // CHECK: st.global
    %d = arith.divf %s, %m : tensor<1xf32, #r>
    tile.store %d, %b[%i] : tensor<1xf32, #r>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[0, 1]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#r = #tile.linear<lane = [[0], [0], [1], [2], [4]]>

// One warp: there is nothing to reduce over warps, but over blocks. Four lanes have a row, so each takes two blocks, and none
// is idle.
module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: llvm.func @rows
  // CHECK: %[[BYTES:.*]] = llvm.mlir.constant(512 : i32)
  func.func @rows(%a: memref<?x?xi64, strided<[?, 1]>>, %b: memref<?xi64, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}, tile.launch = {cluster_blocks = 8 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i, %i] : memref<?x?xi64, strided<[?, 1]>>, i32, i32 -> tensor<8x8xi64, #l>
    // CHECK: expect_tx{{.*}} %[[BYTES]],
    // CHECK-COUNT-2: st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [a], $1, [b]; }", "r,l,r,r"
    // CHECK-NOT: st.
    // CHECK: mbarrier.try_wait
    %s = tile.reduce add, %x axis 1 {tile.across = 8 : i32} : tensor<8x8xi64, #l>
    tile.store %s, %b[%i] : tensor<8xi64, #r>, memref<?xi64, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [0, 16], [0, 32]]>
#r = #tile.linear<lane = [[0], [0], [0], [0], [0]]>

module attributes {tile.target = "sm_90a"} {
  func.func @loop(%a: memref<?x?xf32, strided<[?, 1]>>, %b: memref<?xf32, strided<[1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}, tile.launch = {cluster_blocks = 2 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      %x = tile.load %a[%i, %c0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<1x64xf32, #l>
      // expected-error @+1 {{goes across blocks in a loop, where these may be an iteration apart}}
      %s = tile.reduce add, %x axis 1 {tile.across = 2 : i32} : tensor<1x64xf32, #l>
      tile.store %s, %b[%i] : tensor<1xf32, #r>, memref<?xf32, strided<[1]>>, i32
    }
    return
  }
}
