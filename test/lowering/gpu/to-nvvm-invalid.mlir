// What the re-emission refuses.
// RUN: tw-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(tile-to-nvvm)'

module attributes {tile.target = "sm_80"} {
  func.func @no_layout(%a: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
    %i = tile.block_id 0
    // expected-error@+1 {{'tile.load' op has a result without layout; run tile-assign-layouts first}}
    %x = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<256xf32>
    return
  }
}

// -----

module attributes {tile.target = "sm_80"} {
  func.func @not_legal() attributes {tile.kernel} {
    // expected-error@+1 {{'tile.constant' op has an unsigned result; run tile-legalize first}}
    %x = tile.constant 200 : ui8
    return
  }
}

// -----

#l = #tile.linear<register = [[1]], lane = [[2], [4], [8], [16], [32]]>
module attributes {tile.target = "sm_80"} {
  func.func @unallocated(%a: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
    // expected-error@+1 {{'tile.alloc_shared' op has no offset; run tile-allocate-shared first}}
    %b = tile.alloc_shared : !tile.buffer<1x64xf32, #tile.linear<offset = [[1], [2], [4], [8], [16], [32]]>>
    return
  }
}

// -----

#l = #tile.linear<register = [[1]], lane = [[2], [4], [8], [16], [32]]>
module attributes {tile.target = "sm_80"} {
  func.func @bad_layout() attributes {tile.kernel} {
    // expected-error@+1 {{expected '['}}
    %i = "tile.block_id"() {axis = #tile.linear<register = 1>} : () -> i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1]], lane = [[2], [4], [8], [16], [32]]>
module attributes {tile.target = "sm_80"} {
  func.func @other_block(%a: memref<?xf32, strided<[1]>>, %i: i32) attributes {tile.kernel, tile.hints = {num_warps = 2 : i32}} {
    // expected-error@+1 {{does not give each element to one of 32 lanes in 2 warps}}
    %x = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<64xf32, #l>
    return
  }
}

// -----

module attributes {tile.target = "sm_80"} {
  // expected-error@+1 {{'func.func' op is a kernel with an argument that is neither an array nor a scalar}}
  func.func @buffer_argument(%a: !tile.buffer<1x64xf32, #tile.linear<offset = [[1], [2], [4], [8], [16], [32]]>>) attributes {tile.kernel} {
    return
  }
}

// -----

#l = #tile.linear<register = [[1]], lane = [[3], [4], [8], [16], [32]]>

module attributes {tile.target = "sm_90a"} {
  func.func @k(%a: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %x = tile.load %a[%c0] : memref<?xf32, strided<[1]>>, i32 -> tensor<64xf32, #l>
    // expected-error @below {{needs a layout whose bits each lie along its axis or across it, those of warps side by side}}
    %s = tile.scan add, %x axis 0 : tensor<64xf32, #l>
    return
  }
}

// -----

#l = #tile.linear<register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [0, 16], [1, 0]], warp = [[2, 0]]>
#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0]]>

module attributes {tile.target = "sm_80"} {
  func.func @scattered(%a: memref<?x?xbf16, strided<[?, 1]>>) attributes {tile.kernel, tile.hints = {num_warps = 2 : i32}} {
    %c0 = arith.constant 0 : i32
    %zeros = arith.constant dense<0> : tensor<4x32xi32, #l>
    %b = tile.alloc_shared at 0 : !tile.buffer<1x4x32xbf16, #s>
    // expected-error @below {{copies pieces of less than 4 bytes: its indices are not known to count up}}
    tile.async_gather %a[%zeros, %zeros] into %b[%c0] : memref<?x?xbf16, strided<[?, 1]>>, tensor<4x32xi32, #l>, tensor<4x32xi32, #l> into !tile.buffer<1x4x32xbf16, #s>
    return
  }
}

// -----

#l = #tile.linear<register = [], lane = [[1], [2], [4], [8], [16]]>

module attributes {tile.target = "sm_90a"} {
  func.func @narrow(%a: memref<?xf16, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %x = tile.load %a[%c0] padding zero : memref<?xf16, strided<[1]>>, i32 -> tensor<32xf16, #l>
    // expected-error @below {{is neither of f32 nor of f64, to which tile-legalize widens}}
    %t = math.tanh %x : tensor<32xf16, #l>
    return
  }
}

// -----

module attributes {tile.target = "sm_90a"} {
  // expected-error @below {{takes 1120 threads of a block; there are at most 1024}}
  func.func @crowd() attributes {tile.kernel, tile.hints = {num_warps = 32 : i32}} {
    tile.roles producer_warps 3 producer {
    } consumer {
    }
    return
  }
}

// -----

#l = #tile.linear<register = [[0, 32], [0, 64], [1, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]]>
module attributes {tile.target = "sm_80"} {
  func.func @two_rows(%a: memref<?x?xbf16, strided<[?, 1]>>, %i: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %x = arith.constant dense<1.0> : tensor<2x128xbf16, #l>
    // expected-error@+1 {{'tile.store' op is marked tile.realigned, which takes a tile that is one row}}
    tile.store %x, %a[%i, %i] {tile.realigned} : tensor<2x128xbf16, #l>, memref<?x?xbf16, strided<[?, 1]>>, i32, i32
    return
  }
}
