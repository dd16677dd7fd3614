"""Kernels written as IR, at the stage before shared memory is allocated, for what the front end has no words for:
barriers that count, TMA copies, roles of warps. They run on a GPU of compute capability 9.0, or emulated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tilewright import _core
from tilewright import compile as compiler

LOWER = "builtin.module(tile-allocate-shared,func.func(tile-insert-barriers),tile-to-nvvm)"


def launch(ir: str, name: str, grid: Sequence[int], arrays: Sequence[Any], backend: str, written: int) -> None:
    """Runs a kernel of IR on arrays: torch tensors on "cuda", NumPy's on "cpu" (emulated)."""
    module = _core.parse(ir)
    module.run(LOWER)

    def on_miss(kernel: Any, target: str, key: Any) -> Any:
        if backend == "cuda":
            ptx = module.emit(compiler.EMIT_ASSEMBLY)
            return _core.CudaKernel(ptx, name, compiler.record_of(module), written)
        import emulate

        return emulate.host_kernel(module, name, written)

    names = [f"x{i}" for i in range(len(arrays))]
    _core.launch(None, tuple(grid), _core.Dispatcher(name, names, (), on_miss), tuple(arrays))


def hints(warps: int, *more: str) -> str:
    """The attributes of a kernel."""
    return f"{{{', '.join(('tile.kernel', *more, f'tile.hints = {{num_warps = {warps} : i32}}'))}}}"


def linear(offsets: Sequence[Sequence[int]]) -> str:
    return f"#tile.linear<offset = {[list(o) for o in offsets]}>"


def swizzled(shape: Sequence[int], order: Sequence[int], bytes_: int) -> str:
    """The layout of a buffer that promote_memory makes: lines of at most 128 bytes along order[0], 16-byte chunks
    exchanged."""
    log = [n.bit_length() - 1 for n in shape]
    inner = order[0]
    row = min((128 // bytes_).bit_length() - 1, log[inner])
    chunk = (16 // bytes_).bit_length() - 1
    chunks = max(row - chunk, 0)
    skip, line = max(3 - chunks, 0), 0
    vectors = []

    def unit(dim: int, bit: int) -> list[int]:
        return [1 << bit if d == dim else 0 for d in range(len(shape))]

    vectors += [unit(inner, bit) for bit in range(row)]
    for dim in order[1:]:
        for bit in range(log[dim]):
            vector = unit(dim, bit)
            if line >= skip and line - skip < chunks:
                vector[inner] |= 1 << (chunk + line - skip)
            vectors.append(vector)
            line += 1
    vectors += [unit(inner, bit) for bit in range(row, log[inner])]
    return linear(vectors)


def registers(shape: Sequence[int], warps: int) -> str:
    """Some layout of a tile in registers: lanes and warps along the last bits, the rest in registers."""
    bits = [
        [1 << b if d == dim else 0 for d in range(len(shape))]
        for dim in reversed(range(len(shape)))
        for b in range(shape[dim].bit_length() - 1)
    ]
    need = 5 + warps.bit_length() - 1
    threads = bits[:need] + [[0] * len(shape)] * (need - len(bits[:need]))
    parts = [("register", bits[need:]), ("lane", threads[:5]), ("warp", threads[5:])]
    return "#tile.linear<" + ", ".join(f"{name} = {vectors}" for name, vectors in parts if vectors) + ">"


def array_type(rank: int, contiguous: int, element: str) -> str:
    strides = ", ".join("1" if d == contiguous else "?" for d in range(rank))
    return f"memref<{'?x' * rank}{element}, strided<[{strides}]>>"


def copy_kernel(shape: Sequence[int], element: str, bytes_: int, order: Sequence[int] | None, contiguous: int) -> str:
    """Each block copies the tile that its block ids name (further indices: the third to the last axis) from x0 to x1
    by way of shared memory: x1 is x0 with zeros outside, in tiles. One warp brings, four write. `contiguous` is the
    axis of x0 whose stride is 1, `order[d]` that along which dimension d of the tile runs."""
    rank = len(shape)
    axes = list(order or range(rank))
    inner = axes.index(contiguous)
    layout = swizzled(shape, [inner, *(d for d in reversed(range(rank)) if d != inner)], bytes_)
    tile = "x".join(map(str, shape))
    source, target = array_type(rank, contiguous, element), array_type(rank, rank - 1, element)
    buffer, barriers = f"!tile.buffer<1x{tile}x{element}, {layout}>", "!tile.barriers<1>"
    ids = ["%i", "%j", "%k"][: min(rank, 3)] + ["%c0"] * max(rank - 3, 0)
    index, types = ", ".join(ids), ", ".join(["i32"] * rank)
    ordered = f"order [{', '.join(map(str, order))}] " if order else ""
    facts = "{tile.align = 16 : i32, tile.tma}"
    registers_ = registers(shape, 4)
    return f"""
module attributes {{tile.target = "sm_90a"}} {{
  func.func @copy(%x: {source} {facts}, %y: {target}) attributes {hints(4)} {{
    %c0 = arith.constant 0 : i32
    %i = tile.block_id 0
    %j = tile.block_id 1
    %k = tile.block_id 2
    %buffer = tile.alloc_shared : {buffer}
    %full = tile.alloc_barriers arrivals 1 : {barriers}
    tile.roles producer_warps 1 producer {{
      tile.barrier_expect %full[%c0], {int(np.prod(shape)) * bytes_} : {barriers}
      tile.tma_load %x[{index}] {ordered}into %buffer[%c0] signal %full[%c0]
        : {source}, {types} into {buffer}, {barriers}
    }} consumer {{
      tile.barrier_wait %full[%c0], %c0 : {barriers}
      %t = tile.local_load %buffer[%c0] : {buffer} -> tensor<{tile}x{element}, {registers_}>
      tile.store %t, %y[{index}] : tensor<{tile}x{element}, {registers_}>, {target}, {types}
    }}
    return
  }}
}}
"""


def product_kernel(slots: int, warps: int, registers_: tuple[int, int] | None = None, m: int = 128) -> str:
    """x2 = x0 @ x1 in tiles of m x 128, bf16 to f32, k in steps of 64: a ring of `slots`."""
    groups = warps // 4
    rows_left = (m // groups).bit_length() - 1
    acc_registers = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]] + [[1 << b, 0] for b in range(6, rows_left)]
    group_bits = [[1 << (rows_left + b), 0] for b in range(groups.bit_length() - 1)]
    acc = (
        f"#tile.linear<register = {acc_registers}, lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], "
        f"warp = {[[16, 0], [32, 0], *group_bits]}>"
    )
    a, b = swizzled((m, 64), (1, 0), 2), swizzled((64, 128), (1, 0), 2)
    array, out, f32 = array_type(2, 1, "bf16"), array_type(2, 1, "f32"), f"tensor<{m}x128xf32, {acc}>"
    a_type, b_type, barriers = (
        f"!tile.buffer<{slots}x{m}x64xbf16, {a}>",
        f"!tile.buffer<{slots}x64x128xbf16, {b}>",
        f"!tile.barriers<{slots}>",
    )
    facts = "{tile.align = 16 : i32, tile.tma}"
    producers = f"4 registers {registers_[0]}, {registers_[1]}" if registers_ else "1"
    advance = """
        %next = arith.addi %slot, %c1 : i32
        %wraps = arith.cmpi eq, %next, %slots : i32
        %slot2 = arith.select %wraps, %c0, %next : i32
        %other = arith.xori %parity, %c1 : i32
        %parity2 = arith.select %wraps, %other, %parity : i32"""
    return f"""
module attributes {{tile.target = "sm_90a"}} {{
  func.func @product(%x: {array} {facts}, %y: {array} {facts}, %z: {out}) attributes {hints(warps, "tile.async_mma")} {{
    %zero = arith.constant dense<0.0> : {f32}
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %slots = arith.constant {slots} : i32
    %k = tile.dim %x, 1 : {array}
    %n = arith.ceildivsi %k, %c64 : i32
    %a = tile.alloc_shared : {a_type}
    %b = tile.alloc_shared : {b_type}
    %full = tile.alloc_barriers arrivals 1 : {barriers}
    %empty = tile.alloc_barriers arrivals {warps} : {barriers}
    %i = tile.block_id 0
    %j = tile.block_id 1
    tile.roles producer_warps {producers} producer {{
      %end:2 = scf.for %at = %c0 to %n step %c1 iter_args(%slot = %c0, %parity = %c1) -> (i32, i32) : i32 {{
        tile.barrier_wait %empty[%slot], %parity : {barriers}
        tile.barrier_expect %full[%slot], {2 * 64 * (m + 128)} : {barriers}
        tile.tma_load %x[%i, %at] into %a[%slot] signal %full[%slot] : {array}, i32, i32 into {a_type}, {barriers}
        tile.tma_load %y[%at, %j] into %b[%slot] signal %full[%slot] : {array}, i32, i32 into {b_type}, {barriers}
        {advance}
        scf.yield %slot2, %parity2 : i32, i32
      }}
    }} consumer {{
      %d:3 = scf.for %at = %c0 to %n step %c1 iter_args(%sum = %zero, %slot = %c0, %parity = %c0)
          -> ({f32}, i32, i32) : i32 {{
        tile.barrier_wait %full[%slot], %parity : {barriers}
        %p = tile.async_mma %a[%slot], %b[%slot], %sum : {a_type}, {b_type}, {f32} -> {f32}
        %w = tile.mma_wait %p, 0 : {f32} -> {f32}
        tile.barrier_arrive %empty[%slot] : {barriers}
        {advance}
        scf.yield %w, %slot2, %parity2 : {f32}, i32, i32
      }}
      tile.store %d#0, %z[%i, %j] : {f32}, {out}, i32, i32
    }}
    return
  }}
}}
"""


# --- checks, on a back end --------------------------------------------------------------------------

NUMPY = {"bf16": ml_dtypes.bfloat16, "f32": np.float32, "i8": np.int8, "f64": np.float64}

# shape of the tile, element, extents of the array, order, contiguous axis
COPIES: dict[str, tuple[Any, ...]] = {
    "row": ((256,), "f32", (1000,), None, 0),
    "long row": ((1024,), "bf16", (5000,), None, 0),
    "tile": ((64, 64), "bf16", (200, 328), None, 1),
    "wide tile": ((16, 256), "bf16", (40, 600), None, 1),
    "half lines": ((64, 32), "bf16", (100, 88), None, 1),
    "quarter lines": ((64, 16), "bf16", (100, 88), None, 1),
    "short lines": ((64, 8), "bf16", (100, 88), None, 1),
    "f32": ((32, 64), "f32", (70, 100), None, 1),
    "bytes": ((64, 128), "i8", (130, 400), None, 1),
    "f64": ((32, 16), "f64", (70, 50), None, 1),
    "transposed": ((64, 32), "bf16", (72, 200), (1, 0), 1),
    "columns": ((64, 64), "bf16", (200, 72), None, 0),
    "three": ((4, 16, 64), "bf16", (9, 40, 136), None, 2),
    "three permuted": ((16, 4, 64), "bf16", (9, 40, 136), (1, 0, 2), 2),
    "four": ((2, 4, 8, 64), "bf16", (3, 7, 20, 72), None, 3),
    "five": ((2, 2, 2, 4, 64), "bf16", (3, 3, 3, 9, 72), None, 4),
    "one row": ((8, 64), "bf16", (1, 328), None, 1),
    "inside": ((64, 64), "bf16", (128, 128), None, 1),
}


def padded(array: np.ndarray, shape: Sequence[int], contiguous: int) -> np.ndarray:
    """The same values with lines of a multiple of 16 bytes along one axis."""
    order = [d for d in range(array.ndim) if d != contiguous] + [contiguous]
    line = -(-array.shape[contiguous] * array.itemsize // 16) * 16 // array.itemsize
    extents = [array.shape[d] for d in order[:-1]] + [line]
    memory = np.zeros(extents, array.dtype)
    view = memory[..., : array.shape[contiguous]].transpose(np.argsort(order))
    view[...] = array
    return view


def check_copy(name: str, backend: str) -> None:
    shape, element, extents, order, contiguous = COPIES[name]
    values = (np.arange(1, np.prod(extents) + 1) % 251 - 100).reshape(extents).astype(NUMPY[element])
    check_copy_of(padded(values, extents, contiguous), shape, element, order, contiguous, backend)


def check_copy_of(
    x: np.ndarray, shape: Sequence[int], element: str, order: Sequence[int] | None, contiguous: int, backend: str
) -> None:
    rank = len(shape)
    axes = list(order or range(rank))
    blocks = [-(-x.shape[axes[d]] // shape[d]) for d in range(min(rank, 3))] + [1] * (3 - min(rank, 3))
    covered = [blocks[d] * shape[d] if d < 3 else shape[d] for d in range(rank)]
    want = np.zeros(covered, x.dtype)
    turned = x.transpose(axes)[tuple(slice(n) for n in covered)]
    want[tuple(slice(n) for n in turned.shape)] = turned
    got = np.full(covered, 77, x.dtype)
    run(copy_kernel(shape, element, x.itemsize, order, contiguous), "copy", blocks, [x, got], backend, 2)
    assert np.array_equal(got.view(np.uint8), want.view(np.uint8))


def array_of_any_strides(random: np.random.Generator, rank: int) -> np.ndarray:
    """A bfloat16 array that a tensor map can describe: axes in any order of memory, gaps between lines, extents of 1
    with any stride."""
    extents = [int(random.choice([1, 2, 3, 9, 17])) for _ in range(rank - 1)] + [int(random.integers(1, 200))]
    extents[3:-1] = [min(n, 2) for n in extents[3:-1]]
    strides, step = [0] * rank, -(-extents[-1] // 8) * 8
    strides[-1] = 1
    for axis in random.permutation(rank - 1):
        step += 8 * int(random.integers(0, 4))
        strides[axis] = step if extents[axis] > 1 else int(random.choice([0, 3, 8, 12345]))
        step *= extents[axis]
    memory = (np.arange(step + extents[-1] + 64) % 251 - 100).astype(ml_dtypes.bfloat16)
    return np.ndarray(extents, memory.dtype, memory, strides=[n * memory.itemsize for n in strides])


FAR_INDICES = (-1, 1 << 25, (1 << 31) - 1, -(1 << 31), 1 << 58, (1 << 63) - 1, -(1 << 63))


def check_far_index(index: int, backend: str) -> None:
    """A tile that lies outside of the array, however far, is zeros."""
    ir = copy_kernel((8, 64), "bf16", 2, None, 1)
    ir = ir.replace("%c0 = arith", f"%far = arith.constant {index} : i64\n    %c0 = arith", 1)
    first, rest = ir.split("tma_load %x[%i, %j]")
    ir = f"{first}tma_load %x[%far, %j]{rest.replace(', i32, i32 into', ', i64, i32 into', 1)}"
    x, got = np.ones((16, 64), ml_dtypes.bfloat16), np.ones((8, 64), ml_dtypes.bfloat16)
    run(ir, "copy", (1, 1, 1), [x, got], backend, 2)
    assert not got.any()


ANY_TILES = {1: (256,), 2: (8, 64), 3: (2, 8, 64), 4: (2, 2, 8, 64), 5: (2, 2, 2, 8, 64)}


def check_any_strides(rank: int, seed: int, backend: str) -> None:
    x = array_of_any_strides(np.random.default_rng(seed), rank)
    if rank > 3:  # the blocks of a grid have three numbers
        x = x[(slice(None),) * 3 + (slice(0, ANY_TILES[rank][3]),) * (rank - 4) + (slice(0, 64),)]
    check_copy_of(x, ANY_TILES[rank], "bf16", None, rank - 1, backend)


# slots, warps, registers of the roles, rows of a tile
PRODUCTS: dict[str, tuple[Any, ...]] = {
    "one slot": (1, 4, None, 64),
    "three slots": (3, 4, None, 128),
    "two groups": (4, 8, None, 128),
    "registers": (3, 8, (40, 232), 256),
}


def check_product(name: str, backend: str, m: int = 200, n: int = 136, k: int = 328) -> None:
    slots, warps, count, rows = PRODUCTS[name]
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((m, k), (k, n)))
    c = np.zeros((m, n), np.float32)
    grid = (-(-m // rows), -(-n // 128), 1)
    run(product_kernel(slots, warps, count, rows), "product", grid, [a, b, c], backend, 4)
    want = a.astype(np.float32) @ b.astype(np.float32)
    assert np.allclose(c, want, rtol=1e-3, atol=1e-3)


def run(ir: str, name: str, grid: Sequence[int], arrays: list[np.ndarray], backend: str, written: int) -> None:
    """`launch` on the back end's memory; what was written comes back into the arrays."""
    if backend == "cpu":
        launch(ir, name, grid, arrays, backend, written)
        return
    from gpu_arrays import GpuArray

    on_gpu = [GpuArray(a) for a in arrays]
    launch(ir, name, grid, [a.value for a in on_gpu], backend, written)
    for a in on_gpu:
        a.copy_back()
