// The generic form says the result type itself: it must be the inferred one.
// RUN: tw-opt %s -split-input-file -verify-diagnostics

func.func @wrong_result(%x: tensor<8xi8>, %y: tensor<8xf16>) {
  // expected-error @+2 {{'tile.add' op inferred type(s) 'tensor<8xf16>' are incompatible with return type(s) of operation 'tensor<8xi8>'}}
  // expected-error @+1 {{'tile.add' op failed to infer returned types}}
  %0 = "tile.add"(%x, %y) : (tensor<8xi8>, tensor<8xf16>) -> tensor<8xi8>
  return
}

// -----

func.func @no_promotion(%x: tensor<8xi8>, %y: tensor<8xui8>) {
  // expected-error @+2 {{'tile.add' op no implicit promotion between int8 and uint8}}
  // expected-error @+1 {{'tile.add' op failed to infer returned types}}
  %0 = "tile.add"(%x, %y) : (tensor<8xi8>, tensor<8xui8>) -> tensor<8xi8>
  return
}

// -----

func.func @missing_operand(%x: tensor<8xi8>) {
  // expected-error @below {{'tile.add' op expected 2 operands, but found 1}}
  %0 = "tile.add"(%x) : (tensor<8xi8>) -> tensor<8xi8>
  return
}

// -----

func.func @missing_attribute(%x: tensor<8xi8>) {
  // expected-error @below {{'tile.reduce' op requires attribute 'axis'}}
  %0 = "tile.reduce"(%x) {kind = 0 : i32} : (tensor<8xi8>) -> i8
  return
}

// -----

func.func @no_such_kind(%x: tensor<8xi8>) {
  // expected-error @below {{'tile.reduce' op attribute 'kind' failed to satisfy constraint: how a reduction combines}}
  %0 = "tile.reduce"(%x) {kind = 9 : i32, axis = 0 : i32} : (tensor<8xi8>) -> i8
  return
}

// -----

func.func @layouts_are_ignored(%x: tensor<2xi8, #tile.linear<register = [[1]]>>) -> tensor<2xi8, #tile.linear<lane = [[1]]>> {
  %0 = "tile.neg"(%x) : (tensor<2xi8, #tile.linear<register = [[1]]>>) -> tensor<2xi8, #tile.linear<lane = [[1]]>>
  return %0 : tensor<2xi8, #tile.linear<lane = [[1]]>>
}
