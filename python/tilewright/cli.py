"""The command `tilewright`: see what the compiler does, draw layouts, check the installation, manage the cache.

    tilewright compile matmul.py:matmul --arg 'A=f16[?,?]' --arg 'B=f16[?,?]' --arg 'C=f16[?,?]' \\
        --arg TM=128 --arg TN=128 --arg TK=32 --target sm_90a --emit ptx
    tilewright layout matmul.py:matmul … --value mma -o accumulator.svg
    tilewright tune matmul.py:matmul --arg 'A=bf16[4096,4096]' … --arg TM=128 --arg TN=128 --arg TK=64 \\
        --space TM=64,128 --space TN=128,256 --grid 'cdiv(A.shape[0], TM), cdiv(B.shape[1], TN)' --plot sweep.svg
    tilewright roofline matmul.py:matmul … --grid … -o roofline.svg
    tilewright sweep matmul.py:matmul --shapes shapes.toml --axis TM=64..256*2 --axis family --on auto -o records/
    tilewright records best records/
    tilewright fit records/
    tilewright doctor
    tilewright cache [info | path | clear]

Nothing here needs a GPU (tune and roofline measure where they are told to); `--emit sass` needs ptxas and a
disassembler.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import traceback
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import hints, toolkit
from .errors import TileError, TileValueError
from .remarks import text as remarks_text
from .sweep.options import add_parsers
from .times import Times

GPU_STAGES = ("tile", "legal", "layout", "pipelined", "nvvm", "llvm", "ptx", "sass")
CPU_STAGES = ("tile", "legal", "vector", "llvm", "asm")

SHORT_DTYPES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "tf32": "tfloat32",
    "f32": "float32",
    "f64": "float64",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "bool": "bool_",
    "i1": "bool_",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}


# --- arguments: from text to the key of a specialization --------------------------------------------------------------


def parse_argument(text: str) -> tuple[str, tuple[Any, ...]]:
    """`A=f16[?,?]`, `n=i32`, `n=i32|16`, `TM=128` as (name, one entry of a specialization's key).

    An extent is a number, whose divisibility is then known, or `?`, which stands for any multiple of 16 that makes rows
    of whole lines of 128 bytes. Arrays are taken to be row-major and to start at a multiple of 16 bytes;
    `f16[?,?]unaligned` claims nothing. `i32|16` stands for a multiple of 16, which launches compile for, too.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise TileValueError(f"--arg {text!r}: expected NAME=dtype[extents], NAME=dtype or NAME=constant")
    value = value.strip()
    array = re.fullmatch(r"(\w+)\[([^\]]*)\](unaligned)?", value)
    if array:
        return name, _array_key(text, *array.groups())
    number, multiple, by = value.partition("|")
    dtype = _dtype_name(number)
    if dtype and (not multiple or (by == "16" and "int" in dtype)):
        return name, ("scalar", dtype, 16 if multiple else 1)
    try:
        return name, ("const", ast.literal_eval(value))
    except (ValueError, SyntaxError):
        raise TileValueError(
            f"--arg {text!r}: {value!r} is neither a dtype ({', '.join(sorted(SHORT_DTYPES))}) nor a constant"
        ) from None


def _dtype_name(text: str) -> str | None:
    from . import dtype

    full = SHORT_DTYPES.get(text, text)
    return full if isinstance(getattr(dtype, full, None), dtype.DType) else None


def _array_key(text: str, element: str, extents: str, unaligned: str | None) -> tuple[Any, ...]:
    from . import dtype as dtypes

    dtype = _dtype_name(element)
    if dtype is None:
        raise TileValueError(f"--arg {text!r}: unknown dtype {element!r}; there are {', '.join(sorted(SHORT_DTYPES))}")
    shape: list[int | None] = []
    for extent in filter(None, (part.strip() for part in extents.split(","))):
        if extent != "?" and not extent.isdigit():
            raise TileValueError(f"--arg {text!r}: the extent {extent!r} is neither a number nor '?'")
        shape.append(None if extent == "?" else int(extent))
    align = 1 if unaligned else 16
    divisors = tuple(16 if not unaligned and (n is None or n % 16 == 0) else 1 for n in shape)
    per_16_bytes, per_line = (max(1, n * 8 // getattr(dtypes, dtype).bits) for n in (16, 128))
    strides = []
    for dim in range(len(shape)):
        row = shape[-1]
        if dim == len(shape) - 1:
            strides.append((1, 1))
        else:
            known = [n for n in (per_line, per_16_bytes) if row is None or row % n == 0]
            strides.append((0, 1 if unaligned or not known else known[0]))
    outer = [divisor for _, divisor in strides[:-1]]
    tma = align == 16 and 1 <= len(shape) <= 5 and 0 not in shape and all(n % per_16_bytes == 0 for n in outer)
    return ("array", dtype, len(shape), align, divisors, tuple(strides), True, tma)


def load_kernel(place: str) -> Any:
    """The kernel named by `FILE:KERNEL` or `module:KERNEL`."""
    from .kernel import kernel

    file, _, name = place.rpartition(":")
    if not file or not name:
        raise TileValueError(f"{place!r}: expected FILE:KERNEL, for example matmul.py:matmul")
    with contextlib.redirect_stdout(sys.stderr):  # stdout is for what the command makes
        module = _run_file(_example(Path(file))) if file.endswith(".py") else _import(file)
    found = getattr(module, name, None)
    if not isinstance(found, kernel):
        kernels = [key for key, value in vars(module).items() if isinstance(value, kernel)]
        raise TileValueError(f"{file} has no kernel {name!r}; it has {', '.join(kernels) or 'none'}")
    return found


def examples() -> Path | None:
    """The folder of the examples, which an installed package has in it."""
    here = Path(__file__).parent
    return next((folder for folder in (here / "examples", here.parent / "examples") if folder.is_dir()), None)


def _example(path: Path) -> Path:
    """`python/examples/NAME`, as the documentation has it, wherever the examples are; any other path as it is."""
    folder = examples()
    if path.is_file() or folder is None or path.parts[:2] != ("python", "examples"):
        return path
    return folder.joinpath(*path.parts[2:])


def _run_file(path: Path) -> types.ModuleType:
    if not path.is_file():
        raise TileValueError(f"there is no file {str(path)!r}")
    sys.path.insert(0, str(path.parent.resolve()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except TileError:
        raise
    except Exception as error:
        raise TileValueError(f"{path} does not run: {_told(error)}") from error
    return module


def _import(name: str) -> types.ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise TileValueError(f"{name!r} is neither a file that ends in .py nor a module: {error}") from error
    except TileError:
        raise
    except Exception as error:
        raise TileValueError(f"the module {name!r} does not run: {_told(error)}") from error


def _told(error: Exception) -> str:
    """The end of a traceback: the line, and what went wrong there."""
    lines = traceback.format_exception(error, limit=0 if isinstance(error, SyntaxError) else -1)
    return "\n" + "".join(line for line in lines if not line.startswith("Traceback")).rstrip()


def check_output(path: str | None) -> None:
    """Before the work is done: whether its result can be written there."""
    if path is None:
        return
    folder = Path(path).parent
    if not folder.is_dir() or Path(path).is_dir() or not os.access(folder, os.W_OK):
        what = "is a folder" if Path(path).is_dir() else f"lies in {str(folder)!r}, which is no folder to write in"
        raise TileValueError(f"the output {path!r} {what}")


def specialization(kernel: Any, arguments: Sequence[str]) -> tuple[Any, ...]:
    """The key of a specialization, in the order of the kernel's parameters."""
    entries = [parse_argument(text) for text in arguments]
    given = dict(entries)
    twice = [name for name, _ in entries if [n for n, _ in entries].count(name) > 1]
    if twice:
        raise TileValueError(
            f"--arg {twice[0]}=… is given {[n for n, _ in entries].count(twice[0])} times; expected once"
        )
    parameters = list(kernel.parameters)
    unknown = [name for name in given if name not in parameters]
    missing = [name for name in parameters if name not in given]
    if unknown:
        raise TileValueError(f"kernel {kernel.name} has no parameter {unknown[0]!r}; it has {', '.join(parameters)}")
    if missing:
        raise TileValueError(
            f"kernel {kernel.name}: say what {', '.join(missing)} is, one --arg each "
            "(NAME=f32[?,?] an array, NAME=i32 a scalar, NAME=128 a constant)"
        )
    return tuple(given[name] for name in parameters)


# --- stages ----------------------------------------------------------------------------------------------------------


def lower(
    kernel: Any, key: tuple[Any, ...], target: str, stage: str, remarks: bool = False, times: Times | None = None
) -> bytes:
    """The text of a kernel at a stage, or after a pass; how long each step took goes to `times`."""
    from . import _core, plans
    from .compile import EMIT_ASSEMBLY

    times = times if times is not None else Times(kernel.name, target)
    with times.step("capture"):
        module = kernel.capture(target, key)
    stages = CPU_STAGES if target.startswith("cpu") else GPU_STAGES
    stage_of = {name: stage for stage, name, _ in _core.passes(target)}
    if stage not in stages and stage not in stage_of:
        raise TileValueError(
            f"target {target} has no stage {stage!r}; it has {', '.join(stages)}, and the passes {', '.join(stage_of)}"
        )
    if stage == "tile":
        if remarks:
            raise TileValueError("--remarks needs a later stage than tile, where nothing is decided: leave --emit away")
        return module.text().encode()
    final = stage in ("ptx", "sass", "asm")
    steps = stages[1 : stages.index("llvm" if final else stage_of.get(stage, stage)) + 1]

    def run(step: str) -> plans.Diagnostics:
        with times.step(step):
            return plans.step(module, step)

    diagnostics = plans.lower(module, (*steps[:-1], stage) if stage in stage_of else steps, run)
    if remarks:
        print(remarks_text(f"{kernel.name} for {target}", diagnostics), file=sys.stderr)
    if not final:
        named = f"{layouts_text(module, kernel.name)}\n" if stage == "layout" else ""
        return (named + module.text()).encode()
    with times.step("asm" if target.startswith("cpu") else "ptx"):
        assembly = module.emit(EMIT_ASSEMBLY)
    return disassemble(assembly, target) if stage == "sass" else assembly


def layouts_text(module: Any, kernel: str) -> str:
    """The layouts that tiles with names may have, as comments: `layout(x)` and its values, the one that is taken with
    a star, and what the kernel costs with each."""
    lines = []
    for names, tile, taken, choices in module.layouts(kernel):
        lines.append(f"// {', '.join(f'layout({name})' for name in names)}: {tile}")
        wide = max(len(kind) for kind, *_ in choices)
        for number, (kind, bits, slots) in enumerate(choices):
            lines.append(f"//  {'*' if number == taken else ' '} {kind:{wide}}  {slots:7} slots  {bits}")
    return "\n".join(lines)


def find_tool(name: str) -> str:
    """A program of the CUDA toolkit."""
    found = toolkit.find_tool(name)
    if found is None:
        raise TileValueError(f"--emit sass needs {name}: install the CUDA toolkit, or look at --emit ptx instead")
    return found


def disassemble(ptx: bytes, target: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_bytes(ptx)
        assembled = subprocess.run([find_tool("ptxas"), f"-arch={target}", source, "-o", cubin], capture_output=True)
        if assembled.returncode:
            raise TileValueError(f"ptxas refused the PTX for {target}:\n{assembled.stderr.decode()}")
        return subprocess.run([find_tool("nvdisasm"), "-c", cubin], capture_output=True, check=True).stdout


def command_compile(options: argparse.Namespace) -> int:
    check_output(options.output)
    kernel = load_kernel(options.kernel)
    times = Times(kernel.name, options.target)
    stage = options.emit or ("llvm" if options.remarks else "tile")
    text = lower(kernel, specialization(kernel, options.arg), options.target, stage, options.remarks, times)
    if options.times:
        print(times, file=sys.stderr)
    if options.output:
        Path(options.output).write_bytes(text)
    elif options.emit or not options.remarks:
        sys.stdout.write(text.decode(errors="replace"))
    return 0


# --- layout ----------------------------------------------------------------------------------------------------------


def command_layout(options: argparse.Namespace) -> int:
    from . import picture

    check_output(options.output if options.value is not None else None)
    if options.subject.startswith(("tensor<", "!tile.buffer<")):
        layout, title = picture.parse_layout(options.subject), ""
    else:
        kernel = load_kernel(options.subject)
        text = lower(kernel, specialization(kernel, options.arg), options.target, options.stage).decode()
        found = picture.layouts_of(text)
        if options.value is None:
            for number, (line, layout) in enumerate(found):
                print(f"{number:4}  {'x'.join(map(str, layout.shape))}x{layout.element:8} {line}")
            print("choose one: --value NUMBER, or --value TEXT for the first line that has the text", file=sys.stderr)
            return 0
        line, layout = _choose(found, options.value)
        title = f"{kernel.name}: {line.partition('{')[0].strip()}"
    path = picture.write(layout, options.output, title)
    print(path)
    return 0


def _choose(found: list[tuple[str, Any]], value: str) -> tuple[str, Any]:
    if value.isdigit() and int(value) < len(found):
        return found[int(value)]
    matches = [entry for entry in found if value in entry[0]]
    if value.isdigit() or not matches:
        raise TileValueError(f"no value {value!r} with a layout; call it without --value to see all {len(found)}")
    return matches[0]


# --- tune and roofline ------------------------------------------------------------------------------------------------


def _measure(options: argparse.Namespace, space: dict[str, list[Any]], **settings: Any) -> Any:
    """A search on random arrays that the arguments describe."""
    from . import tune
    from .tune.samples import make_arguments, read_grid

    check_output(getattr(options, "plot", None) or getattr(options, "output", None))
    kernel = load_kernel(options.kernel)
    key = specialization(kernel, options.arg)
    args, memory = make_arguments(kernel, key, options.arg, options.device)
    try:
        grid = read_grid(kernel, options.arg, options.grid)
        return tune.search(kernel, args, space=space, grid=grid, budget=options.budget, **settings)
    finally:
        memory.close()


def _space_value(name: str, text: str) -> Any:
    if name in hints.WORDS or hints.tile_of(name):
        return hints.read_word(name, text)
    return None if hints.is_auto(name, text) else ast.literal_eval(text)


def parse_space(texts: Sequence[str]) -> dict[str, list[Any]]:
    """`TM=64,128` as {"TM": [64, 128]}; a value `auto` leaves a hint to the compiler."""
    found: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        try:
            found[name] = [_space_value(hints.full_name(name), v.strip()) for v in values.split(",")]
        except (ValueError, SyntaxError):
            equals = ""
        if not equals:
            raise TileValueError(f"--space {text!r}: expected NAME=VALUE,VALUE,… as in TM=64,128 or num_warps=auto,4,8")
    return found


def command_tune(options: argparse.Namespace) -> int:
    result = _measure(
        options,
        parse_space(options.space),
        limit=options.limit or None,
        timeout=options.timeout,
        record_file=not options.forget,
    )
    print(result)
    if result.speedup is not None:
        print(f"{result.speedup:.3f} times as fast as given")
    if result.path is not None:
        print(f"kept in {result.path}")
    if options.plot:
        result.plot(options.plot)
        print(options.plot)
    return 0


def command_roofline(options: argparse.Namespace) -> int:
    from .tune import plot

    result = _measure(options, {}, record_file=None)
    trial = result.best
    operations = trial.work.flop or trial.work.elements
    seconds = trial.measurement.median
    print(f"{result.problem.kernel.name} on {result.machine.name}: {trial.measurement}")
    print(f"{operations / seconds / 1e12:.4g} T operations/s, {trial.work.unique / seconds / 1e9:.4g} GB/s")
    point = plot.Point(result.problem.kernel.name, trial.work.intensity, operations / seconds, plot.BEST)
    plot.roofline(
        result.machine, [point], [trial.work.bits], f"{options.kernel} on {result.machine.name}", options.output
    )
    print(options.output)
    return 0


# --- doctor ----------------------------------------------------------------------------------------------------------


def diagnose() -> list[tuple[bool | None, str, str]]:
    """(fine, subject, what was found and what to do about it) for each thing looked at; None: optional and absent."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    findings: list[tuple[bool | None, str, str]] = []
    findings.append((sys.version_info >= (3, 11), "Python", f"{platform.python_version()} at {sys.executable}"))
    try:
        from . import _core
    except ImportError as error:
        advice = "run `make build` in the source tree, or reinstall the wheel"
        return [*findings, (False, "compiler", f"{error}; {advice}")]
    findings.append((True, "tilewright", f"{_version()}, compiler at {_core.__file__}"))
    if (folder := examples()) is not None:
        findings.append((True, "examples", str(folder)))
    findings.append((True, "CPU back end", f"{platform.machine()}, {_core.cpu_threads()} threads"))
    findings += _diagnose_gpu(_core)
    cache = _core.cache_info()
    if cache["problem"]:
        advice = "kernels are compiled again in each process; set TILEWRIGHT_CACHE_DIR to a folder of yours"
        findings.append((False, "disk cache", f"{cache['path'] or 'none'}: {cache['problem']}; {advice}"))
    else:
        size = f"{cache['entries']} entries, {cache['bytes'] / 1e6:.1f} of {cache['limit'] / 1e6:.0f} MB"
        findings.append((True, "disk cache", f"{cache['path']}: {size}"))
    uses = {
        "numpy": "arrays on the CPU",
        "ml_dtypes": "bfloat16 and the 8-bit floats in NumPy",
        "torch": "tensors on a GPU, and the peer of the benchmarks",
        "cupy": "arrays on a GPU",
        "rich": "the table of the demo, the progress of tuning",
        "matplotlib": "layout pictures as PNG, pictures of tuning",
    }
    for package, use in uses.items():
        try:
            findings.append((True, package, version(package)))
        except PackageNotFoundError:
            findings.append((None, package, f"not installed; used for {use}"))
    try:
        findings.append((True, "ptxas", find_tool("ptxas")))
    except TileError:
        findings.append((None, "ptxas", "not found; used by --emit sass only, kernels go to the driver as PTX"))
    return findings


def _diagnose_gpu(core: Any) -> list[tuple[bool | None, str, str]]:
    try:
        driver = core.driver_version()
        count = core.device_count()
    except TileError as error:
        return [(None, "GPU", " ".join(str(error).split()) + " (kernels run on the CPU meanwhile)")]
    findings: list[tuple[bool | None, str, str]] = [(True, "driver", f"CUDA {driver // 1000}.{driver % 1000 // 10}")]
    for ordinal in range(count):
        device = core.device_info(ordinal)
        major, minor = device["capability"]
        text = (
            f"{device['name']}, sm_{major}{minor}, {device['sm_count']} SMs, {device['memory_bytes'] / 2**30:.0f} GiB"
        )
        if (major, minor) < (8, 0):
            findings.append((False, f"GPU {ordinal}", f"{text}: too old, sm_80 (Ampere) or later is needed"))
        else:
            findings.append((True, f"GPU {ordinal}", text))
    return findings


def command_doctor(options: argparse.Namespace) -> int:
    findings = diagnose()
    width = max(len(subject) for _, subject, _ in findings)
    for fine, subject, text in findings:
        print(f"{ {True: 'ok', False: '!!', None: '--'}[fine] }  {subject:{width}}  {text}")
    return int(any(fine is False for fine, _, _ in findings))


# --- cache -----------------------------------------------------------------------------------------------------------


def command_cache(options: argparse.Namespace) -> int:
    from . import _core

    if options.action == "clear":
        before = _core.cache_info()["entries"]
        _core.cache_clear()
        print(f"removed {before} entries")
        return 0
    cache = _core.cache_info()
    if options.action == "path":
        print(cache["path"])
    else:
        print(f"{cache['path']}: {cache['entries']} entries, {cache['bytes']} bytes of {cache['limit']}")
        if cache["problem"]:
            print(f"not used: {cache['problem']}")
    return 0


# --- the command -----------------------------------------------------------------------------------------------------


_ARGUMENT: dict[str, Any] = {"action": "append", "default": [], "metavar": "NAME=WHAT"}
_ARGUMENT_HELP = (
    "one parameter of the kernel; repeat it for each. A=f16[?,?] or A=f32[1000,777]: an array; n=i32: a scalar; "
    "TM=128: a constant"
)
_KERNEL_HELP = "a Python file, and the name of a kernel in it"
_TARGET_HELP = "cpu, sm_80, sm_89, sm_90a, … (default: sm_90a)"


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="tilewright", description="Tile programs in Python, on GPUs and CPUs.")
    top.add_argument("--version", action="version", version=f"tilewright {_version()}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    _add_compile(commands)
    _add_layout(commands)
    _add_tune(commands)
    _add_roofline(commands)
    add_parsers(commands)
    _add_doctor(commands)
    _add_cache(commands)
    return top


def _add_compile(commands: Any) -> None:
    compile_ = commands.add_parser(
        "compile",
        help="print a kernel at a stage of its compilation",
        description="Compiles a kernel for a target, and prints it at a stage of the compilation. Needs no GPU.",
        epilog="example: tilewright compile python/examples/softmax.py:softmax --arg 'X=bf16[?,?]' --arg 'Y=bf16[?,?]' "
        "--arg TN=4096 --emit ptx",
    )
    compile_.add_argument("kernel", metavar="FILE:KERNEL", help=_KERNEL_HELP)
    compile_.add_argument("--arg", **_ARGUMENT, help=_ARGUMENT_HELP)
    compile_.add_argument("--target", default="sm_90a", help=_TARGET_HELP)
    stages = ", ".join(dict.fromkeys((*GPU_STAGES, *CPU_STAGES)))
    emit = (
        f"what to print: {stages}; or the IR after a pass, as tile-assign-layouts (default: tile, or nothing with "
        "--remarks)"
    )
    compile_.add_argument("--emit", metavar="STAGE", help=emit)
    compile_.add_argument("--remarks", action="store_true", help="list on stderr what the compiler decided, and why")
    compile_.add_argument("--times", action="store_true", help="list on stderr how long each step took")
    compile_.add_argument("-o", "--output", metavar="FILE", help="write to a file (default: stdout)")
    compile_.set_defaults(run=command_compile)


def _add_layout(commands: Any) -> None:
    layout = commands.add_parser(
        "layout",
        help="draw which thread holds which element of a tile",
        description="Draws the layout of a tile: which lane of which warp holds an element, in which register. Without "
        "--value it lists the tiles of the kernel.",
    )
    layout.add_argument(
        "subject",
        metavar="FILE:KERNEL|TYPE",
        help="a kernel, or a type as the IR has it: tensor<16x8xf32, #tile.linear<…>>",
    )
    layout.add_argument("--arg", **_ARGUMENT, help=_ARGUMENT_HELP)
    layout.add_argument("--target", default="sm_90a", help=_TARGET_HELP)
    layout.add_argument(
        "--stage", default="layout", choices=["layout", "pipelined"], help="when to look (default: layout)"
    )
    layout.add_argument("--value", help="the tile to draw: its number in the list, or a text that its line has")
    layout.add_argument(
        "-o", "--output", default="layout.svg", metavar="FILE", help=".svg or .png (default: layout.svg)"
    )
    layout.set_defaults(run=command_layout)


def _measured() -> argparse.ArgumentParser:
    """The options of commands that launch a kernel."""
    measured = argparse.ArgumentParser(add_help=False)
    measured.add_argument("kernel", metavar="FILE:KERNEL", help=_KERNEL_HELP)
    measured.add_argument(
        "--arg",
        **_ARGUMENT,
        help="one parameter of the kernel; repeat it for each. A=bf16[4096,4096]: an array of random numbers; n=1000 "
        "or TM=128: a value",
    )
    measured.add_argument(
        "--grid",
        required=True,
        metavar="EXPR",
        help="blocks along each axis, by shapes and constants: 'cdiv(A.shape[0], TM), cdiv(B.shape[1], TN)'",
    )
    measured.add_argument("--device", default="auto", help="cpu, cuda or cuda:1 (default: cuda where there is a GPU)")
    measured.add_argument(
        "--budget", type=float, default=120.0, metavar="SECONDS", help="the most that measuring may take (default: 120)"
    )
    return measured


def _add_tune(commands: Any) -> None:
    tune = commands.add_parser(
        "tune",
        parents=[_measured()],
        help="find the quickest constants and hints of a kernel",
        description="Every combination of the --space options is a candidate. The --arg options give the kernel as it "
        "stands; a candidate must give the same result. The cost model ranks them, and the best are compiled and "
        "measured in a process of their own. A candidate that hangs, faults or is wrong is reported and dropped. "
        "tune.launch finds the winner in the record.",
        epilog="example: tilewright tune python/examples/vector_add.py:vector_add --arg 'A=f32[10000000]' "
        "--arg 'B=f32[10000000]' --arg 'C=f32[10000000]' --arg T=1024 --space T=512,1024,2048,4096 "
        "--grid 'cdiv(A.shape[0], T)' --plot sweep.svg",
    )
    tune.add_argument(
        "--space",
        action="append",
        default=[],
        metavar="NAME=VALUES",
        help="values to try of one constant or hint; repeat it for each: TM=64,128 or num_warps=auto,4,8",
    )
    tune.add_argument("--limit", type=int, default=24, help="how many candidates to measure; 0: all (default: 24)")
    tune.add_argument(
        "--timeout", type=float, default=10.0, metavar="SECONDS", help="a launch that takes longer hangs (default: 10)"
    )
    tune.add_argument("--forget", action="store_true", help="do not write the winner to the record")
    tune.add_argument("--plot", metavar="FILE", help="draw the times, a heat map and the roofline: .svg or .png")
    tune.set_defaults(run=command_tune)


def _add_roofline(commands: Any) -> None:
    roofline = commands.add_parser(
        "roofline",
        parents=[_measured()],
        help="measure a kernel, and draw it under the peaks of the device",
        description="Measures a kernel, and draws its rate (operations/s) over its intensity (operations/byte), under "
        "the peaks of the device.",
    )
    roofline.add_argument(
        "-o", "--output", default="roofline.svg", metavar="FILE", help=".svg or .png (default: roofline.svg)"
    )
    roofline.set_defaults(run=command_roofline)


def _add_doctor(commands: Any) -> None:
    doctor = commands.add_parser(
        "doctor",
        help="check this machine",
        description="Lists what was found on this machine (devices, driver, compiler, caches), and what to do about "
        "what is missing.",
    )
    doctor.set_defaults(run=command_doctor)


def _add_cache(commands: Any) -> None:
    cache = commands.add_parser("cache", help="look at, or empty, the cache of compiled kernels on disk")
    cache.add_argument(
        "action",
        nargs="?",
        default="info",
        choices=["info", "path", "clear"],
        help="info: folder, size and limit (default); path: the folder alone; clear: remove all entries",
    )
    cache.set_defaults(run=command_cache)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("tilewright")
    except PackageNotFoundError:
        return "from a source tree"


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        return options.run(options)
    except TileError as error:
        print(f"tilewright: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        return 0
    except OSError as error:
        print(f"tilewright: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
