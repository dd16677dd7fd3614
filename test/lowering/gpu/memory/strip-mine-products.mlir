// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-strip-mine))' | FileCheck %s

// The loop's iterations become steps: its index is that of what they load.
!A = memref<?x?xf32, strided<[?, 1]>>
module {
// CHECK-LABEL: @steps
func.func @steps(%A: !A, %B: !A, %i: i32, %zero: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {tile.kernel, tile.product_step = 128 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c9 = arith.constant 9 : i32
  // CHECK: scf.for %[[S:arg[0-9]+]] =
  %d = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    // CHECK: tile.load %{{.*}}[%{{.*}}, %[[S]]] {{.*}} -> tensor<64x32xf32>
    %a = tile.load %A[%i, %k] padding zero : !A, i32, i32 -> tensor<64x128xf32>
    // CHECK: tile.load %{{.*}}[%[[S]], %{{.*}}] {{.*}} -> tensor<32x64xf32>
    %b = tile.load %B[%k, %i] padding zero : !A, i32, i32 -> tensor<128x64xf32>
    // CHECK: tile.mma {{.*}} tensor<64x32xf32>, tensor<32x64xf32>, tensor<64x64xf32>
    %e = tile.mma %a, %b, %acc : tensor<64x128xf32>, tensor<128x64xf32>, tensor<64x64xf32>
    scf.yield %e : tensor<64x64xf32>
  }
  return %d : tensor<64x64xf32>
}
}

// -----

// What is computed element by element, and transposed, has parts, too; a loop of its own takes the steps.
!A = memref<?x?xf32, strided<[?, 1]>>
module {
// CHECK-LABEL: @own
func.func @own(%A: !A, %i: i32, %r: tensor<64x1xf32>, %zero: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {tile.kernel, tile.product_step = 128 : i32} {
  // CHECK: scf.for %[[S:arg[0-9]+]] = {{.*}} iter_args
  // CHECK: %[[A:.*]] = tile.load {{.*}} -> tensor<64x32xf32>
  // CHECK: %[[B:.*]] = tile.broadcast {{.*}} -> tensor<64x32xf32>
  // CHECK: %[[X:.*]] = arith.mulf %[[A]], %[[B]]
  // CHECK: tile.mma %[[X]]
  %a = tile.load %A[%i, %i] padding zero : !A, i32, i32 -> tensor<64x128xf32>
  %s = tile.broadcast %r : tensor<64x1xf32> -> tensor<64x128xf32>
  %x = arith.mulf %a, %s : tensor<64x128xf32>
  %t = tile.permute %a [1, 0] : tensor<64x128xf32>
  %d = tile.mma %x, %t, %zero : tensor<64x128xf32>, tensor<128x64xf32>, tensor<64x64xf32>
  return %d : tensor<64x64xf32>
}
}

// -----

// A store between a load and the product keeps it whole.
!A = memref<?x?xf32, strided<[?, 1]>>
module {
// CHECK-LABEL: @written
func.func @written(%A: !A, %i: i32, %zero: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {tile.kernel, tile.product_step = 128 : i32} {
  // CHECK-NOT: scf.for
  %a = tile.load %A[%i, %i] padding zero : !A, i32, i32 -> tensor<64x128xf32>
  %b = tile.load %A[%i, %i] padding zero : !A, i32, i32 -> tensor<128x64xf32>
  tile.store %zero, %A[%i, %i] : tensor<64x64xf32>, !A, i32, i32
  // CHECK: tile.mma {{.*}} tensor<64x128xf32>
  %d = tile.mma %a, %b, %zero : tensor<64x128xf32>, tensor<128x64xf32>, tensor<64x64xf32>
  return %d : tensor<64x64xf32>
}
}
