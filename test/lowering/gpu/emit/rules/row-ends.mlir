// Code that is there twice: for rows that have seven eighths of their tile, where few accesses have guards, and for others.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(tile-to-nvvm)' | FileCheck %s

#l = #tile.linear<register = [[32], [64], [128]], lane = [[1], [2], [4], [8], [16]]>
#m = #tile.linear<register = [[32], [64], [128], [256]], lane = [[1], [2], [4], [8], [16]]>
#v = #tile.linear<register = [[1], [64], [128], [256]], lane = [[2], [4], [8], [16], [32]]>
!A = memref<?xf32, strided<[1]>>

// CHECK-LABEL: @added
// CHECK: %[[MOST:.*]] = llvm.mlir.constant(224 : i64)
// CHECK-COUNT-3: llvm.icmp "sge" %{{.*}}, %[[MOST]] : i64
// CHECK: llvm.cond_br %{{.*}}, ^[[REACH:.*]], ^[[OTHERS:.*]]
// CHECK: ^[[REACH]]:
// CHECK-COUNT-7: "ld.global.b32 $0, [$1 + {{[0-9]+}}];"
// CHECK-NEXT: llvm.bitcast
// CHECK: "mov.b32 $0, 0x0; @$2 ld.global.b32 $0, [$1 + 896];"
// CHECK-COUNT-7: "ld.global.b32 $0, [$1 + {{[0-9]+}}];"
// CHECK-COUNT-7: "st.global.b32 [$1 + {{[0-9]+}}], $0;"
// CHECK: "@$2 st.global.b32 [$1 + 896], $0;"
// CHECK: llvm.return
// CHECK: ^[[OTHERS]]:
// CHECK-COUNT-16: "mov.b32 $0, 0x0; @$2 ld.global.b32
// CHECK-COUNT-8: "@$2 st.global.b32
module attributes {tile.target = "sm_90a"} {
  func.func @added(%a: !A, %b: !A, %c: !A) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] : !A, i32 -> tensor<256xf32, #l>
    %y = tile.load %b[%i] : !A, i32 -> tensor<256xf32, #l>
    %z = arith.addf %x, %y : tensor<256xf32, #l>
    tile.store %z, %c[%i] : tensor<256xf32, #l>, !A, i32
    return
  }

  // A number that is known behind the first access only.
  // CHECK-LABEL: @computed
  // CHECK-NOT: llvm.cond_br
  // CHECK: llvm.return
  func.func @computed(%a: !A, %b: !A, %c: !A) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] : !A, i32 -> tensor<256xf32, #l>
    %s = tile.reduce add, %x axis 0 : tensor<256xf32, #l>
    %j = arith.fptosi %s : f32 to i32
    %y = tile.load %b[%j] : !A, i32 -> tensor<256xf32, #l>
    %z = arith.addf %x, %y : tensor<256xf32, #l>
    tile.store %z, %c[%j] : tensor<256xf32, #l>, !A, i32
    return
  }

  // Of rows that reach far vectors are whole up to there, whatever the array's length; of others there are none.
  // CHECK-LABEL: @vectors
  // CHECK: llvm.cond_br %{{.*}}, ^[[REACH:.*]], ^[[OTHERS:.*]]
  // CHECK: ^[[REACH]]:
  // CHECK-COUNT-7: "ld.global.v2.b32 {$0, $1}, [$2 + {{[0-9]+}}];"
  // CHECK-COUNT-2: "mov.b32 $0, 0x0; @$2 ld.global.b32
  // CHECK: ^[[OTHERS]]:
  // CHECK-NOT: ld.global.v2
  // CHECK: llvm.return
  func.func @vectors(%w: !A {tile.align = 8 : i32}, %a: !A, %b: !A, %c: !A) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %v = tile.load %w[%i] : !A, i32 -> tensor<512xf32, #v>
    %x = tile.load %a[%i] : !A, i32 -> tensor<512xf32, #v>
    %y = tile.load %b[%i] : !A, i32 -> tensor<512xf32, #v>
    %s = arith.addf %v, %x : tensor<512xf32, #v>
    %z = arith.addf %s, %y : tensor<512xf32, #v>
    tile.store %z, %c[%i] : tensor<512xf32, #v>, !A, i32
    return
  }

  // Two accesses.
  // CHECK-LABEL: @few
  // CHECK-NOT: llvm.cond_br
  // CHECK: llvm.return
  func.func @few(%a: !A, %c: !A) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] : !A, i32 -> tensor<512xf32, #m>
    tile.store %x, %c[%i] : tensor<512xf32, #m>, !A, i32
    return
  }

  // CHECK-LABEL: @loop
  // CHECK-NOT: 224 : i64
  // CHECK: llvm.return
  func.func @loop(%a: !A, %b: !A, %c: !A, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      %x = tile.load %a[%i] : !A, i32 -> tensor<256xf32, #l>
      %y = tile.load %b[%i] : !A, i32 -> tensor<256xf32, #l>
      %z = arith.addf %x, %y : tensor<256xf32, #l>
      tile.store %z, %c[%i] : tensor<256xf32, #l>, !A, i32
    }
    return
  }
}
