// Every op of tile code parses, verifies, prints, and parses again to the same.
// RUN: tw-opt %s | tw-opt | FileCheck %s
// RUN: tw-opt %s --mlir-print-op-generic | tw-opt | FileCheck %s

// CHECK-LABEL: func.func @position
func.func @position() {
  // CHECK: tile.block_id 0
  %0 = tile.block_id 0
  // CHECK: tile.num_blocks 2
  %1 = tile.num_blocks 2
  return
}

// CHECK-LABEL: func.func @arrays
func.func @arrays(%a: memref<?x?xbf16, strided<[?, 1]>>, %b: memref<f32>, %i: i32, %k: i64) {
  // CHECK: tile.dim %{{.*}}, 1 : memref<?x?xbf16, strided<[?, 1]>>
  %0 = tile.dim %a, 1 : memref<?x?xbf16, strided<[?, 1]>>
  // CHECK: tile.stride %{{.*}}, 0 : memref
  %1 = tile.stride %a, 0 : memref<?x?xbf16, strided<[?, 1]>>
  // CHECK: tile.load %{{.*}}[%{{.*}}, %{{.*}}] order [1, 0] padding zero : memref<?x?xbf16, strided<[?, 1]>>, i32, i64 -> tensor<16x8xbf16>
  %2 = tile.load %a[%i, %k] order [1, 0] padding zero : memref<?x?xbf16, strided<[?, 1]>>, i32, i64 -> tensor<16x8xbf16>
  // CHECK: tile.load %{{.*}}[] : memref<f32> -> f32
  %3 = tile.load %b[] : memref<f32> -> f32
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] order [1, 0] : tensor<16x8xbf16>, memref<?x?xbf16, strided<[?, 1]>>, i32, i64
  tile.store %2, %a[%i, %k] order [1, 0] : tensor<16x8xbf16>, memref<?x?xbf16, strided<[?, 1]>>, i32, i64
  // CHECK: tile.store %{{.*}}, %{{.*}}[] : f32, memref<f32>
  tile.store %3, %b[] : f32, memref<f32>
  return
}

// CHECK-LABEL: func.func @elements
func.func @elements(%a: memref<?x?xui8, strided<[?, 1]>>, %i: tensor<8xi32>, %j: tensor<8xui16>, %m: tensor<8xi1>, %p: tensor<8xui8>) {
  // CHECK: tile.gather %{{.*}}[%{{.*}}, %{{.*}}] mask %{{.*}} : tensor<8xi1> else %{{.*}} : tensor<8xui8> {check_bounds} : memref
  %0 = tile.gather %a[%i, %j] mask %m : tensor<8xi1> else %p : tensor<8xui8> {check_bounds} : memref<?x?xui8, strided<[?, 1]>>, tensor<8xi32>, tensor<8xui16> -> tensor<8xui8>
  // CHECK: tile.scatter %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] mask %{{.*}} : tensor<8xi1> : tensor<8xui8>, memref
  tile.scatter %0, %a[%i, %j] mask %m : tensor<8xi1> : tensor<8xui8>, memref<?x?xui8, strided<[?, 1]>>, tensor<8xi32>, tensor<8xui16>
  return
}

// CHECK-LABEL: func.func @atomics
func.func @atomics(%a: memref<?xf32, strided<[?]>>, %b: memref<?xui32>, %i: tensor<8xi32>, %x: tensor<8xf32>, %m: tensor<8xi1>, %u: ui32, %j: i64) {
  // CHECK: tile.atomic cas acq_rel device, %{{.*}}, %{{.*}}[%{{.*}}] expected %{{.*}} : tensor<8xf32> mask %{{.*}} : tensor<8xi1> {check_bounds} : tensor<8xf32>, memref
  %0 = tile.atomic cas acq_rel device, %x, %a[%i] expected %x : tensor<8xf32> mask %m : tensor<8xi1> {check_bounds} : tensor<8xf32>, memref<?xf32, strided<[?]>>, tensor<8xi32> -> tensor<8xf32>
  // CHECK: tile.atomic or relaxed block, %{{.*}}, %{{.*}}[%{{.*}}] : ui32, memref<?xui32>, i64 -> ui32
  %1 = tile.atomic or relaxed block, %u, %b[%j] : ui32, memref<?xui32>, i64 -> ui32
  return
}

// CHECK-LABEL: func.func @creation
func.func @creation() {
  // CHECK: tile.constant dense<[1, 250]> : tensor<2xui8>
  %0 = tile.constant dense<[1, 250]> : tensor<2xui8>
  // CHECK: tile.constant 18446744073709551615 : ui64
  %1 = tile.constant 18446744073709551615 : ui64
  // CHECK: tile.iota : tensor<16xi32>
  %2 = tile.iota : tensor<16xi32>
  return
}

// CHECK-LABEL: func.func @shape
func.func @shape(%s: f32, %v: tensor<8xf32>) -> f32 {
  // CHECK: tile.broadcast %{{.*}} : f32 -> tensor<4x8xf32>
  %0 = tile.broadcast %s : f32 -> tensor<4x8xf32>
  // CHECK: tile.broadcast %{{.*}} : tensor<8xf32> -> tensor<4x8xf32>
  %1 = tile.broadcast %v : tensor<8xf32> -> tensor<4x8xf32>
  // CHECK: tile.reshape %{{.*}} : tensor<4x8xf32> -> tensor<32x1xf32>
  %2 = tile.reshape %1 : tensor<4x8xf32> -> tensor<32x1xf32>
  // CHECK: tile.permute %{{.*}} [1, 0] : tensor<32x1xf32>
  %3 = tile.permute %2 [1, 0] : tensor<32x1xf32>
  %4 = tile.constant dense<1.0> : tensor<1x1xf32>
  // CHECK: tile.reshape %{{.*}} : tensor<1x1xf32> -> f32
  %5 = tile.reshape %4 : tensor<1x1xf32> -> f32
  return %5 : f32
}

// CHECK-LABEL: func.func @arithmetic
func.func @arithmetic(%x: tensor<4x1xf32>, %y: tensor<8xi32>, %c: i1) -> tensor<4x8xf32> {
  // CHECK: tile.add %{{.*}}, %{{.*}} : tensor<4x1xf32>, tensor<8xi32>
  %0 = tile.add %x, %y : tensor<4x1xf32>, tensor<8xi32>
  // CHECK: tile.cmp ge, %{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<8xi32>
  %1 = tile.cmp ge, %0, %y : tensor<4x8xf32>, tensor<8xi32>
  // CHECK: tile.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x8xi1>, tensor<4x8xf32>, tensor<8xi32>
  %2 = tile.select %1, %0, %y : tensor<4x8xi1>, tensor<4x8xf32>, tensor<8xi32>
  // CHECK: tile.pow %{{.*}}, %{{.*}} {integral} : tensor<8xi32>, tensor<8xi32>
  %3 = tile.pow %y, %y {integral} : tensor<8xi32>, tensor<8xi32>
  // CHECK: tile.exp %{{.*}} : tensor<8xi32>
  %4 = tile.exp %3 : tensor<8xi32>
  // CHECK: tile.cast %{{.*}} : tensor<8xf32> -> tensor<8xf8E4M3FN>
  %5 = tile.cast %4 : tensor<8xf32> -> tensor<8xf8E4M3FN>
  return %2 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @combine
func.func @combine(%a: tensor<16x8xui8>, %b: tensor<8x4xi8>, %acc: tensor<16x4xi32>) -> tensor<4xi32> {
  // CHECK: tile.mma %{{.*}}, %{{.*}}, %{{.*}} : tensor<16x8xui8>, tensor<8x4xi8>, tensor<16x4xi32>
  %0 = tile.mma %a, %b, %acc : tensor<16x8xui8>, tensor<8x4xi8>, tensor<16x4xi32>
  // CHECK: tile.scan add, %{{.*}} axis 1 {reverse} : tensor<16x4xi32>
  %scan = tile.scan add, %0 axis 1 {reverse} : tensor<16x4xi32>
  // CHECK: tile.reduce argmax, %{{.*}} axis 0 : tensor<16x4xi32>
  %1 = tile.reduce argmax, %0 axis 0 : tensor<16x4xi32>
  return %1 : tensor<4xi32>
}

// CHECK-LABEL: func.func @combine_by_functions
func.func @combine_by_functions(%x: tensor<4x8xf32>, %n: tensor<4x8xui8>, %f: f32, %i: ui8) {
  // CHECK: tile.reduce_by(%{{.*}}, %{{.*}}) identity(%{{.*}}, %{{.*}}) axis 1 : (tensor<4x8xf32>, tensor<4x8xui8>, f32, ui8) -> (tensor<4xf32>, tensor<4xui8>) {
  %0:2 = tile.reduce_by(%x, %n) identity(%f, %i) axis 1 : (tensor<4x8xf32>, tensor<4x8xui8>, f32, ui8) -> (tensor<4xf32>, tensor<4xui8>) {
  ^bb0(%a: f32, %p: ui8, %b: f32, %q: ui8):
    %c = tile.minimum %a, %b : f32, f32
    %r = tile.add %p, %q : ui8, ui8
    // CHECK: tile.yield %{{.*}}, %{{.*}} : f32, ui8
    tile.yield %c, %r : f32, ui8
  }
  // CHECK: tile.scan_by(%{{.*}}) identity(%{{.*}}) axis 0 reverse : (tensor<4x8xf32>, f32) -> tensor<4x8xf32> {
  %1 = tile.scan_by(%x) identity(%f) axis 0 reverse : (tensor<4x8xf32>, f32) -> tensor<4x8xf32> {
  ^bb0(%a: f32, %b: f32):
    tile.yield %b : f32
  }
  return
}

// CHECK-LABEL: func.func @parts
func.func @parts(%x: tensor<4x8xf32>, %i: i32) {
  // CHECK: tile.cat %{{.*}}, %{{.*}} axis 1 : tensor<4x8xf32>, tensor<4x8xf32>
  %0 = tile.cat %x, %x axis 1 : tensor<4x8xf32>, tensor<4x8xf32>
  // CHECK: tile.extract %{{.*}}[%{{.*}}, %{{.*}}] : tensor<4x8xf32>, i32, i32 -> tensor<1x4xf32>
  %1 = tile.extract %x[%i, %i] : tensor<4x8xf32>, i32, i32 -> tensor<1x4xf32>
  // CHECK: tile.insert %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : tensor<1x4xf32>, tensor<4x8xf32>, i32, i32
  %2 = tile.insert %1, %x[%i, %i] : tensor<1x4xf32>, tensor<4x8xf32>, i32, i32
  // CHECK: tile.flush %{{.*}} : tensor<4x8xf32>
  %flushed = tile.flush %x : tensor<4x8xf32>
  // CHECK: tile.rounded div rm, %{{.*}}, %{{.*}} : tensor<4x8xf32> from tensor<4x8xf32>, tensor<4x8xf32>
  %rounded = tile.rounded div rm, %x, %x : tensor<4x8xf32> from tensor<4x8xf32>, tensor<4x8xf32>
  // CHECK: tile.bitcast %{{.*}} : tensor<4x8xf32> -> tensor<4x8xui32>
  %3 = tile.bitcast %x : tensor<4x8xf32> -> tensor<4x8xui32>
  // CHECK: tile.pack_to_bytes %{{.*}} : tensor<4x8xf32> -> tensor<128xui8>
  %4 = tile.pack_to_bytes %x : tensor<4x8xf32> -> tensor<128xui8>
  // CHECK: tile.unpack_from_bytes %{{.*}} : tensor<128xui8> -> tensor<16xf64>
  %5 = tile.unpack_from_bytes %4 : tensor<128xui8> -> tensor<16xf64>
  return
}

// CHECK-LABEL: func.func @effects
func.func @effects(%x: tensor<4xf32>, %n: ui8, %c: tensor<4xi1>) {
  // CHECK: tile.print "x = {}, n = {}\0A", %{{.*}}, %{{.*}} : tensor<4xf32>, ui8
  tile.print "x = {}, n = {}\n", %x, %n : tensor<4xf32>, ui8
  // CHECK: tile.print "{{[{][{]}}{:.3f}{{[}][}]}}", %{{.*}} : tensor<4xf32>
  tile.print "{{{:.3f}}}", %x : tensor<4xf32>
  // CHECK: tile.assert %{{.*}}, "must hold" : tensor<4xi1>
  tile.assert %c, "must hold" : tensor<4xi1>
  return
}

#line = #tile.linear<offset = [[0, 1], [0, 2], [1, 0], [2, 0]]>

// CHECK-LABEL: func.func @roles
func.func @roles(%a: memref<?x?xf32, strided<[?, 1]>>, %i: i32, %k: i64, %yes: i1) {
  %c0 = arith.constant 0 : i32
  %buffer = tile.alloc_shared : !tile.buffer<2x4x4xf32, #line>
  // CHECK: tile.barrier{{$}}
  // CHECK-NEXT: tile.barrier {tile.copies}
  // CHECK-NEXT: tile.barrier {tile.products, tile.stores}
  tile.barrier
  tile.barrier {tile.copies}
  tile.barrier {tile.products, tile.stores}
  // CHECK: tile.alloc_barriers arrivals 1 : <2>
  %full = tile.alloc_barriers arrivals 1 : !tile.barriers<2>
  // CHECK: tile.alloc_barriers arrivals 4 at 1024 : <2>
  %empty = tile.alloc_barriers arrivals 4 at 1024 : !tile.barriers<2>
  // CHECK: tile.roles producer_warps 4 consumer_groups 2 registers 40, 232 producer {
  tile.roles producer_warps 4 consumer_groups 2 registers 40, 232 producer {
    // CHECK: tile.barrier_wait %{{.*}}[%{{.*}}], %{{.*}} once : <2>
    tile.barrier_wait %empty[%c0], %i once : !tile.barriers<2>
    // CHECK: tile.barrier_expect %{{.*}}[%{{.*}}], 64 : <2>
    tile.barrier_expect %full[%c0], 64 : !tile.barriers<2>
    // CHECK: tile.tma_load %{{.*}}[%{{.*}}, %{{.*}}] order [1, 0] into %{{.*}}[%{{.*}}] signal %{{.*}}[%{{.*}}] cache evict_last : memref<?x?xf32, strided<[?, 1]>>, i32, i64 into <2x4x4xf32, #{{.*}}>, <2>
    tile.tma_load %a[%i, %k] order [1, 0] into %buffer[%c0] signal %full[%c0] cache evict_last : memref<?x?xf32, strided<[?, 1]>>, i32, i64 into !tile.buffer<2x4x4xf32, #line>, !tile.barriers<2>
  // CHECK: } consumer {
  } consumer {
    // CHECK: tile.consumer_group
    %consumer_group = tile.consumer_group
    // CHECK: tile.ordered_wait
    tile.ordered_wait
    // CHECK: tile.ordered_arrive
    tile.ordered_arrive
    // CHECK: tile.barrier_arrive %{{.*}}[%{{.*}}] : <2>
    tile.barrier_arrive %empty[%c0] : !tile.barriers<2>
    // CHECK: tile.barrier_arrive %{{.*}}[%{{.*}}] if %{{.*}} together : <2>
    tile.barrier_arrive %empty[%c0] if %yes together : !tile.barriers<2>
  }
  // CHECK: tile.tma_store %{{.*}} through %{{.*}} into %{{.*}}[%{{.*}}, %{{.*}}] order [1, 0] : tensor<8x4xf32> through !tile.buffer<2x4x4xf32, #{{.*}}> into memref<?x?xf32, strided<[?, 1]>>, i32, i64
  %tile = arith.constant dense<0.0> : tensor<8x4xf32>
  tile.tma_store %tile through %buffer into %a[%i, %k] order [1, 0] : tensor<8x4xf32> through !tile.buffer<2x4x4xf32, #line> into memref<?x?xf32, strided<[?, 1]>>, i32, i64
  // CHECK: tile.tma_store_wait %{{.*}} : !tile.buffer<2x4x4xf32, #{{.*}}>
  tile.tma_store_wait %buffer : !tile.buffer<2x4x4xf32, #line>
  // CHECK: tile.roles producer_warps 1 producer {
  // CHECK-NEXT: } consumer {
  // CHECK-NEXT: }
  tile.roles producer_warps 1 producer {
  } consumer {
  }
  return
}
