// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-pipeline-mma),canonicalize,cse)' | FileCheck %s
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-pipeline-mma))' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: remark: 'tile.mma' op waits for the product before it: pipelined, it would take 224 registers a thread

!A = memref<?x?xbf16, strided<[?, 1]>>

// Two loops in a row: the second one's first iteration has the last product of the first.
// CHECK-LABEL: @chain
// CHECK: %[[R:.*]]:2 = scf.for
// CHECK: scf.yield
// CHECK-NOT: tile.mma
// CHECK: %[[ANY:.*]] = arith.cmpi sgt
// CHECK: scf.for %[[J:.*]] = {{.*}} iter_args(%[[A:.*]] = %[[R]]#0, %[[P:.*]] = %[[R]]#1)
// CHECK: %[[LATE:.*]] = arith.cmpi sgt, %[[J]]
// CHECK: arith.ori %[[LATE]], %[[ANY]]
// CHECK: tile.mma {{.*}} {tile.family = "wgmma", tile.places = "ss", tile.transposed_rhs}
// CHECK-NEXT: tile.mma %[[P]], %{{.*}}, %[[A]] {tile.family = "wgmma", tile.places = "rs"}
// CHECK: scf.yield
// CHECK: tile.mma {{.*}} {tile.family = "wgmma", tile.places = "rs"}
module attributes {tile.target = "sm_90a"} {
  func.func @chain(%q: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %k: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: memref<?x?xf32, strided<[?, 1]>>, %n: i32, %o: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %a = tile.load %q[%c0, %c0] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
    %r = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x64xf32>) : i32 {
      %b = tile.load %k[%j, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %bt = tile.permute %b [1, 0] : tensor<64x64xbf16>
      %s = tile.mma %a, %bt, %zero : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
      %h = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xbf16>
      %w = tile.load %q[%j, %c1] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %d = tile.mma %h, %w, %acc : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
      scf.yield %d : tensor<128x64xf32>
    }
    %t = scf.for %j = %n to %o step %c1 iter_args(%acc = %r) -> (tensor<128x64xf32>) : i32 {
      %b = tile.load %k[%j, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %bt = tile.permute %b [1, 0] : tensor<64x64xbf16>
      %s = tile.mma %a, %bt, %zero : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
      %g = arith.mulf %s, %s : tensor<128x64xf32>
      %h = arith.truncf %g : tensor<128x64xf32> to tensor<128x64xbf16>
      %w = tile.load %q[%j, %c1] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %d = tile.mma %h, %w, %acc : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
      scf.yield %d : tensor<128x64xf32>
    }
    tile.store %t, %y[%c0, %c0] : tensor<128x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// One warpgroup would hold accumulators of 64x256 and 64x128 values, and the weights.
// CHECK-LABEL: @crowded
// CHECK: scf.for {{.*}} iter_args(%{{[^,]*}}) -> (tensor<64x256xf32>)
module attributes {tile.target = "sm_90a"} {
  func.func @crowded(%q: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %k: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x256xf32>
    %none = arith.constant dense<0.0> : tensor<64x128xf32>
    %a = tile.load %q[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
    %r = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x256xf32>) : i32 {
      %b = tile.load %k[%j, %c0] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %bt = tile.permute %b [1, 0] : tensor<128x64xbf16>
      %s = tile.mma %a, %bt, %none : tensor<64x64xbf16>, tensor<64x128xbf16>, tensor<64x128xf32>
      %h = arith.truncf %s : tensor<64x128xf32> to tensor<64x128xbf16>
      %w = tile.load %q[%j, %c1] padding zero : !A, i32, i32 -> tensor<128x256xbf16>
      %d = tile.mma %h, %w, %acc : tensor<64x128xbf16>, tensor<128x256xbf16>, tensor<64x256xf32>
      scf.yield %d : tensor<64x256xf32>
    }
    tile.store %r, %y[%c0, %c0] : tensor<64x256xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Latent keys are the values, too: an iteration later they would be in the way of those that come.
// REMARK: remark: 'tile.mma' op waits for the product before it: pipelined, it would read its right operand an iteration after what else reads that
// CHECK-LABEL: @latent
// CHECK: scf.for {{.*}} iter_args(%{{[^,]*}}) -> (tensor<64x64xf32>)
module attributes {tile.target = "sm_90a"} {
  func.func @latent(%q: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %k: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %a = tile.load %q[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
    %r = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %b = tile.load %k[%j, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %bt = tile.permute %b [1, 0] : tensor<64x64xbf16>
      %s = tile.mma %a, %bt, %zero : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      %h = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xbf16>
      %d = tile.mma %h, %b, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    tile.store %r, %y[%c0, %c0] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

// Without a number of warps (a function that is no kernel has none) nothing is known of registers: all stays.
// CHECK-LABEL: @no_kernel
// CHECK: scf.for {{.*}} iter_args(%{{[^,]*}}) -> (tensor<64x64xf32>)
module attributes {tile.target = "sm_90a"} {
  func.func @no_kernel(%x: memref<?x?xbf16, strided<[?, 1]>> {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %n: i32) -> tensor<64x64xf32> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %q = tile.load %x[%c0, %c0] : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 -> tensor<64x64xbf16>
    %r = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %k = tile.load %x[%j, %c0] : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 -> tensor<64x64xbf16>
      %s = tile.mma %q, %k, %zero : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xbf16>
      %o = tile.mma %p, %k, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %o : tensor<64x64xf32>
    }
    return %r : tensor<64x64xf32>
  }
}

// -----

// A right operand of tf32 by rows is the left one of the product that is computed: rounded in registers, beside the
// product of the iteration before.
// CHECK-LABEL: @rows_of_tf32
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[P:.*]] = %{{.*}}) -> (tensor<128x128xf32>, tensor<128x32xtf32>)
// CHECK: %[[W:.*]] = tile.load %arg1[{{.*}}] padding zero : {{.*}} -> tensor<32x128xf32>
// CHECK: %[[D:.*]] = tile.mma %[[P]], %{{.*}}, %[[A]] {tile.family = "wgmma", tile.places = "rs", tile.transposed_rhs}
// CHECK: scf.yield %[[D]], %{{.*}} : tensor<128x128xf32>, tensor<128x32xtf32>
// CHECK: tile.mma %[[R]]#1, %{{.*}}, %[[R]]#0
!F = memref<?x?xf32, strided<[?, 1]>>
module attributes {tile.target = "sm_90a"} {
  func.func @rows_of_tf32(%x: !F {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>}, %y: !F {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>}, %z: !F, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %s = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !F, i32, i32 -> tensor<128x32xtf32>
      %w = tile.load %y[%k, %c0] padding zero : !F, i32, i32 -> tensor<32x128xf32>
      %b = arith.truncf %w : tensor<32x128xf32> to tensor<32x128xtf32>
      %d = tile.mma %a, %b, %acc : tensor<128x32xtf32>, tensor<32x128xtf32>, tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    tile.store %s, %z[%c0, %c0] : tensor<128x128xf32>, !F, i32, i32
    return
  }
}
