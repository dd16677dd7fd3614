// Blocks side by side leave room for the tiles that walks of known lengths read again: two in place of four, whose shares of
// shared memory would not hold a row. A row that has room stays with four, and so does one that two have none for either.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-plan-block))' | FileCheck %s

!A = memref<?x?xf32, strided<[?, 1]>>
!B = memref<?xf32, strided<[1]>>
// CHECK-LABEL: @row
// CHECK-SAME: occupancy = 2
// CHECK-LABEL: @short
// CHECK-SAME: occupancy = 4
// CHECK-LABEL: @long
// CHECK-SAME: occupancy = 4
// CHECK-LABEL: @read_once
// CHECK-SAME: occupancy = 4
module attributes {tile.target = "sm_90a"} {
  func.func @row(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 16, 1>}, %y: !B, %n: i32) attributes {tile.kernel, tile.hints = {occupancy = 4 : i32}} {
    %b = tile.block_id 0
    %s = tile.num_blocks 0
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %trips = arith.constant 2 : i32
    %zero = arith.constant dense<0.0> : tensor<1xf32>
    scf.for %i = %b to %n step %s : i32 {
      %most = scf.for %j = %c0 to %trips step %c1 iter_args(%m = %zero) -> (tensor<1xf32>) : i32 {
        %a = tile.load %x[%i, %j] padding zero : !A, i32, i32 -> tensor<1x8192xf32>
        %r = tile.reduce max, %a axis 1 : tensor<1x8192xf32>
        %q = arith.maximumf %m, %r : tensor<1xf32>
        scf.yield %q : tensor<1xf32>
      }
      %sum = scf.for %j = %c0 to %trips step %c1 iter_args(%m = %most) -> (tensor<1xf32>) : i32 {
        %a = tile.load %x[%i, %j] padding zero : !A, i32, i32 -> tensor<1x8192xf32>
        %r = tile.reduce add, %a axis 1 : tensor<1x8192xf32>
        %q = arith.addf %m, %r : tensor<1xf32>
        scf.yield %q : tensor<1xf32>
      }
      tile.store %sum, %y[%i] : tensor<1xf32>, !B, i32
    }
    return
  }
  func.func @short(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 16, 1>}, %y: !B, %n: i32) attributes {tile.kernel, tile.hints = {occupancy = 4 : i32}} {
    %b = tile.block_id 0
    %s = tile.num_blocks 0
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %trips = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<1xf32>
    scf.for %i = %b to %n step %s : i32 {
      %most = scf.for %j = %c0 to %trips step %c1 iter_args(%m = %zero) -> (tensor<1xf32>) : i32 {
        %a = tile.load %x[%i, %j] padding zero : !A, i32, i32 -> tensor<1x8192xf32>
        %r = tile.reduce max, %a axis 1 : tensor<1x8192xf32>
        %q = arith.maximumf %m, %r : tensor<1xf32>
        scf.yield %q : tensor<1xf32>
      }
      %sum = scf.for %j = %c0 to %trips step %c1 iter_args(%m = %most) -> (tensor<1xf32>) : i32 {
        %a = tile.load %x[%i, %j] padding zero : !A, i32, i32 -> tensor<1x8192xf32>
        %r = tile.reduce add, %a axis 1 : tensor<1x8192xf32>
        %q = arith.addf %m, %r : tensor<1xf32>
        scf.yield %q : tensor<1xf32>
      }
      tile.store %sum, %y[%i] : tensor<1xf32>, !B, i32
    }
    return
  }
  func.func @long(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 16, 1>}, %y: !B, %n: i32) attributes {tile.kernel, tile.hints = {occupancy = 4 : i32}} {
    %b = tile.block_id 0
    %s = tile.num_blocks 0
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %trips = arith.constant 4 : i32
    %zero = arith.constant dense<0.0> : tensor<1xf32>
    scf.for %i = %b to %n step %s : i32 {
      %most = scf.for %j = %c0 to %trips step %c1 iter_args(%m = %zero) -> (tensor<1xf32>) : i32 {
        %a = tile.load %x[%i, %j] padding zero : !A, i32, i32 -> tensor<1x8192xf32>
        %r = tile.reduce max, %a axis 1 : tensor<1x8192xf32>
        %q = arith.maximumf %m, %r : tensor<1xf32>
        scf.yield %q : tensor<1xf32>
      }
      %sum = scf.for %j = %c0 to %trips step %c1 iter_args(%m = %most) -> (tensor<1xf32>) : i32 {
        %a = tile.load %x[%i, %j] padding zero : !A, i32, i32 -> tensor<1x8192xf32>
        %r = tile.reduce add, %a axis 1 : tensor<1x8192xf32>
        %q = arith.addf %m, %r : tensor<1xf32>
        scf.yield %q : tensor<1xf32>
      }
      tile.store %sum, %y[%i] : tensor<1xf32>, !B, i32
    }
    return
  }
  func.func @read_once(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 16, 1>}, %y: !B, %n: i32) attributes {tile.kernel, tile.hints = {occupancy = 4 : i32}} {
    %b = tile.block_id 0
    %s = tile.num_blocks 0
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %trips = arith.constant 2 : i32
    %zero = arith.constant dense<0.0> : tensor<1xf32>
    scf.for %i = %b to %n step %s : i32 {
      %most = scf.for %j = %c0 to %trips step %c1 iter_args(%m = %zero) -> (tensor<1xf32>) : i32 {
        %a = tile.load %x[%i, %j] padding zero : !A, i32, i32 -> tensor<1x8192xf32>
        %r = tile.reduce max, %a axis 1 : tensor<1x8192xf32>
        %q = arith.maximumf %m, %r : tensor<1xf32>
        scf.yield %q : tensor<1xf32>
      }
      %sum = scf.for %j = %c0 to %trips step %c1 iter_args(%m = %most) -> (tensor<1xf32>) : i32 {
        %a = tile.load %x[%b, %j] padding zero : !A, i32, i32 -> tensor<1x8192xf32>
        %r = tile.reduce add, %a axis 1 : tensor<1x8192xf32>
        %q = arith.addf %m, %r : tensor<1xf32>
        scf.yield %q : tensor<1xf32>
      }
      tile.store %sum, %y[%i] : tensor<1xf32>, !B, i32
    }
    return
  }
}
