// Blocks of a cluster share rows that leave a multiprocessor no room for others.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-resize-tiles),canonicalize,cse)' 2>%t | FileCheck %s
// RUN: FileCheck --check-prefix=REMARK %s < %t

// A softmax: both reductions go across the two blocks; whole rows of the array are %b / 2, halves %b % 2.
// REMARK: remark: 'tile.reduce' op is of a tile of 1x65536xf32, which 2 blocks share: a multiprocessor has room for several slices
module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: func.func @softmax
  // CHECK-SAME: cluster_blocks = 2 : i32
  // CHECK-SAME: grid_scale = array<i32: 2, 1, 1>
  // CHECK-SAME: no_alias = [{array = {bits = 16 : i32, rank = 2 : i32, word = 0 : i32}, or_same = 1 : i32, other = {bits = 16 : i32, rank = 2 : i32, word = 5 : i32}}]
  func.func @softmax(%X: memref<?x?xbf16, strided<[?, 1]>>, %Y: memref<?x?xbf16, strided<[?, 1]>>) attributes {tile.kernel} {
    // CHECK: %[[B:.*]] = tile.block_id 0
    // CHECK-NEXT: %[[PART:.*]] = arith.remui %[[B]], %c2_i32
    // CHECK-NEXT: %[[ROW:.*]] = arith.divui %[[B]], %c2_i32
    %c0 = arith.constant 0 : i32
    %row = tile.block_id 0
    // CHECK-NEXT: tile.load %arg0[%[[ROW]], %[[PART]]] {{.*}} -> tensor<1x32768xbf16>
    %x = tile.load %X[%row, %c0] padding neg_inf : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 -> tensor<1x65536xbf16>
    %f = arith.extf %x : tensor<1x65536xbf16> to tensor<1x65536xf32>
    // CHECK: tile.reduce max, %{{.*}} axis 1 {tile.across = 2 : i32} : tensor<1x32768xf32>
    %m = tile.reduce max, %f axis 1 : tensor<1x65536xf32>
    %m1 = tile.reshape %m : tensor<1xf32> -> tensor<1x1xf32>
    %mb = tile.broadcast %m1 : tensor<1x1xf32> -> tensor<1x65536xf32>
    %d = arith.subf %f, %mb : tensor<1x65536xf32>
    %e = math.exp %d : tensor<1x65536xf32>
    // CHECK: tile.reduce add, %{{.*}} axis 1 {tile.across = 2 : i32} : tensor<1x32768xf32>
    %s = tile.reduce add, %e axis 1 : tensor<1x65536xf32>
    %s1 = tile.reshape %s : tensor<1xf32> -> tensor<1x1xf32>
    %sb = tile.broadcast %s1 : tensor<1x1xf32> -> tensor<1x65536xf32>
    %q = arith.divf %e, %sb : tensor<1x65536xf32>
    %y = arith.truncf %q : tensor<1x65536xf32> to tensor<1x65536xbf16>
    // CHECK: tile.store %{{.*}}, %arg1[%[[ROW]], %[[PART]]] : tensor<1x32768xbf16>
    tile.store %y, %Y[%row, %c0] : tensor<1x65536xbf16>, memref<?x?xbf16, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

// In place, each block keeps to its part, and no other array may matter. Along the second axis of the grid; what counts
// along the row counts from the part; a result of the row is stored by all.
module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: func.func @in_place
  // CHECK-SAME: cluster_blocks = 4 : i32
  // CHECK-SAME: no_alias = [{array = {bits = 32 : i32, rank = 2 : i32, word = 0 : i32}, or_same = 0 : i32, other = {bits = 32 : i32, rank = 1 : i32, word = 5 : i32}}]
  func.func @in_place(%X: memref<?x?xf32, strided<[?, 1]>>, %S: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
    // CHECK: %[[B:.*]] = tile.block_id 0
    // CHECK-NEXT: %[[PART:.*]] = arith.remui %[[B]], %c4_i32
    // CHECK: %[[ROW:.*]] = tile.block_id 1
    %c0 = arith.constant 0 : i32
    %row = tile.block_id 1
    // CHECK: tile.load %arg0[%[[ROW]], %[[PART]]] : {{.*}} -> tensor<1x16384xf32>
    %x = tile.load %X[%row, %c0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<1x65536xf32>
    // CHECK: tile.iota : tensor<16384xi32>
    // CHECK: arith.muli %[[PART]], %c16384_i32
    %i = tile.iota : tensor<65536xi32>
    %i1 = tile.reshape %i : tensor<65536xi32> -> tensor<1x65536xi32>
    %fi = arith.sitofp %i1 : tensor<1x65536xi32> to tensor<1x65536xf32>
    %z = arith.mulf %x, %fi : tensor<1x65536xf32>
    %s = tile.reduce add, %z axis 1 : tensor<1x65536xf32>
    %s1 = tile.reshape %s : tensor<1xf32> -> tensor<1x1xf32>
    %sb = tile.broadcast %s1 : tensor<1x1xf32> -> tensor<1x65536xf32>
    %y = arith.divf %x, %sb : tensor<1x65536xf32>
    tile.store %y, %X[%row, %c0] : tensor<1x65536xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    // CHECK: tile.store %{{.*}}, %arg1[%[[ROW]]] : tensor<1xf32>
    tile.store %s, %S[%row] : tensor<1xf32>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

// A row that nothing reads again is not kept, and need not be shared; nor one of which three fit.
module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: func.func @sum
  // CHECK-NOT: cluster_blocks
  func.func @sum(%X: memref<?x?xf32, strided<[?, 1]>>, %S: memref<?xf32, strided<[1]>>, %T: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %row = tile.block_id 0
    %x = tile.load %X[%row, %c0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<1x65536xf32>
    %s = tile.reduce add, %x axis 1 : tensor<1x65536xf32>
    %m = tile.reduce max, %x axis 1 : tensor<1x65536xf32>
    %d = arith.divf %s, %m : tensor<1xf32>
    tile.store %d, %S[%row] : tensor<1xf32>, memref<?xf32, strided<[1]>>, i32
    %z = tile.load %T[%row, %c0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<1x16384xf32>
    %zs = tile.reduce add, %z axis 1 : tensor<1x16384xf32>
    %z1 = tile.reshape %zs : tensor<1xf32> -> tensor<1x1xf32>
    %zb = tile.broadcast %z1 : tensor<1x1xf32> -> tensor<1x16384xf32>
    %y = arith.divf %z, %zb : tensor<1x16384xf32>
    tile.store %y, %T[%row, %c0] : tensor<1x16384xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

// Indices count from the row's begin; a scan wants what is before; a reduction in a loop, and one block reads what
// another one has written: whole rows.
// REMARK: remark: 'tile.reduce' op is of a tile of 1x65536xf32, which one block has: a reduction is in a loop or branch, gives indices or small integers, or many results
module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: func.func @indices
  // CHECK-NOT: cluster_blocks
  func.func @indices(%X: memref<?x?xf32, strided<[?, 1]>>, %Y: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %row = tile.block_id 0
    %x = tile.load %X[%row, %c0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<1x65536xf32>
    %i = tile.reduce argmax, %x axis 1 : tensor<1x65536xf32>
    %f = arith.sitofp %i : tensor<1xi32> to tensor<1xf32>
    %f1 = tile.reshape %f : tensor<1xf32> -> tensor<1x1xf32>
    %fb = tile.broadcast %f1 : tensor<1x1xf32> -> tensor<1x65536xf32>
    %y = arith.divf %x, %fb : tensor<1x65536xf32>
    tile.store %y, %Y[%row, %c0] : tensor<1x65536xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

// REMARK: remark: 'tile.reduce' op is of a tile of 1x65536xf32, which one block has: a scan runs along the axis
module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: func.func @scan
  // CHECK-NOT: cluster_blocks
  func.func @scan(%X: memref<?x?xf32, strided<[?, 1]>>, %Y: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %row = tile.block_id 0
    %x = tile.load %X[%row, %c0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<1x65536xf32>
    %s = tile.reduce add, %x axis 1 : tensor<1x65536xf32>
    %s1 = tile.reshape %s : tensor<1xf32> -> tensor<1x1xf32>
    %sb = tile.broadcast %s1 : tensor<1x1xf32> -> tensor<1x65536xf32>
    %y = arith.divf %x, %sb : tensor<1x65536xf32>
    %z = tile.scan add, %y axis 1 : tensor<1x65536xf32>
    tile.store %z, %Y[%row, %c0] : tensor<1x65536xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

// REMARK: remark: 'tile.reduce' op is of a tile of 1x65536xf32, which one block has: a block may read or write what another one writes
module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: func.func @overlapping
  // CHECK-NOT: cluster_blocks
  func.func @overlapping(%X: memref<?x?xf32, strided<[?, 1]>>, %Y: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.hints = {may_alias}} {
    %c0 = arith.constant 0 : i32
    %row = tile.block_id 0
    %x = tile.load %X[%row, %c0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<1x65536xf32>
    %s = tile.reduce add, %x axis 1 : tensor<1x65536xf32>
    %s1 = tile.reshape %s : tensor<1xf32> -> tensor<1x1xf32>
    %sb = tile.broadcast %s1 : tensor<1x1xf32> -> tensor<1x65536xf32>
    %y = arith.divf %x, %sb : tensor<1x65536xf32>
    tile.store %y, %Y[%row, %c0] : tensor<1x65536xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

// The hints: no clusters, or of at most two blocks.
module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: func.func @alone
  // CHECK-NOT: cluster_blocks
  func.func @alone(%X: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.hints = {num_ctas = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %row = tile.block_id 0
    %x = tile.load %X[%row, %c0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<1x65536xf32>
    %s = tile.reduce add, %x axis 1 : tensor<1x65536xf32>
    %s1 = tile.reshape %s : tensor<1xf32> -> tensor<1x1xf32>
    %sb = tile.broadcast %s1 : tensor<1x1xf32> -> tensor<1x65536xf32>
    %y = arith.divf %x, %sb : tensor<1x65536xf32>
    tile.store %y, %X[%row, %c0] : tensor<1x65536xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

module attributes {tile.target = "sm_90a"} {
  func.func @two(%X: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.hints = {num_ctas = 2 : i32}} {
    %c0 = arith.constant 0 : i32
    %row = tile.block_id 0
    %x = tile.load %X[%row, %c0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<1x65536xf32>
    %s = tile.reduce add, %x axis 1 : tensor<1x65536xf32>
    %s1 = tile.reshape %s : tensor<1xf32> -> tensor<1x1xf32>
    %sb = tile.broadcast %s1 : tensor<1x1xf32> -> tensor<1x65536xf32>
    %y = arith.divf %x, %sb : tensor<1x65536xf32>
    tile.store %y, %X[%row, %c0] : tensor<1x65536xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// CHECK: cluster_blocks = 2 : i32
// -----

// No clusters before sm_90.
module attributes {tile.target = "sm_80"} {
  // CHECK-LABEL: func.func @ampere
  // CHECK-NOT: cluster_blocks
  func.func @ampere(%X: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %row = tile.block_id 0
    %x = tile.load %X[%row, %c0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<1x65536xf32>
    %s = tile.reduce add, %x axis 1 : tensor<1x65536xf32>
    %s1 = tile.reshape %s : tensor<1xf32> -> tensor<1x1xf32>
    %sb = tile.broadcast %s1 : tensor<1x1xf32> -> tensor<1x65536xf32>
    %y = arith.divf %x, %sb : tensor<1x65536xf32>
    tile.store %y, %X[%row, %c0] : tensor<1x65536xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
