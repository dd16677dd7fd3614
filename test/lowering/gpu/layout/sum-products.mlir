// A product of one row, or of one column, that no matrix instruction takes is a sum outside of loops; within one, and of
// floats that an instruction takes, it stays a product.
// RUN: tw-opt %s -pass-pipeline='builtin.module(func.func(tile-plan-block))' | FileCheck %s

// CHECK-LABEL: @row
// CHECK: %[[C:.*]] = tile.reshape %{{.*}} : tensor<1x128xf32> -> tensor<128x1xf32>
// CHECK: %[[W:.*]] = tile.broadcast %[[C]] : tensor<128x1xf32> -> tensor<128x64xf32>
// CHECK: %[[P:.*]] = arith.mulf %[[W]], %{{.*}} : tensor<128x64xf32>
// CHECK: tile.reduce add, %[[P]] axis 0 : tensor<128x64xf32>
// CHECK-NOT: tile.mma
// CHECK-LABEL: @column
// CHECK: tile.reduce add, %{{.*}} axis 1 : tensor<64x128xf32>
// CHECK-LABEL: @looped
// CHECK: tile.mma
// CHECK-LABEL: @taken
// CHECK: tile.mma
module attributes {tile.target = "sm_90a"} {
  func.func @row(%w: tensor<1x128xf32>, %x: tensor<128x64xf32>, %acc: tensor<1x64xf32>) -> tensor<1x64xf32> attributes {tile.kernel} {
    %d = tile.mma %w, %x, %acc : tensor<1x128xf32>, tensor<128x64xf32>, tensor<1x64xf32>
    return %d : tensor<1x64xf32>
  }
  func.func @column(%x: tensor<64x128xf32>, %w: tensor<128x1xf32>, %acc: tensor<64x1xf32>) -> tensor<64x1xf32> attributes {tile.kernel} {
    %d = tile.mma %x, %w, %acc : tensor<64x128xf32>, tensor<128x1xf32>, tensor<64x1xf32>
    return %d : tensor<64x1xf32>
  }
  func.func @looped(%w: tensor<1x128xf32>, %x: tensor<128x64xf32>, %acc: tensor<1x64xf32>, %n: i32) -> tensor<1x64xf32> attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %acc) -> (tensor<1x64xf32>) : i32 {
      %d = tile.mma %w, %x, %a : tensor<1x128xf32>, tensor<128x64xf32>, tensor<1x64xf32>
      scf.yield %d : tensor<1x64xf32>
    }
    return %r : tensor<1x64xf32>
  }
  func.func @taken(%w: tensor<1x128xf16>, %x: tensor<128x64xf16>, %acc: tensor<1x64xf32>) -> tensor<1x64xf32> attributes {tile.kernel} {
    %d = tile.mma %w, %x, %acc : tensor<1x128xf16>, tensor<128x64xf16>, tensor<1x64xf32>
    return %d : tensor<1x64xf32>
  }
}
