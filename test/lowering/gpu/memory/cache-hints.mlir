// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-qualify-accesses))' | FileCheck %s

!X = memref<?x?x?xbf16, strided<[?, ?, 1]>>

// A tile of q is wanted by one block, those of k by all blocks along axis 0.
// CHECK-LABEL: func.func @attention
// CHECK: tile.load %{{.*}}[%{{.*}}] padding zero {tile.cache = 1 : i32}
// CHECK: scf.for
// CHECK: tile.load
// CHECK-NOT: tile.cache
module attributes {tile.target = "sm_90a"} {
  func.func @attention(%q: !X, %k: !X, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %i = tile.block_id 0
    %h = tile.block_id 1
    %last = tile.num_blocks 0
    %back = arith.subi %last, %i : i32
    %a = tile.load %q[%h, %back, %c0] padding zero : !X, i32, i32, i32 -> tensor<1x64x64xbf16>
    scf.for %j = %c0 to %n step %c1 : i32 {
      %b = tile.load %k[%h, %j, %c0] padding zero : !X, i32, i32, i32 -> tensor<1x64x64xbf16>
    }
    return
  }
}

// -----

!X = memref<?x?x?xbf16, strided<[?, ?, 1]>>

// Quotient and rest tell a number, both of one axis; the quotient alone does not, as where heads share keys.
// CHECK-LABEL: func.func @heads
// CHECK: tile.load %arg0{{.*}} {tile.cache = 1 : i32}
// CHECK: tile.load %arg1
// CHECK-NOT: tile.cache
// CHECK: tile.load %arg2
// CHECK-NOT: tile.cache
module attributes {tile.target = "sm_90a"} {
  func.func @heads(%q: !X, %k: !X, %v: !X, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %bh = tile.block_id 0
    %b = arith.floordivsi %bh, %c4 : i32
    %h = arith.remsi %bh, %c4 : i32
    %less = arith.cmpi slt, %h, %c0 : i32
    %more = arith.addi %h, %c4 : i32
    %mod = arith.select %less, %more, %h : i32
    %x = tile.load %q[%b, %mod, %c0] padding zero : !X, i32, i32, i32 -> tensor<1x64x64xbf16>
    scf.for %j = %c0 to %n step %c1 : i32 {
      %y = tile.load %k[%b, %j, %c0] padding zero : !X, i32, i32, i32 -> tensor<1x64x64xbf16>
      %m = arith.maxsi %j, %bh : i32
      %z = tile.load %v[%b, %h, %m] padding zero : !X, i32, i32, i32 -> tensor<1x64x64xbf16>
    }
    return
  }
}

// -----

!X = memref<?x?xbf16, strided<[?, 1]>>

// All is read once: there is nothing to make room for. An array that is read twice is not read once.
// CHECK-LABEL: func.func @stream
// CHECK-NOT: tile.cache
module attributes {tile.target = "sm_90a"} {
  func.func @stream(%x: !X, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %i = tile.block_id 0
    scf.for %j = %c0 to %n step %c1 : i32 {
      %a = tile.load %x[%i, %j] padding zero : !X, i32, i32 -> tensor<64x64xbf16>
    }
    return
  }
  // CHECK-LABEL: func.func @twice
  // CHECK-NOT: tile.cache
  func.func @twice(%x: !X, %y: !X, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %i = tile.block_id 0
    %a = tile.load %x[%i, %c0] padding zero : !X, i32, i32 -> tensor<64x64xbf16>
    %b = tile.load %x[%i, %c1] padding zero : !X, i32, i32 -> tensor<64x64xbf16>
    scf.for %j = %c0 to %n step %c1 : i32 {
      %c = tile.load %y[%j, %c0] padding zero : !X, i32, i32 -> tensor<64x64xbf16>
    }
    return
  }
}

// -----

!X = memref<?x?xbf16, strided<[?, 1]>>

// A loop around the load, whose iterations want the same tile.
// CHECK-LABEL: func.func @again
// CHECK-NOT: tile.cache
module attributes {tile.target = "sm_90a"} {
  func.func @again(%x: !X, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %i = tile.block_id 0
    scf.for %j = %c0 to %n step %c1 : i32 {
      %a = tile.load %x[%i, %c0] padding zero : !X, i32, i32 -> tensor<64x64xbf16>
    }
    return
  }
}

// -----

!X = memref<?x?xbf16, strided<[?, 1]>>

// What has no such copies has no such hints.
// CHECK-LABEL: func.func @older
// CHECK-NOT: tile.cache
module attributes {tile.target = "sm_80"} {
  func.func @older(%x: !X, %y: !X, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %i = tile.block_id 0
    %a = tile.load %x[%i, %c0] padding zero : !X, i32, i32 -> tensor<64x64xbf16>
    scf.for %j = %c0 to %n step %c1 : i32 {
      %c = tile.load %y[%j, %c0] padding zero : !X, i32, i32 -> tensor<64x64xbf16>
    }
    return
  }
}
