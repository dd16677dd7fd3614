// 16 bytes at once: a register of 128 bits, made of two words.
// RUN: tw-opt %s --tile-to-nvvm | FileCheck %s

module attributes {tile.target = "sm_80"} {
  // CHECK-LABEL: llvm.func @pair
  func.func @pair(%x: memref<i64>, %l: i64, %h: i64) attributes {tile.kernel, tile.simt} {
    // CHECK: fence.sc.sys
    // CHECK: ld.acquire.sys.global.b128 %q, [$2]; mov.b128 {$0, $1}, %q;
    // CHECK: mov.b128 %q, {$1, $2}; st.release.gpu.global.b128 [$0], %q;
    %a, %b = tile.atomic_pair load seq_cst sys, %l, %h, %x : memref<i64>
    %c, %d = tile.atomic_pair store release device, %a, %b, %x : memref<i64>
    return
  }
}
