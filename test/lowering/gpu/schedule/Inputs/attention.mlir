// Attention with an online softmax, for tests of what passes make of it.
!A = memref<?x?xbf16, strided<[?, 1]>>

module attributes {tile.target = "sm_90a"} {
  func.func @attention(%q: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %k: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %v: !A {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>}, %y: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %none = arith.constant dense<0.0> : tensor<128x1xf32>
    %low = arith.constant dense<0xFF800000> : tensor<128x1xf32>
    %a = tile.load %q[%c0, %c0] padding zero : !A, i32, i32 -> tensor<128x64xbf16>
    %r:3 = scf.for %j = %c0 to %n step %c1 iter_args(%m = %low, %l = %none, %acc = %zero) -> (tensor<128x1xf32>, tensor<128x1xf32>, tensor<128x64xf32>) : i32 {
      %b = tile.load %k[%j, %c0] padding zero : !A, i32, i32 -> tensor<64x64xbf16>
      %bt = tile.permute %b [1, 0] : tensor<64x64xbf16>
      %s = tile.mma %a, %bt, %zero : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
      %x = tile.reduce max, %s axis 1 : tensor<128x64xf32>
      %xr = tile.reshape %x : tensor<128xf32> -> tensor<128x1xf32>
      %m2 = arith.maximumf %m, %xr : tensor<128x1xf32>
      %mb = tile.broadcast %m2 : tensor<128x1xf32> -> tensor<128x64xf32>
      %d = arith.subf %s, %mb : tensor<128x64xf32>
      %p = math.exp2 %d : tensor<128x64xf32>
      %e = arith.subf %m, %m2 : tensor<128x1xf32>
      %f = math.exp2 %e : tensor<128x1xf32>
      %sum = tile.reduce add, %p axis 1 : tensor<128x64xf32>
      %sumr = tile.reshape %sum : tensor<128xf32> -> tensor<128x1xf32>
      %lf = arith.mulf %l, %f : tensor<128x1xf32>
      %l2 = arith.addf %lf, %sumr : tensor<128x1xf32>
      %h = arith.truncf %p : tensor<128x64xf32> to tensor<128x64xbf16>
      %w = tile.load %v[%j, %c0] padding zero {tile.in_bounds} : !A, i32, i32 -> tensor<64x64xbf16>
      %fb = tile.broadcast %f : tensor<128x1xf32> -> tensor<128x64xf32>
      %af = arith.mulf %acc, %fb : tensor<128x64xf32>
      %o = tile.mma %h, %w, %af : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
      scf.yield %m2, %l2, %o : tensor<128x1xf32>, tensor<128x1xf32>, tensor<128x64xf32>
    }
    %lb = tile.broadcast %r#1 : tensor<128x1xf32> -> tensor<128x64xf32>
    %z = arith.divf %r#2, %lb : tensor<128x64xf32>
    tile.store %z, %y[%c0, %c0] : tensor<128x64xf32>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
