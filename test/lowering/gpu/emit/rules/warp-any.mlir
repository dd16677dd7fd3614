// RUN: tw-opt %s -pass-pipeline='builtin.module(tile-to-nvvm)' | FileCheck %s

#half = #tile.linear<register = [[1]], lane = [[2], [4], [8], [16], [32]]>

// A warp decides for itself, of all that its lanes hold.
// CHECK-LABEL: @votes
// CHECK: %[[OWN:.*]] = llvm.or
// CHECK: llvm.call_intrinsic "llvm.nvvm.vote.any.sync"(%{{.*}}, %[[OWN]])
// CHECK-NOT: barrier
// A branch in which all warps meet is taken by all or none.
// CHECK: llvm.call_intrinsic "llvm.nvvm.barrier.cta.red.or.aligned.all"
// CHECK: llvm.cond_br
// CHECK: nvvm.barrier
module attributes {tile.target = "sm_90a"} {
  func.func @votes(%a: memref<?xf32, strided<[1]>>, %i: i32) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %zero = arith.constant dense<0.0> : tensor<64xf32, #half>
    %x = tile.load %a[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<64xf32, #half>
    %c = arith.cmpf ogt, %x, %zero : tensor<64xf32, #half>
    %own = tile.warp_any %c : tensor<64xi1, #half>
    %y = scf.if %own -> (tensor<64xf32, #half>) {
      %n = arith.negf %x : tensor<64xf32, #half>
      scf.yield %n : tensor<64xf32, #half>
    } else {
      scf.yield %x : tensor<64xf32, #half>
    }
    %d = arith.cmpf olt, %y, %zero : tensor<64xf32, #half>
    %all = tile.warp_any %d : tensor<64xi1, #half>
    scf.if %all {
      tile.barrier
    }
    tile.store %y, %a[%i] : tensor<64xf32, #half>, memref<?xf32, strided<[1]>>, i32
    return
  }
}
