// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma))' 2>/dev/null | FileCheck %s --check-prefix=SELECT
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma))' 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-assign-layouts,tile-promote-memory,tile-pipeline),canonicalize,cse)' 2>/dev/null | FileCheck %s --check-prefix=PIPE
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-assign-layouts,tile-promote-memory,tile-pipeline),canonicalize,cse,tile-allocate-shared,func.func(tile-insert-barriers),tile-to-nvvm)' 2>/dev/null | FileCheck %s --check-prefix=NVVM

// Products of warpgroups on other inputs than 16-bit floats.
// REMARK: remark: 'tile.mma' op adds up in float32 what the tensor core sums over 128 of k; the hint fp8_fast_accum, or use_fast_acc of ct.mma, leaves it all to the tensor core
// REMARK: remark: 'tile.mma' op transposes its right operand through registers in each iteration: for this dtype wgmma reads what is contiguous along k only
// REMARK: remark: 'tile.mma' op writes its right operand to shared memory: it is computed

!A = memref<?x?xf8E4M3FN, strided<[?, 1]>>
!B = memref<?x?xf8E4M3FN, strided<[1, ?]>>

// Sums of 8-bit floats are promoted: each part of k starts from zero, is waited for and added. Not more than 128 columns
// at a time, for want of registers. Nothing is added to zeros.
// SELECT-LABEL: @promoted
// SELECT: tile.family = "wgmma", tile.places = "ss", tile.promoted = 128 : i32
// PIPE-LABEL: @promoted
// PIPE: tile.async_mma {{.*}} promoted 128 :
// NVVM-LABEL: @promoted
// NVVM: wgmma.fence.sync.aligned{{.*}}m64n128k32.f32.e4m3.e4m3 {{.*}}, a, b, q, 1, 1;{{.*}}, a, b, p, 1, 1;{{.*}}commit_group
// NVVM: wgmma.wait_group.sync.aligned 0
// NVVM-NOT: llvm.fadd
// NVVM: wgmma.fence.sync.aligned{{.*}}m64n128k32.f32.e4m3.e4m3 {{.*}}, a, b, q, 1, 1;
// NVVM: wgmma.fence.sync.aligned{{.*}}m64n128k32.f32.e4m3.e4m3 {{.*}}, a, b, q, 1, 1;
// NVVM: llvm.fadd
module attributes {tile.target = "sm_90a"} {
  func.func @promoted(%x: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 16, 1>}, %y: !B {tile.align = 16 : i32, tile.stride_div = array<i64: 1, 16>}, %z: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : tensor<64x256xf32>
    %a = tile.load %x[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x256xf8E4M3FN>
    %b = tile.load %y[%c0, %c0] padding zero : !B, i32, i32 -> tensor<256x256xf8E4M3FN>
    %d = tile.mma %a, %b, %zero : tensor<64x256xf8E4M3FN>, tensor<256x256xf8E4M3FN>, tensor<64x256xf32>
    tile.store %d, %z[%c0, %c0] : tensor<64x256xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf8E5M2, strided<[?, 1]>>
!B = memref<?x?xf8E4M3FN, strided<[?, 1]>>

// The fast mode leaves the sum to the Tensor Core. What is not contiguous along k is transposed on its way; accumulators
// of 16 bits take half the registers.
// SELECT-LABEL: @fast
// SELECT: tile.family = "wgmma", tile.places = "sw"}
// PIPE-LABEL: @fast
// PIPE: %[[T:.*]] = tile.local_load
// PIPE: tile.local_store %[[T]], %[[W:.*]][%{{.*}}]
// PIPE: tile.async_mma %{{.*}}[%{{.*}}], %[[W]][%{{.*}}], {{.*}} :
// NVVM-LABEL: @fast
// NVVM: fence.proxy.async
// NVVM: barrier
// NVVM: m64n128k32.f16.e5m2.e4m3 {$0,$1,$2,{{.*}},$31}, a, b, q, 1, 1;
module attributes {tile.target = "sm_90a"} {
  func.func @fast(%x: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 16, 1>}, %y: !B {tile.align = 16 : i32, tile.stride_div = array<i64: 16, 1>}, %z: memref<?x?xf16, strided<[?, 1]>>) attributes {tile.kernel, tile.hints = {fp8_fast_accum = 1 : i32}} {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : tensor<64x128xf16>
    %a = tile.load %x[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x128xf8E5M2>
    %b = tile.load %y[%c0, %c0] padding zero : !B, i32, i32 -> tensor<128x128xf8E4M3FN>
    %d = tile.mma %a, %b, %zero : tensor<64x128xf8E5M2>, tensor<128x128xf8E4M3FN>, tensor<64x128xf16>
    tile.store %d, %z[%c0, %c0] : tensor<64x128xf16>, memref<?x?xf16, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xi8, strided<[?, 1]>>
!B = memref<?x?xi8, strided<[1, ?]>>

// Bytes: signs as the product says; left operands from registers four to a word.
// SELECT-LABEL: @bytes
// SELECT: tile.family = "wgmma", tile.places = "rs"
// NVVM-LABEL: @bytes
// NVVM: m64n64k32.s32.u8.s8 {{.*}}{$64,$65,$66,$67}, b, q;{{.*}}{$68,$69,$70,$71}, b, p;
module attributes {tile.target = "sm_90a"} {
  func.func @bytes(%x: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 16, 1>}, %y: !B {tile.align = 16 : i32, tile.stride_div = array<i64: 1, 16>}, %z: memref<?x?xi32, strided<[?, 1]>>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0> : tensor<64x64xi32>
    %one = arith.constant dense<1> : tensor<64x128xi8>
    %a = tile.load %x[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x128xi8>
    %e = arith.addi %a, %one : tensor<64x128xi8>
    %b = tile.load %y[%c0, %c0] padding zero : !B, i32, i32 -> tensor<128x64xi8>
    %d = tile.mma %e, %b, %zero {unsigned_lhs} : tensor<64x128xi8>, tensor<128x64xi8>, tensor<64x64xi32>
    tile.store %d, %z[%c0, %c0] : tensor<64x64xi32>, memref<?x?xi32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf32, strided<[?, 1]>>

// What is rounded to tfloat32 is in registers: lhs stays there, rhs is written for the instruction.
// SELECT-LABEL: @rounded
// SELECT: tile.family = "wgmma", tile.places = "rw"
// NVVM-LABEL: @rounded
// NVVM: cvt.rn.tf32.f32
// NVVM: fence.proxy.async
// NVVM: m64n64k8.f32.tf32.tf32 {{.*}}{$64,$65,$66,$67}, b, q, 1, 1;
module attributes {tile.target = "sm_90a"} {
  func.func @rounded(%x: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>}, %z: !A) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %a = tile.load %x[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf32>
    %t = arith.truncf %a : tensor<64x64xf32> to tensor<64x64xtf32>
    %u = tile.permute %t [1, 0] : tensor<64x64xtf32>
    %d = tile.mma %t, %u, %zero : tensor<64x64xtf32>, tensor<64x64xtf32>, tensor<64x64xf32>
    tile.store %d, %z[%c0, %c0] : tensor<64x64xf32>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf8E4M3FN, strided<[?, 1]>>
!B = memref<?x?xf8E4M3FN, strided<[1, ?]>>

// A product that permits it is summed by the Tensor Core alone.
// SELECT-LABEL: @permitted
// SELECT: fast_accum, tile.family = "wgmma", tile.places = "ss"}
module attributes {tile.target = "sm_90a"} {
  func.func @permitted(%x: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 16, 1>}, %y: !B {tile.align = 16 : i32, tile.stride_div = array<i64: 1, 16>}, %z: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %a = tile.load %x[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x128xf8E4M3FN>
    %b = tile.load %y[%c0, %c0] padding zero : !B, i32, i32 -> tensor<128x64xf8E4M3FN>
    %d = tile.mma %a, %b, %zero {fast_accum} : tensor<64x128xf8E4M3FN>, tensor<128x64xf8E4M3FN>, tensor<64x64xf32>
    tile.store %d, %z[%c0, %c0] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
