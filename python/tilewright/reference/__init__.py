"""The parts of the reference execution; interpret.py puts them together."""
