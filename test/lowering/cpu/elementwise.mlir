// Loads, arithmetic and the store of one expression share one loop over strips of a register.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(tile-to-cpu)' | FileCheck %s

!array = memref<?xf32, strided<[1]>>

// CHECK-LABEL: func.func @add
// CHECK-SAME: (%[[WORDS:.*]]: !llvm.ptr, %[[GRID:.*]]: !llvm.ptr, %[[FIRST:.*]]: i64, %[[LAST:.*]]: i64, %[[SCRATCH:.*]]: !llvm.ptr {llvm.noalias})
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[LAST]]
// CHECK: scf.for
// A whole strip is read without a mask, one at the edge with one, one behind the array from where there is memory.
// CHECK: scf.if
// CHECK: llvm.load {{.*}} -> vector<16xf32>
// CHECK: %[[AT:.*]] = arith.select %{{.*}} : !llvm.ptr
// CHECK: llvm.intr.masked.load %[[AT]]
// CHECK: arith.addf {{.*}} : vector<16xf32>
// CHECK: llvm.intr.masked.store
// CHECK-NOT: scf.for
module attributes {tile.target = "cpu:x86-64-v4"} {
  func.func @add(%a: !array, %b: !array, %c: !array) attributes {tile.kernel} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] : !array, i32 -> tensor<256xf32>
    %y = tile.load %b[%i] : !array, i32 -> tensor<256xf32>
    %z = arith.addf %x, %y : tensor<256xf32>
    tile.store %z, %c[%i] : tensor<256xf32>, !array, i32
    return
  }
}

// -----

!array = memref<?xbf16, strided<[1]>>

// bf16 computes in f32 and is rounded by integers; AVX2 has 8 lanes.
// CHECK-LABEL: func.func @narrow
// CHECK: llvm.load {{.*}} -> vector<8xi16>
// CHECK: arith.extui {{.*}} : vector<8xi16> to vector<8xi32>
// CHECK: arith.mulf {{.*}} : vector<8xf32>
// CHECK: arith.trunci {{.*}} : vector<8xi32> to vector<8xi16>
module attributes {tile.target = "cpu:x86-64-v3"} {
  func.func @narrow(%a: !array) attributes {tile.kernel} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] : !array, i32 -> tensor<64xbf16>
    %y = arith.mulf %x, %x : tensor<64xbf16>
    tile.store %y, %a[%i] : tensor<64xbf16>, !array, i32
    return
  }
}

// -----

!array = memref<?xi32, strided<[1]>>

// No divisor traps: zero, and -1 under the least number, become 1.
// CHECK-LABEL: func.func @divide
// CHECK: arith.select {{.*}} : vector<16xi1>, vector<16xi32>
// CHECK: arith.divf {{.*}} : vector<16xf64>
// CHECK-NOT: arith.divsi
module attributes {tile.target = "cpu:x86-64-v4"} {
  func.func @divide(%a: !array, %b: !array) attributes {tile.kernel} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] : !array, i32 -> tensor<64xi32>
    %y = tile.load %b[%i] : !array, i32 -> tensor<64xi32>
    %z = arith.divsi %x, %y : tensor<64xi32>
    tile.store %z, %a[%i] : tensor<64xi32>, !array, i32
    return
  }
}

// -----

!array = memref<?xf64, strided<[1]>>

// Functions of f64 are polynomials, too.
// CHECK-LABEL: func.func @f64
// CHECK: "llvm.ldexp.v16f64.v16i32"
// CHECK-NOT: "llvm.{{exp|tanh}}
// CHECK: llvm.store
module attributes {tile.target = "cpu:x86-64-v4"} {
  func.func @f64(%a: !array) attributes {tile.kernel} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] : !array, i32 -> tensor<64xf64>
    %e = math.exp %x : tensor<64xf64>
    %t = math.tanh %e : tensor<64xf64>
    tile.store %t, %a[%i] : tensor<64xf64>, !array, i32
    return
  }
}

// -----

!array = memref<?xf32, strided<[1]>>

// Powers below all numbers are zero in the end; zero is what lanes compute until then.
// CHECK-LABEL: func.func @powers
// CHECK: %[[LOW:.*]] = arith.cmpf olt, %[[X:.*]], %{{.*}} : vector<16xf32>
// CHECK: arith.select %[[LOW]], %[[ZERO:.*]], %[[X]]
// CHECK: %[[POWER:.*]] = llvm.call_intrinsic "llvm.ldexp.v16f32.v16i32"
// CHECK: arith.select %[[LOW]], %[[ZERO]], %[[POWER]]
module attributes {tile.target = "cpu:x86-64-v4"} {
  func.func @powers(%a: !array) attributes {tile.kernel} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] : !array, i32 -> tensor<64xf32>
    %e = math.exp %x : tensor<64xf32>
    tile.store %e, %a[%i] : tensor<64xf32>, !array, i32
    return
  }
}
