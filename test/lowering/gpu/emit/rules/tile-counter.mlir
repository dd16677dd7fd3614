// RUN: tw-opt %s -pass-pipeline='builtin.module(func.func(tile-specialize-warps),tile-allocate-shared,func.func(tile-insert-barriers),tile-to-nvvm)' 2>/dev/null | FileCheck %s

// Behind a buffer and a barrier of the multi-stage buffers, 1032 bytes, four barriers and room for two numbers: 48 bytes. One lane counts, if there is where;
// what is read is the same in all lanes.
// CHECK-LABEL: llvm.func @alone
// CHECK-SAME: shared_bytes = 1080 : i32
// CHECK: llvm.icmp "ne" %{{.*}}, %{{.*}} : i64
// CHECK: llvm.atomicrmw uinc_wrap %{{.*}}, %{{.*}} syncscope("device") monotonic
// CHECK: llvm.store %{{.*}} : i32, !llvm.ptr<3>
// CHECK: mbarrier.arrive
// CHECK: llvm.load %{{.*}} : !llvm.ptr<3> -> i32
// CHECK-NOT: shfl
// CHECK: mbarrier.try_wait
// CHECK: llvm.load %{{.*}} : !llvm.ptr<3> -> i32
// CHECK: llvm.nvvm.shfl.sync.idx.i32
#line = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
!array = memref<?x?xbf16, strided<[?, 1]>>
module attributes {tile.target = "sm_90a"} {
  func.func @alone(%a: !array {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>, tile.tma}, %first: i32, %total: i32, %step: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c7 = arith.constant 7 : i32
    %s = tile.alloc_shared : !tile.buffer<1x8x64xbf16, #line>
    %staged = tile.alloc_barriers arrivals 1 : !tile.barriers<1>
    tile.roles producer_warps 1 producer {
      %end = scf.for %v = %first to %total step %step iter_args(%x = %c7) -> (i32) : i32 {
        %y = arith.addi %x, %v : i32
        tile.barrier_wait %staged[%c0], %c0 : !tile.barriers<1>
        scf.for %j = %c0 to %c7 step %c7 : i32 {
          tile.tma_load %a[%v, %j] into %s[%c0] signal %staged[%c0] : !array, i32, i32 into !tile.buffer<1x8x64xbf16, #line>, !tile.barriers<1>
        }
        tile.barrier_wait %staged[%c0], %c0 : !tile.barriers<1>
        tile.barrier_wait %staged[%c0], %c0 : !tile.barriers<1>
        scf.yield %y : i32
      } {tile.dynamic_schedule, tile.persistent}
    } consumer {
      scf.for %v = %first to %total step %step : i32 {
      } {tile.dynamic_schedule, tile.persistent}
    }
    return
  }
}
