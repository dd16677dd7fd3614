"""What the lanes of a warp do together."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from cuda import device
from tilewright.errors import LaunchError, TileTypeError, TileValueError

FULL = device.WarpMask(0xFFFFFFFF)
LANES = np.arange(32)


@device.kernel
def sums(x, out):
    """One of each block, by shuffles and one barrier."""
    parts = device.shared_array(32, device.float32)
    i, t = device.tid(1), device.thread_idx.x
    v = x[i] if i < x.shape[0] else 0.0
    for k in range(5):
        v += device.shfl_down_sync(FULL, v, 16 >> k)
    if device.lane_id == 0:
        parts[t // 32] = v
    device.syncthreads()
    if t < 32:
        v = parts[t] if t < device.block_dim.x // 32 else 0.0
        for k in range(5):
            v += device.shfl_xor_sync(-1, v, 16 >> k)
        if t == 0:
            out[device.block_idx.x] = v


@pytest.mark.spec("D-537", "D-541", "D-352")
def test_sums_by_shuffles(run: Any) -> None:
    x = np.arange(300, dtype=np.float32)
    out = np.zeros(3, np.float32)
    run(sums, x, out, grid=3, block=128)
    np.testing.assert_array_equal(out, np.pad(x, (0, 84)).reshape(3, 128).sum(axis=1))


@device.kernel
def shuffles(x, out):
    lane = device.thread_idx.x
    v = x[lane]
    out[0, lane] = device.shfl_sync(FULL, v, (lane * 7) % 32)
    out[1, lane] = device.shfl_up_sync(FULL, v, 3)
    out[2, lane] = device.shfl_down_sync(FULL, v, 5)
    out[3, lane] = device.shfl_xor_sync(FULL, v, 9)


@pytest.mark.spec("D-529", "D-533", "D-537", "D-541", "D-545")
@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint16, np.int32, np.uint64, np.float16, np.float32, np.float64, np.bool_]
)
def test_shuffles_of_every_width(run: Any, dtype: Any) -> None:
    values = np.arange(32) * 1000003 + 5
    x = (values % 2 if dtype is np.bool_ else values).astype(dtype)
    out = np.zeros((4, 32), dtype)
    run(shuffles, x, out, grid=1, block=32)
    up, down = np.where(LANES < 3, LANES, LANES - 3), np.where(LANES > 26, LANES, LANES + 5)
    np.testing.assert_array_equal(out, x[np.stack([LANES * 7 % 32, up, down, LANES ^ 9])])


@device.struct
class Pair:
    x: device.float32
    i: device.uint32


@device.kernel
def pairs(x, out):
    lane = device.thread_idx.x
    p = device.shfl_sync(FULL, Pair(x[lane], lane), 31 - lane)
    a, b = device.shfl_xor_sync(FULL, (x[lane], lane), 1)
    out[0, lane], out[1, lane], out[2, lane], out[3, lane] = p.x, p.i, a, b


@pytest.mark.spec("D-545")
def test_shuffles_of_structs_and_tuples(run: Any) -> None:
    x = np.arange(32, dtype=np.float32) + 0.5
    out = np.zeros((4, 32), np.float32)
    run(pairs, x, out, grid=1, block=32)
    np.testing.assert_array_equal(out, [x[::-1], LANES[::-1], x[LANES ^ 1], LANES ^ 1])


@device.kernel
def votes(x, out):
    lane = device.thread_idx.x
    v = x[lane]
    odd = device.ballot_sync(FULL, lambda: v % 2 == 1)
    out[0, lane] = odd
    out[1, lane] = 1 if device.all_sync(FULL, lambda: v >= 0) else 0
    out[2, lane] = 1 if device.any_sync(FULL, lambda: v > 30) else 0
    out[3, lane] = 1 if device.eq_sync(FULL, lambda: v > 30) else 0
    out[4, lane] = device.lanemask_lt()
    if odd[lane]:  # the lanes of a part of the warp
        out[5, lane] = 1 if device.all_sync(odd, lambda: v % 2 == 1) else 0
        device.syncwarp(odd)
    else:
        device.syncwarp(~odd)
    device.syncwarp()


@pytest.mark.spec("D-515", "D-517", "D-523", "D-524", "D-525", "D-526", "D-527", "D-528", "D-548")
@pytest.mark.parametrize("first", [0, 40, -5])
def test_votes(run: Any, first: int) -> None:
    x = (first + LANES).astype(np.int32)
    out = np.zeros((6, 32), np.int32)
    run(votes, x, out, grid=1, block=32)
    odd = np.uint32(sum(1 << int(i) for i in LANES if x[i] % 2)).view(np.int32)
    large = x > 30
    below = ((np.uint64(1) << LANES.astype(np.uint64)) - 1).astype(np.uint32).view(np.int32)
    rows = [odd, (x >= 0).all(), large.any(), large.all() or not large.any(), below, x % 2]
    np.testing.assert_array_equal(out, np.stack([np.broadcast_to(r, 32) for r in rows]))


@device.kernel
def matches(x, out):
    lane = device.thread_idx.x
    out[0, lane] = device.match_any_sync(FULL, x[lane])
    eq, same = device.match_all_sync(FULL, x[lane], 0)
    out[1, lane] = eq
    out[2, lane] = 1 if same else 0
    eq, same = device.match_all_sync(FULL, x[0])
    out[3, lane] = eq
    out[4, lane] = 1 if same else 0


@device.kernel
def digits(x, out, most: device.ConstExpr):
    lane = device.lane_id
    if lane >= x.size:
        return
    if lane % 4 == 3:
        out[lane] = device.match_any_sync(0x88888888, x[lane] & most)
    else:
        out[lane] = device.match_any_sync(0x77777777, x[lane] & most)


@pytest.mark.parametrize("most", [0, 1, 6, 255, 256, -1])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64])
@pytest.mark.parametrize("threads", [32, 21])
def test_lanes_of_a_digit(run: Any, dtype: Any, most: int, threads: int) -> None:
    """Of few bits or many; behind a return, so that lanes of the mask have left."""
    most = most if most in range(np.iinfo(dtype).min, np.iinfo(dtype).max + 1) else 1
    x = (np.random.default_rng(threads).integers(0, 9, threads) * 37 - 20).astype(dtype)
    out = np.zeros(threads, np.int32)
    run(digits, x, out, most, grid=1, block=32)
    lanes, masked = np.arange(threads), x & np.array(most, dtype)
    together = (lanes[:, None] % 4 == 3) == (lanes % 4 == 3)
    alike = together & (masked[:, None] == masked)
    expected = (alike.astype(np.uint64) << lanes.astype(np.uint64)).sum(axis=1).astype(np.uint32).view(np.int32)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.spec("D-546", "D-547")
@pytest.mark.parametrize("dtype", [np.int16, np.float32, np.int64])
def test_matches(run: Any, dtype: Any) -> None:
    x = (LANES % 5).astype(dtype)
    out = np.zeros((5, 32), np.int32)
    run(matches, x, out, grid=1, block=32)
    alike = [sum(1 << int(j) for j in LANES if x[j] == x[i]) for i in LANES]
    expected = np.stack([np.array(alike, np.uint32).view(np.int32), *np.broadcast_to([[0], [0], [-1], [1]], (4, 32))])
    np.testing.assert_array_equal(out, expected)


@device.kernel
def matches_of_two_formats(x, n, out):
    i = device.thread_idx.x
    out[i] = device.match_any_sync(FULL, max(n, x[i]) & 15)


def test_equal_numbers_of_two_formats_match(run: Any) -> None:
    """`max` gives a thread what Python has of the larger: the argument, or an element of int32."""
    x, out = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    run(matches_of_two_formats, x, np.int64(20), out, grid=1, block=32)
    larger = np.maximum(20, x) & 15
    expected = [sum(1 << int(j) for j in LANES if larger[j] == larger[i]) for i in LANES]
    np.testing.assert_array_equal(out, np.array(expected, np.uint32).view(np.int32))


@device.kernel
def masks(out):
    lane = device.thread_idx.x
    m = device.WarpMask(0)
    m[lane] = True
    m[31 - lane] = True
    m[0] = lane > 3
    out[0, lane] = m
    out[1, lane] = 1 if m[0] else 0
    out[2, lane] = (m & 0xFF) | 0x100
    out[3, lane] = 1 if device.WarpMask(-1) == device.WarpMask(0xFFFFFFFF) else 0
    out[4, lane] = 1 if device.activemask()[lane] else 0


@pytest.mark.spec("D-516", "D-517", "D-519", "D-520", "D-522")
def test_masks(run: Any) -> None:
    out = np.zeros((5, 32), np.int32)
    run(masks, out, grid=1, block=32)
    m = np.array([((1 << i | 1 << 31 - i) & ~1) | (i > 3) for i in range(32)], np.uint32).view(np.int32)
    one = np.ones(32, np.int32)
    np.testing.assert_array_equal(out, [m, m & 1, (m & 0xFF) | 0x100, one, one])


@device.kernel
def counts_lanes(x, out):
    i = device.tid(1)
    out[i] = device.popc(device.match_any_sync(0xFFFFFFFF, x[i] % 4)) + abs(x[i])


def test_masks_are_integers_whose_bits_are_counted(run: Any) -> None:
    x = np.arange(-128, -96, dtype=np.int8)
    out = np.zeros(32, np.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # abs(-128) is -128
        run(counts_lanes, x, out, grid=1, block=32)
    np.testing.assert_array_equal(out, 8 + np.abs(x).astype(np.int32))


@pytest.mark.parametrize("name", ["ballot_sync", "syncthreads_count"])
def test_a_predicate_is_a_function(name: str) -> None:
    """The same words compiled and interpreted."""
    told = rf"device.{name}: pred is a function without parameters, found .*; write it as in device.{name}\(…, lambda"

    def kernel(x):  # type: ignore[no-untyped-def]
        if name == "ballot_sync":
            device.ballot_sync(0xFFFFFFFF, x[0] > 0)
        else:
            device.syncthreads_count(x[0] > 0)

    for start in (lambda k, x: k.interpret((x,), 1, 1), lambda k, x: device.launch(k, x, grid=1, block=1)):
        with pytest.raises(TileTypeError, match=told):
            start(device.kernel(kernel), np.ones(1))


@device.kernel
def active(x):
    i = device.tid(1)
    if i % 2 == 0:  # noqa: SIM114
        x[i] = device.activemask()
    elif i < 20:
        x[i] = device.activemask()


@pytest.mark.spec("D-520")
def test_active_lanes_are_those_of_the_branch(run: Any) -> None:
    """All or some of them; and what the others hold stays."""
    x = np.full(64, 7, np.uint32)
    run(active, x, grid=2, block=32)
    even, odd = 0x55555555, 0x000AAAAA
    for i in range(64):
        lanes = even if i % 2 == 0 else odd if i < 20 else 0
        if lanes:
            assert x[i] & ~np.uint32(lanes) == 0 and x[i] >> (i % 32) & 1
        else:
            assert x[i] == 7


@pytest.mark.spec("D-516", "D-517", "D-518", "D-519", "D-521")
def test_masks_of_the_host() -> None:
    mask = device.WarpMask(0x80000001)
    assert isinstance(mask, int) and mask == -0x7FFFFFFF and mask[31] and not mask[1]
    assert mask.with_lane(31, False) == 1 and mask.with_lane(1, True)[1]
    with pytest.raises(TileTypeError, match=r"with_lane\(i, True\)"):
        mask[1] = True
    for use in (lambda: mask[32], lambda: mask.with_lane(-1, True)):
        with pytest.raises(TileValueError, match="a lane is 0 to 31"):
            use()


@device.kernel
def half_of_a_warp(x):
    if device.thread_idx.x < 8:
        x[0] = device.shfl_sync(FULL, x[0], 1)
    else:
        device.syncthreads()


@pytest.mark.host_execution
def test_lanes_that_do_not_come(run: Any) -> None:
    with pytest.raises(
        LaunchError, match=r"waits at .*test_warps.py:\d+ for lanes 0xffffffff, thread \(8, 0, 0\) waits"
    ):
        run(half_of_a_warp, np.zeros(2, np.int32), grid=1, block=32)


@device.kernel
def out_of_the_mask(x, which: device.ConstExpr):
    """Lanes read one that is not in the mask: all of them but lane 4."""
    t = device.thread_idx.x
    if which == "up":
        x[t] = device.shfl_up_sync(1 << 4, x[t], 1)
    elif which == "down":
        x[t] = device.shfl_down_sync(1 << 4, x[t], 1)
    elif which == "xor":
        x[t] = device.shfl_xor_sync(1 << 4, x[t], 1)
    else:
        x[t] = device.shfl_sync(1 << 4, x[t], device.int32(t))


@pytest.mark.host_execution
@pytest.mark.parametrize(
    "which",
    [
        pytest.param("of", marks=pytest.mark.spec("D-530")),
        pytest.param("up", marks=pytest.mark.spec("D-534")),
        pytest.param("down", marks=pytest.mark.spec("D-538")),
        pytest.param("xor", marks=pytest.mark.spec("D-542")),
    ],
)
def test_lanes_that_the_mask_lacks(run: Any, which: str) -> None:
    told = r"waits at .*test_warps.py:\d+ for lanes 0x00000010|lane \d is not in the mask"
    with pytest.raises((LaunchError, TileValueError), match=told):
        run(out_of_the_mask, np.zeros(32, np.int32), which, grid=1, block=32)


# --- errors -----------------------------------------------------------------------------------------


@pytest.mark.spec(
    "D-513", "D-514", "D-518", "D-521", "D-531", "D-532", "D-535", "D-536", "D-539", "D-540", "D-543", "D-544"
)  # a table of several in a line  # fmt: skip
@pytest.mark.parametrize(
    ("body", "match"),
    [
        (lambda x: device.all_sync(-1, x > 0), "pred is a function without parameters"),
        (lambda x: device.ballot_sync(1.5, lambda: True), "expected a mask of 32 bits, found the constant 1.5"),
        (lambda x: device.ballot_sync(1 << 32, lambda: True), "expected a mask of 32 bits"),
        (lambda x: device.WarpMask(1)[32], r"mask\[i\]: a lane is 0 to 31, found the constant 32"),
        (lambda x: device.shfl_sync(-1, x, 32), "device.shfl_sync: a lane is 0 to 31, found the constant 32"),
        (lambda x: device.shfl_sync(7, x, 3), "device.shfl_sync: lane 3 is not in the mask 0x7"),
        (lambda x: device.shfl_sync(-1, (x, x, x), 3), "takes a value of 8 bytes at most, found .* of 12"),
        (lambda x: device.shfl_up_sync(-1, x, -1), "device.shfl_up_sync: a lane is 0 to 31"),
        (lambda x: device.shfl_up_sync(-1, x, 32), "device.shfl_up_sync: a lane is 0 to 31"),
        (lambda x: device.shfl_down_sync(-1, x, 32), "device.shfl_down_sync: a lane is 0 to 31"),
        (lambda x: device.shfl_up_sync(-1, (x, x, x), 3), "takes a value of 8 bytes at most"),
        (lambda x: device.shfl_down_sync(-1, (x, x, x), 3), "takes a value of 8 bytes at most"),
        (lambda x: device.shfl_xor_sync(-1, x, 40), "device.shfl_xor_sync: a lane is 0 to 31"),
        (lambda x: device.shfl_xor_sync(-1, (x, x, x), 3), "takes a value of 8 bytes at most"),
    ],
)
def test_wrong_lanes(body: Any, match: str) -> None:
    @device.kernel
    def k(x):
        body(x[0])

    with pytest.raises((TileTypeError, TileValueError), match=match):
        device.launch(k, np.zeros(4, np.float32), grid=1, block=32)
