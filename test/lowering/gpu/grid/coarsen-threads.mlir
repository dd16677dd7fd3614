// A thread computes four neighbouring elements, and four blocks are one (coarsen_threads.c).
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-resize-tiles,canonicalize,cse))' 2>&1 | FileCheck %s

// CHECK: remark: {{.*}}computes 4 neighbouring elements in each thread, and joins as many blocks
module attributes {tile.target = "sm_90a"} {
  // CHECK: func.func @scale({{.*}}, %[[GRID:arg2]]: i32, %{{.*}}: i32, %{{.*}}: i32) attributes {tile.kernel, tile.launch = {packed_blocks = 4 : i32}, tile.simt}
  // CHECK: %[[STARTED:.*]] = tile.num_blocks 0
  // CHECK: %[[JOINED:.*]] = arith.cmpi ne, %[[STARTED]], %[[GRID]]
  // CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %c4_i32
  // CHECK: %[[SECOND:.*]] = arith.addi %[[FIRST]], %c1_i32
  // CHECK: %[[WITHIN:.*]] = arith.cmpi sle
  // CHECK: %[[WHOLE:.*]] = arith.andi %[[JOINED]], %[[WITHIN]]
  // CHECK: scf.if %[[WHOLE]] {
  // CHECK-NEXT: tile.gather %arg0[%[[FIRST]]]
  // CHECK-NEXT: tile.gather %arg0[%[[SECOND]]]
  // CHECK: tile.scatter %{{.*}}, %arg1[%[[FIRST]]]
  // CHECK-NEXT: tile.scatter %{{.*}}, %arg1[%[[SECOND]]]
  // CHECK: } else {
  // CHECK: scf.for
  // CHECK: tile.scatter
  func.func @scale(%a: memref<?xf32, strided<[1]>> {tile.align = 16 : i32}, %b: memref<?xf32, strided<[1]>> {tile.align = 16 : i32}) attributes {tile.kernel, tile.simt} {
    %t = tile.thread_id 0
    %k = tile.block_id 0
    %n = tile.block_dim 0
    %s = arith.muli %k, %n : i32
    %i = arith.addi %t, %s : i32
    %x = tile.gather %a[%i] : memref<?xf32, strided<[1]>>, i32 -> f32
    tile.scatter %x, %b[%i] : f32, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

// Not where the launch cannot know of it.
module attributes {tile.target = "sm_90a"} {
  // CHECK: func.func @exported
  // CHECK-NOT: packed_blocks
  func.func @exported(%a: memref<?xf32, strided<[1]>> {tile.align = 16 : i32}, %b: memref<?xf32, strided<[1]>> {tile.align = 16 : i32}) attributes {tile.kernel, tile.simt, tile.hints = {exported = 32 : i32}} {
    %t = tile.thread_id 0
    %k = tile.block_id 0
    %n = tile.block_dim 0
    %s = arith.muli %k, %n : i32
    %i = arith.addi %t, %s : i32
    %x = tile.gather %a[%i] : memref<?xf32, strided<[1]>>, i32 -> f32
    tile.scatter %x, %b[%i] : f32, memref<?xf32, strided<[1]>>, i32
    return
  }
}
