// A tile is computed by several blocks, a slice each, where elements along a dimension do not see each other.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-resize-tiles),canonicalize,cse)' 2>/dev/null | FileCheck %s
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-resize-tiles),canonicalize,cse)' 2>&1 | FileCheck %s --check-prefix=REMARK

!A = memref<?x?xbf16, strided<[?, 1]>>

// The launcher decides: the loop takes 64 of word 2; words 11 and 12 tell how many tiles of 128 and 256 have work; 1, 2,
// 4 and 8 parts, each with the cycles and bytes of an iteration.
// REMARK: remark: 'func.func' op slices each tile over up to 8 blocks where a launch has fewer blocks than multiprocessors
// CHECK-LABEL: func.func @decided_at_launch
// CHECK-SAME: slice = {classes = [{tile = 128 : i64, word = 11 : i64}, {tile = 256 : i64, word = 12 : i64}], loop = {per_step = 64 : i64, steps = 0 : i64, word = 2 : i64}, plans = [{bytes = 49152 : i64, cycles = 1088 : i64, parts = array<i64: 1, 1, 0>}, {bytes = 32768 : i64, cycles = 576 : i64, parts = array<i64: 1, 2, 0>}, {bytes = 24576 : i64, cycles = 320 : i64, parts = array<i64: 2, 2, 0>}, {bytes = 16384 : i64, cycles = 234 : i64, parts = array<i64: 2, 4, 0>}]}
// CHECK-NOT: grid_scale
// CHECK-NOT: no_alias
// CHECK: tile.mma {{.*}} tensor<128x256xf32>
module attributes {tile.target = "sm_90a"} {
  func.func @decided_at_launch(%x: !A, %y: !A, %z: !A) attributes {tile.kernel} {
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
    %t = arith.truncf %d : tensor<128x256xf32> to tensor<128x256xbf16>
    tile.store %t, %z[%i, %j] : tensor<128x256xbf16>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Cut in M and N by the hint: the program with tiles of 64x128. The bias goes with the columns, and so does what it is
// made from; where the program asks for its position, that is of its own grid. All slices
// of a row read the same of %x: no input may overlap the output.
// REMARK: remark: 'func.func' op slices each tile over 4 blocks
// CHECK-LABEL: func.func @product(
// CHECK-SAME: %[[X:.*]]: memref<?x?xbf16, strided<[?, 1]>>, %[[Y:.*]]: memref<?x?xbf16, strided<[?, 1]>>, %[[B:.*]]: memref<?xbf16
// CHECK-SAME: grid_scale = array<i32: 2, 2, 1>
// CHECK-SAME: no_alias = [{array = {bits = 16 : i32, rank = 2 : i32, word = 0 : i32}, or_same = 0 : i32, other = {bits = 16 : i32, rank = 2 : i32, word = 13 : i32}}, {array = {bits = 16 : i32, rank = 2 : i32, word = 5 : i32}, or_same = 0 : i32, other = {bits = 16 : i32, rank = 2 : i32, word = 13 : i32}}, {array = {bits = 16 : i32, rank = 1 : i32, word = 10 : i32}, or_same = 0 : i32, other = {bits = 16 : i32, rank = 2 : i32, word = 13 : i32}}]
// CHECK: %[[I:.*]] = tile.block_id 0
// CHECK: %[[OLD:.*]] = arith.divui %[[I]], %c2_i32
// CHECK: %[[J:.*]] = tile.block_id 1
// CHECK: scf.for %[[K:[^ ]*]] = %[[OLD]] to %{{.*}} -> (tensor<64x128xf32>)
// CHECK: tile.load %[[X]][%[[I]], %[[K]]] {{.*}} -> tensor<64x64xbf16>
// CHECK: tile.load %[[Y]][%[[K]], %[[J]]] {{.*}} -> tensor<64x128xbf16>
// CHECK: tile.load %[[B]][%[[J]]] {{.*}} -> tensor<128xbf16>
// CHECK: tile.reshape %{{.*}} : tensor<128xbf16> -> tensor<1x128xbf16>
// CHECK: tile.broadcast %{{.*}} : tensor<1x128xbf16> -> tensor<64x128xbf16>
// CHECK: tile.store %{{.*}}[%[[I]], %[[J]]] : tensor<64x128xbf16>
module attributes {tile.target = "sm_90a"} {
  func.func @product(%x: !A, %y: !A, %bias: memref<?xbf16, strided<[1]>>, %z: !A) attributes {tile.kernel, tile.hints = {slice_tiles = 4 : i32}} {
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = tile.constant dense<0.0> : tensor<128x256xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %d = scf.for %k = %i to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x256xbf16>
      %m = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>
      scf.yield %m : tensor<128x256xf32>
    }
    %t = arith.truncf %d : tensor<128x256xf32> to tensor<128x256xbf16>
    %v = tile.load %bias[%j] padding zero : memref<?xbf16, strided<[1]>>, i32 -> tensor<256xbf16>
    %row = tile.reshape %v : tensor<256xbf16> -> tensor<1x256xbf16>
    %all = tile.broadcast %row : tensor<1x256xbf16> -> tensor<128x256xbf16>
    %s = arith.addf %t, %all : tensor<128x256xbf16>
    tile.store %s, %z[%i, %j] : tensor<128x256xbf16>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf32, strided<[?, 1]>>

// Rows whose elements are reduced: only M. The same grid axis tells both; iotas count from the part's first row.
// REMARK: remark: 'func.func' op slices each tile over 8 blocks
// CHECK-LABEL: func.func @rows
// CHECK-SAME: grid_scale = array<i32: 8, 1, 1>
// CHECK: %[[I:.*]] = tile.block_id 0
// CHECK-DAG: %[[PART:.*]] = arith.remui %[[I]], %c8_i32
// CHECK-DAG: %[[OLD:.*]] = arith.divui %[[I]], %c8_i32
// CHECK-DAG: %[[Q:.*]] = arith.divui %[[OLD]], %c3_i32
// CHECK: %[[EIGHTH:.*]] = arith.muli %[[Q]], %c8_i32
// CHECK: %[[ROW:.*]] = arith.addi %[[EIGHTH]], %[[PART]]
// CHECK: tile.load %{{.*}}[%[[ROW]], %{{.*}}] {{.*}} -> tensor<2x64xf32>
// CHECK: tile.reduce max, %{{.*}} axis 1 : tensor<2x64xf32>
// CHECK: %[[N:.*]] = tile.iota : tensor<2xi32>
// CHECK: %[[FIRST:.*]] = arith.muli %[[PART]], %c2_i32
// CHECK: %[[SPLAT:.*]] = tensor.splat %[[FIRST]] : tensor<2xi32>
// CHECK: arith.addi %[[N]], %[[SPLAT]] : tensor<2xi32>
// CHECK: tile.store
module attributes {tile.target = "sm_90a"} {
  func.func @rows(%x: !A, %z: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {slice_tiles = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c3 = arith.constant 3 : i32
    %id = tile.block_id 0
    %i = arith.divui %id, %c3 : i32
    %a = tile.load %x[%i, %c0] padding zero : !A, i32, i32 -> tensor<16x64xf32>
    %m = tile.reduce max, %a axis 1 : tensor<16x64xf32>
    %n = tile.iota : tensor<16xi32>
    %f = arith.sitofp %n : tensor<16xi32> to tensor<16xf32>
    %s = arith.addf %m, %f : tensor<16xf32>
    tile.store %s, %z[%i] : tensor<16xf32>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

!A = memref<?x?xf32, strided<[?, 1]>>
!V = memref<?xf32, strided<[1]>>

// Not along what a scan runs over, ...
// REMARK: remark: 'func.func' op slices no tile over several blocks: a scan runs along the axis
// CHECK-LABEL: func.func @scan
// CHECK: tile.scan add, %{{.*}} : tensor<64xf32>
module attributes {tile.target = "sm_90a"} {
  func.func @scan(%x: !V, %z: !V) attributes {tile.kernel, tile.hints = {slice_tiles = 2 : i32}} {
    %i = tile.block_id 0
    %a = tile.load %x[%i] padding zero : !V, i32 -> tensor<64xf32>
    %s = tile.scan add, %a axis 0 : tensor<64xf32>
    tile.store %s, %z[%i] : tensor<64xf32>, !V, i32
    return
  }
}

// -----

!V = memref<?xf32, strided<[1]>>

// ... nor where something happens that others see once, ...
// REMARK: remark: 'func.func' op slices no tile over several blocks: it prints or asserts
// CHECK-LABEL: func.func @prints
// CHECK: tile.load {{.*}} -> tensor<64xf32>
module attributes {tile.target = "sm_90a"} {
  func.func @prints(%x: !V, %z: !V) attributes {tile.kernel, tile.hints = {slice_tiles = 2 : i32}} {
    %i = tile.block_id 0
    %a = tile.load %x[%i] padding zero : !V, i32 -> tensor<64xf32>
    tile.print "{}", %i : i32
    tile.store %a, %z[%i] : tensor<64xf32>, !V, i32
    return
  }
}

// -----

!V = memref<?xf32, strided<[1]>>

// ... and what each part would do again, ...
// REMARK: remark: 'func.func' op slices no tile over several blocks: it has atomic accesses
// CHECK-LABEL: func.func @counts
// CHECK: tile.load {{.*}} -> tensor<64xf32>
module attributes {tile.target = "sm_90a"} {
  func.func @counts(%x: !V, %z: !V, %n: memref<?xi32, strided<[1]>>) attributes {tile.kernel, tile.hints = {slice_tiles = 2 : i32}} {
    %i = tile.block_id 0
    %one = arith.constant 1 : i32
    %a = tile.load %x[%i] padding zero : !V, i32 -> tensor<64xf32>
    tile.store %a, %z[%i] : tensor<64xf32>, !V, i32
    %old = tile.atomic add relaxed device, %one, %n[%i] {check_bounds} : i32, memref<?xi32, strided<[1]>>, i32 -> i32
    return
  }
}

// -----

!V = memref<?xf32, strided<[1]>>

// ... nor where a result is stored that has no part, ...
// REMARK: remark: 'func.func' op slices no tile over several blocks: not all that is stored has the axis
// CHECK-LABEL: func.func @total
// CHECK: tile.load {{.*}} -> tensor<64xf32>
module attributes {tile.target = "sm_90a"} {
  func.func @total(%x: !V, %y: !V, %z: !V) attributes {tile.kernel, tile.hints = {slice_tiles = 2 : i32}} {
    %i = tile.block_id 0
    %a = tile.load %x[%i] padding zero : !V, i32 -> tensor<64xf32>
    %b = tile.load %y[%i] padding zero : !V, i32 -> tensor<4xf32>
    tile.store %a, %z[%i] : tensor<64xf32>, !V, i32
    tile.store %b, %y[%i] : tensor<4xf32>, !V, i32
    return
  }
}

// -----

!A = memref<?x?xf32, strided<[?, 1]>>

// ... nor where a part would read what another one has written: rows of the array itself, as columns, ...
// REMARK: remark: 'func.func' op slices no tile over several blocks: a part may read of an array what another part has written
// CHECK-LABEL: func.func @transpose_in_place
// CHECK: tile.load {{.*}} -> tensor<64x64xf32>
module attributes {tile.target = "sm_90a"} {
  func.func @transpose_in_place(%x: !A) attributes {tile.kernel, tile.hints = {slice_tiles = 2 : i32}} {
    %i = tile.block_id 0
    %a = tile.load %x[%i, %i] padding zero : !A, i32, i32 -> tensor<64x64xf32>
    %t = tile.permute %a [1, 0] : tensor<64x64xf32>
    tile.store %t, %x[%i, %i] : tensor<64x64xf32>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf32, strided<[?, 1]>>
!V = memref<?xf32, strided<[1]>>

// ... nor along a diagonal.
// REMARK: remark: 'func.func' op slices no tile over several blocks: a tile has the axis twice
// CHECK-LABEL: func.func @outer_product
// CHECK: tile.load {{.*}} -> tensor<64xf32>
module attributes {tile.target = "sm_90a"} {
  func.func @outer_product(%x: !V, %z: !A) attributes {tile.kernel, tile.hints = {slice_tiles = 2 : i32}} {
    %i = tile.block_id 0
    %a = tile.load %x[%i] padding zero : !V, i32 -> tensor<64xf32>
    %c = tile.reshape %a : tensor<64xf32> -> tensor<64x1xf32>
    %r = tile.reshape %a : tensor<64xf32> -> tensor<1x64xf32>
    %columns = tile.broadcast %c : tensor<64x1xf32> -> tensor<64x64xf32>
    %rows = tile.broadcast %r : tensor<1x64xf32> -> tensor<64x64xf32>
    %p = arith.mulf %columns, %rows : tensor<64x64xf32>
    tile.store %p, %z[%i, %i] : tensor<64x64xf32>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Sums that no thread's registers can hold, 256 of each with eight warps, are cut without a hint.
// REMARK: remark: 'func.func' op has sums of products that no thread's registers can hold
// REMARK: remark: 'func.func' op slices each tile over 2 blocks
// CHECK-LABEL: func.func @large
// CHECK-SAME: grid_scale = array<i32: 1, 2, 1>
// CHECK: tile.mma {{.*}} tensor<128x256xf32>
module attributes {tile.target = "sm_90a"} {
  func.func @large(%x: !A, %y: !A, %z: !A) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : tensor<128x512xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %a = tile.load %x[%i, %c0] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
    %b = tile.load %y[%c0, %j] padding zero : !A, i32, i32 -> tensor<64x512xbf16>
    %m = tile.mma %a, %b, %zero : tensor<128x64xbf16>, tensor<64x512xbf16>, tensor<128x512xf32>
    %t = arith.truncf %m : tensor<128x512xf32> to tensor<128x512xbf16>
    tile.store %t, %z[%i, %j] : tensor<128x512xbf16>, !A, i32, i32
    return
  }
}

// -----

!Q = memref<?x?xbf16, strided<[?, 1]>>

// Of products one behind the other, rows are cut: each part computes the scores of its own. Here 128 sums and 128 scores
// of a thread, and 64 words of what is made of these, do not fit.
// REMARK: remark: 'func.func' op has products one behind the other, whose sums no thread's registers can hold at once
// REMARK: remark: 'func.func' op slices each tile over 2 blocks
// CHECK-LABEL: func.func @chain
// CHECK-SAME: grid_scale = array<i32: 2, 1, 1>
// CHECK: tile.mma {{.*}} tensor<128x128xf32>
// CHECK: tile.mma {{.*}} tensor<128x128xf32>
module attributes {tile.target = "sm_90a"} {
  func.func @chain(%q: !Q, %k: !Q, %v: !Q, %y: !Q) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %n = tile.dim %k, 1 : !Q
    %zero = arith.constant dense<0.0> : tensor<256x128xf32>
    %i = tile.block_id 0
    %a = tile.load %q[%i, %c0] padding zero : !Q, i32, i32 -> tensor<256x128xbf16>
    %d = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<256x128xf32>) : i32 {
      %b = tile.load %k[%c0, %j] padding zero : !Q, i32, i32 -> tensor<128x128xbf16>
      %s = tile.mma %a, %b, %zero : tensor<256x128xbf16>, tensor<128x128xbf16>, tensor<256x128xf32>
      %p = arith.truncf %s : tensor<256x128xf32> to tensor<256x128xbf16>
      %c = tile.load %v[%j, %c0] padding zero : !Q, i32, i32 -> tensor<128x128xbf16>
      %m = tile.mma %p, %c, %acc : tensor<256x128xbf16>, tensor<128x128xbf16>, tensor<256x128xf32>
      scf.yield %m : tensor<256x128xf32>
    }
    %t = arith.truncf %d : tensor<256x128xf32> to tensor<256x128xbf16>
    tile.store %t, %y[%i, %c0] : tensor<256x128xbf16>, !Q, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf32, strided<[?, 1]>>

// Without products: 8192 elements would be 32 of each thread, and are cut into parts of 16, but not where the program
// says how many warps there are, ...
// REMARK: remark: 'func.func' op slices each tile over 2 blocks
// CHECK-LABEL: func.func @many_elements
// CHECK-SAME: grid_scale = array<i32: 2, 1, 1>
// CHECK: arith.mulf {{.*}} tensor<1x4096xf32>
// CHECK-LABEL: func.func @by_hint
// CHECK: arith.mulf {{.*}} tensor<1x8192xf32>
// ... nor where each part would load again what decides most: the weights of all its rows.
// CHECK-LABEL: func.func @repeats
// CHECK-NOT: grid_scale
// CHECK: arith.mulf {{.*}} tensor<2x4096xf32>
module attributes {tile.target = "sm_90a"} {
  func.func @many_elements(%x: !A, %z: !A) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %i = tile.block_id 0
    %a = tile.load %x[%i, %c0] padding zero : !A, i32, i32 -> tensor<1x8192xf32>
    %p = arith.mulf %a, %a : tensor<1x8192xf32>
    tile.store %p, %z[%i, %c0] : tensor<1x8192xf32>, !A, i32, i32
    return
  }
  func.func @by_hint(%x: !A, %z: !A) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %i = tile.block_id 0
    %a = tile.load %x[%i, %c0] padding zero : !A, i32, i32 -> tensor<1x8192xf32>
    %p = arith.mulf %a, %a : tensor<1x8192xf32>
    tile.store %p, %z[%i, %c0] : tensor<1x8192xf32>, !A, i32, i32
    return
  }
  func.func @repeats(%x: !A, %y: !A, %z: !A) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %i = tile.block_id 0
    %a = tile.load %x[%i, %c0] padding zero : !A, i32, i32 -> tensor<2x4096xf32>
    %w = tile.load %y[%c0, %c0] padding zero : !A, i32, i32 -> tensor<4x4096xf32>
    %m = tile.reduce max, %w axis 0 : tensor<4x4096xf32>
    %s = tile.reduce add, %m axis 0 : tensor<4096xf32>
    %b = tensor.splat %s : tensor<2x4096xf32>
    %p = arith.mulf %a, %b : tensor<2x4096xf32>
    %t = tile.reduce add, %p axis 1 : tensor<2x4096xf32>
    %r = tile.reshape %t : tensor<2xf32> -> tensor<2x1xf32>
    tile.store %r, %z[%i, %c0] : tensor<2x1xf32>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Two sums of a loop, 128 of each with eight warps, are no better than one of 256.
// REMARK: remark: 'func.func' op has sums of products that no thread's registers can hold
// REMARK: remark: 'func.func' op slices each tile over 2 blocks
// CHECK-LABEL: func.func @two_sums
// CHECK-SAME: grid_scale = array<i32: 1, 2, 1>
// CHECK-COUNT-2: tile.mma {{.*}} tensor<128x128xf32>
module attributes {tile.target = "sm_90a"} {
  func.func @two_sums(%x: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: !A, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %d:2 = scf.for %k = %c0 to %n step %c1 iter_args(%p = %zero, %q = %zero) -> (tensor<128x256xf32>, tensor<128x256xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x256xbf16>
      %e = tile.mma %a, %b, %p : tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>
      %f = tile.mma %a, %b, %q : tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>
      scf.yield %e, %f : tensor<128x256xf32>, tensor<128x256xf32>
    }
    %s = arith.mulf %d#0, %d#1 : tensor<128x256xf32>
    %t = arith.truncf %s : tensor<128x256xf32> to tensor<128x256xbf16>
    tile.store %t, %z[%i, %j] : tensor<128x256xbf16>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf8E4M3FN, strided<[?, 1]>>
!C = memref<?x?xf32, strided<[?, 1]>>

// Elements that come one by one have registers beside the sums, and the parts of them that are promoted.
// REMARK: remark: 'func.func' op has products of rows that begin anywhere: their elements come one by one
// REMARK: remark: 'func.func' op slices each tile over 2 blocks
// CHECK-LABEL: func.func @elements
// CHECK: tile.mma {{.*}} tensor<128x128xf32>
module attributes {tile.target = "sm_90a"} {
  func.func @elements(%x: !A, %y: !A, %z: !C, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%p = %zero) -> (tensor<128x256xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x64xf8E4M3FN>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x256xf8E4M3FN>
      %e = tile.mma %a, %b, %p : tensor<128x64xf8E4M3FN>, tensor<64x256xf8E4M3FN>, tensor<128x256xf32>
      scf.yield %e : tensor<128x256xf32>
    }
    tile.store %d, %z[%i, %j] : tensor<128x256xf32>, !C, i32, i32
    return
  }
}

// -----

!V = memref<?xf32, strided<[1]>>

// A short block, and the hint 1: nothing is told to the launcher.
// REMARK-NOT: remark
// CHECK-LABEL: func.func @short
// CHECK-NOT: slice
module attributes {tile.target = "sm_90a"} {
  func.func @short(%x: !V, %z: !V) attributes {tile.kernel} {
    %i = tile.block_id 0
    %a = tile.load %x[%i] padding zero : !V, i32 -> tensor<1024xf32>
    tile.store %a, %z[%i] : tensor<1024xf32>, !V, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// What no number of a launch record holds, no launch decides by.
// CHECK-LABEL: func.func @huge(
// CHECK-NOT: slice =
module attributes {tile.target = "sm_90a"} {
  func.func @huge(%x: !A, %y: !A) attributes {tile.kernel} {
    %i = tile.block_id 0
    %a = tile.load %x[%i, %i] padding zero : !A, i32, i32 -> tensor<1048576x1024xbf16>
    tile.store %a, %y[%i, %i] : tensor<1048576x1024xbf16>, !A, i32, i32
    return
  }
}
