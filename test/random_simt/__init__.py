"""Random programs of threads, which mean the same on every execution."""
