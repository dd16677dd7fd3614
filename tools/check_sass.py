#!/usr/bin/env python3
"""Check what ptxas makes of a kernel: each asynchronous product keeps its operands and sums until the wait for it.

    check_sass.py FILE.ptx [--ptxas VERSION|PATH ...]
    check_sass.py FILE.cubin
    check_sass.py --corpus sm_90a [--part 0/8]          every kernel of tools/ptx_corpus.py, with hints
    check_sass.py --random 100 [--seed 0]               programs of test/random_products, and plans that launches take

PTX is assembled by each ptxas of tools/ptxas.txt (`make build/stamp/ptxas` brings them), or those named. Prints each
finding with its instruction and the reason; exits with 1 if machine code is wrong, with 2 if ptxas refuses the file.
What is proved, and what is not: docs/design/machine-code.md.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from sasscheck.check import NotAssembledError, Report, assemblers, check_cubin, check_ptx, check_together, tool
from sasscheck.modules import header
from sasscheck.programs import Program, corpus, random_programs

TOGETHER = 32  # modules in one call of ptxas and of nvdisasm


def chosen(names: list[str]) -> dict[str, str]:
    known = assemblers() or {"of this machine": tool("ptxas")}
    return {name: known.get(name, name) for name in names} if names else known


def show(title: str, report: Report) -> int:
    count = sum(i.is_product for k in report.kernels for i in k.instructions)
    print(f"{title}: {count} products, {len(report.findings)} findings")
    for finding in report.findings:
        print(f"  {finding}")
    return int(bool(report.wrong))


def check(name: str, text: str, ptxas: str, version: str, quiet: bool = False) -> int:
    title = f"{name}, ptxas {version}"
    try:
        report = check_ptx(text, ptxas, tool("nvdisasm"))
    except NotAssembledError as refusal:
        print(f"{title}: refused\n  {refusal}")
        return 2
    return show(title, report) if report.findings or not quiet else 0


def check_file(path: Path, assemblers: dict[str, str]) -> int:
    if path.read_bytes()[:4] == b"\x7fELF":
        return show(str(path), check_cubin(path, tool("nvdisasm")))
    return max(check(str(path), path.read_text(), ptxas, version) for version, ptxas in assemblers.items())


def check_programs(programs: Iterator[Program], assemblers: dict[str, str]) -> int:
    found, count = {0}, 0
    while several := list(itertools.islice(programs, TOGETHER)):
        count += len(several)
        for version in assemblers:
            groups: dict[tuple[object, ...], list[Program]] = {}
            for program in several:
                if version in versions_for(program, list(assemblers)):
                    groups.setdefault((program.has_products, header(program.ptx)), []).append(program)
            found |= {check_group(group, assemblers[version], version) for group in groups.values()}
    print(f"{count} plans checked")
    return 1 if 1 in found else max(found)  # wrong is worse than refused


def check_group(programs: list[Program], ptxas: str, version: str) -> int:
    """One by one where ptxas refuses one of them."""
    try:
        reports = list(check_together([p.ptx for p in programs], ptxas, tool("nvdisasm")))
    except NotAssembledError:
        return max(check(p.name, p.ptx, ptxas, version, quiet=True) for p in programs)
    found = [(p.name, report) for p, report in zip(programs, reports, strict=True) if report]
    return max([show(f"{name}, ptxas {version}", report) for name, report in found], default=0)


def versions_for(program: Program, versions: list[str]) -> list[str]:
    """A kernel with products meets them all; its other plans, and what has no products, the newest but one."""
    return versions if program.has_products and not program.hinted else versions[-2:][:1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE", help="PTX, or a cubin")
    parser.add_argument("--ptxas", nargs="*", default=[], help="versions or paths; all of tools/ptxas.txt if left out")
    parser.add_argument("--corpus", metavar="TARGET", help="check every kernel of the corpus for a target")
    parser.add_argument("--part", default="0/1", help="which of how many parts of the corpus")
    parser.add_argument("--random", type=int, metavar="COUNT", help="check so many random programs")
    parser.add_argument("--seed", type=int, default=0, help="of the first random program (default: 0)")
    options = parser.parse_args()
    found, assemblers = {0}, chosen(options.ptxas)
    found |= {check_file(path, assemblers) for path in options.files}
    if options.corpus:
        part, parts = map(int, options.part.split("/"))
        found.add(check_programs(corpus(options.corpus, part, parts), assemblers))
    if options.random:
        seeds = range(options.seed, options.seed + options.random)
        found.add(check_programs(random_programs("sm_90a", seeds), assemblers) % 2)  # some are too large for ptxas
    return max(found)


if __name__ == "__main__":
    sys.exit(main())
