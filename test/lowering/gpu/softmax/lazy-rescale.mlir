// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-online-softmax),canonicalize,cse)' | FileCheck %s
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-online-softmax))' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!A = memref<?x?xf16, strided<[?, 1]>>
!F = memref<?x?xf32, strided<[?, 1]>>

// To base e, with the scale applied late; a guard stands for a reference of -inf. The guarded reference is another number,
// so a row that has none must not keep it.
// CHECK-LABEL: @guarded
// CHECK-DAG: %[[NONE:.*]] = arith.constant dense<0xFF800000> : tensor<64x4xf32>
// CHECK: scf.for
// CHECK: %[[FAR:.*]] = arith.cmpf ugt
// CHECK: %[[UNSET:.*]] = arith.cmpf oeq, %{{.*}}, %[[NONE]]
// CHECK: %[[EITHER:.*]] = arith.ori %[[FAR]], %[[UNSET]]
// CHECK: tile.warp_any %[[EITHER]]
module attributes {tile.target = "sm_90a"} {
  func.func @guarded(%q: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %k: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !F, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %none = arith.constant dense<0.0> : tensor<64x1xf32>
    %one = arith.constant dense<1.0> : tensor<64x1xf32>
    %low = arith.constant dense<0xFF800000> : tensor<64x1xf32>
    %scale = arith.constant dense<0.125> : tensor<64x64xf32>
    %scale1 = arith.constant dense<0.125> : tensor<64x1xf32>
    %a = tile.load %q[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
    %r:3 = scf.for %j = %c0 to %n step %c1 iter_args(%m = %low, %l = %none, %acc = %zero) -> (tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x64xf32>) : i32 {
      %b = tile.load %k[%j, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
      %bt = tile.permute %b [1, 0] : tensor<64x64xf16>
      %s = tile.mma %a, %bt, %zero : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
      %x = tile.reduce max, %s axis 1 : tensor<64x64xf32>
      %xr = tile.reshape %x : tensor<64xf32> -> tensor<64x1xf32>
      %m2 = arith.maximumf %m, %xr : tensor<64x1xf32>
      %empty = arith.cmpf oeq, %m2, %low : tensor<64x1xf32>
      %ref = arith.select %empty, %none, %m2 : tensor<64x1xi1>, tensor<64x1xf32>
      %mb = tile.broadcast %ref : tensor<64x1xf32> -> tensor<64x64xf32>
      %d = arith.subf %s, %mb : tensor<64x64xf32>
      %e = arith.mulf %d, %scale : tensor<64x64xf32>
      %p = math.exp %e : tensor<64x64xf32>
      %g = arith.subf %m, %ref : tensor<64x1xf32>
      %gs = arith.mulf %g, %scale1 : tensor<64x1xf32>
      %f = math.exp %gs : tensor<64x1xf32>
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
    %no = arith.cmpf oeq, %r#1, %none : tensor<64x1xf32>
    %l1 = arith.select %no, %one, %r#1 : tensor<64x1xi1>, tensor<64x1xf32>
    %inverse = arith.divf %one, %l1 : tensor<64x1xf32>
    %ib = tile.broadcast %inverse : tensor<64x1xf32> -> tensor<64x64xf32>
    %z = arith.mulf %r#2, %ib : tensor<64x64xf32>
    tile.store %z, %y[%c0, %c0] : tensor<64x64xf32>, !F, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf16, strided<[?, 1]>>
!F = memref<?x?xf32, strided<[?, 1]>>

// m + log(l) is the same whatever the reference was, and is stored.
// CHECK-LABEL: @stores_logarithm
// CHECK: tile.warp_any
// CHECK: math.log
module attributes {tile.target = "sm_90a"} {
  func.func @stores_logarithm(%q: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %k: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !F, %lse: !F, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %none = arith.constant dense<0.0> : tensor<64x1xf32>
    %one = arith.constant dense<1.0> : tensor<64x1xf32>
    %low = arith.constant dense<0xFF800000> : tensor<64x1xf32>
    %scale = arith.constant dense<0.125> : tensor<64x64xf32>
    %scale1 = arith.constant dense<0.125> : tensor<64x1xf32>
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
      %e = arith.mulf %d, %scale : tensor<64x64xf32>
      %p = math.exp %e : tensor<64x64xf32>
      %g = arith.subf %m, %m2 : tensor<64x1xf32>
      %gs = arith.mulf %g, %scale1 : tensor<64x1xf32>
      %f = math.exp %gs : tensor<64x1xf32>
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
    %ms = arith.mulf %r#0, %scale1 : tensor<64x1xf32>
    %log = math.log %r#1 : tensor<64x1xf32>
    %sums = arith.addf %ms, %log : tensor<64x1xf32>
    tile.store %z, %y[%c0, %c0] : tensor<64x64xf32>, !F, i32, i32
    tile.store %sums, %lse[%c0, %c0] : tensor<64x1xf32>, !F, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf16, strided<[?, 1]>>
!F = memref<?x?xf32, strided<[?, 1]>>

// Sums are stored as they are: they would not be those to the maximum.
// REMARK: remark: 'tile.store' op depends on the running maximum itself
// CHECK-LABEL: @stores_sums
// CHECK-NOT: tile.warp_any
module attributes {tile.target = "sm_90a"} {
  func.func @stores_sums(%q: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %k: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !F, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %low = arith.constant dense<0xFF800000> : tensor<64x1xf32>
    %a = tile.load %q[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
    %r:2 = scf.for %j = %c0 to %n step %c1 iter_args(%m = %low, %acc = %zero) -> (tensor<64x1xf32>, tensor<64x64xf32>) : i32 {
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
      %fb = tile.broadcast %f : tensor<64x1xf32> -> tensor<64x64xf32>
      %af = arith.mulf %acc, %fb : tensor<64x64xf32>
      %h = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xf16>
      %w = tile.load %q[%j, %c1] padding zero : !A, i32, i32 -> tensor<64x64xf16>
      %o = tile.mma %h, %w, %af : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
      scf.yield %m2, %o : tensor<64x1xf32>, tensor<64x64xf32>
    }
    tile.store %r#1, %y[%c0, %c0] : tensor<64x64xf32>, !F, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf16, strided<[?, 1]>>
!F = memref<?x?xf32, strided<[?, 1]>>

// Old sums are faded to base e, new ones are to base 2: they do not change alike.
// REMARK: remark: 'arith.addf' op depends on the running maximum itself
// CHECK-LABEL: @wrong_base
// CHECK-NOT: tile.warp_any
module attributes {tile.target = "sm_90a"} {
  func.func @wrong_base(%q: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %k: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !F, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %none = arith.constant dense<0.0> : tensor<64x1xf32>
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
      %f = math.exp %g : tensor<64x1xf32>
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

!A = memref<?x?xbf16, strided<[?, 1]>>

// What stores the maximum itself keeps it.
// REMARK: remark: 'tile.store' op depends on the running maximum itself: the loop finds it in each iteration
// CHECK-LABEL: @keeps_maximum
// CHECK-NOT: tile.warp_any
module attributes {tile.target = "sm_90a"} {
  func.func @keeps_maximum(%q: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %k: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %low = arith.constant dense<0xFF800000> : tensor<64x1xf32>
    %a = tile.load %q[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
    %r:2 = scf.for %j = %c0 to %n step %c1 iter_args(%m = %low, %acc = %zero) -> (tensor<64x1xf32>, tensor<64x64xf32>) : i32 {
      %b = tile.load %k[%j, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %bt = tile.permute %b [1, 0] : tensor<64x64xbf16>
      %s = tile.mma %a, %bt, %zero : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      %x = tile.reduce max, %s axis 1 : tensor<64x64xf32>
      %xr = tile.reshape %x : tensor<64xf32> -> tensor<64x1xf32>
      %m2 = arith.maximumf %m, %xr : tensor<64x1xf32>
      %mb = tile.broadcast %m2 : tensor<64x1xf32> -> tensor<64x64xf32>
      %d = arith.subf %s, %mb : tensor<64x64xf32>
      %p = math.exp2 %d : tensor<64x64xf32>
      %e = arith.subf %m, %m2 : tensor<64x1xf32>
      %f = math.exp2 %e : tensor<64x1xf32>
      %fb = tile.broadcast %f : tensor<64x1xf32> -> tensor<64x64xf32>
      %af = arith.mulf %acc, %fb : tensor<64x64xf32>
      %h = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
      %w = tile.load %q[%j, %c1] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %o = tile.mma %h, %w, %af : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %m2, %o : tensor<64x1xf32>, tensor<64x64xf32>
    }
    tile.store %r#0, %y[%c0, %c0] : tensor<64x1xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    tile.store %r#1, %y[%c0, %c1] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
