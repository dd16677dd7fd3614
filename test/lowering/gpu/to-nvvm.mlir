// The code of one thread.
// RUN: tw-opt %s -split-input-file --pass-pipeline='builtin.module(tile-to-nvvm)' | FileCheck %s

#l = #tile.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128]]>

module attributes {tile.target = "sm_90a"} {
  // An array is three words here, a scalar one; the block has as many threads as the layouts have.
  // A thread goes once through a few elements: so many warps shall fit that functions of them take few registers.
  // CHECK: llvm.func @saxpy(%{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64) attributes {nvvm.kernel, nvvm.minctasm = 16 : i32, nvvm.reqntid = array<i32: 64>,
  // CHECK-SAME: num_threads = 64 : i32
  // CHECK-SAME: shared_bytes = 0 : i32
  func.func @saxpy(%a: memref<?xf32, strided<[1]>> {tile.align = 16 : i32, tile.shape_div = array<i64: 4>}, %s: f32) attributes {tile.kernel, tile.hints = {num_warps = 2 : i32}} {
    %i = tile.block_id 0
    // One access of 16 bytes under one predicate, zeros where it does not hold.
    // CHECK: llvm.inline_asm has_side_effects "mov.b32 $0, 0x0; {{.*}}@$5 ld.global.v4.b32 {$0, $1, $2, $3}, [$4 + 0];"
    // CHECK-NOT: ld.global
    %x = tile.load %a[%i] padding zero : memref<?xf32, strided<[1]>>, i32 -> tensor<256xf32, #l>
    %t = tensor.splat %s : tensor<256xf32, #l>
    // CHECK-COUNT-4: llvm.fmul
    %y = arith.mulf %x, %t : tensor<256xf32, #l>
    // CHECK: "@$5 st.global.v4.b32 [$4 + 0], {$0, $1, $2, $3};"
    tile.store %y, %a[%i] : tensor<256xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }

  // What may wait for stores says so still.
  // CHECK-LABEL: llvm.func @late
  func.func @late(%a: memref<?xf32, strided<[1]>>, %b: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 2 : i32}} {
    %i = tile.block_id 0
    // CHECK-COUNT-4: llvm.inline_asm has_side_effects {tile.late} "mov.b32 $0, 0x0; @$2 ld.global.b32
    %x = tile.load %a[%i] {tile.late} : memref<?xf32, strided<[1]>>, i32 -> tensor<256xf32, #l>
    tile.store %x, %b[%i] : tensor<256xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[0, 1], [1, 0]], lane = [[0, 2], [0, 4], [2, 0], [4, 0], [8, 0]]>
#m = #tile.linear<register = [[1], [8]], lane = [[2], [4], [0], [0], [0]]>
#s = #tile.linear<register = [[1]], lane = [[0], [0], [2], [4], [8]]>

module attributes {tile.target = "sm_80"} {
  // Along an axis: registers, then the lanes that the axis lies on, and no others.
  // CHECK-LABEL: llvm.func @reduce
  func.func @reduce(%a: memref<?x?xf32, strided<[?, 1]>>, %b: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i, %i] : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<16x8xf32, #l>
    // CHECK-COUNT-2: llvm.intr.maximum
    // CHECK-COUNT-4: llvm.nvvm.shfl.sync.bfly
    // CHECK-NOT: shfl
    // CHECK-NOT: nvvm.barrier
    %r = "tile.reduce"(%x) {kind = 3 : i32, axis = 1 : i32} : (tensor<16x8xf32, #l>) -> tensor<16xf32, #s>
    // Three lanes in four hold copies: one of them writes.
    // CHECK: llvm.and %{{.*}}, %{{.*}} : i32
    // CHECK: st.global
    tile.store %r, %b[%i] : tensor<16xf32, #s>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1]], lane = [[2], [4], [8], [16], [32]]>

module attributes {tile.target = "sm_80"} {
  // A loop carries one value a register; a division cannot trap.
  // CHECK-LABEL: llvm.func @loop
  func.func @loop(%a: memref<?xi32, strided<[1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %x = tile.load %a[%c0] : memref<?xi32, strided<[1]>>, i32 -> tensor<64xi32, #l>
    // CHECK: llvm.br ^[[HEAD:.*]](%{{.*}}, %{{.*}}, %{{.*}} : i32, i32, i32)
    // CHECK: ^[[HEAD]](%[[IV:.*]]: i32, %{{.*}}: i32, %{{.*}}: i32):
    // CHECK: llvm.icmp "slt" %[[IV]]
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%v = %x) -> (tensor<64xi32, #l>) : i32 {
      // CHECK: llvm.select
      // CHECK-NEXT: llvm.sdiv
      %q = arith.divsi %v, %x : tensor<64xi32, #l>
      scf.yield %q : tensor<64xi32, #l>
    }
    tile.store %r, %a[%c0] : tensor<64xi32, #l>, memref<?xi32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]]>

module attributes {tile.target = "sm_80"} {
  // An array of any length: long accesses for a tile that lies inside of it, single elements at its edge.
  // CHECK-LABEL: llvm.func @ragged
  func.func @ragged(%a: memref<?xf32, strided<[1]>> {tile.align = 16 : i32}) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    // CHECK: llvm.cond_br %{{.*}}, ^[[INSIDE:.*]], ^[[EDGE:.*]]
    // CHECK: ^[[INSIDE]]:
    // CHECK-NEXT: llvm.inline_asm has_side_effects "ld.global.v4.b32 {$0, $1, $2, $3}, [$4 + 0];"
    // CHECK: ^[[EDGE]]:
    // CHECK-COUNT-4: @$2 ld.global.b32
    // CHECK: llvm.cond_br
    // CHECK: st.global.v4.b32
    // CHECK-COUNT-4: st.global.b32
    %x = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<128xf32, #l>
    tile.store %x, %a[%i] : tensor<128xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1], [2], [1024], [2048], [4096], [8192]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256], [512]]>

module attributes {tile.target = "sm_90a"} {
  // A row that fills the registers: 16 warps of a multiprocessor shall have one all the same.
  // CHECK: llvm.func @long_row({{.*}} attributes {nvvm.kernel, nvvm.minctasm = 2 : i32, nvvm.reqntid = array<i32: 256>,
  func.func @long_row(%a: memref<?xf32, strided<[1]>> {tile.align = 16 : i32}) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %i = tile.block_id 0
    %x = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<16384xf32, #l>
    tile.store %x, %a[%i] : tensor<16384xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}

// -----

#l = #tile.linear<register = [[1], [2], [512], [1024]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]]>

module attributes {tile.target = "sm_90a"} {
  // Nor shall tiles that a loop carries together take the registers of the other warps.
  // CHECK: llvm.func @sums({{.*}} attributes {nvvm.kernel, nvvm.minctasm = 4 : i32, nvvm.reqntid = array<i32: 128>,
  func.func @sums(%a: memref<?xf32, strided<[1]>> {tile.align = 16 : i32}, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<2048xf32, #l>
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %zero, %y = %zero, %z = %zero) -> (tensor<2048xf32, #l>, tensor<2048xf32, #l>, tensor<2048xf32, #l>) : i32 {
      %t = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<2048xf32, #l>
      %u = arith.addf %x, %t : tensor<2048xf32, #l>
      scf.yield %u, %x, %y : tensor<2048xf32, #l>, tensor<2048xf32, #l>, tensor<2048xf32, #l>
    }
    tile.store %r#2, %a[%c0] : tensor<2048xf32, #l>, memref<?xf32, strided<[1]>>, i32
    return
  }
}
