// Products with a computed right operand are computed transposed; whatever else there is stays.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma),canonicalize)' 2>/dev/null | FileCheck %s
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma))' 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: remark: 'tile.mma' op is computed transposed, so that the computed operand is the left one and stays in registers
// REMARK: remark: 'tile.mma' op is computed transposed
// REMARK: remark: 'tile.mma' op is computed transposed
// REMARK: remark: 'tile.mma' op is computed transposed
// REMARK-NOT: is computed transposed

!X = memref<?x?xbf16, strided<[?, 1]>>
!W = memref<?x?xi8, strided<[?, 1]>>

// CHECK-LABEL: func.func @weights
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<128x256xf32>
// CHECK: %[[S:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[ZERO]]) -> (tensor<128x256xf32>)
// CHECK: %[[A:.*]] = tile.load %arg0
// CHECK: %[[F:.*]] = arith.sitofp %{{.*}} : tensor<128x64xi8> to tensor<128x64xbf16>
// CHECK: %[[L:.*]] = tile.permute %[[A]] [1, 0]
// CHECK: %[[D:.*]] = tile.mma %[[F]], %[[L]], %[[ACC]] {tile.family = "wgmma", tile.places = "rs", tile.transposed_rhs} : tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>
// A second product on the same sum.
// CHECK: %[[E:.*]] = tile.mma %{{.*}}, %[[L2:.*]], %[[D]]
// CHECK: scf.yield %[[E]]
// CHECK: %[[R:.*]] = tile.permute %[[S]] [1, 0]
// CHECK: tile.store %[[R]]
module attributes {tile.target = "sm_90a"} {
  func.func @weights(%x: !X {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %w: !W {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 16, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %four = arith.constant dense<4> : tensor<128x64xi8>
    %zero = arith.constant dense<0.0> : tensor<256x128xf32>
    %s = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<256x128xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !X, i32, i32 -> tensor<256x64xbf16>
      %q = tile.load %w[%c0, %k] padding zero : !W, i32, i32 -> tensor<128x64xi8>
      %f = arith.sitofp %q : tensor<128x64xi8> to tensor<128x64xbf16>
      %b = tile.permute %f [1, 0] : tensor<128x64xbf16>
      %d = tile.mma %a, %b, %acc : tensor<256x64xbf16>, tensor<64x128xbf16>, tensor<256x128xf32>
      %p = arith.shrsi %q, %four : tensor<128x64xi8>
      %g = arith.sitofp %p : tensor<128x64xi8> to tensor<128x64xbf16>
      %h = tile.permute %g [1, 0] : tensor<128x64xbf16>
      %e = tile.mma %a, %h, %d : tensor<256x64xbf16>, tensor<64x128xbf16>, tensor<256x128xf32>
      scf.yield %e : tensor<256x128xf32>
    }
    tile.store %s, %z[%c0, %c0] : tensor<256x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!X = memref<?x?xbf16, strided<[?, 1]>>
!W = memref<?x?xi8, strided<[?, 1]>>

// Both operands are computed; the sum is read otherwise; few rows become the columns of a wgmma; of 64 columns two
// warpgroups would compute each element twice.
// CHECK-LABEL: func.func @both
// CHECK: tile.mma %{{.*}} : tensor<256x64xbf16>, tensor<64x128xbf16>
// CHECK: tile.mma %{{.*}} : tensor<256x64xbf16>, tensor<64x128xbf16>
// CHECK: tile.mma %{{.*}} {tile.family = "wgmma", tile.places = "rs", tile.transposed_rhs} : tensor<128x64xbf16>, tensor<64x16xbf16>
// CHECK: tile.mma %{{.*}} : tensor<256x64xbf16>, tensor<64x64xbf16>
module attributes {tile.target = "sm_90a"} {
  func.func @both(%x: !X {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %w: !W {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 16, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %two = arith.constant dense<2.0> : tensor<256x64xbf16>
    %half = arith.constant dense<0.5> : tensor<256x128xf32>
    %zero = arith.constant dense<0.0> : tensor<256x128xf32>
    %zero16 = arith.constant dense<0.0> : tensor<16x128xf32>
    %zero64 = arith.constant dense<0.0> : tensor<256x64xf32>
    %s:4 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %fading = %zero, %few = %zero16, %narrow = %zero64) -> (tensor<256x128xf32>, tensor<256x128xf32>, tensor<16x128xf32>, tensor<256x64xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !X, i32, i32 -> tensor<256x64xbf16>
      %o = tile.load %x[%c1, %k] padding zero : !X, i32, i32 -> tensor<16x64xbf16>
      %q = tile.load %w[%c0, %k] padding zero : !W, i32, i32 -> tensor<128x64xi8>
      %f = arith.sitofp %q : tensor<128x64xi8> to tensor<128x64xbf16>
      %b = tile.permute %f [1, 0] : tensor<128x64xbf16>
      %m = arith.mulf %a, %two : tensor<256x64xbf16>
      %d = tile.mma %m, %b, %acc : tensor<256x64xbf16>, tensor<64x128xbf16>, tensor<256x128xf32>
      %g = arith.mulf %fading, %half : tensor<256x128xf32>
      %e = tile.mma %a, %b, %g : tensor<256x64xbf16>, tensor<64x128xbf16>, tensor<256x128xf32>
      %h = tile.mma %o, %b, %few : tensor<16x64xbf16>, tensor<64x128xbf16>, tensor<16x128xf32>
      %r = tile.load %w[%c1, %k] padding zero : !W, i32, i32 -> tensor<64x64xi8>
      %t = arith.sitofp %r : tensor<64x64xi8> to tensor<64x64xbf16>
      %u = tile.permute %t [1, 0] : tensor<64x64xbf16>
      %v = tile.mma %a, %u, %narrow : tensor<256x64xbf16>, tensor<64x64xbf16>, tensor<256x64xf32>
      scf.yield %d, %e, %h, %v : tensor<256x128xf32>, tensor<256x128xf32>, tensor<16x128xf32>, tensor<256x64xf32>
    }
    tile.store %s#0, %z[%c0, %c0] : tensor<256x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    tile.store %s#1, %z[%c0, %c1] : tensor<256x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    tile.store %s#2, %z[%c1, %c1] : tensor<16x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    tile.store %s#3, %z[%c1, %c0] : tensor<256x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

// tf32 by rows: no instruction takes it as a right operand. Along k it stays where it is.
// CHECK-LABEL: func.func @rows
// CHECK: tile.mma %{{.*}} {tile.family = "wgmma", tile.places = "rs", tile.transposed_rhs} : tensor<128x32xtf32>, tensor<32x256xtf32>
// CHECK: tile.mma %{{.*}} {tile.family = "wgmma", tile.places = "ss", tile.transposed_rhs} : tensor<256x32xtf32>, tensor<32x128xtf32>
!F = memref<?x?xf32, strided<[?, 1]>>
module attributes {tile.target = "sm_90a"} {
  func.func @rows(%x: !F {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>}, %y: !F {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>}, %z: !F, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<256x128xf32>
    %s = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<256x128xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !F, i32, i32 -> tensor<256x32xtf32>
      %w = tile.load %y[%k, %c0] padding zero : !F, i32, i32 -> tensor<32x128xf32>
      %b = arith.truncf %w : tensor<32x128xf32> to tensor<32x128xtf32>
      %d = tile.mma %a, %b, %acc : tensor<256x32xtf32>, tensor<32x128xtf32>, tensor<256x128xf32>
      scf.yield %d : tensor<256x128xf32>
    }
    %t = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<256x128xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !F, i32, i32 -> tensor<256x32xtf32>
      %b = tile.load %y[%c0, %k] padding zero : !F, i32, i32 -> tensor<128x32xtf32>
      %p = tile.permute %b [1, 0] : tensor<128x32xtf32>
      %d = tile.mma %a, %p, %acc : tensor<256x32xtf32>, tensor<32x128xtf32>, tensor<256x128xf32>
      scf.yield %d : tensor<256x128xf32>
    }
    %sum = arith.addf %s, %t : tensor<256x128xf32>
    tile.store %sum, %z[%c0, %c0] : tensor<256x128xf32>, !F, i32, i32
    return
  }
}
