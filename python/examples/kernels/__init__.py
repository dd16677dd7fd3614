"""Kernels that people write: plain tile programs, without a hint, that the compiler has to make fast by itself.

Each module has its kernels, `launches(...)`, which gives one (grid, kernel, arguments) after the other for
`ct.launch(stream, *launch)`, and `reference(...)`, the same in NumPy with float32.
"""
