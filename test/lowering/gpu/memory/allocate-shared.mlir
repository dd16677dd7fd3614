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

#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [0, 8], [0, 16], [0, 32]]>
#c = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#w = #tile.linear<register = [[4, 0], [8, 0], [16, 0], [32, 0], [0, 32]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[1, 0], [2, 0]]>
!b = !tile.buffer<1x64x64xbf16, #s>
!c = tensor<64x64xf32, #c>
!w = tensor<64x64xf32, #w>

module attributes {tile.target = "sm_90a"} {
  // A product reads its buffers until it was waited for: the first is done when one is left under way.
  // CHECK-LABEL: @product
  func.func @product(%x: !c) -> (!c, !c) {
    // CHECK: tile.alloc_shared at 0 :
    // CHECK: tile.alloc_shared at 16384 :
    %first = tile.alloc_shared : !b
    %second = tile.alloc_shared : !b
    %c0 = arith.constant 0 : i32
    %d = tile.async_mma %first[%c0], %first[%c0], %x : !b, !b, !c -> !c
    %e = tile.async_mma %second[%c0], %second[%c0], %x : !b, !b, !c -> !c
    %dw = tile.mma_wait %d, 1 {complete} : !c -> !c
    // CHECK: tile.scratch = 0
    %y = tile.convert_layout %x : !c -> !w
    %ew = tile.mma_wait %e, 0 : !c -> !c
    return %dw, %ew : !c, !c
  }

  // One that runs into the next iteration reads beside all that is in the loop.
  // CHECK-LABEL: @over_iterations
  func.func @over_iterations(%x: !c, %n: i32) -> !c {
    // CHECK: tile.alloc_shared at 16384 :
    %a = tile.alloc_shared : !b
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %x) -> !c : i32 {
      // CHECK: tile.scratch = 0
      %y = tile.convert_layout %x : !c -> !w
      %d = tile.async_mma %a[%c0], %a[%c0], %acc : !b, !b, !c -> !c
      %w = tile.mma_wait %d, 1 : !c -> !c
      scf.yield %w : !c
    }
    %done = tile.mma_wait %r, 0 : !c -> !c
    return %done : !c
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

// -----

// Arrays of threads share bytes where a barrier of the function's block lies between the uses.
// CHECK-LABEL: @arrays
// CHECK-SAME: shared_bytes = 1152
module attributes {tile.target = "sm_90"} {
  func.func @arrays(%i: i32, %x: f32, %p: i1) attributes {tile.kernel, tile.simt} {
    // CHECK-COUNT-2: tile.shared_array {align = 128 : i64, offset = 0 : i32}
    // CHECK: tile.shared_array {align = 128 : i64, offset = 1024 : i32}
    %early = tile.shared_array {align = 128} : memref<256xf32, 3>
    %late = tile.shared_array {align = 128} : memref<256xf32, 3>
    %other = tile.shared_array {align = 128} : memref<32xf32, 3>
    tile.scatter %x, %early[%i] : f32, memref<256xf32, 3>, i32
    tile.sync_threads
    tile.scatter %x, %late[%i] : f32, memref<256xf32, 3>, i32
    scf.if %p {
      tile.sync_threads
    }
    tile.scatter %x, %other[%i] : f32, memref<32xf32, 3>, i32
    return
  }
}

// -----

module attributes {tile.target = "sm_90"} {
  func.func @too_much(%i: i32, %x: f32) attributes {tile.kernel, tile.simt} {
    // expected-error @below {{takes 240000 bytes of shared memory, the kernel's arrays 240000 at once; a block of sm_90 has 232448}}
    %s = tile.shared_array : memref<60000xf32, 3>
    tile.scatter %x, %s[%i] : f32, memref<60000xf32, 3>, i32
    return
  }
}
