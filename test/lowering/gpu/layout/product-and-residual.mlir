// What a product is added to is loaded as its sums lie: a conversion would take the room of the tiles to come.
// RUN: tw-opt %s -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-assign-layouts))' 2>/dev/null | FileCheck %s

!A = memref<?x?xbf16, strided<[?, 1]>>

// CHECK-LABEL: func.func @residual
// CHECK: %[[R:.*]] = tile.load %arg2[%{{.*}}] {{.*}} -> tensor<128x256xbf16, #[[SUMS:[^>]*]]>
// CHECK-NEXT: arith.extf %[[R]] : tensor<128x256xbf16, #[[SUMS]]>
module attributes {tile.target = "sm_90a"} {
  func.func @residual(%a: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 64, 1>, tile.tma}, %b: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 64, 1>, tile.tma}, %r: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 64, 1>, tile.tma}, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
      %x = tile.load %a[%i, %k] : !A, i32, i32 -> tensor<128x64xbf16>
      %y = tile.load %b[%k, %j] : !A, i32, i32 -> tensor<64x256xbf16>
      %m = tile.mma %x, %y, %acc : tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>
      scf.yield %m : tensor<128x256xf32>
    }
    %l = tile.load %r[%i, %j] : !A, i32, i32 -> tensor<128x256xbf16>
    %e = arith.extf %l : tensor<128x256xbf16> to tensor<128x256xf32>
    %s = arith.addf %d, %e : tensor<128x256xf32>
    %t = arith.truncf %s : tensor<128x256xf32> to tensor<128x256xbf16>
    tile.store %t, %r[%i, %j] : tensor<128x256xbf16>, !A, i32, i32
    return
  }
}
