"""Compilation: capture, the stages in order, the disk cache, and what the launcher gets.

    key of a specialization -> capture -> tile IR -> cache? -> lower -> PTX or object -> variant

The cache is addressed by the text of the tile IR, the target and the version, so a hit needs the
capture and nothing after it.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import struct
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

from . import _core, deadline, hints, knobs, link, plans
from .capture import ArrayArgument, Captured, ConstantArgument, ScalarArgument, StructureArgument, capture, symbol
from .dtype import BY_NAME
from .errors import DriverError, TileCompilationError, TileError, TileTypeError, TileValueError
from .times import Times

Key = tuple[tuple[Any, ...], ...]

GPU_STAGES = ("legal", "layout", "pipelined", "nvvm", "llvm")
CPU_STAGES = ("legal", "vector", "llvm")
EMIT_LLVM, EMIT_ASSEMBLY, EMIT_OBJECT = 0, 1, 2
# Bytes of local memory of a thread from which on other plans are tried; where hints share registers out, without these.
MUCH_LOCAL, MUCH_LOCAL_BY_HINTS = 2048, 128
SHARING_HINTS = ("occupancy", "num_warps")


class Image(NamedTuple):
    """Compiled code and what a launch needs to know of it: what the disk cache keeps."""

    code: bytes  # PTX or a cubin, or an object file
    record: bytes  # the launch record (include/tilewright/launch_record.h)
    plan: int = 0  # by which it was made (plans.py)
    is_last: bool = False  # no other plan keeps much less in local memory
    sites: str = ""  # what check mode can report (checking.py)

    @property
    def is_ptx(self) -> bool:
        """The driver assembles it when it is loaded."""
        return self.code.lstrip().startswith((b".version", b"//"))

    @property
    def is_asked_for_room(self) -> bool:
        """A launch may load it to see how many blocks a multiprocessor holds, before it runs this one or another."""
        return _core.asks_for_room(self.record)

    def settled(self) -> Image:
        """Without what a launch decides by which variant it runs: for one that it has decided on."""
        return self._replace(record=_core.settled_record(self.record))

    def pack(self) -> bytes:
        sites = self.sites.encode()
        head = struct.pack("<IIHH", len(self.record), len(sites), self.plan, self.is_last)
        return head + self.record + sites + self.code

    @classmethod
    def unpack(cls, blob: bytes) -> Image | None:
        """What `pack` made, or None: a file in a folder may hold anything."""
        try:
            size, more, plan, is_last = struct.unpack_from("<IIHH", blob)
            record, sites = blob[12 : 12 + size], blob[12 + size : 12 + size + more].decode()
            _core.launch_facts(record)
        except (struct.error, TileError, UnicodeDecodeError):
            return None
        return cls(blob[12 + size + more :], record, plan, bool(is_last), sites)


def capture_kernel(
    kernel: Any, target: str, key: Key, overlapping: bool = False, name: str | None = None, **told: int
) -> Captured:
    """`overlapping`: arrays of the launch may share memory; `name`: the symbol, if not the function's name; `told`:
    hints over the kernel's own."""
    if problem := _core.target_problem(target):
        raise TileValueError(problem)
    arguments = [_argument(entry, kernel.name, name) for entry, name in zip(key, kernel.parameters, strict=True)]
    wanted = kernel.hints_for(target) | ({"may_alias": 1} if overlapping else {}) | told
    extra = 2 if "check" in wanted else 0
    more = (kernel.links, kernel.held, kernel.rows)
    return capture(kernel.function, arguments, target, wanted, kernel.rules, name, extra, *more)


def _argument(entry: tuple[Any, ...], kernel: str, parameter: str) -> Any:
    kind, *facts = entry
    if kind == "const":
        return ConstantArgument(facts[0])
    if kind in ("tuple", "list", "dict", "record"):
        like, parts = facts
        return StructureArgument(kind, like, tuple(_argument(part, kernel, parameter) for part in parts))
    if kind in ("scalar", "number"):
        return ScalarArgument(BY_NAME[facts[0]], facts[1], kind == "number")
    dtype, *rest = facts
    if dtype not in BY_NAME:
        raise TileTypeError(
            f"kernel {kernel}, argument '{parameter}': kernels have no arrays of {dtype}; pass real and imaginary "
            "parts, as in x.view(numpy.float32)"
        )
    return ArrayArgument(BY_NAME[dtype], *rest)


# Hears that a kernel of this context is captured: most of what follows is not Python, and leaves other threads to it.
when_captured: ContextVar[Callable[[], None] | None] = ContextVar("tilewright_when_captured", default=None)

Assembler = Callable[[bytes, str], bytes]  # of PTX for a target
Made = Callable[[Any, Image, Any], None]  # a specialization, its image, and the variant
Fetch = Callable[[str, str, int], Image | None]  # an image that was made elsewhere, by text, target and plan


@dataclasses.dataclass(frozen=True)
class Specialization:
    """A kernel for a target and the facts of its arguments: what makes the variant for a launch, and those that the
    variant turns to for launches that do better otherwise."""

    kernel: Any
    target: str
    key: Key
    overlapping: bool = False  # arrays may share memory
    as_launched: bool = False  # nothing is assumed of the launch's grid and rows
    plan: int = 0  # the first to try (plans.py)
    assembler: Assembler | None = None
    made: Made | None = None  # hears of every variant
    fetch: Fetch | None = None

    def compile(self) -> tuple[Any, list[tuple[Any, str | None, Any]]]:
        """A `_core.CudaKernel` or `_core.CpuKernel`, and the variables outside of the kernel that it was made from."""
        variant, reads, _ = self._compile()
        return variant, reads

    def _compile(self) -> tuple[Any, list[tuple[Any, str | None, Any]], Image]:
        name = self.kernel.name
        times = Times(name, self.target)
        with deadline.running(name):
            with times.step("capture"):
                told = {"as_launched": 1} if self.as_launched else {}
                captured = capture_kernel(self.kernel, self.target, self.key, self.overlapping, name=None, **told)
            text = captured.module.text(needs_places(self.kernel.hints_for(self.target)), True)  # which is verified
            if (hears := when_captured.get()) is not None:
                hears()
            if knobs.log_ir():
                print(text, file=sys.stderr)
            image = self.fetch(text, self.target, self.plan) if self.fetch else None
            image = image or image_of(captured.module, text, self.target, name, times, self._assembler(), self.plan)
        if knobs.times():
            print(times, file=sys.stderr)
        variant = load(image, name, captured.written, self.target, self._better, self._overlapping)
        if not self.target.startswith("cpu"):
            much = MUCH_LOCAL_BY_HINTS if self._plain() else MUCH_LOCAL
            variant.or_else(functools.partial(self._other_plan, text, image), much)
        if self.made is not None:
            self.made(self, image, variant)
        return variant, captured.reads, image

    def _assembler(self) -> Assembler | None:
        """Its own, if not `assemble`; none where the driver assembles a kernel that it loads, at once."""
        by_load = getattr(self.kernel, "is_assembled_by_load", False) and not deadline.is_set()
        return self.assembler or ((lambda ptx, _: ptx) if by_load else None)

    def _plain(self) -> Specialization | None:
        """Without the hints that share registers out; None where there are none."""
        kernel = self.kernel.without_hints(SHARING_HINTS)
        return kernel and dataclasses.replace(self, kernel=kernel, plan=0)

    def _other_plan(self, text: str, image: Image, device: int, problem: str | None, local_bytes: int) -> Any:
        """The variant of another plan, where the driver does not take this one's code, or takes it with so much local
        memory; hints that share registers out are dropped first. None where none does better. The next process
        begins with it, or knows that there is none."""
        if image.is_last and not problem:
            return None
        plan, plain = image.plan, None if problem else self._plain()
        many = problem or local_bytes >= MUCH_LOCAL
        while plain or (many and (plan := _core.next_plan(plan, "registers" if problem else "local memory"))):
            other_one, plain = plain or dataclasses.replace(self, plan=plan), None
            try:
                variant, _, other = other_one._compile()
                variant.load(device)
                used = variant.usage(device)["local_bytes"]
            except TileError:
                continue  # nor does this one
            plan = other.plan if other_one.kernel is self.kernel else plan
            if problem or used < local_bytes // 2:
                if knobs.cache():
                    _core.cache_put(_address(text, self.target), other.pack())
                return variant
        if not problem and knobs.cache():
            _core.cache_put(_address(text, self.target, self.plan), image._replace(is_last=True).pack())
        return None

    def _better(self, kind: str, number: int) -> Any:
        """The same for launches that do better otherwise (`tw_alternative_kind_t` of include/tilewright/runtime.h)."""
        if kind == "as_launched":
            return dataclasses.replace(self, as_launched=True).compile()[0]
        hints = {
            "slice": {"slice_tiles": number},
            "coarsen": {"coarsen_tiles": number},
            "share": {"num_ctas": number},
            "clusters": {"num_ctas": 2, "cluster_axis": number},
            "split_k": {"split_k": 0} if number else {"num_ctas": 1},
        }[kind]
        return dataclasses.replace(self, kernel=self.kernel.replace_hints(**hints)).compile()[0]

    def _overlapping(self, kind: str, number: int) -> Any:
        return dataclasses.replace(self, overlapping=True).compile()[0]


_WITH_PLACES = {"check", "line_info"}  # hints whose code depends on the lines of the program


def needs_places(wanted: Iterable[str]) -> bool:
    """Whether code depends on what locations say: lines, or the names of tiles."""
    return any(name in _WITH_PLACES or hints.tile_of(name) for name in wanted)


def compile_kernel(
    kernel: Any, target: str, key: Key, made: Made | None = None
) -> tuple[Any, list[tuple[Any, str | None, Any]]]:
    return Specialization(kernel, target, key, made=made).compile()


def _address(text: str, target: str, plan: int = 0) -> bytes:
    """Of an image in the disk cache: PTX where no GPU of the target is, and what a driver makes, are two."""
    driver = "" if _device_of(target) is None else f"\ndriver {_core.driver_version()}"
    return _core.hash128(f"{_version()}\n{target}\n{text}" + (f"\nplan {plan}" if plan else "") + driver)


def image_of(
    module: Any,
    text: str,
    target: str,
    name: str,
    times: Times,
    assembler: Assembler | None = None,
    plan: int = 0,
    cached: bool = True,
) -> Image:
    """The image of a module, from the disk cache (if `cached`) or built; `text` is the module's at the stage "tile".

    Safe in several threads, each with a module of its own; they run at the same time, the driver's assembler, too.
    """
    address = _address(text, target, plan)
    cached = cached and knobs.cache()
    wanted = cached and knobs.dump_folder() is None and not knobs.times()  # a dump shows every stage
    blob = _core.cache_get(address) if wanted else None
    image = Image.unpack(blob) if blob is not None else None
    if image is not None:
        return image
    image = _built_in_time(module, target, name, plan) if deadline.is_set() and not assembler else None
    image = image or _build_or_report(module, target, name, text, times, assembler, plan)
    if cached:
        _core.cache_put(address, image.pack())
    return image


def _built_in_time(module: Any, target: str, name: str, plan: int) -> Image | None:
    """The image from a process that can be ended; None where it is refused: `_build_or_report` says why."""
    packed = deadline.build(module.text(True), target, name, plan)
    return Image.unpack(packed) if packed is not None else None


def _build_or_report(
    module: Any, target: str, name: str, text: str, times: Times, assembler: Assembler | None, plan: int
) -> Image:
    """`build`; a failure says where the module is that shows it. What the capture has accepted should compile."""
    try:
        return build(module, target, name, times, assembler, plan)
    except (TileTypeError, TileValueError, TileCompilationError) as error:
        if module.does_not_fit():
            raise  # the program's tiles are too large
        raise TileCompilationError(
            f"kernel {name} does not compile for {target}: {error.message}\n{_reproducer(text)}", error.places
        ) from error


@functools.cache
def _reproducer(text: str) -> str:
    """Writes down a module at which the compiler failed; a sentence that says where."""
    try:
        file, path = tempfile.mkstemp(prefix="tilewright-", suffix=".mlir")
        with os.fdopen(file, "w") as out:
            out.write(text)
    except OSError:
        return "TILEWRIGHT_DUMP=DIR writes each stage down"
    return f"for a report: tw-opt shows it from {path}"


@functools.cache
def _version() -> str:
    """Names this build of the compiler: the extension's file changes with every build."""
    from . import __version__

    build = os.stat(_core.__file__)
    return f"tilewright {__version__} {build.st_size} {build.st_mtime_ns} {_core.LAUNCH_RECORD_VERSION}"


def build(
    module: Any, target: str, name: str, times: Times, assembler: Assembler | None = None, plan: int = 0
) -> Image:
    """Lower a module at the stage "tile" to code, by the first plan from `plan` on that fits and can be assembled."""
    first: TileCompilationError | None = None
    while True:
        try:
            return _build(module, target, name, times, assembler, plan)
        except AssemblerError as error:
            first = first or error
            plan = _core.next_plan(plan_of(module), "registers")
            if not plan:
                raise first from None


class AssemblerError(TileCompilationError):
    """The driver's assembler does not take what it was given: most often for want of registers."""


def _build(module: Any, target: str, name: str, times: Times, assembler: Assembler | None, plan: int) -> Image:
    dump = _Dump(knobs.dump_folder(), name)
    dump.write("tile", "mlir", module)
    cpu = target.startswith("cpu")

    def run(stage: str) -> plans.Diagnostics:
        with times.step(stage):
            told: plans.Diagnostics = []
            for name in dump.passes(target, stage):
                told += plans.step(module, name)
                dump.write(name, "mlir", module)
            told += plans.step(module, stage)
        dump.write(stage, "mlir", module)
        return told

    stages = CPU_STAGES if cpu else GPU_STAGES
    shown = dump.folder is not None or knobs.times()
    plans.lower(module, stages if shown else stages[-1:], run, plan)  # at once: to come back waits for other threads
    if cpu:
        dump.write("asm", "s", lambda: module.emit(EMIT_ASSEMBLY).decode())
        with times.step("object"):
            code = module.emit(EMIT_OBJECT)
        return Image(code, record_of(module), sites=sites_of(module))
    with times.step("ptx"):
        ptx = module.emit(EMIT_ASSEMBLY)
    dump.write("ptx", "ptx", ptx.decode())
    with times.step("driver's assembler"):
        try:
            return Image(
                _assembled(module, ptx, target, assembler or assemble),
                record_of(module),
                plan_of(module),
                sites=sites_of(module),
            )
        except TileCompilationError as error:
            raise AssemblerError(error.message, error.places) from error


def _assembled(module: Any, ptx: bytes, target: str, assembler: Assembler) -> bytes:
    links = module.attribute("tile.links")
    return link.linked(ptx, target, link.files_of(links), _device_of(target)) if links else assembler(ptx, target)


def plan_of(module: Any) -> int:
    """The plan that the module was taken through the stages by."""
    return int((module.attribute("tile.plan") or "0").split(":")[0])


def record_of(module: Any) -> bytes:
    """The launch record of a module's one kernel."""
    ((_, record),) = module.kernels()
    return record


def sites_of(module: Any) -> str:
    """What the compiler says of the places that it can report."""
    return module.attribute("tile.check_sites") or ""


def assemble(ptx: bytes, target: str) -> bytes:
    """The cubin for a GPU of the target, or the PTX itself where there is none.

    Nor where registers move between warps: the driver's linker, which alone hands out cubins, compiles for several
    units, and ptxas ignores setmaxnreg then (C7504). The driver compiles PTX that it loads as a whole, and caches it.
    """
    device = _device_of(target)
    return ptx if device is None or b"setmaxnreg" in ptx else _core.ptx_to_cubin(ptx.decode(), device)[0]


def _device_of(target: str) -> int | None:
    """One that this process uses anyway, of which there are arrays: a context on another one would take half a gigabyte
    of a GPU that may be another process's."""
    able = _devices_of(target)
    return next((ordinal for ordinal in able if _core.device_info(ordinal)["is_open"]), able[0] if able else None)


@functools.cache
def _devices_of(target: str) -> tuple[int, ...]:
    try:
        rows = [_core.device_info(ordinal)["capability"] for ordinal in range(_core.device_count())]
    except DriverError:
        return ()
    return tuple(i for i, (major, minor) in enumerate(rows) if target.rstrip("af") == f"sm_{major}{minor}")


def load(
    image: Image,
    name: str,
    written: int,
    target: str,
    better: Callable[[str, int], Any] | None = None,
    overlapping: Callable[[str, int], Any] | None = None,
) -> Any:
    """`better` makes the kernel for launches that do better with another, of a kind and a number, if there are such.
    `overlapping` makes the one for arrays that share memory, if this one is only right for others."""
    entry = symbol(name)
    if target.startswith("cpu"):
        code = _core.load_object(image.code, entry)
        return _core.CpuKernel(code.address, name, image.record, written, code, overlapping)
    return _core.CudaKernel(image.code, entry, image.record, written, better, overlapping)


def _open_own(path: str, flags: int) -> int:
    """In a folder of everybody's, a link in the file's place must not lead to another file of the user's."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


class _Dump:
    """One file a stage under TILEWRIGHT_DUMP, and a pass of TILEWRIGHT_DUMP_AFTER; tw-opt goes on from any of them."""

    counter = 0

    def __init__(self, folder: str | None, name: str) -> None:
        self.folder = Path(folder) if folder else None
        _Dump.counter += 1
        self.stem = f"{symbol(name)}.{os.getpid()}.{_Dump.counter}"
        self.stage = 0
        if folder in ("1", "true", "all"):
            self._give_up(f"{folder} is no folder; write TILEWRIGHT_DUMP=dump, or TILEWRIGHT_DUMP=./{folder}")

    def passes(self, target: str, stage: str) -> list[str]:
        """The passes of a stage after which the text is wanted."""
        wanted = knobs.dump_after() if self.folder is not None else []
        names = [name for its, name, _ in _core.passes(target) if its == stage] if wanted else []
        return [name for name in names if name in wanted or "all" in wanted]

    def write(self, stage: str, suffix: str, content: Any) -> None:
        """`content` is text, a module, or what gives the text."""
        if self.folder is None:
            return
        text = content if isinstance(content, str) else content() if callable(content) else content.text(True)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"{self.stem}.{self.stage}-{stage}.{suffix}"
            with open(path, "w", opener=_open_own) as file:
                file.write(text)
        except OSError as error:  # a diagnosis that fails must not stop what it looks at
            self._give_up(error)
        self.stage += 1

    def _give_up(self, error: OSError | str) -> None:
        import warnings

        warnings.warn(f"TILEWRIGHT_DUMP: nothing is written: {error}", stacklevel=2)
        self.folder = None
