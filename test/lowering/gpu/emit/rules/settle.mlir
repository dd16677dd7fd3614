// Numbers move by an instruction that the assembler cannot leave out, and that stays where it is among loads.
// RUN: tw-opt %s -pass-pipeline='builtin.module(tile-to-nvvm)' | FileCheck %s

#lanes = #tile.linear<lane = [[1], [2], [4], [8], [16]]>

// CHECK-LABEL: @moves
// CHECK: %[[ZERO:.*]] = llvm.inline_asm {{.*}}lanemask_lt
// CHECK: %[[W:.*]] = llvm.bitcast %{{.*}} : f32 to i32
// CHECK: llvm.inline_asm has_side_effects "xor.b32 $0, $1, $2;", "=r,r,r" %[[W]], %[[ZERO]]
module attributes {tile.target = "sm_90a"} {
  func.func @moves(%a: memref<?xf32, strided<[1]>>, %i: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %x = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<32xf32, #lanes>
    %y = tile.settle %x : tensor<32xf32, #lanes>
    tile.store %y, %a[%i] : tensor<32xf32, #lanes>, memref<?xf32, strided<[1]>>, i32
    return
  }
}
