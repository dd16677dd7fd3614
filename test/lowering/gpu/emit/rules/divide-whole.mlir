// A row by a whole number, which has few bits: each quotient takes one product and one fma, and for two of them another
// one looks for what is infinite. Where one is, or the number has too many bits, all go the long way.
// RUN: tw-opt %s --pass-pipeline='builtin.module(tile-to-nvvm)' | FileCheck %s

#l = #tile.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]]>
// CHECK-LABEL: llvm.func @rows
// CHECK: llvm.icmp "ult"
// CHECK: llvm.icmp "eq"
// CHECK: %[[DIVISOR:.*]] = llvm.and
// CHECK: llvm.fmul %[[X:.*]], %[[LOW:.*]] {{.*}} : f32
// CHECK-NEXT: llvm.intr.fma(%[[X]], %[[DOWN:.*]], %{{.*}})
// CHECK-COUNT-3: llvm.intr.fma(%{{.*}}, %[[DOWN]], %{{.*}})
// CHECK: %[[PAIR:.*]] = llvm.fmul
// CHECK-NEXT: %[[SUM:.*]] = llvm.intr.fma(%{{.*}}, %{{.*}}, %[[PAIR]])
// CHECK: llvm.intr.fabs(%[[SUM]])
// CHECK: llvm.fcmp "olt"
// CHECK-NEXT: %[[ALL:.*]] = llvm.and %[[DIVISOR]]
// CHECK-NEXT: llvm.cond_br %[[ALL]]
module attributes {tile.target = "sm_90a"} {
  func.func @rows(%a: memref<?xf32, strided<[1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] padding zero : memref<?xf32, strided<[1]>>, i32 -> tensor<128xf32, #l>
    %y = arith.sitofp %n : i32 to f32
    %ys = tensor.splat %y : tensor<128xf32, #l>
    %z = arith.divf %x, %ys : tensor<128xf32, #l>
    tile.store %z, %a[%i] : tensor<128xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}
