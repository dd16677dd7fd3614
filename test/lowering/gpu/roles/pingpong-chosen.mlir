// When two consumer groups take the blocks of a persistent kernel in turn.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-plan-grid,tile-persistent-loop,tile-assign-layouts,tile-promote-memory,tile-sink-waits,tile-specialize-warps),canonicalize,cse)' 2>/dev/null | FileCheck %s

!A = memref<?x?xbf16, strided<[?, 1]>>

// The second consumer group begins one block on, where the first block's iterations have brought the multi-stage buffers, and goes on by two.
// CHECK-LABEL: @product
// CHECK: %[[BOX:.*]] = tile.alloc_shared : <4x64x64xbf16
// CHECK: tile.roles producer_warps 4 consumer_groups 2
// CHECK-NOT: tile.consumer_group
// CHECK: consumer {
// CHECK: %[[T:.*]] = tile.consumer_group
// CHECK: scf.if
// CHECK-NEXT: tile.ordered_arrive
// CHECK: scf.for
// CHECK: tile.ordered_wait
// CHECK: scf.for
// CHECK: tile.async_mma
// CHECK: tile.ordered_arrive
// CHECK: tile.mma_wait
module attributes {tile.target = "sm_90a"} {
  func.func @product(%x: !A {tile.tma, tile.align = 16 : i32, tile.shape_div = array<i64: 1, 64>, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.shape_div = array<i64: 1, 64>, tile.stride_div = array<i64: 8, 1>}, %z: !A {tile.tma, tile.align = 16 : i32, tile.shape_div = array<i64: 1, 64>, tile.stride_div = array<i64: 8, 1>}, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %i = tile.block_id 0
    %j = tile.block_id 1
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %d = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    %s = arith.truncf %r : tensor<128x128xf32> to tensor<128x128xbf16>
    tile.store %s, %z[%i, %j] : tensor<128x128xbf16>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Not where a loop is as long as its block is far: a consumer group would not know how many stages to skip.
// CHECK-LABEL: @triangle
// CHECK: tile.roles producer_warps
// CHECK-NOT: tile.consumer_group
module attributes {tile.target = "sm_90a"} {
  func.func @triangle(%x: !A {tile.tma, tile.align = 16 : i32, tile.shape_div = array<i64: 1, 64>, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.shape_div = array<i64: 1, 64>, tile.stride_div = array<i64: 8, 1>}, %z: !A {tile.tma, tile.align = 16 : i32, tile.shape_div = array<i64: 1, 64>, tile.stride_div = array<i64: 8, 1>}, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %i = tile.block_id 0
    %j = tile.block_id 1
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %m = arith.addi %i, %c1 : i32
    %r = scf.for %k = %c0 to %m step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %d = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    %s = arith.truncf %r : tensor<128x128xf32> to tensor<128x128xbf16>
    tile.store %s, %z[%i, %j] : tensor<128x128xbf16>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Nor where two warpgroups compute a tile.
// CHECK-LABEL: @two_groups
// CHECK: tile.roles producer_warps
// CHECK-NOT: tile.consumer_group
module attributes {tile.target = "sm_90a"} {
  func.func @two_groups(%x: !A {tile.tma, tile.align = 16 : i32, tile.shape_div = array<i64: 1, 64>, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.shape_div = array<i64: 1, 64>, tile.stride_div = array<i64: 8, 1>}, %z: !A {tile.tma, tile.align = 16 : i32, tile.shape_div = array<i64: 1, 64>, tile.stride_div = array<i64: 8, 1>}, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %i = tile.block_id 0
    %j = tile.block_id 1
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %d = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    %s = arith.truncf %r : tensor<128x128xf32> to tensor<128x128xbf16>
    tile.store %s, %z[%i, %j] : tensor<128x128xbf16>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Nor where products do not merely add up.
// CHECK-LABEL: @faded
// CHECK: tile.roles producer_warps
// CHECK-NOT: tile.consumer_group
module attributes {tile.target = "sm_90a"} {
  func.func @faded(%x: !A {tile.tma, tile.align = 16 : i32, tile.shape_div = array<i64: 1, 64>, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.shape_div = array<i64: 1, 64>, tile.stride_div = array<i64: 8, 1>}, %z: !A {tile.tma, tile.align = 16 : i32, tile.shape_div = array<i64: 1, 64>, tile.stride_div = array<i64: 8, 1>}, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %i = tile.block_id 0
    %j = tile.block_id 1
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %half = arith.constant dense<0.5> : tensor<128x128xf32>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %d = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      %f = arith.mulf %d, %half : tensor<128x128xf32>
      scf.yield %f : tensor<128x128xf32>
    }
    %s = arith.truncf %r : tensor<128x128xf32> to tensor<128x128xbf16>
    tile.store %s, %z[%i, %j] : tensor<128x128xbf16>, !A, i32, i32
    return
  }
}
