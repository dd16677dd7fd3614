// RUN: tw-opt %s --tile-legalize | FileCheck %s

// Operands are converted while they are small, then repeated.
// CHECK-LABEL: func.func @broadcast_and_promote
func.func @broadcast_and_promote(%x: tensor<4x1xi8>, %y: tensor<8xf16>) -> tensor<4x8xf16> {
  // CHECK-NEXT: %[[A:.*]] = arith.sitofp %{{.*}} : tensor<4x1xi8> to tensor<4x1xf32>
  // CHECK-NEXT: %[[B:.*]] = arith.truncf %[[A]] : tensor<4x1xf32> to tensor<4x1xf16>
  // CHECK-NEXT: %[[C:.*]] = tile.broadcast %[[B]] : tensor<4x1xf16> -> tensor<4x8xf16>
  // CHECK-NEXT: %[[D:.*]] = tile.reshape %{{.*}} : tensor<8xf16> -> tensor<1x8xf16>
  // CHECK-NEXT: %[[E:.*]] = tile.broadcast %[[D]] : tensor<1x8xf16> -> tensor<4x8xf16>
  // CHECK-NEXT: arith.addf %[[C]], %[[E]] : tensor<4x8xf16>
  %0 = tile.add %x, %y : tensor<4x1xi8>, tensor<8xf16>
  return %0 : tensor<4x8xf16>
}

// CHECK-LABEL: func.func @scalar_with_tile
func.func @scalar_with_tile(%s: f32, %x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %[[S:.*]] = tensor.splat %{{.*}} : tensor<8xf32>
  // CHECK-NEXT: arith.mulf %[[S]], %{{.*}} : tensor<8xf32>
  %0 = tile.mul %s, %x : f32, tensor<8xf32>
  return %0 : tensor<8xf32>
}

// What the program allows is said of f32, which others are not computed in.
// CHECK-LABEL: func.func @marked
func.func @marked(%x: tensor<8xf32>, %y: tensor<8xf16>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf16>) {
  // CHECK-NEXT: arith.divf {{.*}} {tile.approximate, tile.rough} : tensor<8xf32>
  // CHECK-NEXT: math.exp {{.*}} {tile.approximate} : tensor<8xf32>
  // CHECK-NOT: tile.rough
  %0 = tile.truediv %x, %x {tile.approximate, tile.rough} : tensor<8xf32>, tensor<8xf32>
  %1 = tile.exp %x {tile.approximate} : tensor<8xf32>
  %2 = tile.truediv %y, %y {tile.approximate, tile.rough} : tensor<8xf16>, tensor<8xf16>
  return %0, %1, %2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf16>
}

// The sign of an integer is in the op, and in no type.
// CHECK-LABEL: func.func @unsigned(%arg0: tensor<8xi8>, %arg1: memref<?xi16, strided<[1]>>, %arg2: i32) -> tensor<8xi8>
func.func @unsigned(%x: tensor<8xui8>, %a: memref<?xui16, strided<[1]>>, %n: ui32) -> tensor<8xui8> {
  // CHECK-NEXT: arith.maxui
  %0 = tile.maximum %x, %x : tensor<8xui8>, tensor<8xui8>
  // CHECK-NEXT: arith.divui
  %1 = tile.floordiv %0, %x : tensor<8xui8>, tensor<8xui8>
  // CHECK-NEXT: arith.remui
  %2 = tile.mod %1, %x : tensor<8xui8>, tensor<8xui8>
  // CHECK-NEXT: arith.shrui
  %3 = tile.shr %2, %x : tensor<8xui8>, tensor<8xui8>
  // CHECK-NEXT: arith.cmpi ult
  %4 = tile.cmp lt, %3, %x : tensor<8xui8>, tensor<8xui8>
  // CHECK-NEXT: arith.extui %{{.*}} : tensor<8xi8> to tensor<8xi32>
  %5 = tile.cast %3 : tensor<8xui8> -> tensor<8xi32>
  // CHECK-NEXT: arith.uitofp %{{.*}} : i32 to f32
  %6 = tile.cast %n : ui32 -> f32
  // CHECK-NEXT: tile.reduce max, %{{.*}} axis 0 {is_unsigned} : tensor<8xi8>
  %7 = tile.reduce max, %3 axis 0 : tensor<8xui8>
  // CHECK-NEXT: arith.constant dense<[0, 1, 2, 3, 4, 5, 6, -6]> : tensor<8xi8>
  %8 = tile.constant dense<[0, 1, 2, 3, 4, 5, 6, 250]> : tensor<8xui8>
  // CHECK-NEXT: arith.constant -1 : i64
  %9 = tile.constant 18446744073709551615 : ui64
  // CHECK-NEXT: %[[P:.*]] = arith.extui %{{.*}} : i8 to i32
  // CHECK-NEXT: tile.print "{} {}", %[[P]], %{{.*}} : i32, i64 {is_unsigned = array<i1: false, true>}
  tile.print "{} {}", %7, %9 : ui8, ui64
  // CHECK-NEXT: tile.load %arg1[%arg2] : memref<?xi16, strided<[1]>>, i32 -> tensor<8xi16>
  %i = tile.cast %n : ui32 -> i32
  %10 = tile.load %a[%i] : memref<?xui16, strided<[1]>>, i32 -> tensor<8xui16>
  return %3 : tensor<8xui8>
}

// CHECK-LABEL: func.func @control_flow
func.func @control_flow(%x: tensor<8xui8>, %c: i1, %n: i32) -> tensor<8xui8> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (tensor<8xi8>)
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %x) -> tensor<8xui8> : i32 {
    // CHECK: scf.if %{{.*}} -> (tensor<8xi8>)
    %0 = scf.if %c -> tensor<8xui8> {
      // CHECK: arith.maxui %[[ACC]]
      %1 = tile.maximum %acc, %x : tensor<8xui8>, tensor<8xui8>
      scf.yield %1 : tensor<8xui8>
    } else {
      scf.yield %acc : tensor<8xui8>
    }
    scf.yield %0 : tensor<8xui8>
  }
  // CHECK: scf.while ({{.*}}) : (tensor<8xi8>) -> tensor<8xi8>
  %w = scf.while (%v = %r) : (tensor<8xui8>) -> tensor<8xui8> {
    scf.condition(%c) %v : tensor<8xui8>
  } do {
  ^bb0(%v: tensor<8xui8>):
    scf.yield %v : tensor<8xui8>
  }
  return %w : tensor<8xui8>
}

// CHECK-LABEL: func.func @compare
func.func @compare(%x: tensor<8xf32>, %b: tensor<8xi1>) {
  // CHECK: arith.cmpf une
  %0 = tile.cmp ne, %x, %x : tensor<8xf32>, tensor<8xf32>
  // CHECK: arith.cmpf oeq
  %1 = tile.cmp eq, %x, %x : tensor<8xf32>, tensor<8xf32>
  // CHECK: arith.cmpf oge
  %2 = tile.cmp ge, %x, %x : tensor<8xf32>, tensor<8xf32>
  // CHECK: arith.cmpi ult, %{{.*}} : tensor<8xi1>
  %3 = tile.cmp lt, %b, %b : tensor<8xi1>, tensor<8xi1>
  return
}

// All three operands of a select broadcast.
// CHECK-LABEL: func.func @select
func.func @select(%c: tensor<4x1xi1>, %x: tensor<8xf32>, %s: i32) -> tensor<4x8xf32> {
  // CHECK-NEXT: %[[C:.*]] = tile.broadcast %{{.*}} : tensor<4x1xi1> -> tensor<4x8xi1>
  // CHECK-NEXT: %[[R:.*]] = tile.reshape
  // CHECK-NEXT: %[[X:.*]] = tile.broadcast %[[R]]
  // CHECK-NEXT: %[[F:.*]] = arith.sitofp %{{.*}} : i32 to f32
  // CHECK-NEXT: %[[S:.*]] = tensor.splat %[[F]]
  // CHECK-NEXT: arith.select %[[C]], %[[X]], %[[S]] : tensor<4x8xi1>, tensor<4x8xf32>
  %0 = tile.select %c, %x, %s : tensor<4x1xi1>, tensor<8xf32>, i32
  return %0 : tensor<4x8xf32>
}

// Functions of 16-bit floats compute in f32; their arithmetic stays as it is.
// CHECK-LABEL: func.func @half
func.func @half(%x: tensor<8xbf16>) {
  // CHECK-NEXT: %[[A:.*]] = arith.extf %{{.*}} : tensor<8xbf16> to tensor<8xf32>
  // CHECK-NEXT: %[[B:.*]] = math.exp %[[A]] : tensor<8xf32>
  // CHECK-NEXT: %[[C:.*]] = arith.truncf %[[B]] : tensor<8xf32> to tensor<8xbf16>
  %0 = tile.exp %x : tensor<8xbf16>
  // CHECK-NEXT: arith.subf %[[C]], %{{.*}} : tensor<8xbf16>
  %1 = tile.sub %0, %x : tensor<8xbf16>, tensor<8xbf16>
  // CHECK-NEXT: %[[D:.*]] = arith.extf
  // CHECK-NEXT: %[[E:.*]] = tile.reduce add, %[[D]] axis 0 : tensor<8xf32>
  // CHECK-NEXT: arith.truncf %[[E]] : f32 to bf16
  %2 = tile.reduce add, %x axis 0 : tensor<8xbf16>
  // CHECK-NEXT: %[[W:.*]] = arith.extf
  // CHECK-NEXT: %[[S:.*]] = tile.scan add, %[[W]] axis 0 : tensor<8xf32>
  // CHECK-NEXT: arith.truncf %[[S]]
  %scan = tile.scan add, %x axis 0 : tensor<8xbf16>
  // CHECK-NEXT: tile.reduce max, %{{.*}} axis 0 : tensor<8xbf16>
  %3 = tile.reduce max, %x axis 0 : tensor<8xbf16>
  return
}

// CHECK-LABEL: func.func @reduce_bool
func.func @reduce_bool(%x: tensor<8xi1>) {
  // CHECK-NEXT: %[[A:.*]] = arith.extui %{{.*}} : tensor<8xi1> to tensor<8xi32>
  // CHECK-NEXT: tile.reduce add, %[[A]] axis 0 : tensor<8xi32>
  %0 = tile.reduce add, %x axis 0 : tensor<8xi1>
  // CHECK-NEXT: tile.reduce argmax, %{{.*}} axis 0 {is_unsigned} : tensor<8xi1>
  %1 = tile.reduce argmax, %x axis 0 : tensor<8xi1>
  return
}

// CHECK-LABEL: func.func @mma
func.func @mma(%a: tensor<16x8xui8>, %b: tensor<8x4xi8>, %acc: tensor<16x4xi32>) -> tensor<16x4xi32> {
  // CHECK: tile.mma %{{.*}} {unsigned_lhs} : tensor<16x8xi8>, tensor<8x4xi8>, tensor<16x4xi32>
  %0 = tile.mma %a, %b, %acc : tensor<16x8xui8>, tensor<8x4xi8>, tensor<16x4xi32>
  return %0 : tensor<16x4xi32>
}

// CHECK-LABEL: func.func @casts
func.func @casts(%h: f16, %b: bf16, %d: f64, %i: i32, %q: f8E4M3FN, %p: i1) {
  // CHECK-NEXT: %[[A:.*]] = arith.extf %{{.*}} : f16 to f32
  // CHECK-NEXT: arith.truncf %[[A]] : f32 to bf16
  %0 = tile.cast %h : f16 -> bf16
  // CHECK-NEXT: %[[B:.*]] = arith.extf %{{.*}} : bf16 to f32
  // CHECK-NEXT: arith.fptosi %[[B]] : f32 to i8
  %1 = tile.cast %b : bf16 -> i8
  // CHECK-NEXT: arith.extf %{{.*}} : f8E4M3FN to f32
  %2 = tile.cast %q : f8E4M3FN -> f32
  // CHECK-NEXT: arith.truncf %{{.*}} : f64 to f32
  %3 = tile.cast %d : f64 -> f32
  // CHECK-NEXT: arith.constant 0.0
  // CHECK-NEXT: arith.cmpf une
  %4 = tile.cast %d : f64 -> i1
  // CHECK-NEXT: arith.extui %{{.*}} : i1 to i32
  %5 = tile.cast %p : i1 -> i32
  // CHECK-NEXT: arith.uitofp %{{.*}} : i1 to f32
  %6 = tile.cast %p : i1 -> f32
  return
}

// f64 to a float of 16 bits or fewer: through f32, rounded to odd, so that the last step rounds as if it were the only one.
// CHECK-LABEL: func.func @round_once
func.func @round_once(%d: f64) -> bf16 {
  // CHECK-NEXT: %[[NEAR:.*]] = arith.truncf %[[D:.*]] : f64 to f32
  // CHECK-NEXT: %[[BACK:.*]] = arith.extf %[[NEAR]] : f32 to f64
  // CHECK-NEXT: %[[BITS:.*]] = arith.bitcast %[[NEAR]] : f32 to i32
  // CHECK: arith.subi %[[BITS]]
  // CHECK: arith.ori
  // CHECK: arith.cmpf une, %[[BACK]], %[[D]]
  // CHECK: %[[ODD:.*]] = arith.select
  // CHECK-NEXT: arith.truncf %[[ODD]] : f32 to bf16
  %0 = tile.cast %d : f64 -> bf16
  return %0 : bf16
}

// CHECK-LABEL: func.func @negate_and_complement
func.func @negate_and_complement(%i: tensor<8xi32>, %p: i1, %u: ui8) {
  // CHECK: %[[ZERO:.*]] = arith.constant dense<0>
  // CHECK-NEXT: arith.subi %[[ZERO]]
  %0 = tile.neg %i : tensor<8xi32>
  // CHECK: arith.constant true
  // CHECK-NEXT: arith.xori
  %1 = tile.not %p : i1
  // CHECK: arith.constant -1 : i8
  // CHECK-NEXT: arith.xori
  %2 = tile.not %u : ui8
  return
}

// The absolute value of what has no sign is itself.
// CHECK-LABEL: func.func @abs_unsigned
func.func @abs_unsigned(%u: ui8) -> ui8 {
  // CHECK-NEXT: return %arg0 : i8
  %0 = tile.abs %u : ui8
  return %0 : ui8
}

// CHECK-LABEL: func.func @remainder
func.func @remainder(%i: i32, %f: f16) {
  // CHECK: %[[R:.*]] = arith.remsi
  // CHECK: arith.xori %[[R]]
  // CHECK: arith.select
  %0 = tile.mod %i, %i : i32, i32
  // CHECK: arith.remf %{{.*}} : f32
  // CHECK: arith.truncf %{{.*}} : f32 to f16
  %1 = tile.mod %f, %f : f16, f16
  return
}

// An operand has the dtype of the result before it is computed on: an integer that float16 has not is infinity.
// CHECK-LABEL: func.func @remainder_of_an_integer
func.func @remainder_of_an_integer(%i: i16, %f: f16) -> f16 {
  // CHECK: %[[X:.*]] = arith.sitofp %arg0 : i16 to f32
  // CHECK-NEXT: %[[H:.*]] = arith.truncf %[[X]] : f32 to f16
  // CHECK-NEXT: arith.extf %[[H]] : f16 to f32
  %0 = tile.mod %i, %f : i16, f16
  return %0 : f16
}

// By a power of two, of signed numbers, too: the last bits.
// CHECK-LABEL: func.func @remainder_of_bits
func.func @remainder_of_bits(%i: tensor<8xi32>) -> tensor<8xi32> {
  // CHECK: %[[C:.*]] = arith.constant dense<63>
  // CHECK-NEXT: arith.andi %arg0, %[[C]]
  // CHECK-NEXT: return
  %c64 = arith.constant 64 : i32
  %0 = tile.mod %i, %c64 : tensor<8xi32>, i32
  return %0 : tensor<8xi32>
}

// CHECK-LABEL: func.func @floor_division
func.func @floor_division(%i: i32, %f: f16) {
  // CHECK-NEXT: arith.floordivsi
  %0 = tile.floordiv %i, %i : i32, i32
  // (x - rest) / y, in f32
  // CHECK: arith.remf %{{.*}} : f32
  // CHECK: arith.divf %{{.*}} : f32
  // CHECK: math.floor %{{.*}} : f32
  %1 = tile.floordiv %f, %f : f16, f16
  return
}

// Small constant exponents are multiplications.
// CHECK-LABEL: func.func @powers
func.func @powers(%x: tensor<8xf32>, %i: tensor<8xi32>) {
  %three = tile.constant 3.0 : f32
  // CHECK: %[[SQUARE:.*]] = arith.mulf %[[X:.*]], %[[X]]
  // CHECK-NEXT: arith.mulf %[[X]], %[[SQUARE]]
  %0 = tile.pow %x, %three : tensor<8xf32>, f32
  %minus = tile.constant -1.0 : f32
  // CHECK: arith.divf
  %1 = tile.pow %x, %minus : tensor<8xf32>, f32
  // CHECK: math.powf
  %2 = tile.pow %x, %x : tensor<8xf32>, tensor<8xf32>
  %two = tile.constant 2 : i32
  // CHECK: arith.muli
  %3 = tile.pow %i, %two {integral} : tensor<8xi32>, i32
  // CHECK: arith.sitofp
  // CHECK: math.powf
  %4 = tile.pow %i, %i : tensor<8xi32>, tensor<8xi32>
  return
}

// Indices become signed types that hold them.
// CHECK-LABEL: func.func @unsigned_indices
func.func @unsigned_indices(%a: memref<?x?xf32, strided<[?, 1]>>, %i: tensor<8xui32>, %j: tensor<8xui8>) {
  // CHECK-NEXT: %[[I:.*]] = arith.extui %{{.*}} : tensor<8xi32> to tensor<8xi64>
  // CHECK-NEXT: %[[J:.*]] = arith.extui %{{.*}} : tensor<8xi8> to tensor<8xi32>
  // CHECK-NEXT: tile.gather %{{.*}}[%[[I]], %[[J]]]
  %0 = tile.gather %a[%i, %j] {check_bounds} : memref<?x?xf32, strided<[?, 1]>>, tensor<8xui32>, tensor<8xui8> -> tensor<8xf32>
  return
}

// What an op means is read from types that still have their sign, after others were legalized.
// CHECK-LABEL: func.func @sign_changes(%arg0: tensor<8xi8>)
func.func @sign_changes(%x: tensor<8xui8>) {
  // CHECK-NEXT: %[[C:.*]] = arith.constant -56 : i8
  %0 = tile.constant 200 : ui8
  // CHECK-NEXT: %[[S:.*]] = tensor.splat %[[C]]
  // CHECK-NEXT: arith.maxui %arg0, %[[S]]
  %1 = tile.maximum %x, %0 : tensor<8xui8>, ui8
  // CHECK-NEXT: arith.maxsi %arg0, %arg0
  %2 = tile.cast %x : tensor<8xui8> -> tensor<8xi8>
  %3 = tile.maximum %2, %2 : tensor<8xi8>, tensor<8xi8>
  // CHECK-NEXT: arith.constant 0 : i32
  %zero = tile.constant 0 : ui32
  // CHECK-NEXT: arith.constant 1 : i32
  %4 = tile.pow %zero, %zero {integral} : ui32, ui32
  // CHECK-NEXT: arith.divui
  %5 = tile.floordiv %4, %zero : ui32, ui32
  return
}

// CHECK-LABEL: func.func @without_nan
func.func @without_nan(%x: tensor<8xf32>, %n: tensor<8xui8>) {
  // CHECK-NEXT: arith.maxnumf
  %0 = tile.maximum %x, %x {ignore_nan} : tensor<8xf32>, tensor<8xf32>
  // CHECK-NEXT: tile.reduce argmin, %{{.*}} axis 0 {ignore_nan} : tensor<8xf32>
  %1 = tile.reduce argmin, %x axis 0 {ignore_nan} : tensor<8xf32>
  return
}

// CHECK-LABEL: func.func @cat
func.func @cat(%x: tensor<2x4xui8>, %y: tensor<2x4xui8>) -> tensor<2x8xui8> {
  // CHECK: %[[X:.*]] = tile.broadcast %{{.*}} : tensor<2x1x4xi8> -> tensor<2x2x4xi8>
  // CHECK: %[[Y:.*]] = tile.broadcast %{{.*}} : tensor<2x1x4xi8> -> tensor<2x2x4xi8>
  // CHECK: %[[BOTH:.*]] = arith.select %{{.*}}, %[[Y]], %[[X]] : tensor<2x2x4xi1>, tensor<2x2x4xi8>
  // CHECK: tile.reshape %[[BOTH]] : tensor<2x2x4xi8> -> tensor<2x8xi8>
  %0 = tile.cat %x, %y axis 1 : tensor<2x4xui8>, tensor<2x4xui8>
  return %0 : tensor<2x8xui8>
}

// CHECK-LABEL: func.func @bytes
func.func @bytes(%x: tensor<4xf16>) -> tensor<4xi16> {
  // CHECK: %[[BITS:.*]] = arith.bitcast %{{.*}} : tensor<4xf16> to tensor<4xi16>
  // CHECK: %[[MOVED:.*]] = arith.shrui %{{.*}}, %{{.*}} : tensor<4x2xi16>
  // CHECK: arith.trunci %[[MOVED]] : tensor<4x2xi16> to tensor<4x2xi8>
  %0 = tile.pack_to_bytes %x : tensor<4xf16> -> tensor<8xui8>
  // CHECK: %[[UP:.*]] = arith.shli %{{.*}}, %{{.*}} : tensor<4x2xi16>
  // CHECK: tile.reduce add, %[[UP]] axis 1 : tensor<4x2xi16>
  %1 = tile.unpack_from_bytes %0 : tensor<8xui8> -> tensor<4xi16>
  return %1 : tensor<4xi16>
}

// Which of two words is the larger depends on a sign that is gone behind this pass.
// CHECK-LABEL: func.func @atomic
func.func @atomic(%a: memref<?xui32, strided<[?]>>, %i: tensor<8xui32>, %x: tensor<8xui32>) {
  // CHECK: %[[I:.*]] = arith.extui %arg1 : tensor<8xi32> to tensor<8xi64>
  // CHECK: tile.atomic max acq_rel device, %arg2, %arg0[%[[I]]] {check_bounds, is_unsigned}
  %0 = tile.atomic max acq_rel device, %x, %a[%i] {check_bounds} : tensor<8xui32>, memref<?xui32, strided<[?]>>, tensor<8xui32> -> tensor<8xui32>
  // CHECK: tile.atomic add relaxed block, %arg2, %arg0[%{{.*}}] : tensor
  %1 = tile.atomic add relaxed block, %x, %a[%i] : tensor<8xui32>, memref<?xui32, strided<[?]>>, tensor<8xui32> -> tensor<8xui32>
  return
}
// An integer that float32 has goes through it; any other is rounded once, from float64.
// CHECK-LABEL: func.func @small_integer
func.func @small_integer(%x: tensor<8xi32>) -> (tensor<8xbf16>, tensor<8xbf16>) {
  // CHECK-NOT: f64
  // CHECK: arith.sitofp %{{.*}} : tensor<8xi32> to tensor<8xf32>
  // CHECK-NEXT: arith.truncf %{{.*}} : tensor<8xf32> to tensor<8xbf16>
  // CHECK-NEXT: arith.sitofp %arg0 : tensor<8xi32> to tensor<8xf64>
  %bits = arith.constant dense<15> : tensor<8xi32>
  %small = arith.andi %x, %bits : tensor<8xi32>
  %0 = tile.cast %small : tensor<8xi32> -> tensor<8xbf16>
  %1 = tile.cast %x : tensor<8xi32> -> tensor<8xbf16>
  return %0, %1 : tensor<8xbf16>, tensor<8xbf16>
}
