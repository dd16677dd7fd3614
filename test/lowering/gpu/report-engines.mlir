// What brings each tile is a remark, told once a load, and what computes each product, told once a product.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-report))' 2>&1 | FileCheck %s

#line = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
#two = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [0, 64]]>
#t = #tile.linear<register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], warp = [[1, 0], [2, 0]]>
!array = memref<?x?xbf16, strided<[?, 1]>>

// CHECK: remark: 'tile.tma_load' op moves 8x128xbf16 by TMA, in 2 boxes{{$}}
// CHECK: remark: 'tile.tma_load' op moves 8x128xbf16 by TMA, in 2 boxes; its lines leave the L2 cache first: this launch reads them once
// CHECK: remark: 'tile.tma_load' op moves 8x128xbf16 by TMA, in 2 boxes; its lines leave the L2 cache last
// CHECK: remark: 'tile.async_copy' op moves 8x64xbf16 by cp.async, in pieces of up to 16 bytes
// CHECK-NOT: not by TMA
// CHECK: remark: 'tile.async_copy' op moves 8x64xbf16 by cp.async, in pieces of up to 2 bytes (base and strides of its array are not known to be multiples of 16 bytes), and not by TMA: the array is not known
// CHECK: remark: 'tile.load' op moves 4x64xbf16 through registers, in pieces of up to 16 bytes
// CHECK-NOT: remark
module attributes {tile.target = "sm_90a"} {
  func.func @f(%x: !array {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>, tile.tma}, %y: !array, %i: i32) attributes {tile.kernel} {
    %s = tile.alloc_shared : !tile.buffer<3x8x64xbf16, #line>
    %w = tile.alloc_shared : !tile.buffer<3x8x128xbf16, #two>
    %b = tile.alloc_barriers arrivals 1 : !tile.barriers<3>
    tile.tma_load %x[%i, %i] into %w[%i] signal %b[%i] : !array, i32, i32 into !tile.buffer<3x8x128xbf16, #two>, !tile.barriers<3>
    tile.tma_load %x[%i, %i] into %w[%i] signal %b[%i] cache evict_first : !array, i32, i32 into !tile.buffer<3x8x128xbf16, #two>, !tile.barriers<3>
    tile.tma_load %x[%i, %i] into %w[%i] signal %b[%i] cache evict_last : !array, i32, i32 into !tile.buffer<3x8x128xbf16, #two>, !tile.barriers<3>
    tile.async_copy %x[%i, %i] into %s[%i] : !array, i32, i32 into !tile.buffer<3x8x64xbf16, #line>
    tile.async_copy %y[%i, %i] into %s[%i] : !array, i32, i32 into !tile.buffer<3x8x64xbf16, #line>
    %t = tile.load %x[%i, %i] padding zero : !array, i32, i32 -> tensor<4x64xbf16, #t>
    return
  }
}

// -----

#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#ab = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#swizzled = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#narrow = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0], [32, 0]]>

// CHECK: remark: 'tile.async_mma' op runs as wgmma m64n32k16 on 1 warpgroup, its left operand in shared memory
// CHECK: remark: 'tile.async_mma' op runs as wgmma m64n32k16 on 1 warpgroup, its left operand in registers
// CHECK: remark: 'tile.mma' op runs as mma.sync m16n8k16 on 4 warps
// CHECK-NOT: remark
module attributes {tile.target = "sm_90a"} {
  func.func @products(%f: tensor<64x64xbf16, #ab>, %g: tensor<64x32xbf16, #acc>, %c: tensor<64x32xf32, #acc>, %i: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %a = tile.alloc_shared : !tile.buffer<2x64x64xbf16, #swizzled>
    %b = tile.alloc_shared : !tile.buffer<2x64x32xbf16, #narrow>
    %d = tile.async_mma %a[%i], %b[%i], %c : !tile.buffer<2x64x64xbf16, #swizzled>, !tile.buffer<2x64x32xbf16, #narrow>, tensor<64x32xf32, #acc> -> tensor<64x32xf32, #acc>
    %e = tile.async_mma %f, %b[%i], %d : tensor<64x64xbf16, #ab>, !tile.buffer<2x64x32xbf16, #narrow>, tensor<64x32xf32, #acc> -> tensor<64x32xf32, #acc>
    %h = tile.mma %f, %g, %e : tensor<64x64xbf16, #ab>, tensor<64x32xbf16, #acc>, tensor<64x32xf32, #acc>
    return
  }
}

// -----

#boxes = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// CHECK: remark: 'tile.store' op moves 64x64xbf16 from registers, in pieces of up to 16 bytes
// CHECK: remark: 'tile.tma_store' op moves 64x64xbf16 by TMA, through shared memory
// CHECK-NOT: remark
module attributes {tile.target = "sm_90a"} {
  func.func @stores(%x: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>, tile.tma}, %t: tensor<64x64xbf16, #acc>, %s: bf16, %i: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    tile.store %t, %x[%i, %i] : tensor<64x64xbf16, #acc>, memref<?x?xbf16, strided<[?, 1]>>, i32, i32
    %b = tile.alloc_shared : !tile.buffer<1x64x64xbf16, #boxes>
    tile.tma_store %t through %b into %x[%i, %i] : tensor<64x64xbf16, #acc> through !tile.buffer<1x64x64xbf16, #boxes> into memref<?x?xbf16, strided<[?, 1]>>, i32, i32
    return
  }
}
