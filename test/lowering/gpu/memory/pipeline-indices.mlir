// What positions of copies take from memory is loaded one iteration before the copies that need it, and carried.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-pipeline,canonicalize,cse))' 2>/dev/null | FileCheck %s

#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0]]>
!array = memref<?x?xf32, strided<[?, 1]>>
!table = memref<?xi32, strided<[1]>>
!buffer = !tile.buffer<1x32x32xf32, #s>

module attributes {tile.target = "sm_90"} {
  // Three stages: copies are two iterations ahead, these loads three. Each goes to its own copy.
  // CHECK-LABEL: @two_tables
  // CHECK: %[[R0:.*]] = tile.gather %[[R:arg1]][%c0_i32]
  // CHECK: %[[S0:.*]] = tile.gather %[[S:arg2]][%c0_i32]
  // CHECK: tile.async_copy %arg0[%[[R0]], %[[S0]]] into %{{.*}}[%c0_i32]
  // CHECK: %[[R1:.*]] = tile.gather %[[R]][%c1_i32]
  // CHECK: %[[S1:.*]] = tile.gather %[[S]][%c1_i32]
  // CHECK: tile.async_copy %arg0[%[[R1]], %[[S1]]] into %{{.*}}[%c1_i32]
  // CHECK: %[[R2:.*]] = tile.gather %[[R]][%c2_i32]
  // CHECK: %[[S2:.*]] = tile.gather %[[S]][%c2_i32]
  // CHECK: scf.for %[[K:[a-z0-9]+]] = {{.*}} iter_args(%{{.*}} = %c0_i32, %{{.*}} = %c2_i32, %[[ROW:[a-z0-9]+]] = %[[R2]], %[[COLUMN:[a-z0-9]+]] = %[[S2]])
  // CHECK: %[[LATER:.*]] = arith.addi %[[K]], %c2_i32
  // CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %[[LATER]], %arg3
  // CHECK: tile.async_copy %arg0[%[[ROW]], %[[COLUMN]]] into %{{.*}} if %[[EXISTS]]
  // CHECK: %[[AFTER:.*]] = arith.addi %[[K]], %c3_i32
  // CHECK: %[[RN:.*]] = tile.gather %[[R]][%[[AFTER]]]
  // CHECK: %[[SN:.*]] = tile.gather %[[S]][%[[AFTER]]]
  // CHECK: scf.yield %{{.*}}, %{{.*}}, %[[RN]], %[[SN]]
  func.func @two_tables(%A: !array, %R: !table, %S: !table, %n: i32) attributes {tile.hints = {num_stages = 3 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %buf = tile.alloc_shared : !buffer
    scf.for %k = %c0 to %n step %c1 : i32 {
      %row = tile.gather %R[%k] {check_bounds} : !table, i32 -> i32
      %column = tile.gather %S[%k] {check_bounds} : !table, i32 -> i32
      tile.async_copy %A[%row, %column] into %buf[%c0] : !array, i32, i32 into !buffer
      tile.async_commit
      tile.async_wait 0
      tile.barrier {tile.copies}
    }
    return
  }

  // A table of places in a table: the first load is carried, the second one is done with the copy. Both copies of the
  // iteration read the first, which is carried once.
  // CHECK-LABEL: @table_of_tables
  // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %c0_i32, %{{.*}} = %c2_i32, %[[X:[a-z0-9]+]] = %{{[a-z0-9]+}}) -> (i32, i32, i32)
  // CHECK-NOT: tile.gather %arg1
  // CHECK: %[[Y:.*]] = tile.gather %arg2[%[[X]]]
  // CHECK: tile.async_copy %arg0[%c0_i32, %[[Y]]]
  // CHECK: tile.async_copy %arg0[%c1_i32, %[[X]]]
  // CHECK: %[[NEXT:.*]] = tile.gather %arg1
  // CHECK-NOT: tile.gather
  // CHECK: scf.yield %{{.*}}, %{{.*}}, %[[NEXT]]
  func.func @table_of_tables(%A: !array, %R: !table, %S: !table, %n: i32) attributes {tile.hints = {num_stages = 3 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %buf = tile.alloc_shared : !buffer
    %other = tile.alloc_shared : !buffer
    scf.for %k = %c0 to %n step %c1 : i32 {
      %x = tile.gather %R[%k] {check_bounds} : !table, i32 -> i32
      %y = tile.gather %S[%x] {check_bounds} : !table, i32 -> i32
      tile.async_copy %A[%c0, %y] into %buf[%c0] : !array, i32, i32 into !buffer
      tile.async_copy %A[%c1, %x] into %other[%c0] : !array, i32, i32 into !buffer
      tile.async_commit
      tile.async_wait 0
      tile.barrier {tile.copies}
    }
    return
  }
}
