// A loop that runs once at most has no iterations to spare, and stays whole: it ends a step behind its first one, or
// sooner, as told by a minimum, a choice, or quotients.
// RUN: tw-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(tile-split-loops),canonicalize,cse)' | FileCheck %s

!R = tensor<64x64xf32>
!I = tensor<64x64xi32>

// CHECK-LABEL: @minimum
// CHECK-COUNT-1: scf.for
// CHECK-NOT: scf.for
// CHECK-LABEL: @choice
// CHECK-COUNT-1: scf.for
// CHECK-NOT: scf.for
// CHECK-LABEL: @quotients
// CHECK-COUNT-1: scf.for
// CHECK-NOT: scf.for
// Two steps, the larger end, and quotients of ends two tiles apart: not once.
// CHECK-LABEL: @two
// CHECK-COUNT-2: scf.for
// CHECK-LABEL: @larger
// CHECK-COUNT-2: scf.for
// CHECK-LABEL: @two_tiles
// CHECK-COUNT-2: scf.for

func.func @minimum(%q: tensor<64x64xf16>, %b: i32, %n: i32) -> !R {
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !R
  %i = tile.iota : tensor<64xi32>
  %ic = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %end = tensor.splat %n : !I
  %low = arith.addi %b, %c1 : i32
  %step = arith.constant 1 : i32
  %next = arith.addi %low, %step : i32
  %high = arith.minsi %n, %next : i32
  %r = scf.for %j = %low to %high step %c1 iter_args(%acc = %zero) -> (!R) : i32 {
    %at = arith.muli %j, %c64 : i32
    %s = tensor.splat %at : tensor<1x64xi32>
    %c = arith.addi %s, %ic : tensor<1x64xi32>
    %columns = tile.broadcast %c : tensor<1x64xi32> -> !I
    %visible = arith.cmpi slt, %columns, %end : !I
    %m = tile.mma %q, %q, %acc : tensor<64x64xf16>, tensor<64x64xf16>, !R
    %d = arith.select %visible, %m, %zero : tensor<64x64xi1>, !R
    scf.yield %d : !R
  }
  return %r : !R
}

func.func @choice(%q: tensor<64x64xf16>, %b: i32, %n: i32) -> !R {
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !R
  %i = tile.iota : tensor<64xi32>
  %ic = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %end = tensor.splat %n : !I
  %low = arith.addi %b, %c1 : i32
  %step = arith.constant 1 : i32
  %next = arith.addi %low, %step : i32
  %less = arith.cmpi sgt, %next, %n : i32
  %high = arith.select %less, %n, %next : i32
  %r = scf.for %j = %low to %high step %c1 iter_args(%acc = %zero) -> (!R) : i32 {
    %at = arith.muli %j, %c64 : i32
    %s = tensor.splat %at : tensor<1x64xi32>
    %c = arith.addi %s, %ic : tensor<1x64xi32>
    %columns = tile.broadcast %c : tensor<1x64xi32> -> !I
    %visible = arith.cmpi slt, %columns, %end : !I
    %m = tile.mma %q, %q, %acc : tensor<64x64xf16>, tensor<64x64xf16>, !R
    %d = arith.select %visible, %m, %zero : tensor<64x64xi1>, !R
    scf.yield %d : !R
  }
  return %r : !R
}

func.func @quotients(%q: tensor<64x64xf16>, %b: i32, %n: i32) -> !R {
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !R
  %i = tile.iota : tensor<64xi32>
  %ic = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %end = tensor.splat %n : !I
  %first = arith.muli %b, %c64 : i32
  %more = arith.constant 64 : i32
  %next = arith.addi %first, %more : i32
  %last = arith.minsi %next, %n : i32
  %low = arith.ceildivsi %first, %c64 : i32
  %high = arith.ceildivsi %last, %c64 : i32
  %r = scf.for %j = %low to %high step %c1 iter_args(%acc = %zero) -> (!R) : i32 {
    %at = arith.muli %j, %c64 : i32
    %s = tensor.splat %at : tensor<1x64xi32>
    %c = arith.addi %s, %ic : tensor<1x64xi32>
    %columns = tile.broadcast %c : tensor<1x64xi32> -> !I
    %visible = arith.cmpi slt, %columns, %end : !I
    %m = tile.mma %q, %q, %acc : tensor<64x64xf16>, tensor<64x64xf16>, !R
    %d = arith.select %visible, %m, %zero : tensor<64x64xi1>, !R
    scf.yield %d : !R
  }
  return %r : !R
}

func.func @two(%q: tensor<64x64xf16>, %b: i32, %n: i32) -> !R {
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !R
  %i = tile.iota : tensor<64xi32>
  %ic = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %end = tensor.splat %n : !I
  %low = arith.addi %b, %c1 : i32
  %step = arith.constant 2 : i32
  %next = arith.addi %low, %step : i32
  %high = arith.minsi %n, %next : i32
  %r = scf.for %j = %low to %high step %c1 iter_args(%acc = %zero) -> (!R) : i32 {
    %at = arith.muli %j, %c64 : i32
    %s = tensor.splat %at : tensor<1x64xi32>
    %c = arith.addi %s, %ic : tensor<1x64xi32>
    %columns = tile.broadcast %c : tensor<1x64xi32> -> !I
    %visible = arith.cmpi slt, %columns, %end : !I
    %m = tile.mma %q, %q, %acc : tensor<64x64xf16>, tensor<64x64xf16>, !R
    %d = arith.select %visible, %m, %zero : tensor<64x64xi1>, !R
    scf.yield %d : !R
  }
  return %r : !R
}

func.func @larger(%q: tensor<64x64xf16>, %b: i32, %n: i32) -> !R {
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !R
  %i = tile.iota : tensor<64xi32>
  %ic = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %end = tensor.splat %n : !I
  %low = arith.addi %b, %c1 : i32
  %step = arith.constant 1 : i32
  %next = arith.addi %low, %step : i32
  %less = arith.cmpi sgt, %next, %n : i32
  %high = arith.select %less, %next, %n : i32
  %r = scf.for %j = %low to %high step %c1 iter_args(%acc = %zero) -> (!R) : i32 {
    %at = arith.muli %j, %c64 : i32
    %s = tensor.splat %at : tensor<1x64xi32>
    %c = arith.addi %s, %ic : tensor<1x64xi32>
    %columns = tile.broadcast %c : tensor<1x64xi32> -> !I
    %visible = arith.cmpi slt, %columns, %end : !I
    %m = tile.mma %q, %q, %acc : tensor<64x64xf16>, tensor<64x64xf16>, !R
    %d = arith.select %visible, %m, %zero : tensor<64x64xi1>, !R
    scf.yield %d : !R
  }
  return %r : !R
}

func.func @two_tiles(%q: tensor<64x64xf16>, %b: i32, %n: i32) -> !R {
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !R
  %i = tile.iota : tensor<64xi32>
  %ic = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %end = tensor.splat %n : !I
  %first = arith.muli %b, %c64 : i32
  %more = arith.constant 65 : i32
  %next = arith.addi %first, %more : i32
  %last = arith.minsi %next, %n : i32
  %low = arith.ceildivsi %first, %c64 : i32
  %high = arith.ceildivsi %last, %c64 : i32
  %r = scf.for %j = %low to %high step %c1 iter_args(%acc = %zero) -> (!R) : i32 {
    %at = arith.muli %j, %c64 : i32
    %s = tensor.splat %at : tensor<1x64xi32>
    %c = arith.addi %s, %ic : tensor<1x64xi32>
    %columns = tile.broadcast %c : tensor<1x64xi32> -> !I
    %visible = arith.cmpi slt, %columns, %end : !I
    %m = tile.mma %q, %q, %acc : tensor<64x64xf16>, tensor<64x64xf16>, !R
    %d = arith.select %visible, %m, %zero : tensor<64x64xi1>, !R
    scf.yield %d : !R
  }
  return %r : !R
}
