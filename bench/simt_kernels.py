"""Ten SIMT kernels as one writes them in cuda.device: nothing in them knows of the compiler."""

from __future__ import annotations

import math

from tilewright import device

FULL = 0xFFFFFFFF
NBODY_THREADS = 256
RADIX_THREADS, RADIX_ITEMS, SCAN_THREADS = 512, 16, 1024
RADIX_TILE, RADIX_WARPS = RADIX_THREADS * RADIX_ITEMS, RADIX_THREADS // 32


@device.kernel
def saxpy(a, x, y):
    i = device.tid(1)
    if i < y.size:
        y[i] = a * x[i] + y[i]


@device.kernel
def transpose(src, dst):
    tile = device.shared_array((32, 33), device.float32)
    tx, ty = device.thread_idx.x, device.thread_idx.y
    x, y = device.block_idx.x * 32 + tx, device.block_idx.y * 32 + ty
    for j in range(0, 32, 8):
        if y + j < src.shape[0] and x < src.shape[1]:
            tile[ty + j, tx] = src[y + j, x]
    device.syncthreads()
    x, y = device.block_idx.y * 32 + tx, device.block_idx.x * 32 + ty
    for j in range(0, 32, 8):
        if y + j < dst.shape[0] and x < dst.shape[1]:
            dst[y + j, x] = tile[tx, ty + j]


@device.func
def warp_sum(value):
    for k in range(5):
        value += device.shfl_down_sync(FULL, value, 16 >> k)
    return value


@device.kernel
def reduce_sum(x, result):
    partial = device.shared_array(32, device.float32)
    lane, warp = device.thread_idx.x % 32, device.thread_idx.x // 32
    total = device.float32(0)
    for i in range(device.tid(1), x.size, device.grid_size(1)):
        total += x[i]
    total = warp_sum(total)
    if lane == 0:
        partial[warp] = total
    device.syncthreads()
    if warp == 0:
        total = warp_sum(partial[lane] if lane < device.block_dim.x // 32 else device.float32(0))
        if lane == 0:
            device.atomic_ref(result, 0).add(total, "relaxed", "device")


@device.kernel
def histogram(values, bins):
    own = device.shared_array(256, device.uint32)
    for b in range(device.int32(device.thread_idx.x), 256, device.int32(device.block_dim.x)):
        own[b] = 0
    device.syncthreads()
    for i in range(device.tid(1), values.size, device.grid_size(1)):
        device.atomic_ref(own, values[i]).add(1, "relaxed", "block")
    device.syncthreads()
    for b in range(device.int32(device.thread_idx.x), 256, device.int32(device.block_dim.x)):
        device.atomic_ref(bins, b).add(own[b], "relaxed", "device")


@device.kernel
def nbody(bodies, acceleration):
    tile = device.shared_array((NBODY_THREADS, 4), device.float32, align=16)
    t, i, n = device.int32(device.thread_idx.x), device.tid(1), bodies.shape[0]
    mine = i if i < n else n - 1
    x, y, z = bodies[mine, 0], bodies[mine, 1], bodies[mine, 2]
    ax = ay = az = device.float32(0)
    for first in range(0, n, NBODY_THREADS):
        j = first + t
        for c in range(4):
            tile[t, c] = bodies[j, c] if j < n else 0.0  # a mass of 0 pulls nothing
        device.syncthreads()
        for k in range(NBODY_THREADS):
            dx, dy, dz = tile[k, 0] - x, tile[k, 1] - y, tile[k, 2] - z
            inverse = device.rsqrt(dx * dx + dy * dy + dz * dz + 1e-3)
            s = tile[k, 3] * inverse * inverse * inverse
            ax += dx * s
            ay += dy * s
            az += dz * s
        device.syncthreads()
    if i < n:
        acceleration[i, 0] = ax
        acceleration[i, 1] = ay
        acceleration[i, 2] = az


@device.kernel
def mandelbrot(counts, step, limit):
    column, row = device.tid(2)
    if row < counts.shape[0] and column < counts.shape[1]:
        cx, cy = device.float32(column) * step - 2.0, device.float32(row) * step - 1.5
        x = y = device.float32(0)
        k = device.int32(0)
        while k < limit and x * x + y * y <= 4.0:
            x, y = x * x - y * y + cx, 2.0 * x * y + cy
            k += 1
        counts[row, column] = k


@device.kernel
def stencil2d(src, dst):
    x, y = device.tid(2)
    if y < src.shape[0] and x < src.shape[1]:
        if x > 0 and x < src.shape[1] - 1 and y > 0 and y < src.shape[0] - 1:
            around = src[y, x - 1] + src[y, x + 1] + src[y - 1, x] + src[y + 1, x]
            dst[y, x] = 0.5 * src[y, x] + 0.125 * around
        else:
            dst[y, x] = src[y, x]


@device.kernel
def stencil3d(src, dst):
    x, y, z = device.tid(3)
    if z < src.shape[0] and y < src.shape[1] and x < src.shape[2]:
        inner = x > 0 and x < src.shape[2] - 1 and y > 0 and y < src.shape[1] - 1 and z > 0 and z < src.shape[0] - 1
        if inner:
            around = src[z, y, x - 1] + src[z, y, x + 1] + src[z, y - 1, x] + src[z, y + 1, x]
            dst[z, y, x] = 0.4 * src[z, y, x] + 0.1 * (around + src[z - 1, y, x] + src[z + 1, y, x])
        else:
            dst[z, y, x] = src[z, y, x]


@device.kernel
def radix_count(keys, shift, counts):
    bins = device.shared_array(256, device.uint32)
    t, block = device.int32(device.thread_idx.x), device.int32(device.block_idx.x)
    if t < 256:
        bins[t] = 0
    device.syncthreads()
    for k in range(RADIX_ITEMS):
        i = block * RADIX_TILE + k * RADIX_THREADS + t
        if i < keys.size:
            device.atomic_ref(bins, keys[i] >> shift & 255).add(1, "relaxed", "block")
    device.syncthreads()
    if t < 256:
        counts[t, block] = bins[t]


@device.func
def warp_inclusive_sum(value):
    for k in range(5):
        left = device.shfl_up_sync(FULL, value, 1 << k)
        if device.lane_id >= 1 << k:
            value += left
    return value


@device.func
def block_exclusive_sum(value, warps):
    """Sum of `value` over the threads before this one, and over all."""
    lane, warp = device.thread_idx.x % 32, device.thread_idx.x // 32
    total = warp_inclusive_sum(value)
    if lane == 31:
        warps[warp] = total
    device.syncthreads()
    if warp == 0:
        warps[lane] = warp_inclusive_sum(warps[lane] if lane < device.block_dim.x // 32 else device.uint32(0))
    device.syncthreads()
    before = total - value + (warps[warp - 1] if warp > 0 else device.uint32(0))
    everything = warps[device.block_dim.x // 32 - 1]
    device.syncthreads()
    return before, everything


@device.kernel
def radix_scan(counts, totals):
    """One block a digit: its counts become sums over the blocks before."""
    warps = device.shared_array(32, device.uint32)
    digit, t, blocks = device.block_idx.x, device.int32(device.thread_idx.x), counts.shape[1]
    carry = device.uint32(0)
    for first in range(0, blocks, SCAN_THREADS):
        i = first + t
        before, everything = block_exclusive_sum(counts[digit, i] if i < blocks else device.uint32(0), warps)
        if i < blocks:
            counts[digit, i] = carry + before
        carry += everything
    if t == 0:
        totals[digit] = carry


@device.func
def count_lanes(lanes):
    """How many bits are set."""
    v = lanes - (lanes >> 1 & 0x55555555)
    v = (v & 0x33333333) + (v >> 2 & 0x33333333)
    return ((v + (v >> 4) & 0x0F0F0F0F) * 0x01010101) >> 24


@device.kernel
def radix_scatter(keys, out, shift, counts, totals):
    """Ranks the block's keys by their digit, equal ones in order; sorts them in shared memory; writes runs."""
    stage = device.shared_array(RADIX_TILE, device.uint32)  # a counter for each warp and digit, then the sorted keys
    start, target = device.shared_array(256, device.uint32), device.shared_array(256, device.uint32)
    warps = device.shared_array(32, device.uint32)
    key, place = device.local_array(RADIX_ITEMS, device.uint32), device.local_array(RADIX_ITEMS, device.uint32)
    t, block, n = device.int32(device.thread_idx.x), device.int32(device.block_idx.x), keys.size
    lane, warp = t % 32, t // 32
    for d in range(8):
        stage[warp * 256 + d * 32 + lane] = 0
    device.syncwarp()
    first = block * RADIX_TILE
    mine = first + warp * 32 * RADIX_ITEMS + lane
    below = device.uint32(device.lanemask_lt())
    for k in range(RADIX_ITEMS):
        key[k] = keys[mine + 32 * k] if mine + 32 * k < n else device.uint32(0xFFFFFFFF)  # padding sorts last
    for k in range(RADIX_ITEMS):
        digit = key[k] >> shift & 255
        peers = device.uint32(device.match_any_sync(FULL, digit))
        before = count_lanes(peers & below)
        count = stage[warp * 256 + digit]
        device.syncwarp()
        if before == 0:
            stage[warp * 256 + digit] = count + count_lanes(peers)
        device.syncwarp()
        place[k] = count + before
    device.syncthreads()
    count, total = device.uint32(0), device.uint32(0)
    if t < 256:
        for w in range(RADIX_WARPS):
            c = stage[w * 256 + t]
            stage[w * 256 + t] = count
            count += c
        total = totals[t]
    here, _ = block_exclusive_sum(count, warps)
    there, _ = block_exclusive_sum(total, warps)
    if t < 256:
        start[t] = here
        target[t] = there + counts[t, block] - here
    device.syncthreads()
    for k in range(RADIX_ITEMS):
        digit = key[k] >> shift & 255
        place[k] += start[digit] + stage[warp * 256 + digit]
    device.syncthreads()
    for k in range(RADIX_ITEMS):
        stage[place[k]] = key[k]
    device.syncthreads()
    for k in range(RADIX_ITEMS):
        p = k * RADIX_THREADS + t
        if first + p < n:
            value = stage[p]
            out[target[value >> shift & 255] + p] = value


@device.func
def normal_cdf(d):
    """Abramowitz and Stegun, 26.2.17."""
    k = 1.0 / (1.0 + 0.2316419 * abs(d))
    tail = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail *= 0.39894228 * math.exp(-0.5 * d * d)
    return 1.0 - tail if d > 0 else tail


@device.kernel
def black_scholes(price, strike, years, call, put, rate, volatility):
    i = device.tid(1)
    if i < price.size:
        s, x, t = price[i], strike[i], years[i]
        spread = volatility * math.sqrt(t)
        d1 = (math.log(s / x) + (rate + 0.5 * volatility * volatility) * t) / spread
        n1, n2 = normal_cdf(d1), normal_cdf(d1 - spread)
        discounted = x * math.exp(-rate * t)
        call[i] = s * n1 - discounted * n2
        put[i] = discounted * (1.0 - n2) - s * (1.0 - n1)


@device.kernel
def spmv(row_start, columns, values, x, y):
    """A warp a row."""
    row, lane = device.tid(1) // 32, device.int32(device.thread_idx.x % 32)
    if row < y.size:
        total = device.float32(0)
        for k in range(row_start[row] + lane, row_start[row + 1], 32):
            total += values[k] * x[columns[k]]
        total = warp_sum(total)
        if lane == 0:
            y[row] = total
