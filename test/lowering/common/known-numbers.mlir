// A quotient that can be one number alone is that, and a rest of a number that is less than what it is divided by is the
// number: the only group of rows that tiles are counted in. Others stay.
// RUN: tw-opt %s -pass-pipeline='builtin.module(func.func(tile-canonicalize),canonicalize,cse)' | FileCheck %s

// CHECK-LABEL: func.func @one_group
// CHECK: %[[T:.*]] = arith.remui %{{.*}}, %c15_i32
// CHECK: return %c0_i32, %[[T]], %c5_i32
func.func @one_group(%n: i32) -> (i32, i32, i32) {
  %c5 = arith.constant 5 : i32
  %c8 = arith.constant 8 : i32
  %c15 = arith.constant 15 : i32
  %c24 = arith.constant 24 : i32
  %b = tile.block_id 0
  %t = arith.remui %b, %c15 : i32
  %group = arith.floordivsi %t, %c24 : i32
  %first = arith.muli %group, %c8 : i32
  %left = arith.subi %c5, %first : i32
  %height = arith.minsi %left, %c8 : i32
  %within = arith.remsi %t, %c24 : i32
  return %group, %within, %height : i32, i32, i32
}

// CHECK-LABEL: func.func @bits
// CHECK: %[[T:.*]] = arith.remui
// CHECK: %[[U:.*]] = arith.andi %[[T]], %c7_i32
// CHECK: return %[[T]], %[[U]]
func.func @bits() -> (i32, i32) {
  %c7 = arith.constant 7 : i32
  %c15 = arith.constant 15 : i32
  %b = tile.block_id 0
  %t = arith.remui %b, %c15 : i32
  %all = arith.andi %t, %c15 : i32
  %some = arith.andi %t, %c7 : i32
  return %all, %some : i32, i32
}

// CHECK-LABEL: func.func @groups
// CHECK: arith.floordivsi
// CHECK: arith.remsi
func.func @groups() -> (i32, i32) {
  %c14 = arith.constant 14 : i32
  %c15 = arith.constant 15 : i32
  %b = tile.block_id 0
  %t = arith.remui %b, %c15 : i32
  %group = arith.floordivsi %t, %c14 : i32
  %within = arith.remsi %t, %c14 : i32
  return %group, %within : i32, i32
}
