// A product whose left operand is a tile times a sum of each row and a vector.
!A = memref<?x?xbf16, strided<[?, 1]>>
!V = memref<?xbf16, strided<[1]>>

module attributes {tile.target = "sm_90a"} {
  func.func @scaled(%x: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %v: !V {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 1>}, %w: !A {tile.tma, tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %none = arith.constant dense<0.0> : tensor<128xf32>
    %s = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %none) -> (tensor<128xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %f = arith.extf %a : tensor<128x64xbf16> to tensor<128x64xf32>
      %r = tile.reduce add, %f axis 1 : tensor<128x64xf32>
      %t = arith.addf %sum, %r : tensor<128xf32>
      scf.yield %t : tensor<128xf32>
    }
    %column = tile.reshape %s : tensor<128xf32> -> tensor<128x1xf32>
    %rows = tile.broadcast %column : tensor<128x1xf32> -> tensor<128x64xf32>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %a = tile.load %x[%c0, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %g = tile.load %v[%k] padding zero : !V, i32 -> tensor<64xbf16>
      %b = tile.load %w[%c0, %k] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
      %f = arith.extf %a : tensor<128x64xbf16> to tensor<128x64xf32>
      %m = arith.mulf %f, %rows : tensor<128x64xf32>
      %h = arith.extf %g : tensor<64xbf16> to tensor<64xf32>
      %line = tile.reshape %h : tensor<64xf32> -> tensor<1x64xf32>
      %lines = tile.broadcast %line : tensor<1x64xf32> -> tensor<128x64xf32>
      %p = arith.mulf %m, %lines : tensor<128x64xf32>
      %l = arith.truncf %p : tensor<128x64xf32> to tensor<128x64xbf16>
      %t = tile.permute %b [1, 0] : tensor<128x64xbf16>
      %e = tile.mma %l, %t, %acc : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      scf.yield %e : tensor<128x128xf32>
    }
    tile.store %d, %z[%c0, %c0] : tensor<128x128xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
