"""What threads do with whole arrays, `part = value` and functions of NumPy with an output: code of the device that is
captured where that stands."""

# Device code: its values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations


def fill(part, value):
    for i in range(part.shape[0]):
        part[i] = value


def rows(part, values):
    for i in range(part.shape[0]):
        part[i] = values[i]


def of_each(function, x, is_array, out):
    """`is_array`: else `x` is a number, the same for all elements."""
    for i in range(out.shape[0]):
        a = x[i] if is_array else x
        if out.ndim == 1:
            out[i] = function(a)
        else:
            of_each(function, a, is_array, out[i])


def of_each_pair(function, x, y, is_array, out):
    for i in range(out.shape[0]):
        a = x[i] if is_array[0] else x
        b = y[i] if is_array[1] else y
        if out.ndim == 1:
            out[i] = function(a, b)
        else:
            of_each_pair(function, a, b, is_array, out[i])
