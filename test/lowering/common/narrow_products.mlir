// A product of narrow numbers that is only rounded to their type is computed in it, whatever views stand between.
// RUN: tw-opt %s -pass-pipeline='builtin.module(func.func(tile-canonicalize),canonicalize,cse)' | FileCheck %s

// CHECK-LABEL: @bytes
// CHECK-DAG: %[[W:.*]] = arith.sitofp %arg0 : tensor<8x16xi8> to tensor<8x16xbf16>
// CHECK-DAG: %[[S:.*]] = tile.broadcast %arg1 : tensor<1x16xbf16> -> tensor<8x16xbf16>
// CHECK: %[[R:.*]] = arith.mulf %[[W]], %[[S]] : tensor<8x16xbf16>
// CHECK-NEXT: return %[[R]]
func.func @bytes(%w: tensor<8x16xi8>, %s: tensor<1x16xbf16>) -> tensor<8x16xbf16> {
  %a = arith.sitofp %w : tensor<8x16xi8> to tensor<8x16xf32>
  %f = arith.extf %s : tensor<1x16xbf16> to tensor<1x16xf32>
  %b = tile.broadcast %f : tensor<1x16xf32> -> tensor<8x16xf32>
  %p = arith.mulf %a, %b : tensor<8x16xf32>
  %r = arith.truncf %p : tensor<8x16xf32> to tensor<8x16xbf16>
  return %r : tensor<8x16xbf16>
}

// Not where the product is read as it is, nor of numbers that the result's type does not hold.
// CHECK-LABEL: @wide
// CHECK-NOT: arith.mulf {{.*}} : tensor<16xbf16>
// CHECK-COUNT-2: arith.mulf {{.*}} : tensor<16xf32>
func.func @wide(%x: tensor<16xbf16>, %y: tensor<16xf16>) -> (tensor<16xbf16>, tensor<16xf32>, tensor<16xbf16>) {
  %a = arith.extf %x : tensor<16xbf16> to tensor<16xf32>
  %b = arith.extf %y : tensor<16xf16> to tensor<16xf32>
  %p = arith.mulf %a, %a : tensor<16xf32>
  %r = arith.truncf %p : tensor<16xf32> to tensor<16xbf16>
  %q = arith.mulf %a, %b : tensor<16xf32>
  %t = arith.truncf %q : tensor<16xf32> to tensor<16xbf16>
  return %r, %p, %t : tensor<16xbf16>, tensor<16xf32>, tensor<16xbf16>
}
