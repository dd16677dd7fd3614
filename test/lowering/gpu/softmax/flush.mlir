// What an exp2 gives is flushed by its instruction, unless it is read otherwise; of another number a sum does it. A
// rough quotient flushes what it reads and gives; what others read, too, is flushed as before.
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
// CHECK-LABEL: @rough
// CHECK-NEXT: %[[Q:.*]] = arith.divf %arg0, %arg1 {tile.approximate, tile.rough}
// CHECK-NEXT: return %[[Q]]
// CHECK-LABEL: @read_by_others
// CHECK-NEXT: %[[F:.*]] = tile.flush %arg1
// CHECK-NEXT: %[[Q:.*]] = arith.divf %arg0, %[[F]] {tile.approximate, tile.rough}
// CHECK-NEXT: arith.addf %[[Q]], %[[F]]
// CHECK-LABEL: @exact
// CHECK-COUNT-3: tile.flush
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
  func.func @rough(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> attributes {tile.kernel} {
    %a = tile.flush %x : tensor<64xf32>
    %b = tile.flush %y : tensor<64xf32>
    %q = arith.divf %a, %b {tile.approximate, tile.rough} : tensor<64xf32>
    %f = tile.flush %q : tensor<64xf32>
    return %f : tensor<64xf32>
  }
  func.func @read_by_others(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> attributes {tile.kernel} {
    %a = tile.flush %x : tensor<64xf32>
    %b = tile.flush %y : tensor<64xf32>
    %q = arith.divf %a, %b {tile.approximate, tile.rough} : tensor<64xf32>
    %f = tile.flush %q : tensor<64xf32>
    %s = arith.addf %f, %b : tensor<64xf32>
    return %s : tensor<64xf32>
  }
  func.func @exact(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> attributes {tile.kernel} {
    %a = tile.flush %x : tensor<64xf32>
    %b = tile.flush %y : tensor<64xf32>
    %q = arith.divf %a, %b {tile.approximate} : tensor<64xf32>
    %f = tile.flush %q : tensor<64xf32>
    return %f : tensor<64xf32>
  }
}
