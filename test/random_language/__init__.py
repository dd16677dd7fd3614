"""Random programs over the whole language: reference against CPU and GPU. run.py runs them."""
