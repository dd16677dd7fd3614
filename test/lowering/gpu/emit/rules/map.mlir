// The body of a map for each register; what writes runs in the threads that own an element.
// RUN: tw-opt %s --tile-insert-barriers --tile-allocate-shared --tile-to-nvvm | FileCheck %s

#l = #tile.linear<register = [[64]], lane = [[1], [2], [4], [8], [16]], warp = [[32]]>
#c = #tile.linear<lane = [[1], [2], [0], [0], [0]], warp = [[0]]>
module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: llvm.func @map
  func.func @map(%x: memref<?xf32, strided<[1]>>, %i: i32) attributes {tile.kernel, tile.launch = {num_warps = 2 : i32}} {
    %t = tile.load %x[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<128xf32, #l>
    // CHECK-COUNT-2: llvm.intr.sqrt
    %y = tile.map(%t) : (tensor<128xf32, #l>) -> tensor<128xf32, #l> {
    ^bb0(%a: f32):
      %b = math.sqrt %a : f32
      tile.yield %b : f32
    }
    tile.store %y, %x[%i] : tensor<128xf32, #l>, memref<?xf32, strided<[1]>>, i32
    %k = tile.iota : tensor<4xi32, #c>
    // CHECK: llvm.cond_br
    // CHECK: llvm.store
    // CHECK-NOT: llvm.store
    tile.map(%k) : (tensor<4xi32, #c>) -> () {
    ^bb0(%j: i32):
      %f = arith.sitofp %j : i32 to f32
      tile.scatter %f, %x[%j] : f32, memref<?xf32, strided<[1]>>, i32
      tile.yield
    }
    return
  }
}
