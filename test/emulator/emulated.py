"""pytest plugin: kernels on NumPy arrays run as GPU code, emulated (see README.md)."""

import emulate

emulate.install()
