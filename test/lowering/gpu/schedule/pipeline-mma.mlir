// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-pipeline-mma),canonicalize,cse)' | FileCheck %s --check-prefix=ROTATE
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-online-softmax),canonicalize,cse)' | FileCheck %s --check-prefix=LAZY
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-online-softmax,tile-pipeline-mma,tile-assign-layouts,tile-promote-memory,tile-sink-waits),canonicalize,cse)' | FileCheck %s --check-prefix=WAIT
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-online-softmax,tile-pipeline-mma,tile-assign-layouts,tile-promote-memory,tile-sink-waits,tile-pipeline),canonicalize,cse,tile-allocate-shared,func.func(tile-insert-barriers),tile-to-nvvm)' | FileCheck %s --check-prefix=NVVM
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-online-softmax,tile-pipeline-mma))' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!A = memref<?x?xbf16, strided<[?, 1]>>

// REMARK: remark: 'tile.mma' op waits for the product before it: pipelined, it would take 224 registers a thread
// REMARK: remark: 'tile.store' op depends on the running maximum itself: the loop finds it in each iteration

// ROTATE-LABEL: @attention
// ROTATE-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<128x64xbf16>
// ROTATE-DAG: %[[OUTSIDE:.*]] = arith.constant -1 : i32
// ROTATE: %[[R:.*]]:4 = scf.for %[[J:.*]] = %[[LB:.*]] to %[[UB:.*]] step {{.*}} iter_args(%{{.*}}, %{{.*}}, %[[A:.*]] = %{{.*}}, %[[P:.*]] = %[[ZERO]])
// The value tile of the iteration before: zeros in the first.
// ROTATE: %[[LATE:.*]] = arith.cmpi sgt, %[[J]], %[[LB]]
// ROTATE: %[[BEFORE:.*]] = arith.select %[[LATE]], %{{.*}}, %[[OUTSIDE]]
// A tile outside of the array is zero, even if the program promised that there is none.
// ROTATE-NOT: tile.in_bounds
// ROTATE: %[[V:.*]] = tile.load %{{.*}}[%[[BEFORE]], %{{.*}}] padding zero :
// ROTATE: tile.mma {{.*}} {tile.family = "wgmma", tile.places = "ss", tile.transposed_rhs}
// ROTATE-NEXT: %[[ACC:.*]] = tile.mma %[[P]], %[[V]], %[[A]] {tile.family = "wgmma", tile.places = "rs"}
// ROTATE: tile.reduce max
// ROTATE: %[[P2:.*]] = arith.truncf
// ROTATE: %[[A2:.*]] = arith.mulf %[[ACC]]
// ROTATE-NOT: tile.mma
// ROTATE: scf.yield %{{.*}}, %{{.*}}, %[[A2]], %[[P2]]
// ROTATE: %[[LAST:.*]] = tile.load {{.*}} padding zero :
// ROTATE: tile.mma %[[R]]#3, %[[LAST]], %[[R]]#2 {tile.family = "wgmma", tile.places = "rs"}

// LAZY-LABEL: @attention
// LAZY-DAG: %[[MAX:.*]] = arith.constant dense<1.024000e+03> : tensor<128x4xf32>
// LAZY-DAG: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<128x1xf32>
// LAZY: scf.for {{.*}} iter_args(%[[M:.*]] = %{{.*}}, %[[A:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}})
// LAZY: %[[SHIFT:.*]] = tile.broadcast %[[M]]
// LAZY: %[[D:.*]] = arith.subf %{{.*}}, %[[SHIFT]]
// LAZY: %[[P:.*]] = math.exp2 %[[D]]
// LAZY: tile.reduce add
// LAZY: %[[SUMS:.*]] = tile.reduce add, %{{.*}} axis 1 {tile.in_order} : tensor<128x8x4xf32>
// LAZY: %[[FAR:.*]] = arith.cmpf ugt, %[[SUMS]], %[[MAX]]
// LAZY: %[[ANY:.*]] = tile.warp_any %[[FAR]]
// LAZY: %[[IF:.*]]:4 = scf.if %[[ANY]]
// LAZY: tile.reduce max
// LAZY: %[[M2:.*]] = arith.maximumf
// LAZY: math.exp2
// LAZY: math.exp2
// LAZY: scf.yield %[[M2]]
// LAZY: else
// LAZY-NEXT: scf.yield %[[M]], %[[P]], %[[SUMS]], %[[ONE]]
// LAZY: %[[SCALED:.*]] = scf.if %[[ANY]]
// LAZY-NEXT: arith.mulf
// LAZY: else
// LAZY-NEXT: scf.yield %[[A]]
// LAZY: tile.mma %{{.*}}, %{{.*}}, %[[SCALED]]
// LAZY: scf.yield
// LAZY: tile.reduce add, %{{.*}} axis 1 {tile.in_order} : tensor<128x4xf32>

// WAIT-LABEL: @attention
// WAIT: scf.for
// WAIT: %[[S:.*]] = tile.async_mma
// WAIT-NEXT: %[[O:.*]] = tile.async_mma
// WAIT: tile.mma_wait %[[S]], 1 {complete}
// WAIT: math.exp2
// WAIT: %[[IF:.*]]:4 = scf.if
// WAIT: %{{.*}}, %[[ORDERED:.*]] = tile.mma_wait %[[O]], 0 with %[[IF]]#1
// WAIT: arith.truncf %[[ORDERED]]
// WAIT: scf.if
// WAIT: scf.yield

// A wait orders the registers; the weights cross to the next iteration two in a word.
// NVVM-LABEL: @attention
// NVVM: ^bb{{[0-9]*}}({{.*}}: vector<2xbf16>
// NVVM: wgmma.mma_async
// NVVM: wgmma.mma_async
// NVVM: wgmma.wait_group.sync.aligned 1;", "=&f,=&f
// NVVM: llvm.nvvm.vote.any.sync
// NVVM: wgmma.wait_group.sync.aligned 0;", "=&f,=&f
module attributes {tile.target = "sm_90a"} {
  func.func @attention(%q: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %k: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %v: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %none = arith.constant dense<0.0> : tensor<128x1xf32>
    %low = arith.constant dense<0xFF800000> : tensor<128x1xf32>
    %a = tile.load %q[%c0, %c0] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
    %r:3 = scf.for %j = %c0 to %n step %c1 iter_args(%m = %low, %l = %none, %acc = %zero) -> (tensor<128x1xf32>, tensor<128x1xf32>, tensor<128x64xf32>) : i32 {
      %b = tile.load %k[%j, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %bt = tile.permute %b [1, 0] : tensor<64x64xbf16>
      %s = tile.mma %a, %bt, %zero : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
      %x = tile.reduce max, %s axis 1 : tensor<128x64xf32>
      %xr = tile.reshape %x : tensor<128xf32> -> tensor<128x1xf32>
      %m2 = arith.maximumf %m, %xr : tensor<128x1xf32>
      %mb = tile.broadcast %m2 : tensor<128x1xf32> -> tensor<128x64xf32>
      %d = arith.subf %s, %mb : tensor<128x64xf32>
      %p = math.exp2 %d : tensor<128x64xf32>
      %e = arith.subf %m, %m2 : tensor<128x1xf32>
      %f = math.exp2 %e : tensor<128x1xf32>
      %sum = tile.reduce add, %p axis 1 : tensor<128x64xf32>
      %sumr = tile.reshape %sum : tensor<128xf32> -> tensor<128x1xf32>
      %lf = arith.mulf %l, %f : tensor<128x1xf32>
      %l2 = arith.addf %lf, %sumr : tensor<128x1xf32>
      %h = arith.truncf %p : tensor<128x64xf32> to tensor<128x64xbf16>
      %w = tile.load %v[%j, %c0] padding zero {tile.in_bounds} : !A, i32, i32 -> tensor<64x64xbf16>
      %fb = tile.broadcast %f : tensor<128x1xf32> -> tensor<128x64xf32>
      %af = arith.mulf %acc, %fb : tensor<128x64xf32>
      %o = tile.mma %h, %w, %af : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
      scf.yield %m2, %l2, %o : tensor<128x1xf32>, tensor<128x1xf32>, tensor<128x64xf32>
    }
    %lb = tile.broadcast %r#1 : tensor<128x1xf32> -> tensor<128x64xf32>
    %z = arith.divf %r#2, %lb : tensor<128x64xf32>
    tile.store %z, %y[%c0, %c0] : tensor<128x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Two loops in a row: the second one's first iteration has the last product of the first.
// ROTATE-LABEL: @chain
// ROTATE: %[[R:.*]]:2 = scf.for
// ROTATE: scf.yield
// ROTATE-NOT: tile.mma
// ROTATE: %[[ANY:.*]] = arith.cmpi sgt
// ROTATE: scf.for %[[J:.*]] = {{.*}} iter_args(%[[A:.*]] = %[[R]]#0, %[[P:.*]] = %[[R]]#1)
// ROTATE: %[[LATE:.*]] = arith.cmpi sgt, %[[J]]
// ROTATE: arith.ori %[[LATE]], %[[ANY]]
// ROTATE: tile.mma {{.*}} {tile.family = "wgmma", tile.places = "ss", tile.transposed_rhs}
// ROTATE-NEXT: tile.mma %[[P]], %{{.*}}, %[[A]] {tile.family = "wgmma", tile.places = "rs"}
// ROTATE: scf.yield
// ROTATE: tile.mma {{.*}} {tile.family = "wgmma", tile.places = "rs"}
// LAZY-LABEL: @chain
// WAIT-LABEL: @chain
// NVVM-LABEL: @chain
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
// ROTATE-LABEL: @crowded
// ROTATE: scf.for {{.*}} iter_args(%{{[^,]*}}) -> (tensor<64x256xf32>)
// LAZY-LABEL: @crowded
// WAIT-LABEL: @crowded
// NVVM-LABEL: @crowded
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

// What stores the maximum itself keeps it.
// LAZY-LABEL: @keeps_maximum
// LAZY-NOT: tile.warp_any
// ROTATE-LABEL: @keeps_maximum
// WAIT-LABEL: @keeps_maximum
// NVVM-LABEL: @keeps_maximum
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

// -----

// Without a number of warps (a function that is no kernel has none) nothing is known of registers: all stays.
// ROTATE-LABEL: @no_kernel
// ROTATE: scf.for {{.*}} iter_args(%{{[^,]*}}) -> (tensor<64x64xf32>)
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
