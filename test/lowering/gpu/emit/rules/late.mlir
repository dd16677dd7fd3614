// Tiles whose pieces wait for stores, or stand between loads that do: no branch parts those at the edge of an array.
// RUN: tw-opt %s --pass-pipeline='builtin.module(tile-to-nvvm)' | FileCheck %s

#l = #tile.linear<register = [[1], [64]], lane = [[2], [4], [8], [16], [32]]>

module attributes {tile.target = "sm_90a"} {
  // Pairs of 16 bits: both elements, or the first one at the edge.
  // CHECK-LABEL: llvm.func @halves
  func.func @halves(%a: memref<?xbf16, strided<[1]>> {tile.align = 16 : i32}, %b: memref<?xbf16, strided<[1]>> {tile.align = 16 : i32}) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    // CHECK-NOT: llvm.cond_br
    // CHECK-COUNT-2: {tile.late = 32 : i32{{.*}} "mov.b32 $0, 0x0; @$2 ld.global.b32 $0, [$1 + {{.*}}]; @$3 ld.global.u16 $0, [$1 + {{.*}}];", "=&r,l,b,b"
    %x = tile.load %a[%i] {tile.late = 32 : i32} : memref<?xbf16, strided<[1]>>, i32 -> tensor<128xbf16, #l>
    // CHECK-COUNT-2: "@$2 st.global.b32 [$1 + {{.*}}], $0; @$3 st.global.u16 [$1 + {{.*}}], $0;", "r,l,b,b"
    tile.store %x, %b[%i] {tile.late = 32 : i32} : tensor<128xbf16, #l>, memref<?xbf16, strided<[1]>>, i32
    return
  }

  // What lies outside is the padding, whose upper half is beside a first element, too.
  // CHECK-LABEL: llvm.func @padding
  func.func @padding(%a: memref<?xbf16, strided<[1]>> {tile.align = 16 : i32}, %b: memref<?xbf16, strided<[1]>> {tile.align = 16 : i32}) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    // CHECK: "mov.b32 $0, 0xff80ff80; @$2 ld.global.b32 $0, [$1 + 0]; @$3 ld.global.u16 $0, [$1 + 0]; @$3 or.b32 $0, $0, 0xff800000;"
    %x = tile.load %a[%i] padding neg_inf {tile.late = 32 : i32} : memref<?xbf16, strided<[1]>>, i32 -> tensor<128xbf16, #l>
    tile.store %x, %b[%i] {tile.late = 32 : i32} : tensor<128xbf16, #l>, memref<?xbf16, strided<[1]>>, i32
    return
  }

  // Of 32 bits, and of 8.
  // CHECK-LABEL: llvm.func @others
  func.func @others(%a: memref<?xf32, strided<[1]>> {tile.align = 16 : i32}, %b: memref<?xi8, strided<[1]>> {tile.align = 16 : i32}, %y: memref<?xf32, strided<[1]>> {tile.align = 16 : i32}, %z: memref<?xi8, strided<[1]>> {tile.align = 16 : i32}) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    // CHECK: "mov.b32 $0, 0x0; mov.b32 $1, 0x0; @$3 ld.global.v2.b32 {$0, $1}, [$2 + 0]; @$4 ld.global.u32 $0, [$2 + 0];", "=&r,=&r,l,b,b"
    %x = tile.load %a[%i] {tile.late = 32 : i32} : memref<?xf32, strided<[1]>>, i32 -> tensor<128xf32, #l>
    // CHECK: "mov.b16 $0, 0x0; @$2 ld.global.b16 $0, [$1 + 0]; @$3 ld.global.u8 $0, [$1 + 0];", "=&h,l,b,b"
    %w = tile.load %b[%i] {tile.late = 32 : i32} : memref<?xi8, strided<[1]>>, i32 -> tensor<128xi8, #l>
    // CHECK: "@$3 st.global.v2.b32 [$2 + 0], {$0, $1}; @$4 st.global.u32 [$2 + 0], $0;", "r,r,l,b,b"
    tile.store %x, %y[%i] {tile.late = 32 : i32} : tensor<128xf32, #l>, memref<?xf32, strided<[1]>>, i32
    // CHECK: "@$2 st.global.b16 [$1 + 0], $0; @$3 st.global.u8 [$1 + 0], $0;", "h,l,b,b"
    tile.store %w, %z[%i] {tile.late = 32 : i32} : tensor<128xi8, #l>, memref<?xi8, strided<[1]>>, i32
    return
  }
}
