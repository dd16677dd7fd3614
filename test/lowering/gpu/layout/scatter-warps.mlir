// Warps are counted by what is moved, 8 KB that are loaded: a scatter of bytes has indices of four bytes each, which are
// computed.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-plan-block))' | FileCheck %s

!A = memref<?xbf16, strided<[1]>>
!B = memref<?xi8, strided<[1]>>
// CHECK: num_warps = 4
module attributes {tile.target = "sm_90a"} {
  func.func @narrow(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16>}, %y: !B) attributes {tile.kernel} {
    %i = tile.block_id 0
    %c4096 = arith.constant 4096 : i32
    %first = arith.muli %i, %c4096 : i32
    %firsts = tensor.splat %first : tensor<4096xi32>
    %iota = tile.iota : tensor<4096xi32>
    %at = arith.addi %firsts, %iota : tensor<4096xi32>
    %a = tile.load %x[%i] padding zero : !A, i32 -> tensor<4096xbf16>
    %most = tile.reduce max, %a axis 0 : tensor<4096xbf16>
    %mosts = tensor.splat %most : tensor<4096xbf16>
    %b = arith.subf %a, %mosts : tensor<4096xbf16>
    %c = arith.fptosi %b : tensor<4096xbf16> to tensor<4096xi8>
    tile.scatter %c, %y[%at] {check_bounds} : tensor<4096xi8>, !B, tensor<4096xi32>
    return
  }
}
