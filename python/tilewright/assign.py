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


def of_each(function, x, is_array, out, at):
    """`is_array`: else `x` is a number, the same for all elements; `at`: the indices of the axes in front."""
    if len(at) == out.ndim:
        out[at] = function(x[at] if is_array else x)
    else:
        for i in range(out.shape[len(at)]):
            of_each(function, x, is_array, out, (*at, i))


def of_each_pair(function, x, y, is_array, out, at):
    if len(at) == out.ndim:
        out[at] = function(x[at] if is_array[0] else x, y[at] if is_array[1] else y)
    else:
        for i in range(out.shape[len(at)]):
            of_each_pair(function, x, y, is_array, out, (*at, i))
