// The plan of a grid, which stands on the function; the kernel is as it was.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-plan-grid))' 2>/dev/null | FileCheck %s

!A = memref<?x?xbf16, strided<[?, 1]>>
!C = memref<?x?xf32, strided<[?, 1]>>

// Groups of 16 rows load the fewest bytes; all blocks have the same work.
// CHECK-LABEL: func.func @static
// CHECK-SAME: tile.grid = {group = 16 : i32, raster = array<i32: 0, 1, 2>, schedule = "static"}
// CHECK: %[[I:.*]] = tile.block_id 0
// CHECK: tile.store %{{.*}}, %arg2[%[[I]],
module attributes {tile.target = "sm_90a"} {
  func.func @static(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: !C, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32, num_ctas = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x256xbf16>
      %e = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>
      scf.yield %e : tensor<128x256xf32>
    }
    tile.store %d, %z[%i, %j] : tensor<128x256xf32>, !C, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>
!C = memref<?x?xf32, strided<[?, 1]>>

// The same in clusters, by a hint: the loads that neighbours share are marked, and the launcher is told.
// CHECK-LABEL: func.func @clusters
// CHECK-SAME: tile.grid = {cluster_axis = 0 : i32, group = 16 : i32, raster = array<i32: 0, 1, 2>, schedule = "static"}
// CHECK-SAME: multicast = {alone = {{[0-9]+}} : i64, axis = 0 : i64
// CHECK: tile.load %arg0{{.*}} padding zero :
// CHECK: tile.load %arg1{{.*}} padding zero {tile.multicast}
module attributes {tile.target = "sm_90a"} {
  func.func @clusters(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: !C, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32, num_ctas = 2 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x256xbf16>
      %e = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>
      scf.yield %e : tensor<128x256xf32>
    }
    tile.store %d, %z[%i, %j] : tensor<128x256xf32>, !C, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>
!C = memref<?x?xf32, strided<[?, 1]>>

// A step behind a loop that was rolled into it: the loop runs once where it had nothing to do, which is not counted.
// CHECK-LABEL: func.func @behind
// CHECK-SAME: schedule = "dynamic", work_axis = 0 : i32, work_grows}
module attributes {tile.target = "sm_90a"} {
  func.func @behind(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: !C) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.block_id 0
    %n = arith.addi %i, %c1 : i32
    %low = arith.minsi %i, %c0 : i32
    %d = scf.for %k = %low to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %e = tile.mma %a, %a, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    }
    tile.store %d, %z[%i, %c0] : tensor<64x64xf32>, !C, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>
!C = memref<?x?xf32, strided<[?, 1]>>

// Axis 0 tells the work: the longest first, on demand. Where it prints, the hardware's order: no plan.
// CHECK-LABEL: func.func @causal
// CHECK-SAME: tile.grid = {raster = array<i32: 0, 1, 2>, schedule = "dynamic", work_axis = 0 : i32, work_grows}
// CHECK-LABEL: func.func @prints
// CHECK-NOT: tile.grid
module attributes {tile.target = "sm_90a"} {
  func.func @causal(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: !C) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.block_id 0
    %d = scf.for %k = %c0 to %i step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %e = tile.mma %a, %a, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    }
    tile.store %d, %z[%i, %c0] : tensor<64x64xf32>, !C, i32, i32
    return
  }
  func.func @prints(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.block_id 0
    %d = scf.for %k = %c0 to %i step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %e = tile.mma %a, %a, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    }
    tile.print "{}", %i : i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// A kernel that moves memory follows its stores.
// CHECK-LABEL: func.func @transpose
// CHECK-SAME: tile.grid = {raster = array<i32: 1, 0, 2>, schedule = "launch"}
module attributes {tile.target = "sm_80"} {
  func.func @transpose(%x: !A, %y: !A) attributes {tile.kernel} {
    %j = tile.block_id 0
    %i = tile.block_id 1
    %a = tile.load %x[%i, %j] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
    %t = tile.permute %a [1, 0] : tensor<64x64xbf16>
    tile.store %t, %y[%j, %i] : tensor<64x64xbf16>, !A, i32, i32
    return
  }
}
