"""`part = value` for a part of an array in a kernel of threads: device code that is captured where that stands."""

# Device code: its values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations


def fill(part, value):
    for i in range(part.shape[0]):
        part[i] = value


def rows(part, values):
    for i in range(part.shape[0]):
        part[i] = values[i]
