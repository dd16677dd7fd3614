// What an f32 product computes its operand from stays spread over threads where a thread has no registers for its part
// of the operand (512 words), and where it has (128 words), is computed there.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-assign-layouts))' | FileCheck %s

// CHECK-LABEL: @large
// CHECK: tile.load {{.*}} -> tensor<32x128xf32, #[[SPREAD:.*]]>
// CHECK-NEXT: %[[Y:.*]] = arith.addf {{.*}} : tensor<32x128xf32, #[[SPREAD]]>
// CHECK-NEXT: tile.convert_layout %[[Y]] : tensor<32x128xf32, #[[SPREAD]]> -> tensor<32x128xf32, #[[OPERAND:.*]]>
// CHECK-NEXT: tile.mma {{.*}}, tensor<32x128xf32, #[[OPERAND]]>, tensor<128x128xf32
module attributes {tile.target = "sm_80"} {
  func.func @large(%a: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %l = tile.load %a[%c0, %k] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<128x32xf32>
      %x = tile.load %a[%k, %c0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<32x128xf32>
      %y = arith.addf %x, %x : tensor<32x128xf32>
      %m = tile.mma %l, %y, %acc : tensor<128x32xf32>, tensor<32x128xf32>, tensor<128x128xf32>
      scf.yield %m : tensor<128x128xf32>
    }
    tile.store %sum, %a[%c0, %c0] : tensor<128x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

// CHECK-LABEL: @small
// CHECK: %[[X:.*]] = tile.convert_layout {{.*}} -> tensor<16x64xf32, #[[OPERAND:.*]]>
// CHECK-NEXT: arith.addf %[[X]], %[[X]] : tensor<16x64xf32, #[[OPERAND]]>
// CHECK-NEXT: tile.mma {{.*}}, tensor<16x64xf32, #[[OPERAND]]>, tensor<64x64xf32
module attributes {tile.target = "sm_80"} {
  func.func @small(%a: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %l = tile.load %a[%c0, %k] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<64x16xf32>
      %x = tile.load %a[%k, %c0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<16x64xf32>
      %y = arith.addf %x, %x : tensor<16x64xf32>
      %m = tile.mma %l, %y, %acc : tensor<64x16xf32>, tensor<16x64xf32>, tensor<64x64xf32>
      scf.yield %m : tensor<64x64xf32>
    }
    tile.store %sum, %a[%c0, %c0] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
