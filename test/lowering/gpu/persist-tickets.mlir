// Blocks that take tickets (the hint `tickets`) go through their numbers as they are, the longest first.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-select-wgmma,tile-persist,tile-split-k),canonicalize,cse)' 2>/dev/null | FileCheck %s
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-select-wgmma,tile-persist,tile-split-k),canonicalize,cse)' 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: remark: 'func.func' op is persistent: the blocks that fit on the GPU take those of the grid as they get done, those with the longest loops first
// REMARK: remark: 'func.func' op computes each sum over k in one block: its blocks take tickets
// REMARK: remark: 'func.func' op is persistent: the blocks that fit on the GPU take those of the grid as they get done{{$}}

!A = memref<?x?xbf16, strided<[?, 1]>>

// Heads are along axes 1 and 2. Of as many as two rounds of blocks have, each column is walked before the next one, and
// all that backwards, from the last column on, which has the most to do.
// CHECK-LABEL: func.func @causal
// CHECK-SAME: %[[COLUMNS:[^:]*]]: i32, %[[Y:[^:]*]]: i32, %[[Z:[^:]*]]: i32)
// CHECK-DAG: %[[ROWS:.*]] = arith.muli %[[Y]], %[[Z]]
// CHECK-DAG: %[[BLOCKS:.*]] = tile.num_blocks 0
// CHECK-DAG: %[[TWICE:.*]] = arith.muli %[[BLOCKS]], %c2
// CHECK-DAG: %[[WANTED:.*]] = arith.ceildivui %[[TWICE]], %[[COLUMNS]]
// CHECK-DAG: %[[HEIGHT:.*]] = arith.minui %[[WANTED]], %[[ROWS]]
// CHECK-DAG: arith.remui %[[ROWS]], %[[HEIGHT]]
// CHECK-DAG: %[[TOTAL:.*]] = arith.muli %[[COLUMNS]], %[[ROWS]]
// CHECK: scf.for %[[V:.*]] = %{{.*}} to %[[TOTAL]]
// CHECK: %[[LAST:.*]] = arith.subi %[[TOTAL]], %c1
// CHECK: %[[NUMBER:.*]] = arith.subi %[[LAST]], %[[V]]
// CHECK: arith.extui %[[NUMBER]]
// CHECK: } {tile.persistent, tile.tickets}
module attributes {tile.target = "sm_90a", tile.num_warps = 4 : i32, tile.tickets = 1 : i32, tile.split_k = 2 : i32} {
  func.func @causal(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.block_id 0
    %h = tile.block_id 1
    %d = scf.for %k = %c0 to %i step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %b = tile.load %y[%k, %h] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %e = tile.mma %a, %b, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    }
    tile.store %d, %z[%i, %h] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// How long the loop is stands in memory: without tickets such blocks are left to the hardware.
// CHECK-LABEL: func.func @lengths
// CHECK: scf.for
// CHECK: } {tile.persistent, tile.tickets}
module attributes {tile.target = "sm_90a", tile.num_warps = 4 : i32, tile.tickets = 1 : i32} {
  func.func @lengths(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %l: memref<?xi32, strided<[1]>>, %z: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.block_id 0
    %h = tile.block_id 1
    %n = tile.gather %l[%i] : memref<?xi32, strided<[1]>>, i32 -> i32
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %b = tile.load %y[%k, %h] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %e = tile.mma %a, %b, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    }
    tile.store %d, %z[%i, %h] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
