// How many products may go on is counted when all of them stand where they will.
// RUN: tw-opt %s --pass-pipeline='builtin.module(func.func(tile-sink-waits))' | FileCheck %s

#l = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#s = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [0, 8], [0, 16], [0, 32]]>

// The third product overtakes the second, whose wait then must not leave one running.
// CHECK-LABEL: @overtaken
func.func @overtaken(%c: tensor<64x64xf32, #l>) -> (tensor<64x64xf32, #l>, tensor<64x64xf32, #l>) {
  %z = arith.constant 0 : i32
  %b = tile.alloc_shared : !tile.buffer<1x64x64xbf16, #s>
  // CHECK: %[[X:.*]] = tile.async_mma
  // CHECK-NEXT: %[[Z:.*]] = tile.async_mma
  // CHECK-NEXT: %[[X2:.*]] = tile.mma_wait %[[X]], 1 {complete}
  // CHECK-NEXT: %[[N:.*]] = arith.negf %[[X2]]
  // CHECK-NEXT: %[[Y:.*]] = tile.async_mma {{.*}}, %[[N]]
  // CHECK-NEXT: tile.mma_wait %[[Y]], 0 :
  // CHECK-NEXT: tile.mma_wait %[[Z]], 0 :
  %x = tile.async_mma %b[%z], %b[%z], %c : !tile.buffer<1x64x64xbf16, #s>, !tile.buffer<1x64x64xbf16, #s>, tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %x2 = tile.mma_wait %x, 0 : tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %n = arith.negf %x2 : tensor<64x64xf32, #l>
  %y = tile.async_mma %b[%z], %b[%z], %n : !tile.buffer<1x64x64xbf16, #s>, !tile.buffer<1x64x64xbf16, #s>, tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %y2 = tile.mma_wait %y, 0 : tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %w = tile.async_mma %b[%z], %b[%z], %c : !tile.buffer<1x64x64xbf16, #s>, !tile.buffer<1x64x64xbf16, #s>, tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %w2 = tile.mma_wait %w, 0 : tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  return %y2, %w2 : tensor<64x64xf32, #l>, tensor<64x64xf32, #l>
}

!A = memref<?x?xf32, strided<[?, 1]>>

// What is loaded for the result of a product comes while the product runs, and so does a product behind the load.
// CHECK-LABEL: @loaded
func.func @loaded(%a: !A, %c: tensor<64x64xf32, #l>) -> (tensor<64x64xf32, #l>, tensor<64x64xf32, #l>) {
  %z = arith.constant 0 : i32
  %b = tile.alloc_shared : !tile.buffer<1x64x64xbf16, #s>
  // CHECK: %[[X:.*]] = tile.async_mma
  // CHECK-NEXT: %[[L:.*]] = tile.load
  // CHECK-NEXT: %[[Y:.*]] = tile.async_mma
  // CHECK-NEXT: %[[X2:.*]] = tile.mma_wait %[[X]], 1 {complete}
  // CHECK-NEXT: arith.addf %[[X2]], %[[L]]
  %x = tile.async_mma %b[%z], %b[%z], %c : !tile.buffer<1x64x64xbf16, #s>, !tile.buffer<1x64x64xbf16, #s>, tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %x2 = tile.mma_wait %x, 0 : tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %l = tile.load %a[%z, %z] : !A, i32, i32 -> tensor<64x64xf32, #l>
  %s = arith.addf %x2, %l : tensor<64x64xf32, #l>
  %y = tile.async_mma %b[%z], %b[%z], %c : !tile.buffer<1x64x64xbf16, #s>, !tile.buffer<1x64x64xbf16, #s>, tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %y2 = tile.mma_wait %y, 0 : tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  return %s, %y2 : tensor<64x64xf32, #l>, tensor<64x64xf32, #l>
}

// Not past a store, which may write what is loaded.
// CHECK-LABEL: @stored
func.func @stored(%a: !A, %c: tensor<64x64xf32, #l>) -> tensor<64x64xf32, #l> {
  %z = arith.constant 0 : i32
  %b = tile.alloc_shared : !tile.buffer<1x64x64xbf16, #s>
  // CHECK: tile.async_mma
  // CHECK-NEXT: tile.mma_wait
  // CHECK-NEXT: tile.store
  // CHECK-NEXT: tile.load
  %x = tile.async_mma %b[%z], %b[%z], %c : !tile.buffer<1x64x64xbf16, #s>, !tile.buffer<1x64x64xbf16, #s>, tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %x2 = tile.mma_wait %x, 0 : tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  tile.store %c, %a[%z, %z] : tensor<64x64xf32, #l>, !A, i32, i32
  %l = tile.load %a[%z, %z] : !A, i32, i32 -> tensor<64x64xf32, #l>
  %s = arith.addf %x2, %l : tensor<64x64xf32, #l>
  return %s : tensor<64x64xf32, #l>
}

// What threads write for a product is written before the first product, if none has a part in it; not where a product in
// front reads the buffer.
// CHECK-LABEL: @written
func.func @written(%c: tensor<64x64xf32, #l>) -> (tensor<64x64xf32, #l>, tensor<64x64xf32, #l>, tensor<64x64xf32, #l>) {
  %z = arith.constant 0 : i32
  %b = tile.alloc_shared : !tile.buffer<1x64x64xbf16, #s>
  %d = tile.alloc_shared : !tile.buffer<1x64x64xbf16, #s>
  %e = tile.alloc_shared : !tile.buffer<1x64x64xbf16, #s>
  // CHECK: %[[T:.*]] = arith.truncf
  // CHECK-NEXT: tile.local_store %[[T]]
  // CHECK-NEXT: %[[X:.*]] = tile.async_mma
  // CHECK-NEXT: %[[Y:.*]] = tile.async_mma
  // CHECK-NEXT: %[[X2:.*]] = tile.mma_wait %[[X]], 1 {complete}
  // CHECK-NEXT: %[[U:.*]] = arith.truncf %[[X2]]
  // CHECK: tile.local_store %[[U]]
  // CHECK: tile.async_mma
  // CHECK: tile.local_store
  // CHECK: tile.async_mma
  %x = tile.async_mma %b[%z], %b[%z], %c : !tile.buffer<1x64x64xbf16, #s>, !tile.buffer<1x64x64xbf16, #s>, tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %x2 = tile.mma_wait %x, 0 : tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %t = arith.truncf %c : tensor<64x64xf32, #l> to tensor<64x64xbf16, #l>
  tile.local_store %t, %d[%z] : tensor<64x64xbf16, #l>, !tile.buffer<1x64x64xbf16, #s>
  %y = tile.async_mma %b[%z], %d[%z], %c : !tile.buffer<1x64x64xbf16, #s>, !tile.buffer<1x64x64xbf16, #s>, tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %y2 = tile.mma_wait %y, 0 : tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %u = arith.truncf %x2 : tensor<64x64xf32, #l> to tensor<64x64xbf16, #l>
  tile.local_store %u, %e[%z] : tensor<64x64xbf16, #l>, !tile.buffer<1x64x64xbf16, #s>
  %w = tile.async_mma %b[%z], %e[%z], %c : !tile.buffer<1x64x64xbf16, #s>, !tile.buffer<1x64x64xbf16, #s>, tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %w2 = tile.mma_wait %w, 0 : tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  tile.local_store %t, %e[%z] : tensor<64x64xbf16, #l>, !tile.buffer<1x64x64xbf16, #s>
  %v = tile.async_mma %b[%z], %e[%z], %c : !tile.buffer<1x64x64xbf16, #s>, !tile.buffer<1x64x64xbf16, #s>, tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %v2 = tile.mma_wait %v, 0 : tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  return %y2, %w2, %v2 : tensor<64x64xf32, #l>, tensor<64x64xf32, #l>, tensor<64x64xf32, #l>
}

// A function that is read behind the second wait, and the mask over it, are held in front of it.
// CHECK-LABEL: @weights
func.func @weights(%c: tensor<64x64xf32, #l>, %m: tensor<64x64xi1, #l>) -> (tensor<64x64xf32, #l>, tensor<64x64xf32, #l>) {
  %z = arith.constant 0 : i32
  %b = tile.alloc_shared : !tile.buffer<1x64x64xbf16, #s>
  // CHECK: %[[X:.*]] = tile.async_mma
  // CHECK-NEXT: %[[Y:.*]] = tile.async_mma
  // CHECK-NEXT: %[[X2:.*]] = tile.mma_wait %[[X]], 1 {complete}
  // CHECK-NEXT: %[[E:.*]] = math.exp2 %[[X2]]
  // CHECK-NEXT: %[[P:.*]] = arith.select %{{.*}}, %[[E]], %{{.*}}
  // CHECK-NEXT: %[[Y2:.*]], %[[P2:.*]] = tile.mma_wait %[[Y]], 0 with %[[P]]
  // CHECK-NEXT: arith.mulf %[[P2]], %[[Y2]]
  %x = tile.async_mma %b[%z], %b[%z], %c : !tile.buffer<1x64x64xbf16, #s>, !tile.buffer<1x64x64xbf16, #s>, tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %x2 = tile.mma_wait %x, 0 : tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %e = math.exp2 %x2 : tensor<64x64xf32, #l>
  %p = arith.select %m, %e, %c : tensor<64x64xi1, #l>, tensor<64x64xf32, #l>
  %y = tile.async_mma %b[%z], %b[%z], %c : !tile.buffer<1x64x64xbf16, #s>, !tile.buffer<1x64x64xbf16, #s>, tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %y2 = tile.mma_wait %y, 0 : tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %s = arith.mulf %p, %y2 : tensor<64x64xf32, #l>
  return %s, %y2 : tensor<64x64xf32, #l>, tensor<64x64xf32, #l>
}

// The next left operand, which the program loads ahead and converts in front of the product, is converted behind the wait.
// CHECK-LABEL: @ahead
func.func @ahead(%a: !A, %c: tensor<64x64xf32, #l>, %q: tensor<64x64xbf16, #l>) -> tensor<64x64xf32, #l> {
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %n = arith.constant 8 : i32
  %b = tile.alloc_shared : !tile.buffer<1x64x64xbf16, #s>
  // CHECK: scf.for
  // CHECK-NEXT: %[[WIDE:.*]] = tile.load
  // CHECK-NEXT: %[[X:.*]] = tile.async_mma
  // CHECK-NEXT: %{{.*}}, %[[LATE:.*]] = tile.mma_wait %[[X]], 0 with %[[WIDE]]
  // CHECK-NEXT: %[[NEXT:.*]] = arith.truncf %[[LATE]]
  // CHECK-NEXT: scf.yield %{{.*}}, %[[NEXT]]
  %r:2 = scf.for %i = %z to %n step %one iter_args(%acc = %c, %lhs = %q) -> (tensor<64x64xf32, #l>, tensor<64x64xbf16, #l>) : i32 {
    %wide = tile.load %a[%i, %z] : !A, i32, i32 -> tensor<64x64xf32, #l>
    %next = arith.truncf %wide : tensor<64x64xf32, #l> to tensor<64x64xbf16, #l>
    %x = tile.async_mma %lhs, %b[%z], %acc : tensor<64x64xbf16, #l>, !tile.buffer<1x64x64xbf16, #s>, tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
    %w = tile.mma_wait %x, 0 : tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
    scf.yield %w, %next : tensor<64x64xf32, #l>, tensor<64x64xbf16, #l>
  }
  return %r#0 : tensor<64x64xf32, #l>
}

// So where sums have 16 bits and a view stands behind the conversion.
// CHECK-LABEL: @narrow_sums
func.func @narrow_sums(%a: !A, %c: tensor<64x64xf16, #l>, %q: tensor<64x64xf16, #l>) -> tensor<64x64xf16, #l> {
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %n = arith.constant 8 : i32
  %b = tile.alloc_shared : !tile.buffer<1x64x64xf16, #s>
  // CHECK: %[[WIDE:.*]] = tile.load
  // CHECK: %{{.*}}, %[[LATE:.*]] = tile.mma_wait %{{.*}}, 0 with %[[WIDE]]
  // CHECK-NEXT: %[[NEXT:.*]] = arith.truncf %[[LATE]]
  // CHECK-NEXT: tile.convert_layout %[[NEXT]]
  %r:2 = scf.for %i = %z to %n step %one iter_args(%acc = %c, %lhs = %q) -> (tensor<64x64xf16, #l>, tensor<64x64xf16, #l>) : i32 {
    %x = tile.async_mma %lhs, %b[%z], %acc : tensor<64x64xf16, #l>, !tile.buffer<1x64x64xf16, #s>, tensor<64x64xf16, #l> -> tensor<64x64xf16, #l>
    %w = tile.mma_wait %x, 0 : tensor<64x64xf16, #l> -> tensor<64x64xf16, #l>
    %wide = tile.load %a[%i, %z] : !A, i32, i32 -> tensor<64x64xf32, #l>
    %narrow = arith.truncf %wide : tensor<64x64xf32, #l> to tensor<64x64xf16, #l>
    %next = tile.convert_layout %narrow : tensor<64x64xf16, #l> -> tensor<64x64xf16, #l>
    scf.yield %w, %next : tensor<64x64xf16, #l>, tensor<64x64xf16, #l>
  }
  return %r#0 : tensor<64x64xf16, #l>
}

// Where the next operand is loaded as it is, the wait holds this one: its registers are not written before.
// CHECK-LABEL: @held
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[LHS:.*]] = %{{.*}})
// CHECK: tile.mma_wait %{{.*}}, 0 with %[[LHS]]
func.func @held(%a: memref<?x?xbf16, strided<[?, 1]>>, %c: tensor<64x64xf32, #l>, %q: tensor<64x64xbf16, #l>) -> tensor<64x64xf32, #l> {
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %n = arith.constant 8 : i32
  %b = tile.alloc_shared : !tile.buffer<1x64x64xbf16, #s>
  %r:2 = scf.for %i = %z to %n step %one iter_args(%acc = %c, %lhs = %q) -> (tensor<64x64xf32, #l>, tensor<64x64xbf16, #l>) : i32 {
    %x = tile.async_mma %lhs, %b[%z], %acc : tensor<64x64xbf16, #l>, !tile.buffer<1x64x64xbf16, #s>, tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
    %w = tile.mma_wait %x, 0 : tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
    %next = tile.load %a[%i, %z] : memref<?x?xbf16, strided<[?, 1]>>, i32, i32 -> tensor<64x64xbf16, #l>
    scf.yield %w, %next : tensor<64x64xf32, #l>, tensor<64x64xbf16, #l>
  }
  return %r#0 : tensor<64x64xf32, #l>
}

// Two products of one sum have one wait, behind the second; the barrier of the first goes with its wait.
// CHECK-LABEL: @one_sum
func.func @one_sum(%c: tensor<64x64xf32, #l>) -> tensor<64x64xf32, #l> {
  %z = arith.constant 0 : i32
  %b = tile.alloc_shared : !tile.buffer<1x64x64xbf16, #s>
  // CHECK: %[[X:.*]] = tile.async_mma
  // CHECK-NEXT: %[[Y:.*]] = tile.async_mma {{.*}}, %[[X]] :
  // CHECK-NEXT: %[[V:.*]] = tile.async_mma {{.*}}, %[[Y]] :
  // CHECK-NEXT: tile.mma_wait %[[V]], 0 :
  // CHECK-NEXT: tile.barrier {tile.products}
  // CHECK-NEXT: return
  %x = tile.async_mma %b[%z], %b[%z], %c : !tile.buffer<1x64x64xbf16, #s>, !tile.buffer<1x64x64xbf16, #s>, tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %x2 = tile.mma_wait %x, 0 : tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  tile.barrier {tile.products}
  %y = tile.async_mma %b[%z], %b[%z], %x2 : !tile.buffer<1x64x64xbf16, #s>, !tile.buffer<1x64x64xbf16, #s>, tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %y2 = tile.mma_wait %y, 0 : tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  tile.barrier {tile.products}
  %v = tile.async_mma %b[%z], %b[%z], %y2 : !tile.buffer<1x64x64xbf16, #s>, !tile.buffer<1x64x64xbf16, #s>, tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %v2 = tile.mma_wait %v, 0 : tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  tile.barrier {tile.products}
  return %v2 : tensor<64x64xf32, #l>
}

// Each has its own where the first reads registers, where threads write what the second reads (it may be what the first
// reads), where another op reads the sum, and where sums are added up outside of the Tensor Core.
// CHECK-LABEL: @own_waits
func.func @own_waits(%p: tensor<64x64xbf16, #l>, %c: tensor<64x64xf32, #l>) -> (tensor<64x64xf32, #l>, tensor<64x64xf32, #l>, tensor<64x64xf32, #l>) {
  %z = arith.constant 0 : i32
  %b = tile.alloc_shared : !tile.buffer<1x64x64xbf16, #s>
  // CHECK: %[[X:.*]] = tile.async_mma
  // CHECK-NEXT: tile.mma_wait %[[X]], 0
  // CHECK-NEXT: %[[Y:.*]] = tile.async_mma
  // CHECK-NEXT: tile.mma_wait %[[Y]], 0
  // CHECK-NEXT: tile.local_store
  // CHECK-NEXT: %[[U:.*]] = tile.async_mma
  // CHECK-NEXT: %[[U2:.*]] = tile.mma_wait %[[U]], 0
  // CHECK-NEXT: %[[V:.*]] = tile.async_mma {{.*}}, %[[U2]] :
  // CHECK-NEXT: tile.mma_wait %[[V]], 0
  %x = tile.async_mma %p, %b[%z], %c : tensor<64x64xbf16, #l>, !tile.buffer<1x64x64xbf16, #s>, tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %x2 = tile.mma_wait %x, 0 : tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %y = tile.async_mma %b[%z], %b[%z], %x2 : !tile.buffer<1x64x64xbf16, #s>, !tile.buffer<1x64x64xbf16, #s>, tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %y2 = tile.mma_wait %y, 0 : tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  tile.local_store %p, %b[%z] : tensor<64x64xbf16, #l>, !tile.buffer<1x64x64xbf16, #s>
  %u = tile.async_mma %b[%z], %b[%z], %y2 : !tile.buffer<1x64x64xbf16, #s>, !tile.buffer<1x64x64xbf16, #s>, tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %u2 = tile.mma_wait %u, 0 : tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %v = tile.async_mma %b[%z], %b[%z], %u2 : !tile.buffer<1x64x64xbf16, #s>, !tile.buffer<1x64x64xbf16, #s>, tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %v2 = tile.mma_wait %v, 0 : tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  return %y2, %u2, %v2 : tensor<64x64xf32, #l>, tensor<64x64xf32, #l>, tensor<64x64xf32, #l>
}

#f = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 16], [2, 32], [4, 64], [8, 0], [16, 0], [32, 0]]>

// CHECK-LABEL: @promoted
func.func @promoted(%c: tensor<64x64xf32, #l>) -> tensor<64x64xf32, #l> {
  %z = arith.constant 0 : i32
  %b = tile.alloc_shared : !tile.buffer<1x64x128xf8E4M3FN, #f>
  // CHECK: %[[X:.*]] = tile.async_mma
  // CHECK-NEXT: %[[X2:.*]] = tile.mma_wait %[[X]], 0
  // CHECK-NEXT: %[[Y:.*]] = tile.async_mma {{.*}}, %[[X2]] promoted 128
  %x = tile.async_mma %b[%z], %b[%z], %c promoted 128 {transposed_rhs} : !tile.buffer<1x64x128xf8E4M3FN, #f>, !tile.buffer<1x64x128xf8E4M3FN, #f>, tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %x2 = tile.mma_wait %x, 0 : tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %y = tile.async_mma %b[%z], %b[%z], %x2 promoted 128 {transposed_rhs} : !tile.buffer<1x64x128xf8E4M3FN, #f>, !tile.buffer<1x64x128xf8E4M3FN, #f>, tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  %y2 = tile.mma_wait %y, 0 : tensor<64x64xf32, #l> -> tensor<64x64xf32, #l>
  return %y2 : tensor<64x64xf32, #l>
}
