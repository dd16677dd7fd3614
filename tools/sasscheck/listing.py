"""The machine code of a cubin: instructions with the registers that each reads and writes, labels, lines of the PTX.

kernels = disassemble(Path("kernel.cubin"))
kernels[0].instructions[3].opcode, .operands, .reads, .writes, .line

What an instruction reads and writes is what nvdisasm says of it (its table of life ranges), so that no table of opcodes
stands here. Lines are there where ptxas was called with -lineinfo, which changes nothing else.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import io
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from elftools.common.utils import struct_parse
from elftools.dwarf.lineprogram import LineProgram
from elftools.dwarf.structs import DWARFStructs
from elftools.elf.elffile import ELFFile

PREFIXES = {"GPR": "R", "PRED": "P", "UGPR": "UR", "UPRED": "UP"}


@dataclasses.dataclass(frozen=True)
class Instruction:
    address: int
    opcode: str  # with its suffixes: HGMMA.64x128x16.F32.BF16
    operands: str
    guard: str = ""  # @P0, @!UP3
    reads: frozenset[str] = frozenset()  # R24, UR4, P0, UP1
    writes: frozenset[str] = frozenset()
    line: int = 0  # of the PTX; 0: not known

    def __str__(self) -> str:
        return f"{self.guard} {self.opcode} {self.operands}".strip()

    def matches(self, opcode: str) -> bool:
        return self.opcode == opcode or self.opcode.startswith(opcode + ".")

    @functools.cached_property
    def is_product(self) -> bool:
        """An asynchronous one, of a warpgroup."""
        return re.match(r"[HIQ]GMMA\b", self.opcode) is not None


@dataclasses.dataclass(frozen=True)
class Kernel:
    name: str
    instructions: list[Instruction]
    labels: dict[str, int]  # position of the instruction behind


def disassemble(cubin: Path, nvdisasm: str = "nvdisasm") -> list[Kernel]:
    image = standard(cubin.read_bytes())
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(image)
        file.flush()
        command = [nvdisasm, "-c", "-lrm", "narrow", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return list(parse(text, ptx_lines(image)))


def standard(image: bytes) -> bytes:
    """The file with the header of CUDA 13: of older ones nvdisasm 13 prints no life ranges. Nothing else differs."""
    os_abi, old_abi, new_abi = 7, b"\x33\x07", b"\x41\x08"
    if image[os_abi : os_abi + 2] != old_abi:
        return image
    _, features, sm = image[48:51]
    flags = bytes([4, sm, 0, 9 if features & 8 else 6])
    return image[:7] + new_abi + image[9:20] + b"\x01\0\0\0" + image[24:48] + flags + image[52:]


def parse(text: str, lines: dict[str, Lines] | None = None) -> Iterator[Kernel]:
    """The sections of code of nvdisasm's text, with or without life ranges."""
    kernel, table = Kernel("", [], {}), Table()
    for row in text.splitlines():
        code, _, ranges = row.partition("// |")
        if section := re.match(r"\s*\.section\s+\.text\.([^,\s]+)", code):
            yield from [kernel] * bool(kernel.instructions)
            kernel, table = Kernel(section[1], [], {}), Table()
        elif ranges and not code.strip():
            table.header(ranges)
        elif label := re.match(r"\s*([.$\w]+):", code):
            kernel.labels[label[1]] = len(kernel.instructions)
        elif found := instruction(code, table.row(ranges)):
            known = (lines or {}).get(kernel.name)
            found = dataclasses.replace(found, line=known.at(found.address)) if known else found
            kernel.instructions.append(found)
    yield from [kernel] * bool(kernel.instructions)


def instruction(code: str, used: tuple[frozenset[str], frozenset[str]]) -> Instruction | None:
    found = re.match(r"\s*/\*([0-9a-f]+)\*/\s+(@!?U?P\w+ )?\s*([A-Z][A-Za-z0-9_.]*)(.*?);", code)
    if not found:
        return None
    return Instruction(int(found[1], 16), found[3], found[4].strip(), (found[2] or "").strip(), *used)


class Table:
    """The columns of nvdisasm's life ranges: one character a register, a group of registers between bars."""

    def __init__(self) -> None:
        self.rows: list[str] = []
        self.columns: dict[int, str] = {}

    def header(self, text: str) -> None:
        """A row of names, and as many of digits as the largest number has; `#` stands in the last one."""
        self.rows = [] if "+--" in text else [*self.rows, text]
        if "#" in text:
            names, *digits = self.rows
            self.columns = dict(self._registers(names, digits))

    def _registers(self, names: str, digits: list[str]) -> Iterator[tuple[int, str]]:
        ends = [i for i, c in enumerate(names) if c == "|"]
        for begin, end in zip([0, *ends], ends, strict=False):
            prefix = PREFIXES[names[begin:end].strip("| ")]
            for at in range(digits[-1].index("#", begin, end) + 1, end):
                if number := "".join(row[at] for row in digits).strip():
                    yield at, f"{prefix}{int(number)}"

    def row(self, text: str) -> tuple[frozenset[str], frozenset[str]]:
        marks = [(text[at], register) for at, register in self.columns.items() if at < len(text)]
        reads, writes = (frozenset(r for mark, r in marks if mark in kinds) for kinds in ("vx", "^x"))
        return reads, writes


class Lines:
    """Lines of the PTX by address, in one section of code."""

    def __init__(self, rows: list[tuple[int, int]]) -> None:
        self.rows = sorted(rows)
        self.addresses = [address for address, _ in self.rows]

    def at(self, address: int) -> int:
        place = bisect.bisect_right(self.addresses, address)
        return self.rows[place - 1][1] if place else 0


def ptx_lines(image: bytes) -> dict[str, Lines]:
    """From the section that -lineinfo leaves: a DWARF line program a kernel, in the order of its relocations."""
    elf = ELFFile(io.BytesIO(image))
    section = elf.get_section_by_name(".nv_debug_line_sass")
    if section is None:
        return {}
    names = relocated(elf, ".nv_debug_line_sass")
    return {name: Lines(rows) for name, rows in zip(names, sequences(section.data()), strict=True)}


def relocated(elf: ELFFile, of: str) -> list[str]:
    """The sections of code that the relocations of a section name, in the order of their places."""
    section = elf.get_section_by_name(".rela" + of) or elf.get_section_by_name(".rel" + of)
    symbols = elf.get_section(section["sh_link"])
    entries = sorted(section.iter_relocations(), key=lambda r: int(r["r_offset"]))
    found = [symbols.get_symbol(r["r_info_sym"]) for r in entries]
    return [elf.get_section(s["st_shndx"]).name.removeprefix(".text.") for s in found]


def sequences(data: bytes) -> Iterator[list[tuple[int, int]]]:
    """(address, line) of each sequence of the line programs in a section."""
    structs = DWARFStructs(little_endian=True, dwarf_format=32, address_size=8, dwarf_version=2)
    stream, begin = io.BytesIO(data), 0
    while begin < len(data):
        header = struct_parse(structs.Dwarf_lineprog_header, stream, begin)
        end = begin + header["unit_length"] + structs.initial_length_field_size()
        rows: list[tuple[int, int]] = []
        for entry in LineProgram(header, stream, structs, stream.tell(), end).get_entries():
            if entry.state is not None and entry.state.end_sequence:
                yield rows
                rows = []
            elif entry.state is not None:
                rows.append((entry.state.address, entry.state.line))
        begin = end
