// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-canonicalize),canonicalize,cse)' | FileCheck %s

!h = tensor<16x16xf16>
!s = tensor<16x16xf32>

// Two products of a step, added to a rescaled sum.
// CHECK-LABEL: @rescaled
// CHECK: %[[X:.*]] = arith.mulf %[[ACC:.*]], %arg2
// CHECK: %[[P:.*]] = tile.mma %arg0, %arg1, %[[X]]
// CHECK: %[[Q:.*]] = tile.mma %arg1, %arg0, %[[P]]
// CHECK: scf.yield %[[Q]]
func.func @rescaled(%a: !h, %b: !h, %alpha: !s, %n: i32) -> !s {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : !s
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!s) : i32 {
    %p = tile.mma %a, %b, %zero : !h, !h, !s
    %q = tile.mma %b, %a, %p : !h, !h, !s
    %x = arith.mulf %acc, %alpha : !s
    %y = arith.addf %q, %x : !s
    scf.yield %y : !s
  }
  return %r : !s
}

// -----

!h = tensor<16x16xf16>
!s = tensor<16x16xf32>
!e = tensor<16x32xf8E4M3FN>
!f = tensor<32x16xf8E4M3FN>

// Used twice, what is loaded, and 8-bit floats, whose sums are less exact.
// CHECK-LABEL: @stays
// CHECK-COUNT-3: arith.addf
func.func @stays(%a: !h, %b: !h, %loaded: !s, %e: !e, %f: !f) -> (!s, !s, !s, !s) {
  %zero = arith.constant dense<0.0> : !s
  %p = tile.mma %a, %b, %zero : !h, !h, !s
  %x = arith.addf %p, %loaded : !s
  %q = tile.mma %b, %a, %zero : !h, !h, !s
  %y = arith.addf %q, %p : !s
  %g = tile.mma %e, %f, %zero : !e, !f, !s
  %z = arith.addf %p, %g : !s
  return %x, %y, %z, %q : !s, !s, !s, !s
}

// -----

!h = tensor<16x16xf16>
!s = tensor<16x16xf32>

// Rounded only to be added: it rounds once in all.
// CHECK-LABEL: @rounded
// CHECK: %[[P:.*]] = tile.mma %arg0, %arg1, %[[ACC:.*]] :
// CHECK-NEXT: scf.yield %[[P]]
func.func @rounded(%a: !h, %b: !h, %n: i32) -> !s {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : !s
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!s) : i32 {
    %p = tile.mma %a, %b, %zero : !h, !h, !s
    %q = arith.truncf %p : !s to !h
    %x = arith.extf %q : !h to !s
    %y = arith.addf %acc, %x : !s
    scf.yield %y : !s
  }
  return %r : !s
}
