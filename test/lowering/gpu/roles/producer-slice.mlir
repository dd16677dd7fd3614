// What a producer does again to know where copies lie, and stores that these must not overtake.
// RUN: tw-opt %s -verify-diagnostics --pass-pipeline='builtin.module(func.func(tile-specialize-warps))' | FileCheck %s

#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 4], [2, 8], [4, 16], [8, 0], [16, 0]]>
#a = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [16, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
!A = memref<?x?xf32, strided<[?, 1]>>
!T = memref<?xi32, strided<[1]>>
!buffer = !tile.buffer<1x32x32xf32, #s>
!tile = tensor<32x32xf32, #a>

module attributes {tile.target = "sm_90"} {
  // The bound and the position come from memory that nothing writes to; the position is carried. Sums are not needed.
  // CHECK-LABEL: @from_memory
  // CHECK: producer {
  // CHECK: tile.gather
  // CHECK: scf.for {{.*}} iter_args(%[[AT:[a-z0-9]+]] = %{{[a-z0-9_]+}}, %{{[a-z0-9]+}} = %{{[a-z0-9_]+}}, %{{[a-z0-9]+}} = %{{[a-z0-9_]+}}) -> (i32, i32, i32)
  // CHECK: tile.tma_load %arg0[%{{.*}}, %[[AT]]]
  // CHECK: tile.gather
  // CHECK-NOT: arith.addf
  // CHECK: consumer {
  // CHECK: arith.addf
  func.func @from_memory(%A: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>, tile.tma}, %T: !T, %z: !tile, %Z: !A) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %n = tile.gather %T[%c0] : !T, i32 -> i32
    %b = tile.alloc_shared : !buffer
    %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%at = %c0, %sum = %z) -> (i32, !tile) : i32 {
      // expected-remark @below {{is done by a producer warp}}
      tile.async_copy %A[%c0, %at] into %b[%c0] : !A, i32, i32 into !buffer
      %t = tile.local_load %b[%c0] : !buffer -> !tile
      %next = arith.addf %sum, %t : !tile
      %to = tile.gather %T[%at] : !T, i32 -> i32
      scf.yield %to, %next : i32, !tile
    }
    tile.store %r#1, %Z[%c0, %c0] : !tile, !A, i32, i32
    return
  }

  // The same, but the kernel writes to the table: the producer would not see it.
  // CHECK-LABEL: @table_written
  // CHECK-NOT: tile.roles
  func.func @table_written(%A: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>, tile.tma}, %T: !T, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared : !buffer
    scf.for %k = %c0 to %n step %c1 : i32 {
      // expected-remark @below {{prevents producer warps: the position of a copy depends on a tile or on an effect}}
      %at = tile.gather %T[%k] : !T, i32 -> i32
      tile.async_copy %A[%c0, %at] into %b[%c0] : !A, i32, i32 into !buffer
      %t = tile.local_load %b[%c0] : !buffer -> !tile
      tile.scatter %k, %T[%c0] : i32, !T, i32
    }
    return
  }

  // Carried from one iteration to the next.
  // CHECK-LABEL: @written_table_carried
  // CHECK-NOT: tile.roles
  func.func @written_table_carried(%A: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>, tile.tma}, %T: !T, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared : !buffer
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%at = %c0) -> (i32) : i32 {
      tile.async_copy %A[%c0, %at] into %b[%c0] : !A, i32, i32 into !buffer
      %t = tile.local_load %b[%c0] : !buffer -> !tile
      // expected-remark @below {{prevents producer warps: the position of a copy depends on a tile or on an effect}}
      %to = tile.gather %T[%at] : !T, i32 -> i32
      scf.yield %to : i32
    }
    tile.scatter %r, %T[%c0] : i32, !T, i32
    return
  }

  // As the condition of a branch around.
  // CHECK-LABEL: @written_table_decides
  // CHECK-NOT: tile.roles
  func.func @written_table_decides(%A: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>, tile.tma}, %T: !T, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared : !buffer
    scf.for %k = %c0 to %n step %c1 : i32 {
      // expected-remark @below {{prevents producer warps: the position of a copy depends on a tile or on an effect}}
      %x = tile.gather %T[%k] : !T, i32 -> i32
      %c = arith.cmpi eq, %x, %c0 : i32
      scf.if %c {
        tile.async_copy %A[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer
        %t = tile.local_load %b[%c0] : !buffer -> !tile
      }
      tile.scatter %k, %T[%c0] : i32, !T, i32
    }
    return
  }

  // A store before the loop, and one in a branch before it: the copies of the loop would overtake them.
  // CHECK-LABEL: @stored_before
  // CHECK-NOT: tile.roles
  func.func @stored_before(%A: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>, tile.tma}, %n: i32, %x: !tile) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared : !buffer
    // expected-remark @below {{prevents producer warps: it writes to an array that may be the one of a later copy}}
    tile.store %x, %A[%c0, %c0] : !tile, !A, i32, i32
    scf.for %k = %c0 to %n step %c1 : i32 {
      tile.async_copy %A[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer
      %t = tile.local_load %b[%c0] : !buffer -> !tile
    }
    return
  }

  // CHECK-LABEL: @stored_in_a_branch_before
  // CHECK-NOT: tile.roles
  func.func @stored_in_a_branch_before(%A: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>, tile.tma}, %n: i32, %x: !tile, %c: i1) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared : !buffer
    scf.if %c {
      // expected-remark @below {{prevents producer warps: it writes to an array that may be the one of a later copy}}
      tile.store %x, %A[%c0, %c0] : !tile, !A, i32, i32
    }
    scf.for %k = %c0 to %n step %c1 : i32 {
      tile.async_copy %A[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer
      %t = tile.local_load %b[%c0] : !buffer -> !tile
    }
    return
  }

  // A store behind all copies is in nobody's way.
  // CHECK-LABEL: @stored_behind
  // CHECK: tile.roles
  func.func @stored_behind(%A: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>, tile.tma}, %n: i32, %x: !tile) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile.alloc_shared : !buffer
    scf.for %k = %c0 to %n step %c1 : i32 {
      // expected-remark @below {{is done by a producer warp}}
      tile.async_copy %A[%c0, %k] into %b[%c0] : !A, i32, i32 into !buffer
      %t = tile.local_load %b[%c0] : !buffer -> !tile
    }
    tile.store %x, %A[%c0, %c0] : !tile, !A, i32, i32
    return
  }
}
