// A reference that stays: the maximum is found again only where the weights of a row would grow too large.
// RUN: tw-opt %S/../schedule/Inputs/attention.mlir -pass-pipeline='builtin.module(func.func(tile-plan-block,tile-select-mma,tile-online-softmax),canonicalize,cse)' | FileCheck %s

// CHECK-LABEL: @attention
// CHECK-DAG: %[[MAX:.*]] = arith.constant dense<1.024000e+03> : tensor<128x4xf32>
// CHECK-DAG: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<128x1xf32>
// CHECK: scf.for {{.*}} iter_args(%[[M:.*]] = %{{.*}}, %[[A:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}})
// CHECK: %[[SHIFT:.*]] = tile.broadcast %[[M]]
// CHECK: %[[D:.*]] = arith.subf %{{.*}}, %[[SHIFT]]
// CHECK: %[[P:.*]] = math.exp2 %[[D]]
// CHECK: tile.reduce add
// CHECK: %[[SUMS:.*]] = tile.reduce add, %{{.*}} axis 1 {tile.in_order} : tensor<128x8x4xf32>
// CHECK: %[[FAR:.*]] = arith.cmpf ugt, %[[SUMS]], %[[MAX]]
// CHECK: %[[ANY:.*]] = tile.warp_any %[[FAR]]
// CHECK: %[[IF:.*]]:4 = scf.if %[[ANY]]
// CHECK: tile.reduce max
// CHECK: %[[M2:.*]] = arith.maximumf
// CHECK: math.exp2
// CHECK: math.exp2
// CHECK: scf.yield %[[M2]]
// CHECK: else
// CHECK-NEXT: scf.yield %[[M]], %[[P]], %[[SUMS]], %[[ONE]]
// CHECK: %[[SCALED:.*]] = scf.if %[[ANY]]
// CHECK-NEXT: arith.mulf
// CHECK: else
// CHECK-NEXT: scf.yield %[[A]]
// CHECK: tile.mma %{{.*}}, %{{.*}}, %[[SCALED]]
// CHECK: scf.yield
// CHECK: tile.reduce add, %{{.*}} axis 1 {tile.in_order} : tensor<128x4xf32>
