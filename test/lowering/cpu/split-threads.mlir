// A SIMT kernel as loops over the threads of its block.
// RUN: tw-opt %s -split-input-file --tile-split-threads | FileCheck %s

!x = memref<?xf32, strided<[1]>>

// Cut at the barrier; what the second piece reads of the first has a place for each thread, what is cheap is again.
// CHECK-LABEL: func.func @cut
// CHECK-SAME: tile.split
// CHECK: %[[SAVED:.*]] = tile.shared_array : memref<1024xf32, 3>
// CHECK: scf.for
// CHECK: %[[V:.*]] = tile.gather %arg0
// CHECK: tile.scatter %[[V]], %[[SAVED]]
// CHECK: } {tile.of_threads}
// CHECK-NOT: tile.sync_threads
// CHECK: scf.for
// CHECK-NOT: tile.gather %arg0
// CHECK: tile.gather %[[SAVED]]
func.func @cut(%x: !x) attributes {tile.kernel, tile.simt} {
  %t = tile.thread_id 0
  %v = tile.gather %x[%t] : !x, i32 -> f32
  tile.sync_threads
  %i = arith.addi %t, %t : i32
  tile.scatter %v, %x[%i] : f32, !x, i32
  return
}

// -----

!x = memref<?xf32, strided<[1]>>

// A loop around a barrier stands around the pieces; what it carries and differs lies in an array, the rest it carries.
// CHECK-LABEL: func.func @loop
// CHECK: %[[SUMS:.*]] = tile.shared_array : memref<1024xf32, 3>
// CHECK: scf.for %{{.*}} iter_args(%{{.*}}) -> (i32)
// CHECK: tile.scatter %{{.*}}, %[[SUMS]]
// CHECK: scf.yield %{{.*}} : i32
func.func @loop(%x: !x, %n: i32) attributes {tile.kernel, tile.simt} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %t = tile.thread_id 0
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero, %m = %c0) -> (f32, i32) : i32 {
    %v = tile.gather %x[%t] : !x, i32 -> f32
    tile.sync_threads
    %s = arith.addf %sum, %v : f32
    %m1 = arith.addi %m, %k : i32
    scf.yield %s, %m1 : f32, i32
  }
  tile.scatter %r#0, %x[%r#1] : f32, !x, i32
  return
}

// -----

!x = memref<?xf32, strided<[1]>>

// A loop around pieces counts as the one that it was cut from.
// CHECK-LABEL: func.func @unsigned
// CHECK: scf.for unsigned
func.func @unsigned(%x: !x, %n: i32) attributes {tile.kernel, tile.simt} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = tile.thread_id 0
  scf.for unsigned %k = %c0 to %n step %c1 : i32 {
    %v = tile.gather %x[%t] : !x, i32 -> f32
    tile.sync_threads
    tile.scatter %v, %x[%k] : f32, !x, i32
  }
  return
}

// -----

// Threads may diverge in front of the barrier: the kernel stays as it is.
// CHECK-LABEL: func.func @apart
// CHECK-NOT: tile.split
// CHECK: tile.sync_threads
func.func @apart(%n: i32) attributes {tile.kernel, tile.simt} {
  %t = tile.thread_id 0
  %p = arith.cmpi slt, %t, %n : i32
  scf.if %p {
    tile.sync_threads
  }
  return
}

// -----

// Lanes meet: in loops over threads where warps are parts of rows; what the kernel was stays for other blocks.
// CHECK-LABEL: func.func @lanes.unsplit
// CHECK-NOT: tile.kernel
// CHECK-NOT: tile.split
// CHECK: tile.sync_warp
// CHECK-LABEL: func.func @lanes
// CHECK-SAME: tile.split, tile.unsplit = "lanes.unsplit"
// CHECK: tile.sync_warp
// CHECK: } {tile.of_threads}
func.func @lanes(%m: i32) attributes {tile.kernel, tile.simt} {
  tile.sync_warp %m
  return
}

// -----

// Threads in a kernel of tiles: 128 in a row; tiles go in and out by shared arrays.
// CHECK-LABEL: func.func @of_tiles
// CHECK-SAME: tile.split
// CHECK: %[[S:.*]] = tile.shared_array : memref<64xf32, 3>
// CHECK: tile.store %arg0, %[[S]]
// CHECK-COUNT-2: } {tile.of_threads}
// CHECK-NOT: tile.threads
// CHECK: %[[Y:.*]] = tile.load %[[S]]
// CHECK: return %[[Y]]
func.func @of_tiles(%x: tensor<64xf32>, %n: i32) -> tensor<64xf32> attributes {tile.kernel} {
  %y = tile.threads(%x) : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%s: memref<64xf32, 3>):
    %v = tile.gather %s[%n] : memref<64xf32, 3>, i32 -> f32
    tile.sync_threads
    tile.scatter %v, %s[%n] : f32, memref<64xf32, 3>, i32
    tile.yield
  }
  return %y : tensor<64xf32>
}

// -----

!x = memref<?xf32, strided<[1]>>

// A block of one thread, as launch_bounds=1 says: it is number 0 of 1.
// CHECK-LABEL: func.func @only_thread
// CHECK-NOT: tile.thread_id
// CHECK-NOT: tile.block_dim
// CHECK: tile.gather %{{.*}}[%{{.*}}]
// CHECK-NOT: tile.thread_id
// CHECK-NOT: tile.block_dim
// CHECK: return
func.func @only_thread(%x: !x, %n: i32) attributes {tile.kernel, tile.simt, tile.hints = {most_threads = 1 : i64}} {
  %s = tile.shared_array {align = 4 : i64} : memref<8xf32, 3>
  %t = tile.thread_id 0
  %step = tile.block_dim 0
  scf.for %i = %t to %n step %step : i32 {
    %v = tile.gather %x[%i] : !x, i32 -> f32
    tile.scatter %v, %s[%t] : f32, memref<8xf32, 3>, i32
    tile.sync_threads
    %w = tile.gather %s[%t] : memref<8xf32, 3>, i32 -> f32
    tile.scatter %w, %x[%i] : f32, !x, i32
  }
  return
}

// -----

!x = memref<?xi32, strided<[1]>>

// Where a thread stands is known in a branch, too.
// CHECK-LABEL: func.func @in_branch
// CHECK: scf.for %[[T:arg[0-9]+]] = {{.*}} to %0 step
// CHECK: scf.if %arg1
// CHECK-NOT: tile.thread_id
// CHECK: tile.scatter %{{.*}}, %arg0[%[[T]]]
func.func @in_branch(%x: !x, %p: i1) attributes {tile.kernel, tile.simt} {
  scf.if %p {
    %t = tile.thread_id 0
    %n = tile.block_dim 0
    tile.scatter %n, %x[%t] : i32, !x, i32
  }
  return
}

// -----

!x = memref<?xf32, strided<[1]>>

// Threads that walk over an array side by side do a round together; a thread whose rounds are over skips what is left.
// CHECK-LABEL: func.func @walk
// CHECK-SAME: %arg0: {{.*}}, %[[STEP:.*]]: i32, %[[N:.*]]: i32)
// CHECK: %[[MOST:.*]] = tile.shared_array : memref<1xi32, 3>
// CHECK: tile.atomic max relaxed thread, %{{.*}}, %[[MOST]]
// CHECK: } {tile.of_threads}
// CHECK: %[[ROUNDS:.*]] = tile.gather %[[MOST]]
// CHECK: scf.for %[[K:.*]] = %{{.*}} to %[[ROUNDS]]
// CHECK: scf.for
// CHECK: arith.cmpi slt, %[[K]]
// CHECK: scf.if
// CHECK: arith.muli %[[K]], %[[STEP]]
// CHECK: } {tile.of_threads}
func.func @walk(%x: !x, %step: i32, %n: i32) attributes {tile.kernel, tile.simt} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %t = tile.thread_id 0
  %rounds = arith.subi %n, %t : i32
  %r = scf.for %k = %c0 to %rounds step %c1 iter_args(%sum = %zero) -> (f32) : i32 {
    %way = arith.muli %k, %step : i32
    %i = arith.addi %t, %way : i32
    %v = tile.gather %x[%i] : !x, i32 -> f32
    %s = arith.addf %sum, %v : f32
    scf.yield %s : f32
  }
  tile.scatter %r, %x[%t] : f32, !x, i32
  return
}

// -----

!x = memref<?xf32, strided<[1]>>

// A step that is known keeps threads near each other: the loop stays theirs.
// CHECK-LABEL: func.func @near
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.for %{{.*}} iter_args
func.func @near(%x: !x, %n: i32) attributes {tile.kernel, tile.simt} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant 0.0 : f32
  %t = tile.thread_id 0
  %rounds = arith.subi %n, %t : i32
  %r = scf.for %k = %c0 to %rounds step %c1 iter_args(%sum = %zero) -> (f32) : i32 {
    %way = arith.muli %k, %c32 : i32
    %i = arith.addi %t, %way : i32
    %v = tile.gather %x[%i] : !x, i32 -> f32
    %s = arith.addf %sum, %v : f32
    scf.yield %s : f32
  }
  tile.scatter %r, %x[%t] : f32, !x, i32
  return
}

// -----

!x = memref<?xf32, strided<[1]>>

// An array of each thread's own has a place for each thread, next to that of the thread beside it.
// CHECK-LABEL: func.func @own
// CHECK-SAME: tile.split
// CHECK: %[[OWN:.*]] = tile.shared_array : memref<4x1024xf32, 3>
// CHECK-NOT: tile.local_array
// CHECK: tile.scatter %{{.*}}, %[[OWN]][%{{.*}}, %{{.*}}]
// CHECK: tile.gather %[[OWN]][%{{.*}}, %{{.*}}] else
func.func @own(%x: !x, %k: i32) attributes {tile.kernel, tile.simt} {
  %zero = arith.constant 0.0 : f32
  %t = tile.thread_id 0
  %a = tile.local_array : memref<4xf32, 5>
  %v = tile.gather %x[%t] : !x, i32 -> f32
  tile.scatter %v, %a[%k] : f32, memref<4xf32, 5>, i32
  tile.sync_threads
  %w = tile.gather %a[%t] else %zero : f32 : memref<4xf32, 5>, i32 -> f32
  tile.scatter %w, %x[%t] : f32, !x, i32
  return
}

// -----

!x = memref<?xf32, strided<[1]>>

// A large one stays the thread's, and threads take turns.
// CHECK-LABEL: func.func @large
// CHECK-NOT: tile.split
// CHECK: tile.local_array
func.func @large(%x: !x, %k: i32) attributes {tile.kernel, tile.simt} {
  %t = tile.thread_id 0
  %a = tile.local_array : memref<1000xf32, 5>
  %v = tile.gather %x[%t] : !x, i32 -> f32
  tile.scatter %v, %a[%k] : f32, memref<1000xf32, 5>, i32
  return
}

// -----

// What returns a value is no body of a loop.
// CHECK-LABEL: func.func @returns
// CHECK-NEXT: tile.thread_id
// CHECK-NEXT: return
func.func @returns() -> i32 attributes {tile.kernel, tile.simt} {
  %t = tile.thread_id 0
  return %t : i32
}
