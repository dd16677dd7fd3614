"""Write the figures of README.md from the newest files in bench/results/ (`make figures`); --check only compares.

What is taken: of each shape the best variant of ours beside its peer; tuning, launches, compilation, CPU programs.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BEGIN, END = "<!-- figures: made by bench/readme.py -->\n", "<!-- end of figures -->\n"

UNITS = (("gbs", "GB/s"), ("tflops", "TFLOP/s"), ("ms", "ms"))

Row = dict[str, Any]


def newest(what: str) -> tuple[Row, list[Row], str] | None:
    """(about, figures, file name) of the newest run of a benchmark."""
    files = sorted((ROOT / "bench" / "results").glob(f"*-{what}.jsonl"))
    if not files:
        return None
    about, *rows = map(json.loads, files[-1].read_text().splitlines())
    return about, rows, files[-1].name


def table(header: list[str], rows: list[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def source(about: Row, name: str) -> str:
    return f"{about['device']}, {about['date']}, commit {about['commit']}: [{name}](bench/results/{name})"


def other_commits(rows: list[Row]) -> str:
    told = any("commit" in row for row in rows)
    return " Lines of the file that name a commit were measured at that one." if told else ""


def gpu(what: str) -> list[str]:
    run = newest(what)
    if run is None:
        return []
    about, rows, name = run
    timed = [row for row in rows if "ms" in row]
    cases = list(dict.fromkeys((row["bench"], row["shape"]) for row in timed))
    body = []
    for bench, shape in cases:
        group = [row for row in timed if (row["bench"], row["shape"]) == (bench, shape)]
        variants = [row for row in group if row["who"].startswith("tilewright")]
        if not variants:
            continue
        ours = min(variants, key=lambda row: row["ms"])
        unit, label = next(each for each in UNITS if each[0] in ours)
        peers = []
        for row in group:
            ratio = ours.get(f"of_{row['who'].replace(' ', '_')}", ours.get(f"of {row['who']}"))
            if ratio is not None:
                rate = f" ({row[unit]:,.0f})" if unit != "ms" and unit in row else ""
                peers.append(f"{ratio:.2f} of {row['who']}{rate}")
        rate = f"{ours[unit]:,.2f}" if unit == "ms" else f"{ours[unit]:,.0f}"
        body.append([bench, shape, f"{rate} {label}", "; ".join(peers)])
    packages = (("torch", "torch"), ("cudnn", "cuDNN"))
    versions = ", ".join(f"{package} {about[key]}" for key, package in packages if key in about)
    note = f"Ours is the best of the tile sizes that the benchmark tries.{other_commits(timed)}"
    return [f"{source(about, name)}; {versions}. {note}", "", *table(["program", "size", "ours", "beside"], body)]


def cpu() -> list[str]:
    run = newest("cpu")
    if run is None:
        return []
    about, rows, name = run
    body = []
    for row in (row for row in rows if "rate" in row):
        rate = f"{row['rate']:,.1f} {row.get('unit', '')}".strip()
        body.append([row["program"], rate, f"{row['ratio']:.2f} times as fast", f"{row['compile_ms']:.0f} ms"])
    head = f"{source(about, name)}; {about.get('threads')} threads, NumPy {about.get('numpy')} on the same threads."
    return [head, "", *table(["program", "ours", "beside NumPy", "compile"], body)] if body else []


def waiting() -> list[str]:
    lines = []
    launch = newest("launch")
    if launch:
        about, rows, name = launch
        over = {row["what"]: row["over_driver_ns"] / 1e3 for row in rows if "over_driver_ns" in row}
        three, twenty = (over.get(f"launch, {count} arrays, stream handle") for count in (3, 20))
        if three is not None:
            more = f", with twenty {twenty:.1f} µs," if twenty is not None else ""
            lines.append(
                f"- A launch from Python with three torch arrays adds {three:.1f} µs{more} to the driver's own"
            )
            lines.append(f"  call from C ({source(about, name)}).")
    compile_ = newest("compile")
    if compile_:
        about, rows, name = compile_
        on_gpu = [row for row in rows if row.get("bench") == "cold compile" and row["target"] != "cpu"]
        cold = {row["program"]: row["ms"] for row in on_gpu}
        imports = next((row["ms"] for row in rows if row.get("bench") == "import"), None)
        if cold and imports is not None:
            times = ", ".join(f"{program.replace('_', ' ')} {ms:.0f}" for program, ms in cold.items())
            lines.append(f"- Python to PTX for sm_90a, in milliseconds: {times}; `import tilewright` {imports:.0f}")
            lines.append(f"  ({source(about, name)}).")
        first = {row["program"]: row["ms"] for row in rows if row.get("target") == "cuda"}
        if first:
            times = ", ".join(f"{program.replace('_', ' ')} {ms:.0f}" for program, ms in first.items())
            lines.append(
                f"- A first launch on the GPU, nothing cached, in milliseconds: {times}. Most of it is the driver's"
            )
            lines.append("  assembler.")
    return [*lines, ""] if lines else []


def tuned() -> list[str]:
    run = newest("tuned")
    if run is None:
        return []
    about, rows, name = run
    body = [
        [row["bench"], row["shape"], f"{row.get('launched', row['ratio']):.2f}", row["best"]]
        for row in rows
        if "ratio" in row
    ]
    head = (
        f"Speed with one choice of tile sizes for all shapes, over the best of a search ({source(about, name)}): "
        "as launches do both."
    )
    head += other_commits(rows)
    return [head, "", *table(["program", "size", "untuned / tuned", "the best"], body)] if body else []


def figures() -> str:
    parts = [*gpu("gpu"), *gpu("memory"), *gpu("kernels"), *tuned(), *cpu(), *waiting()]
    return "\n".join(parts) + "\n" if parts else "\n"


def main() -> int:
    text = README.read_text()
    made = re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: BEGIN + figures() + END, text, flags=re.DOTALL)
    if BEGIN not in text:
        sys.exit("README.md has lost the marks between which the figures stand")
    if "--check" in sys.argv:
        if made != text:
            print("the figures in README.md are not those of bench/results: make figures", file=sys.stderr)
        return int(made != text)
    README.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
