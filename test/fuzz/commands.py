"""Command lines: arguments of `tilewright` in any combination. It succeeds, or says what is wrong in words of ours."""

from __future__ import annotations

import contextlib
import io
import os
import random
import sys
from pathlib import Path

from mesh import FINE, Base, Kind, Outcome

from tilewright import cli

EXAMPLES = Path(__file__).resolve().parents[2] / "python" / "examples"
BAD = {
    "syntax.py": "def f(:\n",
    "raises.py": "raise RuntimeError('no')\n",
    "empty.py": "",
    "deep.py": "from tilewright import tile as ct\n@ct.kernel\ndef k(X):\n    ct.store(X, 0, ct.load(X, 0, 8) @ 3)\n",
    "binary.py": "\0\1\2",
}
KERNELS = [f"{EXAMPLES / n}.py:{n}" for n in ("vector_add", "matmul", "softmax")]
PLACES = [
    *KERNELS,
    *KERNELS,
    "nosuch.py:k",
    "nosuch:k",
    ":k",
    "k:",
    ":",
    "",
    "/etc/passwd:k",
    "os:path",
    "json:dumps",
    f"{EXAMPLES}:k",
]
VALUES = (
    *("f32[?,?]", "f32[?]", "f16[128,128]", "bf16[?,?]unaligned", "i32", "f32", "64", "128", "0", "-1", "1.5", "'x'"),
    *("None", "[1]", "f32[", "f32[]", "f32[-1]", "f32[?,?,?,?,?,?,?,?,?]", "q8[?]", "f4[3]", "", "9" * 400, "(1, 2)"),
    "f32[99999999999999999999]",
)
NAMES = ("A", "B", "C", "X", "Y", "T", "TM", "TN", "TK", "", "a b", "Z")
TARGETS = ("sm_90a", "sm_80", "cpu", "sm_75", "hopper", "", "sm_", "cpu-foo", "sm_999", "\u00e9")
STAGES = (*cli.GPU_STAGES[:-1], *cli.CPU_STAGES, "bogus")


class Mesh(Base):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        for name, text in BAD.items():
            (folder / name).write_text(text)

    def arguments(self, number: int) -> list[str]:
        pick = random.Random(number)
        place = pick.choice([*PLACES, *(f"{self.folder / n}:k" for n in BAD)])
        outputs = (str(self.folder / "out.svg"), "/nonexistent/x", str(self.folder), str(self.folder / "out.xyz"), "")
        made = [pick.choice(("compile", "compile", "compile", "layout", "cache", "doctor", "bogus")), place]
        if made[0] in ("cache", "doctor"):
            return [made[0], *pick.choice(([], ["info"], ["path"], ["bogus"]))]
        if place in KERNELS and pick.random() < 0.6:
            made += right(place)
        for _ in range(pick.choice((0, 0, 1, 2, 4))):
            made += ["--arg", pick.choice((f"{pick.choice(NAMES)}={pick.choice(VALUES)}", pick.choice(VALUES)))]
        for option, values in (
            ("--target", TARGETS),
            ("--emit", STAGES),
            ("--value", ("mma", "0", "99", "-1", "")),
            ("-o", outputs),
        ):
            if pick.random() < 0.4:
                made += [option, pick.choice(values)]
        return made + pick.choice(([], [], ["--remarks"], ["--times"], ["--bogus"], ["-h"]))

    def source(self, number: int) -> str:
        return " ".join(map(repr, self.arguments(number)))

    def case(self, number: int) -> Outcome:
        out, errors = io.StringIO(), io.StringIO()
        os.environ["TILEWRIGHT_CACHE_DIR"] = str(self.folder / "cache")
        paths, modules = list(sys.path), set(sys.modules)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
                status = cli.main(self.arguments(number))
        except SystemExit as end:
            status = end.code
        except Exception as error:
            return Outcome(Kind.WRONG, f"{type(error).__name__}: {error}")
        finally:
            sys.path[:] = paths
            for name in set(sys.modules) - modules:
                if name.partition(".")[0] in ("vector_add", "matmul", "softmax", *(Path(n).stem for n in BAD)):
                    del sys.modules[name]
        if "Traceback" in errors.getvalue() or status not in (0, 1, 2, None):
            return Outcome(Kind.WRONG, f"status {status}: {errors.getvalue()[-1000:]}")
        if status and not errors.getvalue():
            return Outcome(Kind.WRONG, f"status {status} without a word")
        return FINE if not status else Outcome(Kind.REFUSED)


def right(place: str) -> list[str]:
    """Arguments that fit the kernel."""
    known = {
        "vector_add": ("A=f32[?]", "B=f32[?]", "C=f32[?]", "T=64"),
        "matmul": ("A=f16[?,?]", "B=f16[?,?]", "C=f16[?,?]", "TM=64", "TN=64", "TK=32"),
        "softmax": ("X=f32[?,?]", "Y=f32[?,?]", "TN=64"),
    }
    return [part for text in known[place.rpartition(":")[2]] for part in ("--arg", text)]
