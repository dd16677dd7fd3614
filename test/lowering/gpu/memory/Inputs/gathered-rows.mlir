// Rows at indices, gathered for a product: from the program to copies that run ahead.

!table = memref<?xi32, strided<[1]>>
!array = memref<?x?xbf16, strided<[?, 1]>>
module attributes {tile.target = "sm_80"} {
  func.func @rows(%A: !array {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>},
                  %B: !array {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>},
                  %T: !table {tile.align = 16 : i32, tile.shape_div = array<i64: 16>, tile.stride_div = array<i64: 1>},
                  %C: !array {tile.align = 16 : i32, tile.shape_div = array<i64: 16, 16>, tile.stride_div = array<i64: 8, 1>},
                  %n: i32, %end: i32) attributes {tile.kernel, tile.hints = {num_warps = 4 : i32, num_stages = 3 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %minus = arith.constant dense<-1> : tensor<64xi32>
    %zeros = arith.constant dense<0.0> : tensor<64x32xbf16>
    %none = arith.constant dense<0.0> : tensor<64x64xf32>
    %first = tile.iota : tensor<64xi32>
    %column = tile.iota : tensor<32xi32>
    %c = tile.reshape %column : tensor<32xi32> -> tensor<1x32xi32>
    %columns = tile.broadcast %c : tensor<1x32xi32> -> tensor<64x32xi32>
    %ends = tensor.splat %end : tensor<64xi32>
    %x = tile.load %B[%c0, %c0] padding zero : !array, i32, i32 -> tensor<32x64xbf16>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %none) -> (tensor<64x64xf32>) : i32 {
      %start = arith.muli %k, %c64 : i32
      %s = tensor.splat %start : tensor<64xi32>
      %i = arith.addi %s, %first : tensor<64xi32>
      %m = arith.cmpi slt, %i, %ends : tensor<64xi32>
      %p = tile.gather %T[%i] mask %m : tensor<64xi1> else %minus : tensor<64xi32> {check_bounds} : !table, tensor<64xi32> -> tensor<64xi32>
      // The original of this is erased: the entry is reached on three ways.
      %negative = arith.cmpi slt, %p, %minus : tensor<64xi32>
      %sum = arith.addi %p, %ends : tensor<64xi32>
      %entry = arith.select %negative, %sum, %p : tensor<64xi1>, tensor<64xi32>
      %q = tile.reshape %entry : tensor<64xi32> -> tensor<64x1xi32>
      %rows = tile.broadcast %q : tensor<64x1xi32> -> tensor<64x32xi32>
      %a = tile.gather %A[%rows, %columns] else %zeros : tensor<64x32xbf16> {check_bounds} : !array, tensor<64x32xi32>, tensor<64x32xi32> -> tensor<64x32xbf16>
      %d = tile.mma %a, %x, %acc : tensor<64x32xbf16>, tensor<32x64xbf16>, tensor<64x64xf32>
      %j = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
      %jj = tile.broadcast %j : tensor<1x64xi32> -> tensor<64x64xi32>
      %ee = tensor.splat %end : tensor<64x64xi32>
      %mm = arith.cmpi slt, %jj, %ee : tensor<64x64xi32>
      %e = arith.select %mm, %d, %none : tensor<64x64xi1>, tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    }
    %h = arith.truncf %r : tensor<64x64xf32> to tensor<64x64xbf16>
    tile.store %h, %C[%c0, %c0] : tensor<64x64xbf16>, !array, i32, i32
    return
  }
}
