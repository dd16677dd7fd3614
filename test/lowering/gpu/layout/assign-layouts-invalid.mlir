// RUN: tw-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-assign-layouts))'

module attributes {tile.target = "sm_80"} {
  // expected-error@+1 {{'func.func' op is a kernel that takes a tile; kernels take arrays and scalars}}
  func.func @takes_a_tile(%x: tensor<8x8xf32>) attributes {tile.kernel} {
    return
  }
}
