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
}
