// Which tiles get a buffer: one loop nest a root, and what costs much is computed once.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(tile-to-cpu)' | FileCheck %s

!array = memref<?x?xf32, strided<[?, 1]>>

// Softmax is three loops and one buffer: the second one sums the exponentials and keeps them on the way.
// CHECK-LABEL: func.func @softmax
// CHECK-SAME: scratch_bytes = 4224
// CHECK: scf.for
// CHECK: scf.for {{.*}} iter_args
// CHECK: arith.cmpf ogt
// CHECK: scf.for {{.*}} iter_args
// CHECK: "llvm.ldexp.v16f32.v16i32"
// CHECK: llvm.store {{.*}} : vector<16xf32>, !llvm.ptr
// CHECK: arith.addf
// CHECK: scf.for
// CHECK-NOT: ldexp
// CHECK: arith.divf
// CHECK: llvm.intr.masked.store
// CHECK-NOT: scf.for
module attributes {tile.target = "cpu:x86-64-v4"} {
  func.func @softmax(%a: !array) attributes {tile.kernel} {
    %i = tile.block_id 0
    %c0 = arith.constant 0 : i32
    %x = tile.load %a[%i, %c0] padding neg_inf : !array, i32, i32 -> tensor<1x1024xf32>
    %m = tile.reduce max, %x axis 1 : tensor<1x1024xf32>
    %m2 = tile.reshape %m : tensor<1xf32> -> tensor<1x1xf32>
    %mb = tile.broadcast %m2 : tensor<1x1xf32> -> tensor<1x1024xf32>
    %y = arith.subf %x, %mb : tensor<1x1024xf32>
    %e = math.exp %y : tensor<1x1024xf32>
    %s = tile.reduce add, %e axis 1 : tensor<1x1024xf32>
    %s2 = tile.reshape %s : tensor<1xf32> -> tensor<1x1xf32>
    %sb = tile.broadcast %s2 : tensor<1x1xf32> -> tensor<1x1024xf32>
    %q = arith.divf %e, %sb : tensor<1x1024xf32>
    tile.store %q, %a[%i, %c0] : tensor<1x1024xf32>, !array, i32, i32
    return
  }
}

// -----

!array = memref<?x?xf32, strided<[?, 1]>>

// An accumulator is updated in its place: 3 buffers of 4 KiB, and no copy in the loop. The product is a function, and
// reads tiles that lie whole in their arrays there; it takes no steps behind the ends of both.
// CHECK: func.func private @tw_mma_1x32x32x32_f32
// CHECK: iter_args
// CHECK-COUNT-12: math.fma
// CHECK-LABEL: func.func @gemm
// CHECK-SAME: scratch_bytes = 12288
// CHECK: %[[LEFT:.*]] = arith.maxsi {{.*}} : i32
// CHECK: %[[STEPS:.*]] = arith.extui %[[LEFT]] : i32 to i64
// CHECK-COUNT-2: scf.if {{.*}} -> (!llvm.ptr, i64)
// CHECK: call @tw_mma_1x32x32x32_f32
// CHECK-NEXT: }
module attributes {tile.target = "cpu:x86-64-v4"} {
  func.func @gemm(%a: !array, %b: !array, %c: !array, %n: i32) attributes {tile.kernel} {
    %i = tile.block_id 0
    %j = tile.block_id 1
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<32x32xf32>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {
      %x = tile.load %a[%i, %k] padding zero : !array, i32, i32 -> tensor<32x32xf32>
      %y = tile.load %b[%k, %j] padding zero : !array, i32, i32 -> tensor<32x32xf32>
      %d = tile.mma %x, %y, %acc : tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>
      scf.yield %d : tensor<32x32xf32>
    }
    tile.store %r, %c[%i, %j] : tensor<32x32xf32>, !array, i32, i32
    return
  }
}

// -----

!array = memref<?x?xf32, strided<[?, 1]>>

// Where many rows are multiplied by it, the right operand is copied into panels of 64 columns: from its array if it lies
// whole in it, else strip by strip. What is computed from narrow floats goes there, too.
// CHECK-LABEL: func.func @panels
// CHECK: scf.if {{.*}} -> (!llvm.ptr, i64)
// CHECK: scf.if %{{[0-9]*}} {
// CHECK: scf.for %{{.*}} = %c0_i64 to %c2_i64
// CHECK: scf.for %{{.*}} = %c0_i64 to %c32_i64
// CHECK: } else {
// CHECK: llvm.intr.masked.load
// CHECK: call @tw_mma_1x64x128x32_f32
// CHECK: scf.for %{{.*}} = %c0_i64 to %c2_i64
// CHECK: scf.for %{{.*}} = %c0_i64 to %c32_i64
// CHECK: -> vector<16xi16>
// CHECK: llvm.store {{.*}} : vector<16xf32>
// CHECK: call @tw_mma_1x64x128x32_f32
module attributes {tile.target = "cpu:x86-64-v4"} {
  func.func @panels(%a: !array, %b: !array, %n: memref<?x?xbf16, strided<[?, 1]>>, %c: !array) attributes {tile.kernel} {
    %i = tile.block_id 0
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : tensor<64x128xf32>
    %x = tile.load %a[%i, %c0] padding zero : !array, i32, i32 -> tensor<64x32xf32>
    %y = tile.load %b[%c0, %i] padding zero : !array, i32, i32 -> tensor<32x128xf32>
    %d = tile.mma %x, %y, %zero : tensor<64x32xf32>, tensor<32x128xf32>, tensor<64x128xf32>
    %l = tile.load %n[%i, %c0] : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 -> tensor<64x32xbf16>
    %r = tile.load %n[%c0, %i] : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 -> tensor<32x128xbf16>
    %e = tile.mma %l, %r, %d : tensor<64x32xbf16>, tensor<32x128xbf16>, tensor<64x128xf32>
    tile.store %e, %c[%i, %c0] : tensor<64x128xf32>, !array, i32, i32
    return
  }
}

// -----

!array = memref<?x?xf32, strided<[?, 1]>>

// A thread keeps the panels for the blocks that follow: behind its other scratch memory, with the tile that they are.
// CHECK-LABEL: func.func @kept
// CHECK-SAME: no_alias = [{array = {bits = 32 : i32, rank = 2 : i32, word = 5 : i32}
// CHECK: %[[KEPT:.*]] = llvm.getelementptr %arg4[{{[1-9][0-9]*}}]
// CHECK: "llvm.intr.memset"(%[[KEPT]], %c-1_i8, %c256_i64)
// CHECK: scf.for
// CHECK: %[[PLACE:.*]] = arith.minui %{{.*}}, %c31_i64
// CHECK: %[[TAG:.*]] = arith.ori
// CHECK: %[[AT:.*]] = llvm.getelementptr %[[KEPT]][%[[PLACE]]]
// CHECK: %[[OTHER:.*]] = arith.cmpi ne, %{{.*}}, %[[TAG]]
// CHECK: %[[FILL:.*]] = arith.ori %{{.*}}, %[[OTHER]]
// CHECK: scf.if %[[FILL]]
// CHECK: llvm.store %[[TAG]], %[[AT]]
// CHECK: call @tw_mma_1x64x128x64_f32
module attributes {tile.target = "cpu:x86-64-v4"} {
  func.func @kept(%a: !array, %b: !array, %c: !array) attributes {tile.kernel} {
    %i = tile.block_id 0
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : tensor<64x128xf32>
    %x = tile.load %a[%i, %c0] padding zero : !array, i32, i32 -> tensor<64x64xf32>
    %y = tile.load %b[%c0, %c0] padding zero : !array, i32, i32 -> tensor<64x128xf32>
    %d = tile.mma %x, %y, %zero : tensor<64x64xf32>, tensor<64x128xf32>, tensor<64x128xf32>
    tile.store %d, %c[%i, %c0] : tensor<64x128xf32>, !array, i32, i32
    return
  }
}

// -----

!array = memref<?x?xf32, strided<[?, 1]>>

// Rows and columns that lie behind the array in which the result is stored are left out.
// CHECK-LABEL: func.func private @tw_mma_1x32x32x32_f32
// CHECK-SAME: %[[ROWS:arg7]]: i64, %[[COLUMNS:arg8]]: i64
// CHECK: %[[SEEN:.*]] = arith.addi %[[COLUMNS]], %c31_i64
// CHECK: %[[PANELS:.*]] = arith.divui %[[SEEN]], %c32_i64
// CHECK: scf.for %{{.*}} = %c0_i64 to %[[PANELS]]
// CHECK: %[[END:.*]] = arith.minsi %[[ROWS]], %c30_i64
// CHECK: scf.for %{{.*}} = %c0_i64 to %[[END]] step %c6_i64
// CHECK-LABEL: func.func @stored
// CHECK: %[[LEFT:.*]] = arith.minsi %{{.*}}, %c32_i64
// CHECK: call @tw_mma_1x32x32x32_f32
module attributes {tile.target = "cpu:x86-64-v4"} {
  func.func @stored(%a: !array, %b: !array, %c: !array) attributes {tile.kernel} {
    %i = tile.block_id 0
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : tensor<32x32xf32>
    %x = tile.load %a[%i, %c0] padding zero : !array, i32, i32 -> tensor<32x32xf32>
    %y = tile.load %b[%c0, %c0] padding zero : !array, i32, i32 -> tensor<32x32xf32>
    %d = tile.mma %x, %y, %zero : tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>
    %e = arith.negf %d : tensor<32x32xf32>
    tile.store %e, %c[%i, %c0] : tensor<32x32xf32>, !array, i32, i32
    return
  }
}

// -----

!array = memref<?x?xf32, strided<[?, 1]>>

// Where columns of right operands run along x, blocks go along y first.
// CHECK-LABEL: func.func @along_y
// CHECK: %[[Y:.*]] = llvm.getelementptr %arg1[1]
// CHECK: %[[ROWS:.*]] = llvm.load %[[Y]]
// CHECK: scf.for %[[BLOCK:.*]] = %arg2 to %arg3
// CHECK: %[[EXTENT:.*]] = arith.extui %[[ROWS]]
// CHECK: arith.divui %[[BLOCK]], %[[EXTENT]]
module attributes {tile.target = "cpu:x86-64-v4"} {
  func.func @along_y(%a: !array, %b: !array, %c: !array) attributes {tile.kernel} {
    %j = tile.block_id 0
    %i = tile.block_id 1
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %x = tile.load %a[%i, %c0] padding zero : !array, i32, i32 -> tensor<64x64xf32>
    %y = tile.load %b[%c0, %j] padding zero : !array, i32, i32 -> tensor<64x64xf32>
    %d = tile.mma %x, %y, %zero : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
    tile.store %d, %c[%i, %j] : tensor<64x64xf32>, !array, i32, i32
    return
  }
}

// -----

!bytes = memref<?x?xi8, strided<[?, 1]>>

// Bytes multiply as pairs of 16 bits, of two steps of k: half as many.
// CHECK: func.func private @tw_mma_1x16x64x16_i16x2
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.pmaddw.d.512"({{.*}}) : (vector<32xi16>, vector<32xi16>) -> vector<16xi32>
// CHECK-LABEL: func.func @bytes
// CHECK: arith.extsi {{.*}} vector<16xi8> to vector<16xi16>
// CHECK: arith.extui {{.*}} vector<16xi8> to vector<16xi32>
// CHECK: arith.shli
// CHECK: call @tw_mma_1x16x64x16_i16x2
module attributes {tile.target = "cpu:x86-64-v4"} {
  func.func @bytes(%a: !bytes, %b: !bytes, %c: memref<?x?xi32, strided<[?, 1]>>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0> : tensor<16x64xi32>
    %x = tile.load %a[%c0, %c0] : !bytes, i32, i32 -> tensor<16x32xi8>
    %y = tile.load %b[%c0, %c0] : !bytes, i32, i32 -> tensor<32x64xi8>
    %d = tile.mma %x, %y, %zero {unsigned_rhs} : tensor<16x32xi8>, tensor<32x64xi8>, tensor<16x64xi32>
    tile.store %d, %c[%c0, %c0] : tensor<16x64xi32>, memref<?x?xi32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!array = memref<?x?xf32, strided<[?, 1]>>

// A transpose goes through registers, block by block.
// CHECK: func.func private @tw_transpose_f32_32to1_64to0
// CHECK-COUNT-64: vector.shuffle
// CHECK-LABEL: func.func @transpose
// CHECK: call @tw_transpose_f32_32to1_64to0
module attributes {tile.target = "cpu:x86-64-v4"} {
  func.func @transpose(%a: !array, %b: !array) attributes {tile.kernel} {
    %i = tile.block_id 0
    %c0 = arith.constant 0 : i32
    %x = tile.load %a[%i, %c0] : !array, i32, i32 -> tensor<64x32xf32>
    %t = tile.permute %x [1, 0] : tensor<64x32xf32>
    tile.store %t, %b[%c0, %i] : tensor<32x64xf32>, !array, i32, i32
    return
  }
}

// -----

!row = memref<?xf32, strided<[1]>>

// A function of the user's takes neighbours together, so that their order is kept, and then what came before them.
// CHECK-LABEL: func.func @reduce_by
// CHECK: scf.for {{.*}} iter_args(%[[SO_FAR:.*]] = {{.*}}) -> (f32)
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 2, 4, 6, 8, 10, 12, 14]
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [1, 3, 5, 7, 9, 11, 13, 15]
// CHECK: arith.subf %{{.*}}, %{{.*}} : vector<8xf32>
// CHECK: arith.subf %[[SO_FAR]], %{{.*}} : f32
module attributes {tile.target = "cpu:x86-64-v4"} {
  func.func @reduce_by(%a: !row) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant 0.0 : f32
    %x = tile.load %a[%c0] : !row, i32 -> tensor<64xf32>
    %s = tile.reduce_by(%x) identity(%zero) axis 0 : (tensor<64xf32>, f32) -> f32 {
    ^bb0(%p: f32, %q: f32):
      %d = arith.subf %p, %q : f32
      tile.yield %d : f32
    }
    %b = tensor.splat %s : tensor<1xf32>
    tile.store %b, %a[%c0] : tensor<1xf32>, !row, i32
    return
  }
}

// -----

!row = memref<?xf32, strided<[1]>>

// A part of a tile is read where it lies: nothing is computed of the other parts. What is loaded may be stored to.
// CHECK-LABEL: func.func @extract
// CHECK-SAME: scratch_bytes = 4096
// CHECK-COUNT-1: arith.mulf
// CHECK-NOT: arith.mulf
module attributes {tile.target = "cpu:x86-64-v4"} {
  func.func @extract(%a: !row) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %i = tile.block_id 0
    %x = tile.load %a[%c0] : !row, i32 -> tensor<1024xf32>
    %y = arith.mulf %x, %x : tensor<1024xf32>
    %e = tile.extract %y[%i] : tensor<1024xf32>, i32 -> tensor<16xf32>
    tile.store %e, %a[%c0] : tensor<16xf32>, !row, i32
    return
  }
}

// -----

!row = memref<?xf32, strided<[1]>>

// A tile of an array in shared memory, which no launch passes: nothing is assumed of it, and it is read first.
// CHECK-LABEL: func.func @from_shared
// CHECK: llvm.intr.masked.store
module attributes {tile.target = "cpu:x86-64-v4"} {
  func.func @from_shared(%a: !row, %b: !row) attributes {tile.kernel, tile.split} {
    %c0 = arith.constant 0 : i32
    %x = tile.load %a[%c0] : !row, i32 -> tensor<4xf32>
    %s = tile.shared_array : memref<4xf32, 3>
    tile.store %x, %s[%c0] : tensor<4xf32>, memref<4xf32, 3>, i32
    %y = tile.load %s[%c0] : memref<4xf32, 3>, i32 -> tensor<4xf32>
    tile.store %y, %b[%c0] : tensor<4xf32>, !row, i32
    return
  }
}
