"""Random numbers in kernels: xoroshiro128+, a state for each thread, as `numba.cuda.random` has it.

    states = create_xoroshiro128p_states(threads, seed=1)      # on the host
    x = xoroshiro128p_uniform_float32(states, cuda.grid(1))    # in a kernel

The states are structures of two uint64, s0 and s1. They are 2**64 steps apart, and so never meet. The numbers are those
of Numba, but that a normal one is never infinite.
"""

# The functions of kernels have values that no checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, operator"

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .. import arrays
from .devices import current_number
from .memory import _handle
from .types import float32, float64, uint64

xoroshiro128p_dtype = np.dtype([("s0", np.uint64), ("s1", np.uint64)], align=True)
_MASK = 2**64 - 1
_JUMP = (0xBEAC0467EBA5FACB, 0xD86B048B86AA9922)


def _splitmix(seed: int) -> int:
    """The first number of SplitMix64."""
    z = (seed + 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def _rotated(x: int, k: int) -> int:
    return ((x << k) | (x >> (64 - k))) & _MASK


def _stepped(s0: int, s1: int) -> tuple[int, int]:
    s1 ^= s0
    return _rotated(s0, 55) ^ s1 ^ ((s1 << 14) & _MASK), _rotated(s1, 36)


def _jumped(s0: int, s1: int) -> tuple[int, int]:
    """2**64 steps on."""
    t0 = t1 = 0
    for word in _JUMP:
        for bit in range(64):
            if word >> bit & 1:
                t0, t1 = t0 ^ s0, t1 ^ s1
            s0, s1 = _stepped(s0, s1)
    return t0, t1


# Jumps are linear over the bits of a state. A table has for each of its 16 bytes what each value of the byte becomes.


def _table(images: Any) -> Any:
    """Of a linear map, from what it makes of each of the 128 bits."""
    table = np.zeros((16, 256, 2), np.uint64)
    for byte in range(16):
        for bit in range(8):
            half = 1 << bit
            table[byte, half : 2 * half] = table[byte, :half] ^ images[8 * byte + bit]
    return table


def _mapped(table: Any, states: Any) -> Any:
    parts = np.ascontiguousarray(states, "<u8").view(np.uint8).reshape(-1, 16)
    found = table[0, parts[:, 0]]
    for byte in range(1, 16):
        found ^= table[byte, parts[:, byte]]
    return found


def _doubled(images: Any) -> Any:
    """Of a map, that of doing it twice."""
    return _mapped(_table(images), images)


@functools.cache
def _jump_images() -> Any:
    bits = [1 << n for n in range(128)]
    return np.array([_jumped(bit & _MASK, bit >> 64) for bit in bits], np.uint64)


def init_xoroshiro128p_states_cpu(n: int, seed: int, subsequence_start: int = 0) -> Any:
    """The states as a NumPy array, each a jump behind the one before."""
    states = np.empty((n, 2), np.uint64)
    first = np.full((1, 2), _splitmix(seed & _MASK), np.uint64)
    images = _jump_images()
    while subsequence_start:
        if subsequence_start & 1:
            first = _mapped(_table(images), first)
        images, subsequence_start = _doubled(images), subsequence_start >> 1
    states[:1], images, done = first, _jump_images(), 1
    while done < n:  # as many again, by as many jumps
        count = min(done, n - done)
        states[done : done + count] = _mapped(_table(images), states[:count])
        images, done = _doubled(images), done + count
    return states.view(xoroshiro128p_dtype).reshape(n)


def create_xoroshiro128p_states(n: int, seed: int, subsequence_start: int = 0, stream: Any = 0) -> arrays.Array:
    """States for `n` threads, on the GPU where there is one."""
    states = init_xoroshiro128p_states_cpu(n, seed, subsequence_start)
    return arrays.to_device(states, device=current_number(), stream=_handle(stream))


def init_xoroshiro128p_states(states: arrays.Array, seed: int, subsequence_start: int = 0, stream: Any = 0) -> None:
    states.copy_to_device(init_xoroshiro128p_states_cpu(len(states), seed, subsequence_start), _handle(stream))


# === in kernels ===


def xoroshiro128p_next(states, index):
    """The next 64 bits of a state."""
    s0 = states[index].s0
    s1 = states[index].s1
    result = s0 + s1
    s1 = s1 ^ s0
    states[index].s0 = ((s0 << 55) | (s0 >> 9)) ^ s1 ^ (s1 << 14)
    states[index].s1 = (s1 << 36) | (s1 >> 28)
    return result


def xoroshiro128p_uniform_float32(states, index):
    """From 0 to 1, which the nearest float32 may be."""
    return float32(xoroshiro128p_uniform_float64(states, index))


def xoroshiro128p_uniform_float64(states, index):
    return float64(xoroshiro128p_next(states, index) >> uint64(11)) * 2.0**-53


def xoroshiro128p_normal_float32(states, index):
    """By Box and Muller."""
    u1 = max(xoroshiro128p_uniform_float32(states, index), float32(2.0**-53))
    u2 = xoroshiro128p_uniform_float32(states, index)
    return math.sqrt(float32(-2.0) * math.log(u1)) * math.cos(float32(2 * math.pi) * u2)


def xoroshiro128p_normal_float64(states, index):
    """Of two uniform numbers of float32, as in Numba."""
    u1 = max(xoroshiro128p_uniform_float32(states, index), float32(2.0**-53))
    u2 = xoroshiro128p_uniform_float32(states, index)
    return math.sqrt(-2.0 * math.log(u1)) * math.cos(2 * math.pi * u2)


__all__ = [
    "create_xoroshiro128p_states",
    "init_xoroshiro128p_states",
    "init_xoroshiro128p_states_cpu",
    "xoroshiro128p_dtype",
    "xoroshiro128p_next",
    "xoroshiro128p_normal_float32",
    "xoroshiro128p_normal_float64",
    "xoroshiro128p_uniform_float32",
    "xoroshiro128p_uniform_float64",
]
