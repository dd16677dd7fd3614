// Two factors of a product's elements are multiplied first, in warps where that gives normal numbers.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-defer-reductions),canonicalize,cse)' | FileCheck %s

!A = tensor<128x64xf16>
!B = tensor<64x128xf16>
!C = tensor<128x128xf32>
!F = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: @rows
// CHECK: %[[F:.*]] = tile.load
// CHECK: %[[P:.*]] = tile.mma
// CHECK: %[[X:.*]] = tile.broadcast %[[F]]
// CHECK: %[[G:.*]] = tensor.splat %arg3 : tensor<128x1xf32>
// CHECK: %[[H:.*]] = arith.mulf %[[F]], %[[G]] : tensor<128x1xf32>
// CHECK: %[[W:.*]] = tile.broadcast %[[H]]
// CHECK: %[[S:.*]] = math.absf %[[W]]
// CHECK: arith.cmpf ugt, %[[S]]
// CHECK: arith.cmpf ult, %[[S]]
// CHECK: %[[ODD:.*]] = tile.warp_any
// CHECK: %[[Y:.*]] = scf.if %[[ODD]]
// CHECK-NEXT: %[[T:.*]] = arith.mulf %[[P]], %[[X]]
// CHECK-NEXT: scf.yield %[[T]]
// CHECK: else
// CHECK-NEXT: scf.yield %[[P]]
// CHECK: %[[V:.*]] = tile.broadcast %[[G]]
// CHECK: %[[O:.*]] = arith.select %[[ODD]], %[[V]], %[[W]]
// CHECK: %[[Z:.*]] = arith.mulf %[[Y]], %[[O]]
// CHECK: arith.addf %{{.*}}, %[[Z]]
func.func @rows(%a: !A, %b: !B, %s: !F, %g: f32, %n: i32) -> !C attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : !C
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!C) : i32 {
    %f = tile.load %s[%c0, %k] padding zero : !F, i32, i32 -> tensor<128x1xf32>
    %p = tile.mma %a, %b, %zero : !A, !B, !C
    %x = tile.broadcast %f : tensor<128x1xf32> -> !C
    %y = arith.mulf %p, %x : !C
    %line = tensor.splat %g : tensor<1x128xf32>
    %w = tile.broadcast %line : tensor<1x128xf32> -> !C
    %z = arith.mulf %w, %y : !C
    %t = arith.addf %sum, %z : !C
    scf.yield %t : !C
  }
  return %r : !C
}

// -----

!A = tensor<128x64xi8>
!B = tensor<64x128xi8>
!C = tensor<128x128xf32>
!L = tensor<1x128xf32>

// Two lines, behind a conversion. Not what is the same along rows only, beside what is along columns only; nor behind
// the loop.
// CHECK-LABEL: @lines
// CHECK: arith.mulf %{{.*}} : tensor<1x128xf32>
// CHECK: tile.warp_any
// CHECK: scf.yield
// CHECK-NOT: tile.warp_any
func.func @lines(%a: !A, %b: !B, %f: !L, %g: !L, %h: tensor<128x1xf32>, %n: i32) -> !C attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %none = arith.constant dense<0> : tensor<128x128xi32>
  %zero = arith.constant dense<0.0> : !C
  %u = tile.broadcast %f : !L -> !C
  %v = tile.broadcast %g : !L -> !C
  %w = tile.broadcast %h : tensor<128x1xf32> -> !C
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero, %other = %zero) -> (!C, !C) : i32 {
    %i = tile.mma %a, %b, %none : !A, !B, tensor<128x128xi32>
    %p = arith.sitofp %i : tensor<128x128xi32> to !C
    %x = arith.mulf %p, %u : !C
    %y = arith.mulf %x, %v : !C
    %t = arith.addf %sum, %y : !C
    %q = arith.mulf %p, %w : !C
    %o = arith.mulf %q, %v : !C
    %s = arith.addf %other, %o : !C
    scf.yield %t, %s : !C, !C
  }
  %x = arith.mulf %r#0, %u : !C
  %y = arith.mulf %x, %v : !C
  %z = arith.addf %y, %r#1 : !C
  return %z : !C
}

// -----

!A = tensor<128x64xf16>
!B = tensor<64x128xf16>
!C = tensor<128x128xf32>

// Approximations are switched off.
// CHECK-LABEL: @exact
// CHECK-NOT: tile.warp_any
func.func @exact(%a: !A, %b: !B, %f: f32, %g: f32, %n: i32) -> !C attributes {tile.kernel, tile.hints = {approximate = 0 : i32}} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : !C
  %u = tensor.splat %f : !C
  %v = tensor.splat %g : !C
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!C) : i32 {
    %p = tile.mma %a, %b, %zero : !A, !B, !C
    %x = arith.mulf %p, %u : !C
    %y = arith.mulf %x, %v : !C
    %t = arith.addf %sum, %y : !C
    scf.yield %t : !C
  }
  return %r : !C
}
