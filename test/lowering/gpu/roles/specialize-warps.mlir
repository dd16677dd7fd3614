// A producer warp brings what the other warps compute on.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-assign-layouts,tile-promote-memory,tile-specialize-warps),canonicalize,cse)' 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

!A = memref<?x?xbf16, strided<[?, 1]>>

// Both operands share a barrier; the product runs into the next iteration, whose first instruction starts from zero;
// the stage of the iteration before is given back behind it, and the last one after the loop.
// REMARK: remark: 'tile.async_copy' op is done by a producer warp, into a buffer of 4 stages of 49152 bytes
// CHECK-LABEL: @gemm
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.0{{.*}}> : tensor<128x256xf32
// CHECK-DAG: %[[NONE:.*]] = ub.poison : tensor<128x256xf32
// CHECK-DAG: %[[A:.*]] = tile.alloc_shared : <4x128x64xbf16
// CHECK-DAG: %[[B:.*]] = tile.alloc_shared : <4x64x256xbf16
// CHECK-DAG: %[[FULL:.*]] = tile.alloc_barriers arrivals 1 : <4>
// CHECK-DAG: %[[EMPTY:.*]] = tile.alloc_barriers arrivals 8 : <4>
// CHECK: tile.roles producer_warps 4 registers 24, 240 producer {
// CHECK-NEXT: scf.for %[[K:.*]] = %{{.*}} iter_args(%[[SLOT:.*]] = %c0{{.*}}, %[[PARITY:.*]] = %c0{{.*}}) -> (i32, i32)
// CHECK-NEXT: %[[FREE:.*]] = arith.xori %[[PARITY]], %c1
// CHECK-NEXT: tile.barrier_wait %[[EMPTY]][%[[SLOT]]], %[[FREE]] once
// CHECK-NEXT: tile.barrier_expect %[[FULL]][%[[SLOT]]], 49152
// CHECK-NEXT: tile.tma_load %arg0[%c0{{.*}}, %[[K]]] into %[[A]][%[[SLOT]]] signal %[[FULL]][%[[SLOT]]]
// CHECK-NEXT: tile.tma_load %arg1[%[[K]], %c0{{.*}}] into %[[B]][%[[SLOT]]] signal %[[FULL]][%[[SLOT]]]
// CHECK: %[[WRAPS:.*]] = arith.cmpi eq, %{{.*}}, %c4
// CHECK: arith.select %[[WRAPS]]
// CHECK: scf.yield
// CHECK: } consumer {
// CHECK-NEXT: scf.for %[[K:.*]] = %{{.*}} iter_args(%[[ACC:.*]] = %[[NONE]], %[[SLOT:.*]] = %c0{{.*}}, %[[PARITY:.*]] = %c0{{.*}}, %[[LAST:.*]] = %c0{{.*}})
// CHECK: %[[MORE:.*]] = arith.cmpi ne, %[[K]], %c0
// CHECK: tile.barrier_wait %[[FULL]][%[[SLOT]]], %[[PARITY]]
// CHECK-NEXT: %[[IN:.*]] = arith.select %[[MORE]], %[[ACC]], %[[ZERO]]
// CHECK-NEXT: %[[D:.*]] = tile.async_mma %[[A]][%[[SLOT]]], %[[B]][%[[SLOT]]], %[[IN]]
// CHECK-NEXT: tile.mma_wait %[[D]], 1
// CHECK-NEXT: tile.barrier_arrive %[[EMPTY]][%[[LAST]]] if %[[MORE]]
// CHECK-NEXT: scf.yield %{{.*}}, %{{.*}}, %{{.*}}, %[[SLOT]]
// CHECK: %[[RAN:.*]] = arith.cmpi
// CHECK-NEXT: %[[DONE:.*]] = tile.mma_wait %{{.*}}, 0
// CHECK-NEXT: tile.barrier_arrive %[[EMPTY]][%{{.*}}] if %[[RAN]]
// CHECK-NEXT: %[[OUT:.*]] = arith.select %[[RAN]], %[[DONE]], %[[ZERO]]
// CHECK: tile.store
// CHECK-NOT: tile.barrier{{$}}
module attributes {tile.target = "sm_90a"} {
  func.func @gemm(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_stages = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x256xbf16>
      %e = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>
      scf.yield %e : tensor<128x256xf32>
    }
    tile.store %d, %z[%c0, %c0] : tensor<128x256xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// A computed lhs stays in registers. The next iteration loads into the same ones, so the product is complete before.
// CHECK-LABEL: @registers
// CHECK: } consumer {
// CHECK: %[[L:.*]] = tile.local_load
// CHECK: %[[A:.*]] = arith.mulf %[[L]], %[[L]]
// CHECK: %[[D:.*]] = tile.async_mma %[[A]], %{{.*}}[%{{.*}}], %{{.*}}
// CHECK-NEXT: tile.mma_wait %[[D]], 0
module attributes {tile.target = "sm_90a"} {
  func.func @registers(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_stages = 4 : i32, num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<128x32xbf16>
      %b = tile.load %y[%k, %c0] padding zero : !A, i32, i32 -> tensor<32x128xbf16>
      %q = arith.mulf %a, %a : tensor<128x32xbf16>
      %e = tile.mma %q, %b, %acc : tensor<128x32xbf16>, tensor<32x128xbf16>, tensor<128x128xf32>
      scf.yield %e : tensor<128x128xf32>
    }
    tile.store %d, %z[%c0, %c0] : tensor<128x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Slots go on from one product to the next: the outer loop carries the state of the multi-stage buffers, too. Blocks that a
// persistent loop goes through are not ordered, so that copies may overtake the store. The loop that runs once needs
// no zeros after it.
// CHECK-LABEL: @nested
// CHECK: producer {
// CHECK: scf.for %{{.*}} = %{{.*}} iter_args(%[[S:.*]] = %c0{{.*}}, %[[P:.*]] = %c0{{.*}}) -> (i32, i32)
// CHECK-NEXT: %[[IN:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %[[S]], %{{.*}} = %[[P]])
// CHECK: scf.yield %[[IN]]#0, %[[IN]]#1
// CHECK: consumer {
// CHECK: scf.for {{.*}} iter_args(%[[S:.*]] = %c0{{.*}}, %[[P:.*]] = %c0{{.*}}, %[[L:.*]] = %c0{{.*}}) -> (i32, i32, i32)
// CHECK: %[[IN:.*]]:4 = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %[[S]], %{{.*}} = %[[P]], %{{.*}} = %[[L]])
// CHECK: %[[DONE:.*]] = tile.mma_wait %[[IN]]#0, 0
// CHECK-NEXT: tile.barrier_arrive %{{.*}}[%[[IN]]#3]
// CHECK-NOT: arith.select
// CHECK: tile.store
// CHECK-NEXT: scf.yield %[[IN]]#1, %[[IN]]#2, %[[IN]]#3
module attributes {tile.target = "sm_90a"} {
  func.func @nested(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    scf.for %v = %c0 to %n step %c1 : i32 {
      %d = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (tensor<128x64xf32>) : i32 {
        %a = tile.load %x[%v, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
        %b = tile.load %x[%v, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
        %e = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
        scf.yield %e : tensor<128x64xf32>
      }
      tile.store %d, %z[%v, %c0] : tensor<128x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    } {tile.persistent}
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// One warpgroup computes a tile: two consumer groups take the blocks in turn, the second from the ninth stage on. The bound of the
// loop, of which they need to know how often it runs, is found before; results leave through boxes of each consumer group's own.
// REMARK: remark: 'func.func' op has 2 consumer groups that ping-pong: one's products run while the other writes its result
// CHECK-LABEL: @turns
// CHECK-DAG: %[[EMPTY:.*]] = tile.alloc_barriers arrivals 4
// CHECK-DAG: %[[BOXES:.*]] = tile.alloc_shared : <2x64x64xbf16
// CHECK: tile.roles producer_warps 1 consumer_groups 2 producer {
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %arg2 step %c1
// CHECK: } consumer {
// CHECK: %[[CONSUMER_GROUP:.*]] = tile.consumer_group
// CHECK: %[[EXTENT:.*]] = tile.dim %arg0, 1
// CHECK: %[[N:.*]] = arith.ceildivsi %[[EXTENT]], %c64
// CHECK: %[[TRIPS:.*]] = arith.maxsi %[[N]], %c0
// CHECK: %[[AHEAD:.*]] = arith.muli %[[TRIPS]], %[[CONSUMER_GROUP]]
// CHECK: %[[ROUNDS:.*]] = arith.divui %[[AHEAD]], %c8
// CHECK: %[[SLOT:.*]] = arith.remui %[[AHEAD]], %c8
// CHECK: %[[PARITY:.*]] = arith.andi %[[ROUNDS]], %c1
// CHECK: %[[LAST:.*]] = arith.cmpi eq, %[[CONSUMER_GROUP]], %c1
// CHECK: scf.if %[[LAST]] {
// CHECK-NEXT: tile.ordered_arrive
// CHECK: scf.for %{{.*}} = %[[CONSUMER_GROUP]] to %arg2 step %c2{{.*}} iter_args(%[[S:.*]] = %[[SLOT]], %[[P:.*]] = %[[PARITY]],
// CHECK-NEXT: tile.ordered_wait
// CHECK-NEXT: %[[IN:.*]]:4 = scf.for {{.*}} to %[[N]] {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %[[S]], %{{.*}} = %[[P]]
// CHECK: tile.ordered_arrive
// CHECK: tile.mma_wait %[[IN]]#0, 0
// CHECK: tile.tma_store %{{.*}} through %[[BOXES]]
// CHECK: %[[ON:.*]] = arith.addi %[[IN]]#1, %[[TRIPS]]
// CHECK: %[[ROUNDS:.*]] = arith.divui %[[ON]], %c8
// CHECK: %[[SLOT:.*]] = arith.remui %[[ON]], %c8
// CHECK: %[[PARITY:.*]] = arith.xori %[[IN]]#2
// CHECK: scf.yield %[[SLOT]], %[[PARITY]], %[[IN]]#3
module attributes {tile.target = "sm_90a"} {
  func.func @turns(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    scf.for %v = %c0 to %n step %c1 : i32 {
      %extent = tile.dim %x, 1 : !A
      %tiles = arith.ceildivsi %extent, %c64 : i32
      %d = scf.for %k = %c0 to %tiles step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
        %a = tile.load %x[%v, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
        %e = tile.mma %a, %a, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
        scf.yield %e : tensor<64x64xf32>
      }
      %r = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xbf16>
      tile.store %r, %z[%v, %c0] : tensor<64x64xbf16>, !A, i32, i32
    } {tile.persistent}
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Chained products: what is brought before the loop is filled once, and no one gives it back. The loop's two operands have
// stages of their own, which the next loop goes on with; each is waited for where it is first read. The first is given back
// behind the wait for its product; the second product only adds: it runs into the next iteration, behind the same wait.
// CHECK-LABEL: @chained
// CHECK-DAG: %[[Q:.*]] = tile.alloc_shared : <1x64x64xbf16
// CHECK-DAG: %[[ONCE:.*]] = tile.alloc_barriers arrivals 1 : <1>
// CHECK-DAG: %[[K:.*]] = tile.alloc_shared : <4x64x64xbf16
// CHECK-DAG: %[[V:.*]] = tile.alloc_shared : <4x64x64xbf16
// CHECK-NOT: tile.alloc_shared
// CHECK: producer {
// CHECK-NOT: barrier_wait
// CHECK: tile.barrier_expect %[[ONCE]][%c0{{.*}}], 8192
// CHECK-NEXT: tile.tma_load %arg0[%c0{{.*}}, %c0{{.*}}] into %[[Q]]
// CHECK: scf.for
// CHECK: tile.tma_load %arg0[%{{.*}}, %c0{{.*}}] into %[[K]]
// CHECK: tile.tma_load %arg0[%{{.*}}, %c1{{.*}}] into %[[V]]
// CHECK: scf.for
// CHECK: tile.tma_load %arg0[%{{.*}}, %c1{{.*}}] into %[[K]]
// CHECK: consumer {
// CHECK: tile.barrier_wait %[[ONCE]][%c0{{.*}}], %c0
// CHECK: scf.for
// CHECK: tile.barrier_wait
// CHECK-NEXT: %[[S:.*]] = tile.async_mma %[[Q]][%c0{{.*}}], %[[K]][%[[SLOT:.*]]],
// CHECK-NEXT: tile.mma_wait %[[S]], 0
// CHECK-NEXT: tile.barrier_arrive %{{.*}}[%[[SLOT]]] :
// CHECK-NEXT: tile.barrier_arrive %{{.*}}[%{{.*}}] if
// CHECK: arith.truncf
// CHECK: tile.barrier_wait
// CHECK-NEXT: %[[O:.*]] = tile.async_mma %{{.*}}, %[[V]][%{{.*}}],
// CHECK-NOT: tile.mma_wait
// CHECK: scf.yield %[[O]]
// CHECK: tile.mma_wait %{{.*}}, 0
// CHECK-NEXT: tile.barrier_arrive %{{.*}}[%{{.*}}] if
// CHECK: scf.for
// CHECK: tile.async_mma %[[K]][%{{.*}}], %[[K]][%{{.*}}],
// CHECK: tile.store
module attributes {tile.target = "sm_90a"} {
  func.func @chained(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_stages = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %q = tile.load %x[%c0, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
    %r = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %k = tile.load %x[%j, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %v = tile.load %x[%j, %c1] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %s = tile.mma %q, %k, %zero : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xbf16>
      %o = tile.mma %p, %v, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %o : tensor<64x64xf32>
    }
    %t = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %r) -> (tensor<64x64xf32>) : i32 {
      %k = tile.load %x[%j, %c1] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %o = tile.mma %k, %k, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %o : tensor<64x64xf32>
    }
    tile.store %t, %z[%c0, %c0] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Two products that add up run together: one wait for those of the iteration before. The right operand of the second
// has a multi-stage buffers of its own, for it arrives later.
// CHECK-LABEL: @dual
// CHECK: consumer {
// CHECK: scf.for {{.*}} iter_args(%{{.*}}, %{{.*}}, %[[S0:.*]] = %c0{{.*}}, %{{.*}}, %[[L0:.*]] = %c0{{.*}}, %[[S1:.*]] = %c0{{.*}}, %{{.*}}, %[[L1:.*]] = %c0{{.*}}) ->
// CHECK: tile.barrier_wait %[[F0:.*]][%[[S0]]]
// CHECK: %[[D:.*]] = tile.async_mma
// CHECK: tile.barrier_wait %[[F1:.*]][%[[S1]]]
// CHECK: %[[E:.*]] = tile.async_mma
// CHECK-NEXT: %[[W:.*]] = tile.mma_wait %[[E]], 2
// CHECK-NEXT: tile.barrier_arrive %{{.*}}[%[[L0]]] if
// CHECK-NEXT: tile.barrier_arrive %{{.*}}[%[[L1]]] if
// CHECK-NEXT: scf.yield %[[D]], %[[W]],
// CHECK: tile.mma_wait %{{.*}}#0, 0
// CHECK: tile.mma_wait %{{.*}}#1, 0
module attributes {tile.target = "sm_90a"} {
  func.func @dual(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero, %t = %zero) -> (tensor<64x64xf32>, tensor<64x64xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %b = tile.load %x[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %c = tile.load %x[%k, %c1] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %d = tile.mma %a, %b, %s : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      %e = tile.mma %a, %c, %t : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %d, %e : tensor<64x64xf32>, tensor<64x64xf32>
    }
    %m = arith.mulf %r#0, %r#1 : tensor<64x64xf32>
    tile.store %m, %z[%c0, %c0] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// The producer follows every loop and branch around a copy, with what their conditions depend on and nothing else.
// CHECK-LABEL: @control
// CHECK: producer {
// CHECK: scf.while (%[[J:.*]] = %c0{{.*}}, %{{.*}} = %c0{{.*}}, %{{.*}} = %c0{{.*}}) : (i32, i32, i32) -> (i32, i32, i32)
// CHECK: scf.condition
// CHECK: %[[ODD:.*]] = arith.cmpi
// CHECK-NEXT: %[[B:.*]]:2 = scf.if %[[ODD]] -> (i32, i32)
// CHECK: tile.tma_load
// CHECK: } else {
// CHECK-NEXT: scf.yield
// CHECK: scf.yield %{{.*}}, %[[B]]#0, %[[B]]#1
// CHECK: consumer {
// CHECK: scf.while
// CHECK: scf.if {{.*}} -> (tensor<64x64xf32{{.*}}>, i32, i32)
// CHECK: tile.async_mma
module attributes {tile.target = "sm_90a"} {
  func.func @control(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %r:2 = scf.while (%j = %c0, %acc = %zero) : (i32, tensor<64x64xf32>) -> (i32, tensor<64x64xf32>) {
      %go = arith.cmpi slt, %j, %n : i32
      scf.condition(%go) %j, %acc : i32, tensor<64x64xf32>
    } do {
    ^bb0(%j: i32, %acc: tensor<64x64xf32>):
      %low = arith.andi %j, %c1 : i32
      %odd = arith.cmpi eq, %low, %c1 : i32
      %s = scf.if %odd -> (tensor<64x64xf32>) {
        %a = tile.load %x[%j, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
        %e = tile.mma %a, %a, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
        scf.yield %e : tensor<64x64xf32>
      } else {
        scf.yield %acc : tensor<64x64xf32>
      }
      %next = arith.addi %j, %c1 : i32
      scf.yield %next, %s : i32, tensor<64x64xf32>
    }
    tile.store %r#1, %z[%c0, %c0] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Where threads of few warps work between products, two blocks share a multiprocessor: multi-stage buffers take half of its memory.
// REMARK: remark: 'tile.async_copy' op is done by a producer warp, into a buffer of 7 stages of 16384 bytes
// CHECK-LABEL: @shared
// CHECK: tile.alloc_shared : <7x128x64xbf16
module attributes {tile.target = "sm_90a"} {
  func.func @shared(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %one = arith.constant dense<1.0> : tensor<64x64xf32>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %r = scf.for %j = %c0 to %n step %c1 iter_args(%max = %one) -> (tensor<64x64xf32>) : i32 {
      %a = tile.load %x[%j, %c0] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %t = tile.permute %a [1, 0] : tensor<128x64xbf16>
      %s = tile.mma %t, %a, %zero : tensor<64x128xbf16>, tensor<128x64xbf16>, tensor<64x64xf32>
      %m = arith.maximumf %s, %max : tensor<64x64xf32>
      scf.yield %m : tensor<64x64xf32>
    }
    tile.store %r, %z[%c0, %c0] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xf64, strided<[?, 1]>>

// Where lanes read by themselves, they meet before one of them gives the stage back.
// CHECK-LABEL: @lanes
// CHECK: consumer {
// CHECK: tile.local_load
// CHECK: tile.local_load
// CHECK: tile.barrier_arrive %{{.*}}[%{{.*}}] together
module attributes {tile.target = "sm_90"} {
  func.func @lanes(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 2, 1>}, %z: !A, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<32x32xf64>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf64>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<32x32xf64>
      %e = tile.mma %a, %a, %acc : tensor<32x32xf64>, tensor<32x32xf64>, tensor<32x32xf64>
      scf.yield %e : tensor<32x32xf64>
    }
    tile.store %d, %z[%c0, %c0] : tensor<32x32xf64>, !A, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>
!V = memref<?xbf16, strided<[1]>>

// They meet once for all stages that they read one after the other; a little vector comes with the tile before it.
// CHECK-LABEL: @meet
// CHECK: tile.tma_load %arg0
// CHECK-NEXT: tile.tma_load %arg1
// CHECK: consumer {
// CHECK: tile.local_load
// CHECK-NOT: tile.barrier
// CHECK: tile.local_load
// CHECK: tile.barrier_wait
// CHECK-NEXT: tile.local_load
// CHECK: tile.barrier_arrive %{{.*}}[%{{.*}}] together
// CHECK-NEXT: tile.barrier_arrive %{{.*}}[%{{[^ ]*}}] :
// CHECK: tile.async_mma
module attributes {tile.target = "sm_90a"} {
  func.func @meet(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %v: !V {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %g = tile.load %v[%k] padding zero : !V, i32 -> tensor<64xbf16>
      %h = tile.load %x[%c1, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %b = tile.load %w[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %line = tile.reshape %g : tensor<64xbf16> -> tensor<1x64xbf16>
      %lines = tile.broadcast %line : tensor<1x64xbf16> -> tensor<64x64xbf16>
      %f = arith.mulf %a, %lines : tensor<64x64xbf16>
      %l = arith.addf %f, %h : tensor<64x64xbf16>
      %e = tile.mma %l, %b, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    }
    tile.store %d, %z[%c0, %c0] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Kernels that keep the form that they had: no tensor map; a position that is read from a tile; products that need all
// registers.
// REMARK: remark: 'tile.async_copy' op prevents producer warps: the array is not known to have an address
// REMARK: remark: 'tile.reduce' op prevents producer warps: the position of a copy depends on a tile or on an effect
// CHECK-LABEL: @unmapped
// CHECK-NOT: tile.roles
// REMARK: remark: 'tile.mma' op prevents producer warps: its multiply-adds need the registers that these would take
// CHECK-LABEL: @position
// CHECK-NOT: tile.roles
// CHECK-LABEL: @adds
// CHECK-NOT: tile.roles
module attributes {tile.target = "sm_90a"} {
  func.func @unmapped(%x: !A {tile.align = 16 : i32}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %e = tile.mma %a, %a, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    }
    tile.store %d, %z[%c0, %c0] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }

  func.func @position(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %w: memref<?xi32, strided<[1]>>, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %i = tile.load %w[%c0] : memref<?xi32, strided<[1]>>, i32 -> tensor<64xi32>
    %m = tile.reduce max, %i axis 0 : tensor<64xi32>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %a = tile.load %x[%m, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %e = tile.mma %a, %a, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    }
    tile.store %d, %z[%c0, %c0] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }

  func.func @adds(%x: memref<?x?xf32, strided<[?, 1]>> {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 4, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<32x32xf32>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : memref<?x?xf32, strided<[?, 1]>>, i32, i32 -> tensor<32x32xf32>
      %e = tile.mma %a, %a, %acc : tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>
      scf.yield %e : tensor<32x32xf32>
    }
    tile.store %d, %z[%c0, %c0] : tensor<32x32xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// What is stored may be what a later iteration copies, where arrays may overlap.
// REMARK: remark: 'tile.store' op prevents producer warps: it writes to an array that may be the one of a later copy
// CHECK-LABEL: @writes
// CHECK-NOT: tile.roles
module attributes {tile.target = "sm_90a"} {
  func.func @writes(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {may_alias}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    scf.for %k = %c0 to %n step %c1 : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %e = tile.mma %a, %a, %zero : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      tile.store %e, %z[%k, %c0] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    }
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>

// Else the launch makes sure that they do not: word 5 is z's pointer, word 0 that of x. The product reads what threads
// write, too, of which all barriers are but one are between two accesses.
// CHECK-LABEL: @writes_elsewhere
// CHECK-SAME: no_alias = [{array = {bits = 16 : i32, rank = 2 : i32, word = 0 : i32}, or_same = 0 : i32, other = {bits = 32 : i32, rank = 2 : i32, word = 5 : i32}}]
// CHECK: tile.roles
// CHECK: scf.for
// CHECK: tile.tma_load
// CHECK: } consumer {
// CHECK: scf.for
// CHECK: tile.barrier_wait
// CHECK: tile.store
module attributes {tile.target = "sm_90a"} {
  func.func @writes_elsewhere(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    scf.for %k = %c0 to %n step %c1 : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %e = tile.mma %a, %a, %zero : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      tile.store %e, %z[%k, %c0] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    }
    return
  }
}

// -----

!A = memref<?x?xbf16, strided<[?, 1]>>
!V = memref<?xbf16, strided<[1]>>

// Two loops share the stages of a tile, of which the second one has a little vector come, too.
// CHECK-LABEL: @twice
// CHECK: producer {
// CHECK: tile.barrier_expect %[[FULL:.*]][%{{.*}}], 16384
// CHECK-NEXT: tile.tma_load %arg0{{.*}} into %[[X:[0-9]+]][
// CHECK: tile.barrier_expect %[[FULL]][%{{.*}}], 16512
// CHECK-NEXT: tile.tma_load %arg0{{.*}} into %[[X]][
// CHECK-NEXT: tile.tma_load %arg1
// CHECK: consumer {
// CHECK: scf.for
// CHECK: tile.barrier_wait %[[FULL]]
// CHECK-NEXT: tile.local_load %[[X]]
// CHECK: scf.for
// CHECK: tile.barrier_wait %[[FULL]]
// CHECK-NEXT: tile.local_load %[[X]]
// CHECK-NOT: tile.barrier_wait
// CHECK: tile.local_load
// CHECK: tile.async_mma
module attributes {tile.target = "sm_90a"} {
  func.func @twice(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %v: !V {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %none = arith.constant dense<0.0> : tensor<128x64xf32>
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %s = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %none) -> (tensor<128x64xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %f = arith.extf %a : tensor<128x64xbf16> to tensor<128x64xf32>
      %t = arith.addf %sum, %f : tensor<128x64xf32>
      scf.yield %t : tensor<128x64xf32>
    }
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %g = tile.load %v[%k] padding zero : !V, i32 -> tensor<64xbf16>
      %b = tile.load %w[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x256xbf16>
      %line = tile.reshape %g : tensor<64xbf16> -> tensor<1x64xbf16>
      %lines = tile.broadcast %line : tensor<1x64xbf16> -> tensor<128x64xbf16>
      %f = arith.mulf %a, %lines : tensor<128x64xbf16>
      %e = tile.mma %f, %b, %acc : tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>
      scf.yield %e : tensor<128x256xf32>
    }
    tile.store %d, %z[%c0, %c0] : tensor<128x256xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    tile.store %s, %z[%c1, %c0] : tensor<128x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
