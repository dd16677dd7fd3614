"""Write the figures of README.md and bench/FIGURES.md from the newest files in bench/results/ (`make figures`); --check
only compares.

What is taken: of each shape the best variant of ours beside its peers; tuning, launches, compilation, CPU programs.
README.md has a picture (picture.py), FIGURES.md a line a program and one a shape.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from pathlib import Path
from typing import Any

from picture import picture

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
FIGURES = ROOT / "bench" / "FIGURES.md"
PICTURE = ROOT / "bench" / "figures.svg"
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
    return f"{about['device']}, {about['date']}, commit {about['commit']}: [{name}](results/{name})"


def other_commits(rows: list[Row]) -> str:
    told = any("commit" in row for row in rows)
    return " Lines of the file that name a commit were measured at that one." if told else ""


def best(rows: list[Row]) -> list[tuple[Row, dict[str, tuple[float, Row]]]]:
    """Of each shape our fastest variant, and its ratio to each peer, with the peer's own row."""
    timed = [row for row in rows if "ms" in row]
    found = []
    for case in dict.fromkeys((row["bench"], row["shape"]) for row in timed):
        group = [row for row in timed if (row["bench"], row["shape"]) == case]
        variants = [row for row in group if row["who"].startswith("tilewright")]
        if not variants:
            continue
        ours = min(variants, key=lambda row: row["ms"])
        ratios = {
            row["who"]: ours.get(f"of_{row['who'].replace(' ', '_')}", ours.get(f"of {row['who']}")) for row in group
        }
        found.append((ours, {row["who"]: (ratios[row["who"]], row) for row in group if ratios[row["who"]] is not None}))
    return found


def one_for_all(rows: list[Row]) -> dict[tuple[str, str], float]:
    """(program, peer) -> the geometric mean over all sizes with the one variant that does best so.

    Only of programs that several variants were measured of, at each of their sizes.
    """
    ratios: dict[str, dict[str, dict[tuple[str, str], float]]] = {}  # program, variant, (peer, shape)
    for row in (row for row in rows if "ms" in row and row["who"].startswith("tilewright")):
        its = ratios.setdefault(program_of(row), {}).setdefault(row["who"], {})
        for key, value in row.items():
            if re.match("of[ _]", key):
                its[key[3:].replace("_", " "), f"{row['bench']} {row['shape']}"] = value
    found = {}
    for program, variants in ratios.items():
        keys = set().union(*variants.values())
        whole = [its for its in variants.values() if its.keys() == keys]
        for peer in {peer for peer, _ in keys} if whole and len(variants) > 1 else ():
            of_peer = ([ratio for (who, _), ratio in its.items() if who == peer] for its in whole)
            found[program, peer] = max(map(statistics.geometric_mean, of_peer))
    return found


def program_of(row: Row) -> str:
    return re.sub(r" M=.*", "", row["bench"])


def gpu(what: str) -> list[str]:
    run = newest(what)
    if run is None:
        return []
    about, rows, name = run
    body = []
    for ours, peers in best(rows):
        unit, label = next(each for each in UNITS if each[0] in ours)
        beside = [
            f"{ratio:.2f} of {who}" + (f" ({row[unit]:,.0f})" if unit != "ms" and unit in row else "")
            for who, (ratio, row) in peers.items()
        ]
        rate = f"{ours[unit]:,.2f}" if unit == "ms" else f"{ours[unit]:,.0f}"
        apart = f" ± {100 * ours['spread'] / 2:.1f} %" if "spread" in ours else ""
        body.append([ours["bench"], ours["shape"], f"{rate} {label}{apart}", "; ".join(beside)])
    packages = (("torch", "torch"), ("cudnn", "cuDNN"))
    versions = ", ".join(f"{package} {about[key]}" for key, package in packages if key in about)
    note = f"Ours is the best of the tile sizes that the benchmark tries.{other_commits(rows)}"
    if any("spread" in row for row in rows):
        note += f" A rate is the median of {about['rounds']} rounds, behind it half the distance of their quartiles."
    return [f"{source(about, name)}; {versions}. {note}", "", *table(["program", "size", "ours", "beside"], body)]


Beside = dict[str, dict[str, list[float]]]


def programs() -> tuple[Beside, dict[tuple[str, str], float], list[str]]:
    """How we stand beside the first two peers of each program, over all shapes; with one variant; and who measured."""
    found: Beside = {}
    fixed: dict[tuple[str, str], float] = {}
    sources = []
    for what in ("gpu", "kernels", "memory"):
        run = newest(what)
        if run is None:
            continue
        about, rows, _ = run
        sources.append(f"{about['device']}, {about['date']}, commit {about['commit']}")
        cases = best(rows)
        for program in {program_of(ours) for ours, _ in cases}:
            found.pop(program, None)  # what stands in a later file is measured there beside what limits it
            fixed = {key: mean for key, mean in fixed.items() if key[0] != program}
        fixed |= one_for_all(rows)
        for ours, peers in cases:
            its = found.setdefault(program_of(ours), {})
            for who, (ratio, _) in list(peers.items())[:2]:
                its.setdefault(who, []).append(ratio)
    return found, fixed, list(dict.fromkeys(sources))


def summary() -> list[str]:
    """A line a program."""
    found, fixed, sources = programs()
    body = []
    for program, its in found.items():
        beside = []
        for who, ratios in its.items():
            mean, low, high = statistics.geometric_mean(ratios), min(ratios), max(ratios)
            beside.append(f"{mean:.2f} of {who}" + (f" ({low:.2f} to {high:.2f})" if len(ratios) > 1 else ""))
        alone = "; ".join(f"{fixed[program, who]:.2f}" for who in its if (program, who) in fixed)
        body.append([program, str(max(map(len, its.values()), default=0)), "; ".join(beside), alone])
    head = [
        f"{'; '.join(sources)}. The geometric mean over all sizes, and the least and the largest ratio.",
        "At each size ours is the best of the tile sizes that the benchmark tries. The last column is the mean with",
        "one tile size for all, where several were measured at every size.",
    ]
    return [*head, "", *table(["program", "sizes", "speed beside", "one tile size"], body)] if body else []


def shown() -> list[str]:
    """The picture, and what it shows."""
    sources = programs()[2]
    return [
        "![speed of each program beside its peers](bench/figures.svg)",
        "",
        f"{'; '.join(sources)}.",
        "A mark is the geometric mean over all sizes, filled for the first peer; a bar reaches from the least to the",
        "largest ratio. At each size ours is the best of the tile sizes that the benchmark tries;",
        "with one tile size for all: [bench/FIGURES.md](bench/FIGURES.md).",
        "",
    ]


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
            whole = {row["what"]: row["ns"] / 1e3 for row in rows if "ns" in row}
            ours, theirs = whole["launch, 3 arrays, stream handle"], whole["torch.add(x, y, out=z)"]
            lines.append(f"  call from C: {ours:.1f} µs in all, where `torch.add(x, y, out=z)` takes {theirs:.1f}")
            lines.append(f"  ({source(about, name)}).")
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


HEAD = """# Figures

Every shape that the benchmarks measure; made by bench/readme.py from the newest files in bench/results.
[README.md](README.md) tells how they are measured.

"""


def short() -> str:
    about = ["Each size, tuning, the CPU: [bench/FIGURES.md](bench/FIGURES.md).", ""]
    return "\n".join([*shown(), *(line.replace("(results/", "(bench/results/") for line in waiting()), *about])


def figures() -> str:
    parts = [*summary(), *gpu("gpu"), *gpu("memory"), *gpu("kernels"), *tuned(), *cpu(), *waiting()]
    return HEAD + "\n".join(parts).rstrip() + "\n"


def main() -> int:
    text = README.read_text()
    if BEGIN not in text:
        sys.exit("README.md has lost the marks between which the figures stand")
    made = re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: BEGIN + short() + END, text, flags=re.DOTALL)
    drawn = picture([(program, list(its.items())) for program, its in programs()[0].items()])
    wanted = {README: made, FIGURES: figures(), PICTURE: drawn}
    stale = [path for path, its in wanted.items() if not path.is_file() or path.read_text() != its]
    if "--check" in sys.argv:
        for path in stale:
            print(
                f"the figures in {path.relative_to(ROOT)} are not those of bench/results: make figures", file=sys.stderr
            )
        return int(bool(stale))
    for path in stale:
        path.write_text(wanted[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
