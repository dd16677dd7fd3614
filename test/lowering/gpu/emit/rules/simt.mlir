// RUN: tw-opt %s --tile-allocate-shared --tile-to-nvvm | FileCheck %s

// A thread's scalars are the emitter's scalars; the launch gives the number of threads.
module attributes {tile.target = "sm_90a"} {
  // CHECK: llvm.func @reverse{{.*}}attributes {nvvm.kernel,
  // CHECK-SAME: num_threads = 0 : i32
  // CHECK-SAME: shared_bytes = 1040 : i32
  func.func @reverse(%x: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.simt} {

    // CHECK-DAG: nvvm.read.ptx.sreg.tid.x
    // CHECK-DAG: nvvm.read.ptx.sreg.ntid.y
    %t = tile.thread_id 0
    %n = tile.block_dim 1
    %flag = tile.shared_array : memref<4xi32, 3>
    %s = tile.shared_array : memref<256xf32, 3>
    // CHECK: llvm.load {{.*}} !llvm.ptr<1> -> i32
    // CHECK: llvm.store {{.*}} !llvm.ptr<3>
    // CHECK: nvvm.barrier0
    %v = tile.gather %x[%t] : memref<?xf32, strided<[1]>>, i32 -> f32
    tile.scatter %v, %s[%t] : f32, memref<256xf32, 3>, i32
    tile.scatter %n, %flag[%t] : i32, memref<4xi32, 3>, i32
    tile.sync_threads
    // CHECK: llvm.load {{.*}} !llvm.ptr<3> -> i32
    %w = tile.gather %s[%n] : memref<256xf32, 3>, i32 -> f32
    tile.scatter %w, %x[%t] : f32, memref<?xf32, strided<[1]>>, i32
    return
  }

  // A barrier of the grid is one of the block, a wait in one thread, and one of the block.
  // CHECK: llvm.func @grid{{.*}}cooperative = 1 : i32
  // CHECK: nvvm.barrier0
  // CHECK-NEXT: llvm.inline_asm {{.*}}envreg2{{.*}}atom.add.release.gpu{{.*}}ld.acquire.gpu
  // CHECK-NEXT: nvvm.barrier0
  func.func @grid() attributes {tile.kernel, tile.simt} {
    tile.sync_grid
    return
  }
}
