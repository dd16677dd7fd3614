// Rows that almost fill their tiles are compared with the array's end in the last part only.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-cache-tiles))' | FileCheck %s

#r = #tile.linear<register = [[0, 32], [0, 64], [0, 128], [0, 256], [0, 512]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]]>
#c = #tile.linear<register = [[32], [64], [128], [256], [512]], lane = [[1], [2], [4], [8], [16]]>
#v = #tile.linear<register = [[1], [2], [4], [256], [512]], lane = [[8], [16], [32], [64], [128]]>
#few = #tile.linear<register = [[32], [64], [128]], lane = [[1], [2], [4], [8], [16]]>
!A = memref<?x?xbf16, strided<[?, 1]>>
!W = memref<?xbf16, strided<[1]>>

// The branch is for arrays that have the block's row and 896 columns, and for masks that end no earlier. What is made
// in front of the tiles is made once.
// CHECK-LABEL: func.func @row
// CHECK: %[[ROW:.*]] = tile.block_id 0
// CHECK: %[[ROWS:.*]] = tile.dim %arg0, 0
// CHECK: %[[LEFT:.*]] = arith.subi %[[ROWS]], %[[ROW]]
// CHECK: arith.cmpi sge, %[[LEFT]], %c1_i32
// CHECK: %[[COLUMNS:.*]] = tile.dim %arg0, 1
// CHECK: arith.cmpi sge, %[[COLUMNS]], %c896_i32
// CHECK: arith.cmpi sge, %arg1, %c896_i32
// CHECK: %[[MOST:.*]] = arith.andi
// CHECK: scf.if %[[MOST]]
// CHECK: %[[END:.*]] = arith.maxsi %arg1, %c896_i32
// CHECK: tensor.splat %[[END]]
// CHECK: tile.load %arg0[{{.*}}] padding zero {tile.sure = array<i64: 1, 896>}
// CHECK: tile.store {{.*}} {tile.sure = array<i64: 1, 896>}
// CHECK: } else {
// CHECK: tensor.splat %arg1
// CHECK: tile.load %arg0[{{.*}}] padding zero :
// CHECK-NOT: tile.sure
// CHECK: return
func.func @row(%a: !A {tile.align = 16 : i32}, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %zeros = arith.constant dense<0.0> : tensor<1024xbf16, #c>
  %row = tile.block_id 0
  %i = tile.iota : tensor<1024xi32, #c>
  %s = tensor.splat %n : tensor<1024xi32, #c>
  %m = arith.cmpi slt, %i, %s : tensor<1024xi32, #c>
  %x = tile.load %a[%row, %c0] padding zero : !A, i32, i32 -> tensor<1x1024xbf16, #r>
  %y = tile.reshape %x : tensor<1x1024xbf16, #r> -> tensor<1024xbf16, #c>
  %z = arith.select %m, %y, %zeros : tensor<1024xi1, #c>, tensor<1024xbf16, #c>
  %t = tile.reshape %z : tensor<1024xbf16, #c> -> tensor<1x1024xbf16, #r>
  tile.store %t, %a[%row, %c0] : tensor<1x1024xbf16, #r>, !A, i32, i32
  return
}

// Vectors, few accesses, what nobody compares, and tiles in a loop stay as they are.
// CHECK-LABEL: func.func @vectors
// CHECK-NOT: scf.if
func.func @vectors(%w: !W {tile.align = 16 : i32, tile.shape_div = array<i64: 16>}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %x = tile.load %w[%c0] padding zero : !W, i32 -> tensor<1024xbf16, #v>
  tile.store %x, %w[%c0] : tensor<1024xbf16, #v>, !W, i32
  return
}
// Blocks of a cluster may be at different parts of a row, and all come to its maximum: there is one branch for all.
// CHECK-LABEL: func.func @cluster
// CHECK-NOT: scf.if
func.func @cluster(%a: !A {tile.align = 16 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %row = tile.block_id 0
  %x = tile.load %a[%row, %c0] padding zero : !A, i32, i32 -> tensor<1x1024xbf16, #r>
  %y = tile.reshape %x : tensor<1x1024xbf16, #r> -> tensor<1024xbf16, #c>
  %m = tile.reduce max, %y axis 0 {tile.across = 2 : i32} : tensor<1024xbf16, #c>
  %s = tensor.splat %m : tensor<1x1024xbf16, #r>
  %z = arith.subf %x, %s : tensor<1x1024xbf16, #r>
  tile.store %z, %a[%row, %c0] : tensor<1x1024xbf16, #r>, !A, i32, i32
  return
}
// CHECK-LABEL: func.func @few
// CHECK-NOT: scf.if
func.func @few(%w: !W) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %x = tile.load %w[%c0] padding zero : !W, i32 -> tensor<256xbf16, #few>
  tile.store %x, %w[%c0] : tensor<256xbf16, #few>, !W, i32
  return
}
// CHECK-LABEL: func.func @in_bounds
// CHECK-NOT: scf.if
func.func @in_bounds(%w: !W) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %x = tile.load %w[%c0] padding zero {tile.in_bounds} : !W, i32 -> tensor<1024xbf16, #c>
  tile.store %x, %w[%c0] {tile.in_bounds} : tensor<1024xbf16, #c>, !W, i32
  return
}
// CHECK-LABEL: func.func @loop
// CHECK-NOT: scf.if
func.func @loop(%w: !W, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %j = %c0 to %n step %c1 : i32 {
    %x = tile.load %w[%j] padding zero : !W, i32 -> tensor<1024xbf16, #c>
    tile.store %x, %w[%j] : tensor<1024xbf16, #c>, !W, i32
  }
  return
}

// A tile whose first element may have no number of 32 bits is compared as before.
// CHECK-LABEL: func.func @far
// CHECK-NOT: scf.if
func.func @far(%w: !W) attributes {tile.kernel} {
  %j = tile.block_id 0
  %x = tile.load %w[%j] padding zero : !W, i32 -> tensor<1024xbf16, #c>
  tile.store %x, %w[%j] : tensor<1024xbf16, #c>, !W, i32
  return
}
