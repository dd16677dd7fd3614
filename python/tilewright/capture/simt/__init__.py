"""Simt: what the objects of tilewright.device become. A thread's values are scalars, tiles of one element.

positions.py  where a thread stands
arrays.py     arrays by index, and those that a block shares
barriers.py   what the threads of a block wait for
"""
