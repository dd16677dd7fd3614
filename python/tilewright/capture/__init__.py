"""Capture: from the syntax tree of a Python function to the tile dialect.

source.py       the tree of a function, its globals and closure
values.py       what a name can stand for while a kernel is captured
emit.py         the ops: constants, promotion, arithmetic
expressions.py  expressions and calls
statements.py   statements, branches, loops
ops.py          the operations of tilewright.tile
kernel.py       a kernel with its arguments: the way in
"""

from .kernel import Argument, ArrayArgument, Captured, ConstantArgument, ScalarArgument, capture, symbol

__all__ = [
    "Argument",
    "ArrayArgument",
    "Captured",
    "ConstantArgument",
    "ScalarArgument",
    "capture",
    "symbol",
]
