// What no thread looks at is relaxed; shared arrays are the block's. A look, a store or a fence keeps the orders.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-qualify-accesses))' | FileCheck %s
module attributes {tile.target = "sm_90"} {
  // CHECK-LABEL: @histogram
  func.func @histogram(%b: memref<?xi32, strided<[1]>>, %i: i32) attributes {tile.kernel, tile.simt} {
    %own = tile.shared_array : memref<8xi32, 3>
    // CHECK: tile.atomic add relaxed sys
    %x = tile.atomic add seq_cst sys, %i, %b[%i] : i32, memref<?xi32, strided<[1]>>, i32 -> i32
    // CHECK: tile.atomic add relaxed block
    %y = tile.atomic add seq_cst sys, %i, %own[%i] : i32, memref<8xi32, 3>, i32 -> i32
    return
  }
}

// -----

module attributes {tile.target = "sm_90"} {
  // CHECK-LABEL: @tickets
  func.func @tickets(%b: memref<?xi32, strided<[1]>>, %i: i32) attributes {tile.kernel, tile.simt} {
    %own = tile.shared_array : memref<8xi32, 3>
    // CHECK: tile.atomic add seq_cst sys
    %x = tile.atomic add seq_cst sys, %i, %b[%i] : i32, memref<?xi32, strided<[1]>>, i32 -> i32
    // CHECK: tile.atomic add acq_rel block
    %y = tile.atomic add acq_rel device, %i, %own[%x] : i32, memref<8xi32, 3>, i32 -> i32
    tile.scatter %y, %b[%y] : i32, memref<?xi32, strided<[1]>>, i32
    return
  }
}

// -----

module attributes {tile.target = "sm_90"} {
  // CHECK-LABEL: @publishes
  func.func @publishes(%b: memref<?xi32, strided<[1]>>, %i: i32) attributes {tile.kernel, tile.simt} {
    tile.scatter %i, %b[%i] : i32, memref<?xi32, strided<[1]>>, i32
    // CHECK: tile.atomic add seq_cst sys
    %x = tile.atomic add seq_cst sys, %i, %b[%i] : i32, memref<?xi32, strided<[1]>>, i32 -> i32
    return
  }
  // CHECK-LABEL: @as_it_says
  func.func @as_it_says(%b: memref<?xi32, strided<[1]>>, %i: i32)
      attributes {tile.kernel, tile.simt, tile.hints = {relax_atomics = 0 : i32}} {
    // CHECK: tile.atomic add seq_cst sys
    %x = tile.atomic add seq_cst sys, %i, %b[%i] : i32, memref<?xi32, strided<[1]>>, i32 -> i32
    return
  }
}
