// Each element by its owner, relaxed: red where nothing reads what was there, several at once where they are neighbours.
// RUN: sed 's/TARGET/sm_90a/' %s | tw-opt -split-input-file --pass-pipeline='builtin.module(func.func(tile-assign-layouts),tile-allocate-shared,func.func(tile-insert-barriers),tile-to-nvvm)' | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: sed 's/TARGET/sm_80/' %s | tw-opt -split-input-file --pass-pipeline='builtin.module(func.func(tile-assign-layouts),tile-allocate-shared,func.func(tile-insert-barriers),tile-to-nvvm)' | FileCheck %s --check-prefixes=CHECK,SM80

!array = memref<?xbf16, strided<[1]>>

// CHECK-LABEL: llvm.func @neighbours
// SM90-NOT: fence
// SM90-COUNT-2: red.relaxed.gpu.global.add.noftz.v4.bf16x2
// SM90-NOT: red.
// SM80-COUNT-16: atom.relaxed.gpu.global.cas.b16
module attributes {tile.target = "TARGET"} {
  func.func @neighbours(%a: !array {tile.align = 16 : i32}, %x: bf16) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %i = tile.iota : tensor<2048xi32>
    %y = tensor.splat %x : tensor<2048xbf16>
    %old = tile.atomic add relaxed device, %y, %a[%i] : tensor<2048xbf16>, !array, tensor<2048xi32> -> tensor<2048xbf16>
    return
  }
}

// -----

// What one thread found is told to all of the block, behind its fence.
// CHECK-LABEL: llvm.func @scalar
// CHECK: fence.acq_rel.sys;
// CHECK: atom.relaxed.sys.global.cas.b32
// CHECK: fence.acq_rel.sys;
// CHECK: llvm.store {{.*}} !llvm.ptr<3>
// CHECK: barrier
// CHECK: llvm.load {{.*}} !llvm.ptr<3>
module attributes {tile.target = "TARGET"} {
  func.func @scalar(%a: memref<?xi32, strided<[1]>>, %i: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %old = tile.atomic cas acq_rel sys, %i, %a[%i] expected %i : i32 {check_bounds} : i32, memref<?xi32, strided<[1]>>, i32 -> i32
    tile.scatter %old, %a[%i] : i32, memref<?xi32, strided<[1]>>, i32
    return
  }
}

// -----

// What a thread's access orders stands in the instruction; what takes a loop has it in fences.
// CHECK-LABEL: llvm.func @thread
// CHECK: ld.acquire.gpu.global.b32
// CHECK: fence.sc.sys;
// CHECK: st.release.sys.global.b32
// CHECK: fence.acq_rel.cta;
// CHECK: ld.relaxed.cta.shared.b32
// CHECK: atom.relaxed.cta.shared.cas.b32
module attributes {tile.target = "TARGET"} {
  func.func @thread(%a: memref<?xi32, strided<[1]>>, %i: i32, %b: i8) attributes {tile.kernel, tile.simt} {
    %s = tile.shared_array : memref<8xi8, 3>
    %0 = tile.atomic load acquire device, %i, %a[%i] : i32, memref<?xi32, strided<[1]>>, i32 -> i32
    %1 = tile.atomic store seq_cst sys, %0, %a[%i] : i32, memref<?xi32, strided<[1]>>, i32 -> i32
    %2 = tile.atomic xchg release block, %b, %s[%i] : i8, memref<8xi8, 3>, i32 -> i8
    return
  }
}
