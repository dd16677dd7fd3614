// RUN: tw-opt %s --pass-pipeline='builtin.module(tile-legalize)' -split-input-file -verify-diagnostics

// expected-error @below {{has the hint check, so its last two parameters must be the report, a memref<?xi64>, and the owners, a memref<?xi32>}}
func.func @no_report(%a: memref<?xf32>, %n: i32) attributes {tile.hints = {check = 1 : i32}} {
  return
}

// -----

// expected-error @below {{has the hint check}}
func.func @no_parameters() attributes {tile.hints = {check = 1 : i32}} {
  return
}

// -----

// expected-error @below {{has the hint check}}
func.func @narrow_owners(%report: memref<?xi64>, %owners: memref<?xi8>) attributes {tile.hints = {check = 1 : i32}} {
  return
}
