// Layouts are those of least cost; the module tells theirs and the runners-up's, which a hint takes.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-assign-layouts))' | FileCheck %s
// RUN: tw-opt %s -split-input-file -verify-diagnostics=only-expected --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-assign-layouts))' -o /dev/null

// A copy: 544 slots with accesses of 16 bytes, 576 with those of 8.
// CHECK: #[[WIDE:.*]] = #tile.linear<register = {{\[}}[1], [2], [256], [512]]
// CHECK-LABEL: @copy
// CHECK-SAME: tile.layout_costs = array<i64: 544, 576>
module attributes {tile.target = "sm_80"} {
  // expected-remark @below {{has layouts that cost an estimated 544 issue slots of a warp; others come within 25 % of that, up to layout_rank=1}}
  func.func @copy(%a: memref<?xf32, strided<[1]>> {tile.align = 16 : i32, tile.shape_div = array<i64: 16>, tile.stride_div = array<i64: 1>}) attributes {tile.kernel, tile.hints = {num_warps = 2 : i32}} {
    %i = tile.block_id 0
    // CHECK: tile.load {{.*}} -> tensor<1024xf32, #[[WIDE]]>
    // expected-remark @below {{could have another layout, which makes it 576 slots (layout_rank=1): 1024xf32 with register = [[1], [128], [256], [512]]}}
    %x = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<1024xf32>
    tile.store %x, %a[%i] : tensor<1024xf32>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

// The runner-up.
// CHECK: #[[NARROW:.*]] = #tile.linear<register = {{\[}}[1], [128], [256], [512]]
// CHECK-LABEL: @narrow
module attributes {tile.target = "sm_80"} {
  func.func @narrow(%a: memref<?xf32, strided<[1]>> {tile.align = 16 : i32, tile.shape_div = array<i64: 16>, tile.stride_div = array<i64: 1>}) attributes {tile.kernel, tile.hints = {layout_rank = 1 : i32, num_warps = 2 : i32}} {
    %i = tile.block_id 0
    // CHECK: tile.load {{.*}} -> tensor<1024xf32, #[[NARROW]]>
    %x = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<1024xf32>
    tile.store %x, %a[%i] : tensor<1024xf32>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

// There is none so far down.
// CHECK: #[[WIDE2:.*]] = #tile.linear<register = {{\[}}[1], [2], [256], [512]]
// CHECK-LABEL: @none
module attributes {tile.target = "sm_80"} {
  // expected-remark @below {{has no layout_rank 5: the best is taken}}
  func.func @none(%a: memref<?xf32, strided<[1]>> {tile.align = 16 : i32, tile.shape_div = array<i64: 16>, tile.stride_div = array<i64: 1>}) attributes {tile.kernel, tile.hints = {layout_rank = 5 : i32, num_warps = 2 : i32}} {
    %i = tile.block_id 0
    // CHECK: tile.load {{.*}} -> tensor<1024xf32, #[[WIDE2]]>
    %x = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<1024xf32>
    tile.store %x, %a[%i] : tensor<1024xf32>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

// Values that a loop ties together have one layout, whatever vectors their elements would allow alone: nothing is
// converted in the loop.
// CHECK-LABEL: @loop
module attributes {tile.target = "sm_90a"} {
  func.func @loop(%a: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %b: memref<?x?xf32, strided<[?, 1]>> {tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>}, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %x = tile.load %a[%c0, %c0] : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 -> tensor<16x256xbf16>
    %w = arith.extf %x : tensor<16x256xbf16> to tensor<16x256xf32>
    // CHECK-NOT: tile.convert_layout
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %w) -> (tensor<16x256xf32>) : i32 {
      %y = tile.load %b[%c0, %k] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<16x256xf32>
      %s = arith.addf %acc, %y : tensor<16x256xf32>
      scf.yield %s : tensor<16x256xf32>
    }
    // CHECK: tile.store
    tile.store %r, %b[%c0, %c0] : tensor<16x256xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

// A gather that is copied for a product: where its indices tell of no neighbours, lanes go along the last dimension. Rows
// have owners, too.
// CHECK: #[[PIECES:.*]] = #tile.linear<register = {{\[}}[4, 0], [8, 0], [16, 0]], lane = {{\[}}[0, 1], [0, 2], [0, 4], [0, 8], [1, 0]], warp = {{\[}}[2, 0]]>
// CHECK-LABEL: @gathered
module attributes {tile.target = "sm_80"} {
  func.func @gathered(%a: memref<?x?xf32, strided<[?, 1]>>, %i: memref<?x?xi32, strided<[?, 1]>>, %b: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 2 : i32}} {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : tensor<32x16xf32>
    %x = tile.load %a[%c0, %c0] padding zero : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<32x32xf32>
    %at = tile.load %i[%c0, %c0] : memref<?x?xi32, strided<[?, 1]>>, i32, i32 -> tensor<32x16xi32>
    // CHECK: tile.gather {{.*}} -> tensor<32x16xf32, #[[PIECES]]>
    %y = tile.gather %b[%at] {check_bounds} : memref<?xf32, strided<[1]>>, tensor<32x16xi32> -> tensor<32x16xf32>
    %z = tile.mma %x, %y, %zero : tensor<32x32xf32>, tensor<32x16xf32>, tensor<32x16xf32>
    tile.store %z, %a[%c0, %c0] : tensor<32x16xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
