// A struct of two floats comes as the bytes that C++ passes; its fields are the words.
// RUN: tw-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(tile-to-cpu)' | FileCheck %s

module attributes {tile.target = "cpu"} {
  // CHECK: func.func @f(%[[P:.*]]: vector<2xf32>) -> f32
  // CHECK: llvm.store %[[P]]
  // CHECK: return %{{.*}} : f32
  func.func @f(%x: f32, %y: f32) -> f32 attributes {tile.kernel, tile.c_function, tile.c_signature = {
      parameters = [{size = 8 : i64, align = 4 : i64, pieces = [vector<2xf32>], counts = array<i64: 0>, starts = array<i64: 0>,
          places = array<i64: 0, 4>, bytes = array<i64: 4, 4>}],
      result = {size = 4 : i64, align = 4 : i64, pieces = [f32], counts = array<i64: 0>, starts = array<i64: 0>,
          places = array<i64: 0>, bytes = array<i64: 4>}}} {
    %s = arith.addf %x, %y : f32
    return %s : f32
  }
}

// -----

// Two words in memory cannot be those of one number.
module attributes {tile.target = "cpu"} {
  // expected-error@+1 {{'func.func' op has other arguments than its tile.c_signature says}}
  func.func @f(%x: f32) attributes {tile.kernel, tile.c_signature = {
      parameters = [{size = 8 : i64, align = 4 : i64, pieces = [vector<2xf32>], counts = array<i64: 0>, starts = array<i64: 0>,
          places = array<i64: 0, 4>, bytes = array<i64: 4, 4>}],
      result = {size = 0 : i64, align = 1 : i64, pieces = [], counts = array<i64>, starts = array<i64>,
                places = array<i64>, bytes = array<i64>}}} {
    return
  }
}

// -----

module attributes {tile.target = "cpu"} {
  // expected-error@+1 {{has a tile.c_signature that is none}}
  func.func @f(%x: f32) attributes {tile.kernel, tile.c_signature = {parameters = [1 : i64]}} {
    return
  }
}
