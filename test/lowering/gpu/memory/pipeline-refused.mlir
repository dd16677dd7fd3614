// Loops whose copies cannot run ahead: each keeps its order, and waits for all.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-pipeline))' | FileCheck %s

#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0]]>
#a = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [16, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
!array = memref<?x?xf32, strided<[?, 1]>>
!table = memref<?xi32, strided<[1]>>
!buffer = !tile.buffer<1x32x32xf32, #s>

module attributes {tile.target = "sm_90"} {
  // The position is a number from memory, which an iteration that does not exist must not read.
  // CHECK-LABEL: @position_from_memory
  // CHECK: scf.for {{.*}} : i32 {
  // CHECK-NEXT: tile.gather
  // CHECK-NEXT: tile.async_copy
  // CHECK: tile.async_wait 0
  func.func @position_from_memory(%A: !array, %T: !table, %n: i32) attributes {tile.hints = {num_stages = 3 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %buf = tile.alloc_shared : !buffer
    scf.for %k = %c0 to %n step %c1 : i32 {
      %at = tile.gather %T[%k] : !table, i32 -> i32
      tile.async_copy %A[%c0, %at] into %buf[%c0] : !array, i32, i32 into !buffer
      tile.async_commit
      tile.async_wait 0
      tile.barrier {tile.copies}
    }
    return
  }

  // The same, checked; but the loop writes to the table.
  // CHECK-LABEL: @table_is_written
  // CHECK: scf.for {{.*}} : i32 {
  // CHECK-NEXT: tile.gather
  // CHECK-NEXT: tile.async_copy
  // CHECK: tile.async_wait 0
  func.func @table_is_written(%A: !array, %T: !table, %n: i32) attributes {tile.hints = {num_stages = 3 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %buf = tile.alloc_shared : !buffer
    scf.for %k = %c0 to %n step %c1 : i32 {
      %at = tile.gather %T[%k] {check_bounds} : !table, i32 -> i32
      tile.async_copy %A[%c0, %at] into %buf[%c0] : !array, i32, i32 into !buffer
      tile.async_commit
      tile.async_wait 0
      tile.barrier {tile.copies}
      tile.scatter %k, %T[%c0] {check_bounds} : i32, !table, i32
    }
    return
  }

  // It writes to another array first, and then to the one that it copies from.
  // CHECK-LABEL: @second_store
  // CHECK: scf.for {{.*}} : i32 {
  // CHECK-NEXT: tile.async_copy
  // CHECK: tile.async_wait 0
  func.func @second_store(%A: !array, %B: !array, %n: i32) attributes {tile.hints = {num_stages = 3 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %buf = tile.alloc_shared : !buffer
    scf.for %k = %c0 to %n step %c1 : i32 {
      tile.async_copy %A[%c0, %k] into %buf[%c0] : !array, i32, i32 into !buffer
      tile.async_commit
      tile.async_wait 0
      tile.barrier {tile.copies}
      %a = tile.local_load %buf[%c0] : !buffer -> tensor<32x32xf32, #a>
      tile.barrier {tile.copies}
      tile.store %a, %B[%c0, %k] : tensor<32x32xf32, #a>, !array, i32, i32
      tile.store %a, %A[%c0, %c1] : tensor<32x32xf32, #a>, !array, i32, i32
    }
    return
  }

  // Threads of the program meet.
  // CHECK-LABEL: @threads_meet
  // CHECK: scf.for {{.*}} : i32 {
  // CHECK-NEXT: tile.async_copy
  // CHECK: tile.async_wait 0
  func.func @threads_meet(%A: !array, %n: i32) attributes {tile.hints = {num_stages = 3 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %buf = tile.alloc_shared : !buffer
    scf.for %k = %c0 to %n step %c1 : i32 {
      tile.async_copy %A[%c0, %k] into %buf[%c0] : !array, i32, i32 into !buffer
      tile.async_commit
      tile.async_wait 0
      tile.barrier {tile.copies}
      tile.sync_threads
    }
    return
  }

  // Another copy is in a branch, as are its waits.
  // CHECK-LABEL: @copy_in_a_branch
  // CHECK: scf.for {{.*}} : i32 {
  // CHECK-NEXT: tile.async_copy
  // CHECK: tile.async_wait 0
  // CHECK: scf.if
  // CHECK-NEXT: tile.async_copy
  func.func @copy_in_a_branch(%A: !array, %n: i32, %c: i1) attributes {tile.hints = {num_stages = 3 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %buf = tile.alloc_shared : !buffer
    %other = tile.alloc_shared : !buffer
    scf.for %k = %c0 to %n step %c1 : i32 {
      tile.async_copy %A[%c0, %k] into %buf[%c0] : !array, i32, i32 into !buffer
      tile.async_commit
      tile.async_wait 0
      tile.barrier {tile.copies}
      scf.if %c {
        tile.async_copy %A[%c1, %k] into %other[%c0] : !array, i32, i32 into !buffer
        tile.async_commit
        tile.async_wait 0
      }
    }
    return
  }

  // A barrier in a branch orders what the passes before know of.
  // CHECK-LABEL: @barrier_in_a_branch
  // CHECK: scf.for {{.*}} : i32 {
  // CHECK-NEXT: tile.async_copy
  // CHECK: tile.async_wait 0
  func.func @barrier_in_a_branch(%A: !array, %n: i32, %c: i1) attributes {tile.hints = {num_stages = 3 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %buf = tile.alloc_shared : !buffer
    scf.for %k = %c0 to %n step %c1 : i32 {
      tile.async_copy %A[%c0, %k] into %buf[%c0] : !array, i32, i32 into !buffer
      tile.async_commit
      tile.async_wait 0
      tile.barrier {tile.copies}
      scf.if %c {
        tile.barrier {tile.copies}
      }
    }
    return
  }
}
