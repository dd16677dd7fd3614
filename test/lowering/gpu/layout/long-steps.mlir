// A product has more of k in an iteration than a line of 128 bytes, and shared memory would hold two stages of it: its
// loop takes lines, so that there are more. The hint num_stages says how many are wanted.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-strip-mine))' | FileCheck %s

!A = memref<?x?xbf16, strided<[?, 1]>>

// CHECK-LABEL: @long
// CHECK-SAME: tile.product_step = 128 : i32
// CHECK: scf.for
// CHECK: tile.load {{.*}} -> tensor<128x64xbf16>
// CHECK: tile.load {{.*}} -> tensor<64x256xbf16>
// CHECK: tile.mma
module attributes {tile.target = "sm_90a"} {
  func.func @long(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %k = tile.dim %x, 1 : !A
    %n = arith.ceildivsi %k, %c128 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
      %a = tile.load %x[%c0, %i] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
      %b = tile.load %w[%i, %c0] padding zero : !A, i32, i32 -> tensor<128x256xbf16>
      %d = tile.mma %a, %b, %acc : tensor<128x128xbf16>, tensor<128x256xbf16>, tensor<128x256xf32>
      scf.yield %d : tensor<128x256xf32>
    }
    tile.store %r, %y[%c0, %c0] : tensor<128x256xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// CHECK-LABEL: @told
// CHECK-NOT: tile.product_step
// CHECK: scf.for
// CHECK: tile.load {{.*}} -> tensor<128x128xbf16>
// CHECK: tile.load {{.*}} -> tensor<128x256xbf16>
// CHECK: tile.mma
module attributes {tile.target = "sm_90a"} {
  func.func @told(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.hints = {num_stages = 2 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %k = tile.dim %x, 1 : !A
    %n = arith.ceildivsi %k, %c128 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
      %a = tile.load %x[%c0, %i] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
      %b = tile.load %w[%i, %c0] padding zero : !A, i32, i32 -> tensor<128x256xbf16>
      %d = tile.mma %a, %b, %acc : tensor<128x128xbf16>, tensor<128x256xbf16>, tensor<128x256xf32>
      scf.yield %d : tensor<128x256xf32>
    }
    tile.store %r, %y[%c0, %c0] : tensor<128x256xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Four stages of small tiles fit.
// CHECK-LABEL: @small
// CHECK-NOT: tile.product_step
// CHECK: scf.for
// CHECK: tile.load {{.*}} -> tensor<64x128xbf16>
// CHECK: tile.load {{.*}} -> tensor<128x128xbf16>
// CHECK: tile.mma
module attributes {tile.target = "sm_90a"} {
  func.func @small(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : tensor<64x128xf32>
    %k = tile.dim %x, 1 : !A
    %n = arith.ceildivsi %k, %c128 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
      %a = tile.load %x[%c0, %i] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %b = tile.load %w[%i, %c0] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
      %d = tile.mma %a, %b, %acc : tensor<64x128xbf16>, tensor<128x128xbf16>, tensor<64x128xf32>
      scf.yield %d : tensor<64x128xf32>
    }
    tile.store %r, %y[%c0, %c0] : tensor<64x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf32, strided<[?, 1]>>

// So it is where an operand is converted on its way to registers, and the tile is twice as large; else not.
// CHECK-LABEL: @rounded
// CHECK-SAME: tile.product_step = 128 : i32
// CHECK: scf.for
// CHECK-DAG: tile.load {{.*}} -> tensor<256x32xtf32>
// CHECK-DAG: tile.load {{.*}} -> tensor<32x128xf32>
// CHECK: tile.mma
// CHECK-LABEL: @small
// CHECK-NOT: tile.product_step
module attributes {tile.target = "sm_90a"} {
  func.func @rounded(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>}, %y: !A) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<256x128xf32>
    %k = tile.dim %x, 1 : !A
    %n = arith.ceildivsi %k, %c64 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<256x128xf32>) : i32 {
      %s = tile.load %x[%c0, %i] padding zero : !A, i32, i32 -> tensor<256x64xtf32>
      %b = tile.load %w[%i, %c0] padding zero : !A, i32, i32 -> tensor<64x128xf32>
      %t = arith.truncf %b : tensor<64x128xf32> to tensor<64x128xtf32>
      %d = tile.mma %s, %t, %acc : tensor<256x64xtf32>, tensor<64x128xtf32>, tensor<256x128xf32>
      scf.yield %d : tensor<256x128xf32>
    }
    tile.store %r, %y[%c0, %c0] : tensor<256x128xf32>, !A, i32, i32
    return
  }
  func.func @small(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>}, %y: !A) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %k = tile.dim %x, 1 : !A
    %n = arith.ceildivsi %k, %c64 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %s = tile.load %x[%c0, %i] padding zero : !A, i32, i32 -> tensor<128x64xtf32>
      %b = tile.load %w[%i, %c0] padding zero : !A, i32, i32 -> tensor<64x128xf32>
      %t = arith.truncf %b : tensor<64x128xf32> to tensor<64x128xtf32>
      %d = tile.mma %s, %t, %acc : tensor<128x64xtf32>, tensor<64x128xtf32>, tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    tile.store %r, %y[%c0, %c0] : tensor<128x128xf32>, !A, i32, i32
    return
  }
}
