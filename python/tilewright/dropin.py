"""Drop-in: `import cuda.tile as ct`, `import cuda.compute` and `from cuda import device` mean Tilewright.

    python -m tilewright.dropin script.py ARGUMENTS      # runs a program written for cuTile as it is
    import tilewright.dropin; tilewright.dropin.install()   # before the first `import cuda.tile`

`cuda.tile` is then the module `tilewright.tile`, `cuda.tile.tune` is `tilewright.tune`, and so for `compilation`.
Other packages under `cuda` stay what they are. cuTile's environment variables mean ours from then on (_VARIABLES),
where ours are not set.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import runpy
import sys
import types
from collections.abc import Sequence
from pathlib import Path

_MODULES = {
    "cuda.compute": "tilewright.compute",
    "cuda.compute.algorithms": "tilewright.compute",
    "cuda.compute.determinism": "tilewright.compute",
    "cuda.compute.iterators": "tilewright.compute",
    "cuda.compute.op": "tilewright.compute",
    "cuda.compute.struct": "tilewright.compute",
    "cuda.compute.types": "tilewright.compute.item_types",
    "cuda.compute.typing": "tilewright.compute.typing",
    "cuda.device": "tilewright.device",
    "cuda.tile": "tilewright.tile",
    "cuda.tile.compilation": "tilewright.compilation",
    "cuda.tile.jax": "tilewright.jax",
    "cuda.tile.tune": "tilewright.tune",
}

# Private in cuTile, but programs take public names from there: TileGym does.
_PRIVATE_MODULES = {
    "cuda.tile._datatype": "tilewright.tile",
    "cuda.tile._numeric_semantics": "tilewright.tile",
    "cuda.tile._stub": "tilewright.tile",
}

_PACKAGES = ("cuda.compute", "cuda.tile")
_PACKAGES_AND_DOTS = tuple(f"{name}." for name in _PACKAGES)

# What cuTile documents, and what it is here; and what is always so: a failed compilation writes what reproduces it.
_VARIABLES = {
    "CUDA_TILE_CACHE_DIR": "TILEWRIGHT_CACHE_DIR",
    "CUDA_TILE_CACHE_SIZE": "TILEWRIGHT_CACHE_SIZE",
    "CUDA_TILE_COMPILER_TIMEOUT_SEC": "TILEWRIGHT_COMPILER_TIMEOUT",
    "CUDA_TILE_LOGS": "TILEWRIGHT_LOG_IR",
    "CUDA_TILE_TEMP_DIR": "TMPDIR",
}
_ALWAYS = {"CUDA_TILE_ENABLE_CRASH_DUMP": "1"}


def _take_variables() -> None:
    for theirs, ours in _VARIABLES.items():
        value = os.environ.get(theirs)
        if value is None or ours in os.environ:
            continue
        if ours == "TILEWRIGHT_CACHE_DIR" and value.lower() in ("", "0", "off", "none"):
            ours, value = "TILEWRIGHT_NO_CACHE", "1"
        os.environ[ours] = value


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `cuda.device`, `cuda.tile` and what is in it, and `cuda` itself where no package of that name is there."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name in _MODULES or name.startswith(_PACKAGES_AND_DOTS):
            return importlib.machinery.ModuleSpec(name, self, is_package=name in _PACKAGES)
        if name == "cuda" and importlib.machinery.PathFinder.find_spec("cuda") is None:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        if spec.name == "cuda":
            return None
        known = _MODULES.get(spec.name) or _PRIVATE_MODULES.get(spec.name)
        if known is None:
            there = " and ".join(_MODULES)
            raise ModuleNotFoundError(f"{spec.name} is not part of Tilewright; there are {there}", name=spec.name)
        return _alias(spec.name, importlib.import_module(known))

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def _alias(name: str, module: types.ModuleType) -> types.ModuleType:
    """A module of another name with the same things in it: the import system writes its own names into it."""
    alias = types.ModuleType(name, module.__doc__)

    def found(attribute: str) -> object:
        inner = f"{name}.{attribute}"  # a module of ours may have the name of one of theirs
        return importlib.import_module(inner) if inner in _MODULES else getattr(module, attribute)

    alias.__getattr__ = found  # type: ignore[method-assign]
    alias.__dir__ = lambda: dir(module)  # type: ignore[method-assign]
    public = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    alias.__dict__.update(__all__=list(public))
    return alias


def install() -> None:
    """Have `import cuda.tile` mean `tilewright.tile` from now on, in this process, and the others likewise."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    imported = sys.modules.get("cuda.tile")
    if imported is not None:
        raise ImportError(
            f"cuda.tile was imported already, from {getattr(imported, '__file__', None) or 'elsewhere'}; "
            "call tilewright.dropin.install() before the first import of it"
        )
    _take_variables()
    sys.meta_path.insert(0, _Finder())


def main(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m tilewright.dropin [-m MODULE | SCRIPT] [ARGUMENTS]")
        return 0 if arguments else 2
    install()
    if arguments[0] == "-m" and len(arguments) > 1:
        sys.argv = list(arguments[1:])
        sys.path[0] = ""
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return 0
    sys.argv = list(arguments)
    sys.path[0] = str(Path(arguments[0]).resolve().parent)
    runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    # `tilewright.dropin` is the same module for the script, not a second one beside __main__.
    sys.exit(importlib.import_module("tilewright.dropin").main(sys.argv[1:]))
