// A matrix product in roles, as code of threads.
// RUN: tw-opt %S/Inputs/gemm-roles.mlir -pass-pipeline='builtin.module(tile-allocate-shared,func.func(tile-insert-barriers),tile-to-nvvm)' | FileCheck %s
// RUN: tw-opt %S/Inputs/gemm-roles.mlir -pass-pipeline='builtin.module(tile-allocate-shared)' | FileCheck %s --check-prefix=PLACE

// Barriers come after the multi-stage buffers, which the conversion at the end uses again.
// PLACE-LABEL: @gemm
// PLACE: tile.alloc_barriers arrivals 1 at 98304
// PLACE: tile.alloc_barriers arrivals 4 at 98328
// PLACE: tile.convert_layout {{.*}}tile.scratch = 0

// One box of 128 bytes by 128 rows for lhs, two of 64 rows for rhs.
// CHECK: llvm.func @gemm(%[[X:.*]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<16 x i64>, nvvm.grid_constant}, %[[Y:.*]]: !llvm.ptr {{.*}}nvvm.grid_constant}, %{{.*}}: i64
// CHECK-SAME: nvvm.reqntid = array<i32: 160>
// CHECK-SAME: num_threads = 160
// CHECK-SAME: shared_bytes = 98352
// CHECK-SAME: tensor_maps = [{axes = array<i32: 1, 0, 0, 0, 0>, box = array<i32: 64, 128, 0, 0, 0>, bytes = 2 : i32, rank = 2 : i32, rounds = 0 : i32, swizzle = 128 : i32, word = 0 : i32}, {axes = array<i32: 1, 0, 0, 0, 0>, box = array<i32: 64, 64, 0, 0, 0>, bytes = 2 : i32, rank = 2 : i32, rounds = 0 : i32, swizzle = 128 : i32, word = 5 : i32}]
// CHECK: %[[FIRST:.*]] = llvm.icmp "eq" %{{.*}}, %{{.*}} : i32
// CHECK: "@$1 prefetch.tensormap [$0];", "l,b" %[[X]], %[[FIRST]]
// CHECK: "@$1 prefetch.tensormap [$0];", "l,b" %[[Y]], %[[FIRST]]
// CHECK-COUNT-6: {tile.ptx = "sets_up"} "@$2 mbarrier.init
// CHECK-NEXT: fence.mbarrier_init.release.cluster
// CHECK-NEXT: nvvm.barrier0
// CHECK: llvm.nvvm.shfl.sync.idx.i32
// CHECK: llvm.icmp "uge"
// CHECK: llvm.nvvm.shfl.sync.idx.i32
// CHECK: nvvm.elect.sync
// CHECK: mbarrier.try_wait.parity
// CHECK: {tile.ptx = "fence"} "mbarrier.arrive.expect_tx
// CHECK: cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [$0], [$1, {$3, $4}], [$2], 0x12F0000000000000;", "r,l,r,r,r" %{{.*}}, %[[X]],
// CHECK-COUNT-2: cp.async.bulk.tensor.2d{{.*}}, %[[Y]],
// CHECK-NOT: cp.async.bulk
// CHECK: mbarrier.try_wait.parity
// A product whose accumulator may be replaced by zero says so in its first instruction.
// CHECK: wgmma.mma_async{{.*}}, b, $258, 1, 1, 0, 1;{{.*}}wgmma.mma_async{{.*}}, b, $258, 1, 1, 0, 1;
// CHECK-SAME: wgmma.mma_async{{.*}}, b, p, 1, 1, 0, 1;{{.*}} "{{.*}},l,l,b"
// CHECK: wgmma.wait_group
// One lane arrives for its warp, when all have come, and if it is wanted.
// CHECK: llvm.and
// CHECK: "fence.proxy.async.shared::cta;"
// CHECK-NEXT: llvm.nvvm.bar.warp.sync
// CHECK-NEXT: "@$1 mbarrier.arrive.shared::cta.b64 _, [$0];", "r,b"
// The consumers meet among themselves.
// CHECK: llvm.nvvm.barrier.cta.sync.aligned.count
// CHECK-NOT: nvvm.barrier0
