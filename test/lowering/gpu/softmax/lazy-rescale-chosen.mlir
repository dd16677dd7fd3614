// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-online-softmax),canonicalize,cse)' | FileCheck %s

!A = memref<?x?xf16, strided<[?, 1]>>
!F = memref<?x?xf32, strided<[?, 1]>>

// A comparison and a choice that give the larger one are a maximum: they stand where a warp finds a new reference.
// CHECK-LABEL: @chosen
// CHECK: scf.for {{.*}} iter_args(%[[M:.*]] = %{{[^,]*}}, %{{.*}} = %{{[^,]*}}, %{{.*}} = %{{.*}})
// CHECK-NOT: arith.cmpf olt
// CHECK: %[[FAR:.*]] = tile.warp_any
// CHECK: scf.if %[[FAR]]
// CHECK: %[[MORE:.*]] = arith.cmpf olt, %[[M]], %[[X:.*]] : tensor<64x1xf32>
// CHECK: arith.select %[[MORE]], %[[X]], %[[M]]
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[M]]
module attributes {tile.target = "sm_90a"} {
  func.func @chosen(%q: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !F, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %none = arith.constant dense<0.0> : tensor<64x1xf32>
    %low = arith.constant dense<0xFF800000> : tensor<64x1xf32>
    %a = tile.load %q[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
    %r:3 = scf.for %j = %c0 to %n step %c1 iter_args(%m = %low, %l = %none, %acc = %zero) -> (tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x64xf32>) : i32 {
      %b = tile.load %q[%j, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
      %bt = tile.permute %b [1, 0] : tensor<64x64xf16>
      %s = tile.mma %a, %bt, %zero : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
      %x = tile.reduce max, %s axis 1 : tensor<64x64xf32>
      %xr = tile.reshape %x : tensor<64xf32> -> tensor<64x1xf32>
      %more = arith.cmpf olt, %m, %xr : tensor<64x1xf32>
      %m2 = arith.select %more, %xr, %m : tensor<64x1xi1>, tensor<64x1xf32>
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
      %o = tile.mma %h, %b, %af : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
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

// The smaller one is none.
// CHECK-LABEL: @smaller
// CHECK-NOT: tile.warp_any
// CHECK: return
module attributes {tile.target = "sm_90a"} {
  func.func @smaller(%q: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !F, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %none = arith.constant dense<0.0> : tensor<64x1xf32>
    %low = arith.constant dense<0xFF800000> : tensor<64x1xf32>
    %a = tile.load %q[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
    %r:3 = scf.for %j = %c0 to %n step %c1 iter_args(%m = %low, %l = %none, %acc = %zero) -> (tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x64xf32>) : i32 {
      %b = tile.load %q[%j, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
      %bt = tile.permute %b [1, 0] : tensor<64x64xf16>
      %s = tile.mma %a, %bt, %zero : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
      %x = tile.reduce max, %s axis 1 : tensor<64x64xf32>
      %xr = tile.reshape %x : tensor<64xf32> -> tensor<64x1xf32>
      %more = arith.cmpf olt, %m, %xr : tensor<64x1xf32>
      %m2 = arith.select %more, %m, %xr : tensor<64x1xi1>, tensor<64x1xf32>
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
      %o = tile.mma %h, %b, %af : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
      scf.yield %m2, %l2, %o : tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x64xf32>
    }
    %lb = tile.broadcast %r#1 : tensor<64x1xf32> -> tensor<64x64xf32>
    %z = arith.divf %r#2, %lb : tensor<64x64xf32>
    tile.store %z, %y[%c0, %c0] : tensor<64x64xf32>, !F, i32, i32
    return
  }
}
