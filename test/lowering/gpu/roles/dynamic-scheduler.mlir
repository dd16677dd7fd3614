// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-specialize-warps))' 2>/dev/null | FileCheck %s
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-specialize-warps))' 2>&1 | FileCheck %s --check-prefix=REMARK


// The producer takes the next tile behind its last loop, if that does not tell its last iteration, and posts the number at the
// end; what the loop carried before it still does. Consumers are four warps where nothing says how many.
// REMARK-NOT: uses static
// CHECK-LABEL: func.func @alone
// CHECK-SAME: %[[FIRST:[^:]*]]: i32, %[[TOTAL:[^:]*]]: i32, %[[STEP:[^:]*]]: i32, %[[WORKSPACE:[^:]*]]: i64)
// CHECK-SAME: dynamic = 1 : i32
// CHECK: %[[FULL:.*]] = tile.alloc_barriers arrivals 1 numbers : <2>
// CHECK: %[[EMPTY:.*]] = tile.alloc_barriers arrivals 4 : <2>
// CHECK: producer {
// CHECK: scf.while (%[[V:.*]] = %[[FIRST]], %{{.*}} = %[[C7:.*]], %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}})
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[V]], %[[TOTAL]]
// CHECK: scf.condition(%[[MORE]]) %[[V]],
// CHECK: ^bb0(%[[V:[^:]*]]: i32, %[[X:[^:]*]]: i32, %[[SLOT:[^:]*]]: i32, %[[PARITY:[^:]*]]: i32):
// CHECK-NEXT: %[[Y:.*]] = arith.addi %[[X]], %[[V]]
// CHECK-NEXT: tile.barrier_wait %[[FULL_OF:.*]][%{{.*}}], %{{.*}}
// CHECK-NEXT: scf.for
// CHECK-NEXT: tile.tma_load
// CHECK-NEXT: }
// CHECK-NEXT: %[[NEXT:.*]] = tile.next_tile %[[WORKSPACE]] of %[[TOTAL]] else %[[V]]
// CHECK-NEXT: tile.barrier_wait %[[FULL_OF]]
// CHECK-NEXT: tile.barrier_wait %[[FULL_OF]]
// CHECK: %[[NUMBER:.*]] = arith.addi %[[NEXT]], %[[STEP]]
// CHECK: %[[OTHER:.*]] = arith.xori %[[PARITY]]
// CHECK: tile.barrier_wait %[[EMPTY]][%[[SLOT]]], %[[OTHER]]
// CHECK: tile.post_number %[[NUMBER]], %[[FULL]][%[[SLOT]]]
// CHECK: tile.barrier_arrive %[[FULL]][%[[SLOT]]]
// CHECK: %[[NEXT:.*]] = tile.read_number %[[FULL]][%[[SLOT]]]
// CHECK: scf.yield %[[NEXT]], %[[Y]],
// CHECK: } attributes {tile.persistent}

#line = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
!array = memref<?x?xbf16, strided<[?, 1]>>
module attributes {tile.target = "sm_90a"} {
  func.func @alone(%a: !array {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>, tile.tma}, %first: i32, %total: i32, %step: i32) attributes {tile.kernel} {
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

// -----

// In the last iteration of a loop with step 1, and behind one that does not run. Only the last loop takes one.
// CHECK-LABEL: func.func @last
// CHECK: scf.while
// CHECK: ^bb0(%[[V:[^:]*]]: i32,
// CHECK: scf.for
// CHECK-NEXT: tile.tma_load
// CHECK-NEXT: }
// CHECK: %[[LAST:.*]] = arith.subi %[[N:.*]], %c1
// CHECK-NEXT: %[[TAKEN:.*]] = scf.for %[[J:.*]] = %c0_i32 to %[[N]] step %{{.*}} iter_args(%[[T:.*]] = %[[V]])
// CHECK-NEXT: %[[NOW:.*]] = arith.cmpi eq, %[[J]], %[[LAST]]
// CHECK-NEXT: %[[U:.*]] = scf.if %[[NOW]] -> (i32) {
// CHECK-NEXT: %[[NEW:.*]] = tile.next_tile %{{.*}} of %{{.*}} else %[[V]]
// CHECK-NEXT: scf.yield %[[NEW]]
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[T]]
// CHECK-NEXT: }
// CHECK-NEXT: tile.tma_load
// CHECK-NEXT: scf.yield %[[U]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[NEVER:.*]] = arith.cmpi sge, %c0_i32, %[[N]]
// CHECK-NEXT: %[[NEXT:.*]] = scf.if %[[NEVER]] -> (i32) {
// CHECK-NEXT: tile.next_tile
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[TAKEN]]
// CHECK: arith.addi %[[NEXT]]
#line = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
!array = memref<?x?xbf16, strided<[?, 1]>>
module attributes {tile.target = "sm_90a"} {
  func.func @last(%a: !array {tile.tma}, %first: i32, %total: i32, %step: i32, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %s = tile.alloc_shared : !tile.buffer<1x8x64xbf16, #line>
    %staged = tile.alloc_barriers arrivals 1 : !tile.barriers<1>
    tile.roles producer_warps 1 producer {
      scf.for %v = %first to %total step %step : i32 {
        scf.for %j = %c0 to %n step %c1 : i32 {
          tile.tma_load %a[%v, %j] into %s[%c0] signal %staged[%c0] : !array, i32, i32 into !tile.buffer<1x8x64xbf16, #line>, !tile.barriers<1>
        }
        scf.for %j = %c0 to %n step %c1 : i32 {
          tile.tma_load %a[%v, %j] into %s[%c0] signal %staged[%c0] : !array, i32, i32 into !tile.buffer<1x8x64xbf16, #line>, !tile.barriers<1>
        }
      } {tile.dynamic_schedule, tile.persistent}
    } consumer {
      scf.for %v = %first to %total step %step : i32 {
      } {tile.dynamic_schedule, tile.persistent}
    }
    return
  }
}

// -----

// Four warps that gather: one lane of them takes the number, and all read it. Consumers wait for it, and take none.
// CHECK-LABEL: func.func @gathers
// CHECK: %[[FULL:.*]] = tile.alloc_barriers arrivals 4 numbers : <2>
// CHECK: %[[EMPTY:.*]] = tile.alloc_barriers arrivals 12 : <2>
// CHECK: tile.next_tile
// CHECK: tile.post_number
// CHECK: tile.barrier_arrive %[[FULL]]
// CHECK: tile.barrier_wait %[[FULL]]
// CHECK: tile.read_number
// CHECK: tile.barrier_arrive %[[EMPTY]]
// CHECK: consumer {
// CHECK: scf.while
// CHECK: ^bb0(%{{[^:]*}}: i32, %[[SLOT:[^:]*]]: i32, %[[PARITY:[^:]*]]: i32):
// CHECK-NOT: next_tile
// CHECK: tile.barrier_wait %[[FULL]][%[[SLOT]]], %[[PARITY]]
// CHECK-NEXT: %[[NEXT:.*]] = tile.read_number %[[FULL]][%[[SLOT]]]
// CHECK-NEXT: tile.barrier_arrive %[[EMPTY]][%[[SLOT]]]
// CHECK: scf.yield %[[NEXT]],
#i = #tile.linear<register = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0]], warp = []>
#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
module attributes {tile.target = "sm_90a"} {
  func.func @gathers(%x: memref<?x?xbf16, strided<[?, 1]>>, %first: i32, %total: i32, %step: i32, %rows: tensor<8x8xi32, #i>) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %b = tile.alloc_shared : !tile.buffer<1x8x8xbf16, #s>
    tile.roles producer_warps 4 producer {
      scf.for %v = %first to %total step %step : i32 {
        tile.async_gather %x[%rows, %rows] into %b[%c0] : memref<?x?xbf16, strided<[?, 1]>>, tensor<8x8xi32, #i>, tensor<8x8xi32, #i> into !tile.buffer<1x8x8xbf16, #s>
      } {tile.dynamic_schedule, tile.persistent}
    } consumer {
      scf.for %v = %first to %total step %step : i32 {
      } {tile.dynamic_schedule, tile.persistent}
    }
    return
  }
}

// -----

// REMARK: remark: 'func.func' op uses static tile scheduling: there is no producer warp to fetch the next tile
// CHECK-LABEL: func.func @no_roles
// CHECK: scf.for
// CHECK: } {tile.persistent}
module attributes {tile.target = "sm_90a"} {
  func.func @no_roles(%first: i32, %total: i32, %step: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    scf.for %v = %first to %total step %step : i32 {
    } {tile.dynamic_schedule, tile.persistent}
    return
  }
}

// -----

// REMARK: remark: 'func.func' op uses static tile scheduling: its consumer groups ping-pong
// CHECK-LABEL: func.func @consumer_groups
// CHECK-COUNT-2: scf.for
// CHECK-NOT: tile.dynamic_schedule
module attributes {tile.target = "sm_90a"} {
  func.func @consumer_groups(%first: i32, %total: i32, %step: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    tile.roles producer_warps 4 consumer_groups 2 producer {
      scf.for %v = %first to %total step %step : i32 {
      } {tile.dynamic_schedule, tile.persistent}
    } consumer {
      scf.for %v = %first to %total step %step : i32 {
      } {tile.dynamic_schedule, tile.persistent}
    }
    return
  }
}

// -----

// REMARK: remark: 'func.func' op uses static tile scheduling: a role has no loop over the tiles
// REMARK-NOT: remark
// CHECK-LABEL: func.func @idle
// CHECK-NOT: tile.dynamic_schedule
module attributes {tile.target = "sm_90a"} {
  func.func @idle(%first: i32, %total: i32, %step: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32}} {
    tile.roles producer_warps 1 producer {
    } consumer {
      scf.for %v = %first to %total step %step : i32 {
      } {tile.dynamic_schedule, tile.persistent}
    }
    return
  }
}
