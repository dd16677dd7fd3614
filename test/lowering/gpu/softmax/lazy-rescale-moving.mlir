// A bias by the distance to a key grows with the loop, and the maximum with it: each iteration finds it. A mask by position
// adds one of two numbers, which is no such term.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-online-softmax),canonicalize,cse)' 2>/dev/null | FileCheck %s
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-online-softmax))' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: remark: 'arith.maximumf' op is found in each iteration, for a term of its scores moves with the loop
// REMARK-NOT: is found in each iteration

!A = memref<?x?xf16, strided<[?, 1]>>
!F = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: @distance
// CHECK-NOT: tile.warp_any
// CHECK: tile.reduce max
module attributes {tile.target = "sm_90a"} {
  func.func @distance(%q: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %k: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !F, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %none = arith.constant dense<0.0> : tensor<64x1xf32>
    %low = arith.constant dense<0xFF800000> : tensor<64x1xf32>
    %slope = arith.constant dense<0.25> : tensor<64x64xf32>
    %lanes = tile.iota : tensor<64xi32>
    %a = tile.load %q[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
    %r:3 = scf.for %j = %c0 to %n step %c1 iter_args(%m = %low, %l = %none, %acc = %zero) -> (tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x64xf32>) : i32 {
      %b = tile.load %k[%j, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
      %bt = tile.permute %b [1, 0] : tensor<64x64xf16>
      %dots = tile.mma %a, %bt, %zero : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
      %first = arith.muli %j, %c64 : i32
      %firsts = tensor.splat %first : tensor<64xi32>
      %columns = arith.addi %firsts, %lanes : tensor<64xi32>
      %row = tile.reshape %columns : tensor<64xi32> -> tensor<1x64xi32>
      %places = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
      %far = arith.sitofp %places : tensor<64x64xi32> to tensor<64x64xf32>
      %bias = arith.mulf %far, %slope : tensor<64x64xf32>
      %s = arith.addf %dots, %bias : tensor<64x64xf32>
      %x = tile.reduce max, %s axis 1 : tensor<64x64xf32>
      %xr = tile.reshape %x : tensor<64xf32> -> tensor<64x1xf32>
      %m2 = arith.maximumf %m, %xr : tensor<64x1xf32>
      %mb = tile.broadcast %m2 : tensor<64x1xf32> -> tensor<64x64xf32>
      %d = arith.subf %s, %mb : tensor<64x64xf32>
      %p = math.exp2 %d : tensor<64x64xf32>
      %g = arith.subf %m, %m2 : tensor<64x1xf32>
      %f = math.exp2 %g : tensor<64x1xf32>
      %sum = tile.reduce add, %p axis 1 : tensor<64x64xf32>
      %sumr = tile.reshape %sum : tensor<64xf32> -> tensor<64x1xf32>
      %lf = arith.mulf %l, %f : tensor<64x1xf32>
      %l2 = arith.addf %lf, %sumr : tensor<64x1xf32>
      %fb = tile.broadcast %f : tensor<64x1xf32> -> tensor<64x64xf32>
      %af = arith.mulf %acc, %fb : tensor<64x64xf32>
      %h = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xf16>
      %w = tile.load %q[%j, %c1] padding zero : !A, i32, i32 -> tensor<64x64xf16>
      %o = tile.mma %h, %w, %af : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
      scf.yield %m2, %l2, %o : tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x64xf32>
    }
    %lb = tile.broadcast %r#1 : tensor<64x1xf32> -> tensor<64x64xf32>
    %z = arith.divf %r#2, %lb : tensor<64x64xf32>
    tile.store %z, %y[%c0, %c0] : tensor<64x64xf32>, !F, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf16, strided<[?, 1]>>
!F = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: @mask
// CHECK: tile.warp_any
module attributes {tile.target = "sm_90a"} {
  func.func @mask(%q: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %k: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !F, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %none = arith.constant dense<0.0> : tensor<64x1xf32>
    %low = arith.constant dense<0xFF800000> : tensor<64x1xf32>
    %end = arith.constant dense<1000> : tensor<64x64xi32>
    %out = arith.constant dense<0xFF800000> : tensor<64x64xf32>
    %lanes = tile.iota : tensor<64xi32>
    %a = tile.load %q[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
    %r:3 = scf.for %j = %c0 to %n step %c1 iter_args(%m = %low, %l = %none, %acc = %zero) -> (tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x64xf32>) : i32 {
      %b = tile.load %k[%j, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
      %bt = tile.permute %b [1, 0] : tensor<64x64xf16>
      %dots = tile.mma %a, %bt, %zero : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
      %first = arith.muli %j, %c64 : i32
      %firsts = tensor.splat %first : tensor<64xi32>
      %columns = arith.addi %firsts, %lanes : tensor<64xi32>
      %row = tile.reshape %columns : tensor<64xi32> -> tensor<1x64xi32>
      %places = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
      %inside = arith.cmpi slt, %places, %end : tensor<64x64xi32>
      %bias = arith.select %inside, %zero, %out : tensor<64x64xi1>, tensor<64x64xf32>
      %s = arith.addf %dots, %bias : tensor<64x64xf32>
      %x = tile.reduce max, %s axis 1 : tensor<64x64xf32>
      %xr = tile.reshape %x : tensor<64xf32> -> tensor<64x1xf32>
      %m2 = arith.maximumf %m, %xr : tensor<64x1xf32>
      %mb = tile.broadcast %m2 : tensor<64x1xf32> -> tensor<64x64xf32>
      %d = arith.subf %s, %mb : tensor<64x64xf32>
      %p = math.exp2 %d : tensor<64x64xf32>
      %g = arith.subf %m, %m2 : tensor<64x1xf32>
      %f = math.exp2 %g : tensor<64x1xf32>
      %sum = tile.reduce add, %p axis 1 : tensor<64x64xf32>
      %sumr = tile.reshape %sum : tensor<64xf32> -> tensor<64x1xf32>
      %lf = arith.mulf %l, %f : tensor<64x1xf32>
      %l2 = arith.addf %lf, %sumr : tensor<64x1xf32>
      %fb = tile.broadcast %f : tensor<64x1xf32> -> tensor<64x64xf32>
      %af = arith.mulf %acc, %fb : tensor<64x64xf32>
      %h = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xf16>
      %w = tile.load %q[%j, %c1] padding zero : !A, i32, i32 -> tensor<64x64xf16>
      %o = tile.mma %h, %w, %af : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
      scf.yield %m2, %l2, %o : tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x64xf32>
    }
    %lb = tile.broadcast %r#1 : tensor<64x1xf32> -> tensor<64x64xf32>
    %z = arith.divf %r#2, %lb : tensor<64x64xf32>
    tile.store %z, %y[%c0, %c0] : tensor<64x64xf32>, !F, i32, i32
    return
  }
}
