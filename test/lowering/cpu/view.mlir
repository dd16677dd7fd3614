// RUN: tw-opt %s --tile-to-cpu | FileCheck %s

// A view is a pointer into its array's memory.
module attributes {tile.target = "cpu"} {
  // CHECK: func.func @k.thread
  func.func @k(%x: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.simt} {
    %c = arith.constant 40 : i64
    %n = arith.constant 7 : i64
    %t = tile.thread_id 0
    // CHECK: llvm.getelementptr %{{.*}}[%c40_i64] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %v = tile.view %x at %c [%n] by [%n] : memref<?xf32, strided<[1]>> -> memref<?xi32, strided<[?]>>
    %e = tile.gather %v[%t] : memref<?xi32, strided<[?]>>, i32 -> i32
    tile.scatter %e, %v[%t] : i32, memref<?xi32, strided<[?]>>, i32
    return
  }
}
