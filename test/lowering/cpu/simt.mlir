// RUN: tw-opt %s -tile-to-cpu | FileCheck %s

// The body becomes the function of one thread; the entry hands it to the process with the word that its threads wait for others.
module attributes {tile.target = "cpu"} {
  // CHECK: func.func @k.thread(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr)
  // CHECK: call @tw_simt_sync_threads(%
  // CHECK: func.func @k(
  // CHECK: %[[WAITS:.*]] = arith.constant 1 : i32
  // CHECK: %[[THREAD:.*]] = constant @k.thread
  // CHECK: call @tw_simt_run(%[[THREAD]], %[[WAITS]]
  func.func @k(%x: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.simt} {
    %t = tile.thread_id 0
    %v = tile.gather %x[%t] : memref<?xf32, strided<[1]>>, i32 -> f32
    tile.sync_threads
    tile.scatter %v, %x[%t] : f32, memref<?xf32, strided<[1]>>, i32
    return
  }

  // Where blocks wait for each other, the word says that, and the launch runs all of them at a time.
  // CHECK: call @tw_simt_sync_grid(%
  // CHECK: func.func @grid({{.*}}cooperative = 1 : i32
  // CHECK: %[[WAITS:.*]] = arith.constant 2 : i32
  // CHECK: call @tw_simt_run(%{{.*}}, %[[WAITS]]
  func.func @grid(%x: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.simt} {
    %t = tile.thread_id 0
    %v = tile.gather %x[%t] : memref<?xf32, strided<[1]>>, i32 -> f32
    tile.sync_grid
    tile.scatter %v, %x[%t] : f32, memref<?xf32, strided<[1]>>, i32
    return
  }
}
