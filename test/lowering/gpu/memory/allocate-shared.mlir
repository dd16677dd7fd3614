// Things in shared memory share bytes when they do not live at the same time.
// RUN: tw-opt %s -split-input-file -verify-diagnostics --tile-allocate-shared | FileCheck %s

#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#a = #tile.linear<register = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], lane = [[0, 4], [0, 8], [0, 16], [8, 0], [16, 0]]>

module attributes {tile.target = "sm_90"} {
  // What is used before the loop only makes room for what lives through it; of what each iteration makes anew, the
  // first makes room for the second; what an iteration finds as the one before left it lives through the loop.
  // CHECK-LABEL: @lifetimes
  // CHECK-SAME: shared_bytes = 12288
  func.func @lifetimes(%x: tensor<32x32xf32, #a>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // CHECK: tile.alloc_shared at [[OUTER:[0-9]+]] : <1x
    // CHECK: tile.alloc_shared at [[INNER:[0-9]+]] : <1x
    // CHECK: tile.alloc_shared at [[INNER]] : <1x
    // CHECK-NOT: at [[INNER]] :
    // CHECK: tile.alloc_shared at [[OUTER]] : <1x
    // CHECK-NOT: at [[INNER]] :
    // CHECK-NOT: at [[OUTER]] :
    // CHECK: tile.alloc_shared at
    %early = tile.alloc_shared : !tile.buffer<1x32x32xf32, #s>
    %loop = tile.alloc_shared : !tile.buffer<1x32x32xf32, #s>
    %late = tile.alloc_shared : !tile.buffer<1x32x32xf32, #s>
    %through = tile.alloc_shared : !tile.buffer<1x32x32xf32, #s>
    %left = tile.alloc_shared : !tile.buffer<1x32x32xf32, #s>
    tile.local_store %x, %early[%c0] : tensor<32x32xf32, #a>, !tile.buffer<1x32x32xf32, #s>
    %e = tile.local_load %early[%c0] : !tile.buffer<1x32x32xf32, #s> -> tensor<32x32xf32, #a>
    tile.local_store %e, %through[%c0] : tensor<32x32xf32, #a>, !tile.buffer<1x32x32xf32, #s>
    scf.for %i = %c0 to %n step %c1 : i32 {
      %y = tile.local_load %through[%c0] : !tile.buffer<1x32x32xf32, #s> -> tensor<32x32xf32, #a>
      tile.local_store %y, %loop[%c0] : tensor<32x32xf32, #a>, !tile.buffer<1x32x32xf32, #s>
      %old = tile.local_load %left[%c0] : !tile.buffer<1x32x32xf32, #s> -> tensor<32x32xf32, #a>
      tile.local_store %old, %left[%c0] : tensor<32x32xf32, #a>, !tile.buffer<1x32x32xf32, #s>
      %z = tile.local_load %loop[%c0] : !tile.buffer<1x32x32xf32, #s> -> tensor<32x32xf32, #a>
      tile.local_store %z, %late[%c0] : tensor<32x32xf32, #a>, !tile.buffer<1x32x32xf32, #s>
    }
    return
  }
}

// -----

#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#a = #tile.linear<register = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], lane = [[0, 4], [0, 8], [0, 16], [8, 0], [16, 0]]>

module attributes {tile.target = "sm_89"} {
  func.func @too_much(%x: tensor<32x32xf32, #a>) {
    %c0 = arith.constant 0 : i32
    // expected-error @+1 {{needs 131072 bytes of shared memory for a tile of 32x32x32xf32, the kernel 131072; a block of sm_89 has 101376: use smaller tiles or fewer stages}}
    %b = tile.alloc_shared : !tile.buffer<32x32x32xf32, #s>
    tile.local_store %x, %b[%c0] : tensor<32x32xf32, #a>, !tile.buffer<32x32x32xf32, #s>
    return
  }
}
