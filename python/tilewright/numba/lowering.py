"""Tile code that operators of Numba programs become."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, operator"


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
    if exponent < 0 and base < 0 and base * base == 1 and exponent & 1 == 1:
        result = base
    return result


def gcd(a, b):
    """The greatest common divisor of integers of one type."""
    first = -a if a < 0 else a
    second = -b if b < 0 else b
    while second != 0:
        rest = first % second
        first = second
        second = rest
    return first


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
