// RUN: tw-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(func.func(tile-plan-block))' | FileCheck %s

// CHECK: func.func @k({{.*}}tile.product_step = 128
module attributes {tile.target = "sm_90a", tile.plan = 2 : i32, tile.plan_reason = "takes too much"} {
  // expected-remark @+1 {{is planned again, with products in steps: takes too much}}
  func.func @k(%a: tensor<64x64xf32>) attributes {tile.kernel} {
    %d = tile.mma %a, %a, %a : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
    return
  }
}

// -----

// CHECK: func.func @k({{.*}}tile.hints = {num_stages = 2 : i32}, {{.*}}tile.spare_shared = 116224
module attributes {tile.target = "sm_90a", tile.plan = 4 : i32} {
  // expected-remark @+1 {{is planned again, with two stages, half of shared memory}}
  func.func @k() attributes {tile.kernel} { return }
}

// -----

// No product, of which other warps would have other shares.
module attributes {tile.target = "sm_90a", tile.plan = 3 : i32} {
  // expected-error @+1 {{has nothing to change for a plan with other warps}}
  func.func @k() attributes {tile.kernel} { return }
}
