// The product with the values of an iteration runs behind the next iteration's scores.
// RUN: tw-opt %S/Inputs/attention.mlir -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-pipeline-mma),canonicalize,cse)' | FileCheck %s

// CHECK-LABEL: @attention
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<128x64xbf16>
// CHECK-DAG: %[[OUTSIDE:.*]] = arith.constant -1 : i32
// CHECK: %[[R:.*]]:4 = scf.for %[[J:.*]] = %[[LB:.*]] to %[[UB:.*]] step {{.*}} iter_args(%{{.*}}, %{{.*}}, %[[A:.*]] = %{{.*}}, %[[P:.*]] = %[[ZERO]])
// The value tile of the iteration before: zeros in the first.
// CHECK: %[[LATE:.*]] = arith.cmpi sgt, %[[J]], %[[LB]]
// CHECK: %[[BEFORE:.*]] = arith.select %[[LATE]], %{{.*}}, %[[OUTSIDE]]
// A tile outside of the array is zero, even if the program promised that there is none.
// CHECK-NOT: tile.in_bounds
// CHECK: %[[V:.*]] = tile.load %{{.*}}[%[[BEFORE]], %{{.*}}] padding zero :
// CHECK: tile.mma {{.*}} {tile.family = "wgmma", tile.places = "ss", tile.transposed_rhs}
// CHECK-NEXT: %[[ACC:.*]] = tile.mma %[[P]], %[[V]], %[[A]] {tile.family = "wgmma", tile.places = "rs"}
// CHECK: tile.reduce max
// CHECK: %[[P2:.*]] = arith.truncf
// CHECK: %[[A2:.*]] = arith.mulf %[[ACC]]
// CHECK-NOT: tile.mma
// CHECK: scf.yield %{{.*}}, %{{.*}}, %[[A2]], %[[P2]]
// CHECK: %[[LAST:.*]] = tile.load {{.*}} padding zero :
// CHECK: tile.mma %[[R]]#3, %[[LAST]], %[[R]]#2 {tile.family = "wgmma", tile.places = "rs"}
