// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-plan-grid,tile-persistent-loop,tile-split-k),canonicalize,cse)' 2>/dev/null | FileCheck %s
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-plan-grid,tile-persistent-loop,tile-split-k),canonicalize,cse)' 2>&1 | FileCheck %s --check-prefix=REMARK

// One after the other, of the kernels below.
// REMARK: remark: 'scf.for' op is split along k over several blocks where a launch has fewer tiles than multiprocessors
// REMARK: remark: 'scf.for' op is split along k over several blocks
// REMARK: remark: 'scf.for' op is split along k over several blocks
// REMARK: remark: 'func.func' op computes each sum over k in one block: the loop carries something else than sums of products from zero
// REMARK: remark: 'func.func' op computes each sum over k in one block: how often the loop runs is not known at the launch
// REMARK: remark: 'func.func' op computes each sum over k in one block: it writes, prints, asserts or waits before its sums are complete
// REMARK: remark: 'func.func' op computes each sum over k in one block: it has products behind the loop
// REMARK: remark: 'scf.for' op is split along k over several blocks

!A = memref<?x?xbf16, strided<[?, 1]>>
!C = memref<?x?xf32, strided<[?, 1]>>

// A persistent kernel: the loop over blocks counts parts. Word 2 is the extent of k, 64 of it are a step.
// CHECK-LABEL: func.func @gemm
// CHECK-SAME: %[[X:[^:]*]]: i32, %[[Y:[^:]*]]: i32, %[[Z:[^:]*]]: i32, %[[PARTS:[^:]*]]: i32, %[[WHOLE:[^:]*]]: i32, %[[WORKSPACE:[^:]*]]: i64)
// CHECK-SAME: split = {forced = 0 : i64, loop = {per_step = 64 : i64, steps = 0 : i64, word = 2 : i64}, part_bytes = 131072 : i64, step_bytes = 49152 : i64, step_cycles = 1088 : i64}
// CHECK-SAME: split_applied = 1 : i32
// CHECK: %[[ALL:.*]] = arith.addi %[[WHOLE]], %{{.*}}
// CHECK: scf.for %[[V:.*]] = %{{.*}} to %[[ALL]]
// CHECK: %[[IS_WHOLE:.*]] = arith.cmpi slt, %[[V]], %[[WHOLE]]
// CHECK: %[[PART:.*]] = arith.select %[[IS_WHOLE]], %c0_i32
// CHECK: %[[OF:.*]] = arith.select %[[IS_WHOLE]], %c1_i32, %[[PARTS]]
// CHECK: %[[LOWER:.*]] = arith.select %[[IS_WHOLE]], %c0_i32, %{{.*}}
// CHECK: %[[UPPER:.*]] = arith.select %[[IS_WHOLE]], %{{.*}}, %{{.*}}
// CHECK: %[[SOME:.*]] = scf.for %{{.*}} = %[[LOWER]] to %[[UPPER]]
// CHECK: %[[SUM:.*]], %[[LAST:.*]] = tile.sum_parts %[[SOME]] part %[[PART]] of %[[OF]] in %[[WORKSPACE]][%{{.*}}] : tensor<128x256xf32> -> tensor<128x256xf32>
// CHECK: scf.if %[[LAST]] {
// CHECK: tile.store %[[SUM]]
// CHECK: } {tile.persistent}
module attributes {tile.target = "sm_90a"} {
  func.func @gemm(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: !C) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32, split_k = 0 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %e = tile.dim %x, 1 : !A
    %n = arith.ceildivsi %e, %c64 : i32
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x256xbf16>
      %m = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>
      scf.yield %m : tensor<128x256xf32>
    }
    tile.store %d, %z[%i, %j] : tensor<128x256xf32>, !C, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>
!C = memref<?x?xf32, strided<[?, 1]>>

// Another kernel finds its position from the number of its block. The hint says how many parts; two sums meet at once.
// CHECK-LABEL: func.func @few_rows
// CHECK-SAME: %[[X:[^:]*]]: i32, %[[Y:[^:]*]]: i32, %[[Z:[^:]*]]: i32, %[[PARTS:[^:]*]]: i32, %[[WHOLE:[^:]*]]: i32, %[[WORKSPACE:[^:]*]]: i64)
// CHECK-SAME: split = {forced = 4 : i64, loop = {per_step = 1 : i64, steps = 9 : i64, word = -1 : i64}, part_bytes = {{[0-9]+}} : i64, step_bytes = 6144 : i64, step_cycles = 128 : i64}
// CHECK: %[[V:.*]] = tile.block_id 0
// CHECK-NOT: tile.block_id
// CHECK: arith.cmpi slt, %[[V]], %[[WHOLE]]
// CHECK: %[[SOME:.*]]:2 = scf.for
// CHECK: %[[SUMS:.*]]:2, %[[LAST:.*]] = tile.sum_parts %[[SOME]]#0, %[[SOME]]#1 part
// CHECK: scf.if %[[LAST]] {
// CHECK-NEXT: arith.mulf %[[SUMS]]#0, %[[SUMS]]#1
module attributes {tile.target = "sm_90a"} {
  func.func @few_rows(%x: !A, %y: !A, %z: !C) attributes {tile.kernel, tile.hints = {split_k = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<16x32xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %d:2 = scf.for %k = %c0 to %c9 step %c1 iter_args(%s = %zero, %t = %zero) -> (tensor<16x32xf32>, tensor<16x32xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<16x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x32xbf16>
      %m = tile.mma %a, %b, %s : tensor<16x64xbf16>, tensor<64x32xbf16>, tensor<16x32xf32>
      %n = tile.mma %a, %b, %t : tensor<16x64xbf16>, tensor<64x32xbf16>, tensor<16x32xf32>
      scf.yield %m, %n : tensor<16x32xf32>, tensor<16x32xf32>
    }
    %p = arith.mulf %d#0, %d#1 : tensor<16x32xf32>
    tile.store %p, %z[%i, %j] : tensor<16x32xf32>, !C, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>
!C = memref<?x?xf32, strided<[?, 1]>>

// Without the hint, the launcher is told, and the code stays as it was.
// CHECK-LABEL: func.func @told
// CHECK-SAME: loaded = [{bits = 16 : i32, rank = 2 : i32, word = 0 : i32}, {bits = 16 : i32, rank = 2 : i32, word = 5 : i32}]
// CHECK-SAME: split = {forced = 0 : i64, loop = {per_step = 1 : i64, steps = 9 : i64, word = -1 : i64}, part_bytes = 2048 : i64, step_bytes = 6144 : i64, step_cycles = 128 : i64}
// CHECK-NOT: tile.sum_parts
module attributes {tile.target = "sm_90a"} {
  func.func @told(%x: !A, %y: !A, %z: !C) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<16x32xf32>
    %d = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<16x32xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<16x64xbf16>
      %b = tile.load %y[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x32xbf16>
      %m = tile.mma %a, %b, %acc : tensor<16x64xbf16>, tensor<64x32xbf16>, tensor<16x32xf32>
      scf.yield %m : tensor<16x32xf32>
    }
    tile.store %d, %z[%c0, %c0] : tensor<16x32xf32>, !C, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>
!C = memref<?x?xf32, strided<[?, 1]>>

// Something else is done with the sum in each iteration.
// CHECK-LABEL: func.func @scaled
// CHECK-NOT: tile.sum_parts
module attributes {tile.target = "sm_90a"} {
  func.func @scaled(%x: !A, %y: !A, %z: !C) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<16x32xf32>
    %half = arith.constant dense<0.5> : tensor<16x32xf32>
    %d = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<16x32xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<16x64xbf16>
      %b = tile.load %y[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x32xbf16>
      %s = arith.mulf %acc, %half : tensor<16x32xf32>
      %m = tile.mma %a, %b, %s : tensor<16x64xbf16>, tensor<64x32xbf16>, tensor<16x32xf32>
      scf.yield %m : tensor<16x32xf32>
    }
    tile.store %d, %z[%c0, %c0] : tensor<16x32xf32>, !C, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>
!C = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: func.func @some_steps
// CHECK-NOT: tile.sum_parts
module attributes {tile.target = "sm_90a"} {
  func.func @some_steps(%x: !A, %y: !A, %z: !C) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %i = tile.block_id 0
    %zero = arith.constant dense<0.0> : tensor<16x32xf32>
    %d = scf.for %k = %c0 to %i step %c1 iter_args(%acc = %zero) -> (tensor<16x32xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<16x64xbf16>
      %b = tile.load %y[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x32xbf16>
      %m = tile.mma %a, %b, %acc : tensor<16x64xbf16>, tensor<64x32xbf16>, tensor<16x32xf32>
      scf.yield %m : tensor<16x32xf32>
    }
    tile.store %d, %z[%i, %c0] : tensor<16x32xf32>, !C, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>
!C = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: func.func @writes_first
// CHECK-NOT: tile.sum_parts
module attributes {tile.target = "sm_90a"} {
  func.func @writes_first(%x: !A, %y: !A, %z: !C) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<16x32xf32>
    tile.store %zero, %z[%c1, %c0] : tensor<16x32xf32>, !C, i32, i32
    %d = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<16x32xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<16x64xbf16>
      %b = tile.load %y[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x32xbf16>
      %m = tile.mma %a, %b, %acc : tensor<16x64xbf16>, tensor<64x32xbf16>, tensor<16x32xf32>
      scf.yield %m : tensor<16x32xf32>
    }
    tile.store %d, %z[%c0, %c0] : tensor<16x32xf32>, !C, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>
!C = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: func.func @another_product
// CHECK-NOT: tile.sum_parts
module attributes {tile.target = "sm_90a"} {
  func.func @another_product(%x: !A, %y: !A, %z: !C) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<16x32xf32>
    %d = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<16x32xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<16x64xbf16>
      %b = tile.load %y[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x32xbf16>
      %m = tile.mma %a, %b, %acc : tensor<16x64xbf16>, tensor<64x32xbf16>, tensor<16x32xf32>
      scf.yield %m : tensor<16x32xf32>
    }
    %a = tile.load %x[%c0, %c9] padding zero : !A, i32, i32 -> tensor<16x64xbf16>
    %b = tile.load %y[%c9, %c0] padding zero : !A, i32, i32 -> tensor<64x32xbf16>
    %m = tile.mma %a, %b, %d : tensor<16x64xbf16>, tensor<64x32xbf16>, tensor<16x32xf32>
    tile.store %m, %z[%c0, %c0] : tensor<16x32xf32>, !C, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>
!C = memref<?x?xf32, strided<[?, 1]>>

// The hint says that none do.
// CHECK-LABEL: func.func @asked
// CHECK-NOT: tile.sum_parts
module attributes {tile.target = "sm_90a"} {
  func.func @asked(%x: !A, %y: !A, %z: !C) attributes {tile.kernel, tile.hints = {split_k = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<16x32xf32>
    %d = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<16x32xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<16x64xbf16>
      %b = tile.load %y[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x32xbf16>
      %m = tile.mma %a, %b, %acc : tensor<16x64xbf16>, tensor<64x32xbf16>, tensor<16x32xf32>
      scf.yield %m : tensor<16x32xf32>
    }
    tile.store %d, %z[%c0, %c0] : tensor<16x32xf32>, !C, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf16, strided<[?, 1]>>
!C = memref<?x?xf32, strided<[?, 1]>>

// A program may round the number of steps down.
// CHECK-LABEL: func.func @whole_steps
// CHECK-SAME: split = {
module attributes {tile.target = "sm_80"} {
  func.func @whole_steps(%x: !A, %z: !C) attributes {tile.kernel, tile.hints = {split_k = 0 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<16x16xf32>
    %i = tile.block_id 0
    %e = tile.dim %x, 1 : !A
    %n = arith.floordivsi %e, %c64 : i32
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<16x64xf16>
      %b = tile.permute %a [1, 0] : tensor<16x64xf16>
      %m = tile.mma %a, %b, %acc : tensor<16x64xf16>, tensor<64x16xf16>, tensor<16x16xf32>
      scf.yield %m : tensor<16x16xf32>
    }
    tile.store %d, %z[%i, %i] : tensor<16x16xf32>, !C, i32, i32
    return
  }
}

// -----

!C = memref<?x?xf32, strided<[?, 1]>>

// A range that counts downwards runs from 0 - n to 0.
// CHECK-LABEL: func.func @downwards
// CHECK-SAME: split = {forced = 0 : i64, loop = {per_step = 32 : i64, steps = 0 : i64, word = 2 : i64}
module attributes {tile.target = "sm_80"} {
  func.func @downwards(%x: !C, %z: !C) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<32x32xf32>
    %e = tile.dim %x, 1 : !C
    %n = arith.ceildivsi %e, %c32 : i32
    %first = arith.subi %c0, %n : i32
    %d = scf.for %k = %first to %c0 step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {
      %i = arith.subi %c0, %k : i32
      %a = tile.load %x[%c0, %i] padding zero : !C, i32, i32 -> tensor<32x32xf32>
      %m = tile.mma %a, %a, %acc : tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>
      scf.yield %m : tensor<32x32xf32>
    }
    tile.store %d, %z[%c0, %c0] : tensor<32x32xf32>, !C, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>
!Q = memref<?x?xi8, strided<[?, 1]>>
!C = memref<?x?xf32, strided<[?, 1]>>

// Warps that multiply make the operand first: 6 clocks for each of the 64 conversions of a thread, 80 for the rest.
// CHECK-LABEL: func.func @converts
// CHECK-SAME: step_cycles = 464 : i64
module attributes {tile.target = "sm_90a"} {
  func.func @converts(%x: !A, %y: !Q, %z: !C) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<16x32xf32>
    %d = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<16x32xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<16x64xbf16>
      %q = tile.load %y[%k, %c0] padding zero : !Q, i32, i32 -> tensor<64x32xi8>
      %b = arith.sitofp %q : tensor<64x32xi8> to tensor<64x32xbf16>
      %m = tile.mma %a, %b, %acc : tensor<16x64xbf16>, tensor<64x32xbf16>, tensor<16x32xf32>
      scf.yield %m : tensor<16x32xf32>
    }
    tile.store %d, %z[%c0, %c0] : tensor<16x32xf32>, !C, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>
!Q = memref<?x?xi8, strided<[?, 1]>>
!C = memref<?x?xf32, strided<[?, 1]>>

// Bytes that are scaled as numbers of 16 bits take three ops each, as by way of f32: 6 clocks for each of 192.
// CHECK-LABEL: func.func @scales
// CHECK-SAME: step_cycles = 1232 : i64
module attributes {tile.target = "sm_90a"} {
  func.func @scales(%x: !A, %y: !Q, %s: !A, %z: !C) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<16x32xf32>
    %scales = tile.load %s[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x32xbf16>
    %d = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<16x32xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<16x64xbf16>
      %q = tile.load %y[%k, %c0] padding zero : !Q, i32, i32 -> tensor<64x32xi8>
      %w = arith.sitofp %q : tensor<64x32xi8> to tensor<64x32xbf16>
      %b = arith.mulf %w, %scales : tensor<64x32xbf16>
      %m = tile.mma %a, %b, %acc : tensor<16x64xbf16>, tensor<64x32xbf16>, tensor<16x32xf32>
      scf.yield %m : tensor<16x32xf32>
    }
    tile.store %d, %z[%c0, %c0] : tensor<16x32xf32>, !C, i32, i32
    return
  }
}
