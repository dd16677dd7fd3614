// Blocks of one warp are rows of one block.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-pack-blocks))' 2>&1 | FileCheck %s
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-pack-blocks),tile-to-nvvm)' 2>/dev/null | FileCheck %s --check-prefix=CODE

#l = #tile.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]]>

// CHECK: remark: {{.*}}starts 16 of its blocks as one: each is a warp that moves 1024 bytes
module attributes {tile.target = "sm_90a"} {
  // CHECK: func.func @scale({{.*}}, %[[X:arg2]]: i32, %{{.*}}: i32, %{{.*}}: i32) attributes {tile.hints = {num_warps = 1 : i32}, tile.kernel,
  // CHECK-SAME: packed_blocks = 16 : i32
  // CHECK: %[[B:.*]] = tile.block_id 0
  // CHECK: %[[R:.*]] = tile.block_dim 1
  // CHECK: %[[M:.*]] = arith.muli %[[B]], %[[R]]
  // CHECK: %[[T:.*]] = tile.thread_id 1
  // CHECK: %[[I:.*]] = arith.addi %[[M]], %[[T]]
  // CHECK: %[[C:.*]] = arith.cmpi ult, %[[I]], %[[X]]
  // CHECK: scf.if %[[C]] {
  // CHECK-NEXT: %[[K:.*]] = tile.block_id 1
  // CHECK-NEXT: arith.addi %[[X]], %[[K]]
  // CHECK-NEXT: tile.load %{{.*}}[%[[I]]]
  // CODE: llvm.func @scale
  // CODE-SAME: nvvm.maxntid = array<i32: 32, 16>
  // CODE-NOT: reqntid
  // CODE: nvvm.read.ptx.sreg.tid.y
  func.func @scale(%a: memref<?xf32, strided<[1]>>, %b: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}, tile.launch = {shared_bytes = 0 : i32}} {
    %i = tile.block_id 0
    %n = tile.num_blocks 0
    %k = tile.block_id 1
    %j = arith.addi %n, %k : i32
    %x = tile.load %a[%i] padding zero : memref<?xf32, strided<[1]>>, i32 -> tensor<128xf32, #l>
    tile.store %x, %b[%j] : tensor<128xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = [[64]]>

// Not where a block has two warps ...
module attributes {tile.target = "sm_90a"} {
  // CHECK: func.func @two_warps
  // CHECK-NOT: packed_blocks
  // CHECK-NOT: scf.if
  func.func @two_warps(%a: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 2 : i32}, tile.launch = {shared_bytes = 0 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<128xf32, #l>
    tile.store %x, %a[%i] : tensor<128xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1]], lane = [[2], [4], [8], [16], [32]]>

// ... or shared memory ...
module attributes {tile.target = "sm_90a"} {
  // CHECK: func.func @shared
  // CHECK-NOT: packed_blocks
  // CHECK-NOT: scf.if
  func.func @shared(%a: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}, tile.launch = {shared_bytes = 512 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<64xf32, #l>
    tile.store %x, %a[%i] : tensor<64xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1]], lane = [[2], [4], [8], [16], [32]]>

// ... or a loop, ...
module attributes {tile.target = "sm_90a"} {
  // CHECK: func.func @loop
  // CHECK-NOT: packed_blocks
  // CHECK-NOT: scf.if
  func.func @loop(%a: memref<?xf32, strided<[1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}, tile.launch = {shared_bytes = 0 : i32}} {
    %c1 = arith.constant 1 : i32
    %i = tile.block_id 0
    scf.for %k = %i to %n step %c1 : i32 {
      %x = tile.load %a[%k] : memref<?xf32, strided<[1]>>, i32 -> tensor<64xf32, #l>
      tile.store %x, %a[%k] : tensor<64xf32, #l>, memref<?xf32, strided<[1]>>, i32
    }
    return
  }
}

// -----

#l = #tile.linear<register = [[1]], lane = [[2], [4], [8], [16], [32]]>

// ... or where there is one block only.
module attributes {tile.target = "sm_90a"} {
  // CHECK: func.func @one_block
  // CHECK-NOT: packed_blocks
  // CHECK-NOT: scf.if
  func.func @one_block(%a: memref<?xf32, strided<[1]>>, %i: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}, tile.launch = {shared_bytes = 0 : i32}} {
    %x = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<64xf32, #l>
    tile.store %x, %a[%i] : tensor<64xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}
