// What the pass refuses, by name and place.
// RUN: tw-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(tile-to-cpu)'

module attributes {tile.target = "cpu"} {
  func.func @unknown(%x: f32) attributes {tile.kernel} {
    // expected-error @below {{'tensor.empty' op has no CPU lowering}}
    %t = tensor.empty() : tensor<4xf32>
    return
  }
}

// -----

module attributes {tile.target = "cpu"} {
  func.func @table(%a: memref<?xi32, strided<[1]>>) attributes {tile.kernel} {
    %i = tile.block_id 0
    // expected-error @below {{a tile constant must have equal elements}}
    %t = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
    tile.store %t, %a[%i] : tensor<4xi32>, memref<?xi32, strided<[1]>>, i32
    return
  }
}

// -----

module attributes {tile.target = "cpu"} {
  // expected-error@+1 {{is a kernel with an argument that is neither an array nor a scalar of a dtype without sign}}
  func.func @buffer_argument(%a: !tile.buffer<1x64xf32, #tile.linear<offset = [[1], [2], [4], [8], [16], [32]]>>) attributes {tile.kernel} {
    return
  }
}

// -----

module attributes {tile.target = "cpu"} {
  // expected-error@+1 {{has an array of a dtype that tile-legalize makes signless}}
  func.func @array_with_sign(%a: memref<?xui8, strided<[1]>>) attributes {tile.kernel} {
    return
  }
}

// -----

module attributes {tile.target = "cpu"} {
  func.func @tile_with_sign() attributes {tile.kernel} {
    // expected-error@+1 {{is of a dtype that tile-legalize makes signless}}
    %x = tile.iota : tensor<8xui32>
    return
  }
}
