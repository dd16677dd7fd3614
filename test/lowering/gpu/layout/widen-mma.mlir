// Products without an instruction are widened, or run as multiply-adds, with a remark.
// RUN: tw-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma))' | FileCheck %s

// CHECK-LABEL: @fp8_on_ampere
module attributes {tile.target = "sm_80"} {
  func.func @fp8_on_ampere(%a: tensor<16x32xf8E4M3FN>, %b: tensor<32x8xf8E5M2>, %c: tensor<16x8xf32>) -> tensor<16x8xf32> {
    // CHECK: %[[X:.*]] = arith.extf %arg0 : tensor<16x32xf8E4M3FN> to tensor<16x32xf16>
    // CHECK: %[[Y:.*]] = arith.extf %arg1 : tensor<32x8xf8E5M2> to tensor<32x8xf16>
    // CHECK: tile.mma %[[X]], %[[Y]], %arg2
    // expected-remark @+1 {{'tile.mma' op runs on float16 inputs: sm_80 has no matrix instruction for float8_e4m3fn here}}
    %d = tile.mma %a, %b, %c : tensor<16x32xf8E4M3FN>, tensor<32x8xf8E5M2>, tensor<16x8xf32>
    return %d : tensor<16x8xf32>
  }
}

// -----

// CHECK-LABEL: @fp8_on_ada
module attributes {tile.target = "sm_89"} {
  func.func @fp8_on_ada(%a: tensor<16x32xf8E4M3FN>, %b: tensor<32x8xf8E5M2>, %c: tensor<16x8xf32>) -> tensor<16x8xf32> {
    // CHECK-NEXT: tile.mma %arg0, %arg1, %arg2
    %d = tile.mma %a, %b, %c : tensor<16x32xf8E4M3FN>, tensor<32x8xf8E5M2>, tensor<16x8xf32>
    return %d : tensor<16x8xf32>
  }
}

// -----

// CHECK-LABEL: @f32
module attributes {tile.target = "sm_90a"} {
  func.func @f32(%a: tensor<16x32xf32>, %b: tensor<32x8xf32>, %c: tensor<16x8xf32>) -> tensor<16x8xf32> {
    // CHECK-NEXT: tile.mma %arg0, %arg1, %arg2
    // expected-remark @+2 {{'tile.mma' op is not a wgmma: it has no instruction for its dtypes}}
    // expected-remark @+1 {{'tile.mma' op runs as multiply-adds: sm_90 has no matrix instruction for float32 of this shape; inputs of tfloat32 would have one}}
    %d = tile.mma %a, %b, %c : tensor<16x32xf32>, tensor<32x8xf32>, tensor<16x8xf32>
    return %d : tensor<16x8xf32>
  }
}
