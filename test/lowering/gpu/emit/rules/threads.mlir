// Tiles to shared memory and back, around code of threads; threads meet before it, in between and behind it.
// RUN: tw-opt %s --tile-allocate-shared --tile-insert-barriers --tile-to-nvvm | FileCheck %s

#l = #tile.linear<register = [[64]], lane = [[1], [2], [4], [8], [16]], warp = [[32]]>
module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: llvm.func @threads
  func.func @threads(%x: memref<?xf32, strided<[1]>>, %i: i32) attributes {tile.kernel, tile.launch = {num_warps = 2 : i32}} {
    %t = tile.load %x[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<128xf32, #l>
    // CHECK: nvvm.barrier
    // CHECK-COUNT-2: llvm.store {{.*}}!llvm.ptr<3>
    // CHECK: nvvm.barrier
    // CHECK: nvvm.read.ptx.sreg.tid.x
    // CHECK: llvm.load {{.*}}!llvm.ptr<3>
    // CHECK: nvvm.barrier
    // CHECK: llvm.store {{.*}}!llvm.ptr<3>
    // CHECK: nvvm.barrier
    // CHECK-COUNT-2: llvm.load {{.*}}!llvm.ptr<3>
    // CHECK: nvvm.barrier
    %y = tile.threads(%t) : (tensor<128xf32, #l>) -> tensor<128xf32, #l> {
    ^bb0(%s: memref<128xf32, 3>):
      %k = tile.thread_id 0
      %a = tile.gather %s[%k] : memref<128xf32, 3>, i32 -> f32
      tile.sync_threads
      tile.scatter %a, %s[%k] : f32, memref<128xf32, 3>, i32
      tile.yield
    }
    tile.store %y, %x[%i] : tensor<128xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}
