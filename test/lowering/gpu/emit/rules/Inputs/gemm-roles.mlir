// A matrix product in roles: one warp brings tiles by TMA into buffers of three stages, four warps multiply.
#acc = #tile.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64], [64, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [0, 64]]>
#a = #tile.linear<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#out = #tile.linear<register = [[0, 32], [0, 64], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[1, 0], [2, 0]]>
!array = memref<?x?xbf16, strided<[?, 1]>>

module attributes {tile.target = "sm_90a"} {
  func.func @gemm(%x: !array {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>, tile.tma}, %y: !array {tile.align = 16 : i32, tile.stride_div = array<i64: 8, 1>, tile.tma}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.async_mma, tile.hints = {num_warps = 4 : i32}} {
    %zero = arith.constant dense<0.0> : tensor<128x128xf32, #acc>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    %b = tile.alloc_shared : !tile.buffer<3x64x128xbf16, #b>
    %a = tile.alloc_shared : !tile.buffer<3x128x64xbf16, #a>
    %full = tile.alloc_barriers arrivals 1 : !tile.barriers<3>
    %empty = tile.alloc_barriers arrivals 4 : !tile.barriers<3>
    %i = tile.block_id 0
    %j = tile.block_id 1
    tile.roles producer_warps 1 producer {
      %end:2 = scf.for %k = %c0 to %n step %c1 iter_args(%slot = %c0, %parity = %c0) -> (i32, i32) : i32 {
        %other = arith.xori %parity, %c1 : i32
        tile.barrier_wait %empty[%slot], %other : !tile.barriers<3>
        tile.barrier_expect %full[%slot], 32768 : !tile.barriers<3>
        tile.tma_load %x[%i, %k] into %a[%slot] signal %full[%slot] cache evict_first : !array, i32, i32 into !tile.buffer<3x128x64xbf16, #a>, !tile.barriers<3>
        tile.tma_load %y[%k, %j] into %b[%slot] signal %full[%slot] : !array, i32, i32 into !tile.buffer<3x64x128xbf16, #b>, !tile.barriers<3>
        %next = arith.addi %slot, %c1 : i32
        %wraps = arith.cmpi eq, %next, %c3 : i32
        %slot2 = arith.select %wraps, %c0, %next : i32
        %parity2 = arith.select %wraps, %other, %parity : i32
        scf.yield %slot2, %parity2 : i32, i32
      }
    } consumer {
      %d:3 = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero, %slot = %c0, %parity = %c0) -> (tensor<128x128xf32, #acc>, i32, i32) : i32 {
        tile.barrier_wait %full[%slot], %parity : !tile.barriers<3>
        %more = arith.cmpi ne, %k, %c0 : i32
        %start = arith.select %more, %sum, %zero : tensor<128x128xf32, #acc>
        %p = tile.async_mma %a[%slot], %b[%slot], %start : !tile.buffer<3x128x64xbf16, #a>, !tile.buffer<3x64x128xbf16, #b>, tensor<128x128xf32, #acc> -> tensor<128x128xf32, #acc>
        %w = tile.mma_wait %p, 0 : tensor<128x128xf32, #acc> -> tensor<128x128xf32, #acc>
        tile.barrier_arrive %empty[%slot] if %more together : !tile.barriers<3>
        %next = arith.addi %slot, %c1 : i32
        %wraps = arith.cmpi eq, %next, %c3 : i32
        %slot2 = arith.select %wraps, %c0, %next : i32
        %other = arith.xori %parity, %c1 : i32
        %parity2 = arith.select %wraps, %other, %parity : i32
        scf.yield %w, %slot2, %parity2 : tensor<128x128xf32, #acc>, i32, i32
      }
      %o = tile.convert_layout %d#0 : tensor<128x128xf32, #acc> -> tensor<128x128xf32, #out>
      tile.store %o, %z[%i, %j] : tensor<128x128xf32, #out>, memref<?x?xf32, strided<[?, 1]>>, i32, i32
    }
    return
  }
}
