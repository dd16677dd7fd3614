"""Simt: what the objects of tilewright.device become. A thread's values are scalars, tiles of one element.

positions.py  where a thread stands
arrays.py     arrays by index
made_arrays.py  arrays that a kernel makes
atomics.py    atomic accesses, and fences
struct_atomics.py  atomic accesses of structs
barriers.py   what the threads of a block wait for
warps.py      what the lanes of a warp do together
predicates.py what barriers and votes call
"""
