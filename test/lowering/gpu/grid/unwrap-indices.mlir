// Rows that are wrapped around are cut off where a mask leaves out what becomes of them.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-resize-tiles))' 2>/dev/null | FileCheck %s

!M = memref<?x?xf16, strided<[?, 1]>>
!A = tensor<64x64xf16>
!S = tensor<64x64xf32>
!I = tensor<64x64xi32>

// The rows of %A are those of the sum; its columns are summed over, so that those stay which are wrapped around.
// CHECK-LABEL: @rows
// CHECK: tile.load %{{.*}}[%{{.*}}, %{{.*}}] padding zero
// CHECK: tile.gather
module attributes {tile.target = "sm_90a"} {
  func.func @rows(%A: !M, %B: !M, %C: !M, %m: i32) attributes {tile.kernel} {
    %i = tile.block_id 0
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : !A
    %none = arith.constant dense<0.0> : !S
    %first = arith.muli %i, %c64 : i32
    %from = tensor.splat %first : tensor<64xi32>
    %iota = tile.iota : tensor<64xi32>
    %rows = arith.addi %from, %iota : tensor<64xi32>
    %end = tensor.splat %m : tensor<64xi32>
    %rest = arith.remui %rows, %end : tensor<64xi32>
    %r0 = tile.reshape %rows : tensor<64xi32> -> tensor<64x1xi32>
    %r = tile.broadcast %r0 : tensor<64x1xi32> -> !I
    %c0 = tile.reshape %iota : tensor<64xi32> -> tensor<1x64xi32>
    %c = tile.broadcast %c0 : tensor<1x64xi32> -> !I
    %w0 = tile.reshape %rest : tensor<64xi32> -> tensor<64x1xi32>
    %w = tile.broadcast %w0 : tensor<64x1xi32> -> !I
    %in0 = arith.cmpi slt, %rows, %end : tensor<64xi32>
    %in1 = tile.reshape %in0 : tensor<64xi1> -> tensor<64x1xi1>
    %in = tile.broadcast %in1 : tensor<64x1xi1> -> tensor<64x64xi1>
    %a = tile.gather %A[%w, %c] else %zero : !A {check_bounds} : !M, !I, !I -> !A
    %b = tile.gather %B[%w, %c] else %zero : !A {check_bounds} : !M, !I, !I -> !A
    %s = tile.mma %a, %b, %none : !A, !A, !S
    %t = arith.truncf %s : !S to !A
    tile.scatter %t, %C[%r, %c] mask %in : tensor<64x64xi1> {check_bounds} : !A, !M, !I, !I
    return
  }
}

// -----

!V = memref<?xf16, strided<[1]>>
!T = tensor<8x8xf16>
!I = tensor<8x8xi32>

// Columns that count down are no tile's: the rows stay compared one by one, and not as one for all.
// CHECK-LABEL: @backwards
// CHECK: %[[IN:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : tensor<8x8xi32>
// CHECK: tile.gather %{{.*}}[%{{.*}}] mask %[[IN]] : tensor<8x8xi1>
module attributes {tile.target = "sm_90a"} {
  func.func @backwards(%A: !V, %C: memref<?x?xf16, strided<[?, 1]>>, %m: i32) attributes {tile.kernel} {
    %zero = arith.constant dense<0.0> : !T
    %pitch = arith.constant dense<8> : !I
    %rows = tile.iota : tensor<8xi32>
    %end = tensor.splat %m : tensor<8xi32>
    %rest = arith.remui %rows, %end : tensor<8xi32>
    %r0 = tile.reshape %rows : tensor<8xi32> -> tensor<8x1xi32>
    %r = tile.broadcast %r0 : tensor<8x1xi32> -> !I
    %c0 = tile.reshape %rows : tensor<8xi32> -> tensor<1x8xi32>
    %c = tile.broadcast %c0 : tensor<1x8xi32> -> !I
    %w0 = tile.reshape %rest : tensor<8xi32> -> tensor<8x1xi32>
    %w = tile.broadcast %w0 : tensor<8x1xi32> -> !I
    %from = arith.muli %w, %pitch : !I
    %at = arith.subi %from, %c : !I
    %in0 = arith.cmpi slt, %rows, %end : tensor<8xi32>
    %in1 = tile.reshape %in0 : tensor<8xi1> -> tensor<8x1xi1>
    %in = tile.broadcast %in1 : tensor<8x1xi1> -> tensor<8x8xi1>
    %a = tile.gather %A[%at] else %zero : !T {check_bounds} : !V, !I -> !T
    tile.scatter %a, %C[%r, %c] mask %in : tensor<8x8xi1> {check_bounds} : !T, memref<?x?xf16, strided<[?, 1]>>, !I, !I
    return
  }
}
