// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-online-softmax),canonicalize,cse)' | FileCheck %s

// Base, scale and a factor around the difference become one factor; a mask with -inf stands in front of it.
// CHECK-LABEL: @softmax
// CHECK-SAME: %[[S:[a-z0-9]*]]: tensor<64x64xf32>, %[[M:[a-z0-9]*]]: tensor<64x1xf32>, %[[V:[a-z0-9]*]]: tensor<64x64xf16>, %[[MASK:[a-z0-9]*]]: tensor<64x64xi1>
// CHECK-DAG: %[[LOW:.*]] = arith.constant dense<0xFF800000>
// CHECK-DAG: %[[ALL:.*]] = arith.constant dense<0.360673755>
// CHECK-DAG: %[[ROW:.*]] = arith.constant dense<2.885390e+00> : tensor<64x1xf32>
// CHECK: %[[MASKED:.*]] = arith.select %[[MASK]], %[[S]], %[[LOW]]
// CHECK: %[[T:.*]] = arith.mulf %[[MASKED]], %[[ALL]]
// CHECK: %[[REF:.*]] = arith.mulf %[[M]], %[[ROW]]
// CHECK: %[[B:.*]] = tile.broadcast %[[REF]]
// CHECK: %[[D:.*]] = arith.subf %[[T]], %[[B]]
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

// -----

// A maximum of what two masks leave has the factors behind it, too: scores that are not masked are read no more. A mask
// with a finite number stays where it is, and so does one in front of a negative factor.
// CHECK-LABEL: @masked_twice
// CHECK-SAME: %[[S:[a-z0-9]*]]: tensor<64x64xf32>
// CHECK: %[[ONE:.*]] = arith.select %{{.*}}, %[[S]], %
// CHECK: %[[BOTH:.*]] = arith.select %{{.*}}, %{{.*}}, %[[ONE]]
// CHECK: %[[T:.*]] = arith.mulf %[[BOTH]], %
// CHECK: tile.reduce max, %[[T]]
// CHECK: arith.subf %[[T]], %
// CHECK: %[[FINITE:.*]] = arith.select
// CHECK: arith.subf %[[FINITE]], %
// CHECK: %[[NEGATIVE:.*]] = arith.select
// CHECK: arith.subf %[[NEGATIVE]], %
func.func @masked_twice(%s: tensor<64x64xf32>, %m: tensor<64x64xf32>, %v: tensor<64x64xf16>, %seen: tensor<64x64xi1>, %hidden: tensor<64x64xi1>) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64xf32>) {
  %c = arith.constant dense<0.125> : tensor<64x64xf32>
  %minus = arith.constant dense<-0.125> : tensor<64x64xf32>
  %low = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %finite = arith.constant dense<-1.0e30> : tensor<64x64xf32>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %t = arith.mulf %s, %c : tensor<64x64xf32>
  %one = arith.select %seen, %t, %low : tensor<64x64xi1>, tensor<64x64xf32>
  %both = arith.select %hidden, %low, %one : tensor<64x64xi1>, tensor<64x64xf32>
  %top = tile.reduce max, %both axis 1 : tensor<64x64xf32>
  %d = arith.subf %both, %m : tensor<64x64xf32>
  %p = math.exp2 %d : tensor<64x64xf32>
  %ph = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xf16>
  %pr = tile.mma %ph, %v, %zero : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
  %f = arith.select %seen, %t, %finite : tensor<64x64xi1>, tensor<64x64xf32>
  %e = arith.subf %f, %m : tensor<64x64xf32>
  %q = math.exp2 %e : tensor<64x64xf32>
  %qh = arith.truncf %q : tensor<64x64xf32> to tensor<64x64xf16>
  %qr = tile.mma %qh, %v, %zero : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
  %u = arith.mulf %s, %minus : tensor<64x64xf32>
  %g = arith.select %seen, %u, %low : tensor<64x64xi1>, tensor<64x64xf32>
  %h = arith.subf %g, %m : tensor<64x64xf32>
  %r = math.exp2 %h : tensor<64x64xf32>
  %rh = arith.truncf %r : tensor<64x64xf32> to tensor<64x64xf16>
  %rr = tile.mma %rh, %v, %zero : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
  return %pr, %qr, %rr, %top : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64xf32>
}

// -----

// The terms of a sigmoid's exponent take its factor and its sign, a number of the launch as well: one fma for each
// element. Where the scores have no factor yet, and the results are no weights, they stay.
// CHECK-LABEL: @sigmoid
// CHECK-SAME: %[[S:[a-z0-9]*]]: tensor<64x64xf32>, %{{.*}}, %[[SCALE:[a-z0-9]*]]: f32, %[[BIAS:[a-z0-9]*]]: f32
// CHECK-DAG: %[[F:.*]] = arith.mulf %[[SCALE]], %
// CHECK-DAG: %[[FS:.*]] = tensor.splat %[[F]]
// CHECK-DAG: %[[T:.*]] = arith.mulf %[[S]], %[[FS]]
// CHECK-DAG: %[[B:.*]] = arith.mulf %[[BIAS]], %
// CHECK-DAG: %[[BS:.*]] = tensor.splat %[[B]]
// CHECK: %[[X:.*]] = arith.addf %[[T]], %[[BS]]
// CHECK: math.exp2 %[[X]]
// CHECK: math.exp %
func.func @sigmoid(%s: tensor<64x64xf32>, %v: tensor<64x64xf16>, %scale: f32, %bias: f32) -> (tensor<64x64xf32>, tensor<64x64xf16>) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %one = arith.constant dense<1.0> : tensor<64x64xf32>
  %factor = tensor.splat %scale : tensor<64x64xf32>
  %moved = tensor.splat %bias : tensor<64x64xf32>
  %t = arith.mulf %s, %factor : tensor<64x64xf32>
  %x = arith.addf %t, %moved : tensor<64x64xf32>
  %n = arith.negf %x : tensor<64x64xf32>
  %e = math.exp %n : tensor<64x64xf32>
  %d = arith.addf %e, %one : tensor<64x64xf32>
  %p = arith.divf %one, %d : tensor<64x64xf32>
  %h = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xf16>
  %r = tile.mma %h, %v, %zero : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
  %plain = arith.addf %s, %moved : tensor<64x64xf32>
  %f = math.exp %plain : tensor<64x64xf32>
  %narrow = arith.truncf %f : tensor<64x64xf32> to tensor<64x64xf16>
  return %r, %narrow : tensor<64x64xf32>, tensor<64x64xf16>
}
