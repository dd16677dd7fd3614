// What hints of kernels and accesses change.
// RUN: tw-opt %s -split-input-file -verify-diagnostics=only-expected -pass-pipeline='builtin.module(func.func(tile-report),tile-to-nvvm)' | FileCheck %s

// A block says how many of its kind a multiprocessor shall hold.
// CHECK-LABEL: llvm.func @three_blocks
// CHECK-SAME: nvvm.minctasm = 3
module attributes {tile.target = "sm_90a"} {
  func.func @three_blocks(%a: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 2 : i32, occupancy = 3 : i32}} {
    return
  }
}

// -----

// No more than fit, with a remark.
// CHECK-LABEL: llvm.func @large
// CHECK-SAME: nvvm.minctasm = 2
module attributes {tile.target = "sm_90a"} {
  // expected-remark @below {{has occupancy=3, but its tiles in shared memory leave room for 2 blocks on a multiprocessor}}
  func.func @large(%a: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 2 : i32, occupancy = 3 : i32}, tile.launch = {shared_bytes = 100000 : i32}} {
    return
  }
}

// -----

// CHECK-LABEL: llvm.func @wide
module attributes {tile.target = "sm_90a"} {
  // expected-remark @below {{has occupancy=4, but its threads leave room for 2 blocks on a multiprocessor}}
  func.func @wide(%a: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 32 : i32, occupancy = 4 : i32}} {
    return
  }
}

// -----

#l = #tile.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128]]>

// A tile that is said to lie inside of the array is not compared with it, and goes by vectors whatever the extent is.
// Neither access has a use for its latency.
// CHECK-LABEL: llvm.func @inside
// CHECK-NOT: llvm.icmp
// CHECK: "ld.global.v4.b32 {$0, $1, $2, $3}, [$4 + 0];"
// CHECK: "st.global.v4.b32 [$4 + 0], {$0, $1, $2, $3};"
module attributes {tile.target = "sm_90a"} {
  func.func @inside(%a: memref<?xf32, strided<[1]>> {tile.align = 16 : i32, tile.shape_div = array<i64: 1>}) attributes {tile.kernel, tile.hints = {num_warps = 2 : i32}} {
    %i = tile.block_id 0
    // expected-remark @below {{has a latency that is not used: its tile is not copied ahead, in a loop}}
    %x = tile.load %a[%i] {tile.in_bounds, tile.latency = 4 : i32} : memref<?xf32, strided<[1]>>, i32 -> tensor<256xf32, #l>
    // expected-remark @below {{has a latency that is not used: nothing waits for what it writes}}
    tile.store %x, %a[%i] {tile.in_bounds, tile.latency = 4 : i32} : tensor<256xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}
