// A left operand that is computed before the loop of its product is written to shared memory there, once; the loop has
// no barrier for it.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-assign-layouts,tile-promote-memory))' 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

!M = memref<?x?xf16, strided<[?, 1]>>

// REMARK: writes its left operand to shared memory once: it is computed before the loop
// CHECK: %[[buffer:.*]] = tile.alloc_shared : <1x128x128xf16
// CHECK: arith.mulf
// CHECK: tile.local_store %{{.*}}, %[[buffer]]
// CHECK-NEXT: tile.barrier {tile.stores}
// CHECK: scf.for
// CHECK-NOT: tile.local_store
// CHECK: tile.async_mma %[[buffer]]
// CHECK-NOT: tile.stores
module attributes {tile.target = "sm_90a"} {
  func.func @f(%A: !M {tile.align = 16 : i32, tile.stride_div = array<i64: 64, 1>, tile.tma}, %C: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %two = arith.constant dense<2.0> : tensor<128x128xf16>
    %q = tile.load %A[%c0, %c0] padding zero : !M, i32, i32 -> tensor<128x128xf16>
    %s = arith.mulf %q, %two : tensor<128x128xf16>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%x = %zero) -> (tensor<128x128xf32>) : i32 {
      %b = tile.load %A[%k, %c0] padding zero : !M, i32, i32 -> tensor<128x128xf16>
      %y = tile.mma %s, %b, %x : tensor<128x128xf16>, tensor<128x128xf16>, tensor<128x128xf32>
      scf.yield %y : tensor<128x128xf32>
    }
    tile.store %r, %C[%c0, %c0] : tensor<128x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
