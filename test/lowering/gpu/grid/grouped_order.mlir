// A loop over tiles in groups of rows: each step has a tile of its own, if the numbers fit together.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-plan-grid))' | FileCheck %s

!M = memref<?x?xf16, strided<[?, 1]>>
!F = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: @groups
// CHECK: } {tile.persistent}
// CHECK-LABEL: @other_height
// CHECK-NOT: {tile.persistent}
module attributes {tile.target = "sm_90a"} {
  func.func @groups(%A: !M {tile.align = 16 : i32, tile.stride_div = array<i64: 64, 1>, tile.tma}, %C: !F) attributes {tile.kernel} {
    %b = tile.block_id 0
    %s = tile.num_blocks 0
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %m = tile.dim %C, 0 : !F
    %n = tile.dim %C, 1 : !F
    %all = arith.muli %m, %n : i32
    %group = arith.muli %n, %c8 : i32
    scf.for %t = %b to %all step %s : i32 {
      %q = arith.floordivsi %t, %group : i32
      %first = arith.muli %q, %c8 : i32
      %left = arith.subi %m, %first : i32
      %g = arith.minsi %left, %c8 : i32
      %u = arith.remsi %t, %g : i32
      %i = arith.addi %first, %u : i32
      %r = arith.remsi %t, %group : i32
      %j = arith.floordivsi %r, %g : i32
      %d = scf.for %k = %c0 to %m step %c1 iter_args(%x = %zero) -> (tensor<64x64xf32>) : i32 {
        %a = tile.load %A[%i, %k] padding zero : !M, i32, i32 -> tensor<64x64xf16>
        %y = tile.mma %a, %a, %x : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
        scf.yield %y : tensor<64x64xf32>
      }
      tile.store %d, %C[%i, %j] : tensor<64x64xf32>, !F, i32, i32
    }
    return
  }
  func.func @other_height(%A: !M {tile.align = 16 : i32, tile.stride_div = array<i64: 64, 1>, tile.tma}, %C: !F) attributes {tile.kernel} {
    %b = tile.block_id 0
    %s = tile.num_blocks 0
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %m = tile.dim %C, 0 : !F
    %n = tile.dim %C, 1 : !F
    %all = arith.muli %m, %n : i32
    %group = arith.muli %n, %c8 : i32
    scf.for %t = %b to %all step %s : i32 {
      %q = arith.floordivsi %t, %group : i32
      %first = arith.muli %q, %c8 : i32
      %left = arith.subi %m, %first : i32
      %g = arith.minsi %left, %c9 : i32
      %u = arith.remsi %t, %g : i32
      %i = arith.addi %first, %u : i32
      %r = arith.remsi %t, %group : i32
      %j = arith.floordivsi %r, %g : i32
      %d = scf.for %k = %c0 to %m step %c1 iter_args(%x = %zero) -> (tensor<64x64xf32>) : i32 {
        %a = tile.load %A[%i, %k] padding zero : !M, i32, i32 -> tensor<64x64xf16>
        %y = tile.mma %a, %a, %x : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
        scf.yield %y : tensor<64x64xf32>
      }
      tile.store %d, %C[%i, %j] : tensor<64x64xf32>, !F, i32, i32
    }
    return
  }
}
