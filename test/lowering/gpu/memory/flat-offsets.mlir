// Rows in an array of one dimension: %m and %n say what a launch with other numbers has other code for.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-assign-layouts,tile-report))' 2>&1 | FileCheck %s

// CHECK: remark: 'tile.gather' op reads 64x64xf16, in pieces of up to 16 bytes{{$}}
// CHECK: remark: 'tile.gather' op reads 64x64xf16, in pieces of up to 16 bytes around its neighbours
module attributes {tile.target = "sm_80"} {
  func.func @multiples(%A: memref<?xf16, strided<[1]>> {tile.align = 16 : i32, tile.shape_div = array<i64: 16>, tile.stride_div = array<i64: 1>},
                       %C: memref<?x?xf16, strided<[?, 1]>> {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>},
                       %m: i32 {tile.div = 16 : i32}, %n: i32 {tile.div = 8 : i32}) attributes {tile.kernel} {
    %zeros = arith.constant dense<0.0> : tensor<64x64xf16>
    %c0 = arith.constant 0 : i32
    %i = tile.iota : tensor<64xi32>
    %c = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
    %r = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
    %ms = tensor.splat %m : tensor<64x1xi32>
    %row = arith.muli %r, %ms : tensor<64x1xi32>
    %rows = tile.broadcast %row : tensor<64x1xi32> -> tensor<64x64xi32>
    %columns = tile.broadcast %c : tensor<1x64xi32> -> tensor<64x64xi32>
    %p = arith.addi %rows, %columns : tensor<64x64xi32>
    %ns = tensor.splat %n : tensor<64x64xi32>
    %mask = arith.cmpi slt, %columns, %ns : tensor<64x64xi32>
    %t = tile.gather %A[%p] mask %mask : tensor<64x64xi1> else %zeros : tensor<64x64xf16> {check_bounds} : memref<?xf16, strided<[1]>>, tensor<64x64xi32> -> tensor<64x64xf16>
    // The border of this mask lies within a vector, which is loaded if one of its elements is wanted.
    %within = arith.cmpi sle, %columns, %ns : tensor<64x64xi32>
    %u = tile.gather %A[%p] mask %within : tensor<64x64xi1> else %zeros : tensor<64x64xf16> {check_bounds} : memref<?xf16, strided<[1]>>, tensor<64x64xi32> -> tensor<64x64xf16>
    %s = arith.addf %t, %u : tensor<64x64xf16>
    tile.store %s, %C[%c0, %c0] : tensor<64x64xf16>, memref<?x?xf16, strided<[?, 1]>>, i32, i32
    return
  }
}
