// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-plan-grid,tile-persistent-loop),canonicalize,cse)' 2>/dev/null | FileCheck %s
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-plan-grid,tile-persistent-loop),canonicalize,cse)' 2>&1 | FileCheck %s --check-prefix=REMARK

// One after the other, of the kernels below.
// REMARK: remark: 'func.func' op runs its blocks in groups of 16 along axis 0, then along axis 1 of the grid
// REMARK: remark: 'func.func' op is persistent
// REMARK: remark: 'func.func' op runs its blocks in groups of 8 along axis 1, then along axis 2 of the grid
// REMARK: remark: 'func.func' op is persistent
// REMARK-NOT: in groups
// REMARK: remark: 'func.func' op is persistent: one wave of blocks in a serpentine schedule, the longest loops first
// REMARK: remark: 'func.func' op is persistent: one wave of blocks in a serpentine schedule, the longest loops first
// REMARK: remark: 'func.func' op is not persistent: how much a block computes depends on its position{{$}}
// REMARK: remark: 'func.func' op keeps the order of the grid, which is observable: it prints, asserts or waits
// REMARK: remark: 'func.func' op keeps the order of the grid: the array is not known to have an address
// REMARK: remark: 'func.func' op keeps the order of the grid: a loop writes to an array that the kernel may load from
// REMARK: remark: 'func.func' op is persistent
// REMARK: remark: 'func.func' op keeps the order of the grid: few warps compute on what a load in a loop gathers
// REMARK: remark: 'func.func' op runs in clusters of 2 blocks along axis 0, which load shared tiles by multicast
// REMARK: remark: 'func.func' op is not clustered: that needs shared tiles, whole sums over k, unconditional loads, no gathers, and stores only after the loops
// REMARK: remark: 'func.func' op runs its blocks along axis 1 of the grid first: there they store side by side
// REMARK-NOT: side by side

!A = memref<?x?xbf16, strided<[?, 1]>>
!C = memref<?x?xf32, strided<[?, 1]>>

// The rows of 16 blocks and the columns of nine: the smallest sum of what is loaded for 132 blocks. One loop over the
// blocks of the program, whose extents are the last arguments; it divides by multiplying.
// CHECK-LABEL: func.func @gemm
// CHECK-SAME: {tile.align = 16 : i32
// CHECK-SAME: %[[X:[^:]*]]: i32, %[[Y:[^:]*]]: i32, %[[Z:[^:]*]]: i32)
// CHECK-SAME: persistent = 1 : i32
// CHECK-DAG: %[[XY:.*]] = arith.muli %[[X]], %[[Y]]
// CHECK-DAG: %[[ALL:.*]] = arith.muli %[[XY]], %[[Z]]
// CHECK-DAG: arith.divui %{{.*}}, %[[XY]]
// CHECK-DAG: %[[FIRST:.*]] = tile.block_id 0
// CHECK-DAG: %[[STEP:.*]] = tile.num_blocks 0
// CHECK: scf.for %[[V:.*]] = %[[FIRST]] to %[[ALL]] step %[[STEP]]
// CHECK: arith.extui %[[V]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[Y]]
// CHECK: } {tile.persistent}
// CHECK-NEXT: return
module attributes {tile.target = "sm_90a"} {
  func.func @gemm(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: !C) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32, num_ctas = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %n = tile.num_blocks 1
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x256xbf16>
      %e = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>
      scf.yield %e : tensor<128x256xf32>
    }
    tile.store %d, %z[%i, %j] : tensor<128x256xf32>, !C, i32, i32
    return
  }
}

// -----

!A = memref<?x?x?xbf16, strided<[?, ?, 1]>>

// Axis 0 counts matrices, so the plane is made of axes 1 and 2.
// CHECK-LABEL: func.func @batched
// CHECK-SAME: %[[X:[^ ]*]]: i32, %[[Y:[^ ]*]]: i32, %[[Z:[^ ]*]]: i32)
// CHECK-DAG: %[[YZ:.*]] = arith.muli %[[Y]], %[[Z]]
// CHECK-DAG: arith.divui %{{.*}}, %[[YZ]]
// CHECK: scf.for
module attributes {tile.target = "sm_90a"} {
  func.func @batched(%x: !A {tile.tma, tile.align = 16 : i32}, %y: !A {tile.tma, tile.align = 16 : i32}, %z: !A) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32, num_ctas = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %b = tile.block_id 0
    %i = tile.block_id 1
    %j = tile.block_id 2
    %d = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %l = tile.load %x[%b, %i, %k] padding zero : !A, i32, i32, i32 -> tensor<1x64x64xbf16>
      %r = tile.load %y[%b, %k, %j] padding zero : !A, i32, i32, i32 -> tensor<1x64x64xbf16>
      %m = tile.reshape %l : tensor<1x64x64xbf16> -> tensor<64x64xbf16>
      %n = tile.reshape %r : tensor<1x64x64xbf16> -> tensor<64x64xbf16>
      %e = tile.mma %m, %n, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    }
    %t = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xbf16>
    %u = tile.reshape %t : tensor<64x64xbf16> -> tensor<1x64x64xbf16>
    tile.store %u, %z[%b, %i, %j] : tensor<1x64x64xbf16>, !A, i32, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Every second round of the blocks goes backwards, if it is whole. Of what there is to take four rows are walked column
// by column, from the last column on, which has the most to do; rows beyond them as they are.
// CHECK-LABEL: func.func @causal
// CHECK-SAME: %[[COLUMNS:[^:]*]]: i32, %[[ROWS:[^:]*]]: i32, %[[Z:[^:]*]]: i32)
// CHECK-SAME: persistent = 1 : i32
// CHECK-DAG: %[[TOTAL:.*]] = arith.muli %{{.*}}, %[[Z]]
// CHECK-DAG: %[[STEP:.*]] = tile.num_blocks 0
// CHECK-DAG: arith.divui %c-1_i32, %[[STEP]]
// CHECK: scf.for %[[V:.*]] = %{{.*}} to %[[TOTAL]] step %[[STEP]]
// CHECK: %[[ROUND:.*]] = arith.select {{.*}} : i32
// CHECK: %[[ID:.*]] = arith.select {{.*}} : i32
// CHECK-DAG: %[[FIRST:.*]] = arith.subi %[[V]], %[[ID]]
// CHECK-DAG: %[[END:.*]] = arith.addi %[[FIRST]], %[[STEP]]
// CHECK-DAG: %[[LAST:.*]] = arith.subi %[[END]], %c1_i32
// CHECK-DAG: %[[BACK:.*]] = arith.subi %[[LAST]], %[[ID]]
// CHECK-DAG: %[[WHOLE:.*]] = arith.cmpi sle, %[[END]], %[[TOTAL]]
// CHECK-DAG: %[[IF:.*]] = arith.select %[[WHOLE]], %[[BACK]], %[[V]]
// CHECK-DAG: %[[BIT:.*]] = arith.andi %[[ROUND]], %c1_i32
// CHECK-DAG: %[[ODD:.*]] = arith.cmpi eq, %[[BIT]], %c1_i32
// CHECK: arith.select %[[ODD]], %[[IF]], %[[V]]
// CHECK-DAG: %[[IN:.*]] = arith.andi %[[Y:.*]], %c3_i32
// CHECK-DAG: %[[GROUP:.*]] = arith.subi %[[Y]], %[[IN]]
// CHECK-DAG: %[[BEFORE:.*]] = arith.muli %[[COLUMNS]], %[[IN]]
// CHECK-DAG: %[[WITHIN:.*]] = arith.addi %[[X:.*]], %[[BEFORE]]
// CHECK-DAG: %[[GROUPEND:.*]] = arith.addi %[[GROUP]], %c4
// CHECK-DAG: %[[FOUR:.*]] = arith.cmpi sle, %[[GROUPEND]], %[[ROWS]]
// CHECK-DAG: %[[COLUMN:.*]] = arith.shrui %[[WITHIN]], %c2
// CHECK-DAG: %[[COLUMN2:.*]] = arith.select %[[FOUR]], %[[COLUMN]], %[[X]]
// CHECK-DAG: %[[H:.*]] = arith.select %[[FOUR]], %{{.*}}, %[[Y]]
// CHECK-DAG: %[[I:.*]] = arith.subi %{{.*}}, %[[COLUMN2]]
// CHECK: tile.load %arg0[%[[I]], %[[H]]]
// CHECK: scf.for %{{.*}} to %[[I]] step
// CHECK: } {tile.persistent}
module attributes {tile.target = "sm_90a"} {
  func.func @causal(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.hints = {dynamic_schedule = 0 : i32, num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.block_id 0
    %h = tile.block_id 1
    %a = tile.load %x[%i, %h] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
    %d = scf.for %k = %c0 to %i step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %b = tile.load %y[%k, %h] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %e = tile.mma %a, %b, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    }
    tile.store %d, %z[%i, %h] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Here the first columns have the most to do, as a program arranges it for itself, with what a negative factor makes of it.
// CHECK-LABEL: func.func @falling
// CHECK: scf.for
// CHECK: %[[SHIFTED:.*]] = arith.shrui %{{.*}}, %c2
// CHECK: %[[COLUMN:.*]] = arith.select %{{.*}}, %[[SHIFTED]]
// CHECK-NOT: arith.subi %{{.*}}, %[[COLUMN]]
// CHECK: tile.load
module attributes {tile.target = "sm_90a"} {
  func.func @falling(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.hints = {dynamic_schedule = 0 : i32, num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %minus = arith.constant -2 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.block_id 0
    %h = tile.block_id 1
    %n = tile.num_blocks 0
    %f = arith.muli %i, %minus : i32
    %to = arith.addi %n, %f : i32
    %a = tile.load %x[%i, %h] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
    %d = scf.for %k = %c0 to %to step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %b = tile.load %y[%k, %h] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %e = tile.mma %a, %b, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    }
    tile.store %d, %z[%i, %h] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// A loop that begins and ends with the position: nothing tells where the most is to do.
// CHECK-LABEL: func.func @window
// CHECK: tile.block_id 0
// CHECK-NOT: arith.select
// CHECK: tile.load
module attributes {tile.target = "sm_90a"} {
  func.func @window(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.hints = {dynamic_schedule = 0 : i32, num_warps = 4 : i32}} {
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.block_id 0
    %h = tile.block_id 1
    %to = arith.addi %i, %c9 : i32
    %a = tile.load %x[%i, %h] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
    %d = scf.for %k = %i to %to step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %b = tile.load %y[%k, %h] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %e = tile.mma %a, %b, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    }
    tile.store %d, %z[%i, %h] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// What is printed shows the order of the blocks.
// CHECK-LABEL: func.func @prints
// CHECK-NOT: divui
module attributes {tile.target = "sm_90a"} {
  func.func @prints(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %d = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %e = tile.mma %a, %b, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    }
    tile.print "{}", %i : i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Copies of 16 bytes by every thread bring what no tensor map describes.
// CHECK-LABEL: func.func @undescribed
// CHECK-NOT: divui
module attributes {tile.target = "sm_90a"} {
  func.func @undescribed(%x: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %d = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %e = tile.mma %a, %b, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    }
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// What is written may be what a later iteration loads.
// CHECK-LABEL: func.func @writes
// CHECK-NOT: divui
module attributes {tile.target = "sm_90a"} {
  func.func @writes(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32, may_alias}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    scf.for %k = %c0 to %c9 step %c1 : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %e = tile.mma %a, %b, %zero : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      tile.store %e, %z[%k, %j] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    }
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Where arrays are taken for separate, blocks go on.
// CHECK-LABEL: func.func @writes_elsewhere
module attributes {tile.target = "sm_90a"} {
  func.func @writes_elsewhere(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.block_id 0
    %j = tile.block_id 1
    scf.for %k = %c0 to %c9 step %c1 : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %e = tile.mma %a, %b, %zero : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      tile.store %e, %z[%k, %j] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    }
    return
  }
}

// CHECK: persistent
// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Rows at indices come by copies that all warps start.
// CHECK-LABEL: func.func @gathers
// CHECK-NOT: divui
module attributes {tile.target = "sm_90a"} {
  func.func @gathers(%x: !A {tile.tma, tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %places: tensor<64x1xi32>) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %none = arith.constant dense<0.0> : tensor<64x64xbf16>
    %i = tile.block_id 0
    %j = tile.block_id 1
    %n = tile.iota : tensor<64xi32>
    %m = tile.reshape %n : tensor<64xi32> -> tensor<1x64xi32>
    %rows = tile.broadcast %places : tensor<64x1xi32> -> tensor<64x64xi32>
    %columns = tile.broadcast %m : tensor<1x64xi32> -> tensor<64x64xi32>
    %d = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %a = tile.gather %x[%rows, %columns] else %none : tensor<64x64xbf16> {check_bounds} : !A, tensor<64x64xi32>, tensor<64x64xi32> -> tensor<64x64xbf16>
      %b = tile.load %y[%k, %j] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %e = tile.mma %a, %b, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    }
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>
!C = memref<?x?xf32, strided<[?, 1]>>

// Two blocks, neighbours along axis 0, bring the tile of %y together.
// They walk over half of that axis; where its extent is odd, the last block stores nothing.
// CHECK-LABEL: func.func @pairs
// CHECK-SAME: %[[X:[^:]*]]: i32, %[[Y:[^:]*]]: i32, %[[Z:[^:]*]]: i32)
// CHECK-SAME: cluster_blocks = 2 : i32
// CHECK-SAME: persistent = 1 : i32
// CHECK-DAG: %[[UP:.*]] = arith.addi %[[X]], %c1
// CHECK-DAG: %[[HALF:.*]] = arith.divui %[[UP]], %c2
// CHECK-DAG: %[[ID:.*]] = tile.block_id 0
// CHECK-DAG: %[[FIRST:.*]] = arith.divui %[[ID]], %c2
// CHECK-DAG: %[[NUM:.*]] = tile.num_blocks 0
// CHECK-DAG: %[[STEP:.*]] = arith.divui %[[NUM]], %c2
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %{{.*}} step %[[STEP]]
// CHECK: %[[SECOND:.*]] = arith.andi %[[ID]], %c1
// CHECK: %[[TWO:.*]] = arith.muli %{{.*}}, %c2
// CHECK: %[[I:.*]] = arith.addi %[[TWO]], %[[SECOND]]
// CHECK: tile.load %arg0[%[[I]], %{{.*}}] padding zero :
// CHECK: tile.load %arg1[{{.*}}] padding zero {tile.multicast}
// CHECK: %[[IN:.*]] = arith.cmpi slt, %[[I]], %[[X]]
// CHECK-NEXT: %[[TO:.*]] = arith.select %[[IN]], %[[I]], %c16777215
// CHECK-NEXT: tile.store %{{.*}}, %arg2[%[[TO]], %{{.*}}]
module attributes {tile.target = "sm_90a"} {
  func.func @pairs(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: !C) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32, num_ctas = 2 : i32}} {
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
    tile.store %d, %z[%i, %j] : tensor<128x256xf32>, !C, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>
!C = memref<?x?xf32, strided<[?, 1]>>

// One axis of blocks: they share a tile, but there is no plane in which they could be neighbours.
// CHECK-LABEL: func.func @row
// CHECK-SAME: persistent = 1 : i32
module attributes {tile.target = "sm_90a"} {
  func.func @row(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: !C) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32, num_ctas = 2 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %i = tile.block_id 0
    %d = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<128x64xf32>) : i32 {
      %a = tile.load %x[%i, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %e = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
      scf.yield %e : tensor<128x64xf32>
    }
    tile.store %d, %z[%i, %c0] : tensor<128x64xf32>, !C, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// A transpose: loads lie side by side along axis 0, stores along axis 1, which is the one that is followed: the launcher
// exchanges the axes. Not in a grid with more blocks along axis 0 than it may have along axis 1.
// CHECK-LABEL: func.func @transpose
// CHECK-SAME: exchanged_axes = 1 : i32
// CHECK-DAG: %[[X:.*]] = tile.block_id 0
// CHECK-DAG: %[[Y:.*]] = tile.block_id 1
// CHECK-DAG: %[[STARTED:.*]] = tile.num_blocks 0
// CHECK-DAG: %[[EXCHANGED:.*]] = arith.cmpi ule, %[[STARTED]], %c65535_i32
// CHECK-DAG: %[[I:.*]] = arith.select %[[EXCHANGED]], %[[X]], %[[Y]]
// CHECK-DAG: %[[J:.*]] = arith.select %[[EXCHANGED]], %[[Y]], %[[X]]
// CHECK-NOT: arith.divui
// CHECK: tile.load %{{.*}}[%[[I]], %[[J]]]
// CHECK: tile.store %{{.*}}[%[[J]], %[[I]]]
module attributes {tile.target = "sm_90a"} {
  func.func @transpose(%x: !A, %y: !A) attributes {tile.kernel} {
    %j = tile.block_id 0
    %i = tile.block_id 1
    %a = tile.load %x[%i, %j] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
    %t = tile.permute %a [1, 0] : tensor<64x64xbf16>
    tile.store %t, %y[%j, %i] : tensor<64x64xbf16>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>
!T = memref<?x?xbf16, strided<[1, ?]>>

// Stores that lie side by side along axis 0 already, one of which says so by its strides; a store at a place that depends
// on both; one whose order shows.
// CHECK-LABEL: func.func @along_0
// CHECK-NOT: arith.select
// CHECK-LABEL: func.func @both
// CHECK-NOT: arith.select
// CHECK-LABEL: func.func @shows
// CHECK-NOT: arith.select
module attributes {tile.target = "sm_90a"} {
  func.func @along_0(%x: !A, %y: !A, %z: !T) attributes {tile.kernel} {
    %j = tile.block_id 0
    %i = tile.block_id 1
    %a = tile.load %x[%j, %i] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
    tile.store %a, %y[%i, %j] : tensor<64x64xbf16>, !A, i32, i32
    tile.store %a, %z[%j, %i] : tensor<64x64xbf16>, !T, i32, i32
    return
  }
  func.func @both(%x: !A, %y: !A) attributes {tile.kernel} {
    %j = tile.block_id 0
    %i = tile.block_id 1
    %a = tile.load %x[%j, %i] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
    %k = arith.addi %i, %j : i32
    tile.store %a, %y[%j, %k] : tensor<64x64xbf16>, !A, i32, i32
    return
  }
  func.func @shows(%x: !A, %y: !A) attributes {tile.kernel} {
    %j = tile.block_id 0
    %i = tile.block_id 1
    %a = tile.load %x[%j, %i] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
    tile.print "block {}", %j : i32
    tile.store %a, %y[%j, %i] : tensor<64x64xbf16>, !A, i32, i32
    return
  }
}
