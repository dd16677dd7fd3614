// Pieces too small for a copy: an address is that of the row before and a distance, a guard one comparison of a row.
// RUN: tw-opt %s -pass-pipeline='builtin.module(tile-allocate-shared,tile-to-nvvm,canonicalize,cse)' | FileCheck %s
#lines = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 0], [4, 0]]>
!A = memref<?x?xbf16, strided<[?, 1]>>

// CHECK: %[[LEFT:.*]] = llvm.sub %{{.*}}, %{{.*}} : i32
// CHECK: %[[FIRST:.*]] = llvm.inline_asm "mov.b64 $0, $1;", "=l,l"
// CHECK: %[[EVEN:.*]] = llvm.getelementptr %[[FIRST]][%{{.*}}]
// CHECK: %[[ODD:.*]] = llvm.getelementptr %[[FIRST]][%{{.*}}]
// CHECK: %[[ROW1:.*]] = llvm.getelementptr %[[ODD]][%{{.*}}]
// CHECK: %[[ROW2:.*]] = llvm.getelementptr %[[EVEN]][%[[TWO:.*]]]
// CHECK-NEXT: llvm.icmp "sgt" %[[LEFT]], %{{.*}} : i32
// CHECK-NEXT: llvm.and
// CHECK: ld.global.b16 {{.*}} %[[ROW2]],
// CHECK: %[[ROW3:.*]] = llvm.getelementptr %[[ROW1]][%[[TWO]]]
// CHECK: %[[ROW4:.*]] = llvm.getelementptr %[[ROW2]][%[[TWO]]]
module attributes {tile.target = "sm_90a"} {
  func.func @rows(%x: !A, %i: i32) attributes {tile.kernel, tile.launch = {num_warps = 2 : i32}} {
    %c0 = arith.constant 0 : i32
    %s = tile.alloc_shared : <1x8x64xbf16, #lines>
    tile.async_copy %x[%i, %c0] into %s[%c0] : !A, i32, i32 into <1x8x64xbf16, #lines>
    return
  }
}
