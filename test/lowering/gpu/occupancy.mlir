// occupancy=2 stays where a share of the registers holds the sums of the products, and is dropped elsewhere.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-plan-block))' 2>%t | FileCheck %s
// RUN: FileCheck --check-prefix=SAID %s < %t

// CHECK-LABEL: func.func @large
// CHECK-NOT: occupancy
// CHECK-LABEL: func.func @small
// CHECK-SAME: occupancy = 2
// SAID: drops occupancy=2: the sums of its products need 128 registers of each thread and all else some 40, and a share of 2 has 128
// SAID-NOT: drops
module attributes {tile.target = "sm_90a"} {
  func.func @large(%a: tensor<128x64xf16>, %b: tensor<64x256xf16>, %n: i32) attributes {tile.kernel, tile.hints = {occupancy = 2 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%x = %zero) -> (tensor<128x256xf32>) : i32 {
      %y = tile.mma %a, %b, %x : tensor<128x64xf16>, tensor<64x256xf16>, tensor<128x256xf32>
      scf.yield %y : tensor<128x256xf32>
    }
    return
  }
  func.func @small(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>, %n: i32) attributes {tile.kernel, tile.hints = {occupancy = 2 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%x = %zero) -> (tensor<64x64xf32>) : i32 {
      %y = tile.mma %a, %b, %x : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
      scf.yield %y : tensor<64x64xf32>
    }
    return
  }
}
