// A map of plain arithmetic is that arithmetic, on tiles; another one stays.
// RUN: tw-opt %s --tile-legalize | FileCheck %s

// CHECK-LABEL: func @maps
func.func @maps(%x: tensor<8xf32>, %c: f32, %p: i1) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK: %[[C:.*]] = tensor.splat
  // CHECK: %[[Y:.*]] = arith.mulf %{{.*}}, %[[C]] : tensor<8xf32>
  %y = tile.map(%x) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: f32):
    %b = tile.mul %a, %c : f32, f32
    tile.yield %b : f32
  }
  // CHECK: tile.map(%[[Y]])
  %z = tile.map(%y) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: f32):
    %b = scf.if %p -> f32 {
      scf.yield %a : f32
    } else {
      scf.yield %c : f32
    }
    tile.yield %b : f32
  }
  return %y, %z : tensor<8xf32>, tensor<8xf32>
}
