"""Pictures of layouts: who owns which element of a tile, or in which bank of shared memory it lies.

A layout is read from the text of the IR (`tensor<128x64xf32, #tile.linear<register = [[0, 1], ...], lane = ...>>`).
The picture has two panels: the whole tile coloured by warp, and its first corner element by element, with the lane and
the register that own each. For a layout of shared memory (`offset = ...`) the colours and numbers are banks.

The SVG is written here, with no package; a PNG of the same primitives is drawn by matplotlib where that is installed.
"""

from __future__ import annotations

import colorsys
import itertools
import math
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


class _Sheet:
    """What is drawn of a layout: the whole tile on the left, on the right its corner element by element. Tiles of
    rank other than 2 are rows of their last dimension."""

    def __init__(self, layout: Layout, title: str) -> None:
        self.layout, self.owners, self.element_bits = layout, layout.owners(), _bits_of(layout.element)
        self.columns, self.rows = layout.shape[-1], math.prod(layout.shape[:-1])
        self.groups = BANKS if layout.is_shared else layout.count("warp") * layout.count("block")
        self.corner_rows, self.corner_columns = min(self.rows, 16), min(self.columns, 16)
        self.cell, self.whole = _PANEL / 16, min(_PANEL / self.columns, _PANEL / self.rows)
        self.left, self.right = _MARGIN, 3 * _MARGIN + max(self.columns * self.whole, 400.0)
        height = _HEAD + max(self.rows * self.whole, self.corner_rows * self.cell) + 60
        self.picture = Picture(self.right + self.corner_columns * self.cell + _MARGIN, height, title or "layout")

    def positions(self, row: int, column: int) -> list[dict[str, int]]:
        """Who holds an element."""
        coordinates = [column]
        for extent in reversed(self.layout.shape[:-1]):
            coordinates.append(row % extent)
            row //= extent
        return self.owners[tuple(reversed(coordinates))]

    def bank(self, offset: int) -> int:
        return offset * self.element_bits // 8 // BANK_BYTES % BANKS

    def group_of(self, position: dict[str, int]) -> int:
        """What has a colour of its own: a bank of shared memory, or a warp."""
        if self.layout.is_shared:
            return self.bank(position["offset"])
        return position.get("warp", 0) + self.layout.count("warp") * position.get("block", 0)

    def put_head(self, title: str) -> None:
        layout, shape = self.layout, "x".join(map(str, self.layout.shape))
        if layout.is_shared:
            summary = f"{shape} {layout.element} in shared memory, {BANKS} banks of {BANK_BYTES} bytes"
        else:
            parts = [f"{layout.count(group)} {group}s" for group in ("register", "lane", "warp", "block")]
            copies = max(len(positions) for positions in self.owners.values())
            summary = f"{shape} {layout.element}: {', '.join(part for part in parts if not part.startswith('1 '))}"
            summary += f"; each element has {copies} owners" if copies > 1 else ""
        self.picture.text(_MARGIN, 26, title or f"{shape} {layout.element}", 17, "start")
        self.picture.text(_MARGIN, 48, summary, 12, "start", "#555")

    def put_whole(self) -> None:
        """Neighbours in a row of one colour become one rectangle."""
        for row in range(self.rows):
            start = 0
            keys = [self.group_of(self.positions(row, column)[0]) for column in range(self.columns)]
            for column in range(1, self.columns + 1):
                if column == self.columns or keys[column] != keys[start]:
                    x, y = self.left + start * self.whole, _HEAD + row * self.whole
                    color = _group_color(keys[start], self.groups)
                    self.picture.rectangle(x, y, (column - start) * self.whole, self.whole, color)
                    start = column
        for rows, columns in ((self.rows, self.columns), (self.corner_rows, self.corner_columns)):
            _frame(self.picture, self.left, _HEAD, columns * self.whole, rows * self.whole)

    def put_corner(self) -> None:
        for row, column in itertools.product(range(self.corner_rows), range(self.corner_columns)):
            fill, words = self.in_corner(self.positions(row, column)[0])
            cell, x, y = self.cell, self.right + column * self.cell, _HEAD + row * self.cell
            self.picture.rectangle(x, y, cell, cell, fill, "#fff")
            self.picture.text(x + cell / 2, y + cell / 2 - 1, words[0], 10.5)
            self.picture.text(x + cell / 2, y + cell / 2 + 10, words[1], 8, color="#666")

    def in_corner(self, first: dict[str, int]) -> tuple[str, tuple[str, str]]:
        """Colour and texts of an element; the shade tells lanes of one warp apart."""
        if self.layout.is_shared:
            offset = first["offset"]
            return _group_color(self.bank(offset), self.groups), (f"{self.bank(offset)}", f"+{offset}")
        lane = first.get("lane", 0)
        fill = _color(lane / self.layout.count("lane"), 0.97, 0.22 + 0.2 * (lane % 2))
        warp = f"w{self.group_of(first)} " if self.groups > 1 else ""
        return fill, (f"T{lane}", f"{warp}r{first.get('register', 0)}")

    def put_legend(self) -> None:
        bottom = self.picture.height - 22
        if self.layout.is_shared:
            passes = ldmatrix_passes(self.layout)
            verdict = "no bank conflicts" if passes == 1 else f"{passes} passes"
            text = f"whole tile by bank; ldmatrix (8 rows of 16 bytes): {verdict}"
            self.picture.text(self.left, bottom, text, 12, "start")
            self.picture.text(self.right, bottom, "first corner: bank, +offset in elements", 12, "start")
            return
        for number in range(min(self.groups, 8)):
            x, color = self.left + number * 66, _group_color(number, self.groups)
            self.picture.rectangle(x, bottom - 11, 12, 12, color, "#999")
            self.picture.text(x + 16, bottom, f"warp {number}", 11, "start")
        self.picture.text(self.right, bottom, "first corner: T lane, w warp, r register", 12, "start")


def draw(layout: Layout, title: str = "") -> Picture:
    """The two panels of a layout."""
    sheet = _Sheet(layout, title)
    sheet.put_head(title)
    sheet.put_whole()
    sheet.put_corner()
    sheet.put_legend()
    return sheet.picture


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
