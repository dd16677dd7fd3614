// RUN: tw-opt %s -split-input-file --tile-legalize -verify-diagnostics

func.func @power(%x: i32, %y: i32) -> i32 {
  // expected-error @below {{'tile.pow' op marked `integral` needs a constant exponent of at least 0}}
  %0 = tile.pow %x, %y {integral} : i32, i32
  return %0 : i32
}

// -----

// Layouts come later: one that the ops of before do not have would be lost.
func.func @layout(%x: tensor<2xi8, #tile.linear<register = [[1]]>>) -> tensor<2xi8, #tile.linear<lane = [[1]]>> {
  // expected-error @below {{'tile.neg' op has tiles with layouts, or buffers}}
  %0 = "tile.neg"(%x) : (tensor<2xi8, #tile.linear<register = [[1]]>>) -> tensor<2xi8, #tile.linear<lane = [[1]]>>
  return %0 : tensor<2xi8, #tile.linear<lane = [[1]]>>
}

// -----

func.func @buffer() {
  // expected-error @below {{'tile.alloc_shared' op has tiles with layouts, or buffers}}
  %s = tile.alloc_shared : !tile.buffer<1x8xui32, #tile.linear<offset = [[1], [2], [4]]>>
  return
}
