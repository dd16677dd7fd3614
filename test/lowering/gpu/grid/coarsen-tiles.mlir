// A block computes the tiles of several neighbours, where positions are nothing but indices of tiles.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-resize-tiles),canonicalize,cse)' 2>/dev/null | FileCheck %s
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-resize-tiles),canonicalize,cse)' 2>&1 | FileCheck %s --check-prefix=REMARK

!A = memref<?x?xbf16, strided<[?, 1]>>

// The launcher decides: 64 of word 2 are a step; four plans of 1, 2, 4 and 8 blocks, each with the blocks along each axis,
// and the cycles and bytes of an iteration; axis 0 covers word 11 by 64 a block, and axis 1 word 12.
// REMARK: remark: 'func.func' op coarsens its tiles where a launch has many blocks: a block computes those of up to 8
// CHECK-LABEL: func.func @decided_at_launch
// CHECK-SAME: coarsen = {beside = 85 : i64, loop = {per_step = 64 : i64, steps = 0 : i64, word = 2 : i64}, plans = [{alone = 234 : i64, blocks = array<i64: 1, 1, 1>, bytes = 16384 : i64, cycles = 234 : i64}, {alone = 320 : i64, blocks = array<i64: 1, 2, 1>, bytes = 24576 : i64, cycles = 320 : i64}, {alone = 576 : i64, blocks = array<i64: 2, 2, 1>, bytes = 32768 : i64, cycles = 576 : i64}, {alone = 1088 : i64, blocks = array<i64: 2, 4, 1>, bytes = 49152 : i64, cycles = 1088 : i64}], stores = [{axis = 0 : i64, tile = 64 : i64, word = 11 : i64}, {axis = 1 : i64, tile = 64 : i64, word = 12 : i64}]}
// CHECK: tile.mma {{.*}} tensor<64x64xf32>
module attributes {tile.target = "sm_90a"} {
  func.func @decided_at_launch(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 1, 1>, tile.stride_div = array<i64: 64, 1>}, %y: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 1, 1>, tile.stride_div = array<i64: 64, 1>}, %z: !A) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %e = tile.dim %x, 1 : !A
    %n = arith.ceildivsi %e, %c64 : i32
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %m = tile.mma %a, %b, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %m : tensor<64x64xf32>
    }
    %t = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xbf16>
    tile.store %t, %z[%i, %j] : tensor<64x64xbf16>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Beside the loop stand an activation (one function and one product of 4096 elements, 288 clocks of 128 lanes) and a
// store, 8192 bytes, 85 clocks; casts go with moves.
// CHECK-LABEL: func.func @activation
// CHECK-SAME: coarsen = {beside = 373 : i64,
module attributes {tile.target = "sm_90a"} {
  func.func @activation(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 1, 1>, tile.stride_div = array<i64: 64, 1>}, %y: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 1, 1>, tile.stride_div = array<i64: 64, 1>}, %z: !A) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %d = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %m = tile.mma %a, %b, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %m : tensor<64x64xf32>
    }
    %f = math.exp %d : tensor<64x64xf32>
    %g = arith.mulf %f, %d : tensor<64x64xf32>
    %t = arith.truncf %g : tensor<64x64xf32> to tensor<64x64xbf16>
    tile.store %t, %z[%i, %j] : tensor<64x64xbf16>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Rows may begin at any 16 bytes of a line of the cache, which then brings two for each: small tiles wait for it.
// CHECK-LABEL: func.func @odd_rows
// CHECK-SAME: cycles = 405 : i64{{.*}} cycles = 519 : i64{{.*}} cycles = 746 : i64{{.*}} cycles = 1088 : i64
module attributes {tile.target = "sm_90a"} {
  func.func @odd_rows(%x: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 1, 1>, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.align = 16 : i32, tile.shape_div = array<i64: 1, 1>, tile.stride_div = array<i64: 8, 1>}, %z: !A) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %e = tile.dim %x, 1 : !A
    %n = arith.ceildivsi %e, %c64 : i32
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %m = tile.mma %a, %b, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %m : tensor<64x64xf32>
    }
    %t = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xbf16>
    tile.store %t, %z[%i, %j] : tensor<64x64xbf16>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xi8, strided<[?, 1]>>
!C = memref<?x?xi32, strided<[?, 1]>>

// Rows may begin anywhere, so that each element goes through a register: eight warps have them for those of four blocks.
// CHECK-LABEL: func.func @elements
// CHECK-SAME: {alone = 576 : i64, blocks = array<i64: 2, 2, 1>, bytes = 32768 : i64, cycles = 746 : i64}], stores
module attributes {tile.target = "sm_90a"} {
  func.func @elements(%x: !A, %y: !A, %z: !C) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0> : tensor<64x64xi32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %e = tile.dim %x, 1 : !A
    %n = arith.ceildivsi %e, %c128 : i32
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xi32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<64x128xi8>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<128x64xi8>
      %m = tile.mma %a, %b, %acc : tensor<64x128xi8>, tensor<128x64xi8>, tensor<64x64xi32>
      scf.yield %m : tensor<64x64xi32>
    }
    tile.store %d, %z[%i, %j] : tensor<64x64xi32>, !C, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Four in one, by the hint: the program with tiles of 256x64, for only the position along axis 0 is nothing but an index.
// REMARK: remark: 'func.func' op coarsens its tiles: a block computes those of 4
// CHECK-LABEL: func.func @rows
// CHECK-SAME: grid_scale = array<i32: -4, 1, 1>
// CHECK: %[[I:.*]] = tile.block_id 0
// CHECK: tile.load %{{.*}}[%[[I]], %{{.*}}] {{.*}} -> tensor<256x64xbf16>
// CHECK: tile.load {{.*}} -> tensor<64x64xbf16>
// CHECK: tile.store %{{.*}}[%[[I]], %{{.*}}] : tensor<256x64xbf16>
module attributes {tile.target = "sm_90a"} {
  func.func @rows(%x: !A, %y: !A, %z: !A) attributes {tile.kernel, tile.hints = {coarsen_tiles = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %d = scf.for %k = %c0 to %j step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %m = tile.mma %a, %b, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %m : tensor<64x64xf32>
    }
    %t = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xbf16>
    tile.store %t, %z[%i, %j] : tensor<64x64xbf16>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Not where the number of blocks is asked for, or an iota counts, ...
// REMARK: remark: 'func.func' op coarsens no tiles: a block's index is more than the position of its tiles, or their elements depend on each other
// CHECK-LABEL: func.func @asks
// CHECK: tile.mma {{.*}} tensor<64x64xf32>
module attributes {tile.target = "sm_90a"} {
  func.func @asks(%x: !A, %y: !A, %z: !A) attributes {tile.kernel, tile.hints = {coarsen_tiles = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %n = tile.num_blocks 0
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %m = tile.mma %a, %b, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %m : tensor<64x64xf32>
    }
    %iota = tile.iota : tensor<64xi32>
    %f = arith.sitofp %iota : tensor<64xi32> to tensor<64xf32>
    %r = tile.reshape %f : tensor<64xf32> -> tensor<1x64xf32>
    %c = tile.broadcast %r : tensor<1x64xf32> -> tensor<64x64xf32>
    %s = arith.addf %d, %c : tensor<64x64xf32>
    %t = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xbf16>
    tile.store %t, %z[%i, %j] : tensor<64x64xbf16>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// ... nor where something is at another place, or not a tile's index: the diagonal, or an element.
// REMARK: remark: 'func.func' op coarsens no tiles: a block's index is more than the position
// CHECK-LABEL: func.func @elsewhere
// CHECK: tile.mma {{.*}} tensor<64x64xf32>
module attributes {tile.target = "sm_90a"} {
  func.func @elsewhere(%x: !A, %y: !A, %z: !A) attributes {tile.kernel, tile.hints = {coarsen_tiles = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %next = arith.addi %j, %c1 : i32
    %d = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %b = tile.load %y[%k, %next] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %m = tile.mma %a, %b, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %m : tensor<64x64xf32>
    }
    %o = tile.load %x[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
    %t = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xbf16>
    %s = arith.addf %t, %o : tensor<64x64xbf16>
    tile.store %s, %z[%i, %j] : tensor<64x64xbf16>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Of a long step of k a line is loaded at a time: two such tiles have room.
// REMARK: remark: 'func.func' op coarsens its tiles where a launch has many blocks: a block computes those of up to 2
// CHECK-LABEL: func.func @long
// CHECK-SAME: blocks = array<i64: 1, 2, 1>, bytes = 98304 : i64
module attributes {tile.target = "sm_90a"} {
  func.func @long(%x: !A {tile.tma, tile.align = 16 : i32, tile.shape_div = array<i64: 1, 1>, tile.stride_div = array<i64: 64, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.shape_div = array<i64: 1, 1>, tile.stride_div = array<i64: 64, 1>}, %z: !A) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %e = tile.dim %x, 1 : !A
    %n = arith.ceildivsi %e, %c128 : i32
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<128x128xbf16>
      %m = tile.mma %a, %b, %acc : tensor<128x128xbf16>, tensor<128x128xbf16>, tensor<128x128xf32>
      scf.yield %m : tensor<128x128xf32>
    }
    %t = arith.truncf %d : tensor<128x128xf32> to tensor<128x128xbf16>
    tile.store %t, %z[%i, %j] : tensor<128x128xbf16>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Nor large tiles, of which two have no registers.
// REMARK: remark: 'func.func' op coarsens no tiles: its tiles are large
// CHECK-LABEL: func.func @large
// CHECK-NOT: coarsen
module attributes {tile.target = "sm_90a"} {
  func.func @large(%x: !A, %y: !A, %z: !A) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %d = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
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
!Q = memref<?x?xi8, strided<[?, 1]>>

// Weights that are computed would be computed twice as often in a tile of twice as many columns: it takes the rows of two
// blocks, though it loads more then. Cycles count what is computed.
// CHECK-LABEL: func.func @weights
// CHECK-SAME: plans = [{alone = 832 : i64, blocks = array<i64: 1, 1, 1>, bytes = 24576 : i64, cycles = 832 : i64}, {alone = 1344 : i64, blocks = array<i64: 2, 1, 1>, bytes = 40960 : i64, cycles = 1344 : i64}]
module attributes {tile.target = "sm_90a"} {
  func.func @weights(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 64, 1>}, %y: !Q {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 128, 1>}, %z: !A) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %e = tile.dim %x, 1 : !A
    %n = arith.ceildivsi %e, %c64 : i32
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %q = tile.load %y[%k, %j] padding zero : !Q, i32, i32 -> tensor<64x128xi8>
      %b = arith.sitofp %q : tensor<64x128xi8> to tensor<64x128xbf16>
      %m = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %m : tensor<128x128xf32>
    }
    %t = arith.truncf %d : tensor<128x128xf32> to tensor<128x128xbf16>
    tile.store %t, %z[%i, %j] : tensor<128x128xbf16>, !A, i32, i32
    return
  }
}
