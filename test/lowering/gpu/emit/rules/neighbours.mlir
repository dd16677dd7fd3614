// Neighbours of an element share its place: what a constant in an index adds is the same for all threads.
// RUN: tw-opt %s --tile-to-nvvm | FileCheck %s

module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: llvm.func @row
  func.func @row(%x: memref<?xf32, strided<[1]>>, %i: i32, %n: i32) attributes {tile.kernel, tile.simt} {
    %one = arith.constant 1 : i32
    %next = arith.addi %i, %one : i32
    %far = arith.cmpi slt, %i, %n : i32
    // CHECK: %[[SUM:.*]] = llvm.add %[[I:.*]], %{{.*}} : i32
    // CHECK: llvm.cond_br
    // CHECK: llvm.sext %[[I]] : i32 to i64
    // CHECK: %[[AT:.*]] = llvm.getelementptr
    // CHECK: %[[NEXT:.*]] = llvm.getelementptr %[[AT]]
    // CHECK: llvm.load %[[NEXT]]
    scf.if %far {
      %v = tile.gather %x[%next] : memref<?xf32, strided<[1]>>, i32 -> f32
      tile.scatter %v, %x[%i] : f32, memref<?xf32, strided<[1]>>, i32
    }
    // CHECK: llvm.sext %[[SUM]] : i32 to i64
    %w = tile.gather %x[%next] : memref<?xf32, strided<[1]>>, i32 -> f32
    tile.scatter %w, %x[%i] : f32, memref<?xf32, strided<[1]>>, i32
    return
  }
}
