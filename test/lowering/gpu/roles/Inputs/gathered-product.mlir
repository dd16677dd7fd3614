// A product of rows at indices and a tile that a box describes.
!A = memref<?x?xbf16, strided<[?, 1]>>
!T = memref<?xi32, strided<[1]>>

module attributes {tile.target = "sm_90a"} {
  func.func @rows(%x: !A {tile.tma, tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>}, %y: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %t: !T, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_stages = 4 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %none = arith.constant dense<0.0> : tensor<128x64xbf16>
    %minus = arith.constant dense<-1> : tensor<128xi32>
    %i = tile.iota : tensor<128xi32>
    %p = tile.gather %t[%i] else %minus : tensor<128xi32> {check_bounds} : !T, tensor<128xi32> -> tensor<128xi32>
    %q = tile.reshape %p : tensor<128xi32> -> tensor<128x1xi32>
    %rows = tile.broadcast %q : tensor<128x1xi32> -> tensor<128x64xi32>
    %m = tile.iota : tensor<64xi32>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
      %start = arith.muli %k, %c64 : i32
      %s = tensor.splat %start : tensor<64xi32>
      %c = arith.addi %s, %m : tensor<64xi32>
      %r = tile.reshape %c : tensor<64xi32> -> tensor<1x64xi32>
      %columns = tile.broadcast %r : tensor<1x64xi32> -> tensor<128x64xi32>
      %a = tile.gather %x[%rows, %columns] else %none : tensor<128x64xbf16> {check_bounds} : !A, tensor<128x64xi32>, tensor<128x64xi32> -> tensor<128x64xbf16>
      %b = tile.load %y[%k, %c0] padding zero : !A, i32, i32 -> tensor<64x256xbf16>
      %e = tile.mma %a, %b, %acc : tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>
      scf.yield %e : tensor<128x256xf32>
    }
    tile.store %d, %z[%c0, %c0] : tensor<128x256xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
