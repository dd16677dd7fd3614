"""What LLVM makes of a tile kernel's loops."""

from __future__ import annotations

import re
from typing import Any

from tilewright import cli
from tilewright import tile as ct


@ct.kernel
def counted(X, Z, n):
    x = ct.load(X, index=(ct.bid(0),), shape=(1024,))
    for i in range(n):
        x = x ^ (x * (i * 12 + 5))
    ct.store(Z, index=(ct.bid(0),), tile=x)


@ct.kernel
def walked(X, Z, n):
    x = ct.zeros((1024,), ct.int32)
    for i in range(n):
        x = x + ct.load(X, index=(i,), shape=(1024,))
    ct.store(Z, index=(ct.bid(0),), tile=x)


def ptx_of(kernel: Any) -> str:
    key = cli.specialization(kernel, ["X=i32[?]", "Z=i32[?]", "n=i32"])
    return cli.lower(kernel, key, "sm_90a", "ptx").decode()


def test_a_loop_without_addresses_keeps_its_counter() -> None:
    """Strength reduction is left out, which would look at each integer that the loop carries: i * 12 + 5 stays."""
    ptx = ptx_of(counted)
    assert re.search(r"mad\.lo\.s32 \t%r\d+, %r\d+, 12, 5;", ptx)
    assert re.findall(r"add\.s32 \t(%r\d+), \1, (\d+);", ptx) == [(counter, "1") for counter in counters(ptx)]


def test_an_address_that_a_loop_counts_up_is_reduced() -> None:
    """An addition of the tile's bytes for a product."""
    assert re.search(r"add\.s64 \t(%rd\d+), \1, 4096;", ptx_of(walked))


def counters(ptx: str) -> list[str]:
    return re.findall(r"add\.s32 \t(%r\d+), \1, 1;", ptx)
