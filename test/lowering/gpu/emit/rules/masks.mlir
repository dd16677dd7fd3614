// A mask of indices is compared once for all elements of a vector that it cannot part: %n is a multiple of 8. Where it may
// part them, the thread's place is taken from the number once, and each is a comparison with a constant.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-assign-layouts),tile-to-nvvm)' | FileCheck %s

// CHECK-LABEL: llvm.func @masked
// CHECK: llvm.icmp "slt"
// CHECK-NOT: llvm.icmp "slt"
// CHECK-LABEL: llvm.func @parted
// CHECK: %[[MOST:.*]] = llvm.intr.smax
// CHECK: %[[LEFT:.*]] = llvm.sub %[[MOST]]
// CHECK-COUNT-8: llvm.icmp "sgt" %[[LEFT]]
// CHECK-NOT: llvm.icmp "slt"
!A = memref<?xbf16, strided<[1]>>
module attributes {tile.target = "sm_90a"} {
  func.func @masked(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16>}, %n: i32 {tile.div = 8 : i32}) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %at = tile.iota : tensor<1024xi32>
    %zeros = arith.constant dense<0.0> : tensor<1024xbf16>
    %ns = tensor.splat %n : tensor<1024xi32>
    %mask = arith.cmpi slt, %at, %ns : tensor<1024xi32>
    %a = tile.gather %x[%at] mask %mask : tensor<1024xi1> else %zeros : tensor<1024xbf16> {check_bounds} : !A, tensor<1024xi32> -> tensor<1024xbf16>
    tile.scatter %a, %x[%at] {check_bounds} : tensor<1024xbf16>, !A, tensor<1024xi32>
    return
  }
  func.func @parted(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16>}, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %at = tile.iota : tensor<1024xi32>
    %zeros = arith.constant dense<0.0> : tensor<1024xbf16>
    %ns = tensor.splat %n : tensor<1024xi32>
    %mask = arith.cmpi slt, %at, %ns : tensor<1024xi32>
    %a = tile.gather %x[%at] mask %mask : tensor<1024xi1> else %zeros : tensor<1024xbf16> {check_bounds} : !A, tensor<1024xi32> -> tensor<1024xbf16>
    tile.scatter %a, %x[%at] {check_bounds} : tensor<1024xbf16>, !A, tensor<1024xi32>
    return
  }
  // Places along two axes: the difference of the thread's own, compared with a constant.
  // CHECK-LABEL: llvm.func @diagonal
  // CHECK: %[[BETWEEN:.*]] = llvm.sub
  // CHECK: llvm.icmp "sge" %[[BETWEEN]], %{{.*}} : i32
  // CHECK-NOT: llvm.icmp "sge" %{{[^,]*}}, %[[BETWEEN]]
  // CHECK: llvm.return
  func.func @diagonal(%y: memref<?x?xi8, strided<[?, 1]>>) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %at = tile.iota : tensor<64xi32>
    %row = tile.reshape %at : tensor<64xi32> -> tensor<64x1xi32>
    %column = tile.reshape %at : tensor<64xi32> -> tensor<1x64xi32>
    %rows = tile.broadcast %row : tensor<64x1xi32> -> tensor<64x64xi32>
    %columns = tile.broadcast %column : tensor<1x64xi32> -> tensor<64x64xi32>
    %mask = arith.cmpi sge, %rows, %columns : tensor<64x64xi32>
    %bytes = arith.extui %mask : tensor<64x64xi1> to tensor<64x64xi8>
    tile.store %bytes, %y[%c0, %c0] {tile.in_bounds} : tensor<64x64xi8>, memref<?x?xi8, strided<[?, 1]>>, i32, i32
    return
  }
}
