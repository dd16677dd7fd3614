// A product of two words with all of its 64 bits is one instruction, which LLVM does not look into. Other products of 64
// bits are LLVM's.
// RUN: tw-opt %s --pass-pipeline='builtin.module(tile-to-nvvm)' | FileCheck %s

#l = #tile.linear<register = [], lane = [[1], [2], [4], [8], [16]]>

module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: llvm.func @words
  func.func @words(%a: memref<?xi32, strided<[1]>>, %b: memref<?xi64, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] padding zero : memref<?xi32, strided<[1]>>, i32 -> tensor<32xi32, #l>
    %w = arith.extui %x : tensor<32xi32, #l> to tensor<32xi64, #l>
    %s = arith.extsi %x : tensor<32xi32, #l> to tensor<32xi64, #l>
    %k = arith.constant dense<3528531795> : tensor<32xi64, #l>
    %long = arith.constant dense<4294967296> : tensor<32xi64, #l>
    // CHECK-COUNT-2: llvm.inline_asm "mul.wide.u32 $0, $1, $2;"
    // CHECK-COUNT-2: llvm.mul {{.*}} : i64
    // CHECK-NOT: mul.wide
    %p = arith.muli %w, %k : tensor<32xi64, #l>
    %q = arith.muli %w, %w : tensor<32xi64, #l>
    %r = arith.muli %s, %k : tensor<32xi64, #l>
    %t = arith.muli %w, %long : tensor<32xi64, #l>
    %u = arith.xori %p, %q : tensor<32xi64, #l>
    %v = arith.xori %r, %t : tensor<32xi64, #l>
    %z = arith.xori %u, %v : tensor<32xi64, #l>
    tile.store %z, %b[%i] : tensor<32xi64, #l>, memref<?xi64, strided<[1]>>, i32
    return
  }
}
