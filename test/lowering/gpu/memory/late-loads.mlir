// What is added to a large product before it is stored may wait for the stores.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-sink-loads))' | FileCheck %s

#a = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64], [64, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#s = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// The sum takes 128 registers, as many as the elements of 16 bits that come one by one.
// CHECK-LABEL: func.func @large
func.func @large(%r: memref<?x?xbf16, strided<[?, 1]>>, %y: memref<?x?xbf16, strided<[?, 1]>>, %p: tensor<128x16xbf16>, %q: tensor<16x128xbf16>, %c: tensor<128x128xf32, #a>) attributes {tile.kernel} {
  %i = tile.block_id 0
  %acc = tile.mma %p, %q, %c : tensor<128x16xbf16>, tensor<16x128xbf16>, tensor<128x128xf32, #a>
  // CHECK: tile.load %arg0[%{{.*}}] {tile.late = 32 : i32}
  %l = tile.load %r[%i, %i] : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 -> tensor<128x128xbf16, #a>
  %w = arith.extf %l : tensor<128x128xbf16, #a> to tensor<128x128xf32, #a>
  %sum = arith.addf %acc, %w : tensor<128x128xf32, #a>
  %n = arith.truncf %sum : tensor<128x128xf32, #a> to tensor<128x128xbf16, #a>
  // CHECK: tile.store %{{.*}}, %arg1[%{{.*}}] {tile.late = 32 : i32}
  tile.store %n, %y[%i, %i] : tensor<128x128xbf16, #a>, memref<?x?xbf16, strided<[?, 1]>>, i32, i32
  return
}

// In place, each tile is read before it is written. What another place of that array has stays, and what the block
// needs before it stores.
// CHECK-LABEL: func.func @written
func.func @written(%y: memref<?x?xf32, strided<[?, 1]>>, %p: tensor<128x16xbf16>, %q: tensor<16x128xbf16>, %c: tensor<128x128xf32, #a>) attributes {tile.kernel} {
  %i = tile.block_id 0
  %c0 = arith.constant 0 : i32
  %acc = tile.mma %p, %q, %c : tensor<128x16xbf16>, tensor<16x128xbf16>, tensor<128x128xf32, #a>
  // CHECK: tile.load %arg0[%[[I:.*]], %[[I]]] {tile.late = 32 : i32}
  // CHECK: tile.load %arg0[%{{.*}}] :
  // CHECK: tile.load %arg0[%{{.*}}] :
  %l = tile.load %y[%i, %i] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<128x128xf32, #a>
  %o = tile.load %y[%c0, %i] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<128x128xf32, #a>
  %k = tile.load %y[%i, %i] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<128x128xf32, #a>
  %m = tile.reduce max, %k axis 1 : tensor<128x128xf32, #a>
  %sum = arith.addf %acc, %l : tensor<128x128xf32, #a>
  %sum2 = arith.addf %sum, %o : tensor<128x128xf32, #a>
  tile.store %sum2, %y[%i, %i] : tensor<128x128xf32, #a>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
  return
}

// Where registers hold all of it, it is under way at once.
// CHECK-LABEL: func.func @small
func.func @small(%r: memref<?x?xbf16, strided<[?, 1]>>, %y: memref<?x?xf32, strided<[?, 1]>>, %p: tensor<64x16xbf16>, %q: tensor<16x32xbf16>, %c: tensor<64x32xf32, #s>) attributes {tile.kernel} {
  %i = tile.block_id 0
  %acc = tile.mma %p, %q, %c : tensor<64x16xbf16>, tensor<16x32xbf16>, tensor<64x32xf32, #s>
  // CHECK-NOT: tile.late
  %l = tile.load %r[%i, %i] : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 -> tensor<64x32xbf16, #s>
  %w = arith.extf %l : tensor<64x32xbf16, #s> to tensor<64x32xf32, #s>
  %sum = arith.addf %acc, %w : tensor<64x32xf32, #s>
  tile.store %sum, %y[%i, %i] : tensor<64x32xf32, #s>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
  return
}

// What would be held while the products run is loaded, and widened, behind them.
// CHECK-LABEL: func.func @first
func.func @first(%r: memref<?x?xbf16, strided<[?, 1]>>, %y: memref<?x?xf32, strided<[?, 1]>>, %p: tensor<128x16xbf16>, %q: tensor<16x128xbf16>, %c: tensor<128x128xf32, #a>) attributes {tile.kernel} {
  %i = tile.block_id 0
  // CHECK: tile.mma
  // CHECK-NEXT: %[[L:.*]] = tile.load %arg0[%{{.*}}] {tile.late = 32 : i32}
  // CHECK-NEXT: arith.extf %[[L]]
  %l = tile.load %r[%i, %i] : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 -> tensor<128x128xbf16, #a>
  %w = arith.extf %l : tensor<128x128xbf16, #a> to tensor<128x128xf32, #a>
  %acc = tile.mma %p, %q, %c : tensor<128x16xbf16>, tensor<16x128xbf16>, tensor<128x128xf32, #a>
  %sum = arith.addf %acc, %w : tensor<128x128xf32, #a>
  tile.store %sum, %y[%i, %i] : tensor<128x128xf32, #a>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
  return
}
