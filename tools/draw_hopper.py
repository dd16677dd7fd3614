"""Draws docs/hopper.svg: who does what when, in a block of a GEMM and of attention on sm_90a.

    python3 tools/draw_hopper.py > docs/hopper.svg

A sketch of the order, not of measured times; the same text in every run.
"""

from __future__ import annotations

WIDTH, LEFT, CELL, ROW = 1136, 180, 86, 40
LOAD, PRODUCT, MATH, STORE, SLOT = "#8acfed", "#d98aed", "#edcf8a", "#8aed9b", "#e8e8e8"


def text(x: float, y: float, words: str, size: int = 13, anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}">{words}</text>'


def box(column: float, y: int, columns: float, words: str, color: str) -> str:
    x, width = LEFT + column * CELL, columns * CELL - 4
    shape = f'<rect x="{x:g}" y="{y}" width="{width:g}" height="{ROW - 8}" fill="{color}" stroke="#fff"/>'
    return shape + text(x + width / 2, y + 20, words, 12, "middle")


def lane(y: int, name: str, boxes: list[tuple[float, float, str, str]]) -> list[str]:
    return [text(24, y + 20, name), *(box(at, y, columns, words, color) for at, columns, words, color in boxes)]


def gemm(top: int) -> list[str]:
    """Four stages, eight steps of k: step i + 4 is brought when step i has been read by both warpgroups."""
    loads = [(i if i < 4 else i + 0.5, 1, f"k{i}", LOAD) for i in range(8)]
    products = [(1 + i, 1, f"k{i}", PRODUCT) for i in range(8)]
    stages = [(2 * i, 2, f"stage {i}: k{i}, then k{i + 4}", SLOT) for i in range(4)]
    epilogue = (9, 1.4, "store boxes", STORE)
    following = [(8.6, 1, "next tile", LOAD)]
    return [
        text(24, top, "GEMM: one tile of C", 15),
        *lane(top + 16, "producer: TMA", loads + following),
        *lane(top + 16 + ROW, "multi-stage buffer", stages),
        *lane(top + 16 + 2 * ROW, "warpgroup 0: wgmma", [*products, epilogue]),
        *lane(top + 16 + 3 * ROW, "warpgroup 1: wgmma", [*products, epilogue]),
        text(LEFT, top + 30 + 4 * ROW, "full[stage]: its bytes have come. empty[stage]: both warpgroups have read it."),
    ]


def attention(top: int) -> list[str]:
    """Three iterations: the next scores and the last P.V run beside the softmax's arithmetic."""
    cores = [(0, 1, "S0", PRODUCT)]
    threads = [(1, 1.4, "softmax 0", MATH)]
    for i in range(1, 4):
        at = 2.5 * i
        cores += [(at, 1, f"S{i}", PRODUCT), (at + 1, 1, f"P{i - 1}.V{i - 1}", PRODUCT)]
        threads += [(at + 1, 1.4, f"softmax {i}", MATH)]
    cores += [(10, 0.8, "P3.V3", PRODUCT)]
    return [
        text(24, top, "Attention: one warpgroup", 15),
        *lane(top + 16, "Tensor Core", cores),
        *lane(top + 16 + ROW, "threads", threads),
        text(LEFT, top + 30 + 2 * ROW, "S of the next keys starts before P.V of these; its softmax runs beside P.V."),
    ]


def main() -> None:
    height = 364
    print(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="DejaVu Sans, sans-serif">'
    )
    print("<title>the pipelines of a GEMM and of attention on sm_90a</title>")
    print(f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>')
    print("\n".join([*gemm(28), *attention(246)]))
    print("</svg>")


if __name__ == "__main__":
    main()
