"""Mandelbrot: how often each point is squared before it escapes, by a function of threads on the elements of tiles.

python python/examples/mandelbrot.py

Tiles take a loop together: `by_tiles` takes all steps for all points, though most have long escaped. `steps` is code of
one thread, which a tile kernel calls for each element: a warp goes on when its own 32 points have escaped.
"""

import numpy as np

from cuda import device
from tilewright import tile as ct


@device.func
def steps(re, im, most):
    x, y, n = re, im, 0
    while x * x + y * y < 4.0 and n < most:
        x, y = x * x - y * y + re, 2.0 * x * y + im
        n += 1
    return n


@ct.function
def points(left, top, size, T):
    """The points of this block: real and imaginary parts."""
    re = left + (ct.bid(1) * T + ct.arange(T, dtype=ct.int32)).astype(ct.float32) * size
    im = top + (ct.bid(0) * T + ct.arange(T, dtype=ct.int32)).astype(ct.float32) * size
    return ct.broadcast_to(re[None, :], (T, T)), ct.broadcast_to(im[:, None], (T, T))


@ct.kernel
def mandelbrot(out, left, top, size, most, T: ct.Constant[int]):
    re, im = points(left, top, size, T)
    ct.store(out, index=(ct.bid(0), ct.bid(1)), tile=steps(re, im, most))


@ct.kernel
def by_tiles(out, left, top, size, most, T: ct.Constant[int]):
    re, im = points(left, top, size, T)
    x, y, n = re, im, ct.zeros((T, T), dtype=ct.int32)
    for _ in range(most):
        inside = x * x + y * y < 4.0
        x, y = ct.where(inside, x * x - y * y + re, x), ct.where(inside, 2.0 * x * y + im, y)
        n += inside.astype(ct.int32)
    ct.store(out, index=(ct.bid(0), ct.bid(1)), tile=n)


def run(out, most, kernel=mandelbrot, tile=32, stream=None):
    rows, columns = out.shape
    view = (-2.0, -1.25, 2.5 / rows)
    ct.launch(stream, (ct.cdiv(rows, tile), ct.cdiv(columns, tile)), kernel, (out, *view, most, tile))


def reference(shape, most):
    rows, columns = shape
    size = np.float32(2.5 / rows)
    re = (np.float32(-2) + np.arange(columns, dtype=np.float32) * size)[None, :] + np.zeros(shape, np.float32)
    im = (np.float32(-1.25) + np.arange(rows, dtype=np.float32) * size)[:, None] + np.zeros(shape, np.float32)
    x, y, n = re.copy(), im.copy(), np.zeros(shape, np.int32)
    for _ in range(most):
        inside = x * x + y * y < 4
        x, y = np.where(inside, x * x - y * y + re, x), np.where(inside, 2 * x * y + im, y)
        n += inside
    return n


if __name__ == "__main__":
    out, other = np.empty((512, 512), np.int32), np.empty((512, 512), np.int32)
    run(out, 200)
    run(other, 200, by_tiles)
    differ = np.count_nonzero(out != reference(out.shape, 200))
    print(f"{differ} of {out.size} points differ by rounding; on average {out.mean():.0f} of 200 steps")
