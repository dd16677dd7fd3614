"""Pictures of layouts: who owns which element of a tile, or in which bank of shared memory it lies.

A layout is read from the text of the IR (`tensor<128x64xf32, #tile.linear<register = [[0, 1], ...], lane = ...>>`).
The picture has two panels: the whole tile coloured by warp, and its first corner element by element, with the lane and
the register that own each. For a layout of shared memory (`offset = ...`) the colours and numbers are banks.

The SVG is written here, with no package; a PNG of the same primitives is drawn by matplotlib where that is installed.
"""

from __future__ import annotations

import colorsys
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

from .errors import TileValueError

GROUPS = ("register", "lane", "warp", "block", "offset")
BANKS, BANK_BYTES = 32, 4


@dataclass(frozen=True)
class Layout:
    """A linear map over bits: per group of position bits, the element that each bit alone names."""

    shape: tuple[int, ...]
    element: str
    bases: dict[str, tuple[tuple[int, ...], ...]]

    @property
    def is_shared(self) -> bool:
        return bool(self.bases.get("offset"))

    def count(self, group: str) -> int:
        return 1 << len(self.bases.get(group, ()))

    def positions(self) -> Iterator[tuple[dict[str, int], tuple[int, ...]]]:
        """Each position with the element there. The element is the XOR of the vectors of the position's bits."""
        groups = [group for group in GROUPS if self.bases.get(group)]
        for values in itertools.product(*(range(self.count(group)) for group in groups)):
            element = [0] * len(self.shape)
            for group, value in zip(groups, values, strict=True):
                for bit, vector in enumerate(self.bases[group]):
                    if value >> bit & 1:
                        element = [a ^ b for a, b in zip(element, vector, strict=True)]
            yield dict(zip(groups, values, strict=True)), tuple(element)

    def owners(self) -> dict[tuple[int, ...], list[dict[str, int]]]:
        """Of each element all positions that hold it; more than one where the layout replicates."""
        table: dict[tuple[int, ...], list[dict[str, int]]] = {}
        for position, element in self.positions():
            table.setdefault(element, []).append(position)
        return table


_TYPE = re.compile(r"(?:tensor|!tile\.buffer|)<((?:\d+x)+)([A-Za-z]\w*)\s*,\s*(#tile\.linear<[^>]*>|#\w+)\s*>")
_GROUP = re.compile(r"(\w+)\s*=\s*\[((?:\s*\[[^\]]*\]\s*,?)*)\s*\]")


def parse_layout(text: str) -> Layout:
    """Read the first tile type with a layout in the text."""
    match = _TYPE.search(text)
    if match is None:
        raise TileValueError(
            f"no layout in {text[:80]!r}: expected a type such as "
            "tensor<4x2xf32, #tile.linear<register = [[0, 1]], lane = [[1, 0], [2, 0]]>>"
        )
    return _layout(match, {})


def _layout(match: re.Match[str], aliases: dict[str, str]) -> Layout:
    extents, element, attribute = match.groups()
    attribute = aliases.get(attribute, attribute)
    bases = {}
    for group, vectors in _GROUP.findall(attribute):
        if group not in GROUPS:
            raise TileValueError(f"unknown group {group!r} in a layout; there are {', '.join(GROUPS)}")
        bases[group] = tuple(
            tuple(int(number) for number in vector.split(",")) for vector in re.findall(r"\[([^\[\]]+)\]", vectors)
        )
    shape = tuple(int(extent) for extent in extents.split("x")[:-1])
    rank = next((len(vectors[0]) for vectors in bases.values() if vectors), len(shape))
    return Layout(shape[len(shape) - rank :], element, bases)


def layouts_of(text: str) -> list[tuple[str, Layout]]:
    """Every operation of a dumped module whose result has a layout, as (its line without the layout, the layout)."""
    aliases = dict(re.findall(r"(?m)^(#\w+) = (#tile\.linear<[^>]*>)", text))
    found = []
    for line in text.splitlines():
        head, _, types = line.partition(" : ")
        matches = list(_TYPE.finditer(types))
        if "=" in head and matches:  # the result's type stands last
            found.append((head.strip(), _layout(matches[-1], aliases)))
    return found


# --- the picture as rectangles and texts ---------------------------------------------------------------------------


@dataclass
class Picture:
    width: float
    height: float
    title: str
    rectangles: list[tuple[float, float, float, float, str, str]] = field(default_factory=list)
    texts: list[tuple[float, float, str, float, str, str]] = field(default_factory=list)

    def rectangle(self, x: float, y: float, w: float, h: float, fill: str, stroke: str = "none") -> None:
        self.rectangles.append((x, y, w, h, fill, stroke))

    def text(self, x: float, y: float, text: str, size: float, anchor: str = "middle", color: str = "#222") -> None:
        self.texts.append((x, y, text, size, anchor, color))

    def svg(self) -> str:
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width:g}" height="{self.height:g}" '
            f'viewBox="0 0 {self.width:g} {self.height:g}" font-family="DejaVu Sans, sans-serif">',
            f"<title>{escape(self.title)}</title>",
            f'<rect width="{self.width:g}" height="{self.height:g}" fill="#fff"/>',
        ]
        for x, y, w, h, fill, stroke in self.rectangles:
            edge = "" if stroke == "none" else f' stroke="{stroke}" stroke-width="0.6"'
            parts.append(f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" fill="{fill}"{edge}/>')
        for x, y, text, size, anchor, color in self.texts:
            parts.append(
                f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" text-anchor="{anchor}" fill="{color}">'
                f"{escape(text)}</text>"
            )
        return "\n".join([*parts, "</svg>", ""])

    def write_png(self, path: Path, scale: float = 2.0) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.patches import Rectangle

        figure = Figure(figsize=(self.width / 100, self.height / 100), dpi=100 * scale)
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, self.width), ylim=(self.height, 0))
        axes.axis("off")
        for x, y, w, h, fill, stroke in self.rectangles:
            axes.add_patch(Rectangle((x, y), w, h, facecolor=fill, edgecolor=stroke, linewidth=0.4))
        align = {"start": "left", "middle": "center", "end": "right"}
        for x, y, text, size, anchor, color in self.texts:
            axes.text(x, y, text, fontsize=size * 0.72, ha=align[anchor], va="baseline", color=color)
        figure.savefig(path)


def _color(hue: float, value: float = 0.93, saturation: float = 0.42) -> str:
    red, green, blue = colorsys.hsv_to_rgb(hue % 1.0, saturation, value)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"


def _group_color(index: int, count: int) -> str:
    return _color(index / max(count, 1) + 0.55)


def _bits_of(element: str) -> int:
    digits = re.search(r"\d+", element)
    return int(digits.group()) if digits else 8


_MARGIN, _PANEL, _HEAD = 24, 520, 64


def draw(layout: Layout, title: str = "") -> Picture:
    """The two panels of a layout; tiles of rank other than 2 are drawn as rows of their last dimension."""
    owners = layout.owners()
    columns = layout.shape[-1]
    rows = 1
    for extent in layout.shape[:-1]:
        rows *= extent

    def element_at(row: int, column: int) -> tuple[int, ...]:
        coordinates = [column]
        for extent in reversed(layout.shape[:-1]):
            coordinates.append(row % extent)
            row //= extent
        return tuple(reversed(coordinates))

    element_bits = _bits_of(layout.element)

    def bank(offset: int) -> int:
        return offset * element_bits // 8 // BANK_BYTES % BANKS

    corner_rows, corner_columns = min(rows, 16), min(columns, 16)
    cell = _PANEL / 16
    whole = min(_PANEL / columns, _PANEL / rows)
    height = _HEAD + max(rows * whole, corner_rows * cell) + 60
    left, right = _MARGIN, 3 * _MARGIN + max(columns * whole, 400.0)
    picture = Picture(right + corner_columns * cell + _MARGIN, height, title or "layout")
    shape = "x".join(map(str, layout.shape))
    picture.text(_MARGIN, 26, title or f"{shape} {layout.element}", 17, "start")

    if layout.is_shared:
        summary = f"{shape} {layout.element} in shared memory, {BANKS} banks of {BANK_BYTES} bytes"
        groups = BANKS
    else:
        parts = [f"{layout.count(group)} {group}s" for group in ("register", "lane", "warp", "block")]
        copies = max(len(positions) for positions in owners.values())
        summary = f"{shape} {layout.element}: {', '.join(part for part in parts if not part.startswith('1 '))}"
        summary += f"; each element has {copies} owners" if copies > 1 else ""
        groups = layout.count("warp") * layout.count("block")
    picture.text(_MARGIN, 48, summary, 12, "start", "#555")

    def group_of(position: dict[str, int]) -> int:
        if layout.is_shared:
            return bank(position["offset"])
        return position.get("warp", 0) + layout.count("warp") * position.get("block", 0)

    # The whole tile: neighbours in a row of one colour become one rectangle.
    for row in range(rows):
        start = 0
        keys = [group_of(owners[element_at(row, column)][0]) for column in range(columns)]
        for column in range(1, columns + 1):
            if column == columns or keys[column] != keys[start]:
                picture.rectangle(
                    left + start * whole,
                    _HEAD + row * whole,
                    (column - start) * whole,
                    whole,
                    _group_color(keys[start], groups),
                )
                start = column
    _frame(picture, left, _HEAD, columns * whole, rows * whole)
    _frame(picture, left, _HEAD, corner_columns * whole, corner_rows * whole)

    # The corner, element by element; the shade tells lanes of one warp apart.
    for row, column in itertools.product(range(corner_rows), range(corner_columns)):
        positions = owners[element_at(row, column)]
        first, x, y = positions[0], right + column * cell, _HEAD + row * cell
        if layout.is_shared:
            fill, words = _group_color(group_of(first), groups), [f"{bank(first['offset'])}", f"+{first['offset']}"]
        else:
            lane = first.get("lane", 0)
            fill = _color(lane / layout.count("lane"), 0.97, 0.22 + 0.2 * (lane % 2))
            warp = f"w{group_of(first)} " if groups > 1 else ""
            words = [f"T{lane}", f"{warp}r{first.get('register', 0)}"]
        picture.rectangle(x, y, cell, cell, fill, "#fff")
        picture.text(x + cell / 2, y + cell / 2 - 1, words[0], 10.5)
        picture.text(x + cell / 2, y + cell / 2 + 10, words[1], 8, color="#666")
    bottom = picture.height - 22
    if layout.is_shared:
        passes = ldmatrix_passes(layout)
        verdict = "no bank conflicts" if passes == 1 else f"{passes} passes"
        picture.text(left, bottom, f"whole tile by bank; ldmatrix (8 rows of 16 bytes): {verdict}", 12, "start")
        picture.text(right, bottom, "first corner: bank, +offset in elements", 12, "start")
    else:
        for number in range(min(groups, 8)):
            picture.rectangle(left + number * 66, bottom - 11, 12, 12, _group_color(number, groups), "#999")
            picture.text(left + number * 66 + 16, bottom, f"warp {number}", 11, "start")
        picture.text(right, bottom, "first corner: T lane, w warp, r register", 12, "start")
    return picture


def _frame(picture: Picture, x: float, y: float, w: float, h: float) -> None:
    for box in ((x, y, w, 0.8), (x, y + h, w, 0.8), (x, y, 0.8, h), (x + w, y, 0.8, h + 0.8)):
        picture.rectangle(*box, "#444")


def ldmatrix_passes(layout: Layout) -> int:
    """Passes over the banks that eight rows of 16 bytes take at worst, which is what ldmatrix reads; 1 is the best."""
    bits = _bits_of(layout.element)
    used: dict[tuple[int, ...], dict[int, set[int]]] = {}
    for position, element in layout.positions():
        word = position["offset"] * bits // 8 // BANK_BYTES
        row = element[-2] // 8 if len(element) > 1 else 0
        matrix = (*element[:-2], row, element[-1] * bits // 128)
        used.setdefault(matrix, {}).setdefault(word % BANKS, set()).add(word)
    return max(len(words) for banks in used.values() for words in banks.values())


def write(layout: Layout, path: str | Path, title: str = "") -> Path:
    """Write the picture of a layout as .svg or .png, by the name's ending."""
    path = Path(path)
    picture = draw(layout, title)
    if path.suffix == ".svg":
        path.write_text(picture.svg())
    elif path.suffix == ".png":
        try:
            picture.write_png(path)
        except ModuleNotFoundError as error:
            raise TileValueError("a PNG needs matplotlib (pip install matplotlib); an .svg needs nothing") from error
    else:
        raise TileValueError(f"cannot write {path.name!r}: the name must end in .svg or .png")
    return path
