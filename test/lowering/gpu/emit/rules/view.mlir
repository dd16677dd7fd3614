// RUN: tw-opt %s --split-input-file --tile-to-nvvm | FileCheck %s

// A view is a pointer into its array's memory, of the same space.
module attributes {tile.target = "sm_90a"} {
  // CHECK: llvm.func @k
  func.func @k(%x: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.simt} {
    %c = arith.constant 40 : i64
    %n = arith.constant 7 : i64
    %t = tile.thread_id 0
    %v = tile.view %x at %c [%n] by [%n] : memref<?xf32, strided<[1]>> -> memref<?xi32, strided<[?]>>
    // CHECK: %[[AT:.*]] = llvm.getelementptr %{{.*}}[%{{.*}}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    // CHECK: llvm.getelementptr %[[AT]]
    // CHECK: llvm.load {{.*}} !llvm.ptr<1> -> i32
    %e = tile.gather %v[%t] : memref<?xi32, strided<[?]>>, i32 -> i32
    tile.scatter %e, %v[%t] : i32, memref<?xi32, strided<[?]>>, i32
    return
  }
}

// -----

// What the program vouches for of an address, LLVM knows.
module attributes {tile.target = "sm_90a"} {
  func.func @aligned(%x: memref<?xf32, strided<[1]>>, %n: i64) attributes {tile.kernel, tile.simt} {
    %c = arith.constant 0 : i64
    // CHECK-LABEL: llvm.func @aligned
    // CHECK: %[[AT:.*]] = llvm.getelementptr
    // CHECK-NEXT: llvm.intr.assume %{{.*}} ["align"(%[[AT]], %{{.*}} : !llvm.ptr<1>, i64)] : i1
    %v = tile.view %x at %c [%n] by [%n] {align = 16 : i64} : memref<?xf32, strided<[1]>> -> memref<?xf32, strided<[?]>>
    %e = tile.gather %v[%n] : memref<?xf32, strided<[?]>>, i64 -> f32
    tile.scatter %e, %x[%n] : f32, memref<?xf32, strided<[1]>>, i64
    return
  }
}
