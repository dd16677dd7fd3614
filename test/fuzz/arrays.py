"""Arrays that lie: array interfaces and DLPack capsules with entries of any kind, arguments and grids of any kind.

The kernel touches no array, so that what is not memory is not read. A launch succeeds, or raises one of our errors.
"""

from __future__ import annotations

import ctypes
import math
import random
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from mesh import FINE, Base, Kind, Outcome

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "numerics"))
from dlpack_structs import Managed, ManagedVersioned, capsule

from tilewright import tile as ct
from tilewright.errors import TileError

BUFFER = np.zeros(4096, np.uint8)
NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    4,
    8,
    15,
    16,
    17,
    255,
    1000,
    2**31 - 1,
    2**31,
    2**32,
    2**62,
    2**63 - 1,
    -(2**63),
    2**64,
    10**30,
)
THINGS = (
    None,
    True,
    1.5,
    "x",
    b"x",
    "",
    (),
    (1,),
    [2],
    {},
    object(),
    float("nan"),
    float("inf"),
    1e300,
    1j,
    np.float32(2),
    np.int8(3),
    ct.float32,
    print,
)
DTYPES = (*"?bBhHiIlLqQefd", "F", "D", ">f4", "S3", "O", "M8[s]", "m8", "V4", "longdouble", "i4,f4")
NARROW = (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4, ml_dtypes.float4_e2m1fn)


@ct.kernel
def takes(X, Y, C: ct.Constant = 1):
    """Looks at nothing that its arrays hold."""
    ct.static_assert(True)


class Interface:
    """A producer whose interface is whatever it was given."""

    def __init__(self, name: str, value: Any) -> None:
        setattr(self, name, value)


class Capsules:
    def __init__(self, made: Any, device: Any) -> None:
        self.made, self.device = made, device

    def __dlpack_device__(self) -> Any:
        if isinstance(self.device, Exception):
            raise self.device
        return self.device

    def __dlpack__(self, **keywords: Any) -> Any:
        if isinstance(self.made, Exception):
            raise self.made
        return self.made


class Maker:
    """The values of one case; what C structures point to lives as long."""

    def __init__(self, pick: random.Random) -> None:
        self.pick = pick
        self.keep: list[Any] = []

    def number(self) -> Any:
        return self.pick.choice(NUMBERS) if self.pick.random() < 0.5 else self.pick.choice((1, 2, 4, 8, 16))

    def thing(self) -> Any:
        return self.pick.choice(THINGS) if self.pick.random() < 0.6 else self.number()

    def numbers(self) -> Any:
        if self.pick.random() < 0.15:
            return self.thing()
        made = [
            self.number() if self.pick.random() < 0.9 else self.thing()
            for _ in range(self.pick.choice((0, 1, 1, 2, 3, 9, 70)))
        ]
        return self.pick.choice((tuple, list))(made)

    def entries(self) -> Any:
        pick = self.pick
        made = {"shape": (16,), "typestr": "<f4", "data": (BUFFER.ctypes.data, False), "version": 3, "strides": None}
        for _ in range(pick.choice((0, 1, 1, 2, 3))):
            name = pick.choice((*made, "mask", "stream", "descr", "offset"))
            made[name] = {
                "shape": self.numbers,
                "strides": self.numbers,
                "typestr": lambda: pick.choice(
                    ("<f4", ">f4", "<i8", "|u1", "<f2", "<V2", "f", "", "<f99", "<q\u0664", self.thing())
                ),
                "data": lambda: pick.choice(
                    ((self.number(), False), (0, True), (self.thing(), self.thing()), self.thing())
                ),
            }.get(name, self.thing)()
        for name in list(made):
            if pick.random() < 0.05:
                del made[name]
        return made if pick.random() < 0.95 else self.thing()

    def small(self, bits: int, usual: tuple[int, ...]) -> int:
        return (
            self.pick.choice(usual)
            if self.pick.random() < 0.7
            else self.pick.randrange(-(2 ** (bits - 1)), 2 ** (bits - 1))
        )

    def tensor(self, tensor: Any) -> None:
        pick = self.pick
        rank = self.small(32, (0, 1, 1, 2, 3, 8, 9))
        tensor.data = pick.choice((BUFFER.ctypes.data, BUFFER.ctypes.data + 1, 0, None))
        tensor.device_type, tensor.device_id = self.small(32, (1, 1, 1, 3)), self.small(32, (0, 0, 1))
        tensor.ndim = rank
        tensor.code, tensor.bits = self.small(8, (2, 2, 0, 1, 4, 6)) % 256, self.small(8, (32, 32, 8, 16, 64)) % 256
        tensor.lanes = self.small(16, (1, 1, 1, 2)) % 65536
        for name in ("shape", "strides"):
            if pick.random() < 0.1 or (name == "strides" and pick.random() < 0.5):
                continue  # NULL
            values = (ctypes.c_int64 * 16)(*(ctypes.c_int64(int(self.number())).value for _ in range(16)))
            self.keep.append(values)
            setattr(tensor, name, ctypes.cast(values, ctypes.POINTER(ctypes.c_int64)))
        tensor.byte_offset = pick.choice((0, 0, 4, 1, 2**63))

    def managed(self) -> Any:
        pick = self.pick
        if pick.random() < 0.15:
            return pick.choice((None, 5, "capsule", RuntimeError("no"), KeyError("no"), BufferError("no")))
        versioned = pick.random() < 0.5
        struct: Any = (
            ManagedVersioned(pick.choice((1, 1, 1, 0, 2)), 0, None, None, pick.choice((0, 0, 1, 2, 4, 2**63)))
            if versioned
            else Managed()
        )
        self.keep.append(struct)
        self.tensor(struct.tensor)
        right = "dltensor_versioned" if versioned else "dltensor"
        name = right if pick.random() < 0.9 else "used_dltensor"
        return capsule(ctypes.addressof(struct), name)

    def array(self) -> Any:
        pick = self.pick
        dtype = pick.choice((*DTYPES, *NARROW))
        rank = pick.choice((0, 1, 1, 2, 3, 9))
        shape = tuple(pick.choice((0, 1, 2, 3, 16) if rank < 9 else (0, 1, 2)) for _ in range(rank))
        made: Any = np.zeros(shape, dtype)
        if shape and pick.random() < 0.2:
            made = made[tuple(slice(None, None, pick.choice((1, 2, -1))) for _ in shape)]
        if pick.random() < 0.1:
            made.flags.writeable = False
        more = [made.T]
        if made.dtype.kind in "biufc" and made.dtype.itemsize > 1 and made.ndim:
            more += [memoryview(made), np.ma.masked_array(made)]
        return pick.choice((made, made, *more))

    def argument(self) -> Any:
        pick = self.pick
        kind = pick.random()
        if kind < 0.3:
            return Interface(pick.choice(("__cuda_array_interface__", "__array_interface__")), self.entries())
        if kind < 0.6:
            return Capsules(
                self.managed(),
                (1, 0) if pick.random() < 0.8 else pick.choice(((77, 3), ("a", "b"), 1, (1,), OSError("no"))),
            )
        return self.array() if kind < 0.8 else self.thing()

    def grid(self) -> Any:
        return 1 if self.pick.random() < 0.7 else self.pick.choice((self.thing(), self.numbers()))


class Mesh(Base):
    def source(self, number: int) -> str:
        return f"python test/fuzz/run.py --mesh arrays --case {number}"

    def case(self, number: int) -> Outcome:
        maker = Maker(random.Random(number))
        grid = maker.grid()
        arguments = tuple(maker.argument() for _ in range(maker.pick.choice((2, 2, 2, 3, 1, 4))))
        extents = [
            int(n) for n in (grid if isinstance(grid, tuple | list) else (grid,)) if isinstance(n, int | np.integer)
        ]
        too_many = math.prod(extents) > 10**6  # a CPU takes seconds for so many blocks, and there is nothing to see
        try:
            ct.launch(None, 1 if too_many else grid, takes, arguments)
        except (TileError, NotImplementedError) as error:
            return Outcome(Kind.REFUSED, str(error))
        except Exception as error:
            return Outcome(Kind.WRONG, f"{type(error).__name__}: {error}; of {arguments!r:.300} on {grid!r:.60}")
        return FINE
