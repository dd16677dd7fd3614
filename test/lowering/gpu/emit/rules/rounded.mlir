// RUN: tw-opt --tile-to-nvvm %s | FileCheck %s
#l = #tile.linear<register = [], lane = [[1], [2], [4], [8], [16]]>
module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: llvm.func @k
  func.func @k(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf64, strided<[1]>>) attributes {tile.kernel, tile.launch = {num_warps = 1 : i32}} {
    %i = tile.block_id 0
    %a = tile.load %x[%i] : memref<?xf32, strided<[1]>>, i32 -> tensor<32xf32, #l>
    %b = tile.load %y[%i] : memref<?xf64, strided<[1]>>, i32 -> tensor<32xf64, #l>
    // CHECK: %[[NEGATED:.*]] = llvm.fneg
    // CHECK: llvm.call_intrinsic "llvm.nvvm.add.rz.f"(%{{.*}}, %[[NEGATED]])
    %c = tile.rounded sub rz, %a, %a : tensor<32xf32, #l> from tensor<32xf32, #l>, tensor<32xf32, #l>
    // CHECK: llvm.call_intrinsic "llvm.nvvm.sqrt.rp.d"(%{{.*}}) {{.*}}: (f64) -> f64
    %d = tile.rounded sqrt rp, %b : tensor<32xf64, #l> from tensor<32xf64, #l>
    // CHECK: llvm.inline_asm "add.rn.ftz.f32 $0, $1, 0f80000000;"
    %e = tile.flush %c : tensor<32xf32, #l>
    tile.store %e, %x[%i] : tensor<32xf32, #l>, memref<?xf32, strided<[1]>>, i32
    tile.store %d, %y[%i] : tensor<32xf64, #l>, memref<?xf64, strided<[1]>>, i32
    return
  }
}
