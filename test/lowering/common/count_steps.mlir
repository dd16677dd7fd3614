// A loop over every 64th number, by which its body divides, counts by one; another one stays.
// RUN: tw-opt %s -pass-pipeline='builtin.module(func.func(tile-canonicalize),canonicalize,cse)' | FileCheck %s

!x = memref<?xf32, strided<[1]>>

module attributes {tile.target = "sm_90a"} {
  // CHECK-LABEL: func.func @steps
  // CHECK-SAME: %[[A:[a-z0-9]+]]: memref
  // CHECK: %[[FIRST:.*]] = arith.andi
  // CHECK: %[[END:.*]] = arith.ceildivsi
  // CHECK: scf.for %[[J:.*]] = %[[FIRST]] to %[[END]] step %c1
  // CHECK: tile.load %[[A]][%[[J]]]
  // CHECK: scf.for %{{.*}} = %[[FIRST]] to %{{.*}} step %c64
  func.func @steps(%a: !x, %given: i32) attributes {tile.kernel} {
    %c64 = arith.constant 64 : i32
    %c1023 = arith.constant 1023 : i32
    %first = arith.andi %given, %c1023 : i32
    %n = tile.dim %a, 0 : !x
    %end = arith.ceildivsi %n, %c64 : i32
    %lo = arith.muli %first, %c64 : i32
    %hi = arith.muli %end, %c64 : i32
    scf.for %at = %lo to %hi step %c64 : i32 {
      %j = arith.floordivsi %at, %c64 : i32
      %x = tile.load %a[%j] : !x, i32 -> tensor<64xf32>
      tile.store %x, %a[%j] : tensor<64xf32>, !x, i32
    }
    scf.for %at = %first to %hi step %c64 : i32 {
      %j = arith.floordivsi %at, %c64 : i32
      %x = tile.load %a[%j] : !x, i32 -> tensor<64xf32>
      tile.store %x, %a[%j] : tensor<64xf32>, !x, i32
    }
    return
  }

  // Products that may overflow are the bounds that they are.
  // CHECK-LABEL: func.func @overflow
  // CHECK: %[[FROM:.*]] = arith.ceildivsi %{{.*}}, %c64
  // CHECK: %[[TO:.*]] = arith.ceildivsi %{{.*}}, %c64
  // CHECK: scf.for %{{.*}} = %[[FROM]] to %[[TO]] step %c1
  func.func @overflow(%a: !x, %first: i32, %end: i32) attributes {tile.kernel} {
    %c64 = arith.constant 64 : i32
    %lo = arith.muli %first, %c64 : i32
    %hi = arith.muli %end, %c64 : i32
    scf.for %at = %lo to %hi step %c64 : i32 {
      %j = arith.floordivsi %at, %c64 : i32
      %x = tile.load %a[%j] : !x, i32 -> tensor<64xf32>
      tile.store %x, %a[%j] : tensor<64xf32>, !x, i32
    }
    return
  }
}
