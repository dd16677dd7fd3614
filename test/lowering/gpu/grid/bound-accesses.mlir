// Masks of accesses are bounds of arrays, and offsets in an array of one dimension rows and columns.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-resize-tiles))' 2>/dev/null | FileCheck %s

!M = memref<?x?xf16, strided<[?, 1]>>
!T = tensor<64x32xf16>
!I = tensor<64x32xi32>
!B = tensor<64x32xi1>

// The array's own extent is no bound; a number of the launch is.
// CHECK-LABEL: @load
// CHECK-SAME: %[[view:[a-z0-9]*]]: memref<?x?xf16, strided<[?, 1]>> {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 4>, tile.stride_div = array<i64: 16, 1>, tile.tma})
// CHECK-SAME: views = [{array = {bits = 16 : i32, rank = 2 : i32, word = 0 : i32}, bounds = [{factors = []}, {factors = [{by = 1 : i64, plus = 0 : i64, word = 10 : i64}]}], pitch = [], word = 11 : i32}]
// CHECK: %[[t:.*]] = tile.load %[[view]][%{{.*}}, %{{.*}}] padding zero
// CHECK-NEXT: tile.store %[[t]]
module attributes {tile.target = "sm_90a"} {
  func.func @load(%A: !M {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 16, 1>, tile.tma}, %C: !M, %n: i32 {tile.div = 4 : i32}) attributes {tile.kernel} {
    %i = tile.block_id 0
    %j = tile.block_id 1
    %c32 = arith.constant 32 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : !T
    %m = tile.dim %A, 0 : !M
    %rows = tensor.splat %m : !I
    %columns = tensor.splat %n : !I
    %first_row = arith.muli %i, %c64 : i32
    %first_column = arith.muli %j, %c32 : i32
    %iota_r = tile.iota : tensor<64xi32>
    %iota_c = tile.iota : tensor<32xi32>
    %r0 = tile.reshape %iota_r : tensor<64xi32> -> tensor<64x1xi32>
    %r1 = tile.broadcast %r0 : tensor<64x1xi32> -> !I
    %c0 = tile.broadcast %iota_c : tensor<32xi32> -> !I
    %from_r = tensor.splat %first_row : !I
    %from_c = tensor.splat %first_column : !I
    %r = arith.addi %r1, %from_r : !I
    %c = arith.addi %c0, %from_c : !I
    %in_r = arith.cmpi slt, %r, %rows : !I
    %in_c = arith.cmpi sgt, %columns, %c : !I
    %in = arith.andi %in_r, %in_c : !B
    %t = tile.load %A[%i, %j] padding zero : !M, i32, i32 -> !T
    %s = arith.select %in, %t, %zero : !B, !T
    tile.store %s, %C[%i, %j] : !T, !M, i32, i32
    return
  }
}

// -----

!F = memref<?xf16, strided<[1]>>
!M = memref<?x?xf16, strided<[?, 1]>>
!T = tensor<64x32xf16>
!I = tensor<64x32xi32>
!S = tensor<64x32xf16>

// A loop says how far columns go; of rows all count. What is stored under a mask is stored to rows, too.
// CHECK-LABEL: @rows
// CHECK-SAME: %[[view:[a-z0-9]*]]: memref<?x?xf16, strided<[?, 1]>> {tile.align = 16 : i32, tile.shape_div = array<i64: 1, 32>, tile.stride_div = array<i64: 8, 1>, tile.tma}
// CHECK-SAME: bounds = [{factors = []}, {factors = [{by = 32 : i64, plus = 31 : i64, word = 8 : i64}, {by = 1 : i64, plus = 32 : i64, word = -1 : i64}]}], pitch = [{by = 1 : i64, plus = 0 : i64, word = 8 : i64}]
// CHECK: scf.for %[[k:[a-z0-9]*]]
// CHECK: tile.load %[[view]][%{{.*}}, %[[k]]] padding zero
// CHECK: tile.store %{{.*}}, %{{[a-z0-9]*}}[%{{.*}}, %[[k]]]
module attributes {tile.target = "sm_90a"} {
  func.func @rows(%A: !F {tile.align = 16 : i32, tile.tma}, %C: !F, %x: i32, %y: i32, %n: i32 {tile.div = 8 : i32}) attributes {tile.kernel} {
    %i = tile.block_id 0
    %0 = arith.constant 0 : i32
    %1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : !T
    %steps = arith.ceildivsi %n, %c32 : i32
    %first = arith.muli %i, %c64 : i32
    %iota_r = tile.iota : tensor<64xi32>
    %iota_c = tile.iota : tensor<32xi32>
    %from = tensor.splat %first : tensor<64xi32>
    %r0 = arith.addi %from, %iota_r : tensor<64xi32>
    %r = tile.reshape %r0 : tensor<64xi32> -> tensor<64x1xi32>
    %rows = tile.broadcast %r : tensor<64x1xi32> -> !I
    %pitch = tensor.splat %n : !I
    %offset = arith.muli %rows, %pitch : !I
    scf.for %k = %0 to %steps step %1 : i32 {
      %next = arith.muli %k, %c32 : i32
      %c0 = tensor.splat %next : tensor<32xi32>
      %c1 = arith.addi %c0, %iota_c : tensor<32xi32>
      %c = tile.broadcast %c1 : tensor<32xi32> -> !I
      %at = arith.addi %offset, %c : !I
      %in = arith.cmpi slt, %c, %pitch : !I
      %t = tile.gather %A[%at] else %zero : !T {check_bounds} : !F, !I -> !T
      tile.scatter %t, %C[%at] mask %in : tensor<64x32xi1> {check_bounds} : !T, !F, !I
    }
    return
  }
}

// -----

!F = memref<?xf16, strided<[1]>>
!T = tensor<64x32xf16>
!I = tensor<64x32xi32>

// Nobody says that columns end before the next row begins.
// CHECK-LABEL: @overlapping
// CHECK-NOT: views
// CHECK: tile.gather
module attributes {tile.target = "sm_90a"} {
  func.func @overlapping(%A: !F, %n: i32) -> !T attributes {tile.kernel} {
    %j = tile.block_id 0
    %zero = arith.constant dense<0.0> : !T
    %iota_r = tile.iota : tensor<64xi32>
    %iota_c = tile.iota : tensor<32xi32>
    %r = tile.reshape %iota_r : tensor<64xi32> -> tensor<64x1xi32>
    %rows = tile.broadcast %r : tensor<64x1xi32> -> !I
    %pitch = tensor.splat %n : !I
    %offset = arith.muli %rows, %pitch : !I
    %first = tensor.splat %j : !I
    %c = tile.broadcast %iota_c : tensor<32xi32> -> !I
    %columns = arith.addi %c, %first : !I
    %at = arith.addi %offset, %columns : !I
    %t = tile.gather %A[%at] else %zero : !T {check_bounds} : !F, !I -> !T
    return %t : !T
  }
}

// -----

// Offsets in the memory of an array may lie beyond its extents: nothing bounds them but their mask.
// CHECK-LABEL: @memory
// CHECK-NOT: views
// CHECK: tile.gather %{{.*}} mask
module attributes {tile.target = "sm_90a"} {
  func.func @memory(%A: memref<?x?xf16, strided<[?, 1]>>, %C: memref<?xf16, strided<[1]>>, %n: i32) attributes {tile.kernel} {
    %i = tile.block_id 0
    %zeros = arith.constant dense<0> : tensor<64xi32>
    %zero = arith.constant dense<0.0> : tensor<64xf16>
    %at = tile.iota : tensor<64xi32>
    %most = tensor.splat %n : tensor<64xi32>
    %mask = arith.cmpi slt, %at, %most : tensor<64xi32>
    %t = tile.gather %A[%zeros, %at] mask %mask : tensor<64xi1> else %zero : tensor<64xf16> {tile.flat} : memref<?x?xf16, strided<[?, 1]>>, tensor<64xi32>, tensor<64xi32> -> tensor<64xf16>
    tile.store %t, %C[%i] : tensor<64xf16>, memref<?xf16, strided<[1]>>, i32
    return
  }
}
