"""What a kernel has many of is treated like what it has few of."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import device
from tilewright import tile as ct

HERE = Path(__file__)
TW_OPT = Path(os.environ.get("TW_BIN", HERE.resolve().parents[2] / "build/dev/bin")) / "tw-opt"


@ct.kernel
def many_loops(A: Any, B: Any, C: Any, N: ct.Constant[int]) -> None:
    for n in ct.static_iter(range(N)):
        acc = ct.zeros((64, 64), ct.float32)
        for k in range(ct.num_tiles(A, axis=1, shape=(64, 64))):
            acc = ct.mma(ct.load(A, (ct.bid(0), k), (64, 64)), ct.load(B, (k, n), (64, 64)), acc)
        ct.store(C, (ct.bid(0), n), acc)


@ct.function
def sum_of(arrays: Any, index: Any) -> Any:
    total: Any = ct.zeros((1, 1024), ct.float32)
    for array in arrays:
        total = total + ct.load(array, index, (1, 1024))
    return total


@ct.kernel
def many_rows(A: Any, B: Any, C: Any, D: Any, E: Any, F: Any, Y: Any) -> None:
    arrays = (A, B, C, D, E, F)
    most = ct.zeros((1, 1), ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(1, 1024))):
        most = ct.maximum(most, ct.max(sum_of(arrays, (ct.bid(0), k)), axis=1, keepdims=True))
    for k in range(ct.num_tiles(A, axis=1, shape=(1, 1024))):
        ct.store(Y, (ct.bid(0), k), (sum_of(arrays, (ct.bid(0), k)) - most).astype(Y.dtype))


@ct.kernel
def many_walks(X: Any, Y: Any) -> None:
    row, tiles = ct.bid(0), ct.num_tiles(X, axis=1, shape=(1, 4096))
    total = ct.zeros((1, 1), ct.float32)
    for n in ct.static_iter(range(6)):
        most = ct.full((1, 1), -3e38, ct.float32)
        for k in range(tiles):
            most = ct.maximum(most, ct.max(ct.load(X, (row, k), (1, 4096)) * (n + total), axis=1, keepdims=True))
        total = total + most
    ct.store(Y, (row, 0), total)


@ct.kernel
def many_parts(A: Any, B: Any, C: Any, N: ct.Constant[int]) -> None:
    acc = ct.zeros((64, 64), ct.float32)
    for k in range(ct.num_tiles(B, axis=0, shape=(32, 64))):
        left = ct.zeros((64, 32), ct.float16)
        for n in ct.static_iter(range(N)):
            left = left + ct.load(A, (n, ct.bid(0), k), (1, 64, 32)).reshape((64, 32))
        acc = ct.mma(left, ct.load(B, (k, 0), (32, 64)), acc)
    ct.store(C, (ct.bid(0), 0), acc)


@ct.kernel(slice_tiles=2)
def many_stores(X: Any, Y: Any, N: ct.Constant[int]) -> None:
    x = ct.load(X, (ct.bid(0),), (64,))
    for n in ct.static_iter(range(N)):
        ct.store(Y, (n, ct.bid(0)), (x + n).reshape((1, 64)))


@ct.kernel
def many_vectors(A: Any, B: Any, S: Any, C: Any, N: ct.Constant[int]) -> None:
    acc = ct.zeros((128, 128), ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(128, 64))):
        a, b = ct.load(A, (ct.bid(0), k), (128, 64)), ct.load(B, (k, 0), (64, 128))
        d = ct.mma(a, b, ct.zeros((128, 128), ct.float32))
        for n in ct.static_iter(range(N)):
            d = d * ct.load(S, (n, k), (1, 128))
        acc = acc + d
    ct.store(C, (ct.bid(0), 0), acc)


@ct.kernel
def many_factors(Q: Any, K: Any, V: Any, Y: Any, Z: Any) -> None:
    q = ct.load(Q, (ct.bid(0), 0), (128, 64))
    most = ct.full((128, 1), -1e30, ct.float32)
    sums = [ct.zeros((128, 1), ct.float32) for _ in ct.static_iter(range(5))]
    acc = ct.zeros((128, 64), ct.float32)
    s0, s1, s2, s3, s4 = sums
    for j in range(ct.num_tiles(K, axis=0, shape=(128, 64))):
        s = ct.mma(q, ct.load(K, (j, 0), (128, 64)).T, ct.zeros((128, 128), ct.float32))
        now = ct.maximum(most, ct.max(s, axis=1, keepdims=True))
        p = ct.exp2(s - now)
        a = most - now
        s0 = s0 * ct.exp2(a) + ct.sum(p, axis=1, keepdims=True)
        s1 = s1 * ct.exp2(a * 2) + ct.sum(ct.exp2((s - now) * 2), axis=1, keepdims=True)
        s2 = s2 * ct.exp2(a * 3) + ct.sum(ct.exp2((s - now) * 3), axis=1, keepdims=True)
        s3 = s3 * ct.exp2(a * 4) + ct.sum(ct.exp2((s - now) * 4), axis=1, keepdims=True)
        s4 = s4 * ct.exp2(a * 5) + ct.sum(ct.exp2((s - now) * 5), axis=1, keepdims=True)
        acc = ct.mma(p.astype(Q.dtype), ct.load(V, (j, 0), (128, 64)), acc * ct.exp2(a))
        most = now
    ct.store(Y, (ct.bid(0), 0), (acc / s0).astype(Y.dtype))
    t = s0 * s0
    ct.store(Z, (ct.bid(0), 0), s1 / t + s2 / (t * s0) + s3 / (t * t) + s4 / (t * t * s0))


@ct.function
def place(start: Any, S: Any) -> Any:
    """The sum of a tile and of nine scalars that nothing is known of."""
    for n in ct.static_iter(range(9)):
        start = start + ct.load(S, n, ())
    return start


@ct.kernel
def many_terms_of_an_index(X: Any, S: Any, Y: Any) -> None:
    ct.store(Y, 0, ct.gather(X, place(ct.arange(256, dtype=ct.int32), S)))


@ct.kernel
def many_terms_of_a_mask(A: Any, B: Any, S: Any, C: Any) -> None:
    acc, columns = ct.zeros((64, 64), ct.float32), place(ct.arange(64, dtype=ct.int32), S)
    for k in range(ct.num_tiles(A, axis=1, shape=(64, 64))):
        inside = ct.broadcast_to((k * 64 + columns)[None, :], (64, 64)) < 1000
        a = ct.where(inside, ct.load(A, (0, k), (64, 64)), 0)
        acc = ct.mma(a, ct.load(B, (k, 0), (64, 64)), acc)
    ct.store(C, (0, 0), acc)


@ct.kernel
def many_bounds(A: Any, B: Any, C: Any, D: Any, E: Any, F: Any, G: Any, H: Any, Y: Any, N: Any) -> None:
    i = ct.bid(0) * 1024 + ct.arange(1024, dtype=ct.int32)
    total = ct.zeros((1024,), ct.float32)
    for array in (A, B, C, D, E, F, G, H):
        total = total + ct.gather(array, i, mask=i < N, padding_value=0)
    ct.scatter(Y, i, total, mask=i < N)


@ct.kernel
def many_sums(X: Any, Y: Any) -> None:
    sums = tuple(ct.zeros((1, 64), ct.float32) for _ in ct.static_iter(range(17)))
    for k in range(ct.num_tiles(X, axis=1, shape=(1, 64))):
        sums = tuple(sums[n] + ct.load(X, (n, k), (1, 64)) for n in ct.static_iter(range(17)))
    for n in ct.static_iter(range(17)):
        ct.store(Y, (n, 0), sums[n])


@ct.kernel
def many_arrays(A: Any, B: Any, D: Any, E: Any, F: Any, G: Any, H: Any, K: Any, L: Any, M: Any, C: Any) -> None:
    acc = ct.zeros((64, 64), ct.float32)
    for k in range(ct.num_tiles(B, axis=0, shape=(32, 64))):
        for left, right in ((A, B), (D, E), (F, G), (H, K), (L, M)):
            acc = ct.mma(ct.load(left, (ct.bid(0), k), (64, 32)), ct.load(right, (k, 0), (32, 64)), acc)
    ct.store(C, (ct.bid(0), 0), acc)


@ct.kernel(num_warps=4)
def many_divisors(X: Any, Y: Any) -> None:
    x = ct.load(X, (ct.bid(0), 0), (4096, 4))
    ct.store(Y, (ct.bid(0), 0), (x / ct.max(x, axis=1, keepdims=True)).astype(Y.dtype))


@ct.kernel
def many_reads(A: Any, B: Any, C: Any) -> None:
    acc = ct.zeros((64, 64), ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(64, 64))):
        a, b = ct.load(A, (ct.bid(0), k), (64, 64)), ct.load(B, (k, 0), (64, 64))
        for _ in ct.static_iter(range(66)):
            acc = ct.mma(a, b, acc)
    ct.store(C, (ct.bid(0), 0), acc)


@ct.kernel
def many_products(A: Any, B: Any, C: Any) -> None:
    sums = tuple(ct.zeros((64, 16), ct.float32) for _ in ct.static_iter(range(9)))
    for k in range(ct.num_tiles(A, axis=1, shape=(64, 64))):
        a = ct.load(A, (ct.bid(0), k), (64, 64))
        sums = tuple(ct.mma(a, ct.load(B, (k, n), (64, 16)), sums[n]) for n in ct.static_iter(range(9)))
    for n in ct.static_iter(range(9)):
        ct.store(C, (ct.bid(0), n), sums[n])


@ct.kernel
def many_phases(X: Any, Y: Any) -> None:
    x = ct.load(X, (ct.bid(0), 0), (1, 65536))
    for n in ct.static_iter(range(10)):
        x = x - ct.max(ct.abs(x), axis=1, keepdims=True)
        for m in ct.static_iter(range(30)):
            x = x * x + n * 31 + m
    ct.store(Y, (ct.bid(0), 0), x)


@ct.kernel
def many_layouts(A: Any, B: Any, C: Any, D: Any, E: Any, F: Any, G: Any, Y: Any) -> None:
    x = ct.load(A, (ct.bid(0), 0, 0, 0), (16, 16, 16, 4))
    arrays = (B, C, D, E, F, G)
    orders = ((1, 0, 2, 3), (2, 1, 0, 3), (3, 1, 2, 0), (0, 2, 1, 3), (1, 2, 0, 3), (2, 3, 0, 1))
    for array, order in zip(arrays, orders, strict=True):
        shape = tuple((16, 16, 16, 4)[axis] for axis in order)
        back = tuple(order.index(n) for n in ct.static_iter(range(4)))
        x = x + ct.permute(ct.load(array, (ct.bid(0), 0, 0, 0), shape), back).astype(x.dtype)
    ct.store(Y, (ct.bid(0), 0, 0, 0), x)


@ct.kernel(num_warps=1)
def many_accesses(A: Any, B: Any, C: Any, D: Any, E: Any, F: Any, G: Any, H: Any, K: Any, Y: Any) -> None:
    total = ct.zeros((), ct.float32)
    for columns in ct.static_iter((1, 2, 4, 8)):
        for rows in ct.static_iter((64, 128, 256, 512)):
            for array in (A, B, C, D, E, F, G, H, K):
                total = total + ct.sum(ct.load(array, (ct.bid(0), 0), (rows, columns)))
    ct.store(Y, ct.bid(0), total)


@ct.kernel
def many_kept(X: Any, Y: Any, N: ct.Constant[int]) -> None:
    tiles = [ct.exp(ct.load(X, (n,), (64,))) for n in ct.static_iter(range(N))]
    total: Any = ct.zeros((64,), ct.float32)
    for tile in ct.static_iter(tiles):
        total = total + tile
    ct.store(Y, (0,), total)
    for n in ct.static_iter(range(N)):
        ct.store(Y, (n + 1,), tiles[n] * 2)


@ct.kernel
def many_places(A: Any, B: Any, C: Any, N: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any) -> None:
    """Two steps written in one, each at the sum of the loop's variable and of eleven scalars."""
    start, acc = a + b + c + d + e + f + g + (a * b) + (b * c) + (c * d) + (d * e), ct.zeros((64, 64), ct.float32)
    for k in range(0, N, 2):
        i, j = (ct.bid(0), start + k), (start + k, ct.bid(1))
        acc = ct.mma(ct.load(A, i, (64, 32)), ct.load(B, j, (32, 64)), acc)
        i, j = (ct.bid(0), start + k + 1), (start + k + 1, ct.bid(1))
        acc = ct.mma(ct.load(A, i, (64, 32)), ct.load(B, j, (32, 64)), acc)
    ct.store(C, (ct.bid(0), ct.bid(1)), acc)


def compiled(kernel: str, arguments: list[str], *more: str, target: str = "sm_90a") -> str:
    words = [word for argument in arguments for word in ("--arg", argument)]
    command = [sys.executable, "-m", "tilewright", "compile", f"{HERE}:{kernel}", *words, "--target", target, *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_products_of_all_loops_run_on() -> None:
    arguments = ["A=bf16[?,?]", "B=bf16[?,?]", "C=f32[?,?]", "N=18"]
    text = compiled("many_loops", arguments, "--emit", "tile-specialize-warps")
    assert len(re.findall(r"tile\.mma_wait [^:]*, 1 ", text)) == 18


def test_all_rows_that_are_read_again_are_kept() -> None:
    text = compiled("many_rows", [f"{name}=bf16[?,?]" for name in "ABCDEFY"], "--emit", "tile-cache-tiles")
    assert text.count("tile.alloc_shared") == 6


def test_tiles_are_kept_for_all_walks() -> None:
    text = compiled("many_walks", ["X=f32[?,?]", "Y=f32[?,?]"], "--emit", "tile-cache-tiles")
    assert text.count("tile.local_load") == 6


def test_an_operand_is_made_of_any_number_of_copies() -> None:
    arguments = ["A=f16[?,?,?]", "B=f16[?,?]", "C=f32[?,?]", "N=17"]
    text = compiled("many_parts", arguments, "--emit", "tile-promote-memory", target="sm_80")
    assert text.count("tile.async_copy") == 18


def test_any_number_of_stores_is_sliced() -> None:
    text = compiled("many_stores", ["X=f32[?]", "Y=f32[?,?]", "N=65"], "--remarks")
    assert "slices each tile over 2 blocks" in text


def test_all_vectors_come_through_shared_memory() -> None:
    arguments = ["A=f16[?,?]", "B=f16[?,?]", "S=f32[?,?]", "C=f32[?,?]", "N=5"]
    text = compiled("many_vectors", arguments, "--emit", "tile-prefetch-loads")
    assert text.count("into <1x1x128xf32") == 5


def test_all_factors_of_a_softmax_are_one_where_its_maximum_stays() -> None:
    arguments = [*(f"{name}=f16[?,?]" for name in "QKVY"), "Z=f32[?,?]"]
    text = compiled("many_factors", arguments, "--emit", "tile-online-softmax")
    assert re.search(r":8 = scf.if .*128x4xf32>(, tensor<128x1xf32>){5}\)", text)


def test_steps_are_found_at_sums_of_any_length() -> None:
    numbers = [f"{name}=i32" for name in "Nabcdefg"]
    text = compiled("many_places", ["A=f16[?,?]", "B=f16[?,?]", "C=f32[?,?]", *numbers], "--emit", "legal")
    assert text.count("tile.mma") == 1


def test_what_adds_up_too_much_is_remarked() -> None:
    text = compiled("many_terms_of_an_index", ["X=f32[?]", "S=i32[?]", "Y=f32[?]"], "--remarks")
    assert "the gather takes its elements one by one: an index adds up more than 8 scalars" in text
    text = compiled("many_terms_of_a_mask", ["A=f16[?,?]", "B=f16[?,?]", "S=i32[?]", "C=f32[?,?]"], "--remarks")
    assert "is a mask in each iteration: it adds up more than 8 scalars" in text
    text = compiled("many_bounds", [*(f"{name}=f32[?]" for name in "ABCDEFGHY"), "N=i32"], "--remarks")
    assert "the scatter takes its elements one by one: a launch describes no more than 8 views" in text
    text = compiled("many_sums", ["X=f32[?,?]", "Y=f32[?,?]"], "--remarks")
    assert "the loop carries more than 16 values: steps of it beside the loop, or several in one, stay" in text


def test_all_arrays_of_a_loop_are_recorded() -> None:
    arguments = [*(f"{name}=f16[?,?]" for name in "ABDEFGHKLM"), "C=f32[?,?]"]
    text = compiled("many_arrays", arguments, "--emit", "tile-split-k")
    record = re.search(r"loaded = \[.*?\]", text)
    assert record and record[0].count("word = ") == 10


def test_all_divisors_that_registers_share_are_inverted_once() -> None:
    text = compiled("many_divisors", ["X=f32[?,?]", "Y=bf16[?,?]"], "--emit", "ptx")
    assert text.count("div.full.f32") == 32


def test_a_producer_serves_any_number_of_reads() -> None:
    text = compiled("many_reads", ["A=f16[?,?]", "B=f16[?,?]", "C=f32[?,?]"], "--remarks")
    assert "is done by a producer warp" in text


def test_any_number_of_products_runs_on() -> None:
    arguments = ["A=f16[?,?]", "B=f16[?,?]", "C=f32[?,?]"]
    text = compiled("many_products", arguments, "--emit", "tile-specialize-warps")
    assert len(re.findall(r"tile\.mma_wait [^:]*, 9 ", text)) == 1


def test_rows_are_strip_mined_in_any_number_of_loops() -> None:
    text = compiled("many_phases", ["X=f32[?,?]", "Y=f32[?,?]"], "--remarks", target="sm_80")
    assert "is strip-mined" in text


def test_what_a_search_does_not_look_at_is_remarked() -> None:
    arrays = [
        "A=f32[?,?,?,?]",
        *(f"{name}=f16[?,?,?,?]" for name in "BCD"),
        *(f"{name}=i8[?,?,?,?]" for name in "EFG"),
    ]
    text = compiled("many_layouts", [*arrays, "Y=f32[?,?,?,?]"], "--remarks")
    assert "compares 8 layouts for each tile" in text
    text = compiled("many_accesses", [*(f"{name}=f32[?,?]" for name in "ABCDEFGHK"), "Y=f32[?]"], "--remarks")
    assert "may have a barrier too many: it has more than 128 accesses" in text


def test_a_loop_on_the_cpu_keeps_any_number_of_tiles_that_it_computes() -> None:
    count, of_blocks = 40, 1
    text = compiled("many_kept", ["X=f32[?]", "Y=f32[?]", f"N={count}"], "--emit", "vector", target="cpu")
    assert text.count("scf.for") == of_blocks + 1 + count  # all tiles with their sum; each that is stored


def kernel_of(folder: Path, body: list[str], made_by: str = "tile") -> Any:
    source = folder / "many.py"
    lines = "\n    ".join(body)
    source.write_text(f"from tilewright import {made_by} as ct\n\n@ct.kernel\ndef kernel(X, Y):\n    {lines}\n")
    spec = importlib.util.spec_from_file_location("many", source)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


@pytest.mark.parametrize("loop", ["for _ in range(ct.num_tiles(X, 0, (1,)) // 65 + 1):", "while last < 400:"])
def test_loops_on_the_cpu_carry_any_number_of_values(loop: str, tmp_path: Path) -> None:
    count = 65
    body = [f"v{i} = ct.load(X, {i}, ())" for i in range(count)]
    body += ["last = v0", loop]
    body += [f"    v{i} = v{i} + v{(i + 1) % count}" for i in range(count)]
    body += [f"    if v{i} > 100:\n            v{i} = v{i} - 100" for i in (3, 7)]
    body += ["    last = last + v1"]
    body += [f"ct.store(Y, {i}, v{i})" for i in range(count)]
    kernel = kernel_of(tmp_path, body)
    x, found, expected = np.arange(count, dtype=np.int32), *np.zeros((2, count), np.int32)
    kernel.interpret(1, (x, expected))
    ct.launch(None, 1, kernel, (x, found))
    assert np.array_equal(found, expected)


def test_loops_that_lanes_leave_carry_any_number_of_values(tmp_path: Path) -> None:
    count, threads = 65, 40
    body = ["i = ct.tid(1)", *(f"v{n} = X[{n}]" for n in range(count)), "for _ in range(i % 7):"]
    body += [f"    v{n} = v{n} + v{(n + 1) % count}" for n in range(count)]
    body += [f"Y[i, {n}] = v{n}" for n in range(count)]
    x, found = np.arange(count, dtype=np.int32), np.zeros((threads, count), np.int32)
    device.launch(kernel_of(tmp_path, body, "device"), x, found, grid=1, block=threads)
    rows = [x]
    for _ in range(6):
        values = rows[-1].tolist()
        for n in range(count):
            values[n] += values[(n + 1) % count]
        rows.append(np.array(values, np.int32))
    assert np.array_equal(found, np.array(rows)[np.arange(threads) % 7])


def test_functions_for_cpp_take_any_number_of_words() -> None:
    many, words = 9, 64
    of_eight = f"bytes = array<i64: {', '.join(['8'] * words)}>"
    places = f"places = array<i64: {', '.join(str(8 * n) for n in range(words))}>"
    parameter = "size = 512 : i64, align = 8 : i64, by_address, pieces = [], counts = array<i64>, starts = array<i64>"
    result = "size = 0 : i64, align = 1 : i64, pieces = [], counts = array<i64>, starts = array<i64>"
    text = f"""
    func.func @f({", ".join(f"%a{n}: i64" for n in range(many * words))}) attributes {{
        tile.kernel, tile.c_function, tile.c_signature = {{
            parameters = [{", ".join([f"{{{parameter}, {places}, {of_eight}}}"] * many)}],
            result = {{{result}, places = array<i64>, bytes = array<i64>}}}}}} {{ return }}"""
    command = [TW_OPT, "--pass-pipeline=builtin.module(tile-to-cpu)", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"llvm.store %\d+, .* : i64", done.stdout)) == many * words


def test_names_of_kernels_may_have_any_length() -> None:
    for length in (254, 255, 256, 600):  # with an ending, where a kernel becomes several functions
        name = "k" * length
        text = f"""module attributes {{tile.target = "cpu"}} {{
          func.func @{name}(%a: memref<?xf32, strided<[1]>>) attributes {{tile.kernel, tile.simt}} {{
            %t = tile.thread_id 0
            %x = tile.gather %a[%t] : memref<?xf32, strided<[1]>>, i32 -> f32
            tile.sync_threads
            tile.scatter %x, %a[%t] : f32, memref<?xf32, strided<[1]>>, i32
            return
          }} }}"""
        command = [TW_OPT, "--pass-pipeline=builtin.module(tile-to-cpu)", "-"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert set(re.findall(r"func.func @([\w.]+)\(", done.stdout)) >= {name, f"{name}.thread"}


def test_messages_may_have_any_length() -> None:
    name = "foo." + "a" * 700
    text = f"""module attributes {{tile.target = "cpu"}} {{
      func.func @f(%x: i32) attributes {{tile.kernel}} {{
        "{name}"(%x) : (i32) -> ()
        return
      }} }}"""
    command = [TW_OPT, "--allow-unregistered-dialect", "--pass-pipeline=builtin.module(tile-to-cpu)", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and f"'{name}' op has no CPU lowering" in done.stderr
