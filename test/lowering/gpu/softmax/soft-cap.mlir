// Scores that only enter exponents of a softmax are bent no more exactly than it shows.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-online-softmax))' | FileCheck %s

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
// CHECK: math.tanh %{{[a-z0-9]+}} : tensor
func.func @large(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %cap = arith.constant dense<3000.0> : tensor<64x64xf32>
  %t = math.tanh %s : tensor<64x64xf32>
  %c = arith.mulf %t, %cap : tensor<64x64xf32>
  %p = math.exp2 %c : tensor<64x64xf32>
  %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
  %e = tile.mma %w, %v, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  return %e : tensor<64x64xf32>
}

// -----

// By so much and no more an error may be multiplied: by 200, by 1/200 of a quotient, from either side; and masked.

// CHECK-LABEL: @factors
// CHECK: math.tanh %{{[a-z0-9]+}} {tile.absolute} : tensor
func.func @factors(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %c = arith.constant dense<200.0> : tensor<64x64xf32>
  %d = arith.constant dense<2.0> : tensor<64x64xf32>
  %t = math.tanh %s : tensor<64x64xf32>
  %y = arith.mulf %c, %t : tensor<64x64xf32>
  %p = math.exp2 %y : tensor<64x64xf32>
  %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
  %e = tile.mma %w, %v, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  return %e : tensor<64x64xf32>
}

// CHECK-LABEL: @quotient
// CHECK: math.tanh %{{[a-z0-9]+}} {tile.absolute} : tensor
func.func @quotient(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %c = arith.constant dense<0.005> : tensor<64x64xf32>
  %t = math.tanh %s : tensor<64x64xf32>
  %y = arith.divf %t, %c : tensor<64x64xf32>
  %p = math.exp2 %y : tensor<64x64xf32>
  %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
  %e = tile.mma %w, %v, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  return %e : tensor<64x64xf32>
}

// CHECK-LABEL: @small_divisor
// CHECK: math.tanh %{{[a-z0-9]+}} : tensor
func.func @small_divisor(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %c = arith.constant dense<0.001> : tensor<64x64xf32>
  %t = math.tanh %s : tensor<64x64xf32>
  %y = arith.divf %t, %c : tensor<64x64xf32>
  %p = math.exp2 %y : tensor<64x64xf32>
  %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
  %e = tile.mma %w, %v, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  return %e : tensor<64x64xf32>
}

// CHECK-LABEL: @divisor
// CHECK: math.tanh %{{[a-z0-9]+}} : tensor
func.func @divisor(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %c = arith.constant dense<2.0> : tensor<64x64xf32>
  %t = math.tanh %s : tensor<64x64xf32>
  %y = arith.divf %c, %t : tensor<64x64xf32>
  %p = math.exp2 %y : tensor<64x64xf32>
  %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
  %e = tile.mma %w, %v, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  return %e : tensor<64x64xf32>
}

// CHECK-LABEL: @masked
// CHECK: math.tanh %{{[a-z0-9]+}} {tile.absolute} : tensor
func.func @masked(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>, %mask: tensor<64x64xi1>) -> tensor<64x64xf32> {
  %low = arith.constant dense<-1.0e+30> : tensor<64x64xf32>
  %t = math.tanh %s : tensor<64x64xf32>
  %y = arith.select %mask, %t, %low : tensor<64x64xi1>, tensor<64x64xf32>
  %p = math.exp2 %y : tensor<64x64xf32>
  %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
  %e = tile.mma %w, %v, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  return %e : tensor<64x64xf32>
}

// CHECK-LABEL: @both_unknown
// CHECK: math.tanh %{{[a-z0-9]+}} : tensor
func.func @both_unknown(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %t = math.tanh %s : tensor<64x64xf32>
  %y = arith.mulf %t, %s : tensor<64x64xf32>
  %p = math.exp2 %y : tensor<64x64xf32>
  %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
  %e = tile.mma %w, %v, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  return %e : tensor<64x64xf32>
}

// -----

// Sums of scores, exponentials that are no weights, and no weights at all: exact.

// CHECK-LABEL: @summed
// CHECK: math.tanh %{{[a-z0-9]+}} : tensor
func.func @summed(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %t = math.tanh %s : tensor<64x64xf32>
  %m = tile.reduce add, %t axis 1 : tensor<64x64xf32>
  %column = tile.reshape %m : tensor<64xf32> -> tensor<64x1xf32>
  %rows = tile.broadcast %column : tensor<64x1xf32> -> tensor<64x64xf32>
  %y = arith.subf %t, %rows : tensor<64x64xf32>
  %p = math.exp2 %y : tensor<64x64xf32>
  %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
  %e = tile.mma %w, %v, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  return %e : tensor<64x64xf32>
}

// CHECK-LABEL: @no_weights
// CHECK: math.tanh %{{[a-z0-9]+}} : tensor
func.func @no_weights(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %t = math.tanh %s : tensor<64x64xf32>
  %q = math.exp2 %t : tensor<64x64xf32>
  %p = math.exp2 %t : tensor<64x64xf32>
  %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
  %e = tile.mma %w, %v, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  return %e, %q : tensor<64x64xf32>, tensor<64x64xf32>
}

// CHECK-LABEL: @only_factors
// CHECK: math.tanh %{{[a-z0-9]+}} : tensor
func.func @only_factors(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>) -> tensor<64xf32> {
  %t = math.tanh %s : tensor<64x64xf32>
  %m = tile.reduce max, %t axis 1 : tensor<64x64xf32>
  %f = math.exp2 %m : tensor<64xf32>
  return %f : tensor<64xf32>
}

// -----

// Through branches and loops: relaxed where all that comes of it is an exponent, exact where it is read.

// CHECK-LABEL: @branch
// CHECK: math.tanh %{{[a-z0-9]+}} {tile.absolute} : tensor
func.func @branch(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>, %c: i1) -> tensor<64x64xf32> {
  %t = math.tanh %s : tensor<64x64xf32>
  %y = scf.if %c -> (tensor<64x64xf32>) {
    scf.yield %t : tensor<64x64xf32>
  } else {
    scf.yield %acc : tensor<64x64xf32>
  }
  %p = math.exp2 %y : tensor<64x64xf32>
  %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
  %e = tile.mma %w, %v, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  return %e : tensor<64x64xf32>
}

// CHECK-LABEL: @read_behind_branch
// CHECK: math.tanh %{{[a-z0-9]+}} : tensor
func.func @read_behind_branch(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>, %c: i1) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %t = math.tanh %s : tensor<64x64xf32>
  %y = scf.if %c -> (tensor<64x64xf32>) {
    scf.yield %t : tensor<64x64xf32>
  } else {
    scf.yield %acc : tensor<64x64xf32>
  }
  %p = math.exp2 %y : tensor<64x64xf32>
  %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
  %e = tile.mma %w, %v, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  return %e, %y : tensor<64x64xf32>, tensor<64x64xf32>
}

// CHECK-LABEL: @loop
// CHECK: math.tanh %{{[a-z0-9]+}} {tile.absolute} : tensor
func.func @loop(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>, %n: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = math.tanh %s : tensor<64x64xf32>
  %m0 = tile.reduce max, %t axis 1 : tensor<64x64xf32>
  %r:3 = scf.for %k = %c0 to %n step %c1 iter_args(%m = %m0, %l = %m0, %a = %acc) -> (tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>) : i32 {
    %column = tile.reshape %m : tensor<64xf32> -> tensor<64x1xf32>
    %rows = tile.broadcast %column : tensor<64x1xf32> -> tensor<64x64xf32>
    %y = arith.subf %t, %rows : tensor<64x64xf32>
    %p = math.exp2 %y : tensor<64x64xf32>
    %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
    %e = tile.mma %w, %v, %a : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    %f = math.exp2 %l : tensor<64xf32>
    scf.yield %m, %l, %e : tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>
  }
  return %r#2 : tensor<64x64xf32>
}

// CHECK-LABEL: @read_behind_loop
// CHECK: math.tanh %{{[a-z0-9]+}} : tensor
func.func @read_behind_loop(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>, %n: i32) -> (tensor<64x64xf32>, tensor<64xf32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = math.tanh %s : tensor<64x64xf32>
  %m0 = tile.reduce max, %t axis 1 : tensor<64x64xf32>
  %r:3 = scf.for %k = %c0 to %n step %c1 iter_args(%m = %m0, %l = %m0, %a = %acc) -> (tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>) : i32 {
    %column = tile.reshape %m : tensor<64xf32> -> tensor<64x1xf32>
    %rows = tile.broadcast %column : tensor<64x1xf32> -> tensor<64x64xf32>
    %y = arith.subf %t, %rows : tensor<64x64xf32>
    %p = math.exp2 %y : tensor<64x64xf32>
    %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
    %e = tile.mma %w, %v, %a : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    %f = math.exp2 %l : tensor<64xf32>
    scf.yield %m, %l, %e : tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>
  }
  return %r#2, %r#0 : tensor<64x64xf32>, tensor<64xf32>
}

// CHECK-LABEL: @other_read_behind_loop
// CHECK: math.tanh %{{[a-z0-9]+}} : tensor
func.func @other_read_behind_loop(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>, %n: i32) -> (tensor<64x64xf32>, tensor<64xf32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = math.tanh %s : tensor<64x64xf32>
  %m0 = tile.reduce max, %t axis 1 : tensor<64x64xf32>
  %r:3 = scf.for %k = %c0 to %n step %c1 iter_args(%m = %m0, %l = %m0, %a = %acc) -> (tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>) : i32 {
    %column = tile.reshape %m : tensor<64xf32> -> tensor<64x1xf32>
    %rows = tile.broadcast %column : tensor<64x1xf32> -> tensor<64x64xf32>
    %y = arith.subf %t, %rows : tensor<64x64xf32>
    %p = math.exp2 %y : tensor<64x64xf32>
    %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
    %e = tile.mma %w, %v, %a : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    %f = math.exp2 %l : tensor<64xf32>
    scf.yield %m, %l, %e : tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>
  }
  return %r#2, %r#1 : tensor<64x64xf32>, tensor<64xf32>
}

// CHECK-LABEL: @read_in_loop
// CHECK: math.tanh %{{[a-z0-9]+}} : tensor
func.func @read_in_loop(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>, %n: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = math.tanh %s : tensor<64x64xf32>
  %m0 = tile.reduce max, %t axis 1 : tensor<64x64xf32>
  %r:3 = scf.for %k = %c0 to %n step %c1 iter_args(%m = %m0, %l = %m0, %a = %acc) -> (tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>) : i32 {
    %column = tile.reshape %m : tensor<64xf32> -> tensor<64x1xf32>
    %rows = tile.broadcast %column : tensor<64x1xf32> -> tensor<64x64xf32>
    %y = arith.subf %t, %rows : tensor<64x64xf32>
    %p = math.exp2 %y : tensor<64x64xf32>
    %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
    %e = tile.mma %w, %v, %a : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    %g = arith.mulf %l, %l : tensor<64xf32>
    %gc = tile.reshape %g : tensor<64xf32> -> tensor<64x1xf32>
    %gb = tile.broadcast %gc : tensor<64x1xf32> -> tensor<64x64xf32>
    %h = arith.addf %e, %gb : tensor<64x64xf32>
    scf.yield %m, %l, %h : tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>
  }
  return %r#2 : tensor<64x64xf32>
}

// CHECK-LABEL: @yielded
// CHECK: math.tanh %{{[a-z0-9]+}} {tile.absolute} : tensor
func.func @yielded(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>, %n: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%m = %s, %a = %acc) -> (tensor<64x64xf32>, tensor<64x64xf32>) : i32 {
    %t = math.tanh %s : tensor<64x64xf32>
    %p = math.exp2 %m : tensor<64x64xf32>
    %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
    %e = tile.mma %w, %v, %a : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    scf.yield %t, %e : tensor<64x64xf32>, tensor<64x64xf32>
  }
  return %r#1 : tensor<64x64xf32>
}

// CHECK-LABEL: @yielded_and_read
// CHECK: math.tanh %{{[a-z0-9]+}} : tensor
func.func @yielded_and_read(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>, %n: i32) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%m = %s, %a = %acc) -> (tensor<64x64xf32>, tensor<64x64xf32>) : i32 {
    %t = math.tanh %s : tensor<64x64xf32>
    %p = math.exp2 %m : tensor<64x64xf32>
    %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
    %e = tile.mma %w, %v, %a : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    scf.yield %t, %e : tensor<64x64xf32>, tensor<64x64xf32>
  }
  return %r#1, %r#0 : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// A divisor whose inverse is no normal float, and other floats than f32.

// CHECK-LABEL: @huge
// CHECK: arith.divf
func.func @huge(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %c = arith.constant dense<1.0e+37> : tensor<64x64xf32>
  %y = arith.divf %s, %c : tensor<64x64xf32>
  %p = math.exp2 %y : tensor<64x64xf32>
  %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
  %e = tile.mma %w, %v, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  return %e : tensor<64x64xf32>
}

// CHECK-LABEL: @tiny
// CHECK: arith.divf
func.func @tiny(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %c = arith.constant dense<1.0e-37> : tensor<64x64xf32>
  %y = arith.divf %s, %c : tensor<64x64xf32>
  %p = math.exp2 %y : tensor<64x64xf32>
  %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
  %e = tile.mma %w, %v, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  return %e : tensor<64x64xf32>
}

// CHECK-LABEL: @wide
// CHECK: math.tanh %{{[a-z0-9]+}} : tensor<64x64xf64>
func.func @wide(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>, %z: tensor<64x64xf64>) -> tensor<64x64xf32> {
  %t = math.tanh %z : tensor<64x64xf64>
  %q = math.exp2 %t : tensor<64x64xf64>
  %w = arith.truncf %q : tensor<64x64xf64> to tensor<64x64xbf16>
  %e = tile.mma %w, %v, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  return %e : tensor<64x64xf32>
}

// -----

// Two ways to a value of which the second multiplies errors by more, and a loop that multiplies them each time.
// CHECK-LABEL: @two_ways
// CHECK: math.tanh %{{[a-z0-9]+}} : tensor
func.func @two_ways(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %c = arith.constant dense<100.0> : tensor<64x64xf32>
  %t = math.tanh %s : tensor<64x64xf32>
  %u = arith.mulf %t, %c : tensor<64x64xf32>
  %y = arith.addf %t, %u : tensor<64x64xf32>
  %z = arith.mulf %y, %c : tensor<64x64xf32>
  %p = math.exp2 %z : tensor<64x64xf32>
  %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
  %e = tile.mma %w, %v, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  return %e : tensor<64x64xf32>
}

// CHECK-LABEL: @grows
// CHECK: math.tanh %{{[a-z0-9]+}} : tensor
func.func @grows(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>, %n: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c = arith.constant dense<1.5> : tensor<64x64xf32>
  %t = math.tanh %s : tensor<64x64xf32>
  %z = scf.for %k = %c0 to %n step %c1 iter_args(%m = %t) -> (tensor<64x64xf32>) : i32 {
    %next = arith.mulf %m, %c : tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %p = math.exp2 %z : tensor<64x64xf32>
  %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
  %e = tile.mma %w, %v, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  return %e : tensor<64x64xf32>
}

// -----

// Weights, and besides a branch whose result is read; a remainder; a divisor that is not known; and weights to base e.
// CHECK-LABEL: @weights_and_branch
// CHECK: math.tanh %{{[a-z0-9]+}} : tensor
func.func @weights_and_branch(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>, %c: i1) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %t = math.tanh %s : tensor<64x64xf32>
  %y = scf.if %c -> (tensor<64x64xf32>) {
    scf.yield %t : tensor<64x64xf32>
  } else {
    scf.yield %acc : tensor<64x64xf32>
  }
  %p = math.exp2 %t : tensor<64x64xf32>
  %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
  %e = tile.mma %w, %v, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  return %e, %y : tensor<64x64xf32>, tensor<64x64xf32>
}

// CHECK-LABEL: @remainder
// CHECK: math.tanh %{{[a-z0-9]+}} : tensor
func.func @remainder(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %c = arith.constant dense<2.0> : tensor<64x64xf32>
  %t = math.tanh %s : tensor<64x64xf32>
  %y = arith.remf %t, %c : tensor<64x64xf32>
  %p = math.exp2 %y : tensor<64x64xf32>
  %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
  %e = tile.mma %w, %v, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  return %e : tensor<64x64xf32>
}

// CHECK-LABEL: @unknown_divisor
// CHECK: arith.divf
func.func @unknown_divisor(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = arith.divf %s, %acc : tensor<64x64xf32>
  %p = math.exp2 %y : tensor<64x64xf32>
  %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
  %e = tile.mma %w, %v, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  return %e : tensor<64x64xf32>
}

// CHECK-LABEL: @base_e
// CHECK: math.tanh %{{[a-z0-9]+}} {tile.absolute} : tensor
func.func @base_e(%s: tensor<64x64xf32>, %v: tensor<64x64xbf16>, %acc: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %t = math.tanh %s : tensor<64x64xf32>
  %p = math.exp %t : tensor<64x64xf32>
  %w = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
  %e = tile.mma %w, %v, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  return %e : tensor<64x64xf32>
}
