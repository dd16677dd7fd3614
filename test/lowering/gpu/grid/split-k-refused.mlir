// Loops over k that blocks cannot share: all but sums of products from zero, each in its place, over 0, 1, 2 ...
// RUN: tw-opt %s -split-input-file -verify-diagnostics -pass-pipeline='builtin.module(func.func(tile-split-k))' | FileCheck %s
// CHECK-NOT: tile.sum_parts

!A = memref<?x?xf16, strided<[?, 1]>>
module attributes {tile.target = "sm_90a"} {
  // expected-remark @below {{computes each sum over k in one block: the loop's step is not 1}}
  func.func @step(%x: !A, %z: !A) attributes {tile.kernel, tile.hints = {split_k = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c2 = arith.constant 2 : i32
    %c8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<16x16xf16>
    %s = scf.for %k = %c0 to %c8 step %c2 iter_args(%acc = %zero) -> (tensor<16x16xf16>) : i32 {
      %a = tile.load %x[%c0, %k] : !A, i32, i32 -> tensor<16x16xf16>
      %d = tile.mma %a, %a, %acc : tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf16>
      scf.yield %d : tensor<16x16xf16>
    }
    tile.store %s, %z[%c0, %c0] : tensor<16x16xf16>, !A, i32, i32
    return
  }

  // expected-remark @below {{computes each sum over k in one block: the loop carries something else than sums of products from zero}}
  func.func @factor(%x: !A, %z: !A) attributes {tile.kernel, tile.hints = {split_k = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<16x16xf16>
    %s = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> (tensor<16x16xf16>) : i32 {
      %a = tile.load %x[%c0, %k] : !A, i32, i32 -> tensor<16x16xf16>
      %d = tile.mma %acc, %a, %a : tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf16>
      scf.yield %d : tensor<16x16xf16>
    }
    tile.store %s, %z[%c0, %c0] : tensor<16x16xf16>, !A, i32, i32
    return
  }

  // expected-remark @below {{computes each sum over k in one block: the loop carries something else than sums of products from zero}}
  func.func @from_something(%x: !A, %z: !A) attributes {tile.kernel, tile.hints = {split_k = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %one = arith.constant dense<1.0> : tensor<16x16xf16>
    %s = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %one) -> (tensor<16x16xf16>) : i32 {
      %a = tile.load %x[%c0, %k] : !A, i32, i32 -> tensor<16x16xf16>
      %d = tile.mma %a, %a, %acc : tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf16>
      scf.yield %d : tensor<16x16xf16>
    }
    tile.store %s, %z[%c0, %c0] : tensor<16x16xf16>, !A, i32, i32
    return
  }

  // expected-remark @below {{computes each sum over k in one block: the loop carries something else than sums of products from zero}}
  func.func @crossed(%x: !A, %z: !A) attributes {tile.kernel, tile.hints = {split_k = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<16x16xf16>
    %s:2 = scf.for %k = %c0 to %c8 step %c1 iter_args(%p = %zero, %q = %zero) -> (tensor<16x16xf16>, tensor<16x16xf16>) : i32 {
      %a = tile.load %x[%c0, %k] : !A, i32, i32 -> tensor<16x16xf16>
      %d = tile.mma %a, %a, %p : tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf16>
      %e = tile.mma %a, %a, %q : tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf16>
      scf.yield %e, %d : tensor<16x16xf16>, tensor<16x16xf16>
    }
    tile.store %s#0, %z[%c0, %c0] : tensor<16x16xf16>, !A, i32, i32
    tile.store %s#1, %z[%c1, %c0] : tensor<16x16xf16>, !A, i32, i32
    return
  }

  // expected-remark @below {{computes each sum over k in one block: the loop carries something else than sums of products from zero}}
  func.func @in_a_branch(%x: !A, %z: !A) attributes {tile.kernel, tile.hints = {split_k = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<16x16xf16>
    %s = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> (tensor<16x16xf16>) : i32 {
      %a = tile.load %x[%c0, %k] : !A, i32, i32 -> tensor<16x16xf16>
      %odd = arith.cmpi sgt, %k, %c1 : i32
      %d = scf.if %odd -> (tensor<16x16xf16>) {
        %e = tile.mma %a, %a, %acc : tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf16>
        scf.yield %e : tensor<16x16xf16>
      } else {
        scf.yield %a : tensor<16x16xf16>
      }
      scf.yield %d : tensor<16x16xf16>
    }
    tile.store %s, %z[%c0, %c0] : tensor<16x16xf16>, !A, i32, i32
    return
  }

  // expected-remark @below {{computes each sum over k in one block: its first product is in no loop over numbers}}
  func.func @no_loop(%x: !A, %z: !A) attributes {tile.kernel, tile.hints = {split_k = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : tensor<16x16xf16>
    %a = tile.load %x[%c0, %c0] : !A, i32, i32 -> tensor<16x16xf16>
    %d = tile.mma %a, %a, %zero : tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf16>
    tile.store %d, %z[%c0, %c0] : tensor<16x16xf16>, !A, i32, i32
    return
  }
}
