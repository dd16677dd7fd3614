// Small tiles beside a product are loaded an iteration early.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-prefetch-loads),canonicalize,cse)' | FileCheck %s

#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#rows = #tile.linear<register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#walk = #tile.linear<register = [[0, 1], [32, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]]>
#slice = #tile.linear<register = [[32]], lane = [[0], [0], [1], [2], [4]], warp = [[8], [16]]>
#lines = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!A = memref<?x?xf32, strided<[?, 1]>>
!B = !tile.buffer<1x64x64xbf16, #lines>

// The next tile is loaded when this one has been used; scalars count.
// CHECK-LABEL: @scales
// CHECK: %[[F:.*]] = tile.load %arg0[%c0_i32, %c0_i32]
// CHECK: %[[G:.*]] = tile.gather %arg0[%c0_i32, %c0_i32]{{.*}} -> f32
// CHECK: scf.for %[[K:.*]] = {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[S:.*]] = %[[F]], %[[T:.*]] = %[[G]])
// CHECK: %[[U:.*]] = tile.settle %[[T]] : f32
// CHECK: %[[N:.*]] = arith.addi %[[K]], %c1_i32
// CHECK: %[[J:.*]] = tile.gather %arg0[%c0_i32, %[[N]]]{{.*}} -> f32
// CHECK: tensor.splat %[[U]]
// CHECK: arith.mulf %[[S]]
// CHECK: %[[I:.*]] = tile.load %arg0[%c0_i32, %[[N]]]
// CHECK: tile.async_mma
// CHECK: scf.yield %{{.*}}, %[[I]], %[[J]]
// What comes early may be beyond the last iteration: there no promise that it lies inside holds.
// CHECK-NOT: tile.in_bounds
module attributes {tile.target = "sm_90a"} {
  func.func @scales(%s: !A, %a: !B, %n: i32, %init: tensor<64x64xf32, #acc>) -> tensor<64x64xf32, #acc> attributes {tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %init) -> (tensor<64x64xf32, #acc>) : i32 {
      %x = tile.load %s[%c0, %k] {tile.in_bounds} : !A, i32, i32 -> tensor<64x1xf32, #rows>
      %y = tile.gather %s[%c0, %k] {check_bounds} : !A, i32, i32 -> f32
      %all = tensor.splat %y : tensor<64x1xf32, #rows>
      %z = arith.mulf %x, %all : tensor<64x1xf32, #rows>
      %d = tile.async_mma %a[%c0], %a[%c0], %zero {transposed_rhs} : !B, !B, tensor<64x64xf32, #acc> -> tensor<64x64xf32, #acc>
      %w = tile.mma_wait %d, 0 : tensor<64x64xf32, #acc> -> tensor<64x64xf32, #acc>
      %b = tile.broadcast %z : tensor<64x1xf32, #rows> -> tensor<64x64xf32, #acc>
      %m = arith.mulf %w, %b : tensor<64x64xf32, #acc>
      %e = arith.addf %sum, %m : tensor<64x64xf32, #acc>
      scf.yield %e : tensor<64x64xf32, #acc>
    }
    return %r : tensor<64x64xf32, #acc>
  }

  // Read through a broadcast, behind the wait: the tile moves to other registers, and the next one has its own at once.
  // CHECK-LABEL: @late
  // CHECK: scf.for %[[K:.*]] = {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[S:.*]] = %{{.*}})
  // CHECK-NEXT: %[[T:.*]] = tile.settle %[[S]]
  // CHECK-NEXT: %[[N:.*]] = arith.addi %[[K]], %c1_i32
  // CHECK-NEXT: %[[I:.*]] = tile.load %arg0[%c0_i32, %[[N]]]
  // CHECK: tile.async_mma
  // CHECK: tile.mma_wait
  // CHECK: tile.broadcast %[[T]]
  // CHECK: scf.yield %{{.*}}, %[[I]]
  func.func @late(%s: !A, %a: !B, %n: i32, %init: tensor<64x64xf32, #acc>) -> tensor<64x64xf32, #acc> attributes {tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %init) -> (tensor<64x64xf32, #acc>) : i32 {
      %x = tile.load %s[%c0, %k] : !A, i32, i32 -> tensor<64x1xf32, #rows>
      %d = tile.async_mma %a[%c0], %a[%c0], %zero {transposed_rhs} : !B, !B, tensor<64x64xf32, #acc> -> tensor<64x64xf32, #acc>
      %w = tile.mma_wait %d, 0 : tensor<64x64xf32, #acc> -> tensor<64x64xf32, #acc>
      %b = tile.broadcast %x : tensor<64x1xf32, #rows> -> tensor<64x64xf32, #acc>
      %m = arith.mulf %w, %b : tensor<64x64xf32, #acc>
      %e = arith.addf %sum, %m : tensor<64x64xf32, #acc>
      scf.yield %e : tensor<64x64xf32, #acc>
    }
    return %r : tensor<64x64xf32, #acc>
  }

  // A walk along rows, a tile of 4 words a thread; the next comes while this one is reduced.
  // CHECK-LABEL: @walk
  // CHECK: %[[F:.*]] = tile.load %arg0[%c0_i32, %c0_i32]
  // CHECK: scf.for %[[K:.*]] = {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[X:.*]] = %[[F]])
  // CHECK: math.absf %[[X]]
  // CHECK: %[[N:.*]] = arith.addi %[[K]], %c1_i32
  // CHECK: %[[I:.*]] = tile.load %arg0[%c0_i32, %[[N]]]
  // CHECK: tile.reduce
  // CHECK: scf.yield %{{.*}}, %[[I]]
  func.func @walk(%s: !A, %n: i32, %init: tensor<64xf32, #slice>) -> tensor<64xf32, #slice> attributes {tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %init) -> (tensor<64xf32, #slice>) : i32 {
      %x = tile.load %s[%c0, %k] : !A, i32, i32 -> tensor<64x8xf32, #walk>
      %y = math.absf %x : tensor<64x8xf32, #walk>
      %m = "tile.reduce"(%y) {kind = 0 : i32, axis = 1 : i32} : (tensor<64x8xf32, #walk>) -> tensor<64xf32, #slice>
      %e = arith.addf %sum, %m : tensor<64xf32, #slice>
      scf.yield %e : tensor<64xf32, #slice>
    }
    return %r : tensor<64xf32, #slice>
  }

  // A tile that is read behind the reduction moves to other registers, so that the next one has all of the iteration; not
  // where blocks side by side leave a thread too few.
  // CHECK-LABEL: @read_behind
  // CHECK: scf.for %[[K:.*]] = {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %[[X:.*]] = %{{.*}})
  // CHECK-NEXT: %[[T:.*]] = tile.settle %[[X]]
  // CHECK-NEXT: %[[N:.*]] = arith.addi %[[K]], %c1_i32
  // CHECK-NEXT: tile.load %arg0[%c0_i32, %[[N]]]
  // CHECK-NEXT: tile.reduce {{.*}} %[[T]]
  // CHECK: arith.mulf %[[T]]
  func.func @read_behind(%s: !A, %n: i32, %init: tensor<64xf32, #slice>, %none: tensor<64x8xf32, #walk>) -> (tensor<64xf32, #slice>, tensor<64x8xf32, #walk>) attributes {tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %init, %all = %none) -> (tensor<64xf32, #slice>, tensor<64x8xf32, #walk>) : i32 {
      %x = tile.load %s[%c0, %k] : !A, i32, i32 -> tensor<64x8xf32, #walk>
      %m = "tile.reduce"(%x) {kind = 0 : i32, axis = 1 : i32} : (tensor<64x8xf32, #walk>) -> tensor<64xf32, #slice>
      %e = arith.addf %sum, %m : tensor<64xf32, #slice>
      %y = arith.mulf %x, %x : tensor<64x8xf32, #walk>
      %f = arith.addf %all, %y : tensor<64x8xf32, #walk>
      scf.yield %e, %f : tensor<64xf32, #slice>, tensor<64x8xf32, #walk>
    }
    return %r#0, %r#1 : tensor<64xf32, #slice>, tensor<64x8xf32, #walk>
  }

  // CHECK-LABEL: @no_room
  // CHECK-NOT: tile.settle
  // CHECK: arith.mulf
  // CHECK: tile.load
  func.func @no_room(%s: !A, %n: i32, %init: tensor<64xf32, #slice>, %none: tensor<64x8xf32, #walk>) -> (tensor<64xf32, #slice>, tensor<64x8xf32, #walk>) attributes {tile.hints = {num_warps = 4 : i32, occupancy = 12 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %init, %all = %none) -> (tensor<64xf32, #slice>, tensor<64x8xf32, #walk>) : i32 {
      %x = tile.load %s[%c0, %k] : !A, i32, i32 -> tensor<64x8xf32, #walk>
      %m = "tile.reduce"(%x) {kind = 0 : i32, axis = 1 : i32} : (tensor<64x8xf32, #walk>) -> tensor<64xf32, #slice>
      %e = arith.addf %sum, %m : tensor<64xf32, #slice>
      %y = arith.mulf %x, %x : tensor<64x8xf32, #walk>
      %f = arith.addf %all, %y : tensor<64x8xf32, #walk>
      scf.yield %e, %f : tensor<64xf32, #slice>, tensor<64x8xf32, #walk>
    }
    return %r#0, %r#1 : tensor<64xf32, #slice>, tensor<64x8xf32, #walk>
  }

  // Nor does one of 16 bits.
  // CHECK-LABEL: @halves
  // CHECK-NOT: tile.settle
  // CHECK: arith.mulf
  // CHECK: tile.load
  func.func @halves(%s: memref<?x?xf16>, %n: i32, %init: tensor<64xf16, #slice>, %none: tensor<64x8xf16, #walk>) -> (tensor<64xf16, #slice>, tensor<64x8xf16, #walk>) attributes {tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %init, %all = %none) -> (tensor<64xf16, #slice>, tensor<64x8xf16, #walk>) : i32 {
      %x = tile.load %s[%c0, %k] : memref<?x?xf16>, i32, i32 -> tensor<64x8xf16, #walk>
      %m = "tile.reduce"(%x) {kind = 0 : i32, axis = 1 : i32} : (tensor<64x8xf16, #walk>) -> tensor<64xf16, #slice>
      %e = arith.addf %sum, %m : tensor<64xf16, #slice>
      %y = arith.mulf %x, %x : tensor<64x8xf16, #walk>
      %f = arith.addf %all, %y : tensor<64x8xf16, #walk>
      scf.yield %e, %f : tensor<64xf16, #slice>, tensor<64x8xf16, #walk>
    }
    return %r#0, %r#1 : tensor<64xf16, #slice>, tensor<64x8xf16, #walk>
  }

  // Not where the loop writes to the array, nor where the position comes from what was loaded.
  // CHECK-LABEL: @writes
  // CHECK-NOT: iter_args
  // CHECK: return
  func.func @writes(%s: !A, %a: !B, %n: i32) attributes {tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    scf.for %k = %c0 to %n step %c1 : i32 {
      %x = tile.load %s[%c0, %k] : !A, i32, i32 -> tensor<64x1xf32, #rows>
      %b = tile.broadcast %x : tensor<64x1xf32, #rows> -> tensor<64x64xf32, #acc>
      %d = tile.async_mma %a[%c0], %a[%c0], %zero {transposed_rhs} : !B, !B, tensor<64x64xf32, #acc> -> tensor<64x64xf32, #acc>
      %w = tile.mma_wait %d, 0 : tensor<64x64xf32, #acc> -> tensor<64x64xf32, #acc>
      %m = arith.mulf %w, %b : tensor<64x64xf32, #acc>
      tile.store %m, %s[%k, %c0] : tensor<64x64xf32, #acc>, !A, i32, i32
    }
    return
  }

  // CHECK-LABEL: @chained
  // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[I:.*]] = %{{.*}})
  // CHECK: tile.load %arg0[%c0_i32, %[[I]]]
  // CHECK: tile.async_mma
  func.func @chained(%s: !A, %t: memref<?xi32, strided<[1]>>, %a: !B, %n: i32, %init: tensor<64x64xf32, #acc>) -> tensor<64x64xf32, #acc> attributes {tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %init) -> (tensor<64x64xf32, #acc>) : i32 {
      %i = tile.gather %t[%k] {check_bounds} : memref<?xi32, strided<[1]>>, i32 -> i32
      %x = tile.load %s[%c0, %i] : !A, i32, i32 -> tensor<64x1xf32, #rows>
      %b = tile.broadcast %x : tensor<64x1xf32, #rows> -> tensor<64x64xf32, #acc>
      %d = tile.async_mma %a[%c0], %a[%c0], %zero {transposed_rhs} : !B, !B, tensor<64x64xf32, #acc> -> tensor<64x64xf32, #acc>
      %w = tile.mma_wait %d, 0 : tensor<64x64xf32, #acc> -> tensor<64x64xf32, #acc>
      %m = arith.mulf %w, %b : tensor<64x64xf32, #acc>
      %e = arith.addf %sum, %m : tensor<64x64xf32, #acc>
      scf.yield %e : tensor<64x64xf32, #acc>
    }
    return %r : tensor<64x64xf32, #acc>
  }

  // Nor where elements are not checked, where the position comes from what the loop carries, where threads have more
  // words than they can spare, or where the loop does not move it.
  // CHECK-LABEL: @stay
  // CHECK-NOT: iter_args({{.*}}, {{.*}}, {{.*}})
  // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}})
  // CHECK: return
  func.func @stay(%s: !A, %a: !B, %n: i32, %init: tensor<64x64xf32, #acc>) -> tensor<64x64xf32, #acc> attributes {tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %init, %at = %c0) -> (tensor<64x64xf32, #acc>, i32) : i32 {
      %u = tile.gather %s[%c0, %k] : !A, i32, i32 -> f32
      %v = tile.load %s[%k, %at] : !A, i32, i32 -> tensor<64x1xf32, #rows>
      %w = tile.load %s[%c0, %k] : !A, i32, i32 -> tensor<64x64xf32, #acc>
      %y = tile.load %s[%n, %c0] : !A, i32, i32 -> tensor<64x1xf32, #rows>
      %all = tensor.splat %u : tensor<64x1xf32, #rows>
      %p = arith.mulf %v, %all : tensor<64x1xf32, #rows>
      %q = arith.mulf %p, %y : tensor<64x1xf32, #rows>
      %d = tile.async_mma %a[%c0], %a[%c0], %zero {transposed_rhs} : !B, !B, tensor<64x64xf32, #acc> -> tensor<64x64xf32, #acc>
      %e = tile.mma_wait %d, 0 : tensor<64x64xf32, #acc> -> tensor<64x64xf32, #acc>
      %b = tile.broadcast %q : tensor<64x1xf32, #rows> -> tensor<64x64xf32, #acc>
      %m = arith.mulf %e, %b : tensor<64x64xf32, #acc>
      %l = arith.addf %m, %w : tensor<64x64xf32, #acc>
      %f = arith.addf %sum, %l : tensor<64x64xf32, #acc>
      %next = arith.addi %at, %n : i32
      scf.yield %f, %next : tensor<64x64xf32, #acc>, i32
    }
    return %r#0 : tensor<64x64xf32, #acc>
  }
}

// -----

#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#rows = #tile.linear<register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#walk = #tile.linear<register = [[0, 1], [32, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]]>
#slice = #tile.linear<register = [[32]], lane = [[0], [0], [1], [2], [4]], warp = [[8], [16]]>
#lines = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!A = memref<?x?xf32, strided<[?, 1]>>
!B = !tile.buffer<1x64x64xbf16, #lines>

// Sums so far, a tile at a time: the next one comes meanwhile, if the launch finds the arrays apart, or
// one and the same.
// CHECK-LABEL: @running
// CHECK-SAME: no_alias = [{array = {bits = 32 : i32, rank = 2 : i32, word = 0 : i32}, or_same = 1 : i32, other = {bits = 32 : i32, rank = 2 : i32, word = 5 : i32}}]
// CHECK: %[[FIRST:.*]] = tile.load
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %[[FIRST]])
// CHECK: tile.scan
// CHECK-NEXT: arith.addi
// CHECK-NEXT: tile.load
// CHECK: tile.store
module attributes {tile.target = "sm_90a"} {
  func.func @running(%x: memref<?x?xf32, strided<[?, 1]>>, %y: memref<?x?xf32, strided<[?, 1]>>, %n: i32, %zero: tensor<64x1xf32, #rows>) attributes {tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%before = %zero) -> (tensor<64x1xf32, #rows>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<64x1xf32, #rows>
      %s = tile.scan add, %a axis 0 : tensor<64x1xf32, #rows>
      %t = arith.addf %s, %before : tensor<64x1xf32, #rows>
      tile.store %t, %y[%c0, %k] : tensor<64x1xf32, #rows>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
      scf.yield %t : tensor<64x1xf32, #rows>
    }
    return
  }
}

// -----

#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#rows = #tile.linear<register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#walk = #tile.linear<register = [[0, 1], [32, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]]>
#slice = #tile.linear<register = [[32]], lane = [[0], [0], [1], [2], [4]], warp = [[8], [16]]>
#lines = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!A = memref<?x?xf32, strided<[?, 1]>>
!B = !tile.buffer<1x64x64xbf16, #lines>

// CHECK-LABEL: @running
// CHECK: scf.for {{.*}} iter_args(%{{[a-z0-9]*}} = %{{[a-z0-9]*}})
// CHECK-NEXT: tile.load
module attributes {tile.target = "sm_90a"} {
  func.func @running(%x: memref<?x?xf32, strided<[?, 1]>>, %y: memref<?x?xf32, strided<[?, 1]>>, %n: i32, %zero: tensor<64x1xf32, #rows>) attributes {tile.hints = {num_warps = 4 : i32, may_alias}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%before = %zero) -> (tensor<64x1xf32, #rows>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<64x1xf32, #rows>
      %s = tile.scan add, %a axis 0 : tensor<64x1xf32, #rows>
      %t = arith.addf %s, %before : tensor<64x1xf32, #rows>
      tile.store %t, %y[%c0, %k] : tensor<64x1xf32, #rows>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
      scf.yield %t : tensor<64x1xf32, #rows>
    }
    return
  }
}

// -----

#rows = #tile.linear<register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// Which block comes next is not known where blocks are scheduled dynamically.
// CHECK-LABEL: @dynamic
// CHECK: scf.for %[[V:[a-z0-9]*]] = %{{.*}} {
// CHECK-NEXT: tile.load %{{.*}}[%c0_i32, %[[V]]]
module attributes {tile.target = "sm_90a"} {
  func.func @dynamic(%x: memref<?x?xf32, strided<[?, 1]>>, %y: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %v = %c0 to %n step %c1 : i32 {
      %a = tile.load %x[%c0, %v] padding zero : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<64x1xf32, #rows>
      %s = tile.scan add, %a axis 0 : tensor<64x1xf32, #rows>
      tile.store %s, %y[%c0, %v] : tensor<64x1xf32, #rows>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    } {tile.dynamic_schedule, tile.persistent}
    return
  }
}
