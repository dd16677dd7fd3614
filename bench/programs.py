"""Programs as other people write them (test/programs), on a GPU, beside a library or a copy for the same work.

    python bench/programs.py [--only TEXT] [--rounds N] [--out FILE]

Each program has the one tile size that its author would have taken; nothing is tuned. Results are checked against a
formula in float64. `ratio` is the peer's time over the program's: cuDNN for attention, cuBLAS for products (bfloat16
where weights are narrower, tf32, 8 bits with one scale a tensor), cuDNN for the convolution. Where a program moves
memory, `of_copy` is the time of a copy of as many bytes over its own; where it only computes, its rate is told.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import conv2d, scaled_dot_product_attention

from admission import relative_error
from gpu import Timer
from memory import copy_of
from record import ROOT, Results, clocks, interleave, versions

sys.path.insert(0, str(ROOT / "test" / "programs"))
sys.path.insert(0, str(ROOT / "test" / "random_products"))
import attention_kernels  # noqa: F401
import product_kernels  # noqa: F401
import row_kernels  # noqa: F401
from numbers_of import Torch
from program import PROGRAMS, Launch

from tilewright import tile as ct

Work = Callable[[], Any]
LIMITS = {torch.float32: 1e-4, torch.bfloat16: 2e-2, torch.int8: 1.0, torch.int32: 0.0}
TF32 = 1e-3  # the limit of programs whose factors have its 11 bits


def attention_of(launch: Launch) -> Work:
    q, k, v = launch.arguments[:3]
    causal = launch.arguments[-1] is True

    def work() -> Any:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1])

    return work


def product_of(launch: Launch) -> Work:
    """Of the same sizes, in bfloat16."""
    x, y = launch.arguments[0], launch.arguments[launch.output]
    a = torch.randn(x.shape, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(x.shape[1], y.shape[1], device="cuda", dtype=torch.bfloat16)
    return lambda: torch.mm(a, b)


def tf32_of(launch: Launch) -> Work:
    torch.backends.cuda.matmul.allow_tf32 = True
    a, b = launch.arguments[:2]
    return lambda: torch.mm(a, b)


def fp8_of(launch: Launch) -> Work:
    a, b = launch.arguments[:2]
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(a, b.T, one, one, out_dtype=torch.bfloat16)


def convolution_of(launch: Launch) -> Work:
    x, w, _, height, width, channels, taps = launch.arguments[:7]
    images = x.reshape(-1, height, width, channels).permute(0, 3, 1, 2)
    weights = w.reshape(taps, taps, channels, -1).permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    return lambda: conv2d(images, weights)


PEERS: dict[str, tuple[str, Callable[[Launch], Work]]] = {
    "fmha": ("cuDNN", attention_of),
    "FlashAttention": ("cuDNN", attention_of),
    "attention in two": ("cuDNN", attention_of),
    "tf32": ("cuBLAS", tf32_of),
    "RMS norm beside": ("cuBLAS", product_of),
    "fp8": ("cuBLAS, one scale", fp8_of),
    "weights": ("cuBLAS, bfloat16", product_of),
    "convolution by": ("cuDNN", convolution_of),
}


def error_of(launch: Launch) -> float:
    found, want = launch.arguments[launch.output], launch.want()
    if found.dtype in (torch.int8, torch.int32):
        return float((found.double() - want).abs().max())
    return relative_error(found, want)


def measure(results: Results, timer: Timer, name: str, rounds: int) -> None:
    launch = PROGRAMS[name].make(Torch(0), **PROGRAMS[name].full)
    about = {"program": name, "sizes": {key: str(value) for key, value in PROGRAMS[name].full.items()}}

    def ours() -> None:
        ct.launch(torch.cuda.current_stream(), launch.grid, launch.kernel, tuple(launch.arguments))

    try:
        ours()
        torch.cuda.synchronize()
        error = error_of(launch)
    except Exception as problem:  # one that fails must not hide the others' figures
        results.add(**about, failed=f"{type(problem).__name__}: {problem}"[:300])
        return
    limit = TF32 if name.startswith("tf32") else LIMITS[launch.arguments[launch.output].dtype]
    if not error <= limit:
        results.add(**about, failed=f"its error is {error:.1e}")
        return
    working: dict[str, Work] = {"tilewright": ours}
    for prefix, (who, peer) in PEERS.items():
        if name.startswith(prefix):
            working[who] = peer(launch)
    if launch.moved:
        working["copy"] = copy_of(launch.moved)
    measures = {who: timer(work) for who, work in working.items()}
    for one in measures.values():
        for _ in range(3):
            one()
    medians = interleave(measures, rounds)
    ms = medians.pop("tilewright")
    found = {"of_copy" if who == "copy" else "ratio": time / ms for who, time in medians.items()}
    rate = {"tflops": launch.operations / ms / 1e9} if launch.operations else {}
    results.add(**about, ms=ms, error=error, peers=medians, **rate, **found, **clocks())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only programs whose name contains this")
    parser.add_argument("--rounds", type=int, default=25, help="of each contender, in turns (default: 25)")
    parser.add_argument("--out", type=Path, help="the results, a JSON object a line")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("bench/programs.py: torch sees no GPU")
    about = {"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}
    found = versions("numpy", "tilewright")
    device = torch.cuda.get_device_name()
    results = Results("programs", device, options.out, **about, versions=found, rounds=options.rounds)
    timer = Timer()
    for name in PROGRAMS:
        if options.only in name:
            measure(results, timer, name, options.rounds)
            torch.cuda.empty_cache()
    print(f"written to {results.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
