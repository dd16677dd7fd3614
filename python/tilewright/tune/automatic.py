"""A kernel that is tuned by its first launch: `@tune.autotune` over `@ct.kernel`, started by `tune.launch`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import TileTypeError
from ..kernel import kernel as tile_kernel
from .launching import best
from .search import search
from .space import Grid, Problem, Space


class AutotunedKernel:
    """A kernel with the space that its first launch with other arguments searches."""

    def __init__(self, kernel: tile_kernel, space: Space, settings: dict[str, Any]) -> None:
        self.kernel, self.space, self.settings = kernel, space, settings
        self.seen: set[bytes] = set()
        self.__doc__ = kernel.__doc__

    def __repr__(self) -> str:
        return f"<autotuned {self.kernel!r}>"

    def prepare(self, grid: Grid, args: tuple[Any, ...]) -> tuple[tile_kernel, Any]:
        """Searches, if no search has been made for such arguments, in this process or another one. The kernel, and the
        file of the record that has what was found."""
        named = self.settings.get("record_file")
        path = None if isinstance(named, bool) else named
        Problem(self.kernel, args, grid)  # says what is wrong with them
        key = self.kernel.shape_key(args)
        if key not in self.seen:
            if best(self.kernel, args, record_file=path) is None:
                search(self.kernel, args, space=self.space, grid=grid, **self.settings)
            self.seen.add(key)
        return self.kernel, path


def autotune(space: Space, **settings: Any) -> Callable[[tile_kernel], AutotunedKernel]:
    """Search `space` at the first launch with arguments of a new shape class; `settings` are those of `search`.

        @tune.autotune({"TM": (64, 128), "TN": (64, 128), "num_warps": (4, 8)})
        @ct.kernel
        def matmul(A, B, C, TM: ct.Constant[int], TN: ct.Constant[int]): ...

        tune.launch(stream, lambda A, B, TM, TN: (…), matmul, (a, b, c, 64, 64))

    The search runs on copies of the arrays; a launch then costs what `tune.launch` does.
    """

    def decorate(kernel: tile_kernel) -> AutotunedKernel:
        if not isinstance(kernel, tile_kernel):
            raise TileTypeError(f"@tune.autotune stands over @ct.kernel, found {kernel!r}")
        return AutotunedKernel(kernel, space, settings)

    return decorate
