"""`@cuda.jit`: kernels of Numba programs, and how they are launched."""

from __future__ import annotations

import functools
import types as python_types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..capture.numba_rules import NPM, NUMBA, ThreadRules
from ..errors import LaunchError, TileTypeError, TileUnsupportedFeatureError, TileValueError
from ..kernel import kernel as _kernel
from ..quiet import quiet
from . import options as option_names
from . import types
from .compiled import Overload, device_code, overloads_of
from .launching import Configured, NoLaunch, parts_of
from .linkable import files_of
from .pickling import Packed, is_of_its_module
from .twins import Asked

if TYPE_CHECKING:
    from ..capture.frame import Frame

RULES: dict[str, ThreadRules] = {"numba": NUMBA, "npm": NPM}


class Kernel(_kernel):
    """What `@cuda.jit` makes of a function: `kernel[grid, block](...)` launches it; other kernels may call it."""

    rules: ThreadRules = NUMBA
    decorator = "@cuda.jit"
    hint_names = ()
    signature: types.Signature | None = None
    links: tuple[str, ...] = ()
    extensions: Sequence[Any] = ()
    options: dict[str, Any] = {}  # noqa: RUF012  (replaced, never changed)
    asked = Asked()  # of a launch, as those so far have found out

    def __init__(self, function: Any, /) -> None:
        super().__init__(function)
        self.twins: dict[Any, Kernel] = {}

    def twin(self, asked: Asked) -> Kernel:
        """The same kernel, with a parameter for the array of each variable, for launches that have what it asks."""
        key = asked.key()
        found = self.twins.get(key)
        if found is None:
            made: Kernel = type(self).__new__(type(self), self.function)
            made.held, made.rows = asked
            type(self).__init__(made, self.function)
            made.hints, made.signature, made.options, made.links = self.hints, self.signature, self.options, self.links
            found = self.twins.setdefault(key, made)
        return found

    @quiet
    def __getitem__(self, configuration: Any) -> Configured:
        return Configured(self, *parts_of(configuration))

    @quiet
    def configure(self, griddim: Any, blockdim: Any, stream: Any = 0, sharedmem: int = 0) -> Configured:
        return Configured(self, griddim, blockdim, stream, sharedmem)

    @quiet
    def __call__(self, *args: Any, **keywords: Any) -> Any:
        raise LaunchError(
            f"the kernel {self.name} was called without a grid; launch it by {self.name}[blocks, threads](...)"
        )

    @quiet
    def forall(self, count: int, tpb: int = 0, stream: Any = 0, sharedmem: int = 0) -> Configured | NoLaunch:
        """A launch of one thread for each of `count` elements, or some more."""
        if count < 0:
            raise TileValueError(f"kernel {self.name}: forall takes a number of elements, found {count}")
        threads = tpb or 128
        return self[-(-count // threads), threads, stream, sharedmem] if count else NoLaunch()

    @property
    def py_func(self) -> Any:
        return self.function

    def __tw_value__(self, frame: Frame) -> Any:
        """In another kernel it is the function."""
        return self.function

    def __repr__(self) -> str:
        return f"<cuda.jit kernel {self.name}({', '.join(self.parameters)})>"

    # -- what was compiled

    @property
    def overloads(self) -> dict[tuple[Any, ...], Overload]:
        """What was compiled so far, by the types of the arguments."""
        return overloads_of(self)

    @property
    def signatures(self) -> list[tuple[Any, ...]]:
        return list(self.overloads)

    nopython_signatures = signatures

    @quiet
    def compile(self, sig: Any) -> Overload:
        """The kernel for arguments of these types, before a launch has them."""
        return Overload.of_signature(self, types.parse(sig))

    def specialize(self, *args: Any) -> Kernel:
        """The kernel for arguments of these types and no others."""
        if self.signature is not None:
            raise TileTypeError(f"kernel {self.name} has a signature, and so is specialized already")
        return _made(self.function, types.of_values(args), self.options, type(self), self.links)

    @property
    def specialized(self) -> bool:
        return self.signature is not None

    def _each(self, signature: Any, look: Callable[[Overload], Any]) -> Any:
        """Of a signature, or a dict of all."""
        if signature is not None:
            return look(self.compile(signature))
        return {key: look(overload) for key, overload in self.overloads.items()}

    def inspect_asm(self, signature: Any = None) -> Any:
        """The PTX of what was compiled so far: a text for a signature, else one for each."""
        return self._each(signature, Overload.inspect_asm)

    inspect_lto_ptx = inspect_asm  # there is one module, and nothing is linked later

    def inspect_llvm(self, signature: Any = None) -> Any:
        return self._each(signature, Overload.inspect_llvm)

    def inspect_sass(self, signature: Any = None) -> Any:
        """Machine code, which nvdisasm shows; it must be there."""
        return self._each(signature, Overload.inspect_sass)

    def _resource(self, signature: Any, name: str) -> Any:
        """Of a kernel with a signature that one's."""
        return self._each(signature or self.signature, lambda overload: getattr(overload.resources(), name))

    def get_regs_per_thread(self, signature: Any = None) -> Any:
        return self._resource(signature, "registers")

    def get_local_mem_per_thread(self, signature: Any = None) -> Any:
        return self._resource(signature, "local_bytes")

    def get_shared_mem_per_block(self, signature: Any = None) -> Any:
        return self._resource(signature, "shared_bytes")

    def get_max_threads_per_block(self, signature: Any = None) -> Any:
        return self._resource(signature, "max_threads")

    def get_const_mem_size(self, signature: Any = None) -> Any:
        return self._resource(signature, "const_bytes")

    def __reduce__(self) -> Any:
        """Another process finds a kernel of a module by its name, and makes any other one anew."""
        if is_of_its_module(self, self.function):
            return self.function.__qualname__
        return _unpickled, (Packed(self.function), self.signature, self.options, _name_of(type(self)), self.links)


class _NpmKernel(Kernel):
    rules = NPM


_CLASSES = {"numba": Kernel, "npm": _NpmKernel}


def _name_of(kind: type[Kernel]) -> str:
    return next(name for name, value in _CLASSES.items() if value is kind)


def _unpickled(function: Any, signature: Any, options: dict[str, Any], rules: str, links: tuple[str, ...]) -> Kernel:
    return _made(function, signature, options, _CLASSES[rules], links)


class DeviceFunction:
    """What `@cuda.jit(device=True)` makes: a function for kernels. With a signature its values have these types."""

    __name__: str

    def __init__(self, function: python_types.FunctionType, signature: types.Signature | None, links: Any) -> None:
        self.function = self.py_func = function
        self.signature, self.links = signature, links
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """On the host it is the Python function."""
        return self.function(*args, **keywords)

    def __repr__(self) -> str:
        return f"<cuda.jit device function {self.__name__}>"

    def __tw_call__(self, frame: Frame, *args: Any, **keywords: Any) -> Any:
        from ..capture.simt import numba

        return numba.call_device_function(frame, self, list(args), keywords)

    def __reduce__(self) -> Any:
        """As of a kernel."""
        if is_of_its_module(self, self.function):
            return self.function.__qualname__
        return DeviceFunction, (Packed(self.function), self.signature, self.links)

    def inspect_asm(self, signature: Any = None) -> str:
        """PTX of the function by itself, as C++ would call it."""
        return device_code(self, signature, "ptx")

    def inspect_llvm(self, signature: Any = None) -> str:
        return device_code(self, signature, "llvm")

    def inspect_sass(self, signature: Any = None) -> str:
        raise TileUnsupportedFeatureError(
            f"{self.__name__} is a device function, which has no machine code of its own; inspect a kernel with it"
        )

    @quiet
    def __getitem__(self, configuration: Any) -> Any:
        raise LaunchError(
            f"{self.__name__} is a device function, which kernels call; for a launch leave device=True away"
        )

    def compile_device(self, args: Any, return_type: Any = None) -> DeviceFunction:
        return self


@quiet
def jit(
    func_or_sig: Any = None,
    device: bool = False,
    inline: Any = "never",
    link: Any = (),
    debug: Any = None,
    opt: Any = True,
    lineinfo: bool = False,
    cache: bool = False,
    *,
    rules: str = "numba",
    **options: Any,
) -> Any:
    """Make a kernel, or with `device=True` a function for kernels: `@cuda.jit`, `@cuda.jit("void(float32[:])")`."""
    option_names.check_names(options)
    options |= {"debug": debug, "lineinfo": lineinfo}
    if rules not in RULES:
        raise TileValueError(f"@cuda.jit: the rules are 'numba' or 'npm', found {rules!r}")
    make = functools.partial(_make, device=device, options=options, kind=_CLASSES[rules], links=files_of(link or ()))
    if isinstance(func_or_sig, python_types.FunctionType | Kernel | DeviceFunction):
        return make(func_or_sig, None)
    signature = None if func_or_sig is None else types.parse(func_or_sig)
    return quiet(lambda function: make(function, signature))


def _make(
    function: Any,
    signature: types.Signature | None,
    device: bool,
    options: dict[str, Any],
    kind: type[Kernel],
    links: Any,
) -> Any:
    function = getattr(function, "function", function)
    if not isinstance(function, python_types.FunctionType):
        raise TileTypeError(f"@cuda.jit needs a function made by 'def', found {function!r}")
    return DeviceFunction(function, signature, links) if device else _made(function, signature, options, kind, links)


def _made(function: Any, signature: Any, options: dict[str, Any], kind: type[Kernel], links: tuple[str, ...]) -> Kernel:
    made: Kernel = kind(function)
    made.hints = dict(option_names.hints_of(options))
    _check_signature(made, signature)
    made.signature, made.options, made.links = signature, options, links
    made.extensions = list(options.get("extensions") or ())
    return made


def _check_signature(kernel: Kernel, signature: types.Signature | None) -> None:
    if signature is None:
        return
    if signature.result is not types.void:
        raise TileTypeError(f"kernel {kernel.name}: a kernel returns nothing, found the signature {signature}")
    if len(signature.arguments) != len(kernel.parameters):
        raise TileTypeError(
            f"kernel {kernel.name} takes {len(kernel.parameters)} argument(s), its signature {signature} has "
            f"{len(signature.arguments)}; expected a type for each"
        )
