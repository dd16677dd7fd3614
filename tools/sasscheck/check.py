"""All checks of a module: assembled by one ptxas, or a cubin as it is."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from . import barriers, modules, products, ptx
from .findings import Finding
from .flow import Graph, sass_graph
from .listing import Kernel, disassemble

ROOT = Path(__file__).resolve().parents[2]
SLOW = ("serialized", "spill")  # not wrong
NO_KERNEL = "module"  # where ptxas names none


class NotAssembledError(Exception):
    """ptxas refuses the module."""


@dataclasses.dataclass(frozen=True)
class Report:
    kernels: list[Kernel]
    findings: list[Finding]
    log: str = ""  # ptxas -v

    @property
    def wrong(self) -> list[Finding]:
        return [f for f in self.findings if f.kind not in SLOW]

    def kinds(self) -> set[str]:
        return {f.kind for f in self.findings}


def assemblers() -> dict[str, str]:
    """By version: those of tools/ptxas.txt that tools/fetch_ptxas.py has brought."""
    found = {path.parent.name: str(path) for path in (ROOT / "build/ptxas").glob("*/ptxas")}
    return dict(sorted(found.items(), key=lambda item: [int(n) for n in item[0].split(".")]))


def tool(name: str) -> str:
    """On PATH, of tools/requirements.txt, or of a toolkit."""
    folders = [os.environ.get("PATH", os.defpath), *(f"{p}/nvidia/cu13/bin" for p in sys.path), "/usr/local/cuda/bin"]
    found = shutil.which(name, path=os.pathsep.join(folders))
    if found is None:
        raise FileNotFoundError(f"no {name} on PATH, nor in the packages of tools/requirements.txt")
    return found


def check_ptx(text: str, ptxas: str, nvdisasm: str) -> Report:
    entries = ptx.read(text)
    with tempfile.TemporaryDirectory() as folder:
        cubin, log = assemble(text, ptxas, Path(folder))
        kernels = disassemble(cubin, nvdisasm) if has_products(entries) else []
    findings = [f for e in entries.values() for f in (*barriers.check_barriers(e), *products.check_sums(e))]
    findings += [f for k in kernels for f in check_kernel(k, entries.get(k.name))]
    return Report(kernels, [*findings, *check_log(log)], log)


def check_together(texts: list[str], ptxas: str, nvdisasm: str) -> Iterator[Report | None]:
    """Of modules with one header, for nvdisasm takes half a second to start: none where a module has no finding.
    One that has is checked alone, so that the report has its names and lines; all are where a log names no kernel."""
    found = {f.kernel for f in check_ptx(modules.joined(texts), ptxas, nvdisasm).findings}
    for number, text in enumerate(texts):
        suspect = any(kernel == NO_KERNEL or kernel.startswith(modules.prefix(number)) for kernel in found)
        yield check_ptx(text, ptxas, nvdisasm) if suspect else None


def assemble(text: str, ptxas: str, folder: Path) -> tuple[Path, str]:
    """The cubin, in the folder, and what ptxas says."""
    target = re.search(r"^\.target\s+(\w+)", text, re.M)
    source, cubin = folder / "kernel.ptx", folder / "kernel.cubin"
    source.write_text(text)
    options = ["-v", "-lineinfo", f"-arch={target[1] if target else 'sm_90a'}"]
    done = subprocess.run([ptxas, *options, str(source), "-o", str(cubin)], capture_output=True, text=True)
    log = done.stdout + done.stderr
    if done.returncode:
        raise NotAssembledError(log.strip())
    return cubin, log


def has_products(entries: dict[str, ptx.Entry]) -> bool:
    """What has no asynchronous product has nothing that the PTX and the log do not tell."""
    return any(e.products for e in entries.values())


def check_cubin(path: Path, nvdisasm: str) -> Report:
    """Without PTX nothing tells which value an operand should hold, nor what ptxas said."""
    kernels = disassemble(path, nvdisasm)
    return Report(kernels, [f for k in kernels for f in (*check_kernel(k, None), *check_local(k))])


def check_kernel(kernel: Kernel, entry: ptx.Entry | None) -> Iterator[Finding]:
    if any(i.is_product for i in kernel.instructions):
        graph: Graph = sass_graph(kernel)
        yield from products.check_flight(kernel, graph)
        yield from products.check_fences(kernel, graph)
        if entry is not None:
            yield from products.check_operands(kernel, graph, entry)


def check_log(log: str) -> Iterator[Finding]:
    """What ptxas says of products that it does not let run by themselves (C7508 to C7519), and of spills."""
    name = NO_KERNEL
    for line in log.splitlines():
        if found := re.search(r"\((C75\d\d)\) (.*)", line):
            inside = re.search(r"in (?:the )?function '?([\w$]+)", found[2])
            yield Finding(inside[1] if inside else name, "serialized", f"{found[1]}: {found[2].strip()}")
        elif found := re.search(r"(?:Compiling entry function|Function properties for) '?([\w$]+)", line):
            name = found[1]
        elif (found := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line)) and found[1] + found[
            2
        ] != "00":
            yield Finding(name, "spill", f"{found[1]} bytes stored, {found[2]} bytes loaded")


def check_local(kernel: Kernel) -> Iterator[Finding]:
    used = [i for i in kernel.instructions if i.matches("STL") or i.matches("LDL")]
    if used:
        yield Finding.at(kernel, used[0], "spill", f"{len(used)} instructions use local memory")
