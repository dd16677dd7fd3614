"""Where a thread stands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cuda import device
from tilewright.errors import TileError, TileTypeError, TileValueError

GRID, BLOCK = (2, 3, 2), (4, 2, 3)


@device.kernel
def positions(out):
    x, y, z = device.tid(3)
    across, down, deep = device.grid_size(3)
    i = (z * down + y) * across + x
    t, b, d, g = device.thread_idx, device.block_idx, device.block_dim, device.grid_dim
    out[i, 0], out[i, 1], out[i, 2] = t
    out[i, 3], out[i, 4], out[i, 5] = b.x, b.y, b.z
    out[i, 6], out[i, 7], out[i, 8] = d[0], d[1], d[2]
    out[i, 9], out[i, 10], out[i, 11] = g
    out[i, 12] = len(t) + g.size
    out[i, 13] = device.lane_id
    out[i, 14] = device.warp_size
    out[i, 15] = device.grid_size(2)[1] * 1000 + device.grid_size(1) * 100 + deep
    out[i, 16] = device.tid(1) + 100 * device.tid(2)[1]


@pytest.mark.spec(
    "D-332", "D-333", "D-334", "D-335", "D-336", "D-337", "D-338", "D-339", "D-341", "D-342", "D-343", "D-344", "D-345",
    "D-346", "D-347", "D-348", "D-349", "D-351", "D-352", "D-288", "D-291", "D-294", "D-314", "D-315",
)  # a table of several in a line  # fmt: skip
def test_every_thread_knows_where_it_stands(run: Any) -> None:
    out = np.full((8 * 6 * 6, 17), -1, np.int32)
    run(positions, out, grid=GRID, block=BLOCK)
    for i, row in enumerate(out):
        at = i % 8, i // 8 % 6, i // 48
        block, thread = (
            [p // b for p, b in zip(at, BLOCK, strict=True)],
            [p % b for p, b in zip(at, BLOCK, strict=True)],
        )
        lane = (thread[0] + 4 * (thread[1] + 2 * thread[2])) % 32
        places = [6, lane, 32, 6806, at[0] + 100 * at[1]]
        assert list(row) == [*thread, *block, *BLOCK, *GRID, *places]


@device.kernel
def formats(out):
    out[0] = device.thread_idx.x.dtype == device.uint32
    out[1] = device.tid(1).dtype == device.int32
    out[2] = device.grid_size(1).dtype == device.int32
    out[3] = device.warp_size.dtype == device.int32
    out[4] = device.lane_id.dtype == device.int32
    for i in range(device.warp_size):
        out[5] = i


@pytest.mark.spec("D-333", "D-337", "D-351", "D-352")
def test_formats_of_positions(run: Any) -> None:
    out = np.zeros(6, np.int32)
    run(formats, out)
    np.testing.assert_array_equal(out, [1, 1, 1, 1, 1, 31])


@device.kernel
def count(out):
    out[device.tid(1)] = device.block_dim.x * 100 + device.grid_dim.x


@pytest.mark.spec("D-288", "D-289", "D-290", "D-291", "D-322")
@pytest.mark.parametrize("form", [lambda n: n, lambda n: (n,), lambda n: (n, 1), lambda n: (n, 1, 1)])
def test_forms_of_extents(run: Any, form: Any) -> None:
    out = np.zeros(6, np.int32)
    run(count, out, grid=form(3), block=form(2))
    np.testing.assert_array_equal(out, 203)


@pytest.mark.spec("D-292", "D-323")
@pytest.mark.parametrize("wrong", [(), (1, 1, 1, 1), 1.5, "4", 0, -1, (2000, 1)])
def test_what_is_no_extent(wrong: Any) -> None:
    with pytest.raises(TileError):
        device.launch(count, np.zeros(1, np.int32), grid=1, block=wrong)


@pytest.mark.spec("D-013", "D-293")
def test_names_of_the_exposition_are_not_public() -> None:
    assert not hasattr(device, "Dim3Like")


@pytest.mark.spec("D-286", "D-287", "D-331")
@pytest.mark.parametrize(
    "use", [lambda: device.lane_id + 1, lambda: device.warp_size * 2, lambda: list(device.block_dim)]
)
def test_the_host_has_no_position(use: Any) -> None:
    with pytest.raises(TileError, match="is device only"):
        use()


@pytest.mark.spec("D-340", "D-350")
@pytest.mark.parametrize("name", ["tid", "grid_size"])
@pytest.mark.parametrize("ndims", [0, 4])
def test_numbers_of_dimensions(run: Any, name: str, ndims: int) -> None:
    function = getattr(device, name)

    @device.kernel
    def k(x):
        x[0] = function(ndims)

    with pytest.raises(TileValueError, match=f"device.{name}: there are 1 to 3 dimensions, found {ndims}"):
        run(k, np.zeros(1, np.int32))


@pytest.mark.spec("D-340")
def test_the_number_of_dimensions_is_a_constant() -> None:
    @device.kernel
    def k(x, n):
        x[0] = device.tid(n)

    with pytest.raises(TileTypeError, match="the number of dimensions is a constant"):
        device.launch(k, np.zeros(1, np.int32), 1, grid=1, block=1)


@pytest.mark.spec("D-353")
@pytest.mark.parametrize("text", ["device.thread_idx.x = 3", "device.lane_id = 3", "device.block_dim = (1, 1, 1)"])
def test_positions_are_not_assigned(text: str, tmp_path: Any) -> None:
    path = tmp_path / "assigns.py"
    path.write_text(f"from cuda import device\n@device.kernel\ndef k(x):\n    {text}\n    x[0] = 1\n")
    space: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    with pytest.raises(TileError):
        device.launch(space["k"], np.zeros(1, np.int32), grid=1, block=1)
