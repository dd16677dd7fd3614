// Every message of the rules of the dialect (rules.c, verify.c), one case each.
// RUN: tw-opt %s -split-input-file -verify-diagnostics

func.func @f() {
  // expected-error @below {{'tile.block_id' op axis 3 is outside of the grid, which has axes 0, 1 and 2}}
  %0 = tile.block_id 3
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.num_blocks' op axis -1 is outside of the grid}}
  %0 = tile.num_blocks -1
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.thread_id' op axis 3 is outside of the grid}}
  %0 = tile.thread_id 3
  return
}

// -----

func.func @f(%a: memref<?x?xf32, strided<[?, 1]>>, %i: i32) {
  // expected-error @below {{'tile.dim' op axis 2 is outside of an array of 2 dimensions}}
  %0 = tile.dim %a, 2 : memref<?x?xf32, strided<[?, 1]>>
  return
}

// -----

func.func @f(%a: memref<f32>) {
  // expected-error @below {{'tile.stride' op axis 0 is outside of an array of 0 dimensions}}
  %0 = tile.stride %a, 0 : memref<f32>
  return
}

// -----

func.func @f(%a: memref<?xi4>) {
  // expected-error @below {{'tile.dim' op the array has elements of no supported dtype}}
  %0 = tile.dim %a, 0 : memref<?xi4>
  return
}

// -----

func.func @f(%a: memref<?x?xf32, strided<[?, 1]>>, %i: i32) {
  // expected-error @below {{'tile.load' op has 1 indices for an array of 2 dimensions}}
  %0 = tile.load %a[%i] : memref<?x?xf32, strided<[?, 1]>>, i32 -> tensor<8x8xf32>
  return
}

// -----

func.func @f(%a: memref<?x?xf32, strided<[?, 1]>>, %i: i32) {
  // expected-error @below {{'tile.load' op a tile of shape (8,) does not fit an array of 2 dimensions; a tile has as many}}
  %0 = tile.load %a[%i, %i] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: memref<?x?xf32, strided<[?, 1]>>, %i: i32) {
  // expected-error @below {{'tile.load' op the tile: dimension 1 is 12, which is not a power of two}}
  %0 = tile.load %a[%i, %i] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<8x12xf32>
  return
}

// -----

func.func @f(%a: memref<?x?xf32, strided<[?, 1]>>, %i: i32) {
  // expected-error @below {{'tile.load' op the tile: dimension 1 is not static; the shape of a tile must be constant}}
  %0 = tile.load %a[%i, %i] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<8x?xf32>
  return
}

// -----

func.func @f(%a: memref<?x?xf32, strided<[?, 1]>>, %i: i32) {
  // expected-error @below {{'tile.load' op the tile has more than 2**31 - 1 elements}}
  %0 = tile.load %a[%i, %i] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<65536x65536xf32>
  return
}

// -----

func.func @f(%a: memref<?x?xf32, strided<[?, 1]>>, %i: i32) {
  // expected-error @below {{'tile.load' op the tile is float16, but the array is float32; convert it, as in x.astype(ct.float32)}}
  %0 = tile.load %a[%i, %i] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<8x8xf16>
  return
}

// -----

func.func @f(%a: memref<?x?xf32, strided<[?, 1]>>, %i: i32, %b: i8) {
  // expected-error @below {{'tile.load' op index 1 is int8; tile indices are int32 or int64}}
  %0 = tile.load %a[%i, %b] : memref<?x?xf32, strided<[?, 1]>>, i32, i8 -> tensor<8x8xf32>
  return
}

// -----

func.func @f(%a: memref<?x?xf32, strided<[?, 1]>>, %i: i32) {
  // expected-error @below {{'tile.load' op order (0, 0) is not a permutation of the 2 axes of the array}}
  %0 = tile.load %a[%i, %i] order [0, 0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<8x8xf32>
  return
}

// -----

func.func @f(%a: memref<?x?xf32, strided<[?, 1]>>, %i: i32) {
  // expected-error @below {{'tile.load' op order (0,) is not a permutation of the 2 axes of the array}}
  %0 = tile.load %a[%i, %i] order [0] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<8x8xf32>
  return
}

// -----

func.func @f(%a: memref<?xi8>, %i: i32) {
  // expected-error @below {{'tile.load' op padding nan: int8 has no such value; use zero and select}}
  %0 = tile.load %a[%i] padding nan : memref<?xi8>, i32 -> tensor<8xi8>
  return
}

// -----

func.func @f(%a: memref<?xf8E4M3FN>, %i: i32) {
  // expected-error @below {{'tile.load' op padding neg_inf: float8_e4m3fn has no such value; use zero and select}}
  %0 = tile.load %a[%i] padding neg_inf : memref<?xf8E4M3FN>, i32 -> tensor<8xf8E4M3FN>
  return
}

// -----

func.func @f(%a: memref<?x?xf32, strided<[?, 1]>>, %i: i32, %t: tensor<8x8xf16>) {
  // expected-error @below {{'tile.store' op the tile is float16, but the array is float32}}
  tile.store %t, %a[%i, %i] : tensor<8x8xf16>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
  return
}

// -----

func.func @f(%a: memref<?x?xf32, strided<[?, 1]>>, %i: i32, %t: tensor<8x8xf32>) {
  // expected-error @below {{'tile.store' op has 1 indices for an array of 2 dimensions}}
  tile.store %t, %a[%i] : tensor<8x8xf32>, memref<?x?xf32, strided<[?, 1]>>, i32
  return
}

// -----

func.func @f(%a: memref<?xf32>, %i: tensor<8xi32>, %f: tensor<8xf32>, %m: tensor<4xi1>, %s: f16) {
  // expected-error @below {{'tile.gather' op has 2 indices for an array of 1 dimensions}}
  %0 = tile.gather %a[%i, %i] : memref<?xf32>, tensor<8xi32>, tensor<8xi32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: memref<?xf32>, %i: tensor<8xi32>, %f: tensor<8xf32>, %m: tensor<4xi1>, %s: f16) {
  // expected-error @below {{'tile.gather' op index 0 is float32; indices are integers}}
  %0 = tile.gather %a[%f] : memref<?xf32>, tensor<8xf32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: memref<?xf32>, %i: tensor<8xi32>, %f: tensor<8xf32>, %m: tensor<4xi1>, %s: f16) {
  // expected-error @below {{'tile.gather' op index 0 has shape (8,), expected (4,)}}
  %0 = tile.gather %a[%i] : memref<?xf32>, tensor<8xi32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: memref<?xf32>, %i: tensor<8xi32>, %f: tensor<8xf32>, %m: tensor<4xi1>, %s: f16) {
  // expected-error @below {{'tile.gather' op the result is float16, but the array is float32}}
  %0 = tile.gather %a[%i] : memref<?xf32>, tensor<8xi32> -> tensor<8xf16>
  return
}

// -----

func.func @f(%a: memref<?xf32>, %i: tensor<8xi32>, %f: tensor<8xf32>, %m: tensor<4xi1>, %s: f16) {
  // expected-error @below {{'tile.gather' op the mask has shape (4,), expected (8,)}}
  %0 = tile.gather %a[%i] mask %m : tensor<4xi1> : memref<?xf32>, tensor<8xi32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: memref<?xf32>, %i: tensor<8xi32>, %f: tensor<8xf32>, %m: tensor<4xi1>, %s: f16) {
  // expected-error @below {{'tile.gather' op the mask is int32, but a mask is bool_}}
  %0 = tile.gather %a[%i] mask %i : tensor<8xi32> : memref<?xf32>, tensor<8xi32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: memref<?xf32>, %i: tensor<8xi32>, %f: tensor<8xf32>, %m: tensor<4xi1>, %s: f16) {
  // expected-error @below {{'tile.gather' op the padding is float16, but the array is float32}}
  %0 = tile.gather %a[%i] else %s : f16 : memref<?xf32>, tensor<8xi32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: memref<?xf32>, %i: tensor<8xi32>, %f: tensor<8xf32>, %m: tensor<4xi1>, %s: f16) {
  // expected-error @below {{'tile.scatter' op the value is int32, but the array is float32}}
  tile.scatter %i, %a[%i] : tensor<8xi32>, memref<?xf32>, tensor<8xi32>
  return
}

// -----

func.func @f(%a: memref<?xf32>, %i: tensor<8xi32>, %f: tensor<8xf32>, %m: tensor<4xi1>, %s: f16) {
  // expected-error @below {{'tile.scatter' op the mask has shape (4,), expected (8,)}}
  tile.scatter %f, %a[%i] mask %m : tensor<4xi1> : tensor<8xf32>, memref<?xf32>, tensor<8xi32>
  return
}

// -----

func.func @f(%a: memref<?xf32>, %h: memref<?xf16>, %i: tensor<8xi32>, %x: tensor<8xf32>, %y: tensor<8xf16>, %m: tensor<4xi1>) {
  // expected-error @below {{'tile.atomic' op the value is int32, but the array is float32}}
  %0 = tile.atomic add relaxed device, %i, %a[%i] : tensor<8xi32>, memref<?xf32>, tensor<8xi32> -> tensor<8xi32>
  return
}

// -----

func.func @f(%a: memref<?xf32>, %h: memref<?xf16>, %i: tensor<8xi32>, %x: tensor<8xf32>, %y: tensor<8xf16>, %m: tensor<4xi1>) {
  // expected-error @below {{'tile.atomic' op has no atomic access of this kind for arrays of float32}}
  %0 = tile.atomic or relaxed device, %x, %a[%i] : tensor<8xf32>, memref<?xf32>, tensor<8xi32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: memref<?xf32>, %h: memref<?xf16>, %i: tensor<8xi32>, %x: tensor<8xf32>, %y: tensor<8xf16>, %m: tensor<4xi1>) {
  // expected-error @below {{'tile.atomic' op has no atomic access of this kind for arrays of float16}}
  %0 = tile.atomic nanmax relaxed device, %y, %h[%i] : tensor<8xf16>, memref<?xf16>, tensor<8xi32> -> tensor<8xf16>
  return
}

// -----

func.func @f(%a: memref<?xf32>, %h: memref<?xf16>, %i: tensor<8xi32>, %x: tensor<8xf32>, %y: tensor<8xf16>, %m: tensor<4xi1>) {
  // expected-error @below {{'tile.atomic' op an expected value is what cas has, and nothing else}}
  %0 = tile.atomic cas relaxed device, %x, %a[%i] : tensor<8xf32>, memref<?xf32>, tensor<8xi32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: memref<?xf32>, %h: memref<?xf16>, %i: tensor<8xi32>, %x: tensor<8xf32>, %y: tensor<8xf16>, %m: tensor<4xi1>) {
  // expected-error @below {{'tile.atomic' op an expected value is what cas has, and nothing else}}
  %0 = tile.atomic add relaxed device, %x, %a[%i] expected %x : tensor<8xf32> : tensor<8xf32>, memref<?xf32>, tensor<8xi32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: memref<?xf32>, %h: memref<?xf16>, %i: tensor<8xi32>, %x: tensor<8xf32>, %y: tensor<8xf16>, %m: tensor<4xi1>) {
  // expected-error @below {{'tile.atomic' op a load is relaxed or acquires, a store is relaxed or releases}}
  %0 = tile.atomic load release device, %x, %a[%i] : tensor<8xf32>, memref<?xf32>, tensor<8xi32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: memref<?xf32>, %h: memref<?xf16>, %i: tensor<8xi32>, %x: tensor<8xf32>, %y: tensor<8xf16>, %m: tensor<4xi1>) {
  // expected-error @below {{'tile.atomic' op a load is relaxed or acquires, a store is relaxed or releases}}
  %0 = tile.atomic store acq_rel device, %x, %a[%i] : tensor<8xf32>, memref<?xf32>, tensor<8xi32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: memref<?xf32>, %h: memref<?xf16>, %i: tensor<8xi32>, %x: tensor<8xf32>, %y: tensor<8xf16>, %m: tensor<4xi1>) {
  // expected-error @below {{'tile.atomic' op has 2 indices for an array of 1 dimensions}}
  %0 = tile.atomic add relaxed sys, %x, %a[%i, %i] : tensor<8xf32>, memref<?xf32>, tensor<8xi32>, tensor<8xi32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: memref<?xf32>, %h: memref<?xf16>, %i: tensor<8xi32>, %x: tensor<8xf32>, %y: tensor<8xf16>, %m: tensor<4xi1>) {
  // expected-error @below {{'tile.atomic' op the mask has shape (4,), expected (8,)}}
  %0 = tile.atomic add relaxed sys, %x, %a[%i] mask %m : tensor<4xi1> : tensor<8xf32>, memref<?xf32>, tensor<8xi32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: memref<?xf32>, %h: memref<?xf16>, %i: tensor<8xi32>, %x: tensor<8xf32>, %y: tensor<8xf16>, %m: tensor<4xi1>) {
  // expected-error @below {{'tile.atomic' op the result has shape (), expected (8,)}}
  %0 = tile.atomic add relaxed sys, %x, %a[%i] : tensor<8xf32>, memref<?xf32>, tensor<8xi32> -> f32
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.constant' op the result: dimension 0 is 3, which is not a power of two}}
  %0 = tile.constant dense<1> : tensor<3xi32>
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.constant' op the result has type 'i7', which is neither a tile nor a scalar of a supported dtype}}
  %0 = tile.constant 1 : i7
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.constant' op the value must be a number or a dense<…> of them}}
  %0 = tile.constant sparse<[[0]], [1]> : tensor<4xi32>
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.iota' op has a result of shape (4, 4); it makes tiles of one dimension}}
  %0 = tile.iota : tensor<4x4xi32>
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.iota' op makes integers, found float32; cast the result}}
  %0 = tile.iota : tensor<4xf32>
  return
}

// -----

func.func @f(%t: tensor<8x1xf32>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.broadcast' op the result is float16, but the operand is float32}}
  %0 = tile.broadcast %t : tensor<8x1xf32> -> tensor<8x4xf16>
  return
}

// -----

func.func @f(%t: tensor<8x1xf32>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.broadcast' op shapes (8, 1) and (4, 4) do not broadcast: 8 meets 4; extents must be equal or 1, counted from the last axis}}
  %0 = tile.broadcast %t : tensor<8x1xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%t: tensor<8x1xf32>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.broadcast' op shape (8, 1) does not broadcast to (8,)}}
  %0 = tile.broadcast %t : tensor<8x1xf32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%t: tensor<8x1xf32>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.reshape' op shape (8, 1) has 8 elements, (4, 4) has 16}}
  %0 = tile.reshape %t : tensor<8x1xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%t: tensor<8x1xf32>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.reshape' op the result is int32, but the operand is float32}}
  %0 = tile.reshape %t : tensor<8x1xf32> -> tensor<8xi32>
  return
}

// -----

func.func @f(%t: tensor<8x1xf32>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.permute' op order (1, 1) is not a permutation of the 2 axes of the tile}}
  %0 = tile.permute %t [1, 1] : tensor<8x1xf32>
  return
}

// -----

func.func @f(%t: tensor<8x1xf32>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.permute' op order (0,) is not a permutation of the 2 axes of the tile}}
  %0 = tile.permute %t [0] : tensor<8x1xf32>
  return
}

// -----

func.func @f(%t: tensor<8x1xf32>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.cast' op the result has shape (8,), expected (8, 1)}}
  %0 = tile.cast %t : tensor<8x1xf32> -> tensor<8xf16>
  return
}

// -----

func.func @f(%t: tensor<1x1x1x1x1x1x1x1x1xf32>) {
  // expected-error @below {{'tile.cast' op the operand has 9 dimensions; a tile has at most 8}}
  %0 = tile.cast %t : tensor<1x1x1x1x1x1x1x1x1xf32> -> tensor<8xf16>
  return
}

// -----

func.func @f(%t: tensor<f32>) {
  // expected-error @below {{'tile.cast' op the operand is a tensor of rank zero; a tile of rank zero is written as a scalar}}
  %0 = tile.cast %t : tensor<f32> -> f16
  return
}

// -----

func.func @f(%b: tensor<8xi1>, %i: tensor<8xi32>, %u: tensor<8xui8>, %f: tensor<8xf32>, %h: tensor<8xf16>, %g: tensor<8xbf16>, %n: tensor<8xf8E5M2>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.add' op shapes (8,) and (4,) do not broadcast: 8 meets 4}}
  %0 = tile.add %f, %x : tensor<8xf32>, tensor<4xf32>
  return
}

// -----

func.func @f(%b: tensor<8xi1>, %i: tensor<8xi32>, %u: tensor<8xui8>, %f: tensor<8xf32>, %h: tensor<8xf16>, %g: tensor<8xbf16>, %n: tensor<8xf8E5M2>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.add' op no implicit promotion between int32 and uint8; convert one operand, as in x.astype(ct.int32)}}
  %0 = tile.add %i, %u : tensor<8xi32>, tensor<8xui8>
  return
}

// -----

func.func @f(%b: tensor<8xi1>, %i: tensor<8xi32>, %u: tensor<8xui8>, %f: tensor<8xf32>, %h: tensor<8xf16>, %g: tensor<8xbf16>, %n: tensor<8xf8E5M2>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.add' op no implicit promotion between float16 and bfloat16; convert one operand, as in x.astype(ct.float32)}}
  %0 = tile.add %h, %g : tensor<8xf16>, tensor<8xbf16>
  return
}

// -----

func.func @f(%b: tensor<8xi1>, %i: tensor<8xi32>, %u: tensor<8xui8>, %f: tensor<8xf32>, %h: tensor<8xf16>, %g: tensor<8xbf16>, %n: tensor<8xf8E5M2>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.add' op is defined on integers and floats, found bool_; convert first, as in x.astype(ct.int32)}}
  %0 = tile.add %b, %b : tensor<8xi1>, tensor<8xi1>
  return
}

// -----

func.func @f(%b: tensor<8xi1>, %i: tensor<8xi32>, %u: tensor<8xui8>, %f: tensor<8xf32>, %h: tensor<8xf16>, %g: tensor<8xbf16>, %n: tensor<8xf8E5M2>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.mul' op is not defined on float8_e5m2, which serves storage, casts and mma only; convert first, as in x.astype(ct.float32)}}
  %0 = tile.mul %n, %n : tensor<8xf8E5M2>, tensor<8xf8E5M2>
  return
}

// -----

func.func @f(%b: tensor<8xi1>, %i: tensor<8xi32>, %u: tensor<8xui8>, %f: tensor<8xf32>, %h: tensor<8xf16>, %g: tensor<8xbf16>, %n: tensor<8xf8E5M2>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.and' op is defined on integers and bools, found float32; convert first, as in x.astype(ct.int32)}}
  %0 = tile.and %i, %f : tensor<8xi32>, tensor<8xf32>
  return
}

// -----

func.func @f(%b: tensor<8xi1>, %i: tensor<8xi32>, %u: tensor<8xui8>, %f: tensor<8xf32>, %h: tensor<8xf16>, %g: tensor<8xbf16>, %n: tensor<8xf8E5M2>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.shl' op is defined on integers, found bool_; convert first, as in x.astype(ct.int32)}}
  %0 = tile.shl %b, %b : tensor<8xi1>, tensor<8xi1>
  return
}

// -----

func.func @f(%b: tensor<8xi1>, %i: tensor<8xi32>, %u: tensor<8xui8>, %f: tensor<8xf32>, %h: tensor<8xf16>, %g: tensor<8xbf16>, %n: tensor<8xf8E5M2>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.floor' op is defined on floats, found int32; convert first, as in x.astype(ct.float32)}}
  %0 = tile.floor %i : tensor<8xi32>
  return
}

// -----

func.func @f(%b: tensor<8xi1>, %i: tensor<8xi32>, %u: tensor<8xui8>, %f: tensor<8xf32>, %h: tensor<8xf16>, %g: tensor<8xbf16>, %n: tensor<8xf8E5M2>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.exp' op is defined on integers and floats, found bool_; convert first, as in x.astype(ct.int32)}}
  %0 = tile.exp %b : tensor<8xi1>
  return
}

// -----

func.func @f(%b: tensor<8xi1>, %i: tensor<8xi32>, %u: tensor<8xui8>, %f: tensor<8xf32>, %h: tensor<8xf16>, %g: tensor<8xbf16>, %n: tensor<8xf8E5M2>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.select' op needs a bool_ condition, found int32; compare, as in x != 0}}
  %0 = tile.select %i, %f, %f : tensor<8xi32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @f(%b: tensor<8xi1>, %i: tensor<8xi32>, %u: tensor<8xui8>, %f: tensor<8xf32>, %h: tensor<8xf16>, %g: tensor<8xbf16>, %n: tensor<8xf8E5M2>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.select' op shapes (8,) and (4,) do not broadcast: 8 meets 4}}
  %0 = tile.select %b, %f, %x : tensor<8xi1>, tensor<8xf32>, tensor<4xf32>
  return
}

// -----

func.func @f(%b: tensor<8xi1>, %i: tensor<8xi32>, %u: tensor<8xui8>, %f: tensor<8xf32>, %h: tensor<8xf16>, %g: tensor<8xbf16>, %n: tensor<8xf8E5M2>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.cmp' op is not defined on float8_e5m2, which serves storage, casts and mma only}}
  %0 = tile.cmp lt, %n, %n : tensor<8xf8E5M2>, tensor<8xf8E5M2>
  return
}

// -----

func.func @f(%b: tensor<8xi1>, %i: tensor<8xi32>, %u: tensor<8xui8>, %f: tensor<8xf32>, %h: tensor<8xf16>, %g: tensor<8xbf16>, %n: tensor<8xf8E5M2>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.pow' op is marked `integral`, but its operands are not integers}}
  %0 = tile.pow %f, %f {integral} : tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @f(%a: memref<8xf32>) {
  // expected-error @below {{'tile.add' op the left operand has type 'memref<8xf32>', which is neither a tile nor a scalar of a supported dtype}}
  %0 = tile.add %a, %a : memref<8xf32>, memref<8xf32>
  return
}

// -----

func.func @f(%a: index) {
  // expected-error @below {{'tile.add' op the left operand has type 'index', which is neither a tile nor a scalar of a supported dtype}}
  %0 = tile.add %a, %a : index, index
  return
}

// -----

func.func @f(%b: tensor<8xi1>, %i: tensor<8xi32>, %u: tensor<8xui8>, %f: tensor<8xf32>, %h: tensor<8xf16>, %g: tensor<8xbf16>, %n: tensor<8xf8E5M2>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.reduce' op axis 1 is outside of a tile of 1 dimensions}}
  %0 = tile.reduce add, %f axis 1 : tensor<8xf32>
  return
}

// -----

func.func @f(%b: tensor<8xi1>, %i: tensor<8xi32>, %u: tensor<8xui8>, %f: tensor<8xf32>, %h: tensor<8xf16>, %g: tensor<8xbf16>, %n: tensor<8xf8E5M2>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.reduce' op axis -1 is outside of a tile of 1 dimensions}}
  %0 = tile.reduce add, %f axis -1 : tensor<8xf32>
  return
}

// -----

func.func @f(%b: tensor<8xi1>, %i: tensor<8xi32>, %u: tensor<8xui8>, %f: tensor<8xf32>, %h: tensor<8xf16>, %g: tensor<8xbf16>, %n: tensor<8xf8E5M2>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.reduce' op is not defined on float8_e5m2}}
  %0 = tile.reduce max, %n axis 0 : tensor<8xf8E5M2>
  return
}

// -----

func.func @f(%b: tensor<8xi1>, %i: tensor<8xi32>, %u: tensor<8xui8>, %f: tensor<8xf32>, %h: tensor<8xf16>, %g: tensor<8xbf16>, %n: tensor<8xf8E5M2>, %x: tensor<4xf32>) {
  // expected-error @below {{'tile.reduce' op is marked `is_unsigned`, but reduces float32}}
  %0 = tile.reduce max, %f axis 0 {is_unsigned} : tensor<8xf32>
  return
}

// -----

func.func @f(%f: tensor<8xf32>) {
  // expected-error @below {{'tile.scan' op axis 1 is outside of a tile of 1 dimensions}}
  %0 = tile.scan add, %f axis 1 : tensor<8xf32>
  return
}

// -----

func.func @f(%f: tensor<8xf32>) {
  // expected-error @below {{'tile.scan' op scans by add or mul only}}
  %0 = tile.scan max, %f axis 0 : tensor<8xf32>
  return
}

// -----

func.func @f(%n: tensor<8xf8E5M2>) {
  // expected-error @below {{'tile.scan' op is not defined on float8_e5m2}}
  %0 = tile.scan mul, %n axis 0 : tensor<8xf8E5M2>
  return
}

// -----

func.func @f(%x: tensor<8xf32>, %y: tensor<4xf32>, %f: f32, %i: i32) {
  // expected-error @below {{'tile.reduce_by' op axis 1 is outside of a tile of 1 dimensions}}
  %0 = tile.reduce_by(%x) identity(%f) axis 1 : (tensor<8xf32>, f32) -> f32 {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<8xf32>, %y: tensor<4xf32>, %f: f32, %i: i32) {
  // expected-error @below {{'tile.reduce_by' op a result has shape (8,), expected ()}}
  %0 = tile.reduce_by(%x) identity(%f) axis 0 : (tensor<8xf32>, f32) -> tensor<8xf32> {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<8xf32>, %y: tensor<4xf32>, %f: f32, %i: i32) {
  // expected-error @below {{'tile.reduce_by' op an identity is int32, but its input is float32}}
  %0 = tile.reduce_by(%x) identity(%i) axis 0 : (tensor<8xf32>, i32) -> f32 {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<8xf32>, %y: tensor<4xf32>, %f: f32, %i: i32) {
  // expected-error @below {{'tile.reduce_by' op has no `reverse`}}
  %0 = tile.reduce_by(%x) identity(%f) axis 0 reverse : (tensor<8xf32>, f32) -> f32 {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<8xf32>, %y: tensor<4xf32>, %f: f32, %i: i32) {
  // expected-error @below {{'tile.reduce_by' op has a body that does not make an element of each of its 1 inputs}}
  %0 = tile.reduce_by(%x) identity(%f) axis 0 : (tensor<8xf32>, f32) -> f32 {
  ^bb0(%a: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<8xf32>, %y: tensor<4xf32>, %f: f32, %i: i32) {
  // expected-error @below {{'tile.reduce_by' op has a body with more than arithmetic of scalars in it}}
  %0 = tile.reduce_by(%x) identity(%f) axis 0 : (tensor<8xf32>, f32) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %s = tile.reduce add, %x axis 0 : tensor<8xf32>
    tile.yield %s : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @below {{'tile.cat' op axis 2 is outside of a tile of 2 dimensions}}
  %0 = tile.cat %x, %x axis 2 : tensor<4x8xf32>, tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %y: tensor<4x4xf32>) {
  // expected-error @below {{'tile.cat' op needs two tiles of one dtype and shape, found float32 of shape (4, 8) and float32 of shape (4, 4)}}
  %0 = tile.cat %x, %y axis 1 : tensor<4x8xf32>, tensor<4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %i: i32) {
  // expected-error @below {{'tile.extract' op has 1 indices for parts of shape (4, 4)}}
  %0 = tile.extract %x[%i] : tensor<4x8xf32>, i32 -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %i: i8) {
  // expected-error @below {{'tile.extract' op index 0 is int8; indices of parts are int32 or int64}}
  %0 = tile.extract %x[%i, %i] : tensor<4x8xf32>, i8, i8 -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %v: tensor<8x8xf32>, %i: i32) {
  // expected-error @below {{'tile.insert' op a part of shape (8, 8) is larger than the tile, which has shape (4, 8)}}
  %0 = tile.insert %v, %x[%i, %i] : tensor<8x8xf32>, tensor<4x8xf32>, i32, i32
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %v: tensor<4x4xi32>, %i: i32) {
  // expected-error @below {{'tile.insert' op the part is int32, but the tile is float32}}
  %0 = tile.insert %v, %x[%i, %i] : tensor<4x4xi32>, tensor<4x8xf32>, i32, i32
  return
}

// -----

func.func @f(%x: tensor<4xi1>) {
  // expected-error @below {{'tile.bitcast' op from bool_ to int8: bool_ has no bits to speak of}}
  %0 = tile.bitcast %x : tensor<4xi1> -> tensor<4xi8>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{'tile.bitcast' op from float32 to int64}}
  %0 = tile.bitcast %x : tensor<4xf32> -> tensor<4xi64>
  return
}

// -----

func.func @f(%x: tensor<4xf16>) {
  // expected-error @below {{'tile.flush' op is of float32, found float16}}
  %0 = tile.flush %x : tensor<4xf16>
  return
}

// -----

func.func @f(%x: tensor<4xf16>) {
  // expected-error @below {{'tile.rounded' op is of float32 or float64, found float16}}
  %0 = tile.rounded sqrt rz, %x : tensor<4xf16> from tensor<4xf16>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{'tile.rounded' op computes on 2 operands, found 1}}
  %0 = tile.rounded add rz, %x : tensor<4xf32> from tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: f32) {
  // expected-error @below {{'tile.rounded' op has operands of other types than its result}}
  %0 = tile.rounded add rz, %x, %y : tensor<4xf32> from tensor<4xf32>, f32
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{'tile.pack_to_bytes' op float32 of shape (4,) is not 8 bytes}}
  %0 = tile.pack_to_bytes %x : tensor<4xf32> -> tensor<8xui8>
  return
}

// -----

func.func @f(%x: tensor<4xi8>) {
  // expected-error @below {{'tile.unpack_from_bytes' op needs bytes as a tile of uint8 of one dimension, found int8}}
  %0 = tile.unpack_from_bytes %x : tensor<4xi8> -> tensor<1xf32>
  return
}

// -----

func.func @f(%x: tensor<4xi32>) {
  // expected-error @below {{'tile.maximum' op is marked `ignore_nan`, which is for the extremes of floats}}
  %0 = tile.maximum %x, %x {ignore_nan} : tensor<4xi32>, tensor<4xi32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{'tile.reduce' op is marked `ignore_nan`, which is for the extremes of floats}}
  %0 = tile.reduce add, %x axis 0 {ignore_nan} : tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<16x8xf16>, %b: tensor<8x4xf16>, %c: tensor<16x4xf32>, %d: tensor<8x4xbf16>, %e: tensor<16x4xf64>, %p: tensor<16x8xi16>, %q: tensor<8x4xi16>) {
  // expected-error @below {{'tile.mma' op needs shapes (m, k), (k, n) and (m, n), or these with one batch axis in front; found (16, 8), (16, 8) and (16, 4)}}
  %0 = tile.mma %a, %a, %c : tensor<16x8xf16>, tensor<16x8xf16>, tensor<16x4xf32>
  return
}

// -----

func.func @f(%a: tensor<16x8xf16>, %b: tensor<8x4xf16>, %c: tensor<16x4xf32>, %d: tensor<8x4xbf16>, %e: tensor<16x4xf64>, %p: tensor<16x8xi16>, %q: tensor<8x4xi16>) {
  // expected-error @below {{'tile.mma' op x is float16 and y is bfloat16; they must be the same, or both 8-bit floats or bytes}}
  %0 = tile.mma %a, %d, %c : tensor<16x8xf16>, tensor<8x4xbf16>, tensor<16x4xf32>
  return
}

// -----

func.func @f(%a: tensor<16x8xf16>, %b: tensor<8x4xf16>, %c: tensor<16x4xf32>, %d: tensor<8x4xbf16>, %e: tensor<16x4xf64>, %p: tensor<16x8xi16>, %q: tensor<8x4xi16>) {
  // expected-error @below {{'tile.mma' op inputs of float16 need an accumulator of float32 or float16, found float64}}
  %0 = tile.mma %a, %b, %e : tensor<16x8xf16>, tensor<8x4xf16>, tensor<16x4xf64>
  return
}

// -----

func.func @f(%a: tensor<16x8xf16>, %b: tensor<8x4xf16>, %c: tensor<16x4xf32>, %d: tensor<8x4xbf16>, %e: tensor<16x4xf64>, %p: tensor<16x8xi16>, %q: tensor<8x4xi16>) {
  // expected-error @below {{'tile.mma' op inputs of int16 are not supported; expected float16, bfloat16, tfloat32}}
  %0 = tile.mma %p, %q, %c : tensor<16x8xi16>, tensor<8x4xi16>, tensor<16x4xf32>
  return
}

// -----

func.func @f(%a: tensor<16x8xf16>, %b: tensor<8x4xf16>, %c: tensor<16x4xf32>, %d: tensor<8x4xbf16>, %e: tensor<16x4xf64>, %p: tensor<16x8xi16>, %q: tensor<8x4xi16>) {
  // expected-error @below {{'tile.mma' op is marked unsigned, but multiplies float16}}
  %0 = tile.mma %a, %b, %c {unsigned_lhs} : tensor<16x8xf16>, tensor<8x4xf16>, tensor<16x4xf32>
  return
}

// -----

func.func @f(%x: f32) {
  // expected-error @below {{'tile.print' op has 1 values for 2 places {} in its format}}
  tile.print "{} {}", %x : f32
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.print' op has 0 values, but is_unsigned has 1}}
  tile.print "x" {is_unsigned = array<i1: true>}
  return
}

// -----

func.func @f(%x: f32) {
  // expected-error @below {{'tile.assert' op needs a bool_ condition, found float32; compare, as in x != 0}}
  tile.assert %x, "no" : f32
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.shared_array' op needs a static shape}}
  %0 = tile.shared_array : memref<?xf32, 3>
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.print' op has a format with a single brace or an unknown {:spec}; a brace that is text is doubled}}
  tile.print "a } b"
  return
}

// -----

func.func @f(%x: f32) {
  // expected-error @below {{'tile.print' op has a format with a single brace}}
  tile.print "{x}", %x : f32
  return
}

// -----

func.func @spec_that_writes(%x: i32) {
  // expected-error @below {{'tile.print' op has a format with a single brace or an unknown {:spec}}}
  tile.print "{:n}", %x : i32
  return
}

// -----

func.func @spec_of_another_kind(%x: f32) {
  // expected-error @below {{'tile.print' op shows float32 by {:5d}}}
  tile.print "{:5d}", %x : f32
  return
}

// -----

func.func @f() attributes {tile.kernel} {
  // expected-error @below {{'tile.thread_id' op is about one thread, and this is a kernel of tiles; a SIMT kernel has `tile.simt`}}
  %0 = tile.thread_id 0
  return
}

// -----

func.func @f() attributes {tile.kernel} {
  // expected-error @below {{'tile.sync_threads' op is about one thread}}
  tile.sync_threads
  return
}

// -----

// expected-error @below {{expected 1 to 1024 barriers, found 0}}
func.func @f(%b: !tile.barriers<0>) {
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.alloc_barriers' op expects 0 arrivals; a phase takes 1 to 1048575}}
  %0 = tile.alloc_barriers arrivals 0 : !tile.barriers<4>
  return
}

// -----

func.func @f(%b: !tile.barriers<4>, %i: i32) {
  // expected-error @below {{'tile.barrier_expect' op expects 1048576 bytes; a phase takes 1 to 1048575}}
  tile.barrier_expect %b[%i], 1048576 : !tile.barriers<4>
  return
}

// -----

#line = #tile.linear<offset = [[0, 1], [1, 0]]>
func.func @f(%a: memref<?x?xf32, strided<[?, 1]>>, %s: !tile.buffer<1x2x2xf32, #line>, %b: !tile.barriers<4>, %i: i32) {
  // expected-error @below {{'tile.tma_load' op has 1 indices for an array of 2 dimensions}}
  tile.tma_load %a[%i] into %s[%i] signal %b[%i] : memref<?x?xf32, strided<[?, 1]>>, i32 into !tile.buffer<1x2x2xf32, #line>, !tile.barriers<4>
  return
}

// -----

#line = #tile.linear<offset = [[0, 1], [1, 0]]>
func.func @f(%a: memref<?x?xf16, strided<[?, 1]>>, %s: !tile.buffer<1x2x2xf32, #line>, %b: !tile.barriers<4>, %i: i32) {
  // expected-error @below {{'tile.tma_load' op the tile is float32, but the array is float16}}
  tile.tma_load %a[%i, %i] into %s[%i] signal %b[%i] : memref<?x?xf16, strided<[?, 1]>>, i32, i32 into !tile.buffer<1x2x2xf32, #line>, !tile.barriers<4>
  return
}

// -----

#line = #tile.linear<offset = [[0, 0, 0, 0, 0, 1]]>
func.func @f(%a: memref<1x1x1x1x1x2xf32>, %s: !tile.buffer<1x1x1x1x1x1x2xf32, #line>, %b: !tile.barriers<4>, %i: i32) {
  // expected-error @below {{'tile.tma_load' op copies a tile of 6 dimensions; it takes 1 to 5}}
  tile.tma_load %a[%i, %i, %i, %i, %i, %i] into %s[%i] signal %b[%i] : memref<1x1x1x1x1x2xf32>, i32, i32, i32, i32, i32, i32 into !tile.buffer<1x1x1x1x1x1x2xf32, #line>, !tile.barriers<4>
  return
}

// -----

#line = #tile.linear<offset = [[1], [2]]>
func.func @f(%t: tensor<8x4xf32>, %a: memref<?x?xf32, strided<[?, 1]>>, %s: !tile.buffer<2x4xf32, #line>, %i: i32) {
  // expected-error @below {{'tile.tma_store' op takes boxes of 1 dimensions from a tile of 2}}
  tile.tma_store %t through %s into %a[%i, %i] : tensor<8x4xf32> through !tile.buffer<2x4xf32, #line> into memref<?x?xf32, strided<[?, 1]>>, i32, i32
  return
}

// -----

#line = #tile.linear<offset = [[0, 1], [1, 0]]>
func.func @f(%t: tensor<8x4xf32>, %a: memref<?x?xf32, strided<[?, 1]>>, %s: !tile.buffer<2x2x2xf16, #line>, %i: i32) {
  // expected-error @below {{'tile.tma_store' op puts a tile into a buffer of another dtype}}
  tile.tma_store %t through %s into %a[%i, %i] : tensor<8x4xf32> through !tile.buffer<2x2x2xf16, #line> into memref<?x?xf32, strided<[?, 1]>>, i32, i32
  return
}

// -----

#line = #tile.linear<offset = [[0, 1], [1, 0]]>
func.func @f(%t: tensor<8x4xf32>, %a: memref<?x?xf32, strided<[?, 1]>>, %s: !tile.buffer<2x2x2xf32, #line>, %i: i32) {
  // expected-error @below {{'tile.tma_store' op has 1 indices for an array of 2 dimensions}}
  tile.tma_store %t through %s into %a[%i] : tensor<8x4xf32> through !tile.buffer<2x2x2xf32, #line> into memref<?x?xf32, strided<[?, 1]>>, i32
  return
}

// -----

func.func @f(%b: i1) {
  tile.roles producer_warps 1 producer {
    scf.if %b {
      // expected-error @below {{'tile.barrier' op stands in a producer, to which no other threads come}}
      tile.barrier {tile.copies}
    }
  } consumer {
    tile.barrier {tile.copies}
  }
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.roles' op has 0 producer warps; at least 1 is needed}}
  tile.roles producer_warps 0 producer {
  } consumer {
  }
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.roles' op has 5 consumer groups; that is 1 to 4}}
  tile.roles producer_warps 1 consumer_groups 5 producer {
  } consumer {
  }
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.roles' op moves registers between roles, which takes whole warpgroups, but has 1 producer warps}}
  tile.roles producer_warps 1 registers 40, 232 producer {
  } consumer {
  }
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.roles' op gives a role 42 registers; that is a multiple of 8 from 24 to 256}}
  tile.roles producer_warps 4 registers 42, 232 producer {
  } consumer {
  }
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.roles' op says how many registers one role has, but not the other}}
  "tile.roles"() <{producer_warps = 4 : i32, producer_registers = 40 : i32}> ({
  ^bb0:
  }, {
  ^bb0:
  }) : () -> ()
  return
}

// -----

#s = #tile.linear<offset = [[0, 1], [0, 2], [1, 0], [2, 0]]>
func.func @wgmma_grows(%b: !tile.buffer<1x4x4xbf16, #s>, %i: i32, %acc: tensor<4x4xf32>) {
  // expected-error @below {{'tile.async_mma' op has a result of another type than the tile that it is made in}}
  %d = tile.async_mma %b[%i], %b[%i], %acc : !tile.buffer<1x4x4xbf16, #s>, !tile.buffer<1x4x4xbf16, #s>, tensor<4x4xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @wait_grows(%d: tensor<4x4xf32>) {
  // expected-error @below {{'tile.mma_wait' op has a result of another type than the tile that it is made in}}
  %e = tile.mma_wait %d, 0 : tensor<4x4xf32> -> tensor<4x8xf32>
  return
}

// -----

// expected-error @below {{layout with 21 basis vectors in one group; it has at most 20}}
func.func @long_layout(%x: tensor<2xf32, #tile.linear<register = [[1], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0]]>>) {
  return
}

// -----

// expected-error @below {{'func.func' op has the hint num_warps, which is no integer from 1 to 32}}
func.func @f() attributes {tile.hints = {num_warps = 2147483647 : i32}} {
  return
}

// -----

// expected-error @below {{'func.func' op has no hint warps}}
func.func @f() attributes {tile.hints = {warps = 4 : i32}} {
  return
}

// -----

// expected-error @below {{'func.func' op has num_threads in its launch record, which is no integer from 0 to 1024}}
func.func @f() attributes {tile.launch = {num_threads = 2000 : i32}} {
  return
}

// -----

// expected-error @below {{'func.func' op has no field threads of a launch record}}
func.func @f() attributes {tile.launch = {threads = 32 : i32}} {
  return
}

// -----

// expected-error @below {{'func.func' op has tile.hints, tile.launch or tile.grid that is no dictionary}}
func.func @f() attributes {tile.launch = 3 : i32} {
  return
}

// -----

// expected-error @below {{'func.func' op has no entry order of tile.grid}}
func.func @f() attributes {tile.grid = {raster = array<i32: 0, 1, 2>, schedule = "static", order = 1 : i32}} {
  return
}

// -----

// expected-error @below {{'func.func' op has tile.grid whose raster is not the axes of a grid in some order}}
func.func @f() attributes {tile.grid = {raster = array<i32: 0, 1, 1>, schedule = "static"}} {
  return
}

// -----

// expected-error @below {{'func.func' op has tile.grid without a schedule: launch, static, serpentine or dynamic}}
func.func @f() attributes {tile.grid = {raster = array<i32: 0, 1, 2>}} {
  return
}

// -----

// expected-error @below {{'func.func' op has tile.grid whose cluster_axis is no axis}}
func.func @f() attributes {tile.grid = {raster = array<i32: 0, 1, 2>, schedule = "static", cluster_axis = 3 : i32}} {
  return
}

// -----

// expected-error @below {{'func.func' op has tile.grid whose axes do not go with the schedule "serpentine"}}
func.func @f() attributes {tile.grid = {raster = array<i32: 0, 1, 2>, schedule = "serpentine"}} {
  return
}

// -----

// expected-error @below {{'func.func' op has tile.grid whose axes do not go with the schedule "dynamic"}}
func.func @f() attributes {tile.grid = {raster = array<i32: 0, 1, 2>, schedule = "dynamic", hoist_axis = 1 : i32}} {
  return
}

// -----

// expected-error @below {{'func.func' op has tile.stride_div that is no list of 64-bit integers from 0 to}}
func.func @f(%x: memref<?x?xf32> {tile.stride_div = array<i64: -8, 1>}) {
  return
}

// -----

// expected-error @below {{expected elements of a dtype, found 'index'}}
func.func @f(%x: !tile.buffer<1x8xindex, #tile.linear<offset = [[1], [2], [4]]>>) {
  return
}
// -----
// expected-error @+1 {{has tile.num_warps, which is of one kernel: it stands on that function, in tile.hints or tile.launch}}
module attributes {tile.num_warps = 4 : i32} {}

// -----

// expected-error @below {{expected a buffer of at most 1048576 elements}}
func.func @f(%x: !tile.buffer<1x1073741824x1073741824xf32, #tile.linear<offset = [[0, 1]]>>) {
  return
}

// -----

#line = #tile.linear<offset = [[0, 1], [1, 0]]>
func.func @async_copy_dtype(%a: memref<?x?xf16, strided<[?, 1]>>, %s: !tile.buffer<1x2x2xf32, #line>, %i: i32) {
  // expected-error @below {{'tile.async_copy' op the tile is float32, but the array is float16}}
  tile.async_copy %a[%i, %i] into %s[%i] : memref<?x?xf16, strided<[?, 1]>>, i32, i32 into !tile.buffer<1x2x2xf32, #line>
  return
}

// -----

#line = #tile.linear<offset = [[0, 1], [1, 0]]>
func.func @async_copy_index(%a: memref<?x?xf32, strided<[?, 1]>>, %s: !tile.buffer<1x2x2xf32, #line>, %i: i32) {
  // expected-error @below {{'tile.async_copy' op has 1 indices for an array of 2 dimensions}}
  tile.async_copy %a[%i] into %s[%i] : memref<?x?xf32, strided<[?, 1]>>, i32 into !tile.buffer<1x2x2xf32, #line>
  return
}

// -----

#line = #tile.linear<offset = [[0, 1], [1, 0]]>
func.func @async_gather_dtype(%a: memref<?xf16, strided<[1]>>, %s: !tile.buffer<1x2x2xf32, #line>, %x: tensor<2x2xi32>, %i: i32) {
  // expected-error @below {{'tile.async_gather' op the tile is float32, but the array is float16}}
  tile.async_gather %a[%x] into %s[%i] : memref<?xf16, strided<[1]>>, tensor<2x2xi32> into !tile.buffer<1x2x2xf32, #line>
  return
}

// -----

#line = #tile.linear<offset = [[0, 1], [1, 0]]>
func.func @async_gather_shape(%a: memref<?xf32, strided<[1]>>, %s: !tile.buffer<1x2x2xf32, #line>, %x: tensor<4xi32>, %i: i32) {
  // expected-error @below {{'tile.async_gather' op index 0 has shape (4,), expected (2, 2)}}
  tile.async_gather %a[%x] into %s[%i] : memref<?xf32, strided<[1]>>, tensor<4xi32> into !tile.buffer<1x2x2xf32, #line>
  return
}

// -----

func.func @f(%x: memref<i64>, %l: i64) {
  // expected-error @below {{'tile.atomic_pair' op has 16 bytes, which are loaded or stored; other accesses have 8 at most}}
  %0, %1 = tile.atomic_pair cas relaxed device, %l, %l, %x : memref<i64>
  return
}

// -----

func.func @f(%x: memref<?xi64>, %l: i64) {
  // expected-error @below {{'tile.atomic_pair' op takes a view without axes of int64, the first of its words}}
  %0, %1 = tile.atomic_pair load relaxed device, %l, %l, %x : memref<?xi64>
  return
}

// -----

func.func @f(%x: tensor<8xf32>, %y: tensor<4xf32>) {
  // expected-error @below {{'tile.map' op a tile has shape (4,), expected (8,)}}
  tile.map(%x, %y) : (tensor<8xf32>, tensor<4xf32>) -> () {
  ^bb0(%a: f32, %b: f32):
    tile.yield
  }
  return
}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{'tile.map' op has a body that does not make an element of each result from one of each input}}
  %0 = tile.map(%x) : (tensor<8xf32>) -> tensor<8xi32> {
  ^bb0(%a: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{'tile.map' op has a body in which a thread waits for others}}
  tile.map(%x) : (tensor<8xf32>) -> () {
  ^bb0(%a: f32):
    tile.sync_threads
    tile.yield
  }
  return
}

// -----

func.func @f(%p: i1) {
  // expected-error @below {{'tile.sync_vote' op gives int32, found bool_}}
  %0 = tile.sync_vote count, %p : i1 -> i1
  return
}

// -----

func.func @f(%m: i32, %p: i1) {
  // expected-error @below {{'tile.vote' op gives bool_, found int32}}
  %0 = tile.vote uni, %m, %p -> i32
  return
}

// -----

func.func @f(%m: i32, %x: f4E2M1FN) {
  // expected-error @below {{'tile.match' op has no value of 4 bits; cast it}}
  %0 = tile.match any, %m, %x : f4E2M1FN
  return
}

// -----

func.func @f(%m: i32, %x: f32) {
  // expected-error @below {{'tile.shuffle' op gives what other lanes have, of the value's type}}
  %0 = tile.shuffle xor, %m, %x, %m : f32 -> i32
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.local_array' op makes an array in memory space 5}}
  %0 = tile.local_array : memref<4xf32, 3>
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.shared_array' op has an alignment of 24 bytes; that is a power of two up to 4096}}
  %0 = tile.shared_array {align = 24} : memref<4xf32, 3>
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.dynamic_shared' op gives a row of elements, as memref<?xf32, 3>}}
  %0 = tile.dynamic_shared : memref<?x4xf32, 3>
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.const_array' op gives an array of the value's shape and dtype}}
  %0 = tile.const_array dense<1.0> : tensor<2xf32> -> memref<3xf32, 4>
  return
}

// -----

func.func @f(%x: memref<?xf32>, %o: i64) {
  // expected-error @below {{'tile.view' op gives an array of 1 dimensions, and has 3 extents and strides}}
  %0 = tile.view %x at %o [%o, %o] by [%o] : memref<?xf32> -> memref<?xf32, strided<[?]>>
  return
}

// -----

func.func @f(%x: memref<?xf32>, %o: i64) {
  // expected-error @below {{'tile.view' op has an alignment of 12 bytes; that is a power of two up to 4096}}
  %0 = tile.view %x at %o [%o] by [%o] {align = 12 : i64} : memref<?xf32> -> memref<?xf32, strided<[?]>>
  return
}

// -----

func.func @f(%x: memref<?xf32>, %o: i64) {
  // expected-error @below {{'tile.view' op stays in the memory space of its array}}
  %0 = tile.view %x at %o [%o] by [%o] : memref<?xf32> -> memref<?xf32, strided<[?]>, 3>
  return
}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{'tile.threads' op has a body that takes no shared array of each tile's shape and dtype, or gives other tiles}}
  %0 = tile.threads(%x) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%s: memref<8xf32>):
    tile.yield
  }
  return
}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{'tile.threads' op has a body that reads a tile; a thread reads it as a shared array}}
  tile.threads() : () -> () {
    %0 = tile.add %x, %x : tensor<8xf32>, tensor<8xf32>
    tile.yield
  }
  return
}
