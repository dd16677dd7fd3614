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

  // A number to which something is added that counts up over a part of a step: the gathers are loads. Not from a number
  // that is no multiple of the step.
  // CHECK-LABEL: func.func @elements
  // CHECK: %[[HALF:.*]] = arith.ceildivsi %{{.*}}, %c64
  // CHECK: scf.for %[[J:.*]] = %c0{{.*}} to %[[HALF]] step %c1
  // CHECK: %[[I:.*]] = arith.muli %[[J]], %c2
  // CHECK: tile.load %{{.*}}[%[[I]]] padding zero {{.*}} -> tensor<32xf32>
  // CHECK: scf.for %{{.*}} = %c1{{.*}} to %{{.*}} step %c64
  // CHECK: tile.gather
  func.func @elements(%a: !x, %b: !x) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<32xf32>
    %n = tile.dim %a, 0 : !x
    %up = tile.iota : tensor<32xi32>
    scf.for %at = %c0 to %n step %c64 : i32 {
      %s = tensor.splat %at : tensor<32xi32>
      %i = arith.addi %s, %up : tensor<32xi32>
      %x = tile.gather %a[%i] else %zero : tensor<32xf32> {check_bounds} : !x, tensor<32xi32> -> tensor<32xf32>
      tile.store %x, %b[%at] : tensor<32xf32>, !x, i32
    }
    scf.for %at = %c1 to %n step %c64 : i32 {
      %s = tensor.splat %at : tensor<32xi32>
      %i = arith.addi %s, %up : tensor<32xi32>
      %x = tile.gather %a[%i] else %zero : tensor<32xf32> {check_bounds} : !x, tensor<32xi32> -> tensor<32xf32>
      tile.store %x, %b[%at] : tensor<32xf32>, !x, i32
    }
    return
  }
}
