"""Tilewright: tile programs in Python, compiled to Tensor Cores and to the CPU."""

__version__ = "0.1.0"
