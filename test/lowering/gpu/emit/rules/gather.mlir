// Gathers of whole rows go by vectors, with a remark of what each became.
// RUN: tw-opt %s -split-input-file -verify-diagnostics=only-expected --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-assign-layouts,tile-report),tile-to-nvvm)' | FileCheck %s

!table = memref<?x?xbf16, strided<[?, 1]>>

// A row for each index: columns count up from 0, rows are the same for all columns. 2 x 1024 bf16 in 4 warps are two
// accesses of 16 bytes a thread, for the gather and for the scatter.
// CHECK-LABEL: llvm.func @rows
// CHECK-COUNT-2: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK-COUNT-2: st.global.v4.b32
// CHECK-NOT: st.global
module attributes {tile.target = "sm_90a"} {
  func.func @rows(%t: !table {tile.align = 16 : i32, tile.shape_div = array<i64: 1, 8>, tile.stride_div = array<i64: 8, 1>}, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %row = tensor.splat %n : tensor<2x1024xi32>
    %i = tile.iota : tensor<1024xi32>
    %i2 = tile.reshape %i : tensor<1024xi32> -> tensor<1x1024xi32>
    %column = tile.broadcast %i2 : tensor<1x1024xi32> -> tensor<2x1024xi32>
    // expected-remark @below {{reads 2x1024xbf16, in pieces of up to 16 bytes}}
    %x = tile.gather %t[%row, %column] {check_bounds} : !table, tensor<2x1024xi32>, tensor<2x1024xi32> -> tensor<2x1024xbf16>
    tile.scatter %x, %t[%row, %column] {check_bounds} : tensor<2x1024xbf16>, !table, tensor<2x1024xi32>, tensor<2x1024xi32>
    return
  }
}

// -----

// Rows of an array of one dimension, each from a multiple of 64 on: what a reshape inserts is still a multiple.
// CHECK-LABEL: llvm.func @flat
// CHECK-COUNT-2: ld.global.v4.b32
// CHECK-NOT: ld.global
module attributes {tile.target = "sm_90a"} {
  func.func @flat(%t: memref<?xbf16, strided<[1]>> {tile.align = 16 : i32, tile.shape_div = array<i64: 8>}, %u: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i32, tile.shape_div = array<i64: 1, 8>, tile.stride_div = array<i64: 8, 1>}, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %by = arith.constant dense<64> : tensor<32xi32>
    %first = tensor.splat %n : tensor<32xi32>
    %start = arith.muli %first, %by : tensor<32xi32>
    %starts = tile.reshape %start : tensor<32xi32> -> tensor<32x1xi32>
    %rows = tile.broadcast %starts : tensor<32x1xi32> -> tensor<32x64xi32>
    %i = tile.iota : tensor<64xi32>
    %i2 = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
    %column = tile.broadcast %i2 : tensor<1x64xi32> -> tensor<32x64xi32>
    %at = arith.addi %rows, %column : tensor<32x64xi32>
    // expected-remark @below {{reads 32x64xbf16, in pieces of up to 16 bytes}}
    %x = tile.gather %t[%at] {check_bounds} : memref<?xbf16, strided<[1]>>, tensor<32x64xi32> -> tensor<32x64xbf16>
    %c0 = arith.constant 0 : i32
    tile.store %x, %u[%c0, %c0] : tensor<32x64xbf16>, memref<?x?xbf16, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

// The row is one longer than a vector divides, or columns that start anywhere: element by element.
// CHECK-LABEL: llvm.func @odd
// CHECK-NOT: ld.global.v
module attributes {tile.target = "sm_90a"} {
  func.func @odd(%t: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %u: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i32, tile.shape_div = array<i64: 1, 8>, tile.stride_div = array<i64: 8, 1>}, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %row = tensor.splat %n : tensor<1x1024xi32>
    %i = tile.iota : tensor<1024xi32>
    %column = tile.reshape %i : tensor<1024xi32> -> tensor<1x1024xi32>
    // expected-remark @below {{reads 1x1024xbf16 element by element: its mask or array may end within a vector; a bound that ct.assume_divisible_by takes for a multiple of one wins vectors back}}
    %x = tile.gather %t[%row, %column] {check_bounds} : memref<?x?xbf16, strided<[?, 1]>>, tensor<1x1024xi32>, tensor<1x1024xi32> -> tensor<1x1024xbf16>
    %moved = arith.addi %column, %row : tensor<1x1024xi32>
    // expected-remark @below {{reads 1x1024xbf16 element by element}}
    %y = tile.gather %u[%row, %moved] {check_bounds} : memref<?x?xbf16, strided<[?, 1]>>, tensor<1x1024xi32>, tensor<1x1024xi32> -> tensor<1x1024xbf16>
    %z = arith.addf %x, %y : tensor<1x1024xbf16>
    %c0 = arith.constant 0 : i32
    tile.store %z, %u[%c0, %c0] : tensor<1x1024xbf16>, memref<?x?xbf16, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

// An index that a loop moves is a constant away in an iteration that stands in front of it: it is an index as any other.
// CHECK-LABEL: llvm.func @in_front
// CHECK: ld.global
module attributes {tile.target = "sm_90a"} {
  func.func @in_front(%t: memref<?xf32, strided<[1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %i = tile.iota : tensor<128xi32>
    %by = arith.constant dense<64> : tensor<128xi32>
    scf.for %k = %c0 to %n step %c1 : i32 {
      %moved = arith.addi %i, %by {tile.hoisted} : tensor<128xi32>
      // expected-remark @below {{reads 128xf32}}
      %x = tile.gather %t[%moved] {check_bounds} : memref<?xf32, strided<[1]>>, tensor<128xi32> -> tensor<128xf32>
      tile.scatter %x, %t[%i] : tensor<128xf32>, memref<?xf32, strided<[1]>>, tensor<128xi32>
    }
    return
  }
}

// -----

// Neighbours of one column: of the vectors around a thread's four columns the middle one is loaded once for both, and
// once more behind a store, which may have changed it.
// CHECK-LABEL: llvm.func @neighbours
// CHECK-COUNT-3: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK: st.global
// CHECK-COUNT-2: ld.global.v4.b32
// CHECK-NOT: ld.global
module attributes {tile.target = "sm_90a"} {
  func.func @neighbours(%x: memref<?xf32, strided<[1]>> {tile.align = 16 : i32, tile.shape_div = array<i64: 16>}, %y: memref<?xf32, strided<[1]>> {tile.align = 16 : i32, tile.shape_div = array<i64: 16>}) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %one = arith.constant dense<1> : tensor<512xi32>
    %at = tile.iota : tensor<512xi32>
    %before = arith.subi %at, %one : tensor<512xi32>
    %behind = arith.addi %at, %one : tensor<512xi32>
    // expected-remark @below {{reads 512xf32, in pieces of up to 16 bytes around its neighbours}}
    %a = tile.gather %x[%before] {check_bounds} : memref<?xf32, strided<[1]>>, tensor<512xi32> -> tensor<512xf32>
    // expected-remark @below {{reads 512xf32, in pieces of up to 16 bytes around its neighbours}}
    %b = tile.gather %x[%behind] {check_bounds} : memref<?xf32, strided<[1]>>, tensor<512xi32> -> tensor<512xf32>
    %s = arith.addf %a, %b : tensor<512xf32>
    tile.store %s, %y[%c0] : tensor<512xf32>, memref<?xf32, strided<[1]>>, i32
    // expected-remark @below {{reads 512xf32, in pieces of up to 16 bytes around its neighbours}}
    %c = tile.gather %x[%before] {check_bounds} : memref<?xf32, strided<[1]>>, tensor<512xi32> -> tensor<512xf32>
    tile.store %c, %y[%c0] : tensor<512xf32>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

// Every second element: one vector has those of two neighbours of four bytes, and is stored at once.
// CHECK-LABEL: llvm.func @pairs
// CHECK-COUNT-1: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK-COUNT-1: st.global.v4.b32
// CHECK-NOT: st.global
module attributes {tile.target = "sm_90a"} {
  func.func @pairs(%x: memref<?xf32, strided<[1]>> {tile.align = 16 : i32, tile.shape_div = array<i64: 16>}, %y: memref<?xf32, strided<[1]>> {tile.align = 16 : i32, tile.shape_div = array<i64: 16>}) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %one = arith.constant dense<1> : tensor<256xi32>
    %two = arith.constant dense<2> : tensor<256xi32>
    %i = tile.iota : tensor<256xi32>
    %even = arith.muli %i, %two : tensor<256xi32>
    %odd = arith.addi %even, %one : tensor<256xi32>
    // expected-remark @below {{around its neighbours}}
    %a = tile.gather %x[%even] {check_bounds} : memref<?xf32, strided<[1]>>, tensor<256xi32> -> tensor<256xf32>
    // expected-remark @below {{around its neighbours}}
    %b = tile.gather %x[%odd] {check_bounds} : memref<?xf32, strided<[1]>>, tensor<256xi32> -> tensor<256xf32>
    tile.scatter %b, %y[%even] {check_bounds} : tensor<256xf32>, memref<?xf32, strided<[1]>>, tensor<256xi32>
    tile.scatter %a, %y[%odd] {check_bounds} : tensor<256xf32>, memref<?xf32, strided<[1]>>, tensor<256xi32>
    return
  }
}

// -----

!scales = memref<?xf32, strided<[1]>>

// A number for the next iteration, the same for all threads: its address has 0 added, which the assembler cannot tell, so
// that it goes to a register of each thread. One that is read at once needs none.
// CHECK-LABEL: llvm.func @ahead
// CHECK: %[[ZERO:.*]] = llvm.inline_asm {{.*}}%lanemask_lt
// CHECK: %[[OWN:.*]] = llvm.getelementptr %{{.*}}[%[[ZERO]]]
// CHECK: llvm.inline_asm {{.*}}ld.global{{.*}} %[[OWN]]
// CHECK-NOT: [%[[ZERO]]]
// CHECK: llvm.return
module attributes {tile.target = "sm_90a"} {
  func.func @ahead(%x: !scales, %y: memref<?xf32, strided<[1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant 0.0 : f32
    %first = tile.gather %x[%c0] else %zero : f32 {check_bounds} : !scales, i32 -> f32
    %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero, %s = %first) -> (f32, f32) : i32 {
      %next = arith.addi %k, %c1 : i32
      %ahead = tile.gather %x[%next] else %zero : f32 {check_bounds} : !scales, i32 -> f32
      %now = tile.gather %x[%k] else %zero : f32 {check_bounds} : !scales, i32 -> f32
      %p = arith.mulf %s, %now : f32
      %t = arith.addf %sum, %p : f32
      scf.yield %t, %ahead : f32, f32
    }
    %tile = tensor.splat %r#0 : tensor<128xf32>
    tile.store %tile, %y[%c0] : tensor<128xf32>, memref<?xf32, strided<[1]>>, i32
    return
  }
}
