// Scores that only enter exponents of a softmax are bent no more exactly than it shows.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-relax-scores))' | FileCheck %s

// CHECK-LABEL: @capped
// CHECK: arith.constant dense<0.0333333351> : tensor<64x64xf32>
// CHECK-NOT: arith.divf
// CHECK: math.tanh %{{.*}} {tile.absolute}
func.func @capped(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %n: i32) -> (tensor<64x64xf32>, tensor<64xf32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %cap = arith.constant dense<30.0> : tensor<64x64xf32>
  %low = arith.constant dense<-1.0e+30> : tensor<64xf32>
  %none = arith.constant dense<0.0> : tensor<64xf32>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r:3 = scf.for %k = %c0 to %n step %c1 iter_args(%m = %low, %l = %none, %acc = %zero) -> (tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>) : i32 {
    %u = arith.divf %s, %cap : tensor<64x64xf32>
    %t = math.tanh %u : tensor<64x64xf32>
    %c = arith.mulf %t, %cap : tensor<64x64xf32>
    %most = tile.reduce max, %c axis 1 : tensor<64x64xf32>
    %next = arith.maximumf %m, %most : tensor<64xf32>
    %old = arith.subf %m, %next : tensor<64xf32>
    %f = math.exp2 %old : tensor<64xf32>
    %column = tile.reshape %next : tensor<64xf32> -> tensor<64x1xf32>
    %rows = tile.broadcast %column : tensor<64x1xf32> -> tensor<64x64xf32>
    %d = arith.subf %c, %rows : tensor<64x64xf32>
    %p = math.exp2 %d : tensor<64x64xf32>
    %sum = tile.reduce add, %p axis 1 : tensor<64x64xf32>
    %faded = arith.mulf %l, %f : tensor<64xf32>
    %total = arith.addf %faded, %sum : tensor<64xf32>
    %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
    %e = tile.mma %w, %v, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    scf.yield %next, %total, %e : tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>
  }
  return %r#2, %r#1 : tensor<64x64xf32>, tensor<64xf32>
}

// -----

// A maximum that leaves the kernel shows what was lost, as does a large factor.
// CHECK-LABEL: @read
// CHECK: arith.divf
// CHECK: math.tanh %{{[0-9]+}} : tensor
func.func @read(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64xf32>) {
  %cap = arith.constant dense<30.0> : tensor<64x64xf32>
  %u = arith.divf %s, %cap : tensor<64x64xf32>
  %t = math.tanh %u : tensor<64x64xf32>
  %m = tile.reduce max, %t axis 1 : tensor<64x64xf32>
  %p = math.exp2 %t : tensor<64x64xf32>
  %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
  %e = tile.mma %w, %v, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  return %e, %m : tensor<64x64xf32>, tensor<64xf32>
}

// CHECK-LABEL: @large
// CHECK: math.tanh %{{.*}} : tensor
func.func @large(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %cap = arith.constant dense<3000.0> : tensor<64x64xf32>
  %t = math.tanh %s : tensor<64x64xf32>
  %c = arith.mulf %t, %cap : tensor<64x64xf32>
  %p = math.exp2 %c : tensor<64x64xf32>
  %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
  %e = tile.mma %w, %v, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  return %e : tensor<64x64xf32>
}
