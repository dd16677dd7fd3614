// What neighbours in the grid have in common is done once for several of them.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-plan-grid,tile-persistent-loop),canonicalize,cse)' 2>/dev/null | FileCheck %s
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-plan-grid,tile-persistent-loop))' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: 'func.func' op hoists work that up to 8 neighbouring blocks share (grid axis 1)
// REMARK: 'func.func' op is persistent

!A = memref<?x?xbf16, strided<[?, 1]>>
!C = memref<?x?xf32, strided<[?, 1]>>

// The sum over rows does not depend on the column of the block: it stands in front of a loop over a strip of these, whose
// length is the longest with which the busiest block has no more to do. All that depends on the column, or may write,
// stays in the loop.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: %[[X:[^:]*]]: i32, %[[Y:[^:]*]]: i32, %[[Z:[^:]*]]: i32)
// CHECK: %[[N:.*]] = tile.num_blocks 0
// CHECK: arith.divui %c-1_i32, %[[N]]
// CHECK: %[[LENGTH2:.*]] = arith.select %{{.*}}, %c2_i32, %c1_i32
// CHECK: %[[LENGTH4:.*]] = arith.select %{{.*}}, %c4_i32, %[[LENGTH2]]
// CHECK: %[[LENGTH:.*]] = arith.select %{{.*}}, %c8_i32, %[[LENGTH4]]
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: %[[END:.*]] = arith.addi %[[START:.*]], %[[LENGTH]]
// CHECK: %[[LAST:.*]] = arith.minsi %[[END]], %[[Y]]
// CHECK: %[[SUM:.*]] = scf.for
// CHECK: tile.load %arg0[%[[I:[^,]*]],
// CHECK: scf.for %[[J:.*]] = %[[START]] to %[[LAST]] step %c1_i32
// CHECK: scf.for
// CHECK: tile.load %arg1[%[[J]],
// CHECK: tile.mma
// CHECK: tile.store %{{.*}}, %arg2[%[[I]], %[[J]]]
// CHECK: } {tile.persistent}
// CHECK: } {tile.persistent}
module attributes {tile.target = "sm_90a"} {
  func.func @rows(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: !C, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32, num_ctas = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %none = arith.constant dense<0.0> : tensor<128xf32>
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %none) -> (tensor<128xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %f = arith.extf %a : tensor<128x64xbf16> to tensor<128x64xf32>
      %r = tile.reduce add, %f axis 1 : tensor<128x64xf32>
      %t = arith.addf %s, %r : tensor<128xf32>
      scf.yield %t : tensor<128xf32>
    }
    %column = tile.reshape %sum : tensor<128xf32> -> tensor<128x1xf32>
    %rows = tile.broadcast %column : tensor<128x1xf32> -> tensor<128x128xf32>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %y[%j, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %t = tile.permute %b [1, 0] : tensor<128x64xbf16>
      %m = tile.mma %a, %t, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %m : tensor<128x128xf32>
    }
    %e = arith.mulf %d, %rows : tensor<128x128xf32>
    tile.store %e, %z[%i, %j] : tensor<128x128xf32>, !C, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>
!C = memref<?x?xf32, strided<[?, 1]>>

// A block that has written something before may read it again.
// REMARK-NOT: neighbouring blocks share
// REMARK: 'func.func' op is persistent
// CHECK-LABEL: func.func @written
// CHECK: scf.for
// CHECK: tile.store
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: } {tile.persistent}
// CHECK-NEXT: return
module attributes {tile.target = "sm_90a"} {
  func.func @written(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: !C, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32, num_ctas = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %none = arith.constant dense<0.0> : tensor<128xf32>
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    tile.store %zero, %z[%i, %j] : tensor<128x128xf32>, !C, i32, i32
    %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %none) -> (tensor<128xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %f = arith.extf %a : tensor<128x64xbf16> to tensor<128x64xf32>
      %r = tile.reduce add, %f axis 1 : tensor<128x64xf32>
      %t = arith.addf %s, %r : tensor<128xf32>
      scf.yield %t : tensor<128xf32>
    }
    %column = tile.reshape %sum : tensor<128xf32> -> tensor<128x1xf32>
    %rows = tile.broadcast %column : tensor<128x1xf32> -> tensor<128x128xf32>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %y[%j, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %t = tile.permute %b [1, 0] : tensor<128x64xbf16>
      %m = tile.mma %a, %t, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %m : tensor<128x128xf32>
    }
    %e = arith.mulf %d, %rows : tensor<128x128xf32>
    tile.store %e, %z[%i, %j] : tensor<128x128xf32>, !C, i32, i32
    return
  }
}
