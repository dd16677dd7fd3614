// Sums so far along an axis: the code of one thread, and the layouts that a scan takes.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(tile-allocate-shared,func.func(tile-insert-barriers),tile-to-nvvm)' | FileCheck %s
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(tile-allocate-shared)' | FileCheck %s --check-prefix=SHARED

#l = #tile.linear<register = [[1], [2], [512]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]]>

module attributes {tile.target = "sm_90a"} {
  // Four warps leave a total for each of the two passes.
  // SHARED: shared_bytes = 1024
  // CHECK-LABEL: llvm.func @row
  func.func @row(%a: memref<?xf32, strided<[1]>>, %b: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<1024xf32, #l>
    // CHECK-COUNT-6: llvm.fadd
    // CHECK-COUNT-10: llvm.nvvm.shfl.sync.bfly
    // CHECK-NOT: shfl
    // CHECK: nvvm.barrier
    // CHECK-NOT: nvvm.barrier
    // CHECK: llvm.return
    %s = tile.scan add, %x axis 0 : tensor<1024xf32, #l>
    tile.store %s, %b[%i] : tensor<1024xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1, 0], [0, 32]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]]>

module attributes {tile.target = "sm_90a"} {
  // An axis within a thread: one addition, no lane asks another.
  // SHARED: shared_bytes = 0
  // CHECK-LABEL: llvm.func @columns
  // CHECK-NOT: shfl
  // CHECK-COUNT-2: llvm.mul {{.*}} : i32
  // CHECK-NOT: shfl
  // CHECK: llvm.return
  func.func @columns(%a: memref<?x?xi32, strided<[64, 1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %x = tile.load %a[%c0, %c0] : memref<?x?xi32, strided<[64, 1]>>, i32, i32 -> tensor<2x64xi32, #l>
    %s = tile.scan mul, %x axis 0 {reverse} : tensor<2x64xi32, #l>
    tile.store %s, %a[%c0, %c0] : tensor<2x64xi32, #l>, memref<?x?xi32, strided<[64, 1]>>, i32, i32
    return
  }
}

// -----

// A function of the user's: registers in order, then the two halves of each five lanes, the first one first.
#k = #tile.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = []>
module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: llvm.func @reduce_by
  func.func @reduce_by(%a: memref<?xf32, strided<[1]>>, %f: f32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<128xf32, #k>
    // CHECK-COUNT-3: llvm.fsub
    // CHECK: llvm.nvvm.shfl.sync.bfly.i32
    // CHECK: %[[FIRST:.*]] = llvm.select
    // CHECK: %[[SECOND:.*]] = llvm.select
    // CHECK: llvm.fsub %[[FIRST]], %[[SECOND]]
    // CHECK-COUNT-4: llvm.fsub
    // CHECK-NOT: llvm.fsub
    %s = tile.reduce_by(%x) identity(%f) axis 0 : (tensor<128xf32, #k>, f32) -> f32 {
    ^bb0(%p: f32, %q: f32):
      %d = arith.subf %p, %q : f32
      tile.yield %d : f32
    }
    %n = arith.cmpf ogt, %s, %f : f32
    tile.assert %n, "large" : i1
    return
  }
}
