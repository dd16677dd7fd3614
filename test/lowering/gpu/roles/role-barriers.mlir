// Barriers in a kernel with a producer: those that only kept copies and reads of one stage apart are gone, those that
// order what threads write to shared memory stay.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-specialize-warps))' 2>/dev/null | FileCheck %s

#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 4], [2, 8], [4, 16], [8, 0], [16, 0]]>
#a = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [16, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
!A = memref<?x?xf32, strided<[?, 1]>>
!buffer = !tile.buffer<1x32x32xf32, #s>
!tile = tensor<32x32xf32, #a>

module attributes {tile.target = "sm_90"} {
  // CHECK-LABEL: @reads
  // CHECK: consumer {
  // CHECK-NOT: tile.barrier{{ |$}}
  // CHECK: return
  func.func @reads(%A: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>, tile.tma}, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared : !buffer
    scf.for %k = %c0 to %n step %c1 : i32 {
      tile.async_copy %A[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer
      tile.async_commit
      tile.async_wait 0
      tile.barrier {tile.copies}
      %t = tile.local_load %b[%c0] : !buffer -> !tile
      tile.barrier {tile.copies}
    }
    return
  }

  // Those that order stores stay, but the second of two in a row orders nothing.
  // CHECK-LABEL: @writes
  // CHECK: producer {
  // CHECK-NOT: tile.local_store
  // CHECK: consumer {
  // CHECK: tile.local_load
  // CHECK: tile.barrier {tile.copies}
  // CHECK-NEXT: tile.local_store
  // CHECK-NEXT: tile.barrier {tile.stores}
  // CHECK-NEXT: tile.local_load
  // CHECK-NEXT: tile.barrier {tile.stores}
  // CHECK-NOT: tile.barrier{{ |$}}
  // CHECK: scf.yield
  func.func @writes(%A: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>, tile.tma}, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared : !buffer
    %o = tile.alloc_shared : !buffer
    scf.for %k = %c0 to %n step %c1 : i32 {
      tile.async_copy %A[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer
      tile.async_commit
      tile.async_wait 0
      tile.barrier {tile.copies}
      %t = tile.local_load %b[%c0] : !buffer -> !tile
      tile.barrier {tile.copies}
      tile.local_store %t, %o[%c0] : !tile, !buffer
      tile.barrier {tile.stores}
      %u = tile.local_load %o[%c0] : !buffer -> !tile
      tile.barrier {tile.stores}
      tile.barrier {tile.stores}
    }
    return
  }

  // One that says nothing may order anything.
  // CHECK-LABEL: @says_nothing
  // CHECK: consumer {
  // CHECK: tile.local_load
  // CHECK: tile.barrier{{$}}
  func.func @says_nothing(%A: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>, tile.tma}, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared : !buffer
    scf.for %k = %c0 to %n step %c1 : i32 {
      tile.async_copy %A[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer
      tile.async_commit
      tile.async_wait 0
      tile.barrier {tile.copies}
      %t = tile.local_load %b[%c0] : !buffer -> !tile
      tile.barrier
    }
    return
  }
}
