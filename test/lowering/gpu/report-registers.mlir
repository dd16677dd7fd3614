// RUN: tw-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(func.func(tile-report))'

#l = #tile.linear<register = [[1], [2], [4], [8], [16], [32], [64], [128]], lane = [[256], [512], [1024], [2048], [4096]]>
func.func @too_many(%x: tensor<8192xf32, #l>) -> tensor<8192xf32, #l> attributes {tile.kernel} {
  // expected-remark @+1 {{takes 256 registers of each thread for its tile of 8192xf32; there are 255: use smaller tiles}}
  %y = arith.addf %x, %x : tensor<8192xf32, #l>
  return %y : tensor<8192xf32, #l>
}

// -----

#l = #tile.linear<register = [[1], [2], [4], [8], [16], [32], [64], [128], [256], [512], [1024]], lane = [[2048], [4096], [8192], [16384], [32768]]>
func.func @absurd(%x: tensor<65536xf32, #l>) -> tensor<65536xf32, #l> attributes {tile.kernel} {
  // expected-error @+1 {{takes 2048 registers of each thread for its tile of 65536xf32; there are 255: use smaller tiles}}
  %y = arith.addf %x, %x : tensor<65536xf32, #l>
  return %y : tensor<65536xf32, #l>
}

// -----

// Half of the words, and a constant has none.
#l = #tile.linear<register = [[1], [2], [4], [8], [16], [32], [64], [128]], lane = [[256], [512], [1024], [2048], [4096]]>
func.func @enough(%x: tensor<8192xbf16, #l>) -> tensor<8192xbf16, #l> attributes {tile.kernel} {
  %c = arith.constant dense<1.0> : tensor<8192xf32, #l>
  %y = arith.addf %x, %x : tensor<8192xbf16, #l>
  return %y : tensor<8192xbf16, #l>
}

// -----

// Stored, it takes as many instructions as any other tile.
!A = memref<?xf32, strided<[1]>>
#l = #tile.linear<register = [[1], [2], [4], [8], [16], [32], [64], [128], [256], [512], [1024]], lane = [[2048], [4096], [8192], [16384], [32768]]>
func.func @stored(%a: !A, %i: i32) attributes {tile.kernel} {
  %c = arith.constant dense<1.0> : tensor<65536xf32, #l>
  // expected-error @+2 {{takes 2048 registers of each thread for its tile of 65536xf32; there are 255: use smaller tiles}}
  // expected-remark @+1 {{moves 65536xf32 from registers}}
  tile.store %c, %a[%i] : tensor<65536xf32, #l>, !A, i32
  return
}
