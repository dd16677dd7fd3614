// What the tensor memory accelerator cannot do, and roles that are out of place.
// RUN: tw-opt %s -split-input-file -verify-diagnostics -pass-pipeline='builtin.module(tile-to-nvvm)'

#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
module attributes {tile.target = "sm_80"} {
  func.func @old_target(%x: memref<?x?xbf16, strided<[?, 1]>> {tile.tma}, %i: i32) attributes {tile.kernel} {
    %s = tile.alloc_shared at 0 : !tile.buffer<1x8x64xbf16, #s>
    %b = tile.alloc_barriers arrivals 1 at 1024 : !tile.barriers<1>
    // expected-error @below {{'tile.tma_load' op is beyond the tensor memory accelerator: the target has no tensor memory accelerator}}
    tile.tma_load %x[%i, %i] into %s[%i] signal %b[%i] : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 into !tile.buffer<1x8x64xbf16, #s>, !tile.barriers<1>
    return
  }
}

// -----

#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
module attributes {tile.target = "sm_90a"} {
  func.func @no_fact(%x: memref<?x?xbf16, strided<[?, 1]>>, %i: i32) attributes {tile.kernel} {
    %s = tile.alloc_shared at 0 : !tile.buffer<1x8x64xbf16, #s>
    %b = tile.alloc_barriers arrivals 1 at 1024 : !tile.barriers<1>
    // expected-error @below {{the array is not known to have an address and outer strides that are multiples of 16 bytes, and a stride of 1}}
    tile.tma_load %x[%i, %i] into %s[%i] signal %b[%i] : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 into !tile.buffer<1x8x64xbf16, #s>, !tile.barriers<1>
    return
  }
}

// -----

#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
module attributes {tile.target = "sm_90a"} {
  func.func @columns(%x: memref<?x?xbf16, strided<[1, ?]>> {tile.tma}, %i: i32) attributes {tile.kernel} {
    %s = tile.alloc_shared at 0 : !tile.buffer<1x8x64xbf16, #s>
    %b = tile.alloc_barriers arrivals 1 at 1024 : !tile.barriers<1>
    // expected-error @below {{lines of its tile are not contiguous in the array}}
    tile.tma_load %x[%i, %i] into %s[%i] signal %b[%i] : memref<?x?xbf16, strided<[1, ?]>>, i32, i32 into !tile.buffer<1x8x64xbf16, #s>, !tile.barriers<1>
    return
  }
}

// -----

// Four lines: the next stage would begin within a pattern of eight.
#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16]]>
module attributes {tile.target = "sm_90a"} {
  func.func @small(%x: memref<?x?xbf16, strided<[?, 1]>> {tile.tma}, %i: i32) attributes {tile.kernel} {
    %s = tile.alloc_shared at 0 : !tile.buffer<1x4x64xbf16, #s>
    %b = tile.alloc_barriers arrivals 1 at 1024 : !tile.barriers<1>
    // expected-error @below {{its tile is too small, or does not lie in shared memory as boxes do}}
    tile.tma_load %x[%i, %i] into %s[%i] signal %b[%i] : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 into !tile.buffer<1x4x64xbf16, #s>, !tile.barriers<1>
    return
  }
}

// -----

#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 32]]>
module attributes {tile.target = "sm_90a"} {
  func.func @other_swizzle(%x: memref<?x?xbf16, strided<[?, 1]>> {tile.tma}, %i: i32) attributes {tile.kernel} {
    %s = tile.alloc_shared at 0 : !tile.buffer<1x8x64xbf16, #s>
    %b = tile.alloc_barriers arrivals 1 at 1024 : !tile.barriers<1>
    // expected-error @below {{its tile is too small, or does not lie in shared memory as boxes do}}
    tile.tma_load %x[%i, %i] into %s[%i] signal %b[%i] : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 into !tile.buffer<1x8x64xbf16, #s>, !tile.barriers<1>
    return
  }
}

// -----

#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
module attributes {tile.target = "sm_90a"} {
  func.func @forbidden(%x: memref<?x?xbf16, strided<[?, 1]>> {tile.tma}, %i: i32) attributes {tile.kernel} {
    %s = tile.alloc_shared at 0 : !tile.buffer<1x8x64xbf16, #s>
    %b = tile.alloc_barriers arrivals 1 at 1024 : !tile.barriers<1>
    // expected-error @below {{it says allow_tma=False}}
    tile.tma_load %x[%i, %i] into %s[%i] signal %b[%i] {tile.allow_tma = false} : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 into !tile.buffer<1x8x64xbf16, #s>, !tile.barriers<1>
    return
  }
}

// -----

#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
module attributes {tile.target = "sm_90a"} {
  func.func @narrow(%x: memref<?x?xf4E2M1FN, strided<[?, 1]>> {tile.tma}, %i: i32) attributes {tile.kernel} {
    %s = tile.alloc_shared at 0 : !tile.buffer<1x8x64xf4E2M1FN, #s>
    %b = tile.alloc_barriers arrivals 1 at 1024 : !tile.barriers<1>
    // expected-error @below {{its elements are smaller than a byte}}
    tile.tma_load %x[%i, %i] into %s[%i] signal %b[%i] : memref<?x?xf4E2M1FN, strided<[?, 1]>>, i32, i32 into !tile.buffer<1x8x64xf4E2M1FN, #s>, !tile.barriers<1>
    return
  }
}

// -----

module attributes {tile.target = "sm_90a"} {
  func.func @no_place() attributes {tile.kernel} {
    // expected-error @below {{'tile.alloc_barriers' op has no offset; run tile-allocate-shared first}}
    %b = tile.alloc_barriers arrivals 1 : !tile.barriers<1>
    return
  }
}

// -----

module attributes {tile.target = "sm_90a"} {
  func.func @nested(%c: i1) attributes {tile.kernel} {
    scf.if %c {
      // expected-error @below {{'tile.roles' op stands inside of another op; roles are those of the whole kernel}}
      tile.roles producer_warps 1 producer {
      } consumer {
      }
    }
    return
  }
}
