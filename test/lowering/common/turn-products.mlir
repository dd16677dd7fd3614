// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-canonicalize),canonicalize,cse)' | FileCheck %s

!A = memref<?x?xf16, strided<[?, 1]>>

// Transposed operands, and a sum that is transposed behind what is computed of it: a bias of rows is one of columns.
// CHECK-LABEL: @turned
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (tensor<64x128xf32>)
// CHECK: %[[A:.*]] = tile.load %arg0
// CHECK: %[[B:.*]] = tile.load %arg1
// CHECK: tile.mma %[[A]], %[[B]], %[[ACC]] : tensor<64x32xf16>, tensor<32x128xf16>, tensor<64x128xf32>
// CHECK-DAG: %[[LINE:.*]] = tile.reshape %arg3 : tensor<128x1xf32> -> tensor<1x128xf32>
// CHECK-DAG: %[[BIAS:.*]] = tile.broadcast %[[LINE]] : tensor<1x128xf32> -> tensor<64x128xf32>
// CHECK: %[[S:.*]] = arith.addf %[[SUM]], %[[BIAS]]
// CHECK: %[[T:.*]] = arith.truncf %[[S]]
// CHECK: tile.store %[[T]]
// CHECK-NOT: tile.permute
// CHECK: return
func.func @turned(%a: !A, %b: !A, %c: !A, %bias: tensor<128x1xf32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x64xf32>) : i32 {
    %x = tile.load %a[%c0, %k] padding zero : !A, i32, i32 -> tensor<64x32xf16>
    %y = tile.load %b[%k, %c0] padding zero : !A, i32, i32 -> tensor<32x128xf16>
    %xt = tile.permute %x [1, 0] : tensor<64x32xf16>
    %yt = tile.permute %y [1, 0] : tensor<32x128xf16>
    %s = tile.mma %yt, %xt, %acc : tensor<128x32xf16>, tensor<32x64xf16>, tensor<128x64xf32>
    scf.yield %s : tensor<128x64xf32>
  }
  %line = tile.broadcast %bias : tensor<128x1xf32> -> tensor<128x64xf32>
  %sum = arith.addf %r, %line : tensor<128x64xf32>
  %h = arith.truncf %sum : tensor<128x64xf32> to tensor<128x64xf16>
  %t = tile.permute %h [1, 0] : tensor<128x64xf16>
  tile.store %t, %c[%c0, %c0] : tensor<64x128xf16>, !A, i32, i32
  return
}

// -----

!A = memref<?x?xf16, strided<[?, 1]>>

// The same by the order of loads and stores; the right operand may be computed, which is the left one then.
// CHECK-LABEL: @ordered
// CHECK: %[[A:.*]] = tile.load %arg0[%[[K:.*]], %c1_i32] padding zero {{.*}} -> tensor<32x128xf16>
// CHECK: %[[B:.*]] = tile.load %arg1[%c0_i32, %[[K]]] padding zero {{.*}} -> tensor<64x32xf16>
// CHECK: %[[X:.*]] = arith.addf %[[B]], %[[B]]
// CHECK: tile.mma %[[X]], %[[A]]
// CHECK: tile.store %{{.*}}, %arg2[%c0_i32, %c1_i32] : tensor<64x128xf32>
func.func @ordered(%a: !A, %b: !A, %c: memref<?x?xf32, strided<[?, 1]>>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x64xf32>) : i32 {
    %x = tile.load %a[%c1, %k] order [1, 0] padding zero : !A, i32, i32 -> tensor<128x32xf16>
    %y = tile.load %b[%c0, %k] padding zero : !A, i32, i32 -> tensor<64x32xf16>
    %z = arith.addf %y, %y : tensor<64x32xf16>
    %zt = tile.permute %z [1, 0] : tensor<64x32xf16>
    %s = tile.mma %x, %zt, %acc : tensor<128x32xf16>, tensor<32x64xf16>, tensor<128x64xf32>
    scf.yield %s : tensor<128x64xf32>
  }
  tile.store %r, %c[%c1, %c0] order [1, 0] : tensor<128x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
  return
}

// -----

!A = memref<?x?xf16, strided<[?, 1]>>
!F = memref<?x?xf32, strided<[?, 1]>>

// Not where it is read as it is, too; nor where few rows would come of it, or a computed left operand go to the right.
// CHECK-LABEL: @as_they_are
// CHECK: tile.mma {{.*}} tensor<64x64xf32>
// CHECK: tile.mma {{.*}} tensor<64x16xf32>
// CHECK: %[[Z:.*]] = arith.addf
// CHECK: tile.mma %[[Z]]
func.func @as_they_are(%a: !A, %c: !F, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %few = arith.constant dense<0.0> : tensor<64x16xf32>
  %r:3 = scf.for %k = %c0 to %n step %c1 iter_args(%p = %zero, %q = %few, %s = %zero) -> (tensor<64x64xf32>, tensor<64x16xf32>, tensor<64x64xf32>) : i32 {
    %x = tile.load %a[%c0, %k] padding zero : !A, i32, i32 -> tensor<64x32xf16>
    %y = tile.load %a[%k, %c0] order [1, 0] padding zero : !A, i32, i32 -> tensor<32x16xf16>
    %xt = tile.permute %x [1, 0] : tensor<64x32xf16>
    %pn = tile.mma %x, %xt, %p : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32>
    %qn = tile.mma %x, %y, %q : tensor<64x32xf16>, tensor<32x16xf16>, tensor<64x16xf32>
    %z = arith.addf %x, %x : tensor<64x32xf16>
    %sn = tile.mma %z, %xt, %s : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32>
    scf.yield %pn, %qn, %sn : tensor<64x64xf32>, tensor<64x16xf32>, tensor<64x64xf32>
  }
  tile.store %r#0, %c[%c0, %c0] : tensor<64x64xf32>, !F, i32, i32
  tile.store %r#0, %c[%c1, %c0] order [1, 0] : tensor<64x64xf32>, !F, i32, i32
  tile.store %r#1, %c[%c0, %c0] order [1, 0] : tensor<64x16xf32>, !F, i32, i32
  tile.store %r#2, %c[%c0, %c1] order [1, 0] : tensor<64x64xf32>, !F, i32, i32
  return
}
