// Blocks with unequal work are scheduled dynamically, the longest first where that is known; if they gather, or are equal, on demand.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-plan-grid,tile-persistent-loop,tile-split-k),canonicalize,cse)' 2>/dev/null | FileCheck %s
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-plan-grid,tile-persistent-loop,tile-split-k),canonicalize,cse)' 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: remark: 'func.func' op is persistent: one wave of blocks, each fetches its next tile when it finishes one, the longest loops first
// REMARK: remark: 'func.func' op computes each sum over k in one block: its blocks are scheduled dynamically
// REMARK: remark: 'func.func' op is persistent: one wave of blocks, each fetches its next tile when it finishes one{{$}}

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
// CHECK: } {tile.dynamic_schedule, tile.persistent}
module attributes {tile.target = "sm_90a"} {
  func.func @causal(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32, split_k = 2 : i32}} {
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

// How long the loop is stands in memory.
// CHECK-LABEL: func.func @lengths
// CHECK: scf.for
// CHECK: } {tile.dynamic_schedule, tile.persistent}
module attributes {tile.target = "sm_90a"} {
  func.func @lengths(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %l: memref<?xi32, strided<[1]>>, %z: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
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

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// All have as much to do: on demand only.
// CHECK-LABEL: func.func @even
// CHECK: } {tile.dynamic_schedule, tile.persistent}
module attributes {tile.target = "sm_90a"} {
  func.func @even(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %n: i32, %z: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32, dynamic_schedule = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.block_id 0
    %h = tile.block_id 1
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

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Four warps of a producer would take them: to and fro.
// CHECK-LABEL: func.func @gathers
// CHECK-NOT: tile.dynamic_schedule
// CHECK: } {tile.persistent}
module attributes {tile.target = "sm_90a"} {
  func.func @gathers(%x: !A {tile.tma, tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %l: memref<?xi32, strided<[1]>>, %z: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %i = tile.block_id 0
    %h = tile.block_id 1
    %column = tile.iota : tensor<64xi32>
    %flat = tile.reshape %column : tensor<64xi32> -> tensor<1x64xi32>
    %columns = tile.broadcast %flat : tensor<1x64xi32> -> tensor<128x64xi32>
    %row = tile.load %l[%i] padding zero : memref<?xi32, strided<[1]>>, i32 -> tensor<128xi32>
    %tall = tile.reshape %row : tensor<128xi32> -> tensor<128x1xi32>
    %rows = tile.broadcast %tall : tensor<128x1xi32> -> tensor<128x64xi32>
    %d = scf.for %k = %c0 to %i step %c1 iter_args(%acc = %zero) -> (tensor<128x64xf32>) : i32 {
      %a = tile.gather %x[%rows, %columns] {check_bounds} : !A, tensor<128x64xi32>, tensor<128x64xi32> -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %h] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %e = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
      scf.yield %e : tensor<128x64xf32>
    }
    tile.store %d, %z[%i, %h] : tensor<128x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
