// RUN: tw-opt %s -pass-pipeline='builtin.module(func.func(tile-canonicalize),canonicalize,cse)' | FileCheck %s

// CHECK-LABEL: @numbers
// CHECK: %[[LOW:.*]] = arith.constant 0xFF800000 : f32
// CHECK: %[[N:.*]] = tile.gather %arg0[%arg2] else %c0_i32 : i32 {check_bounds}
// CHECK: %[[X:.*]] = tile.gather %arg1[%[[N]], %arg2] else %[[LOW]] : f32 {check_bounds}
// CHECK: %[[Y:.*]] = tile.gather %arg1[%arg2, %arg2] : memref
// CHECK: %[[T:.*]] = tile.load %arg1[%arg2, %[[N]]] {{.*}} -> tensor<1x1xf32>
// CHECK: return %[[X]], %[[Y]], %[[T]]
func.func @numbers(%e: memref<?xi32, strided<[1]>>, %m: memref<?x?xf32, strided<[?, 1]>>, %i: i32) -> (f32, f32, tensor<1x1xf32>) {
  %t = tile.load %e[%i] : memref<?xi32, strided<[1]>>, i32 -> tensor<1xi32>
  %n = tile.reshape %t : tensor<1xi32> -> i32
  %x = tile.load %m[%n, %i] padding neg_inf : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<1x1xf32>
  %a = tile.reshape %x : tensor<1x1xf32> -> f32
  %y = tile.load %m[%i, %i] {tile.in_bounds} : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<1x1xf32>
  %b = tile.reshape %y : tensor<1x1xf32> -> f32
  %z = tile.load %m[%i, %n] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<1x1xf32>
  return %a, %b, %z : f32, f32, tensor<1x1xf32>
}
