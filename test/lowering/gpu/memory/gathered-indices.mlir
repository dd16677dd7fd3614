// The places that a mask of scores compares are not those that the gather computes.
// RUN: tw-opt %S/Inputs/gathered-rows.mlir --pass-pipeline='builtin.module(func.func(tile-optimize-indices))' | FileCheck %s

// CHECK-LABEL: @rows
// CHECK: scf.for
// CHECK: %[[I:.*]] = arith.addi %{{.*}} : tensor<64xi32>
// CHECK: %[[J:.*]] = arith.addi %{{.*}} : tensor<64xi32>
// CHECK: %[[P:.*]] = tile.gather %{{.*}}[%[[I]]] mask
// CHECK-NOT: tile.gather
// CHECK: %[[E:.*]] = arith.select %{{.*}}, %{{.*}}, %[[P]]
// CHECK: %[[R:.*]] = tile.reshape %[[E]]
// CHECK: %[[S:.*]] = tile.broadcast %[[R]]
// CHECK: tile.gather %{{.*}}[%[[S]], %{{.*}}]
// CHECK: tile.reshape %[[J]] : tensor<64xi32> -> tensor<1x64xi32>
