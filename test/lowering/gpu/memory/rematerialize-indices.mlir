// Rows at loaded indices, which are also those that the result goes to: each has its own.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-optimize-indices))' | FileCheck %s

!table = memref<?xi32, strided<[1]>>
!array = memref<?x?xbf16, strided<[?, 1]>>
module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: func.func @moved_rows
  // CHECK: %[[HERE:.*]] = tile.load %{{.*}} -> tensor<64xi32>
  // CHECK: %[[THERE:.*]] = tile.load %{{.*}} -> tensor<64xi32>
  // CHECK: %[[H:.*]] = tile.reshape %[[HERE]]
  // CHECK: %[[T:.*]] = tile.reshape %[[THERE]]
  // CHECK: %[[FROM:.*]] = tile.broadcast %[[H]]
  // CHECK: %[[TO:.*]] = tile.broadcast %[[T]]
  // CHECK: tile.gather %{{.*}}[%[[FROM]],
  // CHECK: tile.scatter %{{.*}}[%[[TO]],
  func.func @moved_rows(%A: !array {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>}, %B: !array, %T: !table, %C: !array) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %zeros = arith.constant dense<0.0> : tensor<64x64xbf16>
    %none = arith.constant dense<0.0> : tensor<64x64xf32>
    %x = tile.load %B[%c0, %c0] padding zero : !array, i32, i32 -> tensor<64x64xbf16>
    %column = tile.iota : tensor<64xi32>
    %c = tile.reshape %column : tensor<64xi32> -> tensor<1x64xi32>
    %columns = tile.broadcast %c : tensor<1x64xi32> -> tensor<64x64xi32>
    %t = tile.load %T[%c0] padding zero : !table, i32 -> tensor<64xi32>
    %r = tile.reshape %t : tensor<64xi32> -> tensor<64x1xi32>
    %rows = tile.broadcast %r : tensor<64x1xi32> -> tensor<64x64xi32>
    %a = tile.gather %A[%rows, %columns] else %zeros : tensor<64x64xbf16> {check_bounds} : !array, tensor<64x64xi32>, tensor<64x64xi32> -> tensor<64x64xbf16>
    %d = tile.mma %a, %x, %none : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    %h = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xbf16>
    tile.scatter %h, %C[%rows, %columns] {check_bounds} : tensor<64x64xbf16>, !array, tensor<64x64xi32>, tensor<64x64xi32>
    return
  }
}
