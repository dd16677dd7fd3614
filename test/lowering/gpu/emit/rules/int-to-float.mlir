// Bytes of a word become floats by arithmetic on the word, so do two small numbers of words;
// other small integers go through f32, two at a time.
// RUN: tw-opt %s --pass-pipeline='builtin.module(tile-to-nvvm)' | FileCheck %s

#l = #tile.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]]>
!bytes = memref<?xi8, strided<[1]>>
!shorts = memref<?xi16, strided<[1]>>
!words = memref<?xi32, strided<[1]>>
module attributes {tile.target = "sm_90a"} {
  // The upper halves of bytes, less 3: 1024 + 8 + 3 = 1035 is taken off.
  // CHECK-LABEL: llvm.func @halves
  // CHECK-DAG: %[[LOW:.*]] = llvm.mlir.constant(252645135 : i32)
  // CHECK-DAG: %[[SIGN:.*]] = llvm.mlir.constant(134744072 : i32)
  // CHECK-DAG: llvm.mlir.constant(1.035000e+03 : f16)
  // CHECK: %[[S:.*]] = llvm.lshr %{{.*}} : i32
  // CHECK: %[[A:.*]] = llvm.and %[[S]], %[[LOW]]
  // CHECK: %[[U:.*]] = llvm.xor %[[A]], %[[SIGN]]
  // CHECK: llvm.call_intrinsic "llvm.nvvm.prmt"(%[[U]],
  // CHECK: llvm.fsub %{{.*}} : vector<2xf16>
  // CHECK: llvm.call_intrinsic "llvm.nvvm.prmt"(%[[U]],
  // CHECK-NOT: llvm.sitofp
  func.func @halves(%x: !bytes {tile.align = 16 : i32, tile.shape_div = array<i64: 16>, tile.stride_div = array<i64: 1>}, %z: memref<?xf16, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}, tile.launch = {shared_bytes = 0 : i32}} {
    %c0 = arith.constant 0 : i32
    %four = arith.constant dense<4> : tensor<128xi8, #l>
    %three = arith.constant dense<3> : tensor<128xi8, #l>
    %w = tile.load %x[%c0] padding zero : !bytes, i32 -> tensor<128xi8, #l>
    %q = arith.shrsi %w, %four : tensor<128xi8, #l>
    %d = arith.subi %q, %three : tensor<128xi8, #l>
    %f = arith.sitofp %d : tensor<128xi8, #l> to tensor<128xf16, #l>
    tile.store %f, %z[%c0] : tensor<128xf16, #l>, memref<?xf16, strided<[1]>>, i32
    return
  }

  // -128 - 3 is no i8: what wraps is computed as it stands.
  // CHECK-LABEL: llvm.func @wraps
  // CHECK-NOT: prmt
  // CHECK: llvm.sub %{{.*}} : i8
  // CHECK: llvm.sitofp %{{.*}} : i8 to f32
  // CHECK: llvm.fptrunc %{{.*}} : vector<2xf32> to vector<2xbf16>
  func.func @wraps(%x: !bytes {tile.align = 16 : i32, tile.shape_div = array<i64: 16>, tile.stride_div = array<i64: 1>}, %z: memref<?xbf16, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}, tile.launch = {shared_bytes = 0 : i32}} {
    %c0 = arith.constant 0 : i32
    %three = arith.constant dense<3> : tensor<128xi8, #l>
    %w = tile.load %x[%c0] padding zero : !bytes, i32 -> tensor<128xi8, #l>
    %d = arith.subi %w, %three : tensor<128xi8, #l>
    %f = arith.sitofp %d : tensor<128xi8, #l> to tensor<128xbf16, #l>
    tile.store %f, %z[%c0] : tensor<128xbf16, #l>, memref<?xbf16, strided<[1]>>, i32
    return
  }

  // Two numbers of 4 bits behind the exponent of bfloat16, whatever the words have beside them; 128 + 8 is taken off.
  // CHECK-LABEL: llvm.func @nibbles
  // CHECK-DAG: %[[MASK:.*]] = llvm.mlir.constant(983055 : i32)
  // CHECK-DAG: %[[EXPONENT:.*]] = llvm.mlir.constant(1124090624 : i32)
  // CHECK-DAG: llvm.mlir.constant(1.360000e+02 : bf16)
  // CHECK: %[[TWO:.*]] = llvm.call_intrinsic "llvm.nvvm.prmt"
  // CHECK: llvm.inline_asm {{.*}}"lop3.b32 $0, $1, $2, $3, 0xEA;", "=r,r,n,r" %[[TWO]], %[[MASK]], %[[EXPONENT]]
  // CHECK: llvm.fsub %{{.*}} : vector<2xbf16>
  // CHECK-NOT: llvm.sitofp
  func.func @nibbles(%x: !words {tile.align = 16 : i32, tile.shape_div = array<i64: 16>, tile.stride_div = array<i64: 1>}, %z: memref<?xbf16, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}, tile.launch = {shared_bytes = 0 : i32}} {
    %c0 = arith.constant 0 : i32
    %low = arith.constant dense<15> : tensor<128xi32, #l>
    %eight = arith.constant dense<8> : tensor<128xi32, #l>
    %w = tile.load %x[%c0] padding zero : !words, i32 -> tensor<128xi32, #l>
    %q = arith.andi %w, %low : tensor<128xi32, #l>
    %d = arith.subi %q, %eight : tensor<128xi32, #l>
    %f = arith.sitofp %d : tensor<128xi32, #l> to tensor<128xbf16, #l>
    tile.store %f, %z[%c0] : tensor<128xbf16, #l>, memref<?xbf16, strided<[1]>>, i32
    return
  }

  // Of 8 bits some are too large for bfloat16: they go through f32.
  // CHECK-LABEL: llvm.func @wide_field
  // CHECK-NOT: prmt
  // CHECK: llvm.fptrunc %{{.*}} : vector<2xf32> to vector<2xbf16>
  func.func @wide_field(%x: !words {tile.align = 16 : i32, tile.shape_div = array<i64: 16>, tile.stride_div = array<i64: 1>}, %z: memref<?xbf16, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}, tile.launch = {shared_bytes = 0 : i32}} {
    %c0 = arith.constant 0 : i32
    %low = arith.constant dense<255> : tensor<128xi32, #l>
    %w = tile.load %x[%c0] padding zero : !words, i32 -> tensor<128xi32, #l>
    %q = arith.andi %w, %low : tensor<128xi32, #l>
    %f = arith.uitofp %q : tensor<128xi32, #l> to tensor<128xbf16, #l>
    tile.store %f, %z[%c0] : tensor<128xbf16, #l>, memref<?xbf16, strided<[1]>>, i32
    return
  }

  // CHECK-LABEL: llvm.func @shorts
  // CHECK: llvm.uitofp %{{.*}} : i16 to f32
  // CHECK: llvm.fptrunc %{{.*}} : vector<2xf32> to vector<2xf16>
  func.func @shorts(%x: !shorts {tile.align = 16 : i32, tile.shape_div = array<i64: 16>, tile.stride_div = array<i64: 1>}, %z: memref<?xf16, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}, tile.launch = {shared_bytes = 0 : i32}} {
    %c0 = arith.constant 0 : i32
    %w = tile.load %x[%c0] padding zero : !shorts, i32 -> tensor<128xi16, #l>
    %f = arith.uitofp %w : tensor<128xi16, #l> to tensor<128xf16, #l>
    tile.store %f, %z[%c0] : tensor<128xf16, #l>, memref<?xf16, strided<[1]>>, i32
    return
  }

  // A signed byte is 128 and its lower bits, less 128, or 256 where the upper one is set.
  // CHECK-LABEL: llvm.func @signed
  // CHECK: %[[EXPONENT:.*]] = llvm.mlir.constant(1128481603 : i32)
  // CHECK-DAG: %[[LOWER:.*]] = llvm.mlir.constant(-8388737 : i32)
  // CHECK-DAG: %[[UPPER:.*]] = llvm.mlir.constant(-8323200 : i32)
  // CHECK: %[[TWO:.*]] = {{.*}}prmt{{.*}}%[[EXPONENT]]
  // CHECK-DAG: llvm.and %[[TWO]], %[[UPPER]]
  // CHECK-DAG: llvm.and %[[TWO]], %[[LOWER]]
  // CHECK: llvm.fsub %{{.*}} : vector<2xbf16>
  // CHECK-NOT: f32
  func.func @signed(%x: !bytes {tile.align = 16 : i32, tile.shape_div = array<i64: 16>, tile.stride_div = array<i64: 1>}, %z: memref<?xbf16, strided<[1]>>) attributes {tile.kernel, tile.hints = {num_warps = 1 : i32}, tile.launch = {shared_bytes = 0 : i32}} {
    %c0 = arith.constant 0 : i32
    %w = tile.load %x[%c0] padding zero : !bytes, i32 -> tensor<128xi8, #l>
    %f = arith.sitofp %w : tensor<128xi8, #l> to tensor<128xbf16, #l>
    tile.store %f, %z[%c0] : tensor<128xbf16, #l>, memref<?xbf16, strided<[1]>>, i32
    return
  }
}
