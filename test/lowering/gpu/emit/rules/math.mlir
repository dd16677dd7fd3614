// Functions and quotients as exact as what is made of them can show, and no more.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(tile-to-nvvm)' | FileCheck %s

#l = #tile.linear<register = [], lane = [[1], [2], [4], [8], [16]]>

module attributes {tile.target = "sm_90a"} {
  // x / (1 + e^-x), rounded to 16 bits: the sum cannot cancel, and its inverse is normal after a scaling.
  // CHECK-LABEL: llvm.func @sigmoid
  func.func @sigmoid(%a: memref<?xf32, strided<[1]>>, %b: memref<?xbf16, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] padding zero : memref<?xf32, strided<[1]>>, i32 -> tensor<32xf32, #l>
    %one = arith.constant dense<1.0> : tensor<32xf32, #l>
    %n = arith.negf %x : tensor<32xf32, #l>
    // CHECK: llvm.fneg
    // CHECK-NEXT: llvm.fmul
    // CHECK-NEXT: llvm.inline_asm "ex2.approx.ftz.f32 $0, $1;"
    %e = math.exp %n : tensor<32xf32, #l>
    // CHECK-NEXT: llvm.fadd
    %d = arith.addf %e, %one : tensor<32xf32, #l>
    // CHECK-NEXT: llvm.fmul
    // CHECK-NEXT: llvm.inline_asm "rcp.approx.ftz.f32 $0, $1;"
    // CHECK-NEXT: llvm.fmul
    // CHECK-NEXT: llvm.fmul
    %y = arith.divf %x, %d : tensor<32xf32, #l>
    // CHECK-NEXT: llvm.fptrunc
    %z = arith.truncf %y : tensor<32xf32, #l> to tensor<32xbf16, #l>
    tile.store %z, %b[%i] : tensor<32xbf16, #l>, memref<?xbf16, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [], lane = [[1], [2], [4], [8], [16]]>

module attributes {tile.target = "sm_90a"} {
  // Where the result is f32, or may cancel on the way, e^x has 2 ulp, with its exponent in the last bits of a float.
  // CHECK-LABEL: llvm.func @exact
  func.func @exact(%a: memref<?xf32, strided<[1]>>, %b: memref<?xbf16, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] padding zero : memref<?xf32, strided<[1]>>, i32 -> tensor<32xf32, #l>
    // CHECK: llvm.call_intrinsic "llvm.nvvm.fma.rn.sat.f"
    // CHECK-NEXT: llvm.call_intrinsic "llvm.nvvm.fma.rm.f"
    // CHECK-COUNT-2: llvm.intr.fma
    // CHECK: llvm.shl
    // CHECK: ex2.approx.ftz
    %e = math.exp %x : tensor<32xf32, #l>
    %d = arith.addf %e, %x : tensor<32xf32, #l>
    // A difference may cancel: the nearest float, by remainders, and without the assembler's branch.
    // CHECK-NOT: llvm.fdiv
    // CHECK: rcp.approx.ftz.f32
    // CHECK-COUNT-6: llvm.intr.fma
    // CHECK: llvm.fcmp "uno"
    %y = arith.divf %d, %x : tensor<32xf32, #l>
    // By a power of two it is a product.
    // CHECK-NOT: rcp.approx
    // CHECK-NOT: llvm.fcmp
    // CHECK: llvm.fmul
    // CHECK: llvm.fsub
    %k = arith.constant dense<1024.0> : tensor<32xf32, #l>
    %w = arith.divf %y, %k : tensor<32xf32, #l>
    %c = arith.subf %w, %x : tensor<32xf32, #l>
    %z = arith.truncf %c : tensor<32xf32, #l> to tensor<32xbf16, #l>
    tile.store %z, %b[%i] : tensor<32xbf16, #l>, memref<?xbf16, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [], lane = [[1], [2], [4], [8], [16]]>

module attributes {tile.target = "sm_90a"} {
  // 1 + tanh(x) as one inverse.
  // CHECK-LABEL: llvm.func @gelu
  func.func @gelu(%a: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] padding zero : memref<?xf32, strided<[1]>>, i32 -> tensor<32xf32, #l>
    %one = arith.constant dense<1.0> : tensor<32xf32, #l>
    %t = math.tanh %x : tensor<32xf32, #l>
    // CHECK: llvm.intr.copysign
    // CHECK: llvm.nvvm.fma.rn.sat.f
    // CHECK: ex2.approx.ftz
    // CHECK: llvm.intr.fma
    // CHECK-NEXT: rcp.approx.ftz
    // CHECK-NOT: llvm.f
    // CHECK: st.global
    %y = arith.addf %t, %one : tensor<32xf32, #l>
    tile.store %y, %a[%i] : tensor<32xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1]], lane = [[2], [4], [8], [16], [32]]>

module attributes {tile.target = "sm_90a"} {
  // Both bf16 of a word become f32 in one instruction each.
  // CHECK-LABEL: llvm.func @widen
  func.func @widen(%a: memref<?xbf16, strided<[1]>> {tile.align = 16 : i32, tile.shape_div = array<i64: 16>}, %b: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] padding zero : memref<?xbf16, strided<[1]>>, i32 -> tensor<64xbf16, #l>
    // CHECK: llvm.extractelement
    // CHECK: llvm.shl %[[W:.*]], %{{.*}} : i32
    // CHECK: llvm.and %[[W]], %{{.*}} : i32
    // CHECK-NOT: llvm.fpext
    %y = arith.extf %x : tensor<64xbf16, #l> to tensor<64xf32, #l>
    tile.store %y, %b[%i] : tensor<64xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]]>

module attributes {tile.target = "sm_90a"} {
  // Where an absolute error counts, tanh is 1 - 2 / (e^2x + 1) all over. Four share a reciprocal, for which none may be
  // too large, or no number; such a one is none in the end.
  // CHECK-LABEL: llvm.func @bent
  func.func @bent(%a: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] padding zero : memref<?xf32, strided<[1]>>, i32 -> tensor<128xf32, #l>
    // CHECK: ex2.approx.ftz
    // CHECK-NEXT: %[[GROWN:.*]] = llvm.fadd
    // CHECK-NEXT: llvm.intr.minnum(%[[GROWN]]
    // CHECK-COUNT-3: ex2.approx.ftz
    // CHECK-COUNT-3: llvm.fmul
    // CHECK-NEXT: rcp.approx.ftz
    // CHECK-NOT: rcp
    // CHECK: %[[BENT:.*]] = llvm.intr.fma
    // CHECK-NEXT: llvm.intr.minimum(%[[BENT]], %[[GROWN]])
    // CHECK-NOT: llvm.intr.copysign
    // CHECK: st.global
    %t = math.tanh %x {tile.absolute} : tensor<128xf32, #l>
    tile.store %t, %a[%i] : tensor<128xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]]>

module attributes {tile.target = "sm_90a"} {
  // Of many numbers a warp looks first whether the squares of all are below a limit, by the signs of their distances:
  // then three terms in these do. Where some are not, other numbers give what those are bent to.
  // CHECK-LABEL: llvm.func @bent_little
  func.func @bent_little(%a: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] padding zero : memref<?xf32, strided<[1]>>, i32 -> tensor<256xf32, #l>
    // CHECK-COUNT-8: llvm.intr.fma
    // CHECK-COUNT-7: llvm.and
    // CHECK: llvm.icmp "sge"
    // CHECK: %[[FAR:.*]] = llvm.call_intrinsic "llvm.nvvm.vote.any.sync"
    // CHECK: llvm.cond_br %[[FAR]], ^[[FAR_BLOCK:bb[0-9]+]], ^[[NEAR:bb[0-9]+]](
    // CHECK: ^[[FAR_BLOCK]]:
    // CHECK-COUNT-8: ex2.approx.ftz
    // CHECK: ^[[NEAR]](
    // CHECK-NOT: ex2
    // CHECK-COUNT-16: llvm.intr.fma
    // CHECK: st.global
    %t = math.tanh %x {tile.absolute} : tensor<256xf32, #l>
    tile.store %t, %a[%i] : tensor<256xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}


// -----

#l = #tile.linear<register = [], lane = [[1], [2], [4], [8], [16]]>

module attributes {tile.target = "sm_90a"} {
  // NaN has no quadrant and no integer: some one, which LLVM may not take for another at each use.
  // CHECK-LABEL: llvm.func @numbers_of_nan
  func.func @numbers_of_nan(%a: memref<?xf32, strided<[1]>>, %b: memref<?xi32, strided<[1]>>, %w: memref<?xf64, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] padding nan : memref<?xf32, strided<[1]>>, i32 -> tensor<32xf32, #l>
    // CHECK: %[[Q:.*]] = llvm.fptosi %{{.*}} : f64 to i64
    // CHECK-NEXT: llvm.freeze %[[Q]] : i64
    %wide = arith.extf %x : tensor<32xf32, #l> to tensor<32xf64, #l>
    %c = math.cos %wide : tensor<32xf64, #l>
    tile.store %c, %w[%i] : tensor<32xf64, #l>, memref<?xf64, strided<[1]>>, i32
    // CHECK: %[[N:.*]] = llvm.fptosi %{{.*}} : f32 to i32
    // CHECK-NEXT: llvm.freeze %[[N]] : i32
    %n = arith.fptosi %x : tensor<32xf32, #l> to tensor<32xi32, #l>
    tile.store %n, %b[%i] : tensor<32xi32, #l>, memref<?xi32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [], lane = [[1], [2], [4], [8], [16]]>

module attributes {tile.target = "sm_90a"} {
  // Waits, flushes and loops hand on what they get: a sum of exponentials that a loop carries, 16 bits in the end, needs
  // no exact ones, and its quotient none either. The inverse of 1 + e^x is one instruction.
  // CHECK-LABEL: llvm.func @handed_on
  func.func @handed_on(%a: memref<?xf32, strided<[1]>>, %b: memref<?xbf16, strided<[1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<32xf32, #l>
    %one = arith.constant dense<1.0> : tensor<32xf32, #l>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%so_far = %zero) -> (tensor<32xf32, #l>) : i32 {
      %x = tile.load %a[%i] padding zero : memref<?xf32, strided<[1]>>, i32 -> tensor<32xf32, #l>
      // CHECK: llvm.fmul
      // CHECK-NEXT: ex2.approx.ftz.f32
      // CHECK-NEXT: llvm.fadd
      %e = math.exp %x : tensor<32xf32, #l>
      %next = arith.addf %so_far, %e : tensor<32xf32, #l>
      scf.yield %next : tensor<32xf32, #l>
    }
    // CHECK: llvm.fadd
    // CHECK-NEXT: llvm.inline_asm "rcp.approx.ftz.f32 $0, $1;"
    // CHECK-NOT: llvm.intr.fma
    %d = arith.addf %sum, %one : tensor<32xf32, #l>
    %q = arith.divf %one, %d : tensor<32xf32, #l>
    %f = tile.flush %q : tensor<32xf32, #l>
    %y = tile.mma_wait %f, 0 : tensor<32xf32, #l> -> tensor<32xf32, #l>
    %z = arith.truncf %y : tensor<32xf32, #l> to tensor<32xbf16, #l>
    tile.store %z, %b[%c0] : tensor<32xbf16, #l>, memref<?xbf16, strided<[1]>>, i32
    return
  }

  // An error that each iteration doubles may show: what a loop squares is exact.
  // CHECK-LABEL: llvm.func @squared
  // CHECK: llvm.nvvm.fma.rn.sat.f
  func.func @squared(%a: memref<?xf32, strided<[1]>>, %b: memref<?xbf16, strided<[1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %x = tile.load %a[%c0] padding zero : memref<?xf32, strided<[1]>>, i32 -> tensor<32xf32, #l>
    %e = math.exp %x : tensor<32xf32, #l>
    %power = scf.for %i = %c0 to %n step %c1 iter_args(%p = %e) -> (tensor<32xf32, #l>) : i32 {
      %square = arith.mulf %p, %p : tensor<32xf32, #l>
      scf.yield %square : tensor<32xf32, #l>
    }
    %z = arith.truncf %power : tensor<32xf32, #l> to tensor<32xbf16, #l>
    tile.store %z, %b[%c0] : tensor<32xbf16, #l>, memref<?xbf16, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]]>

module attributes {tile.target = "sm_90a"} {
  // Where the program allows an error, what shares a divisor is multiplied by the nearest float to its inverse, what is
  // divided by a constant by that of the constant, and others are divided by the assembler's quick division.
  // CHECK-LABEL: llvm.func @allowed
  func.func @allowed(%a: memref<?xf32, strided<[1]>>, %b: memref<?xf32, strided<[1]>>, %s: f32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] padding zero : memref<?xf32, strided<[1]>>, i32 -> tensor<128xf32, #l>
    %d = tensor.splat %s : tensor<128xf32, #l>
    // CHECK: "llvm.nvvm.div.full"
    // CHECK-COUNT-2: llvm.intr.fma
    // CHECK-NOT: div.full
    // CHECK-NOT: rcp.approx
    %q = arith.divf %x, %d {tile.approximate} : tensor<128xf32, #l>
    %seven = arith.constant dense<7.0> : tensor<128xf32, #l>
    %r = arith.divf %q, %seven {tile.approximate} : tensor<128xf32, #l>
    // CHECK-COUNT-4: "llvm.nvvm.div.full"
    %z = arith.divf %r, %x {tile.approximate} : tensor<128xf32, #l>
    tile.store %z, %b[%i] : tensor<128xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1]], lane = [[2], [4], [8], [16], [32]]>

module attributes {tile.target = "sm_90a"} {
  // A rough quotient is a product that flushes, with the hardware's inverse, of which several x share one; an exponential
  // that may be off has no range reduction. With the hint approximate = 0 both are what they are without the marks.
  // CHECK-LABEL: llvm.func @rough
  // CHECK: rcp.approx.ftz.f32
  // CHECK-NOT: rcp.approx
  // CHECK-COUNT-2: "llvm.nvvm.mul.rn.ftz.f"
  // CHECK-NOT: "llvm.nvvm.mul.rn.ftz.f"
  // CHECK-COUNT-2: rcp.approx.ftz.f32
  // CHECK-NOT: "llvm.nvvm
  // CHECK-COUNT-2: ex2.approx.ftz.f32
  // CHECK-NOT: "llvm.nvvm
  // CHECK: llvm.return
  func.func @rough(%a: memref<?xf32, strided<[1]>>, %b: memref<?xf32, strided<[1]>>, %s: f32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] padding zero : memref<?xf32, strided<[1]>>, i32 -> tensor<64xf32, #l>
    %d = tensor.splat %s : tensor<64xf32, #l>
    %q = arith.divf %x, %d {tile.approximate, tile.rough} : tensor<64xf32, #l>
    %one = arith.constant dense<1.0> : tensor<64xf32, #l>
    %r = arith.divf %one, %q {tile.approximate, tile.rough} : tensor<64xf32, #l>
    %z = math.exp %r {tile.approximate} : tensor<64xf32, #l>
    tile.store %z, %b[%i] : tensor<64xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
  // CHECK-LABEL: llvm.func @not_rough
  // CHECK-NOT: "llvm.nvvm.mul.rn.ftz.f"
  // CHECK-COUNT-2: "llvm.nvvm.fma.rn.sat.f"
  // CHECK: llvm.return
  func.func @not_rough(%a: memref<?xf32, strided<[1]>>, %b: memref<?xf32, strided<[1]>>, %s: f32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32, approximate = 0 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] padding zero : memref<?xf32, strided<[1]>>, i32 -> tensor<64xf32, #l>
    %d = tensor.splat %s : tensor<64xf32, #l>
    %q = arith.divf %x, %d {tile.approximate, tile.rough} : tensor<64xf32, #l>
    %z = math.exp %q {tile.approximate} : tensor<64xf32, #l>
    tile.store %z, %b[%i] : tensor<64xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1]], lane = [[2], [4], [8], [16], [32]]>

module attributes {tile.target = "sm_90a"} {
  // A power of f32 is computed in f32. Bases that are no normal numbers above zero, and powers that may be none, are one
  // branch for all registers.
  // CHECK-LABEL: llvm.func @power
  func.func @power(%a: memref<?xf32, strided<[1]>>, %b: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] padding zero : memref<?xf32, strided<[1]>>, i32 -> tensor<64xf32, #l>
    %y = tile.load %b[%i] padding zero : memref<?xf32, strided<[1]>>, i32 -> tensor<64xf32, #l>
    // What a rest corrects is rounded before sums, or ptxas makes one operation of both, and the rest counts twice.
    // CHECK-NOT: f64
    // CHECK: rcp.approx.ftz.f32
    // CHECK-COUNT-2: "llvm.nvvm.mul.rn.f"
    // CHECK: rcp.approx.ftz.f32
    // CHECK-COUNT-2: "llvm.nvvm.mul.rn.f"
    // CHECK: llvm.cond_br
    // CHECK-COUNT-2: rcp.approx.ftz.f32
    // CHECK-NOT: f64
    // CHECK: st.global
    %p = math.powf %x, %y : tensor<64xf32, #l>
    tile.store %p, %a[%i] : tensor<64xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1]], lane = [[2], [4], [8], [16], [32]]>

module attributes {tile.target = "sm_90a"} {
  // An angle of f32 is reduced in f32 by pi/2 in three parts; only the branch of large ones has numbers of 64 bits.
  // CHECK-LABEL: llvm.func @sine
  func.func @sine(%a: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] padding zero : memref<?xf32, strided<[1]>>, i32 -> tensor<64xf32, #l>
    // CHECK-COUNT-2: ld.global
    // CHECK-NOT: i64
    // CHECK-NOT: f64
    // CHECK: llvm.cond_br %{{.*}}, ^[[FAR:bb[0-9]+]], ^[[NEAR:bb[0-9]+]](
    // CHECK: ^[[FAR]]:
    // CHECK: f64
    // CHECK: ^[[NEAR]](
    // CHECK-NOT: f64
    // CHECK: st.global
    %s = math.sin %x : tensor<64xf32, #l>
    tile.store %s, %a[%i] : tensor<64xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

module attributes {tile.target = "sm_90a"} {
  // A sum of squares and a constant is no subnormal number, which the plain instruction would scale.
  // CHECK-LABEL: llvm.func @distance
  // CHECK: llvm.inline_asm {{.*}}"rsqrt.approx.ftz.f32 $0, $1;"
  // CHECK: llvm.inline_asm {{.*}}"rsqrt.approx.f32 $0, $1;"
  func.func @distance(%a: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.simt} {
    %i = tile.thread_id 0
    %small = arith.constant 1.0e-3 : f32
    %x = tile.gather %a[%i] : memref<?xf32, strided<[1]>>, i32 -> f32
    %square = arith.mulf %x, %x : f32
    %sum = arith.addf %square, %small : f32
    %y = math.rsqrt %sum : f32
    %z = math.rsqrt %square : f32
    %both = arith.addf %y, %z : f32
    tile.scatter %both, %a[%i] : f32, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [], lane = [[1], [2], [4], [8], [16]]>

module attributes {tile.target = "sm_90a"} {
  // Logarithms of f32 have the bits of CUDA's: its coefficients, in its order.
  // CHECK-LABEL: llvm.func @logarithms
  // CHECK: llvm.mlir.constant(-0.130188569 : f32)
  // CHECK: llvm.mlir.constant(0.0970201417 : f32)
  // CHECK-COUNT-9: llvm.intr.fma
  // CHECK: %[[P:.*]] = llvm.fmul
  // CHECK: %[[L:.*]] = llvm.intr.fma(%[[P]], %[[F:.*]], %[[F]])
  // CHECK: llvm.intr.fma(%{{.*}}, %{{.*}}, %[[L]])
  // CHECK-COUNT-11: llvm.intr.fma
  // CHECK: llvm.fmul
  // CHECK: %[[P2:.*]] = llvm.fmul
  // CHECK: %[[L2:.*]] = llvm.intr.fma(%{{.*}}, %{{.*}}, %[[P2]])
  // CHECK: llvm.fadd %{{.*}}, %[[L2]]
  func.func @logarithms(%a: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] padding zero : memref<?xf32, strided<[1]>>, i32 -> tensor<32xf32, #l>
    %y = math.log %x : tensor<32xf32, #l>
    %z = math.log2 %x : tensor<32xf32, #l>
    %s = arith.addf %y, %z : tensor<32xf32, #l>
    tile.store %s, %a[%i] : tensor<32xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}
