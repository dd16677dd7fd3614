// What a loop keeps besides its reference: row sums split among the threads of a row, which start as the program's do.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-online-softmax),canonicalize,cse)' | FileCheck %s

!A = memref<?x?xf16, strided<[?, 1]>>
!F = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: @from_zero
// CHECK-DAG: %[[NONE:.*]] = arith.constant dense<0.000000e+00> : tensor<64x4xf32>
// CHECK: scf.for {{.*}} iter_args({{.*}} = %[[NONE]])
// CHECK: tile.warp_any
// CHECK: arith.addf %{{.*}} : tensor<64x4xf32>
// CHECK-NEXT: scf.yield
// CHECK: tile.reduce add, %{{.*}} axis 1 {tile.in_order} : tensor<64x4xf32>
module attributes {tile.target = "sm_90a"} {
  func.func @from_zero(%q: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %k: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !F, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %none = arith.constant dense<0.0> : tensor<64x1xf32>
    %one = arith.constant dense<1.0> : tensor<64x1xf32>
    %low = arith.constant dense<0xFF800000> : tensor<64x1xf32>
    %a = tile.load %q[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
    %r:3 = scf.for %j = %c0 to %n step %c1 iter_args(%m = %low, %l = %none, %acc = %zero) -> (tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x64xf32>) : i32 {
      %b = tile.load %k[%j, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
      %bt = tile.permute %b [1, 0] : tensor<64x64xf16>
      %s = tile.mma %a, %bt, %zero : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
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
    %inverse = arith.divf %one, %r#1 : tensor<64x1xf32>
    %ib = tile.broadcast %inverse : tensor<64x1xf32> -> tensor<64x64xf32>
    %z = arith.mulf %r#2, %ib : tensor<64x64xf32>
    tile.store %z, %y[%c0, %c0] : tensor<64x64xf32>, !F, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf16, strided<[?, 1]>>
!F = memref<?x?xf32, strided<[?, 1]>>

// Each of the four has a quarter.
// CHECK-LABEL: @from_one
// CHECK-DAG: %[[QUARTER:.*]] = arith.constant dense<2.500000e-01> : tensor<64x4xf32>
// CHECK: scf.for {{.*}} iter_args({{.*}} = %[[QUARTER]])
// CHECK: tile.warp_any
module attributes {tile.target = "sm_90a"} {
  func.func @from_one(%q: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %k: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !F, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %none = arith.constant dense<0.0> : tensor<64x1xf32>
    %one = arith.constant dense<1.0> : tensor<64x1xf32>
    %low = arith.constant dense<0xFF800000> : tensor<64x1xf32>
    %a = tile.load %q[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
    %r:3 = scf.for %j = %c0 to %n step %c1 iter_args(%m = %low, %l = %one, %acc = %zero) -> (tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x64xf32>) : i32 {
      %b = tile.load %k[%j, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
      %bt = tile.permute %b [1, 0] : tensor<64x64xf16>
      %s = tile.mma %a, %bt, %zero : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
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
    %inverse = arith.divf %one, %r#1 : tensor<64x1xf32>
    %ib = tile.broadcast %inverse : tensor<64x1xf32> -> tensor<64x64xf32>
    %z = arith.mulf %r#2, %ib : tensor<64x64xf32>
    tile.store %z, %y[%c0, %c0] : tensor<64x64xf32>, !F, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf16, strided<[?, 1]>>
!F = memref<?x?xf32, strided<[?, 1]>>

// The largest weight is no sum: what it is divided by would not change alike.
// CHECK-LABEL: @largest_weight
// CHECK-NOT: tile.warp_any
module attributes {tile.target = "sm_90a"} {
  func.func @largest_weight(%q: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %k: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !F, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %none = arith.constant dense<0.0> : tensor<64x1xf32>
    %one = arith.constant dense<1.0> : tensor<64x1xf32>
    %low = arith.constant dense<0xFF800000> : tensor<64x1xf32>
    %a = tile.load %q[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
    %r:3 = scf.for %j = %c0 to %n step %c1 iter_args(%m = %low, %l = %none, %acc = %zero) -> (tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x64xf32>) : i32 {
      %b = tile.load %k[%j, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
      %bt = tile.permute %b [1, 0] : tensor<64x64xf16>
      %s = tile.mma %a, %bt, %zero : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
      %x = tile.reduce max, %s axis 1 : tensor<64x64xf32>
      %xr = tile.reshape %x : tensor<64xf32> -> tensor<64x1xf32>
      %m2 = arith.maximumf %m, %xr : tensor<64x1xf32>
      %mb = tile.broadcast %m2 : tensor<64x1xf32> -> tensor<64x64xf32>
      %d = arith.subf %s, %mb : tensor<64x64xf32>
      %p = math.exp2 %d : tensor<64x64xf32>
      %g = arith.subf %m, %m2 : tensor<64x1xf32>
      %f = math.exp2 %g : tensor<64x1xf32>
      %sum = tile.reduce max, %p axis 1 : tensor<64x64xf32>
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
    %inverse = arith.divf %one, %r#1 : tensor<64x1xf32>
    %ib = tile.broadcast %inverse : tensor<64x1xf32> -> tensor<64x64xf32>
    %z = arith.mulf %r#2, %ib : tensor<64x64xf32>
    tile.store %z, %y[%c0, %c0] : tensor<64x64xf32>, !F, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf16, strided<[?, 1]>>
!F = memref<?x?xf32, strided<[?, 1]>>

// The hint says so.
// CHECK-LABEL: @switched_off
// CHECK-NOT: tile.warp_any
module attributes {tile.target = "sm_90a"} {
  func.func @switched_off(%q: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %k: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !F, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32, lazy_rescale = 0 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %none = arith.constant dense<0.0> : tensor<64x1xf32>
    %one = arith.constant dense<1.0> : tensor<64x1xf32>
    %low = arith.constant dense<0xFF800000> : tensor<64x1xf32>
    %a = tile.load %q[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
    %r:3 = scf.for %j = %c0 to %n step %c1 iter_args(%m = %low, %l = %none, %acc = %zero) -> (tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x64xf32>) : i32 {
      %b = tile.load %k[%j, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
      %bt = tile.permute %b [1, 0] : tensor<64x64xf16>
      %s = tile.mma %a, %bt, %zero : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
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
    %inverse = arith.divf %one, %r#1 : tensor<64x1xf32>
    %ib = tile.broadcast %inverse : tensor<64x1xf32> -> tensor<64x64xf32>
    %z = arith.mulf %r#2, %ib : tensor<64x64xf32>
    tile.store %z, %y[%c0, %c0] : tensor<64x64xf32>, !F, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf16, strided<[?, 1]>>
!F = memref<?x?xf32, strided<[?, 1]>>

// The loop itself reads the sums, the new ones or the old ones: a thread must have all of a row.
// CHECK-LABEL: @sum_is_read
// CHECK: scf.for {{.*}} -> (tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x64xf32>)
// CHECK: tile.warp_any
// CHECK: arith.addf %{{.*}} : tensor<64x1xf32>
// CHECK: arith.divf
module attributes {tile.target = "sm_90a"} {
  func.func @sum_is_read(%q: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %k: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !F, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %none = arith.constant dense<0.0> : tensor<64x1xf32>
    %one = arith.constant dense<1.0> : tensor<64x1xf32>
    %low = arith.constant dense<0xFF800000> : tensor<64x1xf32>
    %a = tile.load %q[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
    %r:3 = scf.for %j = %c0 to %n step %c1 iter_args(%m = %low, %l = %none, %acc = %zero) -> (tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x64xf32>) : i32 {
      %b = tile.load %k[%j, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
      %bt = tile.permute %b [1, 0] : tensor<64x64xf16>
      %s = tile.mma %a, %bt, %zero : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
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
      %now = arith.divf %one, %l2 : tensor<64x1xf32>
      %nb = tile.broadcast %now : tensor<64x1xf32> -> tensor<64x64xf32>
      %so = arith.mulf %o, %nb : tensor<64x64xf32>
      tile.store %so, %y[%j, %c1] : tensor<64x64xf32>, !F, i32, i32
      scf.yield %m2, %l2, %o : tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x64xf32>
    }
    %inverse = arith.divf %one, %r#1 : tensor<64x1xf32>
    %ib = tile.broadcast %inverse : tensor<64x1xf32> -> tensor<64x64xf32>
    %z = arith.mulf %r#2, %ib : tensor<64x64xf32>
    tile.store %z, %y[%c0, %c0] : tensor<64x64xf32>, !F, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf16, strided<[?, 1]>>
!F = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: @old_sum_is_read
// CHECK: scf.for {{.*}} -> (tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x64xf32>)
// CHECK: tile.warp_any
// CHECK: arith.addf %{{.*}} : tensor<64x1xf32>
// CHECK: arith.divf
module attributes {tile.target = "sm_90a"} {
  func.func @old_sum_is_read(%q: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %k: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !F, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %none = arith.constant dense<0.0> : tensor<64x1xf32>
    %one = arith.constant dense<1.0> : tensor<64x1xf32>
    %low = arith.constant dense<0xFF800000> : tensor<64x1xf32>
    %a = tile.load %q[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
    %r:3 = scf.for %j = %c0 to %n step %c1 iter_args(%m = %low, %l = %none, %acc = %zero) -> (tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x64xf32>) : i32 {
      %b = tile.load %k[%j, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
      %bt = tile.permute %b [1, 0] : tensor<64x64xf16>
      %s = tile.mma %a, %bt, %zero : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
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
      %now = arith.divf %one, %l : tensor<64x1xf32>
      %nb = tile.broadcast %now : tensor<64x1xf32> -> tensor<64x64xf32>
      %so = arith.mulf %acc, %nb : tensor<64x64xf32>
      tile.store %so, %y[%j, %c1] : tensor<64x64xf32>, !F, i32, i32
      scf.yield %m2, %l2, %o : tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x64xf32>
    }
    %inverse = arith.divf %one, %r#1 : tensor<64x1xf32>
    %ib = tile.broadcast %inverse : tensor<64x1xf32> -> tensor<64x64xf32>
    %z = arith.mulf %r#2, %ib : tensor<64x64xf32>
    tile.store %z, %y[%c0, %c0] : tensor<64x64xf32>, !F, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf16, strided<[?, 1]>>
!F = memref<?x?xf32, strided<[?, 1]>>

// Two groups of warps have half of a row each, so eight threads do.
// CHECK-LABEL: @two_groups
// CHECK: scf.for
// CHECK: tile.mma {{.*}}tile.narrow_groups
// CHECK: tile.reshape %{{.*}} : tensor<64x64xf32> -> tensor<64x2x4x4x2xf32>
// CHECK: tile.reshape %{{.*}} : tensor<64x2x4xf32> -> tensor<64x8xf32>
// CHECK: tile.warp_any
// CHECK: arith.addf %{{.*}} : tensor<64x8xf32>
// CHECK-NEXT: scf.yield
// CHECK: tile.reduce add, %{{.*}} axis 1 {tile.in_order} : tensor<64x8xf32>
module attributes {tile.target = "sm_90a"} {
  func.func @two_groups(%q: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %k: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !F, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %wide = arith.constant dense<0.0> : tensor<64x256xf32>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %none = arith.constant dense<0.0> : tensor<64x1xf32>
    %one = arith.constant dense<1.0> : tensor<64x1xf32>
    %low = arith.constant dense<0xFF800000> : tensor<64x1xf32>
    %a = tile.load %q[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x256xf16>
    %r:3 = scf.for %j = %c0 to %n step %c1 iter_args(%m = %low, %l = %none, %acc = %wide) -> (tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x256xf32>) : i32 {
      %b = tile.load %k[%j, %c0] padding zero : !A, i32, i32 -> tensor<64x256xf16>
      %bt = tile.permute %b [1, 0] : tensor<64x256xf16>
      %s = tile.mma %a, %bt, %zero : tensor<64x256xf16>, tensor<256x64xf16>, tensor<64x64xf32>
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
      %fb = tile.broadcast %f : tensor<64x1xf32> -> tensor<64x256xf32>
      %af = arith.mulf %acc, %fb : tensor<64x256xf32>
      %h = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xf16>
      %w = tile.load %q[%j, %c1] padding zero : !A, i32, i32 -> tensor<64x256xf16>
      %o = tile.mma %h, %w, %af : tensor<64x64xf16>, tensor<64x256xf16>, tensor<64x256xf32>
      scf.yield %m2, %l2, %o : tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x256xf32>
    }
    %inverse = arith.divf %one, %r#1 : tensor<64x1xf32>
    %ib = tile.broadcast %inverse : tensor<64x1xf32> -> tensor<64x256xf32>
    %z = arith.mulf %r#2, %ib : tensor<64x256xf32>
    tile.store %z, %y[%c0, %c0] : tensor<64x256xf32>, !F, i32, i32
    return
  }
}
