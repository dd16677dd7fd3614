// A tile that registers cannot hold is walked along.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-strip-mine),canonicalize,cse)' | FileCheck %s
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-strip-mine))' 2>&1 >/dev/null | FileCheck --check-prefix=REMARK %s

!A = memref<?x?xbf16, strided<[?, 1]>>
!W = memref<?xbf16, strided<[1]>>

// One walk for the maximum, one for the stores. An iota counts on from part to part, an index in tiles becomes one in
// parts, and what has one column stays whole.
// CHECK-LABEL: @row
// CHECK-SAME: num_warps = 16
// CHECK: %[[P:.*]] = scf.for %[[J:.*]] = %c0_i32 to %c4_i32 step %c1_i32 iter_args(%[[M:.*]] = %{{.*}}) -> (tensor<1x16384xf32>)
// CHECK: %[[X:.*]] = tile.load %arg0[%arg3, %[[J]]] padding neg_inf : {{.*}} -> tensor<1x16384xbf16>
// CHECK: %[[F:.*]] = arith.extf %[[X]]
// CHECK: %[[N:.*]] = arith.maximumf %[[M]], %[[F]]
// CHECK: scf.yield %[[N]]
// CHECK: %[[R:.*]] = tile.reduce max, %[[P]] axis 1 : tensor<1x16384xf32>
// CHECK: %[[S:.*]] = tile.reshape %[[R]]
// CHECK: scf.for %[[J:.*]] = %c0_i32 to %c4_i32 step %c1_i32
// CHECK: tile.load %arg0[%arg3, %[[J]]]
// CHECK: tile.load %arg1[%[[J]]]
// CHECK: tile.broadcast %[[S]] : tensor<1x1xf32> -> tensor<1x16384xf32>
// CHECK: %[[FIRST:.*]] = arith.muli %[[J]], %c16384_i32
// CHECK: %[[ALL:.*]] = tensor.splat %[[FIRST]] : tensor<16384xi32>
// CHECK: arith.addi %{{.*}}, %[[ALL]] : tensor<16384xi32>
// CHECK: %[[I:.*]] = arith.muli %arg3, %c4_i32
// CHECK: %[[K:.*]] = arith.addi %[[I]], %[[J]]
// CHECK: tile.store %{{.*}}, %arg2[%arg3, %[[K]]] : tensor<1x16384xbf16>
// REMARK: remark: 'tile.reduce' op is strip-mined: registers cannot hold its tile of 1x65536xf32, so a loop takes tiles of 1x16384xf32
module attributes {tile.target = "sm_90a"} {
  func.func @row(%x: !A, %w: !W, %y: !A, %row: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %few = arith.constant dense<40000> : tensor<65536xi32>
    %zero = arith.constant dense<0.0> : tensor<1x65536xf32>
    %a = tile.load %x[%row, %c0] padding neg_inf : !A, i32, i32 -> tensor<1x65536xbf16>
    %f = arith.extf %a : tensor<1x65536xbf16> to tensor<1x65536xf32>
    %b = tile.load %w[%c0] : !W, i32 -> tensor<65536xbf16>
    %m = tile.reduce max, %f axis 1 : tensor<1x65536xf32>
    %s = tile.reshape %m : tensor<1xf32> -> tensor<1x1xf32>
    %all = tile.broadcast %s : tensor<1x1xf32> -> tensor<1x65536xf32>
    %d = arith.subf %f, %all : tensor<1x65536xf32>
    %g = arith.extf %b : tensor<65536xbf16> to tensor<65536xf32>
    %h = tile.reshape %g : tensor<65536xf32> -> tensor<1x65536xf32>
    %p = arith.mulf %d, %h : tensor<1x65536xf32>
    %i = tile.iota : tensor<65536xi32>
    %in = arith.cmpi slt, %i, %few : tensor<65536xi32>
    %inside = tile.reshape %in : tensor<65536xi1> -> tensor<1x65536xi1>
    %q = arith.select %inside, %p, %zero : tensor<1x65536xi1>, tensor<1x65536xf32>
    %t = arith.truncf %q : tensor<1x65536xf32> to tensor<1x65536xbf16>
    tile.store %t, %y[%row, %row] : tensor<1x65536xbf16>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf32, strided<[?, 1]>>

// Along rows that are reduced each for itself one walk does all.
// CHECK-LABEL: @rows
// CHECK-SAME: num_warps = 8
// CHECK: scf.for %[[J:.*]] = %c0_i32 to %c8_i32 step %c1_i32 {{.*}} {
// CHECK: %[[X:.*]] = tile.load %arg0[%[[J]], %c0_i32] : {{.*}} -> tensor<8x1024xf32>
// CHECK: tile.reduce add, %[[X]] axis 1 : tensor<8x1024xf32>
// CHECK: tile.store
// CHECK-NOT: scf.for
module attributes {tile.target = "sm_90a"} {
  func.func @rows(%x: !A, %y: !A) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %a = tile.load %x[%c0, %c0] : !A, i32, i32 -> tensor<64x1024xf32>
    %m = tile.reduce add, %a axis 1 : tensor<64x1024xf32>
    %s = tile.reshape %m : tensor<64xf32> -> tensor<64x1xf32>
    %all = tile.broadcast %s : tensor<64x1xf32> -> tensor<64x1024xf32>
    %d = arith.subf %a, %all : tensor<64x1024xf32>
    tile.store %d, %y[%c0, %c0] : tensor<64x1024xf32>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf32, strided<[?, 1]>>

// A scan needs the tile whole; a store to the array that is read stays where it is.
// CHECK-LABEL: @scan
// CHECK-NOT: scf.for
// REMARK: remark: 'tile.scan' op keeps a tile of 1x32768xf32 whole, which is more than registers hold: use smaller tiles
module attributes {tile.target = "sm_90a"} {
  func.func @scan(%x: !A, %y: !A) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %a = tile.load %x[%c0, %c0] : !A, i32, i32 -> tensor<1x32768xf32>
    %m = tile.reduce add, %a axis 1 : tensor<1x32768xf32>
    %s = tile.reshape %m : tensor<1xf32> -> tensor<1x1xf32>
    %all = tile.broadcast %s : tensor<1x1xf32> -> tensor<1x32768xf32>
    %d = arith.subf %a, %all : tensor<1x32768xf32>
    %e = tile.scan add, %d axis 1 : tensor<1x32768xf32>
    tile.store %e, %y[%c0, %c0] : tensor<1x32768xf32>, !A, i32, i32
    return
  }

  // CHECK-LABEL: @moved
  // CHECK-NOT: scf.for
  // REMARK: remark: 'tile.store' op keeps a tile of 1x32768xf32 whole
  func.func @moved(%x: !A) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %a = tile.load %x[%c0, %c0] : !A, i32, i32 -> tensor<1x32768xf32>
    %m = tile.reduce add, %a axis 1 : tensor<1x32768xf32>
    %s = tile.reshape %m : tensor<1xf32> -> tensor<1x1xf32>
    %all = tile.broadcast %s : tensor<1x1xf32> -> tensor<1x32768xf32>
    %d = arith.subf %a, %all : tensor<1x32768xf32>
    tile.store %d, %x[%c0, %c1] : tensor<1x32768xf32>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf32, strided<[?, 1]>>

// What is only stored is walked along if no block has registers for it: a constant, too, of which each part has its own.
// CHECK-LABEL: @stored
// CHECK-SAME: num_warps = 8
// CHECK: %[[C:.*]] = arith.constant dense<2.000000e+00> : tensor<8x1024xf32>
// CHECK-NOT: tensor<2048x1024xf32>
// CHECK: scf.for %[[J:.*]] = %c0_i32 to %c256_i32 step %c1_i32
// CHECK: tile.store %[[C]], %arg0[%[[J]], %c0_i32] : tensor<8x1024xf32>
// REMARK: 'tile.store' op is strip-mined: registers cannot hold its tile of 2048x1024xf32, so a loop takes tiles of 8x1024xf32
module attributes {tile.target = "sm_90a"} {
  func.func @stored(%x: !A) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %two = arith.constant dense<2.0> : tensor<2048x1024xf32>
    tile.store %two, %x[%c0, %c0] : tensor<2048x1024xf32>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: @held
// CHECK-NOT: scf.for
module attributes {tile.target = "sm_90a"} {
  func.func @held(%x: !A) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %two = arith.constant dense<2.0> : tensor<64x1024xf32>
    tile.store %two, %x[%c0, %c0] : tensor<64x1024xf32>, !A, i32, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]]>
!V = memref<?xf32, strided<[1]>>

// A tile that has its layout is not taken apart.
// CHECK-LABEL: @laid_out
// CHECK-NOT: scf.for
module attributes {tile.target = "sm_90a"} {
  func.func @laid_out(%x: !V, %t: tensor<1073741824xf32, #l>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    tile.store %t, %x[%c0] : tensor<1073741824xf32, #l>, !V, i32
    return
  }
}
