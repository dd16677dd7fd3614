"""Capture: from the syntax tree of a Python function to the tile dialect.

source.py       the tree of a function, its globals and closure
values.py       what a name can stand for while a kernel is captured
emit.py         the ops: constants, promotion, arithmetic
expressions.py  expressions: names, literals, and how the rest is reached
operators.py    operators, comparisons and conditions
attributes.py   attributes and subscripts
calls.py        calls; parameters.py binds their arguments, inlining.py captures what the user's functions do,
                builtin_functions.py has Python's
statements.py   statements
branches.py     branches, and what the variables are after them
selection.py    one of several arrays or views, which the running kernel chooses
loops.py        loops, and which variables they carry; templates.py has the form of a variable, counting.py range
records.py      objects of dataclasses and named tuples
texts.py        f-strings, and text of values that the running kernel knows; lengths.py refuses what is too long
static.py       what Python itself computes: ct.static_eval and its like
elements.py     what can be gone through at compile time
iteration.py    loops and comprehensions over what is known at compile time
contexts.py     with
patterns.py     match
maps.py         functions of threads, for each element of tiles; regions.py: in each thread of the block
table.py        the operations of tilewright.tile by name
ops.py          what fills that table: grid.py, elementwise.py, shapes.py, reductions.py, products.py, memory.py,
                atomics.py, views.py, printing.py, assertions.py, and combine.py for functions of the user's
numerics.py     rounding modes and flushed subnormals, by plain operations
checks.py       what the operations ask of their arguments
simt/           the objects of tilewright.device
rules.py        how literals, operands and assignments are typed, by language
kernel.py       a kernel with its arguments: the way in; c_entry.py has functions and kernels that C++ calls
"""

from . import attributes, calls, contexts, loops, operators, patterns  # noqa: F401  (they register what nodes become)
from .kernel import (
    Argument,
    ArrayArgument,
    Captured,
    ConstantArgument,
    ScalarArgument,
    StructureArgument,
    capture,
    symbol,
)
from .rules import DEVICE, TILE, Rules

__all__ = [
    "DEVICE",
    "TILE",
    "Argument",
    "ArrayArgument",
    "Captured",
    "ConstantArgument",
    "Rules",
    "ScalarArgument",
    "StructureArgument",
    "capture",
    "symbol",
]
