// Threads meet where shared memory changes hands, and nowhere else.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-insert-barriers))' | FileCheck %s

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
