// RUN: tw-opt %s --tile-legalize -verify-diagnostics

func.func @power(%x: i32, %y: i32) -> i32 {
  // expected-error @below {{'tile.pow' op marked `integral` needs a constant exponent of at least 0}}
  %0 = tile.pow %x, %y {integral} : i32, i32
  return %0 : i32
}
