// Neighbours in the grid become a cluster without a hint where the L2 cache limits their products: it gives two lines of
// 128 bytes for one that begins within a line, and some 9 lines in 16 cycles.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-plan-grid,tile-persistent-loop),canonicalize,cse)' 2>/dev/null | FileCheck %s
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-plan-grid,tile-persistent-loop),canonicalize,cse)' 2>&1 | FileCheck %s --check-prefix=REMARK

!A = memref<?x?xbf16, strided<[?, 1]>>

// 768 lines in 1024 cycles; together two blocks ask for a third less.
// REMARK: runs in clusters of 2 blocks along axis 0, which load shared tiles by multicast: rows that are no multiple of 128 bytes
// CHECK-LABEL: func.func @both_split
// CHECK-SAME: cluster_blocks = 2 : i32
// CHECK-SAME: multicast = {alone = 1365 : i64, axis = 0 : i64, cycles = array<i64: 1024, 1137, 0>}
// CHECK-SAME: persistent = 1 : i32
// CHECK: tile.load %arg0{{.*}} padding zero :
// CHECK: tile.load %arg1{{.*}} padding zero {tile.multicast}
module attributes {tile.target = "sm_90a"} {
  func.func @both_split(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: !A) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %d = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x256xbf16>
      %e = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>
      scf.yield %e : tensor<128x256xf32>
    }
    %t = arith.truncf %d : tensor<128x256xf32> to tensor<128x256xbf16>
    tile.store %t, %z[%i, %j] : tensor<128x256xbf16>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// The bigger tile is the one of %x: neighbours along the other axis share it.
// REMARK: runs in clusters of 2 blocks along axis 1, which load shared tiles by multicast: rows that are no multiple of 128 bytes
// CHECK-LABEL: func.func @other_way
// CHECK-SAME: cluster_blocks = 2 : i32
// CHECK-SAME: multicast = {alone = 1365 : i64, axis = 1 : i64, cycles = array<i64: 1137, 1024, 0>}
// CHECK-SAME: persistent = 1 : i32
// CHECK: tile.load %arg0{{.*}} padding zero {tile.multicast}
// CHECK: tile.load %arg1{{.*}} padding zero :
module attributes {tile.target = "sm_90a"} {
  func.func @other_way(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: !A) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<256x128xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %d = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<256x128xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<256x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %e = tile.mma %a, %b, %acc : tensor<256x64xbf16>, tensor<64x128xbf16>, tensor<256x128xf32>
      scf.yield %e : tensor<256x128xf32>
    }
    %t = arith.truncf %d : tensor<256x128xf32> to tensor<256x128xbf16>
    tile.store %t, %z[%i, %j] : tensor<256x128xbf16>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Of equal tiles the one that is given in two lines counts twice.
// REMARK: runs in clusters of 2 blocks along axis 1, which load shared tiles by multicast: rows that are no multiple of 128 bytes
// CHECK-LABEL: func.func @one_splits
// CHECK-SAME: cluster_blocks = 2 : i32
// CHECK-SAME: multicast = {alone = 682 : i64, axis = 1 : i64, cycles = array<i64: 568, 512, 0>}
// CHECK-SAME: persistent = 1 : i32
// CHECK: tile.load %arg0{{.*}} padding zero {tile.multicast}
// CHECK: tile.load %arg1{{.*}} padding zero :
module attributes {tile.target = "sm_90a"} {
  func.func @one_splits(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 64, 1>}, %z: !A) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %d = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %e = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %e : tensor<128x128xf32>
    }
    %t = arith.truncf %d : tensor<128x128xf32> to tensor<128x128xbf16>
    tile.store %t, %z[%i, %j] : tensor<128x128xbf16>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// 512 lines in 1024 cycles, since only the smaller tile is split: the cache keeps up.
// CHECK-LABEL: func.func @few_split
// CHECK-SAME: persistent = 1 : i32
// CHECK-NOT: multicast
module attributes {tile.target = "sm_90a"} {
  func.func @few_split(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 64, 1>}, %z: !A) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %d = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x256xbf16>
      %e = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>
      scf.yield %e : tensor<128x256xf32>
    }
    %t = arith.truncf %d : tensor<128x256xf32> to tensor<128x256xbf16>
    tile.store %t, %z[%i, %j] : tensor<128x256xbf16>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Small tiles of whole lines: something else limits these.
// CHECK-LABEL: func.func @whole_lines
// CHECK-SAME: persistent = 1 : i32
// CHECK-NOT: multicast
module attributes {tile.target = "sm_90a"} {
  func.func @whole_lines(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 64, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 64, 1>}, %z: !A) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<64x256xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %d = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<64x256xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x256xbf16>
      %e = tile.mma %a, %b, %acc : tensor<64x64xbf16>, tensor<64x256xbf16>, tensor<64x256xf32>
      scf.yield %e : tensor<64x256xf32>
    }
    %t = arith.truncf %d : tensor<64x256xf32> to tensor<64x256xbf16>
    tile.store %t, %z[%i, %j] : tensor<64x256xbf16>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// The hint says that blocks stay alone.
// CHECK-LABEL: func.func @refused
// CHECK-SAME: persistent = 1 : i32
// CHECK-NOT: multicast
module attributes {tile.target = "sm_90a"} {
  func.func @refused(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: !A) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32, num_ctas = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %d = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x256xbf16>
      %e = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>
      scf.yield %e : tensor<128x256xf32>
    }
    %t = arith.truncf %d : tensor<128x256xf32> to tensor<128x256xbf16>
    tile.store %t, %z[%i, %j] : tensor<128x256xbf16>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// The hints say that whole lines are shared, too, and along which axis; nothing is left to a launch.
// CHECK-LABEL: func.func @told
// CHECK-SAME: cluster_blocks = 2 : i32
// CHECK-SAME: multicast = {alone = 2147483647 : i64, axis = 1 : i64, cycles = array<i64: 0, 1024, 0>}
// CHECK-SAME: persistent = 1 : i32
// CHECK: tile.load %arg0{{.*}} padding zero {tile.multicast}
// CHECK: tile.load %arg1{{.*}} padding zero :
module attributes {tile.target = "sm_90a"} {
  func.func @told(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 64, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 64, 1>}, %z: !A) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32, num_ctas = 2 : i32, cluster_axis = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %d = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x256xbf16>
      %e = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>
      scf.yield %e : tensor<128x256xf32>
    }
    %t = arith.truncf %d : tensor<128x256xf32> to tensor<128x256xbf16>
    tile.store %t, %z[%i, %j] : tensor<128x256xbf16>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>
!V = memref<?xbf16, strided<[1]>>

// A tile of which no block can bring 1024 bytes comes to each by itself.
// CHECK-LABEL: func.func @small_tile
// CHECK-SAME: cluster_blocks = 2 : i32
// CHECK-SAME: multicast = {alone = 1367 : i64, axis = 0 : i64, cycles = array<i64: 1024, 1139, 0>}
// CHECK-SAME: persistent = 1 : i32
// CHECK: tile.load %arg3[%{{.*}}] padding zero :
// CHECK: tile.load %arg1{{.*}} padding zero {tile.multicast}
module attributes {tile.target = "sm_90a"} {
  func.func @small_tile(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: !A, %v: !V {tile.tma, tile.align = 16 : i32}) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %d = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
      %x0 = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %scale = tile.load %v[%k] padding zero : !V, i32 -> tensor<64xbf16>
      %row = tile.reshape %scale : tensor<64xbf16> -> tensor<1x64xbf16>
      %scales = tile.broadcast %row : tensor<1x64xbf16> -> tensor<128x64xbf16>
      %a = arith.mulf %x0, %scales : tensor<128x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x256xbf16>
      %e = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>
      scf.yield %e : tensor<128x256xf32>
    }
    %t = arith.truncf %d : tensor<128x256xf32> to tensor<128x256xbf16>
    tile.store %t, %z[%i, %j] : tensor<128x256xbf16>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// The neighbour may not come to this load: who brings half of a tile has to do so for both.
// REMARK: is not clustered: {{.*}} unconditional loads
// CHECK-LABEL: func.func @conditional
// CHECK-SAME: persistent = 1 : i32
// CHECK-NOT: multicast
module attributes {tile.target = "sm_90a"} {
  func.func @conditional(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: !A) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %some = arith.cmpi slt, %i, %j : i32
    %d = scf.if %some -> (tensor<128x256xf32>) {
      %s = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
        %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
        %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x256xbf16>
        %e = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>
        scf.yield %e : tensor<128x256xf32>
      }
      scf.yield %s : tensor<128x256xf32>
    } else {
      scf.yield %zero : tensor<128x256xf32>
    }
    %t = arith.truncf %d : tensor<128x256xf32> to tensor<128x256xbf16>
    tile.store %t, %z[%i, %j] : tensor<128x256xbf16>, !A, i32, i32
    return
  }
}
