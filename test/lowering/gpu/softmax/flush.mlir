// What an exp2 gives is flushed by its instruction, unless it is read otherwise; of another number a product by one does
// it.
// RUN: tw-opt %s -pass-pipeline='builtin.module(func.func(tile-online-softmax))' | FileCheck %s

// CHECK-LABEL: @weights
// CHECK: %[[P:.*]] = math.exp2 {{.*}}tile.approximate
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[P]], %[[P]]
// CHECK-NEXT: tile.flush %[[S]]
// CHECK-LABEL: @both
// CHECK: %[[P:.*]] = math.exp2
// CHECK-NOT: tile.approximate
// CHECK: %[[F:.*]] = tile.flush %[[P]]
// CHECK-NEXT: arith.subf %[[P]], %[[F]]
module attributes {tile.target = "sm_90a"} {
  func.func @weights(%x: tensor<64xf32>) -> tensor<64xf32> attributes {tile.kernel} {
    %p = math.exp2 %x : tensor<64xf32>
    %f = tile.flush %p : tensor<64xf32>
    %s = arith.addf %f, %f : tensor<64xf32>
    %g = tile.flush %s : tensor<64xf32>
    return %g : tensor<64xf32>
  }
  func.func @both(%x: tensor<64xf32>) -> tensor<64xf32> attributes {tile.kernel} {
    %p = math.exp2 %x : tensor<64xf32>
    %f = tile.flush %p : tensor<64xf32>
    %s = arith.subf %p, %f : tensor<64xf32>
    return %s : tensor<64xf32>
  }
}
