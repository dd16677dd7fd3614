// A step that may pass the end of its type stops there; the count of a launch's blocks cannot.
// RUN: tw-opt %s -pass-pipeline='builtin.module(tile-to-nvvm)' | FileCheck %s

// CHECK-LABEL: llvm.func @steps
// CHECK: llvm.call_intrinsic "llvm.sadd.sat.i32"
// CHECK-NOT: sadd.sat
module attributes {tile.target = "sm_90a"} {
  func.func @steps(%flag: i1, %from: i32, %to: i32, %by: i32) attributes {tile.kernel} {
    scf.for %i = %from to %to step %by : i32 {
      tile.assert %flag, "never" : i1
    }
    scf.for %i = %from to %to step %by : i32 {
      tile.assert %flag, "never" : i1
    } {tile.persistent}
    return
  }
}
