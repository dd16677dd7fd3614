// A loop carries one register for neighbours that are equal in each iteration: counts of what a mask lets through, which
// cannot part a vector of four, as %n is a multiple of 8. So does the loop behind it.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-plan-block,tile-assign-layouts),tile-to-nvvm)' | FileCheck %s

// CHECK-LABEL: llvm.func @counts
// CHECK: llvm.br ^bb2({{.*}} : i32{{((, f32){10})}})
// CHECK: llvm.br ^bb{{[0-9]+}}({{.*}} : i32, f32, f32)
// CHECK-LABEL: llvm.func @parted
// CHECK: llvm.br ^bb2({{.*}} : i32{{((, f32){8})}})
// CHECK-LABEL: llvm.func @takes_turns
// CHECK: llvm.br ^bb2({{.*}} : i32{{((, f32){16})}})
!A = memref<?xf32, strided<[1]>>
#hints = {num_warps = 4 : i32}
module attributes {tile.target = "sm_90a"} {
  func.func @counts(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16>}, %n: i32 {tile.div = 8 : i32}, %trips: i32) attributes {tile.kernel, tile.hints = #hints} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c1024 = arith.constant 1024 : i32
    %zeros = arith.constant dense<0.0> : tensor<1024xf32>
    %ones = arith.constant dense<1.0> : tensor<1024xf32>
    %iota = tile.iota : tensor<1024xi32>
    %ns = tensor.splat %n : tensor<1024xi32>
    %both:2 = scf.for %j = %c0 to %trips step %c1 iter_args(%count = %zeros, %sum = %zeros) -> (tensor<1024xf32>, tensor<1024xf32>) : i32 {
      %first = arith.muli %j, %c1024 : i32
      %firsts = tensor.splat %first : tensor<1024xi32>
      %at = arith.addi %firsts, %iota : tensor<1024xi32>
      %mask = arith.cmpi slt, %at, %ns : tensor<1024xi32>
      %a = tile.gather %x[%at] mask %mask : tensor<1024xi1> else %zeros : tensor<1024xf32> {check_bounds} : !A, tensor<1024xi32> -> tensor<1024xf32>
      %one = arith.select %mask, %ones, %zeros : tensor<1024xi1>, tensor<1024xf32>
      %more = arith.addf %count, %one : tensor<1024xf32>
      %part = arith.divf %a, %more : tensor<1024xf32>
      %next = arith.addf %sum, %part : tensor<1024xf32>
      scf.yield %more, %next : tensor<1024xf32>, tensor<1024xf32>
    }
    %again = scf.for %j = %c0 to %trips step %c1 iter_args(%count = %both#0) -> (tensor<1024xf32>) : i32 {
      %more = arith.mulf %count, %count : tensor<1024xf32>
      scf.yield %more : tensor<1024xf32>
    }
    %out = arith.divf %both#1, %again : tensor<1024xf32>
    tile.scatter %out, %x[%iota] {check_bounds} : tensor<1024xf32>, !A, tensor<1024xi32>
    return
  }
  // A mask that may end within a vector.
  func.func @parted(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16>}, %n: i32, %trips: i32) attributes {tile.kernel, tile.hints = #hints} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zeros = arith.constant dense<0.0> : tensor<1024xf32>
    %ones = arith.constant dense<1.0> : tensor<1024xf32>
    %iota = tile.iota : tensor<1024xi32>
    %ns = tensor.splat %n : tensor<1024xi32>
    %mask = arith.cmpi slt, %iota, %ns : tensor<1024xi32>
    %count = scf.for %j = %c0 to %trips step %c1 iter_args(%count = %zeros) -> (tensor<1024xf32>) : i32 {
      %one = arith.select %mask, %ones, %zeros : tensor<1024xi1>, tensor<1024xf32>
      %more = arith.addf %count, %one : tensor<1024xf32>
      scf.yield %more : tensor<1024xf32>
    }
    tile.scatter %count, %x[%iota] {check_bounds} : tensor<1024xf32>, !A, tensor<1024xi32>
    return
  }
  // Equal at the start, and what one carries goes to the other: after an iteration neither is.
  func.func @takes_turns(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 16>}, %trips: i32) attributes {tile.kernel, tile.hints = #hints} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zeros = arith.constant dense<0.0> : tensor<1024xf32>
    %iota = tile.iota : tensor<1024xi32>
    %both:2 = scf.for %j = %c0 to %trips step %c1 iter_args(%u = %zeros, %v = %zeros) -> (tensor<1024xf32>, tensor<1024xf32>) : i32 {
      %a = tile.gather %x[%iota] {check_bounds} : !A, tensor<1024xi32> -> tensor<1024xf32>
      %w = arith.addf %a, %v : tensor<1024xf32>
      scf.yield %w, %u : tensor<1024xf32>, tensor<1024xf32>
    }
    tile.scatter %both#1, %x[%iota] {check_bounds} : tensor<1024xf32>, !A, tensor<1024xi32>
    return
  }
}
