// Copies run ahead of their use by the number of stages less one.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-pipeline))' | FileCheck %s
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-pipeline))' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: 'scf.for' op copies its tiles 2 iterations ahead, into 3 buffers of each
// REMARK: 'scf.for' op copies no tiles ahead: it writes to an array that it copies from
// REMARK: 'scf.for' op copies no tiles ahead: the loop computes where its tiles lie from more than its counter
// REMARK: 'scf.for' op copies its tiles 2 iterations ahead, into 3 buffers of each
// REMARK: 'scf.for' op copies no tiles ahead: it writes to an array that it copies from
// REMARK: 'scf.for' op copies no tiles ahead: shared memory has room for one of each only, or num_stages is 1
// REMARK: 'scf.for' op copies no tiles ahead: its threads meet, or a loop or branch in it copies, too

#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0]]>
#a = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [16, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>

// CHECK-LABEL: @stream
module attributes {tile.target = "sm_90"} {
  func.func @stream(%A: memref<?x?xf32, strided<[?, 1]>>, %n: i32, %init: tensor<32x32xf32, #a>) -> tensor<32x32xf32, #a> attributes {tile.hints = {num_stages = 3 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // CHECK: %[[BUF:.*]] = tile.alloc_shared : <3x32x32xf32, #{{.*}}>
    %buf = tile.alloc_shared : !tile.buffer<1x32x32xf32, #s>
    // CHECK: %[[E0:.*]] = arith.cmpi slt, %c0{{.*}}, %arg1
    // CHECK: tile.async_copy %arg0[%c0{{.*}}, %{{.*}}] into %[[BUF]][%{{.*}}] if %[[E0]] {a, b, c, d, e, f, g, h, i}
    // CHECK: tile.async_commit
    // CHECK: tile.async_copy %arg0[%c0{{.*}}, %{{.*}}] into %[[BUF]][%{{.*}}] if
    // CHECK: tile.async_commit
    // CHECK: scf.for %[[K:.*]] = {{.*}} iter_args(%[[ACC:.*]] = %arg2, %[[READ:.*]] = %c0{{.*}}, %[[WRITE:.*]] = %c2{{.*}})
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<32x32xf32, #a>) : i32 {
      // CHECK-NEXT: tile.async_wait 1
      // CHECK-NEXT: tile.barrier
      // CHECK: %[[NEXT:.*]] = arith.addi %[[K]]
      // CHECK: %[[E:.*]] = arith.cmpi slt, %[[NEXT]], %arg1
      // CHECK: %[[COLUMN:.*]] = arith.muli %[[NEXT]], %{{.*}}
      // CHECK: tile.async_copy %arg0[%c0{{.*}}, %[[COLUMN]]] into %[[BUF]][%[[WRITE]]] if %[[E]]
      // CHECK: tile.async_commit
      %c2 = arith.constant 2 : i32
      %column = arith.muli %k, %c2 : i32
      tile.async_copy %A[%c0, %column] into %buf[%c0] {a, b, c, d, e, f, g, h, i} : memref<?x?xf32, strided<[?, 1]>>, i32, i32 into !tile.buffer<1x32x32xf32, #s>
      tile.async_commit
      tile.async_wait 0
      tile.barrier {tile.copies}
      // CHECK-NOT: tile.async_wait
      // CHECK: tile.local_load %[[BUF]][%[[READ]]]
      %a = tile.local_load %buf[%c0] : !tile.buffer<1x32x32xf32, #s> -> tensor<32x32xf32, #a>
      tile.barrier {tile.copies}
      // CHECK-NOT: tile.barrier
      %d = arith.addf %acc, %a : tensor<32x32xf32, #a>
      // CHECK: scf.yield
      scf.yield %d : tensor<32x32xf32, #a>
    }
    // CHECK: tile.async_wait 0
    // CHECK-NEXT: tile.barrier
    // CHECK-NEXT: return
    return %r : tensor<32x32xf32, #a>
  }

  // A loop that writes to the array that it copies from keeps its order,
  // CHECK-LABEL: @writes
  // CHECK: scf.for {{.*}} : i32 {
  // CHECK-NEXT: tile.async_copy
  func.func @writes(%A: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.hints = {num_stages = 3 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %buf = tile.alloc_shared : !tile.buffer<1x32x32xf32, #s>
    scf.for %k = %c0 to %n step %c1 : i32 {
      tile.async_copy %A[%c0, %k] into %buf[%c0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 into !tile.buffer<1x32x32xf32, #s>
      tile.async_commit
      tile.async_wait 0
      tile.barrier {tile.copies}
      %a = tile.local_load %buf[%c0] : !tile.buffer<1x32x32xf32, #s> -> tensor<32x32xf32, #a>
      tile.barrier {tile.copies}
      tile.store %a, %A[%k, %c0] : tensor<32x32xf32, #a>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    }
    return
  }

  // but where each iteration writes the tile that it has read, and no other.
  // CHECK-LABEL: @writes_in_place
  // CHECK: tile.async_copy
  // CHECK: scf.for {{.*}} : i32 {
  // CHECK-NEXT: tile.async_wait 1
  func.func @writes_in_place(%A: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.hints = {num_stages = 3 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %buf = tile.alloc_shared : !tile.buffer<1x32x32xf32, #s>
    scf.for %k = %c0 to %n step %c1 : i32 {
      tile.async_copy %A[%c0, %k] into %buf[%c0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 into !tile.buffer<1x32x32xf32, #s>
      tile.async_commit
      tile.async_wait 0
      tile.barrier {tile.copies}
      %a = tile.local_load %buf[%c0] : !tile.buffer<1x32x32xf32, #s> -> tensor<32x32xf32, #a>
      tile.barrier {tile.copies}
      tile.store %a, %A[%c0, %k] : tensor<32x32xf32, #a>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    }
    return
  }

  // CHECK-LABEL: @writes_again
  // CHECK: scf.for {{.*}} : i32 {
  // CHECK: tile.async_copy
  func.func @writes_again(%A: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.hints = {num_stages = 3 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %buf = tile.alloc_shared : !tile.buffer<1x32x32xf32, #s>
    scf.for %k = %c0 to %n step %c1 : i32 {
      %at = arith.divsi %k, %n : i32
      tile.async_copy %A[%c0, %at] into %buf[%c0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 into !tile.buffer<1x32x32xf32, #s>
      tile.async_commit
      tile.async_wait 0
      tile.barrier {tile.copies}
      %a = tile.local_load %buf[%c0] : !tile.buffer<1x32x32xf32, #s> -> tensor<32x32xf32, #a>
      tile.barrier {tile.copies}
      tile.store %a, %A[%c0, %at] : tensor<32x32xf32, #a>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    }
    return
  }

  // Where the next position is a value that the loop carries, nothing can run ahead.
  // CHECK-LABEL: @carried
  // CHECK: tile.async_wait 0
  func.func @carried(%A: memref<?x?xf32, strided<[?, 1]>>, %n: i32) -> i32 attributes {tile.hints = {num_stages = 3 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %buf = tile.alloc_shared : !tile.buffer<1x32x32xf32, #s>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%at = %c0) -> i32 : i32 {
      tile.async_copy %A[%c0, %at] into %buf[%c0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 into !tile.buffer<1x32x32xf32, #s>
      tile.async_commit
      tile.async_wait 0
      tile.barrier {tile.copies}
      %next = arith.addi %at, %k : i32
      scf.yield %next : i32
    }
    return %r : i32
  }
}

// -----

#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0]]>
#a = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [16, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>

// One that writes to another is taken to be right unless the launch finds that the arrays overlap; here they may
// be the same. Word 5 is B's pointer.
// CHECK-LABEL: @writes_elsewhere
// CHECK-SAME: no_alias = [{array = {bits = 32 : i32, rank = 2 : i32, word = 0 : i32}, or_same = 1 : i32, other = {bits = 32 : i32, rank = 2 : i32, word = 5 : i32}}]
// CHECK: tile.async_copy
// CHECK: scf.for
// CHECK-NEXT: tile.async_wait 1
module attributes {tile.target = "sm_90"} {
  func.func @writes_elsewhere(%A: memref<?x?xf32, strided<[?, 1]>>, %B: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.hints = {num_stages = 3 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %buf = tile.alloc_shared : !tile.buffer<1x32x32xf32, #s>
    scf.for %k = %c0 to %n step %c1 : i32 {
      tile.async_copy %A[%c0, %k] into %buf[%c0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 into !tile.buffer<1x32x32xf32, #s>
      tile.async_commit
      tile.async_wait 0
      tile.barrier {tile.copies}
      %a = tile.local_load %buf[%c0] : !tile.buffer<1x32x32xf32, #s> -> tensor<32x32xf32, #a>
      tile.barrier {tile.copies}
      tile.store %a, %B[%c0, %k] : tensor<32x32xf32, #a>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    }
    return
  }
}

// -----

#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0]]>
#a = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [16, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>

// CHECK-LABEL: @writes_elsewhere
// CHECK-NOT: no_alias
// CHECK: scf.for
// CHECK-NEXT: tile.async_copy
module attributes {tile.target = "sm_90"} {
  func.func @writes_elsewhere(%A: memref<?x?xf32, strided<[?, 1]>>, %B: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.hints = {num_stages = 3 : i32, may_alias}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %buf = tile.alloc_shared : !tile.buffer<1x32x32xf32, #s>
    scf.for %k = %c0 to %n step %c1 : i32 {
      tile.async_copy %A[%c0, %k] into %buf[%c0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 into !tile.buffer<1x32x32xf32, #s>
      tile.async_commit
      tile.async_wait 0
      tile.barrier {tile.copies}
      %a = tile.local_load %buf[%c0] : !tile.buffer<1x32x32xf32, #s> -> tensor<32x32xf32, #a>
      tile.barrier {tile.copies}
      tile.store %a, %B[%c0, %k] : tensor<32x32xf32, #a>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    }
    return
  }
}

// -----

#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0]]>

// CHECK-LABEL: @one_stage
// CHECK: tile.async_wait 0
module attributes {tile.target = "sm_90"} {
  func.func @one_stage(%A: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.hints = {num_stages = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %buf = tile.alloc_shared : !tile.buffer<1x32x32xf32, #s>
    scf.for %k = %c0 to %n step %c1 : i32 {
      tile.async_copy %A[%c0, %k] into %buf[%c0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 into !tile.buffer<1x32x32xf32, #s>
      tile.async_commit
      tile.async_wait 0
      tile.barrier {tile.copies}
    }
    return
  }
}


// -----

#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0]]>

// CHECK-LABEL: @meets
// CHECK: tile.async_wait 0
module attributes {tile.target = "sm_90"} {
  func.func @meets(%A: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.hints = {num_stages = 3 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %buf = tile.alloc_shared : !tile.buffer<1x32x32xf32, #s>
    scf.for %k = %c0 to %n step %c1 : i32 {
      tile.async_copy %A[%c0, %k] into %buf[%c0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 into !tile.buffer<1x32x32xf32, #s>
      tile.async_commit
      tile.async_wait 0
      tile.barrier {tile.copies}
      tile.sync_threads
    }
    return
  }
}
