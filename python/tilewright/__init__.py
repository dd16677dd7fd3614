"""Tilewright: tile programs in Python, compiled to Tensor Cores and to the CPU."""
