// A product, and a vector that many threads hold for its result.
#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
#columns = #tile.linear<register = [[0, 1], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [0, 0], [0, 0], [0, 0]], warp = [[0, 0], [0, 0], [0, 0]]>
#vector = #tile.linear<register = [[1], [8], [16], [32]], lane = [[2], [4], [0], [0], [0]], warp = [[0], [0], [0]]>
#rows = #tile.linear<register = [[8]], lane = [[0], [0], [1], [2], [4]], warp = [[16], [32], [64]]>
#a = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#b = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!A = memref<?x?xbf16, strided<[?, 1]>>
!V = memref<?xf32, strided<[1]>>
!D = tensor<128x64xf32, #acc>

module attributes {tile.target = "sm_90a"} {
  func.func @brought(%x: !A {tile.tma}, %v: !V {tile.tma}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32, %init: !D) attributes {tile.kernel, tile.async_mma, tile.hints = {num_warps = 8 : i32}} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !D
    %a = tile.alloc_shared : !tile.buffer<1x128x64xbf16, #a>
    %b = tile.alloc_shared : !tile.buffer<1x64x64xbf16, #b>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %init) -> (!D) : i32 {
      tile.async_copy %x[%i, %c0] into %b[%c0] : !A, i32, i32 into !tile.buffer<1x64x64xbf16, #b>
      tile.async_commit
      tile.async_wait 0
      tile.barrier {tile.copies}
      tile.barrier {tile.copies}
      %d = tile.async_mma %a[%c0], %b[%c0], %zero {transposed_rhs} : !tile.buffer<1x128x64xbf16, #a>, !tile.buffer<1x64x64xbf16, #b>, !D -> !D
      %next = arith.addi %i, %c1 : i32
      %l = tile.load %v[%next] padding zero : !V, i32 -> tensor<64xf32, #vector>
      %f = tile.reshape %l : tensor<64xf32, #vector> -> tensor<1x64xf32, #columns>
      %g = tile.broadcast %f : tensor<1x64xf32, #columns> -> !D
      %w = tile.mma_wait %d, 0 : !D -> !D
      tile.barrier {tile.copies}
      %m = arith.mulf %w, %w : !D
      %s = arith.subf %m, %g : !D
      %e = arith.addf %sum, %s : !D
      scf.yield %e : !D
    }
    tile.store %r, %z[%c0, %c0] : !D, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    return
  }
}
