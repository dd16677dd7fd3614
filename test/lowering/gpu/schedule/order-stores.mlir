// What is stored is computed right before it, within a stretch without fences.
// RUN: tw-opt %s --pass-pipeline='builtin.module(tile-order-stores)' | FileCheck %s

// CHECK-LABEL: @epilogue
llvm.func @epilogue(%x0: f32, %x1: f32, %p: !llvm.ptr<3>, %q: !llvm.ptr<3>) attributes {nvvm.kernel} {
  %a0 = llvm.fmul %x0, %x0 : f32
  %a1 = llvm.fmul %x1, %x1 : f32
  %b0 = llvm.fadd %a0, %x0 : f32
  %b1 = llvm.fadd %a1, %x1 : f32
  // A load keeps its place among what has effects.
  // CHECK-NEXT: %[[L:.*]] = llvm.load
  %l = llvm.load %q : !llvm.ptr<3> -> f32
  // CHECK-NEXT: nvvm.barrier
  nvvm.barrier
  // CHECK-NEXT: %[[A0:.*]] = llvm.fmul %arg0, %arg0
  // CHECK-NEXT: %[[B0:.*]] = llvm.fadd %[[A0]], %arg0
  // CHECK-NEXT: llvm.store %[[B0]], %arg2
  llvm.store %b0, %p : f32, !llvm.ptr<3>
  // CHECK-NEXT: %[[A1:.*]] = llvm.fmul %arg1, %arg1
  // CHECK-NEXT: %[[B1:.*]] = llvm.fadd %[[A1]], %arg1
  // CHECK-NEXT: llvm.store %[[B1]], %arg3
  llvm.store %b1, %q : f32, !llvm.ptr<3>
  // CHECK-NEXT: llvm.return
  llvm.return
}

// Nothing moves across the start of or the wait for asynchronous work, nor where nothing is stored.
// CHECK-LABEL: @fences
llvm.func @fences(%x: f32, %p: !llvm.ptr<3>) attributes {nvvm.kernel} {
  // CHECK-NEXT: %[[A:.*]] = llvm.fmul
  // CHECK-NEXT: %[[B:.*]] = llvm.fadd
  // CHECK-NEXT: nvvm.barrier
  // CHECK-NEXT: llvm.inline_asm
  // CHECK-NEXT: llvm.store %[[A]]
  // CHECK-NEXT: llvm.store %[[B]]
  %a = llvm.fmul %x, %x : f32
  %b = llvm.fadd %x, %x : f32
  nvvm.barrier
  llvm.inline_asm has_side_effects {tile.ptx = "fence"} "wgmma.wait_group.sync.aligned 0;", "" : () -> ()
  llvm.store %a, %p : f32, !llvm.ptr<3>
  llvm.store %b, %p : f32, !llvm.ptr<3>
  llvm.return
}

// Loads that no store changes come some stores before the one that needs them, where these are narrow.
// CHECK-LABEL: @late
llvm.func @late(%x: f32, %w: !llvm.ptr<1>, %p: !llvm.ptr<3>, %q: !llvm.ptr<3>, %r: !llvm.ptr<3>) attributes {nvvm.kernel} {
  // CHECK-NEXT: %[[V:.*]] = llvm.inline_asm has_side_effects "ld.global.b32 $0, [$1 + 12];"
  // CHECK-NEXT: %[[W0:.*]] = llvm.inline_asm has_side_effects {tile.late} "ld.global.b32 $0, [$1 + 0];"
  // CHECK-NEXT: %[[W1:.*]] = llvm.inline_asm has_side_effects {tile.late} "ld.global.b32 $0, [$1 + 4];"
  // CHECK-NEXT: %[[W2:.*]] = llvm.inline_asm has_side_effects {tile.late} "ld.global.b32 $0, [$1 + 8];"
  %w0 = llvm.inline_asm has_side_effects {tile.late} "ld.global.b32 $0, [$1 + 0];", "=r,l" %w : (!llvm.ptr<1>) -> f32
  %w1 = llvm.inline_asm has_side_effects {tile.late} "ld.global.b32 $0, [$1 + 4];", "=r,l" %w : (!llvm.ptr<1>) -> f32
  %w2 = llvm.inline_asm has_side_effects {tile.late} "ld.global.b32 $0, [$1 + 8];", "=r,l" %w : (!llvm.ptr<1>) -> f32
  %v = llvm.inline_asm has_side_effects "ld.global.b32 $0, [$1 + 12];", "=r,l" %w : (!llvm.ptr<1>) -> f32
  // CHECK-NEXT: %[[A0:.*]] = llvm.fmul %[[W0]], %[[V]]
  // CHECK-NEXT: llvm.store %[[A0]]
  %a0 = llvm.fmul %w0, %v : f32
  llvm.store %a0, %p : f32, !llvm.ptr<3>
  // CHECK-NEXT: %[[A1:.*]] = llvm.fmul %[[W1]], %[[V]]
  // CHECK-NEXT: llvm.store %[[A1]]
  %a1 = llvm.fmul %w1, %v : f32
  llvm.store %a1, %q : f32, !llvm.ptr<3>
  // CHECK-NEXT: %[[A2:.*]] = llvm.fmul %[[W2]], %[[V]]
  // CHECK-NEXT: llvm.store %[[A2]]
  %a2 = llvm.fmul %w2, %v : f32
  llvm.store %a2, %r : f32, !llvm.ptr<3>
  llvm.return
}

// Wide ones come one store before, also before one that needs none.
// CHECK-LABEL: @wide
llvm.func @wide(%w: !llvm.ptr<1>, %p: !llvm.ptr<3>, %y: i32) attributes {nvvm.kernel} {
  // CHECK-NEXT: llvm.inline_asm has_side_effects {tile.late}
  // CHECK-NEXT: llvm.store %arg2
  // CHECK-NEXT: llvm.inline_asm has_side_effects {tile.late}
  // CHECK-NEXT: llvm.extractvalue
  // CHECK-NEXT: llvm.store
  // CHECK-NEXT: llvm.inline_asm has_side_effects {tile.late}
  // CHECK-NEXT: llvm.extractvalue
  // CHECK-NEXT: llvm.store
  %w0 = llvm.inline_asm has_side_effects {tile.late} "ld.global.v4.b32 {$0, $1, $2, $3}, [$4 + 0];", "=r,=r,=r,=r,l" %w : (!llvm.ptr<1>) -> !llvm.struct<(i32, i32, i32, i32)>
  %w1 = llvm.inline_asm has_side_effects {tile.late} "ld.global.v4.b32 {$0, $1, $2, $3}, [$4 + 16];", "=r,=r,=r,=r,l" %w : (!llvm.ptr<1>) -> !llvm.struct<(i32, i32, i32, i32)>
  %w2 = llvm.inline_asm has_side_effects {tile.late} "ld.global.v4.b32 {$0, $1, $2, $3}, [$4 + 32];", "=r,=r,=r,=r,l" %w : (!llvm.ptr<1>) -> !llvm.struct<(i32, i32, i32, i32)>
  llvm.store %y, %p : i32, !llvm.ptr<3>
  %x0 = llvm.extractvalue %w0[0] : !llvm.struct<(i32, i32, i32, i32)>
  llvm.store %x0, %p : i32, !llvm.ptr<3>
  %x1 = llvm.extractvalue %w1[0] : !llvm.struct<(i32, i32, i32, i32)>
  llvm.store %x1, %p : i32, !llvm.ptr<3>
  %x2 = llvm.extractvalue %w2[0] : !llvm.struct<(i32, i32, i32, i32)>
  llvm.store %x2, %p : i32, !llvm.ptr<3>
  llvm.return
}

// With a number of words, so many are filled at a time.
// CHECK-LABEL: @ahead
llvm.func @ahead(%x: i32, %w: !llvm.ptr<1>, %p: !llvm.ptr<3>) attributes {nvvm.kernel} {
  // CHECK-COUNT-3: llvm.inline_asm has_side_effects {tile.late = 3 : i32}
  // CHECK: llvm.store
  // CHECK-NEXT: llvm.inline_asm has_side_effects {tile.late = 3 : i32} "ld.global.b32 $0, [$1 + 12];"
  // CHECK-NEXT: llvm.add
  // CHECK-NEXT: llvm.store
  // CHECK-NEXT: llvm.add
  // CHECK-NEXT: llvm.store
  // CHECK-NEXT: llvm.add
  // CHECK-NEXT: llvm.store
  %w0 = llvm.inline_asm has_side_effects {tile.late = 3 : i32} "ld.global.b32 $0, [$1 + 0];", "=r,l" %w : (!llvm.ptr<1>) -> i32
  %w1 = llvm.inline_asm has_side_effects {tile.late = 3 : i32} "ld.global.b32 $0, [$1 + 4];", "=r,l" %w : (!llvm.ptr<1>) -> i32
  %w2 = llvm.inline_asm has_side_effects {tile.late = 3 : i32} "ld.global.b32 $0, [$1 + 8];", "=r,l" %w : (!llvm.ptr<1>) -> i32
  %w3 = llvm.inline_asm has_side_effects {tile.late = 3 : i32} "ld.global.b32 $0, [$1 + 12];", "=r,l" %w : (!llvm.ptr<1>) -> i32
  %a0 = llvm.add %w0, %x : i32
  llvm.store %a0, %p : i32, !llvm.ptr<3>
  %a1 = llvm.add %w1, %x : i32
  llvm.store %a1, %p : i32, !llvm.ptr<3>
  %a2 = llvm.add %w2, %x : i32
  llvm.store %a2, %p : i32, !llvm.ptr<3>
  %a3 = llvm.add %w3, %x : i32
  llvm.store %a3, %p : i32, !llvm.ptr<3>
  llvm.return
}
