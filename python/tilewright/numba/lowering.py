"""Tile code that operators of Numba programs become."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, operator"

from .. import tile as ct


def integer_power(base, exponent):
    """base ** exponent of integers, 0 for a negative exponent of what is not 1 or -1."""
    result = base - base + 1
    square = base
    rest = exponent
    while rest > 0:
        if rest & 1 == 1:
            result = result * square
        square = square * square
        rest = rest >> 1
    if exponent < 0 and base * base != 1:
        result = base - base
    if exponent < 0 and base == -1 and exponent & 1 == 1:
        result = base
    return result


def atomic_inc(ref, limit):
    """Adds 1, and begins again behind the limit."""
    found = ref.load("relaxed", "device")
    done = False
    while not done:
        new = found - found if found >= limit else found + 1
        seen = ref.cas(found, new, "relaxed", "device")
        done = seen == found
        found = seen
    return found


def atomic_dec(ref, limit):
    """Takes 1 away, and begins again at the limit below 0."""
    found = ref.load("relaxed", "device")
    done = False
    while not done:
        new = limit if (found == 0) | (found > limit) else found - 1
        seen = ref.cas(found, new, "relaxed", "device")
        done = seen == found
        found = seen
    return found


def cbrt(x):
    """By a power, and one step of Newton's."""
    size = ct.abs(x)
    root = size ** (1 / 3)
    better = root - (root * root * root - size) / (3 * root * root)
    found = ct.where((size == 0) | (size == size + size) | (size != size), size, better)
    return ct.where(x < 0, -found, found)


def popc(x):
    """How many bits are set."""
    if x.dtype == ct.uint64:
        return popc(ct.astype(x, ct.uint32)) + popc(ct.astype(x >> 32, ct.uint32))
    x = x - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F
    return ct.astype((x * 0x01010101) >> 24, ct.int32)


def _smeared(x):
    """All bits below the highest one set, too."""
    for shift in ct.static_iter((1, 2, 4, 8, 16)):
        x = x | (x >> shift)
    return x | (x >> 32) if x.dtype == ct.uint64 else x


def clz(x):
    """Zeros above the highest bit that is set."""
    return (64 if x.dtype == ct.uint64 else 32) - popc(_smeared(x))


def ffs(x):
    """The number of the lowest bit that is set, from 1; 0 for none."""
    lowest = x & (0 - x)
    return ct.where(x == 0, 0, popc(lowest - 1) + 1)


def brev(x):
    """The bits in reverse."""
    if x.dtype == ct.uint64:
        low, high = brev(ct.astype(x, ct.uint32)), brev(ct.astype(x >> 32, ct.uint32))
        return (ct.astype(low, ct.uint64) << 32) | ct.astype(high, ct.uint64)
    x = ((x >> 1) & 0x55555555) | ((x & 0x55555555) << 1)
    x = ((x >> 2) & 0x33333333) | ((x & 0x33333333) << 2)
    x = ((x >> 4) & 0x0F0F0F0F) | ((x & 0x0F0F0F0F) << 4)
    x = ((x >> 8) & 0x00FF00FF) | ((x & 0x00FF00FF) << 8)
    return (x >> 16) | (x << 16)
