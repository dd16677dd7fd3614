// Threads of a block share their iterations, so that each loads 16 neighbouring bytes (share_iterations.c).
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-prefetch-loads))' 2>&1 | FileCheck %s

// CHECK: remark: {{.*}}has each thread load 16 neighbours of one of as many iterations of the block
module attributes {tile.target = "sm_90a"} {
  // CHECK: func.func @add({{.*}} tile.loads_vectors
  // CHECK: %[[ROW:.*]] = arith.maxui
  // CHECK: scf.for %{{.*}} = %c0_i32 to %[[BATCHES:.*]] step %c1_i32
  // CHECK: %[[PLACE:.*]] = arith.muli %{{.*}}, %c16_i32
  // CHECK-COUNT-16: tile.gather
  // CHECK-COUNT-16: tile.atomic
  // CHECK: %[[REST:.*]] = arith.muli %[[BATCHES]], %c16_i32
  // CHECK: scf.for %{{.*}} = %[[REST]]
  // CHECK: tile.gather
  func.func @add(%x: memref<?xi8, strided<[1]>> {tile.align = 16 : i32}, %z: memref<?xi32, strided<[1]>>, %end: i32) attributes {tile.kernel, tile.simt} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %t = tile.thread_id 0
    %threads = tile.block_dim 0
    %b = tile.block_id 0
    %start = arith.muli %b, %threads : i32
    %first = arith.addi %t, %start : i32
    %left = arith.subi %end, %first : i32
    %any = arith.cmpi slt, %first, %end : i32
    %count = arith.select %any, %left, %c0 : i32
    %n = arith.ceildivui %count, %threads : i32
    scf.for %k = %c0 to %n step %c1 : i32 {
      %d = arith.muli %k, %threads : i32
      %i = arith.addi %first, %d : i32
      %a = tile.gather %x[%i] : memref<?xi8, strided<[1]>>, i32 -> i8
      %v = arith.extui %a : i8 to i32
      %old = tile.atomic add relaxed device, %c1, %z[%v] : i32, memref<?xi32, strided<[1]>>, i32 -> i32
    }
    return
  }
}

// -----

// Not where a thread adds up at a place of its own, nor in what it reads behind the loop without a barrier.
module attributes {tile.target = "sm_90a"} {
  // CHECK: func.func @own
  // CHECK-NOT: arith.maxui
  func.func @own(%x: memref<?xi8, strided<[1]>> {tile.align = 16 : i32}, %z: memref<?xi32, strided<[1]>>, %end: i32) attributes {tile.kernel, tile.simt} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %t = tile.thread_id 0
    %threads = tile.block_dim 0
    %first = arith.addi %t, %c0 : i32
    %left = arith.subi %end, %t : i32
    %any = arith.cmpi slt, %t, %end : i32
    %count = arith.select %any, %left, %c0 : i32
    %n = arith.ceildivui %count, %threads : i32
    scf.for %k = %c0 to %n step %c1 : i32 {
      %d = arith.muli %k, %threads : i32
      %i = arith.addi %t, %d : i32
      %a = tile.gather %x[%i] : memref<?xi8, strided<[1]>>, i32 -> i8
      %v = arith.extui %a : i8 to i32
      %old = tile.atomic add relaxed device, %v, %z[%t] : i32, memref<?xi32, strided<[1]>>, i32 -> i32
    }
    return
  }
}
