// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma))' 2>&1 | FileCheck %s --check-prefix=SELECT
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-assign-layouts,tile-promote-memory,tile-pipeline),canonicalize,cse)' | FileCheck %s --check-prefix=PIPE
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-assign-layouts,tile-promote-memory,tile-pipeline),canonicalize,cse,tile-allocate-shared,func.func(tile-insert-barriers),tile-to-nvvm)' | FileCheck %s --check-prefix=NVVM

// Of @short_lines below; diagnostics come first.
// SELECT: remark: 'tile.mma' op is not a wgmma: its right operand has no lines of 32 bytes

!A = memref<?x?xbf16, strided<[?, 1]>>

// A row-major product reads both operands where they lie. The copies of a later iteration are issued behind it.
// SELECT: tile.family = "wgmma", tile.places = "ss"
// PIPE-LABEL: @gemm
// PIPE: scf.for
// PIPE-NEXT: tile.async_wait
// PIPE-NEXT: tile.barrier
// PIPE: %[[D:.*]] = tile.async_mma %{{.*}}[%{{.*}}], %{{.*}}[%{{.*}}], %{{.*}} : !tile.buffer<3x128x64xbf16, {{.*}}>, <3x64x128xbf16, {{.*}}>
// PIPE: tile.async_copy
// PIPE: tile.async_commit
// PIPE-NEXT: tile.mma_wait %[[D]], 0
// NVVM-LABEL: @gemm
// Two blocks of 64 rows take the steps of k in turn, behind one fence and in one block of PTX, whose commit is the last;
// rhs is transposed by the instruction.
// NVVM: fence.proxy.async
// NVVM: wgmma.fence.sync.aligned;{{.*}}add.s64 b, $257, 0;\0Aadd.s64 a, $256, 0;\0Awgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {$0,
// NVVM-SAME: ,$63}, a, b, p, 1, 1, 0, 1; }{{.*}}add.s64 b, $257, 0;\0Aadd.s64 a, $256, 512;\0Awgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {$64,
// NVVM-SAME: ,$127}, a, b, p, 1, 1, 0, 1; }{{.*}}add.s64 b, $257, 128;\0Aadd.s64 a, $256, 2;\0Awgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {$0,
// NVVM-SAME: add.s64 a, $256, 514;
// NVVM-SAME: wgmma.commit_group.sync.aligned
// NVVM: wgmma.wait_group.sync.aligned 0
module attributes {tile.target = "sm_90a"} {
  func.func @gemm(%x: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %e = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %e : tensor<128x128xf32>
    }
    tile.store %d, %z[%c0, %c0] : tensor<128x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// With eight warps and four stages the block is alone on its multiprocessor: products run into the next iteration.
// PIPE-LABEL: @alone
// PIPE: tile.mma_wait %{{.*}}, 1
// PIPE: scf.yield
// PIPE: tile.mma_wait %{{.*}}, 0
// NVVM-LABEL: @alone
// NVVM: wgmma.wait_group.sync.aligned 1
// NVVM: wgmma.wait_group.sync.aligned 0
module attributes {tile.target = "sm_90a"} {
  func.func @alone(%x: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32, num_stages = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x128xbf16>
      %e = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %e : tensor<128x128xf32>
    }
    tile.store %d, %z[%c0, %c0] : tensor<128x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// The transpose of what is loaded, and a left operand that is computed: attention's two products. The first starts
// from zero by itself.
// SELECT: tile.family = "wgmma", tile.places = "ss", tile.transposed_rhs
// SELECT: tile.family = "wgmma", tile.places = "rs"
// NVVM-LABEL: @chained
// NVVM: wgmma.mma_async.sync.aligned.m64n64k16{{.*}}, a, b, q, 1, 1, 0, 0;{{.*}}, a, b, p, 1, 1, 0, 0;
// NVVM: wgmma.mma_async.sync.aligned.m64n64k16{{.*}}{$64,$65,$66,$67}, b, q, 1, 1, 1;{{.*}}{$68,$69,$70,$71}, b, p, 1, 1, 1;
module attributes {tile.target = "sm_90a"} {
  func.func @chained(%x: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %q = tile.load %x[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
    %kt = tile.permute %q [1, 0] : tensor<64x64xbf16>
    %s = tile.mma %q, %kt, %zero : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xbf16>
    %o = tile.mma %p, %q, %zero : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    tile.store %o, %z[%c0, %c0] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// NVVM-LABEL: @short_lines
// NVVM: mma.sync.aligned.m16n8k16
module attributes {tile.target = "sm_90a"} {
  func.func @short_lines(%x: !A, %z: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : tensor<64x8xf32>
    %a = tile.load %x[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
    %b = tile.load %x[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x8xbf16>
    %d = tile.mma %a, %b, %zero : tensor<64x64xbf16>, tensor<64x8xbf16>, tensor<64x8xf32>
    tile.store %d, %z[%c0, %c0] : tensor<64x8xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Lines of 64 bytes, with their swizzle: in the descriptor 2, and groups of eight lines 512 bytes apart.
// SELECT-LABEL: @narrow
// SELECT: tile.family = "wgmma", tile.places = "ss"
// NVVM-LABEL: @narrow
// NVVM-DAG: llvm.mlir.constant(16777216 : i32)
// NVVM-DAG: llvm.mlir.constant(-9223371899415822336 : i64)
// NVVM: wgmma.mma_async.sync.aligned.m64n32k16
module attributes {tile.target = "sm_90a"} {
  func.func @narrow(%x: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : tensor<64x32xf32>
    %a = tile.load %x[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
    %b = tile.load %x[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x32xbf16>
    %d = tile.mma %a, %b, %zero : tensor<64x64xbf16>, tensor<64x32xbf16>, tensor<64x32xf32>
    tile.store %d, %z[%c0, %c0] : tensor<64x32xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// The plain sm_90 has no wgmma.
// SELECT-LABEL: @plain
// SELECT-NOT: wgmma
// NVVM-LABEL: @plain
// NVVM: mma.sync
module attributes {tile.target = "sm_90"} {
  func.func @plain(%x: !A, %z: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %a = tile.load %x[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
    %d = tile.mma %a, %a, %zero : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    tile.store %d, %z[%c0, %c0] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
