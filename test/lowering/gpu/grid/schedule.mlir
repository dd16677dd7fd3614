// What each plan of a grid becomes: a plan written by hand, and a kernel that only stores.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-persistent-loop),canonicalize,cse)' | FileCheck %s

!C = memref<?x?xf32, strided<[?, 1]>>

// The hardware's blocks, axis 1 first; no loop. Where a program asks for it, the extents are exchanged, too.
// CHECK-LABEL: func.func @exchanged
// CHECK-SAME: exchanged_axes = 1 : i32
// CHECK-NOT: scf.for
// CHECK-DAG: %[[X:.*]] = tile.num_blocks 0
// CHECK-DAG: %[[Y:.*]] = tile.num_blocks 1
// CHECK-DAG: %[[EXCHANGED:.*]] = arith.cmpi ule, %[[X]], %c65535_i32
// CHECK-DAG: arith.select %[[EXCHANGED]], %[[Y]], %[[X]]
// CHECK: tile.store
func.func @exchanged(%z: !C) attributes {tile.kernel, tile.grid = {raster = array<i32: 1, 0, 2>, schedule = "launch"}} {
  %zero = arith.constant dense<0.0> : tensor<8x8xf32>
  %c1 = arith.constant 1 : i32
  %i = tile.block_id 0
  %j = tile.block_id 1
  %n = tile.num_blocks 0
  %last = arith.subi %n, %c1 : i32
  %turned = arith.subi %last, %i : i32
  tile.store %zero, %z[%turned, %j] : tensor<8x8xf32>, !C, i32, i32
  return
}

// -----

!C = memref<?x?xf32, strided<[?, 1]>>

// Blocks of a cluster lie along the axis that is started first: their numbers are divided.
// CHECK-LABEL: func.func @launch
// CHECK-NOT: exchanged_axes
// CHECK-NOT: scf.for
// CHECK-DAG: %[[COLUMNS:.*]] = tile.num_blocks 1
// CHECK-DAG: arith.divui %{{.*}}, %[[COLUMNS]]
// CHECK: tile.store
func.func @launch(%z: !C) attributes {tile.kernel, tile.launch = {cluster_blocks = 2 : i32}, tile.grid = {raster = array<i32: 1, 0, 2>, schedule = "launch"}} {
  %zero = arith.constant dense<0.0> : tensor<8x8xf32>
  %i = tile.block_id 0
  %j = tile.block_id 1
  tile.store %zero, %z[%i, %j] : tensor<8x8xf32>, !C, i32, i32
  return
}

// -----

!C = memref<?x?xf32, strided<[?, 1]>>

// Every so many-th number; in groups of four rows.
// CHECK-LABEL: func.func @static
// CHECK-SAME: %[[X:[^:]*]]: i32, %[[Y:[^:]*]]: i32, %[[Z:[^:]*]]: i32)
// CHECK-SAME: persistent = 1 : i32
// CHECK-DAG: %[[XY:.*]] = arith.muli %[[X]], %[[Y]]
// CHECK-DAG: %[[ALL:.*]] = arith.muli %[[XY]], %[[Z]]
// CHECK-DAG: arith.remui %[[X]], %c4_i32
// CHECK-DAG: %[[FIRST:.*]] = tile.block_id 0
// CHECK-DAG: %[[STEP:.*]] = tile.num_blocks 0
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[ALL]] step %[[STEP]]
// CHECK: tile.store
// CHECK: } {tile.persistent}
func.func @static(%z: !C) attributes {tile.kernel, tile.grid = {raster = array<i32: 0, 1, 2>, group = 4 : i32, schedule = "static"}} {
  %zero = arith.constant dense<0.0> : tensor<8x8xf32>
  %i = tile.block_id 0
  %j = tile.block_id 1
  tile.store %zero, %z[%i, %j] : tensor<8x8xf32>, !C, i32, i32
  return
}

// -----

!C = memref<?x?xf32, strided<[?, 1]>>

// Two blocks take a number, half as many numbers are along axis 1; the second one stores beyond every array at the end
// of an odd number of blocks.
// CHECK-LABEL: func.func @clusters
// CHECK-SAME: %[[X:[^:]*]]: i32, %[[Y:[^:]*]]: i32, %[[Z:[^:]*]]: i32)
// CHECK-SAME: cluster_blocks = 2 : i32
// CHECK-DAG: %[[MORE:.*]] = arith.addi %[[Y]], %c1_i32
// CHECK-DAG: arith.divui %[[MORE]], %c2_i32
// CHECK-DAG: %[[ID:.*]] = tile.block_id 0
// CHECK-DAG: %[[FIRST:.*]] = arith.divui %[[ID]], %c2_i32
// CHECK: scf.for %{{.*}} = %[[FIRST]] to
// CHECK: %[[SECOND:.*]] = arith.andi %[[ID]], %c1_i32
// CHECK: %[[J:.*]] = arith.addi %{{.*}}, %[[SECOND]]
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt, %[[J]], %[[Y]]
// CHECK: arith.select %[[INSIDE]], %[[J]], %c268435455_i32
func.func @clusters(%z: !C) attributes {tile.kernel, tile.grid = {raster = array<i32: 0, 1, 2>, group = 8 : i32, schedule = "static", cluster_axis = 1 : i32}} {
  %zero = arith.constant dense<0.0> : tensor<8x8xf32>
  %i = tile.block_id 0
  %j = tile.block_id 1
  tile.store %zero, %z[%j, %i] : tensor<8x8xf32>, !C, i32, i32
  return
}

// -----

!C = memref<?x?xf32, strided<[?, 1]>>

// Along axis 1, which numbers count last: the longest are the last ones.
// CHECK-LABEL: func.func @serpentine
// CHECK-SAME: %[[X:[^:]*]]: i32, %[[Y:[^:]*]]: i32, %[[Z:[^:]*]]: i32)
// CHECK-DAG: %[[STEP:.*]] = tile.num_blocks 0
// CHECK-DAG: arith.divui %c-1_i32, %[[STEP]]
// CHECK: scf.for
// CHECK: arith.cmpi eq, %{{.*}}, %c1_i32
// CHECK: %[[LAST:.*]] = arith.subi %[[Y]], %c1_i32
// CHECK: %[[J:.*]] = arith.subi %[[LAST]], %{{.*}}
// CHECK: tile.store %{{.*}}, %arg0[%{{.*}}, %[[J]]]
// CHECK: } {tile.persistent}
func.func @serpentine(%z: !C) attributes {tile.kernel, tile.grid = {raster = array<i32: 0, 1, 2>, schedule = "serpentine", work_axis = 1 : i32, work_grows}} {
  %zero = arith.constant dense<0.0> : tensor<8x8xf32>
  %i = tile.block_id 0
  %j = tile.block_id 1
  tile.store %zero, %z[%i, %j] : tensor<8x8xf32>, !C, i32, i32
  return
}

// -----

!C = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: func.func @dynamic
// CHECK: scf.for
// CHECK: } {tile.dynamic_schedule, tile.persistent}
// CHECK-LABEL: func.func @longest_first
// CHECK: tile.num_blocks 0
// CHECK: arith.minui
// CHECK: scf.for %[[V:[^ ]*]] =
// CHECK: arith.subi %{{.*}}, %[[V]]
// CHECK: } {tile.dynamic_schedule, tile.persistent}
func.func @dynamic(%z: !C) attributes {tile.kernel, tile.grid = {raster = array<i32: 0, 1, 2>, schedule = "dynamic"}} {
  %zero = arith.constant dense<0.0> : tensor<8x8xf32>
  %i = tile.block_id 0
  tile.store %zero, %z[%i, %i] : tensor<8x8xf32>, !C, i32, i32
  return
}
func.func @longest_first(%z: !C) attributes {tile.kernel, tile.grid = {raster = array<i32: 0, 1, 2>, schedule = "dynamic", work_axis = 2 : i32}} {
  %zero = arith.constant dense<0.0> : tensor<8x8xf32>
  %i = tile.block_id 2
  tile.store %zero, %z[%i, %i] : tensor<8x8xf32>, !C, i32, i32
  return
}
