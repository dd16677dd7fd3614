"""The same program in several spellings, on a GPU, beside its plain form and cuBLAS or cuDNN in the same run.

    python bench/spellings.py [--only gemm|attention] [--lines TEXT] [--rounds N] [--out FILE]

The texts are those of test/spellings, whose plans the tests compare. Results are checked against torch. `to_plain` is
the plain form's time over the spelling's: 1 is as fast, and the goal is 0.97 at least; `ratio` is the same to the
peer. Takes about a minute.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from admission import WrongResultError, checked, relative_error
from gpu import Timer
from record import ROOT, Results, clocks, interleave, versions

sys.path.insert(0, str(ROOT / "test" / "spellings"))
import respell

from tilewright import tile as ct
from tilewright.errors import TileError

Work = Callable[[], Any]
# Program, its shape, the plain form and the spellings, the peer, operations, error, and the output.
Case = tuple[str, str, dict[str, Work], str, float, Callable[[], float], torch.Tensor]

GEMM = {
    "while": {"loop": "while"},
    "acc + mma": {"form": "zeros"},
    "acc += a @ b": {"form": "iadd"},
    "two steps": {"loop": "two"},
    "last step behind": {"loop": "remainder"},
    "first step in front": {"loop": "peeled"},
    "tiles loaded ahead": {"loop": "ahead"},
    "gathers": {"left": "gather", "right": "gather"},
    "swizzled grid": {"grid": "swizzle"},
    "persistent": {"grid": "persistent"},
    "persistent, swizzled": {"grid": "persistent swizzle"},
    "flat offsets": {"left": "flat", "right": "flat"},
}
ATTENTION = {
    "while": {"loop": "while"},
    "acc + mma": {"form": "zeros"},
    "two steps": {"loop": "two"},
    "last step behind": {"loop": "remainder"},
    "queries scaled in f32": {"scale": "wide"},
    "persistent": {"grid": "persistent"},
    "occupancy=2": {"occupancy": 2},
}


def launched(choices: respell.Choices, folder: Path, arrays: tuple[torch.Tensor, ...]) -> Work:
    program = respell.program_of(choices)
    kernel = respell.kernel_of(program.source(""), folder)
    return lambda: ct.launch(None, program.grid(), kernel, arrays)


def all_spellings(
    kind: str, spellings: dict[str, Any], folder: Path, arrays: Callable[[Any], Any], **shape: Any
) -> dict[str, Work]:
    works = {}
    for name, other in {"plain": {}, **spellings}.items():
        choices = respell.choices_of(kind, **shape, **other)
        works[name] = launched(choices, folder, arrays(choices))
    return works


def gemm_cases(folder: Path) -> Iterator[Case]:
    for (m, n, k), tile in (((4096, 4096, 4096), (128, 256, 64)), ((4000, 4360, 4104), (128, 128, 64))):
        a, b = (torch.randn(*s, device="cuda", dtype=torch.bfloat16) for s in ((m, k), (k, n)))
        c, d = (torch.empty(m, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))

        def arrays(choices: Any, a: Any = a, b: Any = b, c: Any = c) -> Any:
            flat = [x.reshape(-1) if choices[side] == "flat" else x for side, x in (("left", a), ("right", b))]
            return (*flat, c)

        works = all_spellings("gemm", GEMM, folder, arrays, size=(m, n, k, 1), tile=tile)
        works["cuBLAS"] = lambda a=a, b=b, d=d: torch.mm(a, b, out=d)
        error = lambda a=a, b=b, c=c: relative_error(c[:256], a[:256].float() @ b.float())  # noqa: E731
        yield f"matmul {'x'.join(map(str, tile))}", f"{m}x{n}x{k}", works, "cuBLAS", 2.0 * m * n * k, error, c


def attention_cases(folder: Path) -> Iterator[Case]:
    heads, length, d = 32, 4096, 128
    for mask in ("none", "causal"):
        q, k, v = (torch.randn(heads, length, d, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        o = torch.empty_like(q)
        arrays = lambda _, a=(q, k, v, o): a  # noqa: E731
        shape = {"size": (length, heads), "tile": (128, 128, 128), "mask": mask}
        works = all_spellings("attention", ATTENTION, folder, arrays, **shape)

        def peer(q: Any = q, k: Any = k, v: Any = v, causal: bool = mask == "causal") -> Any:
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                return scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal)[0]

        works["cuDNN"] = peer
        want = peer().float()
        error = lambda o=o, want=want: relative_error(o, want)  # noqa: E731
        done = 4.0 * heads * length * length * d / (2 if mask == "causal" else 1)
        yield f"attention {mask}", f"{heads}x{length}x{d}", works, "cuDNN", done, error, o


def admitted(case: Case, results: Results) -> dict[str, Work]:
    """The contenders that compute what they should; of the others the reason is told."""
    program, shape, works, peer, _, error, output = case
    kept = {}
    for name, work in works.items():
        try:
            if name != peer:
                checked(work, [output], error, torch.cuda.synchronize)
            kept[name] = work
        except (WrongResultError, TileError) as reason:
            results.add(program=program, shape=shape, spelling=name, refused=str(reason).splitlines()[0])
    return kept


def measure(results: Results, timer: Timer, case: Case, rounds: int) -> None:
    program, shape, _, peer, operations, _, _ = case
    works = admitted(case, results)
    times = interleave({name: timer(work) for name, work in works.items()}, rounds)
    for name, time in times.items():
        ratios = {"to_plain": times.get("plain", math.nan) / time, "ratio": times[peer] / time}
        results.add(
            program=program, shape=shape, spelling=name, ms=time, tflops=operations / time / 1e9, **ratios, **clocks()
        )


CASES = {"gemm": gemm_cases, "attention": attention_cases}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(CASES), action="append", help="repeat it for several (default: all)")
    parser.add_argument("--lines", default="", help="only lines whose name and shape contain this")
    parser.add_argument("--rounds", type=int, default=25, help="of each contender, in turns (default: 25)")
    parser.add_argument("--out", type=Path, help="the results, a JSON object a line")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("bench/spellings.py: torch sees no GPU")
    torch.manual_seed(0)
    about = {"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}
    found = versions("numpy", "tilewright")
    device = torch.cuda.get_device_name()
    results = Results("spellings", device, options.out, **about, versions=found, rounds=options.rounds)
    timer = Timer()
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only or CASES:
            for case in CASES[name](Path(folder)):
                if options.lines in f"{case[0]} {case[1]}":
                    measure(results, timer, case, options.rounds)
    print(f"written to {results.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
