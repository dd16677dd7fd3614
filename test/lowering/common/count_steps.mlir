// A loop over every 64th number, by which its body divides, counts by one; another one stays.
// RUN: tw-opt %s -pass-pipeline='builtin.module(func.func(tile-canonicalize),canonicalize,cse)' | FileCheck %s

// CHECK-LABEL: func.func @steps
// CHECK-SAME: %[[A:[a-z0-9]+]]: memref{{.*}}, %[[FIRST:[a-z0-9]+]]: i32, %[[END:[a-z0-9]+]]: i32
// CHECK: scf.for %[[J:.*]] = %[[FIRST]] to %[[END]] step %c1
// CHECK: tile.load %[[A]][%[[J]]]
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %{{.*}} step %c64
module attributes {tile.target = "sm_90a"} {
  func.func @steps(%a: memref<?xf32, strided<[1]>>, %first: i32, %end: i32) attributes {tile.kernel} {
    %c64 = arith.constant 64 : i32
    %lo = arith.muli %first, %c64 : i32
    %hi = arith.muli %end, %c64 : i32
    scf.for %at = %lo to %hi step %c64 : i32 {
      %j = arith.floordivsi %at, %c64 : i32
      %x = tile.load %a[%j] : memref<?xf32, strided<[1]>>, i32 -> tensor<64xf32>
      tile.store %x, %a[%j] : tensor<64xf32>, memref<?xf32, strided<[1]>>, i32
    }
    scf.for %at = %first to %hi step %c64 : i32 {
      %j = arith.floordivsi %at, %c64 : i32
      %x = tile.load %a[%j] : memref<?xf32, strided<[1]>>, i32 -> tensor<64xf32>
      tile.store %x, %a[%j] : tensor<64xf32>, memref<?xf32, strided<[1]>>, i32
    }
    return
  }
}
