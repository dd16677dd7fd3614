// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-fold-exp),canonicalize,cse)' | FileCheck %s

// Base, scale and a factor around the difference become one factor; the mask stays where it is.
// CHECK-LABEL: @softmax
// CHECK-SAME: %[[S:[a-z0-9]*]]: tensor<64x64xf32>, %[[M:[a-z0-9]*]]: tensor<64x1xf32>, %[[V:[a-z0-9]*]]: tensor<64x64xf16>, %[[MASK:[a-z0-9]*]]: tensor<64x64xi1>
// CHECK-DAG: %[[LOW:.*]] = arith.constant dense<0xFF800000>
// CHECK-DAG: %[[ALL:.*]] = arith.constant dense<0.360673755>
// CHECK-DAG: %[[ROW:.*]] = arith.constant dense<2.885390e+00> : tensor<64x1xf32>
// CHECK-DAG: %[[T:.*]] = arith.mulf %[[S]], %[[ALL]]
// CHECK: %[[MASKED:.*]] = arith.select %[[MASK]], %[[T]], %[[LOW]]
// CHECK: %[[REF:.*]] = arith.mulf %[[M]], %[[ROW]]
// CHECK: %[[B:.*]] = tile.broadcast %[[REF]]
// CHECK: %[[D:.*]] = arith.subf %[[MASKED]], %[[B]]
// CHECK: math.exp2 %[[D]]
// CHECK-NOT: math.exp %
func.func @softmax(%s: tensor<64x64xf32>, %m: tensor<64x1xf32>, %v: tensor<64x64xf16>, %mask: tensor<64x64xi1>) -> (tensor<64x64xf32>, tensor<64xf32>) {
  %c = arith.constant dense<0.125> : tensor<64x64xf32>
  %two = arith.constant dense<2.0> : tensor<64x64xf32>
  %low = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %t = arith.mulf %s, %c : tensor<64x64xf32>
  %u = arith.select %mask, %t, %low : tensor<64x64xi1>, tensor<64x64xf32>
  %b = tile.broadcast %m : tensor<64x1xf32> -> tensor<64x64xf32>
  %d = arith.subf %u, %b : tensor<64x64xf32>
  %e = arith.mulf %d, %two : tensor<64x64xf32>
  %p = math.exp %e : tensor<64x64xf32>
  %l = tile.reduce add, %p axis 1 : tensor<64x64xf32>
  %h = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xf16>
  %r = tile.mma %h, %v, %zero : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
  return %r, %l : tensor<64x64xf32>, tensor<64xf32>
}

// -----

// What is read as it is keeps its accuracy; so does a form that has nothing to fold.
// CHECK-LABEL: @kept
// CHECK: %[[P:.*]] = math.exp %
// CHECK: %[[D:.*]] = arith.subf
// CHECK: math.exp2 %[[D]]
// CHECK: return %[[P]]
func.func @kept(%s: tensor<64x64xf32>, %m: tensor<64x64xf32>, %v: tensor<64x64xf16>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %c = arith.constant dense<0.125> : tensor<64x64xf32>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = arith.subf %s, %m : tensor<64x64xf32>
  %p = math.exp %d : tensor<64x64xf32>
  %t = arith.mulf %s, %c : tensor<64x64xf32>
  %e = arith.subf %t, %m : tensor<64x64xf32>
  %q = math.exp2 %e : tensor<64x64xf32>
  %h = arith.truncf %q : tensor<64x64xf32> to tensor<64x64xf16>
  %r = tile.mma %h, %v, %zero : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
  return %p, %r : tensor<64x64xf32>, tensor<64x64xf32>
}
