"""Tile code that operators of Numba programs become."""

# mypy: disable-error-code="no-untyped-def"


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
