// What is left of an array is counted in 32 bits where the loop goes over no tile beyond: the array's end is cut once, in
// front of the loop. Elsewhere it is counted in 64.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-assign-layouts),tile-to-nvvm)' 2>/dev/null | FileCheck %s

!A = memref<?xf32, strided<[1]>>
#hints = {num_warps = 4 : i32}
module attributes {tile.target = "sm_90a"} {
  // 2^21 tiles of 1024 end with the element 2^31 - 1.
  // CHECK-LABEL: llvm.func @counted
  // CHECK: %[[MOST:.*]] = llvm.mlir.constant(2147483647 : i64)
  // CHECK: %[[LAST:.*]] = llvm.intr.smin(%{{.*}}, %[[MOST]]) : (i64, i64) -> i64
  // CHECK: %[[SHORT:.*]] = llvm.trunc %[[LAST]] : i64 to i32
  // CHECK: llvm.br ^bb2
  // CHECK: llvm.sub %[[SHORT]], %{{.*}} : i32
  // CHECK: llvm.icmp "sge"
  // CHECK-NOT: llvm.intr.smax
  // CHECK: llvm.return
  func.func @counted(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16>}, %n: i32) attributes {tile.kernel, tile.hints = #hints} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c1024 = arith.constant 1024 : i32
    %tiles = arith.ceildivsi %n, %c1024 : i32
    scf.for %j = %c0 to %tiles step %c1 : i32 {
      %a = tile.load %x[%j] padding zero : !A, i32 -> tensor<1024xf32>
      %b = arith.addf %a, %a : tensor<1024xf32>
      tile.store %b, %x[%j] : tensor<1024xf32>, !A, i32
    }
    return
  }
  // One more: the last element's number is no i32.
  // CHECK-LABEL: llvm.func @beyond
  // CHECK: llvm.intr.smax
  // CHECK: llvm.return
  func.func @beyond(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16>}) attributes {tile.kernel, tile.hints = #hints} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %tiles = arith.constant 2097153 : i32
    scf.for %j = %c0 to %tiles step %c1 : i32 {
      %a = tile.load %x[%j] padding zero : !A, i32 -> tensor<1024xf32>
      %b = arith.addf %a, %a : tensor<1024xf32>
      tile.store %b, %x[%j] : tensor<1024xf32>, !A, i32
    }
    return
  }
  // CHECK-LABEL: llvm.func @below
  // CHECK: llvm.intr.smax
  // CHECK: llvm.return
  func.func @below(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16>}, %first: i32, %n: i32) attributes {tile.kernel, tile.hints = #hints} {
    %c1 = arith.constant 1 : i32
    %c1024 = arith.constant 1024 : i32
    %tiles = arith.ceildivsi %n, %c1024 : i32
    scf.for %j = %first to %tiles step %c1 : i32 {
      %a = tile.load %x[%j] padding zero : !A, i32 -> tensor<1024xf32>
      %b = arith.addf %a, %a : tensor<1024xf32>
      tile.store %b, %x[%j] : tensor<1024xf32>, !A, i32
    }
    return
  }
}
