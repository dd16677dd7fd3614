// RUN: tw-opt %s --pass-pipeline='builtin.module(tile-legalize,canonicalize,cse)' | FileCheck %s

// CHECK: tile.check_sites = ["read outside\090\09\09block\09loc(

// An access that promised to stay inside is masked, and the first element that is not is recorded.
// CHECK-LABEL: func.func @gather
func.func @gather(%a: memref<?xf32>, %i: tensor<16xi32>, %report: memref<?xi64>, %owners: memref<?xi32>) -> tensor<16xf32> attributes {tile.hints = {check = 1 : i32}} {
  // CHECK: %[[INSIDE:.*]] = arith.cmpi ult
  // CHECK: %[[FIRST:.*]] = tile.reduce min
  // CHECK: scf.if
  // CHECK: tile.atomic add relaxed device, {{.*}}, %arg2
  // CHECK: tile.scatter {{.*}}, %arg2[{{.*}}] {check_bounds}
  // CHECK: tile.gather %arg0[%arg1] mask %[[INSIDE]]
  %t = tile.gather %a[%i] : memref<?xf32>, tensor<16xi32> -> tensor<16xf32>
  return %t : tensor<16xf32>
}

// The first block to store an element owns it.
// CHECK-LABEL: func.func @store
func.func @store(%b: memref<?xf32>, %x: tensor<16xf32>, %i: i32, %report: memref<?xi64>, %owners: memref<?xi32>) attributes {tile.hints = {check = 1 : i32}} {
  // CHECK: tile.atomic cas relaxed device, {{.*}}, %arg4[{{.*}}] expected
  // CHECK: tile.store %arg1, %arg0[%arg2]
  tile.store %x, %b[%i] : tensor<16xf32>, memref<?xf32>, i32
  return
}

// A loop carries along which sums depend on padding.
// CHECK-LABEL: func.func @padding
func.func @padding(%a: memref<?xf32>, %b: memref<?xf32>, %n: i32, %report: memref<?xi64>, %owners: memref<?xi32>) attributes {tile.hints = {check = 1 : i32}} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  // CHECK: scf.for {{.*}} -> (tensor<16xf32>, tensor<16xi1>)
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<16xf32>) : i32 {
    %x = tile.load %a[%k] : memref<?xf32>, i32 -> tensor<16xf32>
    %next = arith.addf %s, %x : tensor<16xf32>
    scf.yield %next : tensor<16xf32>
  }
  tile.store %sum, %b[%c0] : tensor<16xf32>, memref<?xf32>, i32
  return
}

// Kernels without the hint stay as they are.
// CHECK-LABEL: func.func @other
// CHECK-NEXT: tile.gather %arg0[%arg1] :
func.func @other(%a: memref<?xf32>, %i: tensor<16xi32>) -> tensor<16xf32> {
  %t = tile.gather %a[%i] : memref<?xf32>, tensor<16xi32> -> tensor<16xf32>
  return %t : tensor<16xf32>
}
