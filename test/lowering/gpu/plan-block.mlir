// How many warps a block has is written down once: by the hint, the products, a long row, or the tiles that are moved.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-plan-block))' | FileCheck %s

!S = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: func.func @hinted
// CHECK-SAME: tile.launch = {num_warps = 2 : i32}
// CHECK-LABEL: func.func @product
// CHECK-SAME: tile.launch = {num_warps = 8 : i32}
// CHECK-LABEL: func.func @moves
// CHECK-SAME: tile.launch = {num_warps = 8 : i32}
// CHECK-LABEL: func.func @row
// CHECK-SAME: tile.launch = {num_warps = 8 : i32}
// CHECK-LABEL: func.func @threads
// CHECK-NOT: tile.launch
module attributes {tile.target = "sm_80"} {
  func.func @hinted(%x: !S, %y: !S) attributes {tile.kernel, tile.hints = {num_warps = 2 : i32}} {
    %i = tile.block_id 0
    %a = tile.load %x[%i, %i] padding zero : !S, i32, i32 -> tensor<64x64xf32>
    tile.store %a, %y[%i, %i] : tensor<64x64xf32>, !S, i32, i32
    return
  }
  func.func @product(%x: memref<?x?xf16, strided<[?, 1]>>, %y: !S) attributes {tile.kernel} {
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %i = tile.block_id 0
    %a = tile.load %x[%i, %i] padding zero : memref<?x?xf16, strided<[?, 1]>>, i32, i32 -> tensor<128x32xf16>
    %b = tile.load %x[%i, %i] padding zero : memref<?x?xf16, strided<[?, 1]>>, i32, i32 -> tensor<32x256xf16>
    %d = tile.mma %a, %b, %zero : tensor<128x32xf16>, tensor<32x256xf16>, tensor<128x256xf32>
    tile.store %d, %y[%i, %i] : tensor<128x256xf32>, !S, i32, i32
    return
  }
  func.func @moves(%x: !S, %y: !S) attributes {tile.kernel} {
    %i = tile.block_id 0
    %a = tile.load %x[%i, %i] padding zero : !S, i32, i32 -> tensor<32x64xf32>
    tile.store %a, %y[%i, %i] : tensor<32x64xf32>, !S, i32, i32
    return
  }
  func.func @row(%x: !S, %y: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %i = tile.block_id 0
    %a = tile.load %x[%i, %c0] padding zero : !S, i32, i32 -> tensor<1x65536xf32>
    %s = tile.reduce add, %a axis 1 : tensor<1x65536xf32>
    tile.store %s, %y[%i] : tensor<1xf32>, memref<?xf32, strided<[1]>>, i32
    return
  }
  func.func @threads() attributes {tile.kernel, tile.simt} { return }
}

// -----

// Operands that are widened later have an instruction then: four warps, not eight.
// CHECK-LABEL: func.func @widened
// CHECK-SAME: tile.launch = {num_warps = 4 : i32}
module attributes {tile.target = "sm_80"} {
  func.func @widened(%a: tensor<128x32xf8E4M3FN>, %b: tensor<32x128xf8E4M3FN>) attributes {tile.kernel} {
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %d = tile.mma %a, %b, %zero : tensor<128x32xf8E4M3FN>, tensor<32x128xf8E4M3FN>, tensor<128x128xf32>
    return
  }
}

// -----

// Threads that carry operands in small pieces need hands: rows that begin anywhere make eight warps of four.
!A = memref<?x?xf16, strided<[?, 1]>>

// CHECK-LABEL: func.func @rows_on_16_bytes
// CHECK-SAME: tile.launch = {num_warps = 4 : i32}
// CHECK-LABEL: func.func @rows_anywhere
// CHECK-SAME: tile.launch = {num_warps = 8 : i32}
module attributes {tile.target = "sm_90a"} {
  func.func @rows_on_16_bytes(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 1, 1>, tile.stride_div = array<i64: 8, 1>}, %y: memref<?x?xf32>) attributes {tile.kernel} {
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %i = tile.block_id 0
    %a = tile.load %x[%i, %i] padding zero : !A, i32, i32 -> tensor<128x64xf16>
    %b = tile.load %x[%i, %i] padding zero : !A, i32, i32 -> tensor<64x128xf16>
    %d = tile.mma %a, %b, %zero : tensor<128x64xf16>, tensor<64x128xf16>, tensor<128x128xf32>
    tile.store %d, %y[%i, %i] : tensor<128x128xf32>, memref<?x?xf32>, i32, i32
    return
  }
  func.func @rows_anywhere(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 1, 1>, tile.stride_div = array<i64: 1, 1>}, %y: memref<?x?xf32>) attributes {tile.kernel} {
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %i = tile.block_id 0
    %a = tile.load %x[%i, %i] padding zero : !A, i32, i32 -> tensor<128x64xf16>
    %b = tile.load %x[%i, %i] padding zero : !A, i32, i32 -> tensor<64x128xf16>
    %d = tile.mma %a, %b, %zero : tensor<128x64xf16>, tensor<64x128xf16>, tensor<128x128xf32>
    tile.store %d, %y[%i, %i] : tensor<128x128xf32>, memref<?x?xf32>, i32, i32
    return
  }
}

// -----

// Rows that begin anywhere: k is taken in steps of which registers hold all elements, beside the sums, unless the loop
// does more than the product.
!A = memref<?x?xbf16, strided<[?, 1]>>

// CHECK-LABEL: func.func @elements
// CHECK-SAME: tile.product_step = 128 : i32
// CHECK-LABEL: func.func @two
// CHECK-NOT: tile.product_step
module attributes {tile.target = "sm_90a"} {
  func.func @elements(%x: !A, %n: i32, %zero: tensor<128x256xf32>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c128 = arith.constant 128 : i32
    %m = arith.ceildivsi %n, %c128 : i32
    %d = scf.for %k = %c0 to %m step %c1 iter_args(%acc = %zero) -> tensor<128x256xf32> : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
      %b = tile.load %x[%k, %c0] padding zero : !A, i32, i32 -> tensor<128x256xbf16>
      %e = tile.mma %a, %b, %acc : tensor<128x128xbf16>, tensor<128x256xbf16>, tensor<128x256xf32>
      scf.yield %e : tensor<128x256xf32>
    }
    return
  }
  func.func @two(%x: !A, %n: i32, %zero: tensor<128x128xf32>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %d:2 = scf.for %k = %c0 to %n step %c1 iter_args(%p = %zero, %q = %zero) -> (tensor<128x128xf32>, tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
      %b = tile.load %x[%k, %c0] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
      %c = tile.load %x[%k, %c1] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
      %e = tile.mma %a, %b, %p : tensor<128x128xbf16>, tensor<128x128xbf16>, tensor<128x128xf32>
      %f = tile.mma %a, %c, %q : tensor<128x128xbf16>, tensor<128x128xbf16>, tensor<128x128xf32>
      scf.yield %e, %f : tensor<128x128xf32>, tensor<128x128xf32>
    }
    return
  }
}

// -----

// Operands that do not fit into shared memory twice: k is taken in steps, unless one is not loaded beside its product.
// CHECK-LABEL: func.func @large
// CHECK-SAME: tile.product_step = 128
// CHECK-LABEL: func.func @apart
// CHECK-NOT: tile.product_step
!A = memref<?x?xf16, strided<[?, 1]>>
module attributes {tile.target = "sm_90a"} {
  func.func @large(%x: !A, %zero: tensor<128x256xf32>) attributes {tile.kernel} {
    %i = tile.block_id 0
    %a = tile.load %x[%i, %i] padding zero : !A, i32, i32 -> tensor<128x512xf16>
    %b = tile.load %x[%i, %i] padding zero : !A, i32, i32 -> tensor<512x256xf16>
    %d = tile.mma %a, %b, %zero : tensor<128x512xf16>, tensor<512x256xf16>, tensor<128x256xf32>
    return
  }
  func.func @apart(%x: !A, %n: i32, %zero: tensor<128x256xf32>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %a = tile.load %x[%c0, %c0] padding zero : !A, i32, i32 -> tensor<128x256xf16>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> tensor<128x256xf32> : i32 {
      %b = tile.load %x[%k, %c0] padding zero : !A, i32, i32 -> tensor<256x256xf16>
      %e = tile.mma %a, %b, %acc : tensor<128x256xf16>, tensor<256x256xf16>, tensor<128x256xf32>
      scf.yield %e : tensor<128x256xf32>
    }
    return
  }
}

// -----

// A loop has one access of each tile under way: a thread takes 16 bytes of it, not 64.
// CHECK-LABEL: func.func @chunks
// CHECK-SAME: tile.launch = {num_warps = 8 : i32}
module attributes {tile.target = "sm_90a"} {
  func.func @chunks(%x: memref<?x?xbf16, strided<[?, 1]>>, %y: memref<?xf32, strided<[1]>>, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<1x2048xf32>
    %i = tile.block_id 0
    %s = scf.for %j = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<1x2048xf32>) : i32 {
      %a = tile.load %x[%i, %j] padding zero : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 -> tensor<1x2048xbf16>
      %f = arith.extf %a : tensor<1x2048xbf16> to tensor<1x2048xf32>
      %t = arith.addf %sum, %f : tensor<1x2048xf32>
      scf.yield %t : tensor<1x2048xf32>
    }
    %all = tile.reduce add, %s axis 1 : tensor<1x2048xf32>
    tile.store %all, %y[%i] : tensor<1xf32>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

// Tiles that a later walk finds in shared memory are all under way at once: a thread takes 32 bytes of each.
// CHECK-LABEL: func.func @walks
// CHECK-SAME: tile.launch = {num_warps = 4 : i32}
module attributes {tile.target = "sm_90a"} {
  func.func @walks(%x: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 16, 1>}, %y: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 16, 1>}, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<1x2048xf32>
    %i = tile.block_id 0
    %s = scf.for %j = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<1x2048xf32>) : i32 {
      %a = tile.load %x[%i, %j] padding zero : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 -> tensor<1x2048xbf16>
      %f = arith.extf %a : tensor<1x2048xbf16> to tensor<1x2048xf32>
      %t = arith.addf %sum, %f : tensor<1x2048xf32>
      scf.yield %t : tensor<1x2048xf32>
    }
    scf.for %j = %c0 to %n step %c1 : i32 {
      %a = tile.load %x[%i, %j] padding zero : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 -> tensor<1x2048xbf16>
      %f = arith.extf %a : tensor<1x2048xbf16> to tensor<1x2048xf32>
      %t = arith.subf %f, %s : tensor<1x2048xf32>
      %b = arith.truncf %t : tensor<1x2048xf32> to tensor<1x2048xbf16>
      tile.store %b, %y[%i, %j] : tensor<1x2048xbf16>, memref<?x?xbf16, strided<[?, 1]>>, i32, i32
    }
    return
  }
}

// -----

// A tile of 4 KB that is moved or made element by element has four warps; two where threads exchange what they moved, or
// add it up.
// CHECK-LABEL: func.func @small_moves
// CHECK-SAME: tile.launch = {num_warps = 4 : i32}
// CHECK-LABEL: func.func @small_made
// CHECK-SAME: tile.launch = {num_warps = 4 : i32}
// CHECK-LABEL: func.func @small_scan
// CHECK-SAME: tile.launch = {num_warps = 2 : i32}
// CHECK-LABEL: func.func @small_sum
// CHECK-SAME: tile.launch = {num_warps = 2 : i32}
!V = memref<?xf32, strided<[1]>>
module attributes {tile.target = "sm_90a"} {
  func.func @small_moves(%x: !V, %y: !V) attributes {tile.kernel} {
    %i = tile.block_id 0
    %t = tile.load %x[%i] : !V, i32 -> tensor<1024xf32>
    %e = math.exp %t : tensor<1024xf32>
    tile.store %e, %y[%i] : tensor<1024xf32>, !V, i32
    return
  }
  func.func @small_made(%y: !V) attributes {tile.kernel} {
    %i = tile.block_id 0
    %n = tile.iota : tensor<1024xi32>
    %t = arith.sitofp %n : tensor<1024xi32> to tensor<1024xf32>
    tile.store %t, %y[%i] : tensor<1024xf32>, !V, i32
    return
  }
  func.func @small_scan(%x: !V, %y: !V) attributes {tile.kernel} {
    %i = tile.block_id 0
    %t = tile.load %x[%i] : !V, i32 -> tensor<1024xf32>
    %s = tile.scan add, %t axis 0 : tensor<1024xf32>
    tile.store %s, %y[%i] : tensor<1024xf32>, !V, i32
    return
  }
  func.func @small_sum(%x: !V, %y: !V) attributes {tile.kernel} {
    %i = tile.block_id 0
    %t = tile.load %x[%i] : !V, i32 -> tensor<1024xf32>
    %s = tile.reduce add, %t axis 0 : tensor<1024xf32>
    %b = tensor.splat %s : tensor<1xf32>
    tile.store %b, %y[%i] : tensor<1xf32>, !V, i32
    return
  }
}

// -----

!V = memref<?x?xf32, strided<[?, 1]>>

// Rows with weights that a loop keeps: 64 elements of each thread of eight warps, and 128 beside them. Without the
// weights eight warps do.
// CHECK-LABEL: func.func @kept
// CHECK-SAME: num_warps = 16 : i32
// CHECK-LABEL: func.func @rows_alone
// CHECK-SAME: num_warps = 8 : i32
module attributes {tile.target = "sm_90a"} {
  func.func @kept(%x: !V, %w: !V, %y: !V, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %a = tile.load %w[%c0, %c0] padding zero : !V, i32, i32 -> tensor<1x16384xf32>
    %b = tile.load %w[%c1, %c0] padding zero : !V, i32, i32 -> tensor<1x16384xf32>
    %s = math.exp %a : tensor<1x16384xf32>
    %t = math.exp %b : tensor<1x16384xf32>
    scf.for %i = %c0 to %n step %c1 : i32 {
      %v = tile.load %x[%i, %c0] padding zero : !V, i32, i32 -> tensor<1x16384xf32>
      %p = arith.mulf %v, %s : tensor<1x16384xf32>
      %q = arith.addf %p, %t : tensor<1x16384xf32>
      tile.store %q, %y[%i, %c0] : tensor<1x16384xf32>, !V, i32, i32
    }
    return
  }
  func.func @rows_alone(%x: !V, %y: !V, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      %v = tile.load %x[%i, %c0] padding zero : !V, i32, i32 -> tensor<1x16384xf32>
      %p = arith.mulf %v, %v : tensor<1x16384xf32>
      %q = arith.addf %p, %v : tensor<1x16384xf32>
      tile.store %q, %y[%i, %c0] : tensor<1x16384xf32>, !V, i32, i32
    }
    return
  }
}
