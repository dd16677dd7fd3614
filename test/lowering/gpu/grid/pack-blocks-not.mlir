// Which blocks of one warp are not started together; and that sixteen are the most.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-pack-blocks))' 2>&1 | FileCheck %s

#l = #tile.linear<lane = [[1], [2], [4], [8], [16]]>

// CHECK: remark: {{.*}}starts 16 of its blocks as one: each is a warp that moves 64 bytes
module attributes {tile.target = "sm_90a"} {
  // CHECK: func.func @small
  // CHECK: scf.if
  func.func @small(%a: memref<?xi8, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}, tile.launch = {shared_bytes = 0 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] : memref<?xi8, strided<[1]>>, i32 -> tensor<32xi8, #l>
    tile.store %x, %a[%i] : tensor<32xi8, #l>, memref<?xi8, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1]], lane = [[2], [4], [8], [16], [32]]>

// Not where no block is named along axis 0, ...
module attributes {tile.target = "sm_90a"} {
  // CHECK: func.func @no_id
  // CHECK-NOT: packed_blocks
  // CHECK-NOT: scf.if
  func.func @no_id(%a: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}, tile.launch = {shared_bytes = 0 : i32}} {
    %i = tile.block_id 1
    %x = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<64xf32, #l>
    tile.store %x, %a[%i] : tensor<64xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1]], lane = [[2], [4], [8], [16], [32]]>

// ... or all blocks move the same tile, ...
module attributes {tile.target = "sm_90a"} {
  // CHECK: func.func @same_place
  // CHECK-NOT: packed_blocks
  // CHECK-NOT: scf.if
  func.func @same_place(%a: memref<?xf32, strided<[1]>>, %j: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}, tile.launch = {shared_bytes = 0 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%j] : memref<?xf32, strided<[1]>>, i32 -> tensor<64xf32, #l>
    tile.store %x, %a[%j] : tensor<64xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1]], lane = [[2], [4], [8], [16], [32]]>

// ... or one moves enough by itself, ...
module attributes {tile.target = "sm_90a"} {
  // CHECK: func.func @large
  // CHECK-NOT: packed_blocks
  // CHECK-NOT: scf.if
  func.func @large(%a: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}, tile.launch = {shared_bytes = 0 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<2048xf32, #tile.linear<register = [[1], [2], [4], [8], [16], [32]], lane = [[64], [128], [256], [512], [1024]]>>
    tile.store %x, %a[%i] : tensor<2048xf32, #tile.linear<register = [[1], [2], [4], [8], [16], [32]], lane = [[64], [128], [256], [512], [1024]]>>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1]], lane = [[2], [4], [8], [16], [32]]>

// ... or goes on with others, ...
module attributes {tile.target = "sm_90a"} {
  // CHECK: func.func @persistent
  // CHECK-NOT: packed_blocks
  // CHECK-NOT: scf.if
  func.func @persistent(%a: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}, tile.launch = {persistent = 1 : i32, shared_bytes = 0 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<64xf32, #l>
    tile.store %x, %a[%i] : tensor<64xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1]], lane = [[2], [4], [8], [16], [32]]>

// ... or is of threads, no kernel, or of unknown size.
module attributes {tile.target = "sm_90a"} {
  // CHECK: func.func @of_threads
  // CHECK-NOT: packed_blocks
  // CHECK-NOT: scf.if
  func.func @of_threads(%a: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.simt, tile.hints = {num_warps = 1 : i32}, tile.launch = {shared_bytes = 0 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<64xf32, #l>
    tile.store %x, %a[%i] : tensor<64xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1]], lane = [[2], [4], [8], [16], [32]]>

module attributes {tile.target = "sm_90a"} {
  // CHECK: func.func @function
  // CHECK-NOT: packed_blocks
  // CHECK-NOT: scf.if
  func.func @function(%a: memref<?xf32, strided<[1]>>) attributes {tile.hints = {num_warps = 1 : i32}, tile.launch = {shared_bytes = 0 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<64xf32, #l>
    tile.store %x, %a[%i] : tensor<64xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1]], lane = [[2], [4], [8], [16], [32]]>

module attributes {tile.target = "sm_90a"} {
  // CHECK: func.func @unknown_warps
  // CHECK-NOT: packed_blocks
  // CHECK-NOT: scf.if
  func.func @unknown_warps(%a: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.launch = {shared_bytes = 0 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<64xf32, #l>
    tile.store %x, %a[%i] : tensor<64xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1]], lane = [[2], [4], [8], [16], [32]]>

// Any number of arguments leaves room for those of the grid.
module attributes {tile.target = "sm_90a"} {
  // CHECK: func.func @many_arguments
  // CHECK: scf.if
  func.func @many_arguments(%a: memref<?xf32, strided<[1]>>, %s0: i32, %s1: i32, %s2: i32, %s3: i32, %s4: i32, %s5: i32, %s6: i32, %s7: i32, %s8: i32, %s9: i32, %s10: i32, %s11: i32, %s12: i32, %s13: i32, %s14: i32, %s15: i32, %s16: i32, %s17: i32, %s18: i32, %s19: i32, %s20: i32, %s21: i32, %s22: i32, %s23: i32, %s24: i32, %s25: i32, %s26: i32, %s27: i32, %s28: i32, %s29: i32, %s30: i32, %s31: i32, %s32: i32, %s33: i32, %s34: i32, %s35: i32, %s36: i32, %s37: i32, %s38: i32, %s39: i32, %s40: i32, %s41: i32, %s42: i32, %s43: i32, %s44: i32, %s45: i32, %s46: i32, %s47: i32, %s48: i32, %s49: i32, %s50: i32, %s51: i32, %s52: i32, %s53: i32, %s54: i32, %s55: i32, %s56: i32, %s57: i32, %s58: i32, %s59: i32, %s60: i32, %s61: i32, %s62: i32, %s63: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}, tile.launch = {shared_bytes = 0 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<64xf32, #l>
    tile.store %x, %a[%i] : tensor<64xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}
