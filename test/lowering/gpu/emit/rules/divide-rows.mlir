// A row by one divisor, exactly: its inverse is found once, in two parts; each quotient takes two products, three fma and
// half a look. Where one is NaN, or the divisor is out of range, all go the long way.
// RUN: tw-opt %s --pass-pipeline='builtin.module(tile-to-nvvm)' | FileCheck %s

#l = #tile.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]]>
// CHECK-LABEL: llvm.func @rows
// CHECK: llvm.ashr
// CHECK-COUNT-13: llvm.intr.fma
// CHECK-COUNT-2: llvm.fcmp "ord"
// CHECK: llvm.cond_br {{.*}}, ^[[JOIN:bb[0-9]+]]({{.*}}), ^[[LONG:bb[0-9]+]]
// CHECK: ^[[LONG]]:
// CHECK-COUNT-4: llvm.fcmp "uno"
// CHECK: ^[[JOIN]]({{.*}}: f32, {{.*}}: f32, {{.*}}: f32, {{.*}}: f32, {{.*}}: f32):
// CHECK-COUNT-4: llvm.fmul
module attributes {tile.target = "sm_90a"} {
  func.func @rows(%a: memref<?xf32, strided<[1]>>, %y: f32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] padding zero : memref<?xf32, strided<[1]>>, i32 -> tensor<128xf32, #l>
    %ys = tensor.splat %y : tensor<128xf32, #l>
    %z = arith.divf %x, %ys : tensor<128xf32, #l>
    tile.store %z, %a[%i] : tensor<128xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}
