"""Runs what the GPU lowering emits on the CPU, thread by thread, where there is no GPU.

The LLVM IR of a kernel, as it would go to the PTX code generator, is rewritten so that the special
registers, barriers, shuffles, copies and inline assembly become calls of the files in C beside this one, then built for
the host. `install()` makes launches on NumPy arrays go that way. A test tool: slow, and silent on
everything that PTX and ptxas may get wrong.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import hashlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright import _core, compile, plans

if TYPE_CHECKING:
    import pytest

HERE = Path(__file__).parent
TARGET = os.environ.get("TILEWRIGHT_EMULATE", "sm_90")
CLANG = os.environ.get("CLANG", "clang-22")
MISSING = None if shutil.which(CLANG) else f"the emulator compiles LLVM IR with {CLANG}, which is not on PATH"
PARTS = 3  # blocks that share a tile where the program does not say how many: the launcher would look at the sizes
FOLDER = Path(tempfile.gettempdir()) / f"tilewright-emulator-{os.getuid()}"

_COMPILE = compile.compile_kernel
SREGS = {f"{r}.{a}": 3 * i + j for i, r in enumerate(("tid", "ctaid", "nctaid", "ntid")) for j, a in enumerate("xyz")}
SREGS["laneid"] = 12
APPROXIMATE = {
    "ex2.approx.f32": "emu_ex2",
    "ex2.approx.ftz.f32": "emu_ex2_ftz",
    "lg2.approx.f32": "emu_lg2",
    "rcp.approx.ftz.f32": "emu_rcp",
    "rsqrt.approx.f32": "emu_rsqrt",
    "rsqrt.approx.ftz.f32": "emu_rsqrt",
    "tanh.approx.f32": "emu_tanh",
    "sqrt.approx.ftz.f32": "emu_sqrt",
    "sin.approx.ftz.f32": "emu_sin",
    "cos.approx.ftz.f32": "emu_cos",
    "cvt.rn.tf32.f32": "emu_tf32",
    "add.rn.ftz.f32": "emu_flush",  # of -0
}
BYTES = {"i8": 1, "i16": 2, "i32": 4, "float": 4, "i64": 8, "double": 8, "half": 2, "bfloat": 2}


@dataclasses.dataclass
class Start:
    """How a kernel is started: facts of its launch record."""

    threads: int  # of a block; 0: the launch says it
    persistent: int
    joined: int  # blocks of the program that start as one; 0: each for itself
    parts: int
    dynamic: int
    members: int  # blocks of a cluster
    together: int  # whether blocks wait for each other
    exchanged: int  # whether axes 0 and 1 of the grid start in each other's place
    grid_scale: Sequence[int]  # blocks for one of the program's
    shared: int
    maps: list[tuple[int, int, bool, int, Sequence[int], Sequence[int]]]
    tiles: dict[str, Any] | None  # the grid in place of the launch's
    dependent: int  # whether it waits for the kernel before by itself
    views: list[dict[str, Any]]  # arrays whose words follow those of the arguments


def split(text: str) -> list[str]:
    """At commas outside of brackets."""
    parts, depth, last = [], 0, 0
    for i, c in enumerate(text):
        depth += c in "({[<"
        depth -= c in ")}]>"
        if c == "," and depth == 0:
            parts.append(text[last:i].strip())
            last = i + 1
    return [p for p in [*parts, text[last:].strip()] if p]


def type_of(argument: str) -> str:
    match = re.match(r"(ptr(?: addrspace\(\d+\))?|\{.*\}|<.*?>|\w+)", argument)
    assert match, argument
    return match[1]


def size_of(kind: str) -> int:
    """Bytes of a type in memory."""
    many, of = re.fullmatch(r"(?:<(\d+) x )?([\w ]+?)>?", kind).groups()  # type: ignore[union-attr]
    bits = int(of[1:]) if of[1:].isdigit() else 64 if of == "ptr" else 8 * BYTES[of]
    return (int(many or 1) * bits + 7) // 8


def registers_of(text: str, threads: int) -> int:
    """What a launch gives each thread of a kernel that has warps hand registers on."""
    shared_by = re.search(r'"nvvm\.minctasm"="(\d+)"', text)
    blocks = int(shared_by[1]) if shared_by else 1
    return min(256, (1 << 16) // max(1, blocks * threads) // 8 * 8)


class Rewriter:
    def __init__(self) -> None:
        self.extra: list[str] = []
        self.made: dict[str, str] = {}
        self.accesses = 0  # that are checked
        self.together: set[str] = set()  # assembly that all lanes of a warp come to
        self.sites = 0
        self.words = 0  # of the kernel's arguments

    # ---- inline assembly ----------------------------------------------------------------------

    def assembly(self, match: re.Match[str]) -> str:
        result, text, arguments, rest = match[1], match[3], match[5], match[6]
        types = [type_of(a) for a in split(arguments)]
        key = f"{result}|{text}|{types}"
        if key not in self.made:
            name = f"@emu_asm_{len(self.made)}"
            self.made[key] = name
            if ".aligned" in text:
                self.together.add(name)
            header = f"define internal {result} {name}({', '.join(f'{t} %a{i}' for i, t in enumerate(types))}) {{\n"
            self.extra.append(header + self.body(result, text, types) + "}\n")
        return f"call {result} {self.made[key]}({arguments}){re.sub(r'#[0-9]+', '', rest)}"

    def body(self, result: str, text: str, types: list[str]) -> str:
        if text.startswith("mma.sync"):
            return self.mma(result, text, types)
        if "wgmma.mma_async" in text:
            return self.wgmma(result, text, types)
        if text.startswith("fence.proxy.async"):
            return "  call void @emu_fence()\n  call void @race_fence()\n" + self.same(result, types)
        if text.startswith("mul.wide.u32"):
            wide = "".join(f"  %w{i} = zext i32 %a{i} to i64\n" for i in range(2))
            return wide + "  %p = mul i64 %w0, %w1\n  ret i64 %p\n"
        if text == "mov.b64 $0, $1;":
            return f"  ret {result} %a0\n"
        if text.startswith("wgmma.wait_group"):
            return self.wgmma_wait(result, text, types)
        if text.startswith(("fence.acq_rel.", "fence.sc.")):
            return "  call void @emu_order()\n  ret void\n"
        if "griddepcontrol.launch_dependents" in text:  # one kernel at a time
            return "  ret void\n"
        if "%envreg1" in text:  # the word by which the driver lets blocks of a grid meet
            return "  call void @emu_grid()\n  ret void\n"
        if text.startswith("nanosleep"):
            return "  call void @emu_turn()\n  ret void\n"
        if text.startswith("activemask"):  # a thread runs alone
            return "  %l = call i32 @emu_sreg(i32 12)\n  %r = shl i32 1, %l\n  ret i32 %r\n"
        if "%dynamic_smem_size" in text:
            return "  %r = call i32 @emu_sreg(i32 13)\n  ret i32 %r\n"
        if text.startswith("barrier.cluster."):
            steps = re.findall(r"barrier\.cluster\.(arrive|wait)", text)
            return "".join(f"  call void @emu_cluster_{step}()\n" for step in steps) + "  ret void\n"
        if text.startswith("atom.acq_rel.gpu.global.inc.u32"):
            count = f"  %r = atomicrmw uinc_wrap {types[0]} %a0, i32 %a1 monotonic\n  ret i32 %r\n"
            return "  call void @emu_order()\n" + count
        if ".b128" in text:
            return self.pair(result, types)
        if re.search(r"(atom|red|ld|st)\.(relaxed|acquire|release|acq_rel)\.(cta|gpu|sys)\.", text):
            return self.atomic(result, text, types)
        if text.startswith("bar.warp.sync"):
            return "  call void @emu_sync_warp(i32 -1)\n  ret void\n"
        if text.startswith("cp.async.bulk.wait_group.read"):
            return f"  call void @emu_store_wait(i32 {text[:-1].split()[-1]})\n  ret void\n"
        if "global.shared::cta" in text:
            store = f"  call void @emu_store(ptr %g1, ptr %a0, ptr %at, i32 {len(types) - 3}, i1 %a2)"
            return self.box(types, 3, store)
        if "st.async" in text:
            kind, guard = types[1], len(types) - 1 if len(types) > 4 else -1
            value = f"  %x = {f'zext {kind} %a1 to i64' if kind != 'i64' else 'add i64 %a1, 0'}\n"
            call = f"  call void @emu_send(ptr %g0, i64 %x, i32 {int(kind[1:]) // 8}, i32 %a2, ptr %g3)\n"
            branch = f"  br i1 {self.condition(guard)}, label %go, label %end\ngo:\n"
            given = self.generic(types, 0) + self.generic(types, 3) + value
            return given + branch + call + "  br label %end\nend:\n  ret void\n"
        if "mbarrier" in text or text.startswith(("setmaxnreg", "@$1 prefetch.tensormap")):
            return self.barrier(text, types)
        if "%lanemask_lt" in text:  # 0, which ptxas shall not know
            return "  ret i32 0\n"
        if text.startswith("xor.b32"):
            return "  %r = xor i32 %a0, %a1\n  ret i32 %r\n"
        if text.startswith("lop3.b32 $0, $1, $2, $3, 0xEA"):
            return "  %m = and i32 %a0, %a1\n  %r = or i32 %m, %a2\n  ret i32 %r\n"
        if "@p st.shared.v4.b32 [$0]" in text:  # where the first operand is not 0, and it is
            return "  ret void\n"
        store = re.search(r"(?:@\$(\d+) )?st\.\w+(?:\.v\d)?\.b(\d+) \[\$(\d+) \+ (-?\d+)\], ", text)
        if store:
            return self.guarded_store(types, int(store[2]), int(store[1] or -1), int(store[3]), int(store[4]))
        load = re.search(r"(?:@\$(\d+) )?ld\.\w+(?:\.v\d)?\.b(\d+) .*\[\$(\d+) \+ (-?\d+)\];", text)
        if load:
            padding = [int(v, 0) for v in re.findall(r"mov\.b\d+ \$\d+, (\w+);", text)]
            first = int(load[3])
            guard, at = int(load[1] or -1) - first, int(load[4])
            alone = re.search(r"; @\$(\d+) ld\.\w+\.u(\d+) \$0, [^;]*;(?: @\$\d+ or\.b\d+ \$0, \$0, (\w+);)?", text)
            if alone:  # the first of two elements, where the second one is outside
                high = int(alone[3] or "0", 0)
                return self.pair_load(result, types, (guard, int(alone[1]) - first), at, int(alone[2]), padding, high)
            return self.guarded_load(result, types, int(load[2]), guard, at, padding)
        copy = re.match(r"(@\$2 )?cp\.async\.c[ag]\.shared\.global \[\$0\], \[\$1 \+ (-?\d+)\], (\d+)(, \$2)?;", text)
        if copy:  # $2: copy at all, or ignore the source and write zeros, or how many bytes to read
            casts = self.generic(types, 0) + f"  %p = getelementptr i8, {types[1]} %a1, i64 {copy[2]}\n"
            read = f"select i1 %a2, i32 0, i32 {copy[3]}" if types[2] == "i1" else "add i32 %a2, 0"
            casts += (
                f"  %g1 = addrspacecast {types[1]} %p to ptr\n  %n = {f'add i32 0, {copy[3]}' if copy[1] else read}\n"
            )
            call = f"  call void @emu_copy(ptr %g0, ptr %g1, i32 {copy[3]}, i32 %n)\n"
            branch = "  br i1 %a2, label %go, label %end\ngo:\n"
            return casts + (f"{branch}{call}  br label %end\nend:\n" if copy[1] else call) + "  ret void\n"
        narrow = re.match(r"cvt\.rn\.(satfinite\.)?(?:f16x2\.)?(e4m3|e5m2)x2", text)
        if narrow and narrow[1]:
            call = f"call i32 @emu_narrow(ptr {self.text(narrow[2])}, float"
            out = f"  %l = {call} %a0)\n  %h = {call} %a1)\n  %s = shl i32 %h, 8\n  %b = or i32 %s, %l\n"
            return out + f"  %r = trunc i32 %b to {result}\n  ret {result} %r\n"
        if narrow:
            wide = f"  %w = zext i16 %a0 to i32\n  %r = call i32 @emu_widen(ptr {self.text(narrow[2])}, i32 %w)\n"
            return wide + "  ret i32 %r\n"
        function = APPROXIMATE.get(text.split(" ")[0])
        assert function, f"the emulator does not know: {text}"
        return f"  %r = call {result} @{function}(float %a0)\n  ret {result} %r\n"

    def barrier(self, text: str, types: list[str]) -> str:
        """Barriers that count, and the copies that they wait for."""
        if text.startswith("@$1 prefetch.tensormap"):
            return "  ret void\n"
        if text.startswith("fence.mbarrier_init"):
            return "  call void @race_show_barriers()\n  ret void\n"
        if asked := re.match(r"setmaxnreg\.(inc|dec)\.sync\.aligned\.u32 (\d+);", text):
            return f"  call void @emu_setmaxnreg(i32 {asked[2]}, i32 {int(asked[1] == 'inc')})\n  ret void\n"
        pointer = self.generic(types, 0)
        if text.startswith("cp.async.mbarrier.arrive.noinc"):
            return pointer + "  call void @emu_copies_arrive(ptr %g0)\n  ret void\n"
        if text.startswith("cp.async.bulk.tensor"):
            rank, everywhere = int(text[len("cp.async.bulk.tensor.")]), ".multicast" in text
            assert rank == len(types) - 3 - everywhere, text
            mask = f"  %mask = zext i16 %a{rank + 3} to i32\n" if everywhere else "  %mask = add i32 0, 0\n"
            call = f"  call void @emu_tma(ptr %g0, ptr %a1, ptr %g2, ptr %at, i32 {rank}, i32 %mask)"
            return self.box(types[: rank + 3], 3, mask + call)
        if "try_wait.parity" in text:
            return pointer + "  call void @emu_mbarrier_wait(ptr %g0, i32 %a1)\n  ret void\n"
        call, guard = "@emu_mbarrier_arrive(ptr %g0, i32 0)", 1
        if "expect_tx" in text:
            call, guard = "@emu_mbarrier_arrive(ptr %g0, i32 %a1)", 2 if text.startswith("@") else -1
        if "mapa" in text:
            call = "@emu_mbarrier_arrive_at(ptr %g0, i32 %a2)"
        if "mbarrier.init" in text:
            call, guard = "@emu_mbarrier_init(ptr %g0, i32 %a1)", 2
        branch = f"{pointer}  br i1 {self.condition(guard)}, label %go, label %end\n"
        return branch + f"go:\n  call void {call}\n  br label %end\nend:\n  ret void\n"

    def box(self, types: list[str], first: int, call: str) -> str:
        """A copy of a box; its coordinates are the operands from the first on."""
        out = [self.generic(types, i) for i in range(first) if types[i].startswith("ptr ")]
        out.append("  %at = alloca [5 x i32]")
        out += [
            f"  %q{d} = getelementptr i32, ptr %at, i64 {d}\n  store i32 %a{first + d}, ptr %q{d}"
            for d in range(len(types) - first)
        ]
        return "\n".join([*out, call, "  ret void\n"])

    def atomic(self, result: str, text: str, types: list[str]) -> str:
        """An access that others may look at; here nobody does meanwhile."""
        form = re.search(r"(@\$\d+ )?(atom|red|ld|st)\.\w+\.\w+\.(?:global|shared)((?:\.\w+)+) ", text)
        assert form, text
        kind, *parts = form[3][1:].split(".")[::-1]  # the type comes last
        operation = parts[-1] if parts else form[2]
        count = len(types) - 1 - bool(form[1])  # words; or what is given back where nothing is done, and the value
        words = ["%a1" if form[2] == "ld" else "%a2"] if result != "void" else [f"%a{i + 1}" for i in range(count)]
        guard = self.condition(len(types) - 1 if form[1] else -1)
        order = "" if ".relaxed." in text else "  call void @emu_order()\n"
        entry = f"entry:\n  call void @emu_turn()\n{order}  br i1 {guard}, label %go, label %end\ngo:\n"
        out = [entry, *(self.access(types, kind, operation, i, word) for i, word in enumerate(words))]
        out.append("  br label %end\nend:")
        if result == "void":
            return "\n".join([*out, "  ret void\n"])
        return "\n".join([*out, f"  %r = phi {result} [ %o0_0, %go ], [ %a1, %entry ]\n  ret {result} %r\n"])

    @staticmethod
    def pair(result: str, types: list[str]) -> str:
        """A load or store of 16 bytes, which a GPU has at multiples of 16 only."""
        kind, out = types[0], ["  call void @emu_turn()"]
        out.append(f"  %n = ptrtoint {kind} %a0 to i64\n  call void @emu_aligned(i64 %n, i64 16)")
        out.append(f"  %h = getelementptr i8, {kind} %a0, i64 8")
        if result == "void":
            out += [f"  store i64 %a1, {kind} %a0, align 16", f"  store i64 %a2, {kind} %h", "  ret void\n"]
            return "\n".join(out)
        out += [f"  %x = load i64, {kind} %a0, align 16", f"  %y = load i64, {kind} %h"]
        return "\n".join([*out, Rewriter.give(result, ["%x", "%y"])])

    @staticmethod
    def access(types: list[str], kind: str, operation: str, number: int, word: str) -> str:
        """Of one word, of which each half may be a number."""
        pair, bits = kind.endswith("x2"), int(re.findall(r"\d+", kind)[-2 if kind.endswith("x2") else -1])
        held = types[int(word[2:])]
        number_type = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}.get(kind.removesuffix("x2"))
        names = {"min": "llvm.smin", "max": "llvm.smax"} if kind[0] == "s" else {"min": "llvm.umin", "max": "llvm.umax"}
        out = []
        for half in range(1 + pair):
            n = f"{number}_{half}"
            at = number * BYTES[held] + half * 2
            out.append(f"  %p{n} = getelementptr i8, {types[0]} %a0, i64 {at}")
            out.append(f"  %m{n} = load i{bits}, {types[0]} %p{n}")
            out.append(f"  %s{n} = lshr {held} {word}, {16 * half}")
            narrow = int(held[1:]) > bits
            out.append(f"  %x{n} = {'trunc' if narrow else 'add'} {held} %s{n}{f' to i{bits}' if narrow else ', 0'}")
            wide = f"zext i{bits} %m{n} to {held}" if narrow and not pair else f"add i{bits} %m{n}, 0"
            out.append(f"  %o{n} = {wide}")
            if operation == "ld":
                continue
            if operation == "add" and number_type:
                out.append(f"  %f{n} = bitcast i{bits} %m{n} to {number_type}")
                out.append(f"  %g{n} = bitcast i{bits} %x{n} to {number_type}")
                out.append(
                    f"  %h{n} = fadd {number_type} %f{n}, %g{n}\n  %y{n} = bitcast {number_type} %h{n} to i{bits}"
                )
            elif operation == "cas":
                out.append(
                    f"  %c{n} = icmp eq i{bits} %m{n}, %a1\n  %y{n} = select i1 %c{n}, i{bits} %a2, i{bits} %m{n}"
                )
            elif operation in names:
                out.append(f"  %y{n} = call i{bits} @{names[operation]}.i{bits}(i{bits} %m{n}, i{bits} %x{n})")
            else:
                plain = {"exch": f"add i{bits} %x{n}, 0", "st": f"add i{bits} %x{n}, 0"}
                out.append(f"  %y{n} = " + (plain.get(operation) or f"{operation} i{bits} %m{n}, %x{n}"))
            out.append(f"  store i{bits} %y{n}, {types[0]} %p{n}")
        return "\n".join(out)

    @staticmethod
    def condition(guard: int) -> str:
        """The predicate operand; always true where there is none."""
        return f"%a{guard}" if guard >= 0 else "true"

    @staticmethod
    def guarded_store(types: list[str], bits: int, guard: int, pointer: int, offset: int) -> str:
        out = [f"  br i1 {Rewriter.condition(guard)}, label %go, label %end\ngo:"]
        out.append(f"  %p = getelementptr i8, {types[pointer]} %a{pointer}, i64 {offset}")
        out.append(f"  %n = ptrtoint {types[pointer]} %p to i64")
        stores = []
        for i in range(pointer):
            value = f"%a{i}"
            if types[i] in ("float", "i16") and bits == 8:
                out.append(f"  %t{i} = trunc i16 %a{i} to i8")
                value = f"%t{i}"
            kind = "i8" if bits == 8 else types[i]
            out.append(f"  %p{i} = getelementptr i8, {types[pointer]} %p, i64 {i * bits // 8}")
            stores.append(f"  store {kind} {value}, {types[pointer]} %p{i}, align {bits // 8}")
        out.append(Rewriter.access_of("writes", "%n", bits * pointer // 8, "\n".join(stores)))
        return "\n".join([*out, "  br label %end\nend:\n  ret void\n"])

    @staticmethod
    def guarded_load(result: str, types: list[str], bits: int, guard: int, offset: int, padding: list[int]) -> str:
        kinds = split(result[1:-1]) if result.startswith("{") else [result]
        padding = padding or [0, 0, 0, 0]
        out = [f"entry:\n  br i1 {Rewriter.condition(guard)}, label %go, label %end\ngo:"]
        out.append(f"  %p = getelementptr i8, {types[0]} %a0, i64 {offset}\n  %n = ptrtoint {types[0]} %p to i64")
        loads = []
        for i, kind in enumerate(kinds):
            loads.append(f"  %p{i} = getelementptr i8, {types[0]} %p, i64 {i * bits // 8}")
            if bits == 8:
                loads.append(f"  %b{i} = load i8, {types[0]} %p{i}\n  %l{i} = zext i8 %b{i} to {kind}")
            else:
                loads.append(f"  %l{i} = load {kind}, {types[0]} %p{i}, align {bits // 8}")
        out.append(Rewriter.access_of("reads", "%n", bits * len(kinds) // 8, "\n".join(loads)))
        out.append("  br label %end\nend:")
        for i, kind in enumerate(kinds):
            out.append(f"  %v{i} = phi {kind} [ %l{i}, %go ], [ {padding[i]}, %entry ]")
        return "\n".join([*out, Rewriter.give(result, [f"%v{i}" for i in range(len(kinds))])])

    @staticmethod
    def pair_load(
        result: str, types: list[str], guards: tuple[int, int], at: int, bits: int, padding: list[int], high: int
    ) -> str:
        """Two elements where both are inside, or the first one where only that is, with bits above it in its word."""
        kinds = split(result[1:-1]) if result.startswith("{") else [result]
        both, first = (Rewriter.condition(guard) for guard in guards)
        word = 2 * bits // len(kinds)
        out = [f"entry:\n  %p = getelementptr i8, {types[0]} %a0, i64 {at}\n  %n = ptrtoint {types[0]} %p to i64"]
        out.append(f"  br i1 {both}, label %go, label %other\ngo:")
        loads = []
        for i in range(len(kinds)):
            loads.append(f"  %p{i} = getelementptr i8, {types[0]} %p, i64 {i * word // 8}")
            loads.append(f"  %l{i} = load i{word}, {types[0]} %p{i}, align {word // 8}")
        out.append(Rewriter.access_of("reads", "%n", 2 * bits // 8, "\n".join(loads)))
        out += [f"  %k{i} = bitcast i{word} %l{i} to {kind}" for i, kind in enumerate(kinds)]
        out.append(f"  br label %end\nother:\n  br i1 {first}, label %one, label %end\none:")
        out.append(
            Rewriter.access_of("reads", "%n", bits // 8, f"  %m = load i{bits}, {types[0]} %p, align {bits // 8}")
        )
        widened = f"zext i{bits} %m to i{word}" if word > bits else f"add i{bits} %m, 0"
        out.append(f"  %w = {widened}\n  %h = or i{word} %w, {high}\n  %k = bitcast i{word} %h to {kinds[0]}")
        out.append("  br label %end\nend:")
        for i, kind in enumerate(kinds):
            alone = padding[i] if i else "%k"
            out.append(f"  %v{i} = phi {kind} [ %k{i}, %go ], [ {padding[i]}, %other ], [ {alone}, %one ]")
        return "\n".join([*out, Rewriter.give(result, [f"%v{i}" for i in range(len(kinds))])])

    @staticmethod
    def give(result: str, values: list[str]) -> str:
        if not result.startswith("{"):
            return f"  ret {result} {values[0]}\n"
        out, last = [], "poison"
        for i, (kind, value) in enumerate(zip(split(result[1:-1]), values, strict=True)):
            out.append(f"  %s{i} = insertvalue {result} {last}, {kind} {value}, {i}")
            last = f"%s{i}"
        return "\n".join([*out, f"  ret {result} {last}\n"])

    def mma(self, result: str, text: str, types: list[str]) -> str:
        shape = re.search(r"\.m(\d+)n8k(\d+)\.row\.col(?:\.satfinite)?((?:\.\w+)+) ", text)
        assert shape, text
        kinds = shape[3][1:].split(".")  # d, a, b, c
        groups = [re.findall(r"\$(\d+)", g) for g in re.findall(r"\{([^}]*)\}", text)]
        if len(groups) != 4:
            raise AssertionError(text)
        results = len(groups[0])
        out, sizes = [], []
        for g, group in enumerate(groups[1:]):
            size = 0
            out.append(f"  %m{g} = alloca [64 x i8], align 16")
            for n in group:
                i = int(n) - results
                out.append(f"  %q{i} = getelementptr i8, ptr %m{g}, i64 {size}\n  store {types[i]} %a{i}, ptr %q{i}")
                size += BYTES[types[i]]
            sizes.append(size)
        out.append("  %d = alloca [64 x i8], align 16\n  %k = alloca [4 x ptr]\n  %n = alloca [3 x i32]")
        for i, kind in enumerate((kinds[0], kinds[1], kinds[2], kinds[3])):
            out.append(f"  %k{i} = getelementptr ptr, ptr %k, i64 {i}\n  store ptr {self.text(kind)}, ptr %k{i}")
        for i, size in enumerate(sizes):
            out.append(f"  %n{i} = getelementptr i32, ptr %n, i64 {i}\n  store i32 {size}, ptr %n{i}")
        out.append(
            f"  call void @emu_mma(i32 {shape[1]}, i32 {shape[2]}, ptr %k, ptr %m0, ptr %m1, ptr %m2, ptr %d, ptr %n)"
        )
        return "\n".join([*out, self.read_back(result)])

    def same(self, result: str, types: list[str]) -> str:
        """What goes in comes out."""
        return "  ret void\n" if result == "void" else self.give(result, [f"%a{i}" for i in range(len(types))])

    def wgmma_wait(self, result: str, text: str, types: list[str]) -> str:
        """Accumulators are taken when what was waited for is done."""
        pending = re.match(r"wgmma\.wait_group\.sync\.aligned (\d+);", text)
        assert pending, text
        wait = f"  call void @emu_wgmma_wait(i32 {pending[1]})\n"
        if result == "void":
            return wait + "  ret void\n"
        out = [f"  %d = alloca [{len(types)} x i32]"]
        for i, kind in enumerate(types):
            out.append(f"  %p{i} = getelementptr i32, ptr %d, i64 {i}\n  store {kind} %a{i}, ptr %p{i}")
        out.append(f"{wait}  call void @emu_wgmma_take(ptr %d, i32 {len(types)})")
        return "\n".join([*out, self.read_back(result)])

    def wgmma(self, result: str, text: str, types: list[str]) -> str:
        kind, *more = split(result[1:-1])
        count = 1 + len(more)  # registers of the accumulator, which are the first arguments too
        out = [f"  %d = alloca [{count} x {kind}]\n  %w = alloca [4 x i32]"]
        out += [
            f"  %q{i} = getelementptr {kind}, ptr %d, i64 {i}\n  store {kind} %a{i}, ptr %q{i}" for i in range(count)
        ]
        number = 0
        for statement in re.split(r";\s*(?:\\0A)?", text):
            statement = statement.strip()
            moved = re.match(r"add\.s64 ([ab]), \$(\d+), (-?\d+)", statement)
            if moved:
                out.append(f"  %{moved[1]}_{number} = add i64 %a{int(moved[2]) - count}, {moved[3]}")
            if not statement.startswith("wgmma.mma_async"):
                continue
            form = re.search(
                r"\.m64n(\d+)k(\d+)\.(\w+)\.(\w+)\.(\w+) \{\$(\d+).*?\}, (a|\{.*?\}), b, ([pq]|\$\d+)((?:, \d+)*)$",
                statement,
            )
            assert form, statement
            flags = [int(v) for v in re.findall(r"\d+", form[9])]
            # floats: neither input negated; then, of 16 bits, which axis of each operand in shared memory is contiguous
            assert flags[:2] == ([] if form[3] == "s32" else [1, 1]), statement
            majors = flags[2:]
            registers = [int(n) - count for n in re.findall(r"\d+", form[7])]
            assert len(majors) == (2 - bool(registers) if form[4] in ("f16", "bf16") else 0), statement
            for i, n in enumerate(registers):
                out.append(f"  %r{number}_{i} = getelementptr i32, ptr %w, i64 {i}")
                out.append(f"  store i32 %a{n}, ptr %r{number}_{i}")
            lhs = "i64 0, ptr %w" if registers else f"i64 %a_{number}, ptr null"
            a_major, b_major = majors[0] if len(majors) == 2 else 0, majors[-1] if majors else 0
            names = ", ".join(f"ptr {self.text(form[i])}" for i in (3, 4, 5))
            zero = str(int(form[8] == "q"))
            if form[8].startswith("$"):  # known at run time only
                zero = f"%z{number}"
                adds = int(form[8][1:]) - count
                out.append(f"  %y{number} = xor i1 %a{adds}, true\n  {zero} = zext i1 %y{number} to i32")
            if number == 0:
                begin = f"@emu_wgmma_begin(ptr %d, i32 {count}, ptr {self.text(form[3])}, i32 {zero})"
                out.append(f"  %sum = call i32 {begin}")
            out.append(
                f"  call void @emu_wgmma(i32 %sum, i32 {form[6]}, i32 {form[1]}, i32 {form[2]}, {names}, {lhs}, "
                f"i64 %b_{number}, i32 {zero}, i32 {a_major}, i32 {b_major})"
            )
            number += 1
        if "wgmma.commit_group" in text:
            out.append("  call void @emu_wgmma_commit()")
        out.append("  call void @emu_wgmma_end(ptr %d, i32 %sum)")
        return "\n".join([*out, self.read_back(result)])

    @staticmethod
    def read_back(result: str) -> str:
        kinds = split(result[1:-1]) if result.startswith("{") else [result]
        out, at = [], 0
        for i, kind in enumerate(kinds):
            out.append(f"  %o{i} = getelementptr i8, ptr %d, i64 {at}\n  %v{i} = load {kind}, ptr %o{i}")
            at += BYTES[kind]
        return "\n".join([*out, Rewriter.give(result, [f"%v{i}" for i in range(len(kinds))])])

    def text(self, word: str) -> str:
        name = f"@emu_text_{word}"
        line = f'{name} = internal constant [{len(word) + 1} x i8] c"{word}\\00"\n'
        if line not in self.extra:
            self.extra.append(line)
        return name

    # ---- intrinsics -----------------------------------------------------------------------------

    def intrinsic(self, match: re.Match[str]) -> str:
        result, name, arguments = match[1].split(") ")[-1].strip(), match[2], split(match[3])
        result = re.sub(r"^(noundef|range\(.*?\))\s*", "", result)
        types = [type_of(a) for a in arguments]
        parameters = ", ".join(f"{t} %a{i}" for i, t in enumerate(types))
        header = f"define internal {result} @llvm_nvvm_{name}({parameters}) {{\n"
        return header + self.intrinsic_body(result, name, types) + "}"

    @staticmethod
    def generic(types: list[str], i: int) -> str:
        return f"  %g{i} = addrspacecast {types[i]} %a{i} to ptr\n"

    def intrinsic_body(self, result: str, name: str, types: list[str]) -> str:
        if name.startswith("read.ptx.sreg."):
            return f"  %r = call i32 @emu_sreg(i32 {SREGS[name[14:]]})\n  ret i32 %r\n"
        if name == "elect.sync":
            return f"  %r = call i1 @emu_elect()\n  %s = insertvalue {result} poison, i1 %r, 1\n  ret {result} %s\n"
        if name == "barrier.cta.sync.aligned.count":
            return "  call void @emu_named_barrier(i32 %a0, i32 %a1)\n  ret void\n"
        if name == "barrier.cta.arrive.aligned.count":
            return "  call void @emu_named_arrive(i32 %a0, i32 %a1)\n  ret void\n"
        if name == "bar.warp.sync":
            return "  call void @emu_sync_warp(i32 %a0)\n  ret void\n"
        if told := re.fullmatch(r"barrier\.cta\.red\.(popc|and|or)\.all", name) or re.fullmatch(
            r"barrier\.cta\.red\.(popc|and)\.aligned\.all", name
        ):
            return self.told("emu_block_vote", ("popc", "and", "or").index(told[1]), result, ["%a1"])
        if told := re.fullmatch(r"vote\.(all|any|uni|ballot)\.sync", name):
            return self.told("emu_vote", ("all", "any", "uni", "ballot").index(told[1]), result, ["%a0", "%a1"])
        if told := re.fullmatch(r"match\.(any|all)\.sync\.i(32|64)p?", name):
            return self.match(result, int(told[1] == "all"), types[1])
        if name == "barrier.cta.red.or.aligned.count":
            return self.any_of("%a2", "call void @emu_named_barrier(i32 %a0, i32 %a1)")
        if name == "barrier.cta.red.or.aligned.all":
            return self.any_of("%a1", "call void @emu_barrier()")
        if name.startswith("barrier"):
            return "  call void @emu_barrier()\n  ret void\n"
        if shuffled := re.fullmatch(r"shfl\.sync\.(idx|up|down|bfly)\.i32", name):
            kind = ("idx", "up", "down", "bfly").index(shuffled[1])
            return f"  %r = call i32 @emu_shfl(i32 {kind}, i32 %a0, i32 %a1, i32 %a2)\n  ret i32 %r\n"
        if name.startswith("div.full"):
            return "  %r = call float @emu_div(float %a0, float %a1)\n  ret float %r\n"
        if rounded := re.fullmatch(r"(add|mul|div|sqrt)\.(r[nzmp])\.([df])", name):
            kind = "float" if rounded[3] == "f" else "double"
            given = ", ".join(f"{kind} %a{i}" for i in range(len(types)))
            called = f"@emu_{rounded[1]}_{rounded[2]}_{rounded[3]}"
            return f"  %r = call {kind} {called}({given})\n  ret {kind} %r\n"
        if name.startswith("fma.r"):
            return f"  %r = call float @emu_{name.rsplit('.', 2)[1]}(float %a0, float %a1, float %a2)\n  ret float %r\n"
        if name == "prmt":
            return "  %r = call i32 @emu_prmt(i32 %a0, i32 %a1, i32 %a2)\n  ret i32 %r\n"
        if name == "griddepcontrol.wait":
            return "  call void @emu_go_on()\n  ret void\n"
        if name.startswith("griddepcontrol."):
            return "  ret void\n"  # one kernel at a time
        if name == "cp.async.commit.group":
            return "  call void @emu_commit()\n  ret void\n"
        if name == "cp.async.wait.group":
            return "  call void @emu_wait(i32 %a0)\n  ret void\n"
        matrix = re.match(r"stmatrix\.sync\.aligned\.m8n8\.x(\d)(\.trans)?\.b16", name)
        if matrix:
            out = self.generic(types, 0) + "  %d = alloca [4 x i32]\n"
            for i in range(int(matrix[1])):
                out += f"  %p{i} = getelementptr i32, ptr %d, i64 {i}\n  store i32 %a{i + 1}, ptr %p{i}\n"
            call = f"  call void @emu_stmatrix(ptr %g0, ptr %d, i32 {matrix[1]}, i32 {int(bool(matrix[2]))})\n"
            return out + call + "  ret void\n"
        matrix = re.match(r"ldmatrix\.sync\.aligned\.m8n8\.x(\d)(\.trans)?\.b16", name)
        assert matrix, f"the emulator does not know llvm.nvvm.{name}"
        call = f"  call void @emu_ldmatrix(ptr %g0, ptr %d, i32 {matrix[1]}, i32 {int(bool(matrix[2]))})\n"
        return self.generic(types, 0) + "  %d = alloca [4 x i32]\n" + call + self.read_back(result)

    @staticmethod
    def told(function: str, kind: int, result: str, arguments: list[str]) -> str:
        """What threads are told of their predicates, the last argument."""
        *masks, predicate = arguments
        given = "".join(f"i32 {m}, " for m in masks)
        out = f"  %v = zext i1 {predicate} to i32\n  %s = call i32 @{function}(i32 {kind}, {given}i32 %v)\n"
        return out + ("  %r = trunc i32 %s to i1\n  ret i1 %r\n" if result == "i1" else "  ret i32 %s\n")

    @staticmethod
    def match(result: str, all_lanes: int, kind: str) -> str:
        wide = "  %v = zext i32 %a1 to i64\n" if kind == "i32" else "  %v = add i64 %a1, 0\n"
        out = f"{wide}  %m = call i32 @emu_match(i32 {all_lanes}, i32 %a0, i64 %v)\n"
        if not all_lanes:
            return out + "  ret i32 %m\n"
        pair = f"  %p = icmp ne i32 %m, 0\n  %r = insertvalue {result} poison, i32 %m, 0\n"
        return out + pair + f"  %s = insertvalue {result} %r, i1 %p, 1\n  ret {result} %s\n"

    @staticmethod
    def any_of(value: str, meet: str) -> str:
        """A barrier that tells whether the value is true for any thread."""
        tell = f"  %turn = call i32 @emu_tell(i1 {value})\n  {meet}\n"
        return tell + "  %r = call i1 @emu_told(i32 %turn)\n  ret i1 %r\n"

    # ---- a module -------------------------------------------------------------------------------

    @staticmethod
    def access_of(kind: str, address: str, size: int, instruction: str, alignment: int = 0) -> str:
        """Whether it is aligned as a GPU wants it, which no CPU minds, and in an order with what others do."""
        aligned = f"  call void @emu_aligned(i64 {address}, i64 {alignment or size})\n"
        ordered = f"  call void @emu_{kind}(i64 {address}, i64 {size})"
        return aligned + (f"{ordered}\n{instruction}" if kind == "reads" else f"{instruction}\n{ordered}")

    def site(self, found: re.Match[str]) -> str:
        """Has the emulator know at which instruction a lane is, if it is one of the whole warp."""
        self.sites += 1
        whole = found[2] in self.together or re.search(r"\.aligned|matrix", found[2])
        return f"  call void @emu_site(i32 {self.sites if whole else -1})\n{found[1]}{found[2]}"

    def access_in(self, found: re.Match[str]) -> str:
        """Of an instruction."""
        load, type_, space, pointer, alignment = found.groups()
        self.accesses += 1
        address, kind = f"%access{self.accesses}", "reads" if load else "writes"
        checked = self.access_of(kind, address, size_of(type_), found[0], int(alignment))
        return f"  {address} = ptrtoint ptr {space} {pointer} to i64\n{checked}"

    def module(self, text: str) -> str:
        text = re.sub(r"^target .*$", "", text, flags=re.M)
        text = re.sub(
            r'call ([^@\n]+?) asm (sideeffect )?"(.*?)", "(.*?)"\((.*?)\)( #\d+|, ![^\n]*)?$',
            self.assembly,
            text,
            flags=re.M,
        )
        text = re.sub(
            r"^( *(?:%\S+ = )?(?:tail )?call [^@\n]*)(@emu_asm_\d+|@llvm\.nvvm\.(?:barrier|ldmatrix|stmatrix)[\w.]*)",
            self.site,
            text,
            flags=re.M,
        )
        text = re.sub(
            r"^ *%\S+ = load [^,\n]*, (ptr addrspace\(3\) (?:getelementptr [a-z ]*\((?:[^()]|\(3\))*\)|[^,\n]*)), .*$",
            r"  call void @emu_load(\1)\n\g<0>",
            text,
            flags=re.M,
        )
        text = re.sub(
            r"^ *(?:(%\S+ = load)|store) (?:volatile )?(<[^>]*>|\w+)(?: [^,\n]*)?, ptr (addrspace\([13]\)) "
            r"((?:getelementptr [a-z ]*\((?:[^()]|\([13]\))*\))|[^,\n]*), align (\d+).*$",
            self.access_in,
            text,
            flags=re.M,
        )
        text = re.sub(
            r"^ *(?:%\S+ = )?(?:atomicrmw|cmpxchg|fence) (?:.* )?(?:acquire|release|acq_rel|seq_cst)\b.*$",
            r"  call void @emu_order()\n\g<0>",
            text,
            flags=re.M,
        )
        text = re.sub(r"^declare (.*?) ?@llvm\.nvvm\.([\w.]+)\((.*)\)[^)\n]*$", self.intrinsic, text, flags=re.M)
        text = re.sub(r"@llvm\.nvvm\.([\w.]+)", r"@llvm_nvvm_\1", text)
        text = re.sub(
            r"@tile_shared = external addrspace\(3\) global \[0 x i8\]",
            "@tile_shared = external addrspace(3) global [262144 x i8]",
            text,
        )
        text = text.replace("@tile_shared", "@emu_shared").replace("@vprintf", "@emu_vprintf")
        text = text.replace("@llvm.trap()", "@emu_trap()")
        text = re.sub(r"ptr byval\(\[16 x i64\]\) align 64 \"nvvm.grid_constant\" %", "ptr %", text)
        kernel = re.search(r"define ptx_kernel void @([\w.$\"]+)\((.*?)\)", text)
        assert kernel, "no kernel"
        parameters = split(kernel[2])
        maps = sum(type_of(p) == "ptr" for p in parameters)
        self.words = words = len(parameters) - maps
        text = text.replace(f"define ptx_kernel void @{kernel[1]}(", "define internal void @emu_kernel(")
        if "@emu_shared" not in text:
            text += "@emu_shared = external addrspace(3) global [262144 x i8]\n"
        entry = ["define hidden void @emu_call(ptr %words) {"]
        entry += [
            f"  %p{i} = getelementptr i64, ptr %words, i64 {i}\n  %w{i} = load i64, ptr %p{i}" for i in range(words)
        ]
        entry += [f"  %m{i} = call ptr @emu_map(i32 {i})" for i in range(maps)]
        passed = ", ".join([f"ptr %m{i}" for i in range(maps)] + [f"i64 %w{i}" for i in range(words)])
        entry.append(f"  call void @emu_kernel({passed})\n  ret void\n}}\n")
        declared = """
declare i32 @emu_sreg(i32)
declare void @emu_barrier()
declare i32 @emu_tell(i1)
declare i1 @emu_told(i32)
declare i32 @emu_shfl(i32, i32, i32, i32)
declare i32 @emu_vote(i32, i32, i32)
declare i32 @emu_match(i32, i32, i64)
declare i32 @emu_block_vote(i32, i32)
declare void @emu_meet(i32)
declare void @emu_turn()
declare void @emu_grid()
declare void @emu_copy(ptr, ptr, i32, i32)
declare void @emu_commit()
declare void @emu_wait(i32)
declare void @emu_load(ptr addrspace(3))
declare void @emu_aligned(i64, i64)
declare void @emu_reads(i64, i64)
declare void @emu_writes(i64, i64)
declare void @emu_order()
declare void @emu_sync_warp(i32)
declare void @emu_fence()
declare void @race_fence()
declare void @emu_ldmatrix(ptr, ptr, i32, i32)
declare void @emu_stmatrix(ptr, ptr, i32, i32)
declare void @emu_store(ptr, ptr, ptr, i32, i1)
declare void @emu_store_wait(i32)
declare void @emu_mma(i32, i32, ptr, ptr, ptr, ptr, ptr, ptr)
declare void @emu_wgmma_commit()
declare void @emu_wgmma_wait(i32)
declare i32 @emu_wgmma_begin(ptr, i32, ptr, i32)
declare void @emu_wgmma(i32, i32, i32, i32, ptr, ptr, ptr, i64, ptr, i64, i32, i32, i32)
declare void @emu_wgmma_end(ptr, i32)
declare void @emu_wgmma_take(ptr, i32)
declare void @emu_warp()
declare i1 @emu_elect()
declare void @emu_named_barrier(i32, i32)
declare void @emu_named_arrive(i32, i32)
declare void @emu_setmaxnreg(i32, i32)
declare void @emu_site(i32)
declare void @emu_go_on()
declare void @race_show_barriers()
declare void @emu_mbarrier_init(ptr, i32)
declare void @emu_mbarrier_arrive(ptr, i32)
declare void @emu_copies_arrive(ptr)
declare void @emu_mbarrier_wait(ptr, i32)
declare void @emu_tma(ptr, ptr, ptr, ptr, i32, i32)
declare void @emu_cluster_arrive()
declare void @emu_cluster_wait()
declare void @emu_mbarrier_arrive_at(ptr, i32)
declare void @emu_send(ptr, i64, i32, i32, ptr)
declare ptr @emu_map(i32)
declare float @emu_ex2(float)
declare float @emu_ex2_ftz(float)
declare float @emu_div(float, float)
declare float @emu_lg2(float)
declare float @emu_flush(float)
declare float @emu_rcp(float)
declare float @emu_rsqrt(float)
declare float @emu_tanh(float)
declare float @emu_sqrt(float)
declare float @emu_sin(float)
declare float @emu_cos(float)
declare float @emu_sat(float, float, float)
declare float @emu_rm(float, float, float)
declare i32 @emu_prmt(i32, i32, i32)
declare i32 @emu_tf32(float)
declare i32 @emu_narrow(ptr, float)
declare i32 @emu_widen(ptr, i32)
"""
        for mode, (letter, kind) in itertools.product(("rn", "rz", "rm", "rp"), (("f", "float"), ("d", "double"))):
            for name in ("add", "mul", "div", "sqrt"):
                given = kind if name == "sqrt" else f"{kind}, {kind}"
                declared += f"declare {kind} @emu_{name}_{mode}_{letter}({given})\n"
        return text + declared + "\n".join([*self.extra, *entry])


def factors_form(factors: list[dict[str, int]]) -> str:
    rows = ", ".join(f"{{{f['word']}, {f['plus']}, {f['by']}}}" for f in factors) or "{0}"
    return f"{{{len(factors)}, {{{rows}}}}}"


def map_form(word: int, size: int, rounds: bool, swizzle: int, axes: Sequence[int], box: Sequence[int]) -> str:
    numbers = [", ".join(map(str, n)) for n in (axes, box)]
    return f"{{{word}, {len(axes)}, {size}, {int(rounds)}, {swizzle}, {{{numbers[0]}}}, {{{numbers[1]}}}}}"


def view_form(view: dict[str, Any]) -> str:
    bounds = ", ".join(factors_form(bound["factors"]) for bound in view["bounds"])
    first = f"{view['array']['word']}, {view['word']}, {len(view['bounds'])}"
    return f"{{{first}, {{{bounds}}}, {factors_form(view['pitch'])}}}"


def kernel_form(start: Start, words: int, registers: int) -> str:
    """The kernel as kernel.h has it, and its entry, which has the signature of a CPU kernel's."""
    tiles = [start.tiles[axis] for axis in ("rows", "columns")] if start.tiles else []
    facts = {
        "call": "emu_call",
        "num_threads": start.threads,
        "num_words": words,
        "persistent": start.persistent,
        "joined": start.joined,
        "parts": start.parts,
        "dynamic": start.dynamic,
        "members": start.members,
        "together": start.together,
        "exchanged": start.exchanged,
        "grid_scale": f"{{{', '.join(map(str, start.grid_scale))}}}",
        "shared_bytes": start.shared,
        "registers": registers,
        "dependent": start.dependent,
        "tile_grid": int(start.tiles is not None),
        "any_grid": int(bool(start.tiles and start.tiles["any"])),
        "tiles": f"{{{', '.join(map(factors_form, tiles)) or '{0}'}}}",
        "num_views": len(start.views),
        "num_maps": len(start.maps),
        "views": "views",
        "maps": "maps",
        "otherwise": "&emu_otherwise",
    }
    return f"""#include "kernel.h"
void emu_call(const int64_t *words);
void (*emu_otherwise)(const int64_t *, const int32_t *, int64_t, int64_t);
static const view_t views[] = {{{", ".join(map(view_form, start.views)) or "{0}"}}};
static const map_form_t maps[] = {{{", ".join(map_form(*m) for m in start.maps) or "{0}"}}};
static const kernel_t kernel = {{{", ".join(f".{name} = {value}" for name, value in facts.items())}}};
void emu_entry(const int64_t *words, const int32_t *dims, int64_t from, int64_t to, void *scratch) {{
  emu_run(&kernel, words, dims, from, to);
}}
"""


def built(name: str, sources: dict[str, str], command: list[str]) -> Path:
    """A shared object of sources, and of a name that says what is in it; several processes may build one at once."""
    library = FOLDER / f"{name}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            for file, text in sources.items():
                Path(folder, file).write_text(text)
            subprocess.run([*command, "-o", library.name], cwd=folder, check=True)
            os.replace(Path(folder, library.name), library)
    return library


@functools.cache
def runtime() -> Path:
    """The files in C: a library that all kernels of a process share, so that what it keeps of threads is there once."""
    FOLDER.mkdir(exist_ok=True)
    files = sorted(HERE.glob("*.[ch]"))
    text = "".join(path.read_text() for path in files)
    command = [CLANG, "-O2", "-ffp-contract=off", "-w", "-fPIC", "-shared", "--rtlib=compiler-rt", "-Wl,-Bsymbolic"]
    command += [str(path) for path in files if path.suffix == ".c"]
    library = built(f"runtime-{hashlib.sha256(text.encode()).hexdigest()[:24]}", {}, [*command, "-lm"])
    opened = ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
    ctypes.c_void_p.in_dll(opened, "emu_on_trap").value = ctypes.cast(on_trap, ctypes.c_void_p).value
    return library


@ctypes.CFUNCTYPE(None, ctypes.c_char_p)
def on_trap(said: bytes) -> None:
    """As the launcher reports a failed assertion on a GPU."""
    _core.note_assertion(said.decode().replace("%%", "%").rstrip())


def shared_object(text: str, start: Start) -> ctypes.CDLL:
    """Builds (once for each text) and opens the host code of a kernel."""
    rewriter = Rewriter()
    sources = {"code.ll": rewriter.module(text)}
    sources["facts.c"] = kernel_form(start, rewriter.words, registers_of(text, start.threads))
    name = hashlib.sha256("".join([*sources.values(), runtime().name]).encode()).hexdigest()[:24]
    command = [CLANG, "-O0", "-w", "-shared", "-fPIC", "--rtlib=compiler-rt", f"-I{HERE}", *sources, str(runtime())]
    return ctypes.CDLL(str(built(name, sources, [*command, "-lm"])))


def compile_kernel(kernel: Any, target: str, key: Any, made: Any = None, overlapping: bool = False) -> Any:
    """Stands in for compile.compile_kernel. `overlapping`: arrays of the launch may share memory. What is not for NumPy
    arrays is compiled as ever: files for other machines, say."""
    if not target.startswith("cpu"):
        return _COMPILE(kernel, target, key, made)

    def for_overlapping(kind: str, number: int) -> Any:
        return compile_kernel(kernel, target, key, overlapping=True)[0]

    @functools.cache
    def as_launched() -> ctypes.CDLL:
        return library_of(lowered(as_launched=1).module)[0]

    def lowered(**told: int) -> Any:
        captured = compile.capture_kernel(kernel, TARGET, key, overlapping, **told)
        plans.lower(captured.module, ["llvm"], functools.partial(plans.step, captured.module))
        return captured

    captured = lowered()
    variant = host_kernel(captured.module, kernel.name, captured.written, for_overlapping, as_launched)
    if made is not None:
        made(None, compile.Image(b"", b"", sites=compile.sites_of(captured.module)), variant)
    return variant, captured.reads


def parts_of(facts: dict[str, Any]) -> int:
    """How many blocks share a tile: as many as the program says, else so many as show a mistake; 0 where none can."""
    return (facts["split"]["forced"] or PARTS) if facts["split_applied"] else 0


def of_rank(tensor_map: dict[str, Any]) -> dict[str, Any]:
    """Without the axes and extents that it has not."""
    rank = tensor_map["rank"]
    return tensor_map | {key: tensor_map[key][:rank] for key in ("axes", "box")}


def start_of(facts: dict[str, Any]) -> Start:
    return Start(
        threads=facts["num_threads"] * (facts["packed_blocks"] or 1),
        persistent=int(facts["persistent"]),
        joined=facts["packed_blocks"],
        parts=parts_of(facts),
        dynamic=facts["dynamic"],
        members=facts["cluster_blocks"] or 1,
        together=int(facts["cooperative"]),
        exchanged=int(facts["exchanged_axes"]),
        grid_scale=facts["grid_scale"] if any(facts["grid_scale"]) else (1, 1, 1),
        shared=facts["shared_bytes"],
        maps=[
            (m["word"], m["bytes"], m["rounds"], m["swizzle"], m["axes"], m["box"])
            for m in map(of_rank, facts["tensor_maps"])
        ],
        tiles=facts["tile_grid"],
        dependent=int(facts["dependent_launch"]),
        views=facts["views"],
    )


_KEPT: list[Any] = []
ENTRY = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)


def library_of(module: Any) -> tuple[ctypes.CDLL, bytes]:
    """The host code of a module at the stage "llvm", and its launch record."""
    record = compile.record_of(module)
    return shared_object(module.emit(compile.EMIT_LLVM).decode(), start_of(_core.launch_facts(record))), record


def host_kernel(
    module: Any,
    name: str,
    written: int,
    overlapping: Callable[[str, int], Any] | None = None,
    as_launched: Callable[[], ctypes.CDLL] | None = None,
) -> _core.CpuKernel:
    """A module at the stage "llvm" as a kernel for NumPy arrays.

    `overlapping` makes the one for arrays that share memory, `as_launched` the code for a launch whose rows are not
    what this one takes them to be.
    """
    library, record = library_of(module)
    facts = _core.launch_facts(record)
    if as_launched is not None:

        @ENTRY
        def otherwise(words: Any, dims: Any, first: int, last: int) -> None:
            try:
                as_launched().emu_entry(*map(ctypes.c_void_p, (words, dims)), *map(ctypes.c_int64, (first, last)), None)
            except BaseException:  # which C does not hear of
                traceback.print_exc()
                os.abort()

        _KEPT.append(otherwise)  # the library may be that of another kernel, too, and live longer
        ctypes.c_void_p.in_dll(library, "emu_otherwise").value = ctypes.cast(otherwise, ctypes.c_void_p).value
    address = ctypes.cast(library.emu_entry, ctypes.c_void_p).value
    if facts["views"]:  # of which the launch on a CPU knows nothing
        overlapping = None
    return _core.CpuKernel(address, name, record, written, library, overlapping)


def stand_in(patch: pytest.MonkeyPatch, target: str = "sm_90") -> None:
    """Launches on NumPy arrays go through the emulator until the patch is undone."""
    import pytest  # which programs that only emulate need not have

    if MISSING is not None:
        pytest.skip(MISSING)  # it says what is missing
    patch.setattr(sys.modules[__name__], "TARGET", target)
    patch.setattr(compile, "compile_kernel", compile_kernel)


def install() -> None:
    """From now on kernels launched on NumPy arrays run as the GPU code for TARGET would."""
    compile.compile_kernel = compile_kernel
