// Loops that walk an array of the thread are written out, so that it lies in registers.
// RUN: tw-opt %s --tile-to-nvvm | FileCheck %s

module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: llvm.func @copies
  // CHECK-COUNT-2: llvm.br {{.*}} {loop_annotation = #loop_annotation}
  // CHECK-NOT: loop_annotation
  func.func @copies(%x: memref<?xf32, strided<[1]>>, %n: i32) attributes {tile.kernel, tile.simt} {
    %a = tile.local_array : memref<4xf32, 5>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %t = tile.thread_id 0
    scf.for %k = %c0 to %c4 step %c1 : i32 {
      %i = arith.addi %t, %k : i32
      %v = tile.gather %x[%i] : memref<?xf32, strided<[1]>>, i32 -> f32
      tile.scatter %v, %a[%k] : f32, memref<4xf32, 5>, i32
    }
    scf.for %j = %c0 to %n step %c1 : i32 {
      scf.for %k = %c0 to %c4 step %c1 : i32 {
        %v = tile.gather %a[%k] : memref<4xf32, 5>, i32 -> f32
        tile.scatter %v, %x[%j] : f32, memref<?xf32, strided<[1]>>, i32
      }
    }
    return
  }

  // An index that only the launch knows keeps the array in memory, and the loops as they are.
  // CHECK-LABEL: llvm.func @counts
  // CHECK-NOT: loop_annotation
  func.func @counts(%x: memref<?xi32, strided<[1]>>) attributes {tile.kernel, tile.simt} {
    %a = tile.local_array : memref<4xi32, 5>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %t = tile.thread_id 0
    scf.for %k = %c0 to %c4 step %c1 : i32 {
      tile.scatter %k, %a[%k] : i32, memref<4xi32, 5>, i32
    }
    %i = tile.gather %x[%t] : memref<?xi32, strided<[1]>>, i32 -> i32
    %v = tile.gather %a[%i] : memref<4xi32, 5>, i32 -> i32
    tile.scatter %v, %x[%t] : i32, memref<?xi32, strided<[1]>>, i32
    return
  }
}
