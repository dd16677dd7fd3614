// A left operand that a loop does not change stays in registers where several narrow products would read it.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma))' 2>/dev/null | FileCheck %s
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma))' 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-COUNT-2: remark: 'tile.mma' op keeps its left operand in registers, which its loop does not change
// REMARK-NOT: keeps its left operand

!A = memref<?x?xbf16, strided<[?, 1]>>
!L = tensor<128x64xbf16>
!D = tensor<128x64xf32>
module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: @several
  // CHECK-COUNT-2: tile.family = "wgmma", tile.places = "rs"
  // CHECK: tile.family = "wgmma", tile.places = "ss"
  func.func @several(%x: !A, %n: i32, %init: !D) attributes {tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !D
    %k = tile.load %x[%c0, %c0] padding zero : !A, i32, i32 -> !L
    %v = tile.load %x[%c1, %c0] padding zero : !A, i32, i32 -> !L
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %init, %b = %init, %c = %init) -> (!D, !D, !D) : i32 {
      %q = tile.load %x[%i, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %w = tile.load %x[%i, %c1] padding zero : !A, i32, i32 -> !L
      %d = tile.mma %k, %q, %a : !L, tensor<64x64xbf16>, !D
      %e = tile.mma %v, %q, %b : !L, tensor<64x64xbf16>, !D
      %f = tile.mma %w, %q, %c : !L, tensor<64x64xbf16>, !D
      scf.yield %d, %e, %f : !D, !D, !D
    }
    return
  }

  // One such product leaves shared memory time beside others.
  // CHECK-LABEL: @one
  // CHECK: tile.family = "wgmma", tile.places = "ss"
  func.func @one(%x: !A, %n: i32, %init: !D) attributes {tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %k = tile.load %x[%c0, %c0] padding zero : !A, i32, i32 -> !L
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %init) -> (!D) : i32 {
      %q = tile.load %x[%i, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %d = tile.mma %k, %q, %a : !L, tensor<64x64xbf16>, !D
      scf.yield %d : !D
    }
    return
  }

  // With 128 columns the product takes longer than its operands do.
  // CHECK-LABEL: @wide
  // CHECK-COUNT-2: tile.family = "wgmma", tile.places = "ss"
  func.func @wide(%x: !A, %n: i32, %init: tensor<128x128xf32>) attributes {tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %k = tile.load %x[%c0, %c0] padding zero : !A, i32, i32 -> !L
    %v = tile.load %x[%c1, %c0] padding zero : !A, i32, i32 -> !L
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %init, %b = %init) -> (tensor<128x128xf32>, tensor<128x128xf32>) : i32 {
      %q = tile.load %x[%i, %c0] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %d = tile.mma %k, %q, %a : !L, tensor<64x128xbf16>, tensor<128x128xf32>
      %e = tile.mma %v, %q, %b : !L, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %d, %e : tensor<128x128xf32>, tensor<128x128xf32>
    }
    return
  }

  // Registers do not suffice for four operands of 32 words beside four sums of 32.
  // CHECK-LABEL: @many
  // CHECK-COUNT-4: tile.family = "wgmma", tile.places = "ss"
  func.func @many(%x: !A, %n: i32, %init: !D) attributes {tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %k = tile.load %x[%c0, %c0] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
    %v = tile.load %x[%c1, %c0] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
    %r:4 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %init, %b = %init, %c = %init, %d = %init) -> (!D, !D, !D, !D) : i32 {
      %q = tile.load %x[%i, %c0] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %e = tile.mma %k, %q, %a : tensor<128x128xbf16>, tensor<128x64xbf16>, !D
      %f = tile.mma %v, %q, %b : tensor<128x128xbf16>, tensor<128x64xbf16>, !D
      %g = tile.mma %k, %q, %c : tensor<128x128xbf16>, tensor<128x64xbf16>, !D
      %h = tile.mma %v, %q, %d : tensor<128x128xbf16>, tensor<128x64xbf16>, !D
      scf.yield %e, %f, %g, %h : !D, !D, !D, !D
    }
    return
  }
}
