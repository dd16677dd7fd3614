// Who owns which element, and where conversions stand.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-assign-layouts))' | FileCheck %s

// 16-byte accesses, neighbouring lanes side by side; as many warps as give a thread 64 bytes.
// CHECK: #[[L:.*]] = #tile.linear<register = {{\[}}[1], [2], [256], [512]], lane = {{\[}}[4], [8], [16], [32], [64]], warp = {{\[}}[128]]>
// CHECK-LABEL: @copy
// CHECK-SAME: num_warps = 2 : i32
module attributes {tile.target = "sm_80"} {
  func.func @copy(%a: memref<?xf32, strided<[1]>> {tile.align = 16 : i32, tile.shape_div = array<i64: 16>, tile.stride_div = array<i64: 1>}) attributes {tile.kernel, tile.hints = {num_warps = 2 : i32}} {
    %i = tile.block_id 0
    // CHECK: tile.load {{.*}} -> tensor<1024xf32, #[[L]]>
    %x = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<1024xf32>
    tile.store %x, %a[%i] : tensor<1024xf32>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

// Rows that start at multiples of two elements allow no access of four.
// CHECK: #[[L:.*]] = #tile.linear<register = {{\[}}[0, 1], [0, 64]], lane = {{\[}}[0, 2], [0, 4], [0, 8], [0, 16], [0, 32]]>
// CHECK-LABEL: @even
module attributes {tile.target = "sm_80"} {
  func.func @even(%a: memref<?x?xf32, strided<[?, 1]>> {tile.align = 16 : i32, tile.stride_div = array<i64: 2, 1>}) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    // CHECK: tile.load {{.*}} -> tensor<1x128xf32, #[[L]]>
    %x = tile.load %a[%i, %i] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<1x128xf32>
    tile.store %x, %a[%i, %i] : tensor<1x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

// Rows are reduced within a warp when there are rows enough for all warps, each by few lanes; the result has the layout
// of a slice.
// CHECK-DAG: #[[L:.*]] = #tile.linear<register = {{.*}}, lane = {{\[}}[0, 4], [0, 8], [0, 16], [0, 32], [1, 0]], warp = {{\[}}[2, 0], [4, 0]]>
// CHECK-DAG: #[[S:.*]] = #tile.linear<lane = {{\[}}[0], [0], [0], [0], [1]], warp = {{\[}}[2], [4]]>
// CHECK-LABEL: @rows
module attributes {tile.target = "sm_80"} {
  func.func @rows(%a: memref<?x?xf32, strided<[?, 1]>> {tile.align = 16 : i32, tile.shape_div = array<i64: 1, 16>, tile.stride_div = array<i64: 16, 1>}, %b: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %i = tile.block_id 0
    // CHECK: tensor<8x256xf32, #[[L]]>
    %x = tile.load %a[%i, %i] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<8x256xf32>
    %s = tile.reduce add, %x axis 1 : tensor<8x256xf32>
    // CHECK: tile.store {{.*}} : tensor<8xf32, #[[S]]>
    tile.store %s, %b[%i] : tensor<8xf32>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

// A transpose loads along rows and stores along rows: the conversion stands in between.
// CHECK-LABEL: @transpose
module attributes {tile.target = "sm_80"} {
  func.func @transpose(%a: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %i = tile.block_id 0
    // CHECK: %[[X:.*]] = tile.load
    // CHECK: %[[C:.*]] = tile.convert_layout %[[X]]
    %x = tile.load %a[%i, %i] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<64x64xf32>
    // CHECK: %[[P:.*]] = tile.permute %[[C]]
    %p = tile.permute %x [1, 0] : tensor<64x64xf32>
    // CHECK: tile.store %[[P]]
    tile.store %p, %a[%i, %i] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

// A vector that is spread over the rows of a tile is loaded the way it is spread; constants follow each use.
// CHECK-LABEL: @bias
module attributes {tile.target = "sm_80"} {
  func.func @bias(%a: memref<?x?xf32, strided<[?, 1]>>, %b: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %i = tile.block_id 0
    %one = arith.constant dense<1.0> : tensor<64x64xf32>
    %x = tile.load %a[%i, %i] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<64x64xf32>
    %v = tile.load %b[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<64xf32>
    %v2 = tile.reshape %v : tensor<64xf32> -> tensor<1x64xf32>
    %v3 = tile.broadcast %v2 : tensor<1x64xf32> -> tensor<64x64xf32>
    %y = arith.addf %x, %v3 : tensor<64x64xf32>
    %z = arith.mulf %y, %one : tensor<64x64xf32>
    // CHECK-NOT: tile.convert_layout
    // CHECK: tile.store
    tile.store %z, %a[%i, %i] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

// What a loop carries has one layout before, in and after it; an operand of a product is converted to the
// instruction's layout.
// CHECK: #[[ACC:linear.*]] = #tile.linear<register = {{.*}}, lane = {{\[}}[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]
// CHECK-LABEL: @product
module attributes {tile.target = "sm_80"} {
  func.func @product(%a: memref<?x?xf16, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // CHECK: arith.constant dense<0.000000e+00> : tensor<64x64xf32, #[[ACC]]>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    // CHECK: scf.for {{.*}} -> (tensor<64x64xf32, #[[ACC]]>)
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %x = tile.load %a[%c0, %k] : memref<?x?xf16, strided<[?, 1]>>, i32, i32 -> tensor<64x64xf16>
      // CHECK: tile.convert_layout
      // CHECK: tile.convert_layout
      // CHECK: tile.mma
      %d = tile.mma %x, %x, %acc : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %h = arith.truncf %r : tensor<64x64xf32> to tensor<64x64xf16>
    tile.store %h, %a[%c0, %c0] : tensor<64x64xf16>, memref<?x?xf16, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

// A thread of a transpose holds a patch of both dimensions, so that shared memory is written and read by vectors, too.
// CHECK-DAG: #[[ROWS:.*]] = #tile.linear<register = {{\[}}[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], lane = {{\[}}[0, 8], [0, 16], [0, 32], [0, 64], [8, 0]]
// CHECK-DAG: #[[COLUMNS:.*]] = #tile.linear<register = {{\[}}[1, 0], [2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], lane = {{\[}}[8, 0], [16, 0], [32, 0], [64, 0], [0, 8]]
// CHECK-LABEL: @patches
module attributes {tile.target = "sm_90a"} {
  func.func @patches(%a: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %i = tile.block_id 0
    // CHECK: tile.load {{.*}} -> tensor<128x128xbf16, #[[ROWS]]>
    %x = tile.load %a[%i, %i] : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 -> tensor<128x128xbf16>
    %p = tile.permute %x [1, 0] : tensor<128x128xbf16>
    // CHECK: tile.convert_layout {{.*}} : tensor<128x128xbf16, #[[ROWS]]> -> tensor<128x128xbf16, #[[COLUMNS]]>
    // CHECK: tile.store {{.*}} : tensor<128x128xbf16, #[[ROWS]]>
    tile.store %p, %a[%i, %i] : tensor<128x128xbf16>, memref<?x?xbf16, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

// What is loaded together counts together: two tiles of 4 KiB have the warps of one of 8; the third is the same for all.
// CHECK-LABEL: @together
// CHECK-SAME: num_warps = 4 : i32
module attributes {tile.target = "sm_90a"} {
  func.func @together(%a: memref<?xf32, strided<[1]>> {tile.align = 16 : i32}, %b: memref<?xf32, strided<[1]>> {tile.align = 16 : i32}) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %i = tile.block_id 0
    %x = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<1024xf32>
    %y = tile.load %b[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<1024xf32>
    %z = tile.load %b[%c0] : memref<?xf32, strided<[1]>>, i32 -> tensor<1024xf32>
    %s = arith.addf %x, %y : tensor<1024xf32>
    %t = arith.addf %s, %z : tensor<1024xf32>
    tile.store %t, %a[%i] : tensor<1024xf32>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

// What moves single tiles, of 8 KiB or more, has twice as many warps; not what has several to wait for.
// CHECK-LABEL: @moves
// CHECK-SAME: num_warps = 8 : i32
module attributes {tile.target = "sm_90a"} {
  func.func @moves(%a: memref<?xf32, strided<[1]>> {tile.align = 16 : i32}, %b: memref<?xi32, strided<[1]>>) attributes {tile.kernel} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<2048xf32>
    %y = tile.load %b[%i] : memref<?xi32, strided<[1]>>, i32 -> tensor<1xi32>
    tile.store %y, %b[%i] : tensor<1xi32>, memref<?xi32, strided<[1]>>, i32
    tile.store %x, %a[%i] : tensor<2048xf32>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

// A number that is spread over a tile says nothing of its layout: the accesses to the tile decide.
// CHECK: #[[L:.*]] = #tile.linear<register = {{\[}}[0, 1], [0, 2], [0, 256], [0, 512]], lane = {{\[}}[0, 4], [0, 8], [0, 16], [0, 32], [0, 64]], warp = {{\[}}[0, 128]]>
// CHECK-LABEL: @spread
module attributes {tile.target = "sm_90a"} {
  func.func @spread(%a: memref<?x?xf32, strided<[?, 1]>> {tile.align = 16 : i32, tile.stride_div = array<i64: 16, 1>}) attributes {tile.kernel, tile.hints = {num_warps = 2 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %i = tile.block_id 0
    // CHECK: tile.load {{.*}} -> tensor<1x2048xf32, #
    %x = tile.load %a[%i, %c0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<1x2048xf32>
    %m = "tile.reduce"(%x) {kind = 3 : i32, axis = 1 : i32} : (tensor<1x2048xf32>) -> tensor<1xf32>
    %r = tile.reshape %m : tensor<1xf32> -> tensor<1x1xf32>
    %n = tile.broadcast %r : tensor<1x1xf32> -> tensor<1x1024xf32>
    // CHECK: tile.load {{.*}} -> tensor<1x1024xf32, #[[L]]>
    %y = tile.load %a[%i, %c1] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<1x1024xf32>
    %s = arith.addf %y, %n : tensor<1x1024xf32>
    tile.store %s, %a[%i, %c1] : tensor<1x1024xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
