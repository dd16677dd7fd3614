"""PTX to check: every kernel of tools/ptx_corpus.py, with hints, and random programs with products.

Both are for a process of their own: the folders of examples, benchmarks and tests have modules of the same names.
"""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ptx_corpus  # makes tilewright and the kernels importable

ROOT = Path(__file__).resolve().parents[2]
# A launch of many blocks takes plans of several tiles a block, one of few blocks of parts of tiles.
LAUNCHED = ({}, {"coarsen_tiles": 2}, {"coarsen_tiles": 4}, {"slice_tiles": 2})


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    ptx: str
    hinted: bool = False

    @property
    def has_products(self) -> bool:
        """Asynchronous ones."""
        return "wgmma" in self.ptx


def corpus(target: str, part: int = 0, parts: int = 1) -> Iterator[Program]:
    """Every `parts`-th kernel, with all its hints; each PTX once."""
    seen: set[str] = set()
    kernels = [*ptx_corpus.written_rows(), *ptx_corpus.zoo_rows()]
    for name, kernel, key in kernels[part::parts]:
        for hints in ({}, *(ptx_corpus.VARIANTS if target == "sm_90a" and not kernel.rules.simt else ())):
            about = "".join(f" {hint}={value}" for hint, value in hints.items())
            yield from once(f"{target} {name}{about}", kernel.replace_hints(**hints), key, target, bool(hints), seen)


def random_programs(target: str, seeds: range) -> Iterator[Program]:
    sys.path.insert(0, str(ROOT / "test/random_products"))
    import check
    import choices
    import numbers_of

    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            chosen = choices.choose(seed, "few")
            kernel = check.kernel_of(check.program_of(chosen).source(f"seed {seed}"), Path(folder))
            _, key = kernel.specialization(tuple(check.arguments_of(chosen, numbers_of.NumPy(seed))))
            seen: set[str] = set()
            for hints in LAUNCHED:
                about = "".join(f" {hint}={value}" for hint, value in hints.items())
                with_hints = kernel.replace_hints(**hints) if hints else kernel
                yield from once(f"program {seed}{about}", with_hints, key, target, bool(hints), seen)


def once(name: str, kernel: Any, key: Any, target: str, hinted: bool, seen: set[str]) -> Iterator[Program]:
    """The PTX of a kernel, unless it is refused, or was there."""
    from tilewright.errors import TileError

    try:
        text = ptx_corpus.built(kernel, key, target).code.rstrip(b"\0").decode()
    except TileError:
        return
    if text not in seen:
        seen.add(text)
        yield Program(name, text, hinted)
