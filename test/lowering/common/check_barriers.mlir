// In check mode threads that come to one of two barriers tell each other to which, by the bits of its number.
// RUN: tw-opt %s --pass-pipeline='builtin.module(tile-legalize)' | FileCheck %s
// RUN: sed s/sm_90/cpu/ %s | tw-opt --pass-pipeline='builtin.module(tile-legalize)' | FileCheck %s --check-prefix=CPU

module attributes {tile.target = "sm_90"} {
  // CHECK: tile.sync_vote or
  // CHECK: tile.sync_vote and
  // CHECK: tile.sync_threads
  // CHECK: tile.sync_vote or
  // CPU-NOT: tile.sync_vote
  func.func @barriers(%report: memref<?xi64>, %owners: memref<?xi32>)
      attributes {tile.kernel, tile.simt, tile.hints = {check = 1 : i32}} {
    %t = tile.thread_id 0
    %c = arith.constant 4 : i32
    %p = arith.cmpi slt, %t, %c : i32
    scf.if %p {
      tile.sync_threads
    }
    tile.sync_threads
    return
  }
}
