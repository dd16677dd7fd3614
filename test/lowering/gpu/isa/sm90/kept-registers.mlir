// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-assign-layouts,tile-promote-memory,tile-pipeline),canonicalize,cse,tile-allocate-shared,func.func(tile-insert-barriers),tile-to-nvvm)' | FileCheck %s

!A = memref<?x?xf16, strided<[?, 1]>>
#facts = array<i64: 8, 1>

// A left operand in registers that is the same in each iteration is read behind the loop, by stores that never run.
// CHECK-LABEL: @same
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{.*}}, {$64,$65,$66,$67}, b, q
// CHECK: %[[ZERO:.*]] = llvm.inline_asm "{{.*}}%lanemask_lt{{.*}}%lanemask_gt{{.*}}and.b32
// CHECK-COUNT-4: setp.ne.u32 p, $0, 0; @p st.shared.v4.b32 [$0], {$1, $2, $3, $4}; }", "r,r,r,r,r" %[[ZERO]],
// CHECK-NOT: st.shared.v4.b32 [$0]
module attributes {tile.target = "sm_90a"} {
  func.func @same(%x: !A {tile.align = 16 : i32, tile.stride_div = #facts}, %y: !A {tile.align = 16 : i32, tile.stride_div = #facts}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %a = tile.load %x[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
    %q = arith.addf %a, %a : tensor<64x64xf16>
    scf.for %k = %c0 to %n step %c1 : i32 {
      %b = tile.load %y[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
      %s = tile.mma %q, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
      tile.store %s, %z[%k, %c0] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    }
    return
  }
}

// -----

!A = memref<?x?xf16, strided<[?, 1]>>
#facts = array<i64: 8, 1>

// Two f16 of a sum are taken apart behind the wait, from what an instruction makes of them.
// CHECK-LABEL: @halves
// CHECK: wgmma.wait_group.sync.aligned 0
// CHECK: %[[SUM:.*]] = llvm.extractvalue %{{.*}}[0]
// CHECK-NEXT: %[[SETTLED:.*]] = llvm.inline_asm "xor.b32 $0, $1, $2;", "=r,r,r" %[[SUM]], %{{.*}}
// CHECK-NEXT: llvm.bitcast %[[SETTLED]] : i32 to vector<2xf16>
module attributes {tile.target = "sm_90a"} {
  func.func @halves(%x: !A {tile.align = 16 : i32, tile.stride_div = #facts}, %y: !A {tile.align = 16 : i32, tile.stride_div = #facts}, %z: !A) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf16>
    %a = tile.load %x[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
    %b = tile.load %y[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xf16>
    %s = tile.mma %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf16>
    %t = arith.addf %s, %s : tensor<64x64xf16>
    tile.store %t, %z[%c0, %c0] : tensor<64x64xf16>, !A, i32, i32
    return
  }
}
