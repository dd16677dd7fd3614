"""Exceptions that a user sees."""

from __future__ import annotations


class TileError(Exception):
    """Base of all errors of tile code."""


class TileSyntaxError(TileError):
    """Python that tile code does not have."""


class TileTypeError(TileError):
    """Dtypes or kinds of values that do not fit an operation."""


class TileValueError(TileError):
    """A value, shape or axis out of its range."""


class TileCompilationError(TileError):
    """The compiler failed at something that it should have been able to do."""
