// Quotients and rests of what counts up: neighbours share the quotient, and their rests count up, if vectors divide %n.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-assign-layouts,tile-report))' 2>&1 | FileCheck %s

!array = memref<?xf16, strided<[1]>>
// CHECK: remark: 'tile.gather' op reads 1024xf16, in pieces of up to 16 bytes
// CHECK: remark: 'tile.gather' op reads 1024xf16 element by element
module attributes {tile.target = "sm_80"} {
  func.func @rests(%A: !array {tile.align = 16 : i32, tile.shape_div = array<i64: 16>}, %C: !array {tile.align = 16 : i32, tile.shape_div = array<i64: 16>},
                   %n: i32 {tile.div = 16 : i32}, %m: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %i = tile.iota : tensor<1024xi32>
    %ns = tensor.splat %n : tensor<1024xi32>
    %ms = tensor.splat %m : tensor<1024xi32>
    %row = arith.floordivsi %i, %ns : tensor<1024xi32>
    %column = arith.remsi %i, %ns : tensor<1024xi32>
    %twice = arith.addi %row, %row : tensor<1024xi32>
    %begin = arith.muli %twice, %ns : tensor<1024xi32>
    %at = arith.addi %begin, %column : tensor<1024xi32>
    %x = tile.gather %A[%at] {check_bounds} : !array, tensor<1024xi32> -> tensor<1024xf16>
    %any = arith.remsi %i, %ms : tensor<1024xi32>
    %y = tile.gather %A[%any] {check_bounds} : !array, tensor<1024xi32> -> tensor<1024xf16>
    %s = arith.addf %x, %y : tensor<1024xf16>
    tile.store %s, %C[%c0] : tensor<1024xf16>, !array, i32
    return
  }
}
