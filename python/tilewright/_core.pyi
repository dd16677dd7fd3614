"""Types of the C extension. Parts not listed yet are Any."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

# One tuple a parameter: what a compiled variant may rely on.
#   ("array", dtype, rank, align, shape_div, strides, writable, tma)
#       The address is a multiple of `align` bytes, extent d of shape_div[d] (16 or 1). strides[d]
#       is (1, 1) for a stride known to be 1, else (0, divisor of the stride in elements). tma: a
#       tensor map can describe it.
#   ("scalar", dtype, divisor)   An integer is a multiple of divisor (16 or 1).
#   ("const", value)
Key = tuple[tuple[Any, ...], ...]

class CpuKernel:
    """Native code: `void entry(words, grid, first, last, scratch)`. `owner` is kept alive with it.

    `written` has bit i set if the kernel writes to argument i (constants count as positions too).
    """

    def __new__(
        cls,
        address: int,
        name: str,
        scratch_bytes: int = 0,
        written: int = 0,
        owner: object = None,
    ) -> CpuKernel: ...
    @property
    def name(self) -> str: ...
    @property
    def written(self) -> int: ...
    @property
    def scratch_bytes(self) -> int: ...

class CudaKernel:
    """PTX text or a cubin. Loaded at the first launch on a device, once for equal images.

    num_threads 0: launch_threads gives the block. `programmatic`: every path through the kernel
    begins with griddepcontrol.wait, so a launch may overlap its predecessor. `persistent`: a block takes
    several of the grid's, whose extents are three more words; it is started in clusters by `pairs`: (axis
    along which two are neighbours, cycles of a step in clusters along each axis or 0, cycles of blocks
    alone). `joined`: so does one whose rows of threads, so many at most, are blocks side by side.
    `tensor_maps`: what it takes before its words, as (word of the array's pointer, bytes of an element,
    swizzle, axes, box). `split`: blocks may share a tile by (word of the extent of k, extent of a step,
    steps, cycles and bytes of a step, parts or 0, bytes of a part's sums); one that `shares` has three more
    words that say which. `cut`: blocks may compute slices of a tile, by what lowering/gpu/grid/slice_tiles.c says;
    one whose blocks do so starts as many for each as `cut_grid` says; of one with several blocks in one, by what
    `fuse` and lowering/gpu/grid/coarsen_tiles.c say, that is minus their number. In the place of this one, `better`
    makes another for launches that do better so, of ("cut", slices of each tile), ("fused", blocks in one),
    ("clusters", the axis along which they are), or ("twin", 0): blocks share tiles, or have no clusters.
    `disjoint`: pairs of arrays, as (word of the pointer, rank, bits of an element), that must have no
    memory in common; where those of a launch do, `overlapping` makes the kernel for it, of ("twin", 0).
    `loaded`: from which arrays the loop loads, (word of the pointer, rank, bits of an element) of each in a row.
    `takes_tickets`: a block takes the number of its next one from a workspace, which the launch passes.
    """

    def __new__(
        cls,
        image: str | bytes,
        name: str,
        num_threads: int,
        shared_bytes: int = 0,
        written: int = 0,
        programmatic: bool = False,
        persistent: bool = False,
        joined: int = 0,
        tensor_maps: Sequence[tuple[int, int, int, Sequence[int], Sequence[int]]] = (),
        split: Sequence[int] = (),
        shares: bool = False,
        better: Callable[[str, int], CudaKernel] | None = None,
        pairs: Sequence[int] = (),
        disjoint: Sequence[Sequence[int]] = (),
        overlapping: Callable[[str, int], CudaKernel] | None = None,
        cut: Sequence[int] = (),
        cut_grid: Sequence[int] = (),
        fuse: Sequence[int] = (),
        loaded: Sequence[int] = (),
        takes_tickets: bool = False,
    ) -> CudaKernel: ...
    @property
    def name(self) -> str: ...
    @property
    def written(self) -> int: ...
    @property
    def num_threads(self) -> int: ...
    @property
    def shared_bytes(self) -> int: ...
    @property
    def persistent(self) -> bool: ...
    def load(self, device: int, /) -> None: ...
    def usage(self, device: int, /) -> dict[str, int]: ...

class Dispatcher:
    """Base of a kernel object: finds the compiled variant for the arguments of a launch.

    `on_miss(dispatcher, target, key)` compiles one; target is "cpu" or "sm_90a". It is called
    once a specialization and returns a CpuKernel or a CudaKernel.
    """

    def __init__(
        self,
        name: str,
        parameters: Iterable[str],
        constants: Iterable[int],
        on_miss: Callable[[Any, str, Key], CpuKernel | CudaKernel],
        threads: bool = False,
        defaults: tuple[Any, ...] | None = None,
    ) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def parameters(self) -> tuple[str, ...]: ...
    def variants(self) -> list[tuple[str, Key, CpuKernel | CudaKernel]]: ...
    def clear_variants(self) -> None: ...
    def watch(self, rows: Iterable[tuple[Any, str | None, Any]], /) -> None: ...
    @property
    def watched(self) -> tuple[tuple[Any, str, Any], ...]: ...
    def specialization(self, args: tuple[Any, ...], /) -> tuple[str, Key]: ...
    def chosen(self, grid: int | Sequence[int], args: tuple[Any, ...], /) -> CpuKernel | CudaKernel: ...

class ArrayView:
    """The same memory read as another dtype of the same size (tfloat32 over float32).

    uint8 as float4_e2m1fn gives two elements a byte, the low half first.
    """

    def __new__(cls, array: Any, dtype: object) -> ArrayView: ...
    @property
    def array(self) -> Any: ...
    @property
    def dtype(self) -> str: ...

def launch(stream: Any, grid: int | Sequence[int], kernel: Dispatcher, args: tuple[Any, ...], /) -> None: ...
def launch_threads(
    stream: Any,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    kernel: Dispatcher,
    args: tuple[Any, ...],
    /,
) -> None: ...
def describe_array(array: Any, /) -> dict[str, Any]: ...
def driver_version() -> int: ...
def device_count() -> int: ...
def device_info(ordinal: int, /) -> dict[str, Any]: ...
def synchronize(device: int = 0, /) -> None: ...
def cpu_threads() -> int: ...
def next_plan(plan: int, reason: str, /) -> int: ...
def target_problem(name: str, /) -> str | None: ...
def ptx_to_cubin(ptx: str, device: int | str = 0, /) -> tuple[bytes, str]: ...
def hash128(data: bytes | str, /) -> bytes: ...
def cache_get(key: bytes, /) -> bytes | None: ...
def cache_put(key: bytes, blob: bytes, /) -> bool: ...
def cache_info() -> dict[str, Any]: ...
def cache_clear() -> None: ...
def _bench_driver_launch(kernel: CudaKernel, device: int, stream: Any, words: bytes, n: int, /) -> float: ...
def __getattr__(name: str) -> Any: ...
