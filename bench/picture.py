"""The picture of the figures, an SVG: a line a program, a mark for each peer at how fast we are beside it.

    picture([("matmul bf16", [("cuBLAS", [1.0, 1.04])])]) -> text

A mark stands at the geometric mean over all sizes, a bar reaches from the least to the largest ratio. The scale is
logarithmic, so that twice as fast is as far to the right of 1 as half as fast is to the left.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from html import escape

Peers = Sequence[tuple[str, Sequence[float]]]

ROW, TOP, LEFT, WIDTH, RIGHT = 19, 44, 232, 330, 440
LOW, HIGH, TICKS = 0.7, 4.2, (0.75, 1, 1.5, 2, 3, 4)
OURS, BAR, GRID, TEXT, QUIET = "#c23b22", "#e3a89c", "#d8d8d8", "#222222", "#666666"
STYLE = "font-family:system-ui,sans-serif;font-size:12px"


def at(ratio: float) -> float:
    inside = min(max(ratio, LOW), HIGH)
    return LEFT + WIDTH * math.log(inside / LOW) / math.log(HIGH / LOW)


def text(x: float, y: float, what: str, color: str = TEXT, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{color}" text-anchor="{anchor}">{escape(what)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, color: str, width: float) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{color}" stroke-width="{width:g}"/>'


def marks(y: float, ratios: Sequence[float], first: bool) -> list[str]:
    mean = statistics.geometric_mean(ratios)
    fill = OURS if first else "white"
    beyond = "▸" if mean > HIGH else ""
    found = [line(at(min(ratios)), y, at(max(ratios)), y, BAR, 5)] if len(ratios) > 1 else []
    found.append(f'<circle cx="{at(mean):.1f}" cy="{y:.1f}" r="4" fill="{fill}" stroke="{OURS}" stroke-width="1.5"/>')
    return [*found, text(at(mean) + 6, y + 4, beyond, OURS)] if beyond else found


def picture(programs: Sequence[tuple[str, Peers]]) -> str:
    height, right = TOP + ROW * len(programs) + 8, LEFT + WIDTH
    found = [text(LEFT - 8, 16, "speed beside", QUIET, "end")]
    for tick in TICKS:
        found += [line(at(tick), TOP - 12, at(tick), height - 8, QUIET if tick == 1 else GRID, 1 + (tick == 1))]
        found += [text(at(tick), TOP - 18, f"{tick:g}", QUIET, "middle")]
    for number, (name, peers) in enumerate(programs):
        y = TOP + ROW * (number + 0.5)
        found.append(text(LEFT - 8, y + 4, name, TEXT, "end"))
        for place, (_, ratios) in reversed(list(enumerate(peers))):
            found += marks(y, ratios, place == 0)
        told = ", ".join(f"{statistics.geometric_mean(ratios):.2f} {who}" for who, ratios in peers)
        found.append(text(right + 12, y + 4, told, QUIET))
    size = f'width="{right + RIGHT}" height="{height}" viewBox="0 0 {right + RIGHT} {height}"'
    background = f'<rect width="{right + RIGHT}" height="{height}" fill="white"/>'
    return "\n".join(
        [f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="{STYLE}">', background, *found, "</svg>", ""]
    )
