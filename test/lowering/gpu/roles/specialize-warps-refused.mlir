// Kernels that keep their form, and why. (What comes before the pass makes few of these.)
// RUN: tw-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(func.func(tile-specialize-warps))' | FileCheck %s

// CHECK-NOT: tile.roles

!A = memref<?x?xf32, strided<[?, 1]>>
#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 4], [2, 8], [4, 16], [8, 0], [16, 0]]>
#a = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [16, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
!buffer = !tile.buffer<1x32x32xf32, #s>
!tile = tensor<32x32xf32, #a>

module attributes {tile.target = "sm_90"} {
  func.func @unread(%A: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>, tile.tma}, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared : !buffer
    scf.for %k = %c0 to %n step %c1 : i32 {
      // expected-remark @below {{prevents producer warps: no one reads what a copy brings}}
      tile.async_copy %A[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer
    }
    return
  }

  func.func @gathered(%A: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>, tile.tma}, %n: i32, %i: tensor<32x32xi32, #a>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared : !buffer
    scf.for %k = %c0 to %n step %c1 : i32 {
      // expected-remark @below {{prevents producer warps: a producer that gathers pays beside eight or more warps that compute}}
      tile.async_gather %A[%i, %i] into %b[%c0] : !A, tensor<32x32xi32, #a>, tensor<32x32xi32, #a> into !buffer
      %u = tile.local_load %b[%c0] : !buffer -> !tile
    }
    return
  }

  func.func @read_elsewhere(%A: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>, tile.tma}, %n: i32, %x: i1) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared : !buffer
    scf.for %k = %c0 to %n step %c1 : i32 {
      // expected-remark @below {{prevents producer warps: it reads what a copy elsewhere brought}}
      %t = tile.local_load %b[%c0] : !buffer -> !tile
      tile.async_copy %A[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer
      %u = tile.local_load %b[%c0] : !buffer -> !tile
    }
    return
  }

  func.func @filled_while_read(%A: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>, tile.tma}, %n: i32, %x: i1) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared : !buffer
    scf.for %k = %c0 to %n step %c1 : i32 {
      tile.async_copy %A[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer
      scf.if %x {
        // expected-remark @below {{prevents producer warps: it fills a buffer whose content is still read}}
        tile.async_copy %A[%c1, %k] into %b[%c0] : !A, i32, i32 into !buffer
        %t = tile.local_load %b[%c0] : !buffer -> !tile
      }
      %u = tile.local_load %b[%c0] : !buffer -> !tile
    }
    return
  }

  func.func @no_loop(%A: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>, tile.tma}, %n: i32, %x: i1) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared : !buffer
    scf.for %k = %c0 to %n step %c1 : i32 {
      // expected-remark @below {{prevents producer warps: it copies within an op that is no loop or branch}}
      scf.execute_region {
        tile.async_copy %A[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer
        %t = tile.local_load %b[%c0] : !buffer -> !tile
        scf.yield
      }
    }
    return
  }

  // Nothing is to be gained without a loop, and nothing to be said.
  func.func @once(%A: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>, tile.tma}) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %b = tile.alloc_shared : !buffer
    tile.async_copy %A[%c0, %c0] into %b[%c0] : !A, i32, i32 into !buffer
    %t = tile.local_load %b[%c0] : !buffer -> !tile
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>
#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
!buffer = !tile.buffer<1x64x64xbf16, #s>

module attributes {tile.target = "sm_90a"} {
  func.func @not_waited_for(%A: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>, tile.tma}, %n: i32, %x: i1) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %b = tile.alloc_shared : !buffer
    scf.for %k = %c0 to %n step %c1 : i32 {
      tile.async_copy %A[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer
      // expected-remark @below {{prevents producer warps: no wait ends one of its products}}
      %t = tile.async_mma %b[%c0], %b[%c0], %zero : !buffer, !buffer, tensor<64x64xf32, #acc> -> tensor<64x64xf32, #acc>
    }
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>
#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0], [256, 0], [512, 0]]>
#a = #tile.linear<register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [0, 16], [0, 32]]>
!buffer = !tile.buffer<1x1024x64xbf16, #s>

module attributes {tile.target = "sm_90a"} {
  func.func @too_large(%A: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>, tile.tma}, %n: i32, %x: i1) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared : !buffer
    scf.for %k = %c0 to %n step %c1 : i32 {
      // expected-remark @below {{prevents producer warps: two stages of each buffer do not fit into shared memory}}
      tile.async_copy %A[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer
      %t = tile.local_load %b[%c0] : !buffer -> tensor<1024x64xbf16, #a>
    }
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>
#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
#a = #tile.linear<register = [[0, 1], [1, 0], [2, 0], [4, 0]], lane = [[0, 2], [0, 4], [0, 8], [0, 16], [0, 32]]>
!buffer = !tile.buffer<1x8x64xbf16, #s>

module attributes {tile.target = "sm_90a"} {
  func.func @many_arrays(%A0: !A {tile.align = 16 : i32, tile.tma}, %A1: !A {tile.align = 16 : i32, tile.tma}, %A2: !A {tile.align = 16 : i32, tile.tma}, %A3: !A {tile.align = 16 : i32, tile.tma}, %A4: !A {tile.align = 16 : i32, tile.tma}, %A5: !A {tile.align = 16 : i32, tile.tma}, %A6: !A {tile.align = 16 : i32, tile.tma}, %A7: !A {tile.align = 16 : i32, tile.tma}, %A8: !A {tile.align = 16 : i32, tile.tma}, %A9: !A {tile.align = 16 : i32, tile.tma}, %A10: !A {tile.align = 16 : i32, tile.tma}, %A11: !A {tile.align = 16 : i32, tile.tma}, %A12: !A {tile.align = 16 : i32, tile.tma}, %A13: !A {tile.align = 16 : i32, tile.tma}, %A14: !A {tile.align = 16 : i32, tile.tma}, %A15: !A {tile.align = 16 : i32, tile.tma}, %A16: !A {tile.align = 16 : i32, tile.tma}, %A17: !A {tile.align = 16 : i32, tile.tma}, %A18: !A {tile.align = 16 : i32, tile.tma}, %A19: !A {tile.align = 16 : i32, tile.tma}, %A20: !A {tile.align = 16 : i32, tile.tma}, %A21: !A {tile.align = 16 : i32, tile.tma}, %A22: !A {tile.align = 16 : i32, tile.tma}, %A23: !A {tile.align = 16 : i32, tile.tma}, %A24: !A {tile.align = 16 : i32, tile.tma}, %A25: !A {tile.align = 16 : i32, tile.tma}, %A26: !A {tile.align = 16 : i32, tile.tma}, %A27: !A {tile.align = 16 : i32, tile.tma}, %A28: !A {tile.align = 16 : i32, tile.tma}, %A29: !A {tile.align = 16 : i32, tile.tma}, %A30: !A {tile.align = 16 : i32, tile.tma}, %A31: !A {tile.align = 16 : i32, tile.tma}, %A32: !A {tile.align = 16 : i32, tile.tma}, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared : !buffer
    scf.for %k = %c0 to %n step %c1 : i32 {
      tile.async_copy %A0[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t0 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a> tile.async_copy %A1[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t1 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a>
      tile.async_copy %A2[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t2 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a> tile.async_copy %A3[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t3 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a>
      tile.async_copy %A4[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t4 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a> tile.async_copy %A5[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t5 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a>
      tile.async_copy %A6[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t6 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a> tile.async_copy %A7[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t7 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a>
      tile.async_copy %A8[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t8 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a> tile.async_copy %A9[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t9 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a>
      tile.async_copy %A10[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t10 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a> tile.async_copy %A11[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t11 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a>
      tile.async_copy %A12[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t12 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a> tile.async_copy %A13[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t13 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a>
      tile.async_copy %A14[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t14 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a> tile.async_copy %A15[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t15 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a>
      tile.async_copy %A16[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t16 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a> tile.async_copy %A17[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t17 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a>
      tile.async_copy %A18[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t18 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a> tile.async_copy %A19[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t19 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a>
      tile.async_copy %A20[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t20 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a> tile.async_copy %A21[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t21 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a>
      tile.async_copy %A22[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t22 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a> tile.async_copy %A23[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t23 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a>
      tile.async_copy %A24[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t24 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a> tile.async_copy %A25[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t25 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a>
      tile.async_copy %A26[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t26 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a> tile.async_copy %A27[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t27 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a>
      tile.async_copy %A28[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t28 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a> tile.async_copy %A29[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t29 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a>
      tile.async_copy %A30[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t30 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a> tile.async_copy %A31[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer %t31 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a>
      // expected-remark @below {{prevents producer warps: it copies from too many arrays}}
      tile.async_copy %A32[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer
      %t32 = tile.local_load %b[%c0] : !buffer -> tensor<8x64xbf16, #a>
    }
    return
  }
}

// -----

!A = memref<?x?x?x?x?x?xbf16, strided<[?, ?, ?, ?, ?, 1]>>
#s = #tile.linear<offset = [[0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 2], [0, 0, 0, 0, 0, 4], [0, 0, 0, 0, 0, 8], [0, 0, 0, 0, 0, 16], [0, 0, 0, 0, 0, 32]]>
#a = #tile.linear<register = [[0, 0, 0, 0, 0, 1]], lane = [[0, 0, 0, 0, 0, 2], [0, 0, 0, 0, 0, 4], [0, 0, 0, 0, 0, 8], [0, 0, 0, 0, 0, 16], [0, 0, 0, 0, 0, 32]]>
!buffer = !tile.buffer<1x1x1x1x1x1x64xbf16, #s>

module attributes {tile.target = "sm_90a"} {
  func.func @many_axes(%A: !A {tile.align = 16 : i32}, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared : !buffer
    scf.for %k = %c0 to %n step %c1 : i32 {
      // expected-remark @below {{prevents producer warps: a tensor map has at most 5 dimensions}}
      tile.async_copy %A[%c0, %c0, %c0, %c0, %c0, %k] into %b[%c0] : !A, i32, i32, i32, i32, i32, i32 into !buffer
      %t = tile.local_load %b[%c0] : !buffer -> tensor<1x1x1x1x1x64xbf16, #a>
    }
    return
  }
}

// -----

!A = memref<?x?xf32, strided<[?, 1]>>
#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 4], [2, 8], [4, 16], [8, 0], [16, 0]]>
#a = #tile.linear<register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0], [8, 0], [16, 0]]>
!buffer = !tile.buffer<1x32x32xf32, #s>
!tile = tensor<32x32xf32, #a>

module attributes {tile.target = "sm_90"} {
  func.func @gathered_at_chosen(%A: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>, tile.tma}, %n: i32, %x: i1, %i: tensor<32x32xi32, #a>) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared : !buffer
    // expected-remark @below {{prevents producer warps: it passes on a tile that the position of a copy depends on}}
    %j = scf.if %x -> (tensor<32x32xi32, #a>) {
      scf.yield %i : tensor<32x32xi32, #a>
    } else {
      %next = arith.addi %i, %i : tensor<32x32xi32, #a>
      scf.yield %next : tensor<32x32xi32, #a>
    }
    scf.for %k = %c0 to %n step %c1 : i32 {
      tile.async_gather %A[%j, %j] into %b[%c0] : !A, tensor<32x32xi32, #a>, tensor<32x32xi32, #a> into !buffer
      %u = tile.local_load %b[%c0] : !buffer -> !tile
    }
    return
  }
}
