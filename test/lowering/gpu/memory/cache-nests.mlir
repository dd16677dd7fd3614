// Walks that are loops in loops: 16 channels of %n tiles, which are 32 KB at least, so that four blocks on a multiprocessor
// have enough under way, and each has room for 28 tiles; the others are loaded four at a time.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-cache-tiles),canonicalize,cse)' | FileCheck %s

#l = #tile.linear<register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 64], [0, 128]], warp = [[0, 256], [0, 512]]>
!A = memref<?x?xbf16, strided<[?, 1]>>

// CHECK-LABEL: @group
// CHECK: %[[B:.*]] = tile.alloc_shared : <28x1x1024xbf16
// CHECK: scf.for %[[C:.*]] = %c0_i32 to %c16_i32
// CHECK: %[[FIRST:.*]] = arith.muli
// CHECK: scf.for %[[J:.*]] = %c0_i32 to %[[KEPT:.*]] step
// CHECK: %[[S:.*]] = arith.addi %[[FIRST]], %[[J]]
// CHECK: tile.async_copy %arg0[%[[C]], %[[J]]] into %[[B]][%[[S]]]
// CHECK-NEXT: tile.async_commit
// CHECK: scf.for %{{.*}} = %{{.*}} to %c28_i32
// CHECK-NEXT: tile.async_commit
// CHECK: scf.for
// CHECK: scf.for
// CHECK: tile.async_wait 28
// CHECK: tile.local_load %[[B]]
// CHECK: scf.for %{{.*}} step %c4_i32
// CHECK-COUNT-4: tile.load %arg0
// CHECK-COUNT-4: arith.addf
// CHECK: scf.for %{{.*}} step %c1_i32
// CHECK: tile.load %arg0
// CHECK: scf.for
// CHECK: scf.for
// CHECK: tile.local_load %[[B]]
// CHECK: tile.store
// CHECK: scf.for %{{.*}} step %c4_i32
// CHECK-COUNT-4: tile.load %arg0
// CHECK-COUNT-4: tile.store
// In place nothing is kept.
// CHECK-LABEL: @in_place
// CHECK-NOT: tile.alloc_shared
module attributes {tile.target = "sm_90a"} {
  func.func @group(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>}, %y: !A, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c16 = arith.constant 16 : i32
    %zero = arith.constant dense<0.0> : tensor<1x1024xbf16, #l>
    %sum = scf.for %c = %c0 to %c16 step %c1 iter_args(%a = %zero) -> (tensor<1x1024xbf16, #l>) : i32 {
      %of_one = scf.for %j = %c0 to %n step %c1 iter_args(%b = %a) -> (tensor<1x1024xbf16, #l>) : i32 {
        %t = tile.load %x[%c, %j] : !A, i32, i32 -> tensor<1x1024xbf16, #l>
        %next = arith.addf %b, %t : tensor<1x1024xbf16, #l>
        scf.yield %next : tensor<1x1024xbf16, #l>
      }
      scf.yield %of_one : tensor<1x1024xbf16, #l>
    }
    scf.for %c = %c0 to %c16 step %c1 : i32 {
      scf.for %j = %c0 to %n step %c1 : i32 {
        %t = tile.load %x[%c, %j] : !A, i32, i32 -> tensor<1x1024xbf16, #l>
        %z = arith.subf %t, %sum : tensor<1x1024xbf16, #l>
        tile.store %z, %y[%c, %j] : tensor<1x1024xbf16, #l>, !A, i32, i32
      }
    }
    return
  }

  func.func @in_place(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>}, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c16 = arith.constant 16 : i32
    %zero = arith.constant dense<0.0> : tensor<1x1024xbf16, #l>
    %sum = scf.for %c = %c0 to %c16 step %c1 iter_args(%a = %zero) -> (tensor<1x1024xbf16, #l>) : i32 {
      %of_one = scf.for %j = %c0 to %n step %c1 iter_args(%b = %a) -> (tensor<1x1024xbf16, #l>) : i32 {
        %t = tile.load %x[%c, %j] : !A, i32, i32 -> tensor<1x1024xbf16, #l>
        %next = arith.addf %b, %t : tensor<1x1024xbf16, #l>
        scf.yield %next : tensor<1x1024xbf16, #l>
      }
      scf.yield %of_one : tensor<1x1024xbf16, #l>
    }
    scf.for %c = %c0 to %c16 step %c1 : i32 {
      scf.for %j = %c0 to %n step %c1 : i32 {
        %t = tile.load %x[%c, %j] : !A, i32, i32 -> tensor<1x1024xbf16, #l>
        %z = arith.subf %t, %sum : tensor<1x1024xbf16, #l>
        tile.store %z, %x[%c, %j] : tensor<1x1024xbf16, #l>, !A, i32, i32
      }
    }
    return
  }
}
