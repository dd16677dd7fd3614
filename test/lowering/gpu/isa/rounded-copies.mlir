// What is rounded to tf32 on the way: threads round each element; the map of the copy engine says that it does.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(tile-allocate-shared,tile-to-nvvm,canonicalize,cse)' | FileCheck %s
#lines = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 4], [2, 8], [4, 16]]>
!A = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: llvm.func @by_threads
// CHECK-NOT: cp.async
// CHECK: "mov.b32 $0, 0; @$2 ld.global.b32 $0, [$1 + 0];"
// CHECK: cvt.rn.tf32.f32
// CHECK: llvm.store {{.*}} : i32, !llvm.ptr<3>
module attributes {tile.target = "sm_90a"} {
  func.func @by_threads(%x: !A, %i: i32) attributes {tile.kernel, tile.launch = {num_warps = 2 : i32}} {
    %c0 = arith.constant 0 : i32
    %s = tile.alloc_shared : <1x8x32xtf32, #lines>
    tile.async_copy %x[%i, %c0] into %s[%c0] : !A, i32, i32 into <1x8x32xtf32, #lines>
    return
  }
}

// -----
#row = #tile.linear<register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0]]>
!A = memref<?x?xf32, strided<[?, 1]>>

// Four elements at a time where the row begins at 16 bytes.
// CHECK-LABEL: llvm.func @to_registers
// CHECK: ld.global.v4.b32
// CHECK-COUNT-4: cvt.rn.tf32.f32
// CHECK-NOT: cvt.rn.tf32.f32
module attributes {tile.target = "sm_90a"} {
  func.func @to_registers(%x: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>, tile.shape_div = array<i64: 8, 32>}, %y: !A, %i: i32) attributes {tile.kernel, tile.launch = {num_warps = 2 : i32}} {
    %t = tile.load %x[%i, %i] padding zero : !A, i32, i32 -> tensor<8x32xtf32, #row>
    %w = arith.extf %t : tensor<8x32xtf32, #row> to tensor<8x32xf32, #row>
    tile.store %w, %y[%i, %i] : tensor<8x32xf32, #row>, !A, i32, i32
    return
  }
}

// -----
#lines = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 4], [2, 8], [4, 16]]>
!A = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: llvm.func @by_the_engine
// CHECK-SAME: bytes = 4 : i32, rank = 2 : i32, rounds = 1 : i32, swizzle = 128 : i32
module attributes {tile.target = "sm_90a"} {
  func.func @by_the_engine(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>}, %i: i32) attributes {tile.kernel, tile.launch = {num_warps = 2 : i32}} {
    %c0 = arith.constant 0 : i32
    %s = tile.alloc_shared : <1x8x32xtf32, #lines>
    %b = tile.alloc_barriers arrivals 1 : !tile.barriers<1>
    tile.tma_load %x[%i, %c0] into %s[%c0] signal %b[%c0] : !A, i32, i32 into !tile.buffer<1x8x32xtf32, #lines>, !tile.barriers<1>
    return
  }
}
