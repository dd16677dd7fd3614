// What several walks along an array read is brought once, and kept in shared memory.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-cache-tiles),canonicalize,cse)' | FileCheck %s

#walk = #tile.linear<register = [[0, 1], [0, 2], [0, 1024], [0, 2048]], lane = [[0, 4], [0, 8], [0, 16], [0, 32], [0, 64]], warp = [[0, 128], [0, 256], [0, 512]]>
#slice = #tile.linear<lane = [[0], [0], [0], [0], [0]], warp = [[0], [0], [0]]>
!A = memref<?x?xf32, strided<[?, 1]>>

// Of a row whose length is known when the kernel runs, as many tiles as leave room for three blocks; the rest is walked
// along as before. Each thread reads the pieces that it has copied itself, and meets no other one.
// CHECK-LABEL: @softmax
// CHECK: %[[B:.*]] = tile.alloc_shared : <4x1x4096xf32
// CHECK: %[[K:.*]] = arith.minsi %arg2, %c4_i32
// CHECK: %[[HAS:.*]] = arith.cmpi sgt, %[[K]], %c0_i32
// CHECK-NEXT: scf.if %[[HAS]] {
// CHECK-NEXT: tile.async_copy %arg0[%c0_i32, %c0_i32] into %[[B]][%c0_i32] {tile.padding = 5 : i32}
// CHECK-NEXT: }
// CHECK-NEXT: tile.async_commit
// CHECK: tile.async_copy %arg0[%c0_i32, %c3_i32] into %[[B]][%c3_i32]
// CHECK: scf.for %[[J:.*]] = %c0_i32 to %[[K]] step %c1_i32 iter_args
// CHECK-NEXT: tile.async_commit
// CHECK-NEXT: tile.async_wait 4
// CHECK-NEXT: tile.local_load %[[B]][%[[J]]]
// CHECK: scf.for %[[J:.*]] = %[[K]] to %arg2 step %c1_i32 iter_args
// CHECK-NEXT: tile.load %arg0[%c0_i32, %[[J]]]
// CHECK: scf.for %[[J:.*]] = %c0_i32 to %[[K]] step %c1_i32
// CHECK: tile.local_load %[[B]][%[[J]]]
// CHECK: tile.store %{{.*}}, %arg1[%c0_i32, %[[J]]]
// CHECK: scf.for %[[J:.*]] = %[[K]] to %arg2 step %c1_i32
// CHECK: tile.load %arg0[%c0_i32, %[[J]]]
module attributes {tile.target = "sm_90a"} {
  func.func @softmax(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 4, 1>}, %y: !A, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %low = arith.constant dense<-1.0e30> : tensor<1xf32, #slice>
    %m = scf.for %j = %c0 to %n step %c1 iter_args(%most = %low) -> (tensor<1xf32, #slice>) : i32 {
      %t = tile.load %x[%c0, %j] padding neg_inf : !A, i32, i32 -> tensor<1x4096xf32, #walk>
      %r = "tile.reduce"(%t) {kind = 2 : i32, axis = 1 : i32} : (tensor<1x4096xf32, #walk>) -> tensor<1xf32, #slice>
      %next = arith.maximumf %most, %r : tensor<1xf32, #slice>
      scf.yield %next : tensor<1xf32, #slice>
    }
    %s = tile.reshape %m : tensor<1xf32, #slice> -> tensor<1x1xf32, #tile.linear<lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], warp = [[0, 0], [0, 0], [0, 0]]>>
    %b = tile.broadcast %s : tensor<1x1xf32, #tile.linear<lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], warp = [[0, 0], [0, 0], [0, 0]]>> -> tensor<1x4096xf32, #walk>
    scf.for %j = %c0 to %n step %c1 : i32 {
      %t = tile.load %x[%c0, %j] padding neg_inf : !A, i32, i32 -> tensor<1x4096xf32, #walk>
      %z = arith.subf %t, %b : tensor<1x4096xf32, #walk>
      tile.store %z, %y[%c0, %j] : tensor<1x4096xf32, #walk>, !A, i32, i32
    }
    return
  }
}

// -----

// Where the number of tiles is known, and all of them fit, nothing is left to walk along as before. What only one walk
// reads is not kept; nor is anything where a store may change what is yet to be read. A thread has two pieces side by
// side, of which it copies none or one: threads meet.
#walk = #tile.linear<register = [[0, 1], [0, 2], [0, 4], [0, 2048]], lane = [[0, 8], [0, 16], [0, 32], [0, 64], [0, 128]], warp = [[0, 256], [0, 512], [0, 1024]]>
!A = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: @known
// CHECK: %[[B:.*]] = tile.alloc_shared : <6x1x4096xf32
// CHECK-NOT: scf.if
// CHECK: scf.for %[[J:.*]] = %c0_i32 to %c6_i32 step %c1_i32
// CHECK: tile.async_wait 6
// CHECK-NEXT: tile.barrier {tile.copies}
// CHECK-NEXT: tile.local_load %[[B]][%[[J]]]
// CHECK: scf.for %[[J:.*]] = %c0_i32 to %c6_i32 step %c1_i32
// CHECK: tile.local_load %[[B]][%[[J]]]
// CHECK: tile.load %arg1[%c0_i32, %[[J]]]
// CHECK: tile.store
// CHECK: return
module attributes {tile.target = "sm_90a"} {
  func.func @known(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 4, 1>}, %y: !A) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c6 = arith.constant 6 : i32
    %zero = arith.constant dense<0.0> : tensor<1x4096xf32, #walk>
    %m = scf.for %j = %c0 to %c6 step %c1 iter_args(%sum = %zero) -> (tensor<1x4096xf32, #walk>) : i32 {
      %t = tile.load %x[%c0, %j] : !A, i32, i32 -> tensor<1x4096xf32, #walk>
      %next = arith.addf %sum, %t : tensor<1x4096xf32, #walk>
      scf.yield %next : tensor<1x4096xf32, #walk>
    }
    scf.for %j = %c0 to %c6 step %c1 : i32 {
      %t = tile.load %x[%c0, %j] : !A, i32, i32 -> tensor<1x4096xf32, #walk>
      %o = tile.load %y[%c0, %j] : !A, i32, i32 -> tensor<1x4096xf32, #walk>
      %z = arith.addf %t, %m : tensor<1x4096xf32, #walk>
      %w = arith.addf %z, %o : tensor<1x4096xf32, #walk>
      tile.store %w, %x[%c0, %j] : tensor<1x4096xf32, #walk>, !A, i32, i32
    }
    return
  }

  // CHECK-LABEL: @changed
  // CHECK-NOT: tile.alloc_shared
  func.func @changed(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 4, 1>}) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c6 = arith.constant 6 : i32
    %zero = arith.constant dense<0.0> : tensor<1x4096xf32, #walk>
    %m = scf.for %j = %c0 to %c6 step %c1 iter_args(%sum = %zero) -> (tensor<1x4096xf32, #walk>) : i32 {
      %t = tile.load %x[%c0, %j] : !A, i32, i32 -> tensor<1x4096xf32, #walk>
      %next = arith.addf %sum, %t : tensor<1x4096xf32, #walk>
      scf.yield %next : tensor<1x4096xf32, #walk>
    }
    scf.for %j = %c0 to %c6 step %c1 : i32 {
      %t = tile.load %x[%c0, %j] : !A, i32, i32 -> tensor<1x4096xf32, #walk>
      %z = arith.addf %t, %m : tensor<1x4096xf32, #walk>
      %after = arith.addi %j, %c1 : i32
      tile.store %z, %x[%c0, %after] : tensor<1x4096xf32, #walk>, !A, i32, i32
    }
    return
  }

  // A tile that is read behind the store, and one that several iterations store.
  // CHECK-LABEL: @read_again
  // CHECK-NOT: tile.alloc_shared
  func.func @read_again(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 4, 1>}, %y: !A) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c6 = arith.constant 6 : i32
    %zero = arith.constant dense<0.0> : tensor<1x4096xf32, #walk>
    %m = scf.for %j = %c0 to %c6 step %c1 iter_args(%sum = %zero) -> (tensor<1x4096xf32, #walk>) : i32 {
      %t = tile.load %x[%c0, %j] : !A, i32, i32 -> tensor<1x4096xf32, #walk>
      %next = arith.addf %sum, %t : tensor<1x4096xf32, #walk>
      scf.yield %next : tensor<1x4096xf32, #walk>
    }
    scf.for %j = %c0 to %c6 step %c1 : i32 {
      tile.store %m, %x[%c0, %j] : tensor<1x4096xf32, #walk>, !A, i32, i32
      %t = tile.load %x[%c0, %j] : !A, i32, i32 -> tensor<1x4096xf32, #walk>
      %z = arith.addf %t, %m : tensor<1x4096xf32, #walk>
      tile.store %z, %y[%c0, %j] : tensor<1x4096xf32, #walk>, !A, i32, i32
    }
    return
  }

  // CHECK-LABEL: @halves
  // CHECK-NOT: tile.alloc_shared
  func.func @halves(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 4, 1>}) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c6 = arith.constant 6 : i32
    %zero = arith.constant dense<0.0> : tensor<1x4096xf32, #walk>
    %m = scf.for %j = %c0 to %c6 step %c1 iter_args(%sum = %zero) -> (tensor<1x4096xf32, #walk>) : i32 {
      %at = arith.divsi %j, %c6 : i32
      %t = tile.load %x[%c0, %at] : !A, i32, i32 -> tensor<1x4096xf32, #walk>
      %next = arith.addf %sum, %t : tensor<1x4096xf32, #walk>
      scf.yield %next : tensor<1x4096xf32, #walk>
    }
    scf.for %j = %c0 to %c6 step %c1 : i32 {
      %at = arith.divsi %j, %c6 : i32
      %t = tile.load %x[%c0, %at] : !A, i32, i32 -> tensor<1x4096xf32, #walk>
      %z = arith.addf %t, %m : tensor<1x4096xf32, #walk>
      tile.store %z, %x[%c0, %at] : tensor<1x4096xf32, #walk>, !A, i32, i32
    }
    return
  }
}

// -----

#walk = #tile.linear<register = [[0, 1], [0, 2], [0, 1024], [0, 2048]], lane = [[0, 4], [0, 8], [0, 16], [0, 32], [0, 64]], warp = [[0, 128], [0, 256], [0, 512]]>
!A = memref<?x?xf32, strided<[?, 1]>>

// The launch may pass one array for both.
// CHECK-LABEL: @one_or_two
// CHECK-SAME: no_alias = [{array = {bits = 32 : i32, rank = 2 : i32, word = 0 : i32}, or_same = 1 : i32, other = {bits = 32 : i32, rank = 2 : i32, word = 5 : i32}}]
// CHECK: tile.alloc_shared
module attributes {tile.target = "sm_90a"} {
  func.func @one_or_two(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 4, 1>}, %y: !A) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c6 = arith.constant 6 : i32
    %zero = arith.constant dense<0.0> : tensor<1x4096xf32, #walk>
    %m = scf.for %j = %c0 to %c6 step %c1 iter_args(%sum = %zero) -> (tensor<1x4096xf32, #walk>) : i32 {
      %t = tile.load %x[%c0, %j] : !A, i32, i32 -> tensor<1x4096xf32, #walk>
      %next = arith.addf %sum, %t : tensor<1x4096xf32, #walk>
      scf.yield %next : tensor<1x4096xf32, #walk>
    }
    scf.for %j = %c0 to %c6 step %c1 : i32 {
      %t = tile.load %x[%c0, %j] : !A, i32, i32 -> tensor<1x4096xf32, #walk>
      %z = arith.addf %t, %m : tensor<1x4096xf32, #walk>
      tile.store %z, %y[%c0, %j] : tensor<1x4096xf32, #walk>, !A, i32, i32
    }
    return
  }
}

// -----

// A second load of a tile in the same walk is left alone.
#walk = #tile.linear<register = [[0, 1], [0, 2], [0, 1024], [0, 2048]], lane = [[0, 4], [0, 8], [0, 16], [0, 32], [0, 64]], warp = [[0, 128], [0, 256], [0, 512]]>
!A = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: @twice
// CHECK: scf.for
// CHECK: tile.local_load
// CHECK: tile.load
module attributes {tile.target = "sm_90a"} {
  func.func @twice(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 4, 1>}, %y: !A) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c6 = arith.constant 6 : i32
    %zero = arith.constant dense<0.0> : tensor<1x4096xf32, #walk>
    %m = scf.for %j = %c0 to %c6 step %c1 iter_args(%sum = %zero) -> (tensor<1x4096xf32, #walk>) : i32 {
      %t = tile.load %x[%c0, %j] : !A, i32, i32 -> tensor<1x4096xf32, #walk>
      %u = tile.load %x[%c0, %j] : !A, i32, i32 -> tensor<1x4096xf32, #walk>
      %v = arith.addf %u, %t : tensor<1x4096xf32, #walk>
      %next = arith.addf %sum, %v : tensor<1x4096xf32, #walk>
      scf.yield %next : tensor<1x4096xf32, #walk>
    }
    scf.for %j = %c0 to %c6 step %c1 : i32 {
      %t = tile.load %x[%c0, %j] : !A, i32, i32 -> tensor<1x4096xf32, #walk>
      %z = arith.addf %t, %m : tensor<1x4096xf32, #walk>
      tile.store %z, %y[%c0, %j] : tensor<1x4096xf32, #walk>, !A, i32, i32
    }
    return
  }
}

// -----

// The row comes from the number of the block, the column from the walk: no order of groups of rows is read into it.
#walk = #tile.linear<register = [[0, 1], [0, 2], [0, 1024], [0, 2048]], lane = [[0, 4], [0, 8], [0, 16], [0, 32], [0, 64]], warp = [[0, 128], [0, 256], [0, 512]]>
!A = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: @row_of_a_block
// CHECK: tile.async_copy %arg0[%[[ROW:[^,]*]], %{{.*}}] into
// CHECK: tile.local_load
// CHECK: tile.store %{{.*}}, %arg1[%[[ROW]]
module attributes {tile.target = "sm_90a"} {
  func.func @row_of_a_block(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 4, 1>}, %y: !A) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c6 = arith.constant 6 : i32
    %id = tile.block_id 0
    %row = arith.divui %id, %c2 : i32
    %half = arith.remui %id, %c2 : i32
    %first = arith.muli %half, %c6 : i32
    %zero = arith.constant dense<0.0> : tensor<1x4096xf32, #walk>
    %m = scf.for %j = %c0 to %c6 step %c1 iter_args(%sum = %zero) -> (tensor<1x4096xf32, #walk>) : i32 {
      %k = arith.addi %first, %j : i32
      %t = tile.load %x[%row, %k] : !A, i32, i32 -> tensor<1x4096xf32, #walk>
      %next = arith.addf %sum, %t : tensor<1x4096xf32, #walk>
      scf.yield %next : tensor<1x4096xf32, #walk>
    }
    scf.for %j = %c0 to %c6 step %c1 : i32 {
      %k = arith.addi %first, %j : i32
      %t = tile.load %x[%row, %k] : !A, i32, i32 -> tensor<1x4096xf32, #walk>
      %z = arith.addf %t, %m : tensor<1x4096xf32, #walk>
      tile.store %z, %y[%row, %k] : tensor<1x4096xf32, #walk>, !A, i32, i32
    }
    return
  }
}

// -----

// Where a mask holds in all of a kept tile, a walk over it runs without.
#walk = #tile.linear<register = [[1], [2], [512], [1024]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]]>
!A = memref<?xf32, strided<[1]>>

// CHECK-LABEL: @masked
// CHECK: %[[K:.*]] = arith.minsi %arg2, %c{{.*}} : i32
// CHECK: %[[FULL:.*]] = arith.floordivsi
// CHECK: %[[M:.*]] = scf.for %{{.*}} = %c0_i32 to %[[WHOLE:.*]] step
// CHECK-NEXT: tile.async_commit
// CHECK-NEXT: tile.async_wait
// CHECK-NEXT: %[[T:.*]] = tile.local_load
// CHECK-NEXT: arith.addf %{{.*}}, %[[T]]
// CHECK-NEXT: scf.yield
// CHECK: scf.for %{{.*}} = %[[WHOLE]] to %[[K]] step {{.*}} iter_args(%{{.*}} = %[[M]])
// CHECK: arith.cmpi
// CHECK: scf.for %{{.*}} = %[[K]] to %arg2
module attributes {tile.target = "sm_90a"} {
  func.func @masked(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16>}, %y: !A, %n: i32, %columns: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2048 = arith.constant 2048 : i32
    %zero = arith.constant dense<0.0> : tensor<2048xf32, #walk>
    %last = tensor.splat %columns : tensor<2048xi32, #walk>
    %at = tile.iota : tensor<2048xi32, #walk>
    %m = scf.for %j = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<2048xf32, #walk>) : i32 {
      %first = arith.muli %j, %c2048 : i32
      %firsts = tensor.splat %first : tensor<2048xi32, #walk>
      %column = arith.addi %firsts, %at : tensor<2048xi32, #walk>
      %mask = arith.cmpi slt, %column, %last : tensor<2048xi32, #walk>
      %t = tile.load %x[%j] padding zero : !A, i32 -> tensor<2048xf32, #walk>
      %some = arith.select %mask, %t, %zero : tensor<2048xi1, #walk>, tensor<2048xf32, #walk>
      %next = arith.addf %sum, %some : tensor<2048xf32, #walk>
      scf.yield %next : tensor<2048xf32, #walk>
    }
    scf.for %j = %c0 to %n step %c1 : i32 {
      %t = tile.load %x[%j] padding zero : !A, i32 -> tensor<2048xf32, #walk>
      %z = arith.subf %t, %m : tensor<2048xf32, #walk>
      tile.store %z, %y[%j] : tensor<2048xf32, #walk>, !A, i32
    }
    return
  }
}
