"""Kernels: the decorators `@ct.kernel` and `@ct.function`, and `ct.launch`.

A kernel object is a `_core.Dispatcher`: a launch finds the variant compiled for its arguments in C
(python/ext/dispatch.c) and comes here only for a new one, to `compile_variant`.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import threading
import types
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import _core, compile, hints, knobs, ranges
from .capture import TILE
from .dtype import DType
from .errors import (
    LaunchError,
    TileStaticEvalError,
    TileSyntaxError,
    TileTypeError,
    TileUnsupportedFeatureError,
    TileValueError,
)
from .quiet import quiet
from .structure import UNMARKED, defaults_of, parameter_marks, parameters_of

if TYPE_CHECKING:
    from .checking import CheckedKernel


class kernel(_core.Dispatcher):
    """Make a kernel of a function: `@ct.kernel`, or with hints `@ct.kernel(num_warps=8)`.

    A hint changes what the compiler would choose. It is an integer, a word or a `ct.ByTarget`; docs/options.md
    describes each.

    - Of a block: `num_warps`, `num_stages`, `occupancy` (blocks on a multiprocessor).
    - Of the grid: `dynamic_schedule`, `split_k`, `slice_tiles`, `coarsen_tiles`, `num_ctas` and `cluster_axis`,
      `raster` and `group`, `dependent_launch`.
    - Of the code: `family` and `roles`, `vector`, `approximate`, `lazy_rescale`, `layout_rank`, `opt_level`.
    - Of a tile with a name: `**{"layout(acc)": "access"}`, `**{"warps(acc)": "4x2"}`.

    Hints change no result, but for one: `fp8_fast_accum=1` sums products of 8-bit floats as the Tensor Cores do, on
    Hopper to about 14 bits. `num_worker_warps`, a hint of cuTile, is accepted and not used.
    """

    rules = TILE  # one program a block; device.kernel: one a thread
    decorator = "@ct.kernel"
    hint_names: Iterable[str] = hints.NAMES
    links: Iterable[str] = ()  # files that it is linked with
    held: tuple[tuple[Any, str], ...] = ()  # variables from outside, (holder, name), whose arrays the launch adds
    rows: frozenset[int] = frozenset()  # leaves of the arguments that the launch knows to lie in row-major order

    def on_miss(self, target: str, key: compile.Key) -> Any:
        """The variant for a launch that none fits, or the error to raise."""
        return compile_variant(self, target, key)

    @quiet
    def __new__(cls, function: Callable[..., Any] | None = None, /, **wanted: Any) -> Any:
        for name, value in hints.full_names(wanted).items():
            hints.check(cls.decorator, cls.hint_names, name, value)
        if function is None:
            return functools.partial(cls, **wanted)
        if not isinstance(function, types.FunctionType):
            raise TileTypeError(f"{cls.decorator} needs a function made by 'def', found {function!r}")
        return super().__new__(cls)

    @quiet
    def __init__(self, function: Callable[..., Any], /, **wanted: Any) -> None:
        assert isinstance(function, types.FunctionType)  # says __new__
        code = function.__code__
        parameters = (*parameters_of(function), *(name for _, name in self.held))
        if code.co_flags & 0x0C or (self.rules.simt and code.co_kwonlyargcount):
            raise TileTypeError(
                f"kernel {function.__name__}: *args and **kwargs cannot be passed at a launch"
                f"{', nor can keyword-only parameters' if self.rules.simt else ''}; expected plain parameters, "
                "one of which may be a tuple"
            )
        marks = parameter_marks(function)
        own = len(parameters) - len(self.held)
        forms = (*(marks.get(name, UNMARKED).form() for name in parameters[:own]), *[None] * len(self.held))
        positions = [i for i, form in enumerate(forms) if form is True]
        self.forms = forms
        defaults, most = (None if self.held else defaults_of(function) or None), knobs.most_variants()
        super().__init__(
            function.__name__,
            parameters,
            positions,
            type(self).on_miss,
            self.rules.simt + self.rules.wide,
            defaults,
            most,
            forms,
        )
        self.function: Any = function
        self.hints = hints.full_names(wanted)
        if self.hints.pop("num_worker_warps", None) is not None:
            warnings.warn(
                "the hint num_worker_warps is not taken: the compiler chooses the warps; num_warps sets their number",
                stacklevel=2,
            )
        self._checked: CheckedKernel | None = None
        self._accepted: set[str] = set()  # what the front end has taken for the reference
        self._with_hints: dict[tuple[tuple[str, Any], ...], kernel] = {}
        functools.update_wrapper(self, function)

    @quiet
    def __call__(self, *args: Any, **kwargs: Any) -> None:
        raise TileTypeError(
            f"kernel {self.name} is called like a function; start it with "
            f"ct.launch(stream, grid, {self.name}, (...)), or call a @ct.function from tile code"
        )

    @quiet
    def __getitem__(self, grid: Any) -> Any:
        raise TileTypeError(
            f"kernel {self.name} is started as in Triton; write ct.launch(stream, grid, {self.name}, (...)) instead of "
            f"{self.name}[grid](...)"
        )

    def __repr__(self) -> str:
        return f"<kernel {self.name}({', '.join(self.parameters)})>"

    def __reduce__(self) -> Any:
        """In a pickle, and as a copy, a kernel is what its module has by this name, as a function is."""
        return self.function.__qualname__

    @property
    def _pyfunc(self) -> Any:
        """The function under cuTile's name for it, of which its operator libraries make kernels with other hints."""
        return self.function

    @quiet
    def interpret(self, grid: int | Sequence[int], args: tuple[Any, ...]) -> None:
        """Run the Python body itself on NumPy tiles, one block after the other; breakpoints work."""
        from .interpret import run

        run(self.function, grid, args, lambda: self._ask_front_end(args))

    def _ask_front_end(self, args: tuple[Any, ...]) -> None:
        """What the compiler refuses, the reference refuses in the same words: Python alone would take much of it."""
        _, key = self.specialization(args)
        if (told := repr(key)) not in self._accepted:  # a constant in it need not have a hash
            self.capture("cpu", key)
            self._accepted.add(told)

    @quiet
    def replace_hints(self, **wanted: Any) -> kernel:
        """The same kernel with other hints over its own. Equal hints give the same object, which compiles once."""
        return self._hinted(self.hints | hints.full_names(wanted))

    def without_hints(self, names: Collection[str]) -> kernel | None:
        """The same kernel without these hints; None where it has none of them. Bounds of threads stay."""
        kept = {name: value for name, value in self.hints.items() if name not in names or self.rules.simt}
        return self._hinted(kept) if len(kept) < len(self.hints) else None

    def _hinted(self, wanted: dict[str, Any]) -> kernel:
        row = tuple(sorted(wanted.items(), key=lambda item: item[0]))
        found = self._with_hints.get(row)
        return self._with_hints.setdefault(row, type(self)(self.function, **wanted)) if found is None else found

    def checked(self) -> CheckedKernel:
        """The same kernel in check mode, which reports what goes wrong."""
        if self._checked is None:
            from . import checking  # which needs NumPy

            self._checked = checking.CheckedKernel(self)
        return self._checked

    def hints_for(self, target: str) -> dict[str, hints.Value]:
        """The hints that the compiler gets for a target."""
        values = hints.for_target(self.hints, target)
        if knobs.race_check() and not target.startswith("cpu"):
            values |= {"race_check": 1, "dependent_launch": 0}
        if knobs.line_info() and not target.startswith("cpu"):
            values |= {"line_info": 1}
        return values

    def capture(self, target: str, key: compile.Key) -> Any:
        """The kernel's module of tile IR for a target and the facts of a specialization."""
        return compile.capture_kernel(self, target, key).module


_OF_THE_PROGRAM = (TileStaticEvalError, TileSyntaxError, TileTypeError, TileUnsupportedFeatureError, TileValueError)


def compile_variant(kernel: Any, target: str, key: compile.Key, made: compile.Made | None = None) -> Any:
    """What the dispatcher asks for when no variant fits a launch: it, or the error to raise.

    A thread that asks for what another one compiles waits, and finds its code in the cache if it reads the same."""
    try:
        with _in_turn((id(kernel), target, repr(key))), ranges.named(f"compile {kernel.name} for {target}"):
            variant, reads = compile.compile_kernel(kernel, target, key, made)
    except _OF_THE_PROGRAM as error:
        error.__suppress_context__ = True
        return error.with_traceback(None)  # the way through the capture tells a user nothing
    _watch(kernel, reads)
    return variant


_turns: dict[Any, tuple[Any, int]] = {}  # of what is being compiled (a key need not have a hash), and how many ask
_turning = threading.Lock()


@contextlib.contextmanager
def _in_turn(what: Any) -> Iterator[None]:
    """One thread at a time, of those that ask for the same."""
    with _turning:
        lock, asking = _turns.get(what) or (threading.RLock(), 0)
        _turns[what] = lock, asking + 1
    try:
        with lock:
            yield
    finally:
        with _turning:
            lock, asking = _turns.pop(what)
            if asking > 1:
                _turns[what] = lock, asking - 1


_watching = threading.Lock()


def _watch(kernel: Any, reads: Iterable[tuple[Any, str | None, Any]]) -> None:
    """Have the dispatcher compile again when something changes that the kernel has read.

    Modules, classes and our own objects are taken to stay, but not what is in them. Another thread may have read
    another value of the same variable: both are watched then, so that the next launch finds one of the two stale.
    """
    fresh = {}
    for holder, name, value in reads:
        if isinstance(value, types.ModuleType | type | DType | types.BuiltinFunctionType | enum.Enum):
            continue
        if hasattr(value, "__tw_op__"):
            continue
        name = "cell_contents" if isinstance(holder, types.CellType) else name
        fresh[id(holder), name] = (holder, name, value)

    def is_told(holder: Any, name: str | None, value: Any) -> bool:
        row = fresh.get((id(holder), name))
        return row is not None and _core.is_unchanged(row[2], value)

    with _watching:
        kernel.watch([*(row for row in kernel.watched if not is_told(*row)), *fresh.values()])


def function(f: Callable[..., Any] | None = None, /, *, host: bool = False, tile: bool = True) -> Any:
    """Mark a function for use in tile code. Plain functions work too; the mark is for readers.

    With `tile=False` it is for the host, and tile code may not call it. `host=True` says that the host calls it, too.
    """
    if f is None:
        return functools.partial(function, host=host, tile=tile)
    if not tile:
        f.__tw_host_only__ = True  # type: ignore[attr-defined]
    return f


@quiet
def _interpret_launch(
    stream: Any,
    grid: Any,
    kernel: Any,
    kernel_args: tuple[Any, ...],
    *,
    hints: dict[str, Any] | None = None,
    programmatic_dependent_launch: bool = False,
    check: bool = True,
) -> None:
    if not isinstance(kernel, _core.Dispatcher):
        raise LaunchError(f"launch() needs a @ct.kernel, found {kernel!r}")
    if hints is not None:
        kernel = kernel.replace_hints(**hints)  # type: ignore[attr-defined]
    kernel.interpret(grid, kernel_args)


# launch(stream, grid, kernel, kernel_args): start a kernel on the device that its arrays live on. NumPy arrays
# and CPU tensors run on the CPU before the call returns; GPU arrays run on their GPU in stream order.
launch = _interpret_launch if knobs.interpret() else _core.launch
if knobs.check() and not knobs.interpret():
    from . import checking

    launch = checking.launch
if knobs.nvtx():
    launch = ranges.around(launch)
