// RUN: tw-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-strip-mine))'

func.func @most(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> attributes {tile.kernel} {
  %y = arith.addf %x, %x : tensor<1024x1024xf32>
  return %y : tensor<1024x1024xf32>
}

// -----

func.func @too_many(%x: tensor<2048x1024xf32>) -> tensor<2048x1024xf32> attributes {tile.kernel} {
  // expected-error @+1 {{makes a tile of 2048x1024xf32, 2097152 elements; on a GPU a tile has at most 1048576: use smaller tiles}}
  %y = arith.addf %x, %x : tensor<2048x1024xf32>
  return %y : tensor<2048x1024xf32>
}

// -----

module {
// expected-error @below {{has tile.product_step of 3 bytes; it is a power of two that has room for any element}}
func.func @odd() attributes {tile.kernel, tile.product_step = 3 : i32} {
  return
}
}
