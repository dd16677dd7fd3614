// What a reduction does not need waits behind it.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-sink-loads))' | FileCheck %s

#l = #tile.linear<register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [0, 32], [0, 64]]>
#s = #tile.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]]>

// Weights that all blocks share are loaded behind the reduction, and so is a bias: the row itself is not. What is
// loaded for this block only stays, and is held narrow. No store can change the weights: they may wait for those.
// CHECK-LABEL: func.func @norm
func.func @norm(%a: memref<?x?xbf16, strided<[?, 1]>>, %w: memref<?xbf16, strided<[1]>>, %y: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %row = tile.block_id 0
  // CHECK: %[[X:.*]] = tile.load %arg0
  // CHECK-NEXT: arith.extf %[[X]]
  // CHECK-NEXT: %[[R:.*]] = tile.load %arg0
  // CHECK-NEXT: tile.reduce
  // CHECK: %[[W:.*]] = tile.load %arg1[%{{.*}}] {tile.late}
  // CHECK-NEXT: %[[F:.*]] = arith.extf %[[W]]
  // CHECK-NEXT: tile.reshape %[[F]]
  // CHECK-NEXT: arith.mulf
  // CHECK-NEXT: arith.extf %[[R]]
  // CHECK-NEXT: arith.addf
  %x = tile.load %a[%row, %c0] : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 -> tensor<1x128xbf16, #l>
  %xf = arith.extf %x : tensor<1x128xbf16, #l> to tensor<1x128xf32, #l>
  %g = tile.load %w[%c0] : memref<?xbf16, strided<[1]>>, i32 -> tensor<128xbf16, #s>
  %gf = arith.extf %g : tensor<128xbf16, #s> to tensor<128xf32, #s>
  %gr = tile.reshape %gf : tensor<128xf32, #s> -> tensor<1x128xf32, #l>
  %r = tile.load %a[%row, %c0] : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 -> tensor<1x128xbf16, #l>
  %rf = arith.extf %r : tensor<1x128xbf16, #l> to tensor<1x128xf32, #l>
  %sum = tile.reduce add, %xf axis 1 : tensor<1x128xf32, #l>
  %sum2 = tile.reshape %sum : tensor<1xf32, #tile.linear<lane = [[0], [0], [0], [0], [0]]>> -> tensor<1x1xf32, #tile.linear<lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]]>>
  %all = tile.broadcast %sum2 : tensor<1x1xf32, #tile.linear<lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]]>> -> tensor<1x128xf32, #l>
  %z = arith.mulf %all, %gr : tensor<1x128xf32, #l>
  %z2 = arith.addf %z, %rf : tensor<1x128xf32, #l>
  tile.store %z2, %y[%row, %c0] : tensor<1x128xf32, #l>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
  return
}

// A store may change what would be loaded: nothing moves past it.
// CHECK-LABEL: func.func @store_between
func.func @store_between(%w: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  // CHECK: tile.load {{.*}}] :
  // CHECK: tile.reduce
  %g = tile.load %w[%c0] : memref<?xf32, strided<[1]>>, i32 -> tensor<128xf32, #s>
  %x = arith.constant dense<1.0> : tensor<128xf32, #s>
  %sum = tile.reduce add, %x axis 0 : tensor<128xf32, #s>
  tile.store %x, %w[%c0] : tensor<128xf32, #s>, memref<?xf32, strided<[1]>>, i32
  tile.store %g, %w[%c0] : tensor<128xf32, #s>, memref<?xf32, strided<[1]>>, i32
  return
}

// Nor past elements that are written anywhere, or a loop that writes; and what a region reads stays in front of it.
// CHECK-LABEL: func.func @others_write
func.func @others_write(%w: memref<?xf32, strided<[1]>>, %b: memref<?xbf16, strided<[1]>>, %at: tensor<128xi32, #s>, %n: i32)
    attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x = arith.constant dense<1.0> : tensor<128xf32, #s>
  // CHECK: tile.load
  // CHECK-NEXT: tile.reduce
  // CHECK-NEXT: tile.scatter
  // CHECK-NEXT: arith.addf
  %g = tile.load %w[%c0] : memref<?xf32, strided<[1]>>, i32 -> tensor<128xf32, #s>
  %sum = tile.reduce add, %x axis 0 : tensor<128xf32, #s>
  tile.scatter %x, %w[%at] {check_bounds} : tensor<128xf32, #s>, memref<?xf32, strided<[1]>>, tensor<128xi32, #s>
  %g2 = arith.addf %g, %g : tensor<128xf32, #s>
  // CHECK-NEXT: tile.load
  // CHECK-NEXT: tile.reduce
  // CHECK-NEXT: scf.for
  %h = tile.load %w[%c1] : memref<?xf32, strided<[1]>>, i32 -> tensor<128xf32, #s>
  %sum2 = tile.reduce add, %x axis 0 : tensor<128xf32, #s>
  scf.for %i = %c0 to %n step %c1 : i32 {
    tile.store %x, %w[%c1] : tensor<128xf32, #s>, memref<?xf32, strided<[1]>>, i32
  }
  %h2 = arith.addf %g2, %h : tensor<128xf32, #s>
  // CHECK: tile.load
  // CHECK-NEXT: arith.extf
  // CHECK-NEXT: tile.reduce
  // CHECK-NEXT: scf.for
  %j = tile.load %b[%c1] : memref<?xbf16, strided<[1]>>, i32 -> tensor<128xbf16, #s>
  %k = arith.extf %j : tensor<128xbf16, #s> to tensor<128xf32, #s>
  %sum3 = tile.reduce add, %x axis 0 : tensor<128xf32, #s>
  scf.for %i = %c0 to %n step %c1 : i32 {
    tile.store %k, %w[%i] : tensor<128xf32, #s>, memref<?xf32, strided<[1]>>, i32
  }
  tile.store %h2, %w[%c0] : tensor<128xf32, #s>, memref<?xf32, strided<[1]>>, i32
  return
}

// Weights that stand behind the reduction from the start may wait as well, but not those of an array that is written,
// nor where arrays may overlap.
// CHECK-LABEL: func.func @behind
func.func @behind(%w: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %x = arith.constant dense<1.0> : tensor<128xf32, #s>
  %sum = tile.reduce add, %x axis 0 : tensor<128xf32, #s>
  // CHECK: tile.load %arg0[%{{.*}}] {tile.late}
  %g = tile.load %w[%c0] : memref<?xf32, strided<[1]>>, i32 -> tensor<128xf32, #s>
  // CHECK: tile.load %arg1[%{{.*}}] :
  %h = tile.load %y[%c0] : memref<?xf32, strided<[1]>>, i32 -> tensor<128xf32, #s>
  %z = arith.addf %g, %h : tensor<128xf32, #s>
  tile.store %z, %y[%c0] : tensor<128xf32, #s>, memref<?xf32, strided<[1]>>, i32
  return
}
