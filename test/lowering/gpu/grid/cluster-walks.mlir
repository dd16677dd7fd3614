// Blocks of a cluster share the loops that walk along a row.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-resize-tiles),canonicalize,cse)' 2>%t | FileCheck %s
// RUN: FileCheck --check-prefix=REMARK %s < %t

// How long rows are is known by a launch: the record tells how to find that, in steps of a tile of 2 KB.
// REMARK: remark: 'scf.for' op walks along a row that blocks of a cluster share where it has more than 75 KB
!A = memref<?x?xf32, strided<[?, 1]>>
module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: func.func @told
  // CHECK-NOT: cluster_blocks
  // CHECK-SAME: row_share = {bytes = 2048 : i64, most = 8 : i64, room = 76800 : i64, steps = [{by = 512 : i64, plus = 511 : i64, word = 10 : i64}]}
  func.func @told(%X: !A, %Y: !A, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c512 = arith.constant 512 : i32
    %row = tile.block_id 0
    %tiles = arith.ceildivsi %n, %c512 : i32
    %zero = arith.constant dense<0.0> : tensor<1x512xf32>
    %t = scf.for %j = %c0 to %tiles step %c1 iter_args(%sum = %zero) -> (tensor<1x512xf32>) : i32 {
      %x = tile.load %X[%row, %j] padding zero : !A, i32, i32 -> tensor<1x512xf32>
      %more = arith.addf %sum, %x : tensor<1x512xf32>
      scf.yield %more : tensor<1x512xf32>
    }
    %s = tile.reduce add, %t axis 1 : tensor<1x512xf32>
    %s1 = tile.reshape %s : tensor<1xf32> -> tensor<1x1xf32>
    %sb = tile.broadcast %s1 : tensor<1x1xf32> -> tensor<1x512xf32>
    scf.for %j = %c0 to %tiles step %c1 : i32 {
      %x = tile.load %X[%row, %j] padding zero : !A, i32, i32 -> tensor<1x512xf32>
      %y = arith.subf %x, %sb : tensor<1x512xf32>
      tile.store %y, %Y[%row, %j] : tensor<1x512xf32>, !A, i32, i32
    }
    return
  }
}

// -----

// A launch with long rows takes the variant with the hint. Iteration i of a block is number i * 2 + part of all; what a
// loop around others carries goes through these.
// REMARK: remark: 'scf.for' op walks along a row that 2 blocks of a cluster share
!A = memref<?x?xf32, strided<[?, 1]>>
module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: func.func @shared
  // CHECK-SAME: cluster_blocks = 2 : i32, grid_scale = array<i32: 2, 1, 1>, no_alias = [{array = {bits = 32 : i32, rank = 2 : i32, word = 0 : i32}, or_same = 0 : i32
  // CHECK: %[[B:.*]] = tile.block_id 0
  // CHECK: %[[PART:.*]] = arith.remui %[[B]], %c2_i32
  // CHECK: scf.for %[[I:.*]] = %c0_i32 to %c8_i32 step
  // CHECK: %[[TWICE:.*]] = arith.muli %[[I]], %c2_i32
  // CHECK: %[[C:.*]] = arith.addi %[[TWICE]], %[[PART]]
  // CHECK: scf.for %[[J:.*]] = %c0_i32 to %arg2 step
  // CHECK: tile.load %arg0[%[[C]], %[[J]]]
  // CHECK: tile.reduce max, %{{.*}} axis 1 {tile.across = 2 : i32} : tensor<1x512xf32>
  // CHECK: scf.for %{{.*}} = %c0_i32 to %c8_i32 step
  // CHECK: tile.store
  func.func @shared(%X: !A, %Y: !A, %n: i32) attributes {tile.kernel, tile.hints = {num_ctas = 2 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c16 = arith.constant 16 : i32
    %low = arith.constant dense<-1.0e30> : tensor<1x512xf32>
    %t = scf.for %c = %c0 to %c16 step %c1 iter_args(%most = %low) -> (tensor<1x512xf32>) : i32 {
      %u = scf.for %j = %c0 to %n step %c1 iter_args(%m = %most) -> (tensor<1x512xf32>) : i32 {
        %x = tile.load %X[%c, %j] padding zero : !A, i32, i32 -> tensor<1x512xf32>
        %more = arith.maximumf %m, %x : tensor<1x512xf32>
        scf.yield %more : tensor<1x512xf32>
      }
      scf.yield %u : tensor<1x512xf32>
    }
    %s = tile.reduce max, %t axis 1 : tensor<1x512xf32>
    %s1 = tile.reshape %s : tensor<1xf32> -> tensor<1x1xf32>
    %sb = tile.broadcast %s1 : tensor<1x1xf32> -> tensor<1x512xf32>
    scf.for %c = %c0 to %c16 step %c1 : i32 {
      scf.for %j = %c0 to %n step %c1 : i32 {
        %x = tile.load %X[%c, %j] padding zero : !A, i32, i32 -> tensor<1x512xf32>
        %y = arith.subf %x, %sb : tensor<1x512xf32>
        tile.store %y, %Y[%c, %j] : tensor<1x512xf32>, !A, i32, i32
      }
    }
    return
  }
}

// -----

// Of rows whose length is known, as many blocks as leave a multiprocessor room for three: 128 tiles of 2 KB are for four.
!A = memref<?x?xf32, strided<[?, 1]>>
module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: func.func @known
  // CHECK-SAME: cluster_blocks = 4 : i32
  // CHECK: scf.for %{{.*}} = %c0_i32 to %c32_i32 step
  func.func @known(%X: !A, %Y: !A, %S: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c128 = arith.constant 128 : i32
    %row = tile.block_id 0
    %zero = arith.constant dense<0.0> : tensor<1x512xf32>
    %t = scf.for %j = %c0 to %c128 step %c1 iter_args(%sum = %zero) -> (tensor<1x512xf32>) : i32 {
      %x = tile.load %X[%row, %j] padding zero : !A, i32, i32 -> tensor<1x512xf32>
      %more = arith.addf %sum, %x : tensor<1x512xf32>
      scf.yield %more : tensor<1x512xf32>
    }
    %s = tile.reduce add, %t axis 1 : tensor<1x512xf32>
    scf.for %j = %c0 to %c128 step %c1 : i32 {
      %x = tile.load %X[%row, %j] padding zero : !A, i32, i32 -> tensor<1x512xf32>
      tile.store %x, %Y[%row, %j] : tensor<1x512xf32>, !A, i32, i32
    }
    tile.store %s, %S[%row] : tensor<1xf32>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

// Alternating signs depend on the order.
// REMARK: remark: 'scf.for' op walks along a row that one block has, however long it is: a loop carries what is no sum, greatest or least of tiles, or not reduced behind it
!A = memref<?x?xf32, strided<[?, 1]>>
module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: func.func @ordered
  // CHECK-NOT: cluster_blocks
  // CHECK-NOT: row_share
  func.func @ordered(%X: !A, %Y: !A, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %row = tile.block_id 0
    %zero = arith.constant dense<0.0> : tensor<1x512xf32>
    %t = scf.for %j = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<1x512xf32>) : i32 {
      %x = tile.load %X[%row, %j] padding zero : !A, i32, i32 -> tensor<1x512xf32>
      %more = arith.subf %sum, %x : tensor<1x512xf32>
      scf.yield %more : tensor<1x512xf32>
    }
    %s = tile.reduce add, %t axis 1 : tensor<1x512xf32>
    %s1 = tile.reshape %s : tensor<1xf32> -> tensor<1x1xf32>
    %sb = tile.broadcast %s1 : tensor<1x1xf32> -> tensor<1x512xf32>
    scf.for %j = %c0 to %n step %c1 : i32 {
      %x = tile.load %X[%row, %j] padding zero : !A, i32, i32 -> tensor<1x512xf32>
      %y = arith.subf %x, %sb : tensor<1x512xf32>
      tile.store %y, %Y[%row, %j] : tensor<1x512xf32>, !A, i32, i32
    }
    return
  }
}

// -----

// What blocks store to one place is that of the last one.
// REMARK: remark: 'scf.for' op walks along a row that one block has, however long it is: a block may read or write what another one writes
!A = memref<?x?xf32, strided<[?, 1]>>
module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: func.func @last
  // CHECK-NOT: cluster_blocks
  // CHECK-NOT: row_share
  func.func @last(%X: !A, %Y: !A, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %row = tile.block_id 0
    %zero = arith.constant dense<0.0> : tensor<1x512xf32>
    %t = scf.for %j = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<1x512xf32>) : i32 {
      %x = tile.load %X[%row, %j] padding zero : !A, i32, i32 -> tensor<1x512xf32>
      %more = arith.addf %sum, %x : tensor<1x512xf32>
      scf.yield %more : tensor<1x512xf32>
    }
    %s = tile.reduce add, %t axis 1 : tensor<1x512xf32>
    %s1 = tile.reshape %s : tensor<1xf32> -> tensor<1x1xf32>
    %sb = tile.broadcast %s1 : tensor<1x1xf32> -> tensor<1x512xf32>
    scf.for %j = %c0 to %n step %c1 : i32 {
      %x = tile.load %X[%row, %j] padding zero : !A, i32, i32 -> tensor<1x512xf32>
      %y = arith.subf %x, %sb : tensor<1x512xf32>
      tile.store %y, %Y[%row, %c0] : tensor<1x512xf32>, !A, i32, i32
    }
    return
  }
}

// -----

// In place, a block would have to read before another one writes.
// REMARK: remark: 'scf.for' op walks along a row that one block has, however long it is: a block may read or write what another one writes
!A = memref<?x?xf32, strided<[?, 1]>>
module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: func.func @in_place
  // CHECK-NOT: cluster_blocks
  // CHECK-NOT: row_share
  func.func @in_place(%X: !A, %Y: !A, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %row = tile.block_id 0
    %zero = arith.constant dense<0.0> : tensor<1x512xf32>
    %t = scf.for %j = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<1x512xf32>) : i32 {
      %x = tile.load %X[%row, %j] padding zero : !A, i32, i32 -> tensor<1x512xf32>
      %more = arith.addf %sum, %x : tensor<1x512xf32>
      scf.yield %more : tensor<1x512xf32>
    }
    %s = tile.reduce add, %t axis 1 : tensor<1x512xf32>
    %s1 = tile.reshape %s : tensor<1xf32> -> tensor<1x1xf32>
    %sb = tile.broadcast %s1 : tensor<1x1xf32> -> tensor<1x512xf32>
    scf.for %j = %c0 to %n step %c1 : i32 {
      %x = tile.load %X[%row, %j] padding zero : !A, i32, i32 -> tensor<1x512xf32>
      %y = arith.subf %x, %sb : tensor<1x512xf32>
      tile.store %y, %X[%row, %j] : tensor<1x512xf32>, !A, i32, i32
    }
    return
  }
}
