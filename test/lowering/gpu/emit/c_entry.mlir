// A struct of two floats comes as the bytes that C++ passes; its fields are the words.
// RUN: tw-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(tile-to-nvvm)' | FileCheck %s

module attributes {tile.target = "sm_90"} {
  // CHECK: llvm.func @f(%[[P:.*]]: !llvm.array<2 x i32>) -> f32 attributes
  // CHECK: llvm.store %[[P]]
  // CHECK: llvm.return %{{.*}} : f32
  func.func @f(%x: f32, %y: f32) -> f32 attributes {tile.kernel, tile.simt, tile.c_function, tile.c_signature = {
      parameters = [{size = 8 : i64, align = 4 : i64, pieces = [i32], counts = array<i64: 2>, starts = array<i64: 0>,
          places = array<i64: 0, 4>, bytes = array<i64: 4, 4>}],
      result = {size = 4 : i64, align = 4 : i64, pieces = [f32], counts = array<i64: 0>, starts = array<i64: 0>,
          places = array<i64: 0>, bytes = array<i64: 4>}}} {
    %s = arith.addf %x, %y : f32
    return %s : f32
  }
}

// -----

// Two words in memory cannot be those of one number.
module attributes {tile.target = "sm_90"} {
  // expected-error@+1 {{'func.func' op has arguments of 1 words, its tile.c_signature 2}}
  func.func @f(%x: f32) attributes {tile.kernel, tile.simt, tile.c_signature = {
      parameters = [{size = 8 : i64, align = 4 : i64, pieces = [i32], counts = array<i64: 2>, starts = array<i64: 0>,
          places = array<i64: 0, 4>, bytes = array<i64: 4, 4>}],
      result = {size = 0 : i64, align = 1 : i64, pieces = [], counts = array<i64>, starts = array<i64>,
                places = array<i64>, bytes = array<i64>}}} {
    return
  }
}

// -----

module attributes {tile.target = "sm_90"} {
  // expected-error@+1 {{has a tile.c_signature that is none}}
  func.func @f(%x: f32) attributes {tile.kernel, tile.simt, tile.c_signature = {parameters = [1 : i64]}} {
    return
  }
}

// -----

// An address that C++ gives may be one of any memory.
module attributes {tile.target = "sm_90"} {
  // CHECK: llvm.func @g(%[[P:.*]]: i64)
  // CHECK: llvm.inttoptr %{{.*}} : i64 to !llvm.ptr{{$}}
  func.func @g(%x: memref<f32, 6>) attributes {tile.kernel, tile.simt, tile.c_function, tile.c_signature = {
      parameters = [{size = 8 : i64, align = 8 : i64, pieces = [i64], counts = array<i64: 0>, starts = array<i64: 0>,
          places = array<i64: 0>, bytes = array<i64: 8>}],
      result = {size = 0 : i64, align = 1 : i64, pieces = [], counts = array<i64>, starts = array<i64>,
                places = array<i64>, bytes = array<i64>}}} {
    return
  }
}
