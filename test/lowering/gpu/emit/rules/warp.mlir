// What lanes do together: an intrinsic on words of 32 bits.
// RUN: tw-opt %s --tile-allocate-shared --tile-to-nvvm | FileCheck %s

module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: llvm.func @warp
  func.func @warp(%m: i32, %d: f64, %h: f16, %p: i1) attributes {tile.kernel, tile.simt} {
    // CHECK: llvm.nvvm.match.all.sync.i32p
    // CHECK-COUNT-2: llvm.nvvm.shfl.sync.bfly.i32
    // CHECK: llvm.nvvm.shfl.sync.up.i32
    // CHECK: llvm.nvvm.vote.ballot.sync
    // CHECK: llvm.nvvm.bar.warp.sync
    // CHECK: llvm.nvvm.barrier.cta.red.popc.aligned.all
    %0 = tile.match all, %m, %h : f16
    %1 = tile.shuffle xor, %m, %d, %0 : f64 -> f64
    %2 = tile.shuffle up, %m, %h, %m : f16 -> f16
    %3 = tile.vote ballot, %m, %p -> i32
    tile.sync_warp %3
    %4 = tile.sync_vote count, %p : i1 -> i32
    // CHECK: nvvm.barrier0
    // CHECK: llvm.nvvm.barrier.cta.sync.all
    scf.if %p {
      tile.sync_threads
    }
    %q = arith.cmpi slt, %0, %m : i32
    scf.if %q {
      tile.sync_threads
    }
    return
  }

  // Lanes that agree in each of 3 bits, of those that vote; an unknown number takes the instruction.
  // CHECK-LABEL: llvm.func @digits
  // CHECK-COUNT-4: llvm.nvvm.vote.ballot.sync
  // CHECK-NOT: llvm.nvvm.vote
  // CHECK: llvm.nvvm.match.any.sync.i32
  func.func @digits(%m: i32, %x: i32) attributes {tile.kernel, tile.simt} {
    %seven = arith.constant 7 : i32
    %digit = arith.andi %x, %seven : i32
    %0 = tile.match any, %m, %digit : i32
    %1 = tile.match any, %0, %x : i32
    tile.sync_warp %1
    return
  }
}
