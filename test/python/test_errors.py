"""What bad input gets: the class of each error, its message, its line and its caret.

The line that an error must point to carries the comment `# here`, what the caret must underline
stands between backquotes in the test.
"""

from __future__ import annotations

import ast
import linecache
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import _core
from tilewright import tile as ct
from tilewright.capture import Argument, ArrayArgument, ConstantArgument, ScalarArgument, capture, values
from tilewright.errors import (
    LaunchError,
    Place,
    TileCompilationError,
    TileError,
    TileRecursionError,
    TileStaticAssertionError,
    TileSyntaxError,
    TileTypeError,
    TileValueError,
    from_diagnostics,
    from_message,
)
from tilewright.names import RENAMED_HINTS

F32 = ArrayArgument(ct.float32, 2, 16, (16, 16), ((0, 4), (1, 1)))
VECTOR = ArrayArgument(ct.float32, 1, 16, (16,), ((1, 1),))
N = ScalarArgument(ct.int32)

GLOBAL_LIST = [1, 2]


def refused(
    kind: type[TileError],
    message: str,
    caret: str | None,
    function: Callable[..., None],
    *arguments: Argument,
) -> TileError:
    """Capture a function that must be refused; `message` is a regular expression."""
    with pytest.raises(kind, match=message) as caught:
        capture(function, arguments, "cpu")
    error = caught.value
    assert type(error) is kind
    assert error.where is not None
    line = linecache.getline(error.where.file, error.where.line)
    assert "# here" in line, f"the error points to {line!r}"
    if caret is not None:
        last = str(error).splitlines()[-2:]
        start = last[1].index("^")
        assert last[0][start : len(last[1])] == caret
    return error


# ---------------------------------------------------------------------------------------------
# Shapes


@pytest.mark.spec("T-033")
def test_shape_is_no_power_of_two() -> None:
    def kernel(A):
        ct.load(A, (0, 0), (128, 48))  # here

    refused(
        TileTypeError,
        r"ct.load: shape: dimension 1 of \(128, 48\) is 48, which is no power of two; expected 1, 2, 4, 8, …, "
        r"as in 64 with a padding mode",
        "ct.load(A, (0, 0), (128, 48))",
        kernel,
        F32,
    )


@pytest.mark.spec("T-026", "T-032")
def test_shape_is_not_constant() -> None:
    def kernel(A, n):
        ct.zeros((n, 4), ct.float32)  # here

    def of_array(A, n):
        ct.zeros(A.shape, ct.float32)  # here

    message = (
        r"shape\[0\] must be a constant, found a run-time int32 scalar; a parameter becomes one by "
        r"the annotation ct.Constant"
    )
    refused(TileTypeError, message, None, kernel, F32, N)
    refused(TileTypeError, message, None, of_array, F32, N)


@pytest.mark.spec("T-079")
def test_shapes_do_not_broadcast() -> None:
    def kernel():
        x = ct.zeros((4, 8), ct.float32)
        x + ct.zeros((4, 16), ct.float32)  # here

    error = refused(TileTypeError, r"ct.add: ", "x + ct.zeros((4, 16), ct.float32)", kernel)
    assert "4, 8" in error.message and "4, 16" in error.message


def test_index_of_wrong_length() -> None:
    def kernel(A):
        ct.load(A, (0,), (4, 4))  # here

    def tile(A):
        ct.store(A, (0, 0), ct.zeros((4,), ct.float32))  # here

    def element(A):
        ct.gather(A, (0, 1, 2))  # here

    message = r"the array 'A' has 2 dimensions, the index {} and the tile {}; give one entry of each"
    refused(TileTypeError, "ct.load: " + message.format(1, 2), None, kernel, F32)
    refused(TileTypeError, "ct.store: " + message.format(2, 1), None, tile, F32)
    refused(TileTypeError, "has 2 dimensions, the index is for 3", None, element, F32)


def test_reshape_and_axes() -> None:
    def reshape():
        ct.zeros((4, 8), ct.float32).reshape(4, 4)  # here

    def axis():
        ct.sum(ct.zeros((4, 8), ct.float32), axis=2)  # here

    def mma():
        ct.mma(ct.zeros((4, 8), ct.float16), ct.zeros((4, 8), ct.float16), ct.zeros((4, 8), ct.float32))  # here

    refused(TileTypeError, r"shape \(4, 8\) has 32 elements, \(4, 4\) has 16", None, reshape)
    refused(TileTypeError, "axis 2 is outside a tile of 2 dimensions", None, axis)
    refused(TileTypeError, r"ct.mma: needs shapes \(m, k\), \(k, n\) and \(m, n\)", None, mma)


# ---------------------------------------------------------------------------------------------
# Dtypes


@pytest.mark.spec("T-129")
def test_dtypes_without_promotion() -> None:
    def kernel():
        x = ct.zeros((4,), ct.int32)
        y = ct.zeros((4,), ct.uint32)
        return x * 2 + y  # here

    refused(
        TileTypeError,
        r"ct.add: no implicit promotion between int32 and uint32; convert one operand, as in "
        r"x.astype\(ct.int64\)",
        "x * 2 + y",
        kernel,
    )


@pytest.mark.spec("T-112")
def test_restricted_dtype() -> None:
    def kernel():
        x = ct.zeros((4,), ct.float8_e5m2)
        x + x  # here

    refused(TileTypeError, r"ct.add: is not defined on float8_e5m2.* x.astype\(ct.float32\)", "x + x", kernel)


def test_store_of_another_dtype() -> None:
    def kernel(A):
        ct.store(A, (0, 0), ct.zeros((4, 4), ct.float64))  # here

    refused(
        TileTypeError,
        r"ct.store: float64 does not convert to float32 by itself; write the conversion, as in "
        r"x.astype\(ct.float32\)",
        None,
        kernel,
        F32,
    )


@pytest.mark.spec("T-125")
def test_constant_out_of_range() -> None:
    def kernel():
        ct.zeros((4,), ct.uint8) + 300  # here

    refused(TileValueError, "integer constant 300 is outside uint8", None, kernel)


def test_padding_that_the_dtype_lacks() -> None:
    def kernel(A):
        ct.load(A, 0, 4, padding_mode=ct.PaddingMode.NAN)  # here

    integers = ArrayArgument(ct.int32, 1, 16, (1,), ((1, 1),))
    refused(TileTypeError, "padding_mode NAN: int32 has no such value; use ZERO", None, kernel, integers)


# ---------------------------------------------------------------------------------------------
# Variables


def test_undefined_variable() -> None:
    def kernel():
        ct.zeros((4,), ct.float32) + nowhere  # here # noqa: F821

    def unassigned():
        x = y + 1  # here # noqa: F821
        y = x  # noqa: F841

    with pytest.raises(TileSyntaxError, match="the name 'nowhere' is not defined"):
        capture(kernel, [], "cpu")
    with pytest.raises(TileSyntaxError, match="the variable 'y' is used before it is assigned"):
        capture(unassigned, [], "cpu")


def test_variable_of_one_branch() -> None:
    def kernel(n):
        if n > 0:
            x = n
        return x  # here

    refused(
        TileTypeError,
        r"the variable 'x' may not be assigned: only one side of the 'if' in line \d+ assigns it; "
        "assign it on both sides or before",
        "x",
        kernel,
        N,
    )


def test_variable_of_a_loop() -> None:
    def kernel(n):
        for i in range(n):
            x = i
        x + 1  # here

    def index(n):
        for i in range(n):  # noqa: B007
            pass
        i + 1  # here

    message = r"the variable '{}' may not be assigned: it gets a value only in the loop in line \d+"
    refused(TileTypeError, message.format("x"), "x", kernel, N)
    refused(TileTypeError, message.format("i"), "i", index, N)


def test_variable_that_changes_type_in_a_loop() -> None:
    def kernel(n):
        total = 0.0
        for _ in range(n):
            total = total + ct.ones((4, 8), ct.float32)  # here
        return total

    refused(
        TileTypeError,
        r"the variable 'total' changes type in the loop in line \d+: float32 scalar before it, float32 "
        r"tile \(4, 8\) after an iteration; make it a tile, as in ct.zeros\(\(4, 8\), ct.float32\), before",
        "total",
        kernel,
        N,
    )


def test_variable_that_changes_type_in_a_branch() -> None:
    def kernel(n):
        x = ct.zeros((4,), ct.float32)
        if n > 0:
            x = x.astype(ct.float16)
        x + 1  # here

    refused(
        TileTypeError,
        r"the variable 'x' changes type in the branches of the condition in line \d+: float16 tile "
        r"\(4,\) where it holds, float32 tile \(4,\) where it does not; convert one",
        "x",
        kernel,
        N,
    )


def test_variable_that_changes_type_is_fine_until_it_is_used() -> None:
    def kernel(n):
        x = ct.zeros((4,), ct.float32)
        if n > 0:
            x = x.astype(ct.float16)
        for _ in range(n):
            x = n
            x = ct.zeros((8,), ct.int8) + x

    capture(kernel, [N], "cpu")


def test_results_that_differ() -> None:
    def pick(n):
        if n > 0:
            return ct.zeros((4,), ct.float32)
        return ct.zeros((8,), ct.float32)

    def some(n):
        if n > 0:
            return 1

    def kernel(n):
        pick(n)  # here

    def other(n):
        some(n)  # here

    message = r"results of the 'return' statements differ in type: float32 tile \(4,\) and float32 tile \(8,\)"
    refused(TileTypeError, message, "pick(n)", kernel, N)
    refused(TileSyntaxError, "'some' returns the constant 1 on some paths and nothing on others", None, other, N)


# ---------------------------------------------------------------------------------------------
# Syntax


def unsupported_try():
    try:  # here
        pass
    except ValueError:
        return


def unsupported_class():
    class X:  # here
        pass


def unsupported_global():
    global GLOBAL_LIST  # here


def unsupported_import():
    import math  # here # noqa: F401


def unsupported_raise():
    raise ValueError  # here


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (unsupported_try, "a 'try' statement with 'except' is not supported"),
        (unsupported_class, "a class is not supported in tile code"),
        (unsupported_global, "a 'global' statement is not supported in tile code"),
        (unsupported_import, "an 'import' statement is not supported in tile code"),
        (unsupported_raise, "a 'raise' statement in tile code raises ct.static_exception"),
    ],
    ids=lambda v: getattr(v, "__name__", "").removeprefix("unsupported_") or None,
)
def test_unsupported(function: Any, message: str) -> None:
    with pytest.raises(TileSyntaxError, match=message) as caught:
        capture(function, [], "cpu")
    assert caught.value.where is not None
    line = linecache.getline(caught.value.where.file, caught.value.where.line)
    assert "# here" in line


def test_recursion() -> None:
    def even(n):
        return odd(n - 1)

    def odd(n):
        return even(n - 1)  # here

    def kernel(n):
        even(n)

    error = refused(
        TileRecursionError, "recursion: 'even' calls itself, directly or through others", "even(n - 1)", kernel, N
    )
    assert [p.function for p in error.places] == ["kernel", "even", "odd"]
    text = str(error)
    assert text.index("in kernel") < text.index("in even") < text.index("in odd")


def test_kernel_called_like_a_function() -> None:
    @ct.kernel
    def inner():
        pass

    def kernel():
        inner()  # here

    refused(TileTypeError, "the kernel 'inner' cannot be called like a function; start it on the host", None, kernel)
    with pytest.raises(TileTypeError, match=r"kernel inner is called like a function; start it with ct.launch"):
        inner()


def test_wrong_arguments_of_calls() -> None:
    def helper(x, y):
        return x + y

    def kernel():
        helper(1)  # here

    def op():
        ct.zeros((4,), dtyp=ct.float32)  # here

    refused(TileTypeError, r"helper\(x, y\): missing a required argument: 'y'", "helper(1)", kernel)
    refused(
        TileTypeError,
        r"ct.zeros\(shape, dtype\): got an unexpected keyword argument 'dtyp'; did you mean dtype\?",
        None,
        op,
    )


def test_calls_that_are_not_tile_code() -> None:
    def method():
        np.zeros((4,)) + ct.zeros((4,), ct.float32)  # here

    def function():
        print(open("x"))  # here # noqa: SIM115

    def on_tile():
        import_me = np.exp
        import_me(ct.zeros((4,), ct.float32))  # here

    with pytest.raises(TileError):
        capture(method, [], "cpu")
    refused(TileSyntaxError, "open cannot be called in tile code; call it on the host", None, function)
    with pytest.raises(TileError, match="exp"):
        capture(on_tile, [], "cpu")


def test_condition_is_a_tile() -> None:
    def kernel():
        if ct.zeros((4,), ct.float32) > 0:  # here
            pass

    refused(
        TileTypeError,
        r"the condition of 'if' needs a scalar, found a bool_ tile of shape \(4,\); ct.where chooses",
        None,
        kernel,
    )


@pytest.mark.spec("T-029")
def test_assignment_by_index() -> None:
    def tile():
        x = ct.zeros((4,), ct.float32)
        x[0] = 1  # here

    def array(A):
        A[0, 0] = 1  # here

    refused(TileTypeError, "tile of shape .* cannot be assigned by index; tiles and tuples are immutable", None, tile)
    refused(TileTypeError, "array 'A' cannot be assigned by index; use ct.store", None, array, F32)


def test_kernel_returns_a_value() -> None:
    def kernel(n):
        return n  # here

    @ct.kernel
    def real(n):
        return n

    with pytest.raises(TileTypeError, match="a kernel returns nothing, found a run-time int32 scalar"):
        ct.launch(None, 1, real, (1,))
    refused(TileTypeError, "a kernel returns nothing", None, kernel, N)


def test_endless_loop() -> None:
    def kernel():
        while True:  # here
            pass

    refused(TileValueError, "always true and nothing leaves the loop", "True", kernel)


def test_step_of_zero() -> None:
    def kernel():
        for _ in range(0, 3, 0):  # here
            pass

    refused(TileValueError, "the step of range must not be zero", None, kernel)


def test_static_assert() -> None:
    def kernel(T):
        ct.static_assert(T % 64 == 0, f"T is {T}")  # here

    def run_time(n):
        ct.static_assert(n > 0)  # here

    refused(TileStaticAssertionError, "static assertion failed: T is 100", None, kernel, ConstantArgument(100))
    refused(TileTypeError, "ct.static_assert needs a constant, found a run-time bool_ scalar", None, run_time, N)


def test_attribute_that_does_not_exist() -> None:
    def tile():
        ct.zeros((4,), ct.float32).exp()  # here

    def array(A):
        A.data  # here

    refused(TileTypeError, r"a tile has no attribute 'exp'; use ct.exp\(x\)", None, tile)
    with pytest.raises(TileTypeError, match="an array has no attribute 'data' in tile code; it has dtype"):
        capture(array, [F32], "cpu")


# ---------------------------------------------------------------------------------------------
# Text


def test_text_of_an_error() -> None:
    def helper(x):
        return x + ct.zeros((3,), ct.float32)

    def kernel(n):
        helper(n)

    with pytest.raises(TileTypeError) as caught:
        capture(kernel, [N], "cpu")
    text = re.sub(r'"[^"]*/', '"', str(caught.value))
    first = kernel.__code__.co_firstlineno
    assert text == (
        "ct.zeros: shape: dimension 0 of (3,) is 3, which is no power of two; expected 1, 2, 4, 8, …, as in 4 "
        "with a padding mode for the rest\n"
        f'  File "test_errors.py", line {first + 1}, in kernel\n'
        "    helper(n)\n"
        "    ^^^^^^^^^\n"
        f'  File "test_errors.py", line {first - 2}, in helper\n'
        "    return x + ct.zeros((3,), ct.float32)\n"
        "               ^^^^^^^^^^^^^^^^^^^^^^^^^^"
    )


def test_caret_counts_characters() -> None:
    def kernel():
        ct.print("größe", ct.zeros((3,), ct.float32))  # here

    with pytest.raises(TileTypeError) as caught:
        capture(kernel, [], "cpu")
    code, caret = str(caught.value).splitlines()[-2:]
    assert code[caret.index("^") : len(caret)] == "ct.zeros((3,), ct.float32)"


def test_traceback_is_short() -> None:
    @ct.kernel
    def kernel(n):
        for _ in range(n):
            ct.zeros((3,), ct.float32)

    with pytest.raises(TileTypeError) as caught:
        ct.launch(None, 1, kernel, (1,))
    assert [entry.name for entry in caught.traceback] == ["test_traceback_is_short"]


def test_from_diagnostics() -> None:
    location = 'loc(callsite("k.py":12:5 to :9 at "k.py":20:3 to 21:4))'
    error = from_diagnostics([(2, location, "a note"), (0, location, "'tile.add' op does not fit")])
    assert type(error) is TileTypeError
    assert error.message == "ct.add: does not fit\na note"
    assert error.places == (Place("k.py", 20, 3, 21, 4), Place("k.py", 12, 5, 12, 9))
    assert type(from_message("'tile.add' op shapes differ")) is TileTypeError
    assert type(from_message("something else")) is TileCompilationError
    assert type(from_diagnostics([])) is TileCompilationError


def test_malformed_module() -> None:
    with pytest.raises(TileCompilationError):
        _core.parse("func.func @f( {")


# ---------------------------------------------------------------------------------------------
# Launches (what the runtime refuses is in test_runtime_launch.py)


@ct.kernel
def copy(X, Z, T: ct.Constant[int]):
    ct.store(Z, ct.bid(0), ct.load(X, ct.bid(0), T))


def test_launch_with_wrong_argument_count() -> None:
    x = np.zeros(16, np.float32)
    with pytest.raises(TileTypeError, match=r"kernel copy takes 3 argument\(s\) \(X, Z, T\), 2 were given"):
        ct.launch(None, 1, copy, (x, x))


@pytest.mark.parametrize("grid", [0, (1, 0), (-1,), (1, 65536), (1, 1, 1, 1), "x"], ids=str)
def test_grid(grid: Any) -> None:
    x = np.zeros(16, np.float32)
    with pytest.raises(TileError, match=r"kernel copy.*grid") as caught:
        ct.launch(None, grid, copy, (x, x.copy(), 16))
    assert isinstance(caught.value, LaunchError | TileValueError)


def test_arrays_that_are_refused() -> None:
    x = np.zeros(16, np.float32)
    for bad in (np.zeros(16, complex), np.zeros(16, ">f4"), np.zeros(16, object)):
        with pytest.raises(TileTypeError, match="kernel copy, argument 'X'"):
            ct.launch(None, 1, copy, (bad, x, 16))
    padded = np.zeros(16, [("x", "f4"), ("y", "u1")])["x"]
    with pytest.raises(TileValueError, match=r"kernel copy, argument 'X'.*stride"):
        ct.launch(None, 1, copy, (padded, x, 16))


def test_read_only_output() -> None:
    x = np.zeros(16, np.float32)
    z = np.zeros(16, np.float32)
    z.flags.writeable = False
    with pytest.raises(LaunchError, match="kernel copy writes to Z, which is read-only"):
        ct.launch(None, 1, copy, (x, z, 16))
    ct.launch(None, 1, copy, (z, x, 16))  # reading is fine


def test_hints() -> None:
    with pytest.raises(TileTypeError, match=r"has no hint 'num_warp'; did you mean num_warps\?; it has num_warps"):
        ct.kernel(num_warp=4)
    for old, new in RENAMED_HINTS.items():
        with pytest.raises(TileTypeError, match=f"@ct.kernel has no hint '{old}'; it is called {new} now; it has"):
            copy.replace_hints(**{old: 1})
        ct.kernel(lambda X: None, **{new: 1})
    with pytest.raises(TileValueError, match="the hint num_warps is an integer from 1 to 32, found 64"):
        ct.kernel(num_warps=64)
    with pytest.raises(TileTypeError, match="needs a function made by 'def'"):
        ct.kernel(3)
    with pytest.raises(
        TileTypeError, match=r"\*args and \*\*kwargs cannot be passed at a launch; expected plain parameters"
    ):
        ct.kernel(lambda *args: None)


# ---- what was found, in words -------------------------------------------------------------------------

TILE = values.Tile(None, ct.float16, (4, 8))
WORDS = {
    "a run-time int32 scalar": values.Tile(None, ct.int32, ()),
    "a float16 tile of shape (4, 8)": TILE,
    "the 2-D float32 array 'A'": values.Array(None, ct.float32, 2, "A", 0),
    "the constant 3": 3,
    "the constant True": True,
    "()": (),
    "(the constant 1,)": (1,),
    "(the constant 1, the constant 2.5)": (1, 2.5),
    "the dtype float32": ct.float32,
    "the method 'astype'": values.Method(TILE, "astype"),
    "text with run-time values": values.Format(("x",)),
    "a range": values.Range(0, 4, 1),
    "the module 're'": re,
    "the function 'check'": values.LocalFunction(ast.parse("def check(): pass").body[0], None, (), {}),
    "'text' (str)": "text",
    "None (NoneType)": None,
}


@pytest.mark.parametrize("words", WORDS)
def test_values_in_words(words: str) -> None:
    assert values.describe(WORDS[words]) == words


def test_functions_in_words() -> None:
    assert values.describe(test_values_in_words) == "the function 'test_values_in_words'"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (TILE, "float16 tile (4, 8)"),
        (values.Tile(None, ct.int64, ()), "int64 scalar"),
        (7, "int32 scalar"),
        (0.5, "float32 scalar"),
        (True, "bool_ scalar"),
        ((1, TILE), "tuple (int32 scalar, float16 tile (4, 8))"),
        (re, "the module 're'"),
    ],
)
def test_types_in_words(value: Any, words: str) -> None:
    assert values.type_name(value) == words


def test_what_is_neither_tile_nor_number() -> None:
    assert values.require_tile_or_number(TILE, "x") is TILE and values.require_tile_or_number(2, "x") == 2
    with pytest.raises(TileTypeError, match="x needs a tile or a number, found the 1-D int8 array 'A'; load a tile"):
        values.require_tile_or_number(values.Array(None, ct.int8, 1, "A", 0), "x")
    with pytest.raises(TileTypeError, match=r"x needs a tile or a number, found 'text' \(str\)$"):
        values.require_tile_or_number("text", "x")


TOO_LARGE = {
    "x = (1 << 100000) * ct.bid(0)": r"integer constant \(an integer of 100001 bits\) fits no dtype",
    "x = (1 << 100000) * 1.0": "ct.mul of the constants .*100001 bits.*too large to convert to float",
    "x = int(1e400)": "int: cannot convert float infinity to integer",
    "x = ct.full((8,), 10**400, ct.int32)": r"constant \(an integer of 1329 bits\) is outside int32",
    "x = ct.arange(2**63, dtype=ct.int32)": r"a tile of shape \(9223372036854775808,\) is too large",
    "x = ct.zeros((2**64,), ct.float32)": "too large; it has at most 2\\*\\*30 elements",
    "x = 'a' * 10**12": "too large to be a constant",
    "x = '%d' % 'a'": "%d format",
    "x = (1, 2) * 10**9": "too large to be a constant: 2 times 1000000000",
    "x = 1 << 10**14": "ct.bitwise_lshift of 1 and 100000000000000 is too large to be a constant",
    "x = 7 ** 10**12": "ct.pow of 7 and 1000000000000 is too large to be a constant",
    "x = (-3) ** (1 << 30)": "too large to be a constant: it has more than 1048576 bits",
    "x = math.factorial(10**8)": "factorial: the number would have more than 1048576 bits; write a smaller one",
    "x = math.comb(10**8, 5 * 10**7)": "comb: the number would have more than 1048576 bits",
    "x = math.perm(10**8)": "perm: the number would have more than 1048576 bits",
    "x = bytes(10**12)": "bytes: the number would have more than 1048576 bits",
    "x = (1).to_bytes(10**12, 'little')": "int.to_bytes: the number would have more than 1048576 bits",
    "x = (1).__lshift__(10**12)": "int.__lshift__: the number would have more than 1048576 bits",
    "x = (7).__pow__(10**12)": "int.__pow__: the number would have more than 1048576 bits",
    "x = (1.5).__format__('999999999999f')": "the text would have more than 1048576 letters; write a shorter one",
    "x = 'a'.__mul__(10**12)": "str.__mul__: the text would have more than 1048576 letters",
    "x = str.ljust('a', 10**12)": "str.ljust: the text would have more than 1048576 letters",
    "x = '{0:{1}}'.format(3, '999999999999')": "the text would have more than 1048576 letters",
    "x = 'a'.join(['b' * 1000000] * 1000)": "str.join: the text would have more than 1048576 letters",
    "x = ('b' * 1000000).translate({98: 'c' * 1000})": "str.translate: the text would have more than",
    "x = 'a'.encode().ljust(10**12)": "bytes.ljust: the text would have more than 1048576 letters",
    "x = ct.bid(10**5000)": "Exceeds the limit",
    "ct.print(10**5000)": "Exceeds the limit",
}


@pytest.mark.parametrize("statement", TOO_LARGE)
def test_constants_beyond_all_dtypes(statement: str, tmp_path: Path) -> None:
    """Python computes them; an error is typed, and at its line."""
    file = tmp_path / "kernels.py"
    imports = "import math; from tilewright import tile as ct"
    file.write_text(f"{imports}\n\n@ct.kernel\ndef kernel(X):\n    {statement}\n")
    kernel = runpy.run_path(str(file))["kernel"]
    with pytest.raises(TileError, match=TOO_LARGE[statement]) as error:
        ct.launch(None, 1, kernel, (np.zeros(8, np.float32),))
    assert error.value.where is not None and error.value.where.line == 5


def test_constants_too_large_for_a_float_are_infinite() -> None:
    @ct.kernel
    def kernel(X):
        ct.store(X, 0, ct.full((4,), 10**400, ct.float32))
        ct.store(X, 1, ct.full((4,), -(10**400), ct.float32))

    for launch in (kernel.interpret, lambda grid, args: ct.launch(None, grid, kernel, args)):
        x = np.zeros(8, np.float32)
        launch(1, (x,))
        assert (x[:4] == np.inf).all() and (x[4:] == -np.inf).all()


def test_a_failed_assertion_says_where() -> None:
    @ct.kernel
    def kernel(X):
        assert ct.max(ct.load(X, 0, 4)) < 3  # here

    def frames(error: BaseException | None) -> list[str]:
        found = []
        trace = error.__traceback__ if error else None
        while trace:
            found.append(trace.tb_frame.f_code.co_filename)
            trace = trace.tb_next
        return found

    line = kernel.function.__code__.co_firstlineno + 2
    where = rf"assertion failed: ct.max\(ct.load\(X, 0, 4\)\) < 3 \(test_errors.py, line {line}\)"
    with pytest.raises(LaunchError, match=where):
        ct.launch(None, 1, kernel, (np.arange(4, dtype=np.float32),))

    @ct.kernel
    def wrong(X):
        X.nothing

    with pytest.raises(TileTypeError) as caught:
        ct.launch(None, 1, wrong, (np.arange(4, dtype=np.float32),))
    assert set(frames(caught.value)) == {__file__}  # and no file of ours


def test_creation_is_called_by_its_own_name() -> None:
    for create, name in ((ct.zeros, "ct.zeros"), (ct.ones, "ct.ones")):

        def kernel():
            create(8, 8)  # noqa: B023

        with pytest.raises(TileTypeError, match=f"{name}: dtype: no dtype is meant by the constant 8"):
            capture(kernel, [], "cpu")
