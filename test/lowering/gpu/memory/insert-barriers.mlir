// Threads meet where memory changes hands, and nowhere else.
// RUN: tw-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(func.func(tile-insert-barriers))' | FileCheck %s

#a = #tile.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]]>
#b = #tile.linear<register = [[128], [256]], lane = [[4], [8], [16], [32], [64]], warp = [[1], [2]]>

// CHECK-LABEL: @straight
func.func @straight(%x: tensor<512xf32, #a>) -> (tensor<512xf32, #b>, tensor<512xf32, #a>, f32) attributes {tile.kernel} {
  // CHECK-NOT: tile.barrier
  // CHECK: tile.convert_layout
  %y = tile.convert_layout %x {tile.scratch = 0 : i32} : tensor<512xf32, #a> -> tensor<512xf32, #b>
  // The bytes of the first conversion are used again.
  // CHECK-NEXT: tile.barrier
  // CHECK-NEXT: tile.convert_layout
  %z = tile.convert_layout %y {tile.scratch = 1024 : i32} : tensor<512xf32, #b> -> tensor<512xf32, #a>
  // Bytes of its own.
  // CHECK-NEXT: tile.reduce
  %s = tile.reduce add, %z axis 0 {tile.scratch = 4096 : i32} : tensor<512xf32, #a>
  return %y, %z, %s : tensor<512xf32, #b>, tensor<512xf32, #a>, f32
}

// -----

#a = #tile.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]]>

// A single reduction in a loop meets itself; of two, each brings the barrier that the other needs.
// CHECK-LABEL: @loops
func.func @loops(%x: tensor<512xf32, #a>, %n: i32) -> (f32, f32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %f = arith.constant 0.0 : f32
  // CHECK: scf.for
  // CHECK-NEXT: tile.barrier
  // CHECK-NEXT: tile.reduce
  %p = scf.for %i = %c0 to %n step %c1 iter_args(%s = %f) -> (f32) : i32 {
    %r = tile.reduce add, %x axis 0 {tile.scratch = 0 : i32} : tensor<512xf32, #a>
    %t = arith.addf %s, %r : f32
    scf.yield %t : f32
  }
  // CHECK: scf.for
  // CHECK-NEXT: tile.reduce
  // CHECK-NEXT: tile.reduce
  %q = scf.for %i = %c0 to %n step %c1 iter_args(%s = %f) -> (f32) : i32 {
    %r = tile.reduce add, %x axis 0 {tile.scratch = 1024 : i32} : tensor<512xf32, #a>
    %m = tile.reduce max, %x axis 0 {tile.scratch = 2048 : i32} : tensor<512xf32, #a>
    %t = arith.addf %m, %r : f32
    scf.yield %t : f32
  }
  return %p, %q : f32, f32
}

// -----

#a = #tile.linear<register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#b = #tile.linear<register = [[0, 1]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]]>
#c = #tile.linear<lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 0]], warp = [[0, 0], [0, 0]]>
!array = memref<?x?xf32, strided<[?, 1]>>

// What another thread wrote to an array, or has yet to read.
// CHECK-LABEL: @arrays
func.func @arrays(%x: !array, %y: !array, %i: i32, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // Tiles of one type, whose elements each have one owner: each thread keeps to its own.
  // CHECK-NOT: tile.barrier
  // CHECK: scf.for
  scf.for %k = %c0 to %n step %c1 : i32 {
    // CHECK-NOT: tile.barrier
    %v = tile.load %x[%k, %i] : !array, i32, i32 -> tensor<16x16xf32, #a>
    tile.store %v, %x[%i, %k] : tensor<16x16xf32, #a>, !array, i32, i32
    // CHECK: tile.store
  }
  // Another array, and one that is only read.
  // CHECK-NOT: tile.barrier
  // CHECK: tile.load %arg1
  // CHECK-NOT: tile.barrier
  // CHECK: tile.load %arg1
  %r = tile.load %y[%c0, %i] : !array, i32, i32 -> tensor<16x16xf32, #a>
  %s = tile.load %y[%c0, %i] : !array, i32, i32 -> tensor<32x8xf32, #b>
  // Another tile of the array that is written.
  // CHECK-NEXT: tile.barrier
  // CHECK-NEXT: tile.store {{.*}}32x8
  tile.store %s, %x[%c0, %i] : tensor<32x8xf32, #b>, !array, i32, i32
  // CHECK-NEXT: tile.barrier
  // CHECK-NEXT: tile.store {{.*}}16x16
  tile.store %r, %x[%i, %c0] : tensor<16x16xf32, #a>, !array, i32, i32
  // CHECK-NEXT: tile.barrier
  // CHECK-NEXT: tile.load
  %t = tile.load %x[%c0, %i] : !array, i32, i32 -> tensor<1x16xf32, #c>
  // Copies of an element: one thread writes what others read.
  // CHECK-NEXT: tile.barrier
  // CHECK-NEXT: tile.store
  tile.store %t, %x[%c0, %i] : tensor<1x16xf32, #c>, !array, i32, i32
  // CHECK-NEXT: tile.barrier
  // CHECK-NEXT: tile.load
  %u = tile.load %x[%c1, %i] : !array, i32, i32 -> tensor<1x16xf32, #c>
  return
}

// Elements anywhere, each time around.
// CHECK-LABEL: @anywhere
func.func @anywhere(%x: !array, %u: tensor<1x16xf32, #c>, %at: tensor<1x16xi32, #c>, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // CHECK: scf.for
  // CHECK-NEXT: tile.barrier
  // CHECK-NEXT: tile.scatter
  scf.for %k = %c0 to %n step %c1 : i32 {
    tile.scatter %u, %x[%at, %at] : tensor<1x16xf32, #c>, !array, tensor<1x16xi32, #c>, tensor<1x16xi32, #c>
  }
  return
}

// Blocks that a persistent kernel runs are in no order.
// CHECK-LABEL: @persistent
func.func @persistent(%x: !array, %r: tensor<16x16xf32, #a>, %i: i32, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // CHECK: tile.load
  // CHECK: scf.for
  // CHECK-NEXT: tile.load
  // CHECK-NEXT: tile.barrier
  // CHECK-NEXT: tile.store
  // CHECK-NEXT: }
  %w = tile.load %x[%c0, %i] : !array, i32, i32 -> tensor<32x8xf32, #b>
  scf.for %k = %c0 to %n step %c1 : i32 {
    %p = tile.load %x[%c0, %k] : !array, i32, i32 -> tensor<32x8xf32, #b>
    tile.store %r, %x[%c0, %k] : tensor<16x16xf32, #a>, !array, i32, i32
  } {tile.persistent}
  return
}

// -----

#a = #tile.linear<register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[8, 0]]>
#b = #tile.linear<register = [[1, 0], [2, 0]], lane = [[4, 0], [8, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 8]]>
!array = memref<?x?xf32, strided<[?, 1]>>

// Another array, of which a thread stores what another one loads: the launch sees to it that they do not overlap. Where
// each thread keeps to its own elements, arrays may be one.
// CHECK-LABEL: @others
// CHECK-SAME: no_alias = [{array = {bits = 32 : i32, rank = 2 : i32, word = 0 : i32}, or_same = 1 : i32, other = {bits = 32 : i32, rank = 2 : i32, word = 5 : i32}}, {array = {bits = 32 : i32, rank = 2 : i32, word = 0 : i32}, or_same = 0 : i32, other = {bits = 32 : i32, rank = 2 : i32, word = 10 : i32}}, {array = {bits = 32 : i32, rank = 2 : i32, word = 5 : i32}, or_same = 0 : i32, other = {bits = 32 : i32, rank = 2 : i32, word = 10 : i32}}]
// CHECK-NOT: tile.barrier
module {
  func.func @others(%x: !array, %y: !array, %z: !array, %i: i32) attributes {tile.kernel} {
    %r = tile.load %x[%i, %i] : !array, i32, i32 -> tensor<16x16xf32, #a>
    tile.store %r, %y[%i, %i] : tensor<16x16xf32, #a>, !array, i32, i32
    %t = arith.constant dense<1.0> : tensor<16x16xf32, #b>
    tile.store %t, %z[%i, %i] : tensor<16x16xf32, #b>, !array, i32, i32
    return
  }
}

// -----

#a = #tile.linear<register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[8, 0]]>
!array = memref<?x?xf32, strided<[?, 1]>>

// Arrays that overlap somehow: threads meet.
// CHECK-LABEL: @overlapping
// CHECK: tile.load
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.store
module {
  func.func @overlapping(%x: !array, %y: !array, %i: i32) attributes {tile.kernel, tile.hints = {may_alias}} {
    %r = tile.load %x[%i, %i] : !array, i32, i32 -> tensor<16x16xf32, #a>
    tile.store %r, %y[%i, %i] : tensor<16x16xf32, #a>, !array, i32, i32
    return
  }
}

// -----

#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [0, 8], [0, 16], [0, 32]]>
#c = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#w = #tile.linear<register = [[4, 0], [8, 0], [16, 0], [32, 0], [0, 32]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[1, 0], [2, 0]]>
!b = !tile.buffer<1x64x64xbf16, #s>
!c = tensor<64x64xf32, #c>
!w = tensor<64x64xf32, #w>

// A product of another warpgroup may read on behind every barrier, until there is one behind the wait.
// CHECK-LABEL: @product
func.func @product(%x: !c) -> (!c, !w, !w) attributes {tile.kernel} {
  %b = tile.alloc_shared at 0 : !b
  %c0 = arith.constant 0 : i32
  %d = tile.async_mma %b[%c0], %b[%c0], %x : !b, !b, !c -> !c
  tile.barrier
  // CHECK: tile.convert_layout
  // CHECK-NEXT: tile.mma_wait
  // CHECK-NEXT: tile.barrier
  // CHECK-NEXT: tile.convert_layout
  %y = tile.convert_layout %x {tile.scratch = 16384 : i32} : !c -> !w
  %e = tile.mma_wait %d, 0 : !c -> !c
  %z = tile.convert_layout %x {tile.scratch = 0 : i32} : !c -> !w
  return %e, %y, %z : !c, !w, !w
}

// -----

#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [0, 8], [0, 16], [0, 32]]>
#c = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
!b = !tile.buffer<1x64x64xbf16, #s>
!c = tensor<64x64xf32, #c>

func.func @under_way(%x: !c, %y: tensor<64x64xbf16, #c>) -> !c attributes {tile.kernel} {
  %a = tile.alloc_shared at 0 : !b
  %b = tile.alloc_shared at 0 : !b
  %c0 = arith.constant 0 : i32
  %d = tile.async_mma %a[%c0], %a[%c0], %x : !b, !b, !c -> !c
  // expected-error @below {{writes where a product under way reads its operand}}
  tile.local_store %y, %b[%c0] : tensor<64x64xbf16, #c>, !b
  %e = tile.mma_wait %d, 0 : !c -> !c
  return %e : !c
}

// -----

#a = #tile.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]]>

// Threads meet before one of them releases what all did, and behind one that acquires; relaxed, only for the bytes.
// CHECK-LABEL: @atomics
func.func @atomics(%m: memref<?xi32>, %n: memref<?xi32>, %i: tensor<512xi32, #a>) attributes {tile.kernel} {
  // CHECK-NEXT: tile.atomic add acquire
  // CHECK-NEXT: tile.barrier
  %0 = tile.atomic add acquire device, %i, %m[%i] : tensor<512xi32, #a>, memref<?xi32>, tensor<512xi32, #a> -> tensor<512xi32, #a>
  // CHECK-NEXT: tile.atomic add relaxed
  %1 = tile.atomic add relaxed device, %i, %n[%i] : tensor<512xi32, #a>, memref<?xi32>, tensor<512xi32, #a> -> tensor<512xi32, #a>
  // CHECK-NEXT: tile.barrier
  // CHECK-NEXT: tile.atomic add relaxed
  %2 = tile.atomic add relaxed device, %i, %n[%i] : tensor<512xi32, #a>, memref<?xi32>, tensor<512xi32, #a> -> tensor<512xi32, #a>
  // CHECK-NEXT: tile.barrier
  // CHECK-NEXT: tile.atomic store release
  // CHECK-NEXT: return
  %3 = tile.atomic store release device, %i, %m[%i] : tensor<512xi32, #a>, memref<?xi32>, tensor<512xi32, #a> -> tensor<512xi32, #a>
  return
}

// -----

#l = #tile.linear<register = [[0, 32], [0, 64], [0, 128]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[0, 256]]>
!array = memref<?x?xbf16, strided<[?, 1]>>

// A row that goes through shared memory is moved by other threads than have it: in front of a barrier of its own where
// it is loaded, and behind one where it is stored.
// CHECK-LABEL: @realigned
// CHECK: tile.load
// CHECK-NEXT: tile.store
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.store
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.load
// CHECK-NEXT: tile.store
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.load
func.func @realigned(%a: !array, %i: i32) -> tensor<1x512xbf16, #l> attributes {tile.kernel} {
  %x = tile.load %a[%i, %i] : !array, i32, i32 -> tensor<1x512xbf16, #l>
  tile.store %x, %a[%i, %i] {tile.realigned, tile.scratch = 0 : i32} : tensor<1x512xbf16, #l>, !array, i32, i32
  tile.store %x, %a[%i, %i] {tile.realigned, tile.scratch = 0 : i32} : tensor<1x512xbf16, #l>, !array, i32, i32
  %y = tile.load %a[%i, %i] {tile.realigned, tile.scratch = 2048 : i32} : !array, i32, i32 -> tensor<1x512xbf16, #l>
  tile.store %y, %a[%i, %i] : tensor<1x512xbf16, #l>, !array, i32, i32
  %z = tile.load %a[%i, %i] {tile.realigned, tile.scratch = 4096 : i32} : !array, i32, i32 -> tensor<1x512xbf16, #l>
  return %z : tensor<1x512xbf16, #l>
}
