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


class LaunchError(TileError):
    """A kernel could not be started on these arguments and this grid, or failed while it ran."""


class DriverError(TileError):
    """No CUDA driver, no device, a driver that is too old, or a driver call that failed."""
