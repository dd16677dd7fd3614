// A program that counts its tiles in one number is one of a grid of rows and columns, where the launch knows of how many.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-resize-tiles))' 2>/dev/null | FileCheck %s
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-resize-tiles))' 2>&1 | FileCheck %s --check-prefix=REMARK

!M = memref<?x?xf16, strided<[?, 1]>>
!A = tensor<64x64xf16>
!S = tensor<64x64xf32>

// The blocks of a grid of one axis: the launch says how many columns there are. What was on axis 1 is on axis 2.
// CHECK-LABEL: @blocks
// CHECK-SAME: tile_grid = {any = 0 : i32, columns = [], rows = [{by = 64 : i64, plus = 63 : i64, word = 1 : i64}]}
// CHECK: %[[i:.*]] = tile.block_id 0
// CHECK: %[[j:.*]] = tile.block_id 1
// CHECK: tile.block_id 2
// CHECK: tile.load %{{.*}}[%[[i]], %[[j]]]
// REMARK-COUNT-2: counts its tiles in one number
module attributes {tile.target = "sm_90a"} {
  func.func @blocks(%A: !M, %C: !M) attributes {tile.kernel} {
    %t = tile.block_id 0
    %b = tile.block_id 1
    %c64 = arith.constant 64 : i32
    %m = tile.dim %A, 0 : !M
    %rows = arith.ceildivsi %m, %c64 : i32
    %i = arith.remui %t, %rows : i32
    %j = arith.divui %t, %rows : i32
    %zero = arith.constant dense<0.0> : !S
    %a = tile.load %A[%i, %j] padding zero : !M, i32, i32 -> !A
    %s = tile.mma %a, %a, %zero : !A, !A, !S
    %r = arith.truncf %s : !S to !A
    tile.store %r, %C[%i, %b] : !A, !M, i32, i32
    return
  }
}

// -----

!M = memref<?x?xf16, strided<[?, 1]>>
!A = tensor<64x64xf16>
!S = tensor<64x64xf32>

// A loop over tiles, whatever the grid; 24 of them in rows of 6.
// CHECK-LABEL: @loop
// CHECK-SAME: tile_grid = {any = 1 : i32, columns = [{by = 1 : i64, plus = 4 : i64, word = -1 : i64}], rows = [{by = 1 : i64, plus = 6 : i64, word = -1 : i64}]}
// CHECK-NOT: scf.for
// CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}]
module attributes {tile.target = "sm_90a"} {
  func.func @loop(%A: !M, %C: !M) attributes {tile.kernel} {
    %c6 = arith.constant 6 : i32
    %c24 = arith.constant 24 : i32
    %b = tile.block_id 0
    %n = tile.num_blocks 0
    scf.for %t = %b to %c24 step %n : i32 {
      %i = arith.floordivsi %t, %c6 : i32
      %j = arith.remsi %t, %c6 : i32
      %zero = arith.constant dense<0.0> : !S
      %a = tile.load %A[%i, %j] padding zero : !M, i32, i32 -> !A
      %s = tile.mma %a, %a, %zero : !A, !A, !S
      %r = arith.truncf %s : !S to !A
      tile.store %r, %C[%i, %j] : !A, !M, i32, i32
    }
    return
  }
}

// -----

!M = memref<?x?xf16, strided<[?, 1]>>
!A = tensor<64x64xf16>
!S = tensor<64x64xf32>

// The number says more than a position; the launcher has asked for the grid as it is; how many rows there are is not
// known at the launch.
// CHECK-NOT: tile_grid
// REMARK-NOT: counts its tiles
module attributes {tile.target = "sm_90a"} {
  func.func @other_use(%A: !M, %C: !M) attributes {tile.kernel} {
    %c6 = arith.constant 6 : i32
    %t = tile.block_id 0
    %i = arith.floordivsi %t, %c6 : i32
    %j = arith.remsi %t, %c6 : i32
    %zero = arith.constant dense<0.0> : !S
    %a = tile.load %A[%i, %j] padding zero : !M, i32, i32 -> !A
    %s = tile.mma %a, %a, %zero : !A, !A, !S
    %r = arith.truncf %s : !S to !A
    tile.store %r, %C[%i, %t] : !A, !M, i32, i32
    return
  }
  func.func @kept(%A: !M, %C: !M) attributes {tile.kernel, tile.hints = {as_launched = 1 : i32}} {
    %c6 = arith.constant 6 : i32
    %t = tile.block_id 0
    %i = arith.floordivsi %t, %c6 : i32
    %j = arith.remsi %t, %c6 : i32
    %zero = arith.constant dense<0.0> : !S
    %a = tile.load %A[%i, %j] padding zero : !M, i32, i32 -> !A
    %s = tile.mma %a, %a, %zero : !A, !A, !S
    %r = arith.truncf %s : !S to !A
    tile.store %r, %C[%i, %j] : !A, !M, i32, i32
    return
  }
  func.func @loaded(%A: !M, %C: !M, %N: memref<?xi32, strided<[1]>>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %n = tile.gather %N[%c0] : memref<?xi32, strided<[1]>>, i32 -> i32
    %t = tile.block_id 0
    %i = arith.floordivsi %t, %n : i32
    %j = arith.remsi %t, %n : i32
    %zero = arith.constant dense<0.0> : !S
    %a = tile.load %A[%i, %j] padding zero : !M, i32, i32 -> !A
    %s = tile.mma %a, %a, %zero : !A, !A, !S
    %r = arith.truncf %s : !S to !A
    tile.store %r, %C[%i, %j] : !A, !M, i32, i32
    return
  }
}
