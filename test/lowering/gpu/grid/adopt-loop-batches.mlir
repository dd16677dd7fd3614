// The number that a loop counts is told by its parts: which product of a batch, and the row and column of what is left
// over, divided once more. Not where parts are of other divisors, or of one that each step has of its own.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-plan-grid))' | FileCheck %s

!M = memref<?x?x?xf16, strided<[?, ?, 1]>>
!F = memref<?x?x?xf32, strided<[?, ?, 1]>>

// CHECK-LABEL: @batches
// CHECK: tile.store
// CHECK: } {tile.persistent}
// CHECK-LABEL: @grouped
// CHECK: tile.store
// CHECK: } {tile.persistent}
// CHECK-LABEL: @other_divisor
// CHECK-NOT: {tile.persistent}
// CHECK-LABEL: @divisor_of_a_step
// CHECK-NOT: {tile.persistent}
// CHECK-LABEL: @groups_of_more
// CHECK-NOT: {tile.persistent}
module attributes {tile.target = "sm_90a"} {
  func.func @batches(%A: !M {tile.align = 16 : i32, tile.stride_div = array<i64: 64, 64, 1>, tile.tma}, %C: !F, %l: i32, %n: i32, %m: i32) attributes {tile.kernel} {
    %b = tile.block_id 0
    %s = tile.num_blocks 0
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c4 = arith.constant 4 : i32
    %c6 = arith.constant 6 : i32
    %c15 = arith.constant 15 : i32
    %rows = arith.constant 5 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    scf.for %t = %b to %l step %s : i32 {
      %h = arith.floordivsi %t, %n : i32
      %u = arith.remsi %t, %n : i32
      %i = arith.floordivsi %u, %m : i32
      %j = arith.remsi %u, %m : i32
      %r = scf.for %k = %c0 to %m step %c1 iter_args(%x = %zero) -> (tensor<64x64xf32>) : i32 {
        %a = tile.load %A[%h, %i, %k] padding zero : !M, i32, i32, i32 -> tensor<1x64x64xf16>
        %v = tile.reshape %a : tensor<1x64x64xf16> -> tensor<64x64xf16>
        %y = tile.mma %v, %v, %x : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
        scf.yield %y : tensor<64x64xf32>
      }
      %z = tile.reshape %r : tensor<64x64xf32> -> tensor<1x64x64xf32>
      tile.store %z, %C[%h, %i, %j] : tensor<1x64x64xf32>, !F, i32, i32, i32
    }
    return
  }
  func.func @grouped(%A: !M {tile.align = 16 : i32, tile.stride_div = array<i64: 64, 64, 1>, tile.tma}, %C: !F, %l: i32, %n: i32, %m: i32) attributes {tile.kernel} {
    %b = tile.block_id 0
    %s = tile.num_blocks 0
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c4 = arith.constant 4 : i32
    %c6 = arith.constant 6 : i32
    %c15 = arith.constant 15 : i32
    %rows = arith.constant 5 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    scf.for %t = %b to %l step %s : i32 {
      %h = arith.floordivsi %t, %c15 : i32
      %u = arith.remsi %t, %c15 : i32
      %g = arith.floordivsi %u, %c6 : i32
      %first = arith.muli %g, %c2 : i32
      %left = arith.subi %rows, %first : i32
      %height = arith.minsi %left, %c2 : i32
      %within = arith.remsi %u, %height : i32
      %i = arith.addi %first, %within : i32
      %w = arith.remsi %u, %c6 : i32
      %j = arith.floordivsi %w, %height : i32
      %r = scf.for %k = %c0 to %m step %c1 iter_args(%x = %zero) -> (tensor<64x64xf32>) : i32 {
        %a = tile.load %A[%h, %i, %k] padding zero : !M, i32, i32, i32 -> tensor<1x64x64xf16>
        %v = tile.reshape %a : tensor<1x64x64xf16> -> tensor<64x64xf16>
        %y = tile.mma %v, %v, %x : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
        scf.yield %y : tensor<64x64xf32>
      }
      %z = tile.reshape %r : tensor<64x64xf32> -> tensor<1x64x64xf32>
      tile.store %z, %C[%h, %i, %j] : tensor<1x64x64xf32>, !F, i32, i32, i32
    }
    return
  }
  func.func @other_divisor(%A: !M {tile.align = 16 : i32, tile.stride_div = array<i64: 64, 64, 1>, tile.tma}, %C: !F, %l: i32, %n: i32, %m: i32) attributes {tile.kernel} {
    %b = tile.block_id 0
    %s = tile.num_blocks 0
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c4 = arith.constant 4 : i32
    %c6 = arith.constant 6 : i32
    %c15 = arith.constant 15 : i32
    %rows = arith.constant 5 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    scf.for %t = %b to %l step %s : i32 {
      %h = arith.floordivsi %t, %l : i32
      %u = arith.remsi %t, %n : i32
      %i = arith.floordivsi %u, %m : i32
      %j = arith.remsi %u, %m : i32
      %r = scf.for %k = %c0 to %m step %c1 iter_args(%x = %zero) -> (tensor<64x64xf32>) : i32 {
        %a = tile.load %A[%h, %i, %k] padding zero : !M, i32, i32, i32 -> tensor<1x64x64xf16>
        %v = tile.reshape %a : tensor<1x64x64xf16> -> tensor<64x64xf16>
        %y = tile.mma %v, %v, %x : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
        scf.yield %y : tensor<64x64xf32>
      }
      %z = tile.reshape %r : tensor<64x64xf32> -> tensor<1x64x64xf32>
      tile.store %z, %C[%h, %i, %j] : tensor<1x64x64xf32>, !F, i32, i32, i32
    }
    return
  }
  func.func @divisor_of_a_step(%A: !M {tile.align = 16 : i32, tile.stride_div = array<i64: 64, 64, 1>, tile.tma}, %C: !F, %l: i32, %n: i32, %m: i32) attributes {tile.kernel} {
    %b = tile.block_id 0
    %s = tile.num_blocks 0
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c4 = arith.constant 4 : i32
    %c6 = arith.constant 6 : i32
    %c15 = arith.constant 15 : i32
    %rows = arith.constant 5 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    scf.for %t = %b to %l step %s : i32 {
      %o = arith.addi %t, %m : i32
      %h = arith.floordivsi %t, %o : i32
      %u = arith.remsi %t, %o : i32
      %i = arith.floordivsi %u, %m : i32
      %j = arith.remsi %u, %m : i32
      %r = scf.for %k = %c0 to %m step %c1 iter_args(%x = %zero) -> (tensor<64x64xf32>) : i32 {
        %a = tile.load %A[%h, %i, %k] padding zero : !M, i32, i32, i32 -> tensor<1x64x64xf16>
        %v = tile.reshape %a : tensor<1x64x64xf16> -> tensor<64x64xf16>
        %y = tile.mma %v, %v, %x : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
        scf.yield %y : tensor<64x64xf32>
      }
      %z = tile.reshape %r : tensor<64x64xf32> -> tensor<1x64x64xf32>
      tile.store %z, %C[%h, %i, %j] : tensor<1x64x64xf32>, !F, i32, i32, i32
    }
    return
  }
  func.func @groups_of_more(%A: !M {tile.align = 16 : i32, tile.stride_div = array<i64: 64, 64, 1>, tile.tma}, %C: !F, %l: i32, %n: i32, %m: i32) attributes {tile.kernel} {
    %b = tile.block_id 0
    %s = tile.num_blocks 0
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c4 = arith.constant 4 : i32
    %c6 = arith.constant 6 : i32
    %c15 = arith.constant 15 : i32
    %rows = arith.constant 4 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    scf.for %t = %b to %l step %s : i32 {
      %h = arith.floordivsi %t, %c15 : i32
      %u = arith.remsi %t, %c15 : i32
      %g = arith.floordivsi %u, %c6 : i32
      %first = arith.muli %g, %c2 : i32
      %left = arith.subi %rows, %first : i32
      %height = arith.minsi %left, %c2 : i32
      %within = arith.remsi %u, %height : i32
      %i = arith.addi %first, %within : i32
      %w = arith.remsi %u, %c6 : i32
      %j = arith.floordivsi %w, %height : i32
      %r = scf.for %k = %c0 to %m step %c1 iter_args(%x = %zero) -> (tensor<64x64xf32>) : i32 {
        %a = tile.load %A[%h, %i, %k] padding zero : !M, i32, i32, i32 -> tensor<1x64x64xf16>
        %v = tile.reshape %a : tensor<1x64x64xf16> -> tensor<64x64xf16>
        %y = tile.mma %v, %v, %x : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
        scf.yield %y : tensor<64x64xf32>
      }
      %z = tile.reshape %r : tensor<64x64xf32> -> tensor<1x64x64xf32>
      tile.store %z, %C[%h, %i, %j] : tensor<1x64x64xf32>, !F, i32, i32, i32
    }
    return
  }
}
