// A running sum of what a loop loads is added up over lanes and warps behind the loop.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-defer-reductions),canonicalize,cse)' | FileCheck %s

!A = memref<?x?xbf16, strided<[?, 1]>>

// Eight neighbours of 16 bits are 16 bytes, which one thread loads.
// CHECK-LABEL: @rows
// CHECK: %[[C:.*]] = scf.for {{.*}} -> (tensor<128x8xf32>)
// CHECK: %[[Y:.*]] = tile.reshape %{{.*}} -> tensor<128x8x8xf32>
// CHECK: %[[P:.*]] = tile.reduce add, %[[Y]] axis 2
// CHECK: %[[S:.*]] = arith.addf %{{.*}}, %[[P]] : tensor<128x8xf32>
// CHECK: scf.yield %[[S]]
// CHECK: %[[T:.*]] = tile.reduce add, %[[C]] axis 1
// CHECK: tile.reshape %[[T]] : tensor<128xf32> -> tensor<128x1xf32>
func.func @rows(%x: !A, %n: i32, %init: tensor<128x1xf32>) -> tensor<128x1xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %init) -> (tensor<128x1xf32>) : i32 {
    %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
    %f = arith.extf %a : tensor<128x64xbf16> to tensor<128x64xf32>
    %q = arith.mulf %f, %f : tensor<128x64xf32>
    %p = tile.reduce add, %q axis 1 : tensor<128x64xf32>
    %column = tile.reshape %p : tensor<128xf32> -> tensor<128x1xf32>
    %s = arith.addf %sum, %column : tensor<128x1xf32>
    scf.yield %s : tensor<128x1xf32>
  }
  return %r : tensor<128x1xf32>
}

// -----

// A scalar, of a row of f32.
// CHECK-LABEL: @row
// CHECK: scf.for {{.*}} -> (tensor<256xf32>)
// CHECK: %[[T:.*]] = tile.reduce add, %{{.*}} axis 0 : tensor<256xf32>
// CHECK: arith.addf %{{.*}}, %[[T]] : f32
func.func @row(%x: memref<?xf32, strided<[1]>>, %n: i32, %init: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %init) -> (f32) : i32 {
    %a = tile.load %x[%k] padding zero : memref<?xf32, strided<[1]>>, i32 -> tensor<1024xf32>
    %p = tile.reduce add, %a axis 0 : tensor<1024xf32>
    %s = arith.addf %sum, %p : f32
    scf.yield %s : f32
  }
  return %r : f32
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Sums that the iteration reads stay.
// CHECK-LABEL: @stay
// CHECK: scf.for {{.*}} -> (tensor<64xf32>, tensor<64xf32>)
func.func @stay(%x: !A, %n: i32, %init: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %init, %other = %init) -> (tensor<64xf32>, tensor<64xf32>) : i32 {
    %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
    %f = arith.extf %a : tensor<64x64xbf16> to tensor<64x64xf32>
    %p = tile.reduce add, %f axis 1 : tensor<64x64xf32>
    %s = arith.addf %sum, %p : tensor<64xf32>
    %o = arith.mulf %other, %s : tensor<64xf32>
    scf.yield %s, %o : tensor<64xf32>, tensor<64xf32>
  }
  return %r#0, %r#1 : tensor<64xf32>, tensor<64xf32>
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Sums of columns: 16 KiB over 256 threads are four accesses of a thread, of rows that are 32 apart. Beside products
// threads have other parts of a tile.
// CHECK-LABEL: @columns
// CHECK: %[[C:.*]] = scf.for {{.*}} -> (tensor<32x64xf32>)
// CHECK: %[[Y:.*]] = tile.reshape %{{.*}} -> tensor<4x32x64xf32>
// CHECK: %[[P:.*]] = tile.reduce add, %[[Y]] axis 0
// CHECK: arith.addf %{{.*}}, %[[P]] : tensor<32x64xf32>
// CHECK: tile.reduce add, %[[C]] axis 0 : tensor<32x64xf32>
func.func @columns(%x: !A, %n: i32, %init: tensor<64xf32>) -> tensor<64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %init) -> (tensor<64xf32>) : i32 {
    %a = tile.load %x[%k, %c0] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
    %f = arith.extf %a : tensor<128x64xbf16> to tensor<128x64xf32>
    %p = tile.reduce add, %f axis 0 : tensor<128x64xf32>
    %s = arith.addf %sum, %p : tensor<64xf32>
    scf.yield %s : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// CHECK-LABEL: @beside
// CHECK: scf.for {{.*}} -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
func.func @beside(%x: !A, %y: memref<?x?xf32, strided<[?, 1]>>, %n: i32, %init: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:3 = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %init, %other = %init, %down = %init) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) : i32 {
    %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
    %f = arith.extf %a : tensor<64x64xbf16> to tensor<64x64xf32>
    %p = tile.reduce add, %f axis 1 : tensor<64x64xf32>
    %s = arith.addf %sum, %p : tensor<64xf32>
    %o = arith.mulf %other, %s : tensor<64xf32>
    %q = tile.reduce add, %f axis 0 : tensor<64x64xf32>
    %d = arith.addf %down, %q : tensor<64xf32>
    %z = arith.constant dense<0.0> : tensor<64x64xf32>
    %m = tile.mma %a, %a, %z : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    tile.store %m, %y[%c0, %k] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    scf.yield %s, %o, %d : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
  }
  return %r#0, %r#1, %r#2 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Neither a maximum, nor sums that change places, nor one whose addition is in a branch, nor one with two additions.
// CHECK-LABEL: @no_sums
// CHECK: scf.for {{.*}} -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
func.func @no_sums(%x: !A, %n: i32, %init: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:5 = scf.for %k = %c0 to %n step %c1 iter_args(%top = %init, %p = %init, %q = %init, %some = %init, %twice = %init) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) : i32 {
    %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
    %f = arith.extf %a : tensor<64x64xbf16> to tensor<64x64xf32>
    %m = tile.reduce max, %f axis 1 : tensor<64x64xf32>
    %s = tile.reduce add, %f axis 1 : tensor<64x64xf32>
    %top2 = arith.addf %top, %m : tensor<64xf32>
    %p2 = arith.addf %p, %s : tensor<64xf32>
    %q2 = arith.addf %q, %s : tensor<64xf32>
    %first = arith.cmpi eq, %k, %c0 : i32
    %some2 = scf.if %first -> (tensor<64xf32>) {
      %e = arith.addf %some, %s : tensor<64xf32>
      scf.yield %e : tensor<64xf32>
    } else {
      scf.yield %s : tensor<64xf32>
    }
    %once = arith.addf %twice, %s : tensor<64xf32>
    %twice2 = arith.addf %once, %s : tensor<64xf32>
    scf.yield %top2, %q2, %p2, %some2, %twice2 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
  }
  return %r#0, %r#1, %r#2, %r#3, %r#4 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// A row of no more than a thread loads at once is summed as it is.
// CHECK-LABEL: @short
// CHECK: scf.for {{.*}} -> (tensor<64xf32>)
func.func @short(%x: !A, %n: i32, %init: tensor<64xf32>) -> tensor<64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %init) -> (tensor<64xf32>) : i32 {
    %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<64x8xbf16>
    %f = arith.extf %a : tensor<64x8xbf16> to tensor<64x8xf32>
    %p = tile.reduce add, %f axis 1 : tensor<64x8xf32>
    %s = arith.addf %sum, %p : tensor<64xf32>
    scf.yield %s : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}

// -----

// Layouts are assigned, and the parts would have none.
!A = memref<?x?xf32, strided<[?, 1]>>
#x = #tile.linear<register = [[0, 1], [32, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]]>
#s = #tile.linear<register = [[32]], lane = [[0], [0], [1], [2], [4]], warp = [[8], [16]]>
// CHECK-LABEL: @late
// CHECK-NOT: reshape
func.func @late(%a: !A, %n: i32, %init: tensor<64xf32, #s>) -> tensor<64xf32, #s> attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %init) -> (tensor<64xf32, #s>) : i32 {
    %x = tile.load %a[%c0, %k] : !A, i32, i32 -> tensor<64x8xf32, #x>
    %m = "tile.reduce"(%x) {kind = 0 : i32, axis = 1 : i32} : (tensor<64x8xf32, #x>) -> tensor<64xf32, #s>
    %e = arith.addf %sum, %m : tensor<64xf32, #s>
    scf.yield %e : tensor<64xf32, #s>
  }
  return %r : tensor<64xf32, #s>
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Of rows that a product reads from registers four lanes share every 16 bytes: a thread has what lies 16 bytes apart.
// CHECK-LABEL: @beside_product
// CHECK: %[[C:.*]]:2 = scf.for {{.*}} -> (tensor<128x128xf32>, tensor<128x8xf32>)
// CHECK: %[[Y:.*]] = tile.reshape %{{.*}} : tensor<128x64xf32> -> tensor<128x8x8xf32>
// CHECK: tile.reduce add, %[[Y]] axis 1
// CHECK: tile.reduce add, %[[C]]#1 axis 1
module attributes {tile.target = "sm_90a"} {
  func.func @beside_product(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %n: i32, %init: tensor<128xf32>) -> (tensor<128x128xf32>, tensor<128xf32>) attributes {tile.launch = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %half = arith.constant dense<0.5> : tensor<128x64xbf16>
    %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %sum = %init) -> (tensor<128x128xf32>, tensor<128xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %f = arith.extf %a : tensor<128x64xbf16> to tensor<128x64xf32>
      %q = arith.mulf %f, %f : tensor<128x64xf32>
      %p = tile.reduce add, %q axis 1 : tensor<128x64xf32>
      %s = arith.addf %sum, %p : tensor<128xf32>
      %b = tile.load %w[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %h = arith.mulf %a, %half : tensor<128x64xbf16>
      %d = tile.mma %h, %b, %acc {tile.family = "wgmma", tile.places = "rs"} : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %d, %s : tensor<128x128xf32>, tensor<128xf32>
    }
    return %r#0, %r#1 : tensor<128x128xf32>, tensor<128xf32>
  }
}
