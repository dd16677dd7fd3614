// A loop over tiles that the program has: persistent where its steps may be done in any order.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-plan-grid))' | FileCheck %s

!M = memref<?x?xf16, strided<[?, 1]>>
!F = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: @apart
// CHECK: tile.store
// CHECK: } {tile.persistent}
// CHECK-LABEL: @same
// CHECK-NOT: {tile.persistent}
// CHECK-LABEL: @read
// CHECK-NOT: {tile.persistent}
module attributes {tile.target = "sm_90a"} {
  func.func @apart(%A: !M {tile.align = 16 : i32, tile.stride_div = array<i64: 64, 1>, tile.tma}, %C: !F, %n: i32, %m: i32) attributes {tile.kernel} {
    %b = tile.block_id 0
    %s = tile.num_blocks 0
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    scf.for %t = %b to %n step %s : i32 {
      %i = arith.floordivsi %t, %m : i32
      %j = arith.remsi %t, %m : i32
      %r = scf.for %k = %c0 to %m step %c1 iter_args(%x = %zero) -> (tensor<64x64xf32>) : i32 {
        %a = tile.load %A[%i, %k] padding zero : !M, i32, i32 -> tensor<64x64xf16>
        %y = tile.mma %a, %a, %x : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
        scf.yield %y : tensor<64x64xf32>
      }
      tile.store %r, %C[%i, %j] : tensor<64x64xf32>, !F, i32, i32
    }
    return
  }
  func.func @same(%A: !M {tile.align = 16 : i32, tile.stride_div = array<i64: 64, 1>, tile.tma}, %C: !F, %n: i32, %m: i32) attributes {tile.kernel} {
    %b = tile.block_id 0
    %s = tile.num_blocks 0
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    scf.for %t = %b to %n step %s : i32 {
      %j = arith.remsi %t, %m : i32
      %r = scf.for %k = %c0 to %m step %c1 iter_args(%x = %zero) -> (tensor<64x64xf32>) : i32 {
        %a = tile.load %A[%j, %k] padding zero : !M, i32, i32 -> tensor<64x64xf16>
        %y = tile.mma %a, %a, %x : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
        scf.yield %y : tensor<64x64xf32>
      }
      tile.store %r, %C[%c0, %j] : tensor<64x64xf32>, !F, i32, i32
    }
    return
  }
  func.func @read(%A: !M {tile.align = 16 : i32, tile.stride_div = array<i64: 64, 1>, tile.tma}, %C: !F, %n: i32, %m: i32) attributes {tile.kernel} {
    %b = tile.block_id 0
    %s = tile.num_blocks 0
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %t = %b to %n step %s : i32 {
      %zero = tile.load %C[%c0, %c0] padding zero : !F, i32, i32 -> tensor<64x64xf32>
      %r = scf.for %k = %c0 to %m step %c1 iter_args(%x = %zero) -> (tensor<64x64xf32>) : i32 {
        %a = tile.load %A[%t, %k] padding zero : !M, i32, i32 -> tensor<64x64xf16>
        %y = tile.mma %a, %a, %x : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
        scf.yield %y : tensor<64x64xf32>
      }
      tile.store %r, %C[%t, %c0] : tensor<64x64xf32>, !F, i32, i32
    }
    return
  }
}
