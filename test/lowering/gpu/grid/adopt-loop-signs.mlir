// A remainder with the sign of what it is divided by, as Python has it, tells with the quotient rounded down which step it is; with one rounded to zero it does not.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-plan-grid))' | FileCheck %s
// RUN: sed 's/floordivsi/divsi/' %s | tw-opt --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-plan-grid))' | FileCheck %s --check-prefix=ZERO

// CHECK: } {tile.persistent}
// ZERO-NOT: {tile.persistent}
module attributes {tile.target = "sm_90a"} {
  func.func @apart(%A: memref<?x?xf16, strided<[?, 1]>> {tile.align = 16 : i32, tile.stride_div = array<i64: 64, 1>, tile.tma}, %C: memref<?x?xf32, strided<[?, 1]>>, %n: i32, %m: i32) attributes {tile.kernel} {
    %b = tile.block_id 0
    %s = tile.num_blocks 0
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    scf.for %t = %b to %n step %s : i32 {
      %i = arith.floordivsi %t, %m : i32
      %q = arith.remsi %t, %m : i32
      %x = arith.xori %q, %m : i32
      %lt = arith.cmpi slt, %x, %c0 : i32
      %ne = arith.cmpi ne, %q, %c0 : i32
      %odd = arith.andi %ne, %lt : i1
      %sum = arith.addi %q, %m : i32
      %j = arith.select %odd, %sum, %q : i32
      %r = scf.for %k = %c0 to %m step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
        %a = tile.load %A[%i, %k] padding zero : memref<?x?xf16, strided<[?, 1]>>, i32, i32 -> tensor<64x64xf16>
        %y = tile.mma %a, %a, %acc : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
        scf.yield %y : tensor<64x64xf32>
      }
      tile.store %r, %C[%j, %i] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    }
    return
  }
}
