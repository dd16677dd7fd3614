// A float that is rounded to a whole number becomes a short integer by an addition that rounds so.
// RUN: tw-opt %s --pass-pipeline='builtin.module(tile-to-nvvm)' | FileCheck %s

#l = #tile.linear<register = [], lane = [[1], [2], [4], [8], [16]]>
module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: llvm.func @k
  // CHECK-DAG: %[[HALF:.*]] = llvm.mlir.constant(0x4B400000 : f32)
  func.func @k(%x: memref<?xf32, strided<[1]>>, %y: memref<?xi8, strided<[1]>>, %z: memref<?xi32, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %a = tile.load %x[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<32xf32, #l>
    %b = math.floor %a : tensor<32xf32, #l>
    // CHECK: %[[SUM:.*]] = llvm.call_intrinsic "llvm.nvvm.add.rm.f"(%{{.*}}, %[[HALF]])
    // CHECK: %[[BITS:.*]] = llvm.bitcast %[[SUM]] : f32 to i32
    // CHECK: llvm.trunc %[[BITS]] : i32 to i8
    // CHECK-NOT: llvm.fptosi
    %c = arith.fptosi %b : tensor<32xf32, #l> to tensor<32xi8, #l>
    tile.store %c, %y[%i] : tensor<32xi8, #l>, memref<?xi8, strided<[1]>>, i32
    // A longer one has more bits than the sum.
    // CHECK: llvm.fptosi
    %d = arith.fptosi %b : tensor<32xf32, #l> to tensor<32xi32, #l>
    // So has one that is not rounded: it would be another.
    // CHECK: llvm.fptosi
    %e = arith.fptosi %a : tensor<32xf32, #l> to tensor<32xi8, #l>
    tile.store %d, %z[%i] : tensor<32xi32, #l>, memref<?xi32, strided<[1]>>, i32
    tile.store %e, %y[%i] : tensor<32xi8, #l>, memref<?xi8, strided<[1]>>, i32
    return
  }
}
